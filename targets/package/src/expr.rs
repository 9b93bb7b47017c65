//! Integer expressions over a package's symbols: shapes, grids, strides and scalar arguments that
//! are only known at launch.
//!
//! In JSON a constant is a number, a symbol a string and an operation an object with one key:
//! `{"ceil_div": ["M", 128]}`.

use std::collections::BTreeMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

/// The symbol that stands for the number of multiprocessors of the device that runs the package.
/// It is always defined and never declared: persistent kernels use it in their grid.
pub const SM_COUNT: &str = "$sm_count";

/// How deep an expression may nest; deeper ones are refused.
pub const MAX_DEPTH: usize = 64;

/// An integer expression over symbols. Evaluation is checked 64-bit arithmetic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Const(i64),
    /// The value of a symbol, or of a built-in such as [`SM_COUNT`].
    Sym(String),
    /// An operation on two expressions.
    Op(ExprOp, Box<Expr>, Box<Expr>),
}

/// The operations of [`Expr`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExprOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b` rounded down; `b` must be positive.
    FloorDiv,
    /// `a / b` rounded up; `b` must be positive.
    CeilDiv,
    /// The remainder of `floor_div`, never negative; `b` must be positive.
    Mod,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExprError {
    /// A symbol that the environment does not define.
    #[error("symbol `{0}` is not defined")]
    Undefined(String),
    /// The value leaves the range of a signed 64-bit integer.
    #[error("`{0}` overflows 64 bits")]
    Overflow(String),
    /// A division by zero or by a negative number.
    #[error("`{expr}` divides by {divisor}; a positive divisor is needed")]
    Divisor {
        /// The expression.
        expr: String,
        /// The value of its right operand.
        divisor: i64,
    },
}

/// The values of symbols at one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    values: BTreeMap<String, i64>,
}

impl Env {
    /// An environment in which only `SM_COUNT` is defined.
    #[must_use]
    pub fn with_sm_count(sms: u32) -> Self {
        let mut env = Env::default();
        env.set(SM_COUNT, i64::from(sms));
        env
    }

    /// Defines or redefines a symbol.
    pub fn set(&mut self, name: impl Into<String>, value: i64) {
        self.values.insert(name.into(), value);
    }

    /// The value of a symbol, if defined.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    /// All symbols with their values, in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.values.iter().map(|(k, v)| (k.as_str(), *v))
    }
}

macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(self, other: impl Into<Expr>) -> Expr {
            Expr::Op(ExprOp::$op, Box::new(self), Box::new(other.into()))
        }
    )*};
}

// The names follow the operations; the std traits would hide that the result is symbolic.
#[allow(clippy::should_implement_trait)]
impl Expr {
    /// A symbol.
    #[must_use]
    pub fn sym(name: impl Into<String>) -> Expr {
        Expr::Sym(name.into())
    }

    builders! {
        /// `self + other`
        add => Add;
        /// `self - other`
        sub => Sub;
        /// `self * other`
        mul => Mul;
        /// `self / other`, rounded down
        floor_div => FloorDiv;
        /// `self / other`, rounded up
        ceil_div => CeilDiv;
        /// the remainder of `floor_div`
        modulo => Mod;
        /// the smaller one
        min => Min;
        /// the larger one
        max => Max;
    }

    /// The value in `env`.
    ///
    /// # Errors
    /// An undefined symbol, an overflow, a divisor that is not positive.
    pub fn eval(&self, env: &Env) -> Result<i64, ExprError> {
        match self {
            Expr::Const(value) => Ok(*value),
            Expr::Sym(name) => env
                .get(name)
                .ok_or_else(|| ExprError::Undefined(name.clone())),
            Expr::Op(op, a, b) => {
                let (a, b) = (a.eval(env)?, b.eval(env)?);
                if op.divides() && b <= 0 {
                    return Err(ExprError::Divisor {
                        expr: self.to_string(),
                        divisor: b,
                    });
                }
                op.apply(a, b)
                    .ok_or_else(|| ExprError::Overflow(self.to_string()))
            }
        }
    }

