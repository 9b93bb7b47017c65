//! Bank conflicts of an access to shared memory.

use super::access::WarpAccess;

/// Shared memory has 32 banks (CUDA C++ Programming Guide, "Shared Memory", compute capability 5.x and
/// later).
pub const BANKS: i64 = 32;
/// A bank serves one word of four bytes in a pass.
pub const WORD_BYTES: i64 = 4;

/// What an access to shared memory costs.
///
/// Lanes are served in *phases*: all 32 lanes at once for up to 4 bytes a lane, half warps for 8,
/// quarter warps for 16, so that a phase asks for at most 128 bytes. A phase takes as many *passes*
/// (wavefronts) as the busiest bank has different words to serve; lanes that ask for the same word are
/// served together, for loads by broadcast, for stores because one of them wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankCost {
    /// Passes over all phases.
    pub passes: u64,
    /// Passes without any conflict: phases with an active lane.
    pub ideal: u64,
    /// Different words that the busiest bank serves in the worst phase.
    pub ways: u64,
}

impl BankCost {
    /// Passes that conflicts cost: `passes - ideal`.
    #[must_use]
    pub const fn conflicts(&self) -> u64 {
        self.passes - self.ideal
    }
}

/// The largest number of different words that one bank must serve for these word addresses (byte
/// addresses divided by [`WORD_BYTES`]); 0 for none.
#[must_use]
pub fn bank_ways(words: impl IntoIterator<Item = i64>) -> u64 {
    let mut words: Vec<i64> = words.into_iter().collect();
    // By bank, then by word: a run of one bank, each word once.
    words.sort_unstable_by_key(|word| (word.rem_euclid(BANKS), *word));
    words.dedup();
    let banks = words.chunk_by(|a, b| a.rem_euclid(BANKS) == b.rem_euclid(BANKS));
    banks.map(|bank| bank.len() as u64).max().unwrap_or(0)
}

impl WarpAccess {
    /// Lanes that are served together: 32, 16 for 8 bytes a lane, 8 for 16 bytes.
    #[must_use]
    pub fn phase_lanes(&self) -> usize {
        match self.bytes() {
            16 => 8,
            8 => 16,
            _ => 32,
        }
    }

    /// The cost of this access when the addresses are those of shared memory. Exact for any addresses.
    #[must_use]
    pub fn banks(&self) -> BankCost {
        let words = (self.bytes() / WORD_BYTES).max(1);
        let mut cost = BankCost::default();
        for lanes in self.addresses().chunks(self.phase_lanes()) {
            let first = |byte: &i64| byte.div_euclid(WORD_BYTES);
            let asked = lanes.iter().flatten().map(first);
            let ways = bank_ways(asked.flat_map(|first| first..first.saturating_add(words)));
            cost.passes += ways;
            cost.ideal += u64::from(ways > 0);
            cost.ways = cost.ways.max(ways);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A pass at a time, as the hardware would: each bank serves one of the words still asked of it.
    fn played(access: &WarpAccess) -> BankCost {
        let mut cost = BankCost::default();
        let width = 128 / usize::try_from(access.bytes().max(4)).unwrap();
        for lanes in access.addresses().chunks(width) {
            let mut asked: BTreeSet<i64> = BTreeSet::new();
            for address in lanes.iter().flatten() {
                asked.extend((0..access.bytes()).map(|b| (address + b).div_euclid(4)));
            }
            cost.ideal += u64::from(!asked.is_empty());
            let mut passes = 0;
            while !asked.is_empty() {
                passes += 1;
                for bank in 0..32 {
                    if let Some(&word) = asked.iter().find(|w| w.rem_euclid(32) == bank) {
                        asked.remove(&word);
                    }
                }
            }
            cost.passes += passes;
            cost.ways = cost.ways.max(passes);
        }
        cost
    }

    proptest! {
        #[test]
        fn passes_are_those_of_the_hardware(
            log in 0_u32..5,
            lanes in prop::collection::vec(prop::option::weighted(0.9, -60_i64..200), 1..33),
        ) {
            let bytes = 1_i64 << log;
            let lanes = lanes.into_iter().map(|a| a.map(|a| a * bytes)).collect();
            let access = WarpAccess::new(bytes, lanes).unwrap();
            prop_assert_eq!(access.banks(), played(&access));
        }
    }

    fn cost(bytes: i64, address: impl Fn(i64) -> i64) -> (u64, u64) {
        let lanes = (0..32).map(|lane| Some(address(lane))).collect();
        let cost = WarpAccess::new(bytes, lanes).unwrap().banks();
        (cost.passes, cost.ideal)
    }

    #[test]
    fn known_accesses() {
        // Unit stride, stride 2 words, a column of a 32x32 f32 tile, the same padded, broadcast.
        assert_eq!(cost(4, |l| 4 * l), (1, 1));
        assert_eq!(cost(4, |l| 8 * l), (2, 1));
        assert_eq!(cost(4, |l| 128 * l), (32, 1));
        assert_eq!(cost(4, |l| 132 * l), (1, 1));
        assert_eq!(cost(4, |_| 64), (1, 1));
        // Two halves of a word, bytes.
        assert_eq!(cost(2, |l| 2 * l), (1, 1));
        assert_eq!(cost(1, |l| 128 * l), (32, 1));
        // 8 bytes in two phases, 16 bytes in four.
        assert_eq!(cost(8, |l| 8 * l), (2, 2));
        assert_eq!(cost(8, |l| 16 * l), (4, 2));
        assert_eq!(cost(16, |l| 16 * l), (4, 4));
        assert_eq!(cost(16, |l| 128 * l), (32, 4));
        // Half warps that ask for the same words are served one after the other.
        assert_eq!(cost(8, |l| 8 * (l % 16)), (2, 2));
    }

    #[test]
    fn inactive_lanes_ask_for_nothing() {
        let access = WarpAccess::new(16, vec![None; 32]).unwrap();
        assert_eq!(access.banks(), BankCost::default());
        let one = WarpAccess::new(16, vec![None, Some(32)]).unwrap().banks();
        assert_eq!(
            (one.passes, one.ideal, one.ways, one.conflicts()),
            (1, 1, 1, 0)
        );
    }
}
