//! A product by `wgmma` (sm_90a): one warp copies tiles, warpgroups multiply them and store. A kernel is a tile scheduler, a
//! mainloop and an epilogue; this file puts them in their warps.
//!
//! The kernel is persistent: every CTA goes through its share of the result's tiles, and while the consumers
//! store one tile the producer fills the ring for the next.

use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::config::Wgmma;
use crate::planner::epilogue::Epilogue;
use crate::planner::epilogue::cluster::ClusterSum;
use crate::planner::epilogue::subtile::{RowBytes, Subtile};
use crate::planner::mainloop::operand::OperandTile;
use crate::planner::mainloop::scales::BlockScales;
use crate::planner::mainloop::wgmma::{LastStep, Mainloop, sums};
use crate::planner::scheduler::grouped::GroupTile;
use crate::planner::scheduler::stream_k::LastWave;
use crate::planner::scheduler::{Scheduler, WorkTile};
use axe_dialect::Level;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::arguments::Arguments;
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::frame::{Operand, Out};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::Val;
use melior::ir::ValueLike;

/// The kernel of a product.
pub(super) struct WgmmaKernel<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub config: Wgmma,
    pub fusion: &'a Fusion<'c>,
    pub chip: &'a Chip,
    /// The tiles of the last wave, where other CTAs share them than have the rest.
    pub last: Option<LastWave>,
}

/// What its warps work with.
struct Parts<'a, 'c> {
    config: Wgmma,
    scheduler: Scheduler<'c>,
    mainloop: Mainloop<'a, 'c>,
    /// Where the CTAs of a cluster add up a tile's sums, when they share its depth.
    shared: Option<ClusterSum<'c>>,
    epilogue: Epilogue<'a, 'c>,
    /// A tile of results.
    results: Registers,
    /// The subtiles that are stored one after the other; none where a tile is stored at once.
    subtiles: Vec<Subtile>,
}

impl<'c> WgmmaKernel<'_, 'c> {
    /// Emits the kernel's body.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn emit(
        &self,
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c> {
        let (code, gemm, config) = (kernel.code, self.gemm, self.config);
        let arguments = Arguments::of(kernel, ins, self.fusion, outs);
        let (epilogue, mut operands) = Epilogue::of(gemm, self.fusion, arguments);
        let (Some(a), Some(b)) = (operands.next(), operands.next()) else {
            let what = "a product has two operands";
            return Err(layout_error(code.builder.location, what));
        };
        let second = gemm.second.and_then(|_| operands.next());
        let scales = BlockScales::take(&gemm.scales, &mut operands)
            .map(|scales| scales.stage(code, config))
            .transpose()?;
        let [m, n, k] = config.tile();
        let failed = |error| layout_error(code.builder.location, error);
        let registers = registers(code, [m, n], sums(config).map_err(failed)?)?;
        let offsets = gemm.groups.as_ref().and_then(|_| operands.next());
        let groups = offsets.map(|offsets| (offsets, b.clone()));
        let scheduler = Scheduler::new(code, config, gemm.extents(), self.last, (&a, groups))?;
        let stages = config.stages();
        let operands = [
            OperandTile::new(code, a, stages, gemm.trans_a, [m, k])?,
            OperandTile::new(code, b, stages, !gemm.trans_b, [n, k])?.in_halves(gemm, second),
        ];
        let mainloop = Mainloop {
            gemm,
            config,
            registers: &registers,
            last_step: self.last_step(code, &operands, &scales)?,
            operands,
            ring: code.pipeline(stages)?,
            scales,
        };
        let shared = ClusterSum::new(code, config, gemm.accumulator)?;
        // Of sums of two halves there are half as many results.
        let results = match gemm.has_halves() {
            true => registers.part(0, n / 2).map_err(failed)?,
            false => registers.clone(),
        };
        // Where the instruction's rows are columns, a thread does not hold a part of each subtile.
        let subtiles = match config.swaps_ab() {
            true => Vec::new(),
            false => {
                let store = config.store(element_bytes(gemm.element), self.chip);
                let row_bytes = RowBytes::of(m / config.warpgroups(), store.row_bytes);
                let stored = shared.as_ref().map_or(&results, |shared| &shared.registers);
                epilogue.subtiles(stored, row_bytes).map_err(failed)?
            }
        };
        let parts = Parts {
            config,
            scheduler,
            mainloop,
            shared,
            epilogue,
            results,
            subtiles,
        };
        parts.warps(code)
    }

    /// The last step along k, where it is not as deep as the others.
    fn last_step(
        &self,
        code: Code<'c>,
        [a, b]: &[OperandTile<'c>; 2],
        scales: &Option<BlockScales<'c>>,
    ) -> PassResult<'c, Option<LastStep<'c>>> {
        let (gemm, [_, _, depth]) = (self.gemm, self.config.tile());
        let bytes = element_bytes(gemm.element);
        let last = self.config.last_depth(gemm.k, bytes, gemm.k_first());
        if last == depth || scales.is_some() {
            return Ok(None);
        }
        Ok(Some(LastStep {
            operands: [a.with_depth(code, last)?, b.with_depth(code, last)?],
            before: gemm.k / depth,
        }))
    }
}

