//! The values of a graph on one tile: up to 128 rows on the partitions, columns along the free dimension.
//!
//! An operand is read in its own type, since engines compute in f32 and round what they write; conversions cost an
//! instruction only where nothing else writes the value.

use super::graph::{Form, Graph, Id, Kind};
use crate::program::build::Tile;
use crate::program::{Alu, Axis, Builder, Expr, Function, Op, Scalar, Space, Step, View};
use axe_package::DType;
use std::collections::HashMap;

/// The type that elements have on chip: bits are bytes, and what is f64 in between is f32.
#[must_use]
pub(super) const fn stored(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::U8,
        DType::F64 => DType::F32,
        other => other,
    }
}

/// Where a tile is in the space.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    /// Its first row, and how many.
    pub rows: (Expr, i64),
    /// Its first column, and how many.
    pub columns: (Expr, i64),
}

impl Area {
    /// The part of a tensor of a kind, as a matrix of rows and columns.
    pub fn of(&self, tensor: &Tile, kind: Kind) -> View {
        let (rows, columns) = (&self.rows, &self.columns);
        let repeated = |size| Axis {
            of: None,
            size,
            step: 0,
        };
        match kind {
            Kind::Full => matrix(tensor, rows, columns),
            Kind::Row | Kind::Number => View {
                buffer: tensor.buffer(),
                origin: vec![rows.0.clone()],
                axes: vec![along(0, rows.1), repeated(1)],
            },
            Kind::Column => View {
                buffer: tensor.buffer(),
                origin: vec![columns.0.clone()],
                axes: vec![repeated(rows.1), along(0, columns.1)],
            },
        }
    }
}

const fn along(dimension: usize, size: i64) -> Axis {
    Axis {
        of: Some(dimension),
        size,
        step: 1,
    }
}

/// Rows and columns of a tensor or tile of two dimensions, both of them kept.
pub(super) fn matrix(tile: &Tile, rows: &(Expr, i64), columns: &(Expr, i64)) -> View {
    View {
        buffer: tile.buffer(),
        origin: vec![rows.0.clone(), columns.0.clone()],
        axes: vec![along(0, rows.1), along(1, columns.1)],
    }
}

/// The values of a graph on a tile.
pub(crate) struct Values<'a> {
    graph: &'a Graph,
    /// The graph's inputs, in HBM.
    inputs: &'a [Tile],
    area: Area,
    /// How many of each tile take turns.
    copies: i64,
    uses: Vec<usize>,
    known: HashMap<Id, View>,
    /// Where values are stored that a reduction forms on its way.
    stored: HashMap<Id, View>,
    numbers: Vec<(u64, bool, View)>,
}

impl<'a> Values<'a> {
    /// Nothing yet.
    pub fn new(graph: &'a Graph, inputs: &'a [Tile], area: Area, copies: i64) -> Self {
        Self {
            graph,
            inputs,
            area,
            copies,
            uses: graph.uses(),
            known: HashMap::new(),
            stored: HashMap::new(),
            numbers: Vec::new(),
        }
    }

    /// Gives a value that is there already.
    pub fn know(&mut self, id: Id, view: View) {
        self.known.insert(id, view);
    }

    /// Where a value is stored, in its own type: a reduction that forms it writes it there.
    pub fn store(&mut self, id: Id, view: View) {
        self.stored.insert(id, view);
    }

    /// A function of the scalar engine, converted, and the sums of its rows, by one instruction: what it writes has the type
    /// of its view. False, and nothing done, where `sums` are of something else, or where the function's own results are read.
    pub fn converted_with_sums(
        &mut self,
        b: &mut Builder,
        value: &(Id, View),
        sums: &(Id, View),
    ) -> bool {
        let (Form::Cast(x), Form::Reduce(Alu::Add, of)) = (
            &self.graph.node(value.0).form,
            &self.graph.node(sums.0).form,
        ) else {
            return false;
        };
        let (x, same) = (*x, x == of);
        let node = self.graph.node(x);
        let Form::Apply(function, argument) = node.form else {
            return false;
        };
        let fresh = [x, value.0, sums.0]
            .iter()
            .all(|id| !self.known.contains_key(id));
        let alone = same && self.uses[x] == 2 && node.kind > Kind::Row;
        if !alone || !fresh || b.dtype(&sums.1) != DType::F32 {
            return false;
        }
        let (into, reduce) = (Some(value.1.clone()), Some(sums.1.clone()));
        self.apply(b, function, argument, node.kind, node.dtype, into, reduce);
        self.known.insert(value.0, value.1.clone());
        self.known.insert(sums.0, sums.1.clone());
        true
    }

