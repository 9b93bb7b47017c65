//! Products: tiles of rows and columns in the loop of a store, and sums along `K`.

use super::Options;
use super::memory::{fail, slice};
use super::part::{Along, Part, copy_of, nest};
use super::registers::Tiles;
use crate::error::{PassError, PassResult};
use crate::ir::value::{parts, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Op, Val, types, walk};
use axe_dialect::ops::{FillOp, GemmOp};
use axe_dialect::{Operands, element_type};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The operands of a product.
pub(super) struct Product<'c> {
    op: Op<'c>,
    a: Val<'c>,
    b: Val<'c>,
    acc: Option<Val<'c>>,
    transposed: [bool; 2],
    /// The extent of `K`, static or [`DYNAMIC`].
    pub depth: i64,
}

impl<'c> Product<'c> {
    pub(super) fn of(op: Op<'c>) -> PassResult<'c, Self> {
        let gemm: GemmOp = parts(op)?;
        if gemm.is_async {
            return Err(fail(op, "an asynchronous product stays whole"));
        }
        let transposed = [gemm.trans_a, gemm.trans_b];
        let shape = types::shape(gemm.a.r#type()).unwrap_or_default();
        let depth = shape
            .len()
            .checked_sub(if transposed[0] { 2 } else { 1 })
            .and_then(|dim| shape.get(dim).copied());
        Ok(Self {
            op,
            a: gemm.a,
            b: gemm.b,
            acc: gemm.acc,
            transposed,
            depth: depth.ok_or_else(|| fail(op, "expected matrices"))?,
        })
    }

    pub(super) fn a(&self) -> Val<'c> {
        self.a
    }

    pub(super) fn b(&self) -> Val<'c> {
        self.b
    }

