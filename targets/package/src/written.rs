//! Which elements of a result nothing wrote.

use crate::tensor::{POISON, Tensor};

/// A second pattern of poison: what holds [`POISON`] after one run and this after another, run on
/// memory that was filled with it, was written by neither.
const SECOND_POISON: u8 = 0x5A;

/// The elements of a tensor that nothing wrote, in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten(Vec<bool>);

/// Whether an element has the poison pattern.
pub(crate) fn poisoned(element: &[u8]) -> bool {
    element.iter().all(|byte| *byte == POISON)
}

impl Unwritten {
    /// One value an element: true where nothing wrote it.
    #[must_use]
    pub fn new(elements: Vec<bool>) -> Self {
        Unwritten(elements)
    }

    /// Every one of so many elements was written.
    #[must_use]
    pub fn none(elements: usize) -> Self {
        Unwritten(vec![false; elements])
    }

    /// The elements that still have every byte of this poison.
    #[must_use]
    pub fn holding(tensor: &Tensor, poison: u8) -> Self {
        let elements = tensor.bytes().chunks_exact(tensor.dtype().bytes());
        Unwritten(elements.map(|e| e.iter().all(|b| *b == poison)).collect())
    }

    /// The elements of a result on memory that was poisoned once, as far as one run shows them:
    /// floats that have the pattern, which no hardware computes. An integer may be -1.
    #[must_use]
    pub fn by_pattern(tensor: &Tensor) -> Self {
        if tensor.dtype().is_float() {
            Self::holding(tensor, POISON)
        } else {
            Self::none(tensor.len())
        }
    }

    /// The elements that are unwritten in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Unwritten(self.0.iter().zip(&other.0).map(|(a, b)| *a && *b).collect())
    }

    /// What runs leave unwritten: `run` fills memory with a poison, executes, and gives the results. It runs twice where
    /// the first run's results have elements of the poison: numbers may look like it, but those of a second run on
    /// another do not. The results of the first run, and for each what was not written of it.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn of_runs<E>(
        mut run: impl FnMut(u8) -> Result<Vec<Tensor>, E>,
    ) -> Result<(Vec<Tensor>, Vec<Self>), E> {
        let first = run(POISON)?;
        let suspects: Vec<_> = first.iter().map(|t| Self::holding(t, POISON)).collect();
        if suspects.iter().all(|suspects| suspects.count() == 0) {
            return Ok((first, suspects));
        }
        let again = run(SECOND_POISON)?;
        let again = again.iter().map(|t| Self::holding(t, SECOND_POISON));
        let unwritten = suspects.iter().zip(again).map(|(a, b)| a.and(&b)).collect();
        Ok((first, unwritten))
    }

    /// Whether nothing wrote the element of this number.
    #[must_use]
    pub fn at(&self, element: usize) -> bool {
        self.0.get(element).copied().unwrap_or(false)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().filter(|unwritten| **unwritten).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn two_runs_tell_minus_one_from_poison() {
        let i16s = |values: [f64; 3]| Tensor::from_f64(DType::I16, vec![3], values).unwrap();
        let second = f64::from(i16::from_ne_bytes([SECOND_POISON; 2]));
        // Written as -1, never written, written as what the second poison looks like.
        let first = Unwritten::holding(&i16s([-1.0, -1.0, second]), POISON);
        let again = Unwritten::holding(&i16s([-1.0, second, second]), SECOND_POISON);
        let unwritten = first.and(&again);
        assert_eq!(unwritten, Unwritten::new(vec![false, true, false]));
        assert_eq!(unwritten.count(), 1);
    }

    /// A device that fills its memory with a poison and writes some elements.
    fn device(written: [Option<u8>; 4], poison: u8) -> Result<Vec<Tensor>, String> {
        let bytes = written.map(|byte| byte.unwrap_or(poison));
        Ok(vec![
            Tensor::new(DType::I8, vec![4], bytes.to_vec()).unwrap(),
        ])
    }

    #[test]
    fn what_a_device_leaves_is_found_in_two_runs() {
        let mut runs = 0;
        let mut of = |written: [Option<u8>; 4]| {
            runs = 0;
            let made = Unwritten::of_runs(|poison| {
                runs += 1;
                device(written, poison)
            });
            let (first, unwritten) = made.unwrap();
            (first[0].bytes().to_vec(), unwritten[0].clone(), runs)
        };
        // Everything written, and nothing that looks like the poison: one run.
        let (bytes, unwritten, runs) = of([Some(1), Some(2), Some(3), Some(SECOND_POISON)]);
        assert_eq!(
            (bytes, unwritten.count(), runs),
            (vec![1, 2, 3, SECOND_POISON], 0, 1)
        );
        // -1 is the poison's pattern: the second run tells it from what was not written.
        let (_, unwritten, runs) = of([Some(POISON), None, Some(0), None]);
        assert_eq!(unwritten, Unwritten::new(vec![false, true, false, true]));
        assert_eq!(runs, 2);
        // A kernel that writes nothing.
        assert_eq!(of([None; 4]).1.count(), 4);
    }

    #[test]
    fn a_device_that_fails_is_an_error() {
        let failed = Unwritten::of_runs(|poison| match poison {
            POISON => device([None; 4], poison),
            _ => Err("lost".to_owned()),
        });
        assert_eq!(failed, Err("lost".to_owned()));
    }

    #[test]
    fn one_run_shows_floats_alone() {
        let never = |dtype| Tensor::filled(dtype, vec![2], POISON).unwrap();
        assert_eq!(Unwritten::by_pattern(&never(DType::BF16)).count(), 2);
        assert_eq!(Unwritten::by_pattern(&never(DType::I8)).count(), 0);
    }
}
