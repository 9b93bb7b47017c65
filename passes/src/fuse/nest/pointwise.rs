//! Loops without reductions, of which each point is an element of tensors of one shape: what an `axe.map` cannot say, because the body
//! asks where it is (`linalg.index`) or reads other elements of a tensor (`tensor.extract`). They join the kernel of the rows that
//! their elements are of ([`super::super::evaluate`]), so that a gather of one element a row, or a comparison of a column's number with
//! a value of its row, takes no pass of its own.

use super::{Nest, Start, maps};
use crate::fuse::reshape::extent_of;
use crate::ir::value::{defining, identity, name, only_result, operands, results};
use crate::ir::{Builder, DYNAMIC, Int, Ints, Op, TensorType, Val, attribute, inline, walk};
use crate::{PassError, PassResult};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{AffineMap, Type, ValueLike};
use std::collections::HashMap;

/// The attribute of loops that read tables at few of their points.
const SELDOM: &str = "axe.reads_seldom";

/// Such loops, read.
#[derive(Clone, Debug)]
pub struct Pointwise<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Tensors of which the body has the element at its own index.
    pub inputs: Vec<Val<'c>>,
    /// Tensors of which the body extracts elements, each once.
    pub tables: Vec<Val<'c>>,
    /// The shape of the result.
    pub shape: Vec<i64>,
}

impl<'c> Pointwise<'c> {
    /// Reads loops; none where they have several results, reductions, or operands that are indexed otherwise than the result.
    #[must_use]
    pub fn of(op: Op<'c>) -> Option<Self> {
        if !super::is_nest(op) {
            return None;
        }
        let shape = TensorType::of_value(only_result(op)?)?.shape;
        let nest = Nest::read(op).ok()?;
        let inner_is_dynamic = shape.iter().skip(1).any(|extent| *extent == DYNAMIC);
        if inner_is_dynamic
            || nest.reductions.contains(&true)
            || !matches!(nest.starts[..], [Start::Nothing])
        {
            return None;
        }
        let maps = maps(op)?;
        let inputs: Vec<_> = operands(op)
            .into_iter()
            .take(maps.len().checked_sub(1)?)
            .collect();
        let same = |value: &Val<'c>| {
            TensorType::of_value(*value).is_some_and(|tensor| tensor.shape == shape)
        };
        let aligned = maps.iter().all(|map| is_identity(*map, &shape));
        if !aligned || !inputs.iter().all(same) {
            return None;
        }
        let mut tables = Vec::new();
        for inner in walk::nested(op, &|_| true) {
            match name(inner).as_str() {
                "tensor.extract" => tables.extend(operands(inner).first().copied()),
                "tensor.dim" | "cf.assert" => return None,
                _ => {}
            }
        }
        tables.dedup();
        let known = |table: &Val<'c>| {
            let tensor = TensorType::of_value(*table);
            tensor.is_some_and(|tensor| {
                !tensor.shape.contains(&DYNAMIC) && !tensor.shape.contains(&0)
            })
        };
        tables.iter().all(known).then_some(Self {
            op,
            inputs,
            tables,
            shape,
        })
    }

    /// Whether the body reads neither tensors nor scalars that are data: numbers of places, which cost nothing to form again.
    #[must_use]
    pub fn is_formed_again(&self) -> bool {
        self.inputs.is_empty() && self.tables.is_empty()
    }

    /// Whether the elements that are read of tables are few of those that these have: a gather of one a row, not a copy.
    #[must_use]
    pub fn reads_few(&self) -> bool {
        if self.op.attribute(SELDOM).is_ok() {
            return true;
        }
        let elements = |shape: &[i64]| {
            let known = shape.iter().filter(|extent| **extent != DYNAMIC);
            known.fold(1i64, |all, extent| all.saturating_mul(*extent))
        };
        let own = elements(&self.shape).saturating_mul(4);
        let mut tables = self
            .tables
            .iter()
            .filter_map(|table| TensorType::of_value(*table));
        tables.all(|table| elements(&table.shape) >= own)
    }

    /// The body at an index, as scalars at the builder's place: of these elements of the inputs, with what stands for the scalars and
    /// the tables that it reads from outside.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn element(
        &self,
        builder: &Builder<'c>,
        inputs: &[Val<'c>],
        at: &[Val<'c>],
        outside: &HashMap<usize, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let missing = || PassError::new(self.op.location(), "expected a body");
        let block = walk::blocks(self.op).first().copied().ok_or_else(missing)?;
        let mut values: inline::Values<'c> = outside.clone();
        let arguments = walk::block_arguments(block).into_iter().map(identity);
        values.extend(arguments.zip(inputs.iter().copied()));
        let mut own = walk::operations(block);
        let last = own.pop().ok_or_else(missing)?;
        for op in own {
            let copy = inline::copy_operation(builder, op, &mut values);
            for inner in walk::nested(copy, &|_| true).into_iter().chain([copy]) {
                let Some(formed) = in_kernel(inner, at)? else {
                    continue;
                };
                let old = only_result(inner).ok_or_else(missing)?;
                crate::ir::value::replace_all_uses(old, formed);
                if inner == copy {
                    values.extend(results(op).first().map(|own| (identity(*own), formed)));
                }
                walk::erase(inner);
            }
        }
        let yielded = operands(last).first().copied().ok_or_else(missing)?;
        Ok(values.get(&identity(yielded)).copied().unwrap_or(yielded))
    }
}

