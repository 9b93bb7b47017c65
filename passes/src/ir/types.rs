//! Types of tensors and their elements.

use super::Val;
use axe_dialect::tensor_type;
use melior::ir::{Location, Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// The extent that stands for one known at run time (`ShapedType::kDynamic`).
pub const DYNAMIC: i64 = i64::MIN;

/// Whether a type is `!axe.token`.
#[must_use]
pub fn is_token(r#type: Type<'_>) -> bool {
    let context = r#type.context();
    // SAFETY: the context outlives the type, which is compared within this function.
    r#type == axe_dialect::token_type(unsafe { context.to_ref() })
}

/// Whether a type is `!axe.slot`.
#[must_use]
pub fn is_slot(r#type: Type<'_>) -> bool {
    let context = r#type.context();
    // SAFETY: as above.
    r#type == axe_dialect::slot_type(unsafe { context.to_ref() })
}

/// A ranked tensor's type, taken apart.
#[derive(Clone, Debug)]
pub struct TensorType<'c> {
    /// Extents; [`DYNAMIC`] where known at run time only.
    pub shape: Vec<i64>,
    /// The element type.
    pub element: Type<'c>,
    /// Whether it carries an encoding, such as a layout.
    pub encoded: bool,
}

impl<'c> TensorType<'c> {
    /// The type's parts; `None` when it is not a ranked tensor.
    #[must_use]
    pub fn of(r#type: Type<'c>) -> Option<Self> {
        let raw = r#type.to_raw();
        // SAFETY: the accessors are called on a ranked tensor's type.
        unsafe {
            if !sys::mlirTypeIsARankedTensor(raw) {
                return None;
            }
            Some(Self {
                shape: shape(r#type)?,
                element: Type::from_raw(sys::mlirShapedTypeGetElementType(raw)),
                encoded: !sys::mlirRankedTensorTypeGetEncoding(raw).ptr.is_null(),
            })
        }
    }

    /// The parts of a value's type; `None` when it is not a ranked tensor.
    #[must_use]
    pub fn of_value(value: Val<'c>) -> Option<Self> {
        Self::of(value.r#type())
    }
}

/// `tensor<shape x element>`; `None` when the element type or an extent is not a tensor's.
#[must_use]
pub fn tensor<'c>(location: Location<'c>, shape: &[i64], element: Type<'c>) -> Option<Type<'c>> {
    tensor_type(location, shape, element, None)
}

/// The extents of a ranked tensor or memref, [`DYNAMIC`] where known at run time only; `None` for another type.
#[must_use]
pub fn shape(r#type: Type<'_>) -> Option<Vec<i64>> {
    let raw = r#type.to_raw();
    // SAFETY: the accessors are called on a ranked shaped type, with positions in its rank.
    unsafe {
        if !(sys::mlirTypeIsARankedTensor(raw) || sys::mlirTypeIsAMemRef(raw)) {
            return None;
        }
        let rank = isize::try_from(sys::mlirShapedTypeGetRank(raw)).ok()?;
        let extent = |dim| match sys::mlirShapedTypeIsDynamicDim(raw, dim) {
            true => DYNAMIC,
            false => sys::mlirShapedTypeGetDimSize(raw, dim),
        };
        Some((0..rank).map(extent).collect())
    }
}

/// Whether this is a memref with a rank.
#[must_use]
pub fn is_memref(r#type: Type<'_>) -> bool {
    // SAFETY: the type is valid.
    unsafe { sys::mlirTypeIsAMemRef(r#type.to_raw()) }
}

/// Whether this is a floating-point type.
#[must_use]
pub fn is_float(r#type: Type<'_>) -> bool {
    // SAFETY: the type is valid.
    unsafe { sys::mlirTypeIsAFloat(r#type.to_raw()) }
}

/// Whether this is an integer type (not index).
#[must_use]
pub fn is_integer(r#type: Type<'_>) -> bool {
    // SAFETY: the type is valid.
    unsafe { sys::mlirTypeIsAInteger(r#type.to_raw()) }
}

/// The width in bits of a float or an integer; `None` for any other type.
#[must_use]
pub fn bits(r#type: Type<'_>) -> Option<u32> {
    // SAFETY: each accessor is called on the kind of type that it reads.
    unsafe {
        match (is_float(r#type), is_integer(r#type)) {
            (true, _) => Some(sys::mlirFloatTypeGetWidth(r#type.to_raw())),
            (_, true) => Some(sys::mlirIntegerTypeGetWidth(r#type.to_raw())),
            _ => None,
        }
    }
}
