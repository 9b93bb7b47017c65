//! Between Axe layouts of powers of two and linear maps.

use std::collections::BTreeMap;

use super::basis::Basis;
use super::columns::{Columns, MAX_BITS};
use super::relayout::Distribution;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::Layout;
use crate::swizzle::Swizzle;

/// `log2` of an extent.
fn log2(extent: i64) -> Result<usize> {
    if extent < 1 || extent.count_ones() != 1 {
        return Err(Error::none(format!(
            "no F2-linear map: the extent {extent} is no power of two"
        )));
    }
    Ok(extent.trailing_zeros() as usize)
}

/// Images, on each axis, of the digits' bits, fastest bit first.
fn bits_of(iters: &[Iter]) -> Result<Vec<(Axis, i64)>> {
    let mut bits = Vec::new();
    for iter in iters.iter().rev() {
        for k in 0..log2(iter.extent)? {
            let image = 1_i64
                .checked_shl(k as u32)
                .and_then(|s| s.checked_mul(iter.stride));
            let image = image.ok_or_else(|| Error::overflow("an image of an F2 map"))?;
            bits.push((iter.axis, image));
        }
    }
    if bits.len() > MAX_BITS {
        return Err(Error::overflow("the size of an F2 map"));
    }
    Ok(bits)
}

/// Sums of images are xors exactly when no two share a bit.
fn check_disjoint(bits: &[(Axis, i64)]) -> Result<()> {
    let mut used: BTreeMap<Axis, i64> = BTreeMap::new();
    for &(axis, image) in bits {
        let used = used.entry(axis).or_default();
        if image < 0 || *used & image != 0 {
            return Err(Error::none(format!(
                "no F2-linear map: on axis {axis} the strides carry into each other or are negative"
            )));
        }
        *used |= image;
    }
    Ok(())
}

/// The columns on each axis of the map from the logical index of `layout`, its swizzle included.
///
/// # Errors
/// `None` when the map is not F2-linear: extents that are no powers of two, strides that carry,
/// replicas, or an offset; `Overflow`.
pub fn columns_of_layout(layout: &Layout) -> Result<BTreeMap<Axis, Columns>> {
    if layout
        .replica()
        .iter()
        .any(|i| i.extent > 1 && i.stride != 0)
    {
        return Err(Error::none(
            "no F2-linear map: replicas place an element more than once",
        ));
    }
    if layout.offset().iter().any(|(_, value)| value != 0) {
        return Err(Error::none(
            "no F2-linear map: with an offset, index 0 is not at the origin",
        ));
    }
    if layout.is_dynamic() {
        return Err(Error::none(
            "no F2-linear map: the outermost extent is dynamic",
        ));
    }
    let bits = bits_of(layout.shard())?;
    check_disjoint(&bits)?;
    let mut columns = BTreeMap::new();
    for axis in layout.axes() {
        let on_axis = bits
            .iter()
            .map(|&(a, image)| if a == axis { image } else { 0 });
        let moved = on_axis.map(|image| match layout.swizzle() {
            Some(swizzle) if axis == Axis::M => swizzle.apply(image),
            _ => image,
        });
        columns.insert(axis, Columns::try_from(moved.collect::<Vec<i64>>())?);
    }
    Ok(columns)
}

/// The columns of a swizzle on addresses of `bits` bits.
///
/// # Errors
/// `Invalid` above 63 bits, or when the swizzle moves an address beyond `bits` bits.
pub fn columns_of_swizzle(swizzle: Swizzle, bits: usize) -> Result<Columns> {
    if bits > MAX_BITS {
        return Err(Error::invalid(format!(
            "columns of a swizzle: expected at most {MAX_BITS} bits, got {bits}"
        )));
    }
    let columns: Vec<i64> = (0..bits).map(|k| swizzle.apply(1 << k)).collect();
    let columns = Columns::try_from(columns)?;
    if columns.out_bits() > bits {
        return Err(Error::invalid(format!(
            "columns of a swizzle: it reaches {} bits, got {bits}",
            columns.out_bits()
        )));
    }
    Ok(columns)
}

/// The layout whose logical index maps as `columns` say; on the memory axis with a swizzle if need be.
///
/// # Errors
/// `Invalid` when the lists differ in length; `None` when a bit moves along two axes, or when the
/// images on an axis overlap and no swizzle of CuTe's form explains it.
pub fn layout_of_columns(columns: &BTreeMap<Axis, Columns>) -> Result<Layout> {
    let bits = columns.values().next().map_or(0, Columns::len);
    if let Some(other) = columns.values().find(|c| c.len() != bits) {
        return Err(Error::Rank {
            what: "columns of the axes of a linear layout",
            expected: bits,
            got: other.len(),
        });
    }
    if let Ok(layout) = plain_layout(columns, bits, None) {
        return Ok(layout);
    }
    let memory = columns.get(&Axis::M).cloned().unwrap_or_default();
    // Cheap to tell for most of them: unswizzled images on one axis must not overlap.
    let separates = |swizzle: &Swizzle| {
        let mut used = 0;
        memory.as_slice().iter().all(|&column| {
            let image = swizzle.apply(column as i64);
            let apart = used & image == 0;
            used |= image;
            apart
        })
    };
    for swizzle in swizzles(memory.out_bits()).filter(separates) {
        let mut unswizzled = columns.clone();
        let images = memory.as_slice().iter().map(|&c| swizzle.apply(c as i64));
        unswizzled.insert(Axis::M, Columns::try_from(images.collect::<Vec<_>>())?);
        if let Ok(layout) = plain_layout(&unswizzled, bits, Some(swizzle)) {
            return Ok(layout);
        }
    }
    // Without a swizzle the reason is that of the plain layout.
    plain_layout(columns, bits, None)
}

