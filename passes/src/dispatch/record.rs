//! What `--axe-dispatch-schedules` leaves in the IR: on every operator the attributes `schedule` and `plan`, and on every
//! kernel a `plan` that names the chip.

use super::plan;
use crate::error::{PassError, PassResult};
use crate::ir::attribute::entries;
use crate::ir::value::name;
use crate::ir::walk::nested;
use crate::ir::{Builder, Op};
use axe_dialect::ops;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike, OperationRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

const SCHEDULE: &str = "schedule";
const PLAN: &str = "plan";
/// The entry of a kernel's plan that says for which chip all of its plans are.
const CHIP: &str = "chip";

/// The kernels of a module.
#[must_use]
pub fn kernels<'c>(module: OperationRef<'c, 'c>) -> Vec<Op<'c>> {
    let all = nested(module, &|_| false);
    all.into_iter()
        .filter(|op| name(*op) == ops::KERNEL)
        .collect()
}

/// The symbol's name of an operation.
#[must_use]
pub fn symbol(op: Op<'_>) -> Option<String> {
    string(op, "sym_name")
}

fn string(op: Op<'_>, name: &str) -> Option<String> {
    let value = StringAttribute::try_from(op.attribute(name).ok()?).ok()?;
    Some(value.value().to_owned())
}

/// The schedule that an operator names.
#[must_use]
pub fn schedule(op: Op<'_>) -> Option<String> {
    string(op, SCHEDULE)
}

/// The plan of an operation, as it stands.
#[must_use]
pub fn planned<'c>(op: Op<'c>) -> Option<Attribute<'c>> {
    op.attribute(PLAN).ok()
}

/// The plan of an operation, as the structure that it is.
///
/// # Errors
/// At an operation without one, and at one that lacks a field or has another.
pub fn read<'c, T: DeserializeOwned>(op: Op<'c>) -> PassResult<'c, T> {
    let found = planned(op).ok_or_else(|| {
        PassError::new(
            op.location(),
            format!(
                "'{}' has no plan: expected a kernel that --axe-dispatch-schedules has been through",
                name(op)
            ),
        )
    })?;
    plan::read(found).map_err(|reason| wrong(op, &reason))
}

/// The failure of a plan that is wrong.
#[must_use]
pub fn wrong<'c>(op: Op<'c>, reason: &str) -> PassError<'c> {
    let schedule = schedule(op).map_or(String::new(), |schedule| format!(" \"{schedule}\""));
    PassError::new(
        op.location(),
        format!(
            "the plan{schedule} of this '{}' is wrong: {reason}",
            name(op)
        ),
    )
}

/// Leaves a plan on an operation that has no schedule.
///
/// # Errors
/// For a plan that no attribute says.
pub fn write<'c, T: Serialize>(op: Op<'c>, plan: &T) -> PassResult<'c> {
    let made = plan::write(op, plan).map_err(|reason| wrong(op, &reason))?;
    set(op, PLAN, made);
    Ok(())
}

/// Names the schedule that an operator is to have.
pub fn ask(op: Op<'_>, schedule: &str) {
    let name =
        Builder::before(op).attribute(|context| StringAttribute::new(context, schedule).into());
    set(op, SCHEDULE, name);
}

/// Leaves a schedule and its plan on an operator.
pub fn bind<'c>(op: Op<'c>, schedule: &str, plan: Attribute<'c>) {
    ask(op, schedule);
    set(op, PLAN, plan);
}

/// Sets an attribute, the operation's own or a discardable one.
pub fn set<'c>(op: Op<'c>, name: &str, value: Attribute<'c>) {
    // SAFETY: operation and attribute are live and of one context.
    unsafe {
        mlir_sys::mlirOperationSetAttributeByName(
            op.to_raw(),
            melior::StringRef::new(name).to_raw(),
            value.to_raw(),
        );
    }
}

/// The chip that a kernel's plans are for; `None` for a kernel without plans.
#[must_use]
pub fn chip(kernel: Op<'_>) -> Option<String> {
    let entries = entries(planned(kernel)?)?;
    let (_, chip) = entries.into_iter().find(|(name, _)| name == CHIP)?;
    Some(StringAttribute::try_from(chip).ok()?.value().to_owned())
}

/// The chip of a module's kernels, which is `wanted` unless that is empty; `None` for a module without kernels. Where `leave` is
/// set, kernels without plans do not count.
///
/// # Errors
/// At a kernel without plans, and at one whose plans are for another chip.
pub fn common_chip<'c>(
    module: OperationRef<'c, 'c>,
    wanted: &str,
    leave: bool,
) -> PassResult<'c, Option<String>> {
    let mut common = (!wanted.is_empty()).then(|| wanted.to_owned());
    let mut kernels = kernels(module);
    kernels.retain(|kernel| !leave || planned(*kernel).is_some());
    for kernel in &kernels {
        let chip = chip(*kernel).ok_or_else(|| {
            PassError::new(
                kernel.location(),
                "expected a kernel with plan = {chip, ...}: run --axe-dispatch-schedules first",
            )
        })?;
        let expected = common.get_or_insert_with(|| chip.clone());
        if *expected != chip {
            return Err(PassError::new(
                kernel.location(),
                format!("the kernel's plans are for {chip}, and {expected} is compiled for"),
            ));
        }
    }
    Ok(common.filter(|_| !kernels.is_empty()))
}
