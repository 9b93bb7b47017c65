//! Copies by the tensor memory accelerator: `cp.async.bulk.tensor` (PTX ISA 9.7.9.27).

use super::segment;
use super::traffic::{Traffic, accumulates, adds_in_bulk};
use crate::emit::int::{Int, Ints};
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::{Memory, Origin, Space};
use crate::plan::Decline;
use crate::plan::tma::{GRANULE as TMA_GRANULE, Global, TmaBox, TmaPlan};
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// From global to shared memory, completing a pipeline's stage.
pub(super) struct Load;
/// From shared to global memory, in bulk groups.
pub(super) struct Store;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
}

struct Boxes {
    plan: TmaPlan,
    direction: Direction,
    share: Option<Share>,
    traffic: Traffic,
}

/// Where a load reports its bytes, and how it goes there.
#[derive(Clone, Copy)]
struct Arrival<'c> {
    barrier: Val<'c>,
    /// Whether every CTA of the cluster gets the box.
    multicast: bool,
    /// The cache policy of L2.
    policy: Option<i64>,
}

/// The part of a tile that one CTA of a cluster fetches for all.
#[derive(Clone, Copy)]
struct Share {
    /// Rows of the tile, its first dimension.
    rows: i64,
    /// Elements between the parts in shared memory.
    step: i64,
}

impl<'c> Schedule<'c> for Load {
    fn name(&self) -> &'static str {
        "tma.load"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        if segment(site.op, 3) == 0 {
            return Err(Decline::new("the copy signals no pipeline"));
        }
        if segment(site.op, 2) > 0 {
            return Err(Decline::new(
                "elements that do not exist become zero, and the copy asks for others",
            ));
        }
        plan(site, site.memory(0)?, site.memory(1)?, Direction::Load)
    }
}

impl<'c> Schedule<'c> for Store {
    fn name(&self) -> &'static str {
        "tma.store"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        if !site.flag("isAsync") {
            return Err(Decline::new("the copy is not asynchronous"));
        }
        if accumulates(site.op) {
            adds_in_bulk(site.memory(1)?.element)?;
        }
        plan(site, site.memory(1)?, site.memory(0)?, Direction::Store)
    }
}

fn plan<'c>(
    site: Site<'_, 'c>,
    global: &Memory<'c>,
    shared: &Memory<'c>,
    direction: Direction,
) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
    if !site.emitter.chip.has_tma {
        return Err(Decline::new(format!(
            "{} has no tensor memory accelerator",
            site.emitter.chip.name
        )));
    }
    if global.space != Space::Global || shared.space != Space::Shared {
        return Err(Decline::new(match direction {
            Direction::Load => "expected a copy from global to shared memory",
            Direction::Store => "expected a copy from shared to global memory",
        }));
    }
    let origin = global.origin.as_ref().ok_or_else(|| {
        Decline::new("the box is not one of a kernel's argument: its bounds are a slice's")
    })?;
    if !site.flag("multicast") || site.emitter.cluster == 1 {
        let plan = tma_plan(origin, global, shared)?;
        return Ok(Box::new(Boxes {
            plan,
            direction,
            share: None,
            traffic: Traffic::of(site.op),
        }));
    }
    let (part, share) = share(shared, site.emitter.cluster)?;
    let from = Memory {
        shape: part.shape.clone(),
        ..global.clone()
    };
    Ok(Box::new(Boxes {
        plan: tma_plan(origin, &from, &part)?,
        direction,
        share: Some(share),
        traffic: Traffic::of(site.op),
    }))
}

