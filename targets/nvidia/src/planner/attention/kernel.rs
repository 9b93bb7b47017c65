//! The kernel of attention (sm_90a), after FlashAttention-3 (arXiv 2407.08608): a warp brings queries, and keys and values in
//! blocks through two rings, from the last block to the first; warpgroups multiply, and keep the maximum of each row's scores,
//! the sum of its weights and its results in registers.
//!
//! The loop issues the scores of a block before the second product of the block before it, so that the tensor cores work while
//! exponentials are formed. examples/kernels/attention.mlir is such a kernel, written by hand.

use super::by_column::{self, Turned};
use super::carried::State;
use super::config::Config;
use super::fragments::{LANE_COLUMNS, accumulators, accumulators_of_bytes};
use super::lengths::Lengths;
use super::memory::{Ring, Strides, View};
use super::pages::Table as Pages;
use super::parts::Parts as Workspace;
use super::problem::padded_depth;
use super::row::{Rows, Scaling};
use super::score::{BY_ROW, Block, Hidden, Input, OfProblem, Scores};
use super::segments::Table;
use super::sizes::Sizes;
use super::tiles::{Blocks, Tile, Tiles};
use axe_dialect::{Combiner, Level, ops};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{Val, value};
use melior::ir::{Type, ValueLike};

/// How a kernel's tensors lie in memory.
pub(super) struct Tensors {
    pub queries: Strides,
    pub keys: Strides,
    pub values: Strides,
    /// How values of 8 bits are turned; `values` are then the turned ones.
    pub turned: Option<Turned>,
    pub inputs: Vec<Strides>,
    /// The result, and the logarithms of sums; none where the kernel does not store them itself.
    pub results: Option<Vec<Strides>>,
}

/// The kernel's arguments: queries, keys, values, what scores read, lengths, tables of pages, what labels leave, and what is stored.
pub(super) struct Arguments<'c> {
    pub queries: Val<'c>,
    pub keys: Val<'c>,
    pub values: Val<'c>,
    pub inputs: Vec<Val<'c>>,
    pub lengths: Vec<Val<'c>>,
    pub tables: Vec<Val<'c>>,
    /// What rows see by their labels.
    pub segments: Option<Val<'c>>,
    pub results: Vec<Val<'c>>,
    /// Extents and strides that are known at run time only.
    pub sizes: Sizes<'c>,
}

