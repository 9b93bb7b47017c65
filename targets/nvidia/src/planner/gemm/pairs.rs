//! Elements that are formed of two columns of a product's result, as gated activations are: a tile has both columns of its pairs, the first
//! ones in front of the others, since B's stages are filled so. What is stored is half as wide, and the result itself is not.

use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::config::{Config, Decomposition, Wgmma};
use crate::planner::model;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Kind, Pairs};
use axe_passes::ir::{Op, Val};

/// Which columns are pairs, where a kernel forms elements of them.
pub(super) fn of(fusion: &Fusion<'_>) -> Option<Pairs> {
    let mut kinds = fusion.outputs.iter().map(|(_, kind)| *kind);
    kinds.find_map(|kind| match kind {
        Kind::Pairs(pairs) => Some(pairs),
        Kind::Full | Kind::Row | Kind::Column | Kind::Blocks(_) => None,
    })
}

/// Whether the epilogue of a product can form elements of pairs of its columns, in no more time than a kernel that reads its result.
pub(in crate::planner) fn takes_pairs(product: Op<'_>, pairs: Pairs, chip: &Chip) -> bool {
    let Ok(plain) = Gemm::read(product, chip) else {
        return false;
    };
    // An interleaved matrix is read as rows of pairs.
    let is_read = pairs == Pairs::Halves || plain.trans_b;
    let has_start = plain.start.is_some() || plain.scales.is_some();
    if !is_read || has_start || plain.needs_no_copies().is_err() {
        return false;
    }
    let query = plain.query(chip);
    let paired = plain.clone().pairing(Some(pairs));
    let configured = [&plain, &paired].map(|gemm| gemm.configure(&gemm.asked, chip));
    let [Ok(alone), Ok(together @ Config::Wgmma(_))] = configured else {
        return false;
    };
    if plain.asked.chooses() {
        return true;
    }
    let [alone, together] = [alone, together].map(|config| model::clocks(query, config, chip));
    let problem = query.problem;
    let elements = [problem.batch, problem.m, problem.n].into_iter();
    let elements = elements.fold(1i64, i64::saturating_mul);
    // Both columns are read, and half as many elements stored, by a kernel whose start is hidden in part behind the product's end.
    let moved = elements / 2 * 3 * element_bytes(plain.element);
    together <= alone + model::moving(moved, chip) - chip.mma.overhead / 2.0
}

impl<'c> Gemm<'c> {
    /// Whether a CTA has both columns of each pair of a tile, in halves of the stages that boxes fill.
    pub(super) fn takes_pairs(&self, config: &Wgmma) -> bool {
        let Some(pairs) = self.pairs else {
            return true;
        };
        let [_, columns, depth] = config.tile();
        let bytes = element_bytes(self.element);
        let [sharing, _] = config.cluster().shape();
        // With k first a stage is made of pieces of 128 bytes along the columns.
        let of = match self.trans_b {
            true => 2 * 8 * sharing,
            false => 2 * crate::planner::layouts::ROW_BYTES / bytes,
        };
        let alone = matches!(
            config.decomposition(),
            Decomposition::DataParallel(_) | Decomposition::Grouped
        );
        // What lies behind a row of k are numbers of the neighbour.
        let rest = self.k % depth;
        let ends = rest == 0 || config.last_depth(self.k, bytes, self.k_first()) == rest;
        let is_whole = pairs == Pairs::Halves || ends;
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
        match self.pairs {
            None => Ok(origin.column),
            Some(_) => code.div(origin.column, code.index(2)?),
        }
    }
}
