//! `tcgen05.mma`: Blackwell's matrix product into tensor memory (PTX ISA 9.7.16.10).
//!
//! Dense products of one CTA or a pair, with A in shared or tensor memory, and the block-scaled
//! kinds. Nothing here was run on a GPU; arithmetic follows the published model of
//! [`super::tensor_core`] (25 fraction bits; block-scaled FP4 sums exact groups of 16).

mod block_scale;
mod product;
mod regions;

pub(in crate::units) use block_scale::scaled_sums;
pub use product::Cta;
pub use regions::{Region, Touch};

use super::float::Format;
use super::mma::Element;
use super::swizzle::Swizzle;
use super::wgmma::Descriptor;
use crate::fault::Fault;

/// `.kind` of the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

impl Kind {
    /// Whether A and B have scales.
    #[must_use]
    pub const fn block_scaled(self) -> bool {
        matches!(self, Self::Mxf8f6f4 | Self::Mxf4 | Self::Mxf4nvf4)
    }

    /// Elements along K of one instruction: 32 bytes, where F8f6f4 keeps 6- and 4-bit elements in 8.
    #[must_use]
    pub const fn k(self) -> usize {
        match self {
            Self::F16 => 16,
            Self::Tf32 => 8,
            Self::F8f6f4 | Self::I8 | Self::Mxf8f6f4 => 32,
            Self::Mxf4 | Self::Mxf4nvf4 => 64,
        }
    }
}

/// A decoded instruction descriptor (PTX ISA 9.7.16.4.2, tables of the 32 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Kind.
    pub kind: Kind,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// binary16 results, one a column.
    pub half: bool,
    /// Integer saturation.
    pub saturate: bool,
    /// Negations of A and B.
    pub negate: [bool; 2],
    /// Transposition (MN-major) of A and B.
    pub trans: [bool; 2],
    /// Rows of D.
    pub m: usize,
    /// Columns of D.
    pub n: usize,
    /// Byte of the 32-bit cell that holds the scale of A and B.
    pub scale_id: [u32; 2],
    /// Scales are UE8M0 instead of UE4M3.
    pub ue8m0: bool,
}

impl Instruction {
    /// Decodes and validates the 32 bits for `kind`, for a group of `ctas` (1 or 2).
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for sparsity, [`Fault::Invalid`] for undefined codes and shapes.
    pub fn decode(kind: Kind, bits: u32, ctas: usize) -> Result<Self, Fault> {
        let field = |low: u32, width: u32| (bits >> low) & ((1 << width) - 1);
        let flag = |bit: u32| field(bit, 1) == 1;
        if flag(2) {
            return Err(Fault::Unsupported("sparse tcgen05.mma".into()));
        }
        let scaled = kind.block_scaled();
        let d = field(4, 2);
        let half = !scaled && d == 0 && matches!(kind, Kind::F16 | Kind::F8f6f4);
        let d_ok = scaled || half || d == if kind == Kind::I8 { 2 } else { 1 };
        let invalid =
            |what: &str| Fault::Invalid(format!("instruction descriptor {bits:#010x}: {what}"));
        if !d_ok {
            return Err(invalid("D type"));
        }
        let element = |code| element(kind, code).ok_or_else(|| invalid("element type"));
        let out = Self {
            kind,
            a: element(field(7, 3))?,
            b: element(field(10, 3))?,
            half,
            saturate: kind == Kind::I8 && flag(3),
            negate: [flag(13), flag(14)],
            trans: [flag(15), flag(16)],
            m: (if scaled {
                field(27, 2) << 7
            } else {
                field(24, 5) << 4
            }) as usize,
            n: (field(17, 6) << 3) as usize,
            scale_id: [field(29, 2), field(4, 2)],
            ue8m0: scaled && (flag(23) || kind == Kind::Mxf8f6f4),
        };
        let m_ok = match (ctas, scaled) {
            (1, false) => matches!(out.m, 64 | 128),
            (1, true) => out.m == 128,
            (2, _) => matches!(out.m, 128 | 256),
            _ => false,
        };
        let step = if ctas == 2 || out.m / ctas == 128 {
            16
        } else {
            8
        };
        let n_ok = (step..=256).contains(&out.n) && out.n.is_multiple_of(step);
        if !m_ok || !n_ok {
            return Err(invalid(&format!(
                "shape {}x{} of {ctas} CTAs",
                out.m, out.n
            )));
        }
        Ok(out)
    }
}

fn element(kind: Kind, code: u32) -> Option<Element> {
    let float = match (kind, code) {
        (Kind::F16, 0) => Format::F16,
        (Kind::F16, 1) => Format::Bf16,
        (Kind::Tf32, 2) => Format::Tf32,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 0) => Format::E4m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 1) => Format::E5m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 3) => Format::E2m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 4) => Format::E3m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 5) | (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Format::E2m1,
        (Kind::I8, 0 | 1) => {
            return Some(Element::Int {
                signed: code == 1,
                bits: 8,
            });
        }
        _ => return None,
    };
    Some(Element::Float(float))
}

/// Decodes a Blackwell shared-memory descriptor: as Hopper's, but bits 46-48 hold 1 (or 0, which runs) and
/// bits 61-63 the swizzle (PTX ISA 9.7.16.4.1).
///
/// # Errors
/// [`Fault::Invalid`] for a wrong constant or swizzle code, [`Fault::Unsupported`] for the 32-byte
/// atoms and absolute leading offsets.
pub fn descriptor(bits: u64) -> Result<Descriptor, Fault> {
    let invalid = |what: &str| Fault::Invalid(format!("matrix descriptor {bits:#018x}: {what}"));
    // Triton up to 3.5 leaves them 0, and its kernels run.
    if (bits >> 46) & 7 > 1 {
        return Err(invalid("bits 46-48 must hold 1"));
    }
    let swizzle = match bits >> 61 {
        0 => Swizzle::None,
        2 => Swizzle::B128,
        4 => Swizzle::B64,
        6 => Swizzle::B32,
        1 => {
            return Err(Fault::Unsupported(
                "128-byte swizzle of 32-byte atoms".into(),
            ));
        }
        _ => return Err(invalid("swizzle code")),
    };
    if (bits >> 52) & 1 == 1 {
        return Err(Fault::Unsupported(
            "absolute leading dimension offset".into(),
        ));
    }
    Ok(Descriptor {
        swizzle,
        ..Descriptor::decode(bits & !(3 << 62))
    })
}

/// Where A comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandA {
    /// A descriptor of shared memory.
    Shared(u64),
    /// An address in tensor memory.
    Tensor(u32),
}

/// Operands of one `tcgen05.mma`; addresses are the same in every CTA of the group.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    /// Address of D in tensor memory.
    pub d: u32,
    /// A.
    pub a: OperandA,
    /// Descriptor of B.
    pub b: u64,
    /// Whether D is added to (`enable-input-d`).
    pub accumulate: bool,
    /// `scale-input-d`: D is first multiplied by 2^-n.
    pub scale_d: u32,
    /// Addresses of the scales of A and B in tensor memory, for the block-scaled kinds.
    pub scales: Option<[u32; 2]>,
    /// `.scale_vec::NX`, `.block16` and `.block32`: elements that share a scale (16 or 32).
    pub block: usize,
    /// `disable-output-lane`: lanes of D, by CTA of the group, that keep what they hold.
    pub disabled: [u128; 2],
}

#[cfg(test)]
mod tests;
