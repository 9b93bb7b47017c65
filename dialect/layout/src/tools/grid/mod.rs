//! What a picture shows: one cell for each logical index, its place on every axis, and its owner.

mod words;

pub use words::short;

use crate::layout::steps_on;
use crate::{Axis, Error, Layout, Result, sumset};

/// Axes that count places inside one owner; an axis with another name names owners.
const PLACES: [&str; 10] = [
    "m", "reg", "F", "f", "col", "Col", "TCol", "bank", "byte", "offset",
];

/// More cells than this are refused: no screen shows them.
pub const MAX_CELLS: i64 = 1 << 22;

/// Most copies that are listed; more are counted.
pub const MAX_LISTED: usize = 64;
/// Most places on one axis that copies are counted over.
const MAX_PLACES: i64 = 1 << 22;

/// The places of a layout on one axis, all copies included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AxisExtent {
    /// The axis.
    pub axis: Axis,
    /// The least coordinate.
    pub low: i64,
    /// The greatest coordinate.
    pub high: i64,
    /// How many coordinates from `low` to `high` hold nothing.
    pub holes: i64,
}

/// What colours a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Colouring {
    /// The coordinates on the owner axes, outermost scope first.
    Owner,
    /// The shared-memory bank of the address: 32 banks of four bytes (CUDA C++ programming guide,
    /// "Shared Memory", compute capability 5.x and later).
    Bank {
        /// Bytes of an element.
        elem_bytes: i64,
    },
}

/// A logical grid with the image of each cell.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The layout, as text.
    pub title: String,
    /// The logical shape.
    pub shape: Vec<i64>,
    /// Rows of the picture: all dimensions but the last.
    pub rows: usize,
    /// Columns of the picture: the last dimension.
    pub cols: usize,
    /// The axes, owners first.
    pub axes: Vec<Axis>,
    /// How many of [`Grid::axes`] are owners.
    pub owners: usize,
    /// Coordinates of each cell, row-major; cell `k` has `axes.len()` entries from `k * axes.len()`.
    pub points: Vec<i64>,
    /// Displacements of the copies, by axis, ascending: one of 0 when there is one copy, and at most
    /// [`MAX_LISTED`] of them.
    pub copies: Vec<Vec<i64>>,
    /// How many copies there are.
    pub copy_count: usize,
    /// What is used of each axis, in the order of [`Grid::axes`].
    pub extents: Vec<AxisExtent>,
    /// The cells that hold nothing; empty where all hold something.
    pub holes: Vec<bool>,
    /// The numbers of the rows where they are not 0, 1, 2, ...; else empty.
    pub row_numbers: Vec<i64>,
    /// What colours a cell.
    pub colouring: Colouring,
    /// A remark for the line under the title.
    pub note: String,
}

impl Grid {
    /// Evaluates `layout` on `shape` (its own size when empty).
    ///
    /// # Errors
    /// `Invalid` when the shape is not admitted or `owners` names an axis that the layout lacks,
    /// `Unsupported` when there are more than [`MAX_CELLS`] cells or the size is dynamic.
    pub fn new(
        layout: &Layout,
        shape: &[i64],
        owners: Option<&[Axis]>,
        colouring: Colouring,
    ) -> Result<Self> {
        let size = drawable_size(layout)?;
        let shape = if shape.is_empty() {
            default_shape(layout)
        } else {
            shape.to_vec()
        };
        let product = shape.iter().try_fold(1i64, |n, e| n.checked_mul(*e));
        if product != Some(size) || shape.iter().any(|e| *e < 1) {
            return Err(Error::invalid(format!(
                "shape {shape:?}: the layout has {size} indices"
            )));
        }
        let (axes, count) = ordered_axes(layout, owners)?;
        let cols = shape.last().copied().unwrap_or(1);
        let mut grid = Self {
            title: layout.to_string(),
            rows: usize::try_from(size / cols).unwrap_or(1),
            cols: usize::try_from(cols).unwrap_or(1),
            shape,
            axes,
            owners: count,
            points: Vec::new(),
            copies: Vec::new(),
            copy_count: 1,
            extents: Vec::new(),
            holes: Vec::new(),
            row_numbers: Vec::new(),
            colouring,
            note: String::new(),
        };
        grid.points = grid.evaluate(layout)?;
        let by_axis = grid.displacements(layout)?;
        grid.copy_count = by_axis.iter().map(Vec::len).product();
        grid.copies = listed(&by_axis);
        grid.extents = grid.measure(&by_axis)?;
        Ok(grid)
    }

