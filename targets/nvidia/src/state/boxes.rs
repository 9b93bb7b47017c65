//! Boxes of storage: which iters are left of a dimension, and how its origin turns into an offset.

use super::form::Storage;
use crate::plan::gcd;
use axe_layout::Iter;

/// A digit of an origin, and the elements that one of it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The divisor of the origin.
    pub divisor: i64,
    /// Then the modulus; none for the outermost digit.
    pub modulus: Option<i64>,
    /// Elements.
    pub stride: i64,
}

/// One dimension of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// What is left of the dimension's iters.
    pub iters: Vec<Iter>,
    /// The offset of the origin.
    pub steps: Vec<Step>,
    /// Divides that offset.
    pub multiple: i64,
}

/// A box of `extent` elements of a dimension with these iters, at an origin that `divisor` divides.
///
/// # Errors
/// Where the box would not have the same shape at every such origin: it ends inside a digit, or an origin
/// would make digits carry.
pub(crate) fn cut(iters: &[Iter], extent: i64, divisor: i64) -> Result<Cut, String> {
    let mut cut = Cut {
        iters: Vec::new(),
        steps: Vec::new(),
        multiple: 0,
    };
    let iters: Vec<_> = iters.iter().filter(|iter| iter.extent > 1).collect();
    // A dimension of one element still has a place for its stride: a larger box has elements that do not exist.
    let (mut below, mut left) = (1, extent);
    for (at, iter) in iters.iter().enumerate().rev() {
        let outermost = at == 0;
        if left > 1 {
            let kept = if outermost {
                left
            } else {
                left.min(iter.extent)
            };
            let fits = left % kept == 0 && (outermost || iter.extent % kept == 0);
            let carries = divisor % below != 0 || !outermost && divisor % (below * kept) != 0;
            if !fits || carries {
                return Err(format!(
                    "{extent} elements at a multiple of {divisor} do not line up with an iter of {} elements, {} apart",
                    iter.extent, iter.stride
                ));
            }
            cut.iters.push(Iter::new(kept, iter.stride, iter.axis));
            left /= kept;
        }
        let period = below.saturating_mul(iter.extent);
        if outermost || divisor % period != 0 {
            let quotient = if divisor % below == 0 {
                divisor / below
            } else {
                1
            };
            let multiple = if outermost {
                quotient
            } else {
                gcd(quotient, iter.extent)
            };
            cut.multiple = gcd(cut.multiple, multiple.saturating_mul(iter.stride));
            cut.steps.push(Step {
                divisor: below,
                modulus: (!outermost).then_some(iter.extent),
                stride: iter.stride,
            });
        }
        below = period;
    }
    if left > 1 {
        // All of the dimension is one element: the others do not exist and any place will do.
        cut.iters.push(Iter::new(left, 0, axe_layout::Axis::M));
    }
    if cut.iters.is_empty() {
        cut.iters.push(Iter::new(1, 0, axe_layout::Axis::M));
    }
    cut.iters.reverse();
    Ok(cut)
}

impl Cut {
    /// The offset of an origin, in elements, where it is known; it is known of every origin where no digit moves.
    pub(crate) fn offset(&self, origin: Option<i64>) -> Option<i64> {
        let of_step = |step: &Step| {
            if step.stride == 0 || step.modulus == Some(1) {
                return Some(0);
            }
            let digit = origin? / step.divisor;
            let digit = step.modulus.map_or(digit, |modulus| digit % modulus);
            digit.checked_mul(step.stride)
        };
        let add = |sum: i64, step: &Step| sum.checked_add(of_step(step)?);
        self.steps.iter().try_fold(0, add)
    }
}

/// For each dimension of a view of guarded storage, the guarded one of the source that it is, in whatever order: each has one, with
/// the same extent and iters; the others are the view's own. `None` when a guarded one has none.
pub(crate) fn guards_of_view(
    source: &Storage<'_>,
    view: &Storage<'_>,
) -> Option<Vec<Option<usize>>> {
    let mut kept = vec![None; view.shape.len()];
    for (dim, guard) in source.guards.iter().enumerate() {
        if guard.is_none() {
            continue;
        }
        let same = |at: &usize| {
            view.shape.get(*at) == source.shape.get(dim)
                && view.dims.get(*at) == source.dims.get(dim)
                && kept.get(*at) == Some(&None)
        };
        let at = (0..view.shape.len()).find(same)?;
        *kept.get_mut(at)? = Some(dim);
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_layout::{Axis, Layout};

    fn iters(pairs: &[(i64, i64)]) -> Vec<Iter> {
        pairs
            .iter()
            .map(|&(extent, stride)| Iter::new(extent, stride, Axis::M))
            .collect()
    }

    /// The address of index `x` of a dimension whose outermost iter has no end.
    fn address(iters: &[Iter], mut x: i64) -> i64 {
        let mut sum = 0;
        for (at, iter) in iters.iter().enumerate().rev() {
            let digit = if at == 0 { x } else { x % iter.extent };
            sum += digit * iter.stride;
            x /= iter.extent;
        }
        sum
    }

    #[test]
    fn a_box_is_where_its_source_says_at_every_origin() {
        let sources: [&[(i64, i64)]; 4] = [
            &[(64, 100)],
            &[(4, 1000), (16, 3)],
            &[(2, 7), (4, 64), (8, 1)],
            &[(6, 5), (2, 90)],
        ];
        let mut taken = 0;
        for source in sources.map(iters) {
            for extent in 1..=20 {
                for divisor in 1..=16 {
                    let Ok(cut) = cut(&source, extent, divisor) else {
                        continue;
                    };
                    taken += 1;
                    let layout = Layout::from_shard(cut.iters.clone()).unwrap();
                    for origin in (0..6).map(|k| k * divisor) {
                        let digit = |step: &Step| {
                            let digit = origin / step.divisor;
                            step.modulus.map_or(digit, |modulus| digit % modulus) * step.stride
                        };
                        let offset: i64 = cut.steps.iter().map(digit).sum();
                        assert!(offset == 0 || offset % cut.multiple == 0, "{cut:?}");
                        for x in 0..extent {
                            let got = offset + layout.origin(x).unwrap().get(Axis::M);
                            assert_eq!(
                                got,
                                address(&source, origin + x),
                                "{source:?} {extent} at {origin}: {cut:?}"
                            );
                        }
                    }
                }
            }
        }
        assert!(taken > 300, "{taken}");
    }

    #[test]
    fn boxes_that_cross_iters_are_refused() {
        assert!(cut(&iters(&[(4, 1000), (16, 3)]), 8, 4).is_err());
        assert!(cut(&iters(&[(4, 1000), (16, 3)]), 24, 8).is_err());
        assert!(cut(&iters(&[(4, 1000), (16, 3)]), 32, 16).is_ok());
    }
}
