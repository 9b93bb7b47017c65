//! 8-bit floats (OCP 8-bit Floating Point Specification, revision 1.0) in arithmetic that every chip has.
//!
//! Both formats are f16 with fewer bits: e5m2 its upper byte; e4m3 (no infinities, exponent bias 7 where f16 has 15)
//! the byte below its sign, scaled by 2^8.

use super::kernel::Emitter;
use super::types;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Type, ValueLike};

/// e4m3's bits without the sign; all of them set is NaN.
const MAGNITUDE: i64 = 0x7f;
/// `arith.cmpi`'s predicate "equal".
const EQUAL: i64 = 0;

impl<'c> Emitter<'c> {
    /// An `f8E4M3FN` or `f8E5M2` in f16, exactly.
    ///
    /// # Errors
    /// For another format of 8 bits.
    pub(crate) fn widen_float8(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let format = value.r#type().to_string();
        let i16 = types::integer(self.builder, 16);
        let byte = self.bitcast(value, types::integer(self.builder, 8))?;
        let byte = self.builder.value("arith.extui", &[byte], i16, &[])?;
        match format.as_str() {
            "f8E5M2" => self.bitcast(self.with("arith.shli", byte, 8)?, self.half()),
            "f8E4M3FN" => self.widen_e4m3(byte),
            _ => Err(self.error(format!("{format} has no conversion on this target"))),
        }
    }

    fn widen_e4m3(&self, byte: Val<'c>) -> PassResult<'c, Val<'c>> {
        let f16 = self.half();
        let magnitude = self.with("arith.andi", byte, MAGNITUDE)?;
        let sign = self.with("arith.andi", byte, 0x80)?;
        let (low, high) = (
            self.with("arith.shli", magnitude, 7)?,
            self.with("arith.shli", sign, 8)?,
        );
        let i16 = low.r#type();
        let both = self.builder.value("arith.ori", &[low, high], i16, &[])?;
        let number = |value: f64| self.builder.constant(self.builder.float(f16, value));
        let unscaled = self.bitcast(both, f16)?;
        let operands = [unscaled, number(256.0)?];
        let finite = self.builder.value("arith.mulf", &operands, f16, &[])?;
        let (i1, i64) = (
            types::integer(self.builder, 1),
            types::integer(self.builder, 64),
        );
        let predicate = IntegerAttribute::new(i64, EQUAL).into();
        let all = self
            .builder
            .constant(IntegerAttribute::new(i16, MAGNITUDE).into())?;
        let attributes = [("predicate", predicate)];
        let none = self
            .builder
            .value("arith.cmpi", &[magnitude, all], i1, &attributes)?;
        let operands = [none, number(f64::NAN)?, finite];
        self.builder.value("arith.select", &operands, f16, &[])
    }

    fn half(&self) -> Type<'c> {
        self.builder.r#type(|context| Type::float16(context))
    }

    /// An operation on 16 bits and a constant.
    fn with(&self, name: &str, value: Val<'c>, constant: i64) -> PassResult<'c, Val<'c>> {
        let r#type = value.r#type();
        let constant = self
            .builder
            .constant(IntegerAttribute::new(r#type, constant).into())?;
        self.builder.value(name, &[value, constant], r#type, &[])
    }
}
