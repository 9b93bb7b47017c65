//! Relayout through shared memory between any two distributions, given as tables, without bank
//! conflicts.
//!
//! Elements that one lane stores and the same lanes load share a word of 4 bytes, up to 4 of 8 bits and 2 of
//! 16; one access of a lane moves a word, or an element of 64 or 128 bits. Words of one column meet
//! in the same banks. A word is an edge between the phase (the lanes of one access that are served
//! together) that stores it and the phase that loads it; a column for each word so that no phase has
//! two words in one is a colouring of the edges of a bipartite graph, and needs as many columns as a
//! phase has lanes (König's theorem), which is how many there are. So there always is a way without any
//! conflict, whatever the distributions. Only a word that several phases load, of replicas, meets
//! others in the phases after its first.

use std::collections::{BTreeMap, HashMap};

use super::relayout::{Table, colour};
use crate::analysis::{BankCost, WarpAccess};
use crate::axis::WARP;
use crate::error::{Error, Result};

/// Bytes that all banks serve at once.
const ROW_BYTES: usize = 128;
/// Registers of all lanes that a plan may have.
const MAX_ENTRIES: usize = 1 << 20;

/// One side of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SharedSide {
    /// The slot of register `r` of lane `l` of warp `w`, `slots[w][r][l]`; none where nothing is moved.
    pub slots: Vec<Vec<Vec<Option<usize>>>>,
    /// The registers that access `k` of lane `l` of warp `w` moves, `accesses[w][k][l]`: all in one word; none
    /// where the lane takes no part.
    pub accesses: Vec<Vec<Vec<Vec<usize>>>>,
}

/// Store all, synchronise, load all: one word in each access of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedTablePlan {
    /// Bits of an element.
    pub elem_bits: u32,
    /// Bytes from one slot to the next: as many as an element has.
    pub slot_bytes: usize,
    /// Bytes of a word: 4, or as many as an element has.
    pub word_bytes: usize,
    /// Bytes of shared memory.
    pub bytes: usize,
    /// Where registers are stored to.
    pub store: SharedSide,
    /// Where registers are loaded from.
    pub load: SharedSide,
}

/// The plan that turns the distribution `src` over warps, lanes and registers into `dst`: one table for
/// each warp of 32 lanes or fewer, of any numbers of warps, lanes and registers.
///
/// Stores are free of bank conflicts, and so are loads of elements that one phase of `dst` asks for;
/// [`SharedTablePlan::cost`] counts.
///
/// # Errors
/// `Invalid` when a warp has more than 32 lanes; `Unsupported` for elements other than 8, 16, 32, 64 or
/// 128 bits, or above a million registers; `None` when `dst` asks for an element that `src` has not.
pub fn shared_tables(src: &[Table], dst: &[Table], elem_bits: u32) -> Result<SharedTablePlan> {
    let slot_bytes = match elem_bits {
        8 | 16 | 32 | 64 | 128 => elem_bits as usize / 8,
        _ => {
            return Err(Error::unsupported(format!(
                "a relayout through shared memory: expected elements of 8, 16, 32, 64 or 128 bits, got \
                 {elem_bits}"
            )));
        }
    };
    let entries = |t: &[Table]| {
        t.iter()
            .flatten()
            .map(Vec::len)
            .fold(0, usize::saturating_add)
    };
    if entries(src).max(entries(dst)) > MAX_ENTRIES {
        return Err(Error::unsupported(
            "a relayout through shared memory of more than a million registers",
        ));
    }
    if src.iter().chain(dst).any(|warp| warp.len() > WARP) {
        return Err(Error::invalid(format!(
            "a relayout through shared memory: expected at most {WARP} lanes a warp"
        )));
    }
    let word_bytes = slot_bytes.max(4);
    let (columns, per_word) = (ROW_BYTES / word_bytes, word_bytes / slot_bytes);
    let words = Words::new(src, dst, per_word)?;
    let (mut store, store_phases) = words.accesses(src, columns, true);
    let (mut load, load_phases) = words.accesses(dst, columns, false);
    let edge = |word| (store_phases.first(word), load_phases.first(word));
    let edges: Vec<(usize, usize)> = (0..words.list.len()).map(edge).collect();
    let colours = colour(&edges, store_phases.count, load_phases.count);
    // Words of a column, one below the other.
    let mut rows = vec![0_usize; columns];
    let mut slot_of = HashMap::with_capacity(words.of.len());
    for (elements, colour) in words.list.iter().zip(colours) {
        if let Some(row) = rows.get_mut(colour) {
            let word = *row * columns + colour;
            let slots = elements.iter().zip(word * per_word..);
            slot_of.extend(slots.map(|(element, slot)| (*element, slot)));
            *row += 1;
        }
    }
    store.slots = words.slots(src, &slot_of, true);
    load.slots = words.slots(dst, &slot_of, false);
    Ok(SharedTablePlan {
        elem_bits,
        slot_bytes,
        word_bytes,
        bytes: rows.iter().max().copied().unwrap_or(0) * ROW_BYTES,
        store,
        load,
    })
}

