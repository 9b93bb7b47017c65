//! Registers to global memory by way of shared memory, by stores of the threads: subtiles as those of `tma.store.staged`, which
//! the threads read back and store with the lanes of a warp along a row.
//!
//! Tensor maps take rows of whole 16 bytes only (PTX ISA 5.5.8, "globalStrides"). Where a thread stores the two adjacent
//! sums that it holds, a warp's store is 8 rows of 16 bytes, halves of sectors; along a row it is whole sectors but at the
//! ends of the subtile.

use super::rings::Ring;
use super::store::sides;
use super::subtiles::Subtiles;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::facts::chip::SECTOR_BYTES;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::copy::CopyPlan;
use crate::state::cursor::Taken;
use crate::state::form::{Space, Storage};
use crate::state::site::Site;
use crate::state::storage::with_memory;
use crate::state::threads::WARP_THREADS;
use axe_layout::{Axis, Iter, Layout};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// Bytes of the widest access of a thread (PTX ISA, ld and st: `.v4.b32`).
const WIDEST_BYTES: i64 = 16;
/// Accesses whose loads are on their way before the first is stored, in registers beside the sums.
const AHEAD: usize = 8;

/// The schedule.
#[derive(Clone, Copy)]
pub(super) struct Rows;

/// Subtiles, and how their threads read and store them with the lanes along a row.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    subtiles: Subtiles,
    /// Elements of a vector along a row: which threads have them follows.
    width: i64,
    read: CopyPlan,
    write: CopyPlan,
    /// Elements between the destination's rows.
    stride: i64,
}

impl fmt::Display for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}by rows: {}{}", self.subtiles, self.read, self.write)
    }
}

impl Schedule for Rows {
    type Plan = Copy;

    fn name(&self) -> &'static str {
        "st.staged"
    }
}

/// The destination, in global memory.
fn destination<'a, 'c>(site: Site<'a, 'c>) -> Result<&'a Storage<'c>, Decline> {
    let storage = site.memory(1)?;
    match storage.space {
        Space::Global => Ok(storage),
        _ => Err(Decline::new("expected a copy to global memory")),
    }
}

impl<'c> Match<Site<'_, 'c>> for Rows {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Copy, Decline> {
        let storage = destination(site)?;
        let subtiles = Subtiles::of(site)?;
        let stride = row_stride(storage)?;
        let full = &site.registers(0)?.fragment;
        let direct = with_memory(storage, |memory| CopyPlan::new(full, memory))?;
        if fills_sectors(full, direct.width, storage.bytes) {
            return Err(Decline::new(
                "the threads' own elements fill whole sectors of 32 bytes",
            ));
        }
        let threads = subtiles.threads(site.threads());
        let (fragment, write) = along_rows(&subtiles, threads, storage, stride)?;
        let shared = subtiles.shared(storage)?;
        let read = with_memory(&shared, |memory| {
            let widest = write.width;
            CopyPlan::new(&fragment, crate::plan::copy::Memory { widest, ..memory })
        })?;
        if read.accesses.len() != write.accesses.len() {
            return Err(Decline::new(
                "the subtile is not read in the vectors that are stored",
            ));
        }
        Ok(Copy {
            subtiles,
            width: write.width,
            read,
            write,
            stride,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Copy) -> Result<(), Decline> {
        let storage = destination(site)?;
        plan.subtiles.check(site)?;
        let stride = row_stride(storage)?;
        let widths = [plan.width, plan.read.width, plan.write.width];
        if plan.stride != stride || widths.iter().any(|width| *width != plan.width) {
            return Err(Decline::new(format!(
                "expected rows {stride} elements apart, read and stored in vectors of one width, got {} and {widths:?}",
                plan.stride
            )));
        }
        let threads = plan.subtiles.threads(site.threads());
        let fragment = plan.fragment(threads)?;
        let there = in_subtiles(&plan.subtiles, storage, stride);
        with_memory(&there, |memory| plan.write.verify(&fragment, memory))?;
        let shared = plan.subtiles.shared(storage)?;
        with_memory(&shared, |memory| plan.read.verify(&fragment, memory))
    }
}

