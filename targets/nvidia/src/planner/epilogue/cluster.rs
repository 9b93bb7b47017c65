//! The sums of the CTAs of a cluster, each of which has a part of the depth, and what follows them: each CTA adds up a part of
//! the columns over all.
//!
//! For results of few tiles, whose operands otherwise too few multiprocessors would read. The order of the sums is
//! that of the ranks, so that results are the same each time.

use super::Epilogue;
use crate::planner::config::{PARTIAL_PADDING, Wgmma};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// The tile of a CTA's own sums in shared memory.
pub(in crate::planner) struct Partial<'c> {
    pub storage: Val<'c>,
    /// The same of another CTA.
    there: Type<'c>,
    /// The columns of it that a CTA sums.
    part: Type<'c>,
    columns: i64,
    splits: i64,
    /// Those columns in registers.
    registers: Registers,
}

impl<'c> Partial<'c> {
    /// The storage of a configuration's tile.
    ///
    /// # Errors
    /// When it has no layout.
    pub(in crate::planner) fn new(
        code: Code<'c>,
        config: Wgmma,
        element: Type<'c>,
    ) -> PassResult<'c, Self> {
        let [m, n, _] = config.tile();
        let columns = n / config.cluster_splits();
        let failed = |error| layout_error(code.builder.location, error);
        let strided =
            |shape: [i64; 2]| Layout::strided(&shape, &[n + PARTIAL_PADDING, 1]).map_err(failed);
        let (all, part) = (strided([m, n])?, strided([m, columns])?);
        let space = Some("cluster_shared");
        let tile = config
            .part()
            .ok_or_else(|| layout_error(code.builder.location, "a part without threads"))?;
        Ok(Self {
            storage: code.alloc(&[m, n], element, &all)?,
            there: code.memref(&[m, n], element, &all, space)?,
            part: code.memref(&[m, columns], element, &part, space)?,
            columns,
            splits: config.cluster_splits(),
            registers: registers(code, [m, columns], tile.layout().map_err(failed)?)?,
        })
    }
}

impl<'c> Epilogue<'_, 'c> {
    /// Sums this CTA's columns over the cluster, and stores them.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn add_cluster(
        &self,
        code: Code<'c>,
        partial: &Partial<'c>,
        rank: Val<'c>,
        origin: Origin<'c>,
    ) -> PassResult<'c> {
        let offset = code.times(rank, partial.columns)?;
        let zero = code.index(0)?;
        let accumulator = self.gemm.accumulator;
        let part = &partial.registers;
        let r#type = part.r#type(code, Kind::Full, accumulator)?;
        let column = code.add(origin.column, offset)?;
        let mut evaluator = self.evaluator(code, part, Origin { column, ..origin });
        let mut sum = self.start(&mut evaluator)?;
        for peer in 0..partial.splits {
            let there = code.peer(partial.storage, code.index(peer)?, partial.there)?;
            let own = code.load(code.slice(there, &[zero, offset], partial.part)?, r#type)?;
            sum = Some(match sum {
                None => own,
                Some(sum) => Fold::PRODUCT.merge(code, accumulator, sum, own)?,
            });
        }
        let sum = sum.ok_or_else(|| layout_error(code.builder.location, "a tile of no parts"))?;
        self.store(&mut evaluator, sum)
    }
}
