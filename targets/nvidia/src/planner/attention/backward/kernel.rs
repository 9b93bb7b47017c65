//! The kernel of gradients (sm_90a), after FlashAttention-3's backward pass (arXiv 2407.08608): a CTA owns a block of keys, and goes
//! through the blocks of queries that see some of them. examples/kernels/attention_backward.mlir is such a kernel, written by hand.
//!
//! Everything is formed transposed, keys by queries, so that what is formed of the first two products' sums is operand A of the
//! next ones in its registers:
//!
//! * `P^T = exp(K Q^T - L)`, `dP^T = V dO^T`, `dS^T = P^T (dP^T - D)`;
//! * `dV += P^T dO`, `dK += dS^T Q`, in registers from the first block of queries to the last;
//! * `dQ += dS K`, of the dS^T of both warpgroups, through shared memory; blocks of keys add it up in global memory.

use super::super::config::BYTES;
use super::super::fragments::accumulators;
use super::super::sizes::Sizes;
use super::Operators;
use super::block::{At, Owned, State};
use super::config::{CONSUMERS, Config, Order, Problem, ROWS, Split};
use super::rows::scaled;
use super::runs::{Block, Cut, Run};
use super::scored::{Data, Own, Scored};
use super::storage::{Rows, Values, Views, beside, span, views};
use crate::planner::mainloop::operand::{in_pieces, swizzled};
use crate::planner::problem::count;
use axe_dialect::{Level, RasterOrder};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::attention::Backward;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::Type;

/// Registers of a thread of the producer's warpgroup, and of a consumer: 64 Ki in all.
const REGISTERS: [i64; 2] = [24, 240];

/// What the warps work with.
pub(super) struct Parts<'a, 'c> {
    pub(super) backward: &'a Backward<'c>,
    pub(super) problem: &'a Problem,
    pub(super) config: Config,
    pub(super) scored: &'a Scored<'c>,
    pub(super) data: Data<'a, 'c>,
    /// Sums of the first two products, keys by queries; of dK and dV; of dQ.
    pub(super) scores: &'a Registers,
    pub(super) of_keys: Registers,
    pub(super) of_values: Registers,
    pub(super) of_queries: Vec<Part<'c>>,
    /// The keys and the values of a tile, in one slot of a pipeline.
    pub(super) keys: Val<'c>,
    pub(super) values: Val<'c>,
    pub(super) owned: Val<'c>,
    pub(super) queries: Rows<'c>,
    pub(super) gradients: Rows<'c>,
    /// dS^T, as many places as queries have stages: one barrier a block is then enough.
    pub(super) of_scores: Val<'c>,
    /// P^T beside it, in as many places, where consumers share columns.
    pub(super) weights: Option<Val<'c>>,
    pub(super) weight: Type<'c>,
    pub(super) views: Views<'c>,
    pub(super) f32: Type<'c>,
}

/// Columns of dQ that leave together.
pub(super) struct Part<'c> {
    /// The first one.
    pub first: i64,
    pub sums: Registers,
    /// These columns of the keys.
    pub keys: Type<'c>,
}

/// A block of keys: the first problem of the queries that have them, its number, and the first key.
#[derive(Clone, Copy)]
pub(super) struct Tile<'c> {
    pub batch: Val<'c>,
    pub number: Val<'c>,
    pub key: Val<'c>,
}

