//! Tensor maps that a kernel makes: `tensormap.replace` and `tensormap.cp_fenceproxy`.

use super::check::{Doing, check};
use super::place::{Target, aligned, read, step_target, target, write};
use crate::decode::{Order, Slot};
use crate::exec::step::{Ctx, LaneFault, Step, lanes_of};
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::units::tensor_map::{Field, TensorMap};

const BYTES: u64 = 128;

/// The place of a map, checked for an access.
fn place(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    (space, addr): (Space, u64),
    doing: Doing<'_>,
) -> Result<Target, Fault> {
    aligned(addr, 64)?;
    let place = target(ctx, space, addr, BYTES)?;
    check(ctx, warp, lane, (place, BYTES), doing, Order::Weak);
    Ok(place)
}

fn bytes_at(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
) -> Result<[u8; 128], Fault> {
    let mut bytes = [0; 128];
    for (word, i) in bytes.chunks_exact_mut(8).zip(0..) {
        let value = read(ctx, warp, lane, step_target(place, 8 * i), 8)?;
        word.copy_from_slice(&value.to_le_bytes());
    }
    Ok(bytes)
}

fn put_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
    bytes: &[u8; 128],
) -> Result<(), Fault> {
    for (word, i) in bytes.chunks_exact(8).zip(0..) {
        let value = super::place::little(word);
        write(ctx, warp, lane, step_target(place, 8 * i), 8, value)?;
    }
    Ok(())
}

/// `tensormap.replace`: sets a field of a map in memory.
pub(in crate::exec) fn replace_map(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    (space, addr, offset): (Space, Slot, i64),
    field: Field,
    value: Slot,
) -> Step<()> {
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        let at = warp.reg(ctx.base, addr)[lane].wrapping_add_signed(offset);
        let value = warp.reg(ctx.base, value)[lane];
        let place = place(ctx, warp, lane, (space, at), Doing::Read).map_err(fail)?;
        let mut bytes = bytes_at(ctx, warp, lane, place).map_err(fail)?;
        TensorMap::replace(&mut bytes, field, value).map_err(|e| {
            fail(Fault::Invalid(format!(
                "tensor map, {field:?} = {value}: {e}"
            )))
        })?;
        check(
            ctx,
            warp,
            lane,
            (place, BYTES),
            Doing::Write(&[]),
            Order::Weak,
        );
        put_bytes(ctx, warp, lane, place, &bytes).map_err(fail)?;
    }
    Ok(())
}

/// `tensormap.cp_fenceproxy`: the warp copies one map from shared to global memory.
pub(in crate::exec) fn copy_map(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    dst: (Slot, i64),
    src: (Slot, i64),
) -> Step<()> {
    let lane = ctx.mask.trailing_zeros().min(31) as usize;
    let at = |(slot, offset): (Slot, i64), warp: &Warp| {
        warp.reg(ctx.base, slot)[lane].wrapping_add_signed(offset)
    };
    let (to, from) = (at(dst, warp), at(src, warp));
    let from = place(ctx, warp, lane, (Space::Shared, from), Doing::Read)?;
    let bytes = bytes_at(ctx, warp, lane, from)?;
    ctx.cluster.new_maps.insert(to, ctx.inst.line);
    let to = place(ctx, warp, lane, (Space::Global, to), Doing::Write(&[]))?;
    Ok(put_bytes(ctx, warp, lane, to, &bytes)?)
}
