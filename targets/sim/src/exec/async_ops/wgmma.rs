//! wgmma: issue, groups and the registers in flight.

use super::Agent;
use super::tcgen05::loads;
use crate::check::shadow::ASYNC;
use crate::decode::{Op, Wgmma, WgmmaA};
use crate::exec::cluster::WGMMA_AGENTS;
use crate::exec::step::{Ctx, Flow, Step};
use crate::exec::warp::{LOADED, Wait, Warp};
use crate::report::{Finding, FindingKind};

/// One warp's part of a wgmma, or the end of a group.
#[derive(Debug, Clone)]
pub(crate) enum WgmmaEntry {
    Commit,
    Mma(Box<WgmmaPart>),
}

#[derive(Debug, Clone)]
pub(crate) struct WgmmaPart {
    pub(super) form: Wgmma,
    pub(super) base: usize,
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) scale: bool,
    pub(super) agent: Agent,
    pub(super) ready: u64,
}

/// The warpgroup's agent.
fn local_agent(warp: &Warp) -> u32 {
    (warp.index as u32 / 4) % WGMMA_AGENTS
}

/// Marks the registers that a wgmma uses: 1 for those it writes, 2 for those it reads.
fn mark_registers(ctx: &Ctx<'_, '_>, warp: &mut Warp, form: &Wgmma) {
    let mut registers: Vec<(usize, u8)> =
        form.d.iter().map(|&s| (ctx.base + s as usize, 1)).collect();
    if let WgmmaA::Registers(slots) = &form.a {
        registers.extend(slots.iter().map(|&s| (ctx.base + s as usize, 2)));
    }
    if ctx.checking()
        && let Some((reg, _)) = registers.iter().find(|(r, _)| warp.unfenced[*r])
    {
        let which = registers.iter().position(|r| r.0 == *reg).unwrap_or(0);
        let message =
            format!("register {which} of its operands was written since the last wgmma.fence");
        ctx.find(warp, FindingKind::WgmmaRegisters, 0, message, None);
    } else if ctx.checking() && !warp.fenced {
        let message = "no wgmma.fence comes before the warp's first wgmma";
        ctx.find(warp, FindingKind::WgmmaRegisters, 0, message.into(), None);
        warp.fenced = true;
    }
    for &(reg, flag) in &registers {
        warp.in_flight[reg] |= flag;
    }
    warp.wgmma_open.extend(registers);
}

pub(super) fn issue(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &Wgmma) -> Step<Flow> {
    if ctx.mask != u32::MAX {
        ctx.find(
            warp,
            FindingKind::BarrierDivergence,
            32,
            "wgmma needs all 32 lanes of four warps".into(),
            None,
        );
    }
    mark_registers(ctx, warp, form);
    let a = match &form.a {
        WgmmaA::Descriptor(slot) => warp.reg(ctx.base, *slot)[0],
        WgmmaA::Registers(_) => 0,
    };
    let b = warp.reg(ctx.base, form.b)[0];
    let scale = warp.pred(ctx.preds, form.scale_d) & 1 == 1;
    let agent = ctx.agent(warp, ctx.mask, local_agent(warp), ASYNC);
    let part = WgmmaPart {
        form: form.clone(),
        base: ctx.base,
        a,
        b,
        scale,
        agent,
        ready: ctx.delay(),
    };
    let entry = WgmmaEntry::Mma(Box::new(part));
    ctx.cluster.ctas[ctx.cta].wgmma[warp.index].push_back(entry);
    Ok(Flow::Next)
}

pub(super) fn wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, pending: usize) -> Step<Flow> {
    let queue = &ctx.cluster.ctas[ctx.cta].wgmma[warp.index];
    let left = queue
        .iter()
        .filter(|e| matches!(e, WgmmaEntry::Commit))
        .count();
    if left > pending {
        return Ok(Flow::Block(Wait::Async("wgmma groups")));
    }
    while warp.wgmma_groups.len() > pending {
        warp.wgmma_groups.pop_front();
    }
    warp.fence_open = false;
    warp.in_flight.fill(0);
    for &(reg, flag) in warp.wgmma_groups.iter().flatten().chain(&warp.wgmma_open) {
        warp.in_flight[reg] |= flag;
    }
    let local = local_agent(warp);
    if let Some(clocks) = &mut warp.clocks {
        let cta = &ctx.cluster.ctas[ctx.cta];
        let base = (ctx.cta * ctx.launch.entities_per_cta()) as u32;
        let entity = base + ctx.launch.padded_threads() + local;
        let mut view = clocks.view(0).clone();
        std::sync::Arc::make_mut(&mut view.all).raise(entity, cta.wgmma_done[warp.index]);
        clocks.acquire(ctx.mask, &view);
    }
    Ok(Flow::Next)
}

