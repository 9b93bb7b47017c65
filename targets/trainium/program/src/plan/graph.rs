//! What a fused kernel computes, as data: values over a space of rows and columns, each formed of others.
//!
//! Rows lie on partitions and columns along the free dimension. A value has an element for each row and column, one a row,
//! or one a column. Sums of a product, where there is one, are a value too. Building a value recognises what one
//! instruction of the scalar engine computes: [`super::simplify`].

use crate::program::{Alu, Function};
use axe_package::DType;
use std::collections::HashMap;

/// The number of a value.
pub type Id = usize;

/// How a value lies in the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The same everywhere.
    Number,
    /// An element a row.
    Row,
    /// An element a column.
    Column,
    /// An element for each row and column.
    Full,
}

impl Kind {
    /// The kind of what is formed of both, element by element.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Kind::Row, Kind::Column) | (Kind::Column, Kind::Row) => Kind::Full,
            (a, b) => a.max(b),
        }
    }
}

/// What a value is formed of.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A tensor in HBM, by its place among the inputs.
    Input(usize),
    /// The sums of the kernel's product, in f32.
    Product,
    /// A number.
    Number(f64),
    /// A function of the scalar engine.
    Apply(Function, Id),
    /// One over a value, on the vector engine.
    Reciprocal(Id),
    /// A function of two values.
    Binary(Alu, Id, Id),
    /// The second where the first is not 0, else the third.
    Select(Id, Id, Id),
    /// The value in another type.
    Cast(Id),
    /// The reduction of each row.
    Reduce(Alu, Id),
}

impl Form {
    /// The values that it is formed of.
    #[must_use]
    pub fn operands(&self) -> Vec<Id> {
        match *self {
            Form::Input(_) | Form::Product | Form::Number(_) => Vec::new(),
            Form::Apply(_, x) | Form::Reciprocal(x) | Form::Cast(x) | Form::Reduce(_, x) => {
                vec![x]
            }
            Form::Binary(_, a, b) => vec![a, b],
            Form::Select(c, a, b) => vec![c, a, b],
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is formed of.
    pub form: Form,
    /// How it lies in the space.
    pub kind: Kind,
    /// The type of its elements.
    pub dtype: DType,
}

/// A tensor that the kernel reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// How it lies in the space.
    pub kind: Kind,
    /// The type of its elements.
    pub dtype: DType,
}

/// The values of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Rows of the space.
    pub rows: i64,
    /// Columns of the space.
    pub columns: i64,
    /// What is read.
    pub inputs: Vec<Tensor>,
    /// What is stored, and the value of it.
    pub outputs: Vec<(Tensor, Id)>,
    nodes: Vec<Node>,
    known: HashMap<(String, DType), Id>,
}

impl Graph {
    /// No values, over a space.
    #[must_use]
    pub fn new(rows: i64, columns: i64) -> Self {
        Self {
            rows,
            columns,
            ..Self::default()
        }
    }

    /// A value.
    #[must_use]
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    /// The kind of a value.
    #[must_use]
    pub fn kind(&self, id: Id) -> Kind {
        self.nodes[id].kind
    }

    /// Adds a value, or finds the equal one that there is.
    fn add(&mut self, form: Form, kind: Kind, dtype: DType) -> Id {
        let key = (format!("{form:?}"), dtype);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        self.nodes.push(Node { form, kind, dtype });
        let id = self.nodes.len() - 1;
        self.known.insert(key, id);
        id
    }

    /// A tensor that is read.
    pub fn input(&mut self, name: &str, kind: Kind, dtype: DType) -> Id {
        self.inputs.push(Tensor {
            name: name.to_owned(),
            kind,
            dtype,
        });
        self.add(Form::Input(self.inputs.len() - 1), kind, dtype)
    }

    /// The sums of the kernel's product.
    pub fn product(&mut self) -> Id {
        self.add(Form::Product, Kind::Full, DType::F32)
    }

    /// The sums of the kernel's product, where something reads them.
    #[must_use]
    pub fn product_id(&self) -> Option<Id> {
        let is = |node: &Node| node.form == Form::Product;
        self.nodes.iter().position(is)
    }

    /// A number.
    pub fn number(&mut self, value: f64) -> Id {
        self.add(Form::Number(value), Kind::Number, DType::F32)
    }

