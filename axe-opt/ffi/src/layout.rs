//! The layout algebra: `axe_layout_*`.

use crate::failure::{Failure, Status, call, item};
use crate::handle::{self, Object, Opaque};
use crate::text::{MAX_ITEMS, MAX_RANK, Text, array, c_string, give, give_new, option, text, view};
use axe_layout::tools::{Colouring, Grid, svg};
use axe_layout::{Axis, Coord, Layout};
use std::ffi::{CString, c_char};
use std::ops::Range;

/// A layout; as an object, `axe_layout`.
#[derive(Debug)]
pub struct LayoutObject {
    layout: Layout,
    text: CString,
}

impl Object for LayoutObject {
    const NAME: &'static str = "axe_layout";
}

impl From<Layout> for LayoutObject {
    fn from(layout: Layout) -> Self {
        let text = c_string(&layout.to_string());
        Self { layout, text }
    }
}

/// `axe_term`: a coordinate on one axis.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Term {
    axis: *const c_char,
    value: i64,
}

/// Coordinates of one element; as an object, `axe_points`.
#[derive(Debug)]
pub struct Points {
    /// The terms of each; their names are in `names`.
    points: Vec<Vec<Term>>,
    /// What the terms point to.
    _names: Vec<CString>,
}

// SAFETY: the pointers are to strings that the object owns and nobody writes to.
unsafe impl Send for Points {}
// SAFETY: as above.
unsafe impl Sync for Points {}

impl Object for Points {
    const NAME: &'static str = "axe_points";
}

impl Points {
    fn of(points: &[Coord]) -> Self {
        let mut names = Vec::new();
        let points = points.iter().map(|point| {
            let terms = point.iter().map(|(axis, value)| {
                let name = c_string(&axis.to_string());
                // The characters stay where they are when the string moves.
                let axis = name.as_ptr();
                names.push(name);
                Term { axis, value }
            });
            terms.collect()
        });
        Self {
            points: points.collect(),
            _names: names,
        }
    }
}

/// Logical indices; as an object, `axe_indices`.
#[derive(Debug)]
pub struct Indices(Vec<i64>);

impl Object for Indices {
    const NAME: &'static str = "axe_indices";
}

type Handle = *const Opaque<LayoutObject>;
type Out = *mut *mut Opaque<LayoutObject>;
type Error = *mut *mut Opaque<Failure>;

/// # Safety
/// `data` is null or valid for `rank` elements.
unsafe fn shape<'a>(data: *const i64, rank: usize, what: &str) -> Result<&'a [i64], Failure> {
    // SAFETY: promised by the caller.
    unsafe { array(data, rank, MAX_RANK, what) }
}

/// The layout of a text.
///
/// # Safety
/// `source` is null or valid for `length` bytes; `layout` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_parse(
    source: *const c_char,
    length: usize,
    layout: Out,
    error: Error,
) -> Status {
    call(error, || {
        // SAFETY: promised by the caller.
        unsafe {
            give_new(layout, "layout", || {
                let source = text(source, length, "text")?.trim();
                let inner = source.strip_prefix("#axe.layout<");
                let inner = inner.and_then(|rest| rest.strip_suffix('>'));
                Ok(inner.unwrap_or(source).parse::<Layout>()?.into())
            })
        }
    })
}

/// The text of a layout, which a NUL ends; null for what is no layout.
#[unsafe(no_mangle)]
pub extern "C" fn axe_layout_text(layout: Handle) -> *const c_char {
    view(handle::find(layout).map(|layout| layout.text.as_ptr()))
}

/// Frees a layout.
#[unsafe(no_mangle)]
pub extern "C" fn axe_layout_free(layout: *mut Opaque<LayoutObject>) {
    handle::free(layout.cast_const());
}

/// How many logical indices a layout has.
///
/// # Safety
/// `size` and `error` are null or places for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_size(layout: Handle, size: *mut i64, error: Error) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        if layout.layout.is_dynamic() {
            let message = "the layout has a dynamic extent: its size is known at run time";
            return Err(Failure::new(Status::Unsupported, message));
        }
        // SAFETY: promised by the caller.
        unsafe { give(size, layout.layout.size(), "size") }
    })
}

