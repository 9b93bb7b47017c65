//! Scales of the block-scaled kinds, and their sums.

use super::{Instruction, Kind};
use crate::fault::Fault;
use crate::units::float::{Format, Round, canonical_f32};
use crate::units::tensor_memory::TensorMemory;

impl Instruction {
    /// Scales of `rows` rows (PTX ISA 9.7.16.10.7): row r in lane r % 32, column r / 32, one byte a block,
    /// starting at the byte that the descriptor names.
    pub(super) fn scales(
        &self,
        t: &TensorMemory,
        address: u32,
        rows: usize,
        block: usize,
        which: usize,
    ) -> Result<Vec<f64>, Fault> {
        if !matches!(block, 16 | 32) {
            return Err(Fault::Invalid(format!("{block} elements to a scale")));
        }
        let blocks = self.kind.k() / block;
        let format = if self.ue8m0 {
            Format::Ue8m0
        } else {
            Format::Ue4m3
        };
        let (lane, column) = (address as usize >> 16, address as usize & 0xffff);
        let mut out = Vec::with_capacity(rows * blocks);
        for row in 0..rows {
            let word = t.read(lane + row % 32, column + row / 32)?;
            for i in 0..blocks as u32 {
                let byte = (self.scale_id[which] + i) % 4;
                out.push(format.to_f64(u64::from(word >> (8 * byte) & 0xff)));
            }
        }
        Ok(out)
    }
}

/// Block-scaled sums: groups of up to 16 (FP4) or all 32 products are scaled exactly, then aligned
/// and truncated once with the accumulator. `a` has rows of k elements, `b` a row for each of the n
/// columns, and the scales as many rows of k / `block`.
pub(in crate::units) fn scaled_sums(
    kind: Kind,
    [n, k]: [usize; 2],
    (fa, a, sa): (Format, &[u32], &[f64]),
    (fb, b, sb): (Format, &[u32], &[f64]),
    block: usize,
    acc: &mut [f32],
) {
    let blocks = k / block;
    let bits = if kind == Kind::Mxf8f6f4 { 25 } else { 35 };
    let values = |f: Format, raw: &[u32]| {
        raw.iter()
            .map(|x| f.to_f64(u64::from(*x)))
            .collect::<Vec<_>>()
    };
    let (a, b) = (values(fa, a), values(fb, b));
    let group = if kind == Kind::Mxf8f6f4 { 1 } else { 16 };
    for (i, c) in acc.iter_mut().enumerate() {
        let (row, column) = (i / n, i % n);
        let mut terms = vec![(f64::from(*c), exponent(f64::from(*c)))];
        for g in (0..k).step_by(group) {
            let s = [
                sa[row * blocks + g / block],
                sb[column * blocks + g / block],
            ];
            let pairs = (g..g + group).map(|j| (a[row * k + j], b[column * k + j]));
            let sum: f64 = pairs.clone().map(|(x, y)| x * y).sum();
            // A group is aligned by its scales alone, a single product by its factors too.
            let e = if group == 1 {
                pairs
                    .map(|(x, y)| exponent(x) + exponent(y))
                    .max()
                    .unwrap_or(0)
            } else {
                0
            };
            terms.push((sum * s[0] * s[1], e + exponent(s[0]) + exponent(s[1])));
        }
        *c = aligned_sum(&terms, bits);
    }
}

/// Sum of terms truncated to `bits` below the largest exponent, truncated to binary32.
fn aligned_sum(terms: &[(f64, i32)], bits: i32) -> f32 {
    if terms.iter().any(|t| !t.0.is_finite()) {
        let sum = terms.iter().map(|t| t.0).sum::<f64>() as f32;
        return canonical_f32(sum);
    }
    let Some(top) = terms.iter().filter(|t| t.0 != 0.0).map(|t| t.1).max() else {
        return 0.0;
    };
    let scale = f64::powi(2.0, (bits - top).clamp(-1000, 1000));
    let sum: f64 = terms.iter().map(|t| (t.0 * scale).trunc()).sum();
    let x = f32::from_bits(Format::F32.from_f64(sum / scale, Round::Zero, false) as u32);
    if x == 0.0 { 0.0 } else { x }
}

fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return -10_000;
    }
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}