    fn evaluate(&self, layout: &Layout) -> Result<Vec<i64>> {
        let width = self.axes.len();
        let cells = self.rows * self.cols;
        let mut points = Vec::with_capacity(cells * width);
        for cell in 0..cells {
            let coord = base_point(layout, i64::try_from(cell).unwrap_or(i64::MAX))?;
            points.extend(self.axes.iter().map(|axis| coord.get(*axis)));
        }
        Ok(points)
    }

    /// The displacements of the copies on each axis, ascending. An iter moves along one axis, so that the
    /// copies are all combinations of them.
    fn displacements(&self, layout: &Layout) -> Result<Vec<Vec<i64>>> {
        let mut count = 1_i64;
        let on_axis = |axis: &Axis| {
            let (steps, low) = steps_on(layout.replica(), *axis);
            let points = sumset::points(&steps, MAX_PLACES / count.max(1));
            let points = points.ok_or_else(|| {
                Error::unsupported(format!("a picture of more than {MAX_PLACES} copies"))
            })?;
            count = count.saturating_mul(i64::try_from(points.len()).unwrap_or(i64::MAX));
            Ok(points.iter().map(|at| low + at).collect())
        };
        self.axes.iter().map(on_axis).collect()
    }

    /// What is used of each axis.
    fn measure(&self, by_axis: &[Vec<i64>]) -> Result<Vec<AxisExtent>> {
        let width = self.axes.len();
        let measure = |(at, (axis, moved)): (usize, (&Axis, &Vec<i64>))| {
            let mut own: Vec<i64> = self
                .points
                .iter()
                .skip(at)
                .step_by(width)
                .copied()
                .collect();
            own.sort_unstable();
            own.dedup();
            let pairs = own.len().saturating_mul(moved.len());
            if pairs > 4 * MAX_CELLS as usize {
                return Err(Error::unsupported(format!(
                    "a picture of {pairs} copies of coordinates on {axis}"
                )));
            }
            let sums = own
                .iter()
                .flat_map(|v| moved.iter().map(|m| v.saturating_add(*m)));
            let mut all: Vec<i64> = sums.collect();
            all.sort_unstable();
            all.dedup();
            let low = all.first().copied().unwrap_or(0);
            let high = all.last().copied().unwrap_or(0);
            let span = high.saturating_sub(low).saturating_add(1);
            let used = i64::try_from(all.len()).unwrap_or(i64::MAX);
            Ok(AxisExtent {
                axis: *axis,
                low,
                high,
                holes: span.saturating_sub(used),
            })
        };
        self.axes
            .iter()
            .zip(by_axis)
            .enumerate()
            .map(measure)
            .collect()
    }

    /// Whether the cell holds nothing.
    #[must_use]
    pub fn is_hole(&self, row: usize, col: usize) -> bool {
        self.holes.get(row * self.cols + col) == Some(&true)
    }

    /// The coordinates of a cell, in the order of [`Grid::axes`].
    #[must_use]
    pub fn point(&self, row: usize, col: usize) -> &[i64] {
        let width = self.axes.len();
        let at = (row * self.cols + col) * width;
        self.points.get(at..at + width).unwrap_or(&[])
    }

    /// What the colour of a cell stands for: the owner's coordinates, or the bank.
    #[must_use]
    pub fn key(&self, row: usize, col: usize) -> Vec<i64> {
        let point = self.point(row, col);
        match self.colouring {
            Colouring::Bank { elem_bytes } => {
                let address = self.memory(point);
                vec![
                    address
                        .wrapping_mul(elem_bytes)
                        .div_euclid(4)
                        .rem_euclid(32),
                ]
            }
            Colouring::Owner if self.owners == 0 => vec![self.memory(point)],
            Colouring::Owner => point.get(..self.owners).unwrap_or(&[]).to_vec(),
        }
    }

