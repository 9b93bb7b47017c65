//! Copies by the tensor memory accelerator: `cp.async.bulk.tensor` (PTX ISA 9.7.9.27).

use super::share::{Share, share};
use super::traffic::{Traffic, accumulates, adds_in_bulk};
use super::transfer::sides;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::tma::{GRANULE as TMA_GRANULE, Global, TmaBox, TmaPlan};
use crate::state::form::{Origin, Space, Storage};
use crate::state::site::Site;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From global to shared memory, completing a pipeline's stage.
#[derive(Clone, Copy)]
pub(super) struct Load;
/// From shared to global memory, in bulk groups.
#[derive(Clone, Copy)]
pub(super) struct Store;

/// The boxes of a tile, or of the part of it that one CTA of a cluster fetches for all.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Boxes {
    tma: TmaPlan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    multicast: Option<Share>,
}

impl fmt::Display for Boxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tma.fmt(f)
    }
}

/// Where a load reports its bytes, and how it goes there.
#[derive(Clone, Copy)]
struct Arrival<'c> {
    barrier: Val<'c>,
    /// The CTAs that get the box, where there are others.
    multicast: Option<[i64; 2]>,
    /// The cache policy of L2.
    policy: Option<i64>,
}

/// What the boxes of a copy are made of: global and shared memory, or the parts of them that a CTA fetches.
struct Ends<'c> {
    global: Storage<'c>,
    shared: Storage<'c>,
    share: Option<Share>,
}

impl<'c> Ends<'c> {
    fn of_load(site: Site<'_, 'c>) -> Result<Self, Decline> {
        if site.segment(3) == 0 {
            return Err(Decline::new("the copy signals no pipeline"));
        }
        if site.segment(2) > 0 {
            return Err(Decline::new(
                "elements that do not exist become zero, and the copy asks for others",
            ));
        }
        let wrong = "expected a copy from global to shared memory";
        Self::admitted(site, (site.memory(0)?, site.memory(1)?), wrong)
    }

    fn of_store(site: Site<'_, 'c>) -> Result<Self, Decline> {
        if !site.flag("isAsync") {
            return Err(Decline::new("the copy is not asynchronous"));
        }
        if accumulates(site.op) {
            adds_in_bulk(site.memory(1)?.element)?;
        }
        let wrong = "expected a copy from shared to global memory";
        Self::admitted(site, (site.memory(1)?, site.memory(0)?), wrong)
    }

    fn admitted(
        site: Site<'_, 'c>,
        (global, shared): (&Storage<'c>, &Storage<'c>),
        wrong: &str,
    ) -> Result<Self, Decline> {
        if !site.chip().has_tma {
            return Err(Decline::new(format!(
                "{} has no tensor memory accelerator",
                site.chip().name
            )));
        }
        if global.space != Space::Global || shared.space != Space::Shared {
            return Err(Decline::new(wrong));
        }
        origin(global)?;
        let cluster = site.kernel.cluster_size();
        if !site.flag("multicast") || cluster == 1 {
            return Ok(Self {
                global: global.clone(),
                shared: shared.clone(),
                share: None,
            });
        }
        let (shared, share) = share(shared, among(site)?, cluster)?;
        let global = Storage {
            shape: shared.shape.clone(),
            ..global.clone()
        };
        Ok(Self {
            global,
            shared,
            share: Some(share),
        })
    }

    fn plan(&self) -> Result<Boxes, Decline> {
        Ok(Boxes {
            tma: tma_plan(&self.global, &self.shared)?,
            multicast: self.share,
        })
    }

    fn check(&self, plan: &Boxes) -> Result<(), Decline> {
        if plan.multicast != self.share {
            return Err(Decline::new(format!(
                "expected the parts {:?} of the tile, got {:?}",
                self.share, plan.multicast
            )));
        }
        check_tma(&self.global, &self.shared, &plan.tma)
    }
}

fn origin<'a>(global: &'a Storage<'_>) -> Result<&'a Origin, Decline> {
    global.origin.as_ref().ok_or_else(|| {
        Decline::new("the box is not one of a kernel's argument: its bounds are a slice's")
    })
}