    fn shape(&self, kind: Kind) -> [i64; 2] {
        let columns = if kind <= Kind::Row {
            1
        } else {
            self.area.columns.1
        };
        [self.area.rows.1, columns]
    }

    fn tile(&self, b: &mut Builder, name: &str, kind: Kind, dtype: DType) -> View {
        let [rows, columns] = self.shape(kind);
        let tile = b.tile(
            name,
            Space::Sbuf,
            &[rows, columns],
            stored(dtype),
            self.copies,
        );
        matrix(&tile, &(0.into(), rows), &(0.into(), columns))
    }

    /// The value: a tile of the area, or one element a row.
    pub fn value(&mut self, b: &mut Builder, id: Id) -> View {
        self.value_in(b, id, None)
    }

    /// The value, written to `into` where that is given. `into` has the value's shape, and a float's or the value's type.
    pub fn value_in(&mut self, b: &mut Builder, id: Id, into: Option<View>) -> View {
        if let Some(known) = self.known.get(&id).cloned() {
            return match into {
                None => known,
                Some(into) if into == known => known,
                Some(into) => {
                    let known = self.fit(known, into.free());
                    b.copy(into.clone(), known);
                    into
                }
            };
        }
        let view = self.form(b, id, into);
        self.known.insert(id, view.clone());
        view
    }

    /// A value with so many elements a row, repeated where it has one.
    fn fit(&self, view: View, free: i64) -> View {
        if view.free() == free {
            return view;
        }
        let mut axes: Vec<Axis> = view.axes.iter().take(1).copied().collect();
        axes.push(Axis {
            of: None,
            size: free,
            step: 0,
        });
        View { axes, ..view }
    }

    fn form(&mut self, b: &mut Builder, id: Id, into: Option<View>) -> View {
        let graph = self.graph;
        let node = graph.node(id);
        let (kind, dtype) = (node.kind, node.dtype);
        match node.form {
            Form::Input(at) => {
                let name = format!("{}_tile", graph.inputs[at].name);
                let to = into.unwrap_or_else(|| self.tile(b, &name, kind, dtype));
                b.dma_copy(to.clone(), self.area.of(&self.inputs[at], kind));
                to
            }
            Form::Cast(of) => self.cast(b, of, kind, dtype, into),
            Form::Product => self.tile(b, "product", kind, dtype),
            Form::Number(value) => {
                let to = into.unwrap_or_else(|| self.tile(b, "number", kind, dtype));
                b.memset(to.clone(), value);
                to
            }
            Form::Apply(function, x) => self.apply(b, function, x, kind, dtype, into, None),
            Form::Reciprocal(x) => {
                let data = self.value(b, x);
                let to = into.unwrap_or_else(|| self.tile(b, "inverse", kind, dtype));
                b.op(Op::Reciprocal {
                    dst: to.clone(),
                    data,
                });
                to
            }
            Form::Binary(op, x, y) => self.binary(b, op, [x, y], kind, dtype, into),
            Form::Select(condition, x, y) => self.select(b, [condition, x, y], kind, dtype, into),
            Form::Reduce(op, x) => self.reduce(b, op, x, dtype, into),
        }
    }

    /// Whether a value is formed for one reader alone, and not there yet, so that it may take its reader's type.
    fn is_private(&self, id: Id) -> bool {
        self.uses[id] == 1 && !self.known.contains_key(&id)
    }

    fn cast(
        &mut self,
        b: &mut Builder,
        of: Id,
        kind: Kind,
        dtype: DType,
        into: Option<View>,
    ) -> View {
        let from = self.graph.node(of);
        let computed = !matches!(from.form, Form::Input(_) | Form::Product | Form::Cast(_));
        if computed && self.is_private(of) {
            let to = into.unwrap_or_else(|| self.tile(b, "value", kind, dtype));
            return self.form(b, of, Some(to));
        }
        let widens = stored(from.dtype).bytes() <= stored(dtype).bytes() && dtype.is_float();
        let view = self.value(b, of);
        if widens && into.is_none() {
            return view;
        }
        let to = into.unwrap_or_else(|| self.tile(b, "value", kind, dtype));
        // The scalar engine converts while the vector engine computes.
        let from = self.fit(view, to.free());
        b.activation(to.clone(), from, Function::Copy, None, 1.0, None);
        to
    }

