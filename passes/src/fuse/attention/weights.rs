//! The algebra of a streamed softmax. A result is read as `factor * sum_key exp(x(row, key)) * V(key, column)`:
//!
//! * what is one value a row is hoisted out of the sum: `sum (p / l) v` is `(sum p v) / l`, before the product or after it;
//! * an exponential of a sum falls apart, `exp(x - m)` is `exp(x) exp(-m)`, so that a row's maximum is a factor of the row. A
//!   sum of `exp(x)` runs online beside any running maximum `m`, for `exp(x - m') = exp(m - m') exp(x - m)`: state is
//!   scaled by the same factor that merges it;
//! * what is left of the factors of a row must cancel but for `1 / sum exp(x)`;
//! * constant factors go into the exponent's scale.

mod given;
mod log_sum;

pub use given::{RowLog, with_logs};
pub use log_sum::{EmptyLog, LogSum, log_sum};

use super::term::{Id, Scalar, Term, Terms};
use super::visible;
use axe_dialect::Combiner;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;

/// A row's result is `scale * sum exp(x - m) v`, divided by `sum exp(x - m)` where it is normalised; x is `slope * score`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The scores: what the running maximum is of.
    pub score: Id,
    /// What scores are multiplied by in the exponent; positive.
    pub slope: f64,
    /// Whether the result is divided by the sum of the weights.
    pub normalized: bool,
    /// What the result is multiplied by.
    pub scale: f64,
    /// Whether a row whose scores are all minus infinity is 0; NaN where it is not.
    pub empty_is_zero: bool,
    /// What of its problem the result is multiplied or divided by, too.
    pub values: Vec<Value>,
}

/// A value of a problem that is a factor of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number of [`Term::Value`].
    pub number: usize,
    /// Whether results are divided by it.
    pub divides: bool,
}

/// A sum of terms, each with a factor, and a constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Linear {
    terms: BTreeMap<Id, f64>,
    constant: f64,
}

impl Linear {
    fn add(&mut self, other: &Self, factor: f64) {
        for (id, own) in &other.terms {
            let sum = self.terms.entry(*id).or_insert(0.0);
            *sum += own * factor;
            // Factors that cancel do so but for the rounding of 1 / x and log2 e.
            if sum.abs() <= (own * factor).abs() * 1e-6 {
                self.terms.remove(id);
            }
        }
        self.constant += other.constant * factor;
    }
}

/// Factors of a row, and the exponent of what depends on keys.
#[derive(Clone, Debug, Default)]
struct Factors {
    scale: f64,
    exponent: Linear,
    /// The exponent of the row.
    row: Linear,
    /// The power of each sum of exponentials over the row.
    sums: BTreeMap<Id, i32>,
    /// What is compared with minus infinity, or says which keys are seen, of rows that are 0 where no key is.
    guards: Vec<Id>,
    /// Values of the problem.
    values: Vec<Value>,
}

impl Factors {
    /// Takes an exponential: what of its exponent is one value a row is a factor of the row.
    fn take(&mut self, terms: &Terms, exponent: Linear) {
        for (term, factor) in exponent.terms {
            let own = Linear {
                terms: BTreeMap::from([(term, factor)]),
                constant: 0.0,
            };
            match is_row(terms, term) {
                true => self.row.add(&own, 1.0),
                false => self.exponent.add(&own, 1.0),
            }
        }
        self.row.constant += exponent.constant;
    }
}

/// Why a term is no such result.
pub type Why = String;

/// Reads a result: its weights, and their exponent as the program has it.
///
/// # Errors
/// Why it is no streamed softmax.
pub fn read(terms: &mut Terms, result: Id) -> Result<(Weights, Linear), Why> {
    let mut factors = Factors {
        scale: 1.0,
        ..Factors::default()
    };
    let product = split(terms, result, &mut factors)?;
    let product = product.ok_or("it has no second product")?;
    let Term::Product(weight) = *terms.get(product) else {
        return Err("its rows are not the second product's".to_owned());
    };
    let left = split(terms, weight, &mut factors)?;
    if left.is_some() {
        return Err("its weights are no exponentials".to_owned());
    }
    settle(terms, factors)
}

