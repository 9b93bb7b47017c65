//! Loads, stores and atomics of threads, with their checks.

use super::cluster::Cluster;
use super::launch::LaunchState;
use super::step::{Ctx, LaneFault, Step, generic_space, lanes_of};
use super::warp::Warp;
use crate::check::clock::View;
use crate::check::shadow::{Actor, Conflict, Epoch, STRONG};
use crate::decode::{Access, Atom, AtomOp, Ldmatrix, Order, RANK_SHIFT, SHARED_BASE};
use crate::fault::Fault;
use crate::ptx::ast::Space;
use crate::report::FindingKind;
use crate::units::Bytes;
use crate::units::reduce::reduce_bytes;

/// Where an access goes.
#[derive(Debug, Clone, Copy)]
enum Target {
    Shared { rank: usize, offset: u64 },
    Global(u64),
    Local(u64),
    Param(u64),
}

/// Splits a shared address into rank and offset and checks its bounds.
pub(super) fn shared_place(
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

fn target(ctx: &Ctx<'_, '_>, space: Space, addr: u64, bytes: u64) -> Result<Target, Fault> {
    let (space, addr) = match space {
        Space::Generic => generic_space(addr),
        Space::Const => (Space::Global, addr),
        other => (other, addr),
    };
    Ok(match space {
        Space::Shared => {
            let (rank, offset) = shared_place(ctx.cluster, addr, bytes)?;
            Target::Shared { rank, offset }
        }
        Space::Local => Target::Local(addr),
        Space::Param => Target::Param(addr),
        _ => Target::Global(addr),
    })
}

fn aligned(addr: u64, align: u64) -> Result<(), Fault> {
    if addr.is_multiple_of(align) {
        Ok(())
    } else {
        Err(Fault::Misaligned { addr, align })
    }
}

fn flags(order: Order) -> u32 {
    if order == Order::Weak { 0 } else { STRONG }
}

/// Reports a race that the shadow found.
pub(super) fn report_race(
    ctx: &Ctx<'_, '_>,
    warp: &Warp,
    lane: u32,
    what: &str,
    conflict: Conflict,
    wrote: bool,
    actor: &Actor<'_>,
) {
    let before = conflict.before;
    let verb = |w: bool| if w { "write" } else { "read" };
    let who = describe_entity(ctx.launch, ctx.cluster, before);
    let (kind, reason) = if conflict.before_wrote && actor.lacks_only_proxy_fence(before) {
        (
            FindingKind::MissingProxyFence,
            "is ordered after it, but no proxy fence makes it visible to the async proxy",
        )
    } else {
        (FindingKind::Race, "is not ordered after it")
    };
    let message = format!(
        "{} of {what} {reason}: {} by {who} at PTX line {}",
        verb(wrote),
        verb(conflict.before_wrote),
        before.line()
    );
    ctx.find(warp, kind, lane, message, Some(before.line()));
}

pub(super) fn describe_entity(launch: &LaunchState<'_>, cluster: &Cluster, epoch: Epoch) -> String {
    let per_cta = launch.entities_per_cta() as u32;
    let (rank, id) = (epoch.entity / per_cta, epoch.entity % per_cta);
    let who = if epoch.is_async() || id >= launch.padded_threads() {
        "an asynchronous operation".to_string()
    } else {
        format!("thread {id}")
    };
    if epoch.cluster != cluster.index {
        format!("{who} of CTA rank {rank} of cluster {}", epoch.cluster)
    } else {
        match cluster.ctas.get(rank as usize) {
            Some(cta) => format!("{who} of CTA {:?}", cta.ctaid),
            None => who,
        }
    }
}

/// Checks of one lane's access: initialisation and races.
fn check(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    place: Target,
    bytes: u64,
    write: bool,
    order: Order,
) {
    let Some(clocks) = &warp.clocks else { return };
    let epoch = Epoch::new(
        ctx.cluster.index,
        clocks.entity(lane),
        clocks.own(lane),
        ctx.inst.line,
        flags(order),
    );
    let view = clocks.view(lane).clone();
    let actor = Actor { epoch, view: &view };
    match place {
        Target::Shared { rank, offset } => {
            let own = ctx.cta == rank;
            let cta = &mut ctx.cluster.ctas[rank];
            if !own {
                cta.remote
                    .insert(epoch.entity, (epoch.clock, ctx.inst.line));
            }
            let exited = !own && cta.warps.iter().all(|w| w.live == 0);
            if write {
                cta.written.set(offset as usize, bytes as usize);
            } else if let Some(at) = cta.written.first_unwritten(offset as usize, bytes as usize) {
                let message = format!("read of shared byte {at}, which nothing has written");
                ctx.find(warp, FindingKind::Unwritten, lane as u32, message, None);
            }
            if exited {
                let message = format!("shared memory of CTA rank {rank}, which has exited");
                ctx.find(warp, FindingKind::Race, lane as u32, message, None);
            }
            let conflict = ctx.cluster.ctas[rank]
                .shadow
                .access(offset, bytes, write, &actor);
            if let Some(conflict) = conflict {
                let what = format!("shared byte {}", conflict.at);
                report_race(ctx, warp, lane as u32, &what, conflict, write, &actor);
            }
        }
        Target::Global(addr) => {
            let Ok(index) = ctx.launch.memory.find(addr, bytes) else {
                return;
            };
            let (Some(allocation), Some(checks)) =
                (ctx.launch.memory.get(index), &ctx.launch.checks)
            else {
                return;
            };
            let offset = addr - allocation.base;
            if !write && let Some(at) = allocation.first_unwritten(offset, bytes) {
                let what = ctx.launch.memory.describe(allocation.base + at);
                ctx.find(
                    warp,
                    FindingKind::Unwritten,
                    lane as u32,
                    format!("read of {what}, which nothing has written"),
                    None,
                );
            }
            if let Some(conflict) = checks.access(index, offset, bytes, write, &actor) {
                let what = ctx.launch.memory.describe(allocation.base + conflict.at);
                report_race(ctx, warp, lane as u32, &what, conflict, write, &actor);
            }
        }
        Target::Local(_) | Target::Param(_) => {}
    }
}

fn find_global(ctx: &Ctx<'_, '_>, warp: &mut Warp, addr: u64, bytes: u64) -> Result<usize, Fault> {
    if let Some(a) = ctx.launch.memory.get(warp.last_alloc)
        && addr.wrapping_sub(a.base) < a.bytes
        && bytes <= a.bytes - (addr - a.base)
    {
        // The index of a freed allocation is never cached: frees happen between launches.
        return Ok(warp.last_alloc);
    }
    let index = ctx.launch.memory.find(addr, bytes)?;
    warp.last_alloc = index;
    Ok(index)
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

fn read(
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
            check_local(addr, bytes)?;
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

/// Local memory of a thread is at most 512 KiB (CUDA C++ Programming Guide, technical specifications).
fn check_local(addr: u64, bytes: u64) -> Result<(), Fault> {
    if addr + bytes > 512 * 1024 {
        return Err(Fault::OutOfBounds {
            addr,
            bytes,
            detail: "local memory is 512 KiB a thread".into(),
        });
    }
    Ok(())
}

fn write(
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
            ctx.cluster.ctas[rank].shared[at..at + n].copy_from_slice(&data[..n]);
        }
        Target::Global(addr) => {
            let index = find_global(ctx, warp, addr, bytes)?;
            if let Some(a) = ctx.launch.memory.get(index) {
                a.store_element(addr - a.base, bytes, value);
                if ctx.launch.checks.is_some() {
                    a.mark_written(addr - a.base, bytes);
                }
            }
        }
        Target::Local(addr) => {
            check_local(addr, bytes)?;
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

/// One lane's store of a word to shared memory by an instruction of another kind.
pub(super) fn store_word(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    lane: usize,
    (slot, offset): (u32, i64),
    value: u32,
) -> Result<(), Fault> {
    let addr = warp.reg(ctx.base, slot)[lane].wrapping_add_signed(offset);
    let (space, addr) = if addr >> 32 == 0 {
        (Space::Shared, addr)
    } else {
        (Space::Generic, addr)
    };
    aligned(addr, 4)?;
    let place = target(ctx, space, addr, 4)?;
    check(ctx, warp, lane, place, 4, true, Order::Weak);
    write(ctx, warp, lane, place, 4, value.into())
}

/// Address by lane of an access, for counters.
fn record(ctx: &mut Ctx<'_, '_>, space: Space, addrs: &[u64; 32], bytes: u64, store: bool) {
    if !ctx.launch.options.counters {
        return;
    }
    let mut shared = [None; 32];
    let mut global = [None; 32];
    let (mut any_shared, mut any_global) = (false, false);
    for lane in lanes_of(ctx.mask) {
        let (space, addr) = if space == Space::Generic {
            generic_space(addrs[lane])
        } else {
            (space, addrs[lane])
        };
        match space {
            Space::Shared => {
                shared[lane] = Some(addr & ((1 << RANK_SHIFT) - 1));
                any_shared = true;
            }
            Space::Global => {
                global[lane] = Some(addr);
                any_global = true;
            }
            _ => {}
        }
    }
    if any_shared {
        ctx.cluster.counters.shared_access(&shared, bytes);
    }
    if any_global {
        ctx.cluster.counters.global_access(&global, bytes, store);
    }
}

pub(super) fn load(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, access: &Access) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, access.addr)
        .map(|a| a.wrapping_add_signed(access.offset));
    let (each, n) = (u64::from(access.bytes), access.regs.len() as u64);
    record(ctx, access.space, &addrs, each * n, false);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let place = target(ctx, access.space, addrs[lane], each * n).map_err(fail)?;
        for (i, &reg) in access.regs.iter().enumerate() {
            let mut value =
                read(ctx, warp, lane, step_target(place, i as u64 * each), each).map_err(fail)?;
            if let Some(to) = access.sign_extend {
                let shift = 64 - 8 * each;
                value = ((value << shift) as i64 >> shift) as u64
                    & (u64::MAX >> (64 - 8 * u64::from(to)));
            }
            warp.regs[ctx.base + reg as usize][lane] = value;
        }
        if ctx.checking() && !matches!(place, Target::Local(_) | Target::Param(_)) {
            check(ctx, warp, lane, place, each * n, false, access.order);
            acquire(ctx, warp, lane, place, access.order);
        }
    }
    Ok(())
}

/// Memory of 32 lanes, `size` bytes each, for an instruction of the whole warp.
pub(super) fn read_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    space: Space,
    addrs: &[u64; 32],
    size: usize,
    out: &mut [u8],
) -> Step<()> {
    record(ctx, space, addrs, size as u64, false);
    for (lane, piece) in out.chunks_mut(size).enumerate() {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place =
            piece_place(ctx, warp, lane, space, (addrs[lane], size), false).map_err(fail)?;
        for (i, word) in piece.chunks_mut(4).enumerate() {
            let at = step_target(place, 4 * i as u64);
            let value = read(ctx, warp, lane, at, word.len() as u64).map_err(fail)?;
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
    Ok(())
}

/// As [`read_bytes`], the other way.
pub(super) fn write_bytes(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    space: Space,
    addrs: &[u64; 32],
    size: usize,
    bytes: &[u8],
) -> Step<()> {
    record(ctx, space, addrs, size as u64, true);
    for (lane, piece) in bytes.chunks(size).enumerate() {
        let fail = |fault| LaneFault(lane as u32, fault);
        let place = piece_place(ctx, warp, lane, space, (addrs[lane], size), true).map_err(fail)?;
        for (i, word) in piece.chunks(4).enumerate() {
            let at = step_target(place, 4 * i as u64);
            write(ctx, warp, lane, at, word.len() as u64, little(word)).map_err(fail)?;
        }
    }
    Ok(())
}

/// Alignment, bounds and checks of a lane's piece; vector accesses have at most 16 bytes.
fn piece_place(
    ctx: &mut Ctx<'_, '_>,
    warp: &Warp,
    lane: usize,
    space: Space,
    (addr, size): (u64, usize),
    write: bool,
) -> Result<Target, Fault> {
    let bytes = size as u64;
    aligned(addr, bytes.min(16))?;
    let place = target(ctx, space, addr, bytes)?;
    if ctx.checking() {
        check(ctx, warp, lane, place, bytes, write, Order::Weak);
    }
    Ok(place)
}

const fn step_target(place: Target, by: u64) -> Target {
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

/// A strong read learns what the last releases to this address published.
fn acquire(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lane: usize, place: Target, order: Order) {
    if order == Order::Weak {
        return;
    }
    let view = match place {
        Target::Shared { rank, offset } => ctx.cluster.ctas[rank].sync_clocks.get(&offset).cloned(),
        Target::Global(addr) => {
            let Some(foreign) = ctx.launch.checks.as_ref().and_then(|c| c.published(addr)) else {
                return;
            };
            let mut all = (*View::new(0).all).clone();
            all.import(ctx.cluster.index, &foreign);
            let all = std::sync::Arc::new(all);
            Some(View {
                all,
                proxy: View::new(0).proxy,
            })
        }
        _ => None,
    };
    let (Some(view), Some(clocks)) = (view, &mut warp.clocks) else {
        return;
    };
    if order.acquires() {
        clocks.acquire(1 << lane, &view);
    } else {
        clocks.see(lane, &view);
    }
}

/// A strong write publishes what the thread released: all it did, or what its last fence covered.
fn release(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, lane: usize, place: Target, order: Order) {
    if order == Order::Weak {
        return;
    }
    let Some(clocks) = &mut warp.clocks else {
        return;
    };
    let view = if order.releases() {
        Some(clocks.release(1 << lane))
    } else {
        clocks.fenced(lane).cloned()
    };
    let Some(view) = view else { return };
    match place {
        Target::Shared { rank, offset } => {
            let sync = &mut ctx.cluster.ctas[rank].sync_clocks;
            sync.entry(offset)
                .or_insert_with(|| View::new(0))
                .join(&view);
        }
        Target::Global(addr) => {
            if let Some(checks) = &ctx.launch.checks {
                checks.publish(addr, &view.all.export(ctx.cluster.index));
            }
        }
        _ => {}
    }
}

pub(super) fn store(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, access: &Access) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, access.addr)
        .map(|a| a.wrapping_add_signed(access.offset));
    let (each, n) = (u64::from(access.bytes), access.regs.len() as u64);
    record(ctx, access.space, &addrs, each * n, true);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let place = target(ctx, access.space, addrs[lane], each * n).map_err(fail)?;
        if access.space == Space::Const {
            return Err(fail(Fault::Invalid("store to constant memory".into())));
        }
        if ctx.checking() && !matches!(place, Target::Local(_) | Target::Param(_)) {
            check(ctx, warp, lane, place, each * n, true, access.order);
            release(ctx, warp, lane, place, access.order);
        }
        for (i, &reg) in access.regs.iter().enumerate() {
            let value = warp.regs[ctx.base + reg as usize][lane];
            write(
                ctx,
                warp,
                lane,
                step_target(place, i as u64 * each),
                each,
                value,
            )
            .map_err(fail)?;
        }
    }
    Ok(())
}

