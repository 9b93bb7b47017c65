//! `wgmma.mma_async`: matrix descriptors, operand tiles and the product of a warpgroup
//! (PTX ISA 9.7.15.5).
//!
//! Canonical operand layouts, in units of 16 bytes (PTX ISA 9.7.15.5.1.1, "Strides"; CUTLASS's
//! `mma_sm90_desc.hpp` states the same as layouts). `L` and `S` are the descriptor's leading and
//! stride byte offsets, `w` the swizzle span in bytes:
//!
//! | major, swizzle | byte offset of row `i`, unit `j` along K |
//! | --- | --- |
//! | K, none | `(i / 8) S + (i % 8) 16 + j L` |
//! | K, `w` | `(i / 8) S + (i % 8) w + 16 j`, then swizzled |
//!
//! | major, swizzle | byte offset of unit `i` along M or N, row `k` |
//! | --- | --- |
//! | MN, none | `i S + (k % 8) 16 + (k / 8) L` |
//! | MN, `w` | `(i / (w/16)) L + (i % (w/16)) 16 + (k % 8) w + (k / 8) S`, then swizzled |

use super::Bytes;
use super::float::Format;
use super::mma::{Accumulator, Element, half_bits, signed};
use super::swizzle::Swizzle;
use super::tensor_core::{Model, Tile, multiply_add, multiply_add_int};
use crate::fault::Fault;

/// One register of a warpgroup, thread by thread.
pub type Warpgroup = [u32; 128];

/// Rows of A and D.
pub const M: usize = 64;

/// A decoded shared-memory matrix descriptor (PTX ISA 9.7.15.5.1.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Start address in bytes: bits 0-13, in units of 16.
    pub start: u64,
    /// Leading dimension byte offset: bits 16-29, in units of 16.
    pub leading: u64,
    /// Stride dimension byte offset: bits 32-45, in units of 16.
    pub stride: u64,
    /// Base offset: bits 49-51.
    pub base_offset: u64,
    /// Swizzle mode: bits 62-63.
    pub swizzle: Swizzle,
}

impl Descriptor {
    /// Decodes all 64 bits; reserved bits are ignored, as the hardware does.
    #[must_use]
    pub fn decode(bits: u64) -> Self {
        let field = |shift: u32| ((bits >> shift) & 0x3fff) << 4;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base_offset: (bits >> 49) & 7,
            swizzle: match bits >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::B128,
                2 => Swizzle::B64,
                _ => Swizzle::B32,
            },
        }
    }

    /// The descriptor's bits; the inverse of [`Descriptor::decode`].
    #[must_use]
    pub const fn encode(self) -> u64 {
        let mode = match self.swizzle {
            Swizzle::None => 0,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        (self.start >> 4 & 0x3fff)
            | (self.leading >> 4 & 0x3fff) << 16
            | (self.stride >> 4 & 0x3fff) << 32
            | (self.base_offset & 7) << 49
            | mode << 62
    }

    /// Address of the 16 bytes that hold unit `unit` of line `line`. K-major: lines are rows of M or
    /// N, units run along K. MN-major: lines are rows of K, units run along M or N.
    #[must_use]
    pub const fn address(&self, mn_major: bool, line: u64, unit: u64) -> u64 {
        let w = self.swizzle.span();
        let offset = match (mn_major, self.swizzle) {
            (false, Swizzle::None) => {
                (line / 8) * self.stride + (line % 8) * 16 + unit * self.leading
            }
            (false, _) => (line / 8) * self.stride + (line % 8) * w + unit * 16,
            (true, Swizzle::None) => {
                unit * self.stride + (line % 8) * 16 + (line / 8) * self.leading
            }
            (true, _) => {
                let across = w / 16;
                (unit / across) * self.leading
                    + (unit % across) * 16
                    + (line % 8) * w
                    + (line / 8) * self.stride
            }
        };
        // Addresses are 18 bits wide, as the start address is.
        self.swizzle.apply(self.start + offset, self.base_offset) & 0x3_ffff
    }
}

/// Where A comes from.
#[derive(Debug, Clone, Copy)]
pub enum OperandA<'a> {
    /// A descriptor of shared memory.
    Shared(u64),
    /// Registers of the warpgroup, four a thread.
    Registers(&'a [Warpgroup]),
}

/// A dense `wgmma.mma_async.sync.aligned.m64nNkK` instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wgmma {
    /// Columns of B and D: 8 to 256.
    pub n: usize,
    /// Columns of A, rows of B: 32 bytes of elements.
    pub k: usize,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// D, and C where `scale_d` is set.
    pub d: Accumulator,
    /// `imm-trans-a`: A is M-major.
    pub trans_a: bool,
    /// `imm-trans-b`: B is N-major.
    pub trans_b: bool,
    /// `imm-scale-a` is -1.
    pub negate_a: bool,
    /// `imm-scale-b` is -1.
    pub negate_b: bool,
    /// Integer results clamp.
    pub satfinite: bool,
}

