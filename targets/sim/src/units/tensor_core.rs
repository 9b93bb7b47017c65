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
const ZERO_EXPONENT: i16 = -8192;

/// Rows of decoded elements, each row `k` long: A by rows, B by columns.
#[derive(Debug, Clone)]
pub struct Tile {
    k: usize,
    significand: Vec<i16>,
    exponent: Vec<i16>,
    fraction_bits: u32,
    /// The elements, those of a row divided by the power of two of its largest exponent.
    reduced: Vec<f32>,
    /// The largest exponent of each row.
    top: Vec<i32>,
    /// The values of rows that hold an infinity or a NaN.
    special: Vec<bool>,
    value: Vec<f32>,
}

impl Tile {
    /// Decodes `rows * k` elements of `format`, row after row. Significands have 11 bits at most (TF32, binary16).
    #[must_use]
    pub fn decode(format: Format, k: usize, bits: &[u32]) -> Self {
        let k = k.max(1);
        let mut tile = Self {
            k,
            significand: Vec::with_capacity(bits.len()),
            exponent: Vec::with_capacity(bits.len()),
            fraction_bits: format.fraction_bits(),
            reduced: Vec::with_capacity(bits.len()),
            top: Vec::with_capacity(bits.len() / k),
            special: vec![false; bits.len() / k],
            value: Vec::new(),
        };
        let decoder = format.decoder();
        for (i, &b) in bits.iter().enumerate() {
            let (s, e) = match decoder.decode(u64::from(b)) {
                Value::Finite { mantissa: 0, .. } => (0, ZERO_EXPONENT),
                Value::Finite {
                    negative,
                    mantissa,
                    exponent,
                } => {
                    let s = mantissa as i16;
                    let e = exponent + tile.fraction_bits as i32;
                    (if negative { -s } else { s }, e as i16)
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
        tile.reduce();
        if tile.special.contains(&true) {
            tile.value = bits
                .iter()
                .map(|&b| format.to_f64(u64::from(b)) as f32)
                .collect();
        }
        tile
    }

    /// Fills [`Self::reduced`]. What is clamped is so small that it counts for nothing in [`reduced_dot`].
    fn reduce(&mut self) {
        let fraction_bits = self.fraction_bits as i32;
        let rows = (self.significand.chunks(self.k)).zip(self.exponent.chunks(self.k));
        for (significands, exponents) in rows {
            let top = exponents.iter().copied().fold(i16::MIN, i16::max).into();
            let elements = significands.iter().zip(exponents);
            let scale = |e: i16| power_of_two(i32::from(e) - top - fraction_bits);
            self.reduced
                .extend(elements.map(|(&s, &e)| f32::from(s) * scale(e)));
            self.top.push(top);
        }
    }

    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.special.len()
    }

    fn row(&self, i: usize) -> Row<'_> {
        let r = i * self.k..(i + 1) * self.k;
        Row {
            significand: &self.significand[r.clone()],
            exponent: &self.exponent[r.clone()],
            reduced: &self.reduced[r],
            top: self.top[i],
        }
    }

    /// One element as a float, infinities and NaNs included.
    fn float(&self, row: usize, k: usize) -> f64 {
        let i = row * self.k + k;
        if self.value.is_empty() {
            let exponent = i32::from(self.exponent[i]).max(-1000);
            let scale = f64::powi(2.0, exponent - self.fraction_bits as i32);
            f64::from(self.significand[i]) * scale
        } else {
            f64::from(self.value[i])
        }
    }
}

/// A row of a [`Tile`], or a part of one.
#[derive(Clone, Copy)]
struct Row<'a> {
    significand: &'a [i16],
    exponent: &'a [i16],
    reduced: &'a [f32],
    top: i32,
}

impl<'a> Row<'a> {
    /// The elements from `first`, at most so many.
    fn chunk(self, first: usize, most: usize) -> Self {
        let r = first..(first + most).min(self.exponent.len());
        Self {
            significand: &self.significand[r.clone()],
            exponent: &self.exponent[r.clone()],
            reduced: &self.reduced[r],
            top: self.top,
        }
    }
}

