//! Products of tensors whose kernels the planner makes, with random knobs: clusters that fetch for each other, ping-pong
//! consumers, shared depth, either order of A and B, every element type of a tensor core.

use crate::array::{Array, mlir};
use crate::case::Case;
use crate::product::{reference, values};
use crate::random::Random;
use axe_package::DType;
use std::fmt::Write;

/// A type of operands: each one's elements, and those of the sums.
struct Elements {
    a: DType,
    b: DType,
    sum: DType,
}

impl Elements {
    fn random(random: &mut Random) -> Self {
        use DType::{BF16, F8E4M3, F8E5M2, F16, F32, I8, I32};
        let (a, b, sum) = random.pick(&[
            (F16, F16, F32),
            (F16, F16, F32),
            (BF16, BF16, F32),
            (BF16, BF16, F32),
            (F32, F32, F32),
            (F8E4M3, F8E4M3, F32),
            (F8E5M2, F8E5M2, F32),
            (F8E4M3, F8E5M2, F32),
            (I8, I8, I32),
        ]);
        Self { a, b, sum }
    }

    /// Elements in 128 bytes, the rows of the widest swizzle.
    fn row(&self) -> i64 {
        128 / self.a.bytes() as i64
    }

    /// Whether `wgmma` takes the operands in shared memory with M or N innermost (PTX ISA, "Matrix operands of
    /// wgmma.mma_async": 16-bit types alone).
    fn transposes(&self) -> bool {
        self.a.bytes() == 2
    }
}

/// The knobs of a `wgmma` kernel for a product of depth `k`, of operands of which some are stored with their depth outermost.
fn wgmma(elements: &Elements, k: i64, outermost: [bool; 2], random: &mut Random) -> String {
    let depth = elements.row();
    let consumers = random.range(1, 2);
    let shape = match random.below(8) {
        // Swapped tiles have A with its depth innermost.
        0 if outermost[0] => 7,
        shape => shape,
    };
    // The operand along the tile's side that is no multiple of 64 has its rows along the swizzle.
    let columns: i64 = match outermost[usize::from(shape != 0)] {
        true => random.pick(&[64, 128]),
        false => random.pick(&[16, 32, 40, 64, 96, 128]),
    };
    let tile = match shape {
        // The instruction's 64 rows are the result's columns.
        0 => [columns, 64 * consumers, depth],
        1 | 2 => [64, columns, depth],
        _ => [64 * consumers, columns, depth],
    };
    let mut plan = format!(
        "mainloop = \"wgmma\", tile = array<i64: {}, {}, {}>, stages = {} : i64",
        tile[0],
        tile[1],
        tile[2],
        random.range(2, 4)
    );
    // CTAs of a cluster fetch whole periods of 8 rows for each other.
    let clusters: &[&str] = match columns % 32 {
        0 => &["1, 1", "2, 1", "1, 2", "4, 1", "1, 4"],
        16 => &["1, 1", "2, 1", "1, 2"],
        _ => &["1, 1"],
    };
    let mut cluster = random.pick(clusters);
    let steps = (k + depth - 1) / depth;
    match shape {
        0 => plan += ", swap_ab = true",
        1 | 2 => plan += ", schedule = \"pingpong\"",
        3 => {
            let splits = random.range(1, steps.min(5));
            let _ = write!(
                plan,
                ", decomposition = \"split_k\", splits = {splits} : i64"
            );
        }
        // Each CTA stores columns of the instruction in eights.
        4 if steps > 1 && columns % 16 == 0 => {
            cluster = "1, 1";
            let four = steps >= 4 && columns % 32 == 0;
            let splits = if four { 4 } else { 2 };
            let _ = write!(
                plan,
                ", decomposition = \"cluster_split_k\", splits = {splits} : i64"
            );
        }
        5 => plan += ", decomposition = \"stream_k\", splits = 2 : i64",
        _ => {}
    }
    let _ = write!(plan, ", cluster = array<i64: {cluster}>");
    if random.once_in(2) {
        let order = random.pick(&["rows", "columns", "groups", "snake", "hilbert"]);
        let _ = write!(plan, ", raster = \"{order}\"");
    }
    plan
}

