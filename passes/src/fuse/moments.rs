//! The moments of rows whose parts several thread groups have, in one exchange: a sum, what elements are apart from its mean, and
//! the squares of that, as [`super::wide_sums`] writes them.
//!
//! Of parts that thread groups hold in registers, those of f64 are, too: nothing is left about a mean in f64.
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
    /// `sum(x - center)`; none where the center is as exact as the sum.
    pub rest: Option<Val<'c>>,
    /// `sum((x - center)^2)`.
    pub squares: Val<'c>,
    center: Val<'c>,
    /// `x`.
    from: Val<'c>,
}

/// What the places of a tile have of the tiles of a part: their first elements, the sums of what the others are apart from these and of the
/// squares of that, and how many there are.
struct Places<'c> {
    first: Val<'c>,
    rest: Val<'c>,
    squares: Val<'c>,
    number: Val<'c>,
}

impl<'c> Places<'c> {
    const fn all(&self) -> [Val<'c>; 4] {
        [self.first, self.rest, self.squares, self.number]
    }
}

/// What thread groups have of the moments of their parts: of each a value a row, or all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct States<'c> {
    /// `sum(x)`.
    pub sum: Val<'c>,
    /// `sum(x - c')`, where `c'` is the part's mean; none where it is zero.
    pub rest: Option<Val<'c>>,
    /// `sum((x - c')^2)`.
    pub squares: Val<'c>,
    /// How many elements there are; none where all parts have as many.
    pub count: Option<Val<'c>>,
}

impl<'c> Moments<'c> {
    /// The moments that two sums in f32 are of the elements that another is the sum of.
    pub(super) fn of(sum: Val<'c>, rest: Val<'c>, squares: Val<'c>) -> Option<Self> {
        if ![sum, rest, squares].iter().all(|own| is_sum(*own, 32)) {
            return None;
        }
        let own = Self::about_mean(sum, squares)?;
        let (of_rest, center) = less(Element::of(defining(rest).and_then(source)?))?;
        let same = of_rest.is(Element::of(own.from)) && center == own.center;
        same.then_some(Self {
            rest: Some(rest),
            ..own
        })
    }

    /// Those that a sum in f64 is of the elements that another is the sum of.
    pub(super) fn of_wide(sum: Val<'c>, squares: Val<'c>) -> Option<Self> {
        let is_wide = is_sum(sum, 64) && is_sum(squares, 64);
        is_wide.then(|| Self::about_mean(sum, squares)).flatten()
    }

    /// The squares of what elements are apart from a value a row.
    fn about_mean(sum: Val<'c>, squares: Val<'c>) -> Option<Self> {
        let [from, square] = [sum, squares].map(|value| defining(value).and_then(source));
        let (from, square) = (from?, Element::of(square?));
        let &[one, other] = &square.resolved().operands_of("arith.mulf")?[..] else {
            return None;
        };
        let (of_squares, center) = less(one)?;
        let same = one.value == other.value && of_squares.is(Element::of(from));
        same.then_some(Self {
            rest: None,
            squares,
            center,
            from,
        })
    }