/// Reads the weights of a row alone.
///
/// # Errors
/// Why they are no streamed softmax.
pub(super) fn probabilities(terms: &mut Terms, id: Id) -> Result<Weights, Why> {
    let mut factors = Factors {
        scale: 1.0,
        ..Factors::default()
    };
    match split(terms, id, &mut factors)? {
        None => settle(terms, factors).map(|(weights, _)| weights),
        Some(_) => Err("its weights are no exponentials".to_owned()),
    }
}

/// Takes the factors of a term; the product that is left, where one is.
fn split(terms: &mut Terms, id: Id, factors: &mut Factors) -> Result<Option<Id>, Why> {
    if let Some(exponent) = exponent(terms, id) {
        factors.take(terms, exponent);
        return Ok(None);
    }
    let Term::Apply(name, _, operands) = terms.get(id).clone() else {
        return match terms.get(id) {
            Term::Product(_) => Ok(Some(id)),
            _ => Err("its weights are no exponentials".to_owned()),
        };
    };
    match (name.as_str(), operands.as_slice()) {
        ("arith.mulf", &[a, b]) if is_factor(terms, b) => {
            factor(terms, b, 1, factors)?;
            split(terms, a, factors)
        }
        ("arith.mulf", &[a, b]) if is_factor(terms, a) => {
            factor(terms, a, 1, factors)?;
            split(terms, b, factors)
        }
        ("arith.divf", &[a, b]) if is_factor(terms, b) => {
            factor(terms, b, -1, factors)?;
            split(terms, a, factors)
        }
        ("arith.negf", &[a]) => {
            factors.scale = -factors.scale;
            split(terms, a, factors)
        }
        ("arith.select", &[condition, a, b]) => {
            let zero = |id| terms.as_float(id) == Some(0.0);
            let (zero_a, zero_b) = (zero(a), zero(b));
            let empty = guard(terms, condition);
            match (empty, zero_a, zero_b) {
                (Some((true, of)), true, _) => {
                    factors.guards.push(of);
                    split(terms, b, factors)
                }
                (Some((false, of)), _, true) => {
                    factors.guards.push(of);
                    split(terms, a, factors)
                }
                _ => {
                    Err("it chooses by what is not whether a row's keys are all hidden".to_owned())
                }
            }
        }
        _ => Err(format!("'{name}' of its weights is no factor of a row")),
    }
}

/// Takes a factor of a row, or what a row is divided by.
fn factor(terms: &mut Terms, id: Id, power: i32, factors: &mut Factors) -> Result<(), Why> {
    if let Some(value) = terms.as_float(id) {
        factors.scale *= value.powi(power);
        return Ok(());
    }
    if let Some(exponent) = exponent(terms, id) {
        factors.row.add(&exponent, f64::from(power));
        return Ok(());
    }
    match terms.get(id).clone() {
        Term::Value(number) => {
            factors.values.push(Value {
                number,
                divides: power < 0,
            });
            Ok(())
        }
        Term::Fold(Combiner::Add, of) => {
            *factors.sums.entry(of).or_insert(0) += power;
            Ok(())
        }
        Term::Apply(name, _, operands) => match (name.as_str(), operands.as_slice()) {
            ("arith.mulf", &[a, b]) => {
                factor(terms, a, power, factors)?;
                factor(terms, b, power, factors)
            }
            ("arith.divf", &[a, b]) => {
                factor(terms, a, power, factors)?;
                factor(terms, b, -power, factors)
            }
            _ => Err(format!("'{name}' forms a factor of its rows")),
        },
        _ => Err("a factor of its rows is no sum of exponentials".to_owned()),
    }
}

