//! A block of queries in the kernel of gradients: what its consumers form of it.

use super::super::score::Block;
use super::config::ROWS;
use super::kernel::{Part, Parts, Tile};
use super::scored;
use crate::planner::problem::count;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// The keys and values of a tile as operands: in shared memory, or in registers.
#[derive(Clone, Copy)]
pub(super) struct Owned<'c> {
    pub keys: Val<'c>,
    pub values: Val<'c>,
}

/// What the loops over queries carry.
#[derive(Clone, Copy)]
pub(super) struct State<'c> {
    pub of_keys: Val<'c>,
    pub of_values: Val<'c>,
    /// The block before, whose product for dQ is still to be issued: no consumer waits then for the other's gradients of scores, and tensor
    /// cores work while dQ leaves.
    pub behind: Behind<'c>,
}

/// A block whose gradients of scores are in a place of shared memory.
#[derive(Clone, Copy)]
pub(super) struct Behind<'c> {
    batch: Val<'c>,
    row: Val<'c>,
    place: Val<'c>,
}

/// Where a block of queries is.
#[derive(Clone, Copy)]
pub(super) struct At<'c> {
    pub tile: Tile<'c>,
    pub own: scored::Own<'c>,
    pub row: Val<'c>,
    /// Whether some of its keys are hidden.
    pub masked: bool,
}

impl<'c> At<'c> {
    pub(super) fn block(self) -> Block<'c> {
        Block {
            batch: self.own.batch,
            row: self.row,
            key: self.tile.key,
            lengths: self.own.lengths,
            values: self.own.values,
        }
    }
}

/// A block of queries: its weights, and where what they are formed of is.
struct Own<'c> {
    slot: Val<'c>,
    queries: Val<'c>,
    gradient_slot: Val<'c>,
    gradient_stage: Val<'c>,
    gradient: Val<'c>,
    /// Products of values and the result's gradients, which are under way.
    of_gradient: Val<'c>,
    /// The first part of dQ of the block before, which is under way, too.
    first_queries: Option<Val<'c>>,
    weights: Val<'c>,
    /// Weights as the gradients of scores have them, where those are more than products.
    grown: Option<Val<'c>>,
}

impl<'c> State<'c> {
    /// Its values, as a loop carries them.
    pub(super) fn values(self) -> [Val<'c>; 5] {
        let Behind { batch, row, place } = self.behind;
        [self.of_keys, self.of_values, batch, row, place]
    }

    /// What a loop has carried.
    pub(super) fn of(values: &[Val<'c>]) -> Option<Self> {
        let &[of_keys, of_values, batch, row, place] = values else {
            return None;
        };
        Some(Self {
            of_keys,
            of_values,
            behind: Behind { batch, row, place },
        })
    }
}

impl<'c> Parts<'_, 'c> {
    /// A value of each query, as what all keys have.
    fn wide(&self, code: Code<'c>, values: Val<'c>) -> PassResult<'c, Val<'c>> {
        let own = code.load(values, self.scores.r#type(code, Kind::Column, self.f32)?)?;
        code.broadcast(own, 0, self.scores.r#type(code, Kind::Full, self.f32)?)
    }

    /// A block of queries. Its product for dQ is issued behind the next block's scores.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn step(
        &self,
        code: Code<'c>,
        at: At<'c>,
        owned: Owned<'c>,
        state: State<'c>,
    ) -> PassResult<'c, State<'c>> {
        let own = self.scored(code, at, owned, state.behind)?;
        let next = match self.weights {
            None => self.by_keys(code, at, &own, state)?,
            Some(weights) => self.by_columns(code, (at, weights), &own, state)?,
        };
        code.release_slot(self.queries.ring.pipeline, own.slot)?;
        Ok(next)
    }

    /// Issues the first two products of a block, between them the first part of dQ of the block before, where it has two, and forms weights.
    fn scored(
        &self,
        code: Code<'c>,
        at: At<'c>,
        owned: Owned<'c>,
        before: Behind<'c>,
    ) -> PassResult<'c, Own<'c>> {
        let sums = self.scores.r#type(code, Kind::Full, self.f32)?;
        let (slot, stage) = code.wait_slot(self.queries.ring.pipeline)?;
        let queries = self.queries.ring.stage(code, stage)?;
        let issued = code.gemm_async([owned.keys, queries], None, sums, [false, true])?;
        let first_queries = match self.of_queries.as_slice() {
            [first, _] => Some(self.issue_queries(code, before, first)?),
            _ => None,
        };
        let (gradient_slot, gradient_stage) = code.wait_slot(self.gradients.ring.pipeline)?;
        let gradient = self.gradients.ring.stage(code, gradient_stage)?;
        let of_gradient = code.gemm_async([owned.values, gradient], None, sums, [false, true])?;
        let load = |code| -> PassResult<'c, _> {
            let logs = self.wide(code, self.queries.values(code, stage)?)?;
            Ok((logs, self.data.scores.load(code, at.block())?))
        };
        // What is loaded before the wait is at hand behind it, where there are registers for it meanwhile.
        let early = self.is_early().then(|| load(code)).transpose()?;
        let pending = 1 + i64::from(first_queries.is_some());
        let products = code.wait_products(issued, pending)?;
        let (logs, inputs) = early.map_or_else(|| load(code), Ok)?;
        let weights = self.weights(code, at, [products, logs], &inputs)?;
        Ok(Own {
            slot,
            queries,
            gradient_slot,
            gradient_stage,
            gradient,
            of_gradient,
            first_queries,
            weights,
            grown: self.grown(code, at, (weights, products, logs), &inputs)?,
        })
    }

