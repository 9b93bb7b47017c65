//! `mma.sync`: fragments of a warp and the product they hold (PTX ISA 9.7.14.5).
//!
//! All dense shapes share one fragment rule. With `E` elements in a 32-bit register (1 for tf32 and
//! f64), `group = lane / 4` and `t = lane % 4`:
//! - A register `r`, element `e`: row `group + 8 * (r % 2)`, column `(r / 2) * 4E + t * E + e`
//!   (row `group` alone for the shapes with m = 8);
//! - B register `r`, element `e`: row `r * 4E + t * E + e`, column `group`;
//! - C and D value `i`: row `group + 8 * (i / 2)`, column `2t + i % 2`; binary16 values are packed in pairs.

use super::float::{Format, Round, canonical_f32};
use super::tensor_core::{Generation, Model, Tile, multiply_add, multiply_add_int};
use crate::fault::Fault;

/// One register of a warp, lane by lane.
pub type Warp<T> = [T; 32];

/// The type of an element of A or B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Floating point: F16, Bf16, Tf32, E4m3, E5m2, or F64.
    Float(Format),
    /// Integer of 8 or 4 bits.
    Int {
        /// Two's complement.
        signed: bool,
        /// 8 or 4.
        bits: u32,
    },
    /// Single bits.
    Bit,
}

impl Element {
    /// Bits of one element in a register.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Float(f) => f.bits(),
            Self::Int { bits, .. } => bits,
            Self::Bit => 1,
        }
    }
}

/// The type of C and D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// binary16, two to a register.
    F16,
    /// binary32.
    F32,
    /// binary64.
    F64,
    /// 32-bit integer.
    S32,
}

/// How single-bit products are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitOp {
    /// `.and.popc`
    And,
    /// `.xor.popc`
    Xor,
}

/// A dense `mma.sync.aligned.mMnNkK.row.col` instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mma {
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// C.
    pub c: Accumulator,
    /// D.
    pub d: Accumulator,
    /// Integer results clamp instead of wrapping.
    pub satfinite: bool,
    /// For [`Element::Bit`].
    pub bit_op: Option<BitOp>,
}

impl Mma {
    /// Checks that PTX defines this combination of shape and types.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for any other; the quad-pair form m8n8k4 of binary16 is among them.
    pub fn check(&self) -> Result<(), Fault> {
        use Accumulator as Acc;
        let floats = match (self.a, self.b) {
            (Element::Float(a), Element::Float(b)) => Some((a, b)),
            _ => None,
        };
        let shape = (self.m, self.n, self.k);
        let single = self.c == Acc::F32 && self.d == Acc::F32;
        let half = matches!(self.c, Acc::F16 | Acc::F32) && matches!(self.d, Acc::F16 | Acc::F32);
        let ok = match (floats, shape) {
            (Some((Format::F16, Format::F16)), (16, 8, 8 | 16)) => half,
            (Some((Format::Bf16, Format::Bf16)), (16, 8, 8 | 16)) => single,
            (Some((Format::Tf32, Format::Tf32)), (16, 8, 4 | 8)) => single,
            (Some((Format::F64, Format::F64)), (8, 8, 4) | (16, 8, 4 | 8 | 16)) => {
                self.c == Acc::F64 && self.d == Acc::F64
            }
            (
                Some((Format::E4m3 | Format::E5m2, Format::E4m3 | Format::E5m2)),
                (16, 8, 16 | 32),
            ) => half,
            (None, shape) => self.c == Acc::S32 && self.d == Acc::S32 && self.int_shape(shape),
            _ => false,
        };
        if ok {
            Ok(())
        } else {
            Err(Fault::Unsupported(format!(
                "mma.m{}n{}k{} of {:?} by {:?} into {:?}",
                self.m, self.n, self.k, self.a, self.b, self.d
            )))
        }
    }

    fn int_shape(&self, shape: (usize, usize, usize)) -> bool {
        match (self.a, self.b) {
            (Element::Int { bits: 8, .. }, Element::Int { bits: 8, .. }) => {
                matches!(shape, (8, 8, 16) | (16, 8, 16 | 32))
            }
            (Element::Int { bits: 4, .. }, Element::Int { bits: 4, .. }) => {
                matches!(shape, (8, 8, 32) | (16, 8, 32 | 64))
            }
            (Element::Bit, Element::Bit) => {
                self.bit_op.is_some() && matches!(shape, (8, 8, 128) | (16, 8, 128 | 256))
            }
            _ => false,
        }
    }

    /// 32-bit registers a lane of A, B, C and D (64-bit ones for F64).
    #[must_use]
    pub fn registers(&self) -> [usize; 4] {
        let unit = |bits: usize| {
            if self.a.bits() == 64 {
                bits / 64
            } else {
                bits / 32
            }
        };
        let a = unit(self.m * self.k * self.a.bits() as usize / 32);
        let b = unit(self.n * self.k * self.b.bits() as usize / 32);
        let values = self.m * self.n / 32;
        let acc = |t| {
            if t == Accumulator::F16 {
                values / 2
            } else {
                values
            }
        };
        [a, b, acc(self.c), acc(self.d)]
    }

