//! How the tensors of attention lie in HBM: heads that follow each other, `[batch, rows, heads, columns]`, heads that several
//! heads of queries share.

use super::Attention;
use crate::facts::memory::PARTITIONS;
use crate::plan::operand::Order;
use crate::program::build::Tile;
use crate::program::{Axis, Builder, Expr, View};
use axe_package::DType;

/// A digit of a head's number, `(head / every) % extent`, and the elements from one of its values to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// How many heads have the same value one after the other.
    pub every: i64,
    /// How many values it has.
    pub extent: i64,
    /// Elements in memory from one value to the next.
    pub stride: i64,
}

/// Where the elements of a tensor lie whose heads have rows (queries or keys) and columns (the elements of a row). Heads that
/// no digit tells apart share a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    /// All elements of the tensor.
    pub elements: i64,
    /// Where a head's matrix begins: a sum over digits of its number.
    pub heads: Vec<Digit>,
    /// Elements in memory from one row to the next.
    pub row: i64,
    /// Elements in memory from one column to the next.
    pub column: i64,
}

/// Queries, keys, values and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensors {
    /// Queries.
    pub q: Strided,
    /// Keys.
    pub k: Strided,
    /// Values.
    pub v: Strided,
    /// The result.
    pub result: Strided,
}

/// What a dimension of a tensor in HBM is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Head(Digit),
    Row,
    Column,
    /// What lies between the others.
    Gap,
}

/// A row-major shape with a dimension for each stride; none where strides are no multiples of each other.
struct Shape(Vec<(Role, i64)>);

impl Strided {
    /// Matrices one below the other: `[columns, rows]` where `K` is major, else `[rows, columns]`.
    #[must_use]
    pub fn below(order: Order, heads: i64, [rows, columns]: [i64; 2]) -> Self {
        let one = rows.saturating_mul(columns);
        let (row, column) = match order {
            Order::KMajor => (1, rows),
            Order::KMinor => (columns, 1),
        };
        Self {
            elements: heads.saturating_mul(one),
            heads: vec![Digit {
                every: 1,
                extent: heads,
                stride: one,
            }],
            row,
            column,
        }
    }

    /// How a head's matrix lies; none where neither rows nor columns follow each other.
    #[must_use]
    pub fn order(&self, [rows, columns]: [i64; 2]) -> Option<Order> {
        match () {
            () if self.column == 1 || columns == 1 => Some(Order::KMinor),
            () if self.row == 1 || rows == 1 => Some(Order::KMajor),
            () => None,
        }
    }

    fn shape(&self, [rows, columns]: [i64; 2]) -> Option<Shape> {
        let heads = self.heads.iter();
        let heads = heads.map(|digit| (Role::Head(*digit), digit.extent, digit.stride));
        let own = [
            (Role::Row, rows, self.row),
            (Role::Column, columns, self.column),
        ];
        let mut dims: Vec<_> = heads.chain(own).filter(|dim| dim.1 != 1).collect();
        dims.sort_by_key(|(_, _, stride)| std::cmp::Reverse(*stride));
        let mut shape = Vec::new();
        let mut above = self.elements;
        for (role, extent, stride) in dims {
            let fits = stride > 0 && above % stride == 0 && extent <= above / stride;
            shape.push((role, fits.then(|| above / stride)?));
            above = stride;
        }
        if above > 1 || shape.is_empty() {
            shape.push((Role::Gap, above));
        }
        Some(Shape(shape))
    }

    /// Whether each element is that of one head, row and column.
    fn is_all(&self, size: [i64; 2]) -> bool {
        let of = |(role, extent): &(Role, i64)| match role {
            Role::Head(digit) => *extent == digit.extent,
            Role::Row => *extent == size[0],
            Role::Column => *extent == size[1],
            Role::Gap => *extent == 1,
        };
        self.shape(size).is_some_and(|shape| shape.0.iter().all(of))
    }
}

impl Tensors {
    /// Heads one below the other in all of them.
    #[must_use]
    pub fn below(a: &Attention) -> Self {
        let of = |order, rows| Strided::below(order, a.heads, [rows, a.dim]);
        Self {
            q: of(a.q, a.queries),
            k: of(a.k, a.keys),
            v: of(Order::KMinor, a.keys),
            result: of(Order::KMinor, a.queries),
        }
    }

    /// Why a kernel does not read or write these.
    pub(super) fn declined(&self, a: &Attention) -> Option<String> {
        let all = [
            ("queries", &self.q, a.queries, a.q),
            ("keys", &self.k, a.keys, a.k),
            ("values", &self.v, a.keys, Order::KMinor),
            ("results", &self.result, a.queries, Order::KMinor),
        ];
        for (what, tensor, rows, order) in all {
            let size = [rows, a.dim];
            let Some(shape) = tensor.shape(size) else {
                return Some(format!("the {what} lie in no row-major tensor"));
            };
            if tensor.order(size) != Some(order) {
                return Some(match order {
                    Order::KMajor => format!("the {what} of a head do not follow each other"),
                    Order::KMinor => {
                        format!("the elements of each of the {what} do not follow each other")
                    }
                });
            }
            let known = |digit: &Digit| {
                digit.every > 0
                    && digit.extent > 0
                    && a.heads % digit.every.saturating_mul(digit.extent) == 0
            };
            if !tensor.heads.iter().all(known) {
                return Some(format!("the heads of the {what} are not {}", a.heads));
            }
            // A transfer names heads by one index each, and has four dimensions of its own (A1).
            if shape.0.len() > MOST_DIMENSIONS {
                return Some(format!("the {what} have {} dimensions", shape.0.len()));
            }
        }
        let own = self.result.heads.iter().map(|digit| digit.extent);
        let own = own.fold(1i64, i64::saturating_mul);
        let is_all = self.result.is_all([a.queries, a.dim]) && own == a.heads;
        (!is_all).then(|| "the results of several heads are one".to_owned())
    }
}