/// Elements from a row to the next, where each row's elements follow each other.
fn row_stride(memory: &Storage<'_>) -> Result<i64, Decline> {
    match memory.dims.as_slice() {
        [row, column] => match (row.as_slice(), column.as_slice()) {
            ([row], [column]) if column.stride == 1 => Ok(row.stride),
            _ => Err(Decline::new("expected rows of consecutive elements")),
        },
        _ => Err(Decline::new("expected a matrix")),
    }
}

/// Whether each store of a warp, of `width` elements of a thread's own, covers the sectors that it touches. Tiles begin at
/// a sector of their rows; where rows do not, stores along them have no whole sectors at their ends either.
fn fills_sectors(fragment: &Fragment, width: i64, bytes: i64) -> bool {
    let mut sectors = HashSet::new();
    let mut elements = 0;
    for thread in 0..WARP_THREADS.min(fragment.threads()) {
        for register in 0..width {
            if let Some(&[row, column]) = fragment.index(thread, register).as_deref() {
                sectors.insert((row, column * bytes / SECTOR_BYTES));
                elements += 1;
            }
        }
    }
    i64::try_from(sectors.len()).is_ok_and(|sectors| sectors * SECTOR_BYTES <= elements * bytes)
}

/// A subtile in the destination.
fn in_subtiles<'c>(subtiles: &Subtiles, storage: &Storage<'c>, stride: i64) -> Storage<'c> {
    let iter = |extent, stride| vec![Iter::new(extent, stride, Axis::M)];
    Storage {
        dims: vec![iter(subtiles.rows, stride), iter(subtiles.columns, 1)],
        shape: vec![subtiles.rows, subtiles.columns],
        ..storage.clone()
    }
}

/// A subtile in its threads with the lanes of a warp along a row, in the widest vectors that the destination takes.
fn along_rows(
    subtiles: &Subtiles,
    threads: i64,
    memory: &Storage<'_>,
    stride: i64,
) -> Result<(Fragment, CopyPlan), Decline> {
    let there = in_subtiles(subtiles, memory, stride);
    let mut width = (WIDEST_BYTES / memory.bytes).min(subtiles.columns);
    loop {
        let fragment = row_fragment([subtiles.rows, subtiles.columns], width, threads);
        let plan = fragment.and_then(|fragment| {
            let plan = with_memory(&there, |memory| CopyPlan::new(&fragment, memory))?;
            Ok((fragment, plan))
        });
        match plan {
            Ok((fragment, plan)) if plan.width == width => return Ok((fragment, plan)),
            Err(decline) if width <= 1 => return Err(decline),
            _ if width <= 1 => return Err(Decline::new("no vector stores the rows")),
            _ => width /= 2,
        }
    }
}

/// A subtile whose warps have rows one after the other, and whose lanes have vectors of so many elements along them.
fn row_fragment([rows, columns]: [i64; 2], width: i64, threads: i64) -> Result<Fragment, Decline> {
    if !(1..=WIDEST_BYTES).contains(&width) || width > columns || threads < WARP_THREADS {
        return Err(Decline::new(format!(
            "rows of {columns} have no vectors of {width}"
        )));
    }
    let lanes = (columns / width).min(WARP_THREADS);
    let at_once = threads / lanes;
    if columns % (lanes * width) != 0 || threads % lanes != 0 || rows % at_once != 0 {
        return Err(Decline::new(format!(
            "{threads} threads with {width} elements each do not divide subtiles of {rows} x {columns}"
        )));
    }
    let (turns, vectors) = (rows / at_once, columns / (lanes * width));
    let layout: Layout = format!(
        "S[({turns}, {at_once}, {vectors}, {lanes}, {width}) : ({}@reg, {lanes}@thread, {width}@reg, 1@thread, 1@reg)]",
        vectors * width
    )
    .parse()
    .map_err(|error: axe_layout::Error| Decline::new(error.to_string()))?;
    Fragment::new(&layout, &[rows, columns], threads)
}

