//! `mma.sp`: the product with a structured-sparse A (PTX ISA 9.7.14.6).
//!
//! Of every four elements of a row of A two are given (of two tf32, one), with their places in the
//! metadata. A's fragment is that of the dense shape with half of k. In each group of four threads,
//! some hold the metadata, by the figures of the ISA and CUTLASS's order of it (`reorder_meta`):
//! - 16-bit elements: a thread for every 16 columns, row `group` in its lower half, `group + 8` in the
//!   upper one. The selector names the thread (k16) or the pair (k32). tf32 counts as two halves.
//! - 8-bit elements: a thread for every 32 columns of one row, row `group` before `group + 8`. The
//!   selector names the pair (k32); k64 takes all four threads.
//!
//! Nothing here was measured on a GPU: the arithmetic is that of the dense product of the given elements.

use super::float::Format;
use super::mma::{Accumulator, Element, Mma, Warp, signed};
use super::tensor_core::{Generation, Model, Tile, multiply_add, multiply_add_int};
use crate::fault::Fault;

/// A sparse `mma.sync`: the product it stands for, whose k counts the zeros too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseMma {
    /// Shape and types.
    pub unit: Mma,
    /// Which threads hold the metadata.
    pub selector: u32,
    /// `::ordered_metadata`: places must increase.
    pub ordered: bool,
}

impl SparseMma {
    /// Checks that PTX defines this combination of shape, types and selector.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for any other; 4-bit elements are among them.
    pub fn check(&self) -> Result<(), Fault> {
        use Accumulator as Acc;
        let u = &self.unit;
        let single = u.c == Acc::F32 && u.d == Acc::F32;
        let half = matches!(u.c, Acc::F16 | Acc::F32) && matches!(u.d, Acc::F16 | Acc::F32);
        let fp8 = |e| matches!(e, Element::Float(Format::E4m3 | Format::E5m2));
        let int8 = |e| matches!(e, Element::Int { bits: 8, .. });
        let selectors = match (u.a, u.b, u.k) {
            (Element::Float(Format::F16), Element::Float(Format::F16), k) if half => {
                [(16, 4), (32, 2)].iter().find(|s| s.0 == k)
            }
            (Element::Float(Format::Bf16), Element::Float(Format::Bf16), k) if single => {
                [(16, 4), (32, 2)].iter().find(|s| s.0 == k)
            }
            (Element::Float(Format::Tf32), Element::Float(Format::Tf32), k) if single => {
                [(8, 4), (16, 2)].iter().find(|s| s.0 == k)
            }
            (a, b, k) if int8(a) && int8(b) && u.c == Acc::S32 && u.d == Acc::S32 => {
                [(32, 2), (64, 1)].iter().find(|s| s.0 == k)
            }
            (a, b, k) if fp8(a) && fp8(b) && half => [(64, 1)].iter().find(|s| s.0 == k),
            _ => None,
        };
        match selectors {
            Some((_, count)) if (u.m, u.n) == (16, 8) && self.selector < *count => Ok(()),
            _ => Err(Fault::Unsupported(format!(
                "mma.sp.m{}n{}k{} of {:?} by {:?} into {:?} with selector {}",
                u.m, u.n, u.k, u.a, u.b, u.d, self.selector
            ))),
        }
    }

    /// The dense product of the elements that are given.
    fn given(&self) -> Mma {
        Mma {
            k: self.unit.k / 2,
            ..self.unit
        }
    }

    /// 32-bit registers a lane of A, B, C and D.
    #[must_use]
    pub fn registers(&self) -> [usize; 4] {
        let [_, b, c, d] = self.unit.registers();
        [self.given().registers()[0], b, c, d]
    }

