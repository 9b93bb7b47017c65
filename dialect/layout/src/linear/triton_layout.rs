//! Between linear layouts with Triton's names and Axe layouts.

use std::collections::BTreeMap;

use super::axe::{columns_of_layout, layout_of_columns};
use super::columns::Columns;
use super::named::LinearLayout;
use super::triton::{bits, images, out_dim};
use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::Layout;

/// Triton's names, and those of Axe.
const NAMES: [(&str, &str); 2] = [("register", "reg"), ("offset", "m")];

fn axe_name(axis: Axis) -> Result<Axis> {
    let found = NAMES.iter().find(|(triton, _)| *triton == axis.name());
    found.map_or(Ok(axis), |(_, axe)| Axis::new(axe))
}

fn triton_name(axis: Axis) -> Result<Axis> {
    let found = NAMES.iter().find(|(_, axe)| *axe == axis.name());
    found.map_or(Ok(axis), |(triton, _)| Axis::new(triton))
}

/// The Axe layout from the row-major index over the outputs to the inputs of `layout`: inputs that map to 0
/// are replicas, `register` is the axis `reg` and `offset` is `m`.
///
/// # Errors
/// `None` when two inputs name one element without being 0, elements are missing, or a place is no sum of
/// digits, swizzle included.
pub fn layout_of_linear(layout: &LinearLayout) -> Result<Layout> {
    let mut weights = Vec::new();
    let mut below = layout.outputs().iter().map(|(_, bits)| bits).sum::<usize>();
    for (_, bits) in layout.outputs() {
        below -= bits;
        weights.push(below);
    }
    let total = layout.outputs().iter().map(|(_, bits)| bits).sum::<usize>();
    let (mut moving, mut places, mut replica) = (Vec::new(), Vec::new(), Vec::new());
    for (input, images) in images(layout)? {
        let axis = axe_name(input)?;
        for (bit, image) in images.iter().enumerate() {
            let index = image
                .iter()
                .zip(&weights)
                .fold(0, |sum, (value, weight)| sum | value << weight);
            let index =
                i64::try_from(index).map_err(|_| Error::overflow("an index of a linear layout"))?;
            if index == 0 {
                replica.push(Iter::new(2, 1 << bit, axis));
            } else {
                moving.push(index);
                places.push((axis, bit));
            }
        }
    }
    if moving.len() != total {
        return Err(Error::none(format!(
            "no layout: {} bits of places that move, {total} bits of elements",
            moving.len()
        )));
    }
    let inverse = Columns::try_from(moving)?.inverse()?;
    let mut columns: BTreeMap<Axis, Vec<i64>> = BTreeMap::new();
    for &(axis, _) in &places {
        columns.entry(axis).or_insert_with(|| vec![0; total]);
    }
    for (index, &chosen) in inverse.as_slice().iter().enumerate() {
        for (at, &(axis, bit)) in places.iter().enumerate() {
            if let Some(column) = columns
                .get_mut(&axis)
                .and_then(|columns| columns.get_mut(index))
            {
                *column |= ((chosen >> at & 1) << bit).cast_signed();
            }
        }
    }
    let columns = columns
        .into_iter()
        .map(|(axis, columns)| Ok((axis, Columns::try_from(columns)?)));
    let found = layout_of_columns(&columns.collect::<Result<_>>()?)?;
    Ok(found.with_replica(replica)?.canonicalize())
}

