//! `wmma`: fragments of whole matrices and their product (PTX ISA 9.7.14.4).
//!
//! The ISA leaves open which thread holds which element. Here it is as in `mma.sync` (see
//! [`super::mma`]), tile by tile, as on `sm_80` and later for m16n16; binary16 fragments of A and B
//! have eight registers of which the later repeat the first, so that element-wise code stays right.

use super::float::Format;
use super::mma::{Accumulator, BitOp, Element, Warp, half_bits, signed};
use super::tensor_core::{Generation, Model, Tile, multiply_add, multiply_add_int};
use crate::fault::Fault;

/// Which matrix a fragment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A, m x k.
    A,
    /// B, k x n.
    B,
    /// C or D, m x n.
    Accumulator,
}

/// A fragment: what a warp holds of one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Which matrix.
    pub part: Part,
    /// m, n and k of the product.
    pub shape: [usize; 3],
    /// Bits of an element.
    pub bits: u32,
    /// Registers a thread.
    pub registers: usize,
}

impl Fragment {
    /// The fragment of A or B with these elements.
    #[must_use]
    pub fn operand(part: Part, shape: [usize; 3], element: Element) -> Self {
        let bits = element.bits();
        let mut out = Self {
            part,
            shape,
            bits,
            registers: 0,
        };
        let [rows, columns] = out.dims();
        let word = bits.max(32) as usize;
        // Volta's fragments held binary16 elements twice, and their size stayed.
        out.registers = match element {
            Element::Float(Format::F16) => 8,
            _ => (rows * columns * bits as usize / 32).div_ceil(word),
        };
        out
    }

    /// The fragment of C or D.
    #[must_use]
    pub fn accumulator(shape: [usize; 3], kind: Accumulator) -> Self {
        let values = shape[0] * shape[1] / 32;
        let (bits, registers) = match kind {
            Accumulator::F16 => (16, values / 2),
            Accumulator::F32 | Accumulator::S32 => (32, values),
            Accumulator::F64 => (64, values),
        };
        Self {
            part: Part::Accumulator,
            shape,
            bits,
            registers,
        }
    }

    /// Rows and columns of the matrix.
    #[must_use]
    pub const fn dims(&self) -> [usize; 2] {
        let [m, n, k] = self.shape;
        match self.part {
            Part::A => [m, k],
            Part::B => [k, n],
            Part::Accumulator => [m, n],
        }
    }

    /// Elements that a register holds.
    #[must_use]
    pub const fn per(&self) -> usize {
        if self.bits >= 32 {
            1
        } else {
            (32 / self.bits) as usize
        }
    }

    /// Row and column of element `e` of register `r` of `lane`.
    #[must_use]
    pub const fn position(&self, lane: usize, r: usize, e: usize) -> (usize, usize) {
        let [m, _, k] = self.shape;
        let (group, t, per) = (lane / 4, lane % 4, self.per());
        match self.part {
            Part::A => {
                let tiles = m / 8;
                (group + 8 * (r % tiles), r / tiles * 4 * per + t * per + e)
            }
            Part::B => {
                let along = if k > 4 * per { k / (4 * per) } else { 1 };
                (r % along * 4 * per + t * per + e, group + 8 * (r / along))
            }
            Part::Accumulator => {
                let (i, tiles) = (r * per + e, m / 8);
                (
                    group + 8 * (i / 2 % tiles),
                    i / 2 / tiles * 8 + 2 * t + i % 2,
                )
            }
        }
    }

    /// Registers that differ.
    const fn distinct(&self) -> usize {
        let [rows, columns] = self.dims();
        let all = rows * columns / 32 / self.per();
        if all == 0 { 1 } else { all }
    }

    /// The matrix's elements, row by row.
    #[must_use]
    pub fn gather(&self, registers: &[Warp<u64>]) -> Vec<u64> {
        let [rows, columns] = self.dims();
        let mut out = vec![0; rows * columns];
        for (r, register) in registers.iter().enumerate().take(self.distinct()) {
            for (lane, &word) in register.iter().enumerate() {
                for e in 0..self.per() {
                    let (row, column) = self.position(lane, r, e);
                    out[row * columns + column] = word >> (e as u32 * self.bits) & self.mask();
                }
            }
        }
        out
    }

