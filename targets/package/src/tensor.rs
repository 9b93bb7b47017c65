//! Tensors in host memory: dense, row-major, little-endian bytes with a type and a shape.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use thiserror::Error;

use crate::dtype::DType;

/// The byte that memory is filled with before a checking run. As a floating-point element it is
/// a NaN, as a signed integer -1, as a `bool` an illegal value.
pub const POISON: u8 = 0xFF;

/// A dense row-major tensor in host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

/// A tensor whose parts do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// The number of bytes is not that of the shape.
    #[error("a {dtype} tensor of shape {shape:?} does not have {got} bytes")]
    Size {
        /// Its element type.
        dtype: DType,
        /// Its shape.
        shape: Vec<u64>,
        /// The number of bytes given.
        got: usize,
    },
    /// There is no memory for so many bytes.
    #[error("a {dtype} tensor of shape {shape:?} is too large")]
    TooLarge {
        /// Its element type.
        dtype: DType,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// Reinterpreting between types of different size.
    #[error("{from} elements cannot be taken as {to}: their sizes differ")]
    Reinterpret {
        /// The type it has.
        from: DType,
        /// The type asked for.
        to: DType,
    },
}

/// Which random numbers: uniform in `[low, high)`, reproducible from the seed on any machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// The lowest value.
    pub low: f64,
    /// The bound above.
    pub high: f64,
}

impl Random {
    /// The usual range of a type: floats in [-1, 1), signed integers in [-8, 8), unsigned ones
    /// in [0, 16), booleans 0 or 1.
    #[must_use]
    pub fn for_dtype(dtype: DType, seed: u64) -> Self {
        let (low, high) = match dtype {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => (-8.0, 8.0),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0.0, 16.0),
            DType::Bool => (0.0, 2.0),
            _ => (-1.0, 1.0),
        };
        Random { seed, low, high }
    }
}

/// The number of bytes of a dense tensor; `None` if it does not fit in memory.
#[must_use]
pub fn dense_bytes(dtype: DType, shape: &[u64]) -> Option<usize> {
    let bytes = shape
        .iter()
        .try_fold(dtype.bytes() as u64, |n, d| n.checked_mul(*d))?;
    usize::try_from(bytes)
        .ok()
        .filter(|n| isize::try_from(*n).is_ok())
}

/// The bytes of a dense tensor, and room for them; `None` when there is none.
fn memory_for(dtype: DType, shape: &[u64]) -> Option<(usize, Vec<u8>)> {
    let (n, mut bytes) = (dense_bytes(dtype, shape)?, Vec::new());
    bytes.try_reserve_exact(n).ok()?;
    Some((n, bytes))
}

impl Tensor {
    /// A tensor of the given bytes.
    ///
    /// # Errors
    /// The number of bytes is not that of the shape.
    pub fn new(dtype: DType, shape: Vec<u64>, bytes: Vec<u8>) -> Result<Self, TensorError> {
        if dense_bytes(dtype, &shape) != Some(bytes.len()) {
            return Err(TensorError::Size {
                dtype,
                shape,
                got: bytes.len(),
            });
        }
        Ok(Tensor {
            dtype,
            shape,
            bytes,
        })
    }

    /// A tensor whose every byte is `byte`.
    ///
    /// # Errors
    /// It does not fit in memory.
    pub fn filled(dtype: DType, shape: Vec<u64>, byte: u8) -> Result<Self, TensorError> {
        let Some((n, mut bytes)) = memory_for(dtype, &shape) else {
            return Err(TensorError::TooLarge { dtype, shape });
        };
        bytes.resize(n, byte);
        Ok(Tensor {
            dtype,
            shape,
            bytes,
        })
    }

    /// A tensor of the given values, each rounded to `dtype` as [`DType::push_f64`] says.
    ///
    /// # Errors
    /// The number of values is not that of the shape.
    pub fn from_f64(
        dtype: DType,
        shape: Vec<u64>,
        values: impl IntoIterator<Item = f64>,
    ) -> Result<Self, TensorError> {
        let mut bytes = Vec::new();
        for value in values {
            dtype.push_f64(value, &mut bytes);
        }
        Self::new(dtype, shape, bytes)
    }

