//! Where a tile and its elements are: boxes of arguments, and indices of elements in their tensors.

use super::arguments::Argument;
use super::evaluate::{Evaluator, Origin};
use super::nest::index_of_number;
use super::row_numbers::{Blocks, RowNumbers};
use super::space::{Cut, Kind};
use crate::build::{layout_error, row_major};
use crate::ir::{Builder, DYNAMIC, Int, Ints, Val};
use crate::{PassError, PassResult};
use axe_dialect::ops;
use axe_layout::Layout;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

impl<'c> Evaluator<'_, 'c> {
    /// The tile's box of an argument.
    pub(super) fn boxed(&self, argument: &Argument<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        if kind == Kind::Full && self.cut.is_strided() {
            return self.strided_box(argument);
        }
        let origin = &self.origin;
        let at = match kind {
            Kind::Full | Kind::Pairs(_) => vec![origin.row, origin.column],
            Kind::Row => vec![origin.row],
            Kind::Column => vec![origin.column],
            Kind::Blocks(of) => vec![
                origin.row,
                self.code.div(origin.column, self.code.index(of)?)?,
            ],
        };
        if let (Kind::Full | Kind::Column, Some(neighbour)) = (kind, self.neighbour) {
            return self.every_other(argument, kind, neighbour);
        }
        let batch = origin.batch.filter(|_| kind != Kind::Column);
        let (shape, _) = self.registers.of(kind);
        let Argument {
            memref, extents, ..
        } = argument;
        if let Some([row, column]) = argument.staged_at {
            let row = self.code.sub(origin.row, row)?;
            // What is known of a place in a loop is not found in a difference.
            let along = self.along.filter(|_| self.first() == Some(column));
            let column = along.map_or_else(|| self.code.sub(origin.column, column), Ok)?;
            let at = match kind {
                Kind::Column => vec![column],
                _ => vec![row, column],
            };
            return self.code.shared_box(*memref, extents, &at, &shape);
        }
        if let (Kind::Full, Some(own)) = (kind, self.in_vectors(argument)?) {
            return Ok(own);
        }
        let mut at: Vec<_> = batch.into_iter().chain(at).collect();
        if let Some(column) = at.last_mut().filter(|_| argument.first > 0) {
            *column = self.code.add(*column, self.code.index(argument.first)?)?;
        }
        let memref = self.whole(argument, kind)?.unwrap_or(*memref);
        self.code.global_box(memref, extents, &at, &shape)
    }

    /// The tile of an argument whose rows are not those of the same numbers: where each of several has a number of its own, all are gathered.
    pub(super) fn looked_up(
        &self,
        argument: &Argument<'c>,
        r#type: Type<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let Some(numbers) = argument.numbers.as_deref().copied() else {
            return Ok(None);
        };
        let (code, origin) = (self.code, &self.origin);
        let ([rows, columns], extents) = (self.registers.shape, &argument.extents);
        let follows = |blocks: Blocks| blocks.count % rows == 0;
        if rows == 1 || numbers.named.is_none() && numbers.blocks.is_none_or(follows) {
            let at = argument.place(code, [origin.row, origin.column])?;
            let own = code.global_box(argument.memref, extents, &at, &[rows, columns])?;
            return code.load(own, r#type).map(Some);
        }
        let all = extents.first().copied().unwrap_or(1);
        let column = code.add(origin.column, code.index(argument.first)?)?;
        let at = [code.index(0)?, column];
        let table = code.global_box(argument.memref, extents, &at, &[all, columns])?;
        let (rows, wraps) = match (numbers.named, numbers.blocks) {
            (Some(named), None) => {
                let own = code.strided_box(named.memref, &[origin.row], &[rows], &[1])?;
                (own, named.wraps)
            }
            _ => (self.row_numbers(numbers, all)?, false),
        };
        code.gather((table, rows), wraps, r#type).map(Some)
    }

    /// The number of each row of the tile among so many.
    fn row_numbers(&self, numbers: RowNumbers<'c>, all: i64) -> PassResult<'c, Val<'c>> {
        let bits = if i32::try_from(all).is_ok() { 32 } else { 64 };
        let element = self
            .code
            .builder
            .r#type(|context| IntegerType::new(context, bits).into());
        self.indexed(element, Kind::Row, |this, inner| {
            let row = this.along(&inner.builder, 0, this.origin.row)?;
            let own = numbers.of_row(inner.builder, row)?;
            let ints = Ints::new(inner.builder, bits);
            ints.value(ints.cast(own)?)
        })
    }

    /// The tile's box of an argument of which it has every other column.
    fn every_other(
        &self,
        argument: &Argument<'c>,
        kind: Kind,
        neighbour: i64,
    ) -> PassResult<'c, Val<'c>> {
        let (code, origin) = (self.code, &self.origin);
        let failed = |error| layout_error(code.builder.location, error);
        let lost = || layout_error(code.builder.location, "an argument without columns");
        let memref = argument.memref;
        let (&columns, rows) = argument.extents.split_last().ok_or_else(lost)?;
        let extents = [rows, &[columns / 2, 2]].concat();
        let strides = row_major(&extents);
        let [sizes, known] = [&extents, &strides].map(|own| {
            let own = own.iter().copied().map(Int::Known);
            own.collect::<Vec<_>>()
        });
        let all = code.reinterpret(memref, &sizes, &known, &vec![1; extents.len()])?;
        let (shape, _) = self.registers.of(kind);
        let at = match kind {
            Kind::Full => vec![origin.row, origin.column, code.index(neighbour)?],
            _ => vec![origin.column, code.index(neighbour)?],
        };
        let batch = origin.batch.filter(|_| kind == Kind::Full);
        let at: Vec<_> = batch.into_iter().chain(at).collect();
        let own = code.global_box(all, &extents, &at, &[&shape[..], &[1]].concat())?;
        let apart = strides.len().saturating_sub(shape.len() + 1);
        let apart = strides.get(apart..strides.len() - 1).unwrap_or_default();
        let layout = Layout::strided(&shape, apart).map_err(failed)?;
        let element = axe_dialect::element_type(memref.r#type());
        code.view(own, code.memref(&shape, element, &layout, None)?)
    }

    /// An argument without the elements behind its rows' last whole tiles, where the tile is one of these.
    fn whole(&self, argument: &Argument<'c>, kind: Kind) -> PassResult<'c, Option<Val<'c>>> {
        let step = self.registers.shape[1];
        let &[rows, columns] = &argument.extents[..] else {
            return Ok(None);
        };
        let is_part = argument.first > 0 || columns != self.cut.columns;
        if is_part || !self.inside || kind != Kind::Full || rows == DYNAMIC || columns % step == 0 {
            return Ok(None);
        }
        let sizes = [rows, columns - columns % step].map(Int::Known);
        let strides = [columns, 1].map(Int::Known);
        let whole = self
            .code
            .reinterpret(argument.memref, &sizes, &strides, &[1, 1])?;
        Ok(Some(whole))
    }

    /// The tile's box of an argument whose columns have a stride: cut as it lies in memory, where rows come last, and seen as rows.
    fn strided_box(&self, argument: &Argument<'c>) -> PassResult<'c, Val<'c>> {
        let (code, origin) = (self.code, &self.origin);
        let [rows, columns] = self.registers.shape;
        let Argument {
            memref, extents, ..
        } = argument;
        let stride = extents.last().copied().unwrap_or(1);
        let (own, space) = match argument.staged_at {
            Some([row, column]) => {
                let at = [code.sub(origin.column, column)?, code.sub(origin.row, row)?];
                let own = code.shared_box(*memref, extents, &at, &[columns, rows])?;
                (own, Some("shared"))
            }
            None => {
                let at = [origin.column, origin.row];
                let at: Vec<_> = origin.batch.into_iter().chain(at).collect();
                (
                    code.global_box(*memref, extents, &at, &[columns, rows])?,
                    None,
                )
            }
        };
        let layout = Layout::strided(&[rows, columns], &[1, stride]);
        let layout = layout.map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(memref.r#type());
        code.view(own, code.memref(&[rows, columns], element, &layout, space)?)
    }

    /// The index, in a tensor of this shape each of whose elements is repeated so many times, of the element that a map's body computes.
    pub(super) fn index(
        &self,
        builder: &Builder<'c>,
        (shape, repeated): (&[i64], i64),
        kind: Kind,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = builder.ints();
        let along = |dim: i64, origin: Val<'c>| self.along(builder, dim, origin);
        let Origin { row, column, .. } = &self.origin;
        let index = match kind {
            Kind::Row => {
                let row = self.row_of_all(&ints, along(0, *row)?)?;
                let row = self.in_batch(&ints, row, self.cut.stride)?;
                index_of_number(&ints, shape, block_of(&ints, row, repeated)?)?
            }
            Kind::Column => {
                let column = block_of(&ints, along(0, *column)?, repeated)?;
                index_of_number(&ints, shape, column)?
            }
            Kind::Blocks(_) | Kind::Pairs(_) => {
                let why = "no index of several columns";
                return Err(PassError::new(self.code.builder.location, why));
            }
            Kind::Full => {
                let row = self.row_of_all(&ints, along(0, *row)?)?;
                let column = along(1, *column)?;
                let Cut { columns, stride } = self.cut;
                let own = (columns % repeated == 0).then_some(columns / repeated);
                let own = own.and_then(|own| of_columns(shape, own));
                match own.filter(|_| !self.cut.is_strided()) {
                    Some((rows, columns)) => {
                        let mut index = index_of_number(&ints, rows, row)?;
                        let column = block_of(&ints, column, repeated)?;
                        index.extend(index_of_number(&ints, columns, column)?);
                        index
                    }
                    None => {
                        let of_rows = match self.cut.is_strided() {
                            true => row,
                            false => ints.mul(row, columns)?,
                        };
                        let number = ints.add(of_rows, ints.mul(column, stride)?)?;
                        let number = self.in_batch(&ints, number, columns * stride)?;
                        index_of_number(&ints, shape, block_of(&ints, number, repeated)?)?
                    }
                }
            }
        };
        index.into_iter().map(|at| ints.value(at)).collect()
    }

    /// The index along a dimension of the element that a map's body computes, on a tile that begins here.
    pub(super) fn along(
        &self,
        builder: &Builder<'c>,
        dim: i64,
        origin: Val<'c>,
    ) -> PassResult<'c, Int<'c>> {
        let dim = [("dim", builder.parsed(&format!("{dim} : i64"))?)];
        let at = builder.value(ops::INDEX, &[], builder.index_type(), &dim)?;
        builder.ints().add(Int::of(origin), Int::Value(at))
    }

    /// The number among all rows of one of a product of a batch.
    pub(super) fn row_of_all(&self, ints: &Ints<'c>, row: Int<'c>) -> PassResult<'c, Int<'c>> {
        match self.origin.batch {
            Some(batch) if !self.cut.is_strided() => {
                let before = ints.times(Int::of(batch), Int::of(self.origin.limit[0]))?;
                ints.add(before, row)
            }
            _ => Ok(row),
        }
    }

    /// The number among all elements of one among those of a matrix of the batch, each of which has so many.
    fn in_batch(&self, ints: &Ints<'c>, number: Int<'c>, of: i64) -> PassResult<'c, Int<'c>> {
        match self.origin.batch {
            Some(batch) if self.cut.is_strided() => ints.add(ints.mul(Int::of(batch), of)?, number),
            _ => Ok(number),
        }
    }
}

/// The number of the block of `elements` that one lies in. It is divided by a power of two first, so that neighbours, which differ in
/// the last bits, have one quotient and not each their own.
fn block_of<'c>(ints: &Ints<'c>, number: Int<'c>, elements: i64) -> PassResult<'c, Int<'c>> {
    let aligned = 1 << elements.trailing_zeros();
    ints.div(ints.div(number, aligned)?, elements / aligned)
}

/// The dimensions of a shape that are so many columns, and those in front of them.
fn of_columns(shape: &[i64], columns: i64) -> Option<(&[i64], &[i64])> {
    let mut product = 1i64;
    for at in (0..shape.len()).rev() {
        product = product.checked_mul(*shape.get(at)?)?;
        if product == columns {
            return shape.split_at_checked(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_last_dimensions() {
        assert_eq!(
            of_columns(&[2, 5, 100], 100),
            Some((&[2, 5][..], &[100][..]))
        );
        assert_eq!(
            of_columns(&[2, 5, 4, 25], 100),
            Some((&[2, 5][..], &[4, 25][..]))
        );
        assert_eq!(of_columns(&[7, 1, 1], 1), Some((&[7, 1][..], &[1][..])));
        assert_eq!(of_columns(&[6, 10], 15), None);
        assert_eq!(of_columns(&[i64::MAX, i64::MAX], 3), None);
    }
}