/// Cancels the factors of a row.
fn settle(terms: &mut Terms, mut factors: Factors) -> Result<(Weights, Linear), Why> {
    let mut power = 0;
    log_sum::divide(terms, &mut factors);
    for (of, own) in std::mem::take(&mut factors.sums) {
        let mut inner = Factors {
            scale: 1.0,
            ..Factors::default()
        };
        let whole = split(terms, of, &mut inner)?.is_some();
        if whole || !inner.sums.is_empty() || !inner.values.is_empty() {
            return Err("a row is divided by a sum of what are no exponentials".to_owned());
        }
        if !is_same(&inner.exponent, &factors.exponent) {
            return Err("a row is divided by the sum of other weights".to_owned());
        }
        factors.row.add(&inner.row, f64::from(own));
        factors.scale *= inner.scale.powi(own);
        power += own;
    }
    if !matches!(power, 0 | -1) {
        return Err("a row is not divided by the sum of its weights once".to_owned());
    }
    let (score, slope) = scaled(terms, &factors.exponent)?;
    // The maximum of x is a factor exp(m), and so is each maximum that was subtracted.
    let mut maxima = 1.0 + f64::from(power);
    let mut empty_is_zero = false;
    for (id, factor) in &factors.row.terms {
        let Some((of, _)) = log_sum::maximum(terms, *id) else {
            return Err("what is subtracted from a row's scores is not their maximum".to_owned());
        };
        let (own, constant) =
            against(terms, of, &factors.exponent).ok_or("a maximum is not that of the scores")?;
        maxima += factor * own;
        factors.row.constant += factor * constant;
    }
    for of in std::mem::take(&mut factors.guards) {
        if !guards(terms, of, score, &factors.exponent) {
            return Err("it chooses by what is not whether a row's keys are all hidden".to_owned());
        }
        empty_is_zero = true;
    }
    if maxima.abs() > 1e-6 {
        return Err("its weights grow with the maximum of their row".to_owned());
    }
    let weights = Weights {
        score,
        slope,
        normalized: power == -1,
        scale: factors.scale * factors.row.constant.exp(),
        empty_is_zero,
        values: factors.values,
    };
    Ok((weights, factors.exponent))
}

/// Whether what a guard looks at is the score, or the mask that hides its keys.
fn guards(terms: &mut Terms, of: Id, score: Id, exponent: &Linear) -> bool {
    match terms.scalar(of) {
        Scalar::Float => against(terms, of, exponent).is_some(),
        Scalar::Int(_) => hides(terms, score, of),
    }
}

/// Whether a score is minus infinity just where a condition fails.
fn hides(terms: &Terms, score: Id, condition: Id) -> bool {
    match terms.operands(score, "arith.select") {
        Some(&[own, _, b]) => own == condition && terms.as_float(b) == Some(f64::NEG_INFINITY),
        _ => false,
    }
}

/// A term as `(a, b)` of `a * x + b`.
fn against(terms: &mut Terms, of: Id, x: &Linear) -> Option<(f64, f64)> {
    let own = linear(terms, of);
    let (first, factor) = own.terms.iter().next()?;
    let slope = factor / x.terms.get(first)?;
    let mut scaled = Linear::default();
    scaled.add(x, slope);
    (slope > 0.0 && is_same(&scaled, &own)).then_some((slope, own.constant))
}

fn is_same(a: &Linear, b: &Linear) -> bool {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * a.abs();
    a.terms.keys().eq(b.terms.keys()) && a.terms.values().zip(b.terms.values()).all(close)
}

