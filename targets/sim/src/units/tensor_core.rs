//! The arithmetic of tensor cores: what one dot product with accumulator rounds, and where.
//!
//! NVIDIA documents only that "accumulation is at least single precision" (PTX ISA 9.7.14). The model
//! here is the one that published measurements agree on, and it is checked against an H200 in the
//! differential tests: products are exact, all products of one chunk and the accumulator are aligned
//! to the largest exponent among them, each is truncated towards zero to a fixed number of fraction
//! bits, the sum of those integers is exact, and the result is truncated to binary32 (or rounded to
//! nearest even for binary16). The exponent of a product is the sum of its factors' exponents,
//! not normalised.
//!
//! Sources: Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS
//! 7:e330 (2021); Khattak, Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv:2512.07004; Xie et al.,
//! "MMA-Sim", arXiv:2511.10909. The narrow FP8 accumulation of Hopper's wgmma is also described in
//! DeepSeek-V3, arXiv:2412.19437, 3.3.2.

use super::float::{Format, Round, Value};

/// GPU generations whose tensor cores differ in arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Generation {
    /// sm_80, sm_86.
    Ampere,
    /// sm_89.
    Ada,
    /// sm_90.
    Hopper,
    /// sm_100 and later.
    Blackwell,
}

impl Generation {
    /// The generation of a `.target`.
    #[must_use]
    pub fn of_target(target: &str) -> Self {
        if target.starts_with("sm_89") {
            Self::Ada
        } else if target.starts_with("sm_8") {
            Self::Ampere
        } else if target.starts_with("sm_1") {
            Self::Blackwell
        } else {
            Self::Hopper
        }
    }
}

/// How the result of a chunk is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// Truncated to binary32.
    F32,
    /// Truncated to an 8-bit exponent and 13 fraction bits, kept in binary32.
    E8m13,
    /// Rounded to nearest even binary16.
    F16,
}

/// The arithmetic of one matrix instruction; change a field to study another accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Model {
    /// Fraction bits kept below the largest exponent when terms are aligned.
    pub fraction_bits: u32,
    /// Products that are summed at once; longer dot products run chunk after chunk.
    pub chunk: usize,
    /// Rounding of each chunk's result.
    pub output: Output,
}

impl Model {
    /// `mma.sync`, for elements of `format` and binary16 or binary32 results. Hopper has no FP8
    /// `mma.sync` of its own: [`super::mma`] widens such operands to binary16 first.
    #[must_use]
    pub fn mma(generation: Generation, format: Format, half_output: bool) -> Self {
        let narrow = generation == Generation::Ada && is_fp8(format);
        let chunk_bits = match generation {
            Generation::Ampere | Generation::Ada => 128,
            Generation::Hopper | Generation::Blackwell => 256,
        };
        let fraction_bits = match generation {
            _ if narrow => 13,
            Generation::Ampere | Generation::Ada => 24,
            Generation::Hopper | Generation::Blackwell => 25,
        };
        Self {
            fraction_bits,
            chunk: (chunk_bits / format.bits().next_power_of_two()) as usize,
            output: output(half_output, narrow),
        }
    }

    /// `wgmma.mma_async`.
    #[must_use]
    pub fn wgmma(format: Format, half_output: bool) -> Self {
        let narrow = is_fp8(format);
        Self {
            fraction_bits: if narrow { 13 } else { 25 },
            chunk: 256 / format.bits() as usize,
            output: output(half_output, narrow),
        }
    }

    /// `tcgen05.mma` without block scaling.
    #[must_use]
    pub fn tcgen05(format: Format, half_output: bool) -> Self {
        Self::mma(Generation::Blackwell, format, half_output)
    }
}

const fn is_fp8(format: Format) -> bool {
    matches!(format, Format::E4m3 | Format::E5m2)
}

const fn output(half: bool, narrow: bool) -> Output {
    match (half, narrow) {
        (true, _) => Output::F16,
        (false, true) => Output::E8m13,
        (false, false) => Output::F32,
    }
}

/// The exponent of a zero: below that of every product, so that it never sets the alignment.
const ZERO_EXPONENT: i32 = -100_000;

/// Rows of decoded elements, each row `k` long: A by rows, B by columns.
#[derive(Debug, Clone)]
pub struct Tile {
    k: usize,
    significand: Vec<i32>,
    exponent: Vec<i32>,
    fraction_bits: u32,
    /// The values of rows that hold an infinity or a NaN.
    special: Vec<bool>,
    value: Vec<f32>,
}

