//! Products by roles: a producer that copies by TMA, warpgroups that multiply by wgmma, a ring of stages between them.

use crate::array::{Array, mlir};
use crate::case::Case;
use crate::product::{reference, values};
use crate::random::Random;
use axe_package::DType;

/// Rows of a warpgroup's product, and the depth of a stage: 128 bytes of 16-bit elements, what the widest swizzle takes.
const ROWS: i64 = 64;
const DEPTH: i64 = 64;

/// What is chosen.
struct Plan {
    element: DType,
    out: DType,
    consumers: i64,
    stages: i64,
    columns: i64,
    /// W is stored by its columns: `C = A W^T`.
    transposed: bool,
    order: &'static str,
    ctas: i64,
}

impl Plan {
    fn random(random: &mut Random) -> Self {
        let element = random.pick(&[DType::F16, DType::BF16]);
        let transposed = !random.once_in(3);
        let wide: &[i64] = &[8, 16, 24, 32, 40, 64, 96, 128];
        Plan {
            element,
            out: random.pick(&[element, element, DType::F32]),
            consumers: random.range(1, 2),
            stages: random.range(2, 4),
            // Rows of W that are no longer than the swizzle's, where it is stored by rows.
            columns: if transposed { random.pick(wide) } else { 64 },
            transposed,
            order: random.pick(&["rows", "columns", "groups 2", "snake 2", "hilbert"]),
            ctas: random.range(1, 3),
        }
    }

    fn rows(&self) -> i64 {
        ROWS * self.consumers
    }
}

/// A random product; its extents are multiples of 8 where a tensor map asks for it.
#[must_use]
pub fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    let plan = Plan::random(random);
    let eighth = |random: &mut Random, most: i64| 8 * random.range(1, most / 8);
    let shape = [
        random.range(1, 2 * plan.rows() + 5),
        eighth(random, 2 * plan.columns + 16),
        eighth(random, 3 * DEPTH),
    ];
    let [m, n, k] = shape;
    let a = values(&[m, k], plan.element, seed ^ 1);
    let of_w = if plan.transposed { [n, k] } else { [k, n] };
    let w = values(&of_w, plan.element, seed ^ 2);
    let expected = reference(&a, &w, [false, plan.transposed], shape, plan.out);
    Case {
        name: format!("roles {seed}"),
        mlir: kernel(&plan, shape),
        host: Some(host(&plan, shape, &w)),
        threads: 128 * (1 + plan.consumers),
        grid: [plan.ctas, 1, 1],
        parameters: Vec::new(),
        inputs: vec![a, w],
        expected,
    }
}

fn global(rows: i64, columns: i64, dtype: DType) -> String {
    format!("{rows}x{columns}x{}", mlir(dtype))
}

fn host(plan: &Plan, [m, n, k]: [i64; 3], w: &Array) -> String {
    let a = format!("tensor<{}>", global(m, k, plan.element));
    let w = format!("tensor<{}>", global(w.shape[0], w.shape[1], plan.element));
    let c = format!("tensor<{}>", global(m, n, plan.out));
    format!(
        "func.func @main(%a: {a}, %w: {w}) -> {c} {{
  %c1 = arith.constant 1 : index
  %ctas = arith.constant {} : index
  %empty = tensor.empty() : {c}
  %c = axe.launch @k grid(%ctas, %c1, %c1) ins(%a, %w : {a}, {w}) outs(%empty : {c}) -> {c}
  return %c : {c}
}}
",
        plan.ctas
    )
}

/// The types of the kernel's memory.
struct Types {
    a: String,
    w: String,
    c: String,
    a_ring: String,
    w_ring: String,
    a_stage: String,
    w_stage: String,
    sums: String,
}

impl Types {
    fn of(plan: &Plan, [m, n, k]: [i64; 3]) -> Self {
        let (rows, columns, stages) = (plan.rows(), plan.columns, plan.stages);
        let w_global = if plan.transposed { [n, k] } else { [k, n] };
        let w_tile = if plan.transposed {
            [columns, DEPTH]
        } else {
            [DEPTH, columns]
        };
        let shared = |count: Option<i64>, [i, j]: [i64; 2]| {
            let size = count.unwrap_or(1) * i * j;
            let outer = count.map_or(String::new(), |count| format!("{count}x"));
            format!(
                "memref<{outer}{i}x{j}x{}, #axe.layout<Sw<3, 3, 3> o S[{size} : 1]>, #axe.space<shared>>",
                mlir(plan.element)
            )
        };
        Types {
            a: format!("memref<{}>", global(m, k, plan.element)),
            w: format!("memref<{}>", global(w_global[0], w_global[1], plan.element)),
            c: format!("memref<{}>", global(m, n, plan.out)),
            a_ring: shared(Some(stages), [rows, DEPTH]),
            w_ring: shared(Some(stages), w_tile),
            a_stage: shared(None, [rows, DEPTH]),
            w_stage: shared(None, w_tile),
            // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16".
            sums: format!(
                "#axe.layout<S[({}, 2, 8, {}, 4, 2) : (1@warp, 2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]>",
                4 * plan.consumers,
                columns / 8
            ),
        }
    }
}

