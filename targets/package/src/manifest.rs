//! The manifest: what a package computes, the memory and the kernels it needs, and the steps that
//! run them. Plain data; `validate` checks it, `instantiate` makes it concrete.
//!
//! One name space holds every piece of memory: inputs, outputs and buffers. All tensors are dense
//! and row-major; strided views are the kernels' own business.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::expr::Expr;
use crate::tensor_map::TensorMapType;

/// The version of the manifest format this crate reads and writes.
pub const MANIFEST_VERSION: u32 = 1;

/// The alignment of every input, output and buffer, unless a buffer asks for more, in bytes.
/// Device allocations have it (CUDA C++ programming guide, "Device memory accesses").
pub const DEFAULT_ALIGNMENT: u64 = 256;

/// A package's description. Order matters in `inputs`, `outputs`, `params` and `steps` only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// The name of the compiled function.
    pub name: String,
    /// The machine the code is for.
    pub target: Target,
    /// The tools that made the package and their versions, for example `ptxas` -> `13.3.33`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    /// The plan that the package was compiled with, when it is one of several that a tuner compares:
    /// the plan's dictionary as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// The SHA-256 of the source text, 64 lower-case hex digits.
    pub source_sha256: String,
    /// The file that holds the source text, when the package carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Dynamic dimensions and other launch-time integers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Symbol>,
    /// Tensors that the caller gives.
    pub inputs: Vec<TensorSpec>,
    /// Tensors that the package writes, every element of them.
    pub outputs: Vec<TensorSpec>,
    /// Intermediate tensors and constants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<Buffer>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// What to do, in order, on one stream.
    pub steps: Vec<Step>,
    /// The package's files. Filled in when a package is written; checked when it is read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileInfo>,
}

/// The machine a package is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The target family, for example `nvidia`.
    pub kind: String,
    /// The chip, for example `sm_90a`.
    pub chip: String,
}

/// A launch-time integer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symbol {
    /// The name that expressions use; an identifier.
    pub name: String,
    /// The dimension of an input that defines it; `None` for one that the caller gives by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<DimRef>,
    /// The smallest value it may take.
    #[serde(default = "one")]
    pub min: i64,
    /// The largest value it may take, if bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Every value is a multiple of this.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiple_of: i64,
}

fn one() -> i64 {
    1
}

fn is_one(value: &i64) -> bool {
    *value == 1
}

impl Symbol {
    /// The unbounded symbol `name` >= 1 that dimension `dim` of `input` defines.
    #[must_use]
    pub fn of_dim(name: impl Into<String>, input: impl Into<String>, dim: usize) -> Self {
        let from = Some(DimRef {
            input: input.into(),
            dim,
        });
        Symbol {
            name: name.into(),
            from,
            min: 1,
            max: None,
            multiple_of: 1,
        }
    }
}

/// A dimension of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DimRef {
    /// The input's name.
    pub input: String,
    /// The dimension, 0 outermost.
    pub dim: usize,
}

/// An input or output. A dimension of an input is a constant or one symbol; a dimension of an
/// output is any expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorSpec {
    /// Its name, an identifier, unique among inputs, outputs and buffers.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The shape, outermost first; dense row-major.
    pub shape: Vec<Expr>,
}

impl TensorSpec {
    /// A tensor of the given name, type and shape.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        dtype: DType,
        shape: impl IntoIterator<Item = Expr>,
    ) -> Self {
        TensorSpec {
            name: name.into(),
            dtype,
            shape: shape.into_iter().collect(),
        }
    }
}

/// Memory of the package's own: an intermediate tensor, a workspace or a constant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name, an identifier, unique among inputs, outputs and buffers.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The shape, outermost first; dense row-major.
    pub shape: Vec<Expr>,
    /// The alignment in bytes, a power of two.
    #[serde(
        default = "default_alignment",
        skip_serializing_if = "is_default_alignment"
    )]
    pub align: u64,
    /// What it holds before the first step.
    #[serde(default)]
    pub init: BufferInit,
}

fn default_alignment() -> u64 {
    DEFAULT_ALIGNMENT
}

fn is_default_alignment(value: &u64) -> bool {
    *value == DEFAULT_ALIGNMENT
}

/// What a buffer holds before the first step of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BufferInit {
    /// Nothing: no kernel reads an element before a kernel has written it. A checking run fills
    /// it with the poison byte 0xFF.
    #[default]
    Undefined,
    /// Zeros, once, when the package is loaded. A kernel that counts in it must leave it zero.
    ZeroOnLoad,
    /// Zeros, before every run.
    Zero,
    /// The bytes of a file of the package, little-endian, dense row-major; no kernel writes it.
    Data {
        /// The file's name in the package.
        file: String,
    },
}

