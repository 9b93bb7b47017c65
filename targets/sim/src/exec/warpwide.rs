//! Instructions in which the lanes of a warp take part together (PTX ISA 9.7.9.8, 9.7.13.5 to 9.7.13.9).

use super::step::{Ctx, Flow, Step, lanes_of};
use super::warp::{Fragment, Wait, Warp};
use crate::decode::lanes::Lanes;
use crate::decode::{MmaForm, MmaUnit, Op, ShflMode};
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::float::canonical_f32;
use crate::units::mma::Accumulator;
use crate::units::reduce::{Kind, Op as ReduceOp, reduce};
use crate::units::scaled::Scales;
use crate::units::tensor_core::Generation;

pub(super) fn execute(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lanes: u32) -> Step<Flow> {
    let inst = ctx.inst;
    let mask_slot = match &inst.op {
        Op::Shfl { mask, .. }
        | Op::Vote { mask, .. }
        | Op::Match { mask, .. }
        | Op::Redux { mask, .. }
        | Op::Elect { mask, .. }
        | Op::WarpSync { mask } => Some(*mask),
        _ => None,
    };
    let Some(slot) = mask_slot else {
        return lone(ctx, warp, lanes);
    };
    // Lanes may name different groups, such as the halves of a warp: each group is on its own.
    let groups = member_groups(warp.reg(ctx.base, slot), ctx.mask);
    let complete = |&(members, lanes): &(u32, u32)| members & warp.live & !lanes == 0;
    if groups.len() > 1 && groups.iter().all(complete) {
        let whole = ctx.mask;
        for (_, part) in groups {
            ctx.mask = part;
            execute(ctx, warp, lanes)?;
        }
        ctx.mask = whole;
        return Ok(Flow::Next);
    }
    let disjoint = |&(members, lanes): &(u32, u32)| lanes & !members == 0;
    if groups.len() > 1 && groups.iter().all(disjoint) {
        // A group whose other lanes are elsewhere waits for them; the rest does not.
        split(ctx, warp, groups[0].1);
        return Ok(Flow::Moved);
    }
    let first = ctx.mask.trailing_zeros() as usize;
    let members = warp.reg(ctx.base, slot)[first] as u32;
    if ctx.mask & !members != 0 {
        let lane = (ctx.mask & !members).trailing_zeros();
        ctx.find(
            warp,
            FindingKind::Invalid,
            lane,
            format!("lane {lane} executes it but is not in its mask {members:#010x}"),
            None,
        );
    }
    // Lanes that have exited are not waited for.
    let needed = members & warp.live;
    let any_pc = matches!(inst.op, Op::WarpSync { .. });
    let mut union = ctx.mask;
    let mut others = Vec::new();
    if needed & !union != 0 {
        let here = &warp.fragments[ctx.at];
        let (pc, frame) = (here.pc, here.frame);
        for (i, other) in warp.fragments.iter().enumerate() {
            let same = other.pc == pc && other.frame == frame;
            let taking = if same && inst.guard.0 != 0 {
                other.mask & warp.pred(ctx.preds, inst.guard)
            } else {
                other.mask
            };
            if i != ctx.at
                && matches!(other.wait, Some(Wait::Lanes { .. }))
                && (any_pc || same)
                && taking & needed != 0
            {
                union |= taking;
                others.push(i);
            }
        }
        if needed & !union != 0 {
            return Ok(Flow::Block(Wait::Lanes { mask: needed }));
        }
    }
    let group = union & members;
    match &inst.op {
        Op::WarpSync { .. } => {
            if let Some(clocks) = &mut warp.clocks {
                clocks.sync(group);
            }
        }
        Op::Shfl {
            mode,
            d,
            p,
            a,
            b,
            c,
            ..
        } => shuffle(ctx, warp, *mode, (*d, *p), (*a, *b, *c), union),
        Op::Vote { mode, d, p, a, .. } => {
            let value = warp.pred(ctx.preds, *a) & group;
            let hit = match mode {
                0 => value == group,
                1 => value != 0,
                _ => value == group || value == 0,
            };
            if *mode == 3 {
                warp.write(ctx.base, *d, &[u64::from(value); 32], union);
            } else {
                warp.write_pred(ctx.preds, *p, if hit { u32::MAX } else { 0 }, union);
            }
        }
        Op::Match { all, d, p, a, .. } => matching(ctx, warp, *all, (*d, *p), *a, group, union),
        Op::Redux {
            op,
            kind,
            d,
            a,
            abs,
            nan,
            ..
        } => {
            let x = *warp.reg(ctx.base, *a);
            let get = |lane: usize| if *abs { x[lane] & 0x7fff_ffff } else { x[lane] };
            let mut all = lanes_of(group);
            let mut value = all.next().map_or(0, get);
            for lane in all {
                value = match kind {
                    Kind::F32 => extreme(*op, *nan, value, get(lane)),
                    _ => reduce(*op, *kind, value, get(lane))?,
                };
            }
            warp.write(ctx.base, *d, &[value; 32], union);
        }
        Op::Elect { d, p, .. } => {
            let leader = group.trailing_zeros();
            warp.write(ctx.base, *d, &[u64::from(leader); 32], union);
            // Nobody, where the mask names no lane that takes part.
            warp.write_pred(ctx.preds, *p, group & group.wrapping_neg(), union);
        }
        _ => {}
    }
    Ok(go_on(warp, ctx.at, &others))
}

