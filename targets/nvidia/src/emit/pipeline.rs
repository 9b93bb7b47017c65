//! Rings of stages: an mbarrier for each stage that is full and one for each that is empty (PTX ISA
//! 9.7.13.15, "mbarrier").
//!
//! Each thread counts on its own how far it has come around a ring it fills and a ring it empties: a stage
//! and the parity of its phase, which loops and branches carry like any other value.

use super::assembly::Assembly;
use super::emitter::Emitter;
use super::progress::{Cursor, Ring};
use super::value::Bound;
use crate::state::rings::{
    BARRIER_BYTES, RingCounts, RingKey, Side, committed_bytes, signalled_bytes,
};
use crate::state::threads::WARP_THREADS;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::Int;
use axe_passes::ir::value::{defined_by, identity, operands, results};
use axe_passes::ir::{Op, Val};

impl<'c> Emitter<'c> {
    pub(crate) fn cursor(&self, key: RingKey) -> Cursor<'c> {
        self.cursors.get(&key).copied().unwrap_or(Cursor::START)
    }

    /// The state of these sides of rings: two `i32` each.
    pub(crate) fn cursor_values(&self, keys: &[RingKey]) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = self.ints();
        let mut values = Vec::new();
        for &key in keys {
            let cursor = self.cursor(key);
            values.push(ints.value(cursor.stage)?);
            values.push(ints.value(cursor.phase)?);
        }
        Ok(values)
    }

    /// Sets the state of these sides of rings.
    pub(crate) fn set_cursors(&mut self, keys: &[RingKey], values: &[Val<'c>]) {
        for (key, value) in keys.iter().zip(values.chunks_exact(2)) {
            let cursor = Cursor {
                stage: Int::Value(value[0]),
                phase: Int::Value(value[1]),
            };
            self.cursors.insert(*key, cursor);
        }
    }

    /// `axe.pipeline.create`: the barriers, with as many arrivals as the kernel's scopes make.
    pub(crate) fn create_ring(&mut self, op: Op<'c>) -> PassResult<'c> {
        let Some(&result) = results(op).first() else {
            return Err(self.error("expected a result"));
        };
        let counts = RingCounts::of(op, self.chip, self.kernel.threads, self.cluster)?;
        let RingCounts {
            stages,
            full,
            empty,
            shared_by,
        } = counts;
        let place = self.place_of(op)?.first;
        let ring = Ring {
            barriers: self.shared_address(self.shared, Int::Known(place))?,
            stages,
            shared_by,
        };
        let first = self.leads()?;
        self.when(first, &[], |emitter| {
            for stage in 0..stages {
                for (side, count) in [(0, full), (1, empty)] {
                    let at = Int::Known((side * stages + stage) * BARRIER_BYTES);
                    let barrier = emitter.shared_address(ring.barriers, at)?;
                    let count = emitter.ints().value(Int::Known(count))?;
                    emitter.effect("nvvm.mbarrier.init", &[barrier, count])?;
                }
            }
            emitter.effect("nvvm.fence.mbarrier.init", &[])?;
            Ok(Vec::new())
        })?;
        if ring.shared_by > 1 {
            self.meet_cluster()?;
        } else {
            self.barrier()?;
        }
        self.rings.insert(identity(result), ring);
        Ok(())
    }

    fn ring(&self, op: Op<'c>) -> PassResult<'c, (usize, Ring<'c>)> {
        let key = operands(op).first().map(|ring| identity(*ring));
        key.and_then(|key| Some((key, self.rings.get(&key)?.clone())))
            .ok_or_else(|| self.error("expected a pipeline of this kernel"))
    }

    /// `axe.pipeline.acquire` and `axe.pipeline.wait`: waits for the next stage.
    pub(crate) fn take_slot(&mut self, op: Op<'c>, side: Side) -> PassResult<'c> {
        let (key, ring) = self.ring(op)?;
        let &[slot, stage] = results(op).as_slice() else {
            return Err(self.error("expected a slot and its stage"));
        };
        let cursor = self.cursor((key, side));
        let ints = self.ints();
        let barrier = self.stage_barrier(&ring, cursor.stage, other(side))?;
        if side == Side::Producer {
            // The lane that copies does not wait for the others: apart from it, they could still wait for a phase when
            // the barrier is two phases on, and wait for ever. Consumers meet at each release.
            self.warp_barrier()?;
        }
        self.wait_for_phase(barrier, cursor, side)?;
        let held = ints.value(cursor.stage)?;
        self.bind(slot, Bound::Scalar(held));
        let index = self.builder.index_type();
        let number = self
            .builder
            .value("arith.index_castui", &[held], index, &[])?;
        self.bind(stage, Bound::Scalar(number));
        self.cursors
            .insert((key, side), self.advance(&ring, cursor, 1)?);
        match side {
            Side::Consumer => Ok(()),
            Side::Producer => self.expect(&ring, slot, held),
        }
    }

    /// Waits until every stage is empty that this side of a ring would fill next.
    ///
    /// # Errors
    /// At a ring of another kernel, and when an operation cannot be built.
    pub(crate) fn wait_for_releases(&mut self, key: RingKey) -> PassResult<'c> {
        let missing = || self.error("expected a pipeline of this kernel");
        let ring = self.rings.get(&key.0).cloned().ok_or_else(missing)?;
        self.warp_barrier()?;
        let from = self.cursor_values(&[key])?;
        let ended = self.repeat(ring.stages, &from, |emitter, _, at| {
            emitter.set_cursors(&[key], at);
            let cursor = emitter.cursor(key);
            let barrier = emitter.stage_barrier(&ring, cursor.stage, Side::Consumer)?;
            emitter.wait_for_phase(barrier, cursor, key.1)?;
            let next = emitter.advance(&ring, cursor, 1)?;
            emitter.cursors.insert(key, next);
            emitter.cursor_values(&[key])
        })?;
        self.set_cursors(&[key], &ended);
        Ok(())
    }

    /// Waits at a stage's barrier for what a side needs of it. Before the first release a stage's empty barrier is in phase 0: the phase
    /// before it is complete.
    fn wait_for_phase(&self, barrier: Val<'c>, cursor: Cursor<'c>, side: Side) -> PassResult<'c> {
        let ints = self.ints();
        let parity = match side {
            Side::Consumer => cursor.phase,
            Side::Producer => ints.xor(cursor.phase, Int::Known(1))?,
        };
        self.assembly(&wait_loop(), &[barrier, ints.value(parity)?], &[])?;
        Ok(())
    }

    /// Tells a stage's barrier how many bytes are to come.
    fn expect(&mut self, ring: &Ring<'c>, slot: Val<'c>, held: Val<'c>) -> PassResult<'c> {
        let bytes = signalled_bytes(slot)
            .ok_or_else(|| self.error("a copy of unknown size signals a slot"))?;
        if bytes == 0 {
            return Ok(());
        }
        let leads = self.leads()?;
        let barrier = self.stage_barrier(ring, Int::Value(held), Side::Producer)?;
        self.when(leads, &[], |emitter| {
            let bytes = emitter.ints().value(Int::Known(bytes))?;
            emitter.effect("nvvm.mbarrier.arrive.expect_tx", &[barrier, bytes])?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// The barrier that a copy with `signal` completes.
    pub(crate) fn signal(&self, slot: Val<'c>) -> PassResult<'c, Val<'c>> {
        let acquire = defined_by(slot, ops::PIPELINE_ACQUIRE).ok_or_else(|| {
            self.error("expected the slot of an axe.pipeline.acquire in the same role")
        })?;
        let (_, ring) = self.ring(acquire)?;
        self.stage_barrier(&ring, Int::Value(self.scalar(slot)?), Side::Producer)
    }

    /// `axe.pipeline.commit` and `axe.pipeline.release`: one arrival a warp.
    pub(crate) fn give_slot(&mut self, op: Op<'c>, side: Side) -> PassResult<'c> {
        if side == Side::Producer && committed_bytes(op, op)? > 0 {
            // The copies arrive.
            return Ok(());
        }
        let (_, ring) = self.ring(op)?;
        let slot = operands(op).get(1).copied();
        let slot = slot.ok_or_else(|| self.error("expected a slot"))?;
        let held = self.scalar(slot)?;
        let barrier = self.stage_barrier(&ring, Int::Value(held), side)?;
        self.warp_barrier()?;
        if side == Side::Consumer && ring.shared_by > 1 {
            // What the consumers read they read through the async proxy and waited for: a release for the cluster's scope instead of the
            // CTA's, which is the default, would cost a fence of all memory.
            return self.arrive_in_cluster(barrier, ring.shared_by, "");
        }
        let elected = self.elect()?;
        self.assembly(&arrival(), &[barrier, elected], &[])?;
        Ok(())
    }

    /// Arrives at a barrier of every one of so many CTAs of the cluster, a lane each, with what says how the arrival orders memory.
    pub(crate) fn arrive_in_cluster(
        &self,
        barrier: Val<'c>,
        ctas: i64,
        order: &str,
    ) -> PassResult<'c> {
        let ints = self.ints();
        let lane = ints.rem(Int::Value(self.thread), WARP_THREADS)?;
        let own = ints.less(lane, Int::Known(ctas))?;
        let lane = ints.value(lane)?;
        let text = format!(
            "{{\n.reg .b32 there;\n@$2 mapa.shared::cluster.u32 there, $0, $1;\n@$2 mbarrier.arrive{order}.shared::cluster.b64 _, [there];\n}}"
        );
        let arrive = Assembly {
            text,
            constraints: "r,r,b,~{memory}".to_owned(),
        };
        self.assembly(&arrive, &[barrier, lane, own], &[])?;
        Ok(())
    }

    /// Waits for all threads of the cluster (PTX ISA 9.7.13.2, `barrier.cluster`). Roles come here apart, so that
    /// nothing is said of warps that arrive together.
    pub(crate) fn cluster_barrier(&self) -> PassResult<'c> {
        for name in ["nvvm.cluster.arrive", "nvvm.cluster.wait"] {
            self.builder.operation(name, &[], &[], &[], Vec::new())?;
        }
        Ok(())
    }

    /// Waits for all threads of the cluster, and shows them nothing that was stored before.
    pub(crate) fn relaxed_cluster_barrier(&self) -> PassResult<'c> {
        for name in ["nvvm.cluster.arrive.relaxed", "nvvm.cluster.wait"] {
            self.builder.operation(name, &[], &[], &[], Vec::new())?;
        }
        Ok(())
    }

    /// The cursor so many stages on.
    fn advance(&self, ring: &Ring<'c>, cursor: Cursor<'c>, by: i64) -> PassResult<'c, Cursor<'c>> {
        let ints = self.ints();
        let (rounds, rest) = (by / ring.stages % 2, by % ring.stages);
        let stage = ints.add(cursor.stage, Int::Known(rest))?;
        let phase = ints.xor(cursor.phase, Int::Known(rounds))?;
        if rest == 0 {
            return Ok(Cursor { stage, phase });
        }
        if let (Some(stage), Some(phase)) = (stage.known(), phase.known()) {
            return Ok(Cursor {
                stage: Int::Known(stage % ring.stages),
                phase: Int::Known(phase ^ (stage / ring.stages)),
            });
        }
        let inside = ints.less(stage, Int::Known(ring.stages))?;
        let over = match rest {
            1 => Int::ZERO,
            _ => ints.sub(stage, Int::Known(ring.stages))?,
        };
        let turned = ints.xor(phase, Int::Known(1))?;
        Ok(Cursor {
            stage: ints.select(inside, stage, over)?,
            phase: ints.select(inside, phase, turned)?,
        })
    }

    /// Moves this thread on along sides of rings, past the stages of so many tiles of a loop.
    pub(crate) fn pass_tiles(
        &mut self,
        for_tiles: Op<'c>,
        keys: &[RingKey],
        tiles: Int<'c>,
    ) -> PassResult<'c> {
        if tiles.known() == Some(0) {
            return Ok(());
        }
        for &key in keys {
            let missing = || self.error("expected a pipeline of this kernel");
            let ring = self.rings.get(&key.0).cloned().ok_or_else(missing)?;
            let stages = self.stages_of_a_tile(for_tiles, key)?;
            let cursor = self.cursor(key);
            let cursor = match tiles.known().and_then(|tiles| tiles.checked_mul(stages)) {
                Some(by) => self.advance(&ring, cursor, by)?,
                None => self.advance_by(&ring, cursor, stages, tiles)?,
            };
            self.cursors.insert(key, cursor);
        }
        Ok(())
    }

    /// The cursor `times` times so many stages on.
    fn advance_by(
        &self,
        ring: &Ring<'c>,
        cursor: Cursor<'c>,
        stages: i64,
        times: Int<'c>,
    ) -> PassResult<'c, Cursor<'c>> {
        let ints = self.ints();
        // Two rounds of the ring come back to the same stage and phase.
        let period = 2 * ring.stages;
        let by = ints.mul(ints.rem(times, period)?, stages % period)?;
        let at = ints.add(ints.mul(cursor.phase, ring.stages)?, cursor.stage)?;
        let at = ints.add(at, by)?;
        Ok(Cursor {
            stage: ints.rem(at, ring.stages)?,
            phase: ints.and(ints.div(at, ring.stages)?, 1)?,
        })
    }

    /// The barrier at which a side arrives.
    fn stage_barrier(
        &self,
        ring: &Ring<'c>,
        stage: Int<'c>,
        side: Side,
    ) -> PassResult<'c, Val<'c>> {
        let ints = self.ints();
        let first = match side {
            Side::Producer => 0,
            Side::Consumer => ring.stages * BARRIER_BYTES,
        };
        let at = ints.add(ints.mul(stage, BARRIER_BYTES)?, Int::Known(first))?;
        self.shared_address(ring.barriers, at)
    }

    /// An operation for its effect.
    pub(crate) fn effect(&self, name: &str, operands: &[Val<'c>]) -> PassResult<'c> {
        self.builder
            .operation(name, operands, &[], &[], Vec::new())?;
        Ok(())
    }
}

/// Waits until the phase of a parity is complete (PTX ISA 9.7.13.15.16, `mbarrier.try_wait`). NVVM's operation asks for a
/// time to sleep, which costs the thread that wakes a detour; without one it sleeps as the hardware sees fit.
pub(crate) fn wait_loop() -> Assembly {
    ordered_wait_loop("")
}

/// The same, with what says how the wait orders memory.
pub(crate) fn ordered_wait_loop(order: &str) -> Assembly {
    let text = format!(
        "{{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity{order}.shared::cta.b64 done, [$0], $1;\n@!done bra again;\n}}"
    );
    Assembly {
        text,
        constraints: "r,r,~{memory}".to_owned(),
    }
}

/// One lane's arrival. A branch around it would end what ptxas sees of products that are under way, and it would make
/// them wait (C7514).
fn arrival() -> Assembly {
    Assembly {
        text: "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];".to_owned(),
        constraints: "r,b,~{memory}".to_owned(),
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Producer => Side::Consumer,
        Side::Consumer => Side::Producer,
    }
}
