//! The C ABI of dialect/ir/LayoutAbi.h: what the dialect's C++ asks of the layout algebra.
//!
//! No panic crosses the boundary: each answer is computed under `catch_unwind`, and a panic (a bug in the
//! algebra) becomes an error message.

use crate::attribute::swizzle_of;
use crate::vocabulary;
use axe_layout::{Axis, Iter, Layout, Offset};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One iter; `AxeIter` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiIter {
    extent: i64,
    stride: i64,
    axis: *const c_char,
    axis_length: usize,
}

/// One offset; `AxeOffset` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiOffset {
    axis: *const c_char,
    axis_length: usize,
    value: i64,
}

/// A swizzle; `AxeSwizzle` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiSwizzle {
    bits: i64,
    base: i64,
    shift: i64,
}

/// A borrowed layout; `AxeLayoutView` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AbiLayout {
    shard: *const AbiIter,
    shard_count: usize,
    replica: *const AbiIter,
    replica_count: usize,
    offsets: *const AbiOffset,
    offset_count: usize,
    swizzle: *const AbiSwizzle,
}

/// Receives an error message; `AxeErrorSink` in C.
pub type ErrorSink = unsafe extern "C" fn(message: *const c_char, length: usize, user: *mut c_void);

type Result<T> = std::result::Result<T, String>;

/// # Safety
/// `pointer` is valid for `count` elements, or `count` is 0.
unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(pointer, count) }
}

/// # Safety
/// The bytes are valid for the length.
unsafe fn text<'a>(pointer: *const c_char, length: usize) -> Result<&'a str> {
    // SAFETY: promised by the caller.
    let bytes = unsafe { slice(pointer.cast::<u8>(), length) };
    std::str::from_utf8(bytes).map_err(|_| "axis name: expected UTF-8".into())
}

/// # Safety
/// All pointers of the view are valid for their counts.
unsafe fn layout(view: &AbiLayout) -> Result<Layout> {
    // SAFETY: promised by the caller.
    unsafe {
        let iter = |iter: &AbiIter| -> Result<Iter> {
            let axis =
                Axis::new(text(iter.axis, iter.axis_length)?).map_err(|error| error.to_string())?;
            Ok(Iter::new(iter.extent, iter.stride, axis))
        };
        let shard = slice(view.shard, view.shard_count)
            .iter()
            .map(iter)
            .collect::<Result<Vec<_>>>()?;
        let replica = slice(view.replica, view.replica_count)
            .iter()
            .map(iter)
            .collect::<Result<Vec<_>>>()?;
        let mut offset = Offset::new();
        for term in slice(view.offsets, view.offset_count) {
            let axis =
                Axis::new(text(term.axis, term.axis_length)?).map_err(|error| error.to_string())?;
            offset.set(axis, term.value);
        }
        let swizzle = view
            .swizzle
            .as_ref()
            .map(|s| swizzle_of(s.bits, s.base, s.shift).map_err(|error| format!("(L5) {error}")))
            .transpose()?;
        let number = |error: axe_layout::Error| match error.kind() {
            axe_layout::Kind::Overflow => format!("(L4) {error}"),
            _ => format!("(L2) {error}"),
        };
        Layout::new(shard, replica, offset, swizzle).map_err(number)
    }
}

fn check_vocabulary(layout: &Layout) -> Result<()> {
    for axis in layout.axes() {
        let name = axis.name();
        if vocabulary::axis(name).is_none() && !vocabulary::is_mesh_axis(name) {
            return Err(format!(
                "(L3) unknown axis '{name}': expected one of {}, or 'mesh.axis' of an axe.mesh",
                vocabulary::axes().join(", ")
            ));
        }
    }
    Ok(())
}

/// Runs `answer`; reports its error, or a panic, and gives `None` then.
fn guarded<T>(answer: impl FnOnce() -> Result<T>, report: impl FnOnce(&str)) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(Ok(value)) => Some(value),
        Ok(Err(message)) => {
            report(&message);
            None
        }
        Err(_) => {
            report("internal error in the layout algebra");
            None
        }
    }
}

fn to_sink(sink: ErrorSink, user: *mut c_void) -> impl FnOnce(&str) {
    // SAFETY: the sink takes any message; `user` is its own.
    move |message| unsafe { sink(message.as_ptr().cast(), message.len(), user) }
}

