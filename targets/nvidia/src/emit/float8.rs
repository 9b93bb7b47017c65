//! 8-bit floats in arithmetic that every chip has.

use super::emitter::Emitter;
use super::schedules::convert;
use super::value::Bound;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::float8::{self, Float8};
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::TypeAttribute;
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

    /// Registers in `f8E4M3FN` or `f8E5M2`, rounded alike by the chip's conversion of pairs; four are formed as one word, which is
    /// how products take them.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn narrow_float8s(
        &self,
        values: &[Val<'c>],
        to: Type<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let f32 = self.builder.r#type(|context| Type::float32(context));
        let mut narrow = Vec::new();
        for word in values.chunks(4) {
            let mut wide = Vec::new();
            for value in word {
                wide.push(convert(self, *value, f32)?);
            }
            let mut pairs = Vec::new();
            for pair in wide.chunks(2) {
                pairs.push(self.narrow_pair(pair, to)?);
            }
            let halves = self.pack(&pairs, types::integer(self.builder, 16))?;
            let count = 2 * i64::try_from(pairs.len()).unwrap_or(1);
            let bytes = self.bitcast(halves, types::vector(count, to))?;
            let own = i64::try_from(word.len()).unwrap_or(1);
            narrow.extend(self.unpack(bytes, own, to)?);
        }
        Ok(narrow)
    }

    /// One or two f32 as 8-bit floats, the first in the low byte of an i16 (PTX ISA 9.7.9.21, `cvt.rn.satfinite.e4m3x2.f32`).
    fn narrow_pair(&self, pair: &[Val<'c>], to: Type<'c>) -> PassResult<'c, Val<'c>> {
        let (low, high) = match *pair {
            [low, high] => (low, high),
            [low] => (low, low),
            _ => return Err(self.error("expected one or two values")),
        };
        let builder = self.builder;
        let attributes = [
            ("rnd", builder.parsed("#nvvm.fp_rnd_mode<rn>")?),
            ("sat", builder.parsed("#nvvm.sat_mode<satfinite>")?),
            ("dstTy", TypeAttribute::new(to).into()),
        ];
        let name = "nvvm.convert.f32x2.to.f8x2";
        builder.value(name, &[high, low], types::integer(builder, 16), &attributes)
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