/// The linear layout whose Axe layout is `layout` on `shape`, with Triton's names of places.
///
/// # Errors
/// `None` when the layout is not linear over F2, or leaves places empty; `Invalid` when the shape is not
/// admitted or no power of two.
pub fn linear_of_layout(layout: &Layout, shape: &[i64]) -> Result<LinearLayout> {
    layout.check_shape(shape, "shape of a linear layout")?;
    let bare = layout.clone().with_replica([])?;
    let mut rows: BTreeMap<Axis, Vec<u64>> = BTreeMap::new();
    for (axis, columns) in columns_of_layout(&bare)? {
        rows.insert(axis, columns.as_slice().to_vec());
    }
    let total = rows.values().map(Vec::len).max().unwrap_or(0);
    let places = Places::new(rows, replica_bits(layout)?);
    let mut columns = Vec::new();
    for index in 0..total {
        let row = |axis: Axis| places.rows.get(&axis).and_then(|row| row.get(index));
        columns.push(places.at(|axis| row(axis).copied().unwrap_or(0))?);
    }
    for &(of, value) in &places.more {
        columns.push(places.at(|axis| if axis == of { value } else { 0 })?);
    }
    if columns.len() != places.axes.iter().map(|(_, width)| width).sum::<usize>() {
        return Err(Error::none("no linear layout: some places hold nothing"));
    }
    let inverse = Columns::try_from(columns)?.inverse()?;
    let sizes: Vec<usize> = shape
        .iter()
        .map(|&extent| bits(extent, "shape of a linear layout"))
        .collect::<Result<_>>()?;
    let mut from = 0;
    let mut inputs = Vec::new();
    for (axis, width) in &places.axes {
        let bases = inverse.as_slice().iter().skip(from).take(*width);
        let split = |index: &u64| -> Vec<u64> {
            let mut below = total;
            let part = |bits: &usize| {
                below -= bits;
                index >> below & ((1 << bits) - 1)
            };
            sizes.iter().map(part).collect()
        };
        inputs.push((triton_name(*axis)?, bases.map(split).collect()));
        from += width;
    }
    let outputs = sizes
        .iter()
        .enumerate()
        .map(|(dim, &bits)| Ok((out_dim(dim)?, bits)));
    LinearLayout::new(inputs, outputs.collect::<Result<_>>()?)
}

/// The bits of a layout's replicas: places that hold copies.
fn replica_bits(layout: &Layout) -> Result<Vec<(Axis, u64)>> {
    let mut more = Vec::new();
    for iter in layout.canonicalize().replica() {
        for bit in 0..bits(iter.extent, "extent of a replica")? {
            let step = iter.stride.checked_shl(bit as u32).filter(|step| *step > 0);
            let step = step.ok_or_else(|| Error::overflow("a replica's stride"))?;
            more.push((iter.axis, step.unsigned_abs()));
        }
    }
    Ok(more)
}

/// The places of all axes in a row.
struct Places {
    /// What each bit of the index adds, by axis.
    rows: BTreeMap<Axis, Vec<u64>>,
    /// What each bit of a replica adds.
    more: Vec<(Axis, u64)>,
    /// The axes in Triton's order, with their bits.
    axes: Vec<(Axis, usize)>,
}

impl Places {
    fn new(rows: BTreeMap<Axis, Vec<u64>>, more: Vec<(Axis, u64)>) -> Self {
        let named = rows.keys().copied();
        let mut axes: Vec<Axis> = named.chain(more.iter().map(|(axis, _)| *axis)).collect();
        axes.sort_by_key(|axis| {
            let known = ["reg", "m", "lane", "warp", "block"]
                .iter()
                .position(|name| *name == axis.name());
            (known.unwrap_or(usize::MAX), *axis)
        });
        axes.dedup();
        let width = |axis: Axis| {
            let own = rows.get(&axis).into_iter().flatten();
            let copies = more.iter().filter(|(of, _)| *of == axis);
            let all = own.chain(copies.map(|(_, value)| value));
            (u64::BITS - all.fold(0, |all, value| all | value).leading_zeros()) as usize
        };
        let axes = axes.into_iter().map(|axis| (axis, width(axis))).collect();
        Self { rows, more, axes }
    }

    /// The place with these coordinates.
    fn at(&self, coordinate: impl Fn(Axis) -> u64) -> Result<i64> {
        let (mut sum, mut shift) = (0_u64, 0);
        for &(axis, width) in &self.axes {
            sum |= coordinate(axis).checked_shl(shift).unwrap_or(0);
            shift += width as u32;
        }
        i64::try_from(sum).map_err(|_| Error::overflow("a place of a linear layout"))
    }
}
