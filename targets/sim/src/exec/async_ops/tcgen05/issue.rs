//! Issue of products, copies and commits to the pipe.

use super::{PIPE, TensorOp, TensorWork, no_memory};
use crate::check::shadow::ASYNC;
use crate::decode::{RANK_SHIFT, TensorA, TensorMma};
use crate::exec::barrier::place_of;
use crate::exec::step::{Ctx, LaneFault, Step, lanes_of};
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::tcgen05::{Instruction, OperandA, Operands};
use crate::units::tensor_memory::CopyShape;

/// The CTAs of a group: the one that issues, or its pair, the even rank first (PTX ISA 9.7.16.2.1).
fn group(ctx: &Ctx<'_, '_>, pair: bool) -> Result<Vec<usize>, Fault> {
    if !pair {
        return Ok(vec![ctx.cta]);
    }
    let ranks = vec![ctx.cta & !1, ctx.cta | 1];
    if ctx.cta | 1 < ctx.cluster.ctas.len() {
        return Ok(ranks);
    }
    Err(Fault::Invalid(
        "`.cta_group::2` in a cluster without the CTA's peer".into(),
    ))
}

fn push(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    work: TensorWork,
) -> Result<(), Fault> {
    let agent = ctx.agent(warp, 1 << lane, PIPE, ASYNC);
    let ready = ctx.delay();
    let tensor = ctx.cluster.ctas[ctx.cta].tensor.as_mut();
    let tensor = tensor.ok_or_else(no_memory)?;
    if !matches!(work, TensorWork::Commit(_)) {
        tensor.last_work = agent.clock;
    }
    tensor.queue.push_back(TensorOp { ready, agent, work });
    Ok(())
}

/// One thread issues; more lanes issue as many operations.
fn check_single(ctx: &Ctx<'_, '_>, warp: &Warp) {
    let count = ctx.mask.count_ones();
    if count > 1 {
        let message = format!("{count} threads issue it, each an operation of its own");
        ctx.find(warp, FindingKind::Invalid, 32, message, None);
    }
}

pub(super) fn mma(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    pair: bool,
    form: &TensorMma,
) -> Step<()> {
    check_single(ctx, warp);
    let ranks = group(ctx, pair)?;
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let bits = warp.reg(ctx.base, form.descriptor)[lane] as u32;
        let instruction = Instruction::decode(form.kind, bits, ranks.len()).map_err(fail)?;
        ctx.cluster.counters.tcgen05_macs += (instruction.m * instruction.n * form.kind.k()) as u64;
        let work = TensorWork::Mma {
            ranks: ranks.clone(),
            instruction,
            operands: operands(ctx, warp, form, lane),
        };
        push(ctx, warp, lane, work).map_err(fail)?;
    }
    Ok(())
}

fn operands(ctx: &Ctx<'_, '_>, warp: &Warp, form: &TensorMma, lane: usize) -> Operands {
    let get = |slot: u32| warp.reg(ctx.base, slot)[lane];
    let at = |(slot, offset): (u32, i64)| (get(slot) as u32).wrapping_add_signed(offset as i32);
    let mut disabled = [0u128; 2];
    for (i, &slot) in form.disabled.iter().enumerate() {
        disabled[i / 4] |= u128::from(get(slot) as u32) << (32 * (i % 4));
    }
    Operands {
        d: at(form.d),
        a: match form.a {
            TensorA::Descriptor(slot) => OperandA::Shared(get(slot)),
            TensorA::Memory(address) => OperandA::Tensor(at(address)),
        },
        b: get(form.b),
        accumulate: warp.pred(ctx.preds, form.accumulate) >> lane & 1 == 1,
        scale_d: form.scale_d,
        scales: form.scales.map(|scales| scales.map(at)),
        block: form.block,
        disabled,
    }
}

pub(super) fn copy(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    pair: bool,
    shape: CopyShape,
    (slot, offset): (u32, i64),
    descriptor: u32,
) -> Step<()> {
    check_single(ctx, warp);
    let ranks = group(ctx, pair)?;
    for lane in lanes_of(ctx.mask) {
        let address = warp.reg(ctx.base, slot)[lane] as u32;
        let work = TensorWork::Copy {
            ranks: ranks.clone(),
            shape,
            address: address.wrapping_add_signed(offset as i32),
            descriptor: warp.reg(ctx.base, descriptor)[lane],
        };
        push(ctx, warp, lane, work)?;
    }
    Ok(())
}

pub(super) fn commit(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    (slot, offset): (u32, i64),
    multicast: Option<u32>,
) -> Step<()> {
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let at = warp.reg(ctx.base, slot)[lane].wrapping_add_signed(offset);
        let own = place_of(ctx, at).map_err(fail)?;
        let mut places = vec![own];
        if let Some(mask) = multicast {
            // The same offset in every CTA of the mask.
            let mask = warp.reg(ctx.base, mask)[lane] as u32 & 0xffff;
            places.clear();
            for rank in lanes_of(mask) {
                let there = (rank as u64) << RANK_SHIFT | own.1;
                places.push(place_of(ctx, there).map_err(fail)?);
            }
        }
        push(ctx, warp, lane, TensorWork::Commit(places)).map_err(fail)?;
    }
    Ok(())
}
