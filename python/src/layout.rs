//! The layout algebra.

use crate::errors;
use axe_layout::tools::{Colouring, Grid, svg, table};
use axe_layout::{Axis, Coord};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A layout; immutable.
#[pyclass(frozen, module = "axe._axe")]
pub(crate) struct Layout(axe_layout::Layout);

/// Points of indices: the axes, how many copies each index has, and the coordinates as native 64-bit integers, indices
/// outermost, then copies, then axes.
type Points<'py> = (Vec<String>, usize, Bound<'py, PyBytes>);

fn made(layout: axe_layout::Result<axe_layout::Layout>) -> PyResult<Layout> {
    layout.map(Layout).map_err(errors::layout)
}

fn owners(names: Option<Vec<String>>) -> PyResult<Option<Vec<Axis>>> {
    let axes = |names: Vec<String>| names.iter().map(|name| Axis::new(name)).collect();
    names.map(axes).transpose().map_err(errors::layout)
}

impl Layout {
    fn grid(
        &self,
        shape: &[i64],
        owner: Option<Vec<String>>,
        element_bytes: Option<i64>,
    ) -> PyResult<Grid> {
        let bank = |elem_bytes| Colouring::Bank { elem_bytes };
        let colouring = element_bytes.map_or(Colouring::Owner, bank);
        if element_bytes.is_some_and(|bytes| ![1, 2, 4, 8, 16].contains(&bytes)) {
            let problem =
                axe_layout::Error::invalid("banks: expected elements of 1, 2, 4, 8 or 16 bytes");
            return Err(errors::layout(problem));
        }
        Grid::new(&self.0, shape, owners(owner)?.as_deref(), colouring).map_err(errors::layout)
    }
}

#[pymethods]
impl Layout {
    /// Parses the notation.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        made(text.parse())
    }

    /// One stride a dimension on the memory axis.
    #[staticmethod]
    fn strided(shape: Vec<i64>, strides: Vec<i64>) -> PyResult<Self> {
        made(axe_layout::Layout::strided(&shape, &strides))
    }

    /// Dense row-major storage.
    #[staticmethod]
    fn row_major(shape: Vec<i64>) -> PyResult<Self> {
        made(axe_layout::Layout::row_major(&shape))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    /// The number of indices; `None` when the outermost extent is dynamic.
    fn size(&self) -> Option<i64> {
        (!self.0.is_dynamic()).then(|| self.0.size())
    }

    /// The names of its axes.
    fn axes(&self) -> Vec<String> {
        self.0.axes().iter().map(ToString::to_string).collect()
    }

    /// Shard, replica and offset, as numbers and names.
    fn parts(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(errors::call)
    }

    /// Whether two layouts are one map.
    fn equivalent(&self, other: &Self) -> PyResult<bool> {
        self.0.equivalent(&other.0).map_err(errors::layout)
    }

    /// A hash of the map: of its size and of the points of a few indices, which equal maps share whatever their iters.
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let size = self.0.size();
        size.hash(&mut hasher);
        for index in [0, 1, size / 2, size - 1] {
            if let Ok(points) = self.0.points(index.max(0)) {
                for (axis, value) in points.iter().flat_map(Coord::iter) {
                    (axis.to_string(), value).hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn canonicalize(&self) -> Self {
        Self(self.0.canonicalize())
    }

    /// The points of indices, native 64-bit integers.
    fn points<'py>(&self, py: Python<'py>, indices: &[u8]) -> PyResult<Points<'py>> {
        let axes = self.0.axes();
        let (mut copies, mut flat) = (None, Vec::new());
        for index in indices.chunks_exact(size_of::<i64>()) {
            let index = i64::from_ne_bytes(index.try_into().unwrap_or_default());
            let points = self.0.points(index).map_err(errors::layout)?;
            if *copies.get_or_insert(points.len()) != points.len() {
                let problem = "copies of an index coincide, of another they do not: ask for one index at a time";
                return Err(errors::layout(axe_layout::Error::unsupported(problem)));
            }
            for point in &points {
                for axis in &axes {
                    flat.extend_from_slice(&point.get(*axis).to_ne_bytes());
                }
            }
        }
        let names = axes.iter().map(ToString::to_string).collect();
        Ok((names, copies.unwrap_or(1), PyBytes::new(py, &flat)))
    }

    /// The indices at a point.
    fn invert(&self, point: BTreeMap<String, i64>) -> PyResult<Vec<i64>> {
        let terms = point
            .iter()
            .map(|(name, value)| Ok((Axis::new(name)?, *value)));
        let terms = terms.collect::<axe_layout::Result<Vec<_>>>();
        let point = terms.and_then(Coord::from_terms);
        let found = point.and_then(|point| self.0.invert(&point));
        found.map_err(errors::layout)
    }

    /// The iters cut where the dimensions of a shape end, and the boundaries.
    fn group(&self, shape: Vec<i64>) -> PyResult<(Self, Vec<usize>)> {
        let grouped = self.0.group(&shape).map_err(errors::layout)?;
        Ok((Self(grouped.layout), grouped.seps.to_vec()))
    }

    /// The layout of a box.
    fn slice(&self, shape: Vec<i64>, begin: Vec<i64>, end: Vec<i64>) -> PyResult<Self> {
        let region: Vec<_> = begin.into_iter().zip(end).map(|(b, e)| b..e).collect();
        made(self.0.slice(&shape, &region))
    }

    /// A copy of `inner` at every element of this layout.
    fn tile(&self, shape: Vec<i64>, inner: &Self, inner_shape: Vec<i64>) -> PyResult<Self> {
        made(axe_layout::Layout::tile(
            &self.0,
            &shape,
            &inner.0,
            &inner_shape,
        ))
    }

    /// The outer layout of which this one is a tiling.
    fn tile_of(&self, shape: Vec<i64>, inner: &Self, inner_shape: Vec<i64>) -> PyResult<Self> {
        made(self.0.tile_of(&shape, &inner.0, &inner_shape))
    }

    /// The layout with dimensions in another order.
    fn permute(&self, shape: Vec<i64>, order: Vec<usize>) -> PyResult<Self> {
        made(self.0.permute_dims(&shape, &order))
    }

    /// One more than the distance from the least to the greatest coordinate of an axis.
    fn span(&self, axis: &str) -> PyResult<i64> {
        let span = Axis::new(axis).and_then(|axis| self.0.span(axis));
        span.map_err(errors::layout)
    }

    /// A picture.
    #[pyo3(signature = (shape, owner=None, element_bytes=None, caption=""))]
    fn svg(
        &self,
        shape: Vec<i64>,
        owner: Option<Vec<String>>,
        element_bytes: Option<i64>,
        caption: &str,
    ) -> PyResult<String> {
        Ok(svg::svg(&self.grid(&shape, owner, element_bytes)?, caption))
    }

    /// A table.
    #[pyo3(signature = (shape, owner=None, width=120, rows=64))]
    fn table(
        &self,
        shape: Vec<i64>,
        owner: Option<Vec<String>>,
        width: usize,
        rows: usize,
    ) -> PyResult<String> {
        let options = table::TableOptions {
            colour: false,
            width,
            max_rows: rows.max(4),
        };
        Ok(table::table(&self.grid(&shape, owner, None)?, options))
    }
}
