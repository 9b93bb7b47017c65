//! The space of a group: a matrix of rows and columns, and how tensors lie in it.
//!
//! A group of operators works on one matrix `[rows, columns]`, the row-major elements of its tensors cut at
//! one place. A tensor is all of it, one element a row, or one element a column; reshapes, and dimensions
//! of extent 1, change nothing of that. The columns are the last dimensions, or others follow them: then they
//! have a stride, and as many rows lie next to each other.

use super::operators::dims_of;
use crate::ir::value::{name, operands};
use crate::ir::{DYNAMIC, Op, TensorType, Val};
use axe_dialect::ops;

/// How a tensor lies in the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An element for each row and column.
    Full,
    /// An element a row.
    Row,
    /// An element a column.
    Column,
    /// An element for each row and block of so many neighbouring columns: what a product's epilogue reduces of them.
    Blocks(i64),
    /// An element for each row and pair of columns: what a product's epilogue forms of both.
    Pairs(Pairs),
}

/// Which two columns are a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pairs {
    /// One of the first half, and the one of the second half at its place.
    Halves,
    /// Neighbours, of which the first has an even number.
    Interleaved,
}

/// The number of elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Whether the leading extent is known at run time only.
    pub dynamic: bool,
    /// The product of the others.
    pub known: i64,
}

impl Size {
    /// The size of a tensor; `None` when it is no tensor, has a dynamic extent that is not the leading one,
    /// has no elements, or too many.
    pub fn of(value: Val<'_>) -> Option<Self> {
        let shape = TensorType::of_value(value)?.shape;
        let dynamic = shape.first() == Some(&DYNAMIC);
        let known = product(shape.get(usize::from(dynamic)..)?)?;
        (known > 0).then_some(Self { dynamic, known })
    }

    /// How many elements, for people.
    pub(super) fn described(self) -> String {
        match self.dynamic {
            true => format!("? x {}", self.known),
            false => self.known.to_string(),
        }
    }

    /// The number of rows when there are `columns` columns.
    pub fn rows(self, columns: i64) -> Option<Self> {
        (columns > 0 && self.known % columns == 0).then(|| Self {
            dynamic: self.dynamic,
            known: self.known / columns,
        })
    }
}

/// Which dimensions of a space are its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cut {
    /// How many columns there are.
    pub columns: i64,
    /// Elements from one of them to the next: those of the dimensions that follow.
    pub stride: i64,
}

impl Cut {
    /// Columns that nothing follows.
    #[must_use]
    pub const fn rows_of(columns: i64) -> Self {
        Self { columns, stride: 1 }
    }

    /// Rows along dimensions `dims` of `shape`, which are neighbours but for extents of 1.
    #[must_use]
    pub fn along(shape: &[i64], dims: &[i64]) -> Option<Self> {
        Self::of(shape, |dim| dims.contains(&dim))
    }

    /// Rows along the other dimensions.
    #[must_use]
    pub fn across(shape: &[i64], dims: &[i64]) -> Option<Self> {
        Self::of(shape, |dim| !dims.contains(&dim))
    }

    fn of(shape: &[i64], is_column: impl Fn(i64) -> bool) -> Option<Self> {
        let own: Vec<_> = (0i64..).zip(shape).map(|(dim, _)| is_column(dim)).collect();
        let counts = |at: &usize| own.get(*at) == Some(&true) && shape.get(*at) != Some(&1);
        let first = (0..shape.len()).find(counts)?;
        let last = (0..shape.len()).rfind(counts)?;
        let (between, behind) = shape.get(first..)?.split_at_checked(last + 1 - first)?;
        let mut columns = own.iter().skip(first).zip(between);
        let neighbours = columns.all(|(own, extent)| *own || *extent == 1);
        let cut = Self {
            columns: product(between)?,
            stride: product(behind)?,
        };
        (neighbours && cut.columns > 0 && cut.stride > 0).then_some(cut)
    }

    /// Whether dimensions follow the columns.
    #[must_use]
    pub const fn is_strided(self) -> bool {
        self.stride > 1
    }

    /// The rows that a reduction goes along.
    #[must_use]
    pub fn of_reduction(op: Op<'_>) -> Option<Self> {
        let tensor = TensorType::of_value(source(op)?)?;
        let dims = dims_of(op)?;
        (name(op) == ops::REDUCE).then(|| Self::along(&tensor.shape, &dims))?
    }
}

/// What the source of a broadcast to all of a space is there, and the columns that the space has, or has to have for it; none where
/// its elements lie otherwise. A space without columns gets such as nothing follows.
pub fn broadcast_of(op: Op<'_>, whole: Val<'_>, have: Option<Cut>) -> Option<(Kind, Cut)> {
    let tensor = TensorType::of_value(whole)?;
    let dims = dims_of(op)?;
    let fits = |cut: &Cut| have.map_or(!cut.is_strided(), |have| have == *cut);
    let of = |kind: Kind, cut: Option<Cut>| Some((kind, cut.filter(fits)?));
    of(Kind::Row, Cut::along(&tensor.shape, &dims))
        .or_else(|| of(Kind::Column, Cut::across(&tensor.shape, &dims)))
}

