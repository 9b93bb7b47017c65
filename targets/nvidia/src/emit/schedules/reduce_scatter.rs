//! `axe.reduce_scatter`: each thread sends the parts of its registers to the CTAs that combine them.
//!
//! A thread has the same place in all CTAs, so that no thread needs what another one of its CTA has: it stores, by `st.async` (PTX ISA
//! 9.7.9.12), four elements at once to the thread of its number in each other CTA, whose mbarrier counts the bytes. Who waits for that needs no
//! barrier of the cluster, and no fence of all memory. Before a CTA sends once more, it tells the others that it has read what they sent,
//! and waits for them to have done so: the last time nobody waits, and who has all parts is written to no more and may end.

use super::reduce::{combine, combiner, combiner_of};
use super::text::expect;
use crate::emit::assembly::{Assembly, constraint};
use crate::emit::emitter::Emitter;
use crate::emit::pipeline::{ordered_wait_loop, wait_loop};
use crate::emit::progress::Cursor;
use crate::emit::schedule::Emit;
use crate::emit::value::{Memory, Registers};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::gather::GatherPlan;
use crate::state::rings::{RingKey, Side};
use crate::state::site::Site;
use crate::state::threads::{WARP_THREADS, is_pingpong, parents};
use crate::state::types;
use axe_dialect::Typed;
use axe_dialect::ops::{self, ReduceScatterOp};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::types::bits;
use axe_passes::ir::value::{identity, name};
use axe_passes::ir::{Int, Op, Predicate, Val, attribute};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Elements that a thread sends at once.
const VECTOR: i64 = 4;

/// From each CTA of a cluster to each.
#[derive(Clone, Copy)]
pub(super) struct Cluster;

/// Which registers of a thread each CTA combines.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parts {
    threads: i64,
    /// By rank: the source register of each result register.
    of: Vec<GatherPlan>,
}

impl Parts {
    /// Result registers of a thread.
    fn registers(&self) -> i64 {
        let first = self.of.first().map_or(0, |part| part.from.len());
        i64::try_from(first).unwrap_or(0)
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (elements, others) = (self.registers(), self.of.len().saturating_sub(1));
        writeln!(
            f,
            "st.async {elements} elements of each of {} threads to each of {others} other CTAs\nmbarrier.try_wait\nld.shared",
            self.threads
        )
    }
}

fn read<'c>(op: Op<'c>) -> Result<ReduceScatterOp<'c>, Decline> {
    ReduceScatterOp::of(op).ok_or_else(|| Decline::new("expected axe.reduce_scatter"))
}

/// The dimension along which tensors fall into parts.
fn dim(op: Op<'_>) -> Result<usize, Decline> {
    let dim = op.attribute("dim").ok().and_then(attribute::integer);
    dim.and_then(|dim| usize::try_from(dim).ok())
        .ok_or_else(|| Decline::new("expected a dim"))
}

/// Where an element of a part is in the tensor, as row-major indices.
struct Place {
    /// Elements behind the dimension of parts.
    inner: i64,
    /// The extents of a part and of the tensor along it.
    extents: [i64; 2],
}

impl Place {
    fn new(source: &Fragment, result: &Fragment, dim: usize) -> Result<Self, Decline> {
        let extent = |fragment: &Fragment| fragment.shape().get(dim).copied();
        let (Some(part), Some(all)) = (extent(result), extent(source)) else {
            return Err(Decline::new("expected a dim of the tensors"));
        };
        let behind = source.shape().iter().skip(dim + 1);
        Ok(Self {
            inner: behind.product(),
            extents: [part, all],
        })
    }

    const fn of(&self, part: i64, x: i64) -> i64 {
        let [own, all] = self.extents;
        let (outer, rest) = (x / (own * self.inner), x % (own * self.inner));
        outer * all * self.inner + part * own * self.inner + rest
    }
}

/// The parts that an operator sends.
fn parts(site: Site<'_, '_>) -> Result<Parts, Decline> {
    let source = site.registers(0)?;
    combiner(site.op)?;
    if bits(source.element) != Some(32) {
        return Err(Decline::new(format!(
            "expected elements of 32 bits, got {}",
            source.element
        )));
    }
    let shares = |parent: Op<'_>| name(parent) == ops::FOR_TILES && is_pingpong(parent);
    if site.group.count() > 1 || parents(site.op).any(shares) {
        return Err(Decline::new(
            "expected one thread group: its storage is one's",
        ));
    }
    let result = site.result()?;
    let threads = site.threads();
    let elements = |fragment: &Fragment| fragment.shape().iter().product::<i64>();
    let alone = |fragment: &Fragment| {
        fragment.is_full() && fragment.registers() * threads == elements(fragment)
    };
    if !alone(&source.fragment) || !alone(&result) {
        return Err(Decline::new("expected elements that one thread holds each"));
    }
    let place = Place::new(&source.fragment, &result, dim(site.op)?)?;
    let [own, all] = place.extents;
    let of_rank = |rank| GatherPlan::new(&source.fragment, &result, |x| place.of(rank, x));
    let of = (0..all / own.max(1)).map(of_rank);
    let parts = Parts {
        threads,
        of: of.collect::<Result<_, _>>()?,
    };
    match parts.registers() % VECTOR {
        0 => Ok(parts),
        _ => Err(Decline::new(format!(
            "expected parts of a multiple of {VECTOR} elements of each thread, got {}",
            parts.registers()
        ))),
    }
}

