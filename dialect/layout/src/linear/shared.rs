//! Relayout through shared memory, for layouts across warps, without bank conflicts.
//!
//! The memory layout is a linear map from the tile to offsets, read off a basis of the tile:
//! `[vector | wide | word | bank | row]`.
//!
//! * **vector**: directions that both sides have in registers; one access moves them together, up to
//!   16 bytes.
//! * **wide**: directions that only one side has in registers, which makes its accesses wider still.
//! * **word**: if these are narrower than the 4 bytes of a bank, directions to fill a word.
//! * **bank** and **row**: shared memory has 32 banks of 4 bytes; a warp's accesses of 8 and 16 bytes
//!   go by half and quarter warps, so that `2^b` lanes, `b = log2(128 / access bytes)`, meet in one
//!   wavefront. They are free of conflicts if no two of the words that they touch differ by a row
//!   alone: if the rows' span meets the span of these lanes' directions (with the wide ones) in 0,
//!   modulo vector and word, for the storing and for the loading side. The two spans have dimension
//!   `log2(128 / max(4, narrow access bytes))` at most, and two subspaces of one dimension have a
//!   common complement over every field: the rows are one. So both sides are always free of conflicts.

use std::collections::{HashMap, HashSet};

use super::basis::{Basis, apply, extend, intersection};
use super::columns::{Columns, MAX_BITS};
use crate::error::{Error, Result};

/// Bytes that all banks serve in one wavefront (32 banks of 4 bytes).
const WAVEFRONT_BYTES: usize = 128;
/// Bytes of a bank's word.
const WORD_BYTES: usize = 4;
/// Bytes of the widest shared memory access of a lane (`ld.shared.v4.b32`).
const MAX_ACCESS_BYTES: usize = 16;
/// Bits of register, lane and warp numbers that a plan may have in all.
const MAX_INDEX_BITS: usize = 20;

/// Which tile element register `r` of lane `l` of warp `w` holds: `reg(r) xor lane(l) xor warp(w)`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Distribution3 {
    /// The element index that each bit of the register number contributes.
    pub reg: Columns,
    /// The element index that each bit of the lane number contributes.
    pub lane: Columns,
    /// The element index that each bit of the warp number contributes.
    pub warp: Columns,
}

impl Distribution3 {
    /// The element that register `reg` of lane `lane` of warp `warp` holds.
    #[must_use]
    pub fn apply(&self, warp: u64, lane: u64, reg: u64) -> u64 {
        self.reg.apply(reg) ^ self.lane.apply(lane) ^ self.warp.apply(warp)
    }

    fn threads(&self) -> impl Iterator<Item = u64> + '_ {
        self.lane
            .as_slice()
            .iter()
            .chain(self.warp.as_slice())
            .copied()
    }

    fn index_bits(&self) -> usize {
        self.reg.len() + self.lane.len() + self.warp.len()
    }
}

/// The accesses of one side. Offsets are in elements.
///
/// Access `a` of lane `l` of warp `w` moves `vector` elements between the offsets
/// `offset[a] xor lane(l) xor warp(w) + p`, `p = 0, 1, ..`, and the registers
/// `registers[a][p] xor exchange_lane(l) xor exchange_warp(w)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Elements of one access.
    pub vector: usize,
    /// For each access, its registers in the order of memory.
    pub registers: Vec<Vec<usize>>,
    /// For each access, its offset.
    pub offset: Vec<u64>,
    /// The offset that each bit of the lane number contributes.
    pub lane: Columns,
    /// The offset that each bit of the warp number contributes.
    pub warp: Columns,
    /// The exchange of registers that each bit of the lane number asks for, often none.
    pub exchange_lane: Columns,
    /// The exchange of registers that each bit of the warp number asks for, often none.
    pub exchange_warp: Columns,
    /// Wavefronts of one access of a warp: the fewest that its bytes allow.
    pub wavefronts: usize,
}