/// A warp, a register and a lane.
type Place = (usize, usize, usize);

/// The elements that travel, by words.
struct Words {
    list: Vec<Vec<u64>>,
    /// The word of each element.
    of: HashMap<u64, usize>,
    /// The register that stores each.
    home: HashMap<u64, Place>,
}

/// The phase that first moves each word, and how many phases there are.
struct Phases {
    of: HashMap<usize, usize>,
    count: usize,
}

impl Phases {
    fn first(&self, word: usize) -> usize {
        self.of.get(&word).copied().unwrap_or(0)
    }
}

impl Words {
    /// Elements of one home lane and the same readers, `per_word` together in the order of their registers.
    fn new(src: &[Table], dst: &[Table], per_word: usize) -> Result<Self> {
        let mut home = HashMap::new();
        each_place(src, |element, place| {
            home.entry(element).or_insert(place);
        });
        let mut readers: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
        each_place(dst, |element, (warp, _, lane)| {
            let readers = readers.entry(element).or_default();
            if readers.last() != Some(&(warp, lane)) {
                readers.push((warp, lane));
            }
        });
        let mut together: BTreeMap<_, Vec<(Place, u64)>> = BTreeMap::new();
        for (element, mut readers) in readers {
            let &place = home.get(&element).ok_or_else(|| {
                Error::none(format!(
                    "a relayout through shared memory: the destination holds element {element}, the \
                     source does not"
                ))
            })?;
            readers.sort_unstable();
            readers.dedup();
            let key = ((place.0, place.2), readers);
            together.entry(key).or_default().push((place, element));
        }
        let mut list = Vec::new();
        for mut elements in together.into_values() {
            elements.sort_unstable();
            let words = elements.chunks(per_word);
            list.extend(words.map(|word| word.iter().map(|(_, e)| *e).collect::<Vec<u64>>()));
        }
        let numbered = list.iter().enumerate();
        let of = numbered.flat_map(|(word, elements)| elements.iter().map(move |e| (*e, word)));
        let of = of.collect();
        Ok(Self { list, of, home })
    }

    /// Whether this register moves the element.
    fn moves(&self, element: u64, place: Place, stores: bool) -> bool {
        self.of.contains_key(&element) && (!stores || self.home.get(&element) == Some(&place))
    }

    /// The accesses of each lane, one a word, in the order of their registers, and the phases of words.
    fn accesses(&self, tables: &[Table], columns: usize, stores: bool) -> (SharedSide, Phases) {
        let (mut side, mut of, mut count) = (SharedSide::default(), HashMap::new(), 0);
        for (warp, table) in tables.iter().enumerate() {
            let by_lane: Vec<Vec<(usize, Vec<usize>)>> = (0..table.len())
                .map(|lane| self.of_lane(table, (warp, lane), stores))
                .collect();
            let most = by_lane.iter().map(Vec::len).max().unwrap_or(0);
            let mut accesses = vec![vec![Vec::new(); table.len()]; most];
            for (lane, words) in by_lane.into_iter().enumerate() {
                for ((word, registers), (k, access)) in
                    words.into_iter().zip(accesses.iter_mut().enumerate())
                {
                    let phase = count + k * table.len().div_ceil(columns) + lane / columns;
                    of.entry(word).or_insert(phase);
                    if let Some(slot) = access.get_mut(lane) {
                        *slot = registers;
                    }
                }
            }
            count += most * table.len().div_ceil(columns);
            side.accesses.push(accesses);
        }
        (side, Phases { of, count })
    }