/// A kernel: its code, its parameters and how it is launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name in the package and in messages.
    pub name: String,
    /// The entry symbol in the code.
    pub symbol: String,
    /// The file with the cubin, if there is one. Several kernels may share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cubin: Option<String>,
    /// The file with the PTX, if there is one: what the driver compiles when the cubin does not
    /// fit the device, and what the simulator runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ptx: Option<String>,
    /// The file with the kernel as data, for targets whose machine code is not public.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Files with the kernel's source for people, in the vendor's language.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The parameters in the order of the entry's parameter list.
    pub params: Vec<Param>,
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z, if launched in clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    #[serde(default)]
    pub dynamic_shared_bytes: u32,
    /// What the assembler reported, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// The assembler's report on one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of register spill stores and loads.
    pub spill_bytes: u32,
    /// Static shared memory in bytes.
    pub static_shared_bytes: u32,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    /// Its name, for messages.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// The kinds of kernel parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ParamKind {
    /// A 64-bit global address.
    Pointer {
        /// How the kernel uses the memory behind it.
        access: Access,
        /// The alignment that the kernel's accesses rely on, in bytes, a power of two.
        #[serde(default = "one_u64")]
        align: u64,
    },
    /// A number by value.
    Scalar {
        /// Its type.
        #[serde(rename = "type")]
        ty: ScalarType,
    },
    /// A 128-byte tensor map by value, 64-byte aligned (PTX ISA, "Tensor-map").
    TensorMap {
        /// How the kernel uses the memory behind it.
        access: Access,
        /// What the kernel was compiled for.
        map: TensorMapType,
    },
}

fn one_u64() -> u64 {
    1
}

/// How a kernel uses a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Reads and writes.
    ReadWrite,
}

impl Access {
    /// True if the kernel writes through it.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite)
    }
}

/// The type of a scalar parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScalarType {
    /// 32-bit integer; a value from -2^31 to 2^32 - 1 fits.
    I32,
    /// 64-bit integer.
    I64,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl ScalarType {
    /// The size in the parameter buffer in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            ScalarType::I32 | ScalarType::F32 => 4,
            ScalarType::I64 | ScalarType::F64 => 8,
        }
    }
}

/// One thing to do on the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Launch a kernel.
    Launch(Launch),
    /// Set every byte of a piece of memory.
    Fill {
        /// Where.
        to: MemRef,
        /// How many bytes.
        bytes: Expr,
        /// The byte.
        value: u8,
    },
    /// Copy between two pieces of memory that do not overlap.
    Copy {
        /// From where.
        from: MemRef,
        /// To where.
        to: MemRef,
        /// How many bytes.
        bytes: Expr,
    },
    /// Two numbers must be equal; otherwise no step of the package runs.
    Assert {
        /// The numbers.
        equal: [Expr; 2],
        /// Why, for people.
        message: String,
    },
}

impl Step {
    /// Calls `change` with each expression of the step.
    pub fn for_each_expr_mut(&mut self, mut change: impl FnMut(&mut Expr)) {
        match self {
            Step::Launch(launch) => {
                launch.grid.iter_mut().for_each(&mut change);
                for arg in &mut launch.args {
                    arg.for_each_expr_mut(&mut change);
                }
            }
            Step::Fill { to, bytes, .. } => {
                change(&mut to.offset_bytes);
                change(bytes);
            }
            Step::Copy { from, to, bytes } => {
                change(&mut from.offset_bytes);
                change(&mut to.offset_bytes);
                change(bytes);
            }
            Step::Assert { equal, .. } => equal.iter_mut().for_each(change),
        }
    }
}

impl Arg {
    fn for_each_expr_mut(&mut self, change: &mut impl FnMut(&mut Expr)) {
        match self {
            Arg::Memory(at) => change(&mut at.offset_bytes),
            Arg::Int(number) => change(number),
            Arg::Float(_) => {}
            Arg::Tensor {
                at,
                dims,
                strides_bytes,
            } => {
                change(&mut at.offset_bytes);
                dims.iter_mut().chain(strides_bytes).for_each(change);
            }
        }
    }
}

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// One argument for each of the kernel's parameters.
    pub args: Vec<Arg>,
    /// Blocks of the grid in x, y, z. A launch whose grid has a zero is skipped.
    pub grid: [Expr; 3],
    /// May start before the launch before it ends (programmatic dependent launch); the kernel
    /// itself waits with `griddepcontrol.wait`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlaps_previous: bool,
}

/// A place in an input, output or buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemRef {
    /// The name of an input, output or buffer.
    pub name: String,
    /// The offset from its start in bytes.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub offset_bytes: Expr,
}

fn zero() -> Expr {
    Expr::Const(0)
}

fn is_zero(expr: &Expr) -> bool {
    *expr == Expr::Const(0)
}

impl MemRef {
    /// The start of `name`.
    #[must_use]
    pub fn start_of(name: impl Into<String>) -> Self {
        MemRef {
            name: name.into(),
            offset_bytes: zero(),
        }
    }
}

/// What a launch passes for one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arg {
    /// The address of a piece of memory, for a pointer.
    Memory(MemRef),
    /// An integer, for a scalar of any type.
    Int(Expr),
    /// A floating-point number, for a scalar of type `f32` or `f64`.
    Float(f64),
    /// The tensor behind a tensor map.
    Tensor {
        /// Where its first element lies.
        at: MemRef,
        /// The extents in elements, *innermost first* as in `cuTensorMapEncodeTiled`.
        dims: Vec<Expr>,
        /// The strides in bytes of the dimensions 1, 2, ... (the innermost is dense), one fewer
        /// than `dims`.
        strides_bytes: Vec<Expr>,
    },
}

/// The size and hash of a file of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileInfo {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, 64 lower-case hex digits.
    pub sha256: String,
}