/// Dimensions of a tensor at most.
const MOST_DIMENSIONS: usize = 8;

/// A tensor in HBM.
pub(super) struct Tensor {
    tile: Tile,
    shape: Shape,
    heads: i64,
}

impl Tensor {
    /// Declares an argument, whose strides are known to be those of a row-major tensor.
    pub fn new(
        b: &mut Builder,
        name: &str,
        (strided, rows): (&Strided, i64),
        a: &Attention,
    ) -> Self {
        let shape = strided.shape([rows, a.dim]);
        let shape = shape.unwrap_or_else(|| Shape(vec![(Role::Gap, strided.elements)]));
        let extents: Vec<i64> = shape.0.iter().map(|(_, extent)| *extent).collect();
        let dtype: DType = a.dtype;
        let tile = match name {
            "result" => b.output(name, &extents, dtype),
            _ => b.input(name, &extents, dtype),
        };
        Self {
            tile,
            shape,
            heads: a.heads,
        }
    }

    /// Some rows and columns of a head's matrix: axes along rows or columns, their extents and steps.
    fn view(&self, head: &Expr, row: &Expr, axes: &[(Role, i64, i64)]) -> View {
        let dims = self.shape.0.iter();
        let origin = dims.map(|(role, _)| match role {
            Role::Head(digit) => self.digit(head, digit),
            Role::Row => row.clone(),
            Role::Column | Role::Gap => 0.into(),
        });
        let axis = |(role, size, step): &(Role, i64, i64)| {
            let of = self.shape.0.iter().position(|(own, _)| own == role);
            Axis {
                of,
                size: *size,
                step: if of.is_some() { *step } else { 0 },
            }
        };
        View {
            buffer: self.tile.buffer(),
            origin: origin.collect(),
            axes: axes.iter().map(axis).collect(),
        }
    }

    fn digit(&self, head: &Expr, digit: &Digit) -> Expr {
        let above = match head.constant() {
            _ if digit.every == 1 => head.clone(),
            Some(head) => (head / digit.every).into(),
            None => Expr::Div(Box::new(head.clone()), digit.every),
        };
        match (digit.every * digit.extent == self.heads, above.constant()) {
            (true, _) => above,
            (false, Some(above)) => (above % digit.extent).into(),
            (false, None) => Expr::Mod(Box::new(above), digit.extent),
        }
    }

    /// Rows as `[columns, rows]`.
    pub fn columns(&self, head: &Expr, row: &Expr, [rows, columns]: [i64; 2]) -> View {
        self.view(
            head,
            row,
            &[(Role::Column, columns, 1), (Role::Row, rows, 1)],
        )
    }

    /// Rows as `[rows, columns]`.
    pub fn rows(&self, head: &Expr, row: &Expr, [rows, columns]: [i64; 2]) -> View {
        self.view(
            head,
            row,
            &[(Role::Row, rows, 1), (Role::Column, columns, 1)],
        )
    }

    /// Rows as `[rows of a tile, tiles, columns]`.
    pub fn tiles(&self, head: &Expr, row: &Expr, (tiles, rows, columns): (i64, i64, i64)) -> View {
        let along = [
            (Role::Row, rows, 1),
            (Role::Row, tiles, PARTITIONS),
            (Role::Column, columns, 1),
        ];
        self.view(head, row, &along)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(strided: &Strided, size: [i64; 2]) -> Option<Vec<i64>> {
        let shape = strided.shape(size)?;
        Some(shape.0.iter().map(|(_, extent)| *extent).collect())
    }

    #[test]
    fn shapes_are_those_of_strides() {
        let below = |order| Strided::below(order, 6, [100, 64]);
        assert_eq!(
            shape(&below(Order::KMinor), [100, 64]),
            Some(vec![6, 100, 64])
        );
        assert_eq!(
            shape(&below(Order::KMajor), [100, 64]),
            Some(vec![6, 64, 100])
        );
        assert_eq!(below(Order::KMajor).order([100, 64]), Some(Order::KMajor));
        // [2, 100, 3, 64], and three heads of queries for each of keys.
        let digit = |every, extent, stride| Digit {
            every,
            extent,
            stride,
        };
        let bshd = Strided {
            elements: 2 * 100 * 3 * 64,
            heads: vec![digit(9, 2, 19200), digit(3, 3, 64)],
            row: 192,
            column: 1,
        };
        assert_eq!(shape(&bshd, [100, 64]), Some(vec![2, 100, 3, 64]));
        assert!(bshd.is_all([100, 64]));
        // Some of the rows, some of the columns: gaps are no rows of others.
        assert_eq!(shape(&bshd, [90, 60]), Some(vec![2, 100, 3, 64]));
        assert!(!bshd.is_all([90, 64]));
        // Every other element.
        let wide = Strided {
            column: 2,
            ..Strided::below(Order::KMinor, 1, [10, 8])
        };
        assert_eq!(shape(&wide, [10, 4]), Some(vec![10, 4, 2]));
        assert_eq!(wide.order([10, 4]), None);
        let odd = Strided {
            row: 12,
            ..Strided::below(Order::KMinor, 1, [10, 8])
        };
        assert_eq!(shape(&odd, [6, 8]), None);
        assert_eq!(
            shape(&Strided::below(Order::KMinor, 1, [1, 1]), [1, 1]),
            Some(vec![1])
        );
    }
}