    pub(super) fn acc(&self) -> Option<Val<'c>> {
        self.acc
    }

    /// The parts of A and B for a tile of the result and a part of `K`.
    pub(super) fn parts(&self, result: &[Part<'c>], k: Part<'c>) -> Option<[Vec<Part<'c>>; 2]> {
        let [batch @ .., m, n] = result else {
            return None;
        };
        let matrix = |rows: Part<'c>, columns: Part<'c>, transposed: bool| {
            let pair = if transposed {
                [columns, rows]
            } else {
                [rows, columns]
            };
            batch.iter().copied().chain(pair).collect()
        };
        Some([
            matrix(*m, k, self.transposed[0]),
            matrix(k, *n, self.transposed[1]),
        ])
    }

    /// The loop along `K`, by the size after those of the result.
    pub(super) fn along(
        &self,
        rank: usize,
        options: &Options,
        size: Option<Val<'c>>,
        bounded: bool,
    ) -> Along<'c> {
        Along {
            extent: self.depth,
            size,
            tile: options.size(rank),
            bounded,
        }
    }

    /// The accumulated sum over tiles of `K`; `cut` gives the tiles of A and B.
    pub(super) fn sum(
        &self,
        builder: &Builder<'c>,
        r#type: Type<'c>,
        start: Option<Val<'c>>,
        along: Along<'c>,
        cut: &mut dyn FnMut(&Builder<'c>, Part<'c>) -> PassResult<'c, [Val<'c>; 2]>,
    ) -> PassResult<'c, Val<'c>> {
        let one = |builder: &Builder<'c>, [a, b]: [Val<'c>; 2], acc: Option<Val<'c>>| {
            let operands = GemmOp::operands(a, b, acc);
            if acc.is_some() == self.acc.is_some() {
                let copy = copy_of(builder, self.op, &operands.values, Some(r#type));
                return builder.result_of(copy);
            }
            with_accumulator(builder, self.op, &operands, r#type)
        };
        if along.tile == 0 || (along.extent != DYNAMIC && along.tile >= along.extent) {
            let tiles = cut(builder, Part::whole(along.extent, along.size))?;
            return one(builder, tiles, start);
        }
        let start = match start {
            Some(start) => start,
            None => zeros(builder, r#type)?,
        };
        let sums = nest(
            builder,
            &[along],
            &[start],
            &mut |builder, parts, carried| {
                let (Some(k), Some(sum)) = (parts.first(), carried.first()) else {
                    return Err(PassError::new(builder.location, "a loop without its sum"));
                };
                let tiles = cut(builder, *k)?;
                Ok(vec![one(builder, tiles, Some(*sum))?])
            },
        )?;
        sums.first()
            .copied()
            .ok_or_else(|| PassError::new(builder.location, "a loop without its sum"))
    }
}

/// A product with an accumulator where the original has none.
fn with_accumulator<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    operands: &Operands<'c>,
    r#type: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let attributes: Vec<_> = ["isAsync", "trans_a", "trans_b", "schedule", "options"]
        .into_iter()
        .filter_map(|key| Some((key, op.attribute(key).ok()?)))
        .collect();
    builder.operator_value(operands, r#type, &attributes)
}

/// A register tensor of zeros, with sizes for what is dynamic left to the caller.
fn zeros<'c>(builder: &Builder<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
    let zero = builder.zero(element_type(r#type))?;
    builder.operator_value(&FillOp::operands(zero, None, &[]), r#type, &[])
}

/// A tile of a product in the loop of a store: rows of A and columns of B, along `K` in a loop of its own.
pub(super) fn tile<'c>(
    tiles: &Tiles<'_, 'c>,
    op: Op<'c>,
    r#type: Type<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Val<'c>> {
    let product = Product::of(op)?;
    let start = product.acc.map(|acc| tiles.value(acc, parts)).transpose()?;
    let along = along_storage(&product, parts.len(), tiles.options);
    product.sum(&tiles.builder, r#type, start, along, &mut |builder, k| {
        let inner = Tiles {
            builder: *builder,
            ..*tiles
        };
        let cut = |operand: Val<'c>, parts: &[Part<'c>]| {
            if types::is_memref(operand.r#type()) {
                inner.check_load(op, operand)?;
                slice(builder, operand, parts)
            } else {
                inner.value(operand, parts)
            }
        };
        let [a, b] = product
            .parts(parts, k)
            .ok_or_else(|| fail(op, "expected matrices"))?;
        Ok([cut(product.a, &a)?, cut(product.b, &b)?])
    })
}

/// The loop along `K` where operands in storage can be cut; all of `K` where registers hold one.
fn along_storage<'c>(product: &Product<'c>, rank: usize, options: &Options) -> Along<'c> {
    product.along(rank, options, None, true)
}

/// Tiles a product with accumulators in registers along `K` alone.
pub(super) fn along_k<'c>(op: Op<'c>, result: Val<'c>, options: &Options) -> PassResult<'c, bool> {
    let product = Product::of(op)?;
    let shape = types::shape(result.r#type()).unwrap_or_default();
    let along = along_storage(&product, shape.len(), options);
    if along.tile == 0 || along.tile >= product.depth {
        return match options.splits(&shape) {
            true => Err(fail(
                op,
                "rows and columns of a register tensor are tiled with the copy that stores it",
            )),
            false => Ok(false),
        };
    }
    let builder = Builder::before(op);
    let whole: Vec<_> = shape
        .iter()
        .map(|extent| Part::whole(*extent, None))
        .collect();
    let sum = product.sum(
        &builder,
        result.r#type(),
        product.acc,
        along,
        &mut |builder, k| {
            let [a, b] = product
                .parts(&whole, k)
                .ok_or_else(|| fail(op, "expected matrices"))?;
            let cut =
                |operand: Val<'c>, parts: &[Part<'c>]| match types::is_memref(operand.r#type()) {
                    true => slice(builder, operand, parts),
                    false => Err(fail(
                        op,
                        "an operand in registers cannot be cut along K: read it from storage",
                    )),
                };
            Ok([cut(product.a, &a)?, cut(product.b, &b)?])
        },
    )?;
    replace_all_uses(result, sum);
    walk::erase(op);
    Ok(true)
}