    /// Executes every type except F64 and returns the registers of D.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] if [`Mma::check`] fails, [`Fault::Invalid`] if the number of registers
    /// is not that of [`Mma::registers`].
    pub fn execute(
        &self,
        generation: Generation,
        a: &[Warp<u32>],
        b: &[Warp<u32>],
        c: &[Warp<u32>],
    ) -> Result<Vec<Warp<u32>>, Fault> {
        self.check()?;
        self.expect_registers([a.len(), b.len(), c.len()])?;
        if self.d == Accumulator::F64 {
            return Err(Fault::Invalid("f64 operands need 64-bit registers".into()));
        }
        let a = self.gather_a(a);
        let b = self.gather_b(b);
        match (self.a, self.b) {
            (Element::Float(fa), Element::Float(fb)) => {
                let mut acc = self.gather_floats(c);
                if generation == Generation::Hopper && is_fp8(fa) && is_fp8(fb) {
                    self.fp8_on_hopper((fa, &a), (fb, &b), &mut acc);
                    return Ok(self.scatter_floats(&acc));
                }
                let model = Model::mma(generation, fa, self.d == Accumulator::F16);
                let (a, b) = (Tile::decode(fa, self.k, &a), Tile::decode(fb, self.k, &b));
                multiply_add(&model, &a, &b, &mut acc);
                Ok(self.scatter_floats(&acc))
            }
            _ => Ok(self.integers(&a, &b, c)),
        }
    }

    /// Executes the F64 shapes: one fused multiply-add after the other in order of k.
    ///
    /// # Errors
    /// As [`Mma::execute`].
    pub fn execute_f64(
        &self,
        a: &[Warp<u64>],
        b: &[Warp<u64>],
        c: &[Warp<u64>],
    ) -> Result<Vec<Warp<u64>>, Fault> {
        self.check()?;
        self.expect_registers([a.len(), b.len(), c.len()])?;
        let at_a = |row: usize, k: usize| {
            let r = (k / 4) * (self.m / 8) + row / 8;
            f64::from_bits(a[r][(row % 8) * 4 + k % 4])
        };
        let at_b = |k: usize, col: usize| f64::from_bits(b[k / 4][col * 4 + k % 4]);
        let mut d = c.to_vec();
        for (i, register) in d.iter_mut().enumerate() {
            for (lane, value) in register.iter_mut().enumerate() {
                let (row, col) = accumulator_position(lane, i);
                let sum = (0..self.k).fold(f64::from_bits(*value), |s, k| {
                    at_a(row, k).mul_add(at_b(k, col), s)
                });
                *value = sum.to_bits();
            }
        }
        Ok(d)
    }

    fn expect_registers(&self, got: [usize; 3]) -> Result<(), Fault> {
        let [a, b, c, _] = self.registers();
        if got == [a, b, c] {
            return Ok(());
        }
        Err(Fault::Invalid(format!(
            "mma.m{}n{}k{} takes {a}, {b} and {c} registers of A, B and C, got {got:?}",
            self.m, self.n, self.k
        )))
    }

    /// A as raw elements, row-major m x k.
    pub(super) fn gather_a(&self, registers: &[Warp<u32>]) -> Vec<u32> {
        let (bits, rows) = (self.a.bits(), self.m / 8);
        let per = (32 / bits) as usize;
        let mut out = vec![0; self.m * self.k];
        for (r, register) in registers.iter().enumerate() {
            for (lane, &word) in register.iter().enumerate() {
                let row = lane / 4 + 8 * (r % rows);
                let column = (r / rows) * 4 * per + (lane % 4) * per;
                spread(word, bits, &mut out[row * self.k + column..][..per]);
            }
        }
        out
    }

    /// B as raw elements, column-major: n runs of k.
    pub(super) fn gather_b(&self, registers: &[Warp<u32>]) -> Vec<u32> {
        let bits = self.b.bits();
        let per = (32 / bits) as usize;
        let mut out = vec![0; self.n * self.k];
        for (r, register) in registers.iter().enumerate() {
            for (lane, &word) in register.iter().enumerate() {
                let start = lane / 4 * self.k + r * 4 * per + (lane % 4) * per;
                spread(word, bits, &mut out[start..][..per]);
            }
        }
        out
    }

    pub(super) fn gather_floats(&self, c: &[Warp<u32>]) -> Vec<f32> {
        let mut out = vec![0.0; self.m * self.n];
        for (i, lane) in self.values() {
            let (row, col) = accumulator_position(lane, i);
            out[row * self.n + col] = match self.c {
                Accumulator::F16 => {
                    let word = c[i / 2][lane];
                    let h = if i % 2 == 0 { word } else { word >> 16 };
                    Format::F16.to_f64(u64::from(h & 0xffff)) as f32
                }
                _ => f32::from_bits(c[i][lane]),
            };
        }
        out
    }