impl Tile {
    /// Decodes `rows * k` elements of `format`, row after row.
    #[must_use]
    pub fn decode(format: Format, k: usize, bits: &[u32]) -> Self {
        let k = k.max(1);
        let mut tile = Self {
            k,
            significand: Vec::with_capacity(bits.len()),
            exponent: Vec::with_capacity(bits.len()),
            fraction_bits: format.fraction_bits(),
            special: vec![false; bits.len() / k],
            value: Vec::new(),
        };
        for (i, &b) in bits.iter().enumerate() {
            let (s, e) = match format.decode(u64::from(b)) {
                Value::Finite { mantissa: 0, .. } => (0, ZERO_EXPONENT),
                Value::Finite {
                    negative,
                    mantissa,
                    exponent,
                } => {
                    let s = mantissa as i32;
                    let e = exponent + tile.fraction_bits as i32;
                    (if negative { -s } else { s }, e)
                }
                Value::Nan | Value::Inf(_) => {
                    if let Some(flag) = tile.special.get_mut(i / k) {
                        *flag = true;
                    }
                    (0, ZERO_EXPONENT)
                }
            };
            tile.significand.push(s);
            tile.exponent.push(e);
        }
        if tile.special.contains(&true) {
            tile.value = bits
                .iter()
                .map(|&b| format.to_f64(u64::from(b)) as f32)
                .collect();
        }
        tile
    }

    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.special.len()
    }

    fn row(&self, i: usize) -> (&[i32], &[i32]) {
        let r = i * self.k..(i + 1) * self.k;
        (&self.significand[r.clone()], &self.exponent[r])
    }

    /// One element as a float, infinities and NaNs included.
    fn float(&self, row: usize, k: usize) -> f64 {
        let i = row * self.k + k;
        if self.value.is_empty() {
            let scale = f64::powi(2.0, self.exponent[i].max(-1000) - self.fraction_bits as i32);
            f64::from(self.significand[i]) * scale
        } else {
            f64::from(self.value[i])
        }
    }
}

/// `c = a * b^T + c` for `a` of m rows, `b` of n rows (the columns of B) and row-major `c` of m * n,
/// which holds binary32 values (binary16 accumulators widened).
pub fn multiply_add(model: &Model, a: &Tile, b: &Tile, c: &mut [f32]) {
    let n = b.rows();
    let shift = model.fraction_bits as i32 - (a.fraction_bits + b.fraction_bits) as i32;
    for (i, row) in c.chunks_mut(n.max(1)).enumerate().take(a.rows()) {
        let (sa, ea) = a.row(i);
        for (j, out) in row.iter_mut().enumerate() {
            if a.special[i] || b.special[j] || !out.is_finite() {
                *out = special_dot(model, a, b, i, j, *out);
                continue;
            }
            let (sb, eb) = b.row(j);
            for ((sa, ea), (sb, eb)) in sa
                .chunks(model.chunk.max(1))
                .zip(ea.chunks(model.chunk.max(1)))
                .zip(
                    sb.chunks(model.chunk.max(1))
                        .zip(eb.chunks(model.chunk.max(1))),
                )
            {
                *out = chunk_dot(model, shift, (sa, ea), (sb, eb), *out);
            }
        }
    }
}

/// One chunk: align, truncate, sum, round.
fn chunk_dot(
    model: &Model,
    shift: i32,
    (sa, ea): (&[i32], &[i32]),
    (sb, eb): (&[i32], &[i32]),
    c: f32,
) -> f32 {
    if c.is_infinite() {
        return c;
    }
    let (sc, ec) = split_f32(c);
    let top = ea.iter().zip(eb).map(|(x, y)| x + y).fold(ec, i32::max);
    if top <= ZERO_EXPONENT / 2 {
        return 0.0;
    }
    let mut sum = align(i64::from(sc), model.fraction_bits as i32 - 23, top - ec);
    for ((x, y), (ex, ey)) in sa.iter().zip(sb).zip(ea.iter().zip(eb)) {
        sum += align(i64::from(*x) * i64::from(*y), shift, top - (ex + ey));
    }
    round_sum(model, sum, top)
}

/// `x * 2^(up - down)`, truncated towards zero.
#[inline]
fn align(x: i64, up: i32, down: i32) -> i64 {
    let net = down - up;
    if net <= 0 {
        return x << (-net).min(40);
    }
    let net = net.min(62) as u32;
    // Truncation of a negative number: add 2^net - 1 before the arithmetic shift.
    (x + ((x >> 63) & ((1 << net) - 1))) >> net
}

