//! What a score grows by with its product: the chain rule on the score's term. Masks choose between it and a number that hides a key,
//! whose weight is 0, so that the derivative is that of what is seen.

use super::polynomial::{Monomial, Polynomial};
use crate::fuse::attention::term::{Id, Scalar, Term, Terms};
use crate::fuse::attention::visible::is_hidden;

/// The derivative of a score, with the number of its first product 1. None where it is not known.
pub(super) fn derivative(terms: &Terms, score: Id) -> Option<Polynomial> {
    let (own, _) = of(terms, score, true)?.normal()?;
    Some(own)
}

/// Whether what a score's term has of masks is as it is: what hides a key is still a number that does, or minus infinity.
type Keeps = bool;

fn of(terms: &Terms, id: Id, keeps: Keeps) -> Option<Polynomial> {
    if !depends(terms, id) {
        return Some(Polynomial::default());
    }
    let Term::Apply(name, _, operands) = terms.get(id) else {
        return (*terms.get(id) == Term::Score).then(|| Polynomial::number(1.0));
    };
    match (name.as_str(), operands.as_slice()) {
        ("arith.addf", &[a, b]) => of(terms, a, keeps)?.plus(&of(terms, b, keeps)?, 1.0),
        ("arith.subf", &[a, b]) => of(terms, a, keeps)?.plus(&of(terms, b, false)?, -1.0),
        ("arith.negf", &[a]) => Polynomial::default().plus(&of(terms, a, false)?, -1.0),
        ("arith.mulf", &[a, b]) if !depends(terms, b) => {
            let is_positive = terms.as_float(b).is_some_and(|by| by > 0.0);
            of(terms, a, keeps && is_positive)?.times(&other(terms, b)?)
        }
        ("arith.mulf", &[a, b]) if !depends(terms, a) => of(
            terms,
            b,
            keeps && terms.as_float(a).is_some_and(|by| by > 0.0),
        )?
        .times(&other(terms, a)?),
        ("arith.divf", &[a, b]) if !depends(terms, b) => {
            let is_positive = terms.as_float(b).is_some_and(|by| by > 0.0);
            of(terms, a, keeps && is_positive)?.times(&other(terms, b)?.inverse()?)
        }
        ("math.tanh", &[a]) => {
            let squared = Polynomial::of(Monomial::other(id), 1.0);
            let squared = squared.times(&squared)?;
            let own = Polynomial::number(1.0).plus(&squared, -1.0)?;
            of(terms, a, false)?.times(&own)
        }
        ("arith.select", &[_, a, b]) if keeps => match [a, b].map(|own| is_hidden(terms, own)) {
            [true, false] => of(terms, b, keeps),
            [false, true] => of(terms, a, keeps),
            _ => None,
        },
        _ => None,
    }
}

fn depends(terms: &Terms, id: Id) -> bool {
    terms.any(id, true, &|term| *term == Term::Score)
}

/// A number, or a float that is read, as a factor.
pub(super) fn other(terms: &Terms, id: Id) -> Option<Polynomial> {
    if let Some(value) = terms.as_float(id) {
        return Some(Polynomial::number(value));
    }
    let is_read = matches!(terms.get(id), Term::Value(_) | Term::Input(_));
    (is_read && terms.scalar(id) == Scalar::Float).then(|| Polynomial::of(Monomial::other(id), 1.0))
}

/// The conditions of a score's masks, and whether keys are seen where they hold.
pub(super) fn conditions(terms: &Terms, score: Id) -> Vec<(Id, bool)> {
    let (mut next, mut found) = (vec![score], Vec::new());
    while let Some(id) = next.pop() {
        let Term::Apply(name, _, operands) = terms.get(id) else {
            continue;
        };
        match (name.as_str(), operands.as_slice()) {
            ("arith.select", &[condition, a, b]) => {
                let hidden = [a, b].map(|own| is_hidden(terms, own));
                if hidden[0] != hidden[1] {
                    found.push((condition, hidden[1]));
                    next.push(if hidden[0] { b } else { a });
                }
            }
            ("arith.addf" | "arith.mulf" | "arith.divf", _) => next.extend(operands),
            ("arith.subf", &[a, _]) => next.push(a),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(terms: &mut Terms, name: &str, of: &[Id]) -> Id {
        terms.apply(name, None, of, Scalar::Float)
    }

    #[test]
    fn a_cap_has_one_less_its_square() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let bias = terms.add(Term::Input(0), Scalar::Float);
        let (cap, by) = (terms.float(30.0), terms.float(1.0 / 30.0));
        let inner = apply(&mut terms, "arith.mulf", &[score, by]);
        let tanh = apply(&mut terms, "math.tanh", &[inner]);
        let capped = apply(&mut terms, "arith.mulf", &[tanh, cap]);
        let sum = apply(&mut terms, "arith.addf", &[capped, bias]);
        let own = derivative(&terms, sum).expect("a derivative");
        let square = apply(&mut terms, "arith.mulf", &[tanh, tanh]);
        let one = terms.float(1.0);
        let expected = apply(&mut terms, "arith.subf", &[one, square]);
        assert_eq!(own.term(&mut terms), Some(expected));
    }

    #[test]
    fn sums_and_masks_have_one() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let bias = terms.add(Term::Input(0), Scalar::Float);
        let seen = terms.add(Term::Input(1), Scalar::Int(1));
        let (half, none) = (terms.float(0.5), terms.float(f64::NEG_INFINITY));
        let scaled = apply(&mut terms, "arith.mulf", &[score, half]);
        let masked = apply(&mut terms, "arith.select", &[seen, scaled, none]);
        let sum = apply(&mut terms, "arith.addf", &[masked, bias]);
        for id in [score, scaled, masked, sum] {
            let own = derivative(&terms, id).expect("a derivative");
            assert_eq!(own.term(&mut terms), None);
        }
        assert_eq!(conditions(&terms, sum), [(seen, true)]);
    }

    #[test]
    fn what_is_not_known_has_none() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let seen = terms.add(Term::Input(1), Scalar::Int(1));
        let none = terms.float(f64::NEG_INFINITY);
        let zero = terms.float(0.0);
        let masked = apply(&mut terms, "arith.select", &[seen, score, none]);
        // A cap behind a mask hides no key.
        let capped = apply(&mut terms, "math.tanh", &[masked]);
        let squared = apply(&mut terms, "arith.mulf", &[score, score]);
        let chosen = apply(&mut terms, "arith.select", &[seen, score, zero]);
        let sine = apply(&mut terms, "math.sin", &[score]);
        for id in [capped, squared, chosen, sine] {
            assert_eq!(derivative(&terms, id), None);
        }
    }
}