/// Where a tile goes.
enum Stored<'c> {
    /// To the result, and the logarithms of its sums to theirs.
    Results(Vec<View<'c>>),
    /// To a workspace: sums of products, then maxima and sums of weights.
    Parts(Box<[View<'c>; 2]>, Workspace),
}

/// A block of keys or values that is brought to a ring.
#[derive(Clone, Copy)]
pub(super) struct Brought<'a, 'c> {
    pub view: &'a View<'c>,
    pub ring: &'a Ring<'c>,
    pub block: Val<'c>,
}

/// What the warps work with.
pub(super) struct Parts<'a, 'c> {
    attention: &'a Attention<'c>,
    pub(super) config: Config,
    tiles: Tiles<'a, 'c>,
    scores: Scores<'a, 'c>,
    /// Columns of a block of scores, of which a lane has two beside each other.
    lanes: &'a Registers,
    /// A tile of results.
    results: &'a Registers,
    queries: Ring<'c>,
    keys: Ring<'c>,
    values: Ring<'c>,
    /// Whether values are turned: their keys are along rows of memory.
    by_column: bool,
    views: [View<'c>; 3],
    /// The pages of keys, and of values.
    tables: [Option<Pages<'a, 'c>>; 2],
    stored: Stored<'c>,
    f32: Type<'c>,
}

/// A tile of rows, and its queries in shared memory.
#[derive(Clone, Copy)]
struct Own<'c> {
    tile: Tile<'c>,
    queries: Val<'c>,
    /// What its problem has one value of.
    values: OfProblem<'c>,
}

/// Emits the kernel's body, tiles by problem or long ones first; to a workspace, where one is given.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn emit<'c>(
    kernel: &Kernel<'c>,
    attention: &Attention<'c>,
    (config, by_problem): (Config, bool),
    tensors: &Tensors,
    arguments: &Arguments<'c>,
    workspace: Option<Workspace>,
) -> PassResult<'c> {
    let code = kernel.code;
    let sizes = &arguments.sizes;
    let stored = stored(code, tensors, arguments, workspace)?;
    let (rows, element) = (config.rows(), attention.element);
    let failed = |error| layout_error(code.builder.location, error);
    let tile = |columns, layout: axe_layout::Result<Layout>| -> PassResult<'c, Registers> {
        registers(code, [rows, columns], layout.map_err(failed)?)
    };
    let (consumers, columns) = (config.consumers, config.columns);
    let depth = padded_depth(attention);
    let results = tile(columns, accumulators(consumers, columns))?;
    let of_scores = match tensors.turned {
        Some(_) => accumulators_of_bytes(consumers, config.keys),
        None => accumulators(consumers, config.keys),
    };
    let scores = tile(config.keys, of_scores)?;
    let lanes = scores.part(0, LANE_COLUMNS).map_err(failed)?;
    let block_of_values = match tensors.turned {
        Some(_) => [columns, config.keys],
        None => [config.keys, columns],
    };
    let inputs = tensors.inputs.iter().zip(&arguments.inputs);
    let inputs = inputs.map(|(strides, argument)| Input::new(code, strides, *argument, sizes));
    let parts = Parts {
        attention,
        config,
        tiles: Tiles::new(
            attention,
            config,
            by_problem,
            (
                Lengths::of(attention, &arguments.lengths, sizes),
                Table::of(attention, config.rows()).zip(arguments.segments),
            ),
            sizes,
        ),
        scores: Scores {
            attention,
            dims: BY_ROW,
            registers: &scores,
            inputs: inputs.collect::<PassResult<_>>()?,
            sizes,
        },
        lanes: &lanes,
        results: &results,
        queries: Ring::new(code, config.query_stages, [rows, depth], element)?,
        keys: Ring::new(code, config.stages, [config.keys, depth], element)?,
        values: Ring::new(code, config.stages, block_of_values, element)?,
        by_column: tensors.turned.is_some(),
        views: [
            tensors.queries.sized(code, arguments.queries, sizes)?,
            tensors.keys.sized(code, arguments.keys, sizes)?,
            tensors.values.sized(code, arguments.values, sizes)?,
        ],
        tables: Pages::of(attention, &arguments.tables, sizes),
        stored,
        f32: code.builder.r#type(|context| Type::float32(context)),
    };
    parts.run(code)
}

