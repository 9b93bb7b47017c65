//! The moments of rows whose parts several thread groups have, in one exchange: a sum, what elements are apart from its mean, and
//! the squares of that, as [`super::wide_sums`] writes them.
//!
//! Of a part of `n'` elements whose own mean is `c'`, the sums `R' = sum(x - c')` and `Q' = sum((x - c')^2)` say those about any other
//! center (Chan, Golub, LeVeque): `sum(x - c) = R' + n' d` and `sum((x - c)^2) = Q' + d (2 R' + n' d)`, where `d = c' - c`. Both
//! are of differences between means, whose rounding is relative to how far parts are apart.

use super::element::Element;
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::space::{Kind, source};
use crate::PassResult;
use crate::build::{Code, Number};
use crate::ir::value::{defining, identity, name};
use crate::ir::{Builder, Val, types};
use axe_dialect::{Combiner, element_type, ops};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// Sums of rows about values of each row, of elements whose sum another fold is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments<'c> {
    /// `sum(x - center)`, and the center.
    pub rest: Val<'c>,
    center: Val<'c>,
    /// `sum(((x - high) - low)^2)`, and the mean in two parts.
    pub squares: Val<'c>,
    high: Val<'c>,
    low: Val<'c>,
}

/// What thread groups have of the moments of their parts: of each a value a row, or all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct States<'c> {
    /// `sum(x)`.
    pub sum: Val<'c>,
    /// `sum(x - c')`, where `c'` is the part's mean.
    pub rest: Val<'c>,
    /// `sum((x - c')^2)`.
    pub squares: Val<'c>,
    /// How many elements there are.
    pub count: Val<'c>,
}

impl<'c> Moments<'c> {
    /// The moments that two sums in f32 are of the elements that another is the sum of.
    pub(super) fn of(sum: Val<'c>, rest: Val<'c>, squares: Val<'c>) -> Option<Self> {
        let all = [sum, rest, squares];
        let is_f32 = |value: &Val<'c>| {
            let element = element_type(value.r#type());
            types::is_float(element) && types::bits(element) == Some(32)
        };
        let adds = |value: &Val<'c>| {
            let fold = defining(*value).and_then(|op| Fold::of_reduction(op).ok());
            fold.is_some_and(|fold| fold.combiner == Combiner::Add)
        };
        if !all.iter().all(is_f32) || !all.iter().all(adds) {
            return None;
        }
        let [x, apart, square] = all.map(|value| defining(value).and_then(source));
        let x = Element::of(x?);
        let (of_rest, center) = less(Element::of(apart?))?;
        let &[one, other] = &Element::of(square?).resolved().operands_of("arith.mulf")?[..] else {
            return None;
        };
        let (distance, low) = less(one)?;
        let (of_squares, high) = less(distance)?;
        let same = one.value == other.value && of_rest.is(x) && of_squares.is(x);
        same.then_some(Self {
            rest,
            center,
            squares,
            high,
            low,
        })
    }

    /// The states of a thread group's part, whose sum is known.
    pub(super) fn states(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        sum: Val<'c>,
        count: Val<'c>,
    ) -> PassResult<'c, States<'c>> {
        let code = evaluator.code;
        let mean = code.map(&[sum, count], sum.r#type(), |inner, of| {
            mean(&inner, of[0], of[1])
        })?;
        let zero = code.scalar(element_type(sum.r#type()), Number::Of(0))?;
        let zero = code.fill(zero, sum.r#type())?;
        let about = |value: Val<'c>, known: &[(Val<'c>, Val<'c>)]| {
            let mut own = evaluator.at_column(code, evaluator.origin.column);
            let known = known.iter();
            let known = known.map(|(of, value)| ((identity(*of), Kind::Row), *value));
            own.known.extend(known);
            let op = defining(value).ok_or_else(|| own.lost(value))?;
            own.state(value, Fold::of_reduction(op)?)
        };
        Ok(States {
            sum,
            rest: about(self.rest, &[(self.center, mean)])?,
            squares: about(self.squares, &[(self.high, mean), (self.low, zero)])?,
            count,
        })
    }

    /// Makes known the moments of rows, of the states of all parts. That of the sum is known.
    pub(super) fn merge(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        all: States<'c>,
        row: Type<'c>,
    ) -> PassResult<'c> {
        let code = evaluator.code;
        let whole = all.sum.r#type();
        let center = evaluator.value(self.center, Kind::Row)?;
        let center = code.broadcast(center, 1, whole)?;
        let inputs = [all.sum, all.count, all.rest, center];
        let rest = code.map(&inputs, whole, |inner, of| {
            let mean = mean(&inner, of[0], of[1])?;
            let apart = binary(&inner, "arith.subf", mean, of[3])?;
            let moved = binary(&inner, "arith.mulf", of[1], apart)?;
            binary(&inner, "arith.addf", of[2], moved)
        })?;
        let rest = code.reduce(Combiner::Add, rest, 1, row)?;
        evaluator
            .known
            .insert((identity(self.rest), Kind::Row), rest);
        let high = evaluator.value(self.high, Kind::Row)?;
        let low = evaluator.value(self.low, Kind::Row)?;
        let high = code.broadcast(high, 1, whole)?;
        let low = code.broadcast(low, 1, whole)?;
        let inputs = [all.sum, all.count, all.rest, all.squares, high, low];
        let squares = code.map(&inputs, whole, |inner, of| {
            let mean = mean(&inner, of[0], of[1])?;
            let apart = binary(&inner, "arith.subf", mean, of[4])?;
            let apart = binary(&inner, "arith.subf", apart, of[5])?;
            let twice = binary(&inner, "arith.addf", of[2], of[2])?;
            let moved = binary(&inner, "arith.mulf", of[1], apart)?;
            let moved = binary(&inner, "arith.addf", twice, moved)?;
            let moved = binary(&inner, "arith.mulf", apart, moved)?;
            binary(&inner, "arith.addf", of[3], moved)
        })?;
        let squares = code.reduce(Combiner::Add, squares, 1, row)?;
        evaluator
            .known
            .insert((identity(self.squares), Kind::Row), squares);
        Ok(())
    }
}

/// `x` and the tensor of `b`, of `x - b` where `b` is a value a row.
fn less(element: Element<'_>) -> Option<(Element<'_>, Val<'_>)> {
    let &[x, repeated] = &element.resolved().operands_of("arith.subf")?[..] else {
        return None;
    };
    let broadcast = defining(repeated.value).filter(|op| name(*op) == ops::BROADCAST)?;
    Some((x, source(broadcast)?))
}

fn binary<'c>(code: &Code<'c>, name: &str, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
    code.builder.value(name, &[a, b], a.r#type(), &[])
}

/// The mean of so many elements; zero of none.
fn mean<'c>(code: &Code<'c>, sum: Val<'c>, count: Val<'c>) -> PassResult<'c, Val<'c>> {
    let one = code.scalar(sum.r#type(), Number::Of(1))?;
    let count = binary(code, "arith.maximumf", count, one)?;
    binary(code, "arith.divf", sum, count)
}

/// How many elements a part of a row has, as a value a row.
pub(super) fn count<'c>(
    code: Code<'c>,
    columns: Val<'c>,
    row: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let builder: &Builder<'c> = &code.builder;
    let i32 = builder.r#type(|context| IntegerType::new(context, 32).into());
    let columns = builder.value("arith.index_castui", &[columns], i32, &[])?;
    let columns = builder.value("arith.uitofp", &[columns], element_type(row), &[])?;
    code.fill(columns, row)
}