fn combine(atom: &Atom, old: u64, b: u64, c: u64) -> Result<u64, Fault> {
    match atom.op {
        AtomOp::Exch => Ok(b),
        AtomOp::Cas => {
            let low = u64::MAX >> (64 - 8 * u32::from(atom.bytes));
            Ok(if old == b & low { c } else { old })
        }
        AtomOp::Reduce(op) => {
            let n = usize::from(atom.bytes);
            let mut bytes = old.to_le_bytes();
            reduce_bytes(op, atom.kind, &mut bytes[..n], &b.to_le_bytes()[..n])?;
            Ok(u64::from_le_bytes(bytes))
        }
    }
}

pub(super) fn atomic(ctx: &mut Ctx<'_, '_>, warp: &mut Warp, atom: &Atom) -> Step<()> {
    let addrs = warp
        .reg(ctx.base, atom.addr)
        .map(|a| a.wrapping_add_signed(atom.offset));
    let each = u64::from(atom.bytes);
    let n = atom.b.len() as u64;
    record(ctx, atom.space, &addrs, each * n, true);
    for lane in lanes_of(ctx.mask) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addrs[lane], each * n).map_err(fail)?;
        let base = target(ctx, atom.space, addrs[lane], each * n).map_err(fail)?;
        if matches!(base, Target::Local(_) | Target::Param(_)) {
            return Err(fail(Fault::Invalid(
                "an atomic works on global or shared memory".into(),
            )));
        }
        if ctx.checking() {
            check(ctx, warp, lane, base, each * n, false, atom.order);
            acquire(ctx, warp, lane, base, atom.order);
            check(ctx, warp, lane, base, each * n, true, atom.order);
            release(ctx, warp, lane, base, atom.order);
        }
        for (i, &operand) in atom.b.iter().enumerate() {
            let place = step_target(base, i as u64 * each);
            let (b, c) = (
                warp.reg(ctx.base, operand)[lane],
                warp.reg(ctx.base, atom.c)[lane],
            );
            let launch = ctx.launch;
            let old = launch.locks.with(addrs[lane], || -> Result<u64, Fault> {
                let old = read(ctx, warp, lane, place, each)?;
                let new = combine(atom, old, b, c)?;
                write(ctx, warp, lane, place, each, new)?;
                Ok(old)
            });
            let old = old.map_err(fail)?;
            if let Some(&d) = atom.dst.get(i) {
                warp.regs[ctx.base + d as usize][lane] = old;
            }
        }
    }
    if let Some((bar, offset)) = atom.mbar {
        super::async_ops::complete_bytes(ctx, warp, bar, offset, each * n)?;
    }
    Ok(())
}

