//! The syntax tree of a PTX module, as written.

use std::collections::HashMap;

/// A whole PTX module.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// `.version`, major and minor.
    pub version: (u32, u32),
    /// `.target`, such as `sm_90a`.
    pub target: String,
    /// `.file` table: number and name.
    pub files: Vec<(u32, String)>,
    /// Strings of `.section .debug_str` by label.
    pub strings: Vec<(String, String)>,
    /// Variables at module scope.
    pub variables: Vec<Variable>,
    /// Kernels and functions, declarations included.
    pub functions: Vec<Function>,
    /// `.alias`: a function's other name, and its name.
    pub aliases: Vec<(String, String)>,
}

/// State space of a variable (PTX ISA 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Generic address.
    Generic,
    /// Global memory.
    Global,
    /// Shared memory of the CTA or the cluster.
    Shared,
    /// Per-thread memory.
    Local,
    /// Constant memory.
    Const,
    /// Kernel or function parameters.
    Param,
    /// A register used as a parameter.
    Reg,
}

/// A declared variable or parameter.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Where it lives.
    pub space: Space,
    /// Alignment in bytes.
    pub align: u64,
    /// Element type, such as `b32`.
    pub ty: String,
    /// Element size in bytes.
    pub element: u64,
    /// Number of elements; `None` for an unsized extern array.
    pub count: Option<u64>,
    /// Name.
    pub name: String,
    /// Initial values, in elements.
    pub init: Vec<Init>,
    /// Whether the variable is `.extern`.
    pub external: bool,
}

impl Variable {
    /// Size in bytes; zero if unsized.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.element.saturating_mul(self.count.unwrap_or(0))
    }
}

/// One initial value.
#[derive(Debug, Clone, PartialEq)]
pub enum Init {
    /// Bits of an integer or float of the element's size.
    Bits(u64),
    /// Address of a symbol plus an offset; `generic` says whether it is a generic address, `byte`
    /// picks one byte (`0xFF00(name)` initialisers).
    Address {
        /// Symbol's name.
        name: String,
        /// Offset in bytes.
        offset: i64,
        /// Whether `generic(...)` was written.
        generic: bool,
        /// Bits of the address to keep, shifted down.
        mask: Option<u64>,
    },
}

/// A kernel or a function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Whether it is an `.entry`.
    pub entry: bool,
    /// Return parameters.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// Performance directives: name and values (`reqntid` 384 1 1).
    pub directives: Vec<(String, Vec<u64>)>,
    /// Statements; `None` for a declaration.
    pub body: Option<Vec<Stmt>>,
    /// Line of the definition.
    pub line: u32,
}

/// A place in the source: file number, line, column.
pub type SourcePlace = (u32, u32, u32);

/// `.loc` (PTX ISA 11.5.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loc {
    /// Where the code was written.
    pub place: SourcePlace,
    /// Label in `.debug_str` of the function that the code was inlined from, and where it was inlined.
    pub inlined: Option<(String, SourcePlace)>,
}

/// A statement of a body.
#[derive(Debug, Clone)]
pub enum Stmt {
    /// `.reg` declaration: type, name and `<count>`.
    Reg {
        /// Type, such as `b32` or `pred`.
        ty: String,
        /// Name or prefix.
        name: String,
        /// Number of registers `name0 ..` when written with `<n>`.
        count: Option<u32>,
    },
    /// A variable.
    Variable(Variable),
    /// A label.
    Label(String, u32),
    /// A list of names behind a label: `.branchtargets` or `.calltargets`.
    Targets(String, Vec<String>),
    /// `.callprototype`: nothing of it is needed.
    Prototype,
    /// A scope.
    Block(Vec<Stmt>),
    /// `.loc`: the source of what follows.
    Loc(Loc),
    /// An instruction.
    Inst(Inst),
}

/// An instruction as written.
#[derive(Debug, Clone)]
pub struct Inst {
    /// Guard predicate: name, and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// Opcode and its dotted modifiers: `["ld", "global", "b32"]`.
    pub op: Vec<String>,
    /// Operands.
    pub operands: Vec<Operand>,
    /// PTX line.
    pub line: u32,
    /// PTX column.
    pub column: u32,
}

impl Inst {
    /// The mnemonic with its dots.
    #[must_use]
    pub fn mnemonic(&self) -> String {
        self.op.join(".")
    }
}

impl Operand {
    /// The names in it.
    fn names<'o>(&'o self, seen: &mut dyn FnMut(&'o str)) {
        match self {
            Self::Name(name) | Self::Not(name) | Self::Minus(name) | Self::Offset(name, _) => {
                seen(name);
            }
            Self::Int(_) | Self::F32(_) | Self::F64(_) | Self::Sink => {}
            Self::Pair(a, b) => {
                a.names(seen);
                b.names(seen);
            }
            Self::Vector(all) | Self::List(all) => all.iter().for_each(|one| one.names(seen)),
            Self::Memory(base, _, more) => {
                base.names(seen);
                more.iter().for_each(|one| one.names(seen));
            }
        }
    }
}

/// How often each name stands in the instructions of a body.
#[must_use]
pub fn mentions(body: &[Stmt]) -> HashMap<&str, u32> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut left = vec![body];
    while let Some(body) = left.pop() {
        for statement in body {
            match statement {
                Stmt::Block(inner) => left.push(inner),
                Stmt::Inst(inst) => {
                    if let Some((guard, _)) = &inst.guard {
                        *counts.entry(guard).or_insert(0) += 1;
                    }
                    for operand in &inst.operands {
                        operand.names(&mut |name| *counts.entry(name).or_insert(0) += 1);
                    }
                }
                _ => {}
            }
        }
    }
    counts
}

/// An operand as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// Register, variable, label or special register.
    Name(String),
    /// Integer.
    Int(u64),
    /// Bits of a single.
    F32(u32),
    /// Bits of a double.
    F64(u64),
    /// `_`.
    Sink,
    /// `!p`.
    Not(String),
    /// `-r`, which `vmad` takes.
    Minus(String),
    /// `name+offset` outside brackets.
    Offset(String, i64),
    /// `a|b`.
    Pair(Box<Operand>, Box<Operand>),
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// `(a, b)`.
    List(Vec<Operand>),
    /// `[base+offset, more...]`.
    Memory(Box<Operand>, i64, Vec<Operand>),
}
