//! Sines and cosines of f32 and of narrower floats.
//!
//! Turns of pi are taken off in one step, in f32 where results are rounded to 16 bits and in f64 else. Numbers that are too large for it,
//! which are rare, are a branch: in a function of its own where the code has no products, since it is long.

use super::approximate::{self, Arithmetic, MOST_OF_SINE};
use super::emitter::Emitter;
use super::math::Floats;
use super::outlined::{call, outlined};
use super::schedules::convert;
use crate::math::{Emitted, Float, far_sine, near_sine};
use axe_passes::PassResult;
use axe_passes::fuse::operators::is_product;
use axe_passes::ir::types::bits;
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Builder, Val};
use axe_passes::precision::is_bf16;
use melior::ir::{Type, ValueLike};

/// The magnitude up to which a number of f32 leaves turns of pi in one step of f64.
const MOST_IN_F64: f64 = 2_147_483_648.0;

impl<'c> Emitter<'c> {
    /// The sine or cosine of a float of 32 bits or less, in `r#type`.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn sine(
        &mut self,
        name: &str,
        x: Val<'c>,
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let is_coarse = bits(r#type) == Some(16);
        self.sine_by_need(name, x, (r#type, is_coarse))
    }

    /// The same, exact to 16 bits only where it is coarse.
    pub(super) fn sine_by_need(
        &mut self,
        name: &str,
        x: Val<'c>,
        (r#type, is_coarse): (Type<'c>, bool),
    ) -> PassResult<'c, Val<'c>> {
        let is_cosine = name == "math.cos";
        let is_f16 = bits(x.r#type()) == Some(16) && !is_bf16(x.r#type());
        let f32 = Floats::new(self).r#type;
        let x = convert(self, x, f32)?;
        let floats = Floats::new(self);
        let near = match is_coarse {
            true => approximate::sine(&floats, x, is_cosine)?,
            false => in_f64(self.builder, x, |x| near_sine(x, is_cosine))?,
        };
        if is_f16 {
            return convert(self, near, r#type);
        }
        let most = if is_coarse { MOST_OF_SINE } else { MOST_IN_F64 };
        let is_near = floats.less(Arithmetic::abs(&floats, x)?, most)?;
        let far = |builder: &Builder<'c>, x| in_f64(*builder, x, |x| far_sine(x, is_cosine));
        let outer = self.builder;
        let inside = nested(self.kernel.op, &|_| true);
        let has_products = inside.into_iter().any(is_product);
        let callee = match has_products {
            true => None,
            false => Some(outlined(
                self,
                "far",
                (&[f32], f32),
                |emitter, arguments| {
                    let x = arguments.first().copied();
                    let x = x.ok_or_else(|| emitter.error("expected an argument"))?;
                    far(&emitter.builder, x)
                },
            )?),
        };
        let value = outer.choose(
            is_near,
            |_| Ok(near),
            |inner| match callee {
                Some(callee) => call(*inner, callee, &[x], f32),
                None => far(inner, x),
            },
        )?;
        convert(self, value, r#type)
    }
}

/// A function of a number of f32 that is computed in f64.
fn in_f64<'c>(
    builder: Builder<'c>,
    x: Val<'c>,
    of: impl for<'m> Fn(Float<'m, Emitted<'c>>) -> Float<'m, Emitted<'c>>,
) -> PassResult<'c, Val<'c>> {
    let f64 = builder.r#type(|context| Type::float64(context));
    let wide = builder.value("arith.extf", &[x], f64, &[])?;
    let machine = Emitted::new(builder, wide);
    let value = of(Float::new(&machine, wide)).value;
    let value = machine.finish(value)?;
    builder.value("arith.truncf", &[value], x.r#type(), &[])
}