    /// A value that gives one element to each partition, as an instruction reads it.
    fn scalar(&mut self, b: &mut Builder, id: Id) -> Scalar {
        if let Some(value) = self.graph.as_number(id) {
            return value.into();
        }
        let view = self.value(b, id);
        let dtype = self.dtype_of(b, &view);
        if dtype == DType::F32 {
            return view.into();
        }
        let to = self.tile(b, "scalar", Kind::Row, DType::F32);
        b.copy(to.clone(), view);
        to.into()
    }

    fn dtype_of(&self, b: &Builder, view: &View) -> DType {
        b.dtype(view)
    }

    /// A bias: always a tile, of one float a partition.
    fn bias(&mut self, b: &mut Builder, id: Id, negative: bool) -> View {
        let sign = if negative { -1.0 } else { 1.0 };
        if let Some(value) = self.graph.as_number(id) {
            let key = (value * sign).to_bits();
            if let Some((_, _, known)) = self.numbers.iter().find(|known| known.0 == key) {
                return known.clone();
            }
            let to = self.tile(b, "bias", Kind::Row, DType::F32);
            b.memset(to.clone(), value * sign);
            self.numbers.push((key, false, to.clone()));
            return to;
        }
        if !negative {
            return self.value(b, id);
        }
        let key = id as u64;
        if let Some((_, _, known)) = self.numbers.iter().find(|n| n.1 && n.0 == key) {
            return known.clone();
        }
        let from = self.value(b, id);
        let to = self.tile(b, "negated", Kind::Row, DType::F32);
        b.tensor_scalar(to.clone(), from, Alu::Multiply, -1.0);
        self.numbers.push((key, true, to.clone()));
        to
    }

    /// `function(x)`, with the scale and the bias that form its argument, and sums of the results where asked.
    #[allow(clippy::too_many_arguments)] // an instruction's
    fn apply(
        &mut self,
        b: &mut Builder,
        function: Function,
        x: Id,
        kind: Kind,
        dtype: DType,
        into: Option<View>,
        reduce: Option<View>,
    ) -> View {
        let argument = self.graph.argument(x, kind, &|id| self.is_private(id));
        let scale = argument.scale.map(|by| self.scalar(b, by));
        let scale = scale.unwrap_or(Scalar::Number(1.0));
        let (data, bias) = (argument.data, argument.bias);
        let bias = bias.map(|(added, negative)| self.bias(b, added, negative));
        let data = self.value(b, data);
        let to = into.unwrap_or_else(|| self.tile(b, function.name(), kind, dtype));
        let data = self.fit(data, to.free());
        b.op(Op::Activation {
            dst: to.clone(),
            data,
            function,
            bias,
            scale,
            command: reduce
                .is_some()
                .then_some(crate::program::Reduction::ResetReduce),
            reduce,
        });
        to
    }

    fn binary(
        &mut self,
        b: &mut Builder,
        op: Alu,
        [x, y]: [Id; 2],
        kind: Kind,
        dtype: DType,
        into: Option<View>,
    ) -> View {
        if op == Alu::Power {
            return self.power(b, [x, y], kind, dtype, into);
        }
        // Two steps by one value a partition are one instruction.
        let (data, other, reverse) = match self.graph.is_beside(x, kind) {
            true => (y, x, true),
            false => (x, y, false),
        };
        if self.graph.is_beside(other, kind) {
            let first = self.first_step(b, data, kind);
            let operand = self.scalar(b, other);
            let step = Step {
                op,
                operand,
                reverse,
            };
            let (data, first, second) = match first {
                Some((data, first)) => (data, first, Some(step)),
                None => (self.value(b, data), step, None),
            };
            let to = into.unwrap_or_else(|| self.tile(b, op.name(), kind, dtype));
            b.op(Op::TensorScalar {
                dst: to.clone(),
                data,
                first,
                second,
            });
            return to;
        }
        let [data1, data2] = [self.value(b, x), self.value(b, y)];
        let data2 = self.apart(b, &data1, data2, kind);
        let to = into.unwrap_or_else(|| self.tile(b, op.name(), kind, dtype));
        b.tensor_tensor(to.clone(), data1, data2, op);
        to
    }

    /// The step that a value is, where it is an operation with one value a partition that nothing else reads.
    fn first_step(&mut self, b: &mut Builder, id: Id, kind: Kind) -> Option<(View, Step)> {
        let (op, x, y) = self
            .graph
            .private_step(id, kind, &|id| self.is_private(id))?;
        let (data, other, reverse) =
            match (self.graph.is_beside(x, kind), self.graph.is_beside(y, kind)) {
                (_, true) => (x, y, false),
                (true, false) => (y, x, true),
                _ => return None,
            };
        if op == Alu::Power {
            return None;
        }
        let operand = self.scalar(b, other);
        let data = self.value(b, data);
        Some((
            data,
            Step {
                op,
                operand,
                reverse,
            },
        ))
    }