/// The fragments in `others` go on with the one at `at`; those that go the same way become one.
fn go_on(warp: &mut Warp, at: usize, others: &[usize]) -> Flow {
    let Fragment {
        pc, frame, join, ..
    } = warp.fragments[at];
    for &i in others {
        warp.fragments[i].pc += 1;
        warp.fragments[i].wait = None;
    }
    let same = |&i: &usize| {
        let f = &warp.fragments[i];
        (f.pc, f.frame, f.join) == (pc + 1, frame, join)
    };
    let mut same: Vec<usize> = others.iter().copied().filter(same).collect();
    let Some(into) = same.pop() else {
        return Flow::Next;
    };
    same.push(at);
    warp.merge(into, &same);
    Flow::Gone
}

/// The member masks that the executing lanes name, each with the lanes that name it.
fn member_groups(masks: &Lanes, executing: u32) -> Vec<(u32, u32)> {
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for lane in lanes_of(executing) {
        let members = masks[lane] as u32;
        match groups.iter_mut().find(|(m, _)| *m == members) {
            Some((_, lanes)) => *lanes |= 1 << lane,
            None => groups.push((members, 1 << lane)),
        }
    }
    groups
}

/// The lanes of `part` execute the instruction apart from the rest of their fragment.
fn split(ctx: &Ctx<'_, '_>, warp: &mut Warp, part: u32) {
    let here = &mut warp.fragments[ctx.at];
    let mut rest = here.clone();
    (here.mask, rest.mask) = (part, here.mask & !part);
    rest.wait = None;
    warp.fragments.push(rest);
}

/// `redux.sync.min` and `.max` of binary32: as `min` and `max` have it, +0 is above -0 and a number beats a
/// NaN, unless `.NaN` is given.
fn extreme(op: ReduceOp, nan: bool, a: u64, b: u64) -> u64 {
    let [x, y] = [a, b].map(|v| f32::from_bits(v as u32));
    let value = match (x.is_nan(), y.is_nan()) {
        (true, true) => f32::NAN,
        (true, false) | (false, true) if nan => f32::NAN,
        (true, false) => y,
        (false, true) => x,
        // Zeros of both signs.
        _ if x == y && op == ReduceOp::Min => return a | b,
        _ if x == y => return a & b,
        _ if op == ReduceOp::Min => x.min(y),
        _ => x.max(y),
    };
    u64::from(canonical_f32(value).to_bits())
}

/// The source lane of a lane, and whether it lies in its segment (PTX ISA `shfl.sync`).
pub(super) fn shuffle_source(mode: ShflMode, lane: usize, b: u64, c: u64) -> (i64, bool) {
    let me = lane as i64;
    let (bval, cval) = ((b & 31) as i64, (c & 31) as i64);
    let segment = (c >> 8 & 31) as i64;
    let max = (me & segment) | (cval & !segment);
    let min = me & segment;
    let (from, ok) = match mode {
        ShflMode::Up => (me - bval, me - bval >= max),
        ShflMode::Down => (me + bval, me + bval <= max),
        ShflMode::Bfly => (me ^ bval, (me ^ bval) <= max),
        ShflMode::Idx => (min | (bval & !segment), (min | (bval & !segment)) <= max),
    };
    (if ok { from } else { me }, ok)
}