/// All swizzles that act inside `bits` bits, small ones first.
fn swizzles(bits: usize) -> impl Iterator<Item = Swizzle> {
    let bits = bits as u32;
    (1..=bits / 2).flat_map(move |len| {
        (len..=bits - len).flat_map(move |shift| {
            (0..=bits - len - shift).flat_map(move |base| {
                let both = [true, false].into_iter();
                both.filter_map(move |inner| Swizzle::new(len, base, shift, inner).ok())
            })
        })
    })
}

fn plain_layout(
    columns: &BTreeMap<Axis, Columns>,
    bits: usize,
    swizzle: Option<Swizzle>,
) -> Result<Layout> {
    let mut iters: Vec<Iter> = Vec::new();
    for k in (0..bits).rev() {
        let images = columns.iter().filter_map(|(&axis, c)| {
            let image = c.as_slice().get(k).copied().filter(|&image| image != 0)?;
            Some((axis, image as i64))
        });
        let images: Vec<(Axis, i64)> = images.collect();
        let (axis, stride) = match images.as_slice() {
            [] => (columns.keys().next().copied().unwrap_or(Axis::M), 0),
            [one] => *one,
            _ => {
                return Err(Error::none(format!(
                    "no Axe layout: bit {k} moves along {} axes at once",
                    images.len()
                )));
            }
        };
        match iters.last_mut() {
            Some(last) if last.axis == axis && stride.checked_mul(2) == Some(last.stride) => {
                let doubled = last.extent.checked_mul(2);
                last.extent = doubled.ok_or_else(|| Error::overflow("the size of a layout"))?;
                last.stride = stride;
            }
            _ => iters.push(Iter::new(2, stride, axis)),
        }
    }
    check_disjoint(&bits_of(&iters)?)?;
    Layout::new(iters, [], Coord::new(), swizzle)
}

/// The places that the bits of elements, and then of replicas, stand for; and how many are of elements.
fn place_bits(layout: &Layout, reg: Axis, lane: Axis) -> Result<(Vec<(Axis, i64)>, usize)> {
    if let Some(other) = layout.axes().iter().find(|a| **a != reg && **a != lane) {
        return Err(Error::invalid(format!(
            "a register distribution: expected the axes {reg} and {lane}, got {other}"
        )));
    }
    if layout.offset().iter().any(|(_, value)| value != 0) {
        return Err(Error::none(
            "no F2-linear distribution: with an offset, some registers hold nothing",
        ));
    }
    let mut bits = bits_of(layout.shard())?;
    let logical = bits.len();
    let replica = layout.replica().iter().copied();
    let moving: Vec<Iter> = replica.filter(|i| i.extent > 1 && i.stride != 0).collect();
    bits.extend(bits_of(&moving)?);
    check_disjoint(&bits)?;
    Ok((bits, logical))
}

/// The distribution over registers and lanes of a layout with the axes `reg` and `lane` alone:
/// replicas on them are broadcast. The tile index is the logical index of the layout.
///
/// # Errors
/// `None` when the layout is not F2-linear or leaves a register of a lane without an element (see
/// [`super::table_of_layout`] for those); `Invalid` when it has another axis; `Overflow`.
pub fn distribution_of_layout(layout: &Layout, reg: Axis, lane: Axis) -> Result<Distribution> {
    let (bits, logical) = place_bits(layout, reg, lane)?;
    let on = |axis| {
        bits.iter()
            .filter(move |b| b.0 == axis)
            .fold(0, |all, b| all | b.1)
    };
    let (regs, lanes) = (on(reg), on(lane));
    if (regs + 1) & regs != 0 || (lanes + 1) & lanes != 0 {
        return Err(Error::none(
            "no F2-linear distribution: some registers or lanes hold nothing",
        ));
    }
    let reg_bits = regs.count_ones();
    let shift = |b: &(Axis, i64)| {
        if b.0 == lane {
            (b.1 as u64) << reg_bits
        } else {
            b.1 as u64
        }
    };
    if reg_bits + lanes.count_ones() > MAX_BITS as u32 || bits.len() > MAX_BITS {
        return Err(Error::overflow("a register distribution"));
    }
    let images: Vec<u64> = bits.iter().map(shift).collect();
    let inverse = Basis::of(&images);
    let places = (reg_bits + lanes.count_ones()) as usize;
    if inverse.rank() != images.len() || inverse.rank() != places {
        return Err(Error::none(format!(
            "no F2-linear distribution: {} bits of elements and replicas do not fill the {places} bits \
             of registers and lanes once",
            images.len()
        )));
    }
    let index_of = |place: u64| (inverse.reduce(place).1 & ((1 << logical) - 1)) as i64;
    Distribution::new(
        (0..reg_bits).map(|k| index_of(1 << k)).collect(),
        (0..lanes.count_ones())
            .map(|k| index_of(1 << (reg_bits + k)))
            .collect(),
    )
}
