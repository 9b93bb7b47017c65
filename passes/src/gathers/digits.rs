//! Functions of loops' indices that are known point by point, as sums of digits: `first + sum(stride * (index / block mod extent))`. It is
//! the shard of a layout whose shape is that of the loops.

/// Digits of an index at most.
const MOST_DIGITS: usize = 4;

/// A digit of an index, and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    /// Indices that follow each other with the same digit.
    pub block: i64,
    /// Digits; none of the last, which goes on.
    pub extent: Option<i64>,
    /// What one more of it is.
    pub stride: i64,
}

/// A function of several indices at all points, the last index the fastest.
pub(super) struct Points {
    /// The extent of each loop; those that it does not depend on have one point.
    pub extents: Vec<usize>,
    pub values: Vec<i64>,
}

/// The same as a sum of functions of one index each, which are zero at zero.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sum {
    /// The value where all indices are zero.
    pub first: i64,
    /// By loop, the values that are added; those of one point are of loops that it does not depend on.
    pub loops: Vec<Vec<i64>>,
}

impl Sum {
    /// The sum that a function is; none where it is no such, or a value has no place in an index.
    pub(super) fn of(points: &Points) -> Option<Self> {
        let Points { extents, values } = points;
        let first = *values.first()?;
        let mut stride = 1usize;
        let mut loops = vec![Vec::new(); extents.len()];
        for (own, extent) in loops.iter_mut().zip(extents).rev() {
            for turn in 0..*extent {
                own.push(values.get(turn.checked_mul(stride)?)?.checked_sub(first)?);
            }
            stride = stride.checked_mul(*extent)?;
        }
        let sum = Self { first, loops };
        let mut all = values.iter().enumerate();
        let whole = stride == values.len();
        (whole && all.all(|(number, value)| sum.at(number) == Some(*value))).then_some(sum)
    }

    /// The value at the point of this number.
    fn at(&self, number: usize) -> Option<i64> {
        let mut rest = number;
        let mut value = self.first;
        for own in self.loops.iter().rev() {
            value = value.checked_add(*own.get(rest % own.len())?)?;
            rest /= own.len();
        }
        Some(value)
    }

    /// The least and the greatest value.
    pub(super) fn range(&self) -> [i64; 2] {
        let ends = |own: &Vec<i64>| Some([*own.iter().min()?, *own.iter().max()?]);
        let all = self.loops.iter().filter_map(ends);
        all.fold([self.first; 2], |[least, most], [low, high]| {
            [least.saturating_add(low), most.saturating_add(high)]
        })
    }
}

/// The digits of a function of one index, which is zero at zero; none where it is no sum of few of them.
pub(super) fn digits(values: &[i64]) -> Option<Vec<Digit>> {
    let mut found = Vec::new();
    let (mut block, mut left) = (1i64, values.to_vec());
    while left.len() > 1 {
        let stride = *left.get(1)?;
        let run = (0i64..)
            .zip(&left)
            .take_while(|(at, value)| at.checked_mul(stride) == Some(**value));
        let run = run.count();
        if run < 2 || found.len() == MOST_DIGITS {
            return None;
        }
        let begins: Vec<_> = left.iter().step_by(run).copied().collect();
        let expected = |at: usize| {
            let inside = i64::try_from(at % run).ok()?.checked_mul(stride)?;
            begins.get(at / run)?.checked_add(inside)
        };
        let extent = i64::try_from(run).ok()?;
        let fits = left
            .iter()
            .enumerate()
            .all(|(at, value)| expected(at) == Some(*value));
        if !fits {
            return None;
        }
        if stride != 0 {
            found.push(Digit {
                block,
                extent: (begins.len() > 1).then_some(extent),
                stride,
            });
        }
        block = block.checked_mul(extent)?;
        left = begins;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(digits: &[Digit], index: i64) -> i64 {
        let of = |digit: &Digit| {
            let own = index / digit.block;
            digit.stride * digit.extent.map_or(own, |extent| own % extent)
        };
        digits.iter().map(of).sum()
    }

    #[test]
    fn indices_are_sums_of_digits() {
        let of = |values: &[i64]| {
            let found = digits(values)?.into_iter();
            Some(
                found
                    .map(|own| (own.block, own.extent, own.stride))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(of(&[0, 1, 2, 3]), Some(vec![(1, None, 1)]));
        assert_eq!(of(&[0, 0, 1, 1, 2]), Some(vec![(2, None, 1)]));
        assert_eq!(of(&[0, 1, 2, 0, 1, 2]), Some(vec![(1, Some(3), 1)]));
        assert_eq!(of(&[0, 8, 1, 9]), Some(vec![(1, Some(2), 8), (2, None, 1)]));
        assert_eq!(of(&[0, 0, 0]), Some(vec![]));
        assert_eq!(of(&[0]), Some(vec![]));
        assert_eq!(of(&[0, -1, -2]), Some(vec![(1, None, -1)]));
        // Nearest upsampling by 3/2.
        assert_eq!(of(&[0, 0, 1, 2, 2, 3]), None);
    }

    #[test]
    fn sums_are_told_from_other_functions() {
        let of = |values: Vec<i64>| {
            Sum::of(&Points {
                extents: vec![2, 3],
                values,
            })
        };
        let sum = of(vec![5, 6, 8, 15, 16, 18]).expect("a sum");
        assert_eq!(
            (sum.first, sum.loops.clone()),
            (5, vec![vec![0, 10], vec![0, 1, 3]])
        );
        assert_eq!(sum.range(), [5, 18]);
        assert_eq!(of(vec![0, 1, 2, 10, 11, 13]), None);
        assert_eq!(of(vec![0, 1, 2]), None);
    }

    proptest! {
        /// Digits of random radices and strides, of all indices or of some of them.
        #[test]
        fn digits_give_the_values(radices in prop::collection::vec((2i64..5, -3i64..20), 1..4), part in 2usize..64) {
            let mut block = 1;
            let mut own = Vec::new();
            for (extent, stride) in radices {
                own.push(Digit { block, extent: Some(extent), stride });
                block *= extent;
            }
            let values: Vec<_> = (0..block).take(part).map(|index| value(&own, index)).collect();
            let found = digits(&values).expect("digits");
            let all: Vec<_> = (0..).take(values.len()).map(|index| value(&found, index)).collect();
            prop_assert_eq!(all, values);
        }

        #[test]
        fn what_is_found_gives_random_values(mut values in prop::collection::vec(0i64..3, 1..12)) {
            if let Some(first) = values.first_mut() {
                *first = 0;
            }
            if let Some(found) = digits(&values) {
                let all: Vec<_> = (0..).take(values.len()).map(|index| value(&found, index)).collect();
                prop_assert_eq!(all, values);
            }
        }
    }
}