fn shuffle(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    mode: ShflMode,
    (d, p): (u32, Option<u32>),
    (a, b, c): (u32, u32, u32),
    union: u32,
) {
    let (x, y, z) = (
        *warp.reg(ctx.base, a),
        *warp.reg(ctx.base, b),
        *warp.reg(ctx.base, c),
    );
    let mut out: Lanes = [0; 32];
    let mut inside = 0u32;
    for lane in lanes_of(union) {
        let (from, ok) = shuffle_source(mode, lane, y[lane], z[lane]);
        out[lane] = x.get(from as usize).copied().unwrap_or(0);
        inside |= u32::from(ok) << lane;
        if union >> (from & 31) & 1 == 0 {
            let message = format!("lane {lane} reads lane {from}, which does not take part");
            ctx.find(warp, FindingKind::Invalid, lane as u32, message, None);
        }
    }
    warp.write(ctx.base, d, &out, union);
    if let Some(p) = p {
        warp.write_pred(ctx.preds, p, inside, union);
    }
}

fn matching(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    all: bool,
    (d, p): (u32, Option<u32>),
    a: u32,
    group: u32,
    union: u32,
) {
    let x = *warp.reg(ctx.base, a);
    let mut out: Lanes = [0; 32];
    for lane in lanes_of(group) {
        let same = lanes_of(group)
            .filter(|&o| x[o] == x[lane])
            .fold(0, |m, o| m | 1u32 << o);
        out[lane] = u64::from(if !all || same == group { same } else { 0 });
    }
    warp.write(ctx.base, d, &out, union);
    if let Some(p) = p {
        let hit = lanes_of(group).all(|lane| out[lane] != 0);
        warp.write_pred(ctx.preds, p, if hit { u32::MAX } else { 0 }, union);
    }
}

/// Instructions without a member mask.
fn lone(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lanes: u32) -> Step<Flow> {
    match &ctx.inst.op {
        Op::ActiveMask { d } => {
            warp.write(ctx.base, *d, &[u64::from(lanes); 32], ctx.mask);
        }
        Op::Movmatrix { d, a } => {
            let out = crate::units::matrix::movmatrix(&warp.reg(ctx.base, *a).map(|v| v as u32));
            warp.write(ctx.base, *d, &out.map(u64::from), ctx.mask);
        }
        Op::Mma(form) => {
            if ctx.mask != u32::MAX {
                ctx.find(
                    warp,
                    FindingKind::BarrierDivergence,
                    32,
                    "mma.sync needs all 32 lanes".into(),
                    None,
                );
            }
            mma(ctx, warp, form)?;
        }
        _ => {}
    }
    Ok(Flow::Next)
}

fn mma(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &MmaForm) -> Result<(), Fault> {
    let (shape, _) = form.unit.shape();
    ctx.cluster.counters.mma_macs += (shape.m * shape.n * shape.k) as u64;
    if shape.d == Accumulator::F64 {
        let get = |slots: &[u32]| -> Vec<[u64; 32]> {
            slots.iter().map(|&s| *warp.reg(ctx.base, s)).collect()
        };
        let out = shape.execute_f64(&get(&form.a), &get(&form.b), &get(&form.c))?;
        for (&slot, value) in form.d.iter().zip(&out) {
            warp.write(ctx.base, slot, value, ctx.mask);
        }
        return Ok(());
    }
    let word = |slot: u32| warp.reg(ctx.base, slot).map(|v| v as u32);
    let get = |slots: &[u32]| -> Vec<[u32; 32]> { slots.iter().map(|&s| word(s)).collect() };
    let generation = Generation::of_target(&ctx.launch.program.target);
    let (a, b, c) = (get(&form.a), get(&form.b), get(&form.c));
    let out = match &form.unit {
        MmaUnit::Dense(unit) => unit.execute(generation, &a, &b, &c)?,
        MmaUnit::Sparse(unit, metadata) => {
            unit.execute(generation, (&a, &word(*metadata)), &b, &c)?
        }
        MmaUnit::Scaled(unit, slots) => {
            // The selectors are the same in all lanes.
            let scales = slots.map(|both| {
                both.map(|s| Scales {
                    data: word(s.data),
                    byte: word(s.byte)[0],
                    thread: word(s.thread)[0],
                })
            });
            unit.execute(&a, &b, &c, scales)?
        }
    };
    for (&slot, value) in form.d.iter().zip(&out) {
        warp.write(ctx.base, slot, &value.map(u64::from), ctx.mask);
    }
    Ok(())
}