/// An exponent as a positive number times what the maximum is taken of: constant factors of all of it go out of the score.
fn scaled(terms: &mut Terms, exponent: &Linear) -> Result<(Id, f64), Why> {
    let mut hidden = None;
    let mut parts = Vec::new();
    for (id, factor) in &exponent.terms {
        // A bias that is a number or minus infinity chooses which keys are seen.
        match mask(terms, *id).filter(|_| *factor > 0.0) {
            Some((condition, holds)) if hidden.is_none() => hidden = Some((condition, holds)),
            _ => parts.push((*id, *factor)),
        }
    }
    let (mut score, mut slope) = match parts.as_slice() {
        [] => return Err("its weights do not depend on the first product".to_owned()),
        [(id, factor)] if *factor > 0.0 => (*id, *factor),
        [(id, factor)] => (scale(terms, *id, *factor), 1.0),
        parts => {
            let mut sum = None;
            for (id, factor) in parts {
                let part = scale(terms, *id, *factor);
                sum = Some(match sum {
                    Some(sum) => terms.apply("arith.addf", None, &[sum, part], Scalar::Float),
                    None => part,
                });
            }
            let sum = sum.ok_or("its weights do not depend on the first product")?;
            (sum, 1.0)
        }
    };
    // The factor of what is seen comes out of the mask.
    if let Some((inner, factor)) = unmasked(terms, score) {
        score = inner;
        slope *= factor;
    }
    if let Some((condition, holds)) = hidden {
        let none = terms.float(f64::NEG_INFINITY);
        let sides = if holds {
            [condition, none, score]
        } else {
            [condition, score, none]
        };
        score = terms.apply("arith.select", None, &sides, Scalar::Float);
    }
    if !terms.any(score, true, &|term| *term == Term::Score) {
        return Err("its weights do not depend on the first product".to_owned());
    }
    Ok((score, slope))
}

fn scale(terms: &mut Terms, id: Id, factor: f64) -> Id {
    let factor = terms.float(factor);
    terms.apply("arith.mulf", None, &[id, factor], Scalar::Float)
}

/// A term that is minus infinity where a condition holds (or fails), and 0 else.
fn mask(terms: &Terms, id: Id) -> Option<(Id, bool)> {
    let &[condition, a, b] = terms.operands(id, "arith.select")? else {
        return None;
    };
    match (terms.as_float(a)?, terms.as_float(b)?) {
        (a, 0.0) if a == f64::NEG_INFINITY => Some((condition, true)),
        (0.0, b) if b == f64::NEG_INFINITY => Some((condition, false)),
        _ => None,
    }
}

/// What is left of a score, with masks, when a positive factor of all that is seen is taken out.
fn unmasked(terms: &mut Terms, id: Id) -> Option<(Id, f64)> {
    if let Some(&[condition, a, b]) = terms.operands(id, "arith.select") {
        let hidden = |id| visible::is_hidden(terms, id);
        let (first, second) = (hidden(a), hidden(b));
        let none = if first { a } else { b };
        let (inner, factor) = match (first, second) {
            (true, false) => unmasked(terms, b)?,
            (false, true) => unmasked(terms, a)?,
            _ => return None,
        };
        let sides = if first {
            [condition, none, inner]
        } else {
            [condition, inner, none]
        };
        return Some((
            terms.apply("arith.select", None, &sides, Scalar::Float),
            factor,
        ));
    }
    let own = linear(terms, id);
    let (term, factor) = own.terms.iter().next()?;
    (own.terms.len() == 1 && own.constant == 0.0 && *factor > 0.0).then_some((*term, *factor))
}

/// Whether a condition of a row is that all its scores are minus infinity (`true`), or that some are not (`false`), and what it
/// looks at.
fn guard(terms: &Terms, id: Id) -> Option<(bool, Id)> {
    match terms.get(id) {
        Term::Fold(Combiner::And, of) => is_hidden(terms, *of).filter(|(hidden, _)| *hidden),
        Term::Fold(Combiner::Or, of) => is_hidden(terms, *of).filter(|(hidden, _)| !*hidden),
        // Of maxima: m = -inf.
        Term::Apply(name, _, _) if name == "arith.cmpf" => {
            let (equal, of) = is_hidden(terms, id)?;
            match terms.get(of) {
                Term::Fold(Combiner::Max, of) => Some((equal, *of)),
                _ => None,
            }
        }
        _ => negated(terms, id)
            .and_then(|of| guard(terms, of))
            .map(|(all, of)| (!all, of)),
    }
}

/// What a bit is the opposite of.
fn negated(terms: &Terms, id: Id) -> Option<Id> {
    let &[of, set] = terms.operands(id, "arith.xori")? else {
        return None;
    };
    (terms.as_int(set) == Some(1)).then_some(of)
}

