//! Storage as a kernel names it: allocations and arguments, through slices and views.
//!
//! A memref value is followed to where its memory comes from when it is used, and every access becomes one load or
//! store of plain host memory. A slice carries its source's bounds: an access outside is no access.

use super::Lowering;
use super::address::Address;
use super::ops::{both, number, when};
use crate::error::{PassError, PassResult};
use crate::ir::Int;
use crate::ir::value::{defining, identity, name, operands, parts};
use crate::ir::{Builder, DYNAMIC, Op, Val, attribute, types};
use axe_dialect::element_type;
use axe_dialect::ops::{self as axe, SliceOp, ViewOp};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Where a memref's elements are.
#[derive(Clone, Debug)]
pub(super) enum Storage<'c> {
    /// A host memref that is accessed by coordinates; its extents.
    Whole(Val<'c>, Vec<Int<'c>>),
    /// A flat buffer that is addressed through a layout.
    Flat(Val<'c>, Address),
    /// A box of its source, from an origin; the source's extents and the box's in the source's rank.
    Slice {
        source: Box<Storage<'c>>,
        extents: Vec<Int<'c>>,
        origin: Vec<Int<'c>>,
        shape: Vec<i64>,
        rank: usize,
    },
    /// Its source's memory, addressed through `to`; `from` is the source's own map.
    View {
        source: Box<Storage<'c>>,
        from: Address,
        to: Address,
    },
}

/// One element's place in host memory.
pub(super) struct Place<'c> {
    buffer: Val<'c>,
    indices: Vec<Int<'c>>,
    /// Whether the element exists; `None` when it always does.
    inside: Option<Val<'c>>,
}

impl<'c> Lowering<'c> {
    /// Follows a memref value to its memory.
    ///
    /// # Errors
    /// When it comes from somewhere else than an argument, other extents of one, an allocation, a slice or a view.
    pub(super) fn storage(
        &self,
        builder: &Builder<'c>,
        memref: Val<'c>,
    ) -> PassResult<'c, Storage<'c>> {
        if let Some((buffer, address)) = self.buffers.get(&identity(memref)) {
            return Ok(Storage::Flat(*buffer, address.clone()));
        }
        let Some(op) = defining(memref) else {
            return self.whole(builder, memref);
        };
        match name(op).as_str() {
            axe::SLICE => self.slice(builder, parts(op)?),
            axe::VIEW => self.view(builder, &parts(op)?),
            "memref.alloc"
            | "memref.alloca"
            | "memref.get_global"
            | "memref.cast"
            | "bufferization.to_buffer" => self.whole(builder, memref),
            "memref.reinterpret_cast" => self.reinterpreted(builder, op, memref),
            other => Err(PassError::new(
                op.location(),
                format!(
                    "the CPU target cannot follow storage through '{other}': expected an argument, axe.alloc, axe.slice or axe.view"
                ),
            )),
        }
    }

    /// A memref of the host, or an argument of the kernel.
    fn whole(&self, builder: &Builder<'c>, memref: Val<'c>) -> PassResult<'c, Storage<'c>> {
        let r#type = memref.r#type();
        if axe_dialect::layout_of(r#type).is_some() {
            return Err(PassError::new(
                builder.location,
                format!(
                    "the CPU target cannot follow storage of type {type} through a block argument or a call"
                ),
            ));
        }
        Ok(Storage::Whole(memref, self.extents(builder, memref)?))
    }