impl<'c> Emit<'c> for Rows {
    fn taken(&self, plan: &Copy) -> Taken {
        Taken::Slots(plan.subtiles.slots)
    }

    fn emit(
        &self,
        plan: &Copy,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, target) = sides(emitter, op)?;
        let subtiles = &plan.subtiles;
        let threads = subtiles.threads(emitter.threads);
        let failed = |decline: Decline| emitter.error(decline.to_string());
        let fragment = plan.fragment(threads).map_err(failed)?;
        let held = subtiles.held(emitter, op, &source.fragment)?;
        let ring = subtiles.enter(emitter, held, (false, false))?;
        let place = plan.place(emitter, &fragment, &target, &ring)?;
        for number in 0..subtiles.count {
            let slot = subtiles.put(emitter, &ring, &source, (number, &target))?;
            let first = number * subtiles.columns;
            emitter.as_part(threads, |emitter| {
                plan.store(emitter, &fragment, &slot, (&target, &place, first))
            })?;
            subtiles.pass(emitter, &ring)?;
        }
        subtiles.leave(emitter)?;
        Ok(Vec::new())
    }
}

/// Where a thread stores what it has of each subtile.
struct Place<'c> {
    /// Its first element of the first subtile.
    pointer: Val<'c>,
    /// Rows that exist from its first one on, in 32 bits, where the tile may end before.
    rows: Option<Int<'c>>,
    /// The same of columns.
    columns: Option<Int<'c>>,
}

impl Copy {
    /// A subtile in its threads with the lanes of a warp along a row.
    fn fragment(&self, threads: i64) -> Result<Fragment, Decline> {
        row_fragment(
            [self.subtiles.rows, self.subtiles.columns],
            self.width,
            threads,
        )
    }