/// Whether two layouts are the same map.
///
/// # Safety
/// `equal` and `error` are null or places for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_equal(
    a: Handle,
    b: Handle,
    equal: *mut bool,
    error: Error,
) -> Status {
    call(error, || {
        let (a, b) = (handle::get(a, "a")?, handle::get(b, "b")?);
        // SAFETY: promised by the caller.
        unsafe { give(equal, a.layout.equivalent(&b.layout)?, "equal") }
    })
}

/// The representative of all layouts that are the same map.
///
/// # Safety
/// `canonical` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_canonicalize(
    layout: Handle,
    canonical: Out,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        let made = || Ok(layout.layout.canonicalize().into());
        // SAFETY: promised by the caller.
        unsafe { give_new(canonical, "canonical", made) }
    })
}

/// The coordinates of an element: where its copies are.
///
/// # Safety
/// `extents` and `index` are null or valid for `rank` elements; `points` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_apply(
    layout: Handle,
    extents: *const i64,
    index: *const i64,
    rank: usize,
    points: *mut *mut Opaque<Points>,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        // SAFETY: promised by the caller.
        unsafe {
            let extents = shape(extents, rank, "shape")?;
            let index = shape(index, rank, "index")?;
            give_new(points, "points", || {
                Ok(Points::of(&layout.layout.apply(extents, index)?))
            })
        }
    })
}

/// How many points there are; 0 for what is no such list.
#[unsafe(no_mangle)]
pub extern "C" fn axe_points_count(points: *const Opaque<Points>) -> usize {
    handle::find(points).map_or(0, |points| points.points.len())
}

/// The terms of a point, which live as long as the list.
///
/// # Safety
/// `terms` and `count` are null or places for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_points_terms(
    points: *const Opaque<Points>,
    point: usize,
    terms: *mut *const Term,
    count: *mut usize,
) -> Status {
    call(std::ptr::null_mut(), || {
        let points = handle::get(points, "points")?;
        let found = item(&points.points, point, "point")?;
        // SAFETY: promised by the caller.
        unsafe {
            give(terms, found.as_ptr(), "terms")?;
            give(count, found.len(), "count")
        }
    })
}

/// Frees a list of points.
#[unsafe(no_mangle)]
pub extern "C" fn axe_points_free(points: *mut Opaque<Points>) {
    handle::free(points.cast_const());
}

/// The logical indices that are at a point.
///
/// # Safety
/// `terms` is null or valid for `count` elements; `indices` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_invert(
    layout: Handle,
    terms: *const Term,
    count: usize,
    indices: *mut *mut Opaque<Indices>,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        // SAFETY: promised by the caller.
        unsafe {
            let terms = array(terms, count, MAX_ITEMS, "terms")?;
            give_new(indices, "indices", || {
                let mut point = Coord::new();
                for term in terms {
                    let axis = option(term.axis, "terms[].axis")?
                        .ok_or_else(|| Failure::argument("`terms[].axis` is NULL"))?;
                    point.add(Axis::new(axis)?, term.value)?;
                }
                Ok(Indices(layout.layout.invert(&point)?))
            })
        }
    })
}

/// The indices of a list, which live as long as it; null and 0 for what is no such list.
///
/// # Safety
/// `count` is null or a place for a result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_indices_data(
    indices: *const Opaque<Indices>,
    count: *mut usize,
) -> *const i64 {
    let found = handle::find(indices);
    let (data, length) = found.map_or((std::ptr::null(), 0), |all| (all.0.as_ptr(), all.0.len()));
    if !count.is_null() {
        // SAFETY: promised by the caller.
        unsafe { count.write_unaligned(length) };
    }
    data
}

/// Frees a list of indices.
#[unsafe(no_mangle)]
pub extern "C" fn axe_indices_free(indices: *mut Opaque<Indices>) {
    handle::free(indices.cast_const());
}

