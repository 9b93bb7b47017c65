//! Boxes of storage and tiles of register tensors: what the algebra's slices say of their types.

use crate::ir::facts::Fact;
use crate::ir::{Builder, DYNAMIC, types};
use axe_dialect::vocabulary::{self, AxisKind};
use axe_dialect::{
    LayoutAttribute, SpaceAttribute, element_type, layout_of, memory_space, memref_type, strides_of,
};
use axe_layout::{Axis, Iter, Layout, Offset};
use melior::ir::Type;
use std::ops::Range;

/// Origins of a box that are looked at one by one.
const MAX_ORIGINS: usize = 4096;

/// A type, or why there is none.
pub(crate) type Found<T> = Result<T, String>;

/// The box of a shape that starts at `origin`.
pub(crate) fn region(origin: &[i64], extents: &[i64]) -> Vec<Range<i64>> {
    let range = |(start, extent): (&i64, &i64)| *start..start.saturating_add(*extent);
    origin.iter().zip(extents).map(range).collect()
}

/// The map of a memref of static shape on the memory axis.
pub(crate) fn memory_layout(memref: Type<'_>) -> Found<Layout> {
    if let Some(attribute) = layout_of(memref) {
        return attribute.layout().map_err(|error| error.to_string());
    }
    let shape = types::shape(memref).ok_or("expected a ranked memref")?;
    let (strides, offset) =
        strides_of(memref).ok_or("its layout is neither one of axe nor strided")?;
    if strides.contains(&DYNAMIC) || shape.contains(&DYNAMIC) {
        return Err(format!("expected static extents and strides, got {memref}"));
    }
    let layout = Layout::strided(&shape, &strides).map_err(|error| error.to_string())?;
    // The offset of a slice at run time is counted by the slice.
    moved(&layout, if offset == DYNAMIC { 0 } else { offset })
}

/// The layout, further by `by` elements of memory.
pub(crate) fn moved(layout: &Layout, by: i64) -> Found<Layout> {
    let at = layout.offset().get(Axis::M).checked_add(by);
    let mut offset = layout.offset().clone();
    offset.set(Axis::M, at.ok_or("the offset does not fit 64 bits")?);
    layout
        .clone()
        .with_offset(offset)
        .map_err(|error| error.to_string())
}

/// A memref type like `like`, of another shape and map: strided where `like` is and the map allows it.
pub(crate) fn memref_like<'c>(
    builder: &Builder<'c>,
    like: Type<'c>,
    shape: &[i64],
    layout: &Layout,
) -> Found<Type<'c>> {
    let space = match memory_space(like) {
        Some("global") => None,
        Some(name) => SpaceAttribute::new(builder.location, name),
        None => return Err(format!("expected a memory space of axe, got {like}")),
    };
    let layout = &without_units(layout)?;
    let strides = layout
        .strides(shape)
        .ok()
        .filter(|_| layout_of(like).is_none());
    let map = match strides {
        Some(strides) => {
            let offset = layout.offset().get(Axis::M);
            let strides: Vec<_> = strides.iter().map(ToString::to_string).collect();
            let offset = match offset {
                0 => String::new(),
                offset => format!(", offset: {offset}"),
            };
            let text = format!("strided<[{}]{offset}>", strides.join(", "));
            builder.parsed(&text).map_err(|error| error.message)?
        }
        None => LayoutAttribute::new(builder.location, layout)
            .ok_or("no target declares its axes")?
            .to_attribute(),
    };
    memref_type(
        builder.location,
        shape,
        element_type(like),
        Some(map),
        space,
    )
    .ok_or_else(|| format!("no memref of shape {shape:?} has the layout {layout}"))
}

/// The layout without iters of one place, which the dimensions that a box leaves out become.
fn without_units(layout: &Layout) -> Found<Layout> {
    let shard = layout.shard().iter().filter(|iter| iter.extent != 1);
    Layout::new(
        shard.copied(),
        layout.replica().iter().copied(),
        layout.offset().clone(),
        layout.swizzle(),
    )
    .map_err(|error| error.to_string())
}

