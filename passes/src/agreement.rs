//! Dynamic dimensions that must agree.
//!
//! `linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>)` means nothing where the two extents differ, and code for it reads
//! beyond the shorter one. Frontends that know so assert it; others do not. Here each operation's loops say which
//! dimensions are one extent, and where arguments of the function or numbers stand for it, `cf.assert` in front of the
//! operation compares them. Extents that the function computes are followed to those, through `tensor.empty` and the
//! operations between, and compared as the numbers that they are.

use crate::error::PassResult;
use crate::ir::value::{argument_number, defined_by, defining, identity, name, operands, results};
use crate::ir::{Builder, DYNAMIC, Op, Val, attribute, types, walk};
use axe_dialect::ops;
use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, ValueLike};
use mlir_sys as sys;
use std::collections::{BTreeMap, HashSet};

/// What an extent is.
#[derive(Clone, Copy, Debug)]
enum Extent<'c> {
    Number(i64),
    /// A dimension of a block's argument.
    Of(Val<'c>, usize),
    /// An index that the function computes.
    Computed(Val<'c>),
}

impl<'c> Extent<'c> {
    /// What tells extents apart.
    fn key(self) -> (usize, usize, i64) {
        match self {
            Self::Number(number) => (0, 0, number),
            Self::Of(value, dim) => (identity(value), dim, 1),
            Self::Computed(value) => (identity(value), 0, 2),
        }
    }

    fn value(self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Number(number) => builder.index(number),
            Self::Of(value, dim) => builder.extent(value, dim),
            Self::Computed(value) => Ok(value),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Of(value, dim) => {
                let number = argument_number(value).unwrap_or(0);
                format!("dimension {dim} of argument {number}")
            }
            Self::Computed(_) => "an extent that the function computes".to_owned(),
        }
    }
}

/// Asserts that dimensions agree which operations of a module's functions take for equal.
///
/// # Errors
/// When building fails.
pub fn assert_dimensions<'c>(module: Op<'c>) -> PassResult<'c> {
    let mut compared = HashSet::new();
    for op in walk::nested(module, &|op| !name(op).starts_with("linalg.")) {
        for extents in loops(op).into_values() {
            let Some((first, rest)) = extents.split_first() else {
                continue;
            };
            for other in rest {
                let block = op.block().map_or(0, |block| block.to_raw().ptr as usize);
                let (a, b) = (first.key().min(other.key()), first.key().max(other.key()));
                if a != b && compared.insert((block, a, b)) {
                    assert(op, *first, *other)?;
                }
            }
        }
    }
    Ok(())
}

fn assert<'c>(op: Op<'c>, a: Extent<'c>, b: Extent<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    let integer = |bits| builder.r#type(|context| IntegerType::new(context, bits).into());
    // `arith.cmpi eq`.
    let predicate = IntegerAttribute::new(integer(64), 0).into();
    let operands = [a.value(&builder)?, b.value(&builder)?];
    let equal = builder.value(
        "arith.cmpi",
        &operands,
        integer(1),
        &[("predicate", predicate)],
    )?;
    let message = format!(
        "'{}' takes {} and {} for equal",
        name(op),
        a.text(),
        b.text()
    );
    let message = builder.attribute(|context| StringAttribute::new(context, &message).into());
    builder
        .operation("cf.assert", &[equal], &[], &[("msg", message)], Vec::new())
        .map(drop)
}

/// The known extents that each loop of an operation runs over.
fn loops<'c>(op: Op<'c>) -> BTreeMap<usize, Vec<Extent<'c>>> {
    let mut found = BTreeMap::<usize, Vec<Extent<'c>>>::new();
    for (value, dims) in dims_of(op) {
        for (dim, number) in dims.into_iter().enumerate() {
            if let (Some(number), Some(extent)) = (number, extent(value, dim)) {
                found.entry(number).or_default().push(extent);
            }
        }
    }
    found
}

/// The operands of an operation with the loop that runs over each of their dimensions.
fn dims_of<'c>(op: Op<'c>) -> Vec<(Val<'c>, Vec<Option<usize>>)> {
    let all = operands(op);
    let rank = |value: &Val<'c>| types::shape(value.r#type()).map_or(0, |shape| shape.len());
    match name(op).as_str() {
        ops::MAP => {
            let dims = |value: &Val<'c>| (*value, (0..rank(value)).map(Some).collect());
            all.iter().map(dims).collect()
        }
        ops::GEMM => gemm(op, &all),
        ops::SCALED_GEMM => scaled_gemm(op, &all),
        ops::GROUPED_GEMM => grouped_gemm(op, &all),
        linalg if linalg.starts_with("linalg.") => structured(op, &all),
        _ => Vec::new(),
    }
}

