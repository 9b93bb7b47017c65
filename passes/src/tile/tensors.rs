//! Operators on tensors without layouts: loops that carry the result, tiles by `tensor.extract_slice` and
//! `tensor.insert_slice`. The last tile of a dimension that no tile divides has what is left, as its dynamic extent.

use super::Options;
use super::memory::fail;
use super::part::{Along, Part, along, copy_of, extents, map_of, nest};
use super::product::Product;
use super::registers::{mask_operands, source_parts};
use crate::error::{PassError, PassResult};
use crate::ir::value::{self, name, operands, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Op, Val, types, walk};
use axe_dialect::element_type;
use axe_dialect::ops::{self, BroadcastOp, FillOp, MaskOp, ReduceOp};
use melior::ir::{Type, ValueLike};

/// Tiles an operator on tensors; false where it is no larger than a tile.
pub(super) fn tile<'c>(op: Op<'c>, result: Val<'c>, options: &Options) -> PassResult<'c, bool> {
    let shape = types::shape(result.r#type()).unwrap_or_default();
    let depth = match name(op).as_str() {
        ops::GEMM => options.size(shape.len()) > 0,
        _ => false,
    };
    if !options.splits(&shape) && !depth {
        return Ok(false);
    }
    if depth && !options.splits(&shape) && !splits_depth(op, options.size(shape.len()))? {
        return Ok(false);
    }
    let builder = Builder::before(op);
    let sizes = result_sizes(&builder, op, result, &shape)?;
    let dims = along(&shape, options, false, |dim| {
        sizes
            .get(dim)
            .copied()
            .flatten()
            .ok_or_else(|| fail(op, "a dynamic extent of the result is not known"))
    })?;
    let dynamic: Vec<_> = sizes.iter().flatten().copied().collect();
    let empty = builder.value("tensor.empty", &dynamic, result.r#type(), &[])?;
    let done = nest(&builder, &dims, &[empty], &mut |builder, parts, carried| {
        let tile = one(builder, op, options, result, parts)?;
        let whole = carried
            .first()
            .copied()
            .ok_or_else(|| fail(op, "a loop without its tensor"))?;
        Ok(vec![insert(builder, tile, whole, parts)?])
    })?;
    if let Some(done) = done.first() {
        replace_all_uses(result, *done);
    }
    walk::erase(op);
    Ok(true)
}

fn splits_depth<'c>(op: Op<'c>, size: i64) -> PassResult<'c, bool> {
    let depth = Product::of(op)?.depth;
    Ok(depth == DYNAMIC || size < depth)
}

/// The dynamic extents of a result, by dimension, from the operands.
fn result_sizes<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    result: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Vec<Option<Val<'c>>>> {
    let wanted = || (0..).zip(shape).filter(|(_, extent)| **extent == DYNAMIC);
    let mut sizes = vec![None; shape.len()];
    for (dim, _) in wanted() {
        let size = extent(builder, op, result, shape, dim)?;
        if let Some(place) = sizes.get_mut(dim) {
            *place = Some(size);
        }
    }
    Ok(sizes)
}

