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
use super::super::memory::{Ring, View};
use super::super::score::{compare, i32_of, place};
use super::config::{CONSUMERS, Config, Problem, ROWS, Split};
use super::rows::scaled;
use super::runs::{Run, runs};
use super::{Tensors, of_matrices, of_rows};
use crate::planner::layouts::layout;
use crate::planner::mainloop::operand::{in_pieces, swizzled};
use crate::planner::problem::count;
use axe_dialect::{Level, RasterOrder};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::attention::Backward;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};
use std::f64::consts::LOG2_E;

/// Registers of a thread of the producer's warpgroup, and of a consumer: 64 Ki in all.
const REGISTERS: [i64; 2] = [24, 240];

/// A ring of blocks of rows, with a value of each row beside them.
struct Rows<'c> {
    ring: Ring<'c>,
    values: Val<'c>,
    stage: Type<'c>,
}

impl<'c> Rows<'c> {
    /// A ring of so many stages, of these columns in pieces of some.
    fn new(
        code: Code<'c>,
        stages: i64,
        [columns, span]: [i64; 2],
        element: Type<'c>,
    ) -> PassResult<'c, Self> {
        let f32 = code.builder.r#type(|context| Type::float32(context));
        let failed = |error| layout_error(code.builder.location, error);
        let all = Layout::strided(&[stages, ROWS], &[ROWS, 1]).map_err(failed)?;
        let one = Layout::strided(&[ROWS], &[1]).map_err(failed)?;
        Ok(Self {
            ring: Ring::in_pieces(code, stages, ([ROWS, columns], span), element)?,
            values: code.alloc(&[stages, ROWS], f32, &all)?,
            stage: code.memref(&[ROWS], f32, &one, Some("shared"))?,
        })
    }

    /// The values of a stage.
    fn values(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.slice(self.values, &[stage, code.index(0)?], self.stage)
    }

    /// Brings a block, and a value of each row, of these tensors.
    fn bring(
        &self,
        code: Code<'c>,
        [matrix, values]: [&View<'c>; 2],
        batch: Val<'c>,
        row: Val<'c>,
    ) -> PassResult<'c> {
        let (slot, stage) = code.acquire(self.ring.pipeline)?;
        let at = [row, code.index(0)?];
        let shape = self.ring.shape;
        let from = matrix.boxed(code, batch, at, shape)?;
        code.copy_signal(from, self.ring.stage(code, stage)?, slot, false)?;
        let from = values.boxed(code, batch, at, shape)?;
        code.copy_signal(from, self.values(code, stage)?, slot, false)?;
        code.commit_slot(self.ring.pipeline, slot)
    }
}

/// What the warps work with.
struct Parts<'a, 'c> {
    backward: &'a Backward<'c>,
    problem: &'a Problem,
    config: Config,
    /// Sums of the first two products, keys by queries; of dK and dV; of dQ.
    scores: Registers,
    of_keys: Registers,
    of_values: Registers,
    of_queries: Registers,
    /// The keys and the values of a tile, in one slot of a pipeline.
    keys: Val<'c>,
    values: Val<'c>,
    owned: Val<'c>,
    queries: Rows<'c>,
    gradients: Rows<'c>,
    /// dS^T, as many places as queries have stages: one barrier a block is then enough.
    of_scores: Val<'c>,
    /// P^T beside it, where consumers share columns.
    weights: Option<Val<'c>>,
    weight: Type<'c>,
    views: Views<'c>,
    f32: Type<'c>,
}

/// The kernel's arguments.
struct Views<'c> {
    queries: View<'c>,
    keys: View<'c>,
    values: View<'c>,
    gradient: View<'c>,
    sums: View<'c>,
    products: View<'c>,
    of_queries: View<'c>,
    of_keys: View<'c>,
    of_values: View<'c>,
}

/// A block of keys: the first problem of the queries that have them, and the first key.
#[derive(Clone, Copy)]
struct Tile<'c> {
    batch: Val<'c>,
    key: Val<'c>,
}

