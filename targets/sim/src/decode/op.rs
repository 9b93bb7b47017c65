//! Operations, and the registers that they read and write.

use super::forms::{
    Access, Atom, Bulk, Callee, Combine, CpAsync, MbarOp, Order, Passed, PredSrc, Setp, ShflMode,
};
use super::lanes::{CompareFn, LaneFn};
use super::{Ldmatrix, MmaForm, Pred, Slot, Tcgen05, Tensor, Wgmma, WmmaForm, WmmaMove};
use crate::ptx::ast::Space;
use crate::units::convert::Convert;
use crate::units::float::{Format, Round};
use crate::units::reduce::{Kind, Op as ReduceOp};

/// A decoded operation.
#[derive(Debug, Clone)]
pub enum Op {
    /// Arithmetic over slots.
    Alu {
        f: LaneFn,
        d: Slot,
        s: [Slot; 4],
        mods: u8,
    },
    /// Plain copy of a register.
    Mov { d: Slot, a: Slot },
    /// Conversion.
    Cvt {
        convert: Box<Convert>,
        d: Slot,
        a: Slot,
        extend: u8,
    },
    /// Packed conversion of two binary32 into `to`.
    CvtPack {
        to: Format,
        round: Round,
        satfinite: bool,
        relu: bool,
        d: Slot,
        high: Slot,
        low: Slot,
    },
    /// Packed conversion of two small floats into two halves.
    CvtUnpack {
        from: Format,
        to: Format,
        relu: bool,
        d: Slot,
        a: Slot,
    },
    /// Comparison into predicates.
    Setp(Box<Setp>),
    /// Comparison into a register: all ones or 1.0 where true.
    Set {
        setp: Box<Setp>,
        d: Slot,
        value: u64,
    },
    /// Selection by predicate.
    Selp {
        d: Slot,
        a: Slot,
        b: Slot,
        p: PredSrc,
    },
    /// Selection by the sign of `c`.
    Slct {
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        f: CompareFn,
    },
    /// Logic on predicates.
    PredLogic {
        op: Combine,
        d: Pred,
        a: PredSrc,
        b: PredSrc,
    },
    /// Constant or copied predicate.
    PredMov { d: Pred, a: PredSrc },
    /// Addition with carry in or out: negate `b` for subtraction.
    Carry {
        d: Slot,
        a: Slot,
        b: Slot,
        subtract: bool,
        carry_in: bool,
        carry_out: bool,
        bits: u32,
    },
    /// Multiply-add with carry.
    MadCarry {
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        high: bool,
        carry_in: bool,
        carry_out: bool,
        bits: u32,
        signed: bool,
    },
    /// Packs elements into one register.
    Pack {
        d: Slot,
        parts: Vec<Slot>,
        bits: u32,
    },
    /// Unpacks one register into elements.
    Unpack {
        parts: Vec<Slot>,
        a: Slot,
        bits: u32,
    },
    /// Clock or timer; `shift` selects the high half.
    Clock { d: Slot, shift: u32, bits: u32 },
    /// Whether a generic address lies in a space.
    IsSpace { space: Space, d: Pred, a: Slot },
    /// The address in another CTA of the cluster.
    Mapa { d: Slot, a: Slot, rank: Slot },
    /// The rank that an address belongs to.
    GetRank { d: Slot, a: Slot },
    /// Load.
    Ld(Box<Access>),
    /// Store.
    St(Box<Access>),
    /// `st.async`: store that completes on an mbarrier.
    StAsync(Box<Access>, Slot, i64),
    /// Atomic.
    Atom(Box<Atom>),
    /// Shuffle.
    Shfl {
        mode: ShflMode,
        d: Slot,
        p: Option<Pred>,
        a: Slot,
        b: Slot,
        c: Slot,
        mask: Slot,
    },
    /// Vote; `ballot` has a register, the others a predicate.
    Vote {
        mode: u8,
        d: Slot,
        p: Pred,
        a: PredSrc,
        mask: Slot,
    },
    /// Match; `all` sets a predicate.
    Match {
        all: bool,
        d: Slot,
        p: Option<Pred>,
        a: Slot,
        mask: Slot,
    },
    /// Warp-wide reduction.
    Redux {
        op: ReduceOp,
        kind: Kind,
        d: Slot,
        a: Slot,
        mask: Slot,
        abs: bool,
        /// Whether a NaN of binary32 is the result.
        nan: bool,
    },
    /// Mask of active lanes.
    ActiveMask { d: Slot },
    /// One elected lane of a mask.
    Elect { d: Slot, p: Pred, mask: Slot },
    /// `bar.warp.sync`.
    WarpSync { mask: Slot },
    /// `barrier.sync`, `.arrive`, `.red`: barrier number, thread count, reduction.
    Barrier {
        id: Slot,
        count: Option<Slot>,
        arrive: bool,
        aligned: bool,
        red: Option<(u8, Slot, Pred, PredSrc)>,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive { release: bool },
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// Memory fence of the generic proxy.
    Fence { order: Order },
    /// `fence.proxy.async` and its kin.
    ProxyFence,
    /// `fence.proxy.tensormap::generic.acquire` of the map at `[addr + offset]`.
    MapFence { addr: Slot, offset: i64 },
    /// Operation on the mbarrier at `[addr + offset]`.
    Mbar {
        op: Box<MbarOp>,
        addr: Slot,
        offset: i64,
    },
    /// `cp.async`.
    CpAsync(Box<CpAsync>),
    /// `cp.async.commit_group`.
    CpCommit,
    /// `cp.async.wait_group`.
    CpWait { pending: u32 },
    /// `cp.async.mbarrier.arrive`.
    CpArrive {
        addr: Slot,
        offset: i64,
        no_inc: bool,
    },
    /// Bulk copy or reduction.
    Bulk(Box<Bulk>),
    /// Tensor copy, reduction or prefetch.
    Tensor(Box<Tensor>),
    /// `cp.async.bulk.commit_group`.
    BulkCommit,
    /// `cp.async.bulk.wait_group`.
    BulkWait { pending: u32 },
    /// `ldmatrix`.
    Ldmatrix(Box<Ldmatrix>),
    /// `stmatrix`.
    Stmatrix(Box<Ldmatrix>),
    /// `movmatrix`.
    Movmatrix { d: Slot, a: Slot },
    /// `mma.sync`.
    Mma(Box<MmaForm>),
    /// `wmma.load`.
    WmmaLoad(Box<WmmaMove>),
    /// `wmma.store`.
    WmmaStore(Box<WmmaMove>),
    /// `wmma.mma`.
    Wmma(Box<WmmaForm>),
    /// `wgmma.mma_async`.
    Wgmma(Box<Wgmma>),
    /// `wgmma.fence`.
    WgmmaFence,
    /// `wgmma.commit_group`.
    WgmmaCommit,
    /// `wgmma.wait_group`.
    WgmmaWait { pending: u32 },
    /// Tensor memory and its products.
    Tcgen05(Box<Tcgen05>),
    /// Register budget.
    SetMaxNReg { count: u32, increase: bool },
    /// An instruction without effect here (`griddepcontrol`, prefetches, hints).
    Nop,
    /// `nanosleep`: lets others run.
    Sleep,
    /// Branch.
    Bra {
        target: u32,
        reconverge: Option<u32>,
    },
    /// Branch through a table.
    Brx {
        index: Slot,
        targets: Vec<u32>,
        reconverge: Option<u32>,
    },
    /// Call.
    Call {
        callee: Callee,
        args: Vec<Passed>,
        results: Vec<Passed>,
    },
    /// Return.
    Ret,
    /// End of the thread.
    Exit,
    /// `trap` or `brkpt`.
    Trap,
    /// `alloca`: address, bytes, alignment.
    Alloca { d: Slot, bytes: Slot, align: u64 },
    /// `stacksave`.
    StackSave { d: Slot },
    /// `stackrestore`.
    StackRestore { a: Slot },
    /// An instruction that is not supported, and why.
    Unsupported(std::sync::Arc<str>),
    /// `tensormap.replace`: space and address of the map, the field, the register of its value.
    MapReplace {
        space: Space,
        addr: Slot,
        offset: i64,
        field: crate::units::tensor_map::Field,
        value: Slot,
    },
    /// `tensormap.cp_fenceproxy`: addresses in global and in shared memory.
    MapCopy { dst: (Slot, i64), src: (Slot, i64) },
    /// `cvt.pack`.
    CvtSat(Box<super::video::CvtSat>),
    /// A scalar or packed video instruction.
    Video(Box<super::video::Video>),
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// Guard predicate; 0 is always true.
    pub guard: PredSrc,
    /// Whether fragments reconverge here.
    pub join: bool,
    /// Whether all lanes of the warp have to execute it together (`.aligned`).
    pub aligned: bool,
    /// PTX line.
    pub line: u32,
    /// Source, from `.loc`: index into [`super::Program::locs`].
    pub loc: Option<u32>,
    /// Mnemonic, for counters and reports.
    pub name: std::sync::Arc<str>,
}

/// [`Op::Alu`]: flush subnormal f32 inputs and results, of pairs too.
pub const MOD_FTZ: u8 = 1;
/// [`Op::Alu`]: clamp the f32 result to [0, 1].
pub const MOD_SAT: u8 = 2;
/// [`Op::Alu`]: clamp the f64 result to [0, 1].
pub const MOD_SAT64: u8 = 4;
/// [`Op::Alu`]: flush subnormal f16 inputs and results, of pairs too.
pub const MOD_FTZ_F16: u8 = 8;
/// [`Op::Alu`]: flush subnormal bf16 inputs and results, of pairs too.
pub const MOD_FTZ_BF16: u8 = 16;

impl Op {
    /// Calls `f` with every register that the operation reads (`false`) or writes (`true`).
    pub(crate) fn registers(&self, f: &mut dyn FnMut(Slot, bool)) {
        if let Self::Tcgen05(op) = self {
            return op.registers(f);
        }
        self.sources(&mut |slots| slots.iter().for_each(|&s| f(s, false)));
        self.destinations(&mut |slots| slots.iter().for_each(|&s| f(s, true)));
    }

