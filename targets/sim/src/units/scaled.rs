//! `mma.sync` with block scales, and of the small floats in bytes (PTX ISA 9.7.14.3 and 9.7.14.5).
//!
//! The fragments of A, B, C and D are those of dense products of 8-bit (k32) and 4-bit (k64) elements.
//! In bytes, 6-bit elements lie in the lower bits and 4-bit ones two bits up. The scales of row `r`
//! come from lane `4 (r % 8) + 2 thread-id + r / 8`, those of column `c` from lane `4 c + thread-id`,
//! from byte `byte-id` on. Nothing here was run on a GPU by this project.

use super::float::Format;
use super::mma::{Accumulator, Element, Mma, Warp};
use super::tcgen05::{Kind, scaled_sums};
use super::tensor_core::{Generation, Model, Tile, multiply_add};
use crate::fault::Fault;

/// `mma.sync` of `.kind::f8f6f4`, `mxf8f6f4`, `mxf4` and `mxf4nvf4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScaledMma {
    /// Kind.
    pub kind: Kind,
    /// Elements of A and B.
    pub elements: [Format; 2],
    /// D and C.
    pub accumulator: Accumulator,
    /// Format of the scales.
    pub scale: Format,
    /// Elements that share a scale.
    pub block: usize,
}

/// Scales of A or B: a register of each lane, and which lanes and bytes count.
#[derive(Debug, Clone, Copy)]
pub struct Scales {
    /// `scale-a-data` or `scale-b-data`.
    pub data: Warp<u32>,
    /// `byte-id`.
    pub byte: u32,
    /// `thread-id`.
    pub thread: u32,
}

impl ScaledMma {
    /// Checks that PTX defines this combination (tables of 9.7.14.3).
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for any other.
    pub fn check(&self) -> Result<(), Fault> {
        let small = |f: &Format| {
            matches!(
                f,
                Format::E4m3 | Format::E5m2 | Format::E2m3 | Format::E3m2 | Format::E2m1
            )
        };
        let four = self.elements == [Format::E2m1; 2];
        let single = self.accumulator == Accumulator::F32;
        let scaled = (self.scale, self.block);
        let ok = match self.kind {
            Kind::F8f6f4 => {
                self.elements.iter().all(small) && (single || self.accumulator == Accumulator::F16)
            }
            Kind::Mxf8f6f4 => {
                self.elements.iter().all(small) && single && scaled == (Format::Ue8m0, 32)
            }
            Kind::Mxf4 => four && single && scaled == (Format::Ue8m0, 32),
            Kind::Mxf4nvf4 => {
                let defined = [
                    (Format::Ue8m0, 32),
                    (Format::Ue8m0, 16),
                    (Format::Ue4m3, 16),
                ];
                four && single && defined.contains(&scaled)
            }
            _ => false,
        };
        if ok {
            return Ok(());
        }
        Err(Fault::Unsupported(format!(
            "mma.sync of {:?} with {:?} and scales of {:?} for {} elements",
            self.kind, self.elements, self.scale, self.block
        )))
    }

    /// The dense shape whose fragments are used.
    #[must_use]
    pub fn shape(&self) -> Mma {
        let (k, bits) = match self.kind {
            Kind::Mxf4 | Kind::Mxf4nvf4 => (64, 4),
            _ => (32, 8),
        };
        let element = Element::Int {
            signed: false,
            bits,
        };
        Mma {
            m: 16,
            n: 8,
            k,
            a: element,
            b: element,
            c: self.accumulator,
            d: self.accumulator,
            satfinite: false,
            bit_op: None,
        }
    }

    /// Codes of the elements in their containers.
    fn codes(&self, which: usize, containers: Vec<u32>) -> Vec<u32> {
        let in_bytes = matches!(self.kind, Kind::F8f6f4 | Kind::Mxf8f6f4);
        let format = self.elements[which];
        let shift = if in_bytes && format == Format::E2m1 {
            2
        } else {
            0
        };
        let mask = (1 << format.bits()) - 1;
        containers.iter().map(|x| x >> shift & mask).collect()
    }

