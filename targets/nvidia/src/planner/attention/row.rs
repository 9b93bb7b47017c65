//! What a kernel computes of values of rows: maxima, sums of exponentials, and what results are multiplied by.

use super::score::{OfProblem, widened};
use crate::vocabulary::RESCALE;
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::dispatch::record;
use axe_passes::fuse::attention::weights::{EmptyLog, LogSum};
use axe_passes::fuse::attention::{Attention, is_e4m3};
use axe_passes::ir::Val;
use axe_passes::ir::value::defining;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use std::f64::consts::{LN_2, LOG2_E};

/// When results are multiplied by what a new maximum leaves of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaling {
    /// Once the product that adds to them is complete.
    Behind,
    /// Before the next one, when all of the next scores are issued.
    Between,
}

impl Scaling {
    /// The quickest, as it was measured (docs/performance.md): masked heads of less than 128 columns have no registers left between.
    pub(super) const fn of(columns: i64, is_masked: bool) -> Self {
        match columns {
            ..128 if is_masked => Self::Behind,
            _ => Self::Between,
        }
    }
}

/// The power of two that weights are at most, above the maximum that they are formed with: f16 has those as exactly as weights up to 1, the
/// largest number of f8E4M3FN is 448, and FlashAttention-4 has the same bound.
const MOST: f64 = 8.0;

/// The power of two that weights in f8E4M3FN are multiplied by, so that small ones are normal numbers. What is left of [`MOST`] is for
/// scores above the maximum.
const RAISED: f64 = 6.0;

/// The arithmetic of rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, 'c> {
    pub attention: &'a Attention<'c>,
    pub f32: Type<'c>,
}