/// The operands by the indexing maps of linalg's interface.
fn structured<'c>(op: Op<'c>, all: &[Val<'c>]) -> Vec<(Val<'c>, Vec<Option<usize>>)> {
    // SAFETY: the operation is live; the attribute is null for one without the interface, which is checked.
    let maps = unsafe {
        let maps = sys::mlirLinalgGetIndexingMapsAttribute(op.to_raw());
        (!maps.ptr.is_null()).then(|| Attribute::from_raw(maps))
    };
    let maps = maps.and_then(attribute::elements).unwrap_or_default();
    let dims = |map: Attribute<'c>| -> Vec<Option<usize>> {
        let Some(map) = attribute::affine_map(map) else {
            return Vec::new();
        };
        let number = |at| {
            let index = map.result(at).ok()?;
            index.is_dim().then(|| index.dim_position())
        };
        (0..map.result_count()).map(number).collect()
    };
    all.iter()
        .copied()
        .zip(maps.into_iter().map(dims))
        .collect()
}

/// The operands of `axe.gemm`: m, n, k and the batch are loops 0 to 3.
fn gemm<'c>(op: Op<'c>, all: &[Val<'c>]) -> Vec<(Val<'c>, Vec<Option<usize>>)> {
    let flag = |name: &str| op.attribute(name).is_ok();
    let swapped = |dims: [usize; 2], swap: bool| match swap {
        true => [dims[1], dims[0]],
        false => dims,
    };
    let roles = [
        swapped([0, 2], flag("trans_a")),
        swapped([2, 1], flag("trans_b")),
        [0, 1],
    ];
    let dims = |(value, own): (&Val<'c>, [usize; 2])| {
        let rank = types::shape(value.r#type()).map_or(0, |shape| shape.len());
        let outer = rank.saturating_sub(2);
        let dims = (0..outer).map(|at| 3 + at).chain(own).map(Some);
        (*value, dims.collect())
    };
    all.iter().zip(roles).map(dims).collect()
}

/// The operands of `axe.scaled_gemm`, A `[m, k]`, B `[n, k]` and the scales of A `[m, blocks of k]`: m, n and k are loops 0 to 2.
fn scaled_gemm<'c>(op: Op<'c>, all: &[Val<'c>]) -> Vec<(Val<'c>, Vec<Option<usize>>)> {
    let of_a = match op.attribute("trans_scale_a").is_ok() {
        true => vec![None, Some(0)],
        false => vec![Some(0), None],
    };
    let roles = [vec![Some(0), Some(2)], vec![Some(1), Some(2)], of_a];
    all.iter().copied().zip(roles).collect()
}

/// The operands of `axe.grouped_gemm`, A `[m, k]` and B `[g, k, n]`: m, n, k and the groups are loops 0 to 3.
fn grouped_gemm<'c>(op: Op<'c>, all: &[Val<'c>]) -> Vec<(Val<'c>, Vec<Option<usize>>)> {
    let of_b = match op.attribute("trans_b").is_ok() {
        true => [3, 1, 2],
        false => [3, 2, 1],
    };
    let roles = [vec![0, 2], of_b.to_vec()];
    let some = |dims: Vec<usize>| dims.into_iter().map(Some).collect();
    all.iter().copied().zip(roles.map(some)).collect()
}

/// The extent of a dimension, where it follows from what the function is given.
fn extent<'c>(value: Val<'c>, dim: usize) -> Option<Extent<'c>> {
    let known = types::TensorType::of_value(value)?
        .shape
        .get(dim)
        .copied()?;
    if known != DYNAMIC {
        return Some(Extent::Number(known));
    }
    let Some(op) = defining(value) else {
        return Some(Extent::Of(value, dim));
    };
    let all = operands(op);
    let number = results(op).iter().position(|result| *result == value)?;
    let own = name(op);
    match own.as_str() {
        "tensor.empty" => {
            let shape = types::shape(value.r#type())?;
            let before = shape.iter().take(dim).filter(|extent| **extent == DYNAMIC);
            index(*all.get(before.count())?)
        }
        "tensor.cast" | ops::MAP | ops::CAST => extent(*all.first()?, dim),
        // The outputs are the last operands, one a result.
        linalg if linalg.starts_with("linalg.") => {
            let outputs = all.len().checked_sub(results(op).len())?;
            extent(*all.get(outputs + number)?, dim)
        }
        _ => None,
    }
}

/// What an index is.
fn index<'c>(value: Val<'c>) -> Option<Extent<'c>> {
    let constant = |value: Val<'c>| {
        let op = defined_by(value, "arith.constant")?;
        op.attribute("value").ok().and_then(attribute::integer)
    };
    if let Some(number) = constant(value) {
        return Some(Extent::Number(number));
    }
    let Some(dim) = defined_by(value, "tensor.dim") else {
        return Some(Extent::Computed(value));
    };
    let (source, at) = match operands(dim).as_slice() {
        &[source, at] => (source, usize::try_from(constant(at)?).ok()?),
        _ => return None,
    };
    extent(source, at)
}
