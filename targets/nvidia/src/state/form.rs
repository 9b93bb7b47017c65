//! What a value of an `axe.kernel` is, as far as that is known before it runs.

use crate::fragment::Fragment;
use axe_layout::{Axis, Iter, Layout, Offset, Swizzle};
use melior::ir::Type;
use std::rc::Rc;

/// What a value is in each thread.
#[derive(Clone, Debug)]
pub(crate) enum Form<'c> {
    /// The same value: scalars and indices.
    Scalar,
    /// A tensor: one scalar a register.
    Registers(Held<'c>),
    /// A memref.
    Memory(Box<Storage<'c>>),
    /// The token of a group of copies: order alone, no value.
    Token,
}

/// A tensor in registers.
#[derive(Clone, Debug)]
pub(crate) struct Held<'c> {
    /// Which element each register of each thread holds.
    pub fragment: Rc<Fragment>,
    /// The element type.
    pub element: Type<'c>,
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

/// Storage: the element `x` of the box is at `base + swizzle(displacement + D(x))`, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Storage<'c> {
    /// Where.
    pub space: Space,
    /// The element type.
    pub element: Type<'c>,
    /// Bytes of an element.
    pub bytes: i64,
    /// The iters of each dimension on `m`, outermost first; the outermost of a dimension has no end.
    pub dims: Vec<Vec<Iter>>,
    /// The layout's own offset on `m`, in elements.
    pub offset: i64,
    /// The swizzle on `m`.
    pub swizzle: Option<Swizzle>,
    /// Extents; only an argument's outermost may be dynamic.
    pub shape: Vec<i64>,
    /// For each dimension, where the box may reach outside its source.
    pub guards: Vec<Option<Guard>>,
    /// Elements to which `base`, and the displacement, are known to be aligned.
    pub alignment: i64,
    /// An offset in elements that the swizzle must see, zero without a swizzle; `None` where it is known at run time only.
    pub displacement: Option<i64>,
    /// Where it begins in a kernel's argument, for copies that name coordinates; none for other storage.
    pub origin: Option<Origin>,
    /// The kernel's argument that each dimension's extent is, and that its stride is, where those are not known when compiling;
    /// nothing for storage of which all strides are.
    pub sizes: Vec<Sizes>,
}

/// The kernel's arguments that the extent and the stride of a dimension are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Its elements.
    pub extent: Option<usize>,
    /// Elements from one to the next.
    pub stride: Option<usize>,
}

impl<'c> Storage<'c> {
    /// A row-major piece of shared memory, of elements as `element` of `bytes` bytes, at an address of this alignment in bytes.
    ///
    /// # Errors
    /// Extents that no layout has.
    pub(crate) fn shared(
        element: Type<'c>,
        bytes: i64,
        shape: &[i64],
        alignment: i64,
    ) -> axe_layout::Result<Self> {
        let grouped = Layout::row_major(shape)?.group(shape)?;
        Ok(Self {
            space: Space::Shared,
            element,
            bytes,
            dims: grouped.blocks().map(<[Iter]>::to_vec).collect(),
            offset: 0,
            swizzle: None,
            shape: shape.to_vec(),
            guards: vec![None; shape.len()],
            alignment: alignment / bytes,
            displacement: Some(0),
            origin: None,
            sizes: Vec::new(),
        })
    }

    /// The layout of the box, on `m`.
    pub(crate) fn layout(&self) -> axe_layout::Result<Layout> {
        let mut offset = Offset::new();
        offset.set(Axis::M, self.offset);
        Layout::new(
            self.dims.iter().flatten().copied(),
            [],
            offset,
            self.swizzle,
        )
    }

    /// Whether it may reach outside its source.
    pub(crate) fn is_guarded(&self) -> bool {
        self.guards.iter().any(Option::is_some)
    }

    /// Whether it begins with the period of its swizzle.
    pub(crate) fn begins_period(&self) -> bool {
        self.displacement == Some(0)
    }
}

/// Where a box begins in a kernel's argument, or in a view of one.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The number of the argument.
    pub argument: usize,
    /// The extents of the argument or its view; the outermost may be dynamic.
    pub shape: Vec<i64>,
    /// Its dimensions, as [`Storage::dims`].
    pub dims: Vec<Vec<Iter>>,
    /// Elements from the argument's pointer to its first element.
    pub offset: i64,
    /// What divides each coordinate of the box's first element; 0 for the number zero.
    pub divisors: Vec<i64>,
    /// The dimension of the argument that each dimension of the box is.
    pub kept: Vec<usize>,
    /// Whether the box is all of the argument.
    pub whole: bool,
    /// As [`Storage::sizes`].
    pub sizes: Vec<Sizes>,
}

impl Origin {
    /// All of an argument, or of a view of it.
    pub(crate) fn of(argument: usize, storage: &Storage<'_>) -> Self {
        Self {
            argument,
            shape: storage.shape.clone(),
            dims: storage.dims.clone(),
            offset: storage.offset,
            divisors: vec![0; storage.shape.len()],
            kept: (0..storage.shape.len()).collect(),
            whole: true,
            sizes: storage.sizes.clone(),
        }
    }
}

/// Element `x` along a dimension exists where `x` is less than the elements that remain from the box's origin to the source's
/// end; negative when the box is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    /// Divides what remains.
    pub divisor: i64,
    /// What remains, where it is known.
    pub remaining: Option<i64>,
}

impl Guard {
    /// Whether all of a box of this extent exists or none of it.
    pub(crate) fn is_uniform(&self, extent: i64) -> bool {
        extent > 0 && self.divisor % extent == 0
    }
}