    /// A number that the value is never below, where one is known: symbols are extents and counts, which are not negative.
    #[must_use]
    pub fn least(&self) -> Option<i64> {
        let Self::Op(op, a, b) = self else {
            return Some(self.as_const().unwrap_or(0));
        };
        let (one, other) = (a.least(), b.least());
        let both = |of: fn(i64, i64) -> i64| one.zip(other).map(|(a, b)| of(a, b));
        match op {
            ExprOp::Add => both(i64::saturating_add),
            ExprOp::Min => both(i64::min),
            ExprOp::Max => one.max(other),
            ExprOp::Mod => Some(0),
            ExprOp::Mul => both(|a, b| a.min(b)).filter(|own| *own >= 0).map(|_| 0),
            ExprOp::FloorDiv | ExprOp::CeilDiv => one.filter(|own| *own >= 0).map(|_| 0),
            ExprOp::Sub => None,
        }
    }

    /// The value of an expression without symbols; `None` if it has any or has no value.
    #[must_use]
    pub fn as_const(&self) -> Option<i64> {
        self.eval(&Env::default()).ok()
    }

    /// The nesting depth; a constant or symbol has depth 1.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Expr::Const(_) | Expr::Sym(_) => 1,
            Expr::Op(_, a, b) => 1 + a.depth().max(b.depth()),
        }
    }

    /// Puts the symbol `to` in the place of `from`.
    pub fn rename(&mut self, from: &str, to: &str) {
        match self {
            Expr::Const(_) => {}
            Expr::Sym(name) if name == from => to.clone_into(name),
            Expr::Sym(_) => {}
            Expr::Op(_, a, b) => {
                a.rename(from, to);
                b.rename(from, to);
            }
        }
    }

    /// Calls `f` with every symbol of the expression, in reading order.
    pub fn for_each_symbol<'a>(&'a self, f: &mut impl FnMut(&'a str)) {
        match self {
            Expr::Const(_) => {}
            Expr::Sym(name) => f(name),
            Expr::Op(_, a, b) => {
                a.for_each_symbol(f);
                b.for_each_symbol(f);
            }
        }
    }
}

impl ExprOp {
    const ALL: [ExprOp; 8] = [
        ExprOp::Add,
        ExprOp::Sub,
        ExprOp::Mul,
        ExprOp::FloorDiv,
        ExprOp::CeilDiv,
        ExprOp::Mod,
        ExprOp::Min,
        ExprOp::Max,
    ];

    /// The key used in JSON and the name used in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ExprOp::Add => "add",
            ExprOp::Sub => "sub",
            ExprOp::Mul => "mul",
            ExprOp::FloorDiv => "floor_div",
            ExprOp::CeilDiv => "ceil_div",
            ExprOp::Mod => "mod",
            ExprOp::Min => "min",
            ExprOp::Max => "max",
        }
    }

    const fn divides(self) -> bool {
        matches!(self, ExprOp::FloorDiv | ExprOp::CeilDiv | ExprOp::Mod)
    }

    fn apply(self, a: i64, b: i64) -> Option<i64> {
        match self {
            ExprOp::Add => a.checked_add(b),
            ExprOp::Sub => a.checked_sub(b),
            ExprOp::Mul => a.checked_mul(b),
            ExprOp::FloorDiv => a.checked_div_euclid(b),
            ExprOp::CeilDiv => {
                let floor = a.checked_div_euclid(b)?;
                floor.checked_add(i64::from(a.checked_rem_euclid(b)? != 0))
            }
            ExprOp::Mod => a.checked_rem_euclid(b),
            ExprOp::Min => Some(a.min(b)),
            ExprOp::Max => Some(a.max(b)),
        }
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        Expr::Const(value)
    }
}

impl From<&str> for Expr {
    fn from(name: &str) -> Self {
        Expr::sym(name)
    }
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expr::Const(value) => write!(f, "{value}"),
            Expr::Sym(name) => f.write_str(name),
            Expr::Op(op, a, b) => write!(f, "{}({a}, {b})", op.name()),
        }
    }
}

impl Serialize for Expr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        match self {
            Expr::Const(value) => serializer.serialize_i64(*value),
            Expr::Sym(name) => serializer.serialize_str(name),
            Expr::Op(op, a, b) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(op.name(), &(a, b))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Expr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExprVisitor)
    }
}

struct ExprVisitor;

