//! Issue of `cp.async` and of stores that complete on an mbarrier.

use super::Work;
use crate::check::shadow::COPY;
use crate::decode::{Access, CpAsync};
use crate::exec::access::shared_place;
use crate::exec::barrier::{place_of, with_mbarrier};
use crate::exec::cluster::{COPY_AGENTS, WGMMA_AGENTS};
use crate::exec::step::{Ctx, Flow, LaneFault, Step, generic_space, lanes_of};
use crate::exec::warp::Warp;
use crate::fault::Fault;

/// What one lane copies: rank and offset of the destination, source, bytes, bytes that are read.
fn copy_of(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    form: &CpAsync,
    lane: usize,
    ignored: bool,
) -> Result<(usize, u64, u64, u64, u64), Fault> {
    let n = u64::from(form.bytes);
    let to = warp.reg(ctx.base, form.dst)[lane].wrapping_add_signed(form.dst_offset);
    let from = warp.reg(ctx.base, form.src)[lane].wrapping_add_signed(form.src_offset);
    for addr in [to, from] {
        if !addr.is_multiple_of(n) {
            return Err(Fault::Misaligned { addr, align: n });
        }
    }
    let mut read = (form.size).map_or(n, |s| u64::from(warp.reg(ctx.base, s)[lane] as u32));
    if read > n {
        return Err(Fault::Invalid(format!(
            "cp.async reads {read} of {n} bytes"
        )));
    }
    if ignored {
        read = 0;
    }
    let (rank, offset) = shared_place(ctx.cluster, generic_space(to).1, n)?;
    if read > 0 {
        ctx.launch.memory.find(from, read)?;
    }
    Ok((rank, offset, from, n, read))
}

pub(super) fn cp_async(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &CpAsync) -> Step<Flow> {
    let mut copies = Vec::new();
    let mut groups = Vec::new();
    let ignored = form.ignore.map_or(0, |p| warp.pred(ctx.preds, p));
    for lane in lanes_of(ctx.mask) {
        let copy = copy_of(ctx, warp, form, lane, ignored >> lane & 1 == 1)
            .map_err(|fault| LaneFault(lane as u32, fault))?;
        copies.push(copy);
        let thread = warp.index as u32 * 32 + lane as u32;
        groups.push((thread, false, ctx.groups(thread, false).add()));
    }
    let local = WGMMA_AGENTS + warp.index as u32 % COPY_AGENTS;
    let agent = ctx.agent(warp, ctx.mask, local, COPY);
    ctx.cluster.counters.cp_async_bytes += copies.iter().map(|c| c.3).sum::<u64>();
    ctx.queue(agent, Work::Copies(copies), groups);
    Ok(Flow::Next)
}

pub(super) fn arrive(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    addr: u32,
    offset: i64,
    no_inc: bool,
) -> Step<Flow> {
    for lane in lanes_of(ctx.mask) {
        let at = warp.reg(ctx.base, addr)[lane].wrapping_add_signed(offset);
        let place = place_of(ctx, at)?;
        if !no_inc {
            // Without .noinc the instruction adds the arrival that it later makes (PTX ISA).
            with_mbarrier(ctx.cluster, place, |m| {
                m.pending += 1;
                Ok(())
            })?;
        }
        let local = WGMMA_AGENTS + warp.index as u32 % COPY_AGENTS;
        let mut agent = ctx.agent(warp, 1 << lane, local, COPY);
        agent.thread = warp.index as u32 * 32 + lane as u32;
        ctx.queue(
            agent,
            Work::CopyArrive {
                place,
                lanes: 1 << lane,
            },
            Vec::new(),
        );
    }
    Ok(Flow::Next)
}

/// `red.async` and `st.async`: the bytes complete on the mbarrier at once.
pub(in crate::exec) fn complete_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    bar: u32,
    offset: i64,
    bytes: u64,
) -> Result<(), Fault> {
    for lane in lanes_of(ctx.mask) {
        let place = place_of(
            ctx,
            warp.reg(ctx.base, bar)[lane].wrapping_add_signed(offset),
        )?;
        let completed = with_mbarrier(ctx.cluster, place, |m| m.complete_tx(bytes as u32))?;
        if let Some(clocks) = &mut warp.clocks {
            let view = clocks.release(1 << lane);
            ctx.cluster.ctas[place.0]
                .mbar_clocks
                .entry(place.1)
                .or_default()
                .arrive(&view, completed);
        }
    }
    Ok(())
}

pub(in crate::exec) fn store_async(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    access: &Access,
    bar: u32,
    offset: i64,
) -> Step<Flow> {
    crate::exec::access::store(ctx, warp, access)?;
    complete_bytes(
        ctx,
        warp,
        bar,
        offset,
        u64::from(access.bytes) * access.regs.len() as u64,
    )?;
    Ok(Flow::Next)
}
