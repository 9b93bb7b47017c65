//! Kernels that multiply matrices: tensor cores with every path of their operands, and multiply-adds.

mod text;

use crate::array::Array;
use crate::case::Case;
use crate::layouts::Distribution;
use crate::random::Random;
use axe_layout::Layout;
use axe_package::DType;
use text::{Kernel, Operand, Path};

/// A product of one CTA: warps, and blocks of the instruction in each warp.
struct Plan {
    warps: [i64; 2],
    blocks: [i64; 2],
    depth: i64,
    atom: [i64; 3],
    a: DType,
    d: DType,
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

/// A product by `mma.sync`, by any path of its operands.
fn tensor_core(seed: u64, random: &mut Random) -> Case {
    let plan = Plan::random(random);
    let tile = plan.tile();
    let shape = tile.map(|extent| ragged(extent, random));
    let trans = [random.once_in(3), !random.once_in(3)];
    let [a_layout, b_layout, d_layout] = plan.fragments();
    let layout = |layout: &Layout, transposed: bool, tile: [i64; 2]| match transposed {
        true => exchanged(layout, tile),
        false => layout.clone(),
    };
    let operand = |layout_of: &Layout, transposed: bool, outer: usize| {
        let tile = [tile[outer], tile[2]];
        let layout = format!("#axe.layout<{}>", layout(layout_of, transposed, tile));
        Operand::new(plan.a, transposed, [shape[outer], shape[2]], tile, layout)
    };
    let operands = [
        operand(&a_layout, trans[0], 0),
        operand(&b_layout, !trans[1], 1),
    ];
    let path = random.pick(&[Path::Registers, Path::Shared, Path::Asynchronous]);
    let half = random.once_in(2);
    let out = if half { DType::F16 } else { plan.d };

    let mut kernel = Kernel::new(shape, tile, trans, plan.a, operands);
    let d_type = kernel.sums(DType::F32, &format!("#axe.layout<{d_layout}>"));
    kernel.allocate(path);
    kernel.begin(DType::F32, &d_type);
    kernel.load(path);
    let types = kernel.types();
    let options = match plan.a {
        DType::F32 => " options = {precision = \"tf32\"}",
        _ => "",
    };
    kernel.multiply("%fa, %fb", &types, options, &d_type);
    let (mut result, mut result_type) = ("%sum", d_type.clone());
    if half {
        result_type = d_type.replace("xf32", "xf16");
        kernel.line(format!("%half = axe.cast %sum : {d_type} -> {result_type}"));
        result = "%half";
    }
    match half && random.once_in(2) {
        true => kernel.store_through_shared(out, result, &result_type),
        false => kernel.store(out, result, &result_type),
    }
    kernel.case(format!("product {seed}"), seed, out, plan.threads())
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
    let shape = tile.map(|extent| ragged(extent, random));
    let trans = [random.once_in(2), random.once_in(2)];
    let mut operand = |transposed: bool, outer: usize| {
        let tile = [tile[outer], tile[2]];
        let extents = [shape[outer], shape[2]];
        let mut operand = Operand::new(element, transposed, extents, tile, String::new());
        operand.layout = Distribution::random(&operand.tile, threads, 64, random).to_string();
        operand
    };
    let operands = [operand(trans[0], 0), operand(!trans[1], 1)];
    let in_memory = random.once_in(2);
    let d_layout = Distribution::random(&tile[..2], threads, 64, random);

    let mut kernel = Kernel::new(shape, tile, trans, element, operands);
    let d_type = kernel.sums(sum, &d_layout.to_string());
    kernel.begin(sum, &d_type);
    kernel.load(Path::Registers);
    match in_memory {
        true => kernel.multiply("%ta, %tb", &kernel.boxes(), "", &d_type),
        false => kernel.multiply("%fa, %fb", &kernel.types(), "", &d_type),
    }
    kernel.store(sum, "%sum", &d_type);
    kernel.case(format!("scalar product {seed}"), seed, sum, threads)
}
