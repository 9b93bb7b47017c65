//! Products of 8-bit floats whose blocks have scales, by roles (sm_90a): `wgmma` sums a block of k from zero, and the
//! block's sums times their scales are added to sums in f32.
//!
//! The tensor cores add 8-bit products with fewer bits than f32 has, so that long sums would lose what the scales are
//! for (DeepSeek-V3 Technical Report, 3.3.2, "Increasing Accumulation Precision"). While one warpgroup scales, the
//! others multiply. The scales of a tile's rows arrive with its stage, where memory has them one after the other: read
//! by the consumers themselves they took a fifth longer on an H200.

use super::budgets;
use super::cost::Problem;
use super::factors::{BYTES, Factors};
use super::gemm::count;
use super::product::Gemm;
use super::specialised::Path;
use super::tail::Tail;
use super::variant::Variant;
use super::wide::{KFirst, WideTile};
use crate::facts::chip::Chip;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// `(rows, columns, consumers)`: 64 rows a warpgroup, so that the sums of a block and those over blocks fit in
/// registers side by side.
const SHAPES: [(i64, i64, i64); 7] = [
    (192, 128, 3),
    (128, 128, 2),
    (128, 64, 2),
    (64, 128, 1),
    (64, 64, 1),
    (64, 32, 1),
    (64, 16, 1),
];

/// Clocks of the products of 64 x 128 x 128, at the rate of the H100 white paper.
const PRODUCTS: f64 = 256.0;
/// Clocks between them for a warpgroup: to notice that they are done, to add 64 x 128 sums, and to start the next.
const ADDED: f64 = 130.0;

/// Blocks of a turn of the loop: the next block's stage is asked for while a block's sums are added.
const UNROLLED: i64 = 2;
/// Blocks of a turn in which each is added while the next one is multiplied.
const AHEAD: i64 = 4;

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
    m == 64 * tile.consumers
        && blocks.n % n == 0
        && k == blocks.k
        && !tile.swap
        && tile.split == 1
        && tile.parts == 1
        && !tile.turns
}

/// The tile with as many stages as fit with the scales of their rows.
pub(super) fn with_scales(tile: WideTile, bytes: i64, chip: &Chip) -> Option<WideTile> {
    tile.with_more(tile.shape[0] * BYTES, bytes, chip)
}

/// Whether a thread has registers for the sums of two blocks beside those over blocks, so that one block is added while
/// the next one's products are formed. In a cluster the way to the other CTAs takes what is left of them.
pub(super) const fn is_ahead(tile: WideTile) -> bool {
    tile.consumers <= 2 && tile.cluster == 1
}

/// The registers of the role that copies and of those that multiply, where they matter: a thread has the sums of a
/// block beside those over blocks.
pub(super) const fn budgets(tile: WideTile) -> (Option<i64>, Option<i64>) {
    budgets::shared_out(tile.consumers)
}

/// How many times as long a tile takes as its products: while one of several warpgroups adds, the others multiply.
pub(super) fn adding(variant: Variant) -> f64 {
    match variant {
        Variant::Roles(tile) => {
            let consumers = tile.consumers as f64;
            1.0 + ADDED / (consumers * consumers * PRODUCTS)
        }
        Variant::Warps(_) => 1.0,
    }
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
        .filter_map(|tile| with_scales(tile, bytes, chip))
        .filter(|tile| fits(*tile, blocks))
        .flat_map(clusters)
        .flatten()
        .flat_map(|tile| std::iter::once(tile).chain(Tail::offered(tile, problem, chip)))
        .collect()
}

/// The cheapest tile of CTAs alone; `None` when none fits. Pairs, which wait for each other's sums of every block too,
/// took 1.15 times as long on an H200.
pub(super) fn choose(problem: Problem, blocks: Blocks, chip: &Chip) -> Option<WideTile> {
    choose_of(problem, blocks, chip, |_| true)
}

