//! What elementary functions are written in: arithmetic in f64, integers of 64 bits and bits.
//!
//! A function is written once, over values that a [`Machine`] gives. One machine computes, on the host, where functions
//! are compared with libm; the other builds operations for the GPU. Both round as IEEE 754 says, and neither fuses a
//! product with a sum unless it is told to ([`Float::fma`]): what holds for one holds for the other.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A function of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    /// The value without its sign.
    Abs,
    /// The value with the other sign.
    Neg,
    /// The square root, rounded to nearest.
    Sqrt,
    /// The nearest whole number, to even.
    RoundEven,
}

/// A function of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient.
    Div,
    /// The magnitude of the first with the sign of the second.
    CopySign,
}

/// A function of two integers of 64 bits, which wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The lower 64 bits of the product.
    Mul,
    /// The upper 64 bits of the unsigned product.
    MulHigh,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// A shift to the left, by less than 64.
    Shl,
    /// A shift to the right by less than 64, of zeros.
    Shr,
    /// A shift to the right by less than 64, of the sign.
    Sar,
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Equal, and neither a NaN.
    Equal,
    /// Less, and neither a NaN.
    Less,
    /// Less, as unsigned integers.
    Below,
    /// One is a NaN.
    Unordered,
}

/// Who computes.
pub(crate) trait Machine: Sized {
    /// A number of f64.
    type Float: Copy;
    /// An integer of 64 bits.
    type Int: Copy;
    /// A condition.
    type Bit: Copy;

    /// A constant.
    fn float(&self, value: f64) -> Self::Float;
    /// A constant.
    fn int(&self, value: i64) -> Self::Int;
    /// A function of one float.
    fn unary(&self, op: Unary, a: Self::Float) -> Self::Float;
    /// A function of two floats.
    fn binary(&self, op: Binary, a: Self::Float, b: Self::Float) -> Self::Float;
    /// `a b + c`, rounded once.
    fn fma(&self, a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    /// A function of two integers.
    fn whole(&self, op: Whole, a: Self::Int, b: Self::Int) -> Self::Int;
    /// A comparison of floats.
    fn compare(&self, order: Order, a: Self::Float, b: Self::Float) -> Self::Bit;
    /// A comparison of integers.
    fn compare_int(&self, order: Order, a: Self::Int, b: Self::Int) -> Self::Bit;
    /// Both conditions.
    fn and(&self, a: Self::Bit, b: Self::Bit) -> Self::Bit;
    /// Either condition.
    fn or(&self, a: Self::Bit, b: Self::Bit) -> Self::Bit;
    /// The other condition.
    fn not(&self, a: Self::Bit) -> Self::Bit;
    /// `a` where the condition holds, else `b`.
    fn choose(&self, condition: Self::Bit, a: Self::Float, b: Self::Float) -> Self::Float;
    /// `a` where the condition holds, else `b`.
    fn choose_int(&self, condition: Self::Bit, a: Self::Int, b: Self::Int) -> Self::Int;
    /// The bits of a float.
    fn bits(&self, a: Self::Float) -> Self::Int;
    /// The float of these bits.
    fn of_bits(&self, a: Self::Int) -> Self::Float;
    /// The nearest float of a signed integer.
    fn to_float(&self, a: Self::Int) -> Self::Float;
    /// The values of one of two sides, of which the other is not computed.
    fn branch(
        &self,
        condition: Self::Bit,
        yes: impl FnOnce() -> [Self::Float; 3],
        no: impl FnOnce() -> [Self::Float; 3],
    ) -> [Self::Float; 3];
}

/// A float of a machine.
pub(crate) struct Float<'m, M: Machine> {
    machine: &'m M,
    /// What the machine has for it.
    pub(crate) value: M::Float,
}

/// An integer of a machine.
pub(crate) struct Int<'m, M: Machine> {
    machine: &'m M,
    value: M::Int,
}

/// A condition of a machine.
pub(crate) struct Bit<'m, M: Machine> {
    machine: &'m M,
    value: M::Bit,
}

macro_rules! copied {
    ($($name:ident),*) => {$(
        impl<M: Machine> Clone for $name<'_, M> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<M: Machine> Copy for $name<'_, M> {}
    )*};
}
copied!(Float, Int, Bit);

/// A float, or a number that becomes one.
pub(crate) trait Number<'m, M: Machine> {
    /// The float on this machine.
    fn on(self, machine: &'m M) -> Float<'m, M>;
}