/// Watches registers that wgmma uses. A plain copy of an accumulator in flight is what two-address
/// code makes of a tied operand: it waits for the value and stays in flight itself. Returns whether
/// the fragment has to wait.
pub(in crate::exec) fn watch_registers(ctx: &Ctx<'_, '_>, warp: &mut Warp) -> bool {
    if let Op::Mov { d, a } = ctx.inst.op {
        return copy_in_flight(ctx, warp, ctx.base + a as usize, ctx.base + d as usize);
    }
    if let Op::Cvt { convert, d, a, .. } = &ctx.inst.op
        && convert.moves()
        && warp.in_flight[ctx.base + *a as usize] & 1 != 0
    {
        return copy_in_flight(ctx, warp, ctx.base + *a as usize, ctx.base + *d as usize);
    }
    // As Triton takes accumulators of two halves apart, and puts them together, before it waits.
    let (from, to) = match &ctx.inst.op {
        Op::Unpack { parts, a, .. } => (std::slice::from_ref(a), parts.as_slice()),
        Op::Pack { d, parts, .. } => (parts.as_slice(), std::slice::from_ref(d)),
        _ => (&[][..], &[][..]),
    };
    let flying = |slot: &&u32| warp.in_flight[ctx.base + **slot as usize] & 1 != 0;
    if let Some(&from) = from.iter().find(flying) {
        let mut copies = to.iter().map(|&d| ctx.base + d as usize);
        return copies.any(|to| copy_in_flight(ctx, warp, ctx.base + from as usize, to));
    }
    if !ctx.checking() || matches!(ctx.inst.op, Op::Wgmma(_)) || loads(&ctx.inst.op) {
        return false;
    }
    match &ctx.inst.op {
        Op::Pack { d, parts, .. } if carry_loaded(warp, ctx.base, parts, &[*d]) => return false,
        Op::Unpack { parts, a, .. } if carry_loaded(warp, ctx.base, &[*a], parts) => return false,
        _ => {}
    }
    let mut bad = None;
    ctx.inst.op.registers(&mut |slot, write| {
        let reg = ctx.base + slot as usize;
        let flags = warp.in_flight.get(reg).copied().unwrap_or(0);
        if flags & (1 | LOADED) != 0 || (flags & 2 != 0 && write) {
            bad.get_or_insert((slot, write, flags));
        }
        if write && let Some(u) = warp.unfenced.get_mut(reg) {
            *u = true;
        }
    });
    if let Some((_, write, flags)) = bad {
        let verb = if write { "written" } else { "read" };
        if flags & LOADED != 0 {
            let message =
                format!("a register that tcgen05.ld loads is {verb} before tcgen05.wait::ld");
            let place = ctx.place(warp, 32);
            let found = || Box::new(Finding::new(FindingKind::WgmmaRegisters, place, message));
            warp.early_use.get_or_insert_with(found);
            return false;
        }
        let what = if flags & 1 != 0 {
            "an accumulator"
        } else {
            "an A register"
        };
        let message = format!("{what} of a wgmma in flight is {verb} before wgmma.wait_group");
        ctx.find(warp, FindingKind::WgmmaRegisters, 32, message, None);
    }
    false
}

/// What packs registers that `tcgen05.ld` loads, as compilers do before the wait, does not use them yet:
/// what it writes counts as loaded, too.
fn carry_loaded(warp: &mut Warp, base: usize, from: &[u32], to: &[u32]) -> bool {
    let flags = |slot: &u32| warp.in_flight[base + *slot as usize];
    let loaded = from.iter().any(|slot| flags(slot) & LOADED != 0);
    let other = from.iter().chain(to).any(|slot| flags(slot) & !LOADED != 0);
    if !loaded || other {
        return false;
    }
    for slot in to {
        let reg = base + *slot as usize;
        warp.in_flight[reg] |= LOADED;
        warp.loaded.push(reg);
    }
    true
}

fn copy_in_flight(ctx: &Ctx<'_, '_>, warp: &mut Warp, from: usize, to: usize) -> bool {
    if warp.in_flight[from] & 1 != 0 {
        if !ctx.cluster.ctas[ctx.cta].wgmma[warp.index].is_empty() {
            return true;
        }
        let open = std::iter::once(&mut warp.wgmma_open);
        for group in warp.wgmma_groups.iter_mut().chain(open) {
            if group.iter().any(|&(r, f)| r == from && f == 1) {
                group.push((to, 1));
            }
        }
        warp.in_flight[to] |= 1;
    }
    if warp.in_flight[from] & LOADED != 0 {
        warp.in_flight[to] |= LOADED;
        warp.loaded.push(to);
    }
    // A constant is written here; but behind a fence, two-address code may give a tied operand its value.
    let fixed = &ctx.launch.program.functions[ctx.func].fixed;
    let constant = fixed.get(from - ctx.base).is_some_and(|f| *f);
    warp.unfenced[to] = warp.unfenced[from] || (constant && !warp.fence_open);
    false
}
