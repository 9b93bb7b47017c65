//! The asynchronous warpgroup-level matrix multiply-accumulate, `wgmma` (PTX ISA 9.7.15, "Asynchronous
//! Warpgroup Level Matrix Multiply-Accumulate Instructions"; sm_90a).
//!
//! `D[m, n] += A[m, k] * B[n, k]` of 128 threads, with `m = 64`, 32 bytes of `k`, B in shared memory and A
//! there or in registers. Fragments are layouts on `warp` (four), `lane` and `reg`; operands in shared
//! memory are layouts on `m` that a 64-bit descriptor selects.

use axe_layout::{Axis, Iter, Layout, Result, Swizzle as Xor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows of A and D.
pub const M: i64 = 64;
/// Bytes of the contracted dimension in one instruction, whatever the type.
pub const K_BYTES: i64 = 32;
/// Rows of a core matrix; each holds [`UNIT_BYTES`].
pub const CORE: i64 = 8;
/// The unit of the descriptor's fields, and a row of a core matrix.
pub const UNIT_BYTES: i64 = 16;
/// Shared addresses and byte offsets of a descriptor are 14 bits of units (9.7.15.5.1.2.2, "Matrix
/// Descriptor Format").
pub const ADDRESS_BYTES: i64 = UNIT_BYTES << 14;

/// The type of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// 32 bits of which the upper 19 count.
    Tf32,
    /// FP8 with 4 exponent bits.
    E4m3,
    /// FP8 with 5 exponent bits.
    E5m2,
    /// Signed byte.
    S8,
    /// Unsigned byte.
    U8,
}

impl Element {
    /// Bytes of an element in memory.
    #[must_use]
    pub const fn bytes(self) -> i64 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::Tf32 => 4,
            _ => 1,
        }
    }

    /// The suffix of the instruction.
    #[must_use]
    pub const fn ptx(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::S8 => "s8",
            Self::U8 => "u8",
        }
    }

    const fn is_integer(self) -> bool {
        matches!(self, Self::S8 | Self::U8)
    }

    const fn is_fp8(self) -> bool {
        matches!(self, Self::E4m3 | Self::E5m2)
    }
}

/// The type of an element of D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accumulator {
    /// Two to a register.
    F16,
    /// One to a register.
    F32,
    /// One to a register; integers only.
    S32,
}

impl Accumulator {
    /// Elements in a 32-bit register.
    #[must_use]
    pub const fn packed(self) -> i64 {
        match self {
            Self::F16 => 2,
            _ => 1,
        }
    }

    /// The suffix of the instruction.
    #[must_use]
    pub const fn ptx(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::S32 => "s32",
        }
    }
}

/// The types of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Types {
    /// Of A.
    pub a: Element,
    /// Of B; as large as A's.
    pub b: Element,
    /// Of D.
    pub d: Accumulator,
}

impl Types {
    /// Whether the instruction exists (9.7.15.5.2, "wgmma.mma_async", the lists of types).
    #[must_use]
    pub fn is_valid(self) -> bool {
        let float = matches!(self.d, Accumulator::F16 | Accumulator::F32);
        match (self.a, self.b) {
            (Element::F16, Element::F16) => float,
            (Element::Bf16, Element::Bf16) | (Element::Tf32, Element::Tf32) => {
                self.d == Accumulator::F32
            }
            (a, b) if a.is_fp8() && b.is_fp8() => float,
            (a, b) => a.is_integer() && b.is_integer() && self.d == Accumulator::S32,
        }
    }

    /// The contracted extent: 8, 16 or 32.
    #[must_use]
    pub const fn k(self) -> i64 {
        K_BYTES / self.a.bytes()
    }

    /// Whether operands in shared memory may have rows of `k` (9.7.15.5.2: `imm-trans-a` and `imm-trans-b`
    /// exist for f16 and bf16 alone).
    #[must_use]
    pub const fn may_transpose(self) -> bool {
        self.a.bytes() == 2
    }

    /// The numbers of columns that exist, widest first (9.7.15.2, "Matrix Shape"): multiples of 8, for integers
    /// above 32 multiples of 16.
    pub fn columns(self) -> impl Iterator<Item = i64> {
        let integer = self.a.is_integer();
        (1..=32)
            .rev()
            .map(|n| 8 * n)
            .filter(move |n| !integer || n % 16 == 0 || *n <= 24)
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.d.ptx(), self.a.ptx(), self.b.ptx())
    }
}

