//! Rings of stages as a kernel's operators use them: the arrivals that complete a stage, the bytes that copies bring.

use super::gathering::takes_turns;
use super::threads::{ThreadGroup, groups_of_a_tile};
use super::types;
use crate::facts::chip::Chip;
use axe_dialect::ops;
use axe_passes::ir::value::{defined_by, identity, name, operands, results, users};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Op, Val, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashSet;

/// Bytes of an mbarrier.
pub(crate) const BARRIER_BYTES: i64 = 8;

/// The side of a ring that a role is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Acquires and commits.
    Producer,
    /// Waits and releases.
    Consumer,
}

/// A ring, by the identity of its value, and a side of it.
pub(crate) type RingKey = (usize, Side);

/// A ring as its barriers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingCounts {
    /// Stages.
    pub stages: i64,
    /// Arrivals that complete a full stage.
    pub full: i64,
    /// Arrivals that complete an empty one.
    pub empty: i64,
    /// CTAs whose copies may write a stage, and that must know when it is empty.
    pub shared_by: i64,
}

impl RingCounts {
    /// The counts of the ring that `axe.pipeline.create` makes, in a CTA of so many threads.
    ///
    /// # Errors
    /// At a ring that the chip has no barriers for, that nobody fills or drains, and at a commit of a slot that is not acquired
    /// beside it.
    pub(crate) fn of<'c>(
        create: Op<'c>,
        chip: &Chip,
        threads: i64,
        cluster: i64,
    ) -> PassResult<'c, Self> {
        let failed = |message: String| PassError::new(create.location(), message);
        let (Some(&ring), Some(stages)) = (results(create).first(), stages(create)) else {
            return Err(failed("expected a number of stages".to_owned()));
        };
        if !chip.has_tma {
            return Err(failed(format!(
                "{} cannot wait for an mbarrier's phase: pipelines need sm_90 or up",
                chip.name
            )));
        }
        let shared_by = if is_multicast(ring) { cluster } else { 1 };
        let (full, empty) = arrivals(ring, threads, create)?;
        Ok(Self {
            stages,
            full,
            empty: empty * shared_by,
            shared_by,
        })
    }
}

/// Whether copies of the whole cluster fill the stages.
pub(crate) fn is_multicast(ring: Val<'_>) -> bool {
    let acquires = users(ring)
        .into_iter()
        .filter(|op| name(*op) == ops::PIPELINE_ACQUIRE);
    acquires
        .filter_map(|acquire| results(acquire).first().copied())
        .flat_map(users)
        .any(|op| name(op) == ops::COPY && op.attribute("multicast").is_ok())
}

/// Bytes of a ring's barriers.
pub(crate) fn ring_bytes(create: Op<'_>) -> Option<i64> {
    stages(create)?.checked_mul(2 * BARRIER_BYTES)
}

fn stages(create: Op<'_>) -> Option<i64> {
    create.attribute("stages").ok().and_then(attribute::integer)
}

/// Bytes that the copies signalling a slot bring.
pub(crate) fn signalled_bytes(slot: Val<'_>) -> Option<i64> {
    let mut bytes = 0_i64;
    for copy in users(slot).into_iter().filter(|op| name(*op) == ops::COPY) {
        let target = operands(copy).get(1)?.r#type();
        let elements: i64 = types::memref_shape(target)?.iter().product();
        bytes += elements * types::bytes(axe_dialect::element_type(target))?;
    }
    Some(bytes)
}

/// Bytes of the copies to a slot that is committed; 0 for one that the threads' stores fill.
///
/// # Errors
/// At a commit of a slot that is not acquired beside it, or of one with copies of unknown size.
pub(crate) fn committed_bytes<'c>(commit: Op<'c>, at: Op<'c>) -> PassResult<'c, i64> {
    let slot = operands(commit).get(1).copied();
    let acquired = slot.filter(|slot| defined_by(*slot, ops::PIPELINE_ACQUIRE).is_some());
    let failed = |message| PassError::new(at.location(), message);
    let slot = acquired.ok_or_else(|| {
        failed("a commit of a slot that is not acquired beside it: expected the result of axe.pipeline.acquire")
    })?;
    signalled_bytes(slot).ok_or_else(|| failed("a copy of unknown size signals a slot"))
}

/// The arrivals that complete a full stage and an empty one.
fn arrivals<'c>(ring: Val<'c>, threads: i64, create: Op<'c>) -> PassResult<'c, (i64, i64)> {
    let (mut fill, mut drain) = (HashSet::new(), HashSet::new());
    let (mut full, mut empty) = (0, 0);
    for user in users(ring) {
        let group = ThreadGroup::around(user, threads);
        let groups = groups_of_a_tile(user, threads);
        match name(user).as_str() {
            ops::PIPELINE_COMMIT => {
                let bytes = committed_bytes(user, create)?;
                if fill.insert(group.clone()) {
                    full += if bytes > 0 {
                        groups
                    } else {
                        group.warps * groups
                    };
                }
            }
            ops::PIPELINE_RELEASE => {
                let arrivals = group.warps * groups;
                if drain.insert(group) {
                    empty += arrivals;
                }
            }
            _ => {}
        }
    }
    if full == 0 || empty == 0 {
        return Err(PassError::new(
            create.location(),
            format!(
                "a pipeline needs a role that commits its stages and one that releases them: {full} and {empty} arrivals"
            ),
        ));
    }
    Ok((full, empty))
}

/// The sides of rings that operators below `op` move along, and the storage of those that CTAs exchange parts through, in the order in which they first do: that of identities differs from
/// run to run, and so would the code.
pub(crate) fn rings_below(op: Op<'_>) -> Vec<RingKey> {
    let mut seen = HashSet::new();
    nested(op, &|_| true)
        .into_iter()
        .filter_map(|op| {
            let (side, ring) = match name(op).as_str() {
                ops::PIPELINE_ACQUIRE => (Side::Producer, operands(op).first().copied()),
                ops::PIPELINE_WAIT => (Side::Consumer, operands(op).first().copied()),
                ops::REDUCE_SCATTER => (Side::Consumer, operands(op).last().copied()),
                ops::ALL_GATHER => {
                    let through = operands(op).last().copied();
                    let through = through.filter(|through| takes_turns(through.r#type()));
                    (Side::Consumer, through)
                }
                _ => return None,
            };
            Some((identity(ring?), side))
        })
        .filter(|key| seen.insert(*key))
        .collect()
}
