//! Sums of indices and lengths, and comparisons as such sums.

use super::super::index::Var;
use super::super::term::{Id, Term, Terms};
use super::Length;

/// `rows * row + keys * key + constant`, and a length where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The factor of the row.
    pub rows: i64,
    /// The factor of the key.
    pub keys: i64,
    /// What is added.
    pub constant: i64,
    /// What is added when the kernel runs.
    pub length: Option<Length>,
}

impl Affine {
    pub(super) fn of(constant: i64) -> Self {
        Self {
            rows: 0,
            keys: 0,
            constant,
            length: None,
        }
    }

    pub(super) fn sum(self, other: Self, sign: i64) -> Option<Self> {
        let add = |a: i64, b: i64| a.checked_add(b.checked_mul(sign)?);
        let length = match (self.length, other.length) {
            (own, None) => own,
            (None, Some(other)) => Some(Length {
                factor: other.factor * sign,
                ..other
            }),
            (Some(a), Some(b)) if a.number == b.number && a.factor == -b.factor * sign => None,
            _ => return None,
        };
        Some(Self {
            rows: add(self.rows, other.rows)?,
            keys: add(self.keys, other.keys)?,
            constant: add(self.constant, other.constant)?,
            length,
        })
    }

    pub(super) fn times(self, factor: i64) -> Option<Self> {
        let length = match self.length {
            Some(own) if factor.abs() == 1 => Some(Length {
                factor: own.factor * factor,
                ..own
            }),
            Some(_) => return None,
            None => None,
        };
        Some(Self {
            rows: self.rows.checked_mul(factor)?,
            keys: self.keys.checked_mul(factor)?,
            constant: self.constant.checked_mul(factor)?,
            length,
        })
    }
}

/// The term as a sum of indices.
#[must_use]
pub fn affine(terms: &Terms, id: Id) -> Option<Affine> {
    match terms.get(id) {
        Term::Int(value) => Some(Affine::of(*value)),
        Term::Index(Var::Row) => Some(Affine {
            rows: 1,
            ..Affine::of(0)
        }),
        Term::Index(Var::Key) => Some(Affine {
            keys: 1,
            ..Affine::of(0)
        }),
        Term::Length(number) => Some(Affine {
            length: Some(Length {
                number: *number,
                factor: 1,
            }),
            ..Affine::of(0)
        }),
        Term::Apply(name, _, operands) => match (name.as_str(), operands.as_slice()) {
            ("arith.addi", &[a, b]) => affine(terms, a)?.sum(affine(terms, b)?, 1),
            ("arith.subi", &[a, b]) => affine(terms, a)?.sum(affine(terms, b)?, -1),
            ("arith.muli", &[a, b]) => match (affine(terms, a)?, affine(terms, b)?) {
                (a, factor) | (factor, a) if factor == Affine::of(factor.constant) => {
                    a.times(factor.constant)
                }
                _ => None,
            },
            ("arith.extsi" | "arith.trunci", &[a]) => affine(terms, a),
            _ => None,
        },
        _ => None,
    }
}

/// A comparison of indices as sums that are not negative where it holds: all of them.
#[must_use]
pub fn not_negative(terms: &Terms, id: Id) -> Option<Vec<Affine>> {
    let Term::Apply(name, Some(predicate), operands) = terms.get(id) else {
        return None;
    };
    let &[a, b] = operands.as_slice() else {
        return None;
    };
    if name != "arith.cmpi" {
        return None;
    }
    let difference = affine(terms, a)?.sum(affine(terms, b)?, -1)?;
    if difference == Affine::of(difference.constant) {
        return None;
    }
    let one = Affine::of(1);
    // Indices have no sign, but sums of them may: what is compared without one is taken for compared with one only where it
    // is an index itself.
    let plain = |id| matches!(terms.get(id), Term::Index(_)) || terms.as_int(id) >= Some(0);
    let predicate = match predicate {
        6..=9 if plain(a) && plain(b) => predicate - 4,
        6..=9 => return None,
        other => *other,
    };
    let negated = difference.times(-1)?;
    Some(match predicate {
        0 => vec![difference, negated],
        2 => vec![negated.sum(one, -1)?],
        3 => vec![negated],
        4 => vec![difference.sum(one, -1)?],
        5 => vec![difference],
        _ => return None,
    })
}

/// Whether a sum is an edge of keys, or one of rows that a length says.
pub(super) const fn is_edge(sum: &Affine) -> bool {
    let of_rows = sum.keys == 0 && sum.length.is_some();
    sum.rows.abs() <= 1 && (sum.keys.abs() == 1 || of_rows)
}