    /// Whether what scores read has registers while products are under way.
    fn is_early(&self) -> bool {
        self.config.has_room(self.problem)
    }

    /// What consumers form of 64 keys each: weights and gradients of scores are operands in registers.
    fn by_keys(
        &self,
        code: Code<'c>,
        at: At<'c>,
        own: &Own<'c>,
        state: State<'c>,
    ) -> PassResult<'c, State<'c>> {
        let narrow = self.narrow(code)?;
        let of_rows = |code| self.wide(code, self.gradients.values(code, own.gradient_stage)?);
        let (weights, of_scores) = match own.grown {
            // Weights are rounded behind the wait: both forms at a time take more registers than there are.
            None if self.is_early() => {
                let of_rows = of_rows(code)?;
                let (of_gradient, weights) =
                    code.wait_products_with(own.of_gradient, own.weights, 0)?;
                let of_scores = self.of_scores(code, [weights, of_gradient, of_rows])?;
                (code.cast(weights, narrow)?, of_scores)
            }
            // Measured: what scores read in 16 bits has ptxas serialize products if weights are rounded behind it there.
            grown => {
                let narrowed = code.cast(own.weights, narrow)?;
                let weights = grown.unwrap_or(own.weights);
                let (of_gradient, weights) =
                    code.wait_products_with(own.of_gradient, weights, 0)?;
                let of_scores = self.of_scores(code, [weights, of_gradient, of_rows(code)?])?;
                (narrowed, of_scores)
            }
        };
        let of_scores = code.cast(of_scores, narrow)?;
        code.barrier_async()?;
        let part = self.last_part(code)?;
        let issued_queries = self.issue_queries(code, state.behind, part)?;
        let behind = self.behind(code, at, state)?;
        let issued_values = Self::issue(code, [weights, own.gradient], state.of_values)?;
        code.store(of_scores, self.place(code, self.of_scores, behind.place)?)?;
        let issued_keys = Self::issue(code, [of_scores, own.queries], state.of_keys)?;
        let of_values = if self.config.gradient_stages == 1 {
            // The next block's copy waits for this place: it is released before dQ leaves.
            let (of_values, of_queries) =
                code.wait_products_with(issued_values, issued_queries, 1)?;
            code.release_slot(self.gradients.ring.pipeline, own.gradient_slot)?;
            self.add_queries(code, of_queries, state.behind, part)?;
            of_values
        } else {
            let of_queries = code.wait_products(issued_queries, 2)?;
            self.add_queries(code, of_queries, state.behind, part)?;
            let of_values = code.wait_products(issued_values, 1)?;
            code.release_slot(self.gradients.ring.pipeline, own.gradient_slot)?;
            of_values
        };
        Ok(State {
            of_keys: code.wait_products(issued_keys, 0)?,
            of_values,
            behind,
        })
    }

    /// What consumers form together of 64 keys, half of the columns each: weights and gradients of scores go through shared memory. dV is
    /// issued as soon as there are weights, so that the result's gradients can be brought early where they have one stage. dQ of the block
    /// before leaves behind the last product, or in two parts, of which the first one leaves before gradients of scores are formed: while a
    /// part leaves, tensor cores have work.
    fn by_columns(
        &self,
        code: Code<'c>,
        (at, all): (At<'c>, Val<'c>),
        own: &Own<'c>,
        state: State<'c>,
    ) -> PassResult<'c, State<'c>> {
        let narrow = self.narrow(code)?;
        let behind = self.behind(code, at, state)?;
        let weights = self.place(code, all, behind.place)?;
        code.store(code.cast(own.weights, narrow)?, weights)?;
        code.barrier_async()?;
        let issued_values = Self::issue(code, [weights, own.gradient], state.of_values)?;
        let of_rows = self.wide(code, self.gradients.values(code, own.gradient_stage)?)?;
        let formed = own.grown.unwrap_or(own.weights);
        if let (Some(first), Some(part)) = (own.first_queries, self.of_queries.first()) {
            let of_queries = code.wait_products(first, 2)?;
            self.add_queries(code, of_queries, state.behind, part)?;
        }
        let (of_gradient, formed) = code.wait_products_with(own.of_gradient, formed, 1)?;
        let of_scores = self.of_scores(code, [formed, of_gradient, of_rows])?;
        let of_scores = code.cast(of_scores, narrow)?;
        let issued_queries = self.issue_queries(code, state.behind, self.last_part(code)?)?;
        let shared = self.place(code, self.of_scores, behind.place)?;
        code.store(of_scores, shared)?;
        code.barrier_async()?;
        let issued_keys = Self::issue(code, [shared, own.queries], state.of_keys)?;
        let (of_values, of_queries) = code.wait_products_with(issued_values, issued_queries, 2)?;
        code.release_slot(self.gradients.ring.pipeline, own.gradient_slot)?;
        let of_queries = code.wait_products(of_queries, 1)?;
        self.add_queries(code, of_queries, state.behind, self.last_part(code)?)?;
        Ok(State {
            of_keys: code.wait_products(issued_keys, 0)?,
            of_values,
            behind,
        })
    }