/// Store all, synchronise, load all, copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedPlan {
    /// Bits of an element.
    pub elem_bits: u32,
    /// Bytes of shared memory.
    pub bytes: usize,
    /// The offset of each element of the tile, in elements.
    pub offset: Columns,
    /// The storing side.
    pub store: Access,
    /// The loading side.
    pub load: Access,
    /// Register `r` of the destination is a copy of register `copies[r]`, which was loaded (or itself).
    pub copies: Vec<usize>,
}

/// The plan that turns `src` into `dst` through shared memory with the widest vectors that both sides
/// have, wider ones on the side that can, and without bank conflicts.
///
/// # Errors
/// `Invalid` when the numbers of lanes or warps differ; `Unsupported` for elements other than 8, 16, 32
/// or 64 bits, or for more than `2^20` registers; `None` when `dst` has an element that `src` has not.
pub fn shared_plan(src: &Distribution3, dst: &Distribution3, elem_bits: u32) -> Result<SharedPlan> {
    let elem_bytes = match elem_bits {
        8 | 16 | 32 | 64 => (elem_bits / 8) as usize,
        _ => {
            return Err(Error::unsupported(format!(
                "a relayout through shared memory: expected elements of 8, 16, 32 or 64 bits, got \
                 {elem_bits}"
            )));
        }
    };
    check(src, dst)?;
    let order = MemoryOrder::new(src, dst, elem_bytes);
    let bits = order.directions.len();
    let offset = Columns::from_raw(order.directions).inverse()?;
    let held: Vec<u64> = src
        .reg
        .as_slice()
        .iter()
        .copied()
        .chain(src.threads())
        .collect();
    let tile_bits = Basis::of(&held).rank().min(bits);
    let loaded = Basis::of(dst.reg.as_slice());
    let copies = (0..1_u64 << dst.reg.len())
        .map(|r| loaded.reduce(dst.reg.apply(r)).1 as usize)
        .collect();
    Ok(SharedPlan {
        elem_bits,
        bytes: elem_bytes << tile_bits,
        store: access(src, &offset, order.store_bits, elem_bytes),
        load: access(dst, &offset, order.load_bits, elem_bytes),
        offset,
        copies,
    })
}

fn check(src: &Distribution3, dst: &Distribution3) -> Result<()> {
    if src.lane.len() != dst.lane.len() || src.warp.len() != dst.warp.len() {
        return Err(Error::invalid(
            "a relayout through shared memory: the numbers of lanes or warps differ",
        ));
    }
    if src.index_bits().max(dst.index_bits()) > MAX_INDEX_BITS {
        return Err(Error::unsupported(format!(
            "a relayout through shared memory of more than {MAX_INDEX_BITS} index bits"
        )));
    }
    let mut all = Basis::of(src.reg.as_slice());
    extend(&mut all, src.threads());
    let mut needed = dst.reg.as_slice().iter().copied().chain(dst.threads());
    match needed.find(|&element| !all.contains(element)) {
        Some(element) => Err(Error::none(format!(
            "a relayout through shared memory: the destination holds element {element}, the source does \
             not"
        ))),
        None => Ok(()),
    }
}

/// The basis of the tile in the order of offset bits.
struct MemoryOrder {
    directions: Vec<u64>,
    /// How many of them one store moves together.
    store_bits: usize,
    /// How many of them one load moves together.
    load_bits: usize,
}

