//! Exponentials of staged rows that are read twice, for their sum and for quotients by it (a softmax): the loop that adds them up
//! leaves them in the shared memory of what they are formed of, which nothing reads any more, so that each is formed once.
//!
//! Where a part of a row has sums below its own maximum `m'` ([`super::rounds`]), what it leaves is `exp(x - m')`, and the quotients
//! are of that times `exp(m' - m)`.

use super::below::Peak;
use super::element::Element;
use super::evaluate::Evaluator;
use super::fold::Fold;
use super::fusion::Fusion;
use super::space::{Kind, source};
use crate::PassResult;
use crate::ir::value::{defining, identity, name, operands, users};
use crate::ir::walk::{block_arguments, blocks};
use crate::ir::{Op, Val};
use axe_dialect::{Combiner, element_type, ops};
use melior::ir::ValueLike;

/// Exponentials that their sum leaves in the place of an input.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'c> {
    value: Val<'c>,
    /// The input that has no other reader once they are formed.
    of: (usize, Kind),
    state: State<'c>,
}

/// Where they are.
#[derive(Clone, Copy, Debug)]
enum State<'c> {
    /// To be formed.
    Open,
    /// In shared memory; a row's are those times its factor.
    Stored { factor: Option<Val<'c>> },
}

impl<'c> Fusion<'c> {
    /// Exponentials that can be kept in the place of what they are formed of.
    #[must_use]
    pub fn kept(&self) -> Option<Kept<'c>> {
        self.folds.iter().find_map(|fold| self.kept_of(*fold))
    }

    fn kept_of(&self, (sum, fold): (Val<'c>, Fold)) -> Option<Kept<'c>> {
        let value = source(defining(sum)?)?;
        Element::of(value).resolved().operands_of("math.exp")?;
        // Every other fold is formed before the sum.
        let own = (value, Kind::Full);
        let before = self.folds_below(vec![own]);
        let is_last = |(other, _): &(Val<'c>, _)| *other == sum || before.contains(other);
        if fold.combiner != Combiner::Add || !self.folds.iter().all(is_last) {
            return None;
        }
        let (below, _) = self.reached(vec![own], None);
        let mut inputs = below.iter().filter(|key| self.inputs.contains(key));
        let (&(of, Kind::Full), None) = (inputs.next()?, inputs.next()) else {
            return None;
        };
        let (behind, readers) = self.reached(self.outputs.clone(), Some(value));
        let divides = |reader: &Val<'c>| {
            let map = defining(*reader).filter(|op| name(*op) == ops::MAP);
            map.is_some_and(|map| is_divided(map, value, sum))
        };
        let fits = element_type(of.r#type()) == element_type(value.r#type())
            && !behind.contains(&(of, Kind::Full))
            && !self.outputs.contains(&own)
            && !readers.is_empty()
            && readers.iter().all(divides);
        fits.then_some(Kept {
            value,
            of: (identity(of), Kind::Full),
            state: State::Open,
        })
    }

    /// What forming values takes, not past folds nor `end`; and what of it reads `end`.
    fn reached(
        &self,
        mut next: Vec<(Val<'c>, Kind)>,
        end: Option<Val<'c>>,
    ) -> (Vec<(Val<'c>, Kind)>, Vec<Val<'c>>) {
        let (mut found, mut readers) = (Vec::new(), Vec::new());
        while let Some(key) = next.pop() {
            let (value, kind) = key;
            let is_fold = self.folds.iter().any(|(fold, _)| *fold == value);
            if found.contains(&key) || is_fold || Some(value) == end {
                continue;
            }
            found.push(key);
            let needed = self.needed(value, kind);
            if needed.iter().any(|(own, _)| Some(*own) == end) {
                readers.push(value);
            }
            next.extend(needed);
        }
        (found, readers)
    }
}

/// Whether a map takes nothing but quotients by a sum of a value's elements.
fn is_divided<'c>(map: Op<'c>, value: Val<'c>, sum: Val<'c>) -> bool {
    let Some(body) = blocks(map).first().copied() else {
        return false;
    };
    let arguments = block_arguments(body).into_iter().zip(operands(map));
    let mut own = arguments.filter(|(_, operand)| *operand == value);
    own.all(|(argument, _)| {
        let by_sum = |user: Op<'c>| match (name(user).as_str(), &operands(user)[..]) {
            ("arith.divf", &[over, under]) => {
                let repeated = Element::inside(under, map).narrow().value;
                let broadcast = defining(repeated).filter(|op| name(*op) == ops::BROADCAST);
                let of = broadcast.and_then(source).map(Element::of);
                over == argument && of.is_some_and(|of| of.narrow().value == sum)
            }
            _ => false,
        };
        users(argument).into_iter().all(by_sum)
    })
}

impl<'c> Evaluator<'_, 'c> {
    /// Leaves a tile of a value in the place of what it is formed of, where it is to be kept.
    pub(super) fn keep(&mut self, value: Val<'c>) -> PassResult<'c> {
        let Some(Kept { of, .. }) = self.open(value) else {
            return Ok(());
        };
        match self.arguments.get(&of).cloned() {
            Some(argument) => self.store(value, Kind::Full, &argument),
            None => Ok(()),
        }
    }

    fn open(&self, value: Val<'c>) -> Option<Kept<'c>> {
        let is_open = |kept: &Kept<'c>| kept.value == value && matches!(kept.state, State::Open);
        self.kept.filter(is_open)
    }

    /// All tiles of a value were kept where they are to be.
    pub(super) fn has_kept(&mut self, value: Val<'c>) {
        self.scale_kept(value, None);
    }

    fn scale_kept(&mut self, value: Val<'c>, factor: Option<Val<'c>>) {
        if let Some(kept) = self.open(value) {
            let state = State::Stored { factor };
            self.kept = Some(Kept { state, ..kept });
        }
    }

    /// The same of a part's exponentials below its own maximum, which `peak` of the row stands for.
    pub(super) fn has_kept_below(
        &mut self,
        sum: Val<'c>,
        stands: Peak,
        [own, peak]: [Val<'c>; 2],
    ) -> PassResult<'c> {
        let Some(value) = defining(sum).and_then(source) else {
            return Ok(());
        };
        if self.open(value).is_none() {
            return Ok(());
        }
        let factor = self.code.map(&[own, peak], own.r#type(), |inner, of| {
            stands.factor(&inner, [of[0], of[1]])
        })?;
        self.scale_kept(value, Some(factor));
        Ok(())
    }

    /// A tile of a value that was kept.
    pub(super) fn kept_tile(&self, value: Val<'c>, kind: Kind) -> PassResult<'c, Option<Val<'c>>> {
        let Some(kept) = self.kept.filter(|kept| kept.value == value) else {
            return Ok(None);
        };
        let (State::Stored { factor }, Kind::Full) = (kept.state, kind) else {
            return Ok(None);
        };
        let argument = self.arguments.get(&kept.of).cloned();
        let argument = argument.ok_or_else(|| self.lost(value))?;
        let r#type = self.r#type(value, kind)?;
        let stored = self.code.load(self.boxed(&argument, kind)?, r#type)?;
        let Some(factor) = factor else {
            return Ok(Some(stored));
        };
        let factor = self.code.broadcast(factor, 1, r#type)?;
        let element = element_type(r#type);
        let tile = self.code.map(&[stored, factor], r#type, |inner, of| {
            inner
                .builder
                .value("arith.mulf", &[of[0], of[1]], element, &[])
        })?;
        Ok(Some(tile))
    }
}