/// The CTAs that a multicast is for, where not all of the cluster are.
fn among(site: Site<'_, '_>) -> Result<Option<[i64; 2]>, Decline> {
    let own = site
        .op
        .attribute("among")
        .ok()
        .and_then(attribute::read_i64s);
    let Some(own) = own else {
        return Ok(None);
    };
    let cluster = site.kernel.cluster_size();
    let falls = |ctas: i64, apart: i64| {
        let all = ctas.checked_mul(apart).filter(|_| ctas > 0 && apart > 0);
        all.is_some_and(|all| cluster % all == 0)
    };
    match own.as_slice() {
        &[ctas, apart] if falls(ctas, apart) => Ok(Some([ctas, apart])),
        _ => Err(Decline::new(format!(
            "expected CTAs that a cluster of {cluster} falls into, got {own:?}"
        ))),
    }
}

/// What the accelerator sees of a copy between a box of an argument and shared memory.
fn seen(global: &Storage<'_>, shared: &Storage<'_>) -> Result<(Global, Layout), Decline> {
    if !shared.begins_period() || shared.is_guarded() {
        return Err(Decline::new(
            "expected all of a shared tile whose swizzle starts anew",
        ));
    }
    let layout = shared
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    let origin = origin(global)?;
    if origin.offset * global.bytes % TMA_GRANULE != 0 {
        return Err(Decline::new(format!(
            "the memory begins {} bytes into its argument: expected a multiple of {TMA_GRANULE}",
            origin.offset * global.bytes
        )));
    }
    let global = Global {
        shape: origin.shape.clone(),
        dims: origin.dims.clone(),
        kept: origin.kept.clone(),
        divisors: origin.divisors.clone(),
    };
    Ok((global, layout))
}

/// The plan of a copy between a box of an argument and shared memory.
pub(super) fn tma_plan(global: &Storage<'_>, shared: &Storage<'_>) -> Result<TmaPlan, Decline> {
    let (seen, layout) = seen(global, shared)?;
    let element = global.element.to_string();
    TmaPlan::new(&seen, &global.shape, &layout, &element, global.bytes)
}

/// Checks such a plan.
pub(super) fn check_tma(
    global: &Storage<'_>,
    shared: &Storage<'_>,
    plan: &TmaPlan,
) -> Result<(), Decline> {
    let (seen, layout) = seen(global, shared)?;
    let element = global.element.to_string();
    plan.verify(&seen, &global.shape, &layout, &element, global.bytes)
}

impl Schedule for Load {
    type Plan = Boxes;

    fn name(&self) -> &'static str {
        "tma.load"
    }
}

impl<'c> Match<Site<'_, 'c>> for Load {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Boxes, Decline> {
        Ends::of_load(site)?.plan()
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Boxes) -> Result<(), Decline> {
        Ends::of_load(site)?.check(plan)
    }
}

impl Schedule for Store {
    type Plan = Boxes;

    fn name(&self) -> &'static str {
        "tma.store"
    }
}

impl<'c> Match<Site<'_, 'c>> for Store {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Boxes, Decline> {
        Ends::of_store(site)?.plan()
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Boxes) -> Result<(), Decline> {
        Ends::of_store(site)?.check(plan)
    }
}

impl<'c> Emit<'c> for Load {
    fn emit(
        &self,
        plan: &Boxes,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let slot = operands(op).last().copied();
        let slot = slot.ok_or_else(|| emitter.error("expected a slot"))?;
        let barrier = emitter.signal(slot)?;
        let map = emitter.map_of(&plan.tma, &from)?;
        let leads = emitter.leads()?;
        let (from, to) = match plan.multicast {
            None => (from, to),
            Some(share) => emitter.own_share(share, from, to)?,
        };
        let arrival = Arrival {
            barrier,
            multicast: plan.multicast.map(|share| share.ctas(emitter.cluster)),
            policy: Traffic::of(op).policy,
        };
        emitter.when(leads, &[], |emitter| {
            for each in &plan.tma.boxes {
                emitter.load_box(map, &from, &to, each, arrival)?;
            }
            Ok(Vec::new())
        })
    }
}