/// Emits the kernel's body.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn emit<'c>(
    kernel: &Kernel<'c>,
    operators: &Operators<'c>,
    config: Config,
) -> PassResult<'c> {
    let code = kernel.code;
    let Operators {
        backward,
        tensors,
        problem,
        scored,
    } = operators;
    let (element, stages, keys) = (backward.forward.element, config.stages, config.keys());
    let [depth, columns] = config.padded(problem);
    let failed = |error| layout_error(code.builder.location, error);
    let by_keys = |columns| {
        let layout = match config.split {
            Split::Keys => accumulators(CONSUMERS, columns),
            Split::Columns => beside(columns),
        };
        registers(code, [keys, columns], layout.map_err(failed)?)
    };
    // What consumers have of the columns of queries, values and their gradients.
    let part = |columns| match config.split {
        Split::Keys => columns,
        Split::Columns => columns / CONSUMERS,
    };
    let whole = |columns| [columns, span(columns, part(columns))];
    let block = |columns, width| {
        let shape = [keys, columns];
        let layout = in_pieces(None, shape, width, BYTES).map_err(failed)?;
        code.alloc(&shape, element, &layout)
    };
    let of_queries = |[first, columns]: [i64; 2]| -> PassResult<'c, Part<'c>> {
        let shape = [keys, columns];
        let width = span(depth, depth / CONSUMERS);
        let layout = in_pieces(None, shape, width, BYTES).map_err(failed)?;
        Ok(Part {
            first,
            sums: registers(code, [ROWS, columns], beside(columns).map_err(failed)?)?,
            keys: code.memref(&shape, element, &layout, Some("shared"))?,
        })
    };
    let shape = [keys, ROWS];
    let all = swizzled(Some(stages), shape, BYTES).map_err(failed)?;
    let one = swizzled(None, shape, BYTES).map_err(failed)?;
    let gradient_stages = config.gradient_stages;
    let values = match config.split {
        Split::Keys => None,
        Split::Columns => Some(Values::new(code, stages + gradient_stages)?),
    };
    let values = |first| values.map(|values| (values, first));
    let lost = || layout_error(code.builder.location, "a kernel has its arguments");
    let (scores, sizes) = (by_keys(ROWS)?, Sizes::default());
    let data = kernel.arguments.get(6..6 + scored.arguments());
    let parts = Parts {
        backward: backward.as_ref(),
        problem,
        config,
        scored,
        data: scored.data(code, data.ok_or_else(lost)?, (&scores, &sizes))?,
        scores: &scores,
        of_keys: by_keys(depth)?,
        of_values: by_keys(columns)?,
        of_queries: config
            .query_parts(problem)
            .into_iter()
            .map(of_queries)
            .collect::<PassResult<'c, _>>()?,
        keys: block(depth, span(depth, depth / CONSUMERS))?,
        values: block(columns, span(columns, part(columns)))?,
        owned: code.pipeline(1)?,
        queries: Rows::new(code, stages, whole(depth), element, values(0))?,
        gradients: Rows::new(
            code,
            gradient_stages,
            whole(columns),
            element,
            values(stages),
        )?,
        of_scores: code.alloc(&[stages, keys, ROWS], element, &all)?,
        weights: match config.split {
            Split::Keys => None,
            Split::Columns => Some(code.alloc(&[stages, keys, ROWS], element, &all)?),
        },
        weight: code.memref(&shape, element, &one, Some("shared"))?,
        views: views(kernel, tensors, problem)?,
        f32: code.builder.r#type(|context| Type::float32(context)),
    };
    parts.run(code)
}

