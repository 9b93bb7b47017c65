//! Coordinates: one integer an axis, zero where an axis is not named.

use std::fmt;

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::error::{Error, Result};

/// A point of the target space: a small map from axes to integers, sorted by axis, without zeros.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coord(SmallVec<[(Axis, i64); 4]>);

impl Clone for Coord {
    /// A copy of the bytes: the derived clone copies term by term.
    #[inline]
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

/// The offset `O` of a layout.
pub type Offset = Coord;

impl Coord {
    /// The origin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The sum of the terms given; several terms may name one axis.
    ///
    /// # Errors
    /// `Overflow` when the terms of one axis add up beyond 64 bits.
    pub fn from_terms(terms: impl IntoIterator<Item = (Axis, i64)>) -> Result<Self> {
        let mut coord = Self::new();
        for (axis, value) in terms {
            coord.add(axis, value)?;
        }
        Ok(coord)
    }

    /// The value on `axis`, 0 when it is not named.
    #[inline]
    #[must_use]
    pub fn get(&self, axis: Axis) -> i64 {
        self.0
            .iter()
            .find(|(a, _)| *a == axis)
            .map_or(0, |&(_, value)| value)
    }

    /// Makes the value on `axis` be `value`.
    pub fn set(&mut self, axis: Axis, value: i64) {
        let at = self.0.iter().position(|(a, _)| *a >= axis);
        match (at, value) {
            (Some(i), 0) if self.0[i].0 == axis => {
                self.0.remove(i);
            }
            (_, 0) => {}
            (Some(i), _) if self.0[i].0 == axis => self.0[i].1 = value,
            (Some(i), _) => self.0.insert(i, (axis, value)),
            (None, _) => self.0.push((axis, value)),
        }
    }

    /// Adds `value` on `axis`.
    ///
    /// # Errors
    /// `Overflow` when the sum does not fit 64 bits.
    pub fn add(&mut self, axis: Axis, value: i64) -> Result<()> {
        if value == 0 {
            return Ok(());
        }
        let at = self.0.iter().position(|(a, _)| *a >= axis);
        match at.and_then(|i| self.0.get_mut(i)).filter(|t| t.0 == axis) {
            None => self.0.insert(at.unwrap_or(self.0.len()), (axis, value)),
            Some(term) => match term.1.checked_add(value) {
                Some(0) => drop(at.map(|i| self.0.remove(i))),
                Some(sum) => term.1 = sum,
                None => return Err(beyond(axis)),
            },
        }
        Ok(())
    }

    /// The nonzero entries, sorted by axis.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Axis, i64)> + Clone + '_ {
        self.0.iter().copied()
    }

    /// True at the origin.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries as a slice, sorted by axis, none zero.
    #[must_use]
    pub fn as_slice(&self) -> &[(Axis, i64)] {
        &self.0
    }
}

#[cold]
fn beyond(axis: Axis) -> Error {
    Error::overflow(format!("the coordinate on axis {axis}"))
}

impl fmt::Debug for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_vanish_and_terms_add() {
        let (a, b) = (Axis::new("a").unwrap(), Axis::new("b").unwrap());
        let c = Coord::from_terms([(b, 3), (a, 2), (b, -3), (a, 5)]).unwrap();
        assert_eq!(c.as_slice(), &[(a, 7)]);
        assert!(Coord::from_terms([(a, i64::MAX), (a, 1)]).is_err());
    }
}
