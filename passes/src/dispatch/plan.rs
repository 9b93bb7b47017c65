//! Plans as attributes: a dictionary a structure, an array a list, integers of 64 bits, strings, booleans.
//!
//! A plan is a structure that serde knows; between it and the IR is serde's own data model as JSON has it, so that what is
//! missing or unknown is named by serde. Numbers that are not integers, and absent values, have no attribute: a field that may
//! be absent is left out (`skip_serializing_if`).

use crate::ir::attribute::{elements, integer, read_i64s};
use crate::ir::{Op, attribute};
use melior::ir::attribute::{ArrayAttribute, BoolAttribute, IntegerAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, AttributeLike};
use melior::{Context, StringRef};
use mlir_sys as sys;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A plan as an attribute of the context that `op` lives in.
///
/// # Errors
/// A message, for a plan with a number that is no integer of 64 bits, or with an absent value.
pub fn write<'c, T: Serialize>(op: Op<'c>, plan: &T) -> Result<Attribute<'c>, String> {
    let value = serde_json::to_value(plan).map_err(|error| error.to_string())?;
    let context = op.context();
    // SAFETY: attributes live as long as the context, which outlives the handle.
    unsafe {
        let made = attribute_of(context.to_ref(), &value)?;
        Ok(Attribute::from_raw(made.to_raw()))
    }
}

/// A plan out of its attribute.
///
/// # Errors
/// A message that names the field that is missing, unknown or of another kind.
pub fn read<T: DeserializeOwned>(plan: Attribute<'_>) -> Result<T, String> {
    let value = value_of(plan)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            "." => error.inner().to_string(),
            path => format!("{path}: {}", error.inner()),
        }
    })
}

fn attribute_of<'x>(context: &'x Context, value: &Value) -> Result<Attribute<'x>, String> {
    Ok(match value {
        Value::Bool(flag) => BoolAttribute::new(context, *flag).into(),
        Value::Number(number) => {
            let number = number
                .as_i64()
                .ok_or_else(|| format!("{number} is no integer of 64 bits"))?;
            IntegerAttribute::new(IntegerType::new(context, 64).into(), number).into()
        }
        Value::String(text) => StringAttribute::new(context, text).into(),
        Value::Array(values) => {
            let made: Result<Vec<_>, _> = values
                .iter()
                .map(|value| attribute_of(context, value))
                .collect();
            ArrayAttribute::new(context, &made?).into()
        }
        Value::Object(fields) => dictionary(context, fields)?,
        Value::Null => return Err("an absent value has no attribute".to_owned()),
    })
}

fn dictionary<'x>(
    context: &'x Context,
    fields: &Map<String, Value>,
) -> Result<Attribute<'x>, String> {
    let mut named = Vec::new();
    for (name, value) in fields {
        let value = attribute_of(context, value)?;
        // SAFETY: name and value are of the context.
        named.push(unsafe {
            let name =
                sys::mlirIdentifierGet(context.to_raw(), StringRef::new(name.as_str()).to_raw());
            sys::mlirNamedAttributeGet(name, value.to_raw())
        });
    }
    // SAFETY: pointer and length agree, and the names differ, as a map's do.
    unsafe {
        Ok(Attribute::from_raw(sys::mlirDictionaryAttrGet(
            context.to_raw(),
            named.len() as isize,
            named.as_ptr(),
        )))
    }
}

fn value_of(attribute: Attribute<'_>) -> Result<Value, String> {
    if let Some(flag) = attribute::flag(attribute) {
        return Ok(Value::Bool(flag));
    }
    if let Some(number) = integer(attribute) {
        return Ok(number.into());
    }
    if let Some(text) = attribute::text(attribute) {
        return Ok(text.into());
    }
    if let Some(numbers) = read_i64s(attribute) {
        return Ok(numbers.into());
    }
    if let Some(values) = elements(attribute) {
        let values: Result<Vec<_>, _> = values.into_iter().map(value_of).collect();
        return values.map(Value::Array);
    }
    let fields = attribute::entries(attribute).ok_or_else(|| {
        format!("expected integers, strings, booleans, arrays and dictionaries, got {attribute}")
    })?;
    let mut object = Map::new();
    for (name, field) in fields {
        object.insert(name, value_of(field)?);
    }
    Ok(Value::Object(object))
}
