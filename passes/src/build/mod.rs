//! Kernels in Rust: builders for the operations of an `axe.kernel`, with which a planner writes its own.
//!
//! A [`Kernel`] is an `axe.kernel` in the making, and [`Code`] a place in one: each method adds an operation there and gives
//! its value. Regions are closures, which get the place inside. Layouts are [`Layout`]s; what holds them are MLIR types,
//! which [`Code::fragment`] makes for registers and [`Code::memref`] for memory. `targets/nvidia/examples/gemm_roles.rs` is a whole kernel.
//!
//! # Errors
//! Every builder fails when MLIR does not take its operation: operands of the wrong types or a layout that does not fit its
//! shape, with the location that the kernel was given. Constraints of the dialect are checked when the module is verified.

mod control;
mod gather;
mod index;
mod kernel;
mod roles;
mod scatter;

pub use kernel::{Kernel, launch};
pub use roles::{Multicast, Traffic};

use crate::ir::{Builder, DYNAMIC, Int, Val, types};
use crate::{PassError, PassResult};
use axe_dialect::ops::{
    self, CopyOp, ExtractSliceOp, FillOp, GatherOp, GemmOp, SliceOp, TransposeOp, ViewOp,
};
use axe_dialect::{Combiner, LayoutAttribute, SpaceAttribute, element_type, memref_type};
use axe_layout::Layout;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Location, Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// The attribute of a `memref.reinterpret_cast` in a kernel that has a number for each stride that divides it.
pub const STRIDE_MULTIPLES: &str = "axe.multiples";

/// Adds operations of a kernel at one place.
#[derive(Clone, Copy, Debug)]
pub struct Code<'c> {
    /// Where operations go; what there is no method for is built with it.
    pub builder: Builder<'c>,
}

