//! The numbers of updates in a mixed radix: what torch-mlir makes one dimension of are the dimensions of an index tensor, and each of
//! them is a digit.

use crate::ir::DYNAMIC;
use std::collections::BTreeSet;
use std::ops::Range;

/// A digit of an update's number: `number / block mod extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub(super) block: i64,
    pub(super) extent: i64,
}

impl Digit {
    /// Digits of a number below this one: all of it.
    pub(super) fn whole(extent: i64) -> Self {
        Self { block: 1, extent }
    }

    /// `self / by`; none where that is no digit.
    pub(super) fn over(self, by: i64) -> Option<Self> {
        let divides = by > 0 && self.extent > 0 && self.extent % by == 0;
        let block = self.block.checked_mul(by)?;
        divides.then(|| Self {
            block,
            extent: self.extent / by,
        })
    }

    /// `self mod by`; none where that is no digit.
    pub(super) fn modulo(self, by: i64) -> Option<Self> {
        let divides = by > 0 && self.extent > 0 && (self.extent <= by || self.extent % by == 0);
        divides.then(|| Self {
            extent: self.extent.min(by),
            ..self
        })
    }

    /// The digit as digits of these extents, outermost first; none where they are not as many.
    pub(super) fn split(self, extents: &[i64]) -> Option<Vec<Self>> {
        let mut block = self.block;
        let mut all = Vec::new();
        for &extent in extents.iter().rev() {
            if extent < 1 {
                return None;
            }
            all.push(Self { block, extent });
            block = block.checked_mul(extent)?;
        }
        all.reverse();
        (block == self.block.checked_mul(self.extent)?).then_some(all)
    }
}

/// Digits that numbers consist of, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Radix {
    digits: Vec<Digit>,
}

impl Radix {
    /// The fewest digits of numbers below `count` that each of these is made of; none where one begins or ends inside of another's
    /// indices.
    pub(super) fn of(count: i64, all: impl IntoIterator<Item = Digit>) -> Option<Self> {
        if count < 2 {
            let digits = vec![Digit::whole(count)];
            return (count == 1 || count == DYNAMIC).then_some(Self { digits });
        }
        let mut ends = BTreeSet::from([1, count]);
        for digit in all {
            ends.extend([digit.block, digit.block.checked_mul(digit.extent)?]);
        }
        let ends: Vec<_> = ends.into_iter().collect();
        let mut digits = Vec::new();
        for (&block, &end) in ends.iter().zip(ends.iter().skip(1)) {
            if block < 1 || end > count || end % block != 0 {
                return None;
            }
            let extent = end / block;
            digits.push(Digit { block, extent });
        }
        digits.reverse();
        Some(Self { digits })
    }

    /// The extent of each digit.
    pub(super) fn extents(&self) -> Vec<i64> {
        self.digits.iter().map(|digit| digit.extent).collect()
    }

    /// The digits that another one is made of, by their numbers.
    pub(super) fn parts(&self, digit: Digit) -> Option<Range<usize>> {
        if digit.extent == 1 {
            return Some(0..0);
        }
        let end = digit.block.checked_mul(digit.extent)?;
        let ends_at = |own: &Digit| own.block.saturating_mul(own.extent) == end;
        let from = self.digits.iter().position(ends_at)?;
        let to = self
            .digits
            .iter()
            .position(|own| own.block == digit.block)?;
        (from <= to).then_some(from..to + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_are_divided_and_wrapped() {
        let whole = Digit::whole(512);
        let over = whole.over(2).expect("a digit");
        assert_eq!((over.block, over.extent), (2, 256));
        assert_eq!(over.modulo(256), Some(over));
        assert_eq!(whole.modulo(2), Some(Digit::whole(2)));
        assert_eq!(whole.over(3), None);
        assert_eq!(whole.modulo(3), None);
        assert_eq!(Digit::whole(DYNAMIC).modulo(2), None);
    }

    #[test]
    fn a_radix_has_the_ends_of_all_digits() {
        let digit = |block, extent| Digit { block, extent };
        // Batch, head and column of a cache; the sequence is between them.
        let of = [digit(2048, 2), digit(512, 4), digit(1, 64)];
        let radix = Radix::of(4096, of).expect("a radix");
        assert_eq!(radix.extents(), [2, 4, 8, 64]);
        assert_eq!(radix.parts(digit(512, 4)), Some(1..2));
        assert_eq!(radix.parts(digit(64, 8)), Some(2..3));
        assert_eq!(radix.parts(digit(64, 32)), Some(1..3));
        assert_eq!(radix.parts(Digit::whole(4096)), Some(0..4));
        assert_eq!(radix.parts(digit(128, 4)), None);
        assert_eq!(radix.parts(digit(7, 1)), Some(0..0));
        assert_eq!(Radix::of(6, [digit(1, 2), digit(1, 3)]), None);
        assert_eq!(Radix::of(6, [digit(4, 2)]), None);
        assert_eq!(Radix::of(1, []).map(|own| own.extents()), Some(vec![1]));
        assert_eq!(Radix::of(0, []), None);
    }

    proptest! {
        /// Every number is put together again of its digits, and dimensions of a split are parts of it.
        #[test]
        fn numbers_are_put_together_of_digits(extents in prop::collection::vec(1i64..6, 1..5), kept in prop::collection::vec(any::<bool>(), 5)) {
            let count: i64 = extents.iter().product();
            let split = Digit::whole(count).split(&extents).expect("as many");
            let named: Vec<_> = split.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(own, _)| *own).collect();
            let radix = Radix::of(count, named.clone()).expect("nested");
            prop_assert_eq!(radix.extents().iter().product::<i64>(), count);
            for number in 0..count {
                let of = |digit: &Digit| number / digit.block % digit.extent;
                let again: i64 = radix.digits.iter().map(|own| of(own) * own.block).sum();
                prop_assert_eq!(again, number);
            }
            for own in named {
                let parts = radix.parts(own).expect("parts");
                let of_parts: i64 = radix.digits[parts].iter().map(|part| part.extent).product();
                prop_assert_eq!(of_parts, own.extent);
            }
        }
    }
}
