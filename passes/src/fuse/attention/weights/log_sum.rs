//! The logarithm of a row's sum of exponentials, `log sum exp(x)`, as programs write it: `m + log(sum exp(x - m))`, or without a
//! maximum; in powers of two; with a maximum that is 0 where it is infinite, as libraries guard it.

use super::{Factors, Linear, against, equality, guard, guards, is_same, linear, split};
use crate::fuse::attention::term::{Id, Term, Terms};
use axe_dialect::Combiner;
use std::f64::consts::LN_2;

/// `scale * log(sum exp(x)) + offset` of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogSum {
    /// What the logarithm is multiplied by: 1, or `1 / ln 2` for one of base two.
    pub scale: f64,
    /// What is added.
    pub offset: f64,
    /// What a row has whose scores are all minus infinity.
    pub empty: EmptyLog,
}

/// The logarithm of a sum of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyLog {
    /// That of zero, minus infinity times the scale.
    Least,
    /// NaN.
    Nan,
    /// Infinity: of which the weight of any score is 0.
    Greatest,
}

/// Reads a value of a row as the logarithm of the sum of these exponentials. `score` is what weights are of: what a guard of
/// rows whose keys are all hidden may look at.
pub fn log_sum(terms: &mut Terms, id: Id, score: Id, exponent: &Linear) -> Option<LogSum> {
    if let Some(own) = guarded(terms, id, score, exponent) {
        let found = log_sum(terms, own, score, exponent)?;
        return (found.scale > 0.0).then_some(LogSum {
            empty: EmptyLog::Least,
            ..found
        });
    }
    let mut rest = linear(terms, id);
    let atoms: Vec<_> = rest.terms.keys().copied().collect();
    let mut logs = atoms
        .into_iter()
        .filter_map(|id| Some((id, log(terms, id)?)));
    let (Some((atom, (of, base))), None) = (logs.next(), logs.next()) else {
        return None;
    };
    let scale = rest.terms.remove(&atom)? * base;
    let mut inner = Factors {
        scale: 1.0,
        ..Factors::default()
    };
    let whole = split(terms, of, &mut inner).ok()?.is_none();
    let own = whole
        && inner.sums.is_empty()
        && inner.guards.is_empty()
        && inner.values.is_empty()
        && inner.scale > 0.0;
    if !own || !is_same(&inner.exponent, exponent) {
        return None;
    }
    let safe = |id: &Id| maximum(terms, *id).is_some_and(|(_, safe)| safe);
    let empty = match inner.row.terms.keys().all(safe) {
        true => EmptyLog::Least,
        false => EmptyLog::Nan,
    };
    rest.add(&inner.row, scale);
    let mut offset = rest.constant + scale * inner.scale.ln();
    let mut maxima = 0.0;
    for (id, factor) in &rest.terms {
        let (of, _) = maximum(terms, *id)?;
        let (own, constant) = against(terms, of, exponent)?;
        maxima += factor * own;
        offset += factor * constant;
    }
    let settled = maxima.abs() <= 1e-6 * scale.abs() && offset.is_finite();
    settled.then_some(LogSum {
        scale,
        offset,
        empty,
    })
}

/// What is minus infinity for rows whose keys are all hidden, and this else.
fn guarded(terms: &mut Terms, id: Id, score: Id, exponent: &Linear) -> Option<Id> {
    let &[condition, a, b] = terms.operands(id, "arith.select")? else {
        return None;
    };
    let (hidden, of) = guard(terms, condition)?;
    let [none, other] = if hidden { [a, b] } else { [b, a] };
    let right = terms.as_float(none) == Some(f64::NEG_INFINITY);
    (right && guards(terms, of, score, exponent)).then_some(other)
}

/// The sum that a term is the logarithm of, and the natural logarithm's part of it.
fn log(terms: &Terms, id: Id) -> Option<(Id, f64)> {
    let of = |name, scale| Some((*terms.operands(id, name)?.first()?, scale));
    let (sum, scale) = of("math.log", 1.0).or_else(|| of("math.log2", 1.0 / LN_2))?;
    match terms.get(sum) {
        Term::Fold(Combiner::Add, of) => Some((*of, scale)),
        _ => None,
    }
}

/// Takes exponents of a row that are logarithms of sums as what the row is divided by: `exp(x - log s)` is `exp(x) / s`.
pub(super) fn divide(terms: &Terms, factors: &mut Factors) {
    let all = std::mem::take(&mut factors.row.terms);
    for (id, factor) in all {
        match log(terms, id) {
            Some((of, base)) if ((factor * base).abs() - 1.0).abs() < 1e-6 => {
                let power = if factor > 0.0 { 1 } else { -1 };
                *factors.sums.entry(of).or_insert(0) += power;
            }
            _ => {
                factors.row.terms.insert(id, factor);
            }
        }
    }
}

/// What a term is the maximum of over a row, and whether it is 0 where that is infinite.
pub(super) fn maximum(terms: &Terms, id: Id) -> Option<(Id, bool)> {
    if let Term::Fold(Combiner::Max, of) = *terms.get(id) {
        return Some((of, false));
    }
    let &[condition, a, b] = terms.operands(id, "arith.select")? else {
        return None;
    };
    let zero = |id| terms.as_float(id) == Some(0.0);
    let (own, finite) = match (zero(a), zero(b)) {
        (true, false) => (b, false),
        (false, true) => (a, true),
        _ => return None,
    };
    let Term::Fold(Combiner::Max, of) = *terms.get(own) else {
        return None;
    };
    (is_finite(terms, condition, own)? == finite).then_some((of, true))
}

/// Whether a condition is that a number is finite, or not minus infinity (`true`), or the opposite.
fn is_finite(terms: &Terms, condition: Id, of: Id) -> Option<bool> {
    if let Some(&[own, one]) = terms.operands(condition, "arith.xori")
        && terms.as_int(one) == Some(1)
    {
        return is_finite(terms, own, of).map(|finite| !finite);
    }
    if let Some(&[own]) = terms.operands(condition, "math.isfinite") {
        return (own == of).then_some(true);
    }
    let Term::Apply(name, Some(predicate), operands) = terms.get(condition) else {
        return None;
    };
    let (true, &[value, bound]) = (name == "arith.cmpf", operands.as_slice()) else {
        return None;
    };
    let absolute = terms.operands(value, "math.absf").map(<[Id]>::to_vec);
    let bounds: &[f64] = match absolute.as_deref() {
        Some(&[own]) if own == of => &[f64::INFINITY],
        _ if value == of => &[f64::NEG_INFINITY],
        _ => return None,
    };
    let bound = terms.as_float(bound).filter(|own| bounds.contains(own))?;
    match predicate {
        // Less than infinity, where NaN may count or not.
        4 | 11 if bound > 0.0 => Some(true),
        // Greater than minus infinity.
        2 | 9 if bound < 0.0 => Some(true),
        other => equality(*other).map(|equal| !equal),
    }
}
