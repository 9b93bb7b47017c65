//! The decoded form of a module: registers, labels and constants resolved, ready to execute.
//!
//! Every register is a slot of 32 lanes; immediates, special registers and addresses of variables
//! are slots too, filled when a frame is entered, so that an instruction reads slots and nothing else.

mod alu;
mod cfg;
mod floating;
mod forms;
mod integer;
pub mod lanes;
mod lower;
mod memory;
mod mma;
mod module;
mod op;
mod sync;
mod tcgen05;
mod tensor;
mod video;
mod wmma;

pub use forms::{
    Access, Atom, AtomOp, Bulk, Callee, Combine, CpAsync, MbarOp, Order, Passed, PredSrc, Setp,
    ShflMode,
};
pub use module::decode;
pub use op::{Inst, MOD_FTZ, MOD_FTZ_BF16, MOD_FTZ_F16, MOD_SAT, MOD_SAT64, Op};

use std::collections::HashMap;

pub use mma::{MmaForm, MmaUnit};
pub use tcgen05::{Kind32, Tcgen05, TensorA, TensorAccess, TensorMma, TensorReduce};
pub use tensor::{Ldmatrix, Tensor, TensorDirection, Wgmma, WgmmaA};

pub use wmma::{WmmaForm, WmmaMove};

/// Index of a register within its frame.
pub type Slot = u32;
/// Index of a predicate within its frame; predicate 0 is always true.
pub type Pred = u32;

/// Base of the window through which generic addresses reach shared memory.
pub const SHARED_WINDOW: u64 = 0x1000_0000_0000;
/// Base of the window through which generic addresses reach the thread's local memory.
pub const LOCAL_WINDOW: u64 = 0x2000_0000_0000;
/// Base of the window through which generic addresses reach kernel parameters.
pub const PARAM_WINDOW: u64 = 0x3000_0000_0000;
/// Bits of a shared address above the offset: the CTA's rank in its cluster.
pub const RANK_SHIFT: u32 = 24;
/// First byte of shared memory that a kernel owns: the system keeps 1 KiB on `sm_80` and later
/// (CUDA C Programming Guide, compute capability 8.x, "reserved shared memory").
pub const SHARED_BASE: u64 = 1024;

/// A decoded module.
#[derive(Debug, Default)]
pub struct Program {
    /// Functions and kernels.
    pub functions: Vec<Func>,
    /// Index of a function by name.
    pub by_name: HashMap<String, usize>,
    /// Variables in global and constant memory.
    pub globals: Vec<crate::ptx::ast::Variable>,
    /// Variables in shared memory.
    pub shared: Vec<SharedVar>,
    /// `.file` names.
    pub files: HashMap<u32, String>,
    /// Places in the source that instructions come from.
    pub locs: Vec<Loc>,
    /// Strings of `.debug_str` by label.
    pub strings: HashMap<String, String>,
    /// Instructions that are not supported: what executes them stops.
    pub unsupported: Vec<crate::ptx::PtxError>,
    /// Whether threads may talk to one another through strong accesses of memory.
    pub communicates: bool,
    /// `.target`.
    pub target: String,
    /// Whether any function uses tensor memory.
    pub tensor_memory: bool,
}

/// A place in the source, and where it was inlined.
#[derive(Debug, Clone)]
pub struct Loc {
    /// File number, line, column.
    pub place: crate::ptx::ast::SourcePlace,
    /// Function that the code was inlined from (a label of [`Program::strings`]), and the index of the
    /// place that it was inlined at.
    pub inlined: Option<(String, u32)>,
}

/// A variable in shared memory.
#[derive(Debug, Clone)]
pub struct SharedVar {
    /// Name.
    pub name: String,
    /// Size in bytes; zero for the dynamic array.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Whether it is the dynamic array (`.extern .shared x[]`).
    pub dynamic: bool,
}

/// A parameter's place in its block.
#[derive(Debug, Clone)]
pub struct Param {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: String,
    /// Alignment in bytes.
    pub align: u64,
    /// Offset in bytes: in the parameter block of a kernel, in the local frame of a function.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Register that holds it, for `.reg` parameters.
    pub slot: Option<Slot>,
}

/// A decoded function or kernel.
#[derive(Debug, Default)]
pub struct Func {
    /// Name.
    pub name: String,
    /// Whether it is a kernel.
    pub entry: bool,
    /// Instructions.
    pub insts: Vec<Inst>,
    /// Number of register slots.
    pub slots: u32,
    /// Number of predicates.
    pub preds: u32,
    /// Slots filled on entry.
    pub preload: Vec<(Slot, Preload)>,
    /// By slot, whether it is filled on entry and never written.
    pub fixed: Vec<bool>,
    /// Parameters.
    pub params: Vec<Param>,
    /// Return values.
    pub returns: Vec<Param>,
    /// Size of the kernel's parameter block in bytes.
    pub param_bytes: u64,
    /// Size of the local frame in bytes.
    pub frame_bytes: u64,
    /// Variables in the local frame.
    pub locals: Vec<LocalVar>,
    /// Shared variables named (indices into [`Program::shared`]).
    pub shared: Vec<usize>,
    /// Functions called by name.
    pub calls: Vec<usize>,
    /// Whether it calls through a pointer.
    pub calls_indirect: bool,
    /// `.reqntid`.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`, as a product.
    pub max_threads: Option<u64>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
    /// `.minnctapersm`.
    pub min_ctas: Option<u32>,
    /// `.reqnctapercluster`.
    pub required_cluster: Option<[u32; 3]>,
    /// Registers that hold wgmma or other asynchronous results.
    pub has_wgmma: bool,
    /// Whether its `tcgen05` instructions name `.cta_group::2`; `None` if none names a group.
    pub cta_pair: Option<bool>,
}

/// A variable in a function's local frame.
#[derive(Debug, Clone)]
pub struct LocalVar {
    /// Name.
    pub name: String,
    /// Offset in the frame in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is `.param`: an argument or a result of a call.
    pub param: bool,
}

/// What a slot holds when its frame is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preload {
    /// The same bits in every lane.
    Bits(u64),
    /// A special register.
    Special(Special),
    /// Address of a shared variable (index into [`Program::shared`]) plus an offset.
    Shared(usize, i64),
    /// Address in the frame's local memory.
    Local(u64),
    /// Address of a global variable (index into [`Program::globals`]) plus an offset.
    Global(usize, i64),
    /// A function's address.
    Function(usize),
}

/// Special registers whose value is fixed for a thread (PTX ISA 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named as in the PTX ISA")]
pub enum Special {
    Tid(usize),
    Ntid(usize),
    Ctaid(usize),
    Nctaid(usize),
    Clusterid(usize),
    Nclusterid(usize),
    ClusterCtaid(usize),
    ClusterNctaid(usize),
    ClusterCtarank,
    ClusterNctarank,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    /// `%envreg<n>`.
    Envreg(u8),
    DynamicSmemSize,
    TotalSmemSize,
}
