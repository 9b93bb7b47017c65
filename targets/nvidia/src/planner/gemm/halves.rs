//! Tiles of two halves of columns: of which the epilogue forms elements of pairs, as gated activations are, or which are those of two products of
//! the same rows (a dual GEMM). A stage of B is filled by a box of each, so that a thread has both columns of a pair among its sums.

use super::product::{self, Gemm};
use crate::facts::chip::Chip;
use crate::planner::choose::tuned;
use crate::planner::config::{Config, Decomposition, Wgmma};
use crate::planner::layouts::ROW_BYTES;
use crate::planner::model;
use axe_package::TunedDb;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Kind, Pairs};
use axe_passes::ir::{DYNAMIC, Op, Val};

/// Columns of two halves that are whole subtiles of 16-bit elements.
const WHOLE: i64 = 64;
/// How much longer tiles of such halves may be predicted to take than narrower ones.
const NARROWER: f64 = 1.02;
/// How much longer one kernel may be predicted to take than two: it reads A once, which is where they wait for power, and starts once.
/// Measured: 2400 us for 2387 of 8192 x 12,288 x 4096, predicted to take 4% longer, and of 64 x 11,008 x 4096 44.2 for 50.5, predicted 1%.
const SLACK: f64 = 1.03;
/// Rows of a product at most that are quicker as columns of swapped tiles.
const SWAPPED_ROWS: i64 = 32;

/// Which columns are pairs, where a kernel forms elements of them.
pub(super) fn pairs(fusion: &Fusion<'_>) -> Option<Pairs> {
    let mut kinds = fusion.outputs.iter().map(|(_, kind)| *kind);
    kinds.find_map(|kind| match kind {
        Kind::Pairs(pairs) => Some(pairs),
        Kind::Full | Kind::Row | Kind::Column | Kind::Blocks(_) => None,
    })
}

/// Whether the epilogue of a product can form elements of pairs of its columns, in no more time than a kernel that reads its result.
pub(in crate::planner) fn takes_pairs(
    product: Op<'_>,
    pairs: Pairs,
    (chip, plans): (&Chip, &TunedDb),
) -> bool {
    let Ok(plain) = Gemm::read(product, chip) else {
        return false;
    };
    // A matrix of neighbours is read as rows of pairs.
    let is_read = pairs == Pairs::Halves || plain.trans_b;
    let is_plain = plain.start.is_none() && plain.scales.is_none();
    let paired = plain.clone().pairing(Some(pairs));
    if !is_read || !is_plain || !paired.has_enough_rows() {
        return false;
    }
    let Some(together) = together(&paired, chip) else {
        return false;
    };
    if plain.asked.chooses() {
        return true;
    }
    // Both columns are read, and half as many elements stored, by a kernel whose start is hidden in part behind the product's end.
    let moved = results(&plain).saturating_mul(3) / 2;
    let own = model::moving(moved, chip) - chip.mma.overhead / 2.0;
    alone(&plain, chip, plans).is_some_and(|alone| together <= alone + own)
}

