//! `tcgen05.ld`, `tcgen05.st` and their waits.

use super::{check_aligned, load_agent, memory, store_agent, touch, uniform};
use crate::check::shadow::ASYNC;
use crate::decode::TensorAccess;
use crate::exec::step::Ctx;
use crate::exec::warp::{LOADED, Warp};
use crate::fault::Fault;
use crate::units::tcgen05::Touch;

/// Checks the access and returns its address.
fn begin(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    form: &TensorAccess,
    store: bool,
) -> Result<u32, Fault> {
    check_aligned(ctx, warp);
    let address = uniform(ctx, warp, form.address)?;
    let (local, kind) = if store {
        (store_agent(warp), Touch::Write)
    } else {
        (load_agent(warp), Touch::Read)
    };
    let agent = ctx.agent(warp, ctx.mask, local, ASYNC);
    for (lanes, columns) in form.shape.rectangles(form.repeat, form.packed, address) {
        touch(
            ctx.cluster,
            ctx.launch,
            &agent,
            ctx.cta,
            (lanes, columns, kind),
        );
    }
    Ok(address)
}

pub(super) fn load(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    form: &TensorAccess,
) -> Result<(), Fault> {
    let address = begin(ctx, warp, form, false)?;
    let memory = memory(ctx.cluster, ctx.cta)?;
    let words = memory.load(form.shape, form.repeat, form.packed, warp.index, address)?;
    for (&slot, word) in form.regs.iter().zip(&words) {
        warp.write(ctx.base, slot, &word.map(u64::from), ctx.mask);
        let reg = ctx.base + slot as usize;
        warp.in_flight[reg] |= LOADED;
        warp.loaded.push(reg);
    }
    Ok(())
}

pub(super) fn store(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    form: &TensorAccess,
) -> Result<(), Fault> {
    let address = begin(ctx, warp, form, true)?;
    let words: Vec<[u32; 32]> = (form.regs.iter())
        .map(|&slot| warp.reg(ctx.base, slot).map(|v| v as u32))
        .collect();
    memory(ctx.cluster, ctx.cta)?.store(form.shape, form.packed, warp.index, address, &words)
}

/// What the warp loaded or stored is complete.
pub(super) fn wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, store: bool) {
    let local = if store {
        store_agent(warp)
    } else {
        for reg in std::mem::take(&mut warp.loaded) {
            warp.in_flight[reg] &= !LOADED;
        }
        load_agent(warp)
    };
    if let Some(clocks) = &mut warp.clocks {
        let base = (ctx.cta * ctx.launch.entities_per_cta()) as u32;
        let entity = base + ctx.launch.padded_threads() + local;
        let clock = ctx.cluster.ctas[ctx.cta].agent_clocks[local as usize];
        clocks.learn(ctx.mask, entity, clock);
    }
}
