//! The values of a group on one tile, in registers.

use super::arguments::{Argument, Inputs};
use super::between::Between;
use super::fold::{Fold, Part, Stream};
use super::fusion::{kind_of_source, needs};
use super::kept::Kept;
use super::nest::Pointwise;
use super::online::Walk;
use super::operators::{captured, is_reshape, splat};
use super::peel::Peel;
use super::registers::Registers;
use super::space::{Cut, Kind, source};
use crate::build::{Code, Number, layout_error};
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, Val, walk};
use crate::{PassError, PassResult};
use axe_dialect::element_type;
use axe_dialect::ops::{self, MaskOp};
use melior::ir::{Type, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;

/// Where the tile is.
#[derive(Clone, Debug)]
pub struct Origin<'c> {
    /// The product of a batch.
    pub batch: Option<Val<'c>>,
    /// Its first row.
    pub row: Val<'c>,
    /// Its first column.
    pub column: Val<'c>,
    /// How many rows and columns there are.
    pub limit: [Val<'c>; 2],
}

/// Values of a tile that are loaded.
pub type Loaded<'c> = HashMap<(usize, Kind), Val<'c>>;

/// The part of its rows' columns that a CTA goes through, where it has not all of them.
pub trait RowPart<'c> {
    /// The first of them, and how many they are.
    fn columns(&self) -> [Val<'c>; 2];

    /// What is peeled off the row, where its tiles begin at boundaries of memory.
    fn peel(&self) -> Option<&Peel<'c>> {
        None
    }

    /// How it goes through them where it does so once, from global memory.
    fn walk(&self) -> Option<&Walk<'c>> {
        None
    }

    /// What all that share a row have of states of a round of folds: a matrix of one row for each.
    ///
    /// # Errors
    /// When an operation cannot be built.
    fn gather(
        &self,
        code: Code<'c>,
        round: usize,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>>;
}

/// Forms the values of a group on one tile.
pub struct Evaluator<'a, 'c> {
    /// Where operations go.
    pub code: Code<'c>,
    /// The tile.
    pub registers: &'a Registers,
    /// The columns of the space.
    pub cut: Cut,
    /// The kernel's inputs.
    pub arguments: &'a Inputs<'c>,
    /// What bodies read from outside, as the kernel has it: scalars of the function, and tensors.
    pub scalars: &'a HashMap<usize, Val<'c>>,
    /// Where the tile is.
    pub origin: Origin<'c>,
    /// The CTA's part of the columns, where several share rows.
    pub part: Option<&'a dyn RowPart<'c>>,
    /// Exponentials that are left in the place of an input.
    pub kept: Option<Kept<'c>>,
    /// How far the tile is behind the first of the CTA's columns, where it is in a loop over them.
    pub along: Option<Val<'c>>,
    /// Whether the tile's columns are known to be the space's.
    pub inside: bool,
    /// What the thread group has loaded of its rows for good, tile by tile.
    pub held: Option<&'a [Loaded<'c>]>,
    /// Which of two neighbours the tile's columns are, where they are every other one of the space.
    pub neighbour: Option<i64>,
    /// What is formed already.
    pub known: HashMap<(usize, Kind), Val<'c>>,
}

impl<'a, 'c> Evaluator<'a, 'c> {
    /// Of a kernel that has all of its rows' columns, with nothing formed yet.
    #[must_use]
    pub fn new(
        code: Code<'c>,
        (registers, cut): (&'a Registers, Cut),
        (arguments, scalars): (&'a Inputs<'c>, &'a HashMap<usize, Val<'c>>),
        origin: Origin<'c>,
    ) -> Self {
        Self {
            code,
            registers,
            cut,
            arguments,
            scalars,
            origin,
            part: None,
            kept: None,
            along: None,
            inside: false,
            held: None,
            neighbour: None,
            known: HashMap::new(),
        }
    }
}

impl<'c> Evaluator<'_, 'c> {
    pub(super) fn element(&self, value: Val<'c>) -> PassResult<'c, Type<'c>> {
        self.code
            .builder
            .tensor_of(value)
            .map(|tensor| tensor.element)
    }