impl<'m, M: Machine> Number<'m, M> for Float<'m, M> {
    fn on(self, _: &'m M) -> Float<'m, M> {
        self
    }
}

impl<'m, M: Machine> Number<'m, M> for f64 {
    fn on(self, machine: &'m M) -> Float<'m, M> {
        let value = machine.float(self);
        Float { machine, value }
    }
}

/// An integer, or a number that becomes one.
pub(crate) trait Integer<'m, M: Machine> {
    /// The integer on this machine.
    fn on(self, machine: &'m M) -> Int<'m, M>;
}

impl<'m, M: Machine> Integer<'m, M> for Int<'m, M> {
    fn on(self, _: &'m M) -> Int<'m, M> {
        self
    }
}

impl<'m, M: Machine> Integer<'m, M> for i64 {
    fn on(self, machine: &'m M) -> Int<'m, M> {
        let value = machine.int(self);
        Int { machine, value }
    }
}

impl<'m, M: Machine> Float<'m, M> {
    /// A machine's float.
    pub(crate) fn new(machine: &'m M, value: M::Float) -> Self {
        Self { machine, value }
    }

    /// A constant of the same machine.
    pub(crate) fn constant(self, value: f64) -> Self {
        Number::on(value, self.machine)
    }

    /// A condition of the same machine.
    pub(crate) fn condition(self, value: M::Bit) -> Bit<'m, M> {
        let machine = self.machine;
        Bit { machine, value }
    }

    fn unary(self, op: Unary) -> Self {
        Self::new(self.machine, self.machine.unary(op, self.value))
    }

    fn binary(self, op: Binary, other: impl Number<'m, M>) -> Self {
        let other = other.on(self.machine).value;
        Self::new(self.machine, self.machine.binary(op, self.value, other))
    }

    fn compare(self, order: Order, other: impl Number<'m, M>) -> Bit<'m, M> {
        let other = other.on(self.machine).value;
        Bit {
            machine: self.machine,
            value: self.machine.compare(order, self.value, other),
        }
    }

    pub(crate) fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    pub(crate) fn sqrt(self) -> Self {
        self.unary(Unary::Sqrt)
    }

    /// The nearest whole number, to even.
    pub(crate) fn round_even(self) -> Self {
        self.unary(Unary::RoundEven)
    }

    /// This magnitude with another's sign.
    pub(crate) fn copysign(self, sign: impl Number<'m, M>) -> Self {
        self.binary(Binary::CopySign, sign)
    }

    /// `self by + and`, rounded once.
    pub(crate) fn fma(self, by: impl Number<'m, M>, and: impl Number<'m, M>) -> Self {
        let (by, and) = (by.on(self.machine).value, and.on(self.machine).value);
        Self::new(self.machine, self.machine.fma(self.value, by, and))
    }

    pub(crate) fn less(self, other: impl Number<'m, M>) -> Bit<'m, M> {
        self.compare(Order::Less, other)
    }

    pub(crate) fn more(self, other: impl Number<'m, M>) -> Bit<'m, M> {
        other.on(self.machine).compare(Order::Less, self)
    }

    pub(crate) fn equals(self, other: impl Number<'m, M>) -> Bit<'m, M> {
        self.compare(Order::Equal, other)
    }

    pub(crate) fn is_nan(self) -> Bit<'m, M> {
        self.compare(Order::Unordered, self)
    }

    /// The bits.
    pub(crate) fn bits(self) -> Int<'m, M> {
        Int {
            machine: self.machine,
            value: self.machine.bits(self.value),
        }
    }

    /// A polynomial by Horner's rule, highest coefficient first.
    pub(crate) fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut rest = coefficients.iter();
        let first = self.constant(rest.next().copied().unwrap_or(0.0));
        rest.fold(first, |sum, coefficient| sum.fma(self, *coefficient))
    }

    /// `self` inside these ends; a NaN stays.
    pub(crate) fn clamp(self, least: f64, most: f64) -> Self {
        let above = self.less(least).choose(self.constant(least), self);
        above.more(most).choose(self.constant(most), above)
    }

    /// A whole number below 2^51 as an integer; any integer for others. Its bits stand below those of 1.5 2^52.
    pub(crate) fn to_int(self) -> Int<'m, M> {
        const PLACE: f64 = 6_755_399_441_055_744.0;
        (self + PLACE).bits() - PLACE.to_bits() as i64
    }
}

impl<'m, M: Machine> Int<'m, M> {
    fn with(self, op: Whole, other: impl Integer<'m, M>) -> Self {
        let other = other.on(self.machine).value;
        Self {
            machine: self.machine,
            value: self.machine.whole(op, self.value, other),
        }
    }

