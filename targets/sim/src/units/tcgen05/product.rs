//! The products of `tcgen05.mma`: operands gathered, multiplied, written to tensor memory.

use super::block_scale::scaled_sums;
use super::{Instruction, OperandA, Operands, descriptor};
use crate::fault::Fault;
use crate::units::Bytes;
use crate::units::float::Format;
use crate::units::mma::{Element, half_bits, signed};
use crate::units::tensor_core::{Model, Tile, multiply_add, multiply_add_int};
use crate::units::tensor_memory::TensorMemory;

/// One CTA of the group: its tensor memory and its shared memory.
pub struct Cta<'a> {
    /// Tensor memory.
    pub tensor: &'a mut TensorMemory,
    /// Shared memory.
    pub shared: &'a mut dyn Bytes,
}

impl Instruction {
    /// Executes for a group of one or two CTAs.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for missing scales, and what the memories report.
    pub fn execute(&self, ctas: &mut [Cta<'_>], o: &Operands) -> Result<(), Fault> {
        let rows = self.m / ctas.len().max(1);
        let per_cta = self.n / ctas.len().max(1);
        let k = self.kind.k();
        let mut b = Vec::with_capacity(self.n * k);
        for cta in ctas.iter_mut() {
            b.extend(self.shared_operand(cta.shared, o.b, per_cta, 1)?);
        }
        let mut scales_b = Vec::new();
        if let Some([_, at]) = o.scales {
            // Every CTA of the group holds the scales of all of B.
            let cta = ctas
                .first_mut()
                .ok_or_else(|| Fault::Invalid("no CTA".into()))?;
            scales_b = self.scales(cta.tensor, at, self.n, o.block, 1)?;
        } else if self.kind.block_scaled() {
            return Err(Fault::Invalid(
                "a block-scaled tcgen05.mma needs scales".into(),
            ));
        }
        for (cta, disabled) in ctas.iter_mut().zip(o.disabled) {
            let a = match o.a {
                OperandA::Shared(bits) => self.shared_operand(cta.shared, bits, rows, 0)?,
                OperandA::Tensor(address) => self.tensor_operand(cta.tensor, address, rows)?,
            };
            let scales_a = match o.scales {
                Some([at, _]) => self.scales(cta.tensor, at, rows, o.block, 0)?,
                None => Vec::new(),
            };
            self.product(
                (cta.tensor, disabled),
                rows,
                (&a, &scales_a),
                (&b, &scales_b),
                o,
            )?;
        }
        Ok(())
    }

    fn product(
        &self,
        (tensor, disabled): (&mut TensorMemory, u128),
        rows: usize,
        (a, scales_a): (&[u32], &[f64]),
        (b, scales_b): (&[u32], &[f64]),
        o: &Operands,
    ) -> Result<(), Fault> {
        let mut words = vec![0u32; rows * self.n];
        if o.accumulate {
            for (i, word) in words.iter_mut().enumerate() {
                let (lane, column) = self.cell(rows, i / self.n, i % self.n, o.d);
                *word = tensor.read(lane, column)?;
            }
        }
        match (self.a, self.b) {
            (Element::Float(fa), Element::Float(fb)) => {
                self.float_product((fa, a, scales_a), (fb, b, scales_b), o, &mut words);
            }
            _ => self.int_product(a, b, &mut words),
        }
        for (i, word) in words.iter().enumerate() {
            let (lane, column) = self.cell(rows, i / self.n, i % self.n, o.d);
            if disabled >> lane.min(127) & 1 == 0 {
                tensor.set(lane, column, *word)?;
            }
        }
        Ok(())
    }

    fn float_product(
        &self,
        (fa, a, scales_a): (Format, &[u32], &[f64]),
        (fb, b, scales_b): (Format, &[u32], &[f64]),
        o: &Operands,
        words: &mut [u32],
    ) {
        let k = self.kind.k();
        let scale = f32::powi(2.0, -(o.scale_d.min(15) as i32));
        let mut acc: Vec<f32> = words.iter().map(|w| self.widen(*w) * scale).collect();
        let a = negated(fa, a, self.negate[0]);
        let b = negated(fb, b, self.negate[1]);
        if scales_a.is_empty() {
            let (ta, tb) = (Tile::decode(fa, k, &a), Tile::decode(fb, k, &b));
            multiply_add(&Model::tcgen05(fa, self.half), &ta, &tb, &mut acc);
        } else {
            let (a, b) = ((fa, &a[..], scales_a), (fb, &b[..], scales_b));
            scaled_sums(self.kind, [self.n, k], a, b, o.block, &mut acc);
        }
        for (word, x) in words.iter_mut().zip(acc) {
            *word = if self.half { half_bits(x) } else { x.to_bits() };
        }
    }

    fn int_product(&self, a: &[u32], b: &[u32], words: &mut [u32]) {
        let mut acc: Vec<i32> = words.iter().map(|w| *w as i32).collect();
        let values = |e, raw: &[u32]| raw.iter().map(|&x| signed(e, x)).collect::<Vec<_>>();
        let (a, b) = (values(self.a, a), values(self.b, b));
        multiply_add_int(self.kind.k(), &a, &b, &mut acc, self.saturate);
        for (word, x) in words.iter_mut().zip(acc) {
            *word = x as u32;
        }
    }

    fn widen(&self, word: u32) -> f32 {
        if self.half {
            Format::F16.to_f64(u64::from(word & 0xffff)) as f32
        } else {
            f32::from_bits(word)
        }
    }

    /// Where D(row, column) lies (PTX ISA 9.7.16.10.5, layouts A, B, D and F): 128 rows fill the lanes;
    /// 64 rows of one CTA take 16 lanes of each 32; 64 rows of a pair put the right half of the
    /// columns into lanes 64 to 127.
    fn cell(&self, rows: usize, row: usize, column: usize, d: u32) -> (usize, usize) {
        let (lane, first) = (d as usize >> 16, d as usize & 0xffff);
        if rows == 128 {
            return (lane + row, first + column);
        }
        if self.m == 64 {
            return (lane + row / 16 * 32 + row % 16, first + column);
        }
        let half = self.n / 2;
        (lane + row + 64 * (column / half), first + column % half)
    }

    /// Elements of an operand in shared memory, `rows` of M or N, each k long.
    fn shared_operand(
        &self,
        shared: &mut dyn Bytes,
        bits: u64,
        rows: usize,
        which: usize,
    ) -> Result<Vec<u32>, Fault> {
        let d = descriptor(bits)?;
        let (element, trans) = ([self.a, self.b][which], self.trans[which]);
        let per = self.unit_elements();
        // What pads the unit is not read.
        let used = (per * element.bits() as usize / 8).min(16);
        let k = self.kind.k();
        let mut out = vec![0; rows * k];
        let (lines, along) = if trans { (k, rows) } else { (rows, k) };
        for line in 0..lines {
            for u in 0..along / per {
                let mut unit = [0u8; 16];
                let at = d.address(trans, line as u64, u as u64);
                shared.read(at, &mut unit[..used])?;
                for (i, x) in unpack(&unit, element, per).into_iter().enumerate() {
                    let (row, column) = if trans {
                        (u * per + i, line)
                    } else {
                        (line, u * per + i)
                    };
                    out[row * k + column] = x;
                }
            }
        }
        Ok(out)
    }

    /// Elements in 16 bytes.
    const fn unit_elements(&self) -> usize {
        self.kind.k() / 2
    }

    /// A in tensor memory: row by lane, elements packed along the columns.
    fn tensor_operand(
        &self,
        t: &TensorMemory,
        address: u32,
        rows: usize,
    ) -> Result<Vec<u32>, Fault> {
        let (lane, column) = (address as usize >> 16, address as usize & 0xffff);
        let k = self.kind.k();
        let mut out = Vec::with_capacity(rows * k);
        for row in 0..rows {
            let at = if rows == 64 && self.m == 64 {
                row / 16 * 32 + row % 16
            } else {
                row
            };
            for half in 0..2 {
                let mut unit = [0u8; 16];
                for (i, b) in unit.chunks_exact_mut(4).enumerate() {
                    b.copy_from_slice(&t.read(lane + at, column + 4 * half + i)?.to_le_bytes());
                }
                out.extend(unpack(&unit, self.a, self.unit_elements()));
            }
        }
        Ok(out)
    }
}

fn negated(format: Format, bits: &[u32], negate: bool) -> Vec<u32> {
    let sign = if negate {
        1u32 << (format.bits() - 1)
    } else {
        0
    };
    bits.iter().map(|x| x ^ sign).collect()
}

/// Elements of 16 bytes. With 16 elements to the unit, 6- and 4-bit ones are packed at its start and
/// the rest is padding (PTX ISA 9.7.16.5.1); with 32 all are 4-bit.
fn unpack(unit: &[u8; 16], element: Element, per: usize) -> Vec<u32> {
    let bits = element.bits() as usize;
    let word = u128::from_le_bytes(*unit);
    let mask = (1u128 << bits) - 1;
    (0..per)
        .map(|i| (word >> (i * bits) & mask) as u32)
        .collect()
}