/// The first of so many parts of a shared tile, cut along its first dimension.
fn share<'c>(shared: &Memory<'c>, parts: i64) -> Result<(Memory<'c>, Share), Decline> {
    let (Some(&rows), Some(iters)) = (shared.shape.first(), shared.dims.first()) else {
        return Err(Decline::new("expected a tile of at least one dimension"));
    };
    let [iter] = iters.as_slice() else {
        return Err(Decline::new("the rows of the tile are not evenly apart"));
    };
    let share = Share {
        rows: rows / parts,
        step: rows / parts * iter.stride,
    };
    let period = shared.swizzle.map_or(1, |swizzle| swizzle.period());
    if rows % parts != 0 || share.step % period != 0 {
        return Err(Decline::new(format!(
            "{rows} rows do not fall into {parts} parts that begin with the swizzle's period"
        )));
    }
    let mut part = shared.clone();
    if let (Some(extent), Some(iters)) = (part.shape.first_mut(), part.dims.first_mut()) {
        *extent = share.rows;
        *iters = vec![axe_layout::Iter::new(share.rows, iter.stride, iter.axis)];
    }
    Ok((part, share))
}

/// The plan of a copy between a box of an argument and shared memory.
pub(super) fn tma_plan(
    origin: &Origin<'_>,
    global: &Memory<'_>,
    shared: &Memory<'_>,
) -> Result<TmaPlan, Decline> {
    if shared.pending.known() != Some(0) || shared.guards.iter().any(Option::is_some) {
        return Err(Decline::new(
            "expected all of a shared tile whose swizzle starts anew",
        ));
    }
    let layout = shared
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    if origin.offset * global.bytes % TMA_GRANULE != 0 {
        return Err(Decline::new(format!(
            "the memory begins {} bytes into its argument: expected a multiple of {TMA_GRANULE}",
            origin.offset * global.bytes
        )));
    }
    TmaPlan::new(
        &Global {
            shape: origin.shape.clone(),
            dims: origin.dims.clone(),
            kept: origin.kept.clone(),
            divisors: origin.divisors.clone(),
        },
        &global.shape,
        &layout,
        &global.element.to_string(),
        global.bytes,
    )
}

impl<'c> Plan<'c> for Boxes {
    fn describe(&self) -> String {
        self.plan.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let operands = operands(op);
        let &[from, to, ..] = operands.as_slice() else {
            return Err(emitter.error("expected a source and a destination"));
        };
        let (from, to) = (emitter.memory(from)?, emitter.memory(to)?);
        match self.direction {
            Direction::Load => {
                let slot = operands.last().copied();
                let slot = slot.ok_or_else(|| emitter.error("expected a slot"))?;
                let barrier = emitter.signal(slot)?;
                let map = emitter.map_of(&self.plan, &from)?;
                let leads = emitter.leads()?;
                let (from, to) = match self.share {
                    None => (from, to),
                    Some(share) => emitter.own_share(share, from, to)?,
                };
                let arrival = Arrival {
                    barrier,
                    multicast: self.share.is_some(),
                    policy: self.traffic.policy,
                };
                emitter.when(leads, &[], |emitter| {
                    for each in &self.plan.boxes {
                        emitter.load_box(map, &from, &to, each, arrival)?;
                    }
                    Ok(Vec::new())
                })
            }
            Direction::Store => {
                let map = emitter.map_of(&self.plan, &to)?;
                let leads = emitter.leads()?;
                emitter.bulk_stores = true;
                emitter.when(leads, &[], |emitter| {
                    for each in &self.plan.boxes {
                        emitter.store_box(map, &to, &from, each, self.traffic)?;
                    }
                    Ok(Vec::new())
                })
            }
        }
    }
}

impl<'c> Emitter<'c> {
    /// The tensor map of a plan for the argument that a box belongs to.
    pub(super) fn map_of(
        &mut self,
        plan: &TmaPlan,
        global: &Memory<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let origin = global.origin.as_ref();
        let origin = origin.ok_or_else(|| self.error("expected a box of a kernel's argument"))?;
        self.tensor_map(origin.argument, origin.offset * global.bytes, &plan.map)
    }

    /// The coordinates of a box, innermost first.
    fn coordinates(&self, global: &Memory<'c>, each: &TmaBox) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = self.ints();
        let origin = global.origin.as_ref();
        let origin = origin.ok_or_else(|| self.error("expected a box of a kernel's argument"))?;
        let mut coordinates = Vec::new();
        for coordinate in &each.coordinates {
            let own = origin.at.get(coordinate.dim).copied();
            let digit = ints.div(own.unwrap_or(Int::ZERO), coordinate.divisor)?;
            let digit = match coordinate.modulus {
                None => digit,
                Some(modulus) => ints.rem(digit, modulus)?,
            };
            let at = ints.add(digit, Int::Known(coordinate.offset))?;
            coordinates.push(ints.value(at)?);
        }
        Ok(coordinates)
    }