/// Where tiles go, of the kernel's last arguments.
fn stored<'c>(
    code: Code<'c>,
    tensors: &Tensors,
    arguments: &Arguments<'c>,
    workspace: Option<Workspace>,
) -> PassResult<'c, Stored<'c>> {
    let lost = || layout_error(code.builder.location, "a kernel has what it stores to");
    if let Some(workspace) = workspace {
        let &[results, states] = arguments.results.as_slice() else {
            return Err(lost());
        };
        let [of_results, of_states] = workspace.packed();
        let views = [
            of_results.sized(code, results, &arguments.sizes)?,
            of_states.sized(code, states, &arguments.sizes)?,
        ];
        return Ok(Stored::Parts(Box::new(views), workspace));
    }
    let strides = tensors.results.as_ref().ok_or_else(lost)?;
    let views = strides.iter().zip(&arguments.results);
    let views = views.map(|(strides, argument)| strides.sized(code, *argument, &arguments.sizes));
    Ok(Stored::Results(views.collect::<PassResult<_>>()?))
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
        let queries = &self.views[0];
        let (zero, one) = (code.index(0)?, code.index(1)?);
        let Blocks { top, rest, .. } = self.tiles.blocks(code, tile)?;
        let multicast = self.config.cluster > 1;
        let bring = |code: Code<'c>, (at, ring): (usize, &Ring<'c>), block: Val<'c>| {
            let view = &self.views[1 + at];
            if let Some(table) = &self.tables[at] {
                return self.bring_pages(code, tile, table, Brought { view, ring, block });
            }
            let (slot, stage) = code.acquire(ring.pipeline)?;
            let first = code.times(block, self.config.keys)?;
            let origin = match at == 1 && self.by_column {
                true => [zero, first],
                false => [first, zero],
            };
            let from = view.boxed(code, tile.batch, origin, ring.shape)?;
            code.copy_signal(from, ring.stage(code, stage)?, slot, multicast)?;
            code.commit_slot(ring.pipeline, slot)
        };
        let (keys, values) = ((0, &self.keys), (1, &self.values));
        bring(code, keys, top)?;
        let (slot, stage) = code.acquire(self.queries.pipeline)?;
        let from = queries.boxed(code, tile.batch, [tile.row, zero], self.queries.shape)?;
        code.copy_signal(from, self.queries.stage(code, stage)?, slot, false)?;
        code.commit_slot(self.queries.pipeline, slot)?;
        code.for_each(rest, 1, &[], |code, number, _| {
            let above = code.sub(top, number)?;
            bring(code, keys, code.sub(above, one)?)?;
            bring(code, values, above)?;
            Ok(Vec::new())
        })?;
        bring(code, values, code.sub(top, rest)?)
    }

    /// Forms the results of a tile, and stores them.
    fn consume(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c> {
        let lost = || layout_error(code.builder.location, "the loop carries its state");
        let blocks = self.tiles.blocks(code, tile)?;
        let (slot, stage) = code.wait_slot(self.queries.pipeline)?;
        let own = Own {
            tile,
            queries: self.queries.stage(code, stage)?,
            values: self.scores.values(code, tile.batch)?,
        };
        let mut state = self.first(code, own, blocks.top)?;
        let mut above = blocks.top;
        for _ in 0..blocks.peeled {
            above = code.sub(above, code.index(1)?)?;
            state = self.next(code, own, above, Hidden::MASKED, state)?;
        }
        for (run, hidden) in
            blocks
                .runs
                .into_iter()
                .zip([Hidden::MASKED, Hidden::NONE, Hidden::MASKED])
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
        let results = self.accumulate(code, self.scaled(code, state)?)?;
        let results = code.wait_products(results, 0)?;
        code.release_slot(self.values.pipeline, state.slot)?;
        let results = self.rows().times_values(code, results, own.values)?;
        self.store(code, tile, results, state)
    }

    fn rows(&self) -> Rows<'_, 'c> {
        Rows {
            attention: self.attention,
            f32: self.f32,
        }
    }

    fn block(&self, code: Code<'c>, own: Own<'c>, number: Val<'c>) -> PassResult<'c, Block<'c>> {
        let tile = own.tile;
        Ok(Block {
            batch: tile.batch,
            row: tile.row,
            key: code.times(number, self.config.keys)?,
            lengths: tile.lengths,
            values: own.values,
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
        let block = self.block(code, own, number)?;
        let hidden = match self.attention.extents.keys % self.config.keys {
            0 if !self.tiles.may_be_empty() => Hidden::MASKED,
            _ => Hidden::LAST,
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
        let one = code.scalar(self.f32, Number::Of(1))?;
        Ok(State {
            results,
            factor: code.fill(one, self.of_rows(code)?)?,
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
        let block = self.block(code, own, number)?;
        let inputs = self.scores.load(code, block)?;
        let [issued, slot] = self.issue(code, own)?;
        let product = self.accumulate(code, self.scaled(code, state)?)?;
        let products = code.wait_products(issued, 1)?;
        code.release_slot(self.keys.pipeline, slot)?;
        let scores = self.scores.of(code, products, &inputs, block, hidden)?;
        let rows = self.of_rows(code)?;
        let own = code.reduce(Combiner::Max, scores, 1, rows)?;
        let maximum = self.rows().maximum(code, state.maximum, own)?;
        let shown = self.shown(code, maximum, hidden)?;
        let exponentials = self.exponentials(code, scores, shown)?;
        let factor = self.rows().left(code, [state.maximum, maximum, shown])?;
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
        let results = match self.scaling() {
            Scaling::Behind => self.rows().rescaled(code, results, factor)?,
            Scaling::Between => results,
        };
        Ok(State {
            results,
            factor,
            weights,
            maximum,
            sum,
            slot: next,
            stage,
        })
    }

    /// The maximum of each row as exponents take it, where all of its keys so far may be hidden.
    fn shown(&self, code: Code<'c>, maximum: Val<'c>, hidden: Hidden) -> PassResult<'c, Val<'c>> {
        let empty = hidden == Hidden::LAST && self.tiles.may_be_empty();
        match self.scores.hides(hidden) || empty {
            true => self.rows().shown(code, maximum),
            false => Ok(maximum),
        }
    }

    fn scaling(&self) -> Scaling {
        let is_masked = !self.attention.visible.is_all();
        Scaling::of(self.attention.extents.columns, is_masked)
    }

    /// The results times what they are still to be multiplied by.
    fn scaled(&self, code: Code<'c>, state: State<'c>) -> PassResult<'c, State<'c>> {
        if self.scaling() == Scaling::Behind {
            return Ok(state);
        }
        let results = self.rows().rescaled(code, state.results, state.factor)?;
        Ok(State { results, ..state })
    }

    /// Issues the second product of the block before.
    fn accumulate(&self, code: Code<'c>, state: State<'c>) -> PassResult<'c, Val<'c>> {
        let values = match self.by_column {
            true => self
                .values
                .reordered(code, state.stage, &by_column::DIGITS)?,
            false => self.values.stage(code, state.stage)?,
        };
        let sums = state.results.r#type();
        code.gemm_async(
            [state.weights, values],
            Some(state.results),
            sums,
            [false, self.by_column],
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
        self.rows().weights(code, scores, wide)
    }

    /// Stores a tile: results divided by the sums of their weights, and the logarithms of those, or parts of all of it.
    fn store(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        results: Val<'c>,
        State { maximum, sum, .. }: State<'c>,
    ) -> PassResult<'c> {
        let rows = self.rows();
        let sum = rows.sum(code, sum, self.of_rows(code)?)?;
        let at = [tile.row, code.index(0)?];
        let shape = self.results.shape;
        let (results_to, sums_to) = match &self.stored {
            Stored::Parts(views, workspace) => {
                let [of_results, of_states] = views.as_ref();
                let split = tile.split.map_or_else(|| code.index(0), Ok)?;
                let problems = self.tiles.sizes.index(code, workspace.problems())?;
                let number = code.mul(split, problems)?;
                let part = code.add(number, tile.batch)?;
                code.store(results, of_results.boxed(code, part, at, shape)?)?;
                code.store(maximum, of_states.boxed(code, part, at, shape)?)?;
                let parts = self.tiles.sizes.index(code, workspace.parts())?;
                let sums = code.add(part, parts)?;
                return code.store(sum, of_states.boxed(code, sums, at, shape)?);
            }
            Stored::Results(views) => (views.first(), views.get(1)),
        };
        if let (Some(view), Some(own)) = (sums_to, &self.attention.sums) {
            let value = rows.log_sum(code, own.is, [maximum, sum])?;
            code.store(value, view.boxed(code, tile.batch, at, shape)?)?;
        }
        let Some(view) = results_to else {
            return Err(layout_error(code.builder.location, "a kernel has a result"));
        };
        let scaled = rows.times(code, results, rows.factor(code, sum)?)?;
        let element = self.attention.rounded;
        let narrow = code.cast(scaled, self.results.r#type(code, Kind::Full, element)?)?;
        code.store(narrow, view.boxed(code, tile.batch, at, shape)?)
    }
}
