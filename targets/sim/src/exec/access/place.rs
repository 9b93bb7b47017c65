//! Where an access goes: spaces, bounds, and the bytes themselves.

use super::local::check_local;
use crate::decode::{RANK_SHIFT, SHARED_BASE};
use crate::exec::cluster::Cluster;
use crate::exec::step::{Ctx, generic_space};
use crate::exec::warp::Warp;
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::units::Bytes;

/// Where an access goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Shared { rank: usize, offset: u64 },
    Global(u64),
    Local(u64),
    Param(u64),
}

/// Splits a shared address into rank and offset and checks its bounds.
pub(in crate::exec) fn shared_place(
    cluster: &Cluster,
    addr: u64,
    bytes: u64,
) -> Result<(usize, u64), Fault> {
    let (rank, offset) = (
        (addr >> RANK_SHIFT) as usize,
        addr & ((1 << RANK_SHIFT) - 1),
    );
    let Some(cta) = cluster.ctas.get(rank) else {
        return Err(Fault::OutOfBounds {
            addr,
            bytes,
            detail: "no such shared memory in this cluster".into(),
        });
    };
    let size = cta.shared.len() as u64;
    if offset < SHARED_BASE || offset + bytes > size {
        let detail = format!("the CTA's shared memory is [{SHARED_BASE}, {size})");
        return Err(Fault::OutOfBounds {
            addr: offset,
            bytes,
            detail,
        });
    }
    Ok((rank, offset))
}

pub(super) fn target(
    ctx: &Ctx<'_, '_>,
    space: Space,
    addr: u64,
    bytes: u64,
) -> Result<Target, Fault> {
    let (space, addr) = match space {
        Space::Generic => generic_space(addr),
        Space::Const => (Space::Global, addr),
        other => (other, addr),
    };
    Ok(match space {
        Space::Shared => {
            let (rank, offset) = shared_place(ctx.cluster, addr, bytes)?;
            (ctx.launch.shared).check(ctx.launch.program, offset, bytes)?;
            Target::Shared { rank, offset }
        }
        Space::Local => Target::Local(addr),
        Space::Param => Target::Param(addr),
        _ => Target::Global(addr),
    })
}

pub(super) fn aligned(addr: u64, align: u64) -> Result<(), Fault> {
    if addr.is_multiple_of(align) {
        Ok(())
    } else {
        Err(Fault::Misaligned { addr, align })
    }
}

pub(super) const fn step_target(place: Target, by: u64) -> Target {
    match place {
        Target::Shared { rank, offset } => Target::Shared {
            rank,
            offset: offset + by,
        },
        Target::Global(a) => Target::Global(a + by),
        Target::Local(a) => Target::Local(a + by),
        Target::Param(a) => Target::Param(a + by),
    }
}

fn find_global(ctx: &Ctx<'_, '_>, warp: &mut Warp, addr: u64, bytes: u64) -> Result<usize, Fault> {
    if let Some(a) = ctx.launch.memory.get(warp.last_alloc)
        && addr.wrapping_sub(a.base) < a.bytes
        && bytes <= a.bytes - (addr - a.base)
        && a.heap.is_none()
    {
        // The index of a freed allocation is never cached: frees happen between launches.
        return Ok(warp.last_alloc);
    }
    let index = ctx.launch.memory.find(addr, bytes)?;
    warp.last_alloc = index;
    Ok(index)
}

pub(super) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// An element of shared or global memory, without checks; `None` elsewhere.
pub(super) fn peek(ctx: &Ctx<'_, '_>, place: Target, bytes: u64) -> Option<u64> {
    match place {
        Target::Shared { rank, offset } => {
            let shared = &ctx.cluster.ctas.get(rank)?.shared;
            let from = offset as usize;
            Some(little(shared.get(from..from + bytes as usize)?))
        }
        Target::Global(addr) => {
            let memory = ctx.launch.memory;
            let a = memory.get(memory.find(addr, bytes).ok()?)?;
            Some(a.load_element(addr - a.base, bytes))
        }
        Target::Local(_) | Target::Param(_) => None,
    }
}

pub(super) fn read(
    ctx: &Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
    bytes: u64,
) -> Result<u64, Fault> {
    let n = bytes as usize;
    match place {
        Target::Shared { rank, offset } => {
            let shared = &ctx.cluster.ctas[rank].shared;
            Ok(little(&shared[offset as usize..offset as usize + n]))
        }
        Target::Global(addr) => {
            let index = find_global(ctx, warp, addr, bytes)?;
            Ok(ctx
                .launch
                .memory
                .get(index)
                .map_or(0, |a| a.load_element(addr - a.base, bytes)))
        }
        Target::Local(addr) => {
            check_local(ctx, warp, (addr, bytes), Some(lane))?;
            let local = &warp.local[lane];
            Ok((0..n).fold(0, |v, i| {
                v | u64::from(local.get(addr as usize + i).copied().unwrap_or(0)) << (8 * i)
            }))
        }
        Target::Param(addr) => match ctx.launch.params.get(addr as usize..addr as usize + n) {
            Some(slice) => Ok(little(slice)),
            None => Err(Fault::OutOfBounds {
                addr,
                bytes,
                detail: "outside the kernel's parameters".into(),
            }),
        },
    }
}

pub(super) fn write(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    place: Target,
    bytes: u64,
    value: u64,
) -> Result<(), Fault> {
    let n = bytes as usize;
    let data = value.to_le_bytes();
    match place {
        Target::Shared { rank, offset } => {
            let at = offset as usize;
            let there = &mut ctx.cluster.ctas[rank].shared[at..at + n];
            if *there != data[..n] {
                there.copy_from_slice(&data[..n]);
                ctx.cluster.changes += 1;
            }
        }
        Target::Global(addr) => {
            let index = find_global(ctx, warp, addr, bytes)?;
            if let Some(a) = ctx.launch.memory.get(index) {
                let low = u64::MAX >> (64 - 8 * bytes);
                ctx.cluster.changes +=
                    u64::from(a.load_element(addr - a.base, bytes) != value & low);
                a.store_element(addr - a.base, bytes, value);
                a.mark_written(addr - a.base, bytes);
            }
        }
        Target::Local(addr) => {
            check_local(ctx, warp, (addr, bytes), None)?;
            warp.local_written[lane].grow_and_set(addr as usize, n);
            let local = &mut warp.local[lane];
            let at = addr as usize;
            if local.len() < at + n {
                local.resize(at + n, 0);
            }
            local[at..at + n].copy_from_slice(&data[..n]);
        }
        Target::Param(addr) => {
            return Err(Fault::OutOfBounds {
                addr,
                bytes,
                detail: "kernel parameters are read-only".into(),
            });
        }
    }
    Ok(())
}

/// Shared memory of a cluster, without checks (they are made per lane before).
pub(in crate::exec) struct SharedBytes<'a>(pub(in crate::exec) &'a mut Cluster);

impl Bytes for SharedBytes<'_> {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (rank, offset) = shared_place(self.0, addr, out.len() as u64)?;
        let at = offset as usize;
        out.copy_from_slice(&self.0.ctas[rank].shared[at..at + out.len()]);
        Ok(())
    }

    fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let (rank, offset) = shared_place(self.0, addr, data.len() as u64)?;
        let at = offset as usize;
        self.0.ctas[rank].shared[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}
