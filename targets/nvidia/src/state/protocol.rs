//! The programs of a ring's producers and consumers, out of a kernel's operations, and their check.

use super::rings::{RingCounts, Side, signalled_bytes};
use super::threads::{ThreadGroup, groups_of_a_tile};
use super::types;
use axe_dialect::ops;
use axe_passes::check::ring::{Arm, Arrival, Carried, Name, PipelinePlan, Place, Step};
use axe_passes::ir::types::is_slot;
use axe_passes::ir::value::{defined_by, identity, name, operands, results};
use axe_passes::ir::walk::{blocks, operations};
use axe_passes::ir::{Op, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};
use std::collections::HashSet;

/// Checks how a kernel uses the ring that `create` makes.
///
/// # Errors
/// At the operation that breaks the protocol.
pub(crate) fn check<'c>(create: Op<'c>, threads: i64, counts: RingCounts) -> PassResult<'c> {
    let (Some(&ring), Some(kernel)) = (results(create).first(), create.parent_operation()) else {
        return Err(PassError::new(
            create.location(),
            "expected a pipeline in a kernel",
        ));
    };
    // SAFETY: the kernel lives as long as the operation.
    let kernel: Op<'c> = unsafe { Op::from_raw(kernel.to_raw()) };
    let mut reader = Reader {
        ring,
        threads,
        side: Side::Producer,
        slots: HashSet::new(),
        arrivals: Vec::new(),
        places: Vec::new(),
    };
    let (fill, commits) = reader.program(kernel, Side::Producer);
    let (drain, releases) = reader.program(kernel, Side::Consumer);
    let plan = PipelinePlan {
        stages: counts.stages,
        full: counts.full,
        empty: counts.empty,
        shared_by: counts.shared_by,
        fill,
        drain,
        commits,
        releases,
    };
    plan.check().map_err(|broken| {
        let op = broken.at.and_then(|at| reader.places.get(at).copied());
        let location = op.map_or(create.location(), |op| op.location());
        PassError::new(location, broken.reason.to_string())
    })
}

/// Reads the programs of one ring.
struct Reader<'c> {
    ring: Val<'c>,
    threads: i64,
    side: Side,
    /// The slots of the side that is read.
    slots: HashSet<Name>,
    /// The arrivals of its steps that give a stage back.
    arrivals: Vec<Arrival>,
    places: Vec<Op<'c>>,
}

impl<'c> Reader<'c> {
    fn program(&mut self, kernel: Op<'c>, side: Side) -> (Vec<Step>, Vec<Arrival>) {
        self.side = side;
        self.slots.clear();
        let steps = blocks(kernel).into_iter();
        let steps = steps.flat_map(|block| self.block(block)).collect();
        (steps, std::mem::take(&mut self.arrivals))
    }

    fn place(&mut self, op: Op<'c>) -> Place {
        self.places.push(op);
        self.places.len() - 1
    }

    fn block(&mut self, block: BlockRef<'c, 'c>) -> Vec<Step> {
        operations(block)
            .into_iter()
            .flat_map(|op| self.operation(op))
            .collect()
    }

    fn is_own(&self, op: Op<'c>) -> bool {
        operands(op)
            .first()
            .is_some_and(|ring| identity(*ring) == identity(self.ring))
    }

