//! The functions that the engines compute: arithmetic of two values, and functions of one.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Names each case in the IR's spelling, once: the enum, its list, its names.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$case_doc])* #[serde(rename = $text)] $case,)* }

        impl $name {
            /// Every case, in the order of the dialect's enum.
            pub const ALL: &[$name] = &[$($name::$case,)*];

            /// The name in the IR, in `nki.language` and in messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$case => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// A function of two values, as the vector engine computes it: in f32, or on the bits of integers (ISA, "supported
    /// math operators").
    Alu {
        /// `a + b`.
        Add = "add",
        /// `a - b`.
        Subtract = "subtract",
        /// `a * b`.
        Multiply = "multiply",
        /// The larger.
        Maximum = "maximum",
        /// The smaller.
        Minimum = "minimum",
        /// 1 where equal, else 0.
        Equal = "equal",
        /// 1 where not equal, else 0.
        NotEqual = "not_equal",
        /// 1 where `a > b`, else 0.
        Greater = "greater",
        /// 1 where `a >= b`, else 0.
        GreaterEqual = "greater_equal",
        /// 1 where `a < b`, else 0.
        Less = "less",
        /// 1 where `a <= b`, else 0.
        LessEqual = "less_equal",
        /// 1 where both are not 0, else 0.
        LogicalAnd = "logical_and",
        /// 1 where one is not 0, else 0.
        LogicalOr = "logical_or",
        /// 1 where exactly one is not 0, else 0.
        LogicalXor = "logical_xor",
        /// `a` to the power of `b`; gpsimd alone.
        Power = "power",
        /// Bitwise and.
        BitwiseAnd = "bitwise_and",
        /// Bitwise or.
        BitwiseOr = "bitwise_or",
        /// Bitwise exclusive or.
        BitwiseXor = "bitwise_xor",
        /// `a << b`.
        LeftShift = "left_shift",
        /// `a >> b`, zeros shifted in.
        RightShift = "right_shift",
    }
}

impl Alu {
    /// Whether it works on the bits of integers.
    #[must_use]
    pub const fn is_bitwise(self) -> bool {
        matches!(
            self,
            Alu::BitwiseAnd | Alu::BitwiseOr | Alu::BitwiseXor | Alu::LeftShift | Alu::RightShift
        )
    }

    /// Whether it compares.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Alu::Equal
                | Alu::NotEqual
                | Alu::Greater
                | Alu::GreaterEqual
                | Alu::Less
                | Alu::LessEqual
        )
    }

    /// The value, computed in f32. Bitwise functions have none: NaN.
    #[must_use]
    pub fn apply(self, a: f32, b: f32) -> f32 {
        let truth = |value: bool| f32::from(u8::from(value));
        match self {
            Alu::Add => a + b,
            Alu::Subtract => a - b,
            Alu::Multiply => a * b,
            Alu::Maximum => a.max(b),
            Alu::Minimum => a.min(b),
            Alu::Equal => truth(a == b),
            Alu::NotEqual => truth(a != b),
            Alu::Greater => truth(a > b),
            Alu::GreaterEqual => truth(a >= b),
            Alu::Less => truth(a < b),
            Alu::LessEqual => truth(a <= b),
            Alu::LogicalAnd => truth(a != 0.0 && b != 0.0),
            Alu::LogicalOr => truth(a != 0.0 || b != 0.0),
            Alu::LogicalXor => truth((a != 0.0) != (b != 0.0)),
            Alu::Power => libm::powf(a, b),
            Alu::BitwiseAnd
            | Alu::BitwiseOr
            | Alu::BitwiseXor
            | Alu::LeftShift
            | Alu::RightShift => f32::NAN,
        }
    }

    /// The value on the bits of integers of `bits` bits; `None` for arithmetic.
    #[must_use]
    pub fn apply_bits(self, a: u32, b: u32, bits: u32) -> Option<u32> {
        let mask = u32::MAX >> (32 - bits.clamp(1, 32));
        let (a, b) = (a & mask, b & mask);
        let value = match self {
            Alu::BitwiseAnd => a & b,
            Alu::BitwiseOr => a | b,
            Alu::BitwiseXor => a ^ b,
            Alu::LeftShift => a.checked_shl(b).unwrap_or(0),
            Alu::RightShift => a.checked_shr(b).unwrap_or(0),
            _ => return None,
        };
        Some(value & mask)
    }
}