impl<'c> Parts<'_, 'c> {
    /// Each CTA computes work tiles, and fills the ring for the next while it stores one.
    fn warps(&self, code: Code<'c>) -> PassResult<'c> {
        let (own, others) = self.mainloop.budgets();
        code.scope(Level::Warpgroup, [0, 1], own, |code| {
            code.scope(Level::Warp, [0, 1], None, |code| {
                self.scheduler.visit(code, false, |code, work| {
                    let matrix = work.group.map(|group| group.matrix);
                    let mainloop = &self.mainloop;
                    mainloop.produce(code, &work.origin, matrix, work.steps)
                })
            })
        })?;
        let pingpong = self.config.is_pingpong();
        let consume = |code: Code<'c>| {
            self.scheduler
                .visit(code, pingpong, |code, work| self.consume(code, work))
        };
        code.scope(
            Level::Warpgroup,
            self.consumers(),
            others,
            |code| match pingpong {
                true => code.thread_groups(Level::Warpgroup, consume),
                false => consume(code),
            },
        )
    }

    /// Multiplies, and stores the results, or the sums of a part.
    fn consume(&self, code: Code<'c>, work: WorkTile<'c>) -> PassResult<'c> {
        if let Some(shared) = &self.shared {
            return self.consume_share(code, work, shared);
        }
        let (mainloop, epilogue) = (&self.mainloop, &self.epilogue);
        let registers = mainloop.registers;
        let origin = mainloop.gemm.origin_of_results(code, &work.origin)?;
        let mut evaluator = epilogue.evaluator(code, &self.results, origin);
        // What the sums of parts start from is the other kernel's to add.
        let start = match work.sums {
            None => epilogue.start(&mut evaluator)?,
            Some(_) => None,
        };
        let steps = self.scheduler.steps_of(&work);
        let sum = match work.group {
            None => mainloop.consume(code, &work, steps, start)?,
            Some(group) => self.sum_of_group(code, group)?,
        };
        match (work.sums, work.group) {
            (Some(at), _) => epilogue.keep(code, &registers.shape, at, sum),
            (None, None) => self.store(epilogue, &mut evaluator, sum),
            (None, Some(group)) => {
                let origin = evaluator.origin.clone();
                self.store_group(code, &origin, group, sum)
            }
        }
    }

    /// Multiplies a share of a tile's depth, and stores the part of the tile that this CTA adds up over the cluster.
    fn consume_share(
        &self,
        code: Code<'c>,
        work: WorkTile<'c>,
        shared: &ClusterSum<'c>,
    ) -> PassResult<'c> {
        let (mainloop, epilogue) = (&self.mainloop, &self.epilogue);
        let sum = mainloop.multiply(code, None, work.steps.rest(code)?)?;
        let origin = shared.origin(code, work.origin)?;
        let mut evaluator = epilogue.evaluator(code, &shared.registers, origin);
        let start = epilogue.start(&mut evaluator)?;
        let sum = shared.add_up(code, sum)?;
        let sum = match start {
            None => sum,
            Some(start) => Fold::PRODUCT.merge(code, mainloop.gemm.accumulator, start, sum)?,
        };
        self.store(epilogue, &mut evaluator, sum)
    }

    /// The sums of a tile of a group, or zeros where it has no matrix. The number of steps is one that is known: ptxas
    /// completes each product before the next around a loop that may be left out (C7514).
    fn sum_of_group(&self, code: Code<'c>, group: GroupTile<'c>) -> PassResult<'c, Val<'c>> {
        let (builder, mainloop) = (code.builder, &self.mainloop);
        let (first, _, inner) = builder.region(&[]);
        let then = Code { builder: inner };
        let rest = self.scheduler.all_steps(then)?.rest(then)?;
        let sum = mainloop.multiply(then, None, rest)?;
        inner.operation("scf.yield", &[sum], &[], &[], Vec::new())?;
        let (second, _, inner) = builder.region(&[]);
        let otherwise = Code { builder: inner };
        let zero = otherwise.scalar(mainloop.gemm.accumulator, Number::Of(0))?;
        let zeros = otherwise.fill(zero, sum.r#type())?;
        inner.operation("scf.yield", &[zeros], &[], &[], Vec::new())?;
        let regions = vec![first, second];
        let chosen = builder.operation("scf.if", &[group.exists], &[sum.r#type()], &[], regions)?;
        builder.result_of(chosen)
    }

    /// Stores the results of a tile.
    fn store(
        &self,
        epilogue: &Epilogue<'_, 'c>,
        evaluator: &mut Evaluator<'_, 'c>,
        sum: Val<'c>,
    ) -> PassResult<'c> {
        // Of three warpgroups a thread has registers for one subtile alone.
        let ahead = self.config.consumers() <= 2;
        match self.subtiles.as_slice() {
            subtiles if epilogue.gemm.pairs.is_some() => {
                epilogue.store_pairs(evaluator, sum, subtiles, ahead)
            }
            [] | [_] if !epilogue.gemm.has_halves() => epilogue.store(evaluator, sum, None),
            subtiles => epilogue.store_subtiles(evaluator, sum, subtiles, ahead),
        }
    }

    /// Stores those of a tile of a group: all of it, or its rows before the group's end.
    fn store_group(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        group: GroupTile<'c>,
        sum: Val<'c>,
    ) -> PassResult<'c> {
        let next = code.add(origin.row, code.index(self.config.tile()[0])?)?;
        let whole = code.at_most(next, group.end)?;
        let store = |code: Code<'c>, epilogue: &Epilogue<'_, 'c>| {
            let mut evaluator = epilogue.evaluator(code, &self.results, origin.clone());
            self.store(epilogue, &mut evaluator, sum)
        };
        code.branch(
            whole,
            |code| store(code, &self.epilogue),
            |code| store(code, &self.epilogue.up_to(code, group.end)?),
        )
    }

    /// The range of warpgroups that multiply.
    const fn consumers(&self) -> [i64; 2] {
        [1, 1 + self.config.consumers()]
    }
}
