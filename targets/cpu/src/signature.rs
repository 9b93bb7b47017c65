//! What a function takes and gives.

use crate::error::CpuError;
use axe_package::{DType, Tensor};
use axe_passes::ir::{DYNAMIC, types};
use melior::ir::{Type, TypeLike};
use mlir_sys as sys;
use std::fmt;

/// The type of an argument or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// The element type. Integers without a sign are signed; a tensor of either sign is taken.
    pub dtype: DType,
    /// The extents, `None` where dynamic; no extents for a scalar.
    pub shape: Vec<Option<u64>>,
    /// Whether it is a scalar, and not a tensor of rank 0.
    pub scalar: bool,
}

/// The types of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The arguments in order.
    pub inputs: Vec<ValueType>,
    /// The results in order.
    pub outputs: Vec<ValueType>,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scalar {
            return write!(f, "{}", self.dtype);
        }
        write!(f, "tensor<")?;
        for extent in &self.shape {
            match extent {
                Some(extent) => write!(f, "{extent}x")?,
                None => write!(f, "?x")?,
            }
        }
        write!(f, "{}>", self.dtype)
    }
}

/// The type of a tensor at hand, for messages.
pub(crate) fn describe(tensor: &Tensor) -> String {
    let shape: String = tensor
        .shape()
        .iter()
        .map(|extent| format!("{extent}x"))
        .collect();
    format!("tensor<{shape}{}>", tensor.dtype())
}

impl ValueType {
    /// Whether a tensor can be passed for it.
    pub(crate) fn takes(&self, tensor: &Tensor) -> bool {
        signed(tensor.dtype()) == signed(self.dtype)
            && tensor.shape().len() == self.shape.len()
            && self
                .shape
                .iter()
                .zip(tensor.shape())
                .all(|(want, got)| want.is_none_or(|want| want == *got))
    }

    fn of(r#type: Type<'_>) -> Option<Self> {
        let Some(shape) = types::shape(r#type) else {
            return Some(Self {
                dtype: dtype(r#type)?,
                shape: Vec::new(),
                scalar: true,
            });
        };
        let plain = !types::is_memref(r#type) || is_dense(r#type);
        let mut known = shape.iter().filter(|extent| **extent != DYNAMIC);
        // The widest element has 8 bytes; more than 2^63 of them are in no memory.
        known.try_fold(8_i64, |bytes, extent| bytes.checked_mul(*extent))?;
        let extent = |extent: i64| match extent {
            DYNAMIC => Some(None),
            fixed => u64::try_from(fixed).ok().map(Some),
        };
        Some(Self {
            dtype: dtype(axe_dialect::element_type(r#type)).filter(|_| plain)?,
            shape: shape.into_iter().map(extent).collect::<Option<_>>()?,
            scalar: false,
        })
    }
}

/// Whether a memref is dense, row-major and in the default memory space.
fn is_dense(memref: Type<'_>) -> bool {
    // SAFETY: the accessors are called on a memref.
    unsafe {
        let layout = sys::mlirMemRefTypeGetAffineMap(memref.to_raw());
        axe_dialect::layout_of(memref).is_none()
            && sys::mlirAffineMapIsIdentity(layout)
            && sys::mlirMemRefTypeGetMemorySpace(memref.to_raw())
                .ptr
                .is_null()
    }
}

/// A dtype by what memory holds: integers as signed.
fn signed(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::I8,
        DType::U16 => DType::I16,
        DType::U32 => DType::I32,
        DType::U64 => DType::I64,
        other => other,
    }
}

/// The dtype of an element type; integers without a sign are signed.
#[must_use]
pub fn dtype(element: Type<'_>) -> Option<DType> {
    let raw = element.to_raw();
    // SAFETY: the type is valid.
    let is = |test: unsafe extern "C" fn(sys::MlirType) -> bool| unsafe { test(raw) };
    if types::is_integer(element) {
        let unsigned = is(sys::mlirIntegerTypeIsUnsigned);
        return match (types::bits(element)?, unsigned) {
            (1, _) => Some(DType::Bool),
            (8, false) => Some(DType::I8),
            (8, true) => Some(DType::U8),
            (16, false) => Some(DType::I16),
            (16, true) => Some(DType::U16),
            (32, false) => Some(DType::I32),
            (32, true) => Some(DType::U32),
            (64, false) => Some(DType::I64),
            (64, true) => Some(DType::U64),
            _ => None,
        };
    }
    [
        (is(sys::mlirTypeIsAF16), DType::F16),
        (is(sys::mlirTypeIsABF16), DType::BF16),
        (is(sys::mlirTypeIsAF32), DType::F32),
        (is(sys::mlirTypeIsAF64), DType::F64),
        (is(sys::mlirTypeIsAFloat8E4M3FN), DType::F8E4M3),
        (is(sys::mlirTypeIsAFloat8E5M2), DType::F8E5M2),
        (is(sys::mlirTypeIsAIndex), DType::I64),
    ]
    .into_iter()
    .find_map(|(is, dtype)| is.then_some(dtype))
}

impl Signature {
    /// The types of a function type.
    ///
    /// # Errors
    /// When an argument or a result has no form as a tensor.
    pub(crate) fn of(function: &str, r#type: Type<'_>) -> Result<Self, CpuError> {
        let all = |what: &'static str, types: Vec<Type<'_>>| {
            let types = types.into_iter().enumerate();
            types
                .map(|(index, found)| {
                    ValueType::of(found).ok_or_else(|| CpuError::Type {
                        function: function.to_owned(),
                        what,
                        index,
                        found: found.to_string(),
                    })
                })
                .collect::<Result<Vec<_>, _>>()
        };
        // SAFETY: the type is a function's, and positions are below the counts.
        let (inputs, outputs) = unsafe {
            let raw = r#type.to_raw();
            if !sys::mlirTypeIsAFunction(raw) {
                return Ok(Self {
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                });
            }
            let inputs = 0..sys::mlirFunctionTypeGetNumInputs(raw);
            let outputs = 0..sys::mlirFunctionTypeGetNumResults(raw);
            (
                inputs
                    .map(|at| Type::from_raw(sys::mlirFunctionTypeGetInput(raw, at)))
                    .collect(),
                outputs
                    .map(|at| Type::from_raw(sys::mlirFunctionTypeGetResult(raw, at)))
                    .collect(),
            )
        };
        Ok(Self {
            inputs: all("argument", inputs)?,
            outputs: all("result", outputs)?,
        })
    }

    /// Checks what is to be passed.
    ///
    /// # Errors
    /// When the number, a type or a shape differs.
    pub(crate) fn check(&self, function: &str, inputs: &[Tensor]) -> Result<(), CpuError> {
        if inputs.len() != self.inputs.len() {
            return Err(CpuError::Count {
                function: function.to_owned(),
                expected: self.inputs.len(),
                got: inputs.len(),
            });
        }
        for (index, (want, got)) in self.inputs.iter().zip(inputs).enumerate() {
            if !want.takes(got) {
                return Err(CpuError::Input {
                    function: function.to_owned(),
                    index,
                    expected: want.to_string(),
                    got: describe(got),
                });
            }
        }
        Ok(())
    }
}
