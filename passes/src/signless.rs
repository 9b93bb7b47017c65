//! Integers whose type has a sign, which front ends leave where a module meets its caller.
//!
//! `arith` and `linalg` compute on signless integers. What came from StableHLO still has `tensor<4xui8>` for arguments and
//! results, with `builtin.unrealized_conversion_cast` from and to `tensor<4xi8>`. Memory holds the same: values become
//! signless, and such casts go.

use crate::error::{PassError, PassResult};
use crate::ir::value::{name, operands, replace_all_uses, results, users};
use crate::ir::{Op, TensorType, Val, types, walk};
use crate::{error, ir};
use melior::ir::attribute::TypeAttribute;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Location, Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// MLIR's cast between types that no pass has resolved.
const CAST: &str = "builtin.unrealized_conversion_cast";

/// Makes integers of a module's functions signless.
///
/// # Errors
/// At named operations of linalg that would extend what was unsigned as signed.
pub(crate) fn remove_signs<'c>(module: Op<'c>) -> PassResult<'c> {
    let all = walk::nested(module, &|_| true);
    if !all.iter().any(|op| has_signs(*op)) {
        return Ok(());
    }
    let casts: Vec<_> = all.iter().filter(|op| is_sign_cast(**op)).collect();
    let wrong = casts.iter().flat_map(|op| extended(**op));
    error::all(wrong.collect())?;
    for &op in &all {
        let arguments = walk::blocks(op).into_iter().flat_map(walk::block_arguments);
        for value in arguments.chain(results(op)) {
            if let Some(plain) = signless(value.r#type(), op.location()) {
                // SAFETY: the value and the type are live and of one context.
                unsafe { sys::mlirValueSetType(value.to_raw(), plain.to_raw()) };
            }
        }
        retype(op);
    }
    for op in casts {
        if let ([operand], [result]) = (operands(*op).as_slice(), results(*op).as_slice()) {
            replace_all_uses(*result, *operand);
            walk::erase(*op);
        }
    }
    Ok(())
}

/// Whether a function takes or gives integers with a sign.
fn has_signs(op: Op<'_>) -> bool {
    let signature = signature(op).unwrap_or_default();
    let mut all = signature.iter().flatten();
    all.any(|r#type| signless(*r#type, op.location()).is_some())
}

/// The types that a function takes and those that it gives; none for another operation.
#[must_use]
pub fn signature<'c>(op: Op<'c>) -> Option<[Vec<Type<'c>>; 2]> {
    let r#type = op.attribute("function_type").ok()?;
    let raw = TypeAttribute::try_from(r#type).ok()?.value().to_raw();
    // SAFETY: the type is a function's, and positions are below the counts.
    unsafe {
        if !sys::mlirTypeIsAFunction(raw) {
            return None;
        }
        let inputs = (0..sys::mlirFunctionTypeGetNumInputs(raw))
            .map(|at| Type::from_raw(sys::mlirFunctionTypeGetInput(raw, at)));
        let outputs = (0..sys::mlirFunctionTypeGetNumResults(raw))
            .map(|at| Type::from_raw(sys::mlirFunctionTypeGetResult(raw, at)));
        Some([inputs.collect(), outputs.collect()])
    }
}

/// Gives a function the type that its values have.
fn retype<'c>(op: Op<'c>) {
    let Some(signature) = signature(op) else {
        return;
    };
    let plain = |r#type: &Type<'c>| signless(*r#type, op.location()).unwrap_or(*r#type);
    let [inputs, outputs] = signature.map(|types| types.iter().map(plain).collect::<Vec<_>>());
    let builder = ir::Builder::before(op);
    let r#type = builder.of_type(builder.function_type(&inputs, &outputs));
    // SAFETY: the operation is live, and no other reference to it is used while this one is.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute("function_type", r#type);
}

/// The same type without a sign; none where it has none.
fn signless<'c>(r#type: Type<'c>, location: Location<'c>) -> Option<Type<'c>> {
    if let Some(tensor) = TensorType::of(r#type) {
        let element = signless(tensor.element, location).filter(|_| !tensor.encoded)?;
        return types::tensor(location, &tensor.shape, element);
    }
    let raw = r#type.to_raw();
    // SAFETY: the sign is asked of an integer.
    let signed = unsafe { sys::mlirTypeIsAInteger(raw) && !sys::mlirIntegerTypeIsSignless(raw) };
    let bits = types::bits(r#type).filter(|_| signed)?;
    // SAFETY: the context lives as long as the type.
    let integer = unsafe { sys::mlirIntegerTypeGet(sys::mlirTypeGetContext(raw), bits) };
    // SAFETY: as above.
    Some(unsafe { Type::from_raw(integer) })
}

/// Whether an operation does nothing but take or give a sign.
fn is_sign_cast(op: Op<'_>) -> bool {
    let plain = |value: &Val<'_>| {
        let r#type = value.r#type();
        signless(r#type, op.location())
            .unwrap_or(r#type)
            .to_string()
    };
    match (
        name(op).as_str(),
        operands(op).as_slice(),
        results(op).as_slice(),
    ) {
        (CAST, [from], [to]) => plain(from) == plain(to),
        _ => false,
    }
}

/// Named operations of linalg that extend the result of a cast from unsigned integers as signed.
fn extended<'c>(cast: Op<'c>) -> Vec<PassError<'c>> {
    let (Some(from), Some(to)) = (
        operands(cast).first().copied(),
        results(cast).first().copied(),
    ) else {
        return Vec::new();
    };
    let element = axe_dialect::element_type(from.r#type()).to_raw();
    // SAFETY: the sign is asked of an integer.
    let unsigned =
        unsafe { sys::mlirTypeIsAInteger(element) && sys::mlirIntegerTypeIsUnsigned(element) };
    let bits = |value: Val<'c>| types::bits(axe_dialect::element_type(value.r#type()));
    let wrong = |op: &Op<'c>| {
        let named = name(*op).starts_with("linalg.") && name(*op) != "linalg.generic";
        let says = op
            .attribute("cast")
            .is_ok_and(|cast| cast.to_string().contains("unsigned"));
        named && !says && results(*op).iter().any(|result| bits(*result) > bits(to))
    };
    let users = users(to).into_iter().filter(|op| unsigned && wrong(op));
    let message = |op: Op<'c>| {
        let message = format!(
            "'{}' extends {} as signed, and this operand was {}: expected cast = #linalg.type_fn<cast_unsigned>, or an arith.extui of the operand",
            name(op),
            axe_dialect::element_type(to.r#type()),
            from.r#type()
        );
        PassError::new(op.location(), message)
    };
    users.map(message).collect()
}