/// `wgmma.mma_async.sync.aligned.m64nNkK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wgmma {
    /// Its types.
    pub types: Types,
    /// Columns of D, rows of B as `[n, k]`.
    pub n: i64,
}

fn layout(iters: &[(i64, i64, &str)]) -> Result<Layout> {
    let iters = iters
        .iter()
        .map(|&(extent, stride, axis)| Ok(Iter::new(extent, stride, Axis::new(axis)?)));
    Layout::from_shard(iters.collect::<Result<Vec<_>>>()?)
}

impl Wgmma {
    /// The mnemonic with shape and types.
    #[must_use]
    pub fn mnemonic(self) -> String {
        format!(
            "wgmma.mma_async.sync.aligned.m64n{}k{}.{}",
            self.n,
            self.types.k(),
            self.types
        )
    }

    /// The fragment of D, for the shape `[64, n]` on `warp`, `lane` and `reg` (9.7.15.5.1.1, "Register
    /// Fragments", figure of D): warp `w` holds rows `16 w` to `16 w + 15`, each 8 columns as `mma.sync` has them.
    ///
    /// # Errors
    /// Never for an `n` of [`Types::columns`].
    pub fn d(self) -> Result<Layout> {
        layout(&[
            (4, 1, "warp"),
            (2, 2, "reg"),
            (8, 4, "lane"),
            (self.n / 8, 4, "reg"),
            (4, 1, "lane"),
            (2, 1, "reg"),
        ])
    }

    /// The fragment of A in registers, for the shape `[64, k]` on `warp`, `lane` and `reg` (9.7.15.5.1.1, figures
    /// of A): each warp holds 16 rows as `mma.sync` has them; `reg` counts elements.
    ///
    /// # Errors
    /// Never.
    pub fn a(self) -> Result<Layout> {
        let p = 4 / self.types.a.bytes();
        layout(&[
            (4, 1, "warp"),
            (2, p, "reg"),
            (8, 4, "lane"),
            (2, 2 * p, "reg"),
            (4, 1, "lane"),
            (p, 1, "reg"),
        ])
    }
}

/// Which dimension of an operand in shared memory is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Major {
    /// The contracted one: rows of `k`.
    K,
    /// M for A and N for B; 16-bit types only.
    Mn,
}

/// The swizzle of an operand in shared memory (9.7.15.5.1.2.1, "Shared Memory Matrix Layout").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Swizzle {
    /// Core matrices of 8 rows of 16 bytes, each contiguous.
    #[serde(rename = "none")]
    None,
    /// Rows of 32 bytes.
    #[serde(rename = "32B")]
    B32,
    /// Rows of 64 bytes.
    #[serde(rename = "64B")]
    B64,
    /// Rows of 128 bytes.
    #[serde(rename = "128B")]
    B128,
}

impl Swizzle {
    /// All of them, the widest first.
    pub const ALL: [Self; 4] = [Self::B128, Self::B64, Self::B32, Self::None];

    /// Bytes of a row: the contiguous run of the layout.
    #[must_use]
    pub const fn span(self) -> i64 {
        match self {
            Self::None => 16,
            Self::B32 => 32,
            Self::B64 => 64,
            Self::B128 => 128,
        }
    }

    /// Bytes after which the pattern repeats, and to which the tile's base must be aligned for the pattern of
    /// the layout to be that of the addresses (9.7.15.5.1.2.2: "matrix base offset" is 0 then).
    #[must_use]
    pub const fn alignment(self) -> i64 {
        match self {
            Self::None => UNIT_BYTES,
            _ => CORE * self.span(),
        }
    }

    /// Bits 62 and 63 of the descriptor.
    #[must_use]
    pub const fn mode(self) -> u64 {
        match self {
            Self::None => 0,
            Self::B128 => 1,
            Self::B64 => 2,
            Self::B32 => 3,
        }
    }