named! {
    /// A function of one value, as the scalar engine computes it (ISA, "supported activation functions").
    Function {
        /// `x`.
        Copy = "copy",
        /// `x * x`.
        Square = "square",
        /// The logistic function.
        Sigmoid = "sigmoid",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `x` times the normal distribution function.
        Gelu = "gelu",
        /// The tanh form of gelu.
        GeluTanh = "gelu_apprx_tanh",
        /// `x * sigmoid(1.702 x)`.
        GeluSigmoid = "gelu_apprx_sigmoid",
        /// `x * sigmoid(x)`.
        Silu = "silu",
        /// The hyperbolic tangent.
        Tanh = "tanh",
        /// `ln(1 + e^x)`.
        Softplus = "softplus",
        /// `x * tanh(softplus(x))`.
        Mish = "mish",
        /// The error function.
        Erf = "erf",
        /// `e^x`.
        Exp = "exp",
        /// The natural logarithm.
        Log = "log",
        /// The sine, from -pi to pi.
        Sin = "sin",
        /// The arc tangent.
        Arctan = "arctan",
        /// The square root.
        Sqrt = "sqrt",
        /// One over the square root.
        Rsqrt = "rsqrt",
        /// One over `x`.
        Reciprocal = "reciprocal",
        /// -1, 0 or 1.
        Sign = "sign",
        /// The absolute value.
        Abs = "abs",
    }
}

impl Function {
    /// The value: computed in f64 and rounded once, which is at least as close as the hardware's tables.
    #[must_use]
    pub fn apply(self, x: f32) -> f32 {
        let x = f64::from(x);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let softplus = |x: f64| if x > 30.0 { x } else { x.exp().ln_1p() };
        let value = match self {
            Function::Copy => x,
            Function::Square => x * x,
            Function::Sigmoid => sigmoid(x),
            Function::Relu => x.max(0.0),
            Function::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Function::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Function::GeluSigmoid => x * sigmoid(1.702 * x),
            Function::Silu => x * sigmoid(x),
            Function::Tanh => x.tanh(),
            Function::Softplus => softplus(x),
            Function::Mish => x * softplus(x).tanh(),
            Function::Erf => libm::erf(x),
            Function::Exp => x.exp(),
            Function::Log => x.ln(),
            Function::Sin => x.sin(),
            Function::Arctan => x.atan(),
            Function::Sqrt => x.sqrt(),
            Function::Rsqrt => 1.0 / x.sqrt(),
            Function::Reciprocal => 1.0 / x,
            Function::Sign if x == 0.0 => 0.0,
            Function::Sign => x.signum(),
            Function::Abs => x.abs(),
        };
        value as f32
    }

    /// The arguments for which the hardware's table is defined (ISA, "valid input range"); everything for the others.
    #[must_use]
    pub fn range(self) -> (f32, f32) {
        let two = |power: i32| 2f32.powi(power);
        match self {
            Function::Log => (two(-64), two(64)),
            Function::Sqrt => (two(-116), two(118)),
            Function::Rsqrt => (two(-87), two(97)),
            Function::Sin => (-std::f32::consts::PI, std::f32::consts::PI),
            Function::Reciprocal => (-two(42), two(42)),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }

    /// Whether the argument is in the range for which the hardware's table is defined. A square root of 0 is 0.
    #[must_use]
    pub fn accepts(self, x: f32) -> bool {
        let (low, high) = self.range();
        match self {
            Function::Reciprocal => x.abs() >= 2f32.powi(-42) && x.abs() <= high,
            Function::Sqrt if x == 0.0 => true,
            _ => x.is_nan() || (low..=high).contains(&x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_values_of_their_definitions() {
        let close = |a: f32, b: f32| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
        for (function, x, expected) in [
            (Function::Gelu, 1.0, 0.841_344_8),
            (Function::GeluTanh, 1.0, 0.841_192),
            (Function::Silu, 2.0, 1.761_594_2),
            (Function::Mish, 1.0, 0.865_098_4),
            (Function::Softplus, 50.0, 50.0),
            (Function::Erf, 0.5, 0.520_499_9),
            (Function::Rsqrt, 4.0, 0.5),
            (Function::Sign, -3.0, -1.0),
            (Function::Sign, 0.0, 0.0),
        ] {
            assert!(
                close(function.apply(x), expected),
                "{function}({x}) = {}",
                function.apply(x)
            );
        }
    }

    #[test]
    fn ranges_are_those_of_the_tables() {
        assert!(Function::Log.accepts(1.0) && !Function::Log.accepts(0.0));
        assert!(Function::Sin.accepts(3.0) && !Function::Sin.accepts(4.0));
        assert!(!Function::Reciprocal.accepts(0.0) && Function::Reciprocal.accepts(-2.0));
        assert!(Function::Sqrt.accepts(0.0) && !Function::Sqrt.accepts(-1.0));
        assert!(Function::Exp.accepts(f32::MAX));
    }

    #[test]
    fn bits_stay_within_the_type() {
        assert_eq!(Alu::LeftShift.apply_bits(0xFF, 4, 8), Some(0xF0));
        assert_eq!(Alu::LeftShift.apply_bits(1, 40, 32), Some(0));
        assert_eq!(Alu::BitwiseXor.apply_bits(6, 3, 16), Some(5));
        assert_eq!(Alu::Add.apply_bits(6, 3, 16), None);
    }
}