impl MemoryOrder {
    fn new(src: &Distribution3, dst: &Distribution3, elem_bytes: usize) -> Self {
        let threads: Vec<u64> = src.threads().chain(dst.threads()).collect();
        let registers = src.reg.as_slice().iter().chain(dst.reg.as_slice());
        let all: Vec<u64> = threads.iter().chain(registers).copied().collect();
        let limit = (MAX_ACCESS_BYTES / elem_bytes).ilog2() as usize;
        let common = intersection(src.reg.as_slice(), dst.reg.as_slice());
        let vector = directions(&[], &common, &threads, limit);
        let widened = |d: &Distribution3| directions(&vector, d.reg.as_slice(), &threads, limit);
        let (store_wide, load_wide) = (widened(src), widened(dst));
        let storing = store_wide.len() > load_wide.len();
        let (wide, other, wide_part) = if storing {
            (src, dst, store_wide)
        } else {
            (dst, src, load_wide)
        };

        let mut whole = Basis::of(&vector);
        let mut order = vector.clone();
        order.extend(extend(&mut whole, wide_part.iter().copied()));
        // The part of a direction along these; 0 on threads as far as can be, so that registers need
        // no exchange.
        let mut split = Basis::of(&order);
        extend(&mut split, all.iter().copied());
        let moved = order.clone();
        let straight = |direction: u64| direction ^ apply(&moved, split.reduce(direction).1);
        let covered = fill_word(
            &mut order,
            &mut whole,
            (vector.len(), elem_bytes),
            |whole| {
                let fresh = all.iter().find(|&&direction| whole.insert(direction, 0));
                fresh.map(|&direction| straight(direction))
            },
        );
        let (inner, beyond) = order.split_at(covered.min(order.len()));
        let width = WAVEFRONT_BYTES / (elem_bytes << vector.len()).max(WORD_BYTES);
        let bank_bits = width.ilog2() as usize;
        let left = bank_bits - beyond.len().min(bank_bits);
        let sides = [
            [beyond, &lanes(wide, left)].concat(),
            lanes(other, bank_bits),
        ];
        let (banks, rows) = banks_and_rows(sides, &Basis::of(inner), &all, bank_bits);
        // Along the wide directions, which are banks to the other side, rows must stay as they are.
        let inside = |direction: u64| {
            let parts = split.reduce(direction).1 & ((1 << inner.len()) - 1);
            direction ^ apply(&moved, parts)
        };
        let banks = banks.into_iter().skip(beyond.len()).map(straight);
        let outer: Vec<u64> = banks.chain(rows.into_iter().map(inside)).collect();
        order.extend(outer);
        order.extend(unreached(&order, &all));
        let bits = |side: bool| vector.len() + if side { wide_part.len() } else { 0 };
        Self {
            directions: order,
            store_bits: bits(storing),
            load_bits: bits(!storing),
        }
    }
}

/// The directions of the first lane bits.
fn lanes(d: &Distribution3, count: usize) -> Vec<u64> {
    d.lane.as_slice().iter().take(count).copied().collect()
}

/// What the accesses of both sides cover: a vector of so many directions, or a word, which `next` fills with
/// directions that are not in its span yet.
fn fill_word(
    order: &mut Vec<u64>,
    whole: &mut Basis,
    (vector, elem_bytes): (usize, usize),
    next: impl Fn(&mut Basis) -> Option<u64>,
) -> usize {
    let mut covered = vector;
    while elem_bytes << covered < WORD_BYTES {
        if order.len() == covered {
            match next(whole) {
                Some(direction) => order.push(direction),
                None => break,
            }
        }
        covered += 1;
    }
    covered
}

/// Indices that the source does not reach, so that the map has an inverse.
fn unreached(order: &[u64], all: &[u64]) -> Vec<u64> {
    let used = all.iter().fold(0, |used, d| used | d);
    let bits = (u64::BITS - used.leading_zeros()) as usize;
    let units = (0..bits.min(MAX_BITS)).map(|k| 1 << k);
    extend(&mut Basis::of(order), units)
}

/// Directions of `registers` beside those `given`, `limit` in all, those first that no thread moves
/// along.
fn directions(given: &[u64], registers: &[u64], threads: &[u64], limit: usize) -> Vec<u64> {
    let mut moved = Basis::of(threads);
    extend(&mut moved, given.iter().copied());
    let mut found = extend(&mut moved, registers.iter().copied());
    let mut chosen = Basis::of(given);
    extend(&mut chosen, found.iter().copied());
    found.extend(extend(&mut chosen, registers.iter().copied()));
    found.truncate(limit.saturating_sub(given.len()));
    found
}

