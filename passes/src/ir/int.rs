//! Integer expressions that fold what is known when compiling.

use super::value::defined_by;
use super::{Builder, Val, attribute, types};
use crate::error::{PassError, PassResult};
use axe_layout::Swizzle;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike, ValueLike};

/// An integer that is known now, or at run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Int<'c> {
    /// Known when compiling.
    Known(i64),
    /// Known at run time.
    Value(Val<'c>),
}

impl<'c> Int<'c> {
    /// Zero.
    pub const ZERO: Self = Int::Known(0);

    /// What a value is: a number where a constant defines it.
    #[must_use]
    pub fn of(value: Val<'c>) -> Self {
        let number = defined_by(value, "arith.constant")
            .and_then(|op| op.attribute("value").ok())
            .and_then(attribute::integer);
        number.map_or(Int::Value(value), Int::Known)
    }

    /// The number, when it is known.
    #[must_use]
    pub fn known(&self) -> Option<i64> {
        match self {
            Int::Known(number) => Some(*number),
            Int::Value(_) => None,
        }
    }
}

/// Arithmetic in one integer type. All values are below the type's signed maximum, and divisions are of
/// values that are not negative: that is what addresses and thread numbers are. What is known when compiling is
/// checked; it is an error where the type does not hold it.
#[derive(Clone, Copy)]
pub struct Ints<'c> {
    builder: Builder<'c>,
    r#type: Type<'c>,
    bits: u32,
}

impl<'c> Ints<'c> {
    /// In integers of `bits` bits.
    #[must_use]
    pub fn new(builder: Builder<'c>, bits: u32) -> Self {
        let r#type = builder.r#type(|context| IntegerType::new(context, bits).into());
        Self {
            builder,
            r#type,
            bits,
        }
    }

    /// In `index`.
    #[must_use]
    pub fn index(builder: Builder<'c>) -> Self {
        let r#type = builder.index_type();
        Self {
            builder,
            r#type,
            bits: 64,
        }
    }