    fn place<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        fragment: &Fragment,
        target: &Memory<'c>,
        ring: &Ring<'c>,
    ) -> PassResult<'c, Place<'c>> {
        let [above, before] = self.subtiles.origin(emitter, ring.part.number)?;
        let (offset, index) = emitter.as_part(fragment.threads(), |emitter| {
            let index = emitter.index_of(fragment, 0)?;
            Ok((emitter.thread_part(&self.write.terms)?, index))
        })?;
        let wide = Ints::new(emitter.builder, target.space.offset_bits());
        let offset = wide.add(wide.cast(offset)?, target.pending)?;
        let offset = wide.add(offset, wide.mul(wide.cast(above)?, self.stride)?)?;
        let offset = wide.add(offset, wide.cast(before)?)?;
        let pointer = emitter.offset_pointer(target, target.base, offset)?;
        let ints = emitter.ints();
        let left = |dim: usize, before: Int<'c>| {
            let own = index.get(dim).copied().unwrap_or(Int::ZERO);
            let bounded = target.guards.get(dim).is_some_and(Option::is_some);
            bounded
                .then(|| {
                    let room = ints.max(emitter.room(target, dim)?, Int::ZERO)?;
                    ints.sub(room, ints.add(own, before)?)
                })
                .transpose()
        };
        Ok(Place {
            pointer,
            rows: left(0, above)?,
            columns: left(1, before)?,
        })
    }

    /// Stores what exists of a subtile whose first column is this one of the tile.
    fn store<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        fragment: &Fragment,
        slot: &Memory<'c>,
        (target, place, first): (&Memory<'c>, &Place<'c>, i64),
    ) -> PassResult<'c> {
        let pointers = emitter.pointers(&self.read, slot)?;
        let accesses: Vec<_> = pointers.into_iter().zip(&self.write.accesses).collect();
        for accesses in accesses.chunks(AHEAD) {
            let mut loaded = Vec::new();
            for (from, _) in accesses {
                loaded.push(emitter.load(slot, *from, self.read.width)?);
            }
            for ((_, access), values) in accesses.iter().zip(&loaded) {
                let offset = Int::Known(access.offset + first);
                let to = emitter.offset_pointer(target, place.pointer, offset)?;
                match exists(emitter, fragment, place, (access.register, first))? {
                    None => emitter.store(target, to, values)?,
                    Some(exists) => {
                        emitter.when(exists, &[], |emitter| {
                            emitter.store(target, to, values)?;
                            Ok(Vec::new())
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether the elements of an access exist: one comparison a row. Columns that do not exist leave no rows.
fn exists<'c>(
    emitter: &Emitter<'c>,
    fragment: &Fragment,
    place: &Place<'c>,
    (register, first): (i64, i64),
) -> PassResult<'c, Option<Val<'c>>> {
    let ints = emitter.ints();
    let at = fragment.index(0, register).unwrap_or_default();
    let (row, column) = match at.as_slice() {
        &[row, column] => (row, column),
        _ => return Err(emitter.error("expected a matrix")),
    };
    let inside = place
        .columns
        .map(|columns| ints.less(Int::Known(first + column), columns))
        .transpose()?;
    match (place.rows, inside) {
        (None, inside) => Ok(inside),
        (Some(rows), None) => ints.less(Int::Known(row), rows).map(Some),
        (Some(rows), Some(inside)) => {
            let rows = ints.select(inside, rows, Int::ZERO)?;
            ints.less(Int::Known(row), rows).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of `wgmma` in 64 rows (PTX ISA 9.7.15.5.1, "wgmma accumulator").
    const SUMS: &str = "S[(4, 2, 8, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]";

    #[test]
    fn two_sums_of_16_bits_fill_half_a_sector() {
        let sums = Fragment::new(&SUMS.parse().unwrap(), &[64, 64], 128).unwrap();
        assert!(!fills_sectors(&sums, 2, 2));
        assert!(!fills_sectors(&sums, 1, 2));
        assert!(fills_sectors(&sums, 2, 4));
        assert!(!fills_sectors(&sums, 1, 4));
        assert!(fills_sectors(&sums, 2, 8));
    }

    #[test]
    fn lanes_go_along_rows() {
        let pairs = row_fragment([64, 64], 2, 128).unwrap();
        assert_eq!(pairs.registers(), 32);
        assert_eq!(pairs.index(33, 0), Some(vec![1, 2]));
        assert_eq!(pairs.index(33, 3), Some(vec![5, 3]));
        let single = row_fragment([64, 64], 1, 128).unwrap();
        assert_eq!(single.index(33, 1), Some(vec![1, 33]));
        assert_eq!(single.index(33, 2), Some(vec![5, 1]));
        let wide = row_fragment([64, 16], 4, 128).unwrap();
        assert_eq!(wide.index(7, 5), Some(vec![33, 13]));
    }

    #[test]
    fn every_element_is_stored_once() {
        for (rows, columns, width, threads) in [
            (64, 64, 1, 128),
            (192, 32, 2, 384),
            (16, 64, 4, 128),
            (128, 16, 8, 256),
        ] {
            let fragment = row_fragment([rows, columns], width, threads).unwrap();
            let mut held = HashSet::new();
            for thread in 0..threads {
                for register in 0..fragment.registers() {
                    assert!(held.insert(fragment.linear(thread, register).unwrap()));
                }
            }
            assert_eq!(held.len() as i64, rows * columns);
        }
    }

    #[test]
    fn too_few_rows_are_declined() {
        let reason = row_fragment([8, 16], 2, 128).unwrap_err().to_string();
        assert_eq!(
            reason,
            "128 threads with 2 elements each do not divide subtiles of 8 x 16"
        );
    }
}