    /// Scales of `count` rows or columns.
    fn scales(&self, s: &Scales, count: usize, rows: bool) -> Result<Vec<f64>, Fault> {
        let blocks = self.shape().k / self.block;
        let fits = s.byte as usize + blocks <= 4 && (s.byte as usize).is_multiple_of(blocks);
        if !fits || s.thread > if rows { 1 } else { 3 } {
            return Err(Fault::Invalid(format!(
                "byte-id {} and thread-id {} of scales of {blocks} bytes",
                s.byte, s.thread
            )));
        }
        let mut out = Vec::with_capacity(count * blocks);
        for i in 0..count {
            let lane = if rows {
                4 * (i % 8) + 2 * s.thread as usize + i / 8
            } else {
                4 * i + s.thread as usize
            };
            let bytes = s.data[lane] >> (8 * s.byte);
            for j in 0..blocks {
                out.push(self.scale.to_f64(u64::from(bytes >> (8 * j) & 0xff)));
            }
        }
        Ok(out)
    }

    /// Executes and returns the registers of D.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] if [`ScaledMma::check`] fails, [`Fault::Invalid`] for a wrong number of
    /// registers, missing scales, and selectors that PTX does not define.
    pub fn execute(
        &self,
        a: &[Warp<u32>],
        b: &[Warp<u32>],
        c: &[Warp<u32>],
        scales: Option<[Scales; 2]>,
    ) -> Result<Vec<Warp<u32>>, Fault> {
        self.check()?;
        let shape = self.shape();
        let [na, nb, nc, _] = shape.registers();
        if [a.len(), b.len(), c.len()] != [na, nb, nc] {
            return Err(Fault::Invalid(format!(
                "this mma takes {na}, {nb} and {nc} registers of A, B and C"
            )));
        }
        let (a, b) = (
            self.codes(0, shape.gather_a(a)),
            self.codes(1, shape.gather_b(b)),
        );
        let mut acc = shape.gather_floats(c);
        let [fa, fb] = self.elements;
        match scales {
            Some([sa, sb]) if self.kind.block_scaled() => {
                let sa = self.scales(&sa, shape.m, true)?;
                let sb = self.scales(&sb, shape.n, false)?;
                let (a, b) = ((fa, &a[..], &sa[..]), (fb, &b[..], &sb[..]));
                scaled_sums(self.kind, [shape.n, shape.k], a, b, self.block, &mut acc);
            }
            None if !self.kind.block_scaled() => {
                let half = self.accumulator == Accumulator::F16;
                let model = Model::mma(Generation::Blackwell, fa, half);
                let (a, b) = (Tile::decode(fa, shape.k, &a), Tile::decode(fb, shape.k, &b));
                multiply_add(&model, &a, &b, &mut acc);
            }
            _ => return Err(Fault::Invalid("scales and kind of an mma disagree".into())),
        }
        Ok(shape.scatter_floats(&acc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::float::Round;
    use proptest::prelude::*;

    fn form(kind: Kind, elements: [Format; 2], scale: Format, block: usize) -> ScaledMma {
        ScaledMma {
            kind,
            elements,
            accumulator: Accumulator::F32,
            scale,
            block,
        }
    }

    fn forms() -> Vec<ScaledMma> {
        use Format::{E2m1, E2m3, E3m2, E4m3, E5m2, Ue4m3, Ue8m0};
        vec![
            form(Kind::F8f6f4, [E4m3, E3m2], Ue8m0, 32),
            form(Kind::F8f6f4, [E2m1, E2m3], Ue8m0, 32),
            form(Kind::Mxf8f6f4, [E4m3, E2m1], Ue8m0, 32),
            form(Kind::Mxf8f6f4, [E2m3, E5m2], Ue8m0, 32),
            form(Kind::Mxf4, [E2m1, E2m1], Ue8m0, 32),
            form(Kind::Mxf4nvf4, [E2m1, E2m1], Ue4m3, 16),
            form(Kind::Mxf4nvf4, [E2m1, E2m1], Ue8m0, 32),
        ]
    }

    /// A container's bits: 4-bit elements of the byte kinds lie in bits 2 to 5.
    fn container(f: &ScaledMma, which: usize, x: f64) -> u32 {
        let code = f.elements[which].from_f64(x, Round::Nearest, true) as u32;
        let bytes = f.shape().k == 32;
        if bytes && f.elements[which] == Format::E2m1 {
            code << 2
        } else {
            code
        }
    }

    /// Registers by the formulas of the ISA for m16n8k32 of bytes and m16n8k64 of 4-bit elements.
    fn registers(k: usize, b: bool, code: impl Fn(usize, usize) -> u32) -> Vec<Warp<u32>> {
        let (per, bits) = if k == 32 { (4, 8) } else { (8, 4) };
        let word = |r: usize, lane: usize| {
            (0..per).fold(0, |w, i| {
                let (g, t) = (lane / 4, lane % 4);
                let x = if b {
                    code(g, r * k / 2 + t * per + i)
                } else {
                    code(g + r % 2 * 8, r / 2 * k / 2 + t * per + i)
                };
                w | x << (i * bits)
            })
        };
        (0..if b { 2 } else { 4 })
            .map(|r| std::array::from_fn(|lane| word(r, lane)))
            .collect()
    }

    #[test]
    fn products_match_a_scalar_loop() {
        let value =
            |i: usize, k: usize| [1.0, -1.0, 0.5, 2.0, 0.0][(i * 3 + k * 7 + i * k % 4) % 5];
        for f in forms() {
            f.check().unwrap();
            let k = f.shape().k;
            let blocks = k / f.block;
            let scale = |i: usize, j: usize| [1.0, 2.0, 0.5][(i * 2 + j) % 3];
            for (byte, thread) in [(0, 0), (0, 1), (4 - blocks as u32, 1)] {
                let a = registers(k, false, |r, j| container(&f, 0, value(r, j)));
                let b = registers(k, true, |n, j| container(&f, 1, value(n + 50, j)));
                let code = |x: f64| f.scale.from_f64(x, Round::Nearest, true) as u32;
                let word = |i: usize| {
                    (0..blocks).fold(0, |w, j| w | code(scale(i, j)) << (8 * (byte as usize + j)))
                };
                // Lanes that do not count hold rubbish.
                let (mut da, mut db) = ([0xeeee_eeee; 32], [0x1111_1111; 32]);
                for row in 0..16 {
                    da[4 * (row % 8) + 2 * thread as usize + row / 8] = word(row);
                }
                for column in 0..8 {
                    db[4 * column + thread as usize] = word(column + 50);
                }
                let with = |data| Scales { data, byte, thread };
                let scales = f.kind.block_scaled().then(|| [with(da), with(db)]);
                let c: Vec<Warp<u32>> = vec![[1.0f32.to_bits(); 32]; 4];
                let d = f.execute(&a, &b, &c, scales).unwrap();
                for row in 0..16 {
                    for column in 0..8 {
                        let s = |j: usize| match scales {
                            Some(_) => scale(row, j / f.block) * scale(column + 50, j / f.block),
                            None => 1.0,
                        };
                        let dot: f64 = (0..k)
                            .map(|j| value(row, j) * value(column + 50, j) * s(j))
                            .sum();
                        let got =
                            f32::from_bits(d[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2]);
                        assert_eq!(f64::from(got), dot + 1.0, "{f:?} {row}, {column}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_selector_is_a_product_or_an_error(at in 0usize..7, byte: u32, thread: u32, word: u32) {
            let f = forms()[at];
            let zeros = |n: usize| vec![[word; 32]; n];
            let s = Scales { data: [word; 32], byte, thread };
            let _ = f.execute(&zeros(4), &zeros(2), &zeros(4), Some([s, s]));
        }
    }

    #[test]
    fn undefined_forms_are_refused() {
        use Format::{E2m1, E4m3, Ue4m3, Ue8m0};
        for f in [
            form(Kind::Mxf8f6f4, [E4m3, E4m3], Ue4m3, 32),
            form(Kind::Mxf4, [E4m3, E2m1], Ue8m0, 32),
            form(Kind::Mxf4nvf4, [E2m1, E2m1], Ue4m3, 32),
            form(Kind::F16, [E4m3, E4m3], Ue8m0, 32),
        ] {
            assert!(matches!(f.check(), Err(Fault::Unsupported(_))));
        }
        let zeros = |n: usize| vec![[0; 32]; n];
        let f = forms()[2];
        assert!(matches!(
            f.execute(&zeros(4), &zeros(2), &zeros(4), None),
            Err(Fault::Invalid(_))
        ));
    }
}
