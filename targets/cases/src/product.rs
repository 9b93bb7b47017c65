//! Kernels that multiply matrices: tensor cores with every path of their operands, and multiply-adds.

use crate::array::{Array, mlir};
use crate::case::{Case, Parameter};
use crate::layouts::Distribution;
use crate::random::Random;
use axe_layout::Layout;
use axe_package::DType;
use std::fmt::Write;

/// A product of one CTA: warps, and blocks of the instruction in each warp.
struct Plan {
    warps: [i64; 2],
    blocks: [i64; 2],
    depth: i64,
    atom: [i64; 3],
    a: DType,
    d: DType,
}

/// What an operand's text needs.
struct Operand {
    global: String,
    tile: [i64; 2],
    layout: String,
    transposed: bool,
    rows: i64,
    columns: i64,
}

impl Plan {
    fn random(random: &mut Random) -> Self {
        let tf32 = random.once_in(4);
        let a = if tf32 {
            DType::F32
        } else {
            random.pick(&[DType::F16, DType::BF16])
        };
        Self {
            warps: random.pick(&[[1, 1], [2, 1], [1, 4], [2, 2], [4, 2]]),
            blocks: [random.range(1, 2), random.pick(&[1, 2, 4])],
            depth: random.pick(&[1, 2, 4]),
            atom: if tf32 { [16, 8, 8] } else { [16, 8, 16] },
            a,
            d: DType::F32,
        }
    }

    fn tile(&self) -> [i64; 3] {
        let [m, n, k] = self.atom;
        [
            self.warps[0] * self.blocks[0] * m,
            self.warps[1] * self.blocks[1] * n,
            self.depth * k,
        ]
    }

    fn threads(&self) -> i64 {
        self.warps[0] * self.warps[1] * 32
    }

    /// Fragments of the PTX ISA, "Matrix Fragments for mma", spread over warps.
    fn fragments(&self) -> [Layout; 3] {
        let [m, n, k] = self.atom;
        let ([wm, wn], [bm, bn], depth) = (self.warps, self.blocks, self.depth);
        let parse = |text: String| -> Layout { text.parse().unwrap_or_else(|_| Layout::empty()) };
        let packed = if self.a == DType::F32 { 1 } else { 2 };
        let a = match packed {
            1 => "S[(2, 8, 2, 4) : (1@reg, 4@lane, 2@reg, 1@lane)]".to_owned(),
            _ => "S[(2, 8, 2, 4, 2) : (2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]".to_owned(),
        };
        let b = match packed {
            1 => "S[(8, 2, 4) : (4@lane, 1@reg, 1@lane)]".to_owned(),
            _ => "S[(8, 2, 4, 2) : (4@lane, 2@reg, 1@lane, 1@reg)]".to_owned(),
        };
        let d = "S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]".to_owned();
        let outer_a = parse(format!(
            "S[({wm}, {bm}, {depth}) : ({wn}@warp, {depth}@reg, 1@reg)] + R[{wn} : 1@warp]"
        ));
        let outer_b = parse(format!(
            "S[({wn}, {bn}, {depth}) : (1@warp, {depth}@reg, 1@reg)] + R[{wm} : {wn}@warp]"
        ));
        let outer_d = parse(format!(
            "S[({wm}, {bm}, {wn}, {bn}) : ({wn}@warp, {bn}@reg, 1@warp, 1@reg)]"
        ));
        let tile = |outer: &Layout, counts: [i64; 2], inner: String, block: [i64; 2]| {
            Layout::tile(outer, &counts, &parse(inner), &block).unwrap_or_else(|_| Layout::empty())
        };
        [
            tile(&outer_a, [wm * bm, depth], a, [m, k]),
            tile(&outer_b, [wn * bn, depth], b, [n, k]),
            tile(&outer_d, [wm * bm, wn * bn], d, [m, n]),
        ]
    }
}

/// Small multiples of a quarter, or small integers.
pub(crate) fn values(shape: &[i64], dtype: DType, seed: u64) -> Array {
    let mut random = Random::new(seed);
    let scale = if dtype.unit_roundoff().is_some() {
        0.25
    } else {
        1.0
    };
    Array::from_fn(shape, dtype, |_| random.range(-8, 8) as f64 * scale)
}

/// A random product.
#[must_use]
pub fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    if random.once_in(3) {
        scalar(seed, random)
    } else {
        tensor_core(seed, random)
    }
}

fn ragged(tile: i64, random: &mut Random) -> i64 {
    match random.below(3) {
        0 => tile,
        1 => tile * 2,
        _ => tile + random.range(1, tile),
    }
}