    /// An argument's memory under other extents and strides, which are known and lie inside.
    ///
    /// # Errors
    /// When they do not, or the argument was written with strides or a layout: the host has its elements in the order of rows.
    fn reinterpreted(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        memref: Val<'c>,
    ) -> PassResult<'c, Storage<'c>> {
        let source = operands(op).first().copied().unwrap_or(memref);
        let written = self.written.get(&identity(source)).copied();
        let of = written.unwrap_or_else(|| source.r#type());
        let fail = |expected: &str| {
            let message = format!(
                "the CPU target cannot follow storage of type {of} through 'memref.reinterpret_cast': expected {expected}"
            );
            Err(PassError::new(op.location(), message))
        };
        if written != Some(source.r#type()) {
            return fail("an argument of the kernel without strides or a layout");
        }
        match lies_inside(op, &types::shape(of).unwrap_or_default()) {
            true => self.whole(builder, memref),
            false => fail("known extents and strides of elements that the argument has"),
        }
    }

    fn slice(&self, builder: &Builder<'c>, slice: SliceOp<'c>) -> PassResult<'c, Storage<'c>> {
        let shape = types::shape(slice.result.r#type()).unwrap_or_default();
        Ok(Storage::Slice {
            extents: self.extents(builder, slice.source)?,
            source: Box::new(self.storage(builder, slice.source)?),
            origin: slice.origin.into_iter().map(Int::of).collect(),
            rank: shape.len(),
            shape,
        })
    }

    fn view(&self, builder: &Builder<'c>, view: &ViewOp<'c>) -> PassResult<'c, Storage<'c>> {
        let (source, memref) = (view.source, view.result);
        let fail = |value: Val<'c>, message: String| {
            PassError::new(
                builder.location,
                format!(
                    "the CPU target cannot address {}: {message}",
                    value.r#type()
                ),
            )
        };
        let to = Address::of(memref.r#type()).map_err(|message| fail(memref, message))?;
        let from = self
            .address(source)
            .map_err(|message| fail(source, message))?;
        let storage = self.storage(builder, source)?;
        // The memory of an allocation is at hand under its addresses, swizzled or not.
        if let Storage::Flat(buffer, _) = storage {
            return Ok(Storage::Flat(buffer, to));
        }
        if from.swizzle != to.swizzle {
            return Err(fail(
                memref,
                "its swizzle is not that of the slice that it is a view of".into(),
            ));
        }
        if !from.is_invertible() {
            return Err(fail(
                source,
                "several elements share an address, or addresses interleave".into(),
            ));
        }
        Ok(Storage::View {
            source: Box::new(storage),
            from,
            to,
        })
    }

    /// The map of a memref value's type as it was written.
    fn address(&self, memref: Val<'c>) -> Result<Address, String> {
        let written = self.written.get(&identity(memref)).copied();
        Address::of(written.unwrap_or_else(|| memref.r#type()))
    }

    /// The extents of a memref value.
    ///
    /// # Errors
    /// When one is dynamic and the memref is a view.
    pub(super) fn extents(
        &self,
        builder: &Builder<'c>,
        memref: Val<'c>,
    ) -> PassResult<'c, Vec<Int<'c>>> {
        let shape = types::shape(memref.r#type()).unwrap_or_default();
        let viewed = defining(memref).is_some_and(|op| name(op) == axe::VIEW);
        let extent = |(dim, extent): (i64, &i64)| match *extent {
            DYNAMIC if viewed => Err(PassError::new(
                builder.location,
                "the CPU target does not know the dynamic extent of a view: give it a static shape",
            )),
            DYNAMIC => {
                let operands = [memref, builder.index(dim)?];
                let index = builder.index_type();
                builder
                    .value("memref.dim", &operands, index, &[])
                    .map(Int::Value)
            }
            fixed => Ok(Int::Known(fixed)),
        };
        (0..).zip(&shape).map(extent).collect()
    }
}

impl<'c> Storage<'c> {
    /// The place of an element. `boxed`: its coordinates are known to lie inside the static extents of the type.
    ///
    /// # Errors
    /// When building fails.
    fn locate(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
        boxed: bool,
    ) -> PassResult<'c, Place<'c>> {
        let Self::Whole(_, extents) = self else {
            return self.checked(builder, at, None, boxed);
        };
        let end = |extent: &Int<'c>| match extent {
            Int::Known(extent) if boxed => *extent,
            _ => 0,
        };
        let ends: Vec<_> = extents.iter().map(end).collect();
        let inside = within(builder, at, extents, &ends)?;
        self.checked(builder, at, inside, boxed)
    }

    /// The place of an element that lies inside this storage's extents if `inside` holds.
    fn checked(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
        inside: Option<Val<'c>>,
        boxed: bool,
    ) -> PassResult<'c, Place<'c>> {
        match self {
            Self::Whole(buffer, _) => Ok(Place {
                buffer: *buffer,
                indices: at.to_vec(),
                inside,
            }),
            Self::Flat(buffer, address) => {
                let linear = address.linear(builder, at)?;
                let swizzled = match address.swizzle {
                    Some(swizzle) => builder.ints().swizzle(swizzle, linear)?,
                    None => linear,
                };
                Ok(Place {
                    buffer: *buffer,
                    indices: vec![swizzled],
                    inside,
                })
            }
            Self::Slice {
                source,
                extents,
                origin,
                shape,
                rank,
            } => {
                let (places, sizes) = in_source(builder, origin, shape, (*rank, at))?;
                let ends: Vec<i64> = origin
                    .iter()
                    .zip(&sizes)
                    .map(|(origin, size)| match origin {
                        Int::Known(start) if *start >= 0 && boxed => start.saturating_add(*size),
                        _ => 0,
                    })
                    .collect();
                let here = within(builder, &places, extents, &ends)?;
                source.checked(builder, &places, both(builder, inside, here)?, false)
            }
            Self::View { source, from, to } => {
                let address = to.linear(builder, at)?;
                let places = from.coordinates(builder, address)?;
                let place = source.locate(builder, &places, false)?;
                Ok(Place {
                    inside: both(builder, inside, place.inside)?,
                    ..place
                })
            }
        }
    }

    /// The element at `at`, or `pad` (zero when absent) where there is none.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn load(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
        pad: Option<Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let place = self.locate(builder, at, true)?;
        let element = element_type(place.buffer.r#type());
        let read = |builder: &Builder<'c>| {
            let operands = place.operands(builder, &[place.buffer])?;
            builder.value("memref.load", &operands, element, &[])
        };
        match place.inside {
            None => read(builder),
            Some(inside) => builder.choose(inside, read, |builder| match pad {
                Some(pad) => Ok(pad),
                None => number(builder, element, 0.0),
            }),
        }
    }

    /// Writes the element at `at` where there is one.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn store(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
        value: Val<'c>,
    ) -> PassResult<'c> {
        let place = self.locate(builder, at, true)?;
        let write = |builder: &Builder<'c>| {
            let operands = place.operands(builder, &[value, place.buffer])?;
            builder
                .operation("memref.store", &operands, &[], &[], Vec::new())
                .map(drop)
        };
        match place.inside {
            None => write(builder),
            Some(inside) => when(builder, inside, write),
        }
    }
}

