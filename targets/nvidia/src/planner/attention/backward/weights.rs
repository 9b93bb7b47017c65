//! The weights of a block in the kernel of gradients, and what the gradients of its scores are formed with.

use super::super::score::Hidden;
use super::block::At;
use super::config::Problem;
use super::kernel::Parts;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::attention::Empty;
use axe_passes::ir::Val;
use melior::ir::ValueLike;
use melior::ir::r#type::IntegerType;
use std::f64::consts::LOG2_E;

/// Logarithms below are those of rows whose keys are all hidden by a low number (-1e30 and less), and of no others.
const LOW: f64 = -1e20;

impl<'c> Parts<'_, 'c> {
    /// Which elements of a block are hidden.
    fn hidden(&self, masked: bool) -> Hidden {
        let Problem { rows, keys, .. } = *self.problem;
        let visible = &self.backward.forward.visible;
        let last = match visible.is_data() {
            true => i64::MAX,
            false => visible.all(rows - 1, 1, i64::MAX)[1],
        };
        Hidden {
            masked,
            rows: masked && self.cut().has_tail(),
            keys: keys % self.config.keys() != 0 && last > keys,
        }
    }

    /// `exp(S - L)`, of L for powers of two: 0 of keys that a query does not see. Behind the last query of which scores are more than
    /// products, and behind the last key, weights are 0.
    pub(super) fn weights(
        &self,
        code: Code<'c>,
        at: At<'c>,
        [products, logs]: [Val<'c>; 2],
        inputs: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let own = &self.data.scores;
        let scores = own.of(code, products, inputs, at.block(), self.hidden(at.masked))?;
        let slope = self.backward.forward.weights.slope * LOG2_E;
        code.map(&[scores, logs], scores.r#type(), |code, own| {
            let &[score, log] = own else {
                return Err(layout_error(
                    code.builder.location,
                    "a weight has two arguments",
                ));
            };
            let builder = code.builder;
            let slope = builder.constant(builder.float(self.f32, slope))?;
            let negated = builder.value("arith.negf", &[log], self.f32, &[])?;
            let exponent = builder.value("math.fma", &[score, slope, negated], self.f32, &[])?;
            let fast = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
            let weight = builder.value("math.exp2", &[exponent], self.f32, &fast)?;
            let Empty::Mean { .. } = self.backward.empty else {
                return Ok(weight);
            };
            let mean = 1.0 / self.problem.keys as f64;
            let mean = builder.constant(builder.float(self.f32, mean))?;
            self.where_low(code, log, [mean, weight])
        })
    }

    /// The weights times the derivative of their scores, which gradients of scores are formed with; none where those are the weights.
    pub(super) fn grown(
        &self,
        code: Code<'c>,
        at: At<'c>,
        (weights, products, logs): (Val<'c>, Val<'c>, Val<'c>),
        inputs: &[Val<'c>],
    ) -> PassResult<'c, Option<Val<'c>>> {
        let mut found = None;
        if let Some(derivative) = self.scored.derivative {
            let scores = &self.data.scores;
            let of = (products, inputs);
            let own = scores.times(code, (weights, derivative), of, at.block())?;
            found = Some(own);
        }
        if self.backward.empty != (Empty::Mean { chosen: true }) {
            return Ok(found);
        }
        let own = [found.unwrap_or(weights), logs];
        let own = code.map(&own, weights.r#type(), |code, own| {
            let &[weight, log] = own else {
                let lost = "a weight has two arguments";
                return Err(layout_error(code.builder.location, lost));
            };
            let zero = code.scalar(self.f32, Number::Of(0))?;
            self.where_low(code, log, [zero, weight])
        })?;
        Ok(Some(own))
    }

    /// The first of two values where all keys of a row of this logarithm are hidden by a low number, else the second.
    fn where_low(
        &self,
        code: Code<'c>,
        log: Val<'c>,
        values: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let builder = code.builder;
        let low = builder.constant(builder.float(self.f32, LOW))?;
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        // Ordered, so that NaN is not less.
        let predicate = [("predicate", builder.parsed("4 : i64")?)];
        let is_low = builder.value("arith.cmpf", &[log, low], bit, &predicate)?;
        code.choose(is_low, values)
    }
}