    /// The number that a value is.
    #[must_use]
    pub fn as_number(&self, id: Id) -> Option<f64> {
        match self.nodes[id].form {
            Form::Number(value) => Some(value),
            _ => None,
        }
    }

    /// A function of the scalar engine.
    pub fn apply(&mut self, function: Function, x: Id, dtype: DType) -> Id {
        if let Some(value) = self.as_number(x) {
            return self.number(f64::from(function.apply(value as f32)));
        }
        let kind = self.kind(x);
        self.add(Form::Apply(function, x), kind, dtype)
    }

    /// A function of two values; [`super::simplify`] finds one of the scalar engine's that is the same.
    pub fn binary(&mut self, op: Alu, a: Id, b: Id, dtype: DType) -> Id {
        if let (Some(x), Some(y)) = (self.as_number(a), self.as_number(b)) {
            return self.number(f64::from(op.apply(x as f32, y as f32)));
        }
        if let Some(simple) = self.simplified(op, a, b, dtype) {
            return simple;
        }
        let kind = self.kind(a).with(self.kind(b));
        self.add(Form::Binary(op, a, b), kind, dtype)
    }

    /// A quotient: no engine divides, so that it is a product with a reciprocal.
    pub fn divide(&mut self, a: Id, b: Id, dtype: DType) -> Id {
        if let Some(value) = self.as_number(b) {
            let inverse = self.number(1.0 / value);
            return self.binary(Alu::Multiply, a, inverse, dtype);
        }
        if let Some(simple) = self.logistic(a, b, dtype) {
            return simple;
        }
        let kind = self.kind(b);
        let inverse = self.add(Form::Reciprocal(b), kind, DType::F32);
        match self.as_number(a) {
            Some(1.0) => self.cast(inverse, dtype),
            _ => self.binary(Alu::Multiply, a, inverse, dtype),
        }
    }

    /// `a` where `condition` is not 0, else `b`.
    pub fn select(&mut self, condition: Id, a: Id, b: Id, dtype: DType) -> Id {
        if let Some(value) = self.as_number(condition) {
            return if value == 0.0 { b } else { a };
        }
        if let Some(relu) = self.rectified(condition, a, b, dtype) {
            return relu;
        }
        let kind = self.kind(condition).with(self.kind(a)).with(self.kind(b));
        self.add(Form::Select(condition, a, b), kind, dtype)
    }

    /// A value in another type.
    pub fn cast(&mut self, x: Id, dtype: DType) -> Id {
        let node = &self.nodes[x];
        if node.dtype == dtype || node.kind == Kind::Number {
            return x;
        }
        let kind = node.kind;
        self.add(Form::Cast(x), kind, dtype)
    }

    /// The reduction of each row.
    pub fn reduce(&mut self, op: Alu, x: Id, dtype: DType) -> Id {
        self.add(Form::Reduce(op, x), Kind::Row, dtype)
    }

    /// Stores a value.
    pub fn output(&mut self, name: &str, kind: Kind, dtype: DType, value: Id) {
        let tensor = Tensor {
            name: name.to_owned(),
            kind,
            dtype,
        };
        self.outputs.push((tensor, value));
    }

    /// The values that outputs need, operands first.
    #[must_use]
    pub fn needed(&self) -> Vec<Id> {
        let mut wanted = vec![false; self.nodes.len()];
        for (_, id) in &self.outputs {
            wanted[*id] = true;
        }
        // Operands have lower numbers than what is formed of them.
        for id in (0..self.nodes.len()).rev() {
            if wanted[id] {
                for operand in self.nodes[id].form.operands() {
                    wanted[operand] = true;
                }
            }
        }
        (0..self.nodes.len()).filter(|id| wanted[*id]).collect()
    }

    /// How often each value is an operand, or stored.
    #[must_use]
    pub fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.nodes.len()];
        for id in self.needed() {
            for operand in self.nodes[id].form.operands() {
                uses[operand] += 1;
            }
        }
        for (_, id) in &self.outputs {
            uses[*id] += 1;
        }
        uses
    }

    /// Whether a row is reduced.
    #[must_use]
    pub fn folds(&self) -> Vec<Id> {
        let fold = |id: &Id| matches!(self.nodes[*id].form, Form::Reduce(..));
        self.needed().into_iter().filter(fold).collect()
    }
}