/// Says of loops that few of their points read tables.
pub(super) fn mark_seldom(value: Val<'_>) {
    if let Some(op) = defining(value) {
        let unit = Builder::before(op).unit();
        // SAFETY: the operation is live, and nothing else refers to its attributes.
        unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute(SELDOM, unit);
    }
}

/// What an operation of the body is in a kernel, where it is something else there: an index, or a load, whose indices a map's body
/// brings into the extents whatever they are.
fn in_kernel<'c>(op: Op<'c>, at: &[Val<'c>]) -> PassResult<'c, Option<Val<'c>>> {
    let missing = || PassError::new(op.location(), "expected an index");
    match name(op).as_str() {
        "linalg.index" => {
            let dim = op.attribute("dim").ok().and_then(attribute::integer);
            let dim = dim.and_then(|dim| usize::try_from(dim).ok());
            let index = dim.and_then(|dim| at.get(dim).copied());
            index.map(Some).ok_or_else(missing)
        }
        "tensor.extract" => {
            let builder = Builder::before(op);
            let all = operands(op);
            let element = builder.result_of(op)?.r#type();
            builder.value("memref.load", &all, element, &[]).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether a map gives each dimension its own loop; those of extent 1 may have the index 0 instead.
#[must_use]
pub fn is_identity(map: AffineMap<'_>, shape: &[i64]) -> bool {
    let own = |(at, extent): (usize, &i64)| {
        map.result(at).is_ok_and(|index| {
            (index.is_dim() && index.dim_position() == at)
                || (*extent == 1 && index.is_constant() && index.constant_value() == 0)
        })
    };
    map.result_count() == shape.len() && shape.iter().enumerate().all(own)
}

/// The index of a tensor's element of this number in row-major order. The first extent may be anything.
///
/// # Errors
/// When an operation cannot be built.
pub fn index_of_number<'c>(
    ints: &Ints<'c>,
    shape: &[i64],
    number: Int<'c>,
) -> PassResult<'c, Vec<Int<'c>>> {
    let mut index = vec![Int::ZERO; shape.len()];
    let first = shape.iter().position(|extent| *extent != 1);
    let mut rest = number;
    for (dim, &extent) in shape.iter().enumerate().rev() {
        let Some(slot) = index.get_mut(dim).filter(|_| extent != 1) else {
            continue;
        };
        if Some(dim) == first {
            *slot = rest;
            break;
        }
        *slot = ints.rem(rest, extent)?;
        rest = ints.div(rest, extent)?;
    }
    Ok(index)
}

/// Loops over tensors of one shape: the tensor of what `body` gives of an element of each input.
///
/// # Errors
/// When building fails, or those of `body`.
pub(super) fn parallel_generic<'c>(
    builder: &Builder<'c>,
    inputs: &[Val<'c>],
    (shape, element): (&[i64], Type<'c>),
    body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let r#type = builder.tensor(shape, element)?;
    let sizes = match (shape.first(), inputs.first()) {
        (Some(&DYNAMIC), Some(input)) => vec![extent_of(builder, *input, 0)?],
        _ => Vec::new(),
    };
    let empty = builder.value("tensor.empty", &sizes, r#type, &[])?;
    let mut elements = Vec::new();
    for input in inputs {
        elements.push(builder.tensor_of(*input)?.element);
    }
    elements.push(element);
    let (region, arguments, inner) = builder.region(&elements);
    let value = body(&inner, arguments.get(..inputs.len()).unwrap_or_default())?;
    inner.operation("linalg.yield", &[value], &[], &[], Vec::new())?;
    let dims: Vec<_> = (0..shape.len()).map(|dim| format!("d{dim}")).collect();
    let dims = dims.join(", ");
    let maps = vec![format!("affine_map<({dims}) -> ({dims})>"); elements.len()].join(", ");
    let parallel = vec!["#linalg.iterator_type<parallel>"; shape.len()].join(", ");
    let inputs_count = i32::try_from(inputs.len()).unwrap_or(i32::MAX);
    let attributes = [
        ("indexing_maps", builder.parsed(&format!("[{maps}]"))?),
        ("iterator_types", builder.parsed(&format!("[{parallel}]"))?),
        builder.segments(&[inputs_count, 1]),
    ];
    let operands = [inputs, &[empty]].concat();
    let op = builder.operation(
        "linalg.generic",
        &operands,
        &[r#type],
        &attributes,
        vec![region],
    )?;
    builder.result_of(op)
}