/// Whether a condition is that a key is hidden (`true`), or that it is seen (`false`), and what it looks at.
fn is_hidden(terms: &Terms, id: Id) -> Option<(bool, Id)> {
    if let Some(of) = negated(terms, id) {
        return is_hidden(terms, of).map(|(hidden, of)| (!hidden, of));
    }
    match terms.get(id) {
        Term::Apply(name, Some(predicate), operands) if name == "arith.cmpf" => {
            let &[a, b] = operands.as_slice() else {
                return None;
            };
            let none = terms.as_float(b) == Some(f64::NEG_INFINITY);
            let equal = none.then(|| equality(*predicate))?;
            equal.map(|equal| (equal, a))
        }
        // The mask itself, where a set bit is a key that is seen.
        _ if terms.scalar(id) == Scalar::Int(1) => Some((false, id)),
        _ => None,
    }
}

/// Whether a predicate of arith.cmpf is that of equal (`true`) or different (`false`) numbers.
const fn equality(predicate: i64) -> Option<bool> {
    match predicate {
        1 | 8 => Some(true),
        6 | 13 => Some(false),
        _ => None,
    }
}

/// The exponent of a term that is an exponential.
fn exponent(terms: &mut Terms, id: Id) -> Option<Linear> {
    let natural = terms.operands(id, "math.exp").map(<[Id]>::to_vec);
    let factor = if natural.is_some() { 1.0 } else { LN_2 };
    let operands = natural.or_else(|| terms.operands(id, "math.exp2").map(<[Id]>::to_vec))?;
    let &[of] = operands.as_slice() else {
        return None;
    };
    let mut found = Linear::default();
    found.add(&linear(terms, of), factor);
    Some(found)
}

/// A term as a sum.
fn linear(terms: &mut Terms, id: Id) -> Linear {
    let mut found = Linear::default();
    if let Some(value) = terms.as_float(id).filter(|value| value.is_finite()) {
        found.constant = value;
        return found;
    }
    if let Term::Apply(name, _, operands) = terms.get(id).clone() {
        let constant = |id: Id| {
            terms
                .as_float(id)
                .filter(|value| value.is_finite() && *value != 0.0)
        };
        let sum = match (name.as_str(), operands.as_slice()) {
            ("arith.addf", &[a, b]) => Some(vec![(a, 1.0), (b, 1.0)]),
            ("arith.subf", &[a, b]) => Some(vec![(a, 1.0), (b, -1.0)]),
            ("arith.negf", &[a]) => Some(vec![(a, -1.0)]),
            ("arith.mulf", &[a, b]) => match (constant(a), constant(b)) {
                (_, Some(factor)) => Some(vec![(a, factor)]),
                (Some(factor), _) => Some(vec![(b, factor)]),
                _ => None,
            },
            ("arith.divf", &[a, b]) => constant(b).map(|divisor| vec![(a, 1.0 / divisor)]),
            _ => None,
        };
        if let Some(sum) = sum {
            for (part, factor) in sum {
                let own = linear(terms, part);
                found.add(&own, factor);
            }
            return found;
        }
    }
    found.terms.insert(id, 1.0);
    found
}

/// The number that a term is another one times.
pub(super) fn factor_of(terms: &mut Terms, id: Id, of: Id) -> Option<f64> {
    let own = linear(terms, id);
    let alone = own.terms.len() == 1 && own.constant == 0.0;
    own.terms.get(&of).copied().filter(|_| alone)
}

/// Whether a term is one value a row or a problem.
fn is_factor(terms: &Terms, id: Id) -> bool {
    is_row(terms, id) || {
        let of_problem = |term: &Term| matches!(term, Term::Value(_));
        terms.any(id, false, &of_problem)
            && !terms.any(id, false, &|term| is_of_keys(term) && !of_problem(term))
    }
}

/// Whether a term is one value a row.
fn is_row(terms: &Terms, id: Id) -> bool {
    !terms.any(id, false, &is_of_keys)
}

/// Whether a term may have another value for another key.
fn is_of_keys(term: &Term) -> bool {
    matches!(
        term,
        Term::Score
            | Term::Gradient
            | Term::Product(_)
            | Term::Input(_)
            | Term::Value(_)
            | Term::Label(_)
            | Term::Index(_)
    )
}

#[cfg(test)]
mod tests;
