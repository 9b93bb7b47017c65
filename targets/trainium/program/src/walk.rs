//! A program as it executes: its instructions one after the other, each with the memory that it names.

use crate::facts::chip::Chip;
use crate::place::{self, DoesNotFit};
use crate::program::structure::{self, Malformed};
use crate::program::view::Access;
use crate::program::{Instruction, Place, Program, Space, Statement};
use crate::rules::buffer::copy_bytes;
use crate::rules::{self, Violation};
use thiserror::Error;

/// Why a program cannot be executed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Refused {
    /// It says nothing.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It breaks rules whatever it is given.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Rules(Vec<Violation>),
    /// Its buffers do not fit.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
    /// What it was given does not fit its arguments.
    #[error("{0}")]
    Arguments(String),
}

/// A program that breaks no rule that is known before it executes, with its buffers placed.
#[derive(Debug)]
pub struct Ready<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its chip.
    pub chip: &'static Chip,
    /// Where each local buffer begins.
    pub places: Vec<Option<Place>>,
}

/// An operand of one execution.
#[derive(Clone, Debug)]
pub struct Located {
    /// The parameter's name.
    pub role: &'static str,
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written.
    pub writes: bool,
    /// Where it is.
    pub space: Space,
    /// What it names, relative to its buffer.
    pub access: Access,
    /// The partition of the space that partition 0 of the buffer is.
    pub partition: i64,
    /// The byte of the partition (of the buffer, in HBM) at which the copy in turn begins.
    pub byte: i64,
}

/// One execution of an instruction.
#[derive(Debug)]
pub struct Execution<'a> {
    /// Its number among all executions.
    pub number: usize,
    /// The number of its instruction in the program's text.
    pub instruction_number: usize,
    /// The instruction.
    pub instruction: &'a Instruction,
    /// Where all loops stand, by the number of their index.
    pub indices: &'a [i64],
    /// The loops around it, outermost first.
    pub loops: &'a [usize],
    /// Its operands, in the order of [`crate::program::Op::operands`].
    pub operands: Vec<Located>,
}

/// Something that happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// A buffer is made anew: its number, the copy in turn, and its first byte.
    Alloc(usize, i64),
    /// An instruction is executed.
    Execution(Execution<'a>),
    /// An instruction is not executed, as an index of it has no value or leaves its buffer: which rule, and why.
    Invalid(Execution<'a>, Vec<(&'static str, String)>),
}

impl<'a> Ready<'a> {
    /// Checks a program and places its buffers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(program: &'a Program) -> Result<Self, Refused> {
        structure::check(program)?;
        let chip = program.chip().ok_or_else(|| Malformed("no chip".into()))?;
        let violations = rules::check(program);
        if !violations.is_empty() {
            return Err(Refused::Rules(violations));
        }
        let places = place::place(program, chip)?;
        Ok(Self {
            program,
            chip,
            places,
        })
    }

    /// Executes the loops, and gives every event in order.
    pub fn walk(&self, visit: &mut dyn FnMut(Event<'_>)) {
        let mut walk = Walk {
            ready: self,
            indices: vec![0; self.program.indices.len()],
            loops: Vec::new(),
            turns: vec![-1; self.program.buffers.len()],
            number: 0,
        };
        walk.body(&self.program.body, 0, visit);
    }
}

struct Walk<'r, 'a> {
    ready: &'r Ready<'a>,
    indices: Vec<i64>,
    loops: Vec<usize>,
    /// How often each buffer was made, less one.
    turns: Vec<i64>,
    number: usize,
}

/// The instructions in a list of statements.
fn count(body: &[Statement]) -> usize {
    body.iter()
        .map(|statement| match statement {
            Statement::Loop(inner) => count(&inner.body),
            Statement::Instruction(_) => 1,
            Statement::Alloc(_) | Statement::Comment(_) => 0,
        })
        .sum()
}

impl Walk<'_, '_> {
    fn body(&mut self, body: &[Statement], first: usize, visit: &mut dyn FnMut(Event<'_>)) {
        let mut text_number = first;
        for statement in body {
            match statement {
                Statement::Comment(_) => {}
                Statement::Alloc(buffer) => {
                    self.turns[*buffer] += 1;
                    let byte = self.first_byte(*buffer);
                    visit(Event::Alloc(*buffer, byte));
                }
                Statement::Instruction(instruction) => {
                    self.execute(instruction, text_number, visit);
                    text_number += 1;
                }
                Statement::Loop(inner) => {
                    self.loops.push(inner.index);
                    let mut at = inner.lower;
                    for _ in 0..inner.trips() {
                        self.indices[inner.index] = at;
                        self.body(&inner.body, text_number, visit);
                        at = at.saturating_add(inner.step);
                    }
                    self.loops.pop();
                    text_number += count(&inner.body);
                }
            }
        }
    }

    /// Where the copy of a local buffer that is in turn begins.
    fn first_byte(&self, number: usize) -> i64 {
        let buffer = &self.ready.program.buffers[number];
        let begin = self.ready.places[number].map_or(0, |place| place.byte);
        begin + self.turns[number].max(0) % buffer.copies * copy_bytes(buffer)
    }

    fn execute(
        &mut self,
        instruction: &Instruction,
        text_number: usize,
        visit: &mut dyn FnMut(Event<'_>),
    ) {
        let program = self.ready.program;
        let (mut operands, mut invalid) = (Vec::new(), Vec::new());
        for operand in instruction.op.operands() {
            let buffer = &program.buffers[operand.view.buffer];
            let Some(access) = operand.view.access(buffer, &self.indices) else {
                invalid.push(("O5", format!("{}: its index has no value", operand.role)));
                continue;
            };
            let engine = instruction.engine;
            let found =
                rules::operand::check_access(operand.view, &access, buffer, &self.indices, engine);
            invalid.extend(
                found
                    .into_iter()
                    .map(|(rule, why)| (rule, format!("{}: {why}", operand.role))),
            );
            if operand.role == "dst"
                && matches!(instruction.op, crate::program::Op::NcMatmul { .. })
                && let Some(message) = rules::matrix::crosses_bank(&access, buffer)
            {
                invalid.push(("MM5", message));
            }
            operands.push(Located {
                role: operand.role,
                reads: operand.reads,
                writes: operand.writes,
                space: buffer.space,
                access,
                partition: self.ready.places[operand.view.buffer]
                    .map_or(0, |place| place.partition),
                byte: match buffer.space {
                    Space::Hbm => 0,
                    _ => self.first_byte(operand.view.buffer),
                },
            });
        }
        let execution = Execution {
            number: self.number,
            instruction_number: text_number,
            instruction,
            indices: &self.indices,
            loops: &self.loops,
            operands,
        };
        self.number += 1;
        visit(match invalid.is_empty() {
            true => Event::Execution(execution),
            false => Event::Invalid(execution, invalid),
        });
    }
}

impl Execution<'_> {
    /// The loops around it and where they stand, as messages name them.
    #[must_use]
    pub fn iteration(&self, program: &Program) -> Vec<(String, i64)> {
        self.loops
            .iter()
            .map(|index| (program.indices[*index].clone(), self.indices[*index]))
            .collect()
    }
}
