//! The trn dialect as the data of [`axe_trn`].

use crate::instruction;
use crate::scope::Scope;
use axe_passes::ir::attribute::{elements, integer};
use axe_passes::ir::value::{defined_by, name, operands, results};
use axe_passes::ir::{Op, Val, walk};
use axe_passes::{PassError, PassResult};
use axe_trn::program::{Location, Loop, Program, Statement};
use axe_trn::rules::{self, Violation};
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, BlockLike, Module, Value, ValueLike};

/// An error of an operation, as `emitOpError` begins it.
pub(crate) fn at<'c>(op: Op<'c>, message: impl AsRef<str>) -> PassError<'c> {
    PassError::new(
        op.location(),
        format!("'{}' op {}", name(op), message.as_ref()),
    )
}

/// The texts of an array of strings.
pub(crate) fn texts(attribute: Attribute<'_>) -> Option<Vec<String>> {
    let text = |attribute| {
        Some(
            StringAttribute::try_from(attribute)
                .ok()?
                .value()
                .to_owned(),
        )
    };
    elements(attribute)?.into_iter().map(text).collect()
}

/// The number of an `arith.constant`.
pub(crate) fn constant(value: Val<'_>) -> Option<i64> {
    integer(
        defined_by(value, "arith.constant")?
            .attribute("value")
            .ok()?,
    )
}

/// Where an operation is, when it is in a file.
pub(crate) fn location(op: Op<'_>) -> Option<Location> {
    let text = axe_dialect::place(op.location());
    let mut parts = text.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Location {
        file: file.to_owned(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

fn broken<'c>(op: Op<'c>, violations: &[Violation]) -> PassResult<'c> {
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(at(op, format!("({}) {}", first.rule, first.message))),
    }
}

/// Checks one operation by the rules, as far as they do not depend on loops.
pub(crate) fn verify<'c>(op: Op<'c>) -> PassResult<'c> {
    let mut scope = Scope::around(op)?;
    let Some(chip) = scope.program.chip() else {
        // The kernel reports its chip itself.
        return Ok(());
    };
    match name(op).as_str() {
        "trn.alloc" => {
            let buffer = scope.alloc(op)?;
            let buffer = &scope.program.buffers[buffer];
            if !(1..=1024).contains(&buffer.copies) {
                return Err(at(
                    op,
                    format!("expected 1 to 1024 copies, got {}", buffer.copies),
                ));
            }
            broken(op, &rules::buffer::check_buffer(buffer, chip))
        }
        "trn.view" => {
            let result = results(op)
                .first()
                .copied()
                .ok_or_else(|| at(op, "expected a result"))?;
            scope.view(result, op).map(|_| ())
        }
        _ => {
            let instruction = instruction::read(op, &mut scope)?;
            broken(
                op,
                &rules::check_instruction(&scope.program, chip, &instruction),
            )
        }
    }
}

/// The kernels of a module.
///
/// # Errors
/// At the operation of a kernel that has no form in a program.
pub fn kernels<'c>(module: &Module<'c>) -> PassResult<'c, Vec<Program>> {
    // SAFETY: the operations live as long as the module, which the caller keeps.
    let module = unsafe { Op::from_raw(module.as_operation().to_raw()) };
    walk::blocks(module)
        .into_iter()
        .flat_map(walk::operations)
        .filter(|op| name(*op) == "trn.kernel")
        .map(kernel)
        .collect()
}

/// A `trn.kernel` as a program.
///
/// # Errors
/// At the operation that has no form in a program.
pub fn kernel<'c>(kernel: Op<'c>) -> PassResult<'c, Program> {
    let mut scope = Scope::around(kernel)?;
    let blocks = walk::blocks(kernel);
    let block = blocks
        .first()
        .ok_or_else(|| at(kernel, "expected a body"))?;
    for number in 0..block.argument_count() {
        let argument = block
            .argument(number)
            .map_err(|_| at(kernel, "expected its arguments"))?;
        // SAFETY: the argument is a value of a live operation.
        let argument: Val<'c> = unsafe { Value::from_raw(argument.to_raw()) };
        scope
            .argument(argument)
            .ok_or_else(|| at(kernel, "expected arguments in HBM"))?;
    }
    let body = statements(walk::operations(*block), &mut scope)?;
    scope.program.body = body;
    Ok(scope.program)
}

fn statements<'c>(ops: Vec<Op<'c>>, scope: &mut Scope) -> PassResult<'c, Vec<Statement>> {
    let mut body = Vec::new();
    for op in ops {
        let kind = name(op);
        if let Some(comment) = text(op, "trn.comment") {
            body.push(Statement::Comment(comment));
        }
        match kind.as_str() {
            "trn.alloc" => body.push(Statement::Alloc(scope.alloc(op)?)),
            "scf.for" => body.push(Statement::Loop(repeat(op, scope)?)),
            "trn.view" | "scf.yield" => {}
            _ if kind.starts_with("arith.") => {}
            _ if kind.starts_with("trn.") => {
                let instruction = instruction::read(op, scope)?;
                body.push(Statement::Instruction(Box::new(instruction)));
            }
            _ => {
                return Err(at(
                    op,
                    "expected operations of trn, scf.for and arith in a kernel",
                ));
            }
        }
    }
    Ok(body)
}

/// A discardable attribute that is a text.
fn text(op: Op<'_>, key: &str) -> Option<String> {
    let attribute = op.attribute(key).ok()?;
    Some(
        StringAttribute::try_from(attribute)
            .ok()?
            .value()
            .to_owned(),
    )
}

fn repeat<'c>(op: Op<'c>, scope: &mut Scope) -> PassResult<'c, Loop> {
    let numbers: Option<Vec<i64>> = operands(op).into_iter().map(constant).collect();
    let Some([lower, upper, step]) = numbers.as_deref() else {
        return Err(at(
            op,
            "expected constant bounds and step, and nothing carried, in a kernel",
        ));
    };
    let (lower, upper, step) = (*lower, *upper, *step);
    let blocks = walk::blocks(op);
    let index = blocks.first().and_then(|block| block.argument(0).ok());
    let (Some(block), Some(index)) = (blocks.first(), index) else {
        return Err(at(op, "expected a body"));
    };
    // SAFETY: the argument is a value of a live operation.
    let index: Val<'c> = unsafe { Value::from_raw(index.to_raw()) };
    let index = scope.enter(index, text(op, "trn.index"));
    let body = statements(walk::operations(*block), scope)?;
    Ok(Loop {
        index,
        lower,
        upper,
        step,
        body,
    })
}