    /// The part of dQ that leaves last.
    fn last_part(&self, code: Code<'c>) -> PassResult<'c, &Part<'c>> {
        let lost = || layout_error(code.builder.location, "dQ has a part");
        self.of_queries.last().ok_or_else(lost)
    }

    /// The place of a block's gradients of scores, and where its dQ goes.
    fn behind(&self, code: Code<'c>, at: At<'c>, state: State<'c>) -> PassResult<'c, Behind<'c>> {
        let stages = code.index(self.config.stages)?;
        Ok(Behind {
            batch: at.own.batch,
            row: at.row,
            place: code.rem(code.add(state.behind.place, code.index(1)?)?, stages)?,
        })
    }

    /// What stands for the block before the first one: gradients of scores that are 0.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn nothing_behind(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        block: Val<'c>,
    ) -> PassResult<'c, Behind<'c>> {
        let last = code.index(count(self.problem.rows, ROWS) - 1)?;
        let place = code.index(0)?;
        let zero = code.scalar(self.backward.forward.element, Number::Of(0))?;
        let zeros = code.fill(zero, self.narrow(code)?)?;
        // The last product of the tile before has read this place.
        code.barrier_async()?;
        code.store(zeros, self.place(code, self.of_scores, place)?)?;
        if self.of_queries.len() > 1 {
            // The first part's product is issued before the consumers meet in the first block.
            code.barrier_async()?;
        }
        Ok(Behind {
            batch: tile.batch,
            row: code.times(code.min(block, last)?, ROWS)?,
            place,
        })
    }

    /// Adds up dQ of the last block.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn last(&self, code: Code<'c>, behind: Behind<'c>) -> PassResult<'c> {
        code.barrier_async()?;
        for part in &self.of_queries {
            let issued = self.issue_queries(code, behind, part)?;
            let of_queries = code.wait_products(issued, 0)?;
            self.add_queries(code, of_queries, behind, part)?;
        }
        Ok(())
    }

    /// Keys by queries as operands.
    fn narrow(&self, code: Code<'c>) -> PassResult<'c, Type<'c>> {
        self.scores
            .r#type(code, Kind::Full, self.backward.forward.element)
    }

    /// One of the places of weights, or of gradients of scores, in shared memory.
    fn place(&self, code: Code<'c>, all: Val<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(all, &[at, zero, zero], self.weight)
    }

    /// Issues a product that is added to the sums of dV or dK.
    fn issue(code: Code<'c>, factors: [Val<'c>; 2], sums: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.gemm_async(factors, Some(sums), sums.r#type(), [false; 2])
    }

    /// Issues the product of keys and a block's gradients of scores, which all consumers have stored: they meet before. What they read of
    /// the places that are stored to next has been read then, too.
    fn issue_queries(
        &self,
        code: Code<'c>,
        behind: Behind<'c>,
        part: &Part<'c>,
    ) -> PassResult<'c, Val<'c>> {
        // What loops carry may be any number to the compiler, and `wgmma` takes what is known to lie inside.
        let place = code.rem(behind.place, code.index(self.config.stages)?)?;
        let of_scores = self.place(code, self.of_scores, place)?;
        let origin = [code.index(0)?, code.index(part.first)?];
        let keys = code.slice(self.keys, &origin, part.keys)?;
        let sums = part.sums.r#type(code, Kind::Full, self.f32)?;
        code.gemm_async([of_scores, keys], None, sums, [true, false])
    }

    /// Adds a part of dQ of a block to its sums.
    fn add_queries(
        &self,
        code: Code<'c>,
        of_queries: Val<'c>,
        Behind { batch, row, .. }: Behind<'c>,
        part: &Part<'c>,
    ) -> PassResult<'c> {
        let at = [row, code.index(part.first)?];
        let view = &self.views.of_queries;
        code.accumulate(of_queries, view.boxed(code, batch, at, part.sums.shape)?)
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
}