/// `2^exponent`, clamped to normal numbers.
#[inline]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent.clamp(-126, 127) + 127) as u32) << 23)
}

/// `c = a * b^T + c` for `a` of m rows, `b` of n rows (the columns of B) and row-major `c` of m * n,
/// which holds binary32 values (binary16 accumulators widened).
pub fn multiply_add(model: &Model, a: &Tile, b: &Tile, c: &mut [f32]) {
    let n = b.rows();
    let shift = model.fraction_bits as i32 - (a.fraction_bits + b.fraction_bits) as i32;
    let chunk = model.chunk.max(1);
    for (i, row) in c.chunks_mut(n.max(1)).enumerate().take(a.rows()) {
        let row_a = a.row(i);
        for (j, out) in row.iter_mut().enumerate() {
            if a.special[i] || b.special[j] || !out.is_finite() {
                *out = special_dot(model, a, b, i, j, *out);
                continue;
            }
            let row_b = b.row(j);
            for first in (0..a.k.min(b.k)).step_by(chunk) {
                let (a, b) = (row_a.chunk(first, chunk), row_b.chunk(first, chunk));
                *out = chunk_dot(model, shift, a, b, *out);
            }
        }
    }
}

/// One chunk: align, truncate, sum, round.
fn chunk_dot(model: &Model, shift: i32, a: Row<'_>, b: Row<'_>, c: f32) -> f32 {
    if c.is_infinite() {
        return c;
    }
    let (sc, ec) = split_f32(c);
    let pairs = a.exponent.iter().zip(b.exponent);
    let top = pairs.map(|(x, y)| x + y).fold(i16::MIN, i16::max);
    let top = i32::from(top).max(ec);
    if top <= i32::from(ZERO_EXPONENT / 2) {
        return 0.0;
    }
    let own = align(i64::from(sc), model.fraction_bits as i32 - 23, top - ec);
    let products = reduced_dot(model, a, b, top).unwrap_or_else(|| aligned_dot(shift, a, b, top));
    round_sum(model, own + products, top)
}

/// The products of a chunk aligned to `top`, cut, and summed.
fn aligned_dot(shift: i32, a: Row<'_>, b: Row<'_>, top: i32) -> i64 {
    let significands = a.significand.iter().zip(b.significand);
    let exponents = a.exponent.iter().zip(b.exponent);
    let terms = significands.zip(exponents).map(|((&x, &y), (&ex, &ey))| {
        align(i64::from(x) * i64::from(y), shift, top - i32::from(ex + ey))
    });
    terms.sum()
}

/// [`aligned_dot`] in floats, where all of it is exact: a product has 22 bits, its scale is a power of two, what
/// is less than 1 then is cut to 0 whether or not it underflows, and eight integers below `2^27` have a sum
/// below `2^31`. `None` where `top` is too far below the rows' largest exponents.
fn reduced_dot(model: &Model, a: Row<'_>, b: Row<'_>, top: i32) -> Option<i64> {
    let below = a.top + b.top - top;
    if model.fraction_bits > 25 || a.reduced.len() > 64 || below > 60 {
        return None;
    }
    let scale = power_of_two(model.fraction_bits as i32 + below);
    let ((a, rest_a), (b, rest_b)) = (a.reduced.as_chunks::<8>(), b.reduced.as_chunks::<8>());
    let mut sums = [0_i32; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (x * y * scale) as i32;
        }
    }
    for (sum, (x, y)) in sums.iter_mut().zip(rest_a.iter().zip(rest_b)) {
        *sum += (x * y * scale) as i32;
    }
    Some(sums.into_iter().map(i64::from).sum())
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
        return (0, 2 * i32::from(ZERO_EXPONENT));
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
#[path = "tensor_core_tests.rs"]
mod tests;
