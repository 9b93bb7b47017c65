//! The gradient of scores as a polynomial: `c P dP f' - c P D f'` with `D = sum_key P dP` and the derivative `f'` of the score
//! ([`derivative`]), however it is multiplied out.
//!
//! Weights that are a quotient `P = E / L` of an exponential and a row's sum fall apart, as the derivative of a quotient does:
//! `E (dP / L - sum (dP E / L^2))`. What is one value a row goes in and out of sums.

use super::derivative::{self, conditions};
use super::polynomial::{Monomial, Polynomial};
use crate::fuse::attention::term::{Id, Term, Terms};
use axe_dialect::Combiner;
use std::cell::Cell;

/// The powers of E, of L, of dP and of D; P is `E / L`.
type Powers = [i8; 4];
const EXPONENTIAL: Powers = [1, 0, 0, 0];
const ROW: Powers = [0, 1, 0, 0];
const GRADIENT: Powers = [0, 0, 1, 0];
const WEIGHT: Powers = [1, -1, 0, 0];
/// Those of both terms of a gradient.
const OF_GRADIENT: Powers = [1, -1, 1, 0];
const OF_ROW: Powers = [1, -1, 0, 1];

/// What D is formed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// `sum_key P dP`.
    Weights,
    /// `rowsum(dO O)`, of a result that is read.
    Result,
    /// The row value of this number.
    Given(usize),
}

/// A gradient of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OfScores {
    /// What it is multiplied by.
    pub factor: f64,
    /// What D is formed of.
    pub products: Products,
    /// Whether it is 0 of keys that masks hide, whatever their weights.
    pub chosen: bool,
}

/// A term that is `c P (dP - D) f'`, with P this term of these scores.
pub(super) fn read(terms: &Terms, id: Id, weights: Id, score: Id) -> Option<OfScores> {
    let quotient = terms
        .operands(weights, "arith.divf")
        .and_then(|own| <[Id; 2]>::try_from(own).ok());
    let reading = Reading {
        terms,
        weights,
        quotient,
        conditions: conditions(terms, score),
        products: Cell::new(None),
        chosen: Cell::new(false),
    };
    let found = reading.polynomial(id)?;
    let own = derivative::derivative(terms, score)?;
    let of = |powers| Polynomial::of(Monomial::of(powers), 1.0);
    let difference = of(OF_GRADIENT).plus(&of(OF_ROW), -1.0)?;
    Some(OfScores {
        factor: found.quotient(&difference.times(&own)?)?,
        products: reading.products.get()?,
        chosen: reading.chosen.get(),
    })
}

struct Reading<'a> {
    terms: &'a Terms,
    weights: Id,
    /// E and L, where the weights are a quotient.
    quotient: Option<[Id; 2]>,
    /// Those of the score's masks, and whether keys are seen where they hold.
    conditions: Vec<(Id, bool)>,
    /// What D is formed of, as far as it was seen.
    products: Cell<Option<Products>>,
    /// Whether some of it is 0 of hidden keys.
    chosen: Cell<bool>,
}