/// Significand with 23 fraction bits and exponent of a finite binary32.
fn split_f32(x: f32) -> (i32, i32) {
    let bits = x.to_bits();
    let field = ((bits >> 23) & 0xff) as i32;
    let fraction = (bits & 0x7f_ffff) as i32;
    if field == 0 && fraction == 0 {
        return (0, ZERO_EXPONENT * 2);
    }
    let s = if field == 0 {
        fraction
    } else {
        fraction | 1 << 23
    };
    (
        if x.is_sign_negative() { -s } else { s },
        field.max(1) - 127,
    )
}

/// `sum * 2^(top - fraction_bits)` in the output format, as binary32.
fn round_sum(model: &Model, sum: i64, top: i32) -> f32 {
    let exponent = top - model.fraction_bits as i32;
    let value = Value::Finite {
        negative: sum < 0,
        mantissa: sum.unsigned_abs(),
        exponent,
    };
    match model.output {
        Output::F16 => {
            let h = Format::F16.encode(value, Round::Nearest, false);
            Format::F16.to_f64(h) as f32
        }
        Output::F32 => truncate(sum, exponent, 23),
        Output::E8m13 => truncate(sum, exponent, 13),
    }
}

/// Truncates `sum * 2^exponent` to `fraction_bits` of fraction in the range of binary32; what leaves
/// the range is infinite.
fn truncate(sum: i64, exponent: i32, fraction_bits: i32) -> f32 {
    if sum == 0 {
        return 0.0;
    }
    let sign = if sum < 0 { 0x8000_0000u32 } else { 0 };
    let mag = sum.unsigned_abs();
    let lead = 63 - mag.leading_zeros() as i32 + exponent;
    if lead > 127 {
        return f32::from_bits(sign | 0x7f80_0000);
    }
    let quantum = lead.max(-126) - fraction_bits;
    let drop = quantum - exponent;
    let kept = match drop {
        ..=0 => mag << (-drop).min(40),
        1..=63 => mag >> drop,
        _ => 0,
    } << (23 - fraction_bits);
    if kept == 0 {
        // Measured on an H200: a negative sum that truncates to nothing is +0.
        return 0.0;
    }
    let code = if kept >> 23 == 0 {
        kept as u32
    } else {
        (((lead + 127) as u32) << 23) | (kept as u32 & 0x7f_ffff)
    };
    f32::from_bits(sign | code)
}

/// Dot products that meet an infinity or a NaN: the IEEE result of the real sum.
fn special_dot(model: &Model, a: &Tile, b: &Tile, i: usize, j: usize, c: f32) -> f32 {
    let sum: f64 = (0..a.k.min(b.k))
        .map(|k| a.float(i, k) * b.float(j, k))
        .fold(f64::from(c), |s, p| s + p);
    if sum.is_nan() {
        return f32::from_bits(0x7fff_ffff);
    }
    match model.output {
        Output::F16 => Format::F16.to_f64(Format::F16.from_f64(sum, Round::Nearest, false)) as f32,
        _ => sum as f32,
    }
}