    /// The columns of A's given elements, row by row.
    fn places(&self, metadata: &Warp<u32>) -> Result<Vec<usize>, Fault> {
        let bits = self.unit.a.bits() as usize;
        let count = self.unit.k / 2;
        let mut out = Vec::with_capacity(self.unit.m * count);
        for row in 0..self.unit.m {
            let place = |j| self.place(metadata, row, j, bits);
            // Of four elements two are given; of two tf32, one.
            let step = if bits == 32 { 1 } else { 2 };
            for j in (0..count).step_by(step) {
                let first = place(j)?;
                out.push(first);
                if step == 1 {
                    continue;
                }
                let second = place(j + 1)?;
                if first == second || (self.ordered && first > second) {
                    return Err(Fault::Invalid(format!(
                        "the metadata of mma.sp names columns {first} and {second} of row {row}"
                    )));
                }
                out.push(second);
            }
        }
        Ok(out)
    }

    /// The column of given element `j` of a row.
    fn place(
        &self,
        metadata: &Warp<u32>,
        row: usize,
        j: usize,
        bits: usize,
    ) -> Result<usize, Fault> {
        let (group, upper, selector) = (row % 8 * 4, row / 8, self.selector as usize);
        // Given elements that a thread of the group describes in a row.
        let each = match bits {
            8 => 16,
            16 => 8,
            _ => 4,
        };
        let block = j / each;
        let (thread, shift) = if bits == 8 {
            // The pair of a block of columns: one thread a row.
            (2 * (selector + block) + upper, 2 * (j % each))
        } else {
            let single = self.unit.k / 2 == each;
            let base = if single { selector } else { 2 * selector };
            (base + block, 16 * upper + 16 / each * (j % each))
        };
        let field = metadata[group + thread % 4] >> shift;
        if bits != 32 {
            return Ok(j / 2 * 4 + (field & 3) as usize);
        }
        // Both halves of a tf32 element.
        match field & 15 {
            0b0100 => Ok(2 * j),
            0b1110 => Ok(2 * j + 1),
            other => Err(Fault::Invalid(format!(
                "the metadata of mma.sp of tf32 is {other:#06b} in row {row}"
            ))),
        }
    }

