//! Sums of products, as gradients of scores are multiplied out.

use crate::fuse::attention::term::{Id, Scalar, Terms};

/// Terms of a sum at most: gradients have a few, and products of sums grow.
const MOST: usize = 32;

/// A product of powers of the exponential E, of a row's sum L, of the weights' gradient dP and of D, where P is `E / L`, and of other
/// terms that scores are formed of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Monomial {
    /// How many other terms, so that those with fewer come first.
    degree: i32,
    others: Vec<(Id, i8)>,
    pub powers: [i8; 4],
}

impl Monomial {
    /// Powers of E, L, dP and D.
    pub(super) fn of(powers: [i8; 4]) -> Self {
        Self {
            powers,
            ..Self::default()
        }
    }

    /// Another term.
    pub(super) fn other(id: Id) -> Self {
        Self {
            degree: 1,
            others: vec![(id, 1)],
            powers: [0; 4],
        }
    }

    /// Whether it has no other terms.
    pub(super) fn is_plain(&self) -> bool {
        self.others.is_empty()
    }

    fn times(&self, other: &Self) -> Option<Self> {
        let mut powers = self.powers;
        for (own, power) in powers.iter_mut().zip(other.powers) {
            *own = own.checked_add(power)?;
        }
        let mut others = self.others.clone();
        for (id, power) in &other.others {
            match others.iter_mut().find(|(own, _)| own == id) {
                Some((_, own)) => *own = own.checked_add(*power)?,
                None => others.push((*id, *power)),
            }
        }
        others.retain(|(_, power)| *power != 0);
        others.sort_unstable();
        Some(Self {
            degree: others.iter().map(|(_, power)| i32::from(*power)).sum(),
            others,
            powers,
        })
    }

    fn inverse(&self) -> Option<Self> {
        let mut own = self.clone();
        let others = own.others.iter_mut().map(|(_, power)| power);
        for power in own.powers.iter_mut().chain(others) {
            *power = power.checked_neg()?;
        }
        own.degree = -own.degree;
        Some(own)
    }

    /// The term that its other terms are.
    fn term(&self, terms: &mut Terms) -> Option<Id> {
        let mut found = None;
        for (id, power) in &self.others {
            for _ in 0..power.unsigned_abs() {
                let scalar = terms.scalar(*id);
                let name = if *power < 0 {
                    "arith.divf"
                } else {
                    "arith.mulf"
                };
                let before = match found {
                    None if *power > 0 => {
                        found = Some(*id);
                        continue;
                    }
                    None => terms.float(1.0),
                    Some(before) => before,
                };
                found = Some(terms.apply(name, None, &[before, *id], scalar));
            }
        }
        found
    }
}

/// A sum of such products, each times a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Polynomial(Vec<(Monomial, f64)>);

impl Polynomial {
    /// A product times a number.
    pub(super) fn of(monomial: Monomial, factor: f64) -> Self {
        Self(vec![(monomial, factor)])
    }

    /// A number.
    pub(super) fn number(value: f64) -> Self {
        match value {
            0.0 => Self::default(),
            value => Self::of(Monomial::default(), value),
        }
    }

    /// Its products.
    pub(super) fn products(&self) -> &[(Monomial, f64)] {
        &self.0
    }

    /// The number of a product.
    pub(super) fn factor(&self, of: &Monomial) -> Option<f64> {
        let own = self.0.iter().find(|(own, _)| own == of);
        own.map(|(_, factor)| *factor)
    }

    /// Its product, where it is one.
    fn only(&self) -> Option<&(Monomial, f64)> {
        match self.0.as_slice() {
            [own] => Some(own),
            _ => None,
        }
    }

    /// `self + factor * other`. What cancels does so but for rounding.
    pub(super) fn plus(mut self, other: &Self, factor: f64) -> Option<Self> {
        for (monomial, own) in &other.0 {
            let own = own * factor;
            match self.0.iter_mut().find(|(known, _)| known == monomial) {
                Some((_, sum)) if (*sum + own).abs() <= 1e-6 * own.abs() => *sum = 0.0,
                Some((_, sum)) => *sum += own,
                None => self.0.push((monomial.clone(), own)),
            }
        }
        self.0.retain(|(_, factor)| *factor != 0.0);
        (self.0.len() <= MOST).then_some(self)
    }

    /// Their product.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut found = Self::default();
        for (monomial, factor) in &self.0 {
            for (second, by) in &other.0 {
                let own = Self::of(monomial.times(second)?, factor * by);
                found = found.plus(&own, 1.0)?;
            }
        }
        Some(found)
    }

    /// One over it, where it is one product.
    pub(super) fn inverse(&self) -> Option<Self> {
        let (monomial, factor) = self.only()?;
        (*factor != 0.0)
            .then(|| monomial.inverse())
            .flatten()
            .map(|own| Self::of(own, 1.0 / factor))
    }

    /// The same with the number of its first product 1, which is returned beside it; a product of fewer terms comes first.
    pub(super) fn normal(mut self) -> Option<(Self, f64)> {
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        let first = self.0.first()?.1;
        for (_, factor) in &mut self.0 {
            *factor /= first;
        }
        Some((self, first))
    }

    /// The number `c` where it is `c` times another.
    pub(super) fn quotient(&self, other: &Self) -> Option<f64> {
        let (first, by) = other.0.first()?;
        let factor = self.factor(first)? / by;
        let close = |(monomial, by): &(Monomial, f64)| {
            self.factor(monomial)
                .is_some_and(|own| (own - factor * by).abs() <= 1e-6 * own.abs())
        };
        (self.0.len() == other.0.len() && other.0.iter().all(close)).then_some(factor)
    }

    /// Itself as a term; none where it is the number 1.
    pub(super) fn term(&self, terms: &mut Terms) -> Option<Id> {
        let mut sum: Option<Id> = None;
        for (monomial, factor) in &self.0 {
            let own = monomial.term(terms);
            let (magnitude, negative) = (factor.abs(), *factor < 0.0);
            let number = terms.float(magnitude);
            let mut apply = |name: &str, of: &[Id]| terms.apply(name, None, of, Scalar::Float);
            let own = match own {
                Some(own) => apply("arith.mulf", &[own, number]),
                None => number,
            };
            sum = Some(match (sum, negative) {
                (Some(sum), false) => apply("arith.addf", &[sum, own]),
                (Some(sum), true) => apply("arith.subf", &[sum, own]),
                (None, false) => own,
                (None, true) => apply("arith.negf", &[own]),
            });
        }
        sum.filter(|own| terms.as_float(*own) != Some(1.0))
    }
}
