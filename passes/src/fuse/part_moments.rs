//! Variances whose elements no kernel goes through in one row: of dimensions that are not neighbours (batch normalisation), or of so
//! many that they are reduced in parts. Both sums, that of the elements and that of the squares about their mean, are formed of
//! those of parts, which a kernel reads once: with the sum `s'` and the squares `q'` about the mean `c' = s' / n'` of each part,
//! `sum((x - c)^2) = sum over parts of (q' + n' (c' - c)^2)` (Chan, Golub, LeVeque). What is left to add up are differences between means.
//! Sums of f32 and f64 alone are cut: a part may have more elements than 16-bit floats count.

use super::element::Element;
use super::operators::{dims_of, reduces};
use super::parts::{InParts, Parts, Reduced, reduced, repeated, replace};
use super::reshape::reshape;
use super::space::source;
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, name, only_result};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, types};
use axe_dialect::Combiner;
use axe_dialect::ops;

/// A sum of elements, and that of the squares of what they are from a mean of it.
struct Variance<'c> {
    sum: Op<'c>,
    squares: Op<'c>,
    /// What is summed up, and the mean.
    from: Val<'c>,
    mean: Val<'c>,
}

/// Forms variances of those of parts, where `parts` says so of what is reduced along which dimensions. `ops` are operations of a
/// block in order; they are given with those that are new, and without those that nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn split<'c>(
    ops: &[Op<'c>],
    parts: impl Fn(&Reduced<'c>) -> Option<Parts>,
) -> PassResult<'c, Vec<Op<'c>>> {
    super::parts::split::<Variance<'c>>(ops, parts)
}

impl<'c> InParts<'c> for Variance<'c> {
    /// The variance of which an operator is the sum of squares.
    fn of(squares: Op<'c>) -> Option<Self> {
        let dims = reduces(squares, Combiner::Add)?;
        let square = Element::of(source(squares)?).resolved();
        let &[one, other] = &square.operands_of("arith.mulf")?[..] else {
            return None;
        };
        let &[x, repeated] = &one.operands_of("arith.subf")?[..] else {
            return None;
        };
        let broadcast = defining(repeated.narrow().value)?;
        let along = name(broadcast) == ops::BROADCAST && dims_of(broadcast) == Some(dims.clone());
        let mean = source(broadcast).filter(|_| along)?;
        let of_mean = Element::of(mean).narrow();
        let of_mean = of_mean
            .operands_of("arith.divf")
            .or_else(|| of_mean.operands_of("arith.mulf"))?;
        let sum = defining(of_mean.first()?.narrow().value)?;
        let from = source(sum).filter(|_| reduces(sum, Combiner::Add) == Some(dims))?;
        let alike = one.is(other) && x.is(Element::of(from));
        let element = |value| TensorType::of_value(value).map(|own| own.element);
        let same = element(from) == element(source(squares)?) && element(mean) == element(from);
        let is_wide = types::bits(TensorType::of_value(from)?.element) >= Some(32);
        let is_static = !TensorType::of_value(from)?.shape.contains(&DYNAMIC);
        (alike && same && is_wide && is_static).then_some(Self {
            sum,
            squares,
            from,
            mean,
        })
    }

    /// The squares' reduction, which stands for both.
    fn reduced(&self) -> Option<Reduced<'c>> {
        Some(Reduced {
            from: self.from,
            dims: dims_of(self.squares)?,
            result: only_result(self.squares)?,
        })
    }

    fn split(self, parts: &Parts) -> PassResult<'c, [Op<'c>; 2]> {
        let before = Builder::before(self.sum);
        let code = Code { builder: before };
        let element = before.tensor_of(self.from)?.element;
        let elements = parts.elements();
        let count = |builder: &Builder<'c>| builder.constant(builder.float(element, elements));
        let of_parts = parts.of_parts();
        let all = before.tensor(&parts.shape, element)?;
        let each = before.tensor(&of_parts, element)?;
        let added = |builder, of, dims: &[i64]| reduced(builder, Combiner::Add, of, dims);
        // Of the parts: the sum, the mean, the squares.
        let from = reshape(&before, self.from, &parts.shape, None)?;
        let sum = added(&before, from, &parts.inner)?;
        let own_mean = code.map(&[sum], each, |inner, of| {
            let builder = inner.builder;
            builder.value("arith.divf", &[of[0], count(&builder)?], element, &[])
        })?;
        let means = repeated(&before, own_mean, (&parts.shape, &parts.inner))?;
        let apart = code.map(&[from, means], all, |inner, of| {
            inner.builder.value("arith.subf", of, element, &[])
        })?;
        let squares = code.map(&[apart], all, |inner, of| {
            inner
                .builder
                .value("arith.mulf", &[of[0], of[0]], element, &[])
        })?;
        let squares = added(&before, squares, &parts.inner)?;
        replace(self.sum, &before, added(&before, sum, &parts.outer)?)?;
        // Of all.
        let after = Builder::before(self.squares);
        let code = Code { builder: after };
        let mean = reshape(&after, self.mean, &parts.of_all(), None)?;
        let mean = repeated(&after, mean, (&of_parts, &parts.outer))?;
        let about = code.map(&[squares, own_mean, mean], each, |inner, of| {
            let builder = inner.builder;
            let value = |name, operands: &[Val<'c>]| builder.value(name, operands, element, &[]);
            let apart = value("arith.subf", &[of[1], of[2]])?;
            let square = value("arith.mulf", &[apart, apart])?;
            let of_all = value("arith.mulf", &[square, count(&builder)?])?;
            value("arith.addf", &[of[0], of_all])
        })?;
        replace(self.squares, &after, added(&after, about, &parts.outer)?)?;
        Ok([self.sum, self.squares])
    }
}