    fn too_large(&self, what: impl std::fmt::Display) -> PassError<'c> {
        let message = format!(
            "a size or place of the kernel has no {} bits: {what}",
            self.bits
        );
        PassError::new(self.builder.location, message)
    }

    /// Whether the type holds a number, signed or not.
    fn holds(&self, number: i64) -> bool {
        match self.bits {
            bits @ 1..64 => (-(1 << (bits - 1))..1 << bits).contains(&number),
            _ => true,
        }
    }

    /// The number as an SSA value.
    ///
    /// # Errors
    /// For a number that the type does not hold, and when building fails.
    pub fn value(&self, number: Int<'c>) -> PassResult<'c, Val<'c>> {
        match number {
            Int::Known(known) if !self.holds(known) => Err(self.too_large(known)),
            Int::Known(known) => self
                .builder
                .constant(IntegerAttribute::new(self.r#type, known).into()),
            Int::Value(value) => Ok(value),
        }
    }

    fn operation(&self, name: &str, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        let operands = [self.value(a)?, self.value(b)?];
        self.builder
            .value(name, &operands, self.r#type, &[])
            .map(Int::Value)
    }

    /// `a + b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn add(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => {
                let result = a.checked_add(b);
                let error = || self.too_large(format_args!("{a} + {b}"));
                result.map(Int::Known).ok_or_else(error)
            }
            (Int::Known(0), other) | (other, Int::Known(0)) => Ok(other),
            _ => self.operation("arith.addi", a, b),
        }
    }

    /// `a - b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn sub(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => {
                let result = a.checked_sub(b);
                let error = || self.too_large(format_args!("{a} - {b}"));
                result.map(Int::Known).ok_or_else(error)
            }
            (other, Int::Known(0)) => Ok(other),
            _ => self.operation("arith.subi", a, b),
        }
    }

    /// `a * b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn mul(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), b) => {
                let error = || self.too_large(format_args!("{a} * {b}"));
                a.checked_mul(b).map(Int::Known).ok_or_else(error)
            }
            (_, 0) => Ok(Int::ZERO),
            (a, 1) => Ok(a),
            _ => self.operation("arith.muli", a, Int::Known(b)),
        }
    }

    /// `a / b` for `a` at least 0 and `b` above.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn div(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), b) => Ok(Int::Known(a.div_euclid(b))),
            (a, 1) => Ok(a),
            _ => self.operation("arith.divui", a, Int::Known(b)),
        }
    }

    /// `a mod b` for `a` at least 0 and `b` above.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn rem(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), b) => Ok(Int::Known(a.rem_euclid(b))),
            (_, 1) => Ok(Int::ZERO),
            _ => self.operation("arith.remui", a, Int::Known(b)),
        }
    }

    /// `a * b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn times(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (other, Int::Known(known)) | (Int::Known(known), other) => self.mul(other, known),
            _ => self.operation("arith.muli", a, b),
        }
    }

    /// `a / b` for `a` at least 0 and `b` above.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn divide(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match b {
            Int::Known(known) => self.div(a, known.max(1)),
            Int::Value(_) => self.operation("arith.divui", a, b),
        }
    }

    /// `a mod b` for `a` at least 0 and `b` above.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn modulo(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match b {
            Int::Known(known) => self.rem(a, known.max(1)),
            Int::Value(_) => self.operation("arith.remui", a, b),
        }
    }

    /// `condition ? a : b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn select(&self, condition: Val<'c>, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        if let (Int::Known(a), Int::Known(b)) = (a, b)
            && a == b
        {
            return Ok(Int::Known(a));
        }
        let operands = [condition, self.value(a)?, self.value(b)?];
        self.builder
            .value("arith.select", &operands, self.r#type, &[])
            .map(Int::Value)
    }

    /// Bitwise `a xor b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn xor(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a ^ b)),
            (Int::Known(0), other) | (other, Int::Known(0)) => Ok(other),
            _ => self.operation("arith.xori", a, b),
        }
    }

    /// Bitwise `a and b`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn and(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match a {
            Int::Known(a) => Ok(Int::Known(a & b)),
            _ => self.operation("arith.andi", a, Int::Known(b)),
        }
    }

    /// Where a swizzle moves the address.
    ///
    /// # Errors
    /// When building fails.
    pub fn swizzle(&self, swizzle: Swizzle, address: Int<'c>) -> PassResult<'c, Int<'c>> {
        if let Int::Known(known) = address {
            return Ok(Int::Known(swizzle.apply(known)));
        }
        let shift = i64::from(swizzle.shift());
        let mask = ((1 << swizzle.bits()) - 1) << swizzle.base();
        let bits = match swizzle.inner() {
            true => self.and(self.shift(address, shift)?, mask)?,
            false => self.shift(self.and(address, mask)?, -shift)?,
        };
        self.xor(address, bits)
    }

    /// The smaller one, signed.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn min(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a.min(b))),
            _ => self.operation("arith.minsi", a, b),
        }
    }

    /// The greater one, signed.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn max(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a.max(b))),
            _ => self.operation("arith.maxsi", a, b),
        }
    }

    /// A number of one of so many, of which one that is negative counts from the last on, as in NumPy.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn wrapped(&self, number: Int<'c>, count: Int<'c>) -> PassResult<'c, Int<'c>> {
        let is_negative = self.less(number, Int::Known(0))?;
        self.select(is_negative, self.add(number, count)?, number)
    }

    /// The number from zero up to `count` that is nearest to this one; zero of none.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn clamped(&self, number: Int<'c>, count: Int<'c>) -> PassResult<'c, Int<'c>> {
        let last = self.sub(count, Int::Known(1))?;
        self.max(self.min(number, last)?, Int::Known(0))
    }

    /// `a` shifted by a signed number of bits, to the right when positive.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn shift(&self, a: Int<'c>, right: i64) -> PassResult<'c, Int<'c>> {
        match right {
            0 => Ok(a),
            1.. => self.div(a, 1 << right),
            _ => self.mul(a, 1 << -right),
        }
    }

    /// `a < b`, signed, as an `i1`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn less(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Val<'c>> {
        self.compare(Predicate::Less, a, b)
    }

    /// `a < b`, unsigned, so that what is negative is not below, as an `i1`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn below(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Val<'c>> {
        self.compare(Predicate::Below, a, b)
    }

    /// A comparison, as an `i1`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn compare(&self, predicate: Predicate, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Val<'c>> {
        let bool = self
            .builder
            .r#type(|context| IntegerType::new(context, 1).into());
        let i64 = self
            .builder
            .r#type(|context| IntegerType::new(context, 64).into());
        let predicate = IntegerAttribute::new(i64, predicate as i64).into();
        let operands = [self.value(a)?, self.value(b)?];
        self.builder
            .value("arith.cmpi", &operands, bool, &[("predicate", predicate)])
    }

    /// A value of another integer type, or an index, in this type; truncated or extended with its sign.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn cast(&self, number: Int<'c>) -> PassResult<'c, Int<'c>> {
        let Int::Value(value) = number else {
            return Ok(number);
        };
        let from = value.r#type();
        if from == self.r#type {
            return Ok(number);
        }
        let name = match (
            from.is_index() || self.r#type.is_index(),
            width(from),
            width(self.r#type),
        ) {
            (true, ..) => "arith.index_cast",
            (_, Some(from), Some(to)) if from > to => "arith.trunci",
            _ => "arith.extsi",
        };
        self.builder
            .value(name, &[value], self.r#type, &[])
            .map(Int::Value)
    }
}

fn width(r#type: Type) -> Option<u32> {
    types::bits(r#type)
}

/// `arith.cmpi`'s predicates that are used here.
#[derive(Clone, Copy)]
pub enum Predicate {
    /// Equal.
    Equal = 0,
    /// Signed less.
    Less = 2,
    /// Signed greater or equal.
    AtLeast = 5,
    /// Unsigned less.
    Below = 6,
}
