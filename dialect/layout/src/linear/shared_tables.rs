//! Relayout through shared memory between any two distributions, given as tables, without bank
//! conflicts.
//!
//! Every element takes a slot: a word of 4 bytes, or as many as it is wide. Slots of one column meet
//! in the same banks. An element is an edge between the phase (the lanes of one access that are served
//! together) that stores it and the phase that loads it; a column for each element so that no phase has
//! two elements in one is a colouring of the edges of a bipartite graph, and needs as many columns as a
//! phase has lanes (König's theorem), which is how many there are. So there always is a way without any
//! conflict, whatever the distributions. Only an element that several phases load, a replica, meets
//! others in the phases after its first.

use std::collections::HashMap;

use super::relayout::{Table, colour};
use crate::analysis::{BankCost, WarpAccess};
use crate::error::{Error, Result};

/// Bytes that all banks serve at once.
const ROW_BYTES: usize = 128;
/// Lanes of a warp.
const WARP: usize = 32;
/// Registers of all lanes that a plan may have.
const MAX_ENTRIES: usize = 1 << 20;

/// Store all, synchronise, load all: one element in each access of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedTablePlan {
    /// Bits of an element.
    pub elem_bits: u32,
    /// Bytes from one slot to the next: 4, or as many as an element has.
    pub slot_bytes: usize,
    /// Bytes of shared memory.
    pub bytes: usize,
    /// The slot that lane `l` of warp `w` stores its register `r` to, `store[w][r][l]`; none where it
    /// stores nothing.
    pub store: Vec<Vec<Vec<Option<usize>>>>,
    /// The slot that lane `l` of warp `w` loads its register `r` from, `load[w][r][l]`.
    pub load: Vec<Vec<Vec<Option<usize>>>>,
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
        8 | 16 | 32 => 4,
        64 => 8,
        128 => 16,
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
    let columns = ROW_BYTES / slot_bytes;
    let edges = Edges::new(src, dst, columns)?;
    let colours = colour(&edges.list, edges.store_phases, edges.load_phases);
    // Slots of a column, one below the other.
    let mut rows = vec![0_usize; columns];
    let mut slot_of = HashMap::with_capacity(edges.list.len());
    for (element, colour) in edges.elements.iter().zip(colours) {
        if let Some(row) = rows.get_mut(colour) {
            slot_of.insert(*element, *row * columns + colour);
            *row += 1;
        }
    }
    let slots = |tables: &[Table], stores: bool| -> Vec<Vec<Vec<Option<usize>>>> {
        let at = |warp: usize, lane: usize, register: usize| {
            let element = (*tables.get(warp)?.get(lane)?.get(register)?)?;
            let mine = !stores || edges.home.get(&element) == Some(&(warp, register, lane));
            slot_of.get(&element).copied().filter(|_| mine)
        };
        let warp = |(w, table): (usize, &Table)| -> Vec<Vec<Option<usize>>> {
            let registers = table.iter().map(Vec::len).max().unwrap_or(0);
            (0..registers)
                .map(|r| (0..table.len()).map(|l| at(w, l, r)).collect())
                .collect()
        };
        tables.iter().enumerate().map(warp).collect()
    };
    Ok(SharedTablePlan {
        elem_bits,
        slot_bytes,
        bytes: rows.iter().max().copied().unwrap_or(0) * ROW_BYTES,
        store: slots(src, true),
        load: slots(dst, false),
    })
}

/// The elements that travel, each with the phases that store it and first load it.
struct Edges {
    list: Vec<(usize, usize)>,
    elements: Vec<u64>,
    /// The warp, register and lane that stores each.
    home: HashMap<u64, (usize, usize, usize)>,
    store_phases: usize,
    load_phases: usize,
}

