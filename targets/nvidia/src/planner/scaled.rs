//! Products of 8-bit floats whose blocks have scales, by roles (sm_90a): `wgmma` sums a block of k from zero, and the
//! block's sums times their scales are added to sums in f32.
//!
//! The tensor cores add 8-bit products with fewer bits than f32 has, so that long sums would lose what the scales are
//! for (DeepSeek-V3 Technical Report, 3.3.2, "Increasing Accumulation Precision"). While one warpgroup scales, the
//! other one multiplies.

use super::code::{Code, Number, layout_error};
use super::cost::Problem;
use super::evaluate::{Argument, Origin, Registers};
use super::gemm::count;
use super::product::{Gemm, Scales};
use super::space::Kind;
use super::specialised::Path;
use super::wide::{KFirst, WideTile};
use crate::facts::chip::Chip;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// `(rows, columns, consumers)`: 64 rows a warpgroup, so that the sums of a block and those over blocks fit in
/// registers side by side.
const SHAPES: [(i64, i64, i64); 6] = [
    (128, 128, 2),
    (128, 64, 2),
    (64, 128, 1),
    (64, 64, 1),
    (64, 32, 1),
    (64, 16, 1),
];

/// What shares a scale: `n` columns of B by `k`, and a row of A by `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Columns.
    pub n: i64,
    /// Elements along the contracted dimension.
    pub k: i64,
}

/// Whether a tile's columns share each block's scale of B, and its stages are blocks.
pub(super) const fn fits(tile: WideTile, blocks: Blocks) -> bool {
    let [m, n, k] = tile.shape;
    m == 64 * tile.consumers && blocks.n % n == 0 && k == blocks.k && !tile.swap && tile.split == 1
}

/// The tiles to choose from.
pub(super) fn tiles(problem: Problem, blocks: Blocks, chip: &Chip) -> Vec<WideTile> {
    let bytes = problem.element_bytes;
    let clusters = |tile: WideTile| {
        let pair = WideTile { cluster: 2, ..tile };
        [Some(tile), (problem.m > tile.shape[0]).then_some(pair)]
    };
    SHAPES
        .into_iter()
        .filter_map(|shape| WideTile::with_depth(shape, blocks.k, false, bytes, chip))
        .filter(|tile| fits(*tile, blocks))
        .flat_map(clusters)
        .flatten()
        .collect()
}

/// The cheapest tile of CTAs alone; `None` when none fits. Pairs, which wait for each other's sums of every block too,
/// took 1.15 times as long on an H200.
pub(super) fn choose(problem: Problem, blocks: Blocks, chip: &Chip) -> Option<WideTile> {
    let k_first = KFirst { a: false, b: false };
    let cost = |tile: &WideTile| tile.cost(problem, k_first, chip);
    tiles(problem, blocks, chip)
        .into_iter()
        .filter(|tile| tile.cluster == 1)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// Whether there is a tile for the blocks; the reason, where there is none.
pub(super) fn admits(problem: Problem, blocks: Blocks, chip: &Chip) -> Result<(), String> {
    match choose(problem, blocks, chip) {
        Some(_) => Ok(()),
        None => Err(format!(
            "blocks of {} elements along k are no stage of a multiple of 128 bytes up to 1024",
            blocks.k
        )),
    }
}

/// The scales as a kernel has them.
#[derive(Debug)]
pub(super) struct Factors<'c> {
    pub scales: Scales<'c>,
    a: Argument<'c>,
    b: Argument<'c>,
}

impl<'c> Factors<'c> {
    /// The kernel's next two arguments, where a product has scales.
    pub(super) fn take(
        scales: &Option<Scales<'c>>,
        arguments: &mut impl Iterator<Item = Argument<'c>>,
    ) -> Option<Self> {
        Some(Self {
            scales: (*scales)?,
            a: arguments.next()?,
            b: arguments.next()?,
        })
    }

