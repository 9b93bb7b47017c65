//! `cf.assert` in code that this process runs: a failure unwinds to the caller and becomes an error.

use axe_passes::PassResult;
use axe_passes::ir::value::{name, operands};
use axe_passes::ir::{Builder, Op, walk};
use melior::ir::attribute::{
    FlatSymbolRefAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Module, Region};

/// The function that a failed assertion calls, with its number.
pub(crate) const SYMBOL: &str = "axe_cpu_assertion_failed";

/// The number of the assertion that failed, as the payload of an unwinding.
pub(crate) struct Failed(pub(crate) usize);

/// What a failed assertion calls.
pub(crate) extern "C-unwind" fn fail(number: i64) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    // No panic hook runs, so that nothing is printed.
    std::panic::resume_unwind(Box::new(Failed(number)));
}

/// Replaces the assertions of a module by calls, and gives their messages by number.
///
/// # Errors
/// When building fails.
pub(crate) fn replace<'c>(module: &Module<'c>) -> PassResult<'c, Vec<String>> {
    let mut messages = Vec::new();
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let root = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    for op in walk::nested(root, &|_| true) {
        if name(op) != "cf.assert" {
            continue;
        }
        let message = op.attribute("msg").ok();
        let message = message.and_then(|text| StringAttribute::try_from(text).ok());
        call(op, messages.len())?;
        messages.push(message.map_or_else(String::new, |text| text.value().to_owned()));
        walk::erase(op);
    }
    if let (false, Some(first)) = (messages.is_empty(), walk::blocks(root).first()) {
        declare(&Builder::at_end(*first, root.location()))?;
    }
    Ok(messages)
}

/// `if not condition, fail(number)` in front of an assertion.
fn call<'c>(op: Op<'c>, number: usize) -> PassResult<'c> {
    let builder = Builder::before(op);
    let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
    let truth = builder.constant(IntegerAttribute::new(bit, 1).into())?;
    let operands: Vec<_> = operands(op).into_iter().take(1).chain([truth]).collect();
    let failed = builder.value("arith.xori", &operands, bit, &[])?;
    let (region, _, inner) = builder.region(&[]);
    let number = inner.index(i64::try_from(number).unwrap_or(i64::MAX))?;
    let callee = inner.attribute(|context| FlatSymbolRefAttribute::new(context, SYMBOL).into());
    inner.operation(
        "func.call",
        &[number],
        &[],
        &[("callee", callee)],
        Vec::new(),
    )?;
    inner.operation("scf.yield", &[], &[], &[], Vec::new())?;
    builder.operation("scf.if", &[failed], &[], &[], vec![region, Region::new()])?;
    Ok(())
}

/// Declares [`SYMBOL`].
fn declare<'c>(builder: &Builder<'c>) -> PassResult<'c> {
    let text =
        |value: &str| builder.attribute(|context| StringAttribute::new(context, value).into());
    let r#type = builder.function_type(&[builder.index_type()], &[]);
    let attributes = [
        ("sym_name", text(SYMBOL)),
        ("sym_visibility", text("private")),
        ("function_type", TypeAttribute::new(r#type).into()),
    ];
    builder.operation("func.func", &[], &[], &attributes, vec![Region::new()])?;
    Ok(())
}
