//! Values of the reference: arrays of f64, rounded to their element type after each step.

use axe_package::{DType, Tensor};

/// A dense array; every value is one of its element type.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Extents.
    pub shape: Vec<i64>,
    /// The element type.
    pub dtype: DType,
    /// Row-major values.
    pub data: Vec<f64>,
}

/// A value rounded to an element type.
#[must_use]
pub fn round(value: f64, dtype: DType) -> f64 {
    let mut bytes = Vec::new();
    dtype.push_f64(value, &mut bytes);
    dtype.to_f64(&bytes).unwrap_or(f64::NAN)
}

impl Array {
    /// An array from a function of the index.
    pub fn from_fn(shape: &[i64], dtype: DType, mut value: impl FnMut(&[i64]) -> f64) -> Self {
        let size: i64 = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let data = (0..size)
            .map(|linear| {
                let mut rest = linear;
                for (at, extent) in index.iter_mut().zip(shape).rev() {
                    *at = rest % extent;
                    rest /= extent;
                }
                round(value(&index), dtype)
            })
            .collect();
        Self {
            shape: shape.to_vec(),
            dtype,
            data,
        }
    }

    /// The value at an index; `None` outside.
    #[must_use]
    pub fn get(&self, index: &[i64]) -> Option<f64> {
        let mut linear = 0;
        for (at, extent) in index.iter().zip(&self.shape) {
            if !(0..*extent).contains(at) {
                return None;
            }
            linear = linear * extent + at;
        }
        self.data.get(usize::try_from(linear).ok()?).copied()
    }

    /// Sets the value at an index; nothing outside.
    pub fn set(&mut self, index: &[i64], value: f64) {
        if self.get(index).is_some() {
            let linear = index
                .iter()
                .zip(&self.shape)
                .fold(0, |linear, (at, extent)| linear * extent + at);
            self.data[linear as usize] = value;
        }
    }

    /// The box of `shape` at `origin`; `pad` outside.
    #[must_use]
    pub fn slice(&self, origin: &[i64], shape: &[i64], pad: f64) -> Self {
        Self::from_fn(shape, self.dtype, |at| {
            let index: Vec<_> = at
                .iter()
                .zip(origin)
                .map(|(at, origin)| at + origin)
                .collect();
            self.get(&index).unwrap_or(pad)
        })
    }

    /// The values as a tensor.
    ///
    /// # Errors
    /// When the shape is not a tensor's.
    pub fn tensor(&self) -> anyhow::Result<Tensor> {
        let shape = self
            .shape
            .iter()
            .map(|extent| extent.unsigned_abs())
            .collect();
        let mut bytes = Vec::new();
        for value in &self.data {
            self.dtype.push_f64(*value, &mut bytes);
        }
        Ok(Tensor::new(self.dtype, shape, bytes)?)
    }
}

/// The name of an element type in MLIR.
#[must_use]
pub fn mlir(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::F8E4M3 => "f8E4M3FN",
        DType::F8E5M2 => "f8E5M2",
        DType::Bool => "i1",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I64 => "i64",
        _ => "i32",
    }
}

/// A number as a literal of an element type.
#[must_use]
pub fn literal(value: f64, dtype: DType) -> String {
    match dtype.unit_roundoff() {
        Some(_) => format!("{value:.3e}"),
        None => format!("{}", value as i64),
    }
}