/// The type of the box of `extents` of storage like `like` at run-time origins, of which this is known, counted from its own first element; its first
/// `dropped` dimensions, of one element, are left out.
///
/// # Errors
/// Why no one layout describes the box at every origin.
pub(crate) fn box_type<'c>(
    builder: &Builder<'c>,
    like: Type<'c>,
    origins: &[Fact],
    extents: &[i64],
    dropped: usize,
) -> Found<Type<'c>> {
    let shape = extents.get(dropped..).unwrap_or_default();
    // One stride a dimension is the same stride at every origin, whatever the extents.
    if let Some((strides, _)) = strides_of(like)
        && !strides.contains(&DYNAMIC)
    {
        let strides = strides.get(dropped..).unwrap_or_default();
        let layout = Layout::strided(shape, strides).map_err(|error| error.to_string())?;
        return memref_like(builder, like, shape, &layout);
    }
    let of = types::shape(like).ok_or("expected a ranked memref")?;
    let layout = memory_layout(like)?;
    let layout = relative_box(&layout, &of, origins, extents)?;
    memref_like(builder, like, shape, &layout)
}

/// The layout of a box of `extents`, from its first element, that holds at every origin that the facts allow. A
/// swizzle moves the storage's addresses, so that a box counts its own before the swizzle.
fn relative_box(layout: &Layout, of: &[i64], facts: &[Fact], extents: &[i64]) -> Found<Layout> {
    let swizzle = layout.swizzle();
    let layout = &layout.clone().with_swizzle(None);
    if of.iter().zip(extents).any(|(of, extent)| extent > of) {
        return Err(format!("a box of {extents:?} is larger than its source"));
    }
    let origins = facts
        .iter()
        .zip(of)
        .map(|(fact, of)| members(fact, *of))
        .collect::<Found<Vec<_>>>()?;
    let count = origins
        .iter()
        .try_fold(1usize, |count, along| count.checked_mul(along.len()));
    if count.is_none_or(|count| count > MAX_ORIGINS) {
        return Err(format!("the box has more than {MAX_ORIGINS} origins"));
    }
    let zeros = vec![0; of.len()];
    let base = slice(layout, of, &zeros, extents)?;
    for origin in combinations(&origins) {
        // The part of the box that exists.
        let part: Vec<i64> = origin
            .iter()
            .zip(of.iter().zip(extents))
            .map(|(at, (of, extent))| (of - at).min(*extent))
            .collect();
        let here = slice(layout, of, &origin, &part)?;
        let there = slice(&base, extents, &zeros, &part)?;
        let by = here.offset().get(Axis::M) - there.offset().get(Axis::M);
        let same = moved(&there, by)?
            .equivalent(&here)
            .map_err(|error| error.to_string())?;
        if !same {
            return Err(format!(
                "the box at {origin:?} is {here}, and the box at the beginning {base}"
            ));
        }
    }
    Ok(moved(&base, -layout.offset().get(Axis::M))?.with_swizzle(swizzle))
}

fn slice(layout: &Layout, of: &[i64], origin: &[i64], extents: &[i64]) -> Found<Layout> {
    layout
        .slice(of, &region(origin, extents))
        .map_err(|error| error.to_string())
}

/// The origins inside a dimension of `of` elements.
fn members(fact: &Fact, of: i64) -> Found<Vec<i64>> {
    let step = fact.divisor.max(1);
    let unknown = || format!("an origin of a dimension of {of} elements has no known range");
    let low = fact.low.ok_or_else(unknown)?.max(0);
    // Nothing exists of a box from the end on.
    let high = fact.high.unwrap_or(i64::MAX).min(of - 1);
    let first = low
        .checked_add(step - 1)
        .map(|first| first / step * step)
        .ok_or_else(unknown)?;
    if first > high {
        return Ok(vec![0]);
    }
    if (high - first) / step >= MAX_ORIGINS as i64 {
        return Err(format!(
            "the box has more than {MAX_ORIGINS} origins along a dimension of {of}"
        ));
    }
    Ok((0..=(high - first) / step)
        .map(|at| first + at * step)
        .collect())
}