impl<'c> Rows<'_, 'c> {
    /// The greater of two values of each row; numbers are preferred to NaN.
    fn greater(self, code: Code<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.map(&[a, b], a.r#type(), |code, arguments| {
            code.builder
                .value("arith.maxnumf", arguments, self.f32, &[])
        })
    }

    /// Whether weights may be formed with less than the maximum: no result shows what they were formed with.
    fn has_slack(self) -> bool {
        let weights = &self.attention.weights;
        weights.normalized && weights.slope > 0.0
    }

    /// What the weights of a row are formed with from now on, of what they were formed with before and of a block's own maximum: the
    /// greater one, or the one before where the block's is not far above it.
    pub(super) fn maximum(
        self,
        code: Code<'c>,
        before: Val<'c>,
        own: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let greatest = self.greater(code, before, own)?;
        if !self.has_slack() {
            return Ok(greatest);
        }
        let slack = (MOST - self.raised()) / (self.attention.weights.slope * LOG2_E);
        code.map(&[before, greatest], greatest.r#type(), |code, arguments| {
            let &[before, greatest] = arguments else {
                return Err(layout_error(code.builder.location, "a row has two maxima"));
            };
            let builder = code.builder;
            let slack = builder.constant(builder.float(self.f32, slack))?;
            let growth = builder.value("arith.subf", &[greatest, before], self.f32, &[])?;
            let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
            let predicate = [("predicate", builder.parsed("2 : i64")?)];
            let grows = builder.value("arith.cmpf", &[growth, slack], bit, &predicate)?;
            code.choose(grows, [greatest, before])
        })
    }

    /// What a maximum leaves of the weights that were formed with the one before: exactly 1 where they are the same.
    pub(super) fn left(
        self,
        code: Code<'c>,
        [before, maximum, shown]: [Val<'c>; 3],
    ) -> PassResult<'c, Val<'c>> {
        let factor = self.exponentials(code, before, shown)?;
        if !self.has_slack() {
            return Ok(factor);
        }
        code.map(
            &[before, maximum, factor],
            factor.r#type(),
            |code, arguments| {
                let &[before, maximum, factor] = arguments else {
                    return Err(layout_error(code.builder.location, "a row has two maxima"));
                };
                let one = code.scalar(self.f32, Number::Of(1))?;
                self.where_equal(code, [before, maximum], [one, factor])
            },
        )
    }

    /// Results times what a maximum leaves of them, which nearly always is 1.
    pub(super) fn rescaled(
        self,
        code: Code<'c>,
        results: Val<'c>,
        factor: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let scaled = self.times(code, results, factor)?;
        if let Some(map) = defining(scaled).filter(|_| self.has_slack()) {
            record::ask(map, RESCALE);
        }
        Ok(scaled)
    }

    /// The maximum of each row as exponents take it: 0 where all keys so far are hidden, so that their weights are 0.
    pub(super) fn shown(self, code: Code<'c>, maximum: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.map(&[maximum], maximum.r#type(), |code, arguments| {
            let none = code.scalar(self.f32, Number::Least)?;
            self.zero_where(code, [arguments[0], none], arguments[0])
        })
    }

    /// A value, or 0 where two others are equal.
    fn zero_where(
        self,
        code: Code<'c>,
        equal: [Val<'c>; 2],
        value: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let zero = code.scalar(self.f32, Number::Of(0))?;
        self.where_equal(code, equal, [zero, value])
    }

    /// The first of two values where two others are equal, else the second.
    fn where_equal(
        self,
        code: Code<'c>,
        equal: [Val<'c>; 2],
        values: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let builder = code.builder;
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        let predicate = [("predicate", builder.parsed("1 : i64")?)];
        let equal = builder.value("arith.cmpf", &equal, bit, &predicate)?;
        code.choose(equal, values)
    }

    /// The power of two that weights are multiplied by, so that small ones are normal numbers of their type.
    fn raised(self) -> f64 {
        match is_e4m3(self.attention.element) {
            true => RAISED,
            false => 0.0,
        }
    }

    /// `exp(slope * (x - m))` of each element.
    pub(super) fn exponentials(
        self,
        code: Code<'c>,
        x: Val<'c>,
        m: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        self.powers(code, [x, m], 0.0)
    }

    /// The same as weights of rows with these maxima.
    pub(super) fn weights(self, code: Code<'c>, x: Val<'c>, m: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.powers(code, [x, m], self.raised())
    }

    /// `2^raised exp(slope * (x - m))` of each element, as a power of two.
    fn powers(self, code: Code<'c>, [x, m]: [Val<'c>; 2], raised: f64) -> PassResult<'c, Val<'c>> {
        code.map(&[x, m], x.r#type(), |code, arguments| {
            let &[x, m] = arguments else {
                return Err(layout_error(
                    code.builder.location,
                    "a power has two arguments",
                ));
            };
            let builder = code.builder;
            let slope = self.attention.weights.slope * LOG2_E;
            let slope = builder.constant(builder.float(self.f32, slope))?;
            let scaled = builder.value("arith.mulf", &[m, slope], self.f32, &[])?;
            let negated = match raised {
                0.0 => builder.value("arith.negf", &[scaled], self.f32, &[])?,
                by => {
                    let by = builder.constant(builder.float(self.f32, by))?;
                    builder.value("arith.subf", &[by, scaled], self.f32, &[])?
                }
            };
            let exponent = builder.value("math.fma", &[x, slope, negated], self.f32, &[])?;
            let fast = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
            builder.value("math.exp2", &[exponent], self.f32, &fast)
        })
    }

    /// Results times a factor of each row.
    pub(super) fn times(
        self,
        code: Code<'c>,
        results: Val<'c>,
        factor: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let wide = code.broadcast(factor, 1, results.r#type())?;
        code.map(&[results, wide], results.r#type(), |code, arguments| {
            code.builder.value("arith.mulf", arguments, self.f32, &[])
        })
    }

    /// Results times the values of their problem that are factors of them.
    pub(super) fn times_values(
        self,
        code: Code<'c>,
        results: Val<'c>,
        values: OfProblem<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let own = &self.attention.weights.values;
        if own.is_empty() {
            return Ok(results);
        }
        let lost = || layout_error(code.builder.location, "a factor of results has a value");
        let one = code.scalar(self.f32, Number::Of(1))?;
        let mut factor = one;
        for value in own {
            let loaded = values.get(value.number).copied().flatten();
            let loaded = widened(code, loaded.ok_or_else(lost)?)?;
            let name = match value.divides {
                true => "arith.divf",
                false => "arith.mulf",
            };
            factor = code.builder.value(name, &[factor, loaded], self.f32, &[])?;
        }
        code.map(&[results], results.r#type(), |code, arguments| {
            let both = [arguments[0], factor];
            code.builder.value("arith.mulf", &both, self.f32, &[])
        })
    }

    /// The sum of what lanes have of each row.
    pub(super) fn sum(
        self,
        code: Code<'c>,
        parts: Val<'c>,
        r#type: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        code.reduce(Combiner::Add, parts, 1, r#type)
    }

    /// What a row's results are multiplied by, of the sum of its weights.
    pub(super) fn factor(self, code: Code<'c>, sum: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.map(&[sum], sum.r#type(), |code, arguments| {
            let (builder, sum) = (code.builder, arguments[0]);
            let weights = &self.attention.weights;
            let own = match weights.normalized {
                true => weights.scale,
                false => weights.scale * (-self.raised()).exp2(),
            };
            let scale = builder.constant(builder.float(self.f32, own))?;
            if !weights.normalized {
                return Ok(scale);
            }
            let factor = builder.value("arith.divf", &[scale, sum], self.f32, &[])?;
            if !weights.empty_is_zero {
                return Ok(factor);
            }
            // The sum of a row all of whose keys are hidden is 0, and that of no other.
            let zero = code.scalar(self.f32, Number::Of(0))?;
            self.zero_where(code, [sum, zero], factor)
        })
    }

    /// What a program reads of the logarithm of a row's sum, of its maximum and the sum of its weights beside that.
    pub(super) fn log_sum(
        self,
        code: Code<'c>,
        is: LogSum,
        [maximum, sum]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let LogSum {
            scale,
            offset,
            empty,
        } = is;
        code.map(&[maximum, sum], sum.r#type(), |code, arguments| {
            let &[maximum, sum] = arguments else {
                return Err(layout_error(
                    code.builder.location,
                    "a row has a maximum and a sum",
                ));
            };
            let builder = code.builder;
            let float = |value| builder.constant(builder.float(self.f32, value));
            let fma = |a, b, c| builder.value("math.fma", &[a, b, c], self.f32, &[]);
            let mut log = builder.value("math.log", &[sum], self.f32, &[])?;
            if self.raised() != 0.0 {
                let by = float(self.raised() * LN_2)?;
                log = builder.value("arith.subf", &[log, by], self.f32, &[])?;
            }
            let slope = float(self.attention.weights.slope)?;
            let mut value = fma(maximum, slope, log)?;
            if scale != 1.0 || offset != 0.0 {
                value = fma(value, float(scale)?, float(offset)?)?;
            }
            let empty = match empty {
                EmptyLog::Least => return Ok(value),
                EmptyLog::Nan => f64::NAN,
                EmptyLog::Greatest => f64::INFINITY,
            };
            let zero = code.scalar(self.f32, Number::Of(0))?;
            self.where_equal(code, [sum, zero], [float(empty)?, value])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Scaling;

    #[test]
    fn results_are_scaled_beside_the_next_scores() {
        let expected = [
            ((64, false), Scaling::Between),
            ((64, true), Scaling::Behind),
            ((128, true), Scaling::Between),
            ((256, false), Scaling::Between),
        ];
        for ((columns, is_masked), scaling) in expected {
            assert_eq!(Scaling::of(columns, is_masked), scaling, "{columns}");
        }
    }
}
