//! Indices: integer expressions of the loops around them.

use serde::{Deserialize, Serialize};

/// An index expression. Division and remainder are those of non-negative numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expr {
    /// A number.
    Const(i64),
    /// The index of a loop.
    Index(usize),
    /// A sum.
    Add(Box<Expr>, Box<Expr>),
    /// A product with a number.
    Mul(Box<Expr>, i64),
    /// The quotient by a positive number, rounded down.
    Div(Box<Expr>, i64),
    /// The remainder by a positive number.
    Mod(Box<Expr>, i64),
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Self::Const(value)
    }
}

impl Expr {
    /// Its value where loop `i` stands at `indices[i]`; `None` when an index is missing, a divisor is not positive, a
    /// dividend is negative, or the value does not fit.
    #[must_use]
    pub fn eval(&self, indices: &[i64]) -> Option<i64> {
        match self {
            Self::Const(value) => Some(*value),
            Self::Index(index) => indices.get(*index).copied(),
            Self::Add(a, b) => a.eval(indices)?.checked_add(b.eval(indices)?),
            Self::Mul(a, by) => a.eval(indices)?.checked_mul(*by),
            Self::Div(a, by) => divide(a.eval(indices)?, *by).map(|(quotient, _)| quotient),
            Self::Mod(a, by) => divide(a.eval(indices)?, *by).map(|(_, remainder)| remainder),
        }
    }

    /// Its value when it names no loop.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        self.eval(&[])
    }

    /// The sum, with constants folded.
    #[must_use]
    pub fn plus(self, other: impl Into<Self>) -> Self {
        match (self, other.into()) {
            (Self::Const(0), other) | (other, Self::Const(0)) => other,
            (Self::Const(a), Self::Const(b)) if a.checked_add(b).is_some() => Self::Const(a + b),
            (a, b) => Self::Add(Box::new(a), Box::new(b)),
        }
    }

    /// The product with a number, with constants folded.
    #[must_use]
    pub fn times(self, by: i64) -> Self {
        match self {
            _ if by == 0 => Self::Const(0),
            other if by == 1 => other,
            Self::Const(a) if a.checked_mul(by).is_some() => Self::Const(a * by),
            other => Self::Mul(Box::new(other), by),
        }
    }

    /// Calls `visit` with every loop that it names.
    pub fn indices(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Self::Const(_) => {}
            Self::Index(index) => visit(*index),
            Self::Add(a, b) => {
                a.indices(visit);
                b.indices(visit);
            }
            Self::Mul(a, _) | Self::Div(a, _) | Self::Mod(a, _) => a.indices(visit),
        }
    }

    /// The expression in the syntax of Python, where loop `i` is called `names[i]`.
    #[must_use]
    pub fn text(&self, names: &[String]) -> String {
        let name = |index: &usize| names.get(*index).map_or("?", String::as_str).to_owned();
        match self {
            Self::Const(value) => value.to_string(),
            Self::Index(index) => name(index),
            Self::Add(a, b) => match b.as_ref() {
                Self::Const(value) if *value < 0 => {
                    format!("{} - {}", a.text(names), value.unsigned_abs())
                }
                _ => format!("{} + {}", a.text(names), b.text(names)),
            },
            Self::Mul(a, by) => format!("{} * {by}", a.factor(names)),
            Self::Div(a, by) => format!("{} // {by}", a.factor(names)),
            Self::Mod(a, by) => format!("{} % {by}", a.factor(names)),
        }
    }

    /// The text, in parentheses unless it is a number or a name.
    fn factor(&self, names: &[String]) -> String {
        match self {
            Self::Const(value) if *value < 0 => format!("({value})"),
            Self::Const(_) | Self::Index(_) => self.text(names),
            _ => format!("({})", self.text(names)),
        }
    }
}

/// Quotient and remainder of a non-negative by a positive number.
fn divide(value: i64, by: i64) -> Option<(i64, i64)> {
    (value >= 0 && by > 0).then(|| (value / by, value % by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_and_prints() {
        let i = Expr::Index(0);
        let e = Expr::Mod(Box::new(i.clone().plus(3)), 4)
            .times(128)
            .plus(Expr::Index(1));
        assert_eq!(e.eval(&[6, 5]), Some(133));
        assert_eq!(e.text(&["i".into(), "j".into()]), "((i + 3) % 4) * 128 + j");
        assert_eq!(i.clone().plus(-1).text(&["i".into()]), "i - 1");
        assert_eq!(Expr::Const(2).plus(3).times(4), Expr::Const(20));
        assert_eq!(i.constant(), None);
    }

    #[test]
    fn what_has_no_value_is_none() {
        let max = Expr::Const(i64::MAX);
        assert_eq!(
            Expr::Add(Box::new(max.clone()), Box::new(1.into())).eval(&[]),
            None
        );
        assert_eq!(Expr::Mul(Box::new(max), 2).eval(&[]), None);
        for by in [0, -1] {
            assert_eq!(Expr::Div(Box::new(4.into()), by).eval(&[]), None);
            assert_eq!(Expr::Mod(Box::new(4.into()), by).eval(&[]), None);
        }
        assert_eq!(Expr::Div(Box::new((-4).into()), 2).eval(&[]), None);
    }
}
