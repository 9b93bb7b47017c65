//! The values of a graph in f64, from its definition, and programs compared with them.

use axe_package::DType;
use axe_trn::plan::graph::{Form, Graph, Id, Kind};
use axe_trn::program::{Alu, Function, Program};
use axe_trn::run::{execute, memory};
use axe_trn::sync;
use std::cell::RefCell;
use std::collections::HashMap;

pub const F32: DType = DType::F32;

/// The values of a graph in f64, from its definition: no instruction is asked.
struct Reference<'a> {
    graph: &'a Graph,
    inputs: &'a [Vec<f32>],
    product: &'a [f64],
    /// What has one element a row, once it is formed.
    rows: RefCell<HashMap<(Id, usize), f64>>,
}

impl Reference<'_> {
    fn at(&self, id: Id, row: usize, column: usize) -> f64 {
        if self.graph.kind(id) != Kind::Row {
            return self.formed(id, row, column);
        }
        if let Some(known) = self.rows.borrow().get(&(id, row)) {
            return *known;
        }
        let value = self.formed(id, row, column);
        self.rows.borrow_mut().insert((id, row), value);
        value
    }

    fn formed(&self, id: Id, row: usize, column: usize) -> f64 {
        let columns = self.graph.columns as usize;
        let of = |id| self.at(id, row, column);
        match self.graph.node(id).form {
            Form::Number(value) => value,
            Form::Product => self.product[row * columns + column],
            Form::Input(at) => f64::from(match self.graph.inputs[at].kind {
                Kind::Full => self.inputs[at][row * columns + column],
                Kind::Row => self.inputs[at][row],
                Kind::Column => self.inputs[at][column],
                Kind::Number => self.inputs[at][0],
            }),
            Form::Cast(x) => of(x),
            Form::Apply(function, x) => one(function, of(x)),
            Form::Reciprocal(x) => 1.0 / of(x),
            Form::Binary(op, a, b) => two(op, of(a), of(b)),
            Form::Select(c, a, b) => {
                if of(c) != 0.0 {
                    of(a)
                } else {
                    of(b)
                }
            }
            Form::Reduce(op, x) => (0..columns)
                .map(|column| self.at(x, row, column))
                .reduce(|a, b| two(op, a, b))
                .unwrap(),
        }
    }
}

fn one(function: Function, x: f64) -> f64 {
    match function {
        Function::Copy => x,
        Function::Exp => x.exp(),
        Function::Relu => x.max(0.0),
        Function::Square => x * x,
        Function::Rsqrt => 1.0 / x.sqrt(),
        Function::Tanh => x.tanh(),
        Function::Gelu => 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())),
        Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Function::Silu => x / (1.0 + (-x).exp()),
        other => panic!("no reference for {other}"),
    }
}

fn two(op: Alu, a: f64, b: f64) -> f64 {
    match op {
        Alu::Add => a + b,
        Alu::Subtract => a - b,
        Alu::Multiply => a * b,
        Alu::Maximum => a.max(b),
        Alu::Minimum => a.min(b),
        Alu::Greater => f64::from(a > b),
        Alu::LessEqual => f64::from(a <= b),
        other => panic!("no reference for {other}"),
    }
}

pub fn numbers(count: i64, seed: i64) -> Vec<f32> {
    let number = |i: i64| ((i * 37 + seed * 101 + i / 11 * 13) % 65 - 32) as f32 / 16.0;
    (0..count).map(number).collect()
}

fn extent(graph: &Graph, kind: Kind) -> i64 {
    match kind {
        Kind::Full => graph.rows * graph.columns,
        Kind::Row => graph.rows,
        Kind::Column => graph.columns,
        Kind::Number => 1,
    }
}

fn rounded(dtype: DType, values: &[f32]) -> Vec<f32> {
    memory::decode(dtype, &memory::encode(dtype, values))
}

/// Executes a program and compares with the reference, relative to 1 at least; operands of a product come before the graph's inputs.
pub fn compare(graph: &Graph, program: &Program, operands: &[Vec<u8>], product: &[f64], near: f64) {
    let inputs: Vec<Vec<f32>> = (graph.inputs.iter().zip(1..))
        .map(|(tensor, seed)| rounded(tensor.dtype, &numbers(extent(graph, tensor.kind), seed)))
        .collect();
    let own = graph.inputs.iter().zip(&inputs);
    let own = own.map(|(tensor, values)| memory::encode(tensor.dtype, values));
    let all: Vec<Vec<u8>> = operands.iter().cloned().chain(own).collect();
    let outcome = execute(program, &all).unwrap();
    assert!(outcome.findings.is_empty(), "{}", outcome.findings[0]);
    let reference = Reference {
        graph,
        inputs: &inputs,
        product,
        rows: RefCell::default(),
    };
    for ((tensor, id), bytes) in graph.outputs.iter().zip(&outcome.outputs) {
        let got = memory::decode(tensor.dtype, bytes);
        let (rows, columns) = match tensor.kind {
            Kind::Full => (graph.rows, graph.columns),
            Kind::Row => (graph.rows, 1),
            _ => (1, graph.columns),
        };
        let all = (0..rows as usize).flat_map(|row| (0..columns as usize).map(move |c| (row, c)));
        for ((row, column), got) in all.zip(&got) {
            let want = reference.at(*id, row, column);
            let error = (f64::from(*got) - want).abs();
            assert!(
                error <= near * want.abs().max(1.0),
                "{} at {row}, {column}: expected {want}, got {got}",
                tensor.name
            );
        }
    }
    let trace = sync::trace(program).unwrap();
    assert!(sync::hazards(&trace, &sync::semaphores(&trace)).is_empty());
}

/// The operands of a batch of products, and the products: of the left operand as `[K, M]` and the right one as `[N, K]`
/// where they are `turned`.
pub fn products(
    [m, k, n]: [i64; 3],
    batch: i64,
    shared: [bool; 2],
    turned: [bool; 2],
    dtype: DType,
) -> (Vec<Vec<u8>>, Vec<f64>) {
    let counts = [m * k, k * n];
    let count = |at: usize| if shared[at] { 1 } else { batch } * counts[at];
    let operands = [0, 1].map(|at| rounded(dtype, &numbers(count(at), at as i64 + 7)));
    let at = |one: i64, side: usize, inner: i64, outer: i64| {
        let (minor, extent) = [(turned[0], m), (!turned[1], n)][side];
        let own = match minor {
            true => inner * extent + outer,
            false => outer * k + inner,
        };
        let one = if shared[side] { 0 } else { one };
        f64::from(operands[side][(one * counts[side] + own) as usize])
    };
    let mut product = Vec::new();
    for one in 0..batch {
        for row in 0..m {
            for column in 0..n {
                let term = |inner| at(one, 0, inner, row) * at(one, 1, inner, column);
                product.push((0..k).map(term).sum());
            }
        }
    }
    (
        operands.map(|of| memory::encode(dtype, &of)).into(),
        product,
    )
}
