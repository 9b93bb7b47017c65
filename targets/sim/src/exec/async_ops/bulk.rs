//! Issue of bulk and tensor copies.

use super::{BulkWork, Place, TensorWork, Work};
use crate::decode::{Bulk, RANK_SHIFT, Tensor};
use crate::exec::barrier::place_of;
use crate::exec::step::{Ctx, Flow, LaneFault, Step, generic_space, lanes_of};
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::report::FindingKind;
use crate::units::tensor_map::TensorMap;
use crate::units::tma;

fn ranks(ctx: &Ctx<'_, '_>, warp: &Warp, multicast: Option<u32>, lane: usize, own: u64) -> u32 {
    match multicast {
        Some(slot) => warp.reg(ctx.base, slot)[lane] as u32 & 0xffff,
        None => 1 << (own >> RANK_SHIFT & 0x1f),
    }
}

fn shared_address(addr: u64) -> u64 {
    if addr >> 32 == 0 {
        addr
    } else {
        generic_space(addr).1
    }
}

/// The mbarrier that a copy completes on.
fn mbarrier(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    mbar: Option<(u32, i64)>,
    lane: usize,
) -> Result<Option<Place>, Fault> {
    mbar.map(|(slot, offset)| {
        let at = warp.reg(ctx.base, slot)[lane].wrapping_add_signed(offset);
        place_of(ctx, at)
    })
    .transpose()
}

/// Queues a copy of one lane: it belongs to the lane's bulk group unless it completes on an mbarrier.
fn queue(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lane: usize, grouped: bool, work: Work) {
    let agent = ctx.ring_agent(warp, 1 << lane);
    let thread = agent.thread;
    let groups = if grouped {
        vec![(thread, true, ctx.groups(thread, true).add())]
    } else {
        Vec::new()
    };
    ctx.queue(agent, work, groups);
}

pub(super) fn bulk(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &Bulk) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let get = |slot: u32| warp.reg(ctx.base, slot)[lane];
        let mut dst = get(form.dst).wrapping_add_signed(form.dst_offset);
        let mut src = get(form.src).wrapping_add_signed(form.src_offset);
        let size = u64::from(get(form.size) as u32);
        tma::check_bulk(src, dst, size).map_err(fail)?;
        if !form.to_global {
            dst = shared_address(dst);
        }
        if !form.from_global {
            src = shared_address(src);
        }
        let mbar = mbarrier(ctx, warp, form.mbar, lane).map_err(fail)?;
        let work = BulkWork {
            form: Box::new(form.clone()),
            dst,
            src,
            size,
            mbar,
            ranks: ranks(ctx, warp, form.multicast, lane, dst),
        };
        ctx.cluster.counters.bulk_bytes += size;
        queue(ctx, warp, lane, mbar.is_none(), Work::Bulk(work));
    }
    Ok(Flow::Next)
}

pub(super) fn tensor(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &Tensor) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let work = tensor_work(ctx, warp, form, lane).map_err(|f| LaneFault(lane as u32, f))?;
        ctx.cluster.counters.bulk_bytes += tma::box_bytes(&work.map);
        let grouped = work.mbar.is_none();
        queue(ctx, warp, lane, grouped, Work::Tensor(work));
    }
    Ok(Flow::Next)
}

fn tensor_work(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    form: &Tensor,
    lane: usize,
) -> Result<TensorWork, Fault> {
    let get = |slot: u32| warp.reg(ctx.base, slot)[lane];
    let at = get(form.map).wrapping_add_signed(form.map_offset);
    if let (Some(&line), true) = (ctx.cluster.new_maps.get(&at), ctx.checking()) {
        let message = "the tensor map was made in this kernel, and no fence.proxy.tensormap::generic.acquire of it came since";
        let kind = FindingKind::MissingProxyFence;
        ctx.find(warp, kind, lane as u32, message.into(), Some(line));
    }
    let bytes = map_bytes(ctx, at)?;
    let map = TensorMap::decode(&bytes).map_err(|e| Fault::Invalid(format!("tensor map: {e}")))?;
    let shared = shared_address(get(form.shared).wrapping_add_signed(form.shared_offset));
    let mbar = mbarrier(ctx, warp, form.mbar, lane)?;
    if !form.gather && form.coords.len() != map.rank {
        return Err(Fault::Invalid(format!(
            "a {}d copy with a tensor map of rank {}",
            form.coords.len(),
            map.rank
        )));
    }
    Ok(TensorWork {
        form: Box::new(form.clone()),
        map: Box::new(map),
        coords: form.coords.iter().map(|&c| get(c) as i32).collect(),
        offsets: form
            .im2col
            .iter()
            .flatten()
            .map(|&c| get(c) as u16)
            .collect(),
        shared,
        mbar,
        ranks: ranks(ctx, warp, form.multicast, lane, shared),
    })
}

/// The 128 bytes of a tensor map in parameter, constant or global memory.
fn map_bytes(ctx: &Ctx<'_, '_>, addr: u64) -> Result<[u8; 128], Fault> {
    if !addr.is_multiple_of(64) {
        return Err(Fault::Misaligned { addr, align: 64 });
    }
    let mut out = [0; 128];
    let (space, at) = generic_space(addr);
    let in_params =
        at as usize + 128 <= ctx.launch.params.len() && (space == Space::Param || at < 1 << 16);
    if in_params {
        out.copy_from_slice(&ctx.launch.params[at as usize..at as usize + 128]);
        return Ok(out);
    }
    let index = ctx.launch.memory.find(addr, 128)?;
    if let Some(a) = ctx.launch.memory.get(index) {
        a.load(addr - a.base, &mut out);
    }
    Ok(out)
}