impl<'c> Parts<'_, 'c> {
    /// Puts producer and consumers in their warps.
    fn run(&self, code: Code<'c>) -> PassResult<'c> {
        let [producer, consumer] = REGISTERS;
        code.scope(Level::Warpgroup, [0, 1], Some(producer), |code| {
            code.scope(Level::Warp, [0, 1], None, |code| {
                self.visit(code, |code, tile| self.produce(code, tile))
            })
        })?;
        let consumers = [1, 1 + CONSUMERS];
        code.scope(Level::Warpgroup, consumers, Some(consumer), |code| {
            self.visit(code, |code, tile| self.consume(code, tile))
        })
    }

    /// Goes through the blocks of keys of a CTA. With a causal mask the first ones of a problem are the longest.
    fn visit(
        &self,
        code: Code<'c>,
        body: impl FnOnce(Code<'c>, Tile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let Problem {
            batch, keys, group, ..
        } = *self.problem;
        let (heads, tiles) = (batch / group, count(keys, self.config.keys()));
        let counts = [code.index(heads)?, code.index(tiles)?];
        let order = match self.config.order {
            Order::LongestFirst { last } if last == heads => RasterOrder::Columns,
            _ => RasterOrder::Rows,
        };
        code.for_tiles(&counts, (order, 1), false, |code, at| {
            let &[number, tile] = at else {
                return Err(layout_error(code.builder.location, "a tile of keys"));
            };
            let [number, tile] = match self.config.order {
                Order::Alternating => [number, alternating(code, [number, tile], tiles)?],
                Order::LongestFirst { last } if last < heads => {
                    longest_first(code, [number, tile], [heads - last, last, tiles])?
                }
                Order::Problems | Order::LongestFirst { .. } => [number, tile],
            };
            let tile = Tile {
                batch: code.times(number, group)?,
                number: tile,
                key: code.times(tile, self.config.keys())?,
            };
            body(code, tile)
        })
    }

    /// What blocks of keys are cut by.
    pub(super) fn cut(&self) -> Cut<'_> {
        Cut {
            visible: &self.backward.forward.visible,
            rows: self.problem.rows,
            keys: self.problem.keys,
            block: self.config.keys(),
            empty: self.backward.empty,
            sees_some: self.scored.sees_some,
            tail: self.scored.is_more(),
        }
    }

    /// What is data of a problem that has a tile's keys.
    fn own(&self, code: Code<'c>, tile: Tile<'c>, member: Val<'c>) -> PassResult<'c, Own<'c>> {
        let batch = code.add(tile.batch, member)?;
        self.data.of(code, [batch, tile.number])
    }

    /// The runs of a tile's problem.
    fn runs(&self, code: Code<'c>, tile: Tile<'c>, own: &Own<'c>) -> PassResult<'c, Vec<Run<'c>>> {
        let block = Block {
            key: tile.key,
            lengths: &own.lengths,
            seen: own.seen,
        };
        self.cut().runs(code, block)
    }

    /// Brings the keys and values of a tile, then queries and gradients of each problem that has them, block by block.
    fn produce(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let views = &self.views;
        let (zero, one) = (code.index(0)?, code.index(1)?);
        let (slot, _) = code.acquire(self.owned)?;
        let [depth, columns] = self.config.padded(self.problem);
        let keys = self.config.keys();
        let blocks = [
            (&views.keys, self.keys, depth),
            (&views.values, self.values, columns),
        ];
        for (view, to, columns) in blocks {
            let from = view.boxed(code, tile.batch, [tile.key, zero], [keys, columns])?;
            code.copy_signal(from, to, slot, false)?;
        }
        code.commit_slot(self.owned, slot)?;
        let group = code.index(self.problem.group)?;
        code.for_each(group, 1, &[], |code, member, _| {
            let own = self.own(code, tile, member)?;
            let runs = self.runs(code, tile, &own)?;
            let lost = || layout_error(code.builder.location, "a tile has queries");
            let (first, last) = runs.first().zip(runs.last()).ok_or_else(lost)?;
            code.for_range([first.first, last.end, one], &[], |code, block, _| {
                let row = code.times(block, ROWS)?;
                let of = [&views.queries, &views.sums];
                self.queries.bring(code, of, own.batch, row)?;
                let of = [&views.gradient, &views.products];
                self.gradients.bring(code, of, own.batch, row)?;
                Ok(Vec::new())
            })
        })?;
        Ok(())
    }

    /// Forms dK and dV of a tile, and stores them; dQ is added up on the way.
    fn consume(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let lost = || layout_error(code.builder.location, "the loop carries its state");
        let one = code.index(1)?;
        let (slot, _) = code.wait_slot(self.owned)?;
        let owned = self.operands(code)?;
        let start = self.start(code, tile)?;
        let group = code.index(self.problem.group)?;
        let sums = code.for_each(group, 1, &start.values(), |code, member, carried| {
            let own = self.own(code, tile, member)?;
            let mut state = carried.to_vec();
            for Run { first, end, masked } in self.runs(code, tile, &own)? {
                state = code.for_range([first, end, one], &state, |code, block, carried| {
                    let at = At {
                        tile,
                        own,
                        row: code.times(block, ROWS)?,
                        masked,
                    };
                    let state = State::of(carried).ok_or_else(lost)?;
                    Ok(self.step(code, at, owned, state)?.values().to_vec())
                })?;
            }
            Ok(state)
        })?;
        let sums = State::of(&sums).ok_or_else(lost)?;
        self.last(code, sums.behind)?;
        code.release_slot(self.owned, slot)?;
        self.store(code, tile, sums)
    }

    /// The keys and values of a tile as operands.
    fn operands(&self, code: Code<'c>) -> PassResult<'c, Owned<'c>> {
        let held = |memory, registers: &Registers| match self.config.held {
            true => {
                let element = self.backward.forward.element;
                code.load(memory, registers.r#type(code, Kind::Full, element)?)
            }
            false => Ok(memory),
        };
        Ok(Owned {
            keys: held(self.keys, &self.of_keys)?,
            values: held(self.values, &self.of_values)?,
        })
    }

    /// What the loops over queries begin with.
    fn start(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, State<'c>> {
        let zero = code.scalar(self.f32, Number::Of(0))?;
        let none =
            |registers: &Registers| code.fill(zero, registers.r#type(code, Kind::Full, self.f32)?);
        Ok(State {
            of_keys: none(&self.of_keys)?,
            of_values: none(&self.of_values)?,
            behind: self.nothing_behind(code, tile, self.first(code, tile)?)?,
        })
    }

    /// The first block of queries of a tile, as far as it is known without data.
    fn first(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        if self.backward.forward.visible.is_data() {
            return Ok(zero);
        }
        let own = self.own(code, tile, zero)?;
        let runs = self.runs(code, tile, &own)?;
        Ok(runs.first().map_or(zero, |run| run.first))
    }

    /// Stores dK and dV of a tile.
    fn store(&self, code: Code<'c>, tile: Tile<'c>, sums: State<'c>) -> PassResult<'c> {
        let [_, of_keys, of_values] = &self.backward.results;
        let stored = [
            (
                sums.of_values,
                &self.of_values,
                &self.views.of_values,
                of_values.scale,
            ),
            (
                sums.of_keys,
                &self.of_keys,
                &self.views.of_keys,
                of_keys.scale,
            ),
        ];
        let at = [tile.key, code.index(0)?];
        for (sums, registers, view, scale) in stored {
            let value = if scale == 1.0 {
                sums
            } else {
                scaled(code, sums, scale)?
            };
            let element = self.backward.forward.element;
            let narrow = code.cast(value, registers.r#type(code, Kind::Full, element)?)?;
            code.store(narrow, view.boxed(code, tile.batch, at, registers.shape)?)?;
        }
        Ok(())
    }
}

/// A tile of a problem, counted from the last one on where the problem's number is odd.
fn alternating<'c>(
    code: Code<'c>,
    [number, tile]: [Val<'c>; 2],
    tiles: i64,
) -> PassResult<'c, Val<'c>> {
    let one = code.index(1)?;
    let parity = code.rem(number, code.index(2)?)?;
    let back = code.sub(code.index(tiles - 1)?, tile)?;
    code.where_at_most([one, parity], [back, tile])
}

/// A tile of a problem; of the `last` ones, which begin with the problem `first`, the first tiles of all, then the second ones, ...
fn longest_first<'c>(
    code: Code<'c>,
    [number, tile]: [Val<'c>; 2],
    [first, last, tiles]: [i64; 3],
) -> PassResult<'c, [Val<'c>; 2]> {
    let (first, last) = (code.index(first)?, code.index(last)?);
    let at = code.add(code.times(code.sub(number, first)?, tiles)?, tile)?;
    let is_last = code.at_most(first, number)?;
    let (other, place) = (code.add(first, code.rem(at, last)?)?, code.div(at, last)?);
    Ok([
        code.choose(is_last, [other, number])?,
        code.choose(is_last, [place, tile])?,
    ])
}
