//! The places of a kernel's storage in shared memory; when it is in use says [`axe_passes::check::times`].

use super::cursor::aligned;
use super::rings::ring_bytes;
use super::storage::{SHARED_ALIGNMENT, storage_bytes};
use super::{gathering, scattering};
use axe_dialect::ops;
use axe_passes::check::lifetime::{Places, Request};
use axe_passes::check::times::Times;
use axe_passes::dispatch::record;
use axe_passes::ir::value::{name, results};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Op, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

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
    /// Rings, and storage with an mbarrier: all the time.
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
        for (op, result) in of(ops::ALL_GATHER_CREATE) {
            let bytes = gathering::bytes_of(result.r#type());
            rings.push((op, bytes.ok_or_else(|| unknown(op, result))?));
        }
        for (op, result) in of(ops::REDUCE_SCATTER_CREATE) {
            let bytes = scattering::bytes_of(result.r#type());
            rings.push((op, bytes.ok_or_else(|| unknown(op, result))?));
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
                true => self.times.at(&places.separators).map(number).collect(),
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