/// Emits the kernel's body.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn emit<'c>(
    kernel: &Kernel<'c>,
    backward: &Backward<'c>,
    tensors: &Tensors,
    (problem, config): (&Problem, Config),
) -> PassResult<'c> {
    let code = kernel.code;
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
    let shape = [keys, ROWS];
    let all = swizzled(Some(stages), shape, BYTES).map_err(failed)?;
    let one = swizzled(None, shape, BYTES).map_err(failed)?;
    let parts = Parts {
        backward,
        problem,
        config,
        scores: by_keys(ROWS)?,
        of_keys: by_keys(depth)?,
        of_values: by_keys(columns)?,
        of_queries: registers(code, [ROWS, depth], beside(depth).map_err(failed)?)?,
        keys: block(depth, span(depth, depth / CONSUMERS))?,
        values: block(columns, span(columns, part(columns)))?,
        owned: code.pipeline(1)?,
        queries: Rows::new(code, stages, whole(depth), element)?,
        gradients: Rows::new(code, config.gradient_stages, whole(columns), element)?,
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

/// The most columns of a swizzle's span, 128 bytes or a half or a quarter of them, whose whole numbers are a block's columns, and of
/// which a consumer's part is a whole number too, or lies in one.
const fn span(columns: i64, part: i64) -> i64 {
    let mut width = 128 / BYTES;
    while columns % width != 0 || part % width != 0 && width % part != 0 {
        width /= 2;
    }
    width
}

/// The accumulators of 64 rows, whose columns the consumers share.
fn beside(columns: i64) -> axe_layout::Result<Layout> {
    let all = [
        (4, 1, "warp"),
        (2, 2, "reg"),
        (8, 4, "lane"),
        (CONSUMERS, 4, "warp"),
        (columns / 8 / CONSUMERS, 4, "reg"),
        (4, 1, "lane"),
        (2, 1, "reg"),
    ];
    layout(&all, &[])
}

fn views<'c>(
    kernel: &Kernel<'c>,
    tensors: &Tensors,
    problem: &Problem,
) -> PassResult<'c, Views<'c>> {
    let code = kernel.code;
    let &[
        queries,
        keys,
        values,
        gradient,
        sums,
        products,
        of_queries,
        of_keys,
        of_values,
    ] = kernel.arguments.as_slice()
    else {
        return Err(layout_error(code.builder.location, "nine arguments"));
    };
    let [_, to_keys, to_values] = &tensors.results;
    let of_rows = of_rows(problem);
    Ok(Views {
        queries: tensors.queries.view(code, queries)?,
        keys: tensors.keys.view(code, keys)?,
        values: tensors.values.view(code, values)?,
        gradient: tensors.gradient.view(code, gradient)?,
        sums: of_rows.view(code, sums)?,
        products: of_rows.view(code, products)?,
        of_queries: of_matrices(problem, problem.depth).view(code, of_queries)?,
        of_keys: to_keys.view(code, of_keys)?,
        of_values: to_values.view(code, of_values)?,
    })
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
        let counts = [
            code.index(batch / group)?,
            code.index(count(keys, self.config.keys()))?,
        ];
        let order = match self.config.by_problem {
            true => RasterOrder::Rows,
            false => RasterOrder::Columns,
        };
        code.for_tiles(&counts, (order, 1), false, |code, at| {
            let &[number, tile] = at else {
                return Err(layout_error(code.builder.location, "a tile of keys"));
            };
            let tile = Tile {
                batch: code.times(number, group)?,
                key: code.times(tile, self.config.keys())?,
            };
            body(code, tile)
        })
    }

    fn runs(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, Vec<Run<'c>>> {
        let blocks = count(self.problem.rows, ROWS);
        let keys = (tile.key, self.config.keys());
        runs(code, &self.backward.forward.visible, keys, blocks)
    }

    /// Brings the keys and values of a tile, then queries and gradients of each problem that has them, block by block.
    fn produce(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let views = &self.views;
        let (zero, one) = (code.index(0)?, code.index(1)?);
        let runs = self.runs(code, tile)?;
        let lost = || layout_error(code.builder.location, "a tile has queries");
        let (first, end) = runs.first().zip(runs.last()).ok_or_else(lost)?;
        let (first, end) = (first.first, end.end);
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
            let batch = code.add(tile.batch, member)?;
            code.for_range([first, end, one], &[], |code, block, _| {
                let row = code.times(block, ROWS)?;
                let of = [&views.queries, &views.sums];
                self.queries.bring(code, of, batch, row)?;
                let of = [&views.gradient, &views.products];
                self.gradients.bring(code, of, batch, row)?;
                Ok(Vec::new())
            })
        })?;
        Ok(())
    }

    /// Forms dK and dV of a tile, and stores them; dQ is added up on the way.
    fn consume(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let one = code.index(1)?;
        let zero = code.scalar(self.f32, Number::Of(0))?;
        let runs = self.runs(code, tile)?;
        let none =
            |registers: &Registers| code.fill(zero, registers.r#type(code, Kind::Full, self.f32)?);
        let starts = [none(&self.of_keys)?, none(&self.of_values)?];
        let (slot, _) = code.wait_slot(self.owned)?;
        let group = code.index(self.problem.group)?;
        let sums = code.for_each(group, 1, &starts, |code, member, carried| {
            let batch = code.add(tile.batch, member)?;
            let mut state = carried.to_vec();
            for Run { first, end, masked } in runs {
                state = code.for_range([first, end, one], &state, |code, block, carried| {
                    let row = code.times(block, ROWS)?;
                    let own = Tile { batch, ..tile };
                    self.step(code, (own, row, masked), carried)
                })?;
            }
            Ok(state)
        })?;
        code.release_slot(self.owned, slot)?;
        let [_, of_keys, of_values] = &self.backward.results;
        let &[keys, values] = sums.as_slice() else {
            return Err(layout_error(
                code.builder.location,
                "sums of keys and values",
            ));
        };
        let stored = [
            (
                values,
                &self.of_values,
                &self.views.of_values,
                of_values.scale,
            ),
            (keys, &self.of_keys, &self.views.of_keys, of_keys.scale),
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

    /// A value of each query, as what all keys have.
    fn wide(&self, code: Code<'c>, values: Val<'c>) -> PassResult<'c, Val<'c>> {
        let own = code.load(values, self.scores.r#type(code, Kind::Column, self.f32)?)?;
        code.broadcast(own, 0, self.scores.r#type(code, Kind::Full, self.f32)?)
    }

    /// A block of queries: gives the sums of dK and dV.
    fn step(
        &self,
        code: Code<'c>,
        (tile, row, masked): (Tile<'c>, Val<'c>, bool),
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[of_keys, of_values] = carried else {
            return Err(layout_error(
                code.builder.location,
                "sums of keys and values",
            ));
        };
        let sums = self.scores.r#type(code, Kind::Full, self.f32)?;
        let element = self.backward.forward.element;
        let narrow = self.scores.r#type(code, Kind::Full, element)?;
        let (slot, at) = code.wait_slot(self.queries.ring.pipeline)?;
        let queries = self.queries.ring.stage(code, at)?;
        let issued = code.gemm_async([self.keys, queries], None, sums, [false, true])?;
        let (of_slot, of_at) = code.wait_slot(self.gradients.ring.pipeline)?;
        let gradient = self.gradients.ring.stage(code, of_at)?;
        let of_gradient = code.gemm_async([self.values, gradient], None, sums, [false, true])?;
        let logs = self.wide(code, self.queries.values(code, at)?)?;
        let scores = code.wait_products(issued, 1)?;
        let weights = self.weights(code, scores, logs)?;
        let weights = self.seen(code, weights, (tile, row, masked))?;
        let products = self.wide(code, self.gradients.values(code, of_at)?)?;
        // Weights are rounded behind the wait: both forms at a time take more registers than there are.
        let (of_gradient, weights) = code.wait_products_with(of_gradient, weights, 0)?;
        let of_scores = self.of_scores(code, [weights, of_gradient, products])?;
        let (weights, of_scores) = (code.cast(weights, narrow)?, code.cast(of_scores, narrow)?);

        let sums = of_values.r#type();
        let zero = code.index(0)?;
        let place = |all| code.slice(all, &[at, zero, zero], self.weight);
        let shared = place(self.of_scores)?;
        let dv = |weights| code.gemm_async([weights, gradient], Some(of_values), sums, [false; 2]);
        let (issued_values, of_scores) = match self.weights {
            None => {
                let issued = dv(weights)?;
                code.store(of_scores, shared)?;
                code.barrier_async()?;
                (issued, of_scores)
            }
            Some(all) => {
                let own = place(all)?;
                code.store(weights, own)?;
                code.store(of_scores, shared)?;
                code.barrier_async()?;
                (dv(own)?, shared)
            }
        };
        let sums = self.of_queries.r#type(code, Kind::Full, self.f32)?;
        let issued_queries = code.gemm_async([shared, self.keys], None, sums, [true, false])?;
        let of_values = code.wait_products(issued_values, 1)?;
        code.release_slot(self.gradients.ring.pipeline, of_slot)?;
        let sums = of_keys.r#type();
        let issued_keys = code.gemm_async([of_scores, queries], Some(of_keys), sums, [false; 2])?;
        let of_queries = code.wait_products(issued_queries, 1)?;
        let view = &self.views.of_queries;
        let to = view.boxed(code, tile.batch, [row, zero], self.of_queries.shape)?;
        code.accumulate(of_queries, to)?;
        let of_keys = code.wait_products(issued_keys, 0)?;
        code.release_slot(self.queries.ring.pipeline, slot)?;
        Ok(vec![of_keys, of_values])
    }

    /// `exp(S - L)`, of L for powers of two.
    fn weights(&self, code: Code<'c>, scores: Val<'c>, logs: Val<'c>) -> PassResult<'c, Val<'c>> {
        let slope = self.backward.forward.weights.slope * LOG2_E;
        code.map(&[scores, logs], scores.r#type(), |code, own| {
            let &[score, log] = own else {
                return Err(layout_error(
                    code.builder.location,
                    "a weight has two arguments",
                ));
            };
            let builder = code.builder;
            let slope = builder.constant(builder.float(self.f32, slope))?;
            let negated = builder.value("arith.negf", &[log], self.f32, &[])?;
            let exponent = builder.value("math.fma", &[score, slope, negated], self.f32, &[])?;
            let fast = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
            builder.value("math.exp2", &[exponent], self.f32, &fast)
        })
    }

    /// `P (dP - D)`.
    fn of_scores(&self, code: Code<'c>, all: [Val<'c>; 3]) -> PassResult<'c, Val<'c>> {
        code.map(&all, all[0].r#type(), |code, own| {
            let &[weight, gradient, product] = own else {
                return Err(layout_error(
                    code.builder.location,
                    "a gradient has three arguments",
                ));
            };
            let builder = code.builder;
            let difference = builder.value("arith.subf", &[gradient, product], self.f32, &[])?;
            builder.value("arith.mulf", &[weight, difference], self.f32, &[])
        })
    }

    /// The weights, 0 of keys that a query does not see, and of those behind the last one where queries see those.
    fn seen(
        &self,
        code: Code<'c>,
        weights: Val<'c>,
        (tile, row, masked): (Tile<'c>, Val<'c>, bool),
    ) -> PassResult<'c, Val<'c>> {
        let Problem { rows, keys, .. } = *self.problem;
        let visible = &self.backward.forward.visible;
        let last = visible.all(rows - 1, 1, i64::MAX)[1];
        let ends = keys % self.config.keys() != 0 && last > keys;
        if !masked && !ends {
            return Ok(weights);
        }
        // Places in the block: key <= query + limit, key >= query + limit, key < limit.
        let limit = |of: Val<'c>, offset: i64| {
            let offset = code.index(offset)?;
            i32_of(code, code.sub(code.add(of, offset)?, tile.key)?)
        };
        let edges = |edges: &[_], offset: i64| {
            let of =
                |edge: &axe_passes::fuse::attention::visible::Edge| limit(row, edge.start + offset);
            let all = if masked { edges } else { &[] };
            all.iter().map(of).collect::<PassResult<Vec<_>>>()
        };
        let (to, from) = (edges(&visible.to, -1)?, edges(&visible.from, 0)?);
        let end = match ends {
            true => Some(limit(code.index(keys)?, 0)?),
            false => None,
        };
        code.map(&[weights], weights.r#type(), |code, own| {
            let (key, query) = (place(code, 0)?, place(code, 1)?);
            let mut all = Vec::new();
            for (limits, predicate) in [(&to, 3), (&from, 5)] {
                for limit in limits {
                    let i32 = limit.r#type();
                    let own = code
                        .builder
                        .value("arith.addi", &[query, *limit], i32, &[])?;
                    all.push(compare(code, predicate, key, own)?);
                }
            }
            if let Some(end) = end {
                all.push(compare(code, 2, key, end)?);
            }
            let zero = code.scalar(self.f32, Number::Of(0))?;
            let mut value = *own
                .first()
                .ok_or_else(|| layout_error(code.builder.location, "a weight"))?;
            for seen in all {
                value = code.choose(seen, [value, zero])?;
            }
            Ok(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn parts_of_columns_are_whole_spans_or_lie_in_one() {
        let expected = [(32, 32), (64, 64), (96, 16), (128, 64)];
        for (columns, width) in expected {
            assert_eq!(span(columns, columns / 2), width, "{columns}");
        }
        for (columns, width) in [(16, 16), (48, 16), (96, 32), (112, 16), (128, 64)] {
            assert_eq!(span(columns, columns), width, "{columns}");
        }
    }
}
