//! Matrix products whose depth a cluster shares: each CTA sums a part of it, and then a part of the columns over all.
//!
//! For results of few tiles, whose operands otherwise too few multiprocessors would read. The order of the sums is
//! that of the ranks, so that results are the same each time.

use super::pieces::{Piece, Steps};
use super::specialised::Tiles;
use super::wide::PARTIAL_PADDING;
use axe_dialect::Level;
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
struct Partial<'c> {
    storage: Val<'c>,
    /// The same of another CTA.
    there: Type<'c>,
    /// The columns of it that a CTA sums.
    part: Type<'c>,
    columns: i64,
}

impl<'c> Tiles<'_, 'c> {
    /// Clusters compute tiles.
    pub(super) fn split(&self, code: Code<'c>) -> PassResult<'c> {
        let partial = self.partial(code)?;
        let tile = self.body.tile;
        let [m, _, _] = tile.shape;
        let failed = |error| layout_error(code.builder.location, error);
        let part = tile
            .part()
            .ok_or_else(|| layout_error(code.builder.location, "a part without threads"))?;
        let part = registers(code, [m, partial.columns], part.layout().map_err(failed)?)?;
        self.visit(code, false, |code, Piece { origin, .. }| {
            let rank = code.rank_in_cluster()?;
            code.scope(Level::Warpgroup, [0, 1], None, |code| {
                code.scope(Level::Warp, [0, 1], None, |code| {
                    self.produce(code, &origin, self.share(code, rank, tile.split)?)
                })
            })?;
            code.scope(Level::Warpgroup, self.consumers(), None, |code| {
                let steps = self.share(code, rank, tile.split)?;
                let sum = self.multiply(code, None, steps.rest(code)?)?;
                code.store(sum, partial.storage)
            })?;
            code.cluster_barrier()?;
            code.scope(Level::Warpgroup, self.consumers(), None, |code| {
                self.finish(code, &partial, &part, rank, origin)
            })?;
            // The next tile's sums take the place of these.
            code.cluster_barrier()
        })
    }

    fn partial(&self, code: Code<'c>) -> PassResult<'c, Partial<'c>> {
        let [m, n, _] = self.body.tile.shape;
        let element = self.body.gemm.accumulator;
        let columns = n / self.body.tile.split;
        let strided = |shape: [i64; 2]| {
            Layout::strided(&shape, &[n + PARTIAL_PADDING, 1])
                .map_err(|error| layout_error(code.builder.location, error))
        };
        let (all, part) = (strided([m, n])?, strided([m, columns])?);
        let space = Some("cluster_shared");
        Ok(Partial {
            storage: code.alloc(&[m, n], element, &all)?,
            there: code.memref(&[m, n], element, &all, space)?,
            part: code.memref(&[m, columns], element, &part, space)?,
            columns,
        })
    }

    /// The steps of the CTA `rank` of so many: the first ranks have one more where they do not fall into equal shares.
    /// Quotients of the ranks' would do as well, but ptxas 13.3 takes the difference of two that it has as halves of
    /// products for negative where the second is 0.
    pub(super) fn share(
        &self,
        code: Code<'c>,
        rank: Val<'c>,
        of: i64,
    ) -> PassResult<'c, Steps<'c>> {
        let (each, over) = (self.steps() / of, self.steps() % of);
        let first = code.times(rank, each)?;
        if over == 0 {
            return Ok(Steps {
                first: Some(first),
                count: code.index(each)?,
            });
        }
        let over = code.index(over)?;
        let before = code.min(rank, over)?;
        let more = code.min(code.sub(over, before)?, code.index(1)?)?;
        Ok(Steps {
            first: Some(code.add(first, before)?),
            count: code.add(code.index(each)?, more)?,
        })
    }

    /// Sums this CTA's columns over the cluster, and stores them.
    fn finish(
        &self,
        code: Code<'c>,
        partial: &Partial<'c>,
        part: &Registers,
        rank: Val<'c>,
        origin: Origin<'c>,
    ) -> PassResult<'c> {
        let offset = code.times(rank, partial.columns)?;
        let zero = code.index(0)?;
        let accumulator = self.body.gemm.accumulator;
        let r#type = part.r#type(code, Kind::Full, accumulator)?;
        let mut evaluator = self.evaluator(
            code,
            part,
            Origin {
                column: code.add(origin.column, offset)?,
                ..origin
            },
        );
        let mut sum = self.start(&mut evaluator)?;
        for peer in 0..self.body.tile.split {
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