    /// Registers that hold these elements, given row by row.
    #[must_use]
    pub fn scatter(&self, elements: &[u64]) -> Vec<Warp<u64>> {
        let columns = self.dims()[1];
        let word = |lane: usize, r: usize| {
            (0..self.per()).fold(0, |w, e| {
                let (row, column) = self.position(lane, r, e);
                w | elements[row * columns + column] << (e as u32 * self.bits)
            })
        };
        (0..self.registers)
            .map(|r| std::array::from_fn(|lane| word(lane, r % self.distinct())))
            .collect()
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Bytes of a line in memory: a row, or a column if `by_column`.
    #[must_use]
    pub const fn line_bytes(&self, by_column: bool) -> usize {
        let [rows, columns] = self.dims();
        let elements = if by_column { rows } else { columns };
        elements * self.bits as usize / 8
    }

    /// Elements, row by row, from lines of memory.
    #[must_use]
    pub fn unpack(&self, bytes: &[u8], by_column: bool) -> Vec<u64> {
        let [rows, columns] = self.dims();
        let element = |row: usize, column: usize| {
            let i = if by_column {
                column * rows + row
            } else {
                row * columns + column
            };
            let bit = i * self.bits as usize;
            let word =
                (bytes[bit / 8..].iter().take(8).rev()).fold(0, |v, b| v << 8 | u64::from(*b));
            word >> (bit % 8) & self.mask()
        };
        (0..rows * columns)
            .map(|i| element(i / columns, i % columns))
            .collect()
    }

    /// Lines of memory from elements; only for elements of whole bytes.
    #[must_use]
    pub fn pack(&self, elements: &[u64], by_column: bool) -> Vec<u8> {
        let [rows, columns] = self.dims();
        let size = self.bits as usize / 8;
        let mut out = Vec::with_capacity(rows * columns * size);
        for i in 0..rows * columns {
            let at = if by_column {
                i % rows * columns + i / rows
            } else {
                i
            };
            out.extend_from_slice(&elements[at].to_le_bytes()[..size]);
        }
        out
    }
}

/// `wmma.mma`: D = A B + C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wmma {
    /// m, n and k.
    pub shape: [usize; 3],
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

impl Wmma {
    /// Checks that PTX defines this combination of shape and types.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for any other.
    pub fn check(&self) -> Result<(), Fault> {
        use Accumulator as Acc;
        let wide = matches!(self.shape, [16, 16, 16] | [32, 8, 16] | [8, 32, 16]);
        let both = |acc| self.c == acc && self.d == acc;
        let ok = match (self.a, self.b) {
            (Element::Float(Format::F16), Element::Float(Format::F16)) => {
                let half = |t| matches!(t, Acc::F16 | Acc::F32);
                wide && half(self.c) && half(self.d)
            }
            (Element::Float(Format::Bf16), Element::Float(Format::Bf16)) => wide && both(Acc::F32),
            (Element::Float(Format::Tf32), Element::Float(Format::Tf32)) => {
                self.shape == [16, 16, 8] && both(Acc::F32)
            }
            (Element::Float(Format::F64), Element::Float(Format::F64)) => {
                self.shape == [8, 8, 4] && both(Acc::F64)
            }
            (Element::Int { bits: 8, .. }, b) => wide && self.a == b && both(Acc::S32),
            (Element::Int { bits: 4, .. }, b) => {
                self.shape == [8, 8, 32] && self.a == b && both(Acc::S32)
            }
            (Element::Bit, Element::Bit) => {
                self.shape == [8, 8, 128] && both(Acc::S32) && self.bit_op.is_some()
            }
            _ => false,
        };
        if ok {
            return Ok(());
        }
        let [m, n, k] = self.shape;
        Err(Fault::Unsupported(format!(
            "wmma.m{m}n{n}k{k} of {:?} by {:?} into {:?}",
            self.a, self.b, self.d
        )))
    }

    /// Whether PTX defines a product of this shape with such elements of A and B.
    #[must_use]
    pub fn defines_operand(shape: [usize; 3], element: Element) -> bool {
        let acc = match element {
            Element::Float(Format::F64) => Accumulator::F64,
            Element::Float(_) => Accumulator::F32,
            _ => Accumulator::S32,
        };
        let product = Self {
            shape,
            a: element,
            b: element,
            c: acc,
            d: acc,
            satfinite: false,
            bit_op: Some(BitOp::Xor),
        };
        product.check().is_ok()
    }

    /// Whether PTX defines a product of this shape with such an accumulator.
    #[must_use]
    pub fn defines_accumulator(shape: [usize; 3], kind: Accumulator) -> bool {
        let int = |bits| Element::Int { signed: true, bits };
        let elements: &[Element] = match kind {
            Accumulator::F16 => &[Element::Float(Format::F16)],
            Accumulator::F32 => &[Element::Float(Format::F16), Element::Float(Format::Tf32)],
            Accumulator::F64 => &[Element::Float(Format::F64)],
            Accumulator::S32 => &[int(8), int(4), Element::Bit],
        };
        elements.iter().any(|e| Self::defines_operand(shape, *e))
    }