    /// The xor of address bits, in units of elements; `None` without a swizzle.
    ///
    /// # Errors
    /// When `element_bytes` is not 1, 2, 4, 8 or 16.
    pub fn xor(self, element_bytes: i64) -> Result<Option<Xor>> {
        let bits = match self {
            Self::None => return Ok(None),
            Self::B32 => 1,
            Self::B64 => 2,
            Self::B128 => 3,
        };
        let base = UNIT_BYTES
            .checked_div(element_bytes)
            .filter(|n| n.count_ones() == 1 && n * element_bytes == UNIT_BYTES);
        match base {
            Some(elements) => Xor::new(bits, elements.trailing_zeros(), 3, true).map(Some),
            None => Err(axe_layout::Error::invalid(format!(
                "elements of {element_bytes} bytes: expected a power of two up to 16"
            ))),
        }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::B32 => "32B",
            Self::B64 => "64B",
            Self::B128 => "128B",
        })
    }
}

/// The constant part of a matrix descriptor: everything but the start address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strides {
    /// Which dimension is contiguous.
    pub major: Major,
    /// The swizzle.
    pub swizzle: Swizzle,
    /// The leading dimension byte offset.
    pub leading: i64,
    /// The stride dimension byte offset.
    pub stride: i64,
}

impl Strides {
    /// The 64 bits, with a start address in bytes of shared memory (9.7.15.5.1.2.2, "Matrix Descriptor Format"):
    /// bits 0 to 13 the address, 16 to 29 the leading and 32 to 45 the stride offset, each in units of 16
    /// bytes; 49 to 51 the base offset, zero here; 62 and 63 the swizzle mode.
    #[must_use]
    pub const fn descriptor(self, start: i64) -> u64 {
        const fn field(bytes: i64, shift: u32) -> u64 {
            (((bytes >> 4) & 0x3fff) as u64) << shift
        }
        field(start, 0)
            | field(self.leading, 16)
            | field(self.stride, 32)
            | self.swizzle.mode() << 62
    }

