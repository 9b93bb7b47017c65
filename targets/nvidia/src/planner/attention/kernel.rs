//! The kernel of attention (sm_90a), after FlashAttention-3 (arXiv 2407.08608): a warp brings queries, and keys and values in
//! blocks through two rings, from the last block to the first; warpgroups multiply, and keep the maximum of each row's scores,
//! the sum of its weights and its results in registers.
//!
//! The loop issues the scores of a block before the second product of the block before it, so that the tensor cores work while
//! exponentials are formed. examples/kernels/attention.mlir is such a kernel, written by hand.

use super::config::Config;
use super::memory::{Ring, Strides, View};
use super::score::{Block, Hidden, Input, Scores};
use super::tiles::{Blocks, Tile, Tiles};
use axe_dialect::{Combiner, Level, ops};
use axe_layout::{Axis, Iter, Layout};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{Val, value};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use std::f64::consts::LOG2_E;

/// How a kernel's tensors lie in memory.
pub(super) struct Tensors {
    pub queries: Strides,
    pub keys: Strides,
    pub values: Strides,
    pub result: Strides,
    pub inputs: Vec<Strides>,
}

/// The kernel's arguments: queries, keys, values, what scores read, and the result.
pub(super) struct Arguments<'c> {
    pub queries: Val<'c>,
    pub keys: Val<'c>,
    pub values: Val<'c>,
    pub inputs: Vec<Val<'c>>,
    pub result: Val<'c>,
}

/// Columns of an accumulator from one value of a lane to its next ones (PTX ISA 9.7.15.5.1.1).
const LANE_COLUMNS: i64 = 8;

/// The accumulators of `wgmma` over the consumers, 64 rows each (PTX ISA 9.7.15.5.1.1, "Register Fragments").
fn accumulators(consumers: i64, columns: i64) -> axe_layout::Result<Layout> {
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    Layout::from_shard([
        Iter::new(4 * consumers, 1, warp),
        Iter::new(2, 2, reg),
        Iter::new(8, 4, lane),
        Iter::new(columns / 8, 4, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}

/// What the warps work with.
struct Parts<'a, 'c> {
    attention: &'a Attention<'c>,
    config: Config,
    tiles: Tiles<'a>,
    scores: Scores<'a, 'c>,
    /// Columns of a block of scores, of which a lane has two beside each other.
    lanes: &'a Registers,
    /// A tile of results.
    results: &'a Registers,
    queries: Ring<'c>,
    keys: Ring<'c>,
    values: Ring<'c>,
    views: [View<'c>; 4],
    f32: Type<'c>,
}

/// A tile of rows, and its queries in shared memory.
#[derive(Clone, Copy)]
struct Own<'c> {
    tile: Tile<'c>,
    queries: Val<'c>,
}

/// What the loop over blocks carries.
#[derive(Clone, Copy)]
struct State<'c> {
    /// Sums of the second product.
    results: Val<'c>,
    /// The weights of the block before, whose product is not issued yet.
    weights: Val<'c>,
    /// The greatest score of each row.
    maximum: Val<'c>,
    /// The sum of each row's weights in parts, one for each of [`LANE_COLUMNS`] columns: lanes add them up at the end.
    sum: Val<'c>,
    /// The slot and the stage of the values of the block before.
    slot: Val<'c>,
    stage: Val<'c>,
}

impl<'c> State<'c> {
    fn values(self) -> [Val<'c>; 6] {
        [
            self.results,
            self.weights,
            self.maximum,
            self.sum,
            self.slot,
            self.stage,
        ]
    }

    fn of(values: &[Val<'c>]) -> Option<Self> {
        let &[results, weights, maximum, sum, slot, stage] = values else {
            return None;
        };
        Some(Self {
            results,
            weights,
            maximum,
            sum,
            slot,
            stage,
        })
    }
}

/// Emits the kernel's body, tiles by problem or long ones first.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn emit<'c>(
    kernel: &Kernel<'c>,
    attention: &Attention<'c>,
    config: Config,
    by_problem: bool,
    tensors: &Tensors,
    arguments: &Arguments<'c>,
) -> PassResult<'c> {
    let code = kernel.code;
    let (rows, element) = (config.rows(), attention.element);
    let failed = |error| layout_error(code.builder.location, error);
    let tile = |columns| -> PassResult<'c, Registers> {
        let layout = accumulators(config.consumers, columns).map_err(failed)?;
        registers(code, [rows, columns], layout)
    };
    let (scores, results) = (tile(config.keys)?, tile(attention.extents.columns)?);
    let lanes = scores.part(0, LANE_COLUMNS).map_err(failed)?;
    let inputs = tensors.inputs.iter().zip(&arguments.inputs);
    let inputs = inputs.map(|(strides, argument)| Input::new(code, strides, *argument));
    let parts = Parts {
        attention,
        config,
        tiles: Tiles::new(attention, config, by_problem),
        scores: Scores {
            attention,
            registers: &scores,
            inputs: inputs.collect::<PassResult<_>>()?,
        },
        lanes: &lanes,
        results: &results,
        queries: Ring::new(code, config.query_stages, [rows, attention.depth], element)?,
        keys: Ring::new(code, config.stages, [config.keys, attention.depth], element)?,
        values: Ring::new(
            code,
            config.stages,
            [config.keys, attention.extents.columns],
            element,
        )?,
        views: [
            tensors.queries.view(code, arguments.queries)?,
            tensors.keys.view(code, arguments.keys)?,
            tensors.values.view(code, arguments.values)?,
            tensors.result.view(code, arguments.result)?,
        ],
        f32: code.builder.r#type(|context| Type::float32(context)),
    };
    parts.run(code)
}

