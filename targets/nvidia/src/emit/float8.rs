//! 8-bit floats in arithmetic that every chip has.

use super::emitter::Emitter;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use axe_passes::ir::float8::{self, Float8};
use melior::ir::ValueLike;

impl<'c> Emitter<'c> {
    /// An `f8E4M3FN` or `f8E5M2` in f16, exactly.
    ///
    /// # Errors
    /// For another format of 8 bits.
    pub(crate) fn widen_float8(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let format = Float8::of(value.r#type()).ok_or_else(|| {
            let format = value.r#type();
            self.error(format!("{format} has no conversion on this target"))
        })?;
        float8::widen(&self.builder, value, format)
    }
}