impl Reading<'_> {
    fn polynomial(&self, id: Id) -> Option<Polynomial> {
        let of = |powers| Polynomial::of(Monomial::of(powers), 1.0);
        if let Some(powers) = self.known(id) {
            return Some(of(powers));
        }
        if let Some(own) = derivative::other(self.terms, id) {
            return Some(own);
        }
        match self.terms.get(id) {
            Term::Gradient => Some(of(GRADIENT)),
            Term::RowProduct => self.products(Products::Result, 0, 1.0),
            Term::RowValue(number) => self.products(Products::Given(*number), 0, 1.0),
            Term::Fold(Combiner::Add, of) => self.folded(*of),
            Term::Apply(name, _, operands) => match (name.as_str(), operands.as_slice()) {
                ("arith.addf", &[a, b]) => self.polynomial(a)?.plus(&self.polynomial(b)?, 1.0),
                ("arith.subf", &[a, b]) => self.polynomial(a)?.plus(&self.polynomial(b)?, -1.0),
                ("arith.negf", &[a]) => Polynomial::default().plus(&self.polynomial(a)?, -1.0),
                ("arith.mulf", &[a, b]) => self.polynomial(a)?.times(&self.polynomial(b)?),
                ("arith.divf", &[a, b]) => {
                    let divisor = self.polynomial(b)?.inverse()?;
                    self.polynomial(a)?.times(&divisor)
                }
                ("arith.select", &[condition, a, b]) => self.chosen(condition, [a, b]),
                ("math.tanh", _) => Some(Polynomial::of(Monomial::other(id), 1.0)),
                _ => None,
            },
            _ => None,
        }
    }

    fn known(&self, id: Id) -> Option<Powers> {
        match self.quotient {
            _ if id == self.weights => Some(WEIGHT),
            Some([exponential, _]) if id == exponential => Some(EXPONENTIAL),
            Some([_, row]) if id == row => Some(ROW),
            _ => None,
        }
    }

    /// `sum_key c E L^n dP`, which is `c L^(n + 1) D`.
    fn folded(&self, of: Id) -> Option<Polynomial> {
        match self.polynomial(of)?.products() {
            [(own, factor)] if own.is_plain() => match own.powers {
                [1, row, 1, 0] => self.products(Products::Weights, row.checked_add(1)?, *factor),
                _ => None,
            },
            _ => None,
        }
    }

    /// `c L^n D`, where nothing else was D.
    fn products(&self, own: Products, row: i8, factor: f64) -> Option<Polynomial> {
        let known = self.products.replace(Some(own));
        let same = known.is_none_or(|known| known == own);
        same.then(|| Polynomial::of(Monomial::of([0, row, 0, 1]), factor))
    }

    /// What is chosen where keys are seen: weights of hidden ones are 0, and so is what is multiplied by them.
    fn chosen(&self, condition: Id, [a, b]: [Id; 2]) -> Option<Polynomial> {
        let own = self.conditions.iter().find(|(own, _)| *own == condition);
        let (seen, zero) = match own? {
            (_, true) => (a, b),
            (_, false) => (b, a),
        };
        let found = self.polynomial(seen)?;
        let is_zero = self.terms.as_float(zero) == Some(0.0);
        let mut products = found.products().iter();
        let of_weights = products.all(|(own, _)| own.powers[0] > 0);
        self.chosen.set(true);
        (is_zero && of_weights).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::attention::index::Var;
    use crate::fuse::attention::term::Scalar;

    struct Case {
        terms: Terms,
        score: Id,
        weights: Id,
        gradient: Id,
    }

    impl Case {
        /// Weights are any term of scores here.
        fn new() -> Self {
            let mut terms = Terms::default();
            let own = terms.add(Term::Score, Scalar::Float);
            let gradient = terms.add(Term::Gradient, Scalar::Float);
            let (row, key) = (
                terms.add(Term::Index(Var::Row), Scalar::Int(64)),
                terms.add(Term::Index(Var::Key), Scalar::Int(64)),
            );
            let seen = terms.apply("arith.cmpi", Some(5), &[row, key], Scalar::Int(1));
            let none = terms.float(f64::NEG_INFINITY);
            let score = terms.apply("arith.select", None, &[seen, own, none], Scalar::Float);
            let weights = terms.apply("math.exp", None, &[score], Scalar::Float);
            Self {
                terms,
                score,
                weights,
                gradient,
            }
        }

        fn apply(&mut self, name: &str, operands: &[Id]) -> Id {
            self.terms.apply(name, None, operands, Scalar::Float)
        }

        fn fold(&mut self, of: Id) -> Id {
            self.terms.add(Term::Fold(Combiner::Add, of), Scalar::Float)
        }

        fn factor(&self, id: Id) -> Option<f64> {
            self.of(id).map(|(factor, _)| factor)
        }

        fn of(&self, id: Id) -> Option<(f64, Products)> {
            let own = read(&self.terms, id, self.weights, self.score);
            own.map(|own| (own.factor, own.products))
        }
    }

    #[test]
    fn both_ways_to_write_it_are_read() {
        let mut case = Case::new();
        let (p, g) = (case.weights, case.gradient);
        let pg = case.apply("arith.mulf", &[g, p]);
        let d = case.fold(pg);
        // torch: P dP - P D; JAX: P (dP - D).
        let pd = case.apply("arith.mulf", &[p, d]);
        let torch = case.apply("arith.subf", &[pg, pd]);
        let difference = case.apply("arith.subf", &[g, d]);
        let jax = case.apply("arith.mulf", &[difference, p]);
        let (two, eight) = (case.terms.float(2.0), case.terms.float(8.0));
        let scaled = case.apply("arith.mulf", &[jax, two]);
        let divided = case.apply("arith.divf", &[torch, eight]);
        let negated = case.apply("arith.negf", &[d]);
        let added = case.apply("arith.addf", &[g, negated]);
        let added = case.apply("arith.mulf", &[p, added]);
        for (id, expected) in [
            (torch, 1.0),
            (jax, 1.0),
            (scaled, 2.0),
            (divided, 0.125),
            (added, 1.0),
        ] {
            assert_eq!(case.factor(id), Some(expected));
        }
    }

    #[test]
    fn the_derivative_of_a_quotient_is_read() {
        let mut case = Case::new();
        let (e, g) = (case.weights, case.gradient);
        let l = case.fold(e);
        case.weights = case.apply("arith.divf", &[e, l]);
        let one = case.terms.float(1.0);
        let squared = case.apply("arith.mulf", &[l, l]);
        let inverse = case.apply("arith.divf", &[one, squared]);
        // JAX: e (dP / l + sum (-dP e / l^2)).
        let product = case.apply("arith.mulf", &[g, inverse]);
        let product = case.apply("arith.mulf", &[product, e]);
        let negated = case.apply("arith.negf", &[product]);
        let of_sum = case.fold(negated);
        let own = case.apply("arith.divf", &[g, l]);
        let both = case.apply("arith.addf", &[own, of_sum]);
        let gradient = case.apply("arith.mulf", &[both, e]);
        assert_eq!(case.factor(gradient), Some(1.0));
        // Not divided by the row's sum once more.
        let product = case.apply("arith.mulf", &[g, e]);
        let product = case.apply("arith.divf", &[product, l]);
        let other = case.fold(product);
        let wrong = case.apply("arith.subf", &[own, other]);
        let wrong = case.apply("arith.mulf", &[wrong, e]);
        assert_eq!(case.factor(wrong), None);
    }

    #[test]
    fn what_is_no_gradient_is_refused() {
        let mut case = Case::new();
        let (p, g) = (case.weights, case.gradient);
        let pg = case.apply("arith.mulf", &[g, p]);
        let (d, plain) = (case.fold(pg), case.fold(g));
        let pd = case.apply("arith.mulf", &[p, d]);
        let sum = case.apply("arith.addf", &[pg, pd]);
        let half = case.terms.float(0.5);
        let halved = case.apply("arith.mulf", &[pd, half]);
        let halved = case.apply("arith.subf", &[pg, halved]);
        let without = case.apply("arith.mulf", &[p, plain]);
        let without = case.apply("arith.subf", &[pg, without]);
        let squared = case.apply("arith.mulf", &[pg, p]);
        for id in [p, g, pg, sum, halved, without, squared] {
            assert_eq!(case.factor(id), None);
        }
    }

    #[test]
    fn sums_of_rows_may_be_given() {
        let mut case = Case::new();
        let (p, g) = (case.weights, case.gradient);
        let own = case.terms.add(Term::RowProduct, Scalar::Float);
        let values = [2, 3].map(|at| case.terms.add(Term::RowValue(at), Scalar::Float));
        let mut of = |d: Id| {
            let difference = case.apply("arith.subf", &[g, d]);
            let product = case.apply("arith.mulf", &[difference, p]);
            case.of(product)
        };
        assert_eq!(of(own), Some((1.0, Products::Result)));
        assert_eq!(of(values[1]), Some((1.0, Products::Given(3))));
        // One of each row is another gradient.
        let both = case.apply("arith.addf", &values);
        let half = case.terms.float(0.5);
        let mean = case.apply("arith.mulf", &[both, half]);
        let difference = case.apply("arith.subf", &[g, mean]);
        let product = case.apply("arith.mulf", &[difference, p]);
        assert_eq!(case.of(product), None);
    }

    #[test]
    fn hidden_keys_may_be_chosen_to_be_zero() {
        let mut case = Case::new();
        let (p, g) = (case.weights, case.gradient);
        let pg = case.apply("arith.mulf", &[g, p]);
        let d = case.fold(pg);
        let pd = case.apply("arith.mulf", &[p, d]);
        let own = case.apply("arith.subf", &[pg, pd]);
        let zero = case.terms.float(0.0);
        let seen = case
            .terms
            .operands(case.score, "arith.select")
            .expect("a mask")[0];
        let chosen = case.apply("arith.select", &[seen, own, zero]);
        assert_eq!(case.factor(chosen), Some(1.0));
        let hidden = case.apply("arith.select", &[seen, zero, own]);
        assert_eq!(case.factor(hidden), None);
    }

    #[test]
    fn caps_have_their_derivative() {
        let mut case = Case::new();
        let score = case.terms.add(Term::Score, Scalar::Float);
        let (by, cap) = (case.terms.float(0.25), case.terms.float(4.0));
        let scaled = case.apply("arith.mulf", &[score, by]);
        let tanh = case.apply("math.tanh", &[scaled]);
        case.score = case.apply("arith.mulf", &[tanh, cap]);
        case.weights = case.apply("math.exp", &[case.score]);
        let (p, g) = (case.weights, case.gradient);
        let pg = case.apply("arith.mulf", &[g, p]);
        let d = case.fold(pg);
        let difference = case.apply("arith.subf", &[g, d]);
        let plain = case.apply("arith.mulf", &[p, difference]);
        // torch: dS (1 - tanh^2); JAX: (dS + dS tanh) (1 - tanh).
        let one = case.terms.float(1.0);
        let squared = case.apply("arith.mulf", &[tanh, tanh]);
        let squared = case.apply("arith.subf", &[one, squared]);
        let torch = case.apply("arith.mulf", &[plain, squared]);
        let more = case.apply("arith.mulf", &[plain, tanh]);
        let sum = case.apply("arith.addf", &[plain, more]);
        let less = case.apply("arith.subf", &[one, tanh]);
        let jax = case.apply("arith.mulf", &[sum, less]);
        assert_eq!(case.factor(torch), Some(1.0));
        assert_eq!(case.factor(jax), Some(1.0));
        let half = case.apply("arith.mulf", &[plain, less]);
        for wrong in [plain, half, sum] {
            assert_eq!(case.factor(wrong), None);
        }
    }
}