    /// The canonical layout that the descriptor selects, for `rows` of M or N and the `k` of one instruction, in
    /// elements (9.7.15.5.1.2.1; the offsets' meaning by 9.7.15.5.1.1, "Strides"), which tests compare with:
    ///
    /// | contiguous, swizzle | rows | k |
    /// | --- | --- | --- |
    /// | K, none | `(rows/8 : stride), (8 : 16 B)` | `(2 : leading), (16 B : 1)` |
    /// | K, `w` | `(rows/8 : stride), (8 : w)` | `(32 B : 1)` |
    /// | MN, none | `(rows/8 : stride), (8 : 1)` | `(2 : leading), (8 : 16 B)` |
    /// | MN, `w` | `(rows/w : leading), (w : 1)` | `(2 : stride), (8 : w)` |
    ///
    /// # Errors
    /// Offsets or rows that are no multiple of elements or of the row.
    #[cfg(test)]
    fn layout(self, types: Types, rows: i64) -> Result<Layout> {
        let bytes = types.a.bytes();
        let (leading, stride, unit) = (
            self.leading / bytes,
            self.stride / bytes,
            UNIT_BYTES / bytes,
        );
        let (span, k) = (self.swizzle.span() / bytes, types.k());
        let iters = match (self.major, self.swizzle) {
            (Major::K, Swizzle::None) => vec![
                (rows / CORE, stride),
                (CORE, unit),
                (k / unit, leading),
                (unit, 1),
            ],
            (Major::K, _) => vec![(rows / CORE, stride), (CORE, span), (k, 1)],
            (Major::Mn, Swizzle::None) => vec![
                (rows / unit, stride),
                (unit, 1),
                (k / CORE, leading),
                (CORE, unit),
            ],
            (Major::Mn, _) => vec![
                (rows / span.min(rows), leading),
                (span.min(rows), 1),
                (k / CORE, stride),
                (CORE, span),
            ],
        };
        let iters = iters
            .into_iter()
            .map(|(extent, stride)| Iter::new(extent, stride, Axis::M));
        Ok(Layout::from_shard(iters)?.with_swizzle(self.swizzle.xor(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::Fragment;

    const F16: Types = Types {
        a: Element::F16,
        b: Element::F16,
        d: Accumulator::F32,
    };

    fn types(a: Element, d: Accumulator) -> Types {
        Types { a, b: a, d }
    }

    /// The formulas of PTX ISA 9.7.15.5.1.1 for D: `row = 16 warp + lane / 4 + 8 ((i / 2) mod 2)`,
    /// `column = 8 (i / 4) + 2 (lane mod 4) + i mod 2`.
    #[test]
    fn accumulators_are_those_of_the_ptx_isa() {
        for n in F16.columns() {
            let d = Fragment::new(&Wgmma { types: F16, n }.d().unwrap(), &[64, n], 128).unwrap();
            assert_eq!((d.registers(), d.is_full()), (n / 2, true));
            for thread in 0..128 {
                for i in 0..n / 2 {
                    let row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
                    let column = i / 4 * 8 + thread % 4 * 2 + i % 2;
                    assert_eq!(d.index(thread, i), Some(vec![row, column]), "n {n}");
                }
            }
        }
    }

    /// A for 8, 16 and 32-bit elements: register `r` of a thread holds `4 / bytes` elements of row
    /// `16 warp + lane / 4 + 8 (r mod 2)`, in the half `r / 2` of the columns.
    #[test]
    fn a_fragments_are_those_of_the_ptx_isa() {
        for (element, d) in [
            (Element::F16, Accumulator::F32),
            (Element::Tf32, Accumulator::F32),
            (Element::S8, Accumulator::S32),
        ] {
            let types = types(element, d);
            let (k, p) = (types.k(), 4 / element.bytes());
            let a = Wgmma { types, n: 8 }.a().unwrap();
            let a = Fragment::new(&a, &[64, k], 128).unwrap();
            assert_eq!(a.registers(), 4 * p);
            for thread in 0..128 {
                for i in 0..4 * p {
                    let (register, part) = (i / p, i % p);
                    let row = thread / 32 * 16 + thread % 32 / 4 + register % 2 * 8;
                    let column = register / 2 * (k / 2) + thread % 4 * p + part;
                    assert_eq!(a.index(thread, i), Some(vec![row, column]), "{element:?}");
                }
            }
        }
    }

    #[test]
    fn types_and_columns_are_those_that_exist() {
        assert!(F16.is_valid() && types(Element::F16, Accumulator::F16).is_valid());
        assert!(!types(Element::Bf16, Accumulator::F16).is_valid());
        assert!(!types(Element::S8, Accumulator::F32).is_valid());
        let mixed = |a, b, d| Types { a, b, d }.is_valid();
        assert!(mixed(Element::E4m3, Element::E5m2, Accumulator::F16));
        assert!(mixed(Element::U8, Element::S8, Accumulator::S32));
        assert!(!mixed(Element::F16, Element::Bf16, Accumulator::F32));
        assert_eq!(F16.columns().count(), 32);
        let integers: Vec<_> = types(Element::U8, Accumulator::S32).columns().collect();
        assert_eq!(integers.len(), 18);
        assert_eq!(integers[14..], [32, 24, 16, 8]);
        assert!(!integers.contains(&40));
    }

    #[test]
    fn descriptors_have_their_fields() {
        let strides = Strides {
            major: Major::K,
            swizzle: Swizzle::B128,
            leading: 16,
            stride: 1024,
        };
        assert_eq!(strides.descriptor(0x400), 1 << 62 | 64 << 32 | 1 << 16 | 64);
        let plain = Strides {
            major: Major::K,
            swizzle: Swizzle::None,
            leading: 128,
            stride: 256,
        };
        assert_eq!(
            plain.descriptor(ADDRESS_BYTES - 16),
            16 << 32 | 8 << 16 | 0x3fff
        );
    }

    #[test]
    fn canonical_layouts_are_those_of_the_table() {
        let text = |major, swizzle, leading, stride, rows| {
            let strides = Strides {
                major,
                swizzle,
                leading,
                stride,
            };
            strides.layout(F16, rows).unwrap().to_string()
        };
        assert_eq!(
            text(Major::K, Swizzle::B128, 16, 1024, 64),
            "Sw<3,3,3> o S[(8, 8, 16) : (512, 64, 1)]"
        );
        assert_eq!(
            text(Major::K, Swizzle::None, 128, 256, 64),
            "S[(8, 8, 2, 8) : (128, 8, 64, 1)]"
        );
        assert_eq!(
            text(Major::Mn, Swizzle::B64, 512, 2048, 64),
            "Sw<2,3,3> o S[(2, 32, 2, 8) : (256, 1, 1024, 32)]"
        );
        assert_eq!(
            text(Major::Mn, Swizzle::None, 1024, 128, 64),
            "S[(8, 8, 2, 8) : (64, 1, 512, 8)]"
        );
    }
}