impl<'de> Visitor<'de> for ExprVisitor {
    type Value = Expr;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "an integer, a symbol's name, or an object such as {\"ceil_div\": [\"M\", 128]}",
        )
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Expr, E> {
        Ok(Expr::Const(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Expr, E> {
        i64::try_from(value)
            .map(Expr::Const)
            .map_err(|_| E::custom("integer exceeds 64 signed bits"))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Expr, E> {
        Ok(Expr::sym(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expr, A::Error> {
        let operation =
            BTreeMap::<String, (Expr, Expr)>::deserialize(MapAccessDeserializer::new(map))?;
        let mut entries = operation.into_iter();
        let (Some((name, (a, b))), None) = (entries.next(), entries.next()) else {
            return Err(A::Error::custom("an expression object has exactly one key"));
        };
        let op = ExprOp::ALL
            .into_iter()
            .find(|op| op.name() == name)
            .ok_or_else(|| {
                A::Error::custom(format!("unknown operation `{name}` in an expression"))
            })?;
        Ok(Expr::Op(op, Box::new(a), Box::new(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn env() -> Env {
        let mut env = Env::with_sm_count(132);
        env.set("M", 1000);
        env
    }

    #[test]
    fn evaluates_a_persistent_grid() {
        let tiles = Expr::sym("M").ceil_div(128).mul(96);
        let grid = tiles.min(Expr::sym(SM_COUNT));
        assert_eq!(grid.eval(&env()), Ok(132));
        assert_eq!(
            grid.to_string(),
            "min(mul(ceil_div(M, 128), 96), $sm_count)"
        );
    }

    #[test]
    fn bad_arithmetic_is_an_error() {
        assert_eq!(
            Expr::sym("N").eval(&env()),
            Err(ExprError::Undefined("N".into()))
        );
        let divide = Expr::sym("M").ceil_div(0);
        assert!(matches!(
            divide.eval(&env()),
            Err(ExprError::Divisor { divisor: 0, .. })
        ));
        let huge = Expr::Const(i64::MAX).mul("M");
        assert!(matches!(huge.eval(&env()), Err(ExprError::Overflow(_))));
        assert!(matches!(
            Expr::Const(i64::MIN).ceil_div(1).sub(1).eval(&env()),
            Err(ExprError::Overflow(_))
        ));
    }

    #[test]
    fn extents_have_least_values() {
        let n = || Expr::sym("n");
        for (of, wanted) in [
            (n(), Some(0)),
            (n().max(1), Some(1)),
            (n().sub(1).max(1), Some(1)),
            (n().add(3), Some(3)),
            (n().sub(3), None),
            (n().mul(n().sub(3)), None),
            (n().floor_div(3), Some(0)),
            (n().min(-2), Some(-2)),
        ] {
            assert_eq!(of.least(), wanted, "{of}");
        }
    }

    #[test]
    fn json_forms() {
        let expr = Expr::sym("M").ceil_div(128);
        let text = serde_json::to_string(&expr).unwrap();
        assert_eq!(text, r#"{"ceil_div":["M",128]}"#);
        assert_eq!(serde_json::from_str::<Expr>(&text).unwrap(), expr);
        for bad in [
            r#"{"pow":[1,2]}"#,
            r#"{"add":[1]}"#,
            r#"{"add":[1,2],"mul":[1,2]}"#,
            "1.5",
            "null",
            "[]",
            "{}",
        ] {
            assert!(serde_json::from_str::<Expr>(bad).is_err(), "{bad}");
        }
        let deep = format!("{}1{}", r#"{"add":[1,"#.repeat(5000), "]}".repeat(5000));
        assert!(
            serde_json::from_str::<Expr>(&deep).is_err(),
            "no stack overflow, an error"
        );
    }

    proptest! {
        #[test]
        fn division_matches_its_definition(a in -10_000i64..10_000, b in 1i64..500) {
            let floor = Expr::Const(a).floor_div(b).as_const().unwrap();
            let ceil = Expr::Const(a).ceil_div(b).as_const().unwrap();
            let rest = Expr::Const(a).modulo(b).as_const().unwrap();
            prop_assert_eq!(floor * b + rest, a);
            prop_assert!((0..b).contains(&rest));
            prop_assert!(ceil * b >= a && (ceil - 1) * b < a);
        }
    }
}
