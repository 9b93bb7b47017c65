//! Boxes of a tensor, and the few of them that hold given elements.

use serde::Serialize;
use std::collections::HashMap;

/// Boxes that one reference is computed of at most: each is a program of its own.
const MOST: usize = 64;
/// Runs of elements at which the search for boxes ends.
const MOST_RUNS: usize = 1 << 20;

/// A box of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Part {
    /// Its first element.
    pub origin: Vec<u64>,
    /// Its extents.
    pub shape: Vec<u64>,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ranges = self.origin.iter().zip(&self.shape);
        let ranges: Vec<_> = ranges
            .map(|(from, count)| format!("{from}..{}", from + count))
            .collect();
        write!(f, "[{}]", ranges.join(", "))
    }
}

impl Part {
    /// The place of an element of the tensor in row-major order of the box; none outside.
    pub fn place(&self, index: &[u64]) -> Option<usize> {
        let extents = index.iter().zip(&self.origin).zip(&self.shape);
        extents
            .map(|((i, origin), extent)| Some((i.checked_sub(*origin)?, *extent)))
            .try_fold(0u64, |at, inside| {
                let (i, extent) = inside.filter(|(i, extent)| i < extent)?;
                Some(at * extent + i)
            })
            .and_then(|at| usize::try_from(at).ok())
    }

    fn elements(&self) -> u128 {
        let extents = self.shape.iter();
        extents.fold(1, |all, extent| all.saturating_mul(u128::from(*extent)))
    }

    /// Whether `next` begins where this one ends along `dim`; the others' extents are alike.
    fn meets(&self, next: &Self, dim: usize) -> bool {
        self.origin[dim] + self.shape[dim] == next.origin[dim]
    }
}

/// Boxes that hold these elements, which are given by their indices in row-major order: tiles of one CTA are boxes of their own. One box
/// around all of them where boxes of their own are many, or no smaller.
pub fn around(elements: impl Iterator<Item = Vec<u64>>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rank = 0;
    let mut all: Option<Part> = None;
    for origin in elements {
        rank = origin.len();
        let one = Part {
            shape: vec![1; rank],
            origin,
        };
        all = Some(all.map_or_else(|| one.clone(), |all| union(&all, &one)));
        if parts.len() < MOST_RUNS {
            extend_last(&mut parts, one);
        }
    }
    if parts.len() == MOST_RUNS {
        return Vec::from_iter(all);
    }
    for dim in (0..rank.saturating_sub(1)).rev() {
        parts = joined(parts, dim);
    }
    let own: u128 = parts.iter().map(Part::elements).sum();
    match all {
        Some(all) if parts.len() > MOST || all.elements() <= own => vec![all],
        _ => parts,
    }
}

/// Adds an element to the last run along the last dimension, or begins a run with it.
fn extend_last(runs: &mut Vec<Part>, one: Part) {
    let Some(dim) = one.origin.len().checked_sub(1) else {
        return runs.push(one);
    };
    match runs.last_mut() {
        Some(run) if run.origin[..dim] == one.origin[..dim] && run.meets(&one, dim) => {
            run.shape[dim] += 1;
        }
        _ => runs.push(one),
    }
}

/// Boxes one behind the other along `dim`, and alike along the others, made one.
fn joined(parts: Vec<Part>, dim: usize) -> Vec<Part> {
    let mut boxes: Vec<Part> = Vec::new();
    let mut latest: HashMap<Part, usize> = HashMap::new();
    for part in parts {
        let mut others = part.clone();
        (others.origin[dim], others.shape[dim]) = (0, 0);
        let before = latest.get(&others).copied();
        match before.filter(|at| boxes[*at].meets(&part, dim)) {
            Some(at) => boxes[at].shape[dim] += part.shape[dim],
            None => {
                latest.insert(others, boxes.len());
                boxes.push(part);
            }
        }
    }
    boxes
}

/// The smallest box around two.
fn union(a: &Part, b: &Part) -> Part {
    let dims = a.origin.iter().zip(&a.shape);
    let dims = dims.zip(b.origin.iter().zip(&b.shape));
    let (origin, shape) = dims
        .map(|((a, a_extent), (b, b_extent))| {
            let first = *a.min(b);
            (first, (a + a_extent).max(b + b_extent) - first)
        })
        .unzip();
    Part { origin, shape }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(origin: &[u64], shape: &[u64]) -> Part {
        Part {
            origin: origin.to_vec(),
            shape: shape.to_vec(),
        }
    }

    /// The indices of boxes of an 8 x 8 tensor, in row-major order.
    fn indices(boxes: &[Part]) -> Vec<Vec<u64>> {
        let all = (0..64).map(|at| vec![at / 8, at % 8]);
        all.filter(|index| boxes.iter().any(|part| part.place(index).is_some()))
            .collect()
    }

    #[test]
    fn tiles_are_boxes_of_their_own() {
        let tiles = [
            part(&[0, 0], &[2, 3]),
            part(&[0, 5], &[2, 3]),
            part(&[6, 0], &[2, 3]),
        ];
        assert_eq!(around(indices(&tiles).into_iter()), tiles);
        assert_eq!(around(std::iter::empty()), []);
        assert_eq!(around(std::iter::once(Vec::new())), [part(&[], &[])]);
    }

    #[test]
    fn many_boxes_become_one() {
        let scattered = (0..200).map(|at| vec![2 * at]);
        assert_eq!(around(scattered), [part(&[0], &[399])]);
    }

    #[test]
    fn places_count_in_rows_of_the_box() {
        let part = part(&[4, 2], &[2, 3]);
        assert_eq!(part.place(&[5, 3]), Some(4));
        assert_eq!(part.place(&[5, 5]), None);
        assert_eq!(part.place(&[3, 3]), None);
    }

    proptest! {
        #[test]
        fn boxes_hold_every_element(picked in proptest::collection::btree_set(0u64..64, 1..64)) {
            let elements: Vec<_> = picked.iter().map(|at| vec![at / 8, at % 8]).collect();
            let boxes = around(elements.iter().cloned());
            for element in &elements {
                let holders = boxes.iter().filter(|part| part.place(element).is_some());
                prop_assert_eq!(holders.count(), 1);
            }
            let own: u128 = boxes.iter().map(Part::elements).sum();
            prop_assert!(boxes.len() == 1 || own == picked.len() as u128);
        }
    }
}