/// The knobs of an `mma.sync` kernel.
fn mma(random: &mut Random) -> String {
    let warps = random.pick(&[[1_i64, 1], [2, 2], [1, 4], [4, 2]]);
    let tile = [warps[0] * 16 * random.range(1, 2), warps[1] * 16];
    format!(
        "mainloop = \"mma\", tile = array<i64: {}, {}, 32>, warps = array<i64: {}, {}>, stages = {} : i64",
        tile[0],
        tile[1],
        warps[0],
        warps[1],
        random.range(2, 4)
    )
}

/// A random product. Where its rows are no multiples of 16 bytes, the planner pads them.
#[must_use]
pub fn case(seed: u64) -> Case {
    let random = &mut Random::new(seed);
    let elements = Elements::random(random);
    let even = !random.once_in(4);
    let fast = elements.transposes() || !random.once_in(4);
    let trans = match elements.transposes() || !fast {
        true => [random.once_in(3), !random.once_in(3)],
        false => [false, true],
    };
    let extent = |random: &mut Random, even: bool, most: i64| match even {
        true => 16 * random.range(1, most / 16),
        false => random.range(1, most),
    };
    let shape @ [m, n, k] = [
        extent(random, even && trans[0], 280),
        extent(random, even, 300),
        extent(random, even, 400),
    ];
    let mut knobs = Vec::new();
    match random.below(5) {
        0 if elements.transposes() => knobs.push(mma(random)),
        _ if fast && even => knobs.push(wgmma(&elements, k, [trans[0], !trans[1]], random)),
        _ => {}
    }
    if elements.a == DType::F32 {
        knobs.push("precision = \"tf32\"".to_owned());
    }
    let out = match elements.sum {
        DType::F32 => random.pick(&[DType::F32, DType::F16, DType::BF16]),
        other => other,
    };
    let flip = |pair: [i64; 2], flip| if flip { [pair[1], pair[0]] } else { pair };
    let a = values(&flip([m, k], trans[0]), elements.a, seed ^ 1);
    let b = values(&flip([k, n], trans[1]), elements.b, seed ^ 2);
    Case {
        name: format!("planned {seed}"),
        mlir: module(&elements, [&a, &b], shape, trans, &knobs, out),
        host: Some(String::new()),
        threads: 0,
        grid: [1; 3],
        parameters: Vec::new(),
        expected: reference(&a, &b, trans, shape, out),
        inputs: vec![a, b],
    }
}

fn module(
    elements: &Elements,
    [a, b]: [&Array; 2],
    [m, n, _]: [i64; 3],
    trans: [bool; 2],
    knobs: &[String],
    out: DType,
) -> String {
    let matrix =
        |shape: &[i64], dtype| format!("tensor<{}x{}x{}>", shape[0], shape[1], mlir(dtype));
    let (a, b) = (matrix(&a.shape, elements.a), matrix(&b.shape, elements.b));
    let (sum, out_type) = (matrix(&[m, n], elements.sum), matrix(&[m, n], out));
    let flags = [("trans_a", trans[0]), ("trans_b", trans[1])];
    let mut flags: Vec<_> = flags
        .iter()
        .filter(|flag| flag.1)
        .map(|flag| flag.0.to_owned())
        .collect();
    if !knobs.is_empty() {
        flags.push(format!("axe.plan = {{{}}}", knobs.join(", ")));
    }
    let (cast, result) = match out == elements.sum {
        true => (String::new(), "%p"),
        false => (format!("  %c = axe.cast %p : {sum} -> {out_type}\n"), "%c"),
    };
    format!(
        "func.func @main(%a: {a}, %b: {b}) -> {out_type} {{\n  %p = axe.gemm %a, %b {{{}}} : {a}, {b} -> {sum}\n{cast}  return {result} : {out_type}\n}}\n",
        flags.join(", ")
    )
}
