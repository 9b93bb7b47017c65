//! The grid of a product's kernel.

use super::product::Gemm;
use crate::facts::chip::MOST_BLOCKS;
use crate::planner::problem::count;
use axe_passes::build::Code;
use axe_passes::fuse::reshape::leading;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};

/// Whether the products of a batch follow each other along x, as there may be more of them than a grid has along z.
pub(super) fn is_folded(batch: Option<i64>) -> bool {
    batch.is_some_and(|batch| batch == DYNAMIC || batch > MOST_BLOCKS)
}

/// CTAs along x, y and z: all tiles of a product along x, products along z, or behind each other along x.
///
/// # Errors
/// At the builder's place, when there are more than a grid has.
pub(super) fn grid<'c>(
    builder: &Builder<'c>,
    gemm: &Gemm<'c>,
    [bm, bn]: [i64; 2],
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let columns = count(gemm.n, bn);
    if let Some(groups) = &gemm.groups {
        let tiles = tiles_of_groups(builder, gemm, groups.count, [bm, columns])?;
        return Ok([tiles, code.index(1)?, code.index(1)?]);
    }
    let tiles = if gemm.m == DYNAMIC && gemm.batch.is_none() {
        let rows = code.ceil_div(leading(builder, gemm.result)?, bm)?;
        code.times(rows, columns)?
    } else {
        let tiles = count(gemm.m, bm).saturating_mul(columns);
        if tiles > i64::from(i32::MAX) {
            return Err(PassError::new(
                builder.location,
                format!("{tiles} tiles are more than a grid has"),
            ));
        }
        code.index(tiles)?
    };
    let batch = match gemm.batch {
        // The shape `[?, M, N]` of a batch has the leading extent of its outermost dimension, times the others.
        Some(DYNAMIC) => batch_extent(builder, gemm)?,
        batch => code.index(batch.unwrap_or(1))?,
    };
    if is_folded(gemm.batch) {
        let one = code.index(1)?;
        return Ok([code.mul(tiles, batch)?, one, one]);
    }
    Ok([tiles, code.index(1)?, batch])
}

/// Tiles of groups of rows at the most: each group, and the rows of none before and behind them, may begin inside a tile.
fn tiles_of_groups<'c>(
    builder: &Builder<'c>,
    gemm: &Gemm<'c>,
    groups: i64,
    [bm, columns]: [i64; 2],
) -> PassResult<'c, Val<'c>> {
    let code = Code { builder: *builder };
    let rows = code.ceil_div(leading(builder, gemm.result)?, bm)?;
    let groups = match groups {
        DYNAMIC => leading(builder, gemm.b)?,
        known => code.index(known)?,
    };
    let more = code.add(groups, code.index(2)?)?;
    code.times(code.add(rows, more)?, columns)
}

fn batch_extent<'c>(builder: &Builder<'c>, gemm: &Gemm<'c>) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(gemm.result)?.shape;
    let inner: i64 = shape.iter().skip(1).rev().skip(2).product();
    let code = Code { builder: *builder };
    let outer = leading(builder, gemm.result)?;
    if inner == 1 {
        Ok(outer)
    } else {
        code.times(outer, inner)
    }
}
