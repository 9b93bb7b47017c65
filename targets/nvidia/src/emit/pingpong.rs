//! The ping-pong schedule: thread groups that take turns at the tiles of a loop, and the stages of rings that they leave to each other.
//!
//! A group takes its tile's stages after the group before has taken its own: a barrier of memory tells the phases of a
//! stage apart only for those who are at most one behind (PTX ISA 9.7.13.15.16, `mbarrier.test_wait`). Groups hand
//! the turn on at named barriers.

use super::emitter::Emitter;
use super::order::{Order, after};
use crate::state::rings::{RingKey, Side};
use crate::state::threads::is_pingpong;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::Int;
use axe_passes::ir::Op;
use axe_passes::ir::value::{identity, name, operands};
use axe_passes::ir::walk::{blocks, nested, operations};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, RegionLike};

/// The turns of the group that executes.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'c> {
    /// Groups that take turns.
    pub count: i64,
    /// The number of this thread's group.
    pub number: Int<'c>,
}

impl<'c> Emitter<'c> {
    /// The turns that a loop over tiles has.
    pub(crate) fn turns(&self, for_tiles: Op<'c>) -> PassResult<'c, Turns<'c>> {
        if !is_pingpong(for_tiles) {
            return Ok(Turns {
                count: 1,
                number: Int::ZERO,
            });
        }
        Ok(Turns {
            count: self.group.count(),
            number: self.group_number()?,
        })
    }

    /// The last group lets the first one begin.
    pub(crate) fn begin_turns(&mut self, turns: Turns<'c>) -> PassResult<'c> {
        self.hand_on(&self.tile_order(turns), &[(turns.count - 1, 0)])
    }

    /// The order of the groups that share the tiles.
    fn tile_order(&self, turns: Turns<'c>) -> Order<'c> {
        Order {
            members: self.group.clone(),
            number: turns.number,
        }
    }

    /// The body of a loop over tiles. A group's turn lasts from before the first operation that takes stages until after
    /// the last.
    pub(crate) fn tile(&mut self, body: BlockRef<'c, 'c>, turns: Turns<'c>) -> PassResult<'c> {
        let mut operations = operations(body);
        operations.pop();
        let takes = |op: &Op<'c>| takes_stages(*op);
        let (first, last) = match turns.count {
            1 => (None, None),
            _ => (
                operations.iter().position(takes),
                operations.iter().rposition(takes),
            ),
        };
        for (at, op) in operations.into_iter().enumerate() {
            if first == Some(at) {
                self.await_turn(&self.tile_order(turns))?;
            }
            self.operation(op)?;
            if last == Some(at) {
                self.hand_on(&self.tile_order(turns), &after(turns.count))?;
            }
        }
        Ok(())
    }

    /// From the group that would have the next tile on, each waits for its turn too and hands it on, until the last group has
    /// it: nobody is left at a barrier, and where that group lets the first one begin another loop, the first one has left
    /// this one. It arrived twice for one wait otherwise.
    pub(crate) fn end_turns(&mut self, turns: Turns<'c>, tiles: Int<'c>) -> PassResult<'c> {
        let ints = self.ints();
        let next = ints.rem(tiles, turns.count)?;
        let waits = ints.less(ints.sub(next, Int::Known(1))?, turns.number)?;
        self.when(waits, &[], |emitter| {
            let order = emitter.tile_order(turns);
            emitter.await_turn(&order)?;
            let mut pairs = after(turns.count);
            pairs.pop();
            emitter.hand_on(&order, &pairs)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// The stages of a ring's side that a tile of the loop takes: as many for each tile, so that a group knows how
    /// many the others take.
    pub(crate) fn stages_of_a_tile(
        &self,
        for_tiles: Op<'c>,
        (ring, side): RingKey,
    ) -> PassResult<'c, i64> {
        let take = match side {
            Side::Producer => ops::PIPELINE_ACQUIRE,
            Side::Consumer => ops::PIPELINE_WAIT,
        };
        let count = Count {
            emitter: self,
            ring,
            take,
        };
        let mut stages = 0;
        for block in blocks(for_tiles) {
            stages += count.block(block)?;
        }
        Ok(stages)
    }
}

/// Whether an operation or one below it takes a stage of a ring.
fn takes_stages(op: Op<'_>) -> bool {
    let takes = |op: Op<'_>| {
        matches!(
            name(op).as_str(),
            ops::PIPELINE_ACQUIRE | ops::PIPELINE_WAIT
        )
    };
    takes(op) || nested(op, &|_| true).into_iter().any(takes)
}

/// Counts the stages of a ring that operations take.
struct Count<'e, 'c> {
    emitter: &'e Emitter<'c>,
    ring: usize,
    take: &'static str,
}

impl<'c> Count<'_, 'c> {
    fn block(&self, block: BlockRef<'c, 'c>) -> PassResult<'c, i64> {
        operations(block)
            .into_iter()
            .try_fold(0_i64, |sum, op| Ok(sum.saturating_add(self.operation(op)?)))
    }

    fn operation(&self, op: Op<'c>) -> PassResult<'c, i64> {
        let own = || {
            operands(op)
                .first()
                .is_some_and(|ring| identity(*ring) == self.ring)
        };
        let inside = || {
            blocks(op)
                .into_iter()
                .try_fold(0, |sum: i64, block| Ok(sum + self.block(block)?))
        };
        let steady = |stages: i64, known: bool, what: &str| {
            match known || stages == 0 {
            true => Ok(stages),
            false => Err(self.emitter.error(format!(
                "{what} takes stages of a pipeline in a loop over tiles with pingpong: expected as many stages in each tile, known when compiling"
            ))),
        }
        };
        match name(op).as_str() {
            take if take == self.take => Ok(i64::from(own())),
            "scf.for" => {
                let stages = inside()?;
                let trips = self.emitter.trips(op);
                steady(stages, trips.is_some(), "a loop of unknown length")
                    .map(|stages| stages.saturating_mul(trips.unwrap_or(0)))
            }
            "scf.if" => {
                let mut arms = Vec::new();
                for region in op.regions() {
                    arms.push(match region.first_block() {
                        Some(block) => self.block(block)?,
                        None => 0,
                    });
                }
                let first = arms.first().copied().unwrap_or(0);
                let most = arms.iter().copied().max().unwrap_or(0);
                let equal = arms.iter().all(|arm| *arm == first);
                steady(most, equal, "one arm of a branch")
            }
            ops::SCOPE => {
                let whole = op.attribute("range").is_err();
                steady(inside()?, whole, "a part of the thread group")
            }
            ops::FOR_TILES => steady(inside()?, false, "another loop over tiles"),
            _ => Ok(0),
        }
    }
}