    pub(super) fn scatter_floats(&self, acc: &[f32]) -> Vec<Warp<u32>> {
        let mut d = vec![[0; 32]; self.registers()[3]];
        for (i, lane) in self.values() {
            let (row, col) = accumulator_position(lane, i);
            let value = acc[row * self.n + col];
            if self.d == Accumulator::F16 {
                let h = half_bits(value);
                d[i / 2][lane] |= if i % 2 == 0 { h } else { h << 16 };
            } else {
                d[i][lane] = value.to_bits();
            }
        }
        d
    }

    /// Every accumulator value as (index within the lane, lane).
    fn values(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        (0..self.m * self.n / 32).flat_map(|i| (0..32).map(move |lane| (i, lane)))
    }

    /// Hopper has no FP8 `mma.sync`: operands are widened to binary16 and multiplied 16 at a time from
    /// a zero accumulator, first the lower pair of every four elements along k, then the upper pair,
    /// and C is added last, rounded to nearest (measured on an H200: bit-equal with binary32 C and D).
    fn fp8_on_hopper(&self, (fa, a): (Format, &[u32]), (fb, b): (Format, &[u32]), c: &mut [f32]) {
        let half = |format: Format, bits: &[u32], first: usize| {
            let elements: Vec<u32> = (0..bits.len())
                .filter(|i| self.k == 16 || i % 4 / 2 == first)
                .map(|i| {
                    let value = format.decode(u64::from(bits[i]));
                    Format::F16.encode(value, Round::Nearest, false) as u32
                })
                .collect();
            Tile::decode(Format::F16, 16, &elements)
        };
        let model = Model::mma(Generation::Hopper, Format::F16, false);
        let mut acc = vec![0.0; c.len()];
        for first in 0..self.k / 16 {
            multiply_add(&model, &half(fa, a, first), &half(fb, b, first), &mut acc);
        }
        for (c, x) in c.iter_mut().zip(acc) {
            let sum = canonical_f32(*c + x);
            *c = if self.d == Accumulator::F16 {
                half::f16::from_f32(sum).to_f32()
            } else {
                sum
            };
        }
    }

    fn integers(&self, a: &[u32], b: &[u32], c: &[Warp<u32>]) -> Vec<Warp<u32>> {
        let mut acc = self.gather_ints(c);
        let values =
            |e: Element, raw: &[u32]| raw.iter().map(|&x| signed(e, x)).collect::<Vec<_>>();
        let (a, b) = (values(self.a, a), values(self.b, b));
        if self.bit_op == Some(BitOp::Xor) && self.a == Element::Bit {
            // popc(a ^ b) = sum of a + b - 2ab
            for (i, out) in acc.iter_mut().enumerate() {
                let row = &a[i / self.n * self.k..][..self.k];
                let column = &b[i % self.n * self.k..][..self.k];
                let ones: i32 = row.iter().zip(column).map(|(x, y)| x ^ y).sum();
                *out = out.wrapping_add(ones);
            }
        } else {
            multiply_add_int(self.k, &a, &b, &mut acc, self.satfinite);
        }
        self.scatter_ints(&acc)
    }

    pub(super) fn gather_ints(&self, c: &[Warp<u32>]) -> Vec<i32> {
        let mut acc = vec![0i32; self.m * self.n];
        for (i, register) in c.iter().enumerate() {
            for (lane, &word) in register.iter().enumerate() {
                let (row, col) = accumulator_position(lane, i);
                acc[row * self.n + col] = word as i32;
            }
        }
        acc
    }

    pub(super) fn scatter_ints(&self, acc: &[i32]) -> Vec<Warp<u32>> {
        let mut d = vec![[0; 32]; self.registers()[3]];
        for (i, register) in d.iter_mut().enumerate() {
            for (lane, word) in register.iter_mut().enumerate() {
                let (row, col) = accumulator_position(lane, i);
                *word = acc[row * self.n + col] as u32;
            }
        }
        d
    }
}

const fn is_fp8(format: Format) -> bool {
    matches!(format, Format::E4m3 | Format::E5m2)
}

/// Row and column of accumulator value `i` of a lane.
#[must_use]
pub const fn accumulator_position(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2)
}

/// binary16 code of a value that is already rounded to binary16.
pub(super) fn half_bits(value: f32) -> u32 {
    if value.is_nan() {
        0x7fff
    } else {
        u32::from(half::f16::from_f32(value).to_bits())
    }
}

/// Splits a register into its elements, lowest first.
fn spread(word: u32, bits: u32, out: &mut [u32]) {
    let mask = if bits >= 32 {
        u32::MAX
    } else {
        (1 << bits) - 1
    };
    for (i, x) in out.iter_mut().enumerate() {
        *x = word.checked_shr(i as u32 * bits).unwrap_or(0) & mask;
    }
}

/// The value of an integer element.
#[must_use]
pub fn signed(element: Element, raw: u32) -> i32 {
    match element {
        Element::Int { signed: true, bits } => {
            let up = 32 - bits.clamp(1, 32);
            ((raw << up) as i32) >> up
        }
        _ => raw as i32,
    }
}

#[cfg(test)]
#[path = "mma_tests.rs"]
mod tests;