/// Directions of the banks, then of the rows, modulo `inner`: the first side's directions are banks, in
/// their order, and no row is in the span of either side.
fn banks_and_rows(
    sides: [Vec<u64>; 2],
    inner: &Basis,
    all: &[u64],
    bank_bits: usize,
) -> (Vec<u64>, Vec<u64>) {
    let modulo = |direction: &u64| inner.reduce(*direction).0;
    let [mut wide, mut other] = sides.map(|side| {
        extend(
            &mut Basis::default(),
            side.iter().map(modulo).collect::<Vec<_>>(),
        )
    });
    let outside: Vec<u64> = all.iter().map(modulo).collect();
    // Both up to `bank_bits` directions, or all there are; each prefers those of the other.
    let fill = |side: &mut Vec<u64>, other: &[u64]| {
        let mut span = Basis::of(side);
        let more = extend(&mut span, other.iter().chain(&outside).copied());
        side.extend(more);
        side.truncate(bank_bits);
    };
    fill(&mut wide, &other);
    fill(&mut other, &wide);
    let common = intersection(&wide, &other);
    let beside = |side: &[u64]| extend(&mut Basis::of(&common), side.iter().copied());
    let (only_wide, only_other) = (beside(&wide), beside(&other));
    let mut span = Basis::of(&wide);
    extend(&mut span, other.iter().copied());
    let neither = extend(&mut span, outside.iter().copied());
    let diagonal = only_wide.iter().zip(&only_other).map(|(a, b)| a ^ b);
    let rows = diagonal.chain(neither).collect();
    (wide, rows)
}

fn access(d: &Distribution3, offset: &Columns, vector_bits: usize, elem_bytes: usize) -> Access {
    let held = Basis::of(d.reg.as_slice());
    let low = (1_u64 << vector_bits) - 1;
    // The registers of the directions of the vector.
    let bits = offset.len();
    let back = offset.pseudo_inverse(bits).unwrap_or_default();
    let vector: Vec<u64> = back.as_slice().iter().take(vector_bits).copied().collect();
    let gather: Vec<u64> = vector.iter().map(|&v| held.reduce(v).1).collect();
    let mut span = Basis::of(&vector);
    let others: Vec<u64> = extend(&mut span, d.reg.as_slice().iter().copied())
        .into_iter()
        .map(|e| e ^ apply(&vector, offset.apply(e) & low))
        .collect();
    let base: Vec<u64> = others.iter().map(|&e| held.reduce(e).1).collect();
    let step: Vec<u64> = others.iter().map(|&e| offset.apply(e)).collect();
    let register = |a: u64, p: u64| (apply(&base, a) ^ apply(&gather, p)) as usize;
    let accesses = 0..1_u64 << others.len();
    let (address, exchange): (Vec<_>, Vec<_>) = [&d.lane, &d.warp]
        .map(|columns| {
            let images = columns.as_slice().iter().map(|&e| offset.apply(e));
            let split = images.map(|o| (o & !low, apply(&gather, o & low)));
            let (address, exchange): (Vec<u64>, Vec<u64>) = split.unzip();
            (Columns::from_raw(address), Columns::from_raw(exchange))
        })
        .into_iter()
        .unzip();
    let [lane, warp] = <[Columns; 2]>::try_from(address).unwrap_or_default();
    let [exchange_lane, exchange_warp] = <[Columns; 2]>::try_from(exchange).unwrap_or_default();
    let addresses: Vec<u64> = (0..1_u64 << lane.len()).map(|l| lane.apply(l)).collect();
    let vector = 1 << vector_bits;
    Access {
        vector,
        registers: accesses
            .clone()
            .map(|a| (0..=low).map(|p| register(a, p)).collect())
            .collect(),
        offset: accesses.map(|a| apply(&step, a)).collect(),
        wavefronts: wavefronts(&addresses, vector * elem_bytes, elem_bytes),
        lane,
        warp,
        exchange_lane,
        exchange_warp,
    }
}

