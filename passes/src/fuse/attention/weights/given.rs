//! Weights `exp(x - L)` of which the logarithms of the rows' sums L are values that are read, as backward passes form them.

use super::{Factors, Weights, Why, exponent, scaled};
use crate::fuse::attention::term::{Id, Scalar, Term, Terms};

/// What is subtracted from scores: `factor * value + offset`, of the row value of this number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowLog {
    /// The number of [`Term::RowValue`].
    pub value: usize,
    /// What it is multiplied by.
    pub factor: f64,
    /// What is added.
    pub offset: f64,
}

/// Reads weights whose rows' logarithms are read. What is 0 where a condition hides keys is that of scores of minus infinity.
///
/// # Errors
/// Why they are none.
pub fn with_logs(terms: &mut Terms, id: Id) -> Result<(Weights, RowLog), Why> {
    let zero = |terms: &Terms, id| terms.as_float(id) == Some(0.0);
    let chosen = terms.operands(id, "arith.select").map(<[Id]>::to_vec);
    let (own, hidden) = match chosen.as_deref() {
        Some(&[condition, a, b]) if zero(terms, b) => (a, Some((condition, true))),
        Some(&[condition, a, b]) if zero(terms, a) => (b, Some((condition, false))),
        _ => (id, None),
    };
    let exponent = exponent(terms, own).ok_or("its weights are no exponentials")?;
    let mut factors = Factors {
        scale: 1.0,
        ..Factors::default()
    };
    factors.take(terms, exponent);
    let rows: Vec<_> = factors.row.terms.iter().collect();
    let &[(log, factor)] = rows.as_slice() else {
        return Err("one value of each row is not subtracted from its scores".to_owned());
    };
    let &Term::RowValue(value) = terms.get(*log) else {
        return Err("what is subtracted from a row's scores is not read".to_owned());
    };
    let (factor, offset) = (-factor, -factors.row.constant);
    let (mut score, slope) = scaled(terms, &factors.exponent)?;
    if let Some((condition, holds)) = hidden {
        let none = terms.float(f64::NEG_INFINITY);
        let sides = match holds {
            true => [condition, score, none],
            false => [condition, none, score],
        };
        score = terms.apply("arith.select", None, &sides, Scalar::Float);
    }
    let weights = Weights {
        score,
        slope,
        normalized: true,
        scale: 1.0,
        empty_is_zero: true,
        values: Vec::new(),
    };
    let log = RowLog {
        value,
        factor,
        offset,
    };
    Ok((weights, log))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::attention::index::Var;

    fn case() -> (Terms, Id, Id) {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let log = terms.add(Term::RowValue(3), Scalar::Float);
        (terms, score, log)
    }

    #[test]
    fn a_value_of_a_row_is_subtracted() {
        for (name, base) in [("math.exp", 1.0), ("math.exp2", std::f64::consts::LN_2)] {
            let (mut terms, score, log) = case();
            let eighth = terms.float(0.125);
            let mut op = |name: &str, of: &[Id]| terms.apply(name, None, of, Scalar::Float);
            let scaled = op("arith.mulf", &[score, eighth]);
            let difference = op("arith.subf", &[scaled, log]);
            let own = op(name, &[difference]);
            let (weights, found) = with_logs(&mut terms, own).expect("weights");
            assert_eq!((weights.score, weights.slope), (score, 0.125 * base));
            let expected = RowLog {
                value: 3,
                factor: base,
                offset: 0.0,
            };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn zero_of_hidden_keys_is_a_mask() {
        let (mut terms, score, log) = case();
        let [row, key] =
            [Var::Row, Var::Key].map(|var| terms.add(Term::Index(var), Scalar::Int(64)));
        let seen = terms.apply("arith.cmpi", Some(5), &[row, key], Scalar::Int(1));
        let zero = terms.float(0.0);
        let mut op = |name: &str, of: &[Id]| terms.apply(name, None, of, Scalar::Float);
        let difference = op("arith.subf", &[score, log]);
        let own = op("math.exp", &[difference]);
        let chosen = op("arith.select", &[seen, own, zero]);
        let (weights, _) = with_logs(&mut terms, chosen).expect("weights");
        let none = terms.float(f64::NEG_INFINITY);
        assert_eq!(
            terms.operands(weights.score, "arith.select"),
            Some(&[seen, score, none][..])
        );
    }

    #[test]
    fn what_is_no_logarithm_of_a_row_is_refused() {
        let (mut terms, score, log) = case();
        let other = terms.add(Term::RowValue(4), Scalar::Float);
        let bias = terms.add(Term::Input(0), Scalar::Float);
        let mut op = |name: &str, of: &[Id]| terms.apply(name, None, of, Scalar::Float);
        let plain = op("math.exp", &[score]);
        let one = op("arith.subf", &[score, log]);
        let two = op("arith.subf", &[one, other]);
        let two = op("math.exp", &[two]);
        let of_keys = op("arith.subf", &[score, bias]);
        let of_keys = op("math.exp", &[of_keys]);
        let row = op("math.exp", &[log]);
        for id in [plain, two, of_keys, row, one] {
            assert!(with_logs(&mut terms, id).is_err());
        }
    }
}