    /// Executes and returns the registers of D.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] if [`SparseMma::check`] fails, [`Fault::Invalid`] for a wrong number of
    /// registers and for metadata that PTX leaves undefined.
    pub fn execute(
        &self,
        generation: Generation,
        (a, metadata): (&[Warp<u32>], &Warp<u32>),
        b: &[Warp<u32>],
        c: &[Warp<u32>],
    ) -> Result<Vec<Warp<u32>>, Fault> {
        self.check()?;
        let [na, nb, nc, _] = self.registers();
        if [a.len(), b.len(), c.len()] != [na, nb, nc] {
            return Err(Fault::Invalid(format!(
                "mma.sp takes {na}, {nb} and {nc} registers of A, B and C"
            )));
        }
        let places = self.places(metadata)?;
        let unit = &self.unit;
        let (a, b) = (self.given().gather_a(a), unit.gather_b(b));
        let count = unit.k / 2;
        // The elements of B that a row of A meets.
        let met = |row: usize| -> Vec<u32> {
            let columns = (0..unit.n).flat_map(|n| {
                let of_column = &b[n * unit.k..][..unit.k];
                places[row * count..][..count].iter().map(|&p| of_column[p])
            });
            columns.collect()
        };
        let rows = (0..unit.m).map(|row| (row * unit.n, &a[row * count..][..count], met(row)));
        if let (Element::Float(fa), Element::Float(fb)) = (unit.a, unit.b) {
            let mut acc = unit.gather_floats(c);
            let model = Model::mma(generation, fa, unit.d == Accumulator::F16);
            for (at, a, b) in rows {
                let (a, b) = (Tile::decode(fa, count, a), Tile::decode(fb, count, &b));
                multiply_add(&model, &a, &b, &mut acc[at..at + unit.n]);
            }
            return Ok(unit.scatter_floats(&acc));
        }
        let mut acc = unit.gather_ints(c);
        let values = |e, raw: &[u32]| raw.iter().map(|&x| signed(e, x)).collect::<Vec<_>>();
        for (at, a, b) in rows {
            let (a, b) = (values(unit.a, a), values(unit.b, &b));
            multiply_add_int(count, &a, &b, &mut acc[at..at + unit.n], unit.satfinite);
        }
        Ok(unit.scatter_ints(&acc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::float::Round;
    use proptest::prelude::*;

    fn forms() -> Vec<SparseMma> {
        use Accumulator as Acc;
        let int = Element::Int {
            signed: true,
            bits: 8,
        };
        let float = Element::Float;
        let mut all = Vec::new();
        for (e, acc, shapes) in [
            (float(Format::F16), Acc::F32, [(16, 4), (32, 2)]),
            (float(Format::F16), Acc::F16, [(16, 4), (32, 2)]),
            (float(Format::Bf16), Acc::F32, [(16, 4), (32, 2)]),
            (float(Format::Tf32), Acc::F32, [(8, 4), (16, 2)]),
            (int, Acc::S32, [(32, 2), (64, 1)]),
            (float(Format::E4m3), Acc::F32, [(64, 1), (64, 1)]),
        ] {
            for (k, selectors) in shapes {
                for selector in 0..selectors {
                    let unit = Mma {
                        m: 16,
                        n: 8,
                        k,
                        a: e,
                        b: e,
                        c: acc,
                        d: acc,
                        satfinite: false,
                        bit_op: None,
                    };
                    all.push(SparseMma {
                        unit,
                        selector,
                        ordered: true,
                    });
                }
            }
        }
        all
    }

    /// Which columns of each chunk are given: a chunk is four elements, two of tf32.
    fn pattern(chunk: usize, seed: usize) -> Vec<usize> {
        match chunk {
            2 => vec![seed % 2],
            _ => [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][seed % 6].to_vec(),
        }
    }

    /// Metadata, written from the figures: thread and bits of each row and chunk.
    fn metadata(form: &SparseMma, given: impl Fn(usize, usize) -> Vec<usize>) -> Warp<u32> {
        let mut out = [0u32; 32];
        let (k, s) = (form.unit.k, form.selector as usize);
        for row in 0..16 {
            let (quad, upper) = (row % 8 * 4, row / 8);
            match form.unit.a.bits() {
                8 => {
                    for (c, columns) in (0..k / 4).map(|c| (c, given(row, c))) {
                        // 8 chunks of 4 bits a thread.
                        let thread = if k == 32 {
                            2 * s + upper
                        } else {
                            c / 8 * 2 + upper
                        };
                        let bits = (columns[0] | columns[1] << 2) as u32;
                        out[quad + thread] |= bits << (c % 8 * 4);
                    }
                }
                16 => {
                    for (c, columns) in (0..k / 4).map(|c| (c, given(row, c))) {
                        let thread = if k == 16 { s } else { 2 * s + c / 4 };
                        let bits = (columns[0] | columns[1] << 2) as u32;
                        out[quad + thread] |= bits << (c % 4 * 4 + 16 * upper);
                    }
                }
                _ => {
                    for (c, columns) in (0..k / 2).map(|c| (c, given(row, c))) {
                        let thread = if k == 8 { s } else { 2 * s + c / 4 };
                        let bits = if columns[0] == 0 { 0b0100 } else { 0b1110 };
                        out[quad + thread] |= bits << (c % 4 * 4 + 16 * upper);
                    }
                }
            }
        }
        out
    }

    fn code(e: Element, x: i32) -> u32 {
        match e {
            Element::Float(f) => f.from_f64(f64::from(x), Round::Nearest, true) as u32,
            _ => x as u32 & 0xff,
        }
    }

    /// Registers of the fragment of A with `k` columns, or of B, by the formulas of the dense shapes.
    fn fragment(
        e: Element,
        k: usize,
        b: bool,
        value: impl Fn(usize, usize) -> i32,
    ) -> Vec<Warp<u32>> {
        let per = 32 / e.bits() as usize;
        let count = k / (4 * per) * if b { 1 } else { 2 };
        let word = |r: usize, lane: usize| {
            (0..per).fold(0, |w, i| {
                let (g, t) = (lane / 4, lane % 4);
                let x = if b {
                    value(r * 4 * per + t * per + i, g)
                } else {
                    value(g + 8 * (r % 2), r / 2 * 4 * per + t * per + i)
                };
                w | code(e, x) << (i as u32 * e.bits())
            })
        };
        (0..count)
            .map(|r| std::array::from_fn(|lane| word(r, lane)))
            .collect()
    }

    #[test]
    fn products_match_the_dense_matrix() {
        for form in forms() {
            form.check().unwrap();
            let (unit, e) = (form.unit, form.unit.a);
            let chunk = if e.bits() == 32 { 2 } else { 4 };
            let given = |row: usize, c: usize| pattern(chunk, row * 5 + c * 7 + row * c);
            // The dense matrix, with zeros, and B.
            let dense = |row: usize, column: usize| {
                let kept = given(row, column / chunk).contains(&(column % chunk));
                if kept {
                    ((row * 3 + column * 5) % 7) as i32 - 3
                } else {
                    0
                }
            };
            let b_value = |k: usize, n: usize| ((k * 2 + n * 3) % 5) as i32 - 2;
            let packed = |row: usize, j: usize| {
                let per = chunk / 2;
                let c = j / per;
                dense(row, c * chunk + given(row, c)[j % per])
            };
            let a = fragment(e, unit.k / 2, false, packed);
            let b = fragment(e, unit.k, true, b_value);
            let [na, nb, nc, nd] = form.registers();
            assert_eq!((a.len(), b.len()), (na, nb), "{form:?}");
            let c = vec![[0u32; 32]; nc];
            let meta = metadata(&form, given);
            let d = form
                .execute(Generation::Hopper, (&a, &meta), &b, &c)
                .unwrap();
            assert_eq!(d.len(), nd);
            for row in 0..16 {
                for column in 0..8 {
                    let want: i32 = (0..unit.k)
                        .map(|k| dense(row, k) * b_value(k, column))
                        .sum();
                    let (lane, i) = (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2);
                    let got = match unit.d {
                        Accumulator::F32 => f32::from_bits(d[i][lane]) as i32,
                        Accumulator::F16 => {
                            let half = (d[i / 2][lane] >> (16 * (i % 2))) as u16;
                            half::f16::from_bits(half).to_f32() as i32
                        }
                        _ => d[i][lane] as i32,
                    };
                    assert_eq!(got, want, "{form:?} {row}, {column}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_metadata_is_a_product_or_an_error(words in prop::array::uniform32(any::<u32>()), at in 0usize..20) {
            let all = forms();
            let form = all[at % all.len()];
            let [na, nb, nc, _] = form.registers();
            let zeros = |n: usize| vec![[0u32; 32]; n];
            let _ = form.execute(Generation::Hopper, (&zeros(na), &words), &zeros(nb), &zeros(nc));
        }
    }

    #[test]
    fn undefined_forms_and_metadata_are_refused() {
        let mut form = forms()[0];
        let [na, nb, nc, _] = form.registers();
        let zeros = |n: usize| vec![[0u32; 32]; n];
        let run = |form: &SparseMma, meta: u32| {
            form.execute(
                Generation::Hopper,
                (&zeros(na), &[meta; 32]),
                &zeros(nb),
                &zeros(nc),
            )
        };
        assert!(run(&form, 0x4444_4444).is_ok());
        assert!(matches!(run(&form, 0), Err(Fault::Invalid(_))));
        assert!(
            matches!(run(&form, 0x1111_1111), Err(Fault::Invalid(_))),
            "places decrease"
        );
        form.ordered = false;
        assert!(run(&form, 0x1111_1111).is_ok());
        form.selector = 4;
        assert!(matches!(form.check(), Err(Fault::Unsupported(_))));
    }
}