    /// The upper half of the unsigned product.
    pub(crate) fn mul_high(self, other: impl Integer<'m, M>) -> Self {
        self.with(Whole::MulHigh, other)
    }

    pub(crate) fn and(self, other: impl Integer<'m, M>) -> Self {
        self.with(Whole::And, other)
    }

    pub(crate) fn or(self, other: impl Integer<'m, M>) -> Self {
        self.with(Whole::Or, other)
    }

    pub(crate) fn shl(self, by: impl Integer<'m, M>) -> Self {
        self.with(Whole::Shl, by)
    }

    /// A shift of zeros.
    pub(crate) fn shr(self, by: impl Integer<'m, M>) -> Self {
        self.with(Whole::Shr, by)
    }

    /// A shift of the sign.
    pub(crate) fn sar(self, by: impl Integer<'m, M>) -> Self {
        self.with(Whole::Sar, by)
    }

    fn compare(self, order: Order, other: impl Integer<'m, M>) -> Bit<'m, M> {
        let other = other.on(self.machine).value;
        Bit {
            machine: self.machine,
            value: self.machine.compare_int(order, self.value, other),
        }
    }

    pub(crate) fn equals(self, other: impl Integer<'m, M>) -> Bit<'m, M> {
        self.compare(Order::Equal, other)
    }

    /// Less, unsigned.
    pub(crate) fn below(self, other: impl Integer<'m, M>) -> Bit<'m, M> {
        self.compare(Order::Below, other)
    }

    /// The float of these bits.
    pub(crate) fn as_bits(self) -> Float<'m, M> {
        Float::new(self.machine, self.machine.of_bits(self.value))
    }

    /// The nearest float.
    pub(crate) fn to_float(self) -> Float<'m, M> {
        Float::new(self.machine, self.machine.to_float(self.value))
    }

    /// A constant of the same machine.
    pub(crate) fn constant(self, value: i64) -> Self {
        Integer::on(value, self.machine)
    }
}

impl<'m, M: Machine> Bit<'m, M> {
    /// `yes` where it holds, else `no`.
    pub(crate) fn choose(self, yes: impl Number<'m, M>, no: impl Number<'m, M>) -> Float<'m, M> {
        let (yes, no) = (yes.on(self.machine).value, no.on(self.machine).value);
        Float::new(self.machine, self.machine.choose(self.value, yes, no))
    }

    /// `yes` where it holds, else `no`.
    pub(crate) fn choose_int(
        self,
        yes: impl Integer<'m, M>,
        no: impl Integer<'m, M>,
    ) -> Int<'m, M> {
        let (yes, no) = (yes.on(self.machine).value, no.on(self.machine).value);
        Int {
            machine: self.machine,
            value: self.machine.choose_int(self.value, yes, no),
        }
    }

    /// The values of one of two sides, of which the other is not computed.
    pub(crate) fn branch(
        self,
        yes: impl FnOnce() -> [Float<'m, M>; 3],
        no: impl FnOnce() -> [Float<'m, M>; 3],
    ) -> [Float<'m, M>; 3] {
        let machine = self.machine;
        machine
            .branch(
                self.value,
                || yes().map(|float| float.value),
                || no().map(|float| float.value),
            )
            .map(|value| Float::new(machine, value))
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        impl<'m, M: Machine, N: Number<'m, M>> $operator<N> for Float<'m, M> {
            type Output = Self;

            fn $method(self, other: N) -> Self {
                self.binary(Binary::$operator, other)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

macro_rules! integers {
    ($($operator:ident $method:ident),*) => {$(
        impl<'m, M: Machine, N: Integer<'m, M>> $operator<N> for Int<'m, M> {
            type Output = Self;

            fn $method(self, other: N) -> Self {
                self.with(Whole::$operator, other)
            }
        }
    )*};
}
integers!(Add add, Sub sub, Mul mul);

impl<M: Machine> Neg for Float<'_, M> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Unary::Neg)
    }
}

impl<M: Machine> BitAnd for Bit<'_, M> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        let value = self.machine.and(self.value, other.value);
        Self { value, ..self }
    }
}

impl<M: Machine> BitOr for Bit<'_, M> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        let value = self.machine.or(self.value, other.value);
        Self { value, ..self }
    }
}

impl<M: Machine> Not for Bit<'_, M> {
    type Output = Self;

    fn not(self) -> Self {
        let value = self.machine.not(self.value);
        Self { value, ..self }
    }
}
