//! How the indices of a tensor follow from the variables of a kernel: each as a number of mixed radix, whose digits are digits
//! of a variable. Transposes permute such lists, reshapes regroup them, and a broadcast drops one, so that a tensor that other
//! operators permute, reshape and repeat is read where it lies.

/// What an index runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Var {
    /// The elements of the result, in the order of memory: what the others are found by.
    Element,
    /// The problems of a batch.
    Batch,
    /// Rows of the result: queries.
    Row,
    /// What is streamed: keys.
    Key,
    /// Columns of the result: those of the values.
    Column,
    /// What the first product sums over.
    Depth,
    /// One place: where a slice begins.
    Fixed,
}

/// The digit `(var / stride) % extent`; of [`Var::Fixed`], the number that `stride` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digit {
    /// The variable.
    pub var: Var,
    /// Its values.
    pub extent: i64,
    /// What it counts.
    pub stride: i64,
}

impl Digit {
    /// The number of one of so many places.
    #[must_use]
    pub const fn fixed(extent: i64, number: i64) -> Self {
        Self {
            var: Var::Fixed,
            extent,
            stride: number,
        }
    }

    /// The digits above and below so many values of it, which divide its own.
    fn split(self, below: i64) -> Option<[Self; 2]> {
        let (above, stride, own) = match self.var {
            Var::Fixed => (
                self.extent / below,
                self.stride / below,
                self.stride % below,
            ),
            _ => {
                let stride = self.stride.checked_mul(below)?;
                (self.extent / below, stride, self.stride)
            }
        };
        let upper = Self {
            extent: above,
            stride,
            ..self
        };
        let lower = Self {
            extent: below,
            stride: own,
            ..self
        };
        Some([upper, lower])
    }
}

/// An index: digits, the most significant first.
pub type Index = Vec<Digit>;

/// The indices of a tensor, one a dimension.
pub type Place = Vec<Index>;

/// All of a variable.
#[must_use]
pub fn whole(var: Var, extent: i64) -> Index {
    canonical([Digit {
        var,
        extent,
        stride: 1,
    }])
}

/// The same number with as few digits as can be.
#[must_use]
pub fn canonical(digits: impl IntoIterator<Item = Digit>) -> Index {
    let mut found: Index = Vec::new();
    for digit in digits.into_iter().filter(|digit| digit.extent != 1) {
        match found.last_mut() {
            Some(last)
                if last.var == digit.var
                    && digit.var != Var::Fixed
                    && digit.stride.checked_mul(digit.extent) == Some(last.stride) =>
            {
                last.extent *= digit.extent;
                last.stride = digit.stride;
            }
            _ => found.push(digit),
        }
    }
    found
}

/// The digits of all dimensions as those of others: `None` where a digit would have to be cut where its extent does not allow.
#[must_use]
pub fn regrouped(place: &[Index], shape: &[i64]) -> Option<Place> {
    let mut rest = canonical(place.iter().flatten().copied());
    let mut found = Vec::new();
    for &extent in shape.iter().rev() {
        let mut need = extent;
        let mut own = Vec::new();
        while need > 1 {
            let digit = rest.pop()?;
            let taken = match need % digit.extent {
                0 => digit,
                _ if digit.extent % need == 0 => {
                    let [above, below] = digit.split(need)?;
                    rest.push(above);
                    below
                }
                _ => return None,
            };
            need /= taken.extent;
            own.push(taken);
        }
        own.reverse();
        found.push(canonical(own));
    }
    found.reverse();
    rest.is_empty().then_some(found)
}

/// A digit and how far apart in memory its values lie, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The digit.
    pub digit: Digit,
    /// Elements from one of its values to the next.
    pub elements: i64,
}

/// Where the element of a row-major tensor lies that has these indices. Steps of one variable are merged where they can be. `None` where
/// it is behind others of a slice.
#[must_use]
pub fn access(place: &[Index], shape: &[i64]) -> Option<Vec<Step>> {
    let (steps, first) = access_from(place, shape)?;
    (first == 0).then_some(steps)
}

/// The same, and how many elements there are before the first one, where slices begin.
#[must_use]
pub fn access_from(place: &[Index], shape: &[i64]) -> Option<(Vec<Step>, i64)> {
    let (mut found, mut first): (Vec<Step>, i64) = (Vec::new(), 0);
    let mut elements = 1i64;
    for (index, extent) in place.iter().zip(shape).rev() {
        let mut weight = elements;
        for &digit in index.iter().rev() {
            match digit.var {
                Var::Fixed => first = first.checked_add(digit.stride.checked_mul(weight)?)?,
                _ => found.push(Step {
                    digit,
                    elements: weight,
                }),
            }
            weight = weight.checked_mul(digit.extent)?;
        }
        elements = elements.checked_mul(*extent)?;
    }
    Some((merged(found), first))
}

/// The same steps with as few digits as can be, by variable, the most significant first.
#[must_use]
pub fn merged(mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|step| step.digit.extent != 1);
    steps.sort_by_key(|step| (step.digit.var, std::cmp::Reverse(step.digit.stride)));
    let mut merged: Vec<Step> = Vec::new();
    for step in steps {
        match merged.last_mut() {
            Some(last)
                if last.digit.var == step.digit.var
                    && step.digit.stride.checked_mul(step.digit.extent)
                        == Some(last.digit.stride)
                    && step.elements.checked_mul(step.digit.extent) == Some(last.elements) =>
            {
                last.digit.extent *= step.digit.extent;
                last.digit.stride = step.digit.stride;
                last.elements = step.elements;
            }
            _ => merged.push(step),
        }
    }
    merged
}