    /// The words of a lane and their registers.
    fn of_lane(
        &self,
        table: &Table,
        (warp, lane): (usize, usize),
        stores: bool,
    ) -> Vec<(usize, Vec<usize>)> {
        let mut words: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut at = HashMap::new();
        for (register, element) in table.get(lane).into_iter().flatten().enumerate() {
            let Some(element) = *element else { continue };
            let Some(&word) = self.of.get(&element) else {
                continue;
            };
            if !self.moves(element, (warp, register, lane), stores) {
                continue;
            }
            let k = *at.entry(word).or_insert(words.len());
            match words.get_mut(k) {
                Some((_, registers)) => registers.push(register),
                None => words.push((word, vec![register])),
            }
        }
        words
    }

    fn slots(
        &self,
        tables: &[Table],
        slot_of: &HashMap<u64, usize>,
        stores: bool,
    ) -> Vec<Vec<Vec<Option<usize>>>> {
        let at = |warp: usize, lane: usize, register: usize| {
            let element = (*tables.get(warp)?.get(lane)?.get(register)?)?;
            let mine = self.moves(element, (warp, register, lane), stores);
            slot_of.get(&element).copied().filter(|_| mine)
        };
        let warp = |(w, table): (usize, &Table)| -> Vec<Vec<Option<usize>>> {
            let registers = table.iter().map(Vec::len).max().unwrap_or(0);
            (0..registers)
                .map(|r| (0..table.len()).map(|l| at(w, l, r)).collect())
                .collect()
        };
        tables.iter().enumerate().map(warp).collect()
    }
}

/// Calls `visit` with each element and its warp, register and lane, register by register.
fn each_place(tables: &[Table], mut visit: impl FnMut(u64, Place)) {
    for (warp, table) in tables.iter().enumerate() {
        let registers = table.iter().map(Vec::len).max().unwrap_or(0);
        for register in 0..registers {
            for (lane, held) in table.iter().enumerate() {
                if let Some(Some(element)) = held.get(register) {
                    visit(*element, (warp, register, lane));
                }
            }
        }
    }
}

impl SharedTablePlan {
    /// Passes of all stores, and of all loads.
    ///
    /// # Errors
    /// `Invalid` when a slot is no address; never for a plan of [`shared_tables`].
    pub fn cost(&self) -> Result<(BankCost, BankCost)> {
        Ok((self.side(&self.store)?, self.side(&self.load)?))
    }

    fn side(&self, side: &SharedSide) -> Result<BankCost> {
        let mut sum = BankCost::default();
        for (slots, accesses) in side.slots.iter().zip(&side.accesses) {
            for access in accesses.iter().filter(|access| !access.is_empty()) {
                let byte = |(lane, registers): (usize, &Vec<usize>)| {
                    let slot = slots.get(*registers.first()?)?.get(lane).copied()??;
                    let byte = slot.checked_mul(self.slot_bytes)?;
                    i64::try_from(byte / self.word_bytes * self.word_bytes).ok()
                };
                let addresses = access.iter().enumerate().map(byte).collect();
                let cost = WarpAccess::new(self.word_bytes as i64, addresses)?.banks();
                sum.passes += cost.passes;
                sum.ideal += cost.ideal;
                sum.ways = sum.ways.max(cost.ways);
            }
        }
        Ok(sum)
    }

    /// Executes the accesses of the plan on the elements of `src` and compares with `dst`, where that asks for
    /// one.
    ///
    /// # Errors
    /// `Invalid` naming the first register that is wrong, an access of two words, or a slot that two elements
    /// are stored to.
    pub fn check(&self, src: &[Table], dst: &[Table]) -> Result<()> {
        let wrong =
            |what: String| Error::invalid(format!("a relayout through shared memory: {what}"));
        let mut memory: HashMap<usize, u64> = HashMap::new();
        self.each_access(&self.store, |(warp, register, lane), slot| {
            let held = src
                .get(warp)
                .and_then(|t| t.get(lane)?.get(register).copied()?);
            let Some(element) = held else {
                return Err(wrong(format!(
                    "register {register} of lane {lane} of warp {warp} holds nothing to store"
                )));
            };
            if slot.saturating_mul(self.slot_bytes) >= self.bytes {
                return Err(wrong(format!("slot {slot} is outside")));
            }
            match memory.insert(slot, element) {
                Some(other) if other != element => Err(wrong(format!(
                    "elements {other} and {element} in slot {slot}"
                ))),
                _ => Ok(()),
            }
        })?;
        let mut arrived: HashMap<Place, u64> = HashMap::new();
        self.each_access(&self.load, |place, slot| {
            arrived.extend(memory.get(&slot).map(|element| (place, *element)));
            Ok(())
        })?;
        let mut lost = None;
        each_place(dst, |element, place| {
            if arrived.get(&place) != Some(&element) {
                lost.get_or_insert(place);
            }
        });
        lost.map_or(Ok(()), |(warp, register, lane)| {
            Err(wrong(format!(
                "register {register} of lane {lane} of warp {warp} ends with the wrong element"
            )))
        })
    }

