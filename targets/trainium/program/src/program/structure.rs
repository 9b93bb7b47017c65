//! Whether a program is well formed: every number in it names something. All that reads programs asks this first, as they
//! may come from a file.

use super::{Buffer, Expr, Program, Role, Statement, View};
use std::collections::BTreeSet;
use thiserror::Error;

/// A program that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("malformed program: {0}")]
pub struct Malformed(pub String);

/// Loops nest at most so deep, and programs execute at most so many instructions: what comes from a file shall end.
const MOST_LOOPS: usize = 64;
/// Executions of instructions of one program at most.
const MOST_EXECUTIONS: i64 = 1 << 26;

fn malformed<T>(message: String) -> Result<T, Malformed> {
    Err(Malformed(message))
}

/// Checks the structure of a program.
///
/// # Errors
/// The first number that names nothing, the first extent, step or bound that is none.
pub fn check(program: &Program) -> Result<(), Malformed> {
    if program.chip().is_none() {
        return malformed(format!("unknown chip '{}'", program.chip));
    }
    let mut names = BTreeSet::new();
    for buffer in &program.buffers {
        if !names.insert(&buffer.name) {
            return malformed(format!("two buffers are called '{}'", buffer.name));
        }
        check_buffer(buffer)?;
    }
    let mut walk = Walk {
        program,
        open: Vec::new(),
        made: BTreeSet::new(),
    };
    walk.body(&program.body, 1).map(|_| ())
}

fn check_buffer(buffer: &Buffer) -> Result<(), Malformed> {
    let name = &buffer.name;
    let least = if buffer.space.has_partitions() { 2 } else { 1 };
    if buffer.shape.len() < least || buffer.shape.iter().any(|extent| *extent < 1) {
        return malformed(format!(
            "buffer '{name}': expected at least {least} extents of at least 1, got {:?}",
            buffer.shape
        ));
    }
    let all = buffer.bytes().checked_mul(buffer.partitions());
    if all.is_none_or(|bytes| bytes >= 1 << 44) {
        return malformed(format!(
            "buffer '{name}' of {:?} is too large",
            buffer.shape
        ));
    }
    if !(1..=1024).contains(&buffer.copies) {
        return malformed(format!(
            "buffer '{name}': expected 1 to 1024 copies, got {}",
            buffer.copies
        ));
    }
    let local = buffer.role == Role::Local;
    if !local && (buffer.space.has_partitions() || buffer.copies != 1 || buffer.place.is_some()) {
        return malformed(format!("argument '{name}': expected one copy, in HBM"));
    }
    Ok(())
}

struct Walk<'a> {
    program: &'a Program,
    open: Vec<usize>,
    made: BTreeSet<usize>,
}

impl Walk<'_> {
    /// Executions of instructions that this body makes when it is entered `times` times.
    fn body(&mut self, body: &[Statement], times: i64) -> Result<i64, Malformed> {
        let mut executions = 0i64;
        for statement in body {
            let more = match statement {
                Statement::Comment(_) => 0,
                Statement::Alloc(buffer) => self.alloc(*buffer, times)?,
                Statement::Instruction(instruction) => {
                    for operand in instruction.op.operands() {
                        self.view(operand.view)?;
                    }
                    times
                }
                Statement::Loop(inner) => {
                    let times = times.saturating_mul(inner.trips());
                    self.enter(inner.index, inner.step)?;
                    let executions = self.body(&inner.body, times)?;
                    self.open.pop();
                    executions
                }
            };
            executions = executions.saturating_add(more);
            if executions > MOST_EXECUTIONS {
                return malformed(format!(
                    "more than {MOST_EXECUTIONS} executions of instructions"
                ));
            }
        }
        Ok(executions)
    }

    fn enter(&mut self, index: usize, step: i64) -> Result<(), Malformed> {
        if index >= self.program.indices.len() || self.open.contains(&index) {
            return malformed(format!("loop over index {index}, which is not free"));
        }
        if step < 1 || self.open.len() >= MOST_LOOPS {
            return malformed(format!(
                "loop with step {step} inside {} others",
                self.open.len()
            ));
        }
        self.open.push(index);
        Ok(())
    }

    fn alloc(&mut self, buffer: usize, times: i64) -> Result<i64, Malformed> {
        let known = self.program.buffers.get(buffer);
        if known.is_none_or(|known| known.role != Role::Local) || !self.made.insert(buffer) {
            return malformed(format!(
                "buffer {buffer} is no local buffer, or is made twice"
            ));
        }
        Ok(times)
    }

    fn view(&self, view: &View) -> Result<(), Malformed> {
        let Some(buffer) = self.program.buffers.get(view.buffer) else {
            return malformed(format!(
                "a view of buffer {}, which there is not",
                view.buffer
            ));
        };
        let name = &buffer.name;
        if buffer.role == Role::Local && !self.made.contains(&view.buffer) {
            return malformed(format!("a view of '{name}' before it is made"));
        }
        if view.origin.len() != buffer.shape.len() {
            return malformed(format!(
                "a view of '{name}' with {} origins",
                view.origin.len()
            ));
        }
        let elements = view
            .axes
            .iter()
            .try_fold(1i64, |product, axis| product.checked_mul(axis.size));
        let sound = !view.axes.is_empty()
            && elements.is_some_and(|elements| elements <= 1 << 40)
            && view.axes.iter().all(|axis| {
                axis.size >= 1
                    && axis.step.unsigned_abs() <= 1 << 40
                    && axis.of.is_none_or(|of| of < buffer.shape.len())
            });
        if !sound {
            return malformed(format!("a view of '{name}' with axes {:?}", view.axes));
        }
        view.origin.iter().try_for_each(|origin| self.expr(origin))
    }

    fn expr(&self, expr: &Expr) -> Result<(), Malformed> {
        let mut free = None;
        expr.indices(&mut |index| {
            if !self.open.contains(&index) {
                free = Some(index);
            }
        });
        match free {
            None => Ok(()),
            Some(index) => malformed(format!("index {index} is used outside its loop")),
        }
    }
}
