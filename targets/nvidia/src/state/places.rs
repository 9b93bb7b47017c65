//! When the storage of a kernel is in use, and its places in shared memory.
//!
//! Only the operations of the kernel's body count: what is inside a role or a loop is in use for as long as that
//! role or loop runs, for roles run side by side.

use super::cursor::aligned;
use super::rings::ring_bytes;
use super::storage::{SHARED_ALIGNMENT, storage_bytes};
use axe_dialect::ops;
use axe_passes::check::lifetime::{Places, Request};
use axe_passes::dispatch::record;
use axe_passes::ir::types::is_slot;
use axe_passes::ir::value::{name, operands, results, users};
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Op, Val, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// What tells operations apart.
fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

/// A place of storage in shared memory, as it stands in the IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// The first byte.
    pub first: i64,
    /// How many there are.
    pub bytes: i64,
}

/// The places of a kernel's storage: each `axe.alloc` and each pipeline, one after the other, but for storage that is never in
/// use at the same time.
pub(crate) struct KernelPlaces<'c> {
    /// Storage and rings, with their places.
    pub of: Vec<(Op<'c>, Place)>,
    /// Behind them.
    pub end: i64,
    /// The barriers at which bytes pass from one `axe.alloc` to another.
    separators: HashSet<usize>,
    /// Who shares bytes, where any are shared, for people.
    pub text: Option<String>,
}

/// Storage that wants a place.
struct Wanted<'c> {
    storage: Vec<(Op<'c>, Val<'c>)>,
    rings: Vec<(Op<'c>, i64)>,
    requests: Vec<Request>,
    times: Times<'c>,
}

impl<'c> Wanted<'c> {
    fn of(kernel: Op<'c>, cluster: i64) -> PassResult<'c, Self> {
        let all = nested(kernel, &|_| true);
        let of = |wanted: &str| {
            let found = all.iter().copied().filter(|op| name(*op) == wanted);
            found
                .filter_map(|op| Some((op, results(op).first().copied()?)))
                .collect::<Vec<_>>()
        };
        let unknown = |op: Op<'c>, result: Val<'c>| {
            let message = format!(
                "expected storage of a known size below 2^63 bytes, got {}",
                result.r#type()
            );
            PassError::new(op.location(), message)
        };
        let storage = of(ops::ALLOC);
        let times = Times::of(kernel, &all);
        let mut requests = Vec::new();
        for &(op, result) in &storage {
            requests.push(Request {
                bytes: storage_bytes(result.r#type()).ok_or_else(|| unknown(op, result))?,
                alignment: SHARED_ALIGNMENT,
                // CTAs of a cluster write to each other's memory at times of their own.
                live: match cluster {
                    1 => times.live(result),
                    _ => (0, usize::MAX),
                },
            });
        }
        let mut rings = Vec::new();
        for (op, result) in of(ops::PIPELINE_CREATE) {
            rings.push((op, ring_bytes(op).ok_or_else(|| unknown(op, result))?));
        }
        Ok(Self {
            storage,
            rings,
            requests,
            times,
        })
    }

    /// Rings behind the storage.
    fn placed(self, places: &Places) -> KernelPlaces<'c> {
        let mut of = Vec::new();
        for ((&(op, _), request), &first) in
            self.storage.iter().zip(&self.requests).zip(&places.starts)
        {
            let bytes = request.bytes;
            of.push((op, Place { first, bytes }));
        }
        let mut next = places.bytes;
        for &(op, bytes) in &self.rings {
            let first = aligned(next);
            of.push((op, Place { first, bytes }));
            next = first + bytes;
        }
        KernelPlaces {
            of,
            end: aligned(next),
            separators: match places.shares() {
                true => self.times.at(&places.separators),
                false => HashSet::new(),
            },
            text: places.shares().then(|| self.text(places)),
        }
    }

    /// Who shares bytes.
    fn text(&self, places: &Places) -> String {
        use std::fmt::Write;
        let apart: i64 = self.requests.iter().map(|request| request.bytes).sum();
        let mut text = format!("{} bytes for {apart}\n", places.bytes);
        let all = self.storage.iter().zip(&self.requests).zip(&places.starts);
        for (((_, result), request), start) in all {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "[{start}, {}) {}, in use from operation {} of the kernel",
                start + request.bytes,
                result.r#type(),
                request.live.0
            );
            let _ = match request.live.1 {
                usize::MAX => writeln!(text, " on"),
                last => writeln!(text, " to {last}"),
            };
        }
        text
    }
}