/// Integer dot products: `c = a * b^T + c` in 32 bits, wrapping or with `satfinite` clamped.
pub fn multiply_add_int(k: usize, a: &[i32], b: &[i32], c: &mut [i32], satfinite: bool) {
    let k = k.max(1);
    let n = b.len() / k;
    for (row, out) in a.chunks(k).zip(c.chunks_mut(n.max(1))) {
        for (column, c) in b.chunks(k).zip(out) {
            let products = row.iter().zip(column);
            let sum: i64 = products.map(|(x, y)| i64::from(*x) * i64::from(*y)).sum();
            let sum = sum + i64::from(*c);
            *c = if satfinite {
                sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
            } else {
                sum as i32
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition in rational arithmetic over doubles: exact while exponents stay close.
    fn reference(model: &Model, a: &[f64], b: &[f64], c: f32) -> f32 {
        let exponent = |x: f64, min: i32| (x.abs().log2().floor() as i32).max(min);
        let mut terms = vec![(f64::from(c), exponent(f64::from(c), -126))];
        for (x, y) in a.iter().zip(b) {
            terms.push((x * y, exponent(*x, -14) + exponent(*y, -14)));
        }
        terms.retain(|t| t.0 != 0.0);
        let Some(top) = terms.iter().map(|t| t.1).max() else {
            return 0.0;
        };
        let unit = f64::powi(2.0, top - model.fraction_bits as i32);
        let sum: f64 = terms.iter().map(|t| (t.0 / unit).trunc()).sum::<f64>() * unit;
        match model.output {
            Output::F16 => half::f16::from_f64(sum).to_f32(),
            output => {
                let bits = if output == Output::F32 { 23 } else { 13 };
                let q = f64::powi(2.0, exponent(sum, -126) - bits);
                if sum == 0.0 {
                    0.0
                } else {
                    ((sum / q).trunc() * q) as f32
                }
            }
        }
    }

    fn tile(format: Format, values: &[f64]) -> (Tile, Vec<f64>) {
        let bits: Vec<u32> = values
            .iter()
            .map(|v| format.from_f64(*v, Round::Nearest, true) as u32)
            .collect();
        let rounded = bits.iter().map(|b| format.to_f64(u64::from(*b))).collect();
        (Tile::decode(format, values.len(), &bits), rounded)
    }

    fn one(model: &Model, format: Format, a: &[f64], b: &[f64], c: f32) -> f32 {
        let mut out = [c];
        multiply_add(model, &tile(format, a).0, &tile(format, b).0, &mut out);
        out[0]
    }

    #[test]
    fn small_terms_are_cut_not_rounded() {
        let hopper = Model::wgmma(Format::F16, false);
        let tiny = f64::powi(2.0, -13);
        // 1 + 15 * 2^-26: each term lies below the 25 fraction bits that Hopper keeps.
        let mut a = vec![tiny; 16];
        a[0] = 1.0;
        let mut b = a.clone();
        b[0] = 1.0;
        assert_eq!(one(&hopper, Format::F16, &a, &b, 0.0), 1.0);
        // 1 + 4 * 2^-25 = 1 + 2^-23 is kept by the 25 bits of Hopper and lost by Ampere's 24.
        let mut a = vec![0.0; 16];
        let mut b = vec![0.0; 16];
        (a[0], b[0]) = (1.0, 1.0);
        for k in 1..5 {
            a[k] = f64::powi(2.0, -13);
            b[k] = f64::powi(2.0, -12);
        }
        assert_eq!(one(&hopper, Format::F16, &a, &b, 0.0), 1.0 + f32::EPSILON);
        let ampere = Model::mma(Generation::Ampere, Format::F16, false);
        assert_eq!(one(&ampere, Format::F16, &a, &b, 0.0), 1.0);
    }

    #[test]
    fn fp8_wgmma_keeps_thirteen_bits() {
        let m = Model::wgmma(Format::E4m3, false);
        let mut a = vec![0.0; 32];
        a[0] = 1.0;
        let b = a.clone();
        assert_eq!(one(&m, Format::E4m3, &a, &b, f32::powi(2.0, -14)), 1.0);
        let kept = 1.0 + f32::powi(2.0, -13);
        assert_eq!(one(&m, Format::E4m3, &a, &b, f32::powi(2.0, -13)), kept);
    }

    #[test]
    fn infinities_and_nans() {
        let m = Model::wgmma(Format::F16, false);
        let f = |a: f64, b: f64, c: f32| {
            let bits = |x: f64| vec![Format::F16.from_f64(x, Round::Nearest, false) as u32];
            let mut out = [c];
            let tile = |x| Tile::decode(Format::F16, 1, &bits(x));
            multiply_add(&m, &tile(a), &tile(b), &mut out);
            out[0]
        };
        assert_eq!(f(f64::INFINITY, 1.0, 0.0), f32::INFINITY);
        assert_eq!(f(f64::INFINITY, 0.0, 0.0).to_bits(), 0x7fff_ffff);
        assert_eq!(f(1.0, 1.0, f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(f(f64::INFINITY, 1.0, f32::NEG_INFINITY).is_nan());
        assert!(f(f64::NAN, 1.0, 0.0).is_nan());
    }

    #[test]
    fn integer_saturation() {
        let mut c = [i32::MAX];
        multiply_add_int(2, &[127, 127], &[127, 127], &mut c, true);
        assert_eq!(c[0], i32::MAX);
        multiply_add_int(2, &[1, 0], &[1, 0], &mut c, false);
        assert_eq!(c[0], i32::MIN);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            a in prop::collection::vec((-2.0f64..2.0, -12i32..4), 16),
            b in prop::collection::vec((-2.0f64..2.0, -12i32..4), 16),
            c in -4.0f32..4.0,
            half: bool,
        ) {
            let scale = |v: &Vec<(f64, i32)>| v.iter().map(|(m, e)| m * f64::powi(2.0, *e)).collect::<Vec<_>>();
            for (format, model) in [
                (Format::F16, Model::wgmma(Format::F16, half)),
                (Format::E5m2, Model::wgmma(Format::E5m2, half)),
            ] {
                let (a, av) = tile(format, &scale(&a));
                let (b, bv) = tile(format, &scale(&b));
                let c = if half { half::f16::from_f32(c).to_f32() } else { c };
                let mut out = [c];
                multiply_add(&model, &a, &b, &mut out);
                prop_assert_eq!(out[0], reference(&model, &av, &bv, c));
            }
        }
    }
}
