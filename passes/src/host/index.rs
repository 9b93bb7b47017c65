//! Index arithmetic that folds what is known when it is built, so that an address reads as a person would write it.

use crate::error::PassResult;
use crate::ir::value::defined_by;
use crate::ir::{Builder, Val, attribute};
use axe_layout::Swizzle;
use melior::ir::operation::OperationLike;

/// An index: a number, or a value known at run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ix<'c> {
    /// Known when built.
    Fixed(i64),
    /// Known at run time.
    At(Val<'c>),
}

impl<'c> Ix<'c> {
    /// The index that a value is: a number when a constant defines it.
    pub(super) fn of(value: Val<'c>) -> Self {
        let number = defined_by(value, "arith.constant")
            .and_then(|op| op.attribute("value").ok())
            .and_then(attribute::integer);
        number.map_or(Self::At(value), Self::Fixed)
    }

    /// The index as a value.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn value(self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Fixed(number) => builder.index(number),
            Self::At(value) => Ok(value),
        }
    }

    /// `self + other`, in 64 bits as the machine adds.
    pub(super) fn add(self, builder: &Builder<'c>, other: Self) -> PassResult<'c, Self> {
        match (self, other) {
            (Self::Fixed(0), x) | (x, Self::Fixed(0)) => Ok(x),
            (Self::Fixed(a), Self::Fixed(b)) => Ok(Self::Fixed(a.wrapping_add(b))),
            _ => self.combine(builder, "arith.addi", other),
        }
    }

    /// `self * factor`, in 64 bits as the machine multiplies.
    pub(super) fn times(self, builder: &Builder<'c>, factor: i64) -> PassResult<'c, Self> {
        match (self, factor) {
            (_, 0) => Ok(Self::Fixed(0)),
            (x, 1) => Ok(x),
            (Self::Fixed(a), _) => Ok(Self::Fixed(a.wrapping_mul(factor))),
            _ => self.combine(builder, "arith.muli", Self::Fixed(factor)),
        }
    }

    /// `self / divisor` rounded down, for a divisor of at least 1 and `self` that is not negative.
    pub(super) fn over(self, builder: &Builder<'c>, divisor: i64) -> PassResult<'c, Self> {
        match (self, divisor) {
            (x, 1) => Ok(x),
            (Self::Fixed(a), d) if d > 0 => Ok(Self::Fixed(a.div_euclid(d))),
            _ => self.combine(builder, "arith.divui", Self::Fixed(divisor)),
        }
    }

    /// The remainder of [`Self::over`].
    pub(super) fn modulo(self, builder: &Builder<'c>, divisor: i64) -> PassResult<'c, Self> {
        match (self, divisor) {
            (_, 1) => Ok(Self::Fixed(0)),
            (Self::Fixed(a), d) if d > 0 => Ok(Self::Fixed(a.rem_euclid(d))),
            _ => self.combine(builder, "arith.remui", Self::Fixed(divisor)),
        }
    }

    /// Where a swizzle moves the address.
    pub(super) fn swizzled(self, builder: &Builder<'c>, swizzle: Swizzle) -> PassResult<'c, Self> {
        if swizzle.is_identity() {
            return Ok(self);
        }
        if let Self::Fixed(address) = self {
            return Ok(Self::Fixed(swizzle.apply(address)));
        }
        let group = (1_i64 << swizzle.bits()) - 1;
        let (low, high) = (swizzle.base(), swizzle.base() + swizzle.shift());
        let shift = Self::Fixed(i64::from(swizzle.shift()));
        let (from, shifted) = if swizzle.inner() {
            (group << high, "arith.shrui")
        } else {
            (group << low, "arith.shli")
        };
        let bits = self.combine(builder, "arith.andi", Self::Fixed(from))?;
        let bits = bits.combine(builder, shifted, shift)?;
        self.combine(builder, "arith.xori", bits)
    }

    /// `self < other` as unsigned, so that a negative index is not below: i1.
    pub(super) fn below(self, builder: &Builder<'c>, other: Self) -> PassResult<'c, Val<'c>> {
        let (a, b) = (self.value(builder)?, other.value(builder)?);
        super::ops::compare(builder, super::ops::ULT, a, b)
    }

    fn combine(self, builder: &Builder<'c>, name: &str, other: Self) -> PassResult<'c, Self> {
        let operands = [self.value(builder)?, other.value(builder)?];
        let index = builder.index_type();
        builder.value(name, &operands, index, &[]).map(Self::At)
    }
}
