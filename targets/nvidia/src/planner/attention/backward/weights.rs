//! The weights of a block in the kernel of gradients, and what the gradients of its scores are formed with.

use super::super::score::{BY_KEY, Dims, Hidden, compare, i32_of, place};
use super::block::At;
use super::config::Problem;
use super::kernel::Parts;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::attention::Empty;
use axe_passes::fuse::attention::visible::Edge;
use axe_passes::ir::Val;
use melior::ir::ValueLike;
use melior::ir::r#type::IntegerType;
use std::f64::consts::LOG2_E;

/// Logarithms below are those of rows whose keys are all hidden by a low number (-1e30 and less), and of no others.
const LOW: f64 = -1e20;
/// Predicates of `arith.cmpi`: `slt`, `sle`, `sge`.
const BELOW: i64 = 2;
const AT_MOST: i64 = 3;
const AT_LEAST: i64 = 5;

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

    /// Whether hidden weights are set to 0, which takes fewer registers than hiding their scores before they are exponentials.
    fn hides_weights(&self) -> bool {
        let is_mean = matches!(self.backward.empty, Empty::Mean { .. });
        self.backward.forward.visible.is_band() && !is_mean
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
        let all = self.hidden(at.masked);
        let (before, behind) = match self.hides_weights() {
            true => (
                Hidden {
                    rows: all.rows,
                    ..Hidden::NONE
                },
                Hidden { rows: false, ..all },
            ),
            false => (all, Hidden::NONE),
        };
        let scores = own.of(code, products, inputs, at.block(), before)?;
        let slope = self.backward.forward.weights.slope * LOG2_E;
        let weights = code.map(&[scores, logs], scores.r#type(), |code, own| {
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
        })?;
        match behind == Hidden::NONE {
            true => Ok(weights),
            false => self.in_band(code, weights, at, behind),
        }
    }

    /// The weights, 0 of keys outside of the band that queries see, and of those behind the last one.
    fn in_band(
        &self,
        code: Code<'c>,
        weights: Val<'c>,
        at: At<'c>,
        hidden: Hidden,
    ) -> PassResult<'c, Val<'c>> {
        let visible = &self.backward.forward.visible;
        // Places in the block: key <= query + limit, key >= query + limit, key < limit.
        let limit = |of: Val<'c>, offset: i64| {
            let offset = code.index(offset)?;
            i32_of(code, code.sub(code.add(of, offset)?, at.tile.key)?)
        };
        let edges = |edges: &[Edge], offset: i64| {
            let of = |edge: &Edge| limit(at.row, edge.start + offset);
            let all = if hidden.masked { edges } else { &[] };
            all.iter().map(of).collect::<PassResult<Vec<_>>>()
        };
        let (to, from) = (edges(&visible.to, -1)?, edges(&visible.from, 0)?);
        let end = match hidden.keys {
            true => Some(limit(code.index(self.problem.keys)?, 0)?),
            false => None,
        };
        let Dims { row, key } = BY_KEY;
        code.map(&[weights], weights.r#type(), |code, own| {
            let (key, query) = (place(code, key)?, place(code, row)?);
            let mut all = Vec::new();
            for (limits, predicate) in [(&to, AT_MOST), (&from, AT_LEAST)] {
                for limit in limits {
                    let own = [query, *limit];
                    let own = code
                        .builder
                        .value("arith.addi", &own, limit.r#type(), &[])?;
                    all.push(compare(code, predicate, key, own)?);
                }
            }
            if let Some(end) = end {
                all.push(compare(code, BELOW, key, end)?);
            }
            let zero = code.scalar(self.f32, Number::Of(0))?;
            let lost = "a weight has one argument";
            let own = own.first().copied();
            let own = own.ok_or_else(|| layout_error(code.builder.location, lost))?;
            all.into_iter()
                .try_fold(own, |value, seen| code.choose(seen, [value, zero]))
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