/// The product of A (m x k) and B (k x n), each stored the other way round where `trans` says so.
pub(crate) fn reference(
    a: &Array,
    b: &Array,
    trans: [bool; 2],
    shape: [i64; 3],
    d: DType,
) -> Array {
    Array::from_fn(&shape[..2], d, |at| {
        let product = |k: i64| {
            let x = a
                .get(&if trans[0] { [k, at[0]] } else { [at[0], k] })
                .unwrap_or(0.0);
            let y = b
                .get(&if trans[1] { [at[1], k] } else { [k, at[1]] })
                .unwrap_or(0.0);
            x * y
        };
        (0..shape[2]).map(product).sum()
    })
}

/// The layout of a fragment whose tensor has rows and columns exchanged.
fn exchanged(layout: &Layout, shape: [i64; 2]) -> Layout {
    layout
        .permute_dims(&shape, &[1, 0])
        .unwrap_or_else(|_| Layout::empty())
}

fn tensor_core(seed: u64, random: &mut Random) -> Case {
    let plan = Plan::random(random);
    let [bm, bn, bk] = plan.tile();
    let shape = [ragged(bm, random), ragged(bn, random), ragged(bk, random)];
    let trans = [random.once_in(3), !random.once_in(3)];
    let [a_layout, b_layout, d_layout] = plan.fragments();
    let a = operand(&plan, trans[0], [shape[0], shape[2]], [bm, bk], &a_layout);
    let b = operand(&plan, !trans[1], [shape[1], shape[2]], [bn, bk], &b_layout);
    let a_value = values(&[a.rows, a.columns], plan.a, seed ^ 1);
    let b_value = values(&[b.rows, b.columns], plan.a, seed ^ 2);
    let path = random.below(3);
    let half = random.once_in(2);
    let out = if half { DType::F16 } else { plan.d };
    let mut body = head(shape, [bm, bn, bk]);
    let d_type = format!("tensor<{bm}x{bn}xf32, #axe.layout<{d_layout}>>");
    let types = [tensor(&a, plan.a), tensor(&b, plan.a)];
    for (name, operand) in [("a", &a), ("b", &b)] {
        if path > 0 {
            let _ = writeln!(body, "  %s{name} = axe.alloc : {}", stage(operand, plan.a));
        }
    }
    let _ = writeln!(
        body,
        "  %zero = arith.constant 0.0 : f32\n  %start = axe.fill %zero : f32 -> {d_type}"
    );
    let _ = writeln!(
        body,
        "  %sum = scf.for %k = %c0 to %K step %bk iter_args(%acc = %start) -> ({d_type}) {{"
    );
    for (name, operand, r#type, origin) in [("a", &a, &types[0], "%r"), ("b", &b, &types[1], "%c")]
    {
        load(&mut body, name, operand, r#type, origin, path, plan.a);
    }
    if path > 0 {
        if path == 2 {
            body.push_str("    %group = axe.commit : !axe.token\n    axe.wait\n");
        }
        body.push_str("    axe.barrier\n");
        for (name, operand, r#type) in [("a", &a, &types[0]), ("b", &b, &types[1])] {
            let _ = writeln!(
                body,
                "    %f{name} = axe.copy %s{name} : {} -> {type}",
                stage(operand, plan.a)
            );
        }
        body.push_str("    axe.barrier\n");
    }
    let flags = match trans {
        [true, true] => " {trans_a, trans_b}",
        [true, false] => " {trans_a}",
        [false, true] => " {trans_b}",
        _ => "",
    };
    let precision = if plan.a == DType::F32 {
        " options = {precision = \"tf32\"}"
    } else {
        ""
    };
    let _ = writeln!(
        body,
        "    %next = axe.gemm %fa, %fb acc %acc : {d_type}{precision}{flags} : {}, {} -> {d_type}\n    scf.yield %next : {d_type}\n  }}",
        types[0], types[1]
    );
    let result = match half {
        false => "%sum".to_owned(),
        true => {
            let half_type = d_type.replace("xf32", "xf16");
            let _ = writeln!(body, "  %half = axe.cast %sum : {d_type} -> {half_type}");
            "%half".to_owned()
        }
    };
    let result_type = if half {
        d_type.replace("xf32", "xf16")
    } else {
        d_type
    };
    if half && random.once_in(2) {
        through_shared(&mut body, shape, [bm, bn], out, &result, &result_type);
    } else {
        store(&mut body, shape, [bm, bn], out, &result, &result_type);
    }
    let expected = reference(&a_value, &b_value, trans, shape, out);
    assemble(
        format!("product {seed}"),
        &body,
        [&a, &b],
        shape,
        out,
        plan.threads(),
        [bm, bn],
        vec![a_value, b_value],
        expected,
    )
}

fn operand(
    plan: &Plan,
    transposed: bool,
    extents: [i64; 2],
    tile: [i64; 2],
    layout: &Layout,
) -> Operand {
    let flip = |pair: [i64; 2]| if transposed { [pair[1], pair[0]] } else { pair };
    let ([rows, columns], shown) = (flip(extents), flip(tile));
    let layout = if transposed {
        exchanged(layout, tile)
    } else {
        layout.clone()
    };
    Operand {
        global: format!("memref<{rows}x{columns}x{}>", mlir(plan.a)),
        tile: shown,
        layout: format!("#axe.layout<{layout}>"),
        transposed,
        rows,
        columns,
    }
}

fn tensor(operand: &Operand, dtype: DType) -> String {
    format!(
        "tensor<{}x{}x{}, {}>",
        operand.tile[0],
        operand.tile[1],
        mlir(dtype),
        operand.layout
    )
}

/// Shared memory of an operand: swizzled where its rows are 64 or 128 bytes.
fn stage(operand: &Operand, dtype: DType) -> String {
    let [rows, columns] = operand.tile;
    let bytes = dtype.bytes() as i64;
    let layout = match columns * bytes {
        row @ (64 | 128) => {
            let (bits, base) = ((row / 16).ilog2(), (16 / bytes).ilog2());
            format!("#axe.layout<Sw<{bits}, {base}, 3> o S[({rows}, {columns}) : ({columns}, 1)]>")
        }
        _ => format!(
            "#axe.layout<S[({rows}, {columns}) : ({}, 1)]>",
            columns + 16 / bytes
        ),
    };
    format!(
        "memref<{rows}x{columns}x{}, {layout}, #axe.space<shared>>",
        mlir(dtype)
    )
}

fn head(shape: [i64; 3], tile: [i64; 3]) -> String {
    format!(
        "  %c0 = arith.constant 0 : index\n  %K = arith.constant {} : index\n  %bk = arith.constant {} : index\n  \
         %by = gpu.block_id y\n  %bx = gpu.block_id x\n  %bm = arith.constant {} : index\n  %bn = arith.constant {} : index\n  \
         %r = arith.muli %by, %bm : index\n  %c = arith.muli %bx, %bn : index\n",
        shape[2], tile[2], tile[0], tile[1]
    )
}

fn load(
    body: &mut String,
    name: &str,
    operand: &Operand,
    r#type: &str,
    origin: &str,
    path: usize,
    dtype: DType,
) {
    let at = if operand.transposed {
        format!("%k, {origin}")
    } else {
        format!("{origin}, %k")
    };
    let boxed = format!(
        "memref<{}x{}x{}, strided<[{}, 1]>>",
        operand.tile[0],
        operand.tile[1],
        mlir(dtype),
        operand.columns
    );
    let _ = writeln!(
        body,
        "    %t{name} = axe.slice %{name}[{at}] : {} to {boxed}",
        operand.global
    );
    let _ = match path {
        0 => writeln!(body, "    %f{name} = axe.copy %t{name} : {boxed} -> {type}"),
        1 => writeln!(
            body,
            "    axe.copy %t{name} to %s{name} : {boxed} to {}",
            stage(operand, dtype)
        ),
        _ => writeln!(
            body,
            "    axe.copy async %t{name} to %s{name} : {boxed} to {}",
            stage(operand, dtype)
        ),
    };
}

/// An epilogue whose tile goes through shared memory, so that global memory is written by rows.
fn through_shared(
    body: &mut String,
    shape: [i64; 3],
    tile: [i64; 2],
    out: DType,
    value: &str,
    r#type: &str,
) {
    let [rows, columns] = tile;
    let stage = format!(
        "memref<{rows}x{columns}x{}, #axe.layout<S[({rows}, {columns}) : ({}, 1)]>, #axe.space<shared>>",
        mlir(out),
        columns + 8
    );
    let _ = writeln!(
        body,
        "  %sy = axe.alloc : {stage}\n  axe.copy {value} to %sy : {type} to {stage}\n  axe.barrier"
    );
    store(body, shape, tile, out, "%sy", &stage);
}

fn store(
    body: &mut String,
    shape: [i64; 3],
    tile: [i64; 2],
    out: DType,
    value: &str,
    r#type: &str,
) {
    let boxed = format!(
        "memref<{}x{}x{}, strided<[{}, 1]>>",
        tile[0],
        tile[1],
        mlir(out),
        shape[1]
    );
    let _ = writeln!(
        body,
        "  %out = axe.slice %y[%r, %c] : memref<{}x{}x{}> to {boxed}",
        shape[0],
        shape[1],
        mlir(out)
    );
    let _ = writeln!(body, "  axe.copy {value} to %out : {type} to {boxed}");
}

#[allow(clippy::too_many_arguments)]
fn assemble(
    name: String,
    body: &str,
    operands: [&Operand; 2],
    shape: [i64; 3],
    out: DType,
    threads: i64,
    tile: [i64; 2],
    inputs: Vec<Array>,
    expected: Array,
) -> Case {
    let mlir = format!(
        "axe.kernel @k(%a: {}, %b: {}, %y: memref<{}x{}x{}>) threads({threads}) {{\n{body}  axe.return\n}}\n",
        operands[0].global,
        operands[1].global,
        shape[0],
        shape[1],
        mlir(out)
    );
    let count = |extent: i64, tile: i64| (extent + tile - 1) / tile;
    Case {
        name,
        mlir,
        host: None,
        threads,
        grid: [count(shape[1], tile[1]), count(shape[0], tile[0]), 1],
        parameters: vec![
            Parameter::Input(0, false),
            Parameter::Input(1, false),
            Parameter::Output(false),
        ],
        inputs,
        expected,
    }
}

/// A product in any types and layouts, by multiply-adds.
fn scalar(seed: u64, random: &mut Random) -> Case {
    let threads = random.pick(&[32, 64, 128]);
    let (element, sum) = random.pick(&[
        (DType::F32, DType::F32),
        (DType::F64, DType::F64),
        (DType::I8, DType::I32),
        (DType::F16, DType::F32),
        (DType::F16, DType::F16),
    ]);
    let tile = [
        random.pick(&[4, 8, 16, 24]),
        random.pick(&[4, 8, 16, 32]),
        random.pick(&[1, 4, 16]),
    ];
    let shape = [
        ragged(tile[0], random),
        ragged(tile[1], random),
        ragged(tile[2], random),
    ];
    let trans = [random.once_in(2), random.once_in(2)];
    let plan = Plan {
        warps: [1, 1],
        blocks: [1, 1],
        depth: 1,
        atom: [16, 8, 16],
        a: element,
        d: sum,
    };
    let mut side = |transposed: bool, extents: [i64; 2], tile: [i64; 2]| {
        let mut made = operand(&plan, transposed, extents, tile, &Layout::empty());
        made.layout = Distribution::random(&made.tile, threads, 64, random).to_string();
        made
    };
    let a = side(trans[0], [shape[0], shape[2]], [tile[0], tile[2]]);
    let b = side(!trans[1], [shape[1], shape[2]], [tile[1], tile[2]]);
    let in_memory = random.once_in(2);
    let d_layout = Distribution::random(&tile[..2], threads, 64, random);
    let d_type = format!("tensor<{}x{}x{}, {d_layout}>", tile[0], tile[1], mlir(sum));
    let mut body = head(shape, tile);
    let zero = if sum.unit_roundoff().is_some() {
        "0.0"
    } else {
        "0"
    };
    let _ = writeln!(
        body,
        "  %zero = arith.constant {zero} : {0}\n  %start = axe.fill %zero : {0} -> {d_type}",
        mlir(sum)
    );
    let _ = writeln!(
        body,
        "  %sum = scf.for %k = %c0 to %K step %bk iter_args(%acc = %start) -> ({d_type}) {{"
    );
    let mut types = Vec::new();
    for (name, operand, origin) in [("a", &a, "%r"), ("b", &b, "%c")] {
        load(
            &mut body,
            name,
            operand,
            &tensor(operand, element),
            origin,
            0,
            element,
        );
        let boxed = format!(
            "memref<{}x{}x{}, strided<[{}, 1]>>",
            operand.tile[0],
            operand.tile[1],
            mlir(element),
            operand.columns
        );
        types.push(if in_memory {
            boxed
        } else {
            tensor(operand, element)
        });
    }
    let operands = if in_memory { "%ta, %tb" } else { "%fa, %fb" };
    let flags: Vec<_> = [("trans_a", trans[0]), ("trans_b", trans[1])]
        .iter()
        .filter(|flag| flag.1)
        .map(|flag| flag.0)
        .collect();
    let flags = if flags.is_empty() {
        String::new()
    } else {
        format!(" {{{}}}", flags.join(", "))
    };
    let _ = writeln!(
        body,
        "    %next = axe.gemm {operands} acc %acc : {d_type}{flags} : {}, {} -> {d_type}\n    scf.yield %next : {d_type}\n  }}",
        types[0], types[1]
    );
    store(&mut body, shape, [tile[0], tile[1]], sum, "%sum", &d_type);
    let a_value = values(&[a.rows, a.columns], element, seed ^ 1);
    let b_value = values(&[b.rows, b.columns], element, seed ^ 2);
    let expected = reference(&a_value, &b_value, trans, shape, sum);
    assemble(
        format!("scalar product {seed}"),
        &body,
        [&a, &b],
        shape,
        sum,
        threads,
        [tile[0], tile[1]],
        vec![a_value, b_value],
        expected,
    )
}
