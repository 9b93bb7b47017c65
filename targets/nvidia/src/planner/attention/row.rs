//! What a kernel computes of values of rows: maxima, sums of exponentials, and what results are multiplied by.

use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::attention::weights::LogSum;
use axe_passes::ir::Val;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use std::f64::consts::LOG2_E;

/// When results are multiplied by what a new maximum leaves of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaling {
    /// Once the product that adds to them is complete.
    Behind,
    /// Before the next one, where ptxas likes: while the scores of the next block are issued.
    Before,
    /// Before the next one, and when all of those scores are issued.
    Between,
}

impl Scaling {
    /// The quickest, as it was measured (docs/performance.md): that of 128 columns and less is hidden by a mask's own work.
    pub(super) const fn of(columns: i64, keys: i64, is_masked: bool) -> Self {
        match columns {
            ..128 => Self::Behind,
            128 if is_masked => Self::Behind,
            128 => Self::Between,
            _ if keys > 64 => Self::Before,
            _ => Self::Between,
        }
    }
}

/// The arithmetic of rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, 'c> {
    pub attention: &'a Attention<'c>,
    pub f32: Type<'c>,
}

impl<'c> Rows<'_, 'c> {
    /// The greater of two values of each row; numbers are preferred to NaN.
    pub(super) fn greater(self, code: Code<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.map(&[a, b], a.r#type(), |code, arguments| {
            code.builder
                .value("arith.maxnumf", arguments, self.f32, &[])
        })
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

    /// `exp(slope * (x - m))` of each element, as a power of two.
    pub(super) fn exponentials(
        self,
        code: Code<'c>,
        x: Val<'c>,
        m: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
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
            let negated = builder.value("arith.negf", &[scaled], self.f32, &[])?;
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
            let scale = builder.constant(builder.float(self.f32, weights.scale))?;
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
            empty_is_infinite,
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
            let log = builder.value("math.log", &[sum], self.f32, &[])?;
            let slope = float(self.attention.weights.slope)?;
            let mut value = fma(maximum, slope, log)?;
            if scale != 1.0 || offset != 0.0 {
                value = fma(value, float(scale)?, float(offset)?)?;
            }
            if empty_is_infinite {
                return Ok(value);
            }
            let zero = code.scalar(self.f32, Number::Of(0))?;
            self.where_equal(code, [sum, zero], [float(f64::NAN)?, value])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Scaling;

    #[test]
    fn results_of_wide_heads_are_scaled_beside_the_next_scores() {
        let expected = [
            ((64, 112, false), Scaling::Behind),
            ((128, 176, false), Scaling::Between),
            ((128, 128, true), Scaling::Behind),
            ((256, 80, false), Scaling::Before),
            ((256, 64, false), Scaling::Between),
            ((256, 64, true), Scaling::Between),
        ];
        for ((columns, keys, is_masked), scaling) in expected {
            assert_eq!(Scaling::of(columns, keys, is_masked), scaling, "{columns}");
        }
    }
}