/// The product of static extents; `None` when one is dynamic or it overflows.
pub fn product(extents: &[i64]) -> Option<i64> {
    extents.iter().try_fold(1i64, |product, &extent| {
        (extent >= 0).then(|| product.checked_mul(extent))?
    })
}

/// How the dimensions that an operator adds or drops lie among those that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// They have extent 1, or there are none.
    Unit,
    /// After all kept ones: rows of so many columns.
    Inner(i64),
    /// Before all kept ones, which are so many columns.
    Outer(i64),
    /// Anything else.
    Mixed,
}

/// The place of dimensions `dims` of `shape`.
pub fn place(shape: &[i64], dims: &[i64]) -> Place {
    let (mut changed, mut kept) = (Vec::new(), Vec::new());
    for (dim, &extent) in (0i64..).zip(shape).filter(|(_, extent)| **extent != 1) {
        let side = if dims.contains(&dim) {
            &mut changed
        } else {
            &mut kept
        };
        side.push((dim, extent));
    }
    let extents =
        |side: &[(i64, i64)]| product(&side.iter().map(|(_, extent)| *extent).collect::<Vec<_>>());
    let ends = |side: &[(i64, i64)]| Some((side.first()?.0, side.last()?.0));
    match (ends(&changed), ends(&kept)) {
        (None, _) => Place::Unit,
        (Some(_), None) => extents(&changed).map_or(Place::Mixed, Place::Inner),
        (Some((first, _)), Some((_, last))) if first > last => {
            extents(&changed).map_or(Place::Mixed, Place::Inner)
        }
        (Some((_, last)), Some((first, _))) if last < first => {
            extents(&kept).map_or(Place::Mixed, Place::Outer)
        }
        _ => Place::Mixed,
    }
}

/// The place of the dimensions that a broadcast adds or a reduction drops.
pub fn place_of(op: Op<'_>, whole: Val<'_>) -> Place {
    let dims = dims_of(op);
    match (TensorType::of_value(whole), dims) {
        (Some(tensor), Some(dims)) => place(&tensor.shape, &dims),
        _ => Place::Mixed,
    }
}

/// The first operand of an operation.
pub fn source(op: Op<'_>) -> Option<Val<'_>> {
    operands(op).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_inner_outer_or_mixed() {
        assert_eq!(place(&[128, 768], &[1]), Place::Inner(768));
        assert_eq!(place(&[128, 768], &[0]), Place::Outer(768));
        assert_eq!(place(&[DYNAMIC, 4, 8], &[0, 1]), Place::Outer(8));
        assert_eq!(place(&[DYNAMIC, 4, 8], &[1, 2]), Place::Inner(32));
        assert_eq!(place(&[DYNAMIC, 1], &[1]), Place::Unit);
        assert_eq!(place(&[2, 3, 4], &[1]), Place::Mixed);
        assert_eq!(place(&[1, 3, 1, 4], &[0, 3]), Place::Inner(4));
        assert_eq!(place(&[8], &[0]), Place::Inner(8));
        assert_eq!(place(&[DYNAMIC], &[0]), Place::Mixed);
    }

    #[test]
    fn columns_are_neighbours_and_have_a_stride() {
        let along = |shape: &[i64], dims: &[i64]| {
            Cut::along(shape, dims).map(|cut| (cut.columns, cut.stride))
        };
        assert_eq!(along(&[6, 7], &[0]), Some((6, 7)));
        assert_eq!(along(&[6, 7], &[1]), Some((7, 1)));
        assert_eq!(along(&[DYNAMIC, 3, 4, 5], &[1]), Some((3, 20)));
        assert_eq!(along(&[2, 3, 1, 4, 5], &[1, 3]), Some((12, 5)));
        assert_eq!(along(&[2, 3, 4], &[0, 2]), None);
        assert_eq!(along(&[DYNAMIC, 3], &[0]), None);
        assert_eq!(along(&[1, 3], &[0]), None);
        let across = |shape: &[i64], dims: &[i64]| {
            Cut::across(shape, dims).map(|cut| (cut.columns, cut.stride))
        };
        assert_eq!(across(&[DYNAMIC, 3, 4, 5], &[0, 2, 3]), Some((3, 20)));
        assert_eq!(across(&[DYNAMIC, 4, 8], &[0, 1]), Some((8, 1)));
        assert_eq!(across(&[8, 4], &[1]), Some((8, 4)));
        assert_eq!(across(&[8, 4], &[0, 1]), None);
    }

    #[test]
    fn rows_divide_the_size() {
        let size = Size {
            dynamic: true,
            known: 24,
        };
        assert_eq!(
            size.rows(8),
            Some(Size {
                dynamic: true,
                known: 3
            })
        );
        assert_eq!(size.rows(7), None);
    }
}
