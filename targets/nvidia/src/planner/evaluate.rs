//! The values of a group on one tile, in registers.

use super::frame::{Operand, element_bytes};
use super::group::{Group, is_reshape, splat};
use super::layouts::without;
use super::product::is_product;
use super::space::{Kind, Place, place_of, source};
use crate::build::{Code, Kernel, Number, layout_error};
use crate::fragment::part;
use axe_dialect::Combiner;
use axe_layout::Layout;
use axe_passes::ir::value::{defining, identity, name, operands, results};
use axe_passes::ir::{Op, TensorType, Val, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, Type, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// A tile of the space in registers.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    pub shape: [i64; 2],
    full: Layout,
    row: Layout,
    column: Layout,
}

impl Registers {
    /// The tile with this layout of the whole.
    pub(super) fn new(shape: [i64; 2], full: Layout) -> axe_layout::Result<Self> {
        let row = without(&full, &shape, 1)?;
        let column = without(&full, &shape, 0)?;
        Ok(Self {
            shape,
            full,
            row,
            column,
        })
    }

    /// The columns `[first, first + columns)` of the tile, whose rows are held as the tile's are.
    pub(super) fn part(&self, first: i64, columns: i64) -> axe_layout::Result<Self> {
        let [rows, _] = self.shape;
        let region = [0..rows, first..first.saturating_add(columns)];
        let part = Self::new([rows, columns], part(&self.full, &self.shape, &region)?)?;
        Ok(Self {
            row: self.row.clone(),
            ..part
        })
    }

    fn of(&self, kind: Kind) -> (Vec<i64>, &Layout) {
        let [rows, columns] = self.shape;
        match kind {
            Kind::Full => (vec![rows, columns], &self.full),
            Kind::Row => (vec![rows], &self.row),
            Kind::Column => (vec![columns], &self.column),
        }
    }

    /// The type of a value of this kind.
    pub(super) fn r#type<'c>(
        &self,
        code: Code<'c>,
        kind: Kind,
        element: Type<'c>,
    ) -> PassResult<'c, Type<'c>> {
        let (shape, layout) = self.of(kind);
        code.fragment(&shape, element, layout)
    }
}

/// A memref of the kernel in the space's own shape.
#[derive(Clone, Debug)]
pub(super) struct Argument<'c> {
    pub memref: Val<'c>,
    /// Its extents.
    pub extents: Vec<i64>,
}

/// A kernel's arguments, in the order of [`super::gemm::argument_types`].
pub(super) struct Arguments<'c> {
    /// What the kernel reads beside the group's inputs, before them.
    pub operands: Vec<Argument<'c>>,
    pub inputs: HashMap<(usize, Kind), Argument<'c>>,
    pub scalars: HashMap<usize, Val<'c>>,
    pub outputs: Vec<Argument<'c>>,
}

impl<'c> Arguments<'c> {
    /// The arguments of a kernel that was made for these operands.
    pub(super) fn of(
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        needed: &Needed<'c>,
        outs: &[(Val<'c>, Operand<'c>)],
    ) -> Self {
        let mut memrefs = kernel.arguments.iter().copied();
        let of = |(operand, memref): (&Operand<'c>, Val<'c>)| Argument {
            memref,
            extents: operand.shape.clone(),
        };
        let mut operands: Vec<_> = ins.iter().zip(memrefs.by_ref()).map(of).collect();
        let own = operands.len().saturating_sub(needed.inputs.len());
        let inputs = operands.split_off(own);
        let keys = needed.inputs.iter();
        let keys = keys.map(|(value, kind)| (identity(*value), *kind));
        let scalars = needed.scalars.iter().map(|value| identity(*value));
        Self {
            operands,
            inputs: keys.zip(inputs).collect(),
            scalars: scalars.zip(memrefs.by_ref()).collect(),
            outputs: outs
                .iter()
                .map(|(_, out)| out)
                .zip(memrefs)
                .map(of)
                .collect(),
        }
    }
}

/// Where the tile is.
#[derive(Clone, Debug)]
pub(super) struct Origin<'c> {
    /// The product of a batch.
    pub batch: Option<Val<'c>>,
    pub row: Val<'c>,
    pub column: Val<'c>,
    /// How many rows and columns there are.
    pub limit: [Val<'c>; 2],
}

