//! Attributes: building, and reading with a check of their kind.

use melior::Context;
use melior::ir::attribute::{
    ArrayAttribute, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
    IntegerAttribute, StringAttribute,
};
use melior::ir::{AffineMap, Attribute, AttributeLike};
use mlir_sys as sys;

/// An attribute as one of a kind. The kind is asked first: melior's error for another one holds the attribute's text, and
/// to print a plan costs more than to read it.
fn of<'c, T: TryFrom<Attribute<'c>>>(
    attribute: Attribute<'c>,
    is_kind: impl Fn(&Attribute<'c>) -> bool,
) -> Option<T> {
    is_kind(&attribute).then(|| attribute.try_into().ok())?
}

/// `array<i64: ...>`.
#[must_use]
pub fn i64s<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// `array<i32: ...>`, as operand segments are kept.
#[must_use]
pub fn i32s<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
    DenseI32ArrayAttribute::new(context, values).into()
}

/// The values of `array<i64: ...>`; `None` for another attribute.
#[must_use]
pub fn read_i64s(attribute: Attribute<'_>) -> Option<Vec<i64>> {
    let array = of::<DenseI64ArrayAttribute>(attribute, Attribute::is_dense_i64_array)?;
    (0..array.len())
        .map(|index| array.element(index).ok())
        .collect()
}

/// `[[0, 1], [2]]`: groups of dimensions, as reshapes keep them.
#[must_use]
pub fn groups<'c>(context: &'c Context, groups: &[Vec<i64>]) -> Attribute<'c> {
    let i64 = melior::ir::r#type::IntegerType::new(context, 64).into();
    let array = |group: &Vec<i64>| {
        let dims: Vec<_> = group
            .iter()
            .map(|dim| IntegerAttribute::new(i64, *dim).into())
            .collect();
        ArrayAttribute::new(context, &dims).into()
    };
    ArrayAttribute::new(
        context,
        &groups.iter().map(array).collect::<Vec<Attribute<'c>>>(),
    )
    .into()
}

/// The groups of dimensions of a reshape; `None` for another attribute.
#[must_use]
pub fn read_groups(attribute: Attribute<'_>) -> Option<Vec<Vec<i64>>> {
    let dims = |group| -> Option<Vec<i64>> { elements(group)?.into_iter().map(integer).collect() };
    elements(attribute)?.into_iter().map(dims).collect()
}

/// The elements of an array attribute; `None` for another attribute.
#[must_use]
pub fn elements<'c>(attribute: Attribute<'c>) -> Option<Vec<Attribute<'c>>> {
    let array = of::<ArrayAttribute>(attribute, Attribute::is_array)?;
    (0..array.len())
        .map(|index| array.element(index).ok())
        .collect()
}

/// The entries of a dictionary attribute, by name; `None` for another attribute.
#[must_use]
pub fn entries<'c>(attribute: Attribute<'c>) -> Option<Vec<(String, Attribute<'c>)>> {
    // SAFETY: the kind is checked before entries are read, at positions below their number.
    unsafe {
        if !sys::mlirAttributeIsADictionary(attribute.to_raw()) {
            return None;
        }
        let entry = |at| {
            let entry = sys::mlirDictionaryAttrGetElement(attribute.to_raw(), at);
            let name = melior::StringRef::from_raw(sys::mlirIdentifierStr(entry.name));
            let name = name.as_str().ok()?.to_owned();
            Some((name, Attribute::from_raw(entry.attribute)))
        };
        (0..sys::mlirDictionaryAttrGetNumElements(attribute.to_raw()))
            .map(entry)
            .collect()
    }
}

/// The value of an integer attribute of at most 64 bits; `None` for another attribute.
#[must_use]
pub fn integer(attribute: Attribute<'_>) -> Option<i64> {
    // SAFETY: the kind is checked, and the type's width before its value is read.
    unsafe {
        if !sys::mlirAttributeIsAInteger(attribute.to_raw()) {
            return None;
        }
        let r#type = sys::mlirAttributeGetType(attribute.to_raw());
        let narrow = sys::mlirTypeIsAIndex(r#type)
            || (sys::mlirIntegerTypeIsSignless(r#type)
                && sys::mlirIntegerTypeGetWidth(r#type) <= 64);
        narrow.then(|| sys::mlirIntegerAttrGetValueInt(attribute.to_raw()))
    }
}

/// The value of a boolean attribute; `None` for another attribute.
#[must_use]
pub fn flag(attribute: Attribute<'_>) -> Option<bool> {
    of::<BoolAttribute>(attribute, Attribute::is_bool).map(|flag| flag.value())
}

/// The text of a string attribute; `None` for another attribute.
#[must_use]
pub fn text<'c>(attribute: Attribute<'c>) -> Option<&'c str> {
    of::<StringAttribute>(attribute, Attribute::is_string).map(|text| text.value())
}

/// The value of a float attribute, rounded to double; `None` for another attribute.
#[must_use]
pub fn float(attribute: Attribute<'_>) -> Option<f64> {
    // SAFETY: the kind is checked before the value is read.
    unsafe {
        sys::mlirAttributeIsAFloat(attribute.to_raw())
            .then(|| sys::mlirFloatAttrGetValueDouble(attribute.to_raw()))
    }
}

/// The integer or float that all elements of a dense attribute equal; `None` when they differ or are not at hand.
#[must_use]
pub fn splat<'c>(attribute: Attribute<'c>) -> Option<Attribute<'c>> {
    // SAFETY: the kind is checked before the value is read.
    let element: Option<Attribute<'c>> = unsafe {
        (sys::mlirAttributeIsADenseElements(attribute.to_raw())
            && sys::mlirDenseElementsAttrIsSplat(attribute.to_raw()))
        .then(|| Attribute::from_raw(sys::mlirDenseElementsAttrGetSplatValue(attribute.to_raw())))
    };
    // An element of a complex type is no typed attribute, and no constant can be made of it.
    element.filter(|element| integer(*element).is_some() || float(*element).is_some())
}

/// The map of an affine map attribute; `None` for another attribute.
#[must_use]
pub fn affine_map<'c>(attribute: Attribute<'c>) -> Option<AffineMap<'c>> {
    // SAFETY: the kind is checked before the map is read.
    unsafe {
        sys::mlirAttributeIsAAffineMap(attribute.to_raw())
            .then(|| AffineMap::from_raw(sys::mlirAffineMapAttrGetValue(attribute.to_raw())))
    }
}

unsafe extern "C" {
    /// The bytes of a dense resource, and how many; null for another attribute or a resource that is not there.
    fn axeResourceData(attribute: sys::MlirAttribute, size: *mut isize) -> *const u8;
}

/// The bytes of a `dense_resource` attribute; `None` for another attribute, or when the resource is not in the module.
#[must_use]
pub fn resource<'c>(attribute: Attribute<'c>) -> Option<&'c [u8]> {
    let mut size = 0;
    // SAFETY: the bytes live as long as the context, and there are `size` of them.
    unsafe {
        let data = axeResourceData(attribute.to_raw(), &raw mut size);
        let size = usize::try_from(size).ok()?;
        (!data.is_null()).then(|| std::slice::from_raw_parts(data, size))
    }
}
