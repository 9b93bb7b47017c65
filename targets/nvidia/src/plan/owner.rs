//! Which threads store a register tensor: each element once, though several threads may hold it.

use super::Decline;
use crate::fragment::Fragment;
use std::collections::HashSet;

/// The threads that store: those of `first..end` whose digits are all zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Digits of the thread's number, by divisor and modulus, that count replicas.
    pub zero_digits: Vec<(i64, i64)>,
    /// The first thread.
    pub first: i64,
    /// One past the last.
    pub end: i64,
}

impl Owner {
    /// The threads that store `fragment`.
    ///
    /// # Errors
    /// Where no such test tells the threads apart: replicas that are no digits of their own, or threads that hold
    /// elements in some registers only.
    pub fn new(fragment: &Fragment) -> Result<Self, Decline> {
        let thread =
            axe_layout::Axis::new("thread").map_err(|error| Decline::new(error.to_string()))?;
        let holding: Vec<_> = (0..fragment.threads())
            .filter(|&thread| fragment.linear(thread, 0).is_some())
            .collect();
        let zero_digits = fragment
            .replicas()
            .iter()
            .filter(|iter| iter.axis == thread && iter.extent > 1 && iter.stride > 0)
            .map(|iter| (iter.stride, iter.extent));
        let owner = Self {
            zero_digits: zero_digits.collect(),
            first: holding.first().copied().unwrap_or(0),
            end: holding.last().map_or(0, |last| last + 1),
        };
        owner.check(fragment)?;
        Ok(owner)
    }

    /// Whether a thread stores.
    #[must_use]
    pub fn has(&self, thread: i64) -> bool {
        (self.first..self.end).contains(&thread)
            && self
                .zero_digits
                .iter()
                .all(|&(divisor, modulus)| thread / divisor % modulus == 0)
    }

    fn check(&self, fragment: &Fragment) -> Result<(), Decline> {
        let mut stored = HashSet::new();
        for thread in (0..fragment.threads()).filter(|&thread| self.has(thread)) {
            let mut own = HashSet::new();
            for register in 0..fragment.registers() {
                let Some(x) = fragment.linear(thread, register) else {
                    return Err(Decline::new(format!(
                        "thread {thread} holds nothing in register {register}"
                    )));
                };
                if own.insert(x) && !stored.insert(x) {
                    return Err(Decline::new(format!(
                        "element {x} is held by threads that no digit of their number tells apart"
                    )));
                }
            }
        }
        let size: i64 = fragment.shape().iter().product();
        if i64::try_from(stored.len()) == Ok(size) {
            return Ok(());
        }
        Err(Decline::new(format!(
            "the threads whose replica digits are zero hold {} elements of {size}",
            stored.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(text: &str, shape: &[i64]) -> Result<Owner, Decline> {
        Owner::new(&Fragment::new(&text.parse().unwrap(), shape, 128).unwrap())
    }

    #[test]
    fn one_thread_stores_each_element() {
        let all = owner("S[(4, 32) : (1@warp, 1@lane)]", &[128]).unwrap();
        assert_eq!(
            all,
            Owner {
                zero_digits: vec![],
                first: 0,
                end: 128
            }
        );
        let row = owner("S[4 : 1@warp] + R[32 : 1@lane]", &[4]).unwrap();
        assert_eq!(row.zero_digits, [(1, 32)]);
        assert!(row.has(32) && !row.has(33));
        let some = owner("S[32 : 1@lane] + 2@warp", &[32]).unwrap();
        assert_eq!((some.first, some.end), (64, 96));
    }

    #[test]
    fn replicas_without_a_digit_of_their_own_are_declined() {
        let fragment = Fragment::new(
            &"S[2 : 1@thread] + R[(2, 2) : (2@thread, 2@thread)]"
                .parse()
                .unwrap(),
            &[2],
            128,
        );
        let reason = Owner::new(&fragment.unwrap()).unwrap_err().to_string();
        assert!(reason.contains("tells apart"), "{reason}");
    }
}
