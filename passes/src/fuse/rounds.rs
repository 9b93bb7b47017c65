//! Which folds of rows are formed together, where several thread groups have parts of a row and exchange their states: those of
//! a round in one exchange.
//!
//! A fold that needs another's result waits for that one's exchange, but for a sum of `exp(x - m)` where `m` is the maximum of
//! `x`: of a part of a row it is formed below the part's own maximum, `s' = sum exp(x - m')`. States `(m', s')` are merged by
//! `m = max m'`, `s = sum s' exp(m' - m)`, as an online softmax does. So are moments ([`super::moments`]).

use super::element::Element;
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::fusion::{Fusion, needs};
use super::moments::{Moments, States, count};
use super::peaks::REACHES_ONE;
use super::space::{Kind, Place, place_of, source};
use crate::PassResult;
use crate::build::{Code, Number};
use crate::ir::value::{defining, identity, name};
use crate::ir::{Builder, Val, types};
use axe_dialect::{Combiner, element_type, ops};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};

/// Folds whose states are exchanged at once.
#[derive(Clone, Debug)]
pub struct Round<'c> {
    /// Those that need no other of the round.
    pub(super) alone: Vec<(Val<'c>, Fold)>,
    /// Sums of exponentials below a maximum, by its position among those.
    pub(super) below: Vec<(Val<'c>, Fold, usize)>,
    /// Moments of elements of which one of those is the sum.
    pub(super) moments: Vec<(Moments<'c>, usize)>,
}

impl<'c> Round<'c> {
    /// The element types of the states, in their order.
    pub fn elements(&self) -> impl Iterator<Item = Type<'c>> {
        let alone = self.alone.iter().map(|(value, _)| *value);
        let below = self.below.iter().map(|(value, ..)| *value);
        // The moments' own, and how many elements a part has.
        let moments = self.moments.iter();
        let moments = moments.flat_map(|(own, _)| [own.rest, own.squares, own.rest]);
        let all = alone.chain(below).chain(moments);
        all.map(|value| element_type(value.r#type()))
    }
}

impl<'c> Fusion<'c> {
    /// The rounds in which the folds of rows are formed.
    #[must_use]
    pub fn rounds(&self) -> Vec<Round<'c>> {
        let mut left = self.folds.clone();
        let (mut done, mut rounds) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let needed: Vec<_> = left.iter().map(|fold| self.folds_of(*fold)).collect();
            let is_done = |value: &Val<'c>| done.contains(value);
            let mut round = Round {
                alone: Vec::new(),
                below: Vec::new(),
                moments: Vec::new(),
            };
            for (fold, needed) in left.iter().zip(&needed) {
                if needed.iter().all(is_done) {
                    round.alone.push(*fold);
                }
            }
            for (&(value, fold), needed) in left.iter().zip(&needed) {
                let mut open = needed.iter().filter(|value| !is_done(value));
                let (Some(peak), None) = (open.next(), open.next()) else {
                    continue;
                };
                let at = round.alone.iter().position(|(own, _)| own == peak);
                let at = at.filter(|at| {
                    let peak = round.alone.get(*at);
                    peak.is_some_and(|peak| is_below(value, fold, *peak))
                });
                round.below.extend(at.map(|at| (value, fold, at)));
            }
            round.moments = self.moments(&left, &round, &done);
            if round.alone.is_empty() {
                // Folds that need each other do not exist.
                return rounds;
            }
            done.extend(round.alone.iter().map(|(value, _)| *value));
            done.extend(round.below.iter().map(|(value, ..)| *value));
            let moments = round.moments.iter();
            done.extend(moments.flat_map(|(own, _)| [own.rest, own.squares]));
            left.retain(|(value, _)| !done.contains(value));
            rounds.push(round);
        }
        rounds
    }

    /// Moments among folds that are left, of elements whose sums are in a round.
    fn moments(
        &self,
        left: &[(Val<'c>, Fold)],
        round: &Round<'c>,
        done: &[Val<'c>],
    ) -> Vec<(Moments<'c>, usize)> {
        let open = |fold: &(Val<'c>, Fold)| {
            let needed = self.folds_of(*fold).into_iter();
            let open = needed.filter(|value| !done.contains(value));
            open.collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for (at, (sum, _)) in round.alone.iter().enumerate() {
            for rest in left.iter().filter(|rest| open(rest) == [*sum]) {
                let squares = left.iter().filter(|squares| {
                    let open = open(squares);
                    open.contains(&rest.0)
                        && open.iter().all(|value| [*sum, rest.0].contains(value))
                });
                let own = squares.filter_map(|squares| Moments::of(*sum, rest.0, squares.0));
                found.extend(own.take(1).map(|own| (own, at)));
            }
        }
        found
    }

    /// Values a row that take no fold: what they load is then on its way while folds are formed.
    #[must_use]
    pub fn rows_without_folds(&self) -> Vec<Val<'c>> {
        let (mut found, mut next) = (Vec::new(), self.outputs.clone());
        let mut seen = Vec::new();
        while let Some((value, kind)) = next.pop() {
            if seen.contains(&value) {
                continue;
            }
            seen.push(value);
            let is_fold = self.folds.iter().any(|(fold, _)| *fold == value);
            match kind {
                Kind::Row if is_fold => {}
                Kind::Row if self.folds_below(self.needed(value, kind)).is_empty() => {
                    found.push(value);
                }
                Kind::Row => next.extend(self.needed(value, kind)),
                _ => {}
            }
        }
        found
    }

    /// The folds that forming one takes.
    fn folds_of(&self, (value, _): (Val<'c>, Fold)) -> Vec<Val<'c>> {
        self.folds_below(self.needed(value, Kind::Row))
    }

    fn folds_below(&self, mut next: Vec<(Val<'c>, Kind)>) -> Vec<Val<'c>> {
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        while let Some((value, kind)) = next.pop() {
            let key = (identity(value), kind);
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            match self.folds.iter().any(|(fold, _)| *fold == value) {
                true => found.push(value),
                false => next.extend(self.needed(value, kind)),
            }
        }
        found
    }

    fn needed(&self, value: Val<'c>, kind: Kind) -> Vec<(Val<'c>, Kind)> {
        match defining(value).filter(|_| !self.inputs.contains(&(value, kind))) {
            Some(op) => needs(op, value, kind),
            None => Vec::new(),
        }
    }
}

/// Whether a fold is the sum of `exp(x - m)`, where `m` is the maximum of `x`.
fn is_below<'c>(sum: Val<'c>, fold: Fold, (peak, of_peak): (Val<'c>, Fold)) -> bool {
    if (fold.combiner, of_peak.combiner) != (Combiner::Add, Combiner::Max) {
        return false;
    }
    let found = || {
        let term = Element::of(source(defining(sum)?)?).resolved();
        let &[difference] = &term.operands_of("math.exp")?[..] else {
            return None;
        };
        let &[x, m] = &difference.operands_of("arith.subf")?[..] else {
            return None;
        };
        let repeated = m.narrow();
        let broadcast = defining(repeated.value).filter(|op| name(*op) == ops::BROADCAST)?;
        let along = place_of(broadcast, repeated.value);
        let from = Element::of(source(broadcast)?).narrow();
        let of = Element::of(source(defining(peak)?)?);
        let along_rows = matches!(along, Place::Inner(_) | Place::Unit);
        Some(along_rows && from.value == peak && x.is(of))
    };
    found() == Some(true)
}

impl<'c> Evaluator<'_, 'c> {
    /// The states of a round over the columns that there are here, each of which goes through them.
    fn states_of(
        &mut self,
        round: &Round<'c>,
        columns: [Val<'c>; 2],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let code = self.code;
        let mut states = Vec::new();
        for (value, fold) in &round.alone {
            states.push(self.state(*value, *fold)?);
        }
        for &(value, fold, at) in &round.below {
            let (Some((peak, _)), Some(state)) = (round.alone.get(at), states.get(at)) else {
                continue;
            };
            let mut own = self.at_column(code, self.origin.column);
            let shift = or_zero(code, *state)?;
            own.known.insert((identity(*peak), Kind::Row), shift);
            states.push(own.state(value, fold)?);
        }
        for (moments, at) in &round.moments {
            let Some(sum) = states.get(*at).copied() else {
                continue;
            };
            let count = count(code, columns, sum.r#type())?;
            let own = moments.states(self, sum, count)?;
            states.extend([own.rest, own.squares, own.count]);
        }
        Ok(states)
    }

    /// Forms the folds of a round, of which the thread groups that share a row have states each.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn form_round(&mut self, number: usize, round: &Round<'c>) -> PassResult<'c> {
        let Some(part) = self.part else {
            return Ok(());
        };
        let code = self.code;
        let states = match part.walk() {
            Some(walk) => self.states_of_walk(round, walk)?,
            None => self.states_of(round, part.columns())?,
        };
        let all = part.gather(code, number, &states)?;
        let whole = |at: usize, fold: Fold, value: Val<'c>| {
            let row = states.get(at).map_or(value.r#type(), ValueLike::r#type);
            code.reduce(fold.combiner, value, 1, row)
        };
        let (alone, below) = all.split_at(round.alone.len().min(all.len()));
        for ((at, (value, fold)), own) in round.alone.iter().enumerate().zip(alone) {
            let state = whole(at, *fold, *own)?;
            self.known.insert((identity(*value), Kind::Row), state);
        }
        for ((at, &(value, fold, of)), own) in (alone.len()..).zip(&round.below).zip(below) {
            let peak = round.alone.get(of).map(|(peak, _)| identity(*peak));
            let peak = peak.and_then(|peak| self.known.get(&(peak, Kind::Row)).copied());
            let (Some(peak), Some(own_peaks)) = (peak, alone.get(of)) else {
                continue;
            };
            let scaled = scaled(code, *own, *own_peaks, peak)?;
            let state = whole(at, fold, scaled)?;
            self.known.insert((identity(value), Kind::Row), state);
        }
        let of_moments = below.get(round.below.len()..).unwrap_or_default();
        for ((moments, at), own) in round.moments.iter().zip(of_moments.chunks_exact(3)) {
            let (Some(sum), Some(row)) = (alone.get(*at), states.get(*at)) else {
                continue;
            };
            let own = States {
                sum: *sum,
                rest: own[0],
                squares: own[1],
                count: own[2],
            };
            moments.merge(self, own, row.r#type())?;
        }
        Ok(())
    }
}

/// A maximum to which distances are numbers: minus infinity has none, and all that it is the maximum of is as far from zero.
pub(super) fn or_zero<'c>(code: Code<'c>, peak: Val<'c>) -> PassResult<'c, Val<'c>> {
    let element = element_type(peak.r#type());
    code.map(&[peak], peak.r#type(), |inner, of| {
        let least = inner.scalar(element, Number::Least)?;
        let zero = inner.scalar(element, Number::Of(0))?;
        let builder = &inner.builder;
        let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
        let ordered_equal = [("predicate", builder.parsed("1 : i64")?)];
        let is_least = builder.value("arith.cmpf", &[of[0], least], bit, &ordered_equal)?;
        inner.choose(is_least, [zero, of[0]])
    })
}

/// `s exp(m' - m)` of sums below maxima `m'`, which a row's maximum `m` is not below.
fn scaled<'c>(
    code: Code<'c>,
    sums: Val<'c>,
    peaks: Val<'c>,
    peak: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let peak = code.broadcast(peak, 1, peaks.r#type())?;
    let element = element_type(sums.r#type());
    code.map(&[sums, peaks, peak], sums.r#type(), |inner, of| {
        let builder = &inner.builder;
        let types = [element, element_type(peaks.r#type())];
        let is_wide = types.iter().any(|own| types::bits(*own) == Some(64));
        let wide = builder.r#type(|context| match is_wide {
            true => Type::float64(context),
            false => Type::float32(context),
        });
        let [sum, own, peak] = [of[0], of[1], of[2]].map(|value| converted(builder, value, wide));
        let apart = builder.value("arith.subf", &[own?, peak?], wide, &[])?;
        // That of the part which has the row's maximum is one.
        let reaches_one = [(REACHES_ONE, builder.unit())];
        let factor = builder.value("math.exp", &[apart], wide, &reaches_one)?;
        let scaled = builder.value("arith.mulf", &[sum?, factor], wide, &[])?;
        converted(builder, scaled, element)
    })
}

/// A float of another width.
pub(super) fn converted<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    to: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    match types::bits(value.r#type()).cmp(&types::bits(to)) {
        std::cmp::Ordering::Less => builder.value("arith.extf", &[value], to, &[]),
        std::cmp::Ordering::Equal => Ok(value),
        std::cmp::Ordering::Greater => builder.value("arith.truncf", &[value], to, &[]),
    }
}
