//! Element types of graphs.

use axe_package::DType;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// One bit.
    I1,
    /// 8 bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// MLIR's index, 64 bits here.
    Index,
}

use Element::{BF16, F16, F32, F64, I1, I8, I16, I32, I64, Index};

/// The floating-point types.
pub const FLOATS: [Element; 4] = [F16, BF16, F32, F64];
/// The integers that memory holds as numbers.
pub const INTEGERS: [Element; 4] = [I8, I16, I32, I64];

impl Element {
    /// Its name in MLIR.
    pub fn name(self) -> &'static str {
        match self {
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            I1 => "i1",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            Index => "index",
        }
    }

    /// What memory holds of it.
    pub fn dtype(self) -> DType {
        match self {
            F16 => DType::F16,
            BF16 => DType::BF16,
            F32 => DType::F32,
            F64 => DType::F64,
            I1 => DType::Bool,
            I8 => DType::I8,
            I16 => DType::I16,
            I32 => DType::I32,
            I64 | Index => DType::I64,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        FLOATS.contains(&self)
    }

    /// Its width.
    pub fn bits(self) -> u32 {
        match self {
            I1 => 1,
            I8 => 8,
            F16 | BF16 | I16 => 16,
            F32 | I32 => 32,
            F64 | I64 | Index => 64,
        }
    }

    /// The unit roundoff; 0 of an integer, which is exact.
    pub fn roundoff(self) -> f64 {
        self.dtype().unit_roundoff().unwrap_or(0.0)
    }

    /// What an elementary function may be off by, of its value: hardware approximates in f32 at best
    /// (PTX ISA, `ex2.approx`, `lg2.approx`, `tanh`), libm in f64.
    pub fn approximation(self) -> f64 {
        match self {
            F64 => 1e-14,
            _ => 2.0 * self.roundoff().max(2f64.powi(-21)),
        }
    }

    /// Minus infinity, as MLIR reads it.
    pub fn least(self) -> &'static str {
        match self {
            F16 => "0xFC00",
            BF16 => "0xFF80",
            F64 => "0xFFF0000000000000",
            _ => "0xFF800000",
        }
    }

    /// The largest magnitude that a graph lets values have: of integers, all that there are.
    pub fn limit(self) -> f64 {
        match self {
            F16 => 1e4,
            BF16 | F32 | F64 => 1e6,
            I1 => 1.0,
            _ => 2f64.powi(self.bits() as i32 - 1),
        }
    }
}
