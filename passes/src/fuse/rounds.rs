//! Which folds of rows are formed together, where several thread groups have parts of a row and exchange their states: those of
//! a round in one exchange.
//!
//! A fold that needs another's result waits for that one's exchange, but for a sum of `exp(x - m)` where `m` is the maximum of
//! `x`: of a part of a row it is formed below the part's own maximum, `s' = sum exp(x - m')`. States `(m', s')` are merged by
//! `m = max m'`, `s = sum s' exp(m' - m)`, as an online softmax does. So are moments ([`super::moments`]).

use super::below::{Exponentials, Peak};
use super::element::Element;
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::fusion::{Fusion, needs};
use super::moments::{Moments, States};
use super::space::{Kind, Place, place_of, source};
use crate::PassResult;
use crate::build::Code;
use crate::ir::Val;
use crate::ir::value::{defining, identity};
use axe_dialect::{Combiner, element_type};
use melior::ir::{Type, ValueLike};

/// What is known of the parts of rows that thread groups have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// Columns of each of them, where all have as many.
    pub alike: Option<i64>,
    /// Whether thread groups have them in registers.
    pub are_held: bool,
}

/// Folds whose states are exchanged at once.
#[derive(Clone, Debug)]
pub struct Round<'c> {
    /// Columns of each part, where all have as many.
    alike: Option<i64>,
    /// Those that need no other of the round.
    pub(super) alone: Vec<(Val<'c>, Fold)>,
    /// Sums of exponentials below a maximum.
    pub(super) below: Vec<Below<'c>>,
    /// Moments of elements of which one of those is the sum.
    pub(super) moments: Vec<(Moments<'c>, usize)>,
}

/// A sum of exponentials below a maximum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Below<'c> {
    pub value: Val<'c>,
    pub fold: Fold,
    /// The maximum's position among the folds of its round that need no other.
    pub of: usize,
    /// How the maximum stands for itself.
    pub peak: Peak,
}

impl<'c> Round<'c> {
    /// The element types of the states, in their order.
    pub fn elements(&self) -> impl Iterator<Item = Type<'c>> {
        let alone = self.alone.iter().map(|(value, _)| *value);
        let below = self.below.iter().map(|below| below.value);
        // The moments' own, and how many elements a part has where that is not known.
        let count = |own: &Moments<'c>| self.alike.is_none().then_some(own.squares);
        let moments = self.moments.iter();
        let moments = moments.flat_map(move |(own, _)| own.folds().chain(count(own)));
        let all = alone.chain(below).chain(moments);
        all.map(|value| element_type(value.r#type()))
    }
}

impl<'c> Fusion<'c> {
    /// The rounds in which the folds of rows are formed.
    #[must_use]
    pub fn rounds(&self) -> Vec<Round<'c>> {
        self.rounds_of(Parts::default())
    }