    pub(super) fn r#type(&self, value: Val<'c>, kind: Kind) -> PassResult<'c, Type<'c>> {
        self.registers.r#type(self.code, kind, self.element(value)?)
    }

    /// The value on the tile.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn value(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let key = (identity(value), kind);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let formed = match (self.kept_tile(value, kind)?, self.arguments.get(&key)) {
            (Some(kept), _) => kept,
            (None, Some(argument)) => {
                let r#type = self.r#type(value, kind)?;
                match self.looked_up(&argument.clone(), r#type)? {
                    Some(own) => own,
                    None => self
                        .code
                        .load(self.boxed(&argument.clone(), kind)?, r#type)?,
                }
            }
            (None, None) => {
                let op = defining(value).ok_or_else(|| self.lost(value))?;
                self.form(op, value, kind)?
            }
        };
        self.known.insert(key, formed);
        Ok(formed)
    }

    pub(super) fn lost(&self, value: Val<'c>) -> PassError<'c> {
        let location = self.code.builder.location;
        PassError::new(location, format!("the kernel has no way to form {value}"))
    }

    /// Stores a value to its place in an argument.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn store(&mut self, value: Val<'c>, kind: Kind, to: &Argument<'c>) -> PassResult<'c> {
        let formed = self.value(value, kind)?;
        let to = self.boxed(to, kind)?;
        self.code.store(formed, to)
    }

    /// Reduces the blocks of `of` columns of a tile, or of a part that begins at column `first` of one, and stores those that end
    /// in it. `state` is that of a block which began before; the result, of one that goes on behind.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn store_blocks(
        &mut self,
        value: Val<'c>,
        (of, first): (i64, i64),
        mut state: Option<Val<'c>>,
        to: &Argument<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let op = defining(value).ok_or_else(|| self.lost(value))?;
        let from = source(op).ok_or_else(|| self.lost(value))?;
        let (fold, element) = (Fold::of_reduction(op)?, self.element(from)?);
        let whole = self.value(from, Kind::Full)?;
        let (code, columns) = (self.code, self.registers.shape[1]);
        let mut at = 0;
        while at < columns {
            let end = columns.min(at + of - (first + at) % of);
            let registers = self.registers.part(at, end - at);
            let registers =
                registers.map_err(|error| layout_error(code.builder.location, error))?;
            let part = registers.r#type(code, Kind::Full, element)?;
            let part = code.extract_slice(whole, &[0, at], part)?;
            let row = registers.r#type(code, Kind::Row, element)?;
            let own = code.reduce(fold.combiner, part, 1, row)?;
            let block = match state.take() {
                None => own,
                Some(state) => fold.merge(code, element, state, own)?,
            };
            if (first + end) % of == 0 {
                let column = code.add(self.origin.column, code.index(at)?)?;
                let inner = self.at_part(&registers, column);
                let r#type = registers.r#type(code, Kind::Blocks(of), element)?;
                let block = code.broadcast(block, 1, r#type)?;
                code.store(block, inner.boxed(to, Kind::Blocks(of))?)?;
            } else {
                state = Some(block);
            }
            at = end;
        }
        Ok(state)
    }

    fn form(&mut self, op: Op<'c>, value: Val<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let builder = self.code.builder;
        if let Some(scalar) = splat(op) {
            let scalar = builder.constant(scalar)?;
            return self.code.fill(scalar, self.r#type(value, kind)?);
        }
        if let Some(nest) = Pointwise::of(op) {
            return self.pointwise(&nest, value, kind);
        }
        let from = source(op).ok_or_else(|| self.lost(value))?;
        match name(op).as_str() {
            _ if is_reshape(op) => self.value(from, kind),
            ops::FILL => {
                let scalar = self.scalar(from)?;
                self.code.fill(scalar, self.r#type(value, kind)?)
            }
            ops::CAST => {
                let from = self.value(from, kind)?;
                builder.value(ops::CAST, &[from], self.r#type(value, kind)?, &[])
            }
            ops::BROADCAST => self.broadcast(op, from, value, kind),
            ops::MAP => self.map(op, value, kind),
            // What needs the others' states was formed before, in rounds.
            ops::REDUCE if self.part.is_none() => self.state(value, Fold::of_reduction(op)?),
            _ => Err(self.lost(value)),
        }
    }

    fn broadcast(
        &mut self,
        op: Op<'c>,
        from: Val<'c>,
        value: Val<'c>,
        kind: Kind,
    ) -> PassResult<'c, Val<'c>> {
        let Some(of) = kind_of_source(op, (value, kind), Some(self.cut)) else {
            return self.gathered(op, from, value, kind);
        };
        let from = self.value(from, of)?;
        let dim = match of {
            _ if of == kind => return Ok(from),
            Kind::Column => 0,
            _ => 1,
        };
        let builder = self.code.builder;
        let dims = [("dims", builder.i64s(&[dim]))];
        builder.value(ops::BROADCAST, &[from], self.r#type(value, kind)?, &dims)
    }

    pub(super) fn scalar(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        if let Some(known) = self.scalars.get(&identity(value)) {
            return Ok(*known);
        }
        match defining(value).filter(|op| name(*op) == "arith.constant") {
            Some(op) => self.code.builder.result_of(self.code.builder.clone_of(op)),
            None => Err(self.lost(value)),
        }
    }

    /// The map's body on the tile: a copy of the operator, with other operands and another type.
    fn map(&mut self, op: Op<'c>, value: Val<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let inputs: Vec<_> = operands(op)
            .into_iter()
            .map(|operand| self.value(operand, kind))
            .collect::<PassResult<_>>()?;
        let r#type = self.r#type(value, kind)?;
        let captured = captured(op)
            .into_iter()
            .map(|outer| Ok((outer, self.scalar(outer)?)))
            .collect::<PassResult<Vec<_>>>()?;
        let copy = self.code.builder.clone_of(op);
        // SAFETY: the copy is live, and the positions are those of its own operands.
        unsafe {
            for (at, input) in (0..).zip(&inputs) {
                sys::mlirOperationSetOperand(copy.to_raw(), at, input.to_raw());
            }
            for inner in walk::nested(copy, &|_| true) {
                for (at, operand) in (0..).zip(operands(inner)) {
                    if let Some((_, own)) = captured.iter().find(|(outer, _)| *outer == operand) {
                        sys::mlirOperationSetOperand(inner.to_raw(), at, own.to_raw());
                    }
                }
            }
        }
        let result = self.code.builder.result_of(copy)?;
        // SAFETY: the verifier checks the operator with its new type.
        unsafe { sys::mlirValueSetType(result.to_raw(), r#type.to_raw()) };
        Ok(result)
    }

    /// Loops on the tile: a map whose body knows where its element is in the tensor.
    fn pointwise(
        &mut self,
        nest: &Pointwise<'c>,
        value: Val<'c>,
        kind: Kind,
    ) -> PassResult<'c, Val<'c>> {
        let mut inputs = Vec::new();
        for input in &nest.inputs {
            inputs.push(self.value(*input, kind)?);
        }
        let mut outside = HashMap::new();
        for scalar in captured(nest.op) {
            outside.insert(identity(scalar), self.scalar(scalar)?);
        }
        for table in &nest.tables {
            let memref = self.scalars.get(&identity(*table)).copied();
            outside.insert(identity(*table), memref.ok_or_else(|| self.lost(*table))?);
        }
        let r#type = self.r#type(value, kind)?;
        if inputs.is_empty() {
            // A map has an input, for its shape.
            let zero = self.code.scalar(self.element(value)?, Number::Of(0))?;
            inputs.push(self.code.fill(zero, r#type)?);
        }
        self.code.map(&inputs, r#type, |inner, elements| {
            let at = self.index(&inner.builder, (&nest.shape, 1), kind)?;
            nest.element(&inner.builder, elements, &at, &outside)
        })
    }

    /// The state of a reduction over the columns that there are here.
    pub(super) fn state(&mut self, value: Val<'c>, fold: Fold) -> PassResult<'c, Val<'c>> {
        let from = defining(value).and_then(source);
        let from = from.ok_or_else(|| self.lost(value))?;
        let r#type = self.r#type(value, Kind::Row)?;
        let whole = if self.registers.shape[1] >= self.cut.columns {
            self.masked(from, fold)?
        } else {
            self.reduce_in_a_loop(from, fold)?
        };
        let row = self.code.reduce(fold.combiner, whole, 1, r#type)?;
        self.with_peeled(from, fold, row)
    }

    /// A value whose columns beyond the space's change no reduction.
    pub(super) fn masked(&mut self, from: Val<'c>, fold: Fold) -> PassResult<'c, Val<'c>> {
        let value = self.value(from, Kind::Full)?;
        self.mask(value, fold)
    }

    /// The same of what stands for such a value here.
    pub(super) fn mask(&self, value: Val<'c>, fold: Fold) -> PassResult<'c, Val<'c>> {
        if self.inside || self.cut.columns % self.registers.shape[1] == 0 {
            return Ok(value);
        }
        let builder = self.code.builder;
        let neutral = self
            .code
            .scalar(element_type(value.r#type()), fold.neutral())?;
        let Origin {
            row, column, limit, ..
        } = &self.origin;
        let (origin, limit) = ([*row, *column], [limit[0], limit[1]]);
        let operands = MaskOp::operands(value, &origin, &limit, neutral);
        builder.operator_value(&operands, value.r#type(), &[])
    }

    /// Combines the tiles of long rows, one after the other, into one tile.
    fn reduce_in_a_loop(&mut self, from: Val<'c>, fold: Fold) -> PassResult<'c, Val<'c>> {
        self.form_rows(from, Kind::Full)?;
        let r#type = self.r#type(from, Kind::Full)?;
        let neutral = self.code.scalar(self.element(from)?, fold.neutral())?;
        let start = self.code.fill(neutral, r#type)?;
        let element = self.element(from)?;
        let merge = |inner: &mut Self, carried: &[Val<'c>]| {
            let tile = inner.masked(from, fold)?;
            inner.keep(from)?;
            let Some(&sum) = carried.first() else {
                return Err(inner.lost(from));
            };
            Ok(vec![fold.merge(inner.code, element, sum, tile)?])
        };
        let results = self.for_tiles(&[start], merge)?;
        self.has_kept(from);
        results.first().copied().ok_or_else(|| self.lost(from))
    }

    /// The same at another column of the same rows: what is outer stays known.
    pub fn at_column(&self, code: Code<'c>, column: Val<'c>) -> Self
    where
        Self: Sized,
    {
        let rows = self
            .known
            .iter()
            .filter(|((_, kind), _)| Part::of(*kind, Stream::Columns) == Part::Outer);
        Self {
            code,
            registers: self.registers,
            cut: self.cut,
            arguments: self.arguments,
            scalars: self.scalars,
            part: self.part,
            kept: self.kept,
            along: None,
            inside: false,
            held: self.held,
            neighbour: self.neighbour,
            origin: Origin {
                column,
                ..self.origin.clone()
            },
            known: rows.map(|(key, value)| (*key, *value)).collect(),
        }
    }

    /// The same on a part of the tile that begins at another column: what is known of rows stays known.
    pub fn at_part<'b>(&'b self, registers: &'b Registers, column: Val<'c>) -> Evaluator<'b, 'c> {
        Evaluator {
            registers,
            ..self.at_column(self.code, column)
        }
    }

    /// Loads what forming a value takes.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn fetch(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c> {
        let key = (identity(value), kind);
        if self.known.contains_key(&key) {
            return Ok(());
        }
        if self.arguments.contains_key(&key) {
            return self.value(value, kind).map(|_| ());
        }
        let Some(op) = defining(value) else {
            return Ok(());
        };
        for (operand, kind) in needs(op, (value, kind), Some(self.cut)) {
            self.fetch(operand, kind)?;
        }
        Ok(())
    }

    /// Forms what a value needs of whole rows, so that it can then be formed column by column.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn form_rows(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c> {
        let key = (identity(value), kind);
        if kind == Kind::Row {
            return self.value(value, kind).map(|_| ());
        }
        if self.arguments.contains_key(&key) || self.known.contains_key(&key) {
            return Ok(());
        }
        let Some(op) = defining(value) else {
            return Ok(());
        };
        if name(op) == ops::BROADCAST
            && Between::of(op, value, self.cut.columns) == Some(Between::Element)
        {
            return self.value(value, kind).map(|_| ());
        }
        for (operand, kind) in needs(op, (value, kind), Some(self.cut)) {
            self.form_rows(operand, kind)?;
        }
        Ok(())
    }
}
