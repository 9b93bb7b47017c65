//! The sums of the CTAs of a cluster, each of which has a part of the depth: each CTA adds up a part of the tile over all, and stores it.
//!
//! For results of few tiles, whose operands otherwise too few multiprocessors would read. The parts are of the columns that the
//! instruction has, of which each thread has some, so that threads send what they hold to the same thread of another CTA.

use crate::planner::config::Wgmma;
use crate::planner::mainloop::wgmma::sums;
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// Where a cluster adds up sums.
pub(in crate::planner) struct ClusterSum<'c> {
    /// The parts that the other CTAs send.
    storage: Val<'c>,
    /// A CTA's part of the tile, as its threads hold it.
    pub registers: Registers,
    /// The dimension along which the tile falls into parts.
    dim: usize,
    accumulator: Type<'c>,
}

impl<'c> ClusterSum<'c> {
    /// That of a configuration; none where a CTA has all of a tile's depth.
    ///
    /// # Errors
    /// When a part has no layout.
    pub(in crate::planner) fn new(
        code: Code<'c>,
        config: Wgmma,
        accumulator: Type<'c>,
    ) -> PassResult<'c, Option<Self>> {
        let others = config.cluster_splits() - 1;
        if others == 0 {
            return Ok(None);
        }
        let location = code.builder.location;
        let failed = |error| layout_error(location, error);
        let part = config.part();
        let part = part.ok_or_else(|| layout_error(location, "columns that fall into no parts"))?;
        let [rows, columns, _] = part.tile();
        let shape = [rows, columns];
        Ok(Some(Self {
            storage: code.reduce_scatter_create(others, &shape, accumulator)?,
            registers: registers(code, shape, sums(part).map_err(failed)?)?,
            dim: usize::from(!config.swaps_ab()),
            accumulator,
        }))
    }

    /// Where this CTA's part of a tile is.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn origin(
        &self,
        code: Code<'c>,
        tile: Origin<'c>,
    ) -> PassResult<'c, Origin<'c>> {
        let extent = self.registers.shape[self.dim];
        let first = code.times(code.rank_in_cluster()?, extent)?;
        Ok(match self.dim {
            0 => Origin {
                row: code.add(tile.row, first)?,
                ..tile
            },
            _ => Origin {
                column: code.add(tile.column, first)?,
                ..tile
            },
        })
    }

    /// This CTA's part of the sums of all CTAs.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn add_up(
        &self,
        code: Code<'c>,
        sum: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let part = self.registers.r#type(code, Kind::Full, self.accumulator)?;
        let dim = i64::try_from(self.dim).unwrap_or(0);
        code.reduce_scatter(Combiner::Add, (sum, dim), self.storage, part)
    }
}
