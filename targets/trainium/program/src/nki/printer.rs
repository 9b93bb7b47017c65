//! Statements as lines.

use super::call::Call;
use super::{Generation, index, loops, names};
use crate::program::{Buffer, Loop, Op, Program, Role, Space, Statement, View};
use crate::walk::Refused;
use axe_package::DType;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Prints one program.
pub struct Printer<'a> {
    pub(super) program: &'a Program,
    pub(super) generation: Generation,
    pub(super) buffers: Vec<String>,
    pub(super) indices: Vec<String>,
    /// Tiles that products write: in the old generation they begin as zeros.
    sums: BTreeSet<usize>,
    out: String,
}

/// The name of an element type in `nki.language`.
pub(super) const fn dtype(dtype: DType) -> &'static str {
    match dtype {
        DType::BF16 => "nl.bfloat16",
        DType::F16 => "nl.float16",
        DType::F32 => "nl.float32",
        DType::F8E4M3 => "nl.float8_e4m3",
        DType::F8E5M2 => "nl.float8_e5m2",
        DType::I8 => "nl.int8",
        DType::I16 => "nl.int16",
        DType::I32 => "nl.int32",
        DType::U8 => "nl.uint8",
        DType::U16 => "nl.uint16",
        DType::U32 => "nl.uint32",
        // No tile has them (B5).
        DType::F64 | DType::I64 | DType::U64 | DType::Bool => "nl.float32",
    }
}

impl<'a> Printer<'a> {
    pub fn new(program: &'a Program, generation: Generation) -> Self {
        let (buffers, indices) = names(program);
        let mut sums = BTreeSet::new();
        program.instructions(&mut |instruction, _| {
            if let Op::NcMatmul { dst, .. } = &instruction.op {
                sums.insert(dst.buffer);
            }
        });
        Self {
            program,
            generation,
            buffers,
            indices,
            sums,
            out: String::new(),
        }
    }

    /// The whole source.
    pub fn kernel(mut self) -> Result<String, Refused> {
        self.out.push_str(match self.generation {
            Generation::Old => {
                "import neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\nimport neuronxcc.nki.language as nl\n"
            }
            Generation::New => "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n",
        });
        self.signature();
        let outputs: Vec<usize> = self
            .program
            .with_role(Role::Output)
            .map(|(index, _)| index)
            .collect();
        for index in &outputs {
            let buffer = &self.program.buffers[*index];
            let line = format!(
                "{} = nl.ndarray({}, dtype={}, buffer=nl.shared_hbm)",
                self.buffers[*index],
                tuple(&buffer.shape),
                dtype(buffer.dtype)
            );
            self.line(1, &line);
        }
        self.body(&self.program.body, 1)?;
        let results: Vec<&str> = outputs
            .iter()
            .map(|index| self.buffers[*index].as_str())
            .collect();
        let results = results.join(", ");
        self.line(1, &format!("return {results}"));
        Ok(self.out)
    }

    /// The function's first line, and what its arguments and results are.
    fn signature(&mut self) {
        let arguments: Vec<&str> = self
            .program
            .with_role(Role::Input)
            .map(|(index, _)| self.buffers[index].as_str())
            .collect();
        let head = format!(
            "\n\n@nki.jit\ndef {}({}):\n",
            super::identifier(&self.program.name),
            arguments.join(", ")
        );
        self.out.push_str(&head);
        let buffers = self.program.buffers.iter().zip(&self.buffers);
        let shapes: Vec<String> = buffers
            .filter(|(buffer, _)| buffer.role != Role::Local)
            .map(|(buffer, name)| format!("{name}: {:?} {}", buffer.shape, buffer.dtype))
            .collect();
        let chip = &self.program.chip;
        let line = format!("\"\"\"For {chip}. {}.\"\"\"", shapes.join("; "));
        self.line(1, &line);
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(depth));
    }

    fn body(&mut self, body: &'a [Statement], depth: usize) -> Result<(), Refused> {
        if body
            .iter()
            .all(|statement| matches!(statement, Statement::Comment(_)))
        {
            self.line(depth, "pass");
        }
        for statement in body {
            match statement {
                Statement::Comment(text) => {
                    for line in text.lines() {
                        self.line(depth, &format!("# {line}"));
                    }
                }
                Statement::Alloc(buffer) => self.alloc(*buffer, depth),
                Statement::Loop(inner) => {
                    let head = self.head(inner);
                    self.line(depth, &head);
                    self.body(&inner.body, depth + 1)?;
                }
                Statement::Instruction(instruction) => {
                    let text = Call::new(self, instruction)
                        .text()
                        .map_err(Refused::Arguments)?;
                    self.line(depth, &text);
                }
            }
        }
        Ok(())
    }

    fn head(&self, inner: &Loop) -> String {
        let range = match self.generation {
            Generation::New => "range",
            Generation::Old if loops::is_affine(self.program, inner) => "nl.affine_range",
            Generation::Old => "nl.sequential_range",
        };
        let bounds = match (inner.lower, inner.step) {
            (0, 1) => inner.upper.to_string(),
            (lower, 1) => format!("{lower}, {}", inner.upper),
            (lower, step) => format!("{lower}, {}, {step}", inner.upper),
        };
        format!("for {} in {range}({bounds}):", self.indices[inner.index])
    }

    fn alloc(&mut self, number: usize, depth: usize) {
        let buffer = &self.program.buffers[number];
        let space = match buffer.space {
            Space::Hbm => "nl.hbm",
            Space::Sbuf => "nl.sbuf",
            Space::Psum => "nl.psum",
        };
        let maker = match self.generation {
            Generation::Old if self.sums.contains(&number) => "nl.zeros",
            _ => "nl.ndarray",
        };
        let address = match (self.generation, buffer.place) {
            (Generation::New, Some(place)) if buffer.copies == 1 => {
                format!(", address=({}, {})", place.partition, place.byte)
            }
            _ => String::new(),
        };
        let line = format!(
            "{} = {maker}({}, dtype={}, buffer={space}{address})",
            self.buffers[number],
            self.shape(buffer),
            dtype(buffer.dtype)
        );
        self.line(depth, &line);
    }

    fn shape(&self, buffer: &Buffer) -> String {
        match (self.generation, buffer.shape.split_first()) {
            (Generation::Old, Some((first, rest))) => {
                let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
                format!("(nl.par_dim({first}), {})", rest.join(", "))
            }
            _ => tuple(&buffer.shape),
        }
    }

    /// A view as an expression.
    pub(super) fn view(&self, view: &View) -> String {
        let buffer = &self.program.buffers[view.buffer];
        index::view(
            view,
            buffer,
            &self.buffers[view.buffer],
            &self.indices,
            self.generation,
        )
    }
}

/// Numbers as a tuple of Python.
pub(super) fn tuple(numbers: &[i64]) -> String {
    let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match all.as_slice() {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    }
}
