//! Matrix products by roles: one warp copies tiles, warpgroups multiply them and store (sm_90a).
//!
//! The kernel is persistent: every CTA goes through its share of the result's tiles, and while the consumers
//! store one tile the producer fills the ring for the next.

use super::factors::Factors;
use super::gemm::count;
use super::layouts::{ROW_BYTES, transposed};
use super::panels::Panel;
use super::pieces::{Piece, Steps};
use super::product::Gemm;
use super::scaled::{self, Scaled};
use super::tail::Tail;
use super::wide::WideTile;
use axe_dialect::{Level, element_type};
use axe_layout::{Axis, Iter, Layout, Swizzle};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Out};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::frame::Operand;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{DYNAMIC, Val};
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;

/// The kernel's body.
pub(super) struct Body<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub tile: WideTile,
    pub fusion: &'a Fusion<'c>,
    /// The tiles of the last turn, where other CTAs share them than have the rest.
    pub tail: Option<Tail>,
}

/// One operand's way from global to shared memory.
pub(super) struct Path<'c> {
    global: Argument<'c>,
    ring: Val<'c>,
    shape: [i64; 2],
    stage: Type<'c>,
    /// Whether memory has k first.
    k_first: bool,
}

/// A shared tile `[rows, columns]` in panels of 128 bytes, each row after row, swizzled; `stages` of them when
/// there are several.
fn panels(
    stages: Option<i64>,
    [rows, columns]: [i64; 2],
    bytes: i64,
) -> axe_layout::Result<Layout> {
    let width = (ROW_BYTES / bytes).min(columns);
    let iter = |extent, stride| Iter::new(extent, stride, Axis::M);
    let mut iters: Vec<_> = stages
        .map(|stages| iter(stages, rows * columns))
        .into_iter()
        .collect();
    iters.extend([
        iter(rows, width),
        iter(columns / width, rows * width),
        iter(width, 1),
    ]);
    let span = u32::try_from(width * bytes / 16)
        .unwrap_or(1)
        .trailing_zeros();
    let base = u32::try_from(16 / bytes).unwrap_or(1).trailing_zeros();
    let swizzle = Swizzle::new(span, base, 3, true)?;
    Layout::new(iters, [], axe_layout::Offset::new(), Some(swizzle))
}

/// The accumulators as the result has them: transposed where the instruction's rows are the result's columns.
fn sums(tile: WideTile) -> axe_layout::Result<Layout> {
    let layout = accumulators(tile)?;
    match tile.swap {
        true => transposed(&layout, &tile.instruction()),
        false => Ok(layout),
    }
}

