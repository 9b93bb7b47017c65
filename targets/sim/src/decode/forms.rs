//! Operand forms: what the larger instructions carry.

use super::lanes::CompareFn;
use super::{Pred, Slot};
use crate::ptx::ast::Space;
use crate::units::reduce::{Kind, Op as ReduceOp};

/// Memory ordering of an access (PTX ISA 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the PTX ISA")]
pub enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

impl Order {
    /// Whether the access acquires.
    #[must_use]
    pub const fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }
    /// Whether the access releases.
    #[must_use]
    pub const fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }
}

/// A load or store of `n` elements of `bytes` each.
#[derive(Debug, Clone)]
pub struct Access {
    /// State space; `Param` is the kernel's parameter block.
    pub space: Space,
    /// Whether shared memory of another CTA of the cluster may be meant.
    pub cluster: bool,
    /// Element size in bytes.
    pub bytes: u8,
    /// Sign-extend what is loaded to this many bytes.
    pub sign_extend: Option<u8>,
    /// Registers, one an element. Elements at the end of a load whose registers nothing reads are not accessed.
    pub regs: Vec<Slot>,
    /// Bytes of all elements as written, which the address is a multiple of.
    pub align: u64,
    /// Address register.
    pub addr: Slot,
    /// Offset in bytes.
    pub offset: i64,
    /// Ordering.
    pub order: Order,
}

/// Read-modify-write operations of `atom` and `red`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomOp {
    /// Combines old and new.
    Reduce(ReduceOp),
    /// Replaces.
    Exch,
    /// Replaces if equal to `b`.
    Cas,
}

/// `atom` or `red`.
#[derive(Debug, Clone)]
pub struct Atom {
    /// State space.
    pub space: Space,
    /// Operation.
    pub op: AtomOp,
    /// Element type; a register holds one or two.
    pub kind: Kind,
    /// Bytes of a register's value.
    pub bytes: u8,
    /// Old values; empty for `red`.
    pub dst: Vec<Slot>,
    /// Address register.
    pub addr: Slot,
    /// Offset in bytes.
    pub offset: i64,
    /// Operands, one an element.
    pub b: Vec<Slot>,
    /// New values of `cas`, which compares and swaps all elements together.
    pub c: Vec<Slot>,
    /// Ordering.
    pub order: Order,
    /// `red.async`: the mbarrier that gets the bytes.
    pub mbar: Option<(Slot, i64)>,
}

/// What combines two predicates in `setp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the PTX ISA")]
pub enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    /// Applies the operation to two lane masks.
    #[must_use]
    pub const fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// How `shfl` picks its source lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the PTX ISA")]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// A predicate source: register and whether it is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredSrc(pub Pred, pub bool);

/// Where a call's argument comes from, or its result goes.
#[derive(Debug, Clone, Copy)]
pub enum Passed {
    /// A `.param` variable in the caller's local frame: offset and size in bytes.
    Local(u64, u64),
    /// A register.
    Slot(Slot),
}

/// Who is called.
#[derive(Debug, Clone, Copy)]
pub enum Callee {
    /// A function by index.
    Direct(usize),
    /// A register with a function's address.
    Indirect(Slot),
}

/// `setp` and its relatives.
#[derive(Debug, Clone)]
pub struct Setp {
    /// Comparison of `a` and `b`.
    pub f: CompareFn,
    /// Result.
    pub d: Pred,
    /// Second result: the negated comparison, or that of the high halves if `packed`.
    pub q: Option<Pred>,
    /// First operand.
    pub a: Slot,
    /// Second operand.
    pub b: Slot,
    /// Combination with another predicate.
    pub combine: Option<(Combine, PredSrc)>,
    /// Which subnormal inputs are flushed: a `MOD_FTZ` of [`super::Op::Alu`], or 0.
    pub ftz: u8,
    /// Whether the operands are pairs of halves (PTX ISA `setp`, half precision).
    pub packed: bool,
}

/// Operations on an mbarrier (PTX ISA 9.7.13.15).
#[derive(Debug, Clone)]
pub enum MbarOp {
    /// `init`: arrival count.
    Init(Slot),
    /// `inval`.
    Inval,
    /// `arrive` and `arrive_drop`, with an optional expected transaction count.
    Arrive {
        /// Arrival count.
        count: Option<Slot>,
        /// Bytes to expect before arriving.
        expect: Option<Slot>,
        /// `arrive_drop`.
        drop: bool,
        /// `.noComplete`.
        no_complete: bool,
        /// `.release` (default) or `.relaxed`.
        release: bool,
        /// State of the phase before the arrival.
        state: Option<Slot>,
    },
    /// `expect_tx`: bytes.
    ExpectTx(Slot),
    /// `complete_tx`: bytes.
    CompleteTx(Slot),
    /// `test_wait` and `try_wait`.
    Wait {
        /// Result.
        d: Pred,
        /// Phase parity or state token.
        phase: Slot,
        /// Whether `phase` is a parity.
        parity: bool,
        /// Whether the thread may be suspended.
        blocking: bool,
        /// `.acquire` (default) or `.relaxed`.
        acquire: bool,
    },
    /// `pending_count` of a state token.
    PendingCount(Slot, Slot),
}

/// Bulk copies without a tensor map (PTX ISA 9.7.9.25).
#[derive(Debug, Clone)]
pub struct Bulk {
    /// Destination address.
    pub dst: Slot,
    /// Offset added to the destination.
    pub dst_offset: i64,
    /// Source address.
    pub src: Slot,
    /// Offset added to the source.
    pub src_offset: i64,
    /// Size in bytes.
    pub size: Slot,
    /// Whether the source is in global memory.
    pub from_global: bool,
    /// Whether the destination is in global memory.
    pub to_global: bool,
    /// mbarrier that gets the bytes; otherwise the bulk group.
    pub mbar: Option<(Slot, i64)>,
    /// CTAs to multicast to.
    pub multicast: Option<Slot>,
    /// Reduction at the destination.
    pub reduce: Option<(ReduceOp, Kind)>,
}

/// `cp.async`: copies `bytes` or fewer (`size`), zeros for the rest (PTX ISA 9.7.9.25.3.1).
#[derive(Debug, Clone)]
pub struct CpAsync {
    /// Destination address in shared memory.
    pub dst: Slot,
    /// Offset added to the destination.
    pub dst_offset: i64,
    /// Source address in global memory.
    pub src: Slot,
    /// Offset added to the source.
    pub src_offset: i64,
    /// Size in bytes: 4, 8 or 16.
    pub bytes: u8,
    /// Bytes that are really read.
    pub size: Option<Slot>,
    /// Where true, nothing is read.
    pub ignore: Option<PredSrc>,
}
