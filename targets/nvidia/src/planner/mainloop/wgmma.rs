//! `wgmma`: one warp fills a ring of stages with A's and B's tiles, warpgroups multiply them.

use super::operand::OperandTile;
use super::scales::BlockScales;
use super::wgmma_scaled::{self, Scaled};
use crate::planner::config::Wgmma;
use crate::planner::gemm::product::Gemm;
use crate::planner::knobs::Side;
use crate::planner::layouts::transposed;
use crate::planner::scheduler::{Steps, WorkTile};
use axe_layout::{Axis, Iter, Layout};
use axe_passes::PassResult;
use axe_passes::build::{Code, Multicast, Traffic, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// The accumulators as the result has them: transposed where the instruction's rows are the result's columns.
pub(in crate::planner) fn sums(config: Wgmma) -> axe_layout::Result<Layout> {
    let layout = accumulators(config)?;
    match config.swaps_ab() {
        true => transposed(&layout, &config.instruction()),
        false => Ok(layout),
    }
}

/// The accumulators of `wgmma` over the consumers: rows of 64 a warpgroup, in one or several blocks (PTX ISA
/// 9.7.15.5.1.1, "Register Fragments").
pub(in crate::planner) fn accumulators(config: Wgmma) -> axe_layout::Result<Layout> {
    let [m, n] = config.instruction();
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    let blocks = m / 64 / config.warpgroups();
    Layout::from_shard([
        Iter::new(config.warpgroups(), 4, warp),
        Iter::new(blocks, n / 2, reg),
        Iter::new(4, 1, warp),
        Iter::new(2, 2, reg),
        Iter::new(8, 4, lane),
        Iter::new(n / 8, 4, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}

/// The mainloop of a kernel.
pub(in crate::planner) struct Mainloop<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub config: Wgmma,
    /// A tile of the result, as the accumulators hold it.
    pub registers: &'a Registers,
    /// Those of A and B.
    pub operands: [OperandTile<'c>; 2],
    /// The last step along k, where it is not as deep as the others.
    pub last_step: Option<LastStep<'c>>,
    /// The pipeline between the warp that copies and those that multiply.
    pub ring: Val<'c>,
    /// The scales of blocks, where they have some.
    pub scales: Option<BlockScales<'c>>,
}

/// A last step that is not as deep as the others.
pub(in crate::planner) struct LastStep<'c> {
    /// Operands of its depth.
    pub operands: [OperandTile<'c>; 2],
    /// Steps before it.
    pub before: i64,
}

impl<'c> Mainloop<'_, 'c> {
    /// The registers of the warp that copies and of those that multiply, where they matter.
    pub(in crate::planner) const fn budgets(&self) -> (Option<i64>, Option<i64>) {
        match (self.config.registers(), &self.scales) {
            (Some([copies, multiplies]), _) => (Some(copies), Some(multiplies)),
            (None, Some(_)) => wgmma_scaled::budgets(self.config),
            (None, None) => self.config.budgets(),
        }
    }

    /// Fills a stage for each step along k, of a group's matrix of B where rows are in groups.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn produce(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        matrix: Option<Val<'c>>,
        steps: Steps<'c>,
    ) -> PassResult<'c> {
        let batches = [origin.batch, matrix.or(origin.batch)];
        let [rows, columns] = self.config.cluster().shape();
        // CTAs of a row of the cluster follow each other.
        let traffic = |operand, (ctas, apart): (i64, i64)| Traffic {
            multicast: Multicast::among([ctas, apart], rows * columns),
            l2: (self.config.evicts_first() == Some(operand)).then_some("evict_first"),
        };
        let traffic = [
            traffic(Side::A, (columns, 1)),
            traffic(Side::B, (rows, columns)),
        ];
        let fill = |code: Code<'c>, operands: &[OperandTile<'c>; 2], step| {
            let k = code.times(step, self.config.tile()[2])?;
            let (slot, stage) = code.acquire(self.ring)?;
            let starts = [origin.row, self.gemm.first_column(code, origin)?];
            let boxes = batches.into_iter().zip(starts).zip(traffic);
            for (operand, ((batch, start), traffic)) in operands.iter().zip(boxes) {
                operand.copy(code, batch, [start, k], [slot, stage], traffic)?;
            }
            if let Some(scales) = &self.scales {
                scales.copy(code, [origin.row, step], [slot, stage])?;
            }
            code.commit_slot(self.ring, slot)
        };
        debug_assert!(self.last_step.is_none() || steps.first.is_none());
        let count = match &self.last_step {
            Some(LastStep { before: 0, .. }) => None,
            Some(last) => Some(code.index(last.before)?),
            None => Some(steps.count),
        };
        if let Some(count) = count {
            code.for_each(count, 1, &[], |code, step, _| {
                let step = match steps.first {
                    Some(first) => code.add(first, step)?,
                    None => step,
                };
                fill(code, &self.operands, step).map(|()| Vec::new())
            })?;
        }
        match &self.last_step {
            Some(last) => fill(code, &last.operands, code.index(last.before)?),
            None => Ok(()),
        }
    }

    /// The sums of a work tile, of so many steps where those are known; plain products are added to `start`.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn consume(
        &self,
        code: Code<'c>,
        work: &WorkTile<'c>,
        steps: i64,
        start: Option<Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let Some(scales) = &self.scales else {
            return self.multiply(code, start, work.steps.rest(code)?);
        };
        let scaled = Scaled {
            gemm: self.gemm,
            registers: self.registers,
            scales,
            origin: &work.origin,
            ahead: wgmma_scaled::is_ahead(self.config),
            first: work.steps.first,
            blocks: steps,
        };
        scaled.sum(code, self.ring, &self.operands)
    }

    /// Multiplies a stage after the first, and `more` after it; gives the tile of sums.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn multiply(
        &self,
        code: Code<'c>,
        start: Option<Val<'c>>,
        more: Steps<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let sums = self.sums(code)?;
        let start = match start {
            Some(start) if self.config.swaps_ab() => Some(code.transpose(start, sums)?),
            start => start,
        };
        let lost = || layout_error(code.builder.location, "the loop carries a sum and a slot");
        let next = |code: Code<'c>, operands: &[OperandTile<'c>; 2], carried: &[Val<'c>]| {
            let &[sum, held] = carried else {
                return Err(lost());
            };
            let [sum, slot] = self.step(code, operands, Some(sum), sums)?;
            let sum = code.wait_products(sum, 1)?;
            code.release_slot(self.ring, held)?;
            Ok(vec![sum, slot])
        };
        // The first step starts the sums, so that no register is set to zero while a product is under way.
        let (first, count, last) = match &self.last_step {
            Some(LastStep {
                operands,
                before: 0,
            }) => (operands, None, None),
            Some(LastStep { operands, before }) => (
                &self.operands,
                Some(code.index(before - 1)?),
                Some(operands),
            ),
            None => (&self.operands, Some(more.count), None),
        };
        let mut carried = self.step(code, first, start, sums)?.to_vec();
        if let Some(count) = count {
            carried = code.for_each(count, 1, &carried, |code, _, carried| {
                next(code, &self.operands, carried)
            })?;
        }
        if let Some(operands) = last {
            carried = next(code, operands, &carried)?;
        }
        let &[sum, held] = carried.as_slice() else {
            return Err(lost());
        };
        let sum = code.wait_products(sum, 0)?;
        code.release_slot(self.ring, held)?;
        let gemm = self.gemm;
        match self.config.swaps_ab() {
            true => {
                let tile = self.registers.r#type(code, Kind::Full, gemm.accumulator)?;
                code.transpose(sum, tile)
            }
            false => Ok(sum),
        }
    }

    /// The type of the sums, as the instruction has them.
    fn sums(&self, code: Code<'c>) -> PassResult<'c, Type<'c>> {
        let layout = accumulators(self.config)
            .map_err(|error| layout_error(code.builder.location, error))?;
        let shape = self.config.instruction();
        code.fragment(&shape, self.gemm.accumulator, &layout)
    }

    /// The product of the next stage: the sums, and the stage's slot.
    fn step(
        &self,
        code: Code<'c>,
        [a, b]: &[OperandTile<'c>; 2],
        acc: Option<Val<'c>>,
        sums: Type<'c>,
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let (slot, stage) = code.wait_slot(self.ring)?;
        let operands = [a.stage(code, stage)?, b.stage(code, stage)?];
        let gemm = self.gemm;
        let sum = match self.config.swaps_ab() {
            false => code.gemm_async(operands, acc, sums, [gemm.trans_a, gemm.trans_b]),
            // The transposed result is that of the transposed operands, the other way round.
            true => {
                let [a, b] = operands;
                code.gemm_async([b, a], acc, sums, [!gemm.trans_b, !gemm.trans_a])
            }
        };
        Ok([sum?, slot])
    }
}
