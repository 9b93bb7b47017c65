//! Loops over tiles, and a tile's place along each dimension.

use super::Options;
use crate::error::{PassError, PassResult};
use crate::ir::facts::Fact;
use crate::ir::value::{replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, Val, walk};
use axe_dialect::Typed;
use axe_dialect::ops::IndexOp;
use melior::ir::{Type, ValueLike};
use mlir_sys as sys;

/// A tile along one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'c> {
    /// Where it begins; `None` at the beginning of a dimension that stays whole.
    pub at: Option<Val<'c>>,
    /// What is known of that.
    pub fact: Fact,
    /// Its extent; [`DYNAMIC`] where a value has it.
    pub extent: i64,
    /// The extent at run time.
    pub size: Option<Val<'c>>,
}

impl<'c> Part<'c> {
    /// All of a dimension.
    pub(super) fn whole(extent: i64, size: Option<Val<'c>>) -> Self {
        Self {
            at: None,
            fact: Fact::number(0),
            extent,
            size,
        }
    }

    /// Where it begins, as a value.
    pub(super) fn begin(&self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        self.at.map_or_else(|| builder.index(0), Ok)
    }
}

/// The extents of tiles.
pub(super) fn extents(parts: &[Part<'_>]) -> Vec<i64> {
    parts.iter().map(|part| part.extent).collect()
}

/// A dimension to go along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along<'c> {
    /// The extent; [`DYNAMIC`] where `size` has it.
    pub extent: i64,
    pub size: Option<Val<'c>>,
    /// The extent of a tile; 0 for one tile that is all of it.
    pub tile: i64,
    /// Whether the last tile of a dimension that no tile divides is as large as the others: where slices have bounds.
    pub bounded: bool,
}

impl<'c> Along<'c> {
    fn is_whole(&self) -> bool {
        self.tile == 0 || (self.extent != DYNAMIC && self.tile >= self.extent)
    }
}

/// The dimensions of a shape with the sizes that the options give; `size` gives the dynamic extents.
pub(super) fn along<'c>(
    shape: &[i64],
    options: &Options,
    bounded: bool,
    mut size: impl FnMut(usize) -> PassResult<'c, Val<'c>>,
) -> PassResult<'c, Vec<Along<'c>>> {
    let one = |(dim, &extent): (usize, &i64)| {
        Ok(Along {
            extent,
            size: match extent {
                DYNAMIC => Some(size(dim)?),
                _ => None,
            },
            tile: options.size(dim),
            bounded,
        })
    };
    shape.iter().enumerate().map(one).collect()
}

/// What a loop's body makes of its parts and of the values that it carries.
type Body<'a, 'c> =
    dyn FnMut(&Builder<'c>, &[Part<'c>], &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>> + 'a;

/// A nest of loops over tiles, outermost first, that carries values.
///
/// # Errors
/// When building fails; nothing is left of the nest then.
pub(super) fn nest<'c>(
    builder: &Builder<'c>,
    dims: &[Along<'c>],
    start: &[Val<'c>],
    body: &mut Body<'_, 'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    nest_from(builder, dims, &mut Vec::new(), start, body)
}

fn nest_from<'c>(
    builder: &Builder<'c>,
    dims: &[Along<'c>],
    parts: &mut Vec<Part<'c>>,
    carried: &[Val<'c>],
    body: &mut Body<'_, 'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let Some(dim) = dims.get(parts.len()) else {
        return body(builder, parts, carried);
    };
    if dim.is_whole() {
        parts.push(Part::whole(dim.extent, dim.size));
        let next = nest_from(builder, dims, parts, carried, body);
        parts.pop();
        return next;
    }
    let end = match dim.size {
        Some(size) => size,
        None => builder.index(dim.extent)?,
    };
    let bounds = [builder.index(0)?, end, builder.index(dim.tile)?];
    let types: Vec<Type<'c>> = carried.iter().map(|value| value.r#type()).collect();
    let arguments: Vec<_> = std::iter::once(builder.index_type())
        .chain(types.iter().copied())
        .collect();
    let (region, values, inner) = builder.region(&arguments);
    let Some((at, values)) = values.split_first() else {
        return Err(PassError::new(builder.location, "a loop without an index"));
    };
    parts.push(part(&inner, dim, *at, end)?);
    let next = nest_from(&inner, dims, parts, values, body);
    parts.pop();
    inner.operation("scf.yield", &next?, &[], &[], Vec::new())?;
    let operands: Vec<_> = bounds.into_iter().chain(carried.iter().copied()).collect();
    builder
        .operation("scf.for", &operands, &types, &[], vec![region])
        .map(results)
}

/// The tile at a loop's variable.
fn part<'c>(
    builder: &Builder<'c>,
    dim: &Along<'c>,
    at: Val<'c>,
    end: Val<'c>,
) -> PassResult<'c, Part<'c>> {
    let last = |extent: i64| (extent - 1) / dim.tile * dim.tile;
    let fact = Fact {
        divisor: dim.tile,
        low: Some(0),
        high: (dim.extent != DYNAMIC).then(|| last(dim.extent)),
    };
    let even = dim.bounded || (dim.extent != DYNAMIC && dim.extent % dim.tile == 0);
    let (extent, size) = match even {
        true => (dim.tile, None),
        false => {
            let index = builder.index_type();
            let left = builder.value("arith.subi", &[end, at], index, &[])?;
            let tile = builder.index(dim.tile)?;
            let size = builder.value("arith.minsi", &[tile, left], index, &[])?;
            (DYNAMIC, Some(size))
        }
    };
    Ok(Part {
        at: Some(at),
        fact,
        extent,
        size,
    })
}

/// The tile of a map: a copy whose body asks for places in the whole tensor.
pub(super) fn map_of<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &[Val<'c>],
    (result, parts): (Type<'c>, &[Part<'c>]),
) -> PassResult<'c, Op<'c>> {
    let copy = copy_of(builder, op, operands, Some(result));
    for op in walk::nested(copy, &|_| true) {
        let Some(index) = IndexOp::of(op) else {
            continue;
        };
        let part = usize::try_from(index.dim)
            .ok()
            .and_then(|dim| parts.get(dim));
        let Some(begin) = part.and_then(|part| part.at) else {
            continue;
        };
        let inner = Builder::before(op);
        let own = inner.result_of(inner.clone_of(op))?;
        let whole = inner.value("arith.addi", &[own, begin], inner.index_type(), &[])?;
        replace_all_uses(index.result, whole);
        walk::erase(op);
    }
    Ok(copy)
}

/// A copy of an operation, with its attributes and regions, on other operands; its result gets this type.
pub(super) fn copy_of<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &[Val<'c>],
    result: Option<Type<'c>>,
) -> Op<'c> {
    let copy = builder.clone_of(op);
    for (at, operand) in (0isize..).zip(operands) {
        // SAFETY: there are as many operands as the original has.
        unsafe { sys::mlirOperationSetOperand(copy.to_raw(), at, operand.to_raw()) };
    }
    if let (Some(r#type), Some(value)) = (result, results(copy).first()) {
        use melior::ir::TypeLike;
        // SAFETY: value and type are valid and of one context; the copy has no user yet.
        unsafe { sys::mlirValueSetType(value.to_raw(), r#type.to_raw()) };
    }
    copy
}