    /// The second operand, in SBUF where both would be in PSUM (EW1).
    fn apart(&mut self, b: &mut Builder, first: &View, second: View, kind: Kind) -> View {
        if b.space(first) == Space::Psum && b.space(&second) == Space::Psum {
            return self.moved(b, second, kind);
        }
        second
    }

    fn moved(&self, b: &mut Builder, view: View, kind: Kind) -> View {
        let to = self.tile(b, "moved", kind, DType::F32);
        b.copy(to.clone(), view);
        to
    }

    /// gpsimd alone has powers, and does not reach PSUM.
    fn power(
        &mut self,
        b: &mut Builder,
        operands: [Id; 2],
        kind: Kind,
        dtype: DType,
        into: Option<View>,
    ) -> View {
        let [data1, data2] = operands.map(|id| {
            let view = self.wide(b, id, kind, None);
            match b.space(&view) {
                Space::Psum => self.moved(b, view, kind),
                _ => view,
            }
        });
        let to = into.unwrap_or_else(|| self.tile(b, "power", kind, dtype));
        b.tensor_tensor(to.clone(), data1, data2, Alu::Power);
        to
    }

    /// A value as a tile of a kind, in a type where one is asked for.
    fn wide(&mut self, b: &mut Builder, id: Id, kind: Kind, dtype: Option<DType>) -> View {
        let [_, free] = self.shape(kind);
        if let Some(number) = self.graph.as_number(id) {
            let to = self.tile(b, "number", kind, dtype.unwrap_or(DType::F32));
            b.memset(to.clone(), number);
            return to;
        }
        let view = self.value(b, id);
        let view = self.fit(view, free);
        match dtype {
            Some(dtype) if self.dtype_of(b, &view) != stored(dtype) => {
                let to = self.tile(b, "value", kind, dtype);
                b.copy(to.clone(), view);
                to
            }
            _ => view,
        }
    }

    fn select(
        &mut self,
        b: &mut Builder,
        [condition, x, y]: [Id; 3],
        kind: Kind,
        dtype: DType,
        into: Option<View>,
    ) -> View {
        let predicate = self.wide(b, condition, kind, Some(DType::Bool));
        let src = self.wide(b, x, kind, Some(dtype));
        let same = |b: &Builder, to: &View| b.dtype(to) == stored(dtype);
        let to = match into.clone() {
            Some(into) if same(b, &into) => into,
            _ => self.tile(b, "chosen", kind, dtype),
        };
        match self.graph.as_number(y) {
            Some(number) => b.memset(to.clone(), number),
            None => {
                let other = self.wide(b, y, kind, None);
                b.copy(to.clone(), other);
            }
        }
        b.op(Op::TensorCopyPredicated {
            dst: to.clone(),
            src,
            predicate,
            reverse: false,
        });
        match into {
            Some(into) if into != to => {
                b.copy(into.clone(), to);
                into
            }
            _ => to,
        }
    }

    /// The reduction of a piece of each row, in f32.
    pub fn piece(&mut self, b: &mut Builder, op: Alu, of: Id, into: Option<View>) -> View {
        self.reduce(b, op, of, DType::F32, into)
    }

    /// The reduction of each row of the tile.
    fn reduce(
        &mut self,
        b: &mut Builder,
        op: Alu,
        x: Id,
        dtype: DType,
        into: Option<View>,
    ) -> View {
        let node = self.graph.node(x);
        let fits =
            stored(dtype) == DType::F32 && into.as_ref().is_none_or(|i| b.dtype(i) == DType::F32);
        if let Form::Apply(function, of) = node.form
            && op == Alu::Add
            && fits
            && node.kind > Kind::Row
            && !self.known.contains_key(&x)
        {
            let (kind, own) = (node.kind, node.dtype);
            let to = into.unwrap_or_else(|| self.tile(b, "sum", Kind::Row, DType::F32));
            let stored = self.stored.get(&x).cloned();
            let value = self.apply(b, function, of, kind, own, stored, Some(to.clone()));
            self.known.insert(x, value);
            return to;
        }
        let data = self.wide(b, x, Kind::Full, None);
        let to = into.unwrap_or_else(|| self.tile(b, op.name(), Kind::Row, dtype));
        // A row may be several dimensions of an access pattern.
        let axes = data.axes.len().saturating_sub(1);
        b.op(Op::TensorReduce {
            dst: to.clone(),
            data,
            op,
            axes,
            negate: false,
        });
        to
    }
}
