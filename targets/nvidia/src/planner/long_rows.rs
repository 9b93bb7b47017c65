//! Rows that are longer than a CTA's registers hold: they are staged in shared memory, so that they are read from global
//! memory once however often a kernel goes through them. Of rows that are longer than that, too, the CTAs of a cluster have a
//! part of the columns each, and combine the states of reductions through distributed shared memory.

use super::problem::count;
use super::row_tile::{RowTile, row_tile};
use super::row_window::{Tail, Window};
use crate::facts::chip::{ACCESS_BYTES, Chip, MOST_CLUSTER};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::RowPart;
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};
use std::fmt;

/// CTAs of a multiprocessor that have parts of rows: one's loads overlap with another's reductions and stores.
const RESIDENT: i64 = 3;
/// Threads of a CTA that has a part of a row.
pub(super) const THREADS: i64 = 512;
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
    /// Whether the number of rows is known at run time only.
    pub dynamic: bool,
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
        let aligned = row.columns % vector == 0;
        if row.passes < 2 || row.read == 0 || row.dynamic && !aligned {
            return None;
        }
        let tile = RowTile {
            rows: 1,
            columns: THREADS * vector * VECTORS,
            along: THREADS,
            vector: if aligned { vector } else { 1 },
            across: 1,
        };
        let most = if chip.clustered > 0 { MOST_CLUSTER } else { 1 };
        let part =
            |ctas: i64| count(count(row.columns, ctas), tile.columns).saturating_mul(tile.columns);
        let fits = |resident: i64, most: i64| {
            let bytes = chip.shared_bytes / resident - STATES_BYTES;
            let mut sizes = [1, 2, 4, 8].into_iter().filter(|ctas| *ctas <= most);
            sizes.find(|ctas| part(*ctas).saturating_mul(row.read) <= bytes)
        };
        // Two CTAs that are apart wait less than three that are parts of clusters.
        let alone = || fits(RESIDENT - 1, 1);
        let ctas = fits(RESIDENT, 1)
            .or_else(alone)
            .or_else(|| fits(RESIDENT, most))
            .or_else(|| fits(1, most))?;
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
    /// Columns of the row.
    whole: i64,
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
            whole: columns,
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
    ) -> PassResult<'c, (Argument<'c>, Option<Tail<'c>>)> {
        let element = axe_dialect::element_type(argument.memref.r#type());
        let window = Window::of(self.whole, element_bytes(element));
        match window {
            None => Ok((self.fetch_aligned(code, argument, row)?, None)),
            Some(window) => {
                let first = code.add(code.times(row, self.whole)?, self.first)?;
                let (memref, tail) = window.fetch(code, argument, (first, self.columns))?;
                let argument = Argument {
                    memref,
                    extents: vec![1, self.columns],
                    staged_at: Some([row, self.first]),
                };
                Ok((argument, tail))
            }
        }
    }

    fn fetch_aligned(
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

    /// Waits until all CTAs of the cluster run, so that they can be written to; meanwhile the row is on its way.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn begin(&self, code: Code<'c>) -> PassResult<'c> {
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

    /// Each CTA writes its state to all of the cluster, and adds up what it has been given. The order is that of the ranks, so
    /// that all have the same result. Nothing takes the place of the states, and a CTA reads no other's: each ends when it is done.
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
        let failed = |error| layout_error(code.builder.location, error);
        let layout = |extent| Layout::strided(&[extent], &[1]).map_err(failed);
        let (all, one) = (layout(self.ctas)?, layout(1)?);
        let given = code.alloc(&[self.ctas], element, &all)?;
        let there = code.memref(&[self.ctas], element, &all, Some("cluster_shared"))?;
        let place = code.memref(&[1], element, &one, Some("cluster_shared"))?;
        let rank = code.rank_in_cluster()?;
        for peer in 0..self.ctas {
            let peer = code.peer(given, code.index(peer)?, there)?;
            code.store(state, code.slice(peer, &[rank], place)?)?;
        }
        code.cluster_barrier()?;
        let mut all = None;
        for rank in 0..self.ctas {
            let part = code.shared_box(given, &[self.ctas], &[code.index(rank)?], &[1])?;
            let part = code.load(part, state.r#type())?;
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
            dynamic: false,
        };
        RowWork::of_rows(row, chip(name).unwrap())
    }

    #[test]
    fn rows_are_in_registers_then_in_shared_memory_then_in_a_cluster() {
        for (columns, ctas, staged) in [
            (16_384, 1, None),
            (32_768, 1, Some(32_768)),
            (40_008, 1, Some(40_960)),
            (40_001, 1, Some(40_960)),
            (60_008, 2, Some(32_768)),
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
            dynamic: false,
        };
        assert_eq!(RowWork::of_rows(once, chip("sm_90a").unwrap()).staged, None);
        let odd = Row {
            columns: 40_001,
            passes: 2,
            dynamic: true,
            ..once
        };
        assert_eq!(RowWork::of_rows(odd, chip("sm_90a").unwrap()).staged, None);
    }
}
