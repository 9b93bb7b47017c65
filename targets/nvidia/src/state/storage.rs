//! Storage of memref types, and what slices, views and peers make of it.

use super::boxes;
use super::form::{Guard, Origin, Sizes, Space, Storage};
use super::types;
use crate::plan::{Decline, copy, gcd};
use axe_dialect::{element_type, layout_of, memory_space, strides_of};
use axe_layout::{Axis, Iter, Swizzle};
use axe_passes::ir::DYNAMIC;
use axe_passes::ir::facts::Fact;
use melior::ir::Type;

/// Bytes to which the runtime aligns a kernel's pointer arguments.
pub(crate) const ARGUMENT_ALIGNMENT: i64 = 16;

/// Alignment of the dynamic shared memory and of each allocation, in bytes: what TMA's widest swizzle asks for.
pub(crate) const SHARED_ALIGNMENT: i64 = 1024;

/// More rows than any tensor has: the extent of a dimension that is known at run time only.
const MOST_ROWS: i64 = 1 << 40;

/// The place of each element in a memref type.
struct Places {
    dims: Vec<Vec<Iter>>,
    offset: i64,
    swizzle: Option<Swizzle>,
}

/// The storage that a memref type describes, at an address of this alignment in bytes.
///
/// # Errors
/// A message, for a type that has no place on this target.
pub(crate) fn of_type<'c>(r#type: Type<'c>, alignment: i64) -> Result<Storage<'c>, String> {
    let space = match memory_space(r#type) {
        Some("global") => Space::Global,
        Some("shared") => Space::Shared,
        _ => return Err(format!("expected global or shared memory, got {type}")),
    };
    let element = element_type(r#type);
    let bytes = types::bytes(element).ok_or_else(|| {
        format!("elements of type {element} have no place in memory: expected i1, or 8, 16, 32 or 64 bits")
    })?;
    let shape =
        types::memref_shape(r#type).ok_or_else(|| format!("expected a memref, got {type}"))?;
    addressable(r#type, &shape, bytes)?;
    let places = places(r#type, &shape)?;
    Ok(Storage {
        space,
        element,
        bytes,
        dims: places.dims,
        offset: places.offset,
        swizzle: places.swizzle,
        guards: vec![None; shape.len()],
        shape,
        alignment: (alignment / bytes).max(1),
        displacement: Some(0),
        origin: None,
        sizes: Vec::new(),
    })
}

/// Checks that the known extents of a memref are of fewer bytes than an address counts.
///
/// # Errors
/// A message, where they are not.
pub(crate) fn addressable(r#type: Type<'_>, shape: &[i64], bytes: i64) -> Result<(), String> {
    let mut known = shape.iter().filter(|extent| **extent != DYNAMIC);
    let total = known.try_fold(bytes, |total, &extent| total.checked_mul(extent));
    match total {
        Some(_) => Ok(()),
        None => Err(format!(
            "expected storage of fewer than 2^63 bytes, got {type}"
        )),
    }
}

/// What a stride that is an argument of the kernel stands as, in what divides it: a prime, and within what a tensor map has
/// (PTX ISA 5.5.2).
const RUN_TIME_STRIDE: i64 = 1_048_583;

/// All of an argument under other extents and strides, of which some are arguments of the kernel. Strides that are stand as
/// multiples of what divides them.
///
/// # Errors
/// A message, for the storage of something else, or a type without strides.
pub(crate) fn reinterpreted<'c>(
    source: &Storage<'c>,
    r#type: Type<'c>,
    multiples: &[i64],
    sizes: Vec<Sizes>,
) -> Result<Storage<'c>, String> {
    let origin = source.origin.as_ref().filter(|origin| origin.whole);
    let origin = origin.ok_or("expected all of a kernel's argument")?;
    let shape = types::memref_shape(r#type).unwrap_or_default();
    let strides = strides_of(r#type).map(|(strides, _)| strides);
    let strides = strides.ok_or_else(|| format!("expected strides, got {type}"))?;
    let mut dims = Vec::new();
    for (at, (&extent, &stride)) in shape.iter().zip(&strides).enumerate() {
        let multiple = multiples.get(at).copied().unwrap_or(1).max(1);
        let stride = match stride {
            DYNAMIC => multiple.checked_mul(RUN_TIME_STRIDE),
            known => Some(known),
        };
        let stride = stride.ok_or("a stride is a multiple of too large a number")?;
        let extent = if extent == DYNAMIC { MOST_ROWS } else { extent };
        dims.push(vec![Iter::new(extent.max(1), stride, Axis::M)]);
    }
    let mut own = Storage {
        dims,
        offset: 0,
        swizzle: None,
        guards: vec![None; shape.len()],
        shape,
        displacement: Some(0),
        origin: None,
        sizes,
        ..source.clone()
    };
    own.origin = Some(Origin::of(origin.argument, &own));
    Ok(own)
}

/// Whether the places of elements follow from its iters: not those of an argument that loops alone read.
pub(crate) fn is_placed(storage: &Storage<'_>) -> bool {
    storage.dims.iter().all(|iters| !iters.is_empty())
}

/// Whether an extent but the outermost is known at run time only.
pub(crate) fn is_ragged(shape: &[i64]) -> bool {
    shape.iter().skip(1).any(|&extent| extent == DYNAMIC)
}

/// Whether a memref has no layout but its extents.
pub(crate) fn is_row_major(r#type: Type<'_>) -> bool {
    // SAFETY: the accessors are called on a memref's type.
    unsafe {
        let raw = melior::ir::TypeLike::to_raw(&r#type);
        mlir_sys::mlirTypeIsAMemRef(raw)
            && mlir_sys::mlirAffineMapIsIdentity(mlir_sys::mlirMemRefTypeGetAffineMap(raw))
            && layout_of(r#type).is_none()
    }
}

fn places(r#type: Type<'_>, shape: &[i64]) -> Result<Places, String> {
    let Some(attribute) = layout_of(r#type) else {
        if is_ragged(shape) && is_row_major(r#type) {
            // Loops alone execute what has such extents: they compute its places.
            return Ok(Places {
                dims: vec![Vec::new(); shape.len()],
                offset: 0,
                swizzle: None,
            });
        }
        let (strides, offset) = strides_of(r#type)
            .filter(|(strides, _)| !strides.contains(&DYNAMIC))
            .ok_or_else(|| format!("expected static strides, got {type}"))?;
        let iter = |(&extent, &stride): (&i64, &i64)| {
            let extent = if extent == DYNAMIC { MOST_ROWS } else { extent };
            vec![Iter::new(extent.max(1), stride, Axis::M)]
        };
        return Ok(Places {
            dims: shape.iter().zip(&strides).map(iter).collect(),
            // The pointer of a kernel's argument is that of its first element.
            offset: if offset == DYNAMIC { 0 } else { offset },
            swizzle: None,
        });
    };
    let layout = attribute.layout().map_err(|error| error.to_string())?;
    if layout.axes().iter().any(|&axis| axis != Axis::M) || !layout.replica().is_empty() {
        return Err(format!(
            "expected storage on the axis m without replicas, got {layout}"
        ));
    }
    let grouped = layout.group(shape).map_err(|error| error.to_string())?;
    Ok(Places {
        dims: grouped.blocks().map(<[Iter]>::to_vec).collect(),
        offset: layout.offset().get(Axis::M),
        swizzle: layout.swizzle(),
    })
}

/// The extents of a box of `source`, and how many of its leading dimensions, of one element each, its type leaves out.
pub(crate) fn extents(source: &Storage<'_>, shape: Vec<i64>) -> (Vec<i64>, usize) {
    let dropped = source.shape.len().saturating_sub(shape.len());
    let extents = std::iter::repeat_n(1, dropped).chain(shape).collect();
    (extents, dropped)
}

/// A box of `source` at an origin that is known as `origins` say.
///
/// # Errors
/// A message, for a box that does not line up with the source's iters.
pub(crate) fn slice<'c>(
    source: &Storage<'c>,
    origins: &[Fact],
    shape: Vec<i64>,
) -> Result<Storage<'c>, String> {
    let (extents, dropped) = extents(source, shape);
    let mut kept = source.sizes.iter().skip(dropped);
    if kept.any(|sizes| sizes.stride.is_some()) {
        return Err(
            "expected a box of dimensions whose strides are known when compiling".to_owned(),
        );
    }
    let mut sliced = Storage {
        dims: Vec::new(),
        guards: Vec::new(),
        sizes: Vec::new(),
        shape: extents.clone(),
        ..source.clone()
    };
    for (dim, (origin, &extent)) in origins.iter().zip(&extents).enumerate() {
        let cut = cut(source, dim, extent, origin)?;
        sliced.alignment = gcd(sliced.alignment, cut.multiple).max(1);
        if !moves_base(&sliced, cut.multiple) {
            let by = cut.offset(origin.known());
            let sum = |(at, by): (i64, i64)| at.checked_add(by);
            sliced.displacement = sliced.displacement.zip(by).and_then(sum);
        }
        sliced.dims.push(cut.iters);
        sliced.guards.push(guard(source, dim, extent, origin));
        move_origin(&mut sliced, source, dim, origin);
    }
    drop_units(sliced, dropped)
}

/// One dimension of a box.
///
/// # Errors
/// As [`slice`].
pub(crate) fn cut(
    source: &Storage<'_>,
    dim: usize,
    extent: i64,
    origin: &Fact,
) -> Result<boxes::Cut, String> {
    let iters = source.dims.get(dim).map_or(&[][..], Vec::as_slice);
    boxes::cut(iters, extent, origin.divisor)
        .map_err(|reason| format!("dimension {dim} of the box: {reason}"))
}

/// Whether an offset of a multiple of so many elements moves the base, past whole periods of the swizzle.
pub(crate) fn moves_base(storage: &Storage<'_>, multiple: i64) -> bool {
    multiple % storage.swizzle.map_or(1, |swizzle| swizzle.period()) == 0
}

/// The end of the source along a dimension, counted from its origin, where it is known; and what divides it.
fn limit(source: &Storage<'_>, dim: usize) -> (Option<i64>, i64) {
    let outer = source.guards.get(dim).copied().flatten();
    match (outer, source.shape.get(dim).copied()) {
        (Some(guard), _) => (guard.remaining, guard.divisor),
        (None, Some(DYNAMIC)) => (None, 1),
        (None, limit) => (Some(limit.unwrap_or(0)), limit.unwrap_or(0)),
    }
}

/// The bounds of a box along a dimension; `None` when all of it always exists.
pub(crate) fn guard(source: &Storage<'_>, dim: usize, extent: i64, origin: &Fact) -> Option<Guard> {
    let (limit, divisor) = limit(source, dim);
    let inside = limit.zip(origin.high).is_some_and(|(limit, high)| {
        origin.low >= Some(0) && high.checked_add(extent).is_some_and(|end| end <= limit)
    });
    let left = |(limit, at): (i64, i64)| limit.checked_sub(at);
    (!inside).then(|| Guard {
        divisor: gcd(divisor, origin.divisor),
        remaining: limit.zip(origin.known()).and_then(left),
    })
}

/// The dimension of the argument along which a slice's origin moves; `None` where the box has no origin any more. A box whose
/// bounds are another slice's has none.
pub(crate) fn origin_along(
    sliced: &Storage<'_>,
    source: &Storage<'_>,
    dim: usize,
) -> Option<usize> {
    let bounded = |storage: &Storage<'_>| storage.guards.get(dim).is_some_and(Option::is_some);
    let origin = sliced.origin.as_ref()?;
    if !origin.whole && bounded(sliced) && !bounded(source) {
        return None;
    }
    origin.kept.get(dim).copied()
}

fn move_origin(sliced: &mut Storage<'_>, source: &Storage<'_>, dim: usize, by: &Fact) {
    let along = origin_along(sliced, source, dim);
    let (Some(mut origin), Some(along)) = (sliced.origin.take(), along) else {
        return;
    };
    if let Some(divisor) = origin.divisors.get_mut(along) {
        *divisor = gcd(*divisor, by.divisor);
    }
    if dim + 1 == source.shape.len() {
        origin.whole = false;
    }
    sliced.origin = Some(origin);
}

/// Without its leading unit dimensions. A guard on one of them decides for the whole box: where it fails, the first dimension
/// is empty.
fn drop_units(mut storage: Storage<'_>, dropped: usize) -> Result<Storage<'_>, String> {
    let units: Vec<_> = storage.guards.drain(..dropped).flatten().collect();
    storage.shape.drain(..dropped);
    storage.dims.drain(..dropped);
    if let Some(origin) = &mut storage.origin {
        origin.kept.drain(..dropped);
    }
    for unit in units {
        let (Some(&extent), Some(first)) = (storage.shape.first(), storage.guards.first_mut())
        else {
            return Err("a box without dimensions may not lie outside its source".to_owned());
        };
        let whole = Guard {
            divisor: extent,
            remaining: unit
                .remaining
                .map(|left| left.min(1).saturating_mul(extent)),
        };
        *first = Some(match first {
            Some(old) => Guard {
                divisor: gcd(old.divisor, extent),
                remaining: old.remaining.zip(whole.remaining).map(|(a, b)| a.min(b)),
            },
            None => whole,
        });
    }
    Ok(storage)
}

/// The same storage through another layout.
///
/// # Errors
/// A message, for a view of dynamic shape, and for one of a box that may reach outside its source that loses the bounds.
pub(crate) fn view<'c>(source: &Storage<'c>, r#type: Type<'c>) -> Result<Storage<'c>, String> {
    let mut view = of_type(r#type, 1)?;
    if view.shape.contains(&DYNAMIC) {
        return Err(format!("expected a view of static shape, got {type}"));
    }
    let kept = boxes::guards_of_view(source, &view).ok_or(
        "the view of a box that may reach outside its source must keep its bounded dimensions: \
         expected dimensions of the same extent and stride",
    )?;
    view.guards = kept
        .iter()
        .map(|from| source.guards.get((*from)?).copied().flatten())
        .collect();
    view.displacement = source.displacement;
    view.alignment = source.alignment;
    let whole = source.origin.as_ref().filter(|origin| origin.whole);
    view.origin = whole.map(|origin| Origin::of(origin.argument, &view));
    Ok(view)
}

/// Storage as plans see it.
///
/// # Errors
/// The plan's, and storage whose box has no layout.
pub(crate) fn with_memory<T>(
    storage: &Storage<'_>,
    plan: impl FnOnce(copy::Memory) -> Result<T, Decline>,
) -> Result<T, Decline> {
    let layout = storage
        .layout()
        .map_err(|error| Decline::new(error.to_string()))?;
    let ends: Vec<_> = storage
        .guards
        .iter()
        .map(|guard| guard.map_or(0, |guard| guard.divisor))
        .collect();
    plan(copy::Memory {
        layout: &layout,
        alignment: storage.alignment,
        element_bytes: storage.bytes,
        ends: &ends,
        widest: i64::MAX,
    })
}

/// Bytes of the storage of a memref type.
pub(crate) fn storage_bytes(r#type: Type) -> Option<i64> {
    let elements = match layout_of(r#type) {
        Some(attribute) => {
            let layout = attribute.layout().ok()?;
            let cosize = layout.cosize(Axis::M).ok()?;
            match layout.swizzle() {
                // A swizzle moves elements within whole periods.
                Some(swizzle) => {
                    let period = swizzle.period();
                    cosize.checked_add(period - 1)? / period * period
                }
                None => cosize,
            }
        }
        None => {
            let (strides, _) = strides_of(r#type)?;
            let shape = types::memref_shape(r#type)?;
            let mut dims = shape.iter().zip(strides);
            dims.try_fold(1_i64, |last, (extent, stride)| {
                extent
                    .checked_sub(1)?
                    .checked_mul(stride)?
                    .checked_add(last)
            })?
        }
    };
    elements.checked_mul(types::bytes(element_type(r#type))?)
}

/// The alignment of a kernel's argument in bytes that LLVM is told of: that of the runtime, or less where the tensor does
/// not end at a multiple of it. LLVM reads past what is asked for, up to the alignment of what it reads.
pub(crate) fn argument_alignment(r#type: Type) -> i64 {
    let shape = types::memref_shape(r#type).unwrap_or_default();
    let element = types::bytes(element_type(r#type)).unwrap_or(1);
    let size = match shape.contains(&DYNAMIC) {
        false => storage_bytes(r#type),
        // The size of a dense tensor is a multiple of the product of its known extents.
        true if is_dense(r#type, &shape) => {
            let mut known = shape.iter().filter(|extent| **extent != DYNAMIC);
            known.try_fold(element, |size, extent| size.checked_mul(*extent))
        }
        true => None,
    };
    match size.unwrap_or(element) {
        ..=0 => element.min(ARGUMENT_ALIGNMENT),
        size => (size & size.wrapping_neg()).min(ARGUMENT_ALIGNMENT),
    }
}

/// Whether elements follow each other without holes, as far as strides are known.
fn is_dense(r#type: Type, shape: &[i64]) -> bool {
    let Some((strides, _)) = strides_of(r#type).filter(|_| layout_of(r#type).is_none()) else {
        return false;
    };
    let mut dense = Some(1_i64);
    shape.iter().zip(strides).rev().all(|(&extent, stride)| {
        let fits = dense.is_none_or(|dense| stride == dense);
        dense = dense
            .filter(|_| extent != DYNAMIC)
            .and_then(|dense| dense.checked_mul(extent));
        fits
    })
}
