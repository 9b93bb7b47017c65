//! Accesses of local memory: the variables of the functions that are active.

use crate::exec::step::Ctx;
use crate::exec::warp::{NONE, Warp};
use crate::fault::Fault;
use crate::report::FindingKind;

/// Local memory of a thread is at most 512 KiB (CUDA C++ Programming Guide, technical specifications).
pub(in crate::exec) const MAX_LOCAL: u64 = 512 * 1024;

/// A variable that an address lies in: its name, and the offset in it.
struct Found<'a> {
    name: &'a str,
    offset: u64,
    bytes: u64,
    param: bool,
}

/// The variable of an active function at an address.
fn variable<'a>(ctx: &Ctx<'a, '_>, warp: &Warp, addr: u64) -> Option<Found<'a>> {
    let mut id = warp.fragments[ctx.at].frame;
    while id != NONE {
        let frame = &warp.frames[id as usize];
        let func = &ctx.launch.program.functions[frame.func];
        let piece = (frame.dynamic.iter()).find(|p| addr.wrapping_sub(p.at) < p.bytes.max(1));
        if let Some(piece) = piece {
            return Some(Found {
                name: "alloca",
                offset: addr - piece.at,
                bytes: piece.bytes,
                param: false,
            });
        }
        if let Some(offset) = addr.checked_sub(frame.local) {
            // The variable there, or the one that ends before.
            let before = func.locals.iter().filter(|v| v.offset <= offset);
            let var = before.max_by_key(|v| v.offset);
            return var.map(|v| Found {
                name: &v.name,
                offset: offset - v.offset,
                bytes: v.bytes,
                param: v.param,
            });
        }
        id = frame.caller;
    }
    None
}

/// Checks the bounds of an access, and, for a load by `reader`, that something was written.
pub(super) fn check_local(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    (addr, bytes): (u64, u64),
    reader: Option<usize>,
) -> Result<(), Fault> {
    let out_of_bounds = |detail: String| {
        Err(Fault::OutOfBounds {
            addr,
            bytes,
            detail,
        })
    };
    if addr.saturating_add(bytes) > MAX_LOCAL {
        return out_of_bounds("local memory is 512 KiB a thread".into());
    }
    let Some(found) = variable(ctx, warp, addr) else {
        return out_of_bounds("no local variable of an active function is there".into());
    };
    let Found {
        name,
        offset,
        bytes: size,
        param,
    } = found;
    if offset + bytes > size {
        return out_of_bounds(format!(
            "byte {offset} of local variable `{name}`, which has {size}"
        ));
    }
    // Padding of structures is copied with them: only an access of nothing but unwritten bytes counts.
    if let Some(lane) = reader
        && ctx.checking()
        && !param
        && !warp.local_written[lane].any(addr as usize, bytes as usize)
    {
        let message =
            format!("read of local variable `{name}` + {offset}, which the thread has not written");
        ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
    }
    Ok(())
}