    fn sources(&self, read: &mut dyn FnMut(&[Slot])) {
        match self {
            Self::Alu { s, .. } => read(s),
            Self::Mov { a, .. }
            | Self::Alloca { bytes: a, .. }
            | Self::StackRestore { a }
            | Self::Cvt { a, .. }
            | Self::CvtUnpack { a, .. }
            | Self::Unpack { a, .. }
            | Self::Movmatrix { a, .. }
            | Self::Redux { a, .. } => read(&[*a]),
            Self::CvtPack { high, low, .. } => read(&[*high, *low]),
            Self::CvtSat(form) => read(&[form.a, form.b, form.c]),
            Self::Video(form) => read(&[form.a, form.b, form.c]),
            Self::Setp(setp) | Self::Set { setp, .. } => read(&[setp.a, setp.b]),
            Self::Selp { a, b, .. } | Self::Carry { a, b, .. } => read(&[*a, *b]),
            Self::Slct { a, b, c, .. } | Self::MadCarry { a, b, c, .. } => read(&[*a, *b, *c]),
            Self::Pack { parts, .. } => read(parts),
            Self::Shfl { a, b, c, .. } => read(&[*a, *b, *c]),
            Self::St(access) => {
                read(&access.regs);
                read(&[access.addr]);
            }
            Self::Ld(access) => read(&[access.addr]),
            Self::Stmatrix(form) => read(&form.regs),
            Self::Atom(atom) => read(&atom.b),
            Self::Mma(form) => {
                read(&form.a);
                read(&form.b);
                read(&form.c);
                read(&form.extra());
            }
            _ => {}
        }
    }

    fn destinations(&self, write: &mut dyn FnMut(&[Slot])) {
        match self {
            Self::Alu { d, .. }
            | Self::Mov { d, .. }
            | Self::Alloca { d, .. }
            | Self::StackSave { d }
            | Self::Cvt { d, .. }
            | Self::CvtPack { d, .. }
            | Self::CvtUnpack { d, .. }
            | Self::Set { d, .. }
            | Self::Selp { d, .. }
            | Self::Slct { d, .. }
            | Self::Carry { d, .. }
            | Self::MadCarry { d, .. }
            | Self::Pack { d, .. }
            | Self::Movmatrix { d, .. }
            | Self::Redux { d, .. }
            | Self::Shfl { d, .. } => write(&[*d]),
            Self::CvtSat(form) => write(&[form.d]),
            Self::Video(form) => write(&[form.d]),
            Self::Unpack { parts, .. } => write(parts),
            Self::Ld(access) => write(&access.regs),
            Self::Ldmatrix(form) => write(&form.regs),
            Self::Atom(atom) => write(&atom.dst),
            Self::Mma(form) => write(&form.d),
            _ => {}
        }
    }
}