/// The extent of a result's dimension, from the operand that has it.
fn extent<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    result: Val<'c>,
    shape: &[i64],
    dim: usize,
) -> PassResult<'c, Val<'c>> {
    let operands = operands(op);
    let lost = || {
        fail(
            op,
            format!(
                "no operand has the extent of dimension {dim} of {}",
                result.r#type()
            ),
        )
    };
    // Each dimension of a result, marked by its own number, as the source's.
    let marked: Vec<_> = (0..)
        .zip(shape)
        .map(|(number, _)| Part::whole(number, None))
        .collect();
    let of = |operand: Val<'c>, parts: &[Part<'c>]| {
        parts
            .iter()
            .position(|part| part.extent == i64::try_from(dim).unwrap_or(-1))
            .map(|at| builder.extent(operand, at))
    };
    // The sizes of a fill or a broadcast, one a dynamic extent that is new.
    let new = |sizes: &[Val<'c>], dims: &dyn Fn(usize) -> bool| {
        let before = (0..dim)
            .filter(|at| shape.get(*at) == Some(&DYNAMIC) && dims(*at))
            .count();
        sizes.get(before).copied()
    };
    let first = operands.first().copied().ok_or_else(lost)?;
    match name(op).as_str() {
        ops::FILL => {
            let FillOp { sizes, .. } = value::parts(op)?;
            new(&sizes, &|_| true).ok_or_else(lost)
        }
        ops::BROADCAST => {
            let BroadcastOp { sizes, .. } = value::parts(op)?;
            let parts = source_parts(op, first, &marked)?;
            let kept = |at: usize| {
                parts
                    .iter()
                    .any(|part| part.extent == i64::try_from(at).unwrap_or(-1))
            };
            match of(first, &parts) {
                Some(size) => size,
                None => new(&sizes, &|at| !kept(at)).ok_or_else(lost),
            }
        }
        ops::REDUCE => {
            let (source, at) = kept_dimension(op, dim)?.ok_or_else(lost)?;
            builder.extent(source, at)
        }
        ops::TRANSPOSE => of(first, &source_parts(op, first, &marked)?).ok_or_else(lost)?,
        ops::GEMM => {
            let product = Product::of(op)?;
            let [a, b] = product
                .parts(&marked, Part::whole(-1, None))
                .ok_or_else(lost)?;
            let second = || of(product.b(), &b);
            of(product.a(), &a).or_else(second).ok_or_else(lost)?
        }
        _ => builder.extent(first, dim),
    }
}