/// Whether the layout is well formed and its axes are in the vocabulary.
///
/// # Safety
/// The view's pointers are valid; `sink` accepts `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeLayoutVerify(
    view: AbiLayout,
    sink: ErrorSink,
    user: *mut c_void,
) -> bool {
    // SAFETY: promised by the caller.
    guarded(
        || check_vocabulary(&unsafe { layout(&view) }?),
        to_sink(sink, user),
    )
    .is_some()
}

/// Whether the layout admits the shape.
///
/// # Safety
/// The view's and the shape's pointers are valid; `sink` accepts `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeLayoutAdmits(
    view: AbiLayout,
    shape: *const i64,
    rank: usize,
    sink: ErrorSink,
    user: *mut c_void,
) -> bool {
    let answer = || {
        // SAFETY: promised by the caller.
        let (layout, shape) = unsafe { (layout(&view)?, slice(shape, rank)) };
        if layout.admits(shape) {
            return Ok(());
        }
        let extents: Vec<_> = shape
            .iter()
            .map(|&extent| {
                if extent == axe_layout::DYNAMIC {
                    "?".into()
                } else {
                    extent.to_string()
                }
            })
            .collect();
        Err(format!(
            "(L6) layout does not admit the shape: expected {} elements (the product of the shard extents), got {}",
            if layout.is_dynamic() {
                format!("a multiple of {}", layout.size())
            } else {
                layout.size().to_string()
            },
            extents.join(" x ")
        ))
    };
    guarded(answer, to_sink(sink, user)).is_some()
}

/// Whether two layouts induce the same map; false when either is malformed.
///
/// # Safety
/// The views' pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeLayoutEqual(a: AbiLayout, b: AbiLayout) -> bool {
    // SAFETY: promised by the caller.
    let answer = || unsafe {
        layout(&a)?
            .equivalent(&layout(&b)?)
            .map_err(|error| error.to_string())
    };
    guarded(answer, |_| ()).unwrap_or(false)
}

/// Strides and offset on `m`, in elements, where the layout is one stride a dimension.
///
/// # Safety
/// The pointers are valid: `shape` and `strides` for `rank` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeLayoutStrides(
    view: AbiLayout,
    shape: *const i64,
    rank: usize,
    strides: *mut i64,
    offset: *mut i64,
) -> bool {
    // SAFETY: promised by the caller.
    let answer = || unsafe {
        let found = layout(&view)?
            .strides(slice(shape, rank))
            .map_err(|error| error.to_string())?;
        if rank > 0 {
            std::slice::from_raw_parts_mut(strides, rank).copy_from_slice(&found);
        }
        *offset = layout(&view)?.offset().get(Axis::M);
        Ok(())
    };
    guarded(answer, |_| ()).is_some()
}

/// Elements of storage that the layout spans on `m` from address 0; -1 when that is not known.
///
/// # Safety
/// The view's pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeLayoutStorage(view: AbiLayout) -> i64 {
    // SAFETY: promised by the caller.
    let answer = || unsafe {
        layout(&view)?
            .cosize(Axis::M)
            .map_err(|error| error.to_string())
    };
    guarded(answer, |_| ()).unwrap_or(-1)
}

/// Whether every axis that the layout names counts places of this memory space.
///
/// # Safety
/// The view's pointers are valid, and `space` is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeSpaceHasLayout(
    space: *const c_char,
    length: usize,
    view: AbiLayout,
) -> bool {
    // SAFETY: promised by the caller.
    let answer = || unsafe {
        let axes = vocabulary::axes_of_space(text(space, length)?);
        let has = |axis: &Axis| axes.iter().any(|known| *known == axis.to_string());
        Ok(layout(&view)?.axes().iter().all(has))
    };
    guarded(answer, |_| ()).unwrap_or(false)
}

/// Whether a target declared this axis.
///
/// # Safety
/// `name` is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeVocabularyHasAxis(name: *const c_char, length: usize) -> bool {
    // SAFETY: promised by the caller.
    guarded(
        || Ok(vocabulary::axis(unsafe { text(name, length) }?).is_some()),
        |_| (),
    )
    .unwrap_or(false)
}

/// Whether a target declared this memory space.
///
/// # Safety
/// `name` is valid for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeVocabularyHasSpace(name: *const c_char, length: usize) -> bool {
    // SAFETY: promised by the caller.
    guarded(
        || Ok(vocabulary::has_space(unsafe { text(name, length) }?)),
        |_| (),
    )
    .unwrap_or(false)
}
