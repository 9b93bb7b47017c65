//! `alloca`, `stacksave` and `stackrestore` (PTX ISA, "Stack Manipulation Instructions").

use super::{Ctx, LaneFault, Step, lanes_of};
use crate::decode::Slot;
use crate::exec::warp::{Dynamic, Warp};
use crate::fault::Fault;

/// Bytes between two pieces that belong to neither.
const GAP: u64 = 16;

fn frame_of(ctx: &Ctx<'_, '_>, warp: &Warp) -> usize {
    warp.fragments[ctx.at].frame as usize
}

/// `alloca`: all lanes get the same address, each as many bytes as it asks for.
pub(super) fn allocate(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    (d, bytes, align): (Slot, Slot, u64),
) -> Step<()> {
    let frame = frame_of(ctx, warp);
    let fixed = ctx.launch.program.functions[ctx.func].frame_bytes;
    let at = warp.frames[frame].top(fixed, ctx.mask);
    let at = at.next_multiple_of(align.max(8));
    for lane in lanes_of(ctx.mask) {
        let bytes = warp.reg(ctx.base, bytes)[lane];
        if bytes > crate::exec::access::MAX_LOCAL - at.min(crate::exec::access::MAX_LOCAL) {
            let message = format!("alloca of {bytes} bytes: local memory is 512 KiB a thread");
            return Err(LaneFault(lane as u32, Fault::Invalid(message)));
        }
        warp.local_written[lane].clear(at as usize, bytes as usize);
        let piece = Dynamic {
            lanes: 1 << lane,
            at,
            bytes,
            gap: GAP,
        };
        let all = &mut warp.frames[frame].dynamic;
        match all.last_mut().filter(|p| (p.at, p.bytes) == (at, bytes)) {
            Some(last) => last.lanes |= piece.lanes,
            None => all.push(piece),
        }
    }
    warp.write(ctx.base, d, &[at; 32], ctx.mask);
    Ok(())
}

/// `stacksave`: where the next `alloca` would go.
pub(super) fn save(ctx: &Ctx<'_, '_>, warp: &mut Warp, d: Slot) {
    let fixed = ctx.launch.program.functions[ctx.func].frame_bytes;
    let frame = &warp.frames[frame_of(ctx, warp)];
    let top = std::array::from_fn(|lane| frame.top(fixed, 1 << lane));
    warp.write(ctx.base, d, &top, ctx.mask);
}

/// `stackrestore`: frees what was allocated since the `stacksave`.
pub(super) fn restore(ctx: &Ctx<'_, '_>, warp: &mut Warp, a: Slot) {
    let saved = *warp.reg(ctx.base, a);
    let frame = frame_of(ctx, warp);
    let all = &mut warp.frames[frame].dynamic;
    for lane in lanes_of(ctx.mask) {
        for piece in all.iter_mut().filter(|p| p.at >= saved[lane]) {
            piece.lanes &= !(1 << lane);
        }
    }
    all.retain(|p| p.lanes != 0);
}