/// Wavefronts of one access of the lanes at the offsets given (in elements): for each group of lanes
/// that is served together, the most distinct words of one bank.
fn wavefronts(offsets: &[u64], access_bytes: usize, elem_bytes: usize) -> usize {
    let together = WAVEFRONT_BYTES / access_bytes.max(WORD_BYTES);
    let serve = |lanes: &[u64]| {
        let mut words: HashMap<u64, HashSet<u64>> = HashMap::new();
        for offset in lanes {
            let first = offset * elem_bytes as u64;
            for byte in first..first + access_bytes as u64 {
                let word = byte / WORD_BYTES as u64;
                words.entry(word % 32).or_default().insert(word);
            }
        }
        words.values().map(HashSet::len).max().unwrap_or(0)
    };
    offsets.chunks(together).map(serve).sum()
}

impl SharedPlan {
    /// Executes the plan on element numbers: every element arrives, and no access of any warp takes
    /// more wavefronts than groups of lanes.
    ///
    /// # Errors
    /// `Invalid` naming the first thing that is wrong.
    pub fn check(&self, src: &Distribution3, dst: &Distribution3) -> Result<()> {
        let mut memory: HashMap<u64, u64> = HashMap::new();
        self.visit(src, &self.store, |offset, warp, lane, register| {
            let element = src.apply(warp, lane, register as u64);
            match memory.insert(offset, element) {
                Some(other) if other != element => Err(Error::invalid(format!(
                    "a relayout through shared memory: offset {offset} gets elements {other} and \
                     {element}"
                ))),
                _ => Ok(()),
            }
        })?;
        let mut loaded: HashMap<(u64, u64, usize), u64> = HashMap::new();
        self.visit(dst, &self.load, |offset, warp, lane, register| {
            let element = memory.get(&offset).copied().ok_or_else(|| {
                Error::invalid(format!(
                    "a relayout through shared memory: offset {offset} is loaded and never stored"
                ))
            })?;
            loaded.insert((warp, lane, register), element);
            Ok(())
        })?;
        for warp in 0..1 << dst.warp.len() {
            for lane in 0..1 << dst.lane.len() {
                for (r, copied) in self.copies.iter().enumerate() {
                    let wanted = dst.apply(warp, lane, r as u64);
                    if loaded.get(&(warp, lane, *copied)) != Some(&wanted) {
                        return Err(Error::invalid(format!(
                            "a relayout through shared memory: register {r} of lane {lane} of warp \
                             {warp} ends with the wrong element"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `each` with offset, warp, lane and register of every element moved, and counts wavefronts.
    fn visit(
        &self,
        d: &Distribution3,
        access: &Access,
        mut each: impl FnMut(u64, u64, u64, usize) -> Result<()>,
    ) -> Result<()> {
        let elem_bytes = (self.elem_bits / 8) as usize;
        let access_bytes = access.vector * elem_bytes;
        for warp in 0..1 << d.warp.len() {
            for (registers, &base) in access.registers.iter().zip(&access.offset) {
                let mut addresses = Vec::new();
                for lane in 0..1 << d.lane.len() {
                    let address = base ^ access.lane.apply(lane) ^ access.warp.apply(warp);
                    addresses.push(address);
                    let exchange =
                        access.exchange_lane.apply(lane) ^ access.exchange_warp.apply(warp);
                    for (p, register) in registers.iter().enumerate() {
                        each(address + p as u64, warp, lane, register ^ exchange as usize)?;
                    }
                }
                let groups = addresses
                    .chunks(WAVEFRONT_BYTES / access_bytes.max(WORD_BYTES))
                    .len();
                let taken = wavefronts(&addresses, access_bytes, elem_bytes);
                if taken > groups || taken != access.wavefronts {
                    return Err(Error::invalid(format!(
                        "a relayout through shared memory: an access takes {taken} wavefronts for \
                         {groups} groups of lanes"
                    )));
                }
            }
        }
        Ok(())
    }
}