/// `ldmatrix` and `stmatrix`: the row that a lane names is accessed by that lane.
pub(super) fn matrix(
    ctx: &mut Ctx<'_, '_>,
    warp: &mut Warp,
    form: &Ldmatrix,
    store: bool,
) -> Step<()> {
    if ctx.mask.count_ones() != 32 {
        ctx.find(
            warp,
            FindingKind::BarrierDivergence,
            32,
            "a matrix instruction needs all 32 lanes".into(),
            None,
        );
    }
    let addrs = warp
        .reg(ctx.base, form.addr)
        .map(|a| a.wrapping_add_signed(form.offset));
    let addrs = addrs.map(|a| generic_space(a).1);
    let used = form.unit.addresses_used().min(32);
    if ctx.launch.options.counters {
        for group in 0..used.div_ceil(8) {
            let mut rows = [None; 32];
            for (i, row) in rows.iter_mut().enumerate().take(8) {
                *row = Some(addrs[group * 8 + i] & ((1 << RANK_SHIFT) - 1));
            }
            ctx.cluster.counters.shared_access(&rows, 16);
        }
    }
    for (lane, &addr) in addrs.iter().enumerate().take(used) {
        let fail = |fault| LaneFault(lane as u32, fault);
        aligned(addr, 16).map_err(fail)?;
        let (rank, offset) = shared_place(ctx.cluster, addr, 16).map_err(fail)?;
        if ctx.checking() {
            check(
                ctx,
                warp,
                lane,
                Target::Shared { rank, offset },
                16,
                store,
                Order::Weak,
            );
        }
    }
    let mut memory = SharedBytes(ctx.cluster);
    if store {
        let regs: Vec<[u32; 32]> = form
            .regs
            .iter()
            .map(|&r| warp.reg(ctx.base, r).map(|v| v as u32))
            .collect();
        form.unit.store(&mut memory, &addrs, &regs)?;
    } else {
        let out = form.unit.load(&mut memory, &addrs)?;
        for (&reg, value) in form.regs.iter().zip(&out) {
            warp.write(ctx.base, reg, &value.map(u64::from), ctx.mask);
        }
    }
    Ok(())
}

/// Shared memory of a cluster, without checks (they are made per lane before).
pub(super) struct SharedBytes<'a>(pub(super) &'a mut Cluster);

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