    /// Fragments of A, B, C and D.
    #[must_use]
    pub fn fragments(&self) -> [Fragment; 4] {
        [
            Fragment::operand(Part::A, self.shape, self.a),
            Fragment::operand(Part::B, self.shape, self.b),
            Fragment::accumulator(self.shape, self.c),
            Fragment::accumulator(self.shape, self.d),
        ]
    }

    /// Executes and returns the registers of D.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] if [`Wmma::check`] fails, [`Fault::Invalid`] for a wrong number of registers.
    pub fn execute(
        &self,
        generation: Generation,
        a: &[Warp<u64>],
        b: &[Warp<u64>],
        c: &[Warp<u64>],
    ) -> Result<Vec<Warp<u64>>, Fault> {
        self.check()?;
        let [fa, fb, fc, fd] = self.fragments();
        let wanted = [fa.registers, fb.registers, fc.registers];
        if [a.len(), b.len(), c.len()] != wanted {
            return Err(Fault::Invalid(format!(
                "wmma.mma takes {wanted:?} registers of A, B and C"
            )));
        }
        let [_, n, k] = self.shape;
        let (a, b, c) = (fa.gather(a), fb.gather(b), fc.gather(c));
        // B column by column.
        let b: Vec<u64> = (0..n * k).map(|i| b[i % k * n + i / k]).collect();
        let d = match (self.a, self.b) {
            (Element::Float(Format::F64), _) => self.doubles(&a, &b, &c),
            (Element::Float(format), _) => self.floats(generation, format, (&a, &b), &c),
            _ => self.integers(&a, &b, &c),
        };
        Ok(fd.scatter(&d))
    }

    fn floats(
        &self,
        generation: Generation,
        format: Format,
        (a, b): (&[u64], &[u64]),
        c: &[u64],
    ) -> Vec<u64> {
        let k = self.shape[2];
        let narrow = |x: &[u64]| x.iter().map(|v| *v as u32).collect::<Vec<_>>();
        let (a, b) = (
            Tile::decode(format, k, &narrow(a)),
            Tile::decode(format, k, &narrow(b)),
        );
        let widen = |v: &u64| match self.c {
            Accumulator::F16 => Format::F16.to_f64(*v) as f32,
            _ => f32::from_bits(*v as u32),
        };
        let mut acc: Vec<f32> = c.iter().map(widen).collect();
        let half = self.d == Accumulator::F16;
        multiply_add(&Model::mma(generation, format, half), &a, &b, &mut acc);
        let code = |x: f32| if half { half_bits(x) } else { x.to_bits() };
        acc.into_iter().map(|x| u64::from(code(x))).collect()
    }

    fn doubles(&self, a: &[u64], b: &[u64], c: &[u64]) -> Vec<u64> {
        let [_, n, k] = self.shape;
        let dot = |(i, c): (usize, &u64)| {
            let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
            let sum = row
                .iter()
                .zip(column)
                .fold(f64::from_bits(*c), |s, (x, y)| {
                    f64::from_bits(*x).mul_add(f64::from_bits(*y), s)
                });
            sum.to_bits()
        };
        c.iter().enumerate().map(dot).collect()
    }