/// Forms the values of a group on one tile.
pub(super) struct Evaluator<'a, 'c> {
    pub code: Code<'c>,
    pub group: &'a Group<'c>,
    pub registers: &'a Registers,
    /// Columns of the space.
    pub columns: i64,
    pub arguments: &'a HashMap<(usize, Kind), Argument<'c>>,
    /// Scalars of the function that bodies read, as the kernel has them.
    pub scalars: &'a HashMap<usize, Val<'c>>,
    pub origin: Origin<'c>,
    /// What is formed already.
    pub known: HashMap<(usize, Kind), Val<'c>>,
}

impl<'c> Evaluator<'_, 'c> {
    fn element(&self, value: Val<'c>) -> PassResult<'c, Type<'c>> {
        self.code
            .builder
            .tensor_of(value)
            .map(|tensor| tensor.element)
    }

    fn r#type(&self, value: Val<'c>, kind: Kind) -> PassResult<'c, Type<'c>> {
        self.registers.r#type(self.code, kind, self.element(value)?)
    }

    /// The value on the tile.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn value(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let key = (identity(value), kind);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let formed = match self.arguments.get(&key) {
            Some(argument) => {
                let r#type = self.r#type(value, kind)?;
                self.code
                    .load(self.boxed(&argument.clone(), kind)?, r#type)?
            }
            None => {
                let op = defining(value).ok_or_else(|| self.lost(value))?;
                self.form(op, value, kind)?
            }
        };
        self.known.insert(key, formed);
        Ok(formed)
    }

    fn lost(&self, value: Val<'c>) -> PassError<'c> {
        let location = self.code.builder.location;
        PassError::new(location, format!("the kernel has no way to form {value}"))
    }

    /// The tile's box of an argument.
    fn boxed(&self, argument: &Argument<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let origin = &self.origin;
        let at = match kind {
            Kind::Full => vec![origin.row, origin.column],
            Kind::Row => vec![origin.row],
            Kind::Column => vec![origin.column],
        };
        let batch = origin.batch.filter(|_| kind != Kind::Column);
        let at: Vec<_> = batch.into_iter().chain(at).collect();
        let (shape, _) = self.registers.of(kind);
        self.code
            .global_box(argument.memref, &argument.extents, &at, &shape)
    }

    /// Stores a value to its place in an argument.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store(
        &mut self,
        value: Val<'c>,
        kind: Kind,
        to: &Argument<'c>,
    ) -> PassResult<'c> {
        let formed = self.value(value, kind)?;
        let to = self.boxed(to, kind)?;
        self.code.store(formed, to)
    }

    fn form(&mut self, op: Op<'c>, value: Val<'c>, kind: Kind) -> PassResult<'c, Val<'c>> {
        let builder = self.code.builder;
        if let Some(scalar) = splat(op) {
            let scalar = builder.constant(scalar)?;
            return self.code.fill(scalar, self.r#type(value, kind)?);
        }
        let from = source(op).ok_or_else(|| self.lost(value))?;
        match name(op).as_str() {
            _ if is_reshape(op) => self.value(from, kind),
            "axe.fill" => {
                let scalar = self.scalar(from)?;
                self.code.fill(scalar, self.r#type(value, kind)?)
            }
            "axe.cast" => {
                let from = self.value(from, kind)?;
                builder.value("axe.cast", &[from], self.r#type(value, kind)?, &[])
            }
            "axe.broadcast" => self.broadcast(op, from, value, kind),
            "axe.map" => self.map(op, value, kind),
            "axe.reduce" => self.reduce(op, from, value),
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
        let (inner, dim) = match place_of(op, value) {
            Place::Unit => return self.value(from, kind),
            Place::Inner(_) => (Kind::Row, 1),
            Place::Outer(_) => (Kind::Column, 0),
            Place::Mixed => return Err(self.lost(value)),
        };
        let from = self.value(from, inner)?;
        let builder = self.code.builder;
        let dims = [("dims", builder.i64s(&[dim]))];
        builder.value("axe.broadcast", &[from], self.r#type(value, kind)?, &dims)
    }

    fn scalar(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
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

    fn reduce(&mut self, op: Op<'c>, from: Val<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let combiner = combiner_of(op)?;
        let r#type = self.r#type(value, Kind::Row)?;
        let whole = if self.registers.shape[1] >= self.columns {
            self.masked(from, combiner)?
        } else {
            self.reduce_in_a_loop(from, combiner)?
        };
        let builder = self.code.builder;
        let attributes = [
            (
                "combiner",
                op.attribute("combiner").map_err(|_| self.lost(value))?,
            ),
            ("dims", builder.i64s(&[1])),
        ];
        builder.value("axe.reduce", &[whole], r#type, &attributes)
    }

    /// A value whose columns beyond the space's change no reduction.
    fn masked(&mut self, from: Val<'c>, combiner: Combiner) -> PassResult<'c, Val<'c>> {
        let value = self.value(from, Kind::Full)?;
        if self.columns % self.registers.shape[1] == 0 {
            return Ok(value);
        }
        let builder = self.code.builder;
        let neutral = self.code.scalar(self.element(from)?, neutral(combiner))?;
        let Origin {
            row, column, limit, ..
        } = &self.origin;
        let operands = [value, *row, *column, limit[0], limit[1], neutral];
        let segments = builder.segments(&[1, 2, 2, 1]);
        builder.value("axe.mask", &operands, value.r#type(), &[segments])
    }

    /// Combines the tiles of long rows, one after the other, into one tile.
    fn reduce_in_a_loop(&mut self, from: Val<'c>, combiner: Combiner) -> PassResult<'c, Val<'c>> {
        self.form_rows(from, Kind::Full)?;
        let r#type = self.r#type(from, Kind::Full)?;
        let neutral = self.code.scalar(self.element(from)?, neutral(combiner))?;
        let start = self.code.fill(neutral, r#type)?;
        let element = self.element(from)?;
        let outer = self.code;
        let results = outer.for_each(
            self.origin.limit[1],
            self.registers.shape[1],
            &[start],
            |code, column, carried| {
                let mut inner = self.at_column(code, column);
                let tile = inner.masked(from, combiner)?;
                let Some(&sum) = carried.first() else {
                    return Err(inner.lost(from));
                };
                Ok(vec![combine(code, combiner, element, sum, tile)?])
            },
        )?;
        results.first().copied().ok_or_else(|| self.lost(from))
    }

    /// The same at another column of the same rows: what is known of rows stays known.
    pub(super) fn at_column(&self, code: Code<'c>, column: Val<'c>) -> Self
    where
        Self: Sized,
    {
        let rows = self
            .known
            .iter()
            .filter(|((_, kind), _)| *kind == Kind::Row);
        Self {
            code,
            group: self.group,
            registers: self.registers,
            columns: self.columns,
            arguments: self.arguments,
            scalars: self.scalars,
            origin: Origin {
                column,
                ..self.origin.clone()
            },
            known: rows.map(|(key, value)| (*key, *value)).collect(),
        }
    }

    /// The same on a part of the tile that begins at another column: what is known of rows stays known.
    pub(super) fn at_part<'b>(
        &'b self,
        registers: &'b Registers,
        column: Val<'c>,
    ) -> Evaluator<'b, 'c> {
        Evaluator {
            registers,
            ..self.at_column(self.code, column)
        }
    }

    /// Loads what forming a value takes.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c> {
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
        for (operand, kind) in needs(op, value, kind) {
            self.fetch(operand, kind)?;
        }
        Ok(())
    }

    /// Forms what a value needs of whole rows, so that it can then be formed column by column.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn form_rows(&mut self, value: Val<'c>, kind: Kind) -> PassResult<'c> {
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
        for (operand, kind) in needs(op, value, kind) {
            self.form_rows(operand, kind)?;
        }
        Ok(())
    }
}

/// What forming a value needs, in the tile.
pub(super) fn needs<'c>(op: Op<'c>, value: Val<'c>, kind: Kind) -> Vec<(Val<'c>, Kind)> {
    let Some(from) = source(op) else {
        return Vec::new();
    };
    match name(op).as_str() {
        "axe.fill" => Vec::new(),
        "axe.broadcast" => match place_of(op, value) {
            Place::Inner(_) => vec![(from, Kind::Row)],
            Place::Outer(_) => vec![(from, Kind::Column)],
            _ => vec![(from, kind)],
        },
        "axe.reduce" => vec![(from, Kind::Full)],
        "axe.map" => operands(op)
            .into_iter()
            .map(|operand| (operand, kind))
            .collect(),
        _ => vec![(from, kind)],
    }
}

/// The scalars that a map's body, or a fill, reads from above.
pub(super) fn captured<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    let scalar = |value: &Val<'c>| TensorType::of_value(*value).is_none();
    if name(op) == "axe.fill" {
        return operands(op).into_iter().take(1).filter(scalar).collect();
    }
    let inner = walk::nested(op, &|_| true);
    let mut inside: HashSet<usize> = inner
        .iter()
        .flat_map(|op| results(*op))
        .map(identity)
        .collect();
    for block in std::iter::once(&op)
        .chain(&inner)
        .flat_map(|op| walk::blocks(*op))
    {
        let arguments = (0..block.argument_count()).filter_map(|at| block.argument(at).ok());
        inside.extend(arguments.map(|argument| argument.to_raw().ptr as usize));
    }
    let mut found = Vec::new();
    for operand in inner.into_iter().flat_map(operands) {
        if !inside.contains(&identity(operand)) && !found.contains(&operand) {
            found.push(operand);
        }
    }
    found
}

/// What the kernel of some values takes: tensors of the space, and scalars.
#[derive(Clone, Debug, Default)]
pub(super) struct Needed<'c> {
    pub inputs: Vec<(Val<'c>, Kind)>,
    pub scalars: Vec<Val<'c>>,
    /// Whether rows are reduced.
    pub reduces: bool,
    /// Bytes of the widest element that a thread keeps.
    pub widest: i64,
    seen: HashSet<(usize, Kind)>,
}

impl<'c> Needed<'c> {
    /// Adds what a value needs.
    pub(super) fn add(&mut self, group: &Group<'c>, value: Val<'c>, kind: Kind) {
        if !self.seen.insert((identity(value), kind)) {
            return;
        }
        if let Some(tensor) = TensorType::of_value(value) {
            self.widest = self.widest.max(element_bytes(tensor.element));
        }
        if group.inputs.contains(&(value, kind)) {
            self.inputs.push((value, kind));
            return;
        }
        let Some(op) = defining(value) else { return };
        if is_product(op) {
            return;
        }
        self.reduces |= name(op) == "axe.reduce";
        if ["axe.map", "axe.fill"].contains(&name(op).as_str()) {
            for scalar in captured(op) {
                let constant = defining(scalar).is_some_and(|op| name(op) == "arith.constant");
                if !constant && !self.scalars.contains(&scalar) {
                    self.scalars.push(scalar);
                }
            }
        }
        for (operand, kind) in needs(op, value, kind) {
            self.add(group, operand, kind);
        }
    }
}

/// The combiner of a reduction.
///
/// # Errors
/// When it cannot be read.
pub(super) fn combiner_of<'c>(op: Op<'c>) -> PassResult<'c, Combiner> {
    op.attribute("combiner")
        .ok()
        .and_then(|attribute| Combiner::cast(attribute))
        .ok_or_else(|| PassError::new(op.location(), "its combiner cannot be read"))
}

/// What changes no combination.
pub(super) fn neutral(combiner: Combiner) -> Number {
    match combiner {
        Combiner::Add | Combiner::Or => Number::Of(0),
        Combiner::Mul => Number::Of(1),
        Combiner::And => Number::Of(-1),
        Combiner::Max => Number::Least,
        Combiner::Min => Number::Greatest,
    }
}

/// The elementwise combination of two tiles.
pub(super) fn combine<'c>(
    code: Code<'c>,
    combiner: Combiner,
    element: Type<'c>,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let name = axe_passes::ir::combiner::operation(combiner, element);
    let (region, arguments, body) = code.builder.region(&[element, element]);
    let value = body.value(name, &arguments, element, &[])?;
    body.operation("axe.yield", &[value], &[], &[], Vec::new())?;
    let op = code
        .builder
        .operation("axe.map", &[a, b], &[a.r#type()], &[], vec![region])?;
    code.builder.result_of(op)
}

/// The register tensors of a tile whose whole has this layout.
///
/// # Errors
/// When the layout does not have the shape.
pub(super) fn registers<'c>(
    code: Code<'c>,
    shape: [i64; 2],
    full: Layout,
) -> PassResult<'c, Registers> {
    Registers::new(shape, full).map_err(|error| layout_error(code.builder.location, error))
}