/// All combinations of one member of each list, the last fastest.
fn combinations(lists: &[Vec<i64>]) -> Vec<Vec<i64>> {
    lists.iter().fold(vec![Vec::new()], |all, list| {
        all.iter()
            .flat_map(|head| {
                list.iter()
                    .map(move |member| [head.as_slice(), &[*member]].concat())
            })
            .collect()
    })
}

/// The layout of the tiles of a register tensor: the same for all of them, up to the registers, which are numbered
/// densely.
///
/// # Errors
/// When a tile does not divide the shape, or tiles lie on different threads.
pub(crate) fn register_tile(layout: &Layout, shape: &[i64], tile: &[i64]) -> Found<Layout> {
    if shape.len() != tile.len()
        || shape
            .iter()
            .zip(tile)
            .any(|(of, extent)| *extent < 1 || of % extent != 0)
    {
        return Err(format!(
            "expected tiles that divide the register tensor of shape {shape:?}, got {tile:?}"
        ));
    }
    let starts: Vec<Vec<i64>> = shape
        .iter()
        .zip(tile)
        .map(|(of, extent)| (0..of / extent).map(|at| at * extent).collect())
        .collect();
    let all = combinations(&starts);
    if all.len() > MAX_ORIGINS {
        return Err(format!("{} tiles are more than {MAX_ORIGINS}", all.len()));
    }
    let mut first: Option<Layout> = None;
    for origin in all {
        let here = on_registers_zero(&slice(layout, shape, &origin, tile)?)?;
        match &first {
            None => first = Some(here),
            Some(first) => {
                if !first.equivalent(&here).map_err(|error| error.to_string())? {
                    return Err(format!(
                        "tiles of {tile:?} lie on different threads: the first is {first}, that at {origin:?} is {here}"
                    ));
                }
            }
        }
    }
    dense(&first.ok_or("no tile")?)
}

/// Whether an axis counts registers or other places of one thread.
fn is_register(axis: Axis) -> bool {
    axis != Axis::M
        && vocabulary::axis(axis.name()).is_some_and(|declared| declared.kind == AxisKind::Memory)
}

/// The layout with its registers counted from zero.
fn on_registers_zero(layout: &Layout) -> Found<Layout> {
    let mut offset = Offset::new();
    for (axis, value) in layout
        .offset()
        .iter()
        .filter(|(axis, _)| !is_register(*axis))
    {
        offset.set(axis, value);
    }
    layout
        .clone()
        .with_offset(offset)
        .map_err(|error| error.to_string())
}

/// Numbers the registers densely, in their order; as it is where registers overlap.
fn dense(layout: &Layout) -> Found<Layout> {
    let layout = layout.canonicalize();
    let mut order: Vec<Iter> = layout
        .shard()
        .iter()
        .filter(|iter| is_register(iter.axis) && iter.extent > 1)
        .copied()
        .collect();
    order.sort_by_key(|iter| iter.stride);
    let (mut reach, mut next, mut strides) = (1, 1i64, Vec::new());
    for iter in order {
        if iter.stride < reach {
            return Ok(layout);
        }
        strides.push((iter, next));
        reach = iter.stride.saturating_mul(iter.extent);
        next = next.saturating_mul(iter.extent);
    }
    let renumbered = layout.shard().iter().map(|iter| {
        let stride = strides.iter().find(|(old, _)| old == iter);
        Iter::new(
            iter.extent,
            stride.map_or(iter.stride, |(_, stride)| *stride),
            iter.axis,
        )
    });
    Layout::new(
        renumbered,
        layout.replica().iter().copied(),
        layout.offset().clone(),
        layout.swizzle(),
    )
    .map_err(|error| error.to_string())
}
