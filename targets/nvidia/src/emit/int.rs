//! Integer expressions that fold what is known when compiling.

use axe_passes::ir::{Builder, Val};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, TypeLike, ValueLike};

/// An integer that is known now, or at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Int<'c> {
    /// Known when compiling.
    Known(i64),
    /// Known at run time.
    Value(Val<'c>),
}

impl Int<'_> {
    /// Zero.
    pub(crate) const ZERO: Self = Int::Known(0);

    /// The number, when it is known.
    pub(crate) fn known(&self) -> Option<i64> {
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
pub(crate) struct Ints<'c> {
    builder: Builder<'c>,
    r#type: Type<'c>,
    bits: u32,
}

impl<'c> Ints<'c> {
    /// In integers of `bits` bits.
    pub(crate) fn new(builder: Builder<'c>, bits: u32) -> Self {
        let r#type = builder.r#type(|context| IntegerType::new(context, bits).into());
        Self {
            builder,
            r#type,
            bits,
        }
    }

    /// In `index`.
    pub(crate) fn index(builder: Builder<'c>) -> Self {
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
    pub(crate) fn value(&self, number: Int<'c>) -> PassResult<'c, Val<'c>> {
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
    pub(crate) fn add(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
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
    pub(crate) fn sub(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
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
    pub(crate) fn mul(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
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
    pub(crate) fn div(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), b) => Ok(Int::Known(a / b)),
            (a, 1) => Ok(a),
            _ => self.operation("arith.divui", a, Int::Known(b)),
        }
    }

    /// `a mod b` for `a` at least 0 and `b` above.
    pub(crate) fn rem(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), b) => Ok(Int::Known(a % b)),
            (_, 1) => Ok(Int::ZERO),
            _ => self.operation("arith.remui", a, Int::Known(b)),
        }
    }

    /// `a * b`.
    pub(crate) fn times(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (other, Int::Known(known)) | (Int::Known(known), other) => self.mul(other, known),
            _ => self.operation("arith.muli", a, b),
        }
    }

    /// `a / b` for `a` at least 0 and `b` above.
    pub(crate) fn divide(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match b {
            Int::Known(known) => self.div(a, known.max(1)),
            Int::Value(_) => self.operation("arith.divui", a, b),
        }
    }

    /// `a mod b` for `a` at least 0 and `b` above.
    pub(crate) fn modulo(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match b {
            Int::Known(known) => self.rem(a, known.max(1)),
            Int::Value(_) => self.operation("arith.remui", a, b),
        }
    }

    /// `condition ? a : b`.
    pub(crate) fn select(
        &self,
        condition: Val<'c>,
        a: Int<'c>,
        b: Int<'c>,
    ) -> PassResult<'c, Int<'c>> {
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
    pub(crate) fn xor(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a ^ b)),
            (Int::Known(0), other) | (other, Int::Known(0)) => Ok(other),
            _ => self.operation("arith.xori", a, b),
        }
    }

    /// Bitwise `a and b`.
    pub(crate) fn and(&self, a: Int<'c>, b: i64) -> PassResult<'c, Int<'c>> {
        match a {
            Int::Known(a) => Ok(Int::Known(a & b)),
            _ => self.operation("arith.andi", a, Int::Known(b)),
        }
    }

    /// The smaller one, signed.
    pub(crate) fn min(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a.min(b))),
            _ => self.operation("arith.minsi", a, b),
        }
    }

    /// The greater one, signed.
    pub(crate) fn max(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Int<'c>> {
        match (a, b) {
            (Int::Known(a), Int::Known(b)) => Ok(Int::Known(a.max(b))),
            _ => self.operation("arith.maxsi", a, b),
        }
    }

    /// `a` shifted by a signed number of bits, to the right when positive.
    pub(crate) fn shift(&self, a: Int<'c>, right: i64) -> PassResult<'c, Int<'c>> {
        match right {
            0 => Ok(a),
            1.. => self.div(a, 1 << right),
            _ => self.mul(a, 1 << -right),
        }
    }

    /// `a < b`, signed, as an `i1`.
    pub(crate) fn less(&self, a: Int<'c>, b: Int<'c>) -> PassResult<'c, Val<'c>> {
        self.compare(Predicate::Less, a, b)
    }

    /// A comparison, as an `i1`.
    pub(crate) fn compare(
        &self,
        predicate: Predicate,
        a: Int<'c>,
        b: Int<'c>,
    ) -> PassResult<'c, Val<'c>> {
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
    pub(crate) fn cast(&self, number: Int<'c>) -> PassResult<'c, Int<'c>> {
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
    axe_passes::ir::types::bits(r#type)
}

/// `arith.cmpi`'s predicates that are used here.
#[derive(Clone, Copy)]
pub(crate) enum Predicate {
    /// Equal.
    Equal = 0,
    /// Signed less.
    Less = 2,
}