    /// The coordinate on `m`, or on the last axis when there is no `m`.
    #[must_use]
    pub fn memory(&self, point: &[i64]) -> i64 {
        let at = self.axes.iter().position(|axis| *axis == Axis::M);
        at.and_then(|at| point.get(at))
            .or(point.last())
            .copied()
            .unwrap_or(0)
    }
}

/// The number of cells of a layout that a picture can show.
fn drawable_size(layout: &Layout) -> Result<i64> {
    if layout.is_dynamic() {
        return Err(Error::unsupported(
            "a picture of a dynamic extent: give it a size",
        ));
    }
    if layout.swizzle().is_some() && layout.replica().iter().any(|iter| iter.axis == Axis::M) {
        // The xor moves each copy differently, so that one list of displacements cannot say where.
        return Err(Error::unsupported(
            "a picture of swizzled copies on m: draw one copy",
        ));
    }
    let size = layout.size();
    if size > MAX_CELLS {
        return Err(Error::unsupported(format!(
            "a picture of {size} cells; at most {MAX_CELLS}"
        )));
    }
    Ok(size)
}

/// The first combinations of displacements, the last axis fastest.
fn listed(by_axis: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let mut copies = vec![Vec::new()];
    for moved in by_axis {
        let with = |copy: Vec<i64>| {
            let more = moved.iter().map(move |m| {
                let mut copy = copy.clone();
                copy.push(*m);
                copy
            });
            more.take(MAX_LISTED)
        };
        copies = copies.into_iter().flat_map(with).take(MAX_LISTED).collect();
    }
    copies
}

/// `D(x) + O`, swizzled: the first copy of a cell.
fn base_point(layout: &Layout, x: i64) -> Result<crate::Coord> {
    let mut point = layout.origin(x)?;
    if let Some(swizzle) = layout.swizzle() {
        point.set(Axis::M, swizzle.apply(point.get(Axis::M)));
    }
    Ok(point)
}

/// Rows that look like the layout: the iters of a two-part shape when there is one, else a square-ish
/// split at an iter boundary.
fn default_shape(layout: &Layout) -> Vec<i64> {
    let size = layout.size();
    if size <= 32 {
        return vec![size];
    }
    let mut rows = 1i64;
    let mut best = vec![size];
    let mut best_score = i64::MAX;
    for iter in layout.shard() {
        rows = rows.saturating_mul(iter.extent);
        if rows < 1 || rows > size {
            break;
        }
        let cols = size / rows;
        let score =
            (cols.max(rows) / cols.min(rows).max(1)).saturating_mul(2) - i64::from(cols >= rows);
        if score < best_score {
            best_score = score;
            best = vec![rows, cols];
        }
    }
    best
}

fn ordered_axes(layout: &Layout, owners: Option<&[Axis]>) -> Result<(Vec<Axis>, usize)> {
    let all = layout.axes();
    let mut first: Vec<Axis> = match owners {
        Some(owners) => {
            if let Some(axis) = owners.iter().find(|axis| !all.contains(axis)) {
                return Err(Error::invalid(format!("the layout has no axis {axis}")));
            }
            owners.to_vec()
        }
        None => all
            .iter()
            .copied()
            .filter(|axis| !PLACES.contains(&axis.name()))
            .collect(),
    };
    if owners.is_none() {
        first.sort_by_key(|axis| (scope_rank(axis.name()), *axis));
    }
    let count = first.len();
    let rest: Vec<Axis> = all
        .iter()
        .copied()
        .filter(|axis| !first.contains(axis))
        .collect();
    first.extend(rest);
    if first.is_empty() {
        first.push(Axis::M);
    }
    Ok((first, count))
}

/// Outer scopes are named first.
fn scope_rank(name: &str) -> usize {
    let scopes = [
        "node",
        "gpu",
        "gpuid",
        "device",
        "cluster",
        "cta",
        "warpgroup",
        "warp",
        "lane",
        "thread",
    ];
    scopes.iter().position(|scope| *scope == name).unwrap_or(1)
}