fn kernel(plan: &Plan, shape: [i64; 3]) -> String {
    let types = Types::of(plan, shape);
    let [m, n, k] = shape;
    let tiles = |extent: i64, tile: i64| (extent + tile - 1) / tile;
    let mut text = format!(
        "axe.kernel @k(%A: {}, %W: {}, %C: {}) threads({}) {{\n",
        types.a,
        types.w,
        types.c,
        128 * (1 + plan.consumers)
    );
    let constants = [
        ("c0", 0),
        ("c1", 1),
        ("depth", DEPTH),
        ("tm", plan.rows()),
        ("tn", plan.columns),
        ("K", k),
        ("rows", tiles(m, plan.rows())),
        ("columns", tiles(n, plan.columns)),
        ("steps", tiles(k, DEPTH)),
    ];
    for (name, value) in constants {
        text += &format!("  %{name} = arith.constant {value} : index\n");
    }
    text += &format!(
        "  %As = axe.alloc : {}\n  %Ws = axe.alloc : {}\n  %ring = axe.pipeline.create stages({}) : !axe.pipeline\n",
        types.a_ring, types.w_ring, plan.stages
    );
    text += &producer(plan, &types, k, n);
    text += &consumers(plan, &types, n);
    text + "  axe.return\n}\n"
}

/// The tile's loop with its origin.
fn tiles(plan: &Plan) -> String {
    format!(
        "axe.for_tiles (%i, %j) in (%rows, %columns) raster({}) {{
      %m = arith.muli %i, %tm : index
      %n = arith.muli %j, %tn : index
",
        plan.order
    )
}

/// The stages of the ring that `at` numbers, as `%{a}` and `%{w}`.
fn stages(types: &Types, at: &str, a: &str, w: &str) -> String {
    format!(
        "      %{a} = axe.slice %As[%{at}, %c0, %c0] : {} to {}
      %{w} = axe.slice %Ws[%{at}, %c0, %c0] : {} to {}
",
        types.a_ring, types.a_stage, types.w_ring, types.w_stage
    )
}

fn producer(plan: &Plan, types: &Types, k: i64, n: i64) -> String {
    let element = mlir(plan.element);
    let a_box = format!(
        "memref<{}x{DEPTH}x{element}, strided<[{k}, 1]>>",
        plan.rows()
    );
    let (w_box, w_at) = if plan.transposed {
        (
            format!(
                "memref<{}x{DEPTH}x{element}, strided<[{k}, 1]>>",
                plan.columns
            ),
            "%n, %k",
        )
    } else {
        (
            format!(
                "memref<{DEPTH}x{}x{element}, strided<[{n}, 1]>>",
                plan.columns
            ),
            "%k, %n",
        )
    };
    format!(
        "  axe.scope warpgroup [0, 1) {{
    axe.scope warp [0, 1) {{
      {}      scf.for %k = %c0 to %K step %depth {{
      %slot, %stage = axe.pipeline.acquire %ring : !axe.slot
      %a = axe.slice %A[%m, %k] : {} to {a_box}
      %w = axe.slice %W[{w_at}] : {} to {w_box}
{}      axe.copy async %a to %as signal %slot : {a_box} to {}
      axe.copy async %w to %ws signal %slot : {w_box} to {}
      axe.pipeline.commit %ring, %slot
      }}
      }}
    }}
  }}
",
        tiles(plan),
        types.a,
        types.w,
        stages(types, "stage", "as", "ws"),
        types.a_stage,
        types.w_stage
    )
}

fn consumers(plan: &Plan, types: &Types, n: i64) -> String {
    let (rows, columns) = (plan.rows(), plan.columns);
    let sums = format!("tensor<{rows}x{columns}xf32, {}>", types.sums);
    let out = format!(
        "tensor<{rows}x{columns}x{}, {}>",
        mlir(plan.out),
        types.sums
    );
    let result = format!(
        "memref<{rows}x{columns}x{}, strided<[{n}, 1]>>",
        mlir(plan.out)
    );
    let flag = if plan.transposed { " {trans_b}" } else { "" };
    let memory = format!("{}, {}", types.a_stage, types.w_stage);
    let cast = match plan.out {
        DType::F32 => String::new(),
        _ => format!("      %half = axe.cast %done : {sums} -> {out}\n"),
    };
    let stored = if cast.is_empty() { "%done" } else { "%half" };
    format!(
        "  axe.scope warpgroup [1, {}) {{
      {}      %slot, %stage = axe.pipeline.wait %ring : !axe.slot
{}      %first = axe.gemm async %as, %ws{flag} : {memory} -> {sums}
      %last:2 = scf.for %step = %c1 to %steps step %c1 iter_args(%before = %first, %held = %slot) -> ({sums}, !axe.slot) {{
      %next, %at = axe.pipeline.wait %ring : !axe.slot
{}      %sum = axe.gemm async %a, %w acc %before : {sums}{flag} : {memory} -> {sums}
      %after = axe.wait %sum {{pending = 1 : i64}} : {sums}
      axe.pipeline.release %ring, %held
      scf.yield %after, %next : {sums}, !axe.slot
      }}
      %done = axe.wait %last#0 : {sums}
      axe.pipeline.release %ring, %last#1
{cast}      %c = axe.slice %C[%m, %n] : {} to {result}
      axe.copy {stored} to %c : {out} to {result}
    }}
  }}
",
        1 + plan.consumers,
        tiles(plan),
        stages(types, "stage", "as", "ws"),
        stages(types, "at", "a", "w"),
        types.c
    )
}