    fn integers(&self, a: &[u64], b: &[u64], c: &[u64]) -> Vec<u64> {
        let [_, n, k] = self.shape;
        let values =
            |e, raw: &[u64]| -> Vec<i32> { raw.iter().map(|x| signed(e, *x as u32)).collect() };
        let (a, b) = (values(self.a, a), values(self.b, b));
        let mut acc: Vec<i32> = c.iter().map(|x| *x as i32).collect();
        if self.bit_op == Some(BitOp::Xor) && self.a == Element::Bit {
            for (i, out) in acc.iter_mut().enumerate() {
                let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
                let ones: i32 = row.iter().zip(column).map(|(x, y)| x ^ y).sum();
                *out = out.wrapping_add(ones);
            }
        } else {
            multiply_add_int(k, &a, &b, &mut acc, self.satfinite);
        }
        acc.into_iter().map(|x| u64::from(x as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Wmma> {
        use Accumulator as Acc;
        let float = Element::Float;
        let int = |bits| Element::Int { signed: true, bits };
        let mut all = Vec::new();
        for shape in [[16, 16, 16], [32, 8, 16], [8, 32, 16]] {
            for (e, c, d) in [
                (float(Format::F16), Acc::F16, Acc::F16),
                (float(Format::F16), Acc::F32, Acc::F16),
                (float(Format::Bf16), Acc::F32, Acc::F32),
                (int(8), Acc::S32, Acc::S32),
            ] {
                all.push((shape, e, c, d));
            }
        }
        all.push(([16, 16, 8], float(Format::Tf32), Acc::F32, Acc::F32));
        all.push(([8, 8, 4], float(Format::F64), Acc::F64, Acc::F64));
        all.push(([8, 8, 32], int(4), Acc::S32, Acc::S32));
        all.push(([8, 8, 128], Element::Bit, Acc::S32, Acc::S32));
        let wmma = |(shape, e, c, d)| Wmma {
            shape,
            a: e,
            b: e,
            c,
            d,
            satfinite: false,
            bit_op: Some(BitOp::And),
        };
        all.into_iter().map(wmma).collect()
    }

    /// Numbers of registers from the table of the PTX ISA (9.7.14.4.1).
    #[test]
    fn registers_are_those_of_the_isa() {
        let registers: Vec<[usize; 4]> = (all().iter())
            .map(|w| w.fragments().map(|f| f.registers))
            .collect();
        let wide = |s: [[usize; 4]; 4]| s;
        let want = [
            wide([[8, 8, 4, 4], [8, 8, 8, 4], [4, 4, 8, 8], [2, 2, 8, 8]]),
            wide([[8, 8, 4, 4], [8, 8, 8, 4], [8, 2, 8, 8], [4, 1, 8, 8]]),
            wide([[8, 8, 4, 4], [8, 8, 8, 4], [2, 8, 8, 8], [1, 4, 8, 8]]),
            wide([[4, 4, 8, 8], [1, 1, 2, 2], [1, 1, 2, 2], [1, 1, 2, 2]]),
        ];
        assert_eq!(registers, want.concat());
    }

    #[test]
    fn fragments_hold_each_element_and_lines_undo_each_other() {
        for w in all() {
            w.check().unwrap();
            for f in w.fragments() {
                let [rows, columns] = f.dims();
                let elements: Vec<u64> = (0..rows * columns)
                    .map(|i| ((i as u64 * 2_654_435_761) >> 7) & f.mask())
                    .collect();
                let registers = f.scatter(&elements);
                assert_eq!(registers.len(), f.registers);
                assert_eq!(f.gather(&registers), elements, "{f:?}");
                if f.bits >= 8 {
                    for by_column in [false, true] {
                        let lines = f.pack(&elements, by_column);
                        assert_eq!(f.unpack(&lines, by_column), elements);
                        assert_eq!(lines.len() % f.line_bytes(by_column), 0);
                    }
                }
            }
        }
    }

    #[test]
    fn products_match_a_scalar_loop() {
        for w in all() {
            let [fa, fb, fc, fd] = w.fragments();
            let [m, n, k] = w.shape;
            let value = |i: usize, j: usize| ((i * 5 + j * 3) % 4) as f64 - 1.0;
            let code = |e: Element, x: f64| match e {
                Element::Float(f) => f.from_f64(x, super::super::float::Round::Nearest, false),
                Element::Bit => u64::from(x > 0.0),
                Element::Int { bits, .. } => x as i64 as u64 & ((1 << bits) - 1),
            };
            let back = |e: Element, x: f64| {
                if e == Element::Bit {
                    f64::from(x > 0.0)
                } else {
                    x
                }
            };
            let acc = |t: Accumulator, x: f64| match t {
                Accumulator::F16 => {
                    Format::F16.from_f64(x, super::super::float::Round::Nearest, false)
                }
                Accumulator::F32 => u64::from((x as f32).to_bits()),
                Accumulator::F64 => x.to_bits(),
                Accumulator::S32 => u64::from(x as i32 as u32),
            };
            let a: Vec<u64> = (0..m * k).map(|i| code(w.a, value(i / k, i % k))).collect();
            let b: Vec<u64> = (0..k * n)
                .map(|i| code(w.b, value(i / n, i % n + 7)))
                .collect();
            let c: Vec<u64> = (0..m * n).map(|i| acc(w.c, (i % 5) as f64)).collect();
            let d = w
                .execute(
                    Generation::Hopper,
                    &fa.scatter(&a),
                    &fb.scatter(&b),
                    &fc.scatter(&c),
                )
                .unwrap();
            let d = fd.gather(&d);
            for (i, got) in d.iter().enumerate() {
                let dot: f64 = (0..k)
                    .map(|j| back(w.a, value(i / n, j)) * back(w.b, value(j, i % n + 7)))
                    .sum();
                assert_eq!(*got, acc(w.d, dot + (i % 5) as f64), "{w:?} {i}");
            }
        }
    }

    #[test]
    fn undefined_forms_are_refused() {
        let mut w = all()[0];
        w.shape = [16, 16, 8];
        assert!(matches!(w.check(), Err(Fault::Unsupported(_))));
        w.shape = [16, 16, 16];
        assert!(w.execute(Generation::Hopper, &[], &[], &[]).is_err());
    }
}