impl<'c> KernelPlaces<'c> {
    /// Chooses the places.
    ///
    /// # Errors
    /// At storage of unknown size.
    pub(crate) fn choose(kernel: Op<'c>, cluster: i64) -> PassResult<'c, Self> {
        let wanted = Wanted::of(kernel, cluster)?;
        let places = Places::new(&wanted.requests, &wanted.times.barriers)
            .map_err(|decline| PassError::new(kernel.location(), decline.to_string()))?;
        Ok(wanted.placed(&places))
    }

    /// Reads the places that stand in the IR, and checks them: storage lies apart, or a barrier is between its lifetimes; rings
    /// lie behind it.
    ///
    /// # Errors
    /// At storage without a place, and at a place that is wrong.
    pub(crate) fn read(kernel: Op<'c>, cluster: i64) -> PassResult<'c, Self> {
        let wanted = Wanted::of(kernel, cluster)?;
        let mut starts = Vec::new();
        for &(op, _) in &wanted.storage {
            starts.push(record::read::<Place>(op)?.first);
        }
        let places = Places::at(starts, &wanted.requests, &wanted.times.barriers)
            .map_err(|decline| PassError::new(kernel.location(), decline.to_string()))?;
        let placed = wanted.placed(&places);
        for &(op, expected) in &placed.of {
            let place: Place = record::read(op)?;
            if place != expected {
                let Place { first, bytes } = expected;
                let reason = format!("expected {bytes} bytes at {first}, got {place:?}");
                return Err(record::wrong(op, &reason));
            }
        }
        Ok(placed)
    }

    /// Whether storage changes hands at a barrier.
    pub(crate) fn separates(&self, barrier: Op<'c>) -> bool {
        self.separators.contains(&number(barrier))
    }
}

/// The order of a kernel's operations.
struct Times<'c> {
    /// The operation of the kernel's body that each operation is, or is in.
    top: HashMap<usize, usize>,
    /// Every operation's place among all, in the order of the text.
    order: HashMap<usize, usize>,
    /// The operations of the body.
    body: Vec<Op<'c>>,
    /// Those of them that are the CTA's barrier.
    barriers: Vec<usize>,
    /// The waits for everything: for copies, and for products.
    waits: Vec<(Op<'c>, bool)>,
    commits: Vec<Op<'c>>,
}

impl<'c> Times<'c> {
    fn of(kernel: Op<'c>, all: &[Op<'c>]) -> Self {
        let body: Vec<_> = blocks(kernel).into_iter().flat_map(operations).collect();
        let mut top = HashMap::new();
        for (at, &op) in body.iter().enumerate() {
            top.insert(number(op), at);
            for inner in nested(op, &|_| true) {
                top.insert(number(inner), at);
            }
        }
        let barriers = body.iter().enumerate();
        let barriers = barriers.filter(|(_, op)| name(**op) == ops::BARRIER);
        let named = |wanted: &'static str| {
            let all = all.iter().copied();
            all.filter(move |op| name(*op) == wanted)
        };
        let everything = |op: &Op<'c>| {
            let pending = op.attribute("pending").ok().and_then(attribute::integer);
            pending.unwrap_or(0) == 0
        };
        Self {
            barriers: barriers.map(|(at, _)| at).collect(),
            order: all
                .iter()
                .enumerate()
                .map(|(at, op)| (number(*op), at))
                .collect(),
            waits: named(ops::WAIT)
                .filter(everything)
                .map(|op| (op, operands(op).is_empty()))
                .collect(),
            commits: named(ops::COMMIT).collect(),
            top,
            body,
        }
    }

    /// The operations of the kernel's body at these places.
    fn at(&self, places: &[usize]) -> HashSet<usize> {
        let found = places.iter().filter_map(|at| self.body.get(*at));
        found.map(|op| number(*op)).collect()
    }

    fn top(&self, op: Op<'c>) -> usize {
        self.top.get(&number(op)).copied().unwrap_or(usize::MAX)
    }

    /// From the first to the last operation that accesses storage or a part of it, asynchronous accesses until they
    /// are waited for. Storage that is never accessed is in use all the time.
    fn live(&self, storage: Val<'c>) -> (usize, usize) {
        let (mut first, mut last) = (usize::MAX, 0);
        let mut views = vec![storage];
        while let Some(view) = views.pop() {
            for user in users(view) {
                if matches!(name(user).as_str(), ops::SLICE | ops::VIEW) {
                    views.extend(results(user));
                    continue;
                }
                first = first.min(self.top(user));
                last = last.max(self.top(user)).max(self.end(user));
            }
        }
        if first > last {
            (0, usize::MAX)
        } else {
            (first, last)
        }
    }

    /// The operation of the body with which an access is complete.
    fn end(&self, access: Op<'c>) -> usize {
        let kind = name(access);
        if kind != ops::GEMM && kind != ops::COPY || access.attribute("isAsync").is_err() {
            return self.top(access);
        }
        let slot = operands(access).last().copied();
        if let Some(slot) = slot.filter(|slot| is_slot(slot.r#type())) {
            return self.signalled(slot);
        }
        let copies = kind == ops::COPY;
        let waits = self
            .waits
            .iter()
            .filter(|(_, of_copies)| *of_copies == copies);
        let complete = waits
            .map(|(wait, _)| *wait)
            .filter(|wait| self.follows(*wait, access))
            .filter(|wait| {
                let between = |commit: &&Op<'c>| {
                    self.follows(**commit, access) && self.follows(*wait, **commit)
                };
                !copies || self.commits.iter().any(|commit| between(&commit))
            });
        complete
            .map(|wait| self.top(wait))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The last use of the ring of a slot: its consumers wait for the copies that signal it.
    fn signalled(&self, slot: Val<'c>) -> usize {
        let acquire = axe_passes::ir::value::defining(slot);
        let ring = acquire.and_then(|acquire| operands(acquire).first().copied());
        let used = ring.map(|ring| users(ring).into_iter().map(|op| self.top(op)).max());
        used.flatten().unwrap_or(usize::MAX)
    }

    /// Whether every execution of `before` is followed by one of `after`: it comes later, in the same block or one
    /// around it.
    fn follows(&self, after: Op<'c>, before: Op<'c>) -> bool {
        let place = |op: Op<'c>| self.order.get(&number(op)).copied();
        if place(after) <= place(before) {
            return false;
        }
        let Some(block) = after.block() else {
            return false;
        };
        let mut around = Some(before);
        while let Some(op) = around {
            if op.block().is_some_and(|own| own == block) {
                return true;
            }
            // SAFETY: the parent lives as long as the operation.
            around = op
                .parent_operation()
                .map(|parent| unsafe { Op::from_raw(parent.to_raw()) });
        }
        false
    }
}
