//! What is known of an index before it is executed: its range, and its remainder.

use crate::program::Expr;

/// Bounds and step of the loop of each index.
type Bounds<'a> = &'a [[i64; 3]];

/// The least and the largest value; `None` where the bounds of a loop are not known, or a number does not fit.
pub(super) fn range(expr: &Expr, bounds: Bounds<'_>) -> Option<(i64, i64)> {
    match expr {
        Expr::Const(value) => Some((*value, *value)),
        Expr::Index(index) => {
            let [lower, upper, step] = *bounds.get(*index)?;
            let span = upper.checked_sub(lower).filter(|span| *span > 0)?;
            Some((lower, lower + (span - 1) / step.max(1) * step.max(1)))
        }
        Expr::Add(a, b) => {
            let (a, b) = (range(a, bounds)?, range(b, bounds)?);
            Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
        }
        Expr::Mul(a, by) => {
            let (low, high) = range(a, bounds)?;
            let ends = (low.checked_mul(*by)?, high.checked_mul(*by)?);
            Some((ends.0.min(ends.1), ends.0.max(ends.1)))
        }
        Expr::Div(a, by) => {
            let (low, high) = range(a, bounds)?;
            (low >= 0 && *by > 0).then(|| (low / by, high / by))
        }
        Expr::Mod(a, by) => {
            let (low, high) = range(a, bounds)?;
            let same = low >= 0 && *by > 0 && low / by == high / by;
            match same {
                true => Some((low % by, high % by)),
                false => (low >= 0 && *by > 0).then_some((0, by - 1)),
            }
        }
    }
}

/// A number that is `rest` modulo `unit`, and more is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Residue {
    pub rest: i64,
    pub unit: i64,
}

impl Residue {
    /// Of an index, modulo a divisor of `unit`.
    pub fn of(expr: &Expr, unit: i64, bounds: Bounds<'_>) -> Self {
        let unknown = Self { rest: 0, unit: 1 };
        match expr {
            Expr::Const(value) => Self {
                rest: value.rem_euclid(unit),
                unit,
            },
            Expr::Index(index) => match bounds.get(*index) {
                Some([lower, _, step]) => Self::new(i128::from(*lower), gcd(*step, unit)),
                None => unknown,
            },
            Expr::Add(a, b) => {
                let (a, b) = (Self::of(a, unit, bounds), Self::of(b, unit, bounds));
                let rest = i128::from(a.rest) + i128::from(b.rest);
                Self::new(rest, gcd(a.unit, b.unit))
            }
            Expr::Mul(a, by) => {
                let a = Self::of(a, unit, bounds);
                let by = i128::from(by.rem_euclid(unit));
                let apart = (i128::from(a.unit) * by).rem_euclid(i128::from(unit));
                // Below the unit, which fits.
                Self::new(i128::from(a.rest) * by, gcd(apart as i64, unit))
            }
            Expr::Div(..) | Expr::Mod(..) => unknown,
        }
    }

    fn new(rest: i128, unit: i64) -> Self {
        Self {
            rest: rest.rem_euclid(i128::from(unit)) as i64,
            unit,
        }
    }

    /// Whether all such numbers are multiples of `of`.
    pub fn is_multiple(self, of: i64) -> bool {
        self.unit % of == 0 && self.rest % of == 0
    }
}

/// The greatest common divisor; of 0 and `b` it is `b`.
pub(super) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_residues_are_those_of_the_values() {
        let bounds = [[1, 9, 3], [0, 4, 1]];
        let (i, j) = (Expr::Index(0), Expr::Index(1));
        let halved = Expr::Div(Box::new(j.clone().times(64)), 128);
        let cut = Expr::Mod(Box::new(j.clone().times(3).plus(5)), 7);
        let all = [
            i.clone().times(32).plus(j.clone().times(64)).plus(7),
            j.clone().times(-2).plus(i.clone()),
            halved,
            cut,
            i.times(96),
            Expr::Const(300),
        ];
        for expr in &all {
            let (low, high) = range(expr, &bounds).unwrap();
            let residue = Residue::of(expr, 128, &bounds);
            for i in [1, 4, 7] {
                for j in 0..4 {
                    let value = expr.eval(&[i, j]).unwrap();
                    assert!((low..=high).contains(&value), "{expr:?}");
                    assert_eq!(value.rem_euclid(residue.unit), residue.rest, "{expr:?}");
                }
            }
        }
        let start = Residue::of(&all[4], 128, &bounds);
        assert!(start.is_multiple(32) && !start.is_multiple(64));
        assert_eq!(
            Residue::of(&all[5], 128, &[]),
            Residue {
                rest: 44,
                unit: 128
            }
        );
        assert_eq!(range(&Expr::Index(2), &bounds), None);
    }
}