impl Schedule for Cluster {
    type Plan = Parts;

    fn name(&self) -> &'static str {
        "st.async"
    }
}

impl<'c> Match<Site<'_, 'c>> for Cluster {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Parts, Decline> {
        let (parts, ctas) = (parts(site)?, site.kernel.cluster_size());
        if !site.chip().has_tma {
            return Err(Decline::new("the chip has no clusters"));
        }
        if i64::try_from(parts.of.len()) != Ok(ctas) || ctas > WARP_THREADS {
            return Err(Decline::new(format!(
                "expected as many parts as the cluster has CTAs, {ctas}, got {}",
                parts.of.len()
            )));
        }
        Ok(parts)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Parts) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Cluster {
    fn emit(
        &self,
        plan: &Parts,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let own = read(op).map_err(|decline| emitter.error(decline.to_string()))?;
        let key = (identity(own.through), Side::Consumer);
        let exchange = Exchange {
            plan,
            through: emitter.memory(own.through)?,
            rank: emitter.rank_in_cluster()?,
        };
        let source = emitter.registers(own.source)?;
        exchange.wait_for_readers(emitter, key)?;
        exchange.send(emitter, &source)?;
        let mut sums = exchange.own_part(emitter, &source)?;
        exchange.wait_for_parts(emitter, key)?;
        let combiner = combiner_of(emitter, op)?;
        for sender in 0..exchange.others() {
            let part = exchange.load(emitter, sender)?;
            for (sum, other) in sums.iter_mut().zip(part) {
                *sum = combine(emitter, combiner, *sum, other)?;
            }
        }
        Ok(sums)
    }
}

/// What CTAs send each other.
struct Exchange<'a, 'c> {
    plan: &'a Parts,
    through: Memory<'c>,
    rank: Int<'c>,
}