/// The cheapest of some tiles.
pub(super) fn choose_of(
    problem: Problem,
    blocks: Blocks,
    chip: &Chip,
    of: impl Fn(&WideTile) -> bool,
) -> Option<WideTile> {
    let k_first = KFirst { a: false, b: false };
    let cost = |tile: &WideTile| tile.cost(problem, k_first, chip) * adding(Variant::Roles(*tile));
    tiles(problem, blocks, chip)
        .into_iter()
        .filter(|tile| tile.cluster == 1 && of(tile))
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

/// One tile of a product whose blocks have scales.
pub(super) struct Scaled<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub registers: &'a Registers,
    pub factors: &'a Factors<'c>,
    pub origin: &'a Origin<'c>,
    /// Whether a block is added while the next one's products are formed.
    pub ahead: bool,
    /// The first block of a part of the depth; none where that is all of it.
    pub first: Option<Val<'c>>,
    /// How many there are, with those beyond the last, which are zeros.
    pub blocks: i64,
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
        let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
        let start = code.fill(zero, self.sums(code)?)?;
        let end = match self.factors.are_staged() {
            true => self.with_staged(code, ring, paths, start)?,
            false => self.with_fetched(code, ring, paths, start)?,
        };
        end.first().copied().ok_or_else(|| lost(code))
    }

    /// The type of the sums, and of a block's.
    fn sums(&self, code: Code<'c>) -> PassResult<'c, Type<'c>> {
        self.registers
            .r#type(code, Kind::Full, self.gemm.accumulator)
    }

    /// Where the scales of the block at this place are. Those beyond the last have the last one's.
    fn place(&self, code: Code<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        match self.first {
            None => Ok(at),
            Some(first) => code.min(code.add(first, at)?, self.last(code)?),
        }
    }

    /// The number of the last block.
    fn last(&self, code: Code<'c>) -> PassResult<'c, Val<'c>> {
        code.index(count(self.gemm.k, self.factors.scales.blocks.k) - 1)
    }

    /// The scale of the columns of the block at this place; of a block beyond the last 0, so that an
    /// infinite one makes no NaN of nothing.
    fn of_columns(&self, code: Code<'c>, at: Val<'c>, scale: Val<'c>) -> PassResult<'c, Val<'c>> {
        let Some(first) = self.first else {
            return Ok(scale);
        };
        let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
        let block = code.add(first, at)?;
        code.where_at_most([block, self.last(code)?], [scale, zero])
    }

    /// The loop over blocks whose scales come with their stages.
    fn with_staged(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let turn = if self.ahead { AHEAD } else { UNROLLED };
        let turns = self.blocks / turn;
        let end = code.for_each(code.index(turns)?, 1, &[start], |code, at, carried| {
            let first = code.times(at, turn)?;
            self.turn(code, ring, paths, (first, turn), carried)
        })?;
        let rest = (code.index(turns * turn)?, self.blocks % turn);
        self.turn(code, ring, paths, rest, &end)
    }

    /// So many blocks from the first on, each of which is added before the next one is started, or while the next one
    /// is multiplied. No products are under way between turns: ptxas makes those wait that go around a loop and are not
    /// added to (C7514).
    fn turn(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        (first, blocks): (Val<'c>, i64),
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[mut sum] = carried else {
            return Err(lost(code));
        };
        let mut before = None;
        for block in 0..blocks {
            let block = code.add(first, code.index(block)?)?;
            let started = self.start(code, ring, paths, block)?;
            match (self.ahead, before) {
                (true, Some(before)) => sum = self.add(code, ring, sum, before, 1)?,
                (true, None) => {}
                (false, _) => sum = self.add(code, ring, sum, started, 0)?,
            }
            before = self.ahead.then_some(started);
        }
        match before {
            Some(last) => Ok(vec![self.add(code, ring, sum, last, 0)?]),
            None => Ok(vec![sum]),
        }
    }

    /// Starts the products of the next stage: its part, slot and scales.
    fn start(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        block: Val<'c>,
    ) -> PassResult<'c, [Val<'c>; 4]> {
        let (slot, stage) = code.wait_slot(ring)?;
        let part = self.multiply(code, paths, stage)?;
        let at = [self.place(code, block)?, stage];
        let [of_rows, of_columns] =
            self.factors
                .fetch_staged(code, self.registers, self.origin, at)?;
        let of_columns = self.of_columns(code, block, of_columns)?;
        Ok([part, slot, of_rows, of_columns])
    }

    /// Adds a part once at most `pending` later ones are under way.
    fn add(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        sum: Val<'c>,
        [part, slot, of_rows, of_columns]: [Val<'c>; 4],
        pending: i64,
    ) -> PassResult<'c, Val<'c>> {
        let part = code.wait_products(part, pending)?;
        code.release_slot(ring, slot)?;
        self.factors.add(code, [sum, part], [of_rows, of_columns])
    }

    /// The loop over blocks whose scales the consumers read from global memory, a block ahead.
    fn with_fetched(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let fetch = |code: Code<'c>, at| {
            let block = self.place(code, at)?;
            let [of_rows, of_columns] =
                self.factors
                    .fetch(code, self.registers, self.origin, block)?;
            Ok([of_rows, self.of_columns(code, at, of_columns)?])
        };
        let [of_rows, of_columns] = fetch(code, code.index(0)?)?;
        let start = [start, of_rows, of_columns];
        let last = code.index(self.blocks - 1)?;
        let blocks = code.index(self.blocks)?;
        code.for_each(blocks, 1, &start, |code, block, carried| {
            let &[sum, of_rows, of_columns] = carried else {
                return Err(lost(code));
            };
            let (slot, stage) = code.wait_slot(ring)?;
            let part = self.multiply(code, paths, stage)?;
            // The next block's scales are on their way while this one is multiplied.
            let next = code.min(code.add(block, code.index(1)?)?, last)?;
            let scales = fetch(code, next)?;
            let part = code.wait_products(part, 0)?;
            code.release_slot(ring, slot)?;
            let sum = self.factors.add(code, [sum, part], [of_rows, of_columns])?;
            Ok([&[sum][..], &scales].concat())
        })
    }

    /// The products of a stage, which are under way.
    fn multiply(
        &self,
        code: Code<'c>,
        [a, b]: &[Path<'c>; 2],
        stage: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let operands = [a.stage(code, stage)?, b.stage(code, stage)?];
        code.gemm_async(operands, None, self.sums(code)?, [false, true])
    }
}

fn lost<'c>(code: Code<'c>) -> axe_passes::PassError<'c> {
    let what = "the loop over blocks carries sums and scales";
    layout_error(code.builder.location, what)
}