impl<'c> Place<'c> {
    fn operands(&self, builder: &Builder<'c>, first: &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>> {
        let mut operands = first.to_vec();
        for index in &self.indices {
            operands.push(builder.ints().value(*index)?);
        }
        Ok(operands)
    }
}

/// Whether all elements of a `memref.reinterpret_cast` are among those of memory of this shape.
fn lies_inside(op: Op<'_>, shape: &[i64]) -> bool {
    let of = |name| op.attribute(name).ok().and_then(attribute::read_i64s);
    let lists = ["static_offsets", "static_sizes", "static_strides"].map(of);
    let [Some(offsets), Some(sizes), Some(strides)] = lists else {
        return false;
    };
    let known = |all: &[i64]| all.iter().all(|number| *number >= 0);
    if offsets != [0] || ![shape, &sizes, &strides].into_iter().all(known) {
        return false;
    }
    if sizes.contains(&0) {
        return true;
    }
    let elements = shape
        .iter()
        .try_fold(1i64, |product, extent| product.checked_mul(*extent));
    let last = sizes
        .iter()
        .zip(&strides)
        .try_fold(0i64, |last, (size, stride)| {
            last.checked_add(stride.checked_mul(size - 1)?)
        });
    last.zip(elements)
        .is_some_and(|(last, elements)| last < elements)
}

/// The place of a box's element in its source, and the box's extents in the source's rank.
fn in_source<'c>(
    builder: &Builder<'c>,
    origin: &[Int<'c>],
    shape: &[i64],
    (rank, at): (usize, &[Int<'c>]),
) -> PassResult<'c, (Vec<Int<'c>>, Vec<i64>)> {
    let dropped = origin.len().saturating_sub(rank);
    let mut places = origin.to_vec();
    let mut sizes = vec![1; origin.len()];
    for ((place, extent), (index, size)) in places
        .iter_mut()
        .zip(&mut sizes)
        .skip(dropped)
        .zip(at.iter().zip(shape))
    {
        *place = builder.ints().add(*place, *index)?;
        *extent = *size;
    }
    Ok((places, sizes))
}

/// Whether `at` lies inside `extents`; `ends` bounds each coordinate from above where that is known (0 where not).
fn within<'c>(
    builder: &Builder<'c>,
    at: &[Int<'c>],
    extents: &[Int<'c>],
    ends: &[i64],
) -> PassResult<'c, Option<Val<'c>>> {
    let mut inside = None;
    for ((index, extent), end) in at.iter().zip(extents).zip(ends) {
        let known = match (extent, index) {
            (Int::Known(extent), Int::Known(index)) => (0..*extent).contains(index),
            (Int::Known(extent), _) => *end > 0 && end <= extent,
            _ => false,
        };
        if !known {
            inside = both(
                builder,
                inside,
                Some(builder.ints().below(*index, *extent)?),
            )?;
        }
    }
    Ok(inside)
}
