//! A kernel as plain data: what the `trn` dialect is translated to, what a package carries, and all that the rules, the
//! simulator, the cost model and the NKI printer read.
//!
//! A program is a list of statements over buffers. A loop has constant bounds; an index is an expression of the loops
//! around it. Its meaning is sequential: engines run side by side as far as data allow.

pub mod alu;
pub mod build;
pub mod expr;
mod number;
pub mod op;
pub mod structure;
pub mod view;

use crate::facts::chip::{self, Chip, Engine};
use axe_package::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use alu::{Alu, Function};
pub use build::Builder;
pub use expr::Expr;
pub use op::{Accumulate, Op, Operand, Reduction, Scalar, Step};
pub use view::{Axis, View};

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    /// The device's memory: row-major, without partitions.
    Hbm,
    /// The scratchpad: dimension 0 counts partitions, the others are row-major in each.
    Sbuf,
    /// The accumulators: as SBUF, in banks.
    Psum,
}

impl Space {
    /// The name in the IR and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Space::Hbm => "hbm",
            Space::Sbuf => "sbuf",
            Space::Psum => "psum",
        }
    }

    /// Whether dimension 0 counts partitions.
    #[must_use]
    pub const fn has_partitions(self) -> bool {
        !matches!(self, Space::Hbm)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a buffer is to the kernel's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// An argument that is only read.
    Input,
    /// A result, unwritten at the start.
    Output,
    /// Made by a [`Statement::Alloc`].
    Local,
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Where a buffer begins on chip: a partition, and a byte in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The first partition.
    pub partition: i64,
    /// The first byte in each partition.
    pub byte: i64,
}

/// A tensor of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its name, unique in the program.
    pub name: String,
    /// Where it is.
    pub space: Space,
    /// Its extents; dimension 0 counts partitions where the space has them.
    pub shape: Vec<i64>,
    /// Its element type.
    pub dtype: DType,
    /// What it is to the caller.
    pub role: Role,
    /// How many copies take turns, one for each execution of its [`Statement::Alloc`].
    pub copies: i64,
    /// Where the first copy begins; chosen by [`crate::place`] when absent.
    pub place: Option<Place>,
    /// Where it is in the source.
    pub location: Option<Location>,
}

impl Buffer {
    /// Elements that one index step of each dimension moves by: in memory for HBM, in a partition on chip, where
    /// dimension 0 has 0.
    #[must_use]
    pub fn strides(&self) -> Vec<i64> {
        let mut strides = vec![0; self.shape.len()];
        let mut stride = 1i64;
        let first = usize::from(self.space.has_partitions());
        for index in (first..self.shape.len()).rev() {
            strides[index] = stride;
            stride = stride.saturating_mul(self.shape[index]);
        }
        strides
    }

    /// Elements in a partition, or all of them in HBM.
    #[must_use]
    pub fn elements(&self) -> i64 {
        let first = usize::from(self.space.has_partitions());
        self.shape
            .iter()
            .skip(first)
            .fold(1i64, |product, extent| product.saturating_mul(*extent))
    }

    /// Bytes in a partition, or all of them in HBM.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.elements().saturating_mul(self.dtype.bytes() as i64)
    }

    /// Its partitions; 1 in HBM.
    #[must_use]
    pub fn partitions(&self) -> i64 {
        match self.space.has_partitions() {
            true => self.shape.first().copied().unwrap_or(0),
            false => 1,
        }
    }
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// The engine that does it.
    pub engine: Engine,
    /// Where it is in the source.
    pub location: Option<Location>,
}

/// A loop: `index` runs from `lower` to below `upper`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// The number of its index among the program's.
    pub index: usize,
    /// The first value.
    pub lower: i64,
    /// The bound above.
    pub upper: i64,
    /// What is added each time, at least 1.
    pub step: i64,
    /// What it repeats.
    pub body: Vec<Statement>,
}

impl Loop {
    /// How often it runs.
    #[must_use]
    pub fn trips(&self) -> i64 {
        match self.upper.checked_sub(self.lower) {
            Some(span) if span > 0 && self.step > 0 => (span - 1) / self.step + 1,
            _ => 0,
        }
    }
}

/// One statement of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statement {
    /// A loop.
    Loop(Loop),
    /// Makes a local buffer anew: its elements are unwritten, its accumulation not begun.
    Alloc(usize),
    /// An instruction.
    Instruction(Box<Instruction>),
    /// A remark of the author's, which the NKI printer keeps.
    Comment(String),
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The chip that it is for.
    pub chip: String,
    /// Its buffers: arguments in order, results, locals.
    pub buffers: Vec<Buffer>,
    /// The names of the loops' indices.
    pub indices: Vec<String>,
    /// What it does.
    pub body: Vec<Statement>,
}

impl Program {
    /// The facts of its chip; `None` when there is no such chip.
    #[must_use]
    pub fn chip(&self) -> Option<&'static Chip> {
        chip::chip(&self.chip)
    }

    /// Visits every instruction once, with the loops around it, outermost first.
    pub fn instructions<'a>(&'a self, visit: &mut dyn FnMut(&'a Instruction, &[&'a Loop])) {
        fn walk<'a>(
            body: &'a [Statement],
            loops: &mut Vec<&'a Loop>,
            visit: &mut dyn FnMut(&'a Instruction, &[&'a Loop]),
        ) {
            for statement in body {
                match statement {
                    Statement::Loop(inner) => {
                        loops.push(inner);
                        walk(&inner.body, loops, visit);
                        loops.pop();
                    }
                    Statement::Instruction(instruction) => visit(instruction, loops),
                    Statement::Alloc(_) | Statement::Comment(_) => {}
                }
            }
        }
        walk(&self.body, &mut Vec::new(), visit);
    }

    /// The buffers of one role, with their numbers.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = (usize, &Buffer)> {
        self.buffers
            .iter()
            .enumerate()
            .filter(move |(_, buffer)| buffer.role == role)
    }
}