/// The error for a layout that a kernel cannot have.
pub fn layout_error(location: Location<'_>, error: impl std::fmt::Display) -> PassError<'_> {
    PassError::new(
        location,
        format!("cannot plan the kernel's layouts: {error}"),
    )
}

/// The context of a location, for MLIR's own calls.
fn raw_context(location: Location<'_>) -> sys::MlirContext {
    // SAFETY: the location is live.
    unsafe { sys::mlirLocationGetContext(location.to_raw()) }
}

impl<'c> Code<'c> {
    fn location(&self) -> Location<'c> {
        self.builder.location
    }

    /// The extent of a memref's leading dimension.
    pub fn leading(&self, memref: Val<'c>, extent: i64) -> PassResult<'c, Val<'c>> {
        if extent != DYNAMIC {
            return self.index(extent);
        }
        let zero = self.index(0)?;
        self.builder.value(
            "memref.dim",
            &[memref, zero],
            self.builder.index_type(),
            &[],
        )
    }

    /// `tensor<shape x element, layout>`.
    pub fn fragment(
        &self,
        shape: &[i64],
        element: Type<'c>,
        layout: &Layout,
    ) -> PassResult<'c, Type<'c>> {
        axe_dialect::tensor_type(self.location(), shape, element, Some(layout))
            .ok_or_else(|| layout_error(self.location(), layout))
    }

    /// A memref in the kernel's own memory, or a box of global memory, with a layout.
    pub fn memref(
        &self,
        shape: &[i64],
        element: Type<'c>,
        layout: &Layout,
        space: Option<&str>,
    ) -> PassResult<'c, Type<'c>> {
        let failed = || layout_error(self.location(), layout);
        let space = match space {
            Some(name) => Some(SpaceAttribute::new(self.location(), name).ok_or_else(failed)?),
            None => None,
        };
        let attribute = LayoutAttribute::new(self.location(), layout).ok_or_else(failed)?;
        memref_type(
            self.location(),
            shape,
            element,
            Some(attribute.to_attribute()),
            space,
        )
        .ok_or_else(failed)
    }

    /// `axe.alloc`: shared memory of a shape, with a layout.
    pub fn alloc(
        &self,
        shape: &[i64],
        element: Type<'c>,
        layout: &Layout,
    ) -> PassResult<'c, Val<'c>> {
        let r#type = self.memref(shape, element, layout, Some("shared"))?;
        self.builder.value(ops::ALLOC, &[], r#type, &[])
    }

    /// The box at `origin` of a row-major memref in global memory, of the trailing dimensions' shape.
    pub fn global_box(
        &self,
        memref: Val<'c>,
        extents: &[i64],
        origin: &[Val<'c>],
        shape: &[i64],
    ) -> PassResult<'c, Val<'c>> {
        let strides = row_major(extents);
        let strides = strides
            .get(extents.len().saturating_sub(shape.len())..)
            .unwrap_or_default();
        self.strided_box(memref, origin, shape, strides)
    }

    /// The box at `origin`, with one stride a dimension.
    pub fn strided_box(
        &self,
        memref: Val<'c>,
        origin: &[Val<'c>],
        shape: &[i64],
        strides: &[i64],
    ) -> PassResult<'c, Val<'c>> {
        self.box_in(None, memref, (origin, shape, strides))
    }

    /// The box at `origin` of a row-major memref in shared memory.
    pub fn shared_box(
        &self,
        memref: Val<'c>,
        extents: &[i64],
        origin: &[Val<'c>],
        shape: &[i64],
    ) -> PassResult<'c, Val<'c>> {
        self.box_in(Some("shared"), memref, (origin, shape, &row_major(extents)))
    }

    fn box_in(
        &self,
        space: Option<&str>,
        memref: Val<'c>,
        (origin, shape, strides): (&[Val<'c>], &[i64], &[i64]),
    ) -> PassResult<'c, Val<'c>> {
        let layout = Layout::strided(shape, strides)
            .map_err(|error| layout_error(self.location(), error))?;
        let r#type = self.memref(shape, element_type(memref.r#type()), &layout, space)?;
        self.slice(memref, origin, r#type)
    }

    /// `axe.slice`: the box of type `r#type` at `origin`.
    pub fn slice(
        &self,
        memref: Val<'c>,
        origin: &[Val<'c>],
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        self.builder
            .operator_value(&SliceOp::operands(memref, origin), r#type, &[])
    }

    /// `axe.view`: the same storage as another type.
    pub fn view(&self, memref: Val<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        self.builder
            .operator_value(&ViewOp::operands(memref), r#type, &[])
    }

    /// A load into registers that reads `pad` outside the memref's bounds.
    pub fn load_padded(
        &self,
        memref: Val<'c>,
        pad: Val<'c>,
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let operands = CopyOp::operands(memref, None, Some(pad), None);
        self.builder.operator_value(&operands, r#type, &[])
    }

    /// A load into registers.
    pub fn load(&self, memref: Val<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        let operands = CopyOp::operands(memref, None, None, None);
        self.builder.operator_value(&operands, r#type, &[])
    }

    /// `axe.gather clamp`: rows of a table, by numbers in memory, of which one that names no row stands for the nearest, and a negative one,
    /// where they `wrap`, for one from the last on.
    ///
    /// # Errors
    /// When building fails.
    pub fn gather(
        &self,
        (table, rows): (Val<'c>, Val<'c>),
        wraps: bool,
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let attributes = [
            ("clamp", self.builder.unit()),
            ("wrap", self.builder.unit()),
        ];
        let attributes = &attributes[..1 + usize::from(wraps)];
        self.builder
            .operator_value(&GatherOp::operands(table, rows, None), r#type, attributes)
    }

    /// A copy into memory.
    pub fn store(&self, value: Val<'c>, memref: Val<'c>) -> PassResult<'c> {
        let operands = CopyOp::operands(value, Some(memref), None, None);
        self.builder.operator(&operands, &[], &[]).map(|_| ())
    }

    /// A copy that adds to memory.
    ///
    /// # Errors
    /// When building fails.
    pub fn accumulate(&self, value: Val<'c>, memref: Val<'c>) -> PassResult<'c> {
        let operands = CopyOp::operands(value, Some(memref), None, None);
        let attributes = [("accumulate", self.builder.unit())];
        self.builder
            .operator(&operands, &[], &attributes)
            .map(|_| ())
    }

    /// An asynchronous copy between memrefs.
    pub fn copy_async(&self, from: Val<'c>, to: Val<'c>) -> PassResult<'c> {
        let operands = CopyOp::operands(from, Some(to), None, None);
        let attributes = [("isAsync", self.builder.unit())];
        self.builder
            .operator(&operands, &[], &attributes)
            .map(|_| ())
    }

    /// Makes the asynchronous copies since the last one a group.
    pub fn commit(&self) -> PassResult<'c> {
        let token = self.builder.r#type(axe_dialect::token_type);
        self.builder.value(ops::COMMIT, &[], token, &[]).map(|_| ())
    }

    /// Waits until at most `pending` groups of copies are not complete, then for the CTA's other threads.
    pub fn wait(&self, pending: i64) -> PassResult<'c> {
        let pending = self.builder.attribute(|context| {
            let i64 = IntegerType::new(context, 64).into();
            IntegerAttribute::new(i64, pending).into()
        });
        let attributes = [("pending", pending)];
        self.builder
            .operation(ops::WAIT, &[], &[], &attributes, Vec::new())?;
        self.barrier()
    }

    /// `axe.barrier`: waits for every thread of the scope.
    pub fn barrier(&self) -> PassResult<'c> {
        self.builder
            .operation(ops::BARRIER, &[], &[], &[], Vec::new())
            .map(|_| ())
    }

    /// `axe.barrier async`: also shows asynchronous copies and products what the threads stored to shared memory.
    ///
    /// # Errors
    /// When building fails.
    pub fn barrier_async(&self) -> PassResult<'c> {
        let attributes = [("isAsync", self.builder.unit())];
        self.builder
            .operation(ops::BARRIER, &[], &[], &attributes, Vec::new())
            .map(|_| ())
    }

    /// `axe.barrier cluster`.
    pub fn cluster_barrier(&self) -> PassResult<'c> {
        let attributes = [("acrossCluster", self.builder.unit())];
        self.builder
            .operation(ops::BARRIER, &[], &[], &attributes, Vec::new())
            .map(|_| ())
    }

    /// A register tensor with its dimensions exchanged.
    pub fn transpose(&self, value: Val<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        let permutation = [("permutation", self.builder.i64s(&[1, 0]))];
        self.builder
            .operator_value(&TransposeOp::operands(value), r#type, &permutation)
    }

    /// The box of a register tensor that begins at `origin`.
    pub fn extract_slice(
        &self,
        value: Val<'c>,
        origin: &[i64],
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let origin = [("origin", self.builder.i64s(origin))];
        self.builder
            .operator_value(&ExtractSliceOp::operands(value), r#type, &origin)
    }

    /// A register tensor whose elements are all `value`.
    pub fn fill(&self, value: Val<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        let operands = FillOp::operands(value, None, &[]);
        self.builder.operator_value(&operands, r#type, &[])
    }

    /// `axe.map`: what `body` gives of an element of each input, element by element.
    pub fn map(
        &self,
        inputs: &[Val<'c>],
        r#type: Type<'c>,
        body: impl FnOnce(Self, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let elements: Vec<_> = inputs
            .iter()
            .map(|input| element_type(input.r#type()))
            .collect();
        let (region, arguments, inner) = self.builder.region(&elements);
        let value = body(Self { builder: inner }, &arguments)?;
        inner.operation(ops::YIELD, &[value], &[], &[], Vec::new())?;
        let op = self
            .builder
            .operation(ops::MAP, inputs, &[r#type], &[], vec![region])?;
        self.builder.result_of(op)
    }

    /// `axe.reduce` of a dimension.
    pub fn reduce(
        &self,
        combiner: Combiner,
        value: Val<'c>,
        dim: i64,
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let combiner = self
            .builder
            .attribute(|context| combiner.attribute(context));
        let attributes = [("combiner", combiner), ("dims", self.builder.i64s(&[dim]))];
        self.builder
            .value(ops::REDUCE, &[value], r#type, &attributes)
    }

    /// `axe.broadcast` along a dimension.
    pub fn broadcast(&self, value: Val<'c>, dim: i64, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        let dims = [("dims", self.builder.i64s(&[dim]))];
        self.builder.value(ops::BROADCAST, &[value], r#type, &dims)
    }

    /// `axe.cast`.
    pub fn cast(&self, value: Val<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        self.builder.value(ops::CAST, &[value], r#type, &[])
    }

    /// A matrix product; `flags` are `trans_a` and `trans_b`.
    pub fn gemm(&self, [a, b, acc]: [Val<'c>; 3], flags: [bool; 2]) -> PassResult<'c, Val<'c>> {
        let names = ["trans_a", "trans_b"].into_iter().zip(flags);
        let attributes: Vec<_> = names
            .filter(|(_, set)| *set)
            .map(|(name, _)| (name, self.builder.unit()))
            .collect();
        let operands = GemmOp::operands(a, b, Some(acc));
        self.builder
            .operator_value(&operands, acc.r#type(), &attributes)
    }

    /// A constant of a float or integer type: zero, one or an extreme.
    pub fn scalar(&self, r#type: Type<'c>, value: Number) -> PassResult<'c, Val<'c>> {
        let context = raw_context(self.location());
        // SAFETY: each constructor is called on the kind of type that it takes.
        let attribute = unsafe {
            if types::is_float(r#type) {
                let value = match value {
                    Number::Least => f64::NEG_INFINITY,
                    Number::Greatest => f64::INFINITY,
                    Number::Of(value) => value as f64,
                };
                sys::mlirFloatAttrDoubleGet(context, r#type.to_raw(), value)
            } else {
                let bits = types::bits(r#type).unwrap_or(64).clamp(1, 64);
                let value = match value {
                    Number::Least => i64::MIN >> (64 - bits),
                    Number::Greatest => i64::MAX >> (64 - bits),
                    Number::Of(value) => value,
                };
                sys::mlirIntegerAttrGet(r#type.to_raw(), value)
            }
        };
        // SAFETY: the attribute was just made.
        self.builder
            .constant(unsafe { Attribute::from_raw(attribute) })
    }

    /// `memref.reinterpret_cast`: all of a memref under these extents and strides, which are known or are arguments of the kernel.
    /// `multiples` divide the strides.
    ///
    /// # Errors
    /// When building fails.
    pub fn reinterpret(
        &self,
        memref: Val<'c>,
        sizes: &[Int<'c>],
        strides: &[Int<'c>],
        multiples: &[i64],
    ) -> PassResult<'c, Val<'c>> {
        let known = |all: &[Int<'c>]| -> Vec<i64> {
            all.iter()
                .map(|own| own.known().unwrap_or(DYNAMIC))
                .collect()
        };
        let values = |all: &[Int<'c>]| -> Vec<Val<'c>> {
            let value = |own: &Int<'c>| match own {
                Int::Known(_) => None,
                Int::Value(value) => Some(*value),
            };
            all.iter().filter_map(value).collect()
        };
        let text: Vec<_> = strides
            .iter()
            .map(|own| own.known().map_or("?".to_owned(), |own| own.to_string()))
            .collect();
        let layout = format!("strided<[{}]>", text.join(", "));
        let layout = self.builder.parsed(&layout)?;
        let element = element_type(memref.r#type());
        let r#type = memref_type(self.location(), &known(sizes), element, Some(layout), None)
            .ok_or_else(|| layout_error(self.location(), "strides of no memref"))?;
        let (of_sizes, of_strides) = (values(sizes), values(strides));
        let [number_of_sizes, number_of_strides] =
            [&of_sizes, &of_strides].map(|all| i32::try_from(all.len()).unwrap_or(0));
        let attributes = [
            ("static_offsets", self.builder.i64s(&[0])),
            ("static_sizes", self.builder.i64s(&known(sizes))),
            ("static_strides", self.builder.i64s(&known(strides))),
            (STRIDE_MULTIPLES, self.builder.i64s(multiples)),
            self.builder
                .segments(&[1, 0, number_of_sizes, number_of_strides]),
        ];
        let operands = [vec![memref], of_sizes, of_strides].concat();
        self.builder
            .value("memref.reinterpret_cast", &operands, r#type, &attributes)
    }

    /// `memref.subview`: the first `rows` of row-major memory, which has these extents.
    pub fn first_rows(
        &self,
        memref: Val<'c>,
        extents: &[i64],
        rows: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let mut sizes = extents.to_vec();
        if let Some(leading) = sizes.first_mut() {
            *leading = DYNAMIC;
        }
        let strides = row_major(extents);
        let text: Vec<_> = strides.iter().map(i64::to_string).collect();
        let layout = self
            .builder
            .parsed(&format!("strided<[{}]>", text.join(", ")))?;
        let element = element_type(memref.r#type());
        let r#type = memref_type(self.location(), &sizes, element, Some(layout), None)
            .ok_or_else(|| layout_error(self.location(), "rows of no memref"))?;
        let zeros = vec![0; extents.len()];
        let ones = vec![1; extents.len()];
        let attributes = [
            ("static_offsets", self.builder.i64s(&zeros)),
            ("static_sizes", self.builder.i64s(&sizes)),
            ("static_strides", self.builder.i64s(&ones)),
            self.builder.segments(&[1, 0, 1, 0]),
        ];
        let operands = [memref, rows];
        self.builder
            .value("memref.subview", &operands, r#type, &attributes)
    }
}

/// The strides of row-major memory of these extents.
#[must_use]
pub fn row_major(extents: &[i64]) -> Vec<i64> {
    let mut strides = vec![1_i64; extents.len()];
    for at in (1..extents.len()).rev() {
        strides[at - 1] = strides[at].saturating_mul(extents[at]);
    }
    strides
}

/// A number of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Minus infinity, or the least integer.
    Least,
    /// Infinity, or the greatest integer.
    Greatest,
    /// This one.
    Of(i64),
}