/// Whether one kernel can form two products of the same rows, in no more time than one for each.
pub(in crate::planner) fn takes_two(
    [first, second]: [Op<'_>; 2],
    (chip, plans): (&Chip, &TunedDb),
) -> bool {
    let asks = |op| product::asked(op).is_ok_and(|plan| plan.chooses());
    let Some(plain) = Gemm::read(first, chip)
        .ok()
        .filter(|_| !asks(first) && !asks(second))
    else {
        return false;
    };
    let both = plain.clone().dual(Some(second));
    let clocks = || Some((alone(&plain, chip, plans)?, together(&both, chip)?));
    // The second of two kernels reads what the first one stores.
    let moved = results(&plain).saturating_mul(2);
    let own = model::moving(moved, chip) - chip.mma.overhead;
    both.has_enough_rows()
        && clocks().is_some_and(|(alone, together)| together <= SLACK * 2.0 * alone + own)
}

/// Bytes of a product's result in its operands' type.
fn results(gemm: &Gemm<'_>) -> i64 {
    let problem = gemm.problem();
    let extents = [problem.batch, problem.m, problem.n, problem.element_bytes];
    extents.into_iter().fold(1, i64::saturating_mul)
}

/// Clocks of a kernel with halves; none where there is none.
fn together(gemm: &Gemm<'_>, chip: &Chip) -> Option<f64> {
    gemm.needs_no_copies().ok()?;
    match gemm.configure(&gemm.asked, chip).ok()? {
        config @ Config::Wgmma(_) => Some(model::clocks(gemm.query(chip), config, chip)),
        Config::Mma(_) => None,
    }
}

/// Clocks of a product alone, as it is planned.
fn alone(gemm: &Gemm<'_>, chip: &Chip, plans: &TunedDb) -> Option<f64> {
    let tuned = gemm.key(chip).and_then(|key| tuned::plan(plans, &key));
    let config = tuned.and_then(|plan| gemm.configure(&plan, chip).ok());
    let config = config.or_else(|| gemm.configure(&gemm.asked, chip).ok())?;
    Some(model::clocks(gemm.query(chip), config, chip))
}

impl<'c> Gemm<'c> {
    /// Whether there are rows enough for tiles that are not swapped: of B stored [k, n] they have 128 columns, and few CTAs have one.
    /// Measured: two products of 16 x 5504 x 2048 take 15.4 us so, and 12.5 us by two kernels; of 64 rows 14.9 and 17.1.
    const fn has_enough_rows(&self) -> bool {
        self.trans_b || self.m == DYNAMIC || self.m > SWAPPED_ROWS
    }

    /// The cost model's choice of tiles with two halves: those whose halves are whole subtiles, where they are predicted to take
    /// little more time than others. Measured: gated products of 4096 x 11,008 x 2048 take 265 us in halves of 64 columns, 271 of 80;
    /// two products of 8192 x 12,288 x 4096 and all three results 2671 of 72, and 2554 by two kernels.
    pub(super) fn chosen_halves(
        &self,
        of: impl Fn(i64) -> Option<Wgmma>,
        clocks: impl Fn(Wgmma) -> f64,
    ) -> Option<Wgmma> {
        let [whole, half] = [WHOLE, WHOLE / 2].map(of);
        let worth = |(whole, half)| clocks(whole) <= NARROWER * clocks(half);
        match whole.zip(half).is_none_or(worth) {
            true => whole.or(half),
            false => half,
        }
    }

    /// Whether a CTA has both columns of each pair of a tile, in halves of the stages that boxes fill.
    pub(super) fn takes_halves(&self, config: &Wgmma) -> bool {
        if !self.has_halves() {
            return true;
        }
        let [_, columns, depth] = config.tile();
        let bytes = element_bytes(self.element);
        let [sharing, _] = config.cluster().shape();
        // With k first a stage is made of pieces of 128 bytes along the columns.
        let of = match self.trans_b {
            true => 2 * 8 * sharing,
            false => 2 * ROW_BYTES / bytes,
        };
        let alone = matches!(
            config.decomposition(),
            Decomposition::DataParallel(_) | Decomposition::Grouped
        );
        // What lies behind a row of k are numbers of the neighbour.
        let rest = self.k % depth;
        let ends = rest == 0 || config.last_depth(self.k, bytes, self.k_first()) == rest;
        let is_whole = self.pairs != Some(Pairs::Interleaved) || ends;
        alone && !config.swaps_ab() && columns % of == 0 && is_whole
    }

    /// The first column of B's that a tile has: of pairs, the first of their first columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn first_column(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
    ) -> PassResult<'c, Val<'c>> {
        match self.has_halves() {
            false => Ok(origin.column),
            true => code.div(origin.column, code.index(2)?),
        }
    }

    /// Where the results of a tile are.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn origin_of_results(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
    ) -> PassResult<'c, Origin<'c>> {
        if !self.has_halves() {
            return Ok(origin.clone());
        }
        Ok(Origin {
            column: self.first_column(code, origin)?,
            limit: [origin.limit[0], code.index(self.n / 2)?],
            ..origin.clone()
        })
    }
}