    fn operation(&mut self, op: Op<'c>) -> Vec<Step> {
        let (take, give) = match self.side {
            Side::Producer => (ops::PIPELINE_ACQUIRE, ops::PIPELINE_COMMIT),
            Side::Consumer => (ops::PIPELINE_WAIT, ops::PIPELINE_RELEASE),
        };
        let name = name(op);
        match name.as_str() {
            _ if name == take && self.is_own(op) => self.take(op),
            _ if name == give && self.is_own(op) => self.give(op),
            ops::COPY => self.signal(op),
            "scf.for" => self.turns(op),
            "scf.if" => self.branch(op),
            ops::FOR_TILES => {
                let body = blocks(op).into_iter().flat_map(|block| self.block(block));
                let body: Vec<_> = body.collect();
                self.looped(op, Vec::new(), body)
            }
            // A scope's body is its warps' program.
            ops::SCOPE => blocks(op)
                .into_iter()
                .flat_map(|block| self.block(block))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn take(&mut self, op: Op<'c>) -> Vec<Step> {
        let at = self.place(op);
        let Some(&slot) = results(op).first() else {
            return Vec::new();
        };
        self.slots.insert(identity(slot));
        let announced = match self.side {
            Side::Producer => signalled_bytes(slot).unwrap_or(0),
            Side::Consumer => 0,
        };
        vec![Step::Take {
            slot: identity(slot),
            announced,
            at,
        }]
    }

    fn give(&mut self, op: Op<'c>) -> Vec<Step> {
        let Some(&slot) = operands(op).get(1) else {
            return Vec::new();
        };
        let at = self.place(op);
        let group = ThreadGroup::around(op, self.threads);
        // The bytes of copies are announced, with an arrival, where the slot is acquired.
        let acquire = defined_by(slot, ops::PIPELINE_ACQUIRE);
        let made = match acquire.filter(|_| signalled_bytes(slot) > Some(0)) {
            Some(acquire) => groups_of_a_tile(acquire, self.threads),
            None => group.warps * groups_of_a_tile(op, self.threads),
        };
        let warps = group.firsts.iter();
        let warps = warps.flat_map(|first| *first..first + group.warps);
        self.arrivals.push(Arrival {
            warps: warps.collect(),
            made,
            at,
        });
        vec![Step::Give {
            slot: identity(slot),
            at,
        }]
    }

    /// A copy that completes a slot of this ring.
    fn signal(&mut self, op: Op<'c>) -> Vec<Step> {
        let operands = operands(op);
        let slot = operands.last().filter(|slot| is_slot(slot.r#type()));
        let Some(slot) = slot.filter(|slot| self.slots.contains(&identity(**slot))) else {
            return Vec::new();
        };
        let at = self.place(op);
        let target = operands.get(1).map(|target| target.r#type());
        let elements = target.and_then(types::memref_shape);
        let bytes = target.and_then(|target| types::bytes(axe_dialect::element_type(target)));
        let bytes = elements.map_or(0, |shape| shape.iter().product()) * bytes.unwrap_or(0);
        vec![Step::Signal {
            slot: identity(*slot),
            bytes,
            at,
        }]
    }

    fn turns(&mut self, op: Op<'c>) -> Vec<Step> {
        let Some(block) = blocks(op).first().copied() else {
            return Vec::new();
        };
        let arguments = axe_passes::ir::walk::block_arguments(block);
        let initial = operands(op);
        let next = operations(block).last().copied().map(operands);
        let next = next.unwrap_or_default();
        let mut carried = Vec::new();
        let parts = initial.iter().skip(3).zip(arguments.iter().skip(1));
        for ((initial, inside), (next, result)) in parts.zip(next.iter().zip(results(op))) {
            if self.slots.contains(&identity(*initial)) {
                let names = [*initial, *inside, *next, result].map(identity);
                self.slots.extend(names);
                let [initial, inside, next, result] = names;
                carried.push(Carried {
                    initial,
                    inside,
                    next,
                    result,
                });
            }
        }
        let body = self.block(block);
        self.looped(op, carried, body)
    }

    /// A loop, unless it leaves the ring alone.
    fn looped(&mut self, op: Op<'c>, carried: Vec<Carried>, body: Vec<Step>) -> Vec<Step> {
        if carried.is_empty() && body.is_empty() {
            return Vec::new();
        }
        let at = self.place(op);
        vec![Step::Loop { carried, body, at }]
    }

    fn branch(&mut self, op: Op<'c>) -> Vec<Step> {
        let mut arms = Vec::new();
        let mut slots: Option<Vec<usize>> = None;
        for region in op.regions() {
            use melior::ir::RegionLike;
            let Some(block) = region.first_block() else {
                arms.push(Arm {
                    steps: Vec::new(),
                    yields: Vec::new(),
                });
                continue;
            };
            let steps = self.block(block);
            let yielded = operations(block).last().copied().map(operands);
            let yielded = yielded.unwrap_or_default();
            // Which results are slots of this ring follows from the first arm.
            let positions = slots.get_or_insert_with(|| {
                (0..yielded.len())
                    .filter(|at| {
                        let value = yielded.get(*at).copied();
                        value.is_some_and(|value| self.slots.contains(&identity(value)))
                    })
                    .collect()
            });
            let yields = positions.iter().filter_map(|at| yielded.get(*at));
            arms.push(Arm {
                steps,
                yields: yields.map(|value| identity(*value)).collect(),
            });
        }
        let all = results(op);
        let results: Vec<_> = slots
            .unwrap_or_default()
            .into_iter()
            .filter_map(|at| all.get(at).map(|value| identity(*value)))
            .collect();
        self.slots.extend(&results);
        if results.is_empty() && arms.iter().all(|arm| arm.steps.is_empty()) {
            return Vec::new();
        }
        let at = self.place(op);
        vec![Step::Branch { arms, results, at }]
    }
}