    /// The part of a tile that this CTA of the cluster fetches.
    fn own_share(
        &self,
        share: Share,
        mut from: Memory<'c>,
        mut to: Memory<'c>,
    ) -> PassResult<'c, (Memory<'c>, Memory<'c>)> {
        let ints = self.ints();
        let i32 = crate::emit::types::integer(self.builder, 32);
        let rank = self
            .builder
            .value("nvvm.read.ptx.sreg.cluster.ctaid.x", &[], i32, &[])?;
        let rank = Int::Value(rank);
        to.base = self.offset_pointer(&to, to.base, ints.mul(rank, share.step)?)?;
        if let Some(origin) = &mut from.origin
            && let Some(&first) = origin.kept.first()
            && let Some(at) = origin.at.get_mut(first)
        {
            *at = ints.add(*at, ints.mul(rank, share.rows)?)?;
        }
        Ok((from, to))
    }

    fn load_box(
        &self,
        map: Val<'c>,
        global: &Memory<'c>,
        shared: &Memory<'c>,
        each: &TmaBox,
        arrival: Arrival<'c>,
    ) -> PassResult<'c> {
        let target = self.offset_pointer(shared, shared.base, Int::Known(each.shared))?;
        let cluster = crate::emit::types::pointer(self.builder, 7);
        let target = self
            .builder
            .value("llvm.addrspacecast", &[target], cluster, &[])?;
        let coordinates = self.coordinates(global, each)?;
        let count = i32::try_from(coordinates.len()).unwrap_or(0);
        let mut operands = vec![target, map];
        operands.extend(coordinates);
        operands.push(arrival.barrier);
        if arrival.multicast {
            let all = Ints::new(self.builder, 16);
            operands.push(all.value(Int::Known((1 << self.cluster) - 1))?);
        }
        if let Some(policy) = arrival.policy {
            operands.push(Ints::new(self.builder, 64).value(Int::Known(policy))?);
        }
        let (multicast, hint) = (arrival.multicast, arrival.policy.is_some());
        let segments = [1, 1, count, 1, 0, multicast.into(), hint.into(), 0];
        let segments = self.builder.segments(&segments);
        self.builder.operation(
            "nvvm.cp.async.bulk.tensor.shared.cluster.global",
            &operands,
            &[],
            &[segments],
            Vec::new(),
        )?;
        Ok(())
    }

    /// Stores a box, or adds it to what is there; the group is the caller's to close.
    pub(super) fn store_box(
        &self,
        map: Val<'c>,
        global: &Memory<'c>,
        shared: &Memory<'c>,
        each: &TmaBox,
        traffic: Traffic,
    ) -> PassResult<'c> {
        let source = self.offset_pointer(shared, shared.base, Int::Known(each.shared))?;
        let coordinates = self.coordinates(global, each)?;
        let count = i32::try_from(coordinates.len()).unwrap_or(0);
        let mut operands = vec![map, source];
        operands.extend(coordinates);
        let policy = traffic.operand(self)?;
        operands.extend(policy);
        let hint = i32::from(policy.is_some());
        if traffic.accumulate {
            let add = self.builder.parsed("#nvvm.tma_redux_kind<add>")?;
            let attributes = [
                self.builder.segments(&[1, 1, count, hint]),
                ("redKind", add),
            ];
            let name = "nvvm.cp.async.bulk.tensor.reduce";
            self.builder
                .operation(name, &operands, &[], &attributes, Vec::new())?;
            return Ok(());
        }
        let segments = self.builder.segments(&[1, 1, count, hint, 0]);
        self.builder.operation(
            "nvvm.cp.async.bulk.tensor.global.shared.cta",
            &operands,
            &[],
            &[segments],
            Vec::new(),
        )?;
        Ok(())
    }
}