    /// The same of parts of which something is known: where they are held, moments in f64 are one round, too. Of others they are no quicker so.
    #[must_use]
    pub fn rounds_of(&self, parts: Parts) -> Vec<Round<'c>> {
        let mut left = self.folds.clone();
        let (mut done, mut rounds) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let needed: Vec<_> = left.iter().map(|fold| self.folds_of(*fold)).collect();
            let is_done = |value: &Val<'c>| done.contains(value);
            let mut round = Round {
                alike: parts.alike,
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
                let of = round.alone.iter().position(|(own, _)| own == peak);
                let below = of.and_then(|of| {
                    let peak = below(value, fold, *round.alone.get(of)?)?;
                    Some(Below {
                        value,
                        fold,
                        of,
                        peak,
                    })
                });
                round.below.extend(below);
            }
            round.moments = self.moments((&left, &done), &round, parts.are_held);
            if round.alone.is_empty() {
                // Folds that need each other do not exist.
                return rounds;
            }
            done.extend(round.alone.iter().map(|(value, _)| *value));
            done.extend(round.below.iter().map(|below| below.value));
            let moments = round.moments.iter();
            done.extend(moments.flat_map(|(own, _)| own.folds()));
            left.retain(|(value, _)| !done.contains(value));
            rounds.push(round);
        }
        rounds
    }

    /// Moments among folds that are left, of elements whose sums are in a round.
    fn moments(
        &self,
        (left, done): (&[(Val<'c>, Fold)], &[Val<'c>]),
        round: &Round<'c>,
        are_held: bool,
    ) -> Vec<(Moments<'c>, usize)> {
        let open = |fold: &(Val<'c>, Fold)| {
            let needed = self.folds_of(*fold).into_iter();
            let open = needed.filter(|value| !done.contains(value));
            open.collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for (at, (sum, _)) in round.alone.iter().enumerate() {
            let of_sum = || left.iter().filter(|fold| open(fold) == [*sum]);
            for rest in of_sum() {
                let own = of_sum().filter_map(|squares| Moments::of(*sum, rest.0, squares.0));
                found.extend(own.take(1).map(|own| (own, at)));
            }
            let wide = of_sum().filter_map(|squares| Moments::of_wide(*sum, squares.0));
            let wide = wide.take(usize::from(are_held));
            found.extend(wide.map(|own| (own, at)));
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

    pub(super) fn folds_below(&self, mut next: Vec<(Val<'c>, Kind)>) -> Vec<Val<'c>> {
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

    pub(super) fn needed(&self, value: Val<'c>, kind: Kind) -> Vec<(Val<'c>, Kind)> {
        match defining(value).filter(|_| !self.inputs.contains(&(value, kind))) {
            Some(op) => needs(op, (value, kind), self.cut),
            None => Vec::new(),
        }
    }
}

/// What stands for the maximum `m` of `x` where a fold is the sum of `exp(x - m)`.
fn below<'c>(sum: Val<'c>, fold: Fold, (peak, of_peak): (Val<'c>, Fold)) -> Option<Peak> {
    if (fold.combiner, of_peak.combiner) != (Combiner::Add, Combiner::Max) {
        return None;
    }
    let terms = Exponentials::of(source(defining(sum)?)?)?;
    let along = place_of(terms.broadcast, terms.repeated);
    let along_rows = matches!(along, Place::Inner(_) | Place::Unit);
    let of = Element::of(source(defining(peak)?)?);
    (along_rows && terms.peak == peak && terms.x.is(of)).then_some(terms.stands)
}

impl<'c> Evaluator<'_, 'c> {
    /// The states of a round over the columns that there are here, each of which goes through them.
    fn states_of(&mut self, round: &Round<'c>, columns: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let code = self.code;
        let mut moments = Vec::new();
        for (own, at) in &round.moments {
            if let Some(sum) = round.alone.get(*at) {
                moments.push((*at, own.states(self, *sum, (columns, round.alike))?));
            }
        }
        let mut states = Vec::new();
        for (at, (value, fold)) in round.alone.iter().enumerate() {
            let known = moments.iter().find(|(of, _)| *of == at);
            states.push(match known {
                Some((_, own)) => own.sum,
                None => self.state(*value, *fold)?,
            });
        }
        for below in &round.below {
            let (Some((peak, _)), Some(state)) = (round.alone.get(below.of), states.get(below.of))
            else {
                continue;
            };
            let mut own = self.at_column(code, self.origin.column);
            let shift = below.peak.shift(code, *state)?;
            own.known.insert((identity(*peak), Kind::Row), shift);
            states.push(own.state(below.value, below.fold)?);
        }
        for (_, own) in moments {
            states.extend(own.rest);
            states.push(own.squares);
            states.extend(own.count);
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
            None => self.states_of(round, part.columns()[1])?,
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
        for ((at, sum), own) in (alone.len()..).zip(&round.below).zip(below) {
            let peak = round.alone.get(sum.of).map(|(peak, _)| identity(*peak));
            let peak = peak.and_then(|peak| self.known.get(&(peak, Kind::Row)).copied());
            let (Some(peak), Some(own_peaks)) = (peak, alone.get(sum.of)) else {
                continue;
            };
            let peak = match sum.peak {
                Peak::Plain => peak,
                Peak::Finite => sum.peak.shift(code, peak)?,
            };
            if let Some(state) = states.get(sum.of) {
                self.has_kept_below(sum.value, sum.peak, [*state, peak])?;
            }
            let scaled = scaled(code, sum.peak, *own, [*own_peaks, peak])?;
            let state = whole(at, sum.fold, scaled)?;
            self.known.insert((identity(sum.value), Kind::Row), state);
        }
        let mut of_moments = below.iter().skip(round.below.len()).copied();
        for (moments, at) in &round.moments {
            let rest = moments.rest.and_then(|_| of_moments.next());
            let squares = of_moments.next();
            let count = round.alike.is_none().then(|| of_moments.next()).flatten();
            let (Some(sum), Some(row), Some(squares)) = (alone.get(*at), states.get(*at), squares)
            else {
                continue;
            };
            let own = States {
                sum: *sum,
                rest,
                squares,
                count,
            };
            moments.merge(self, (own, round.alike), row.r#type())?;
        }
        Ok(())
    }
}

/// `s exp(m' - m)` of sums below maxima `m'`, which a row's maximum `m` is not below.
fn scaled<'c>(
    code: Code<'c>,
    stands: Peak,
    sums: Val<'c>,
    [peaks, peak]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let peak = code.broadcast(peak, 1, peaks.r#type())?;
    code.map(&[sums, peaks, peak], sums.r#type(), |inner, of| {
        stands.scaled(&inner, of[0], [of[1], of[2]])
    })
}