impl Wgmma {
    /// Checks that PTX defines this combination.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for any other.
    pub fn check(&self) -> Result<(), Fault> {
        use Accumulator as Acc;
        let fp8 = |f| matches!(f, Format::E4m3 | Format::E5m2);
        let half_or_single = matches!(self.d, Acc::F16 | Acc::F32);
        let types = match (self.a, self.b) {
            (Element::Float(Format::F16), Element::Float(Format::F16)) => half_or_single,
            (Element::Float(Format::Bf16), Element::Float(Format::Bf16))
            | (Element::Float(Format::Tf32), Element::Float(Format::Tf32)) => self.d == Acc::F32,
            (Element::Float(a), Element::Float(b)) => fp8(a) && fp8(b) && half_or_single,
            (Element::Int { bits: 8, .. }, Element::Int { bits: 8, .. })
            | (Element::Bit, Element::Bit) => self.d == Acc::S32,
            _ => false,
        };
        let step = if self.d == Acc::S32 && self.n > 32 {
            16
        } else {
            8
        };
        let n = (8..=256).contains(&self.n) && self.n.is_multiple_of(step);
        let k = self.k * self.a.bits() as usize == 256;
        let trans = !(self.trans_a || self.trans_b) || self.a.bits() == 16;
        let float = matches!(self.a, Element::Float(_));
        let negate = float || !(self.negate_a || self.negate_b);
        if types && n && k && trans && negate {
            return Ok(());
        }
        Err(Fault::Unsupported(format!(
            "wgmma.m64n{}k{} of {:?} by {:?} into {:?}, transposed {}/{}",
            self.n, self.k, self.a, self.b, self.d, self.trans_a, self.trans_b
        )))
    }

    /// Registers a thread of D.
    #[must_use]
    pub const fn d_registers(&self) -> usize {
        match self.d {
            Accumulator::F16 => self.n / 4,
            _ => self.n / 2,
        }
    }

    /// `d = a * b + (scale_d ? d : 0)`; shared memory is read through `memory`.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] if [`Wgmma::check`] fails, [`Fault::Invalid`] for a wrong number of
    /// registers, and what `memory` reports.
    pub fn execute(
        &self,
        memory: &mut dyn Bytes,
        a: OperandA<'_>,
        b: u64,
        scale_d: bool,
        d: &mut [Warpgroup],
    ) -> Result<(), Fault> {
        self.check()?;
        if d.len() != self.d_registers() {
            return Err(Fault::Invalid(format!(
                "wgmma.m64n{}k{} has {} registers of D, got {}",
                self.n,
                self.k,
                self.d_registers(),
                d.len()
            )));
        }
        let a = match a {
            OperandA::Shared(bits) => {
                self.read(memory, Descriptor::decode(bits), M, self.trans_a, true)?
            }
            OperandA::Registers(regs) if regs.len() == 4 && !self.trans_a => self.gather(regs),
            OperandA::Registers(regs) => {
                return Err(Fault::Invalid(format!(
                    "wgmma takes 4 registers of an A that is not transposed, got {}",
                    regs.len()
                )));
            }
        };
        memory.for_warp(None);
        let b = self.read(memory, Descriptor::decode(b), self.n, self.trans_b, false)?;
        match (self.a, self.b) {
            (Element::Float(fa), Element::Float(fb)) => {
                self.floats((fa, &a), (fb, &b), scale_d, d);
            }
            _ => self.integers(&a, &b, scale_d, d),
        }
        Ok(())
    }

    /// Elements of an operand in shared memory: `rows` of M or N, each `k` long.
    fn read(
        &self,
        memory: &mut dyn Bytes,
        descriptor: Descriptor,
        rows: usize,
        mn_major: bool,
        is_a: bool,
    ) -> Result<Vec<u32>, Fault> {
        // Each warp has 16 rows of A (PTX ISA 9.7.15.5.1).
        let warp = |row: usize| is_a.then_some(row / 16);
        let bits = self.a.bits() as usize;
        let per = 128 / bits;
        let mut out = vec![0u32; rows * self.k];
        let mut unit = [0u8; 16];
        if mn_major {
            for k in 0..self.k {
                for u in 0..rows / per {
                    memory.for_warp(warp(u * per));
                    memory.read(descriptor.address(true, k as u64, u as u64), &mut unit)?;
                    for (i, x) in elements(&unit, bits).take(per).enumerate() {
                        out[(u * per + i) * self.k + k] = x;
                    }
                }
            }
        } else {
            for (row, line) in out.chunks_exact_mut(self.k).enumerate() {
                memory.for_warp(warp(row));
                for (u, part) in line.chunks_exact_mut(per).enumerate() {
                    memory.read(descriptor.address(false, row as u64, u as u64), &mut unit)?;
                    for (slot, x) in part.iter_mut().zip(elements(&unit, bits)) {
                        *slot = x;
                    }
                }
            }
        }
        Ok(out)
    }