    /// Calls `visit` with the place and the slot of each register, access by access.
    fn each_access(
        &self,
        side: &SharedSide,
        mut visit: impl FnMut(Place, usize) -> Result<()>,
    ) -> Result<()> {
        let slot = |(w, r, l): Place| side.slots.get(w)?.get(r)?.get(l).copied()?;
        for (warp, accesses) in side.accesses.iter().enumerate() {
            let lanes = accesses.iter().flat_map(|access| access.iter().enumerate());
            for (lane, registers) in lanes {
                let mut word = None;
                for &register in registers {
                    let Some(slot) = slot((warp, register, lane)) else {
                        return Err(Error::invalid(format!(
                            "a relayout through shared memory: register {register} of lane {lane} of warp {warp} has no slot"
                        )));
                    };
                    let own = slot.saturating_mul(self.slot_bytes) / self.word_bytes.max(1);
                    if *word.get_or_insert(own) != own {
                        return Err(Error::invalid(format!(
                            "a relayout through shared memory: an access of lane {lane} of warp {warp} has two words"
                        )));
                    }
                    visit((warp, register, lane), slot)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Kind;

    /// Tables of `warps` warps with these lanes and registers, filled from a list.
    fn tables(warps: usize, lanes: usize, regs: usize, list: &[Option<u64>]) -> Vec<Table> {
        let at = |i: usize| list.get(i).copied().flatten();
        let lane = |w: usize, l: usize| (0..regs).map(|r| at((w * lanes + l) * regs + r)).collect();
        let warp = |w: usize| (0..lanes).map(|l| lane(w, l)).collect();
        (0..warps).map(warp).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Any permutation and any holes, between different numbers of warps, lanes and registers.
        #[test]
        fn any_permutation_is_free_of_conflicts(
            (warps, lanes, regs) in (1_usize..4, 1_usize..33, 1_usize..6),
            (more, wide, deep) in (1_usize..4, 1_usize..33, 1_usize..6),
            bits in prop::sample::select(vec![8_u32, 16, 32, 64, 128]),
            seed in any::<u64>(),
        ) {
            let (size, room) = (warps * lanes * regs, more * wide * deep);
            let hash = |x: u64| (x + 1).wrapping_mul(seed | 1).rotate_left(23) ^ seed;
            let src: Vec<Option<u64>> = (0..size as u64).map(Some).collect();
            let mut dst: Vec<Option<u64>> = (0..room as u64)
                .map(|x| (x < size as u64 && hash(x) % 9 != 0).then_some(x))
                .collect();
            dst.sort_by_key(|x| x.map_or(0, |x| hash(hash(x))));
            let (src, dst) = (tables(warps, lanes, regs, &src), tables(more, wide, deep, &dst));
            let plan = shared_tables(&src, &dst, bits).unwrap();
            plan.check(&src, &dst).unwrap();
            let (store, load) = plan.cost().unwrap();
            prop_assert_eq!((store.conflicts(), load.conflicts()), (0, 0));
        }

        /// Replicas on both sides: right, and stored without conflicts.
        #[test]
        fn replicas_arrive(
            (warps, lanes, regs) in (1_usize..4, 1_usize..33, 1_usize..6),
            distinct in 1_u64..40,
            seed in any::<u64>(),
        ) {
            let size = (warps * lanes * regs) as u64;
            let hash = |x: u64| (x + 1).wrapping_mul(seed | 1).rotate_left(23) ^ seed;
            let src: Vec<Option<u64>> = (0..size).map(|x| Some(x % distinct)).collect();
            let dst: Vec<Option<u64>> =
                (0..size).map(|x| Some(hash(x) % distinct.min(size))).collect();
            let (src, dst) = (tables(warps, lanes, regs, &src), tables(warps, lanes, regs, &dst));
            let plan = shared_tables(&src, &dst, 32).unwrap();
            plan.check(&src, &dst).unwrap();
            prop_assert_eq!(plan.cost().unwrap().0.conflicts(), 0);
        }
    }

    /// A transpose of 96x96 words by three warps: full rows, no padding.
    #[test]
    fn a_transpose_of_96_takes_no_padding() {
        let by_rows: Vec<_> = (0..96 * 96).map(Some).collect();
        let by_columns: Vec<_> = (0..96 * 96).map(|x| Some(x % 96 * 96 + x / 96)).collect();
        let (src, dst) = (tables(3, 32, 96, &by_rows), tables(3, 32, 96, &by_columns));
        let plan = shared_tables(&src, &dst, 32).unwrap();
        plan.check(&src, &dst).unwrap();
        let (store, load) = plan.cost().unwrap();
        assert_eq!((store.passes, load.passes), (288, 288));
        assert_eq!(plan.bytes, 96 * 96 * 4);
    }

    /// Elements of 16 and 8 bits that stay together travel in one word, whatever the numbers of lanes and
    /// registers: no side has more accesses than words that its lanes must move.
    #[test]
    fn narrow_elements_share_words() {
        // Three warps of 32 lanes with 10 registers; lanes and warps change places, runs of registers stay.
        let (warps, lanes, regs) = (3, 32, 10);
        let src: Vec<_> = (0..(warps * lanes * regs) as u64).map(Some).collect();
        let moved = |x: usize| {
            let (owner, register) = (x / regs, x % regs);
            Some(((owner * 35 % (warps * lanes)) * regs + (register + 3) % regs) as u64)
        };
        let dst: Vec<_> = (0..warps * lanes * regs).map(moved).collect();
        let (src, dst) = (
            tables(warps, lanes, regs, &src),
            tables(warps, lanes, regs, &dst),
        );
        for (bits, words) in [(32, 10), (16, 5), (8, 3)] {
            let plan = shared_tables(&src, &dst, bits).unwrap();
            plan.check(&src, &dst).unwrap();
            let (store, load) = plan.cost().unwrap();
            assert_eq!((store.conflicts(), load.conflicts()), (0, 0));
            assert_eq!(
                (store.passes, load.passes),
                (3 * words, 3 * words),
                "{bits} bits"
            );
            assert_eq!(plan.bytes as u64, 3 * words * 128);
        }
        // Pairs of an odd number of registers, transposed in three warps of seven lanes.
        let pairs = |swap: bool| -> Vec<Option<u64>> {
            let at = |x: u64| {
                let (row, column, half) = (x / 42, x / 2 % 21, x % 2);
                if swap {
                    column * 42 + row * 2 + half
                } else {
                    x
                }
            };
            (0..21 * 42).map(at).map(Some).collect()
        };
        let (src, dst) = (
            tables(3, 7, 42, &pairs(false)),
            tables(3, 7, 42, &pairs(true)),
        );
        let plan = shared_tables(&src, &dst, 16).unwrap();
        plan.check(&src, &dst).unwrap();
        let (store, load) = plan.cost().unwrap();
        assert_eq!(
            (
                store.passes,
                load.passes,
                store.conflicts() + load.conflicts()
            ),
            (63, 63, 0)
        );
    }

    #[test]
    fn bad_questions_are_errors() {
        let one = tables(1, 1, 1, &[Some(7)]);
        let kind =
            |src: &[Table], dst: &[Table], bits| shared_tables(src, dst, bits).unwrap_err().kind();
        assert_eq!(kind(&one, &tables(1, 1, 1, &[Some(8)]), 32), Kind::None);
        assert_eq!(kind(&one, &one, 4), Kind::Unsupported);
        assert_eq!(kind(&tables(1, 33, 1, &[]), &one, 32), Kind::Invalid);
        assert!(shared_tables(&[], &[], 32).unwrap().cost().is_ok());
        let mut plan = shared_tables(&one, &one, 32).unwrap();
        plan.bytes = 0;
        assert!(plan.check(&one, &one).is_err());
        assert!(plan.check(&one, &tables(1, 1, 1, &[Some(8)])).is_err());
    }
}
