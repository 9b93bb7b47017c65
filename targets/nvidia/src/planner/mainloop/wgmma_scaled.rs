//! Products of 8-bit floats whose blocks have scales (sm_90a): `wgmma` sums a block of k from zero, and the
//! block's sums times their scales are added to sums in f32.
//!
//! The tensor cores add 8-bit products with fewer bits than f32 has, so that long sums would lose what the scales are
//! for (DeepSeek-V3 Technical Report, 3.3.2, "Increasing Accumulation Precision"). While one warpgroup scales, the
//! others multiply. The scales of a tile's rows arrive with its stage, where memory has them one after the other: read
//! by the consumers themselves they took a fifth longer on an H200.

use super::operand::OperandTile;
use super::scales::BlockScales;
use crate::planner::config::{Cluster, Wgmma, shared_out};
use crate::planner::gemm::product::Gemm;
use crate::planner::problem::count;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// Blocks of a round of the loop: the next block's stage is asked for while a block's sums are added.
const UNROLLED: i64 = 2;
/// Blocks of a round in which each is added while the next one is multiplied.
const AHEAD: i64 = 4;

/// Whether a thread has registers for the sums of two blocks beside those over blocks, so that one block is added while
/// the next one's products are formed. In a cluster the way to the other CTAs takes what is left of them.
pub(in crate::planner) const fn is_ahead(config: Wgmma) -> bool {
    config.consumers() <= 2 && matches!(config.cluster(), Cluster::Alone)
}

/// The registers of the role that copies and of those that multiply, where they matter: a thread has the sums of a
/// block beside those over blocks.
pub(in crate::planner) const fn budgets(config: Wgmma) -> (Option<i64>, Option<i64>) {
    shared_out(config.consumers())
}

/// One tile of a product whose blocks have scales.
pub(in crate::planner) struct Scaled<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub registers: &'a Registers,
    pub scales: &'a BlockScales<'c>,
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
    pub(in crate::planner) fn sum(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[OperandTile<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
        let start = code.fill(zero, self.sums(code)?)?;
        let end = match self.scales.are_staged() {
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
        code.index(count(self.gemm.k, self.scales.of.blocks.k) - 1)
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
        paths: &[OperandTile<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let round = if self.ahead { AHEAD } else { UNROLLED };
        let rounds = self.blocks / round;
        let end = code.for_each(code.index(rounds)?, 1, &[start], |code, at, carried| {
            let first = code.times(at, round)?;
            self.round(code, ring, paths, (first, round), carried)
        })?;
        let rest = (code.index(rounds * round)?, self.blocks % round);
        self.round(code, ring, paths, rest, &end)
    }

    /// So many blocks from the first on, each of which is added before the next one is started, or while the next one
    /// is multiplied. No products are under way between rounds: ptxas makes those wait that go around a loop and are not
    /// added to (C7514).
    fn round(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[OperandTile<'c>; 2],
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
        paths: &[OperandTile<'c>; 2],
        block: Val<'c>,
    ) -> PassResult<'c, [Val<'c>; 4]> {
        let (slot, stage) = code.wait_slot(ring)?;
        let part = self.multiply(code, paths, stage)?;
        let at = [self.place(code, block)?, stage];
        let [of_rows, of_columns] =
            self.scales
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
        self.scales.add(code, [sum, part], [of_rows, of_columns])
    }

    /// The loop over blocks whose scales the consumers read from global memory, a block ahead.
    fn with_fetched(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[OperandTile<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let fetch = |code: Code<'c>, at| {
            let block = self.place(code, at)?;
            let [of_rows, of_columns] =
                self.scales
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
            let sum = self.scales.add(code, [sum, part], [of_rows, of_columns])?;
            Ok([&[sum][..], &scales].concat())
        })
    }

    /// The products of a stage, which are under way.
    fn multiply(
        &self,
        code: Code<'c>,
        [a, b]: &[OperandTile<'c>; 2],
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