/// The elements from one value of a variable to the next: 0 where the steps have none of it, `None` where no one number says it.
#[must_use]
pub fn stride_of(steps: &[Step], var: Var, extent: i64) -> Option<i64> {
    let mut own = steps.iter().filter(|step| step.digit.var == var);
    match (own.next(), own.next()) {
        (None, _) => Some(0),
        (Some(step), None) if step.digit.stride == 1 && step.digit.extent == extent => {
            Some(step.elements)
        }
        _ => None,
    }
}

/// The same steps with keys called rows: equal for tensors that rows and keys read alike.
#[must_use]
pub fn without_var(steps: &[Step]) -> Vec<Step> {
    let mut own = steps.to_vec();
    for step in &mut own {
        if step.digit.var == Var::Key {
            step.digit.var = Var::Row;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(digit: Digit, var: i64) -> i64 {
        var / digit.stride % digit.extent
    }

    fn index(digits: &[Digit], var: i64) -> i64 {
        let step = |sum, digit: &Digit| sum * digit.extent + value(*digit, var);
        digits.iter().fold(0, step)
    }

    /// Row-major indices of the element of a tensor with this number.
    fn unravel(shape: &[i64], mut number: i64) -> Vec<i64> {
        let mut found: Vec<i64> = shape
            .iter()
            .rev()
            .map(|extent| {
                let index = number % extent;
                number /= extent;
                index
            })
            .collect();
        found.reverse();
        found
    }

    #[test]
    fn a_repeated_head_is_no_step() {
        // Keys of [2, 2, 16, 8], repeated to [2, 2, 3, 16, 8], as [12, 16, 8].
        let place = vec![
            whole(Var::Batch, 12),
            whole(Var::Key, 16),
            whole(Var::Depth, 8),
        ];
        let mut wide = regrouped(&place, &[2, 2, 3, 16, 8]).expect("factors of 12");
        wide.remove(2);
        let steps = access(&wide, &[2, 2, 16, 8]).expect("small");
        let batch: Vec<_> = steps
            .iter()
            .filter(|step| step.digit.var == Var::Batch)
            .collect();
        assert_eq!(batch.len(), 1);
        assert_eq!(
            (
                batch[0].digit.extent,
                batch[0].digit.stride,
                batch[0].elements
            ),
            (4, 3, 128)
        );
        assert_eq!(stride_of(&steps, Var::Key, 16), Some(8));
        assert_eq!(stride_of(&steps, Var::Row, 5), Some(0));
    }

    #[test]
    fn a_slice_begins_behind_others() {
        // The second of three parts of two heads of 64 columns, as [5, 384] has it.
        let place = vec![
            whole(Var::Row, 5),
            vec![Digit::fixed(3, 1)],
            whole(Var::Batch, 2),
            whole(Var::Column, 64),
        ];
        let place = regrouped(&place, &[5, 384]).expect("of as many elements");
        let (steps, first) = access_from(&place, &[5, 384]).expect("small");
        assert_eq!(first, 128);
        assert_eq!(stride_of(&steps, Var::Batch, 2), Some(64));
        assert_eq!(stride_of(&steps, Var::Row, 5), Some(384));
        assert_eq!(access(&place, &[5, 384]), None);
        // Parts that a reshape cuts: the fifth of six is the second of the second three.
        let cut = regrouped(&[vec![Digit::fixed(6, 4)]], &[2, 3]).expect("factors of 6");
        assert_eq!(cut, [[Digit::fixed(2, 1)], [Digit::fixed(3, 1)]]);
    }

    #[test]
    fn what_no_digit_says_is_refused() {
        assert_eq!(regrouped(&[whole(Var::Row, 12)], &[4, 5]), None);
        assert_eq!(regrouped(&[whole(Var::Row, 12)], &[8, 3]), None);
        assert_eq!(
            regrouped(&[whole(Var::Row, 6), whole(Var::Key, 4)], &[4, 6]),
            None
        );
        let split = [regrouped(&[whole(Var::Row, 12)], &[3, 4]).expect("12 is 3 by 4")].concat();
        let swapped = access(&[split[1].clone(), split[0].clone()], &[4, 3]).expect("small");
        assert_eq!(stride_of(&swapped, Var::Row, 12), None);
    }

    proptest! {
        /// Against the numbers themselves: a reshape keeps the row-major number of each element, an access finds it.
        #[test]
        fn reshapes_and_accesses_are_those_of_numbers(extents in prop::collection::vec(1i64..5, 1..5), groups in prop::collection::vec(1usize..3, 1..4)) {
            let total: i64 = extents.iter().product();
            let mut coarse = Vec::new();
            let mut rest = extents.as_slice();
            for group in groups {
                let (own, others) = rest.split_at(group.min(rest.len()));
                coarse.push(own.iter().product::<i64>());
                rest = others;
            }
            coarse.push(rest.iter().product());
            let flat = vec![whole(Var::Element, total)];
            let fine = regrouped(&flat, &extents).expect("its own extents");
            let place = regrouped(&fine, &coarse).expect("products of extents");
            prop_assert_eq!(&regrouped(&place, &extents).expect("and back"), &fine);
            let steps = access(&place, &coarse).expect("small");
            for number in 0..total {
                let indices: Vec<_> = place.iter().map(|digits| index(digits, number)).collect();
                prop_assert_eq!(&indices, &unravel(&coarse, number));
                let at: i64 = steps.iter().map(|step| value(step.digit, number) * step.elements).sum();
                prop_assert_eq!(at, number);
            }
        }
    }
}