impl<'c> Exchange<'_, 'c> {
    /// CTAs that send parts to this one.
    fn others(&self) -> i64 {
        i64::try_from(self.plan.of.len()).unwrap_or(1) - 1
    }

    /// Where this thread's elements are of the part of a sender, who are in the order of ranks behind this one.
    fn place(&self, emitter: &Emitter<'c>, sender: Int<'c>) -> PassResult<'c, Val<'c>> {
        let ints = emitter.ints();
        let elements = self.plan.threads * self.plan.registers();
        let own = ints.mul(Int::Value(emitter.thread), VECTOR)?;
        let at = ints.add(ints.mul(sender, elements)?, own)?;
        emitter.offset_pointer(&self.through, self.through.base, at)
    }

    /// Elements from a vector of this thread to its next one.
    fn stride(&self) -> i64 {
        self.plan.threads * VECTOR
    }

    /// Whether this CTA has a rank.
    fn has_rank(&self, emitter: &Emitter<'c>, rank: i64) -> PassResult<'c, Val<'c>> {
        let ints = emitter.ints();
        ints.compare(Predicate::Equal, self.rank, Int::Known(rank))
    }

    /// Sends each other CTA its part.
    fn send(&self, emitter: &Emitter<'c>, source: &Registers<'c>) -> PassResult<'c> {
        let [full, _] = emitter.scattered_barriers(&self.through)?;
        let ints = emitter.ints();
        for (rank, part) in (0..).zip(&self.plan.of) {
            let sender = ints.rem(
                ints.add(self.rank, Int::Known(self.others() - rank))?,
                self.others() + 1,
            )?;
            let here = self.place(emitter, sender)?;
            let peer = ints.value(Int::Known(rank))?;
            let i32 = types::integer(emitter.builder, 32);
            let there = |address| emitter.assembly(&of_peer(), &[address, peer], &[i32]);
            let (to, full) = (there(here)?, there(full)?);
            let is_own = self.has_rank(emitter, rank)?;
            let values = picked(emitter, source, part)?;
            for (at, vector) in (0..).zip(values.chunks(VECTOR as usize)) {
                let byte = at * self.stride() * self.through.bytes;
                let operands: Vec<_> = to
                    .iter()
                    .chain(&full)
                    .chain([&is_own])
                    .chain(vector)
                    .copied()
                    .collect();
                emitter.assembly(&store_async(byte, vector), &operands, &[])?;
            }
        }
        Ok(())
    }

    /// The part that this CTA combines.
    fn own_part(
        &self,
        emitter: &Emitter<'c>,
        source: &Registers<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut own: Vec<Val<'c>> = Vec::new();
        for (rank, part) in (0..).zip(&self.plan.of) {
            let values = picked(emitter, source, part)?;
            if rank == 0 {
                own = values;
                continue;
            }
            let is_own = self.has_rank(emitter, rank)?;
            for (own, value) in own.iter_mut().zip(values) {
                let r#type = value.r#type();
                let operands = [is_own, value, *own];
                *own = emitter
                    .builder
                    .value("arith.select", &operands, r#type, &[])?;
            }
        }
        Ok(own)
    }

    /// This thread's elements of a sender's part.
    fn load(&self, emitter: &Emitter<'c>, sender: i64) -> PassResult<'c, Vec<Val<'c>>> {
        let first = self.place(emitter, Int::Known(sender))?;
        let mut values = Vec::new();
        for at in 0..self.plan.registers() / VECTOR {
            let vector = Int::Known(at * self.stride());
            let from = emitter.offset_pointer(&self.through, first, vector)?;
            values.extend(emitter.load(&self.through, from, VECTOR)?);
        }
        Ok(values)
    }

    /// Waits until the parts of all are there, and lets those of the next time come.
    fn wait_for_parts(&self, emitter: &mut Emitter<'c>, key: RingKey) -> PassResult<'c> {
        let [full, _] = emitter.scattered_barriers(&self.through)?;
        let bytes = emitter.scattered_bytes(&self.through)?;
        let cursor = emitter.cursor(key);
        let ints = emitter.ints();
        emitter.assembly(&wait_loop(), &[full, ints.value(cursor.phase)?], &[])?;
        let leads = emitter.leads()?;
        let bytes = ints.value(Int::Known(bytes))?;
        emitter.assembly(&expect_bytes(), &[full, bytes, leads], &[])?;
        let next = Cursor {
            stage: Int::Known(1),
            phase: ints.xor(cursor.phase, Int::Known(1))?,
        };
        emitter.cursors.insert(key, next);
        Ok(())
    }

    /// But the first time, waits until all CTAs have read the parts of the time before.
    fn wait_for_readers(&self, emitter: &mut Emitter<'c>, key: RingKey) -> PassResult<'c> {
        let cursor = emitter.cursor(key);
        let ints = emitter.ints();
        match cursor.stage.known() {
            Some(0) => Ok(()),
            Some(_) => self.meet_readers(emitter, cursor),
            None => {
                let again = ints.less(Int::ZERO, cursor.stage)?;
                emitter.when(again, &[], |emitter| {
                    self.meet_readers(emitter, cursor).map(|()| Vec::new())
                })?;
                Ok(())
            }
        }
    }

    /// Says, to all CTAs of the cluster, that this one has read its parts, and waits for them to say so.
    fn meet_readers(&self, emitter: &Emitter<'c>, cursor: Cursor<'c>) -> PassResult<'c> {
        let [_, read] = emitter.scattered_barriers(&self.through)?;
        emitter.warp_barrier()?;
        emitter.arrive_in_cluster(read, self.others() + 1, ".release.cluster")?;
        let ints = emitter.ints();
        let before = ints.value(ints.xor(cursor.phase, Int::Known(1))?)?;
        emitter.assembly(&ordered_wait_loop(".acquire.cluster"), &[read, before], &[])?;
        Ok(())
    }
}

/// The source registers of a part.
fn picked<'c>(
    emitter: &Emitter<'c>,
    source: &Registers<'c>,
    part: &GatherPlan,
) -> PassResult<'c, Vec<Val<'c>>> {
    let pick = |from: &i64| {
        let at = usize::try_from(*from).ok()?;
        source.values.get(at).copied()
    };
    let picked: Option<Vec<_>> = part.from.iter().map(pick).collect();
    picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
}

/// The address of a CTA's own shared memory in that of another one.
fn of_peer() -> Assembly {
    Assembly {
        text: "mapa.shared::cluster.u32 $0, $1, $2;".to_owned(),
        constraints: "=r,r,r".to_owned(),
    }
}

/// A thread's store of a vector to another CTA, whose mbarrier counts the bytes, but where that is its own.
fn store_async(byte: i64, vector: &[Val<'_>]) -> Assembly {
    let values: Vec<_> = (3..3 + vector.len()).map(|at| format!("${at}")).collect();
    let letters: String = vector
        .iter()
        .map(|value| format!(",{}", constraint(value.r#type())))
        .collect();
    Assembly {
        text: format!(
            "@!$2 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [$0+{byte}], {{{}}}, [$1];",
            values.join(", ")
        ),
        constraints: format!("r,r,b{letters},~{{memory}}"),
    }
}

/// One thread's arrival, which says how many bytes are to come.
pub(super) fn expect_bytes() -> Assembly {
    Assembly {
        text: "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;".to_owned(),
        constraints: "r,r,b,~{memory}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_ranges_of_a_dimension() {
        // Columns of 4 x 6 in two parts: element (1, 2) of the second is (1, 5).
        let columns = Place {
            inner: 1,
            extents: [3, 6],
        };
        assert_eq!(columns.of(1, 5), 11);
        // Rows of 6 x 4 in three parts: element (1, 2) of the last is (5, 2).
        let rows = Place {
            inner: 4,
            extents: [2, 6],
        };
        assert_eq!(rows.of(2, 6), 22);
    }
}
