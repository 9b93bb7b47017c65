//! `wmma.load`, `wmma.store` and `wmma.mma`.

use super::access::{read_bytes, write_bytes};
use super::step::{Ctx, Step};
use super::warp::Warp;
use crate::decode::{WmmaForm, WmmaMove};
use crate::fault::Fault;
use crate::report::FindingKind;
use crate::units::tensor_core::Generation;

fn check_whole(ctx: &Ctx<'_, '_>, warp: &Warp) {
    if ctx.mask != u32::MAX {
        let message = "a wmma instruction needs all 32 lanes".into();
        ctx.find(warp, FindingKind::BarrierDivergence, 32, message, None);
    }
}

/// Which thread accesses what is left open: here the matrix is cut into 32 equal pieces, one a lane.
/// Returns their size and addresses.
fn pieces(ctx: &Ctx<'_, '_>, warp: &Warp, form: &WmmaMove) -> (usize, [u64; 32]) {
    let [rows, columns] = form.fragment.dims();
    let size = rows * columns * form.fragment.bits as usize / 8 / 32;
    let line = form.fragment.line_bytes(form.by_column);
    // Address and stride are the same in all lanes.
    let first = ctx.mask.trailing_zeros().min(31) as usize;
    let base = warp.reg(ctx.base, form.addr)[first].wrapping_add_signed(form.offset);
    let stride = match form.stride {
        Some(slot) => {
            let elements = u64::from(warp.reg(ctx.base, slot)[first] as u32);
            elements * u64::from(form.fragment.bits) / 8
        }
        None => line as u64,
    };
    let at = |lane: usize| {
        let byte = lane * size;
        let offset = ((byte / line) as u64).wrapping_mul(stride) + (byte % line) as u64;
        base.wrapping_add(offset)
    };
    (size, std::array::from_fn(at))
}

pub(super) fn load(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &WmmaMove) -> Step<()> {
    check_whole(ctx, warp);
    let (size, addrs) = pieces(ctx, warp, form);
    let mut bytes = vec![0; 32 * size];
    read_bytes(ctx, warp, form.space, &addrs, size, &mut bytes)?;
    let elements = form.fragment.unpack(&bytes, form.by_column);
    for (&slot, value) in form.regs.iter().zip(form.fragment.scatter(&elements)) {
        warp.write(ctx.base, slot, &value, ctx.mask);
    }
    Ok(())
}

pub(super) fn store(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &WmmaMove) -> Step<()> {
    check_whole(ctx, warp);
    let (size, addrs) = pieces(ctx, warp, form);
    let elements = form.fragment.gather(&registers(ctx, warp, &form.regs));
    let bytes = form.fragment.pack(&elements, form.by_column);
    write_bytes(ctx, warp, form.space, &addrs, size, &bytes)
}

fn registers(ctx: &Ctx<'_, '_>, warp: &Warp, slots: &[u32]) -> Vec<[u64; 32]> {
    slots.iter().map(|&s| *warp.reg(ctx.base, s)).collect()
}

pub(super) fn mma(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, form: &WmmaForm) -> Result<(), Fault> {
    check_whole(ctx, warp);
    ctx.cluster.counters.mma_macs += form.unit.shape.iter().product::<usize>() as u64;
    let [a, b, c] = [&form.a, &form.b, &form.c].map(|s| registers(ctx, warp, s));
    let generation = Generation::of_target(&ctx.launch.program.target);
    let d = form.unit.execute(generation, &a, &b, &c)?;
    for (&slot, value) in form.d.iter().zip(&d) {
        warp.write(ctx.base, slot, value, ctx.mask);
    }
    Ok(())
}