/// The source of a reduction, and its dimension that is the result's of this number.
fn kept_dimension<'c>(op: Op<'c>, dim: usize) -> PassResult<'c, Option<(Val<'c>, usize)>> {
    let ReduceOp { source, dims, .. } = value::parts(op)?;
    let shape = types::shape(source.r#type()).unwrap_or_default();
    let mut kept = (0..)
        .zip(0..shape.len())
        .filter(|(at, _)| !dims.contains(at));
    Ok(kept.nth(dim).map(|(_, at)| (source, at)))
}

/// One tile of an operator's result.
fn one<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    options: &Options,
    result: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    let operands = operands(op);
    let element = element_type(result.r#type());
    let r#type = builder.tensor(&extents(parts), element)?;
    let first = operands
        .first()
        .copied()
        .ok_or_else(|| fail(op, "expected a source"))?;
    let sizes = |parts: &mut dyn Iterator<Item = &Part<'c>>| -> Vec<Val<'c>> {
        parts
            .filter(|part| part.extent == DYNAMIC)
            .filter_map(|part| part.size)
            .collect()
    };
    match name(op).as_str() {
        ops::FILL => {
            let operands = FillOp::operands(first, None, &sizes(&mut parts.iter()));
            builder.operator_value(&operands, r#type, &[])
        }
        ops::BROADCAST => {
            let BroadcastOp { dims, .. } = value::parts(op)?;
            let tile = extract(builder, first, &source_parts(op, first, parts)?)?;
            let repeated = (0..).zip(parts).filter(|(at, _)| dims.contains(at));
            let sizes = sizes(&mut repeated.map(|(_, part)| part));
            let operands = BroadcastOp::operands(tile, &sizes);
            builder.operator_value(&operands, r#type, &[("dims", builder.i64s(&dims))])
        }
        ops::REDUCE | ops::TRANSPOSE => {
            let mut of = source_parts(op, first, parts)?;
            fill_sizes(builder, first, &mut of)?;
            built(builder, op, &[extract(builder, first, &of)?], r#type)
        }
        ops::GEMM => product(builder, op, options, r#type, parts),
        ops::MASK => {
            let mask: MaskOp = value::parts(op)?;
            let source = extract(builder, mask.source, parts)?;
            let operands = mask_operands(builder, &mask, source, parts)?;
            built(builder, op, &operands.values, r#type)
        }
        _ => {
            let tile = |operand: &Val<'c>| extract(builder, *operand, parts);
            let tiles = operands
                .iter()
                .map(tile)
                .collect::<PassResult<'c, Vec<_>>>()?;
            builder.result_of(map_of(builder, op, &tiles, (r#type, parts))?)
        }
    }
}

fn built<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &[Val<'c>],
    r#type: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    builder.result_of(copy_of(builder, op, operands, Some(r#type)))
}

/// A tile of a product, along `K` in a loop of its own.
fn product<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    options: &Options,
    r#type: Type<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    let product = Product::of(op)?;
    let (a, b) = (product.a(), product.b());
    let size = match product.depth {
        DYNAMIC => {
            let marks = [Part::whole(-1, None); 2];
            let batch = vec![Part::whole(-1, None); parts.len().saturating_sub(2)];
            let all: Vec<_> = batch.into_iter().chain(marks).collect();
            let [of, _] = product
                .parts(&all, Part::whole(1, None))
                .ok_or_else(|| fail(op, "expected matrices"))?;
            let at = of.iter().position(|part| part.extent == 1);
            Some(builder.extent(product.a(), at.unwrap_or_default())?)
        }
        _ => None,
    };
    let start = match product.acc() {
        Some(acc) => Some(extract(builder, acc, parts)?),
        None => start(builder, &product, options, r#type, parts)?,
    };
    let along = product.along(parts.len(), options, size, false);
    product.sum(builder, r#type, start, along, &mut |builder, k| {
        let [of_a, of_b] = product
            .parts(parts, k)
            .ok_or_else(|| fail(op, "expected matrices"))?;
        Ok([extract(builder, a, &of_a)?, extract(builder, b, &of_b)?])
    })
}

/// Zeros to sum from, where `K` is cut and the tile has dynamic extents.
fn start<'c>(
    builder: &Builder<'c>,
    product: &Product<'c>,
    options: &Options,
    r#type: Type<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Option<Val<'c>>> {
    let Along { tile, extent, .. } = product.along(parts.len(), options, None, false);
    if tile == 0 || (extent != DYNAMIC && tile >= extent) {
        return Ok(None);
    }
    let zero = builder.zero(element_type(r#type))?;
    let sizes: Vec<_> = parts
        .iter()
        .filter(|part| part.extent == DYNAMIC)
        .filter_map(|part| part.size)
        .collect();
    let operands = FillOp::operands(zero, None, &sizes);
    builder.operator_value(&operands, r#type, &[]).map(Some)
}

/// Dynamic extents of dimensions that stay whole and that no part has a value for.
fn fill_sizes<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    parts: &mut [Part<'c>],
) -> PassResult<'c> {
    for (dim, part) in parts.iter_mut().enumerate() {
        if part.extent == DYNAMIC && part.size.is_none() {
            part.size = Some(builder.extent(tensor, dim)?);
        }
    }
    Ok(())
}

/// `tensor.extract_slice` of a tile; the tensor itself where it is all of it.
fn extract<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    if parts.iter().all(|part| part.at.is_none()) {
        return Ok(tensor);
    }
    let mut parts = parts.to_vec();
    fill_sizes(builder, tensor, &mut parts)?;
    let r#type = builder.tensor(&extents(&parts), element_type(tensor.r#type()))?;
    slice_op(builder, "tensor.extract_slice", &[tensor], r#type, &parts)
}

/// `tensor.insert_slice` of a tile.
fn insert<'c>(
    builder: &Builder<'c>,
    tile: Val<'c>,
    whole: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    slice_op(
        builder,
        "tensor.insert_slice",
        &[tile, whole],
        whole.r#type(),
        parts,
    )
}

fn slice_op<'c>(
    builder: &Builder<'c>,
    name: &str,
    tensors: &[Val<'c>],
    result: Type<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    let at: Vec<_> = parts.iter().filter_map(|part| part.at).collect();
    let sizes: Vec<_> = parts
        .iter()
        .filter(|part| part.extent == DYNAMIC)
        .filter_map(|part| part.size)
        .collect();
    let count = |list: &[Val<'c>]| {
        i32::try_from(list.len())
            .map_err(|_| PassError::new(builder.location, "too many dimensions"))
    };
    let mut segments = vec![1; tensors.len()];
    segments.extend([count(&at)?, count(&sizes)?, 0]);
    let offsets: Vec<i64> = parts
        .iter()
        .map(|part| if part.at.is_some() { DYNAMIC } else { 0 })
        .collect();
    let operands: Vec<_> = tensors.iter().copied().chain(at).chain(sizes).collect();
    let attributes = [
        ("static_offsets", builder.i64s(&offsets)),
        ("static_sizes", builder.i64s(&extents(parts))),
        ("static_strides", builder.i64s(&vec![1; parts.len()])),
        builder.segments(&segments),
    ];
    builder.value(name, &operands, result, &attributes)
}