impl<'c> Parts<'_, 'c> {
    /// Puts producer and consumers in their warps.
    fn run(&self, code: Code<'c>) -> PassResult<'c> {
        let [producer, consumer] = self.config.registers();
        let tiles = &self.tiles;
        code.scope(Level::Warpgroup, [0, 1], Some(producer), |code| {
            code.scope(Level::Warp, [0, 1], None, |code| {
                tiles.visit(code, |code, tile| self.produce(code, tile))
            })
        })?;
        let consumers = [1, 1 + self.config.consumers];
        code.scope(Level::Warpgroup, consumers, Some(consumer), |code| {
            tiles.visit(code, |code, tile| self.consume(code, tile))
        })
    }

    /// Brings the queries of a tile, and its keys and values block by block.
    fn produce(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let [queries, keys, values, _] = &self.views;
        let (zero, one) = (code.index(0)?, code.index(1)?);
        let Blocks { top, rest, .. } = self.tiles.blocks(code, tile)?;
        let bring = |code: Code<'c>, view: &View<'c>, ring: &Ring<'c>, block: Val<'c>| {
            let (slot, stage) = code.acquire(ring.pipeline)?;
            let first = code.times(block, self.config.keys)?;
            let from = view.boxed(code, tile.batch, [first, zero], ring.shape)?;
            code.copy_signal(from, ring.stage(code, stage)?, slot, false)?;
            code.commit_slot(ring.pipeline, slot)
        };
        bring(code, keys, &self.keys, top)?;
        let (slot, stage) = code.acquire(self.queries.pipeline)?;
        let from = queries.boxed(code, tile.batch, [tile.row, zero], self.queries.shape)?;
        code.copy_signal(from, self.queries.stage(code, stage)?, slot, false)?;
        code.commit_slot(self.queries.pipeline, slot)?;
        code.for_each(rest, 1, &[], |code, number, _| {
            let above = code.sub(top, number)?;
            bring(code, keys, &self.keys, code.sub(above, one)?)?;
            bring(code, values, &self.values, above)?;
            Ok(Vec::new())
        })?;
        bring(code, values, &self.values, code.sub(top, rest)?)
    }

    /// Forms the results of a tile, and stores them.
    fn consume(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let lost = || layout_error(code.builder.location, "the loop carries its state");
        let blocks = self.tiles.blocks(code, tile)?;
        let (slot, stage) = code.wait_slot(self.queries.pipeline)?;
        let own = Own {
            tile,
            queries: self.queries.stage(code, stage)?,
        };
        let mut state = self.first(code, own, blocks.top)?;
        let mut above = blocks.top;
        for _ in 0..blocks.peeled {
            above = code.sub(above, code.index(1)?)?;
            state = self.next(code, own, above, Hidden::Masked, state)?;
        }
        for (run, hidden) in
            blocks
                .runs
                .into_iter()
                .zip([Hidden::Masked, Hidden::None, Hidden::Masked])
        {
            let Some(count) = run else { continue };
            let last = code.for_each(count, 1, &state.values(), |code, number, carried| {
                let state = State::of(carried).ok_or_else(lost)?;
                let block = code.sub(code.sub(above, number)?, code.index(1)?)?;
                let next = self.next(code, own, block, hidden, state)?;
                Ok(next.values().to_vec())
            })?;
            state = State::of(&last).ok_or_else(lost)?;
            above = code.sub(above, count)?;
        }
        code.release_slot(self.queries.pipeline, slot)?;
        let results = self.accumulate(code, state)?;
        let results = code.wait_products(results, 0)?;
        code.release_slot(self.values.pipeline, state.slot)?;
        self.store(code, tile, results, state.sum)
    }

    fn block(&self, code: Code<'c>, tile: Tile<'c>, number: Val<'c>) -> PassResult<'c, Block<'c>> {
        Ok(Block {
            batch: tile.batch,
            row: tile.row,
            key: code.times(number, self.config.keys)?,
        })
    }

    fn of_rows(&self, code: Code<'c>) -> PassResult<'c, Type<'c>> {
        self.scores.registers.r#type(code, Kind::Row, self.f32)
    }

    /// Issues the scores of the next block of keys: those, and the block's slot.
    fn issue(&self, code: Code<'c>, own: Own<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let (slot, stage) = code.wait_slot(self.keys.pipeline)?;
        let keys = self.keys.stage(code, stage)?;
        let sums = self.scores.registers.r#type(code, Kind::Full, self.f32)?;
        Ok([
            code.gemm_async([own.queries, keys], None, sums, [false, true])?,
            slot,
        ])
    }

    /// The last block alone, without the keys behind the last one.
    fn first(&self, code: Code<'c>, own: Own<'c>, number: Val<'c>) -> PassResult<'c, State<'c>> {
        let block = self.block(code, own.tile, number)?;
        let hidden = match self.attention.extents.keys % self.config.keys {
            0 => Hidden::Masked,
            _ => Hidden::Last,
        };
        let zero = code.scalar(self.f32, Number::Of(0))?;
        let results = code.fill(zero, self.results.r#type(code, Kind::Full, self.f32)?)?;
        let inputs = self.scores.load(code, block)?;
        let [issued, slot] = self.issue(code, own)?;
        let products = code.wait_products(issued, 0)?;
        code.release_slot(self.keys.pipeline, slot)?;
        let scores = self.scores.of(code, products, &inputs, block, hidden)?;
        let maximum = code.reduce(Combiner::Max, scores, 1, self.of_rows(code)?)?;
        let shown = self.shown(code, maximum, hidden)?;
        let exponentials = self.exponentials(code, scores, shown)?;
        let sum = self.add(code, exponentials, None)?;
        let narrow = self
            .scores
            .registers
            .r#type(code, Kind::Full, self.attention.element)?;
        let weights = code.cast(exponentials, narrow)?;
        let (slot, stage) = code.wait_slot(self.values.pipeline)?;
        Ok(State {
            results,
            weights,
            maximum,
            sum,
            slot,
            stage,
        })
    }

    /// A block: its scores and the second product of the block before are issued together.
    fn next(
        &self,
        code: Code<'c>,
        own: Own<'c>,
        number: Val<'c>,
        hidden: Hidden,
        state: State<'c>,
    ) -> PassResult<'c, State<'c>> {
        let block = self.block(code, own.tile, number)?;
        let inputs = self.scores.load(code, block)?;
        let [issued, slot] = self.issue(code, own)?;
        let product = self.accumulate(code, state)?;
        let products = code.wait_products(issued, 1)?;
        code.release_slot(self.keys.pipeline, slot)?;
        let scores = self.scores.of(code, products, &inputs, block, hidden)?;
        let rows = self.of_rows(code)?;
        let own = code.reduce(Combiner::Max, scores, 1, rows)?;
        let maximum = code.map(&[state.maximum, own], rows, |code, arguments| {
            code.builder
                .value("arith.maxnumf", arguments, self.f32, &[])
        })?;
        let shown = self.shown(code, maximum, hidden)?;
        let exponentials = self.exponentials(code, scores, shown)?;
        let factor = code.map(&[state.maximum, shown], rows, |code, arguments| {
            self.power(code, arguments)
        })?;
        let sum = self.add(code, exponentials, Some((state.sum, factor)))?;
        // The wait for the next values stands here because ptxas moves the wait for the product, which is next, above the
        // exponentials else: a loop of its own ends a basic block.
        let (next, stage) = code.wait_slot(self.values.pipeline)?;
        let types = [product.r#type(), exponentials.r#type()];
        let done =
            code.builder
                .operation(ops::WAIT, &[product, exponentials], &types, &[], Vec::new())?;
        let &[results, exponentials] = value::results(done).as_slice() else {
            return Err(layout_error(
                code.builder.location,
                "a wait gives what it waits for",
            ));
        };
        code.release_slot(self.values.pipeline, state.slot)?;
        let weights = code.cast(exponentials, state.weights.r#type())?;
        let results = self.times(code, results, factor)?;
        Ok(State {
            results,
            weights,
            maximum,
            sum,
            slot: next,
            stage,
        })
    }

    /// The maximum of each row as exponents take it: 0 where all keys so far are hidden, so that their weights are 0.
    fn shown(&self, code: Code<'c>, maximum: Val<'c>, hidden: Hidden) -> PassResult<'c, Val<'c>> {
        if !self.scores.hides(hidden) {
            return Ok(maximum);
        }
        code.map(&[maximum], maximum.r#type(), |code, arguments| {
            let none = code.scalar(self.f32, Number::Least)?;
            self.zero_where(code, [arguments[0], none], arguments[0])
        })
    }

    /// A value, or 0 where two others are equal.
    fn zero_where(
        &self,
        code: Code<'c>,
        equal: [Val<'c>; 2],
        value: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let builder = code.builder;
        let zero = code.scalar(self.f32, Number::Of(0))?;
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        let predicate = [("predicate", builder.parsed("1 : i64")?)];
        let equal = builder.value("arith.cmpf", &equal, bit, &predicate)?;
        builder.value("arith.select", &[equal, zero, value], self.f32, &[])
    }

    /// Results times a factor of each row.
    fn times(&self, code: Code<'c>, results: Val<'c>, factor: Val<'c>) -> PassResult<'c, Val<'c>> {
        let wide = code.broadcast(factor, 1, results.r#type())?;
        code.map(&[results, wide], results.r#type(), |code, arguments| {
            code.builder.value("arith.mulf", arguments, self.f32, &[])
        })
    }

    /// Issues the second product of the block before.
    fn accumulate(&self, code: Code<'c>, state: State<'c>) -> PassResult<'c, Val<'c>> {
        let values = self.values.stage(code, state.stage)?;
        let sums = state.results.r#type();
        code.gemm_async(
            [state.weights, values],
            Some(state.results),
            sums,
            [false, false],
        )
    }

    /// A block's weights in parts of the sums of rows, and sums so far times a factor of each row: no lane waits for another.
    fn add(
        &self,
        code: Code<'c>,
        exponentials: Val<'c>,
        before: Option<(Val<'c>, Val<'c>)>,
    ) -> PassResult<'c, Val<'c>> {
        let r#type = self.lanes.r#type(code, Kind::Full, self.f32)?;
        let mut parts = Vec::new();
        for part in 0..self.config.keys / LANE_COLUMNS {
            let origin = [0, part * LANE_COLUMNS];
            parts.push(code.extract_slice(exponentials, &origin, r#type)?);
        }
        if let Some((sum, factor)) = before {
            parts.extend([sum, code.broadcast(factor, 1, r#type)?]);
        }
        code.map(&parts, r#type, |code, arguments| {
            let builder = code.builder;
            let (own, before) = match (arguments, before) {
                ([own @ .., sum, factor], Some(_)) => (own, Some([*sum, *factor])),
                _ => (arguments, None),
            };
            let lost = || layout_error(builder.location, "a block has columns");
            let (&first, rest) = own.split_first().ok_or_else(lost)?;
            let add = |a, b| builder.value("arith.addf", &[a, b], self.f32, &[]);
            let own = rest.iter().try_fold(first, |sum, part| add(sum, *part))?;
            match before {
                Some([sum, factor]) => {
                    builder.value("math.fma", &[sum, factor, own], self.f32, &[])
                }
                None => Ok(own),
            }
        })
    }

    /// `exp(slope * (score - maximum))` of a block.
    fn exponentials(
        &self,
        code: Code<'c>,
        scores: Val<'c>,
        maximum: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let wide = code.broadcast(maximum, 1, scores.r#type())?;
        code.map(&[scores, wide], scores.r#type(), |code, arguments| {
            self.power(code, arguments)
        })
    }

    /// `exp(slope * (x - m))`, as a power of two.
    fn power(&self, code: Code<'c>, arguments: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let &[x, m] = arguments else {
            return Err(layout_error(
                code.builder.location,
                "a power has two arguments",
            ));
        };
        let builder = code.builder;
        let slope =
            builder.constant(builder.float(self.f32, self.attention.weights.slope * LOG2_E))?;
        let scaled = builder.value("arith.mulf", &[m, slope], self.f32, &[])?;
        let negated = builder.value("arith.negf", &[scaled], self.f32, &[])?;
        let exponent = builder.value("math.fma", &[x, slope, negated], self.f32, &[])?;
        let fast = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
        builder.value("math.exp2", &[exponent], self.f32, &fast)
    }

    /// Divides the results by the sums of their weights, and stores them.
    fn store(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        results: Val<'c>,
        sum: Val<'c>,
    ) -> PassResult<'c> {
        let sum = code.reduce(Combiner::Add, sum, 1, self.of_rows(code)?)?;
        let factor = code.map(&[sum], sum.r#type(), |code, arguments| {
            self.factor(code, arguments[0])
        })?;
        let scaled = self.times(code, results, factor)?;
        let narrow = code.cast(
            scaled,
            self.results
                .r#type(code, Kind::Full, self.attention.element)?,
        )?;
        let zero = code.index(0)?;
        let to = self.views[3].boxed(code, tile.batch, [tile.row, zero], self.results.shape)?;
        code.store(narrow, to)
    }

    /// What a row's results are multiplied by.
    fn factor(&self, code: Code<'c>, sum: Val<'c>) -> PassResult<'c, Val<'c>> {
        let builder = code.builder;
        let weights = &self.attention.weights;
        let scale = builder.constant(builder.float(self.f32, weights.scale))?;
        if !weights.normalized {
            return Ok(scale);
        }
        let factor = builder.value("arith.divf", &[scale, sum], self.f32, &[])?;
        if !weights.empty_is_zero {
            return Ok(factor);
        }
        // The sum of a row all of whose keys are hidden is 0, and that of no other.
        let zero = code.scalar(self.f32, Number::Of(0))?;
        self.zero_where(code, [sum, zero], factor)
    }
}
