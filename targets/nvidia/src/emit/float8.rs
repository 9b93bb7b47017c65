//! 8-bit floats in arithmetic that every chip has.

use super::emitter::Emitter;
use super::schedules::convert;
use super::value::Bound;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::float8::{self, Float8};
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::{Op, Val};
use melior::ir::{Type, ValueLike};

impl<'c> Emitter<'c> {
    /// An `f8E4M3FN` or `f8E5M2` in f16, exactly.
    ///
    /// # Errors
    /// For another format of 8 bits.
    pub(crate) fn widen_float8(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        float8::widen(&self.builder, value, self.float8(value.r#type())?)
    }

    /// An f32 in `f8E4M3FN` or `f8E5M2`, rounded to nearest even; what is larger than the largest becomes that.
    ///
    /// # Errors
    /// For another format of 8 bits.
    pub(crate) fn narrow_float8(&self, value: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
        float8::narrow(&self.builder, value, to, self.float8(to)?)
    }

    /// Emits a conversion of scalars from or to 8-bit floats; false for other operations.
    ///
    /// # Errors
    /// For another format of 8 bits.
    pub(super) fn float8_conversion(&mut self, op: Op<'c>) -> PassResult<'c, bool> {
        let (&[value], &[result]) = (operands(op).as_slice(), results(op).as_slice()) else {
            return Ok(false);
        };
        let converts = ["arith.extf", "arith.truncf"].contains(&name(op).as_str());
        let to = result.r#type();
        if !converts || ![value.r#type(), to].into_iter().any(types::is_float8) {
            return Ok(false);
        }
        let converted = convert(self, self.scalar(value)?, to)?;
        self.bind(result, Bound::Scalar(converted));
        Ok(true)
    }

    fn float8(&self, r#type: Type<'c>) -> PassResult<'c, Float8> {
        Float8::of(r#type)
            .ok_or_else(|| self.error(format!("{type} has no conversion on this target")))
    }
}
