//! Types that MLIR's C API reads and melior leaves out.

use axe_passes::ir::{Builder, DYNAMIC};
use melior::dialect::llvm;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike};
use mlir_sys as sys;

/// The extents of a memref; `None` for another type.
pub(crate) fn memref_shape(r#type: Type) -> Option<Vec<i64>> {
    // SAFETY: the accessors are called on a memref's type, with positions in its rank.
    unsafe { sys::mlirTypeIsAMemRef(r#type.to_raw()).then(|| shape(r#type)) }
}

/// The extents of a ranked tensor; `None` for another type.
pub(crate) fn tensor_shape(r#type: Type) -> Option<Vec<i64>> {
    // SAFETY: as above, for a tensor.
    unsafe { sys::mlirTypeIsARankedTensor(r#type.to_raw()).then(|| shape(r#type)) }
}

/// How many elements a vector has; `None` for another type.
pub(crate) fn vector_size(r#type: Type) -> Option<i64> {
    // SAFETY: as above, for a vector.
    let shape = unsafe { sys::mlirTypeIsAVector(r#type.to_raw()).then(|| shape(r#type)) };
    shape.as_deref().and_then(|shape| match shape {
        [size] => Some(*size),
        _ => None,
    })
}

/// # Safety
/// The type is a ranked shaped type.
unsafe fn shape(r#type: Type) -> Vec<i64> {
    let raw = r#type.to_raw();
    // SAFETY: promised by the caller.
    unsafe {
        let extent = |dim| match sys::mlirShapedTypeIsDynamicDim(raw, dim) {
            true => DYNAMIC,
            false => sys::mlirShapedTypeGetDimSize(raw, dim),
        };
        let rank = isize::try_from(sys::mlirShapedTypeGetRank(raw)).unwrap_or(0);
        (0..rank).map(extent).collect()
    }
}

/// `f32` of the context of another type.
pub(crate) fn f32_like<'c>(like: Type<'c>) -> Type<'c> {
    // SAFETY: the context is the type's own.
    unsafe { Type::from_raw(sys::mlirF32TypeGet(sys::mlirTypeGetContext(like.to_raw()))) }
}

/// `!llvm.ptr<space>`.
pub(crate) fn pointer<'c>(builder: Builder<'c>, space: u32) -> Type<'c> {
    builder.r#type(|context| llvm::r#type::pointer(context, space))
}

/// `iN`.
pub(crate) fn integer<'c>(builder: Builder<'c>, bits: u32) -> Type<'c> {
    builder.r#type(|context| IntegerType::new(context, bits).into())
}

/// A type that LLVM counts in, and memory has: it has no floats of 8 bits, and a bit takes a byte.
pub(crate) fn stored<'c>(builder: Builder<'c>, element: Type<'c>) -> Type<'c> {
    match axe_passes::ir::types::bits(element) {
        Some(1 | 8) => integer(builder, 8),
        _ => element,
    }
}

/// Whether this is a float of 8 bits.
pub(crate) fn is_float8(r#type: Type) -> bool {
    use axe_passes::ir::types::{bits, is_float};
    is_float(r#type) && bits(r#type) == Some(8)
}

/// Whether this is one bit: in registers a predicate, in memory a byte, 0 or 1.
pub(crate) fn is_bit(r#type: Type<'_>) -> bool {
    axe_passes::ir::types::bits(r#type) == Some(1)
}

/// `vector<count x element>`, of bytes where elements are floats of 8 bits, or bits.
pub(crate) fn vector<'c>(count: i64, element: Type<'c>) -> Type<'c> {
    let element = match is_float8(element) || is_bit(element) {
        // SAFETY: the context is the type's own.
        true => unsafe {
            let context = sys::mlirTypeGetContext(element.to_raw());
            Type::from_raw(sys::mlirIntegerTypeGet(context, 8))
        },
        false => element,
    };
    // SAFETY: the extent is positive and the element type a scalar's, by the caller's plans.
    unsafe {
        Type::from_raw(sys::mlirVectorTypeGet(
            1,
            &raw const count,
            element.to_raw(),
        ))
    }
}

/// `!llvm.struct<(field, ...)>` of `count` equal fields.
pub(crate) fn structure<'c>(builder: Builder<'c>, count: usize, field: Type<'c>) -> Type<'c> {
    builder.r#type(|context| {
        // SAFETY: the field's type belongs to the same context.
        let field = unsafe { Type::from_raw(field.to_raw()) };
        llvm::r#type::r#struct(context, &vec![field; count], false)
    })
}

/// `!llvm.func<result (parameters)>`, of `void` where there is no result.
pub(crate) fn llvm_function<'c>(
    builder: Builder<'c>,
    parameters: &[Type<'c>],
    result: Option<Type<'c>>,
) -> Type<'c> {
    builder.r#type(|context| {
        let parameters: Vec<_> = parameters
            .iter()
            // SAFETY: the types belong to the same context.
            .map(|r#type| unsafe { Type::from_raw(r#type.to_raw()) })
            .collect();
        let result = match result {
            // SAFETY: the type belongs to the same context.
            Some(result) => unsafe { Type::from_raw(result.to_raw()) },
            None => llvm::r#type::void(context),
        };
        llvm::r#type::function(result, &parameters, false)
    })
}

/// Bytes of an element of storage: a whole number, as memory is addressed. An i1 takes one, which is 0 or 1.
pub(crate) fn bytes(r#type: Type) -> Option<i64> {
    let bits = axe_passes::ir::types::bits(r#type)?;
    matches!(bits, 1 | 8 | 16 | 32 | 64).then_some(i64::from(bits.div_ceil(8)))
}

/// An entry of a dictionary attribute.
pub(crate) fn entry<'c>(
    dictionary: melior::ir::Attribute<'c>,
    name: &str,
) -> Option<melior::ir::Attribute<'c>> {
    use melior::ir::AttributeLike;
    // SAFETY: the kind is checked before an entry is looked up; an absent one is null.
    unsafe {
        if !sys::mlirAttributeIsADictionary(dictionary.to_raw()) {
            return None;
        }
        let name = melior::StringRef::new(name).to_raw();
        melior::ir::Attribute::from_option_raw(sys::mlirDictionaryAttrGetElementByName(
            dictionary.to_raw(),
            name,
        ))
    }
}