    /// The folds whose states are exchanged beside that of the sum.
    pub(super) fn folds(&self) -> impl Iterator<Item = Val<'c>> {
        self.rest.into_iter().chain([self.squares])
    }

    /// The states of a thread group's part of so many columns; `alike` are those of each part, where all have as many.
    pub(super) fn states(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        (sum, fold): (Val<'c>, Fold),
        (columns, alike): (Val<'c>, Option<i64>),
    ) -> PassResult<'c, States<'c>> {
        let code = evaluator.code;
        let row = evaluator.r#type(sum, Kind::Row)?;
        let count = match alike {
            Some(columns) => number(code, columns, row)?,
            None => count(code, columns, row)?,
        };
        let own = self.walked(evaluator, (sum, fold), (count, alike))?;
        let count = alike.is_none().then_some(count);
        Ok(States { count, ..own })
    }

    /// The states of a part in one walk through its tiles.
    ///
    /// Each place of a tile adds up what its elements are apart from the first of them, `r = sum(x - s)`, and the squares of that: `s` is as
    /// far from the mean as elements are apart, so that no digits are lost when the sums are moved to the mean.
    fn walked(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        (sum, fold): (Val<'c>, Fold),
        (count, alike): (Val<'c>, Option<i64>),
    ) -> PassResult<'c, States<'c>> {
        let code = evaluator.code;
        let places = self.walk(evaluator, fold, alike)?;
        let row = evaluator.r#type(sum, Kind::Row)?;
        let shape = places.first.r#type();
        let whole = code.map(&places.all(), shape, |inner, of| {
            let first = binary(&inner, "arith.mulf", of[0], of[3])?;
            binary(&inner, "arith.addf", first, of[1])
        })?;
        let whole = code.reduce(fold.combiner, whole, 1, row)?;
        let whole = evaluator.with_peeled(self.from, fold, whole)?;
        let mean = code.map(&[whole, count], row, |inner, of| mean(&inner, of[0], of[1]))?;
        let about = code.broadcast(mean, 1, shape)?;
        let [first, rest, squares, number] = places.all();
        let inputs = [first, rest, number, about];
        let moved = |inner: &Code<'c>, of: &[Val<'c>]| {
            let apart = binary(inner, "arith.subf", of[0], of[3])?;
            let all = binary(inner, "arith.mulf", of[2], apart)?;
            Ok([apart, all])
        };
        let all_rest = code.map(&inputs, shape, |inner, of| {
            let [_, all] = moved(&inner, of)?;
            binary(&inner, "arith.addf", of[1], all)
        })?;
        let inputs = [first, rest, number, about, squares];
        let all_squares = code.map(&inputs, shape, |inner, of| {
            let [apart, all] = moved(&inner, of)?;
            about_center(&inner, (of[4], Some(of[1])), [apart, all])
        })?;
        let mut own = evaluator.at_column(code, evaluator.origin.column);
        own.known.insert((identity(self.center), Kind::Row), mean);
        let reduced = |of: Val<'c>, value: Val<'c>| {
            let state = code.reduce(fold.combiner, value, 1, row)?;
            let from = defining(of).and_then(source);
            let from = from.ok_or_else(|| own.lost(of))?;
            own.with_peeled(from, fold, state)
        };
        let rest = self.rest.map(|rest| reduced(rest, all_rest));
        Ok(States {
            sum: whole,
            rest: rest.transpose()?,
            squares: reduced(self.squares, all_squares)?,
            count: None,
        })
    }

    /// What each place of a tile has of the tiles of a part. How many tiles these are is known where all parts are alike, and counted otherwise: the last
    /// one may have less columns.
    fn walk(
        &self,
        evaluator: &Evaluator<'_, 'c>,
        fold: Fold,
        alike: Option<i64>,
    ) -> PassResult<'c, Places<'c>> {
        let code = evaluator.code;
        let shape = evaluator.r#type(self.from, Kind::Full)?;
        let mut begin = evaluator.first_tile()?;
        begin.form_rows(self.from, Kind::Full)?;
        let first = begin.masked(self.from, fold)?;
        let first = code.map(&[first], shape, |inner, of| finite(&inner, of[0]))?;
        let tiles = alike.map(|columns| columns / evaluator.registers.shape[1]);
        let zero = number(code, 0, shape)?;
        let one = number(code, 1, shape)?;
        let start = vec![zero; if tiles.is_some() { 2 } else { 3 }];
        let results = evaluator.for_tiles(&start, |tile, carried| {
            let &[rest, squares, ..] = carried else {
                return Err(tile.lost(self.from));
            };
            let code = tile.code;
            let x = tile.value(self.from, Kind::Full)?;
            let apart = code.map(&[x, first], shape, |inner, of| {
                binary(&inner, "arith.subf", of[0], of[1])
            })?;
            let apart = tile.mask(apart, fold)?;
            let rest = fold.merge(code, element_type(shape), rest, apart)?;
            let squares = code.map(&[apart, squares], shape, |inner, of| {
                let builder = &inner.builder;
                builder.value("math.fma", &[of[0], of[0], of[1]], of[0].r#type(), &[])
            })?;
            let mut all = vec![rest, squares];
            if let Some(count) = carried.get(2) {
                all.push(match tile.inside {
                    // These are counted at once.
                    true => *count,
                    false => {
                        let own = tile.mask(one, fold)?;
                        fold.merge(code, element_type(shape), *count, own)?
                    }
                });
            }
            Ok(all)
        })?;
        let &[rest, squares, ref counted @ ..] = &results[..] else {
            return Err(evaluator.lost(self.from));
        };
        let number = match (tiles, counted) {
            (Some(tiles), _) => number(code, tiles, shape)?,
            (None, [edge]) => match evaluator.inside_tiles()? {
                Some(inside) => {
                    let inside = count(code, inside, shape)?;
                    fold.merge(code, element_type(shape), inside, *edge)?
                }
                None => *edge,
            },
            (None, _) => return Err(evaluator.lost(self.from)),
        };
        Ok(Places {
            first,
            rest,
            squares,
            number,
        })
    }

    /// Makes known the moments of rows, of the states of all parts, of which each has `alike` elements or as many as it says. That of the sum is known.
    pub(super) fn merge(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        (all, alike): (States<'c>, Option<i64>),
        row: Type<'c>,
    ) -> PassResult<'c> {
        let code = evaluator.code;
        let whole = all.sum.r#type();
        let alike = alike
            .map(|columns| number(code, columns, whole))
            .transpose()?;
        let count = all.count.or(alike);
        let count = count.ok_or_else(|| evaluator.lost(self.squares))?;
        let center = evaluator.value(self.center, Kind::Row)?;
        let center = code.broadcast(center, 1, whole)?;
        if let Some((rest, own)) = self.rest.zip(all.rest) {
            let inputs = [all.sum, count, own, center];
            let whole = code.map(&inputs, whole, |inner, of| {
                let mean = mean(&inner, of[0], of[1])?;
                let apart = binary(&inner, "arith.subf", mean, of[3])?;
                let moved = binary(&inner, "arith.mulf", of[1], apart)?;
                binary(&inner, "arith.addf", of[2], moved)
            })?;
            let whole = code.reduce(Combiner::Add, whole, 1, row)?;
            evaluator.known.insert((identity(rest), Kind::Row), whole);
        }
        let inputs = [all.sum, count, all.squares, center];
        let inputs: Vec<_> = inputs.into_iter().chain(all.rest).collect();
        let squares = code.map(&inputs, whole, |inner, of| {
            let mean = mean(&inner, of[0], of[1])?;
            let apart = binary(&inner, "arith.subf", mean, of[3])?;
            let all = binary(&inner, "arith.mulf", of[1], apart)?;
            about_center(&inner, (of[2], of.get(4).copied()), [apart, all])
        })?;
        let squares = code.reduce(Combiner::Add, squares, 1, row)?;
        evaluator
            .known
            .insert((identity(self.squares), Kind::Row), squares);
        Ok(())
    }
}

/// Whether a value is a sum in a float of so many bits.
fn is_sum(value: Val<'_>, bits: u32) -> bool {
    let element = element_type(value.r#type());
    let fold = defining(value).and_then(|op| Fold::of_reduction(op).ok());
    let adds = fold.is_some_and(|fold| fold.combiner == Combiner::Add);
    adds && types::is_float(element) && types::bits(element) == Some(bits)
}

/// `x` and the tensor of `b`, of `x - b` where `b` is a value a row.
fn less(element: Element<'_>) -> Option<(Element<'_>, Val<'_>)> {
    let &[x, repeated] = &element.resolved().operands_of("arith.subf")?[..] else {
        return None;
    };
    let broadcast = defining(repeated.value).filter(|op| name(*op) == ops::BROADCAST)?;
    Some((x, source(broadcast)?))
}

/// A number, or zero in the place of one that is infinite or none: nothing is apart from that by a number.
fn finite<'c>(code: &Code<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    let builder = &code.builder;
    let none = binary(code, "arith.subf", value, value)?;
    let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
    let unordered = [("predicate", builder.parsed("14 : i64")?)];
    let is_none = builder.value("arith.cmpf", &[none, none], bit, &unordered)?;
    let zero = code.scalar(value.r#type(), Number::Of(0))?;
    builder.value("arith.select", &[is_none, zero, value], value.r#type(), &[])
}

/// `q + d (2 r + n d)`: squares about a center that the one of `q` and `r` is `d` apart from, of `d` and `n d`. Where there is no `r`, it is zero.
fn about_center<'c>(
    code: &Code<'c>,
    (squares, rest): (Val<'c>, Option<Val<'c>>),
    [apart, all]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let moved = match rest {
        None => all,
        Some(rest) => {
            let twice = binary(code, "arith.addf", rest, rest)?;
            binary(code, "arith.addf", twice, all)?
        }
    };
    let moved = binary(code, "arith.mulf", apart, moved)?;
    binary(code, "arith.addf", squares, moved)
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

/// The same number in all places of a tensor.
fn number<'c>(code: Code<'c>, of: i64, shape: Type<'c>) -> PassResult<'c, Val<'c>> {
    let scalar = code.scalar(element_type(shape), Number::Of(of))?;
    code.fill(scalar, shape)
}

/// A number that is known at run time, in all places of a tensor.
fn count<'c>(code: Code<'c>, columns: Val<'c>, row: Type<'c>) -> PassResult<'c, Val<'c>> {
    let builder: &Builder<'c> = &code.builder;
    let i32 = builder.r#type(|context| IntegerType::new(context, 32).into());
    let columns = builder.value("arith.index_castui", &[columns], i32, &[])?;
    let columns = builder.value("arith.uitofp", &[columns], element_type(row), &[])?;
    code.fill(columns, row)
}