/// The accumulators of `wgmma` over the consumers: rows of 64 a warpgroup, in one or several blocks (PTX ISA
/// 9.7.15.5.1.1, "Register Fragments").
pub(super) fn accumulators(tile: WideTile) -> axe_layout::Result<Layout> {
    let [m, n] = tile.instruction();
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    let blocks = m / 64 / tile.warpgroups();
    Layout::from_shard([
        Iter::new(tile.warpgroups(), 4, warp),
        Iter::new(blocks, n / 2, reg),
        Iter::new(4, 1, warp),
        Iter::new(2, 2, reg),
        Iter::new(8, 4, lane),
        Iter::new(n / 8, 4, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}

impl<'c> Body<'_, 'c> {
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
        let code = kernel.code;
        let Arguments {
            operands,
            inputs,
            scalars,
            outputs,
        } = Arguments::of(kernel, ins, self.fusion, outs);
        let mut operands = operands.into_iter();
        let (Some(a), Some(b)) = (operands.next(), operands.next()) else {
            return Err(layout_error(
                code.builder.location,
                "a product has two operands",
            ));
        };
        let scales = Factors::take(&self.gemm.scales, &mut operands)
            .map(|factors| factors.stage(code, self.tile))
            .transpose()?;
        let [m, n, k] = self.tile.shape;
        let failed = |error| layout_error(code.builder.location, error);
        let registers = registers(code, [m, n], sums(self.tile).map_err(failed)?)?;
        let tiles = Tiles {
            body: self,
            grid: self.grid(code, &a)?,
            paths: [
                self.path(code, a, self.gemm.trans_a, [m, k])?,
                self.path(code, b, !self.gemm.trans_b, [n, k])?,
            ],
            ring: code.pipeline(self.tile.stages)?,
            panels: self.panels(&registers).map_err(failed)?,
            registers,
            scales,
            inputs,
            scalars,
            outputs,
        };
        match self.tile.split {
            1 => tiles.whole(code),
            _ => tiles.split(code),
        }
    }

    /// Tiles of the result: products when there is a batch, rows, columns; and the result's rows.
    fn grid(&self, code: Code<'c>, a: &Argument<'c>) -> PassResult<'c, Grid<'c>> {
        let [high, wide] = self.tile.span();
        let outer = match (self.tile.parts, self.gemm.batch) {
            (1, None) => None,
            (1, Some(batch)) => Some(code.leading(a.memref, batch)?),
            (parts, _) => Some(code.index(parts)?),
        };
        let dynamic = self.gemm.m == DYNAMIC;
        let rows = if dynamic {
            code.leading(a.memref, DYNAMIC)?
        } else {
            code.index(self.gemm.m)?
        };
        let row_tiles = if dynamic {
            code.ceil_div(rows, high)?
        } else {
            code.index(count(self.gemm.m, high))?
        };
        let columns = code.index(count(self.gemm.n, wide))?;
        Ok(Grid {
            counts: outer.into_iter().chain([row_tiles, columns]).collect(),
            rows,
        })
    }

    fn path(
        &self,
        code: Code<'c>,
        global: Argument<'c>,
        k_first: bool,
        [rows, k]: [i64; 2],
    ) -> PassResult<'c, Path<'c>> {
        let shape = if k_first { [k, rows] } else { [rows, k] };
        // Operands may be floats of 8 bits of two kinds.
        let element = element_type(global.memref.r#type());
        let bytes = element_bytes(element);
        let failed = |error| layout_error(code.builder.location, error);
        let stages = self.tile.stages;
        let ring = panels(Some(stages), shape, bytes).map_err(failed)?;
        let stage = panels(None, shape, bytes).map_err(failed)?;
        Ok(Path {
            global,
            ring: code.alloc(&[stages, shape[0], shape[1]], element, &ring)?,
            shape,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first,
        })
    }
}

/// The tiles of the result.
pub(super) struct Grid<'c> {
    pub counts: Vec<Val<'c>>,
    pub rows: Val<'c>,
}

/// What the roles of a kernel work on.
pub(super) struct Tiles<'a, 'c> {
    pub body: &'a Body<'a, 'c>,
    pub grid: Grid<'c>,
    paths: [Path<'c>; 2],
    ring: Val<'c>,
    /// A tile of the result, as the accumulators hold it.
    pub registers: Registers,
    /// The parts of it that are stored one after the other; none where it is stored at once.
    panels: Vec<Panel>,
    /// The scales of its blocks.
    scales: Option<Factors<'c>>,
    inputs: HashMap<(usize, Kind), Argument<'c>>,
    scalars: HashMap<usize, Val<'c>>,
    pub outputs: Vec<Argument<'c>>,
}

impl<'c> Tiles<'_, 'c> {
    /// Each CTA computes tiles on its own, and fills the ring for the next while it stores one.
    fn whole(&self, code: Code<'c>) -> PassResult<'c> {
        let (own, others) = match &self.scales {
            Some(_) => scaled::budgets(self.body.tile),
            None => self.body.tile.budgets(),
        };
        code.scope(Level::Warpgroup, [0, 1], own, |code| {
            code.scope(Level::Warp, [0, 1], None, |code| {
                self.visit(code, false, |code, piece| {
                    self.produce(code, &piece.origin, piece.steps)
                })
            })
        })?;
        let turns = self.body.tile.turns;
        let consume =
            |code: Code<'c>| self.visit(code, turns, |code, piece| self.consume(code, piece));
        code.scope(
            Level::Warpgroup,
            self.consumers(),
            others,
            |code| match turns {
                true => code.teams(Level::Warpgroup, consume),
                false => consume(code),
            },
        )
    }

    /// Multiplies, and stores the results, or the sums of a part.
    fn consume(&self, code: Code<'c>, piece: Piece<'c>) -> PassResult<'c> {
        let Piece {
            origin,
            steps,
            sums,
        } = piece;
        let mut evaluator = self.evaluator(code, &self.registers, origin);
        let sum = match &self.scales {
            Some(factors) => {
                let scaled = Scaled {
                    gemm: self.body.gemm,
                    registers: &self.registers,
                    factors,
                    origin: &evaluator.origin,
                    ahead: scaled::is_ahead(self.body.tile),
                    first: steps.first,
                    blocks: self.blocks(sums.is_some()),
                };
                scaled.sum(code, self.ring, &self.paths)?
            }
            None => {
                // What the sums of parts start from is the other kernel's to add.
                let start = match sums {
                    None => self.start(&mut evaluator)?,
                    Some(_) => None,
                };
                self.multiply(code, start, steps.rest(code)?)?
            }
        };
        match (sums, self.panels.as_slice()) {
            (Some(at), _) => self.keep(code, at, sum),
            (None, [] | [_]) => self.store(&mut evaluator, sum),
            (None, panels) => self.store_panels(&mut evaluator, sum, panels),
        }
    }

    /// Stores the sums of a part.
    fn keep(&self, code: Code<'c>, at: [Val<'c>; 3], sum: Val<'c>) -> PassResult<'c> {
        // They come after the results.
        let Some(to) = self.outputs.last() else {
            return Err(layout_error(code.builder.location, "a part has no sums"));
        };
        let shape = self.registers.shape;
        code.store(sum, code.global_box(to.memref, &to.extents, &at, &shape)?)
    }

    /// Blocks with scales of a tile, or of a part of one.
    fn blocks(&self, in_parts: bool) -> i64 {
        match &self.body.tail {
            Some(tail) if in_parts => tail.steps,
            _ => self.steps(),
        }
    }

    /// The range of warpgroups that multiply.
    pub(super) fn consumers(&self) -> [i64; 2] {
        [1, 1 + self.body.tile.consumers]
    }

    /// Steps along all of k.
    pub(super) fn steps(&self) -> i64 {
        count(self.body.gemm.k, self.body.tile.shape[2])
    }

    pub(super) fn evaluator<'e>(
        &'e self,
        code: Code<'c>,
        registers: &'e Registers,
        origin: Origin<'c>,
    ) -> Evaluator<'e, 'c> {
        Evaluator {
            code,
            registers,
            columns: self.body.gemm.n,
            arguments: &self.inputs,
            scalars: &self.scalars,
            origin,
            known: HashMap::new(),
        }
    }

    /// Fills a stage for each step along k.
    pub(super) fn produce(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        steps: Steps<'c>,
    ) -> PassResult<'c> {
        let tile = self.body.tile;
        code.for_each(steps.count, 1, &[], |code, step, _| {
            let step = match steps.first {
                Some(first) => code.add(first, step)?,
                None => step,
            };
            let k = code.times(step, tile.shape[2])?;
            let (slot, stage) = code.acquire(self.ring)?;
            let shared = [tile.beside, tile.cluster > 1 && !tile.beside];
            let starts = [origin.row, origin.column];
            for ((path, start), multicast) in self.paths.iter().zip(starts).zip(shared) {
                let at = if path.k_first { [k, start] } else { [start, k] };
                let at: Vec<_> = origin.batch.into_iter().chain(at).collect();
                let from =
                    code.global_box(path.global.memref, &path.global.extents, &at, &path.shape)?;
                code.copy_signal(from, path.stage(code, stage)?, slot, multicast)?;
            }
            if let Some(factors) = &self.scales {
                factors.copy(code, [origin.row, step], [slot, stage])?;
            }
            code.commit_slot(self.ring, slot)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// What the sums start from.
    pub(super) fn start(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let gemm = self.body.gemm;
        let Some(start) = gemm.start else {
            return Ok(None);
        };
        let value = evaluator.value(start, Kind::Full)?;
        convert(evaluator, value, gemm.accumulator).map(Some)
    }

    /// Multiplies a stage after the first, and `more` after it; gives the tile of sums.
    pub(super) fn multiply(
        &self,
        code: Code<'c>,
        start: Option<Val<'c>>,
        more: Steps<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let sums = self.sums(code)?;
        let start = match start {
            Some(start) if self.body.tile.swap => Some(code.transpose(start, sums)?),
            start => start,
        };
        // The first step starts the sums, so that no register is set to zero while a product is under way.
        let first = self.step(code, start, sums)?;
        let lost = || layout_error(code.builder.location, "the loop carries a sum and a slot");
        let last = code.for_each(more.count, 1, &first, |code, _, carried| {
            let &[sum, held] = carried else {
                return Err(lost());
            };
            let [sum, slot] = self.step(code, Some(sum), sums)?;
            let sum = code.wait_products(sum, 1)?;
            code.release_slot(self.ring, held)?;
            Ok(vec![sum, slot])
        })?;
        let &[sum, held] = last.as_slice() else {
            return Err(lost());
        };
        let sum = code.wait_products(sum, 0)?;
        code.release_slot(self.ring, held)?;
        let gemm = self.body.gemm;
        match self.body.tile.swap {
            true => {
                let tile = self.registers.r#type(code, Kind::Full, gemm.accumulator)?;
                code.transpose(sum, tile)
            }
            false => Ok(sum),
        }
    }

    /// The type of the sums, as the instruction has them.
    fn sums(&self, code: Code<'c>) -> PassResult<'c, Type<'c>> {
        let layout = accumulators(self.body.tile)
            .map_err(|error| layout_error(code.builder.location, error))?;
        let shape = self.body.tile.instruction();
        code.fragment(&shape, self.body.gemm.accumulator, &layout)
    }

    /// The product of the next stage: the sums, and the stage's slot.
    fn step(
        &self,
        code: Code<'c>,
        acc: Option<Val<'c>>,
        sums: Type<'c>,
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let (slot, stage) = code.wait_slot(self.ring)?;
        let [a, b] = &self.paths;
        let operands = [a.stage(code, stage)?, b.stage(code, stage)?];
        let gemm = self.body.gemm;
        let sum = match self.body.tile.swap {
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

/// A tile of another element type.
pub(super) fn convert<'c>(
    evaluator: &Evaluator<'_, 'c>,
    value: Val<'c>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let code = evaluator.code;
    if code.builder.tensor_of(value)?.element == element {
        return Ok(value);
    }
    let r#type = evaluator.registers.r#type(code, Kind::Full, element)?;
    code.builder.value("axe.cast", &[value], r#type, &[])
}

impl<'c> Path<'c> {
    pub(super) fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(self.ring, &[stage, zero, zero], self.stage)
    }
}