impl Edges {
    fn new(src: &[Table], dst: &[Table], lanes: usize) -> Result<Self> {
        let mut stored = HashMap::new();
        let store_phases = each_place(src, lanes, |element, place, phase| {
            stored.entry(element).or_insert((place, phase));
            Ok(())
        })?;
        let (mut list, mut elements, mut home) = (Vec::new(), Vec::new(), HashMap::new());
        let load_phases = each_place(dst, lanes, |element, _, phase| {
            let &(place, from) = stored.get(&element).ok_or_else(|| {
                Error::none(format!(
                    "a relayout through shared memory: the destination holds element {element}, the \
                     source does not"
                ))
            })?;
            if home.insert(element, place).is_none() {
                list.push((from, phase));
                elements.push(element);
            }
            Ok(())
        })?;
        Ok(Self {
            list,
            elements,
            home,
            store_phases,
            load_phases,
        })
    }
}

/// Calls `visit` with each element, its warp, register and lane, and the number of its phase; the number
/// of phases.
fn each_place(
    tables: &[Table],
    lanes: usize,
    mut visit: impl FnMut(u64, (usize, usize, usize), usize) -> Result<()>,
) -> Result<usize> {
    let mut phases = 0;
    for (warp, table) in tables.iter().enumerate() {
        let registers = table.iter().map(Vec::len).max().unwrap_or(0);
        for register in 0..registers {
            for (lane, held) in table.iter().enumerate() {
                if let Some(Some(element)) = held.get(register) {
                    visit(*element, (warp, register, lane), phases + lane / lanes)?;
                }
            }
            phases += table.len().div_ceil(lanes);
        }
    }
    Ok(phases)
}

impl SharedTablePlan {
    /// Passes of all stores, and of all loads.
    ///
    /// # Errors
    /// `Invalid` when a slot is no address; never for a plan of [`shared_tables`].
    pub fn cost(&self) -> Result<(BankCost, BankCost)> {
        Ok((self.side(&self.store)?, self.side(&self.load)?))
    }

    fn side(&self, side: &[Vec<Vec<Option<usize>>>]) -> Result<BankCost> {
        let mut sum = BankCost::default();
        for lanes in side.iter().flatten().filter(|lanes| !lanes.is_empty()) {
            let byte = |slot: &Option<usize>| {
                let slot = (*slot)?.checked_mul(self.slot_bytes)?;
                i64::try_from(slot).ok()
            };
            // Elements below 4 bytes have a word of their own.
            let bytes = i64::from(self.elem_bits / 8);
            let cost = WarpAccess::new(bytes, lanes.iter().map(byte).collect())?.banks();
            sum.passes += cost.passes;
            sum.ideal += cost.ideal;
            sum.ways = sum.ways.max(cost.ways);
        }
        Ok(sum)
    }

    /// Executes the plan on the elements of `src` and compares with `dst`, where that asks for one.
    ///
    /// # Errors
    /// `Invalid` naming the first register that is wrong, or a slot that two elements are stored to.
    pub fn check(&self, src: &[Table], dst: &[Table]) -> Result<()> {
        let slot = |side: &[Vec<Vec<Option<usize>>>], (w, r, l): (usize, usize, usize)| {
            side.get(w)?.get(r)?.get(l).copied()?
        };
        let mut memory: HashMap<usize, u64> = HashMap::new();
        each_place(src, WARP, |element, place, _| {
            let Some(slot) = slot(&self.store, place) else {
                return Ok(());
            };
            let inside = slot.saturating_mul(self.slot_bytes) < self.bytes;
            match memory.insert(slot, element) {
                Some(other) if other != element => Err(Error::invalid(format!(
                    "a relayout through shared memory: elements {other} and {element} in slot {slot}"
                ))),
                _ if !inside => Err(Error::invalid(format!(
                    "a relayout through shared memory: slot {slot} is outside"
                ))),
                _ => Ok(()),
            }
        })?;
        each_place(dst, WARP, |element, place, _| {
            let found = slot(&self.load, place).and_then(|slot| memory.get(&slot));
            if found == Some(&element) {
                return Ok(());
            }
            let (warp, register, lane) = place;
            Err(Error::invalid(format!(
                "a relayout through shared memory: register {register} of lane {lane} of warp {warp} \
                 ends with the wrong element"
            )))
        })?;
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