    /// A tensor of reproducible random values.
    ///
    /// # Errors
    /// It does not fit in memory.
    pub fn random(dtype: DType, shape: Vec<u64>, random: Random) -> Result<Self, TensorError> {
        let Some((n, mut bytes)) = memory_for(dtype, &shape) else {
            return Err(TensorError::TooLarge { dtype, shape });
        };
        let mut rng = ChaCha8Rng::seed_from_u64(random.seed);
        let span = random.high - random.low;
        while bytes.len() < n {
            let unit = f64::from(rng.next_u32()) * (1.0 / 4_294_967_296.0);
            let value = random.low + span * unit;
            let value = if dtype.is_float() {
                value
            } else {
                value.floor()
            };
            dtype.push_f64(value, &mut bytes);
        }
        Ok(Tensor {
            dtype,
            shape,
            bytes,
        })
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The bytes, little-endian.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to write into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes()
    }

    /// True if a dimension is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The same bytes as elements of another type of the same size.
    ///
    /// # Errors
    /// The sizes differ.
    pub fn reinterpret(self, dtype: DType) -> Result<Self, TensorError> {
        if dtype.bytes() != self.dtype.bytes() {
            return Err(TensorError::Reinterpret {
                from: self.dtype,
                to: dtype,
            });
        }
        Ok(Tensor { dtype, ..self })
    }

    /// The elements in row-major order as `f64`.
    pub fn iter_f64(&self) -> impl Iterator<Item = f64> + '_ {
        let dtype = self.dtype;
        self.bytes
            .chunks_exact(dtype.bytes())
            .map(move |e| dtype.to_f64(e).unwrap_or(f64::NAN))
    }

    /// The coordinates of the `n`-th element in row-major order.
    #[must_use]
    pub fn coordinates(&self, n: usize) -> Vec<u64> {
        let mut rest = n as u64;
        let mut coordinates = vec![0; self.shape.len()];
        for (c, extent) in coordinates.iter_mut().zip(&self.shape).rev() {
            let extent = (*extent).max(1);
            *c = rest % extent;
            rest /= extent;
        }
        coordinates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_is_reproducible_and_in_range() {
        for dtype in DType::ALL {
            let spec = Random::for_dtype(dtype, 7);
            let a = Tensor::random(dtype, vec![3, 100], spec).unwrap();
            assert_eq!(a, Tensor::random(dtype, vec![3, 100], spec).unwrap());
            assert_ne!(
                a,
                Tensor::random(dtype, vec![3, 100], Random { seed: 8, ..spec }).unwrap()
            );
            assert!(
                a.iter_f64().all(|v| (spec.low..=spec.high).contains(&v)),
                "{dtype}"
            );
        }
        // Pinned: a stored expectation made from a seed must stay valid.
        let pinned = Tensor::random(
            DType::F32,
            vec![2],
            Random {
                seed: 1,
                low: 0.0,
                high: 1.0,
            },
        )
        .unwrap();
        let again: Vec<f64> = pinned.iter_f64().collect();
        assert_eq!(again, [0.549_378_275_871_276_9, 0.402_485_668_659_210_2]);
    }

    #[test]
    fn wrong_sizes_are_refused() {
        assert!(matches!(
            Tensor::new(DType::F16, vec![3], vec![0; 5]),
            Err(TensorError::Size { got: 5, .. })
        ));
        assert!(Tensor::filled(DType::F16, vec![u64::MAX, 2], 0).is_err());
        assert!(Tensor::filled(DType::F16, vec![1 << 62, 1], 0).is_err());
        // Bytes that can be counted, and that no machine has.
        for shape in [vec![1 << 60], vec![1 << 30, 1 << 29]] {
            assert!(Tensor::filled(DType::F16, shape.clone(), 0).is_err());
            let random = Random::for_dtype(DType::F16, 1);
            assert!(Tensor::random(DType::F16, shape, random).is_err());
        }
        let t = Tensor::filled(DType::U8, vec![4], 1).unwrap();
        assert!(t.clone().reinterpret(DType::F16).is_err());
        assert_eq!(t.reinterpret(DType::F8E4M3).unwrap().dtype(), DType::F8E4M3);
    }

    #[test]
    fn coordinates_are_row_major() {
        let t = Tensor::filled(DType::U8, vec![2, 3, 4], 0).unwrap();
        assert_eq!(t.coordinates(0), [0, 0, 0]);
        assert_eq!(t.coordinates(23), [1, 2, 3]);
        assert_eq!(t.coordinates(13), [1, 0, 1]);
    }
}
