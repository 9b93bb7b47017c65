//! Rows that are longer than a CTA's registers hold: they are staged in shared memory, so that they are read from global
//! memory once however often a kernel goes through them. Of rows that are longer than that, too, the CTAs of a cluster have a
//! part of the columns each, and combine the states of reductions through distributed shared memory.

use super::problem::count;
use super::row_tile::{RowTile, row_tile};
use crate::facts::chip::{ACCESS_BYTES, Chip, MOST_CLUSTER};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::RowPart;
use axe_passes::fuse::fold::Fold;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};
use std::fmt;

/// CTAs of a multiprocessor that have parts of rows: one's loads overlap with another's reductions and stores.
const RESIDENT: i64 = 3;
/// Threads of a CTA that has a part of a row.
const THREADS: i64 = 512;
/// Elements of a tensor that a thread has in registers at a time, in vectors.
const VECTORS: i64 = 2;
/// Shared memory that reductions take beside parts of rows, in bytes.
const STATES_BYTES: i64 = 1024;

/// What rows are, as far as their tiles depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub columns: i64,
    /// Bytes of the narrowest element that is moved.
    pub bytes: i64,
    /// 32-bit registers of the widest element that a thread keeps.
    pub words: i64,
    /// Bytes that are read for a column, of all tensors.
    pub read: i64,
    /// How often a kernel goes through rows that it does not hold.
    pub passes: usize,
}

/// A tile of rows in registers, and where the rest of the rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowWork {
    /// What a CTA has in registers at a time.
    pub tile: RowTile,
    /// CTAs a row: a cluster.
    pub ctas: i64,
    /// Columns that a CTA has in shared memory; none where a row is in registers, or is read piece by piece each time.
    pub staged: Option<i64>,
}

impl RowWork {
    /// Tiles that are read from global memory.
    pub(super) const fn of(tile: RowTile) -> Self {
        Self {
            tile,
            ctas: 1,
            staged: None,
        }
    }

    /// The tiles of rows that are reduced: in the registers of a CTA, else in its shared memory or that of a cluster, as far
    /// as they hold them.
    pub(super) fn of_rows(row: Row, chip: &Chip) -> Self {
        let tile = row_tile(row.columns, row.bytes, row.words);
        match tile.columns >= row.columns {
            true => Self::of(tile),
            false => Self::staged(row, chip).unwrap_or(Self::of(tile)),
        }
    }

    fn staged(row: Row, chip: &Chip) -> Option<Self> {
        let vector = ACCESS_BYTES / row.bytes;
        // cp.async moves whole vectors.
        if row.passes < 2 || row.read == 0 || row.columns % vector != 0 {
            return None;
        }
        let tile = RowTile {
            rows: 1,
            columns: THREADS * vector * VECTORS,
            along: THREADS,
            vector,
            across: 1,
        };
        let most = if chip.clustered > 0 { MOST_CLUSTER } else { 1 };
        let part =
            |ctas: i64| count(count(row.columns, ctas), tile.columns).saturating_mul(tile.columns);
        let fits = |resident: i64| {
            let bytes = chip.shared_bytes / resident - STATES_BYTES;
            let mut sizes = [1, 2, 4, 8].into_iter().filter(|ctas| *ctas <= most);
            sizes.find(|ctas| part(*ctas).saturating_mul(row.read) <= bytes)
        };
        let ctas = fits(RESIDENT).or_else(|| fits(1))?;
        let staged = Some(part(ctas));
        Some(Self { tile, ctas, staged })
    }
}

impl fmt::Display for RowWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tile.fmt(f)?;
        if let Some(columns) = self.staged {
            write!(f, ", {columns} columns in shared memory")?;
        }
        match self.ctas {
            1 => Ok(()),
            ctas => write!(f, " of each of {ctas} CTAs"),
        }
    }
}

/// A CTA's part of a row, and the others of its cluster that have the other parts.
#[derive(Debug)]
pub(super) struct Staged<'c> {
    ctas: i64,
    columns: i64,
    first: Val<'c>,
    end: Val<'c>,
}