impl<'c> Emit<'c> for Store {
    fn emit(
        &self,
        plan: &Boxes,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let map = emitter.map_of(&plan.tma, &to)?;
        let leads = emitter.leads()?;
        emitter.bulk_stores = true;
        let traffic = Traffic::of(op);
        emitter.when(leads, &[], |emitter| {
            for each in &plan.tma.boxes {
                emitter.store_box(map, &to, &from, each, traffic)?;
            }
            Ok(Vec::new())
        })
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
        // A dimension of the map is one of the argument where that has sizes of its own.
        let dims = plan.boxes.first().map_or(&[][..], |own| &own.coordinates);
        let dims = dims.iter().map(|coordinate| coordinate.dim);
        let sizes = dims.filter_map(|dim| origin.sizes.get(dim).copied());
        self.tensor_map(
            origin.argument,
            origin.offset * global.bytes,
            &plan.map,
            sizes.collect(),
        )
    }

    /// The coordinates of a box, innermost first.
    fn coordinates(&self, global: &Memory<'c>, each: &TmaBox) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = self.ints();
        let mut coordinates = Vec::new();
        for coordinate in &each.coordinates {
            let own = global.at.get(coordinate.dim).copied();
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
        let rank = self.rank_in_cluster()?;
        let [ctas, apart] = share.ctas(self.cluster);
        let rank = match share.among {
            None => rank,
            Some(_) => ints.rem(ints.div(rank, apart)?, ctas)?,
        };
        to.base = self.offset_pointer(&to, to.base, ints.mul(rank, share.step)?)?;
        let kept = from.origin.as_ref().map(|origin| &origin.kept);
        if let Some(dim) = kept.and_then(|kept| kept.get(share.dim).copied())
            && let Some(at) = from.at.get_mut(dim)
        {
            *at = ints.add(*at, ints.mul(rank, share.extent)?)?;
        }
        Ok((from, to))
    }

    /// The CTAs of the cluster that a box goes to: this one, and those that fetch parts for it.
    fn mask_of(&self, [ctas, apart]: [i64; 2]) -> PassResult<'c, Val<'c>> {
        let bits = (0..ctas).fold(0i64, |bits, at| bits | 1 << (at * apart));
        let mask = Ints::new(self.builder, 16);
        if ctas == self.cluster {
            return mask.value(Int::Known(bits));
        }
        // The first of them is as far from the beginning of its neighbours as this one is from the one before it.
        let i32 = crate::state::types::integer(self.builder, 32);
        let ints = Ints::new(self.builder, 32);
        let (rank, all) = (self.rank_in_cluster()?, ctas * apart);
        let sets = ints.sub(rank, ints.rem(rank, all)?)?;
        let first = ints.value(ints.add(sets, ints.rem(rank, apart)?)?)?;
        let bits = ints.value(Int::Known(bits))?;
        let shifted = self.builder.value("arith.shli", &[bits, first], i32, &[])?;
        let i16 = crate::state::types::integer(self.builder, 16);
        self.builder.value("arith.trunci", &[shifted], i16, &[])
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
        let cluster = crate::state::types::pointer(self.builder, 7);
        let target = self
            .builder
            .value("llvm.addrspacecast", &[target], cluster, &[])?;
        let coordinates = self.coordinates(global, each)?;
        let count = i32::try_from(coordinates.len()).unwrap_or(0);
        let mut operands = vec![target, map];
        operands.extend(coordinates);
        operands.push(arrival.barrier);
        if let Some(ctas) = arrival.multicast {
            operands.push(self.mask_of(ctas)?);
        }
        if let Some(policy) = arrival.policy {
            operands.push(Ints::new(self.builder, 64).value(Int::Known(policy))?);
        }
        let (multicast, hint) = (arrival.multicast.is_some(), arrival.policy.is_some());
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
