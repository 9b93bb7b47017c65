//! What a value of an `axe.kernel` is in each thread, as SSA values.

use crate::fragment::Fragment;
use crate::plan::tma::TensorMap;
use crate::state::form::{Sizes, Storage};
use axe_passes::ir::Int;
use axe_passes::ir::Val;
use melior::ir::Type;
use std::ops::{Deref, DerefMut};
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

/// Storage at its place: what is known of it when compiling, and the values that are known at run time. It is the
/// [`Storage`] whose element `x` is at `base + swizzle(pending + D(x))`, in elements.
#[derive(Clone, Debug)]
pub(crate) struct Memory<'c> {
    /// What is known when compiling.
    pub storage: Storage<'c>,
    /// The pointer that offsets count from.
    pub base: Val<'c>,
    /// The pointer that [`Memory::moved`] counts from: that of the allocation.
    pub root: Val<'c>,
    /// How far `base` is from `root` in 16 bytes, where slices move it by whole ones.
    pub moved: Option<Int<'c>>,
    /// The displacement in elements that the swizzle must see; zero without a swizzle.
    pub pending: Int<'c>,
    /// For each dimension with a guard, the elements from the box's origin to the source's end, in 64 bits.
    pub remaining: Vec<Option<Int<'c>>>,
    /// The argument's extents, by dimension, that are known at run time only; none of other storage.
    pub extents: Vec<Option<Val<'c>>>,
    /// Its strides, by dimension, that are arguments of the kernel.
    pub strides: Vec<Option<Val<'c>>>,
    /// The coordinates of the box's first element in the argument, 32 bits, where it has an origin.
    pub at: Vec<Int<'c>>,
}

impl<'c> Memory<'c> {
    /// Storage at a pointer, with nothing that is known at run time but that.
    pub(crate) fn new(storage: Storage<'c>, base: Val<'c>) -> Self {
        let coordinates = storage.origin.as_ref().map(|origin| origin.shape.len());
        Self {
            base,
            root: base,
            moved: None,
            pending: Int::ZERO,
            remaining: vec![None; storage.shape.len()],
            extents: Vec::new(),
            strides: Vec::new(),
            at: vec![Int::ZERO; coordinates.unwrap_or(0)],
            storage,
        }
    }
}

impl<'c> Memory<'c> {
    /// The extent of a dimension, where it is known at run time only.
    pub(crate) fn extent_at(&self, dim: usize) -> Option<Val<'c>> {
        self.extents.get(dim).copied().flatten()
    }
}

impl<'c> Deref for Memory<'c> {
    type Target = Storage<'c>;

    fn deref(&self) -> &Self::Target {
        &self.storage
    }
}

impl DerefMut for Memory<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.storage
    }
}

/// A tensor map and its parameter.
#[derive(Clone, Debug)]
pub(crate) struct TensorMapParameter<'c> {
    /// The kernel's argument whose memory it describes.
    pub argument: usize,
    /// Bytes from the argument's pointer.
    pub offset: i64,
    /// What it describes.
    pub map: TensorMap,
    /// The arguments that its extents and its strides are, innermost first; nothing where they are known, or a leading extent.
    pub sizes: Vec<Sizes>,
    /// The parameter's address.
    pub pointer: Val<'c>,
}

impl TensorMapParameter<'_> {
    /// The map as an entry of a launch's `tensor_maps`.
    pub(crate) fn text(&self) -> String {
        let numbers = |of: &dyn Fn(&Sizes) -> Option<usize>| {
            let numbers = self.sizes.iter().map(of);
            let text = numbers.map(|own| own.map_or("-1".to_owned(), |own| own.to_string()));
            text.collect::<Vec<_>>().join(", ")
        };
        let sizes = match self.sizes.as_slice() {
            [] => String::new(),
            _ => format!(
                ", extent_arguments = [{}], stride_arguments = [{}]",
                numbers(&|own| own.extent),
                numbers(&|own| own.stride)
            ),
        };
        format!(
            "{{source = {} : i64, offset = {} : i64, {}{sizes}}}",
            self.argument,
            self.offset,
            self.map.attributes()
        )
    }
}
