//! What a broadcast repeats between the rows of a space, or elsewhere, is loaded from memory: elements of a table, each at its index.

use super::between::Between;
use super::evaluate::Evaluator;
use super::space::{Kind, product};
use crate::PassResult;
use crate::build::{Code, Number};
use crate::ir::value::identity;
use crate::ir::{Int, Op, TensorType, Val, attribute};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

impl<'c> Evaluator<'_, 'c> {
    /// A broadcast of a tensor in memory: of each element its own is loaded, once a row where rows repeat it, and once a column where all rows of
    /// the tile do.
    pub(super) fn gathered(
        &mut self,
        op: Op<'c>,
        from: Val<'c>,
        value: Val<'c>,
        kind: Kind,
    ) -> PassResult<'c, Val<'c>> {
        if let Some(repeated) = self.repeated_rows(op, from, value)? {
            return Ok(repeated);
        }
        let row = (identity(value), Kind::Row);
        if let Some(known) = self.known.get(&row) {
            return self.code.broadcast(*known, 1, self.r#type(value, kind)?);
        }
        let shape = TensorType::of_value(value)
            .ok_or_else(|| self.lost(value))?
            .shape;
        let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
        let dims = dims.ok_or_else(|| self.lost(value))?;
        let kept = |dim: usize| i64::try_from(dim).is_ok_and(|dim| !dims.contains(&dim));
        let last = (0..shape.len()).rev().find(|dim| kept(*dim));
        let (named, behind) = shape.split_at(last.map_or(0, |last| last + 1));
        let repeated = product(behind).filter(|repeated| *repeated > 0);
        let repeated = repeated.ok_or_else(|| self.lost(value))?;
        let columns = self.cut.columns;
        let by_row = kind == Kind::Full && !self.cut.is_strided() && repeated % columns == 0;
        let (own, repeated) = match by_row {
            true => (Kind::Row, repeated / columns),
            false => (kind, repeated),
        };
        let memref = self.scalars.get(&identity(from)).copied();
        let memref = memref.ok_or_else(|| self.lost(from))?;
        let element = self.element(value)?;
        let loaded = self.indexed(element, own, |this, inner| {
            let at = this.index(&inner.builder, (named, repeated), own)?;
            let at = at.into_iter().enumerate().filter(|(dim, _)| kept(*dim));
            let operands: Vec<_> = [memref].into_iter().chain(at.map(|(_, at)| at)).collect();
            inner.builder.value("memref.load", &operands, element, &[])
        })?;
        match by_row {
            true => {
                self.known.insert(row, loaded);
                self.code.broadcast(loaded, 1, self.r#type(value, kind)?)
            }
            false => Ok(loaded),
        }
    }

    /// What rows of a table give a product's tile, which is no higher than what repeats one of them: its first rows have one, the rest the next. None
    /// where the tile is higher.
    fn repeated_rows(
        &self,
        op: Op<'c>,
        from: Val<'c>,
        value: Val<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let ([rows, columns], whole) = (self.registers.shape, self.cut.columns);
        let between = Between::of(op, value, whole).filter(|_| !self.cut.is_strided());
        let memref = self.scalars.get(&identity(from)).copied();
        let (Some(Between::Row { rows: run }), Some(memref), None) = (between, memref, self.part)
        else {
            return Ok(None);
        };
        if run < rows {
            return Ok(None);
        }
        let shape = self.code.builder.tensor_of(from)?.shape;
        let extents = [product(&shape).unwrap_or(whole) / whole, whole];
        let [sizes, strides] = [extents, [whole, 1]].map(|own| own.map(Int::Known));
        let table = self.code.reinterpret(memref, &sizes, &strides, &[1, 1])?;
        let (code, ints) = (self.code, self.code.builder.ints());
        let r#type = self.r#type(value, Kind::Full)?;
        // A cluster's last tiles may be behind all rows.
        let load = |row: Int<'c>| {
            let row = ints.min(row, Int::Known(extents[0] - 1))?;
            let at = [ints.value(row)?, self.origin.column];
            let own = code.global_box(table, &extents, &at, &[columns])?;
            let row = code.load(own, self.r#type(value, Kind::Column)?)?;
            code.broadcast(row, 0, r#type)
        };
        let first = ints.div(self.row_of_all(&ints, Int::of(self.origin.row))?, run)?;
        if run % rows == 0 {
            return load(first).map(Some);
        }
        let next = ints.add(first, Int::Known(1))?;
        let both = [load(first)?, load(next)?];
        let begins = Int::Value(ints.value(ints.mul(next, run)?)?);
        let chosen = code.map(&both, r#type, |inner, elements| {
            let ints = inner.builder.ints();
            let row = self.along(&inner.builder, 0, self.origin.row)?;
            let is_first = ints.less(self.row_of_all(&ints, row)?, begins)?;
            let operands = [&[is_first], elements].concat();
            let element = self.element(value)?;
            inner.builder.value("arith.select", &operands, element, &[])
        });
        chosen.map(Some)
    }

    /// A map without inputs, whose body knows where its element is.
    pub(super) fn indexed(
        &self,
        element: Type<'c>,
        kind: Kind,
        body: impl FnOnce(&Self, Code<'c>) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let r#type = self.registers.r#type(self.code, kind, element)?;
        // A map has an input, for its shape.
        let zero = self.code.scalar(element, Number::Of(0))?;
        let input = self.code.fill(zero, r#type)?;
        self.code
            .map(&[input], r#type, |inner, _| body(self, inner))
    }
}
