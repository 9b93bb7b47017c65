//! What a value of an `axe.kernel` is in each thread.

use super::int::Int;
use crate::fragment::Fragment;
use axe_layout::{Iter, Swizzle};
use axe_passes::ir::Val;
use melior::ir::Type;
use std::rc::Rc;

/// A value of the kernel, as a thread has it.
#[derive(Clone, Debug)]
pub(crate) enum Bound<'c> {
    /// The same value: scalars and indices.
    Scalar(Val<'c>),
    /// A tensor: one scalar a register.
    Registers(Registers<'c>),
    /// A memref.
    Memory(Box<Memory<'c>>),
    /// The token of a group of copies: order alone, no value.
    Token,
}

/// A tensor in registers.
#[derive(Clone, Debug)]
pub(crate) struct Registers<'c> {
    /// Which element each register of each thread holds.
    pub fragment: Rc<Fragment>,
    /// The element type.
    pub element: Type<'c>,
    /// The registers of this thread.
    pub values: Vec<Val<'c>>,
}

/// Where storage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Global memory.
    Global,
    /// The CTA's shared memory.
    Shared,
    /// The shared memory of a CTA of the cluster.
    ClusterShared,
}

impl Space {
    /// LLVM's number of the address space (NVPTX usage, "Address Spaces").
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Global => 1,
            Self::Shared => 3,
            Self::ClusterShared => 7,
        }
    }

    /// Bits of an offset in it.
    pub(crate) fn offset_bits(self) -> u32 {
        match self {
            Self::Global => 64,
            Self::Shared | Self::ClusterShared => 32,
        }
    }
}

/// Storage: the element `x` of the box is at `base + swizzle(pending + D(x))`, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Memory<'c> {
    /// Where.
    pub space: Space,
    /// The element type.
    pub element: Type<'c>,
    /// Bytes of an element.
    pub bytes: i64,
    /// The pointer that offsets count from.
    pub base: Val<'c>,
    /// The pointer that [`Memory::moved`] counts from: that of the allocation.
    pub root: Val<'c>,
    /// How far `base` is from `root` in 16 bytes, where slices move it by whole ones.
    pub moved: Option<Int<'c>>,
    /// A run-time offset in elements that the swizzle must see; zero without a swizzle.
    pub pending: Int<'c>,
    /// The iters of each dimension on `m`, outermost first; the outermost of a dimension has no end.
    pub dims: Vec<Vec<Iter>>,
    /// The layout's own offset on `m`, in elements.
    pub offset: i64,
    /// The swizzle on `m`.
    pub swizzle: Option<Swizzle>,
    /// Extents; only an argument's outermost may be dynamic.
    pub shape: Vec<i64>,
    /// For each dimension, where the box may reach outside its source.
    pub guards: Vec<Option<Guard<'c>>>,
    /// Elements to which `base`, and `pending`, are known to be aligned.
    pub alignment: i64,
    /// The argument's run-time extent, when its outermost is dynamic.
    pub extent: Option<Val<'c>>,
    /// Where it begins in a kernel's argument, for copies that name coordinates; none for other storage.
    pub origin: Option<Origin<'c>>,
}

/// Where a box begins in a kernel's argument, or in a view of one.
#[derive(Clone, Debug)]
pub(crate) struct Origin<'c> {
    /// The number of the argument.
    pub argument: usize,
    /// The extents of the argument or its view; the outermost may be dynamic.
    pub shape: Vec<i64>,
    /// Its dimensions, as [`Memory::dims`].
    pub dims: Vec<Vec<Iter>>,
    /// Elements from the argument's pointer to its first element.
    pub offset: i64,
    /// The coordinates of the box's first element, 32 bits.
    pub at: Vec<Int<'c>>,
    /// What divides each coordinate; 0 for the number zero.
    pub divisors: Vec<i64>,
    /// The dimension of the argument that each dimension of the box is.
    pub kept: Vec<usize>,
    /// Whether the box is all of the argument.
    pub whole: bool,
}

impl<'c> Origin<'c> {
    /// All of an argument, or of a view of it.
    pub(crate) fn of(argument: usize, memory: &Memory<'c>) -> Self {
        Self {
            argument,
            shape: memory.shape.clone(),
            dims: memory.dims.clone(),
            offset: memory.offset,
            at: vec![Int::ZERO; memory.shape.len()],
            divisors: vec![0; memory.shape.len()],
            kept: (0..memory.shape.len()).collect(),
            whole: true,
        }
    }
}

/// Element `x` along a dimension exists where `x < remaining`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard<'c> {
    /// Elements from the box's origin to the source's end, in 64 bits; negative when the box is outside.
    pub remaining: Int<'c>,
    /// Divides `remaining`.
    pub divisor: i64,
}

impl Guard<'_> {
    /// Whether all of a box of this extent exists or none of it.
    pub(crate) fn is_uniform(&self, extent: i64) -> bool {
        extent > 0 && self.divisor % extent == 0
    }
}