    /// A in registers: each warp holds 16 rows in the fragment of `mma.sync` (PTX ISA 9.7.15.5.1).
    fn gather(&self, registers: &[Warpgroup]) -> Vec<u32> {
        let bits = self.a.bits();
        let per = (32 / bits) as usize;
        let mut out = vec![0u32; M * self.k];
        for (r, register) in registers.iter().enumerate() {
            for (thread, word) in register.iter().enumerate() {
                let row = (thread / 32) * 16 + (thread % 32) / 4 + 8 * (r % 2);
                let column = (r / 2) * 4 * per + (thread % 4) * per;
                let slots = &mut out[row * self.k + column..][..per];
                for (slot, x) in slots
                    .iter_mut()
                    .zip(elements(&word.to_le_bytes(), bits as usize))
                {
                    *slot = x;
                }
            }
        }
        out
    }

    fn floats(
        &self,
        (fa, a): (Format, &[u32]),
        (fb, b): (Format, &[u32]),
        scale_d: bool,
        d: &mut [Warpgroup],
    ) {
        let negated = |bits: &[u32], format: Format, negate: bool| {
            let sign = if negate {
                1u32 << (format.bits() - 1)
            } else {
                0
            };
            let flipped: Vec<u32> = bits.iter().map(|x| x ^ sign).collect();
            Tile::decode(format, self.k, &flipped)
        };
        let (ta, tb) = (negated(a, fa, self.negate_a), negated(b, fb, self.negate_b));
        let half = self.d == Accumulator::F16;
        let mut acc = vec![0.0f32; M * self.n];
        if scale_d {
            self.each_value(|value, at, thread| {
                acc[at] = if half {
                    let h = d[value / 2][thread] >> (16 * (value % 2));
                    Format::F16.to_f64(u64::from(h & 0xffff)) as f32
                } else {
                    f32::from_bits(d[value][thread])
                };
            });
        }
        multiply_add(&Model::wgmma(fa, half), &ta, &tb, &mut acc);
        self.each_value(|value, at, thread| {
            if half {
                let shift = 16 * (value % 2);
                let keep = d[value / 2][thread] & !(0xffff << shift);
                d[value / 2][thread] = keep | half_bits(acc[at]) << shift;
            } else {
                d[value][thread] = acc[at].to_bits();
            }
        });
    }

    fn integers(&self, a: &[u32], b: &[u32], scale_d: bool, d: &mut [Warpgroup]) {
        let mut acc = vec![0i32; M * self.n];
        if scale_d {
            self.each_value(|value, at, thread| acc[at] = d[value][thread] as i32);
        }
        let widen = |e: Element, raw: &[u32]| raw.iter().map(|&x| signed(e, x)).collect::<Vec<_>>();
        let (a, b) = (widen(self.a, a), widen(self.b, b));
        multiply_add_int(self.k, &a, &b, &mut acc, self.satfinite);
        self.each_value(|value, at, thread| d[value][thread] = acc[at] as u32);
    }

    /// Calls `f(value, row * n + column, thread)` for every accumulator value (PTX ISA 9.7.15.5.2,
    /// figure of D).
    fn each_value(&self, mut f: impl FnMut(usize, usize, usize)) {
        for value in 0..self.n / 2 {
            for thread in 0..128 {
                let row = (thread / 32) * 16 + (thread % 32) / 4 + 8 * (value / 2 % 2);
                let column = (value / 4) * 8 + (thread % 4) * 2 + value % 2;
                f(value, row * self.n + column, thread);
            }
        }
    }
}

/// Little-endian elements of `bits` (1, 8, 16 or 32) bits.
fn elements(bytes: &[u8], bits: usize) -> impl Iterator<Item = u32> + '_ {
    let count = bytes.len() * 8 / bits;
    (0..count).map(move |i| {
        let at = i * bits / 8;
        match bits {
            1 => u32::from(bytes[at] >> (i % 8) & 1),
            8 => u32::from(bytes[at]),
            16 => u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
            _ => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]),
        }
    })
}

#[cfg(test)]
#[path = "wgmma_tests.rs"]
mod tests;
