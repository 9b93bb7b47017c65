//! Products to plan, for the tests.

use super::{Decline, Matrix, Operand, Product, WgmmaPlan};
use crate::facts::wgmma::{Accumulator, Element, Major, Swizzle, Types, Wgmma};
use crate::fragment::Fragment;
use axe_layout::Layout;

pub(super) const F16: Types = same(Element::F16, Accumulator::F32);
pub(super) const BF16: Types = same(Element::Bf16, Accumulator::F32);
pub(super) const HALF: Types = same(Element::F16, Accumulator::F16);
pub(super) const TF32: Types = same(Element::Tf32, Accumulator::F32);
pub(super) const E4M3: Types = same(Element::E4m3, Accumulator::F32);
pub(super) const S8: Types = same(Element::S8, Accumulator::S32);

const fn same(element: Element, d: Accumulator) -> Types {
    Types {
        a: element,
        b: element,
        d,
    }
}

/// Memory of `rows` of M or N by `k`.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub layout: Layout,
    pub shape: [i64; 2],
    pub k_first: bool,
}

impl Memory {
    pub fn matrix(&self) -> Matrix<'_> {
        Matrix {
            layout: &self.layout,
            shape: self.shape,
            k_first: self.k_first,
        }
    }

    pub fn of(text: &str, rows: i64, k: i64) -> Self {
        Self {
            layout: text.parse().unwrap(),
            shape: [rows, k],
            k_first: false,
        }
    }

    /// A swizzled operand tile: spans of the swizzle side by side, as TMA writes them.
    pub fn swizzled(major: Major, swizzle: Swizzle, rows: i64, k: i64, bytes: i64) -> Self {
        let xor = swizzle.xor(bytes).unwrap();
        let (lines, along) = match major {
            Major::K => (rows, k),
            Major::Mn => (k, rows),
        };
        let span = (swizzle.span() / bytes).min(along);
        let text = format!(
            "S[({lines}, {}, {span}) : ({span}, {}, 1)]",
            along / span,
            lines * span
        );
        let layout: Layout = text.parse().unwrap();
        Self {
            layout: layout.with_swizzle(xor),
            shape: [lines, along],
            k_first: major == Major::Mn,
        }
    }
}

/// D of `[m, n]` on a grid of warpgroups, each with `m / grid[0]` rows in blocks of 64 and `n / grid[1]` columns.
pub(super) fn accumulators(m: i64, n: i64, grid: [i64; 2]) -> Fragment {
    let (blocks, columns) = (m / grid[0] / 64, n / grid[1]);
    let atom = Wgmma {
        types: F16,
        n: columns,
    }
    .d()
    .unwrap();
    let outer = format!(
        "S[({}, {blocks}, {}) : ({}@warp, 1@reg, 1@warp)]",
        grid[0], grid[1], grid[1]
    );
    let outer: Layout = outer.parse().unwrap();
    let layout = Layout::tile(&outer, &[m / 64, grid[1]], &atom, &[64, columns]).unwrap();
    Fragment::new(&layout, &[m, n], 128 * grid[0] * grid[1]).unwrap()
}

/// A of `[m, k]` in registers of `warpgroups` along m, copied to `copies` warpgroups each.
pub(super) fn registers_of_a(types: Types, m: i64, k: i64, grid: [i64; 2]) -> Fragment {
    let atom = Wgmma { types, n: 8 }.a().unwrap();
    let (blocks, steps) = (m / grid[0] / 64, k / types.k());
    let outer = format!(
        "S[({}, {blocks}, {steps}) : ({}@warp, {steps}@reg, 1@reg)] + R[{} : 1@warp]",
        grid[0], grid[1], grid[1]
    );
    let outer: Layout = outer.parse().unwrap();
    let layout = Layout::tile(&outer, &[m / 64, steps], &atom, &[64, types.k()]).unwrap();
    Fragment::new(&layout, &[m, k], 128 * grid[0] * grid[1]).unwrap()
}

/// A product with both operands in memory.
pub(super) fn plan(
    types: Types,
    a: &Memory,
    b: &Memory,
    d: &Fragment,
) -> Result<WgmmaPlan, Decline> {
    WgmmaPlan::new(&Product {
        types,
        a: Operand::Shared(a.matrix()),
        b: b.matrix(),
        d,
    })
}
