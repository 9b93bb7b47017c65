//! Planned kernels of rows, and products with an epilogue: executed, against the same values in f64.

mod values;

use axe_package::DType;
use axe_trn::facts::chip::CHIPS;
use axe_trn::plan::graph::{Graph, Kind};
use axe_trn::plan::{Fused, Matmul, Order, rows};
use axe_trn::program::{Alu, Function};
use values::{F32, compare, products};

fn check(graph: &Graph, near: f64) {
    for chip in CHIPS {
        let program = rows::plan(graph, "kernel", chip.name).unwrap();
        compare(graph, &program, &[], &[], near);
    }
}

fn softmax(rows: i64, columns: i64, dtype: DType) -> Graph {
    let mut graph = Graph::new(rows, columns);
    let x = graph.input("x", Kind::Full, dtype);
    let x = graph.cast(x, F32);
    let largest = graph.reduce(Alu::Maximum, x, F32);
    let shifted = graph.binary(Alu::Subtract, x, largest, F32);
    let weights = graph.apply(Function::Exp, shifted, F32);
    let sum = graph.reduce(Alu::Add, weights, F32);
    let value = graph.divide(weights, sum, F32);
    let value = graph.cast(value, dtype);
    graph.output("y", Kind::Full, dtype, value);
    graph
}

#[test]
fn softmax_is_right_whole_and_in_pieces() {
    check(&softmax(128, 1000, DType::F16), 1e-3);
    check(&softmax(130, 33, F32), 1e-5);
    check(&softmax(3, 40_000, F32), 1e-5);
}

#[test]
fn exponentials_and_their_sums_are_one_instruction() {
    let program = rows::plan(&softmax(128, 512, F32), "softmax", "trn1").unwrap();
    let mut names = Vec::new();
    program.instructions(&mut |instruction, _| names.push(instruction.op.name()));
    let wanted = [
        "dma_copy",
        "tensor_reduce",
        "tensor_scalar",
        "activation",
        "reciprocal",
        "tensor_scalar",
        "dma_copy",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn a_subtraction_that_is_a_bias_is_folded() {
    let mut graph = Graph::new(128, 512);
    let x = graph.input("x", Kind::Full, F32);
    let row = graph.input("row", Kind::Row, F32);
    let shifted = graph.binary(Alu::Subtract, x, row, F32);
    let read_twice = graph.binary(Alu::Add, x, row, F32);
    for of in [shifted, read_twice] {
        let value = graph.apply(Function::Exp, of, F32);
        graph.output("y", Kind::Full, F32, value);
    }
    graph.output("sum", Kind::Full, F32, read_twice);
    let folded = [x, row, shifted, read_twice].map(|id| graph.is_folded(id));
    assert_eq!(folded, [false, false, true, false]);
}

#[test]
fn rmsnorm_with_a_weight_a_column_is_right() {
    for (rows, columns) in [(128, 768), (200, 1000), (5, 30_000)] {
        let mut graph = Graph::new(rows, columns);
        let x = graph.input("x", Kind::Full, DType::F16);
        let wide = graph.cast(x, F32);
        let square = graph.binary(Alu::Multiply, wide, wide, F32);
        let sum = graph.reduce(Alu::Add, square, F32);
        let count = graph.number(columns as f64);
        let mean = graph.divide(sum, count, F32);
        let epsilon = graph.number(1e-6);
        let mean = graph.binary(Alu::Add, mean, epsilon, F32);
        let scale = graph.apply(Function::Rsqrt, mean, F32);
        let normed = graph.binary(Alu::Multiply, wide, scale, F32);
        let normed = graph.cast(normed, DType::F16);
        let weight = graph.input("w", Kind::Column, DType::F16);
        let value = graph.binary(Alu::Multiply, normed, weight, DType::F16);
        graph.output("y", Kind::Full, DType::F16, value);
        graph.output("scale", Kind::Row, F32, scale);
        check(&graph, 4e-3);
    }
}

#[test]
fn elementwise_values_of_all_kinds_are_right() {
    for (rows, columns) in [(1, 1), (128, 1), (1, 700), (257, 5000)] {
        let mut graph = Graph::new(rows, columns);
        let x = graph.input("x", Kind::Full, DType::BF16);
        let row = graph.input("r", Kind::Row, DType::F16);
        let column = graph.input("c", Kind::Column, F32);
        let two = graph.number(2.0);
        let outer = graph.binary(Alu::Multiply, row, column, F32);
        let shifted = graph.binary(Alu::Subtract, two, x, F32);
        let sum = graph.binary(Alu::Add, outer, shifted, F32);
        let large = graph.binary(Alu::Greater, sum, row, DType::Bool);
        let tanh = graph.apply(Function::Tanh, sum, F32);
        let chosen = graph.select(large, tanh, column, F32);
        let least = graph.binary(Alu::Minimum, chosen, two, F32);
        graph.output("y", Kind::Full, F32, least);
        graph.output("large", Kind::Full, DType::Bool, large);
        let doubled = graph.binary(Alu::Multiply, column, two, F32);
        graph.output("doubled", Kind::Column, F32, doubled);
        let halved = graph.divide(row, two, F32);
        graph.output("halved", Kind::Row, F32, halved);
        check(&graph, 1e-5);
    }
}

#[test]
fn products_end_in_bias_and_activation() {
    for (sizes, batch, shared) in [
        ([130, 200, 520], 1, [false, false]),
        ([40, 700, 130], 3, [false, true]),
        ([257, 1100, 90], 2, [true, false]),
    ] {
        let [m, _, n] = sizes;
        let mut graph = Graph::new(batch * m, n);
        let sums = graph.product();
        let bias = graph.input("bias", Kind::Column, DType::BF16);
        let biased = graph.binary(Alu::Add, sums, bias, F32);
        let active = graph.apply(Function::Gelu, biased, F32);
        let row = graph.input("scale", Kind::Row, F32);
        let other = graph.input("residual", Kind::Full, F32);
        let scaled = graph.binary(Alu::Multiply, active, row, F32);
        let value = graph.binary(Alu::Add, scaled, other, F32);
        graph.output("y", Kind::Full, F32, value);
        let square = graph.binary(Alu::Multiply, sums, sums, F32);
        graph.output("square", Kind::Full, F32, square);
        let matmul = Matmul {
            sizes,
            lhs: Order::KMinor,
            rhs: Order::KMajor,
            inputs: DType::BF16,
            output: F32,
        };
        let (bytes, product) = products(sizes, batch, shared, [false, false], DType::BF16);
        let fused = Fused {
            matmul,
            batch,
            shared,
            graph,
        };
        for chip in CHIPS {
            let program = fused.plan("kernel", chip.name).unwrap();
            compare(&fused.graph, &program, &bytes, &product, 1e-4);
        }
    }
}

#[test]
fn what_no_tile_holds_is_refused_with_the_reason() {
    let mut graph = Graph::new(4, 4);
    let x = graph.input("x", Kind::Full, DType::I32);
    graph.output("y", Kind::Full, DType::I32, x);
    let message = rows::plan(&graph, "kernel", "trn1")
        .unwrap_err()
        .to_string();
    assert!(message.contains("tensor 'x' of i32"), "{message}");
    let message = rows::plan(&Graph::new(0, 4), "kernel", "trn1")
        .unwrap_err()
        .to_string();
    assert!(message.contains("0 rows"), "{message}");
}