/// The same map with iters that end where the dimensions of a shape do.
///
/// # Safety
/// `extents` is null or valid for `rank` elements, `separators` null or valid for `rank + 1`; `grouped` and `error` are
/// null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_group(
    layout: Handle,
    extents: *const i64,
    rank: usize,
    grouped: Out,
    separators: *mut usize,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        // SAFETY: promised by the caller.
        unsafe {
            let extents = shape(extents, rank, "shape")?;
            give_new(grouped, "grouped", || {
                let made = layout.layout.group(extents)?;
                if !separators.is_null() {
                    for (at, end) in made.seps.iter().enumerate().take(rank + 1) {
                        separators.add(at).write_unaligned(*end);
                    }
                }
                Ok(made.layout.into())
            })
        }
    })
}

/// A copy of an inner layout at every element of an outer one.
///
/// # Safety
/// The shapes are null or valid for `rank` elements; `tiled` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_tile(
    outer: Handle,
    outer_shape: *const i64,
    inner: Handle,
    inner_shape: *const i64,
    rank: usize,
    tiled: Out,
    error: Error,
) -> Status {
    call(error, || {
        let (outer, inner) = (handle::get(outer, "outer")?, handle::get(inner, "inner")?);
        // SAFETY: promised by the caller.
        unsafe {
            let outer_shape = shape(outer_shape, rank, "outer_shape")?;
            let inner_shape = shape(inner_shape, rank, "inner_shape")?;
            give_new(tiled, "tiled", || {
                let (outer, inner) = (&outer.layout, &inner.layout);
                Ok(Layout::tile(outer, outer_shape, inner, inner_shape)?.into())
            })
        }
    })
}

/// The outer layout that [`axe_layout_tile`] makes a layout of with an inner one.
///
/// # Safety
/// As [`axe_layout_tile`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_tile_of(
    layout: Handle,
    extents: *const i64,
    inner: Handle,
    inner_shape: *const i64,
    rank: usize,
    outer: Out,
    error: Error,
) -> Status {
    call(error, || {
        let (layout, inner) = (handle::get(layout, "layout")?, handle::get(inner, "inner")?);
        // SAFETY: promised by the caller.
        unsafe {
            let extents = shape(extents, rank, "shape")?;
            let inner_shape = shape(inner_shape, rank, "inner_shape")?;
            give_new(outer, "outer", || {
                let found = layout.layout.tile_of(extents, &inner.layout, inner_shape)?;
                Ok(found.into())
            })
        }
    })
}

/// The layout of a box: elements from `begin` to below `end`.
///
/// # Safety
/// The arrays are null or valid for `rank` elements; `slice` and `error` are null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_slice(
    layout: Handle,
    extents: *const i64,
    begin: *const i64,
    end: *const i64,
    rank: usize,
    slice: Out,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        // SAFETY: promised by the caller.
        unsafe {
            let extents = shape(extents, rank, "shape")?;
            let ends = shape(begin, rank, "begin")?
                .iter()
                .zip(shape(end, rank, "end")?);
            let region: Vec<Range<i64>> = ends.map(|(begin, end)| *begin..*end).collect();
            give_new(slice, "slice", || {
                Ok(layout.layout.slice(extents, &region)?.into())
            })
        }
    })
}

/// A picture of a layout.
///
/// # Safety
/// `extents` is null or valid for `rank` elements, `caption` null or a text that a NUL ends; `picture` and `error` are
/// null or places for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_layout_svg(
    layout: Handle,
    extents: *const i64,
    rank: usize,
    caption: *const c_char,
    picture: *mut *mut Opaque<Text>,
    error: Error,
) -> Status {
    call(error, || {
        let layout = handle::get(layout, "layout")?;
        // SAFETY: promised by the caller.
        unsafe {
            let extents = shape(extents, rank, "shape")?;
            let caption = option(caption, "caption")?.unwrap_or("");
            give_new(picture, "svg", || {
                let grid = Grid::new(&layout.layout, extents, None, Colouring::Owner)?;
                Ok(Text(c_string(&svg::svg(&grid, caption))))
            })
        }
    })
}