    /// The scales of a block of k: one for each row of the tile, and that of the tile's columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch(
        &self,
        code: Code<'c>,
        registers: &Registers,
        origin: &Origin<'c>,
        block: Val<'c>,
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let rows = registers.shape[0];
        let memref = self.a.memref;
        let of_rows = if self.scales.transposed {
            code.strided_box(memref, &[block, origin.row], &[rows], &[1])?
        } else {
            let stride = self.a.extents.get(1).copied().unwrap_or(1);
            let at = [origin.row, block];
            let column = code.strided_box(memref, &at, &[rows, 1], &[stride, 1])?;
            // The rows beside a single one do not exist: their places are its own.
            let step = if self.a.extents.first() == Some(&1) {
                0
            } else {
                stride
            };
            let layout = Layout::strided(&[rows], &[step])
                .map_err(|error| layout_error(code.builder.location, error))?;
            let r#type = code.memref(&[rows], self.element(), &layout, None)?;
            code.view(column, r#type)?
        };
        let of_rows = code.load(of_rows, registers.r#type(code, Kind::Row, self.element())?)?;
        let column = code.div(origin.column, code.index(self.scales.blocks.n)?)?;
        let operands = [self.b.memref, column, block];
        let of_columns = code
            .builder
            .value("memref.load", &operands, self.element(), &[])?;
        Ok([of_rows, of_columns])
    }

    /// The type of scales and sums.
    fn element(&self) -> Type<'c> {
        axe_dialect::element_type(self.a.memref.r#type())
    }

    /// `sums + part * scales`.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn add(
        &self,
        code: Code<'c>,
        [sums, part]: [Val<'c>; 2],
        [of_rows, of_columns]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let element = self.element();
        let (region, at, body) = code.builder.region(&[element]);
        let &[of_row] = at.as_slice() else {
            return Err(layout_error(code.builder.location, "a body has arguments"));
        };
        let scale = body.value("arith.mulf", &[of_row, of_columns], element, &[])?;
        body.operation("axe.yield", &[scale], &[], &[], Vec::new())?;
        let types = [of_rows.r#type()];
        let op = code
            .builder
            .operation("axe.map", &[of_rows], &types, &[], vec![region])?;
        let scales = code.builder.result_of(op)?;
        let dims = [("dims", code.builder.i64s(&[1]))];
        let types = [sums.r#type()];
        let scales = code
            .builder
            .value("axe.broadcast", &[scales], types[0], &dims)?;
        let (region, at, body) = code.builder.region(&[element; 3]);
        let sum = body.value("math.fma", &at, element, &[])?;
        body.operation("axe.yield", &[sum], &[], &[], Vec::new())?;
        let operands = [part, scales, sums];
        let op = code
            .builder
            .operation("axe.map", &operands, &types, &[], vec![region])?;
        code.builder.result_of(op)
    }
}

/// One tile of a product whose blocks have scales.
pub(super) struct Scaled<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub registers: &'a Registers,
    pub factors: &'a Factors<'c>,
    pub origin: &'a Origin<'c>,
}

impl<'c> Scaled<'_, 'c> {
    /// Multiplies the stages of one tile.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn sum(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let sums = self
            .registers
            .r#type(code, Kind::Full, self.gemm.accumulator)?;
        let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
        let blocks = count(self.gemm.k, self.factors.scales.blocks.k);
        let fetch =
            |code: Code<'c>, block| self.factors.fetch(code, self.registers, self.origin, block);
        let [of_rows, of_columns] = fetch(code, code.index(0)?)?;
        let start = [code.fill(zero, sums)?, of_rows, of_columns];
        let last = code.index(blocks - 1)?;
        let end = code.for_each(code.index(blocks)?, 1, &start, |code, block, carried| {
            let &[sum, of_rows, of_columns] = carried else {
                return Err(lost(code));
            };
            let (slot, stage) = code.wait_slot(ring)?;
            let [a, b] = paths;
            let operands = [a.stage(code, stage)?, b.stage(code, stage)?];
            let part = code.gemm_async(operands, None, sums, [false, true])?;
            // The next block's scales are on their way while this one is multiplied.
            let next = code.min(code.add(block, code.index(1)?)?, last)?;
            let scales = fetch(code, next)?;
            let part = code.wait_products(part, 0)?;
            code.release_slot(ring, slot)?;
            let sum = self.factors.add(code, [sum, part], [of_rows, of_columns])?;
            Ok([&[sum][..], &scales].concat())
        })?;
        end.first().copied().ok_or_else(|| lost(code))
    }
}

fn lost<'c>(code: Code<'c>) -> axe_passes::PassError<'c> {
    let what = "the loop over blocks carries sums and scales";
    layout_error(code.builder.location, what)
}
