//! Sums of exponentials below a maximum (log-sum-exp, softmax) whose elements no kernel goes through in one row. Maximum and sum are
//! formed of those of parts, which a kernel reads once, as [`super::below`] has them: `m = max m'`, `s = sum s' exp(m' - m)`. Of a
//! part of minus infinities `s'` is zero, and adds nothing.

use super::below::{Exponentials, Peak, converted};
use super::element::Element;
use super::operators::{dims_of, reduces};
use super::parts::{InParts, Parts, Reduced, reduced, repeated, replace};
use super::peaks::REACHES_ONE;
use super::reshape::reshape;
use super::space::source;
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, only_result};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val};
use axe_dialect::Combiner;

/// A maximum, and the sum of exponentials of what elements are less it.
struct Sum<'c> {
    peak: Op<'c>,
    sum: Op<'c>,
    /// What the maximum is of, and what repeats the maximum, or what stands for it.
    from: Val<'c>,
    broadcast: Op<'c>,
    stands: Peak,
}

/// Forms such sums of those of parts, where `parts` says so of what is reduced. `ops` are operations of a block in order; they are
/// given with those that are new, and without those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn split<'c>(
    ops: &[Op<'c>],
    parts: impl Fn(&Reduced<'c>) -> Option<Parts>,
) -> PassResult<'c, Vec<Op<'c>>> {
    super::parts::split::<Sum<'c>>(ops, parts)
}

impl<'c> InParts<'c> for Sum<'c> {
    /// What an operator is the sum of.
    fn of(sum: Op<'c>) -> Option<Self> {
        let dims = reduces(sum, Combiner::Add)?;
        let terms = source(sum)?;
        let found = Exponentials::of(terms)?;
        let peak = defining(found.peak)?;
        let from = source(peak)?;
        let shape = TensorType::of_value(terms)?.shape;
        let along = reduces(peak, Combiner::Max).as_ref() == Some(&dims)
            && dims_of(found.broadcast).as_ref() == Some(&dims);
        let has_shape = |value| TensorType::of_value(value).is_some_and(|own| own.shape == shape);
        let alike = along && has_shape(from) && has_shape(found.repeated);
        let is_static = !shape.contains(&DYNAMIC);
        (alike && is_static && found.x.is(Element::of(from))).then_some(Self {
            peak,
            sum,
            from,
            broadcast: found.broadcast,
            stands: found.stands,
        })
    }

    /// The reduction of the maximum's elements, which stands for both.
    fn reduced(&self) -> Option<Reduced<'c>> {
        Some(Reduced {
            from: self.from,
            dims: dims_of(self.sum)?,
            result: only_result(self.sum)?,
        })
    }

    fn split(self, parts: &Parts) -> PassResult<'c, [Op<'c>; 2]> {
        let before = Builder::before(self.peak);
        let code = Code { builder: before };
        let terms = source(self.sum).unwrap_or(self.from);
        let element = before.tensor_of(terms)?.element;
        // Of the parts: the maximum, the sum.
        let from = reshape(&before, self.from, &parts.shape, None)?;
        let peaks = reduced(&before, Combiner::Max, from, &parts.inner)?;
        let shift = self.stands.shift(code, peaks)?;
        let shift = repeated(&before, shift, (&parts.shape, &parts.inner))?;
        let whole = before.tensor(&parts.shape, element)?;
        let terms = code.map(&[from, shift], whole, |inner, of| {
            let builder = inner.builder;
            let [x, shift] = [of[0], of[1]].map(|value| converted(&builder, value, element));
            let apart = builder.value("arith.subf", &[x?, shift?], element, &[])?;
            builder.value(
                "math.exp",
                &[apart],
                element,
                &[(REACHES_ONE, builder.unit())],
            )
        })?;
        let sums = reduced(&before, Combiner::Add, terms, &parts.inner)?;
        replace(
            self.peak,
            &before,
            reduced(&before, Combiner::Max, peaks, &parts.outer)?,
        )?;
        // Of all.
        let after = Builder::before(self.sum);
        let code = Code { builder: after };
        let of_parts = parts.of_parts();
        // Of the new maximum.
        let peak = source(self.broadcast).unwrap_or(peaks);
        let peak = reshape(&after, peak, &parts.of_all(), None)?;
        let peak = repeated(&after, peak, (&of_parts, &parts.outer))?;
        let each = after.tensor(&of_parts, element)?;
        let scaled = code.map(&[sums, peaks, peak], each, |inner, of| {
            self.stands.scaled(&inner, of[0], [of[1], of[2]])
        })?;
        replace(
            self.sum,
            &after,
            reduced(&after, Combiner::Add, scaled, &parts.outer)?,
        )?;
        Ok([self.sum, self.peak])
    }
}