impl<'c> Staged<'c> {
    /// The part of `staged` columns, of rows of so many columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        ctas: i64,
        staged: i64,
        columns: i64,
    ) -> PassResult<'c, Self> {
        let first = match ctas {
            1 => code.index(0)?,
            _ => code.times(code.rank_in_cluster()?, staged)?,
        };
        let whole = code.index(columns)?;
        let end = match ctas {
            1 => whole,
            _ => code.min(code.add(first, code.index(staged)?)?, whole)?,
        };
        Ok(Self {
            ctas,
            columns: staged,
            first,
            end,
        })
    }

    /// Begins to copy the part of an argument in this row to shared memory, where its elements are to be read.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch(
        &self,
        code: Code<'c>,
        argument: &Argument<'c>,
        row: Val<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let shape = [1, self.columns];
        let layout = Layout::strided(&shape, &[self.columns, 1])
            .map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(argument.memref.r#type());
        let memref = code.alloc(&shape, element, &layout)?;
        let at = [row, self.first];
        let from = code.global_box(argument.memref, &argument.extents, &at, &shape)?;
        code.copy_async(from, memref)?;
        Ok(Argument {
            memref,
            extents: shape.to_vec(),
            staged_at: Some(at),
        })
    }

    /// Waits until no other CTA of the cluster reads this one's states.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn finish(&self, code: Code<'c>) -> PassResult<'c> {
        match self.ctas {
            1 => Ok(()),
            _ => code.cluster_barrier(),
        }
    }
}

impl<'c> RowPart<'c> for Staged<'c> {
    fn columns(&self) -> [Val<'c>; 2] {
        [self.first, self.end]
    }

    /// Each CTA leaves its states in memory of its own, and reads all of them once they are there. The order is that of the
    /// ranks, so that all have the same result. Nothing takes the place of the states: there is no barrier behind the loads.
    fn combine(
        &self,
        code: Code<'c>,
        fold: Fold,
        element: Type<'c>,
        state: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if self.ctas == 1 {
            return Ok(state);
        }
        let shape = code.builder.tensor_of(state)?.shape;
        let layout = Layout::strided(&shape, &[1])
            .map_err(|error| layout_error(code.builder.location, error))?;
        let own = code.alloc(&shape, element, &layout)?;
        let there = code.memref(&shape, element, &layout, Some("cluster_shared"))?;
        code.store(state, own)?;
        code.cluster_barrier()?;
        let mut all = None;
        for rank in 0..self.ctas {
            let peer = code.peer(own, code.index(rank)?, there)?;
            let part = code.load(peer, state.r#type())?;
            all = Some(match all {
                None => part,
                Some(before) => fold.merge(code, element, before, part)?,
            });
        }
        all.ok_or_else(|| layout_error(code.builder.location, "a row of no parts"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    fn work(columns: i64, bytes: i64, name: &str) -> RowWork {
        let row = Row {
            columns,
            bytes,
            words: 1,
            read: bytes,
            passes: 2,
        };
        RowWork::of_rows(row, chip(name).unwrap())
    }

    #[test]
    fn rows_are_in_registers_then_in_shared_memory_then_in_a_cluster() {
        for (columns, ctas, staged) in [
            (16_384, 1, None),
            (32_768, 1, Some(32_768)),
            (40_008, 2, Some(24_576)),
            (131_072, 4, Some(32_768)),
            (262_144, 8, Some(32_768)),
            (524_288, 8, Some(65_536)),
        ] {
            let work = work(columns, 2, "sm_90a");
            assert_eq!((work.ctas, work.staged), (ctas, staged), "{work}");
            assert!(
                staged.is_none_or(|part| (ctas - 1) * part < columns && ctas * part >= columns)
            );
        }
    }

    #[test]
    fn what_fits_no_shared_memory_goes_piece_by_piece() {
        for work in [
            work(1 << 20, 2, "sm_90a"),
            work(131_072, 2, "sm_80"),
            work(40_001, 2, "sm_90a"),
            work(i64::MAX / 8 * 8, 2, "sm_90a"),
        ] {
            assert_eq!((work.ctas, work.staged), (1, None));
        }
        assert_eq!(work(65_536, 2, "sm_80").staged, Some(65_536));
        let once = Row {
            columns: 32_768,
            bytes: 2,
            words: 1,
            read: 2,
            passes: 1,
        };
        assert_eq!(RowWork::of_rows(once, chip("sm_90a").unwrap()).staged, None);
    }
}
