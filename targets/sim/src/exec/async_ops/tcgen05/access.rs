//! `tcgen05.ld`, `tcgen05.st` and their waits.

use super::{check_aligned, load_agent, memory, store_agent, touch, uniform};
use crate::check::shadow::ASYNC;
use crate::decode::{Kind32, TensorAccess, TensorReduce};
use crate::exec::step::Ctx;
use crate::exec::warp::{LOADED, Warp};
use crate::fault::Fault;
use crate::report::Severity;
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
    }
    if let Some(reduce) = &form.reduce {
        let all = std::array::from_fn(|lane| reduced(reduce, words.iter().map(|w| w[lane])));
        warp.write(ctx.base, reduce.d, &all, ctx.mask);
    }
    let again = |slot: u32| warp.in_flight[ctx.base + slot as usize] & LOADED != 0;
    if form.written().any(again) {
        report_early_use(ctx, warp);
    }
    for slot in form.written() {
        let reg = ctx.base + slot as usize;
        warp.in_flight[reg] |= LOADED;
        warp.loaded.push(reg);
    }
    Ok(())
}

/// The least or greatest of a thread's words. As for `min` and `max`, -0 is less than +0, and NaNs
/// count only with `.NaN` or where all are (PTX ISA 9.7.3.11).
fn reduced(reduce: &TensorReduce, words: impl Iterator<Item = u32>) -> u64 {
    // An order of integers in which every type compares.
    let key = |w: u32| match reduce.kind {
        Kind32::U32 => i64::from(w),
        Kind32::S32 => i64::from(w as i32),
        Kind32::F32 if w >> 31 == 1 => -1 - i64::from(w & 0x7fff_ffff),
        Kind32::F32 => i64::from(w),
    };
    let float = reduce.kind == Kind32::F32;
    let words: Vec<u32> = words
        .map(|w| match reduce.kind {
            _ if !reduce.abs => w,
            Kind32::F32 => w & 0x7fff_ffff,
            Kind32::S32 => (w as i32).unsigned_abs(),
            Kind32::U32 => w,
        })
        .collect();
    let is_nan = |w: &u32| float && f32::from_bits(*w).is_nan();
    let numbers = words.iter().copied().filter(|w| !is_nan(w));
    let best = if reduce.max {
        numbers.max_by_key(|w| key(*w))
    } else {
        numbers.min_by_key(|w| key(*w))
    };
    match best {
        Some(best) if !(reduce.nan && words.iter().any(is_nan)) => best.into(),
        _ => 0x7fff_ffff,
    }
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

/// Reports that a loaded register was used, and no wait came.
pub(in crate::exec::async_ops) fn report_early_use(ctx: &Ctx<'_, '_>, warp: &mut Warp) {
    if let Some(finding) = warp.early_use.take() {
        ctx.launch.record(*finding);
    }
}

/// What the warp loaded or stored is complete.
pub(super) fn wait(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, store: bool) {
    let local = if store {
        store_agent(warp)
    } else {
        for reg in std::mem::take(&mut warp.loaded) {
            warp.in_flight[reg] &= !LOADED;
        }
        // LLVM moves arithmetic above the wait of Triton's kernels, and the assembler knows better.
        if let Some(mut finding) = warp.early_use.take() {
            finding.severity = Severity::Note;
            ctx.launch.record(*finding);
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
