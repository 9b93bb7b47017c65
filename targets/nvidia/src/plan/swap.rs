//! In which order lanes make their accesses of shared memory: in another one where rows would meet in its banks.
//!
//! An access of a warp to accumulators of `wgmma` in f32 has 32 bytes of each of eight rows, and the swizzle of 128 bytes, which the tensor
//! memory accelerator reads, puts each two rows that follow each other in the same banks: they are served one after the other. Where
//! half of the lanes of each row store the columns that the others store with another access, no two rows meet. Each register is then
//! chosen from two. Measured on an H200, attention's gradients, whose dQ leaves so: up to 13% less time.

use super::copy::CopyPlan;
use crate::facts::chip::{BANK_BYTES, BANKS_BYTES};
use crate::vocabulary::WARP;
use axe_layout::Swizzle;
use std::collections::{BTreeMap, BTreeSet};

/// Lanes of which a digit of their number is odd make the accesses of each pair in the other order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// What the thread's number is divided by for the digit.
    pub divisor: i64,
    /// Elements of memory between the two accesses of a pair, before the swizzle.
    pub step: i64,
    /// The other access of each access.
    pub others: Vec<usize>,
}

impl Swap {
    /// The order of a plan's accesses to swizzled memory, of elements of so many bytes, that the banks serve in the fewest wavefronts;
    /// `None` where the plan's own has no more.
    #[must_use]
    pub fn of(plan: &CopyPlan, swizzle: Swizzle, bytes: i64) -> Option<Self> {
        let steps = (0..)
            .map(|bit| 1 << bit)
            .take_while(|step| *step < swizzle.period());
        let divisors = (0..WARP.ilog2()).map(|bit| 1 << bit);
        let mut best = (wavefronts(plan, swizzle, bytes, None), None);
        for step in steps {
            let Some(others) = pairs(plan, step) else {
                continue;
            };
            for divisor in divisors.clone() {
                let swap = Self {
                    divisor,
                    step,
                    others: others.clone(),
                };
                let found = wavefronts(plan, swizzle, bytes, Some(&swap));
                if found < best.0 {
                    best = (found, Some(swap));
                }
            }
        }
        best.1
    }

    fn is_odd(&self, thread: i64) -> bool {
        thread / self.divisor % 2 == 1
    }
}

/// For each access the one that is `step` further or less far; `None` where one has none, or threads' parts of addresses have its bit.
fn pairs(plan: &CopyPlan, step: i64) -> Option<Vec<usize>> {
    let places: BTreeMap<_, _> = plan
        .accesses
        .iter()
        .map(|own| own.offset)
        .zip(0..)
        .collect();
    let low: i64 = plan.accesses.iter().fold(step, |all, own| all | own.offset);
    let apart = (0..WARP).all(|thread| plan.thread_offset(thread) & low == 0);
    let other = |offset: i64| places.get(&(offset ^ step)).copied();
    apart.then(|| plan.accesses.iter().map(|own| other(own.offset)).collect())?
}

/// How often the banks serve the first warp's accesses.
fn wavefronts(plan: &CopyPlan, swizzle: Swizzle, bytes: i64, swap: Option<&Swap>) -> usize {
    let lanes = (BANKS_BYTES / (plan.width * bytes)).clamp(1, WARP);
    let served = |offset: i64, first: i64| {
        let mut words: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for lane in first..first + lanes {
            let moved = swap
                .filter(|swap| swap.is_odd(lane))
                .map_or(0, |swap| swap.step);
            let address = swizzle.apply(plan.thread_offset(lane) + (offset ^ moved)) * bytes;
            for byte in (address..address + plan.width * bytes).step_by(BANK_BYTES as usize) {
                let word = byte / BANK_BYTES;
                words
                    .entry(word % (BANKS_BYTES / BANK_BYTES))
                    .or_default()
                    .insert(word);
            }
        }
        words.values().map(BTreeSet::len).max().unwrap_or(0)
    };
    let starts = (0..WARP / lanes).map(|part| part * lanes);
    let all = plan.accesses.iter().map(|own| own.offset);
    all.flat_map(|offset| starts.clone().map(move |first| (offset, first)))
        .map(|(offset, first)| served(offset, first))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::copy::{Access, Term};

    /// The accumulators of 16 rows and 32 columns in f32, in rows of 128 bytes.
    fn accumulators() -> CopyPlan {
        let term = |divisor, modulus, step| Term {
            divisor,
            modulus,
            step,
        };
        let accesses = (0..8).map(|at| Access {
            register: 2 * at,
            offset: at % 2 * 8 * 32 + at / 2 * 8,
        });
        CopyPlan {
            width: 2,
            terms: vec![term(4, 8, 32), term(1, 4, 2)],
            accesses: accesses.collect(),
        }
    }

    #[test]
    fn rows_of_accumulators_meet_no_bank_twice() {
        let (plan, swizzle) = (accumulators(), Swizzle::new(3, 2, 3, true).expect("fits"));
        assert_eq!(wavefronts(&plan, swizzle, 4, None), 8 * 4);
        let swap = Swap::of(&plan, swizzle, 4).expect("a better order");
        // 256 bytes an access.
        assert_eq!(wavefronts(&plan, swizzle, 4, Some(&swap)), 8 * 2);
        assert_eq!(swap.step, 16);
        for (at, other) in swap.others.iter().enumerate() {
            let [own, other] = [at, *other].map(|at| plan.accesses[at].offset);
            assert_eq!(own ^ other, swap.step);
        }
    }

    #[test]
    fn what_meets_no_bank_twice_keeps_its_order() {
        let (plan, swizzle) = (accumulators(), Swizzle::new(3, 2, 3, true).expect("fits"));
        let one_row = CopyPlan {
            terms: vec![Term {
                divisor: 1,
                modulus: 32,
                step: 2,
            }],
            accesses: vec![Access {
                register: 0,
                offset: 0,
            }],
            ..plan.clone()
        };
        assert_eq!(Swap::of(&one_row, swizzle, 4), None);
        // An access without another one at the distance of any step.
        let single = CopyPlan {
            accesses: plan.accesses[..1].to_vec(),
            ..plan
        };
        assert_eq!(Swap::of(&single, swizzle, 4), None);
    }
}
