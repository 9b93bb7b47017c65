//! Products of 8-bit floats whose blocks have scales, for every chip and every block: fragments from global memory,
//! widened to f16 in registers, for `mma.sync`.

use super::scales::BlockScales;
use crate::planner::config::Mma;
use crate::planner::gemm::product::Scales;
use crate::planner::layouts::{Grid, Product};
use crate::planner::problem::{Unit, count};
use axe_dialect::ops;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::Registers;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// Rows of a tile: 16 a warp.
const ROWS: i64 = 64;

/// The tile whose columns share a scale.
pub(in crate::planner) fn tile(scales: &Scales<'_>) -> Mma {
    let columns = [64, 32].into_iter().find(|n| scales.blocks.n % n == 0);
    Mma {
        tile: [ROWS, columns.unwrap_or(16), step()],
        warps: Grid {
            rows: ROWS / 16,
            columns: 1,
        },
        stages: 1,
        splits: 1,
    }
}

/// What one instruction contracts.
fn step() -> i64 {
    Unit::Half.atom().map_or(16, |atom| atom.k)
}

/// One tile of the product.
pub(in crate::planner) struct Plain<'a, 'c> {
    pub config: Mma,
    pub product: &'a Product,
    pub registers: &'a Registers,
    pub scales: &'a BlockScales<'c>,
    pub origin: &'a Origin<'c>,
    /// The contracted extent.
    pub depth: i64,
}

impl<'c> Plain<'_, 'c> {
    /// Adds the products to `start`.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(in crate::planner) fn emit(
        &self,
        code: Code<'c>,
        operands: &[Argument<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let block_k = self.scales.of.blocks.k;
        let blocks = code.index(count(self.depth, block_k))?;
        let sums = code.for_each(blocks, 1, &[start], |code, block, carried| {
            let &[sum] = carried else {
                return Err(lost(code));
            };
            let scales = self
                .scales
                .fetch(code, self.registers, self.origin, block)?;
            let first = code.times(block, block_k)?;
            let part = self.block(code, operands, first, sum.r#type())?;
            Ok(vec![self.scales.add(code, [sum, part], scales)?])
        })?;
        sums.first().copied().ok_or_else(|| lost(code))
    }

    /// The sums of the block of k that begins at `first`.
    fn block(
        &self,
        code: Code<'c>,
        [a, b]: &[Argument<'c>; 2],
        first: Val<'c>,
        sums: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let zero = code.scalar(axe_dialect::element_type(sums), Number::Of(0))?;
        let zero = code.fill(zero, sums)?;
        let end = code.index(self.scales.of.blocks.k)?;
        let [m, n, step] = self.config.tile;
        let part = code.for_each(end, step, &[zero], |code, k, carried| {
            let &[part] = carried else {
                return Err(lost(code));
            };
            let k = code.add(first, k)?;
            let a = half(code, a, [self.origin.row, k], [m, step], &self.product.a)?;
            let b = half(code, b, [self.origin.column, k], [n, step], &self.product.b)?;
            Ok(vec![code.gemm([a, b, part], [false, true])?])
        })?;
        part.first().copied().ok_or_else(|| lost(code))
    }
}

/// A fragment of an operand, widened to f16.
fn half<'c>(
    code: Code<'c>,
    operand: &Argument<'c>,
    at: [Val<'c>; 2],
    shape: [i64; 2],
    layout: &Layout,
) -> PassResult<'c, Val<'c>> {
    let from = code.global_box(operand.memref, &operand.extents, &at, &shape)?;
    let element = axe_dialect::element_type(operand.memref.r#type());
    let narrow = code.load(from, code.fragment(&shape, element, layout)?)?;
    let f16 = code.builder.r#type(|context| Type::float16(context));
    let wide = code.fragment(&shape, f16, layout)?;
    code.builder.value(ops::CAST, &[narrow], wide, &[])
}

fn lost<'c>(code: Code<'c>) -> axe_passes::PassError<'c> {
    layout_error(code.builder.location, "the loop along k carries no sum")
}
