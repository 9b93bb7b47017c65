//! Indices of a kernel of tiles: expressions of the loops around them, their ranges, and what divides them.

use axe_dialect::ops;
use axe_passes::ir::attribute::integer;
use axe_passes::ir::value::{argument_number, defining, identity, name, operands, parent};
use axe_passes::ir::{Op, Val};
use axe_passes::{PassError, PassResult};
use axe_trn::program::Expr;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// Definitions are followed so deep: malformed IR may go in circles.
const MOST_DEPTH: usize = 256;

/// The least and the largest value of an index.
pub(super) type Range = (i64, i64);

/// The values that a loop's index takes: from `lower` to `last` by `step`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub lower: i64,
    pub last: i64,
    pub step: i64,
}

/// What is known of indices where the lowering stands.
#[derive(Default)]
pub(super) struct Indices {
    /// What arguments of loops are.
    known: HashMap<usize, Expr>,
    /// The values of open loops, by the number of their index.
    loops: HashMap<usize, Values>,
    /// Arguments of loops that are looked at before they are entered.
    supposed: HashMap<usize, Range>,
}

fn refused<'c>(op: Op<'c>, why: &str) -> PassError<'c> {
    PassError::new(op.location(), format!("'{}' {why}", name(op)))
}

impl Indices {
    /// Says what an argument of a loop is.
    pub fn bind(&mut self, argument: Val<'_>, expr: Expr) {
        self.known.insert(identity(argument), expr);
    }

    /// Says which values a loop's index takes.
    pub fn open(&mut self, index: usize, values: Values) {
        self.loops.insert(index, values);
    }

    /// Supposes a range of an argument, until [`Self::forget`].
    pub fn suppose(&mut self, argument: Val<'_>, range: Range) {
        self.supposed.insert(identity(argument), range);
    }

    /// Forgets all that was supposed.
    pub fn forget(&mut self) {
        self.supposed.clear();
    }

    /// An index as an expression.
    ///
    /// # Errors
    /// At the user, for an index that is not formed of loops and numbers.
    pub fn expr<'c>(&self, value: Val<'c>, user: Op<'c>) -> PassResult<'c, Expr> {
        self.expr_within(value, user, 0)
    }

    fn expr_within<'c>(&self, value: Val<'c>, user: Op<'c>, depth: usize) -> PassResult<'c, Expr> {
        if let Some(known) = self.known.get(&identity(value)) {
            return Ok(known.clone());
        }
        let Some(op) = defining(value).filter(|_| depth < MOST_DEPTH) else {
            return Err(refused(
                user,
                "has an index that is data: expected sums and multiples of loops' indices and of numbers",
            ));
        };
        if let Some(number) = constant(op) {
            return Ok(number.into());
        }
        let mut of = Vec::new();
        for operand in operands(op) {
            of.push(self.expr_within(operand, op, depth + 1)?);
        }
        self.apply(op, &of).ok_or_else(|| {
            refused(
                op,
                "has no form as an index: expected sums, multiples, and quotients and remainders by positive numbers",
            )
        })
    }

    fn apply(&self, op: Op<'_>, of: &[Expr]) -> Option<Expr> {
        let kind = name(op);
        if let (true, [a]) = (kind.starts_with("arith.index_cast"), of) {
            return Some(a.clone());
        }
        let [a, b] = of else { return None };
        let (number, other) = (b.constant(), a.constant());
        if let (Some(x), Some(y)) = (other, number) {
            return folded(&kind, x, y).map(Expr::Const);
        }
        match kind.as_str() {
            "arith.addi" => Some(a.clone().plus(b.clone())),
            "arith.subi" => Some(a.clone().plus(b.clone().times(-1))),
            "arith.muli" => match (number, other) {
                (Some(by), _) => Some(a.clone().times(by)),
                (_, Some(by)) => Some(b.clone().times(by)),
                _ => None,
            },
            "arith.divui" | "arith.divsi" | "arith.floordivsi" => {
                self.quotient(a, positive(number)?)
            }
            "arith.ceildivui" | "arith.ceildivsi" => {
                let by = positive(number)?;
                self.quotient(&a.clone().plus(by - 1), by)
            }
            "arith.remui" | "arith.remsi" => self.remainder(a, positive(number)?),
            "arith.minui" | "arith.minsi" | "arith.maxui" | "arith.maxsi" => {
                let ((low, high), (least, most)) = (self.range(a)?, self.range(b)?);
                let smaller = kind.starts_with("arith.min");
                match (high <= least, most <= low) {
                    (true, _) => Some(if smaller { a.clone() } else { b.clone() }),
                    (_, true) => Some(if smaller { b.clone() } else { a.clone() }),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The quotient of an index that is not negative, rounded down.
    pub fn quotient(&self, a: &Expr, by: i64) -> Option<Expr> {
        if by == 1 {
            return Some(a.clone());
        }
        if let Some(exact) = self.exact(a, by) {
            return Some(exact);
        }
        let (low, high) = self.range(a)?;
        match low < 0 {
            true => None,
            false if high < by => Some(0.into()),
            false => Some(Expr::Div(Box::new(a.clone()), by)),
        }
    }

    /// The remainder of an index that is not negative.
    pub fn remainder(&self, a: &Expr, by: i64) -> Option<Expr> {
        let (low, high) = self.range(a)?;
        match low < 0 {
            true => None,
            false if high < by => Some(a.clone()),
            false if self.is_multiple(a, by) => Some(0.into()),
            false => Some(Expr::Mod(Box::new(a.clone()), by)),
        }
    }

    /// The quotient by a number that divides every term; `None` where one is not divided.
    fn exact(&self, a: &Expr, by: i64) -> Option<Expr> {
        match a {
            Expr::Const(value) => (value % by == 0).then(|| Expr::Const(value / by)),
            Expr::Add(x, y) => Some(self.exact(x, by)?.plus(self.exact(y, by)?)),
            Expr::Mul(x, factor) if factor % by == 0 => Some(x.as_ref().clone().times(factor / by)),
            _ => None,
        }
    }

    /// The range of an expression; `None` when it does not fit.
    pub fn range(&self, a: &Expr) -> Option<Range> {
        let ends = |(low, high): Range, f: &dyn Fn(i64) -> Option<i64>| {
            let (x, y) = (f(low)?, f(high)?);
            Some((x.min(y), x.max(y)))
        };
        match a {
            Expr::Const(value) => Some((*value, *value)),
            Expr::Index(index) => self.loops.get(index).map(|loops| (loops.lower, loops.last)),
            Expr::Add(x, y) => add(self.range(x)?, self.range(y)?),
            Expr::Mul(x, by) => ends(self.range(x)?, &|x| x.checked_mul(*by)),
            Expr::Div(x, by) => ends(self.range(x)?, &|x| x.checked_div_euclid(*by)),
            Expr::Mod(x, by) => {
                let (low, high) = self.range(x)?;
                match low >= 0 && high < *by {
                    true => Some((low, high)),
                    false => Some((0, by - 1)),
                }
            }
        }
    }

    /// Whether an expression is a multiple of a positive number, as far as its form says.
    pub fn is_multiple(&self, a: &Expr, of: i64) -> bool {
        of == 1
            || match a {
                Expr::Const(value) => value % of == 0,
                Expr::Index(index) => (self.loops.get(index))
                    .is_some_and(|loops| loops.lower % of == 0 && loops.step % of == 0),
                Expr::Add(x, y) => self.is_multiple(x, of) && self.is_multiple(y, of),
                Expr::Mul(x, by) => {
                    let common = axe_passes::ir::facts::gcd(*by, of).abs().max(1);
                    self.is_multiple(x, of / common)
                }
                Expr::Mod(x, by) => by % of == 0 && self.is_multiple(x, of),
                Expr::Div(..) => false,
            }
    }

    /// The range of an index, in loops that are not entered yet too; `None` where it is not known.
    pub fn range_of(&self, value: Val<'_>) -> Option<Range> {
        self.range_within(value, 0)
    }

    fn range_within(&self, value: Val<'_>, depth: usize) -> Option<Range> {
        if depth > MOST_DEPTH {
            return None;
        }
        if let Some(range) = self.supposed.get(&identity(value)) {
            return Some(*range);
        }
        if let Some(expr) = self.known.get(&identity(value)) {
            return self.range(expr);
        }
        let Some(op) = defining(value) else {
            return self.argument_range(value, depth);
        };
        if let Some(number) = constant(op) {
            return Some((number, number));
        }
        let of: Option<Vec<Range>> = operands(op)
            .into_iter()
            .map(|operand| self.range_within(operand, depth + 1))
            .collect();
        combined(&name(op), &of?)
    }

    /// The range of the argument of a loop that is not entered.
    fn argument_range(&self, value: Val<'_>, depth: usize) -> Option<Range> {
        let (op, number) = (parent(value)?, argument_number(value)?);
        let range = |at: usize| {
            let bound = operands(op).get(at).copied()?;
            self.range_within(bound, depth + 1)
        };
        match name(op).as_str() {
            "scf.for" if number == 0 => {
                let ((lower, _), (_, upper), (step, _)) = (range(0)?, range(1)?, range(2)?);
                let step = positive(Some(step))?;
                let span = upper.checked_sub(1)?.checked_sub(lower)?;
                Some((lower, lower + span.max(0) / step * step))
            }
            ops::FOR_TILES => Some((0, range(number)?.1.checked_sub(1)?.max(0))),
            _ => None,
        }
    }
}

/// The number of an `arith.constant` of an index or an integer.
pub(super) fn constant(op: Op<'_>) -> Option<i64> {
    (name(op) == "arith.constant").then_some(())?;
    integer(op.attribute("value").ok()?)
}

fn positive(number: Option<i64>) -> Option<i64> {
    number.filter(|number| *number > 0)
}

fn add((a, b): Range, (c, d): Range) -> Option<Range> {
    Some((a.checked_add(c)?, b.checked_add(d)?))
}

/// The result of an operation on two numbers.
fn folded(kind: &str, a: i64, b: i64) -> Option<i64> {
    match kind {
        "arith.addi" => a.checked_add(b),
        "arith.subi" => a.checked_sub(b),
        "arith.muli" => a.checked_mul(b),
        "arith.minui" | "arith.minsi" => Some(a.min(b)),
        "arith.maxui" | "arith.maxsi" => Some(a.max(b)),
        _ if a < 0 || b <= 0 => None,
        "arith.divui" | "arith.divsi" | "arith.floordivsi" => Some(a / b),
        "arith.ceildivui" | "arith.ceildivsi" => Some(a / b + i64::from(a % b > 0)),
        "arith.remui" | "arith.remsi" => Some(a % b),
        _ => None,
    }
}

/// The range of an operation on values of ranges.
fn combined(kind: &str, of: &[Range]) -> Option<Range> {
    let &[a, b] = of else {
        return of
            .first()
            .copied()
            .filter(|_| kind.starts_with("arith.index_cast"));
    };
    match kind {
        "arith.addi" => add(a, b),
        "arith.subi" => add(a, (b.1.checked_neg()?, b.0.checked_neg()?)),
        "arith.remui" | "arith.remsi" if a.0 != a.1 || b.0 != b.1 => {
            (a.0 >= 0 && b.0 > 0).then(|| match a.1 < b.0 {
                true => a,
                false => (0, a.1.min(b.1 - 1)),
            })
        }
        // Each is monotonic in each operand, so that the ends are among those of the ends.
        _ => {
            let ends = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
            let values: Option<Vec<i64>> = ends.iter().map(|(x, y)| folded(kind, *x, *y)).collect();
            let values = values?;
            Some((*values.iter().min()?, *values.iter().max()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Indices {
        let mut indices = Indices::default();
        let values = Values {
            lower: 0,
            last: 384,
            step: 128,
        };
        indices.open(0, values);
        indices
    }

    #[test]
    fn quotients_and_remainders_keep_their_values() {
        let indices = open();
        let i = Expr::Index(0);
        for a in [
            i.clone(),
            i.clone().times(2).plus(64),
            i.clone().times(3).plus(128),
        ] {
            for by in [1, 64, 100, 128, 4096] {
                let (quotient, remainder) = (indices.quotient(&a, by), indices.remainder(&a, by));
                for value in [0, 128, 256, 384] {
                    let whole = a.eval(&[value]).unwrap();
                    let of = |e: &Option<Expr>| e.as_ref().unwrap().eval(&[value]).unwrap();
                    assert_eq!((of(&quotient), of(&remainder)), (whole / by, whole % by));
                }
            }
        }
        assert_eq!(indices.quotient(&i.clone().times(-1), 2), None);
        assert_eq!(indices.remainder(&i.plus(-1), 2), None);
    }

    #[test]
    fn ranges_and_multiples_hold_for_every_value() {
        let indices = open();
        let i = Expr::Index(0);
        let all = [
            i.clone().times(-2).plus(1000),
            Expr::Mod(Box::new(i.clone().plus(64)), 100),
            Expr::Div(Box::new(i.clone().plus(5)), 100).times(64),
            i.times(3),
        ];
        for a in all {
            let values: Vec<i64> = [0, 128, 256, 384].map(|v| a.eval(&[v]).unwrap()).to_vec();
            let (low, high) = indices.range(&a).unwrap();
            assert!(
                values.iter().all(|value| (low..=high).contains(value)),
                "{a:?}"
            );
            for of in [2, 3, 64, 128, 384] {
                let every = values.iter().all(|value| value % of == 0);
                assert!(every || !indices.is_multiple(&a, of), "{a:?} {of}");
            }
        }
    }

    #[test]
    fn operations_on_ranges() {
        assert_eq!(combined("arith.subi", &[(0, 9), (1, 2)]), Some((-2, 8)));
        assert_eq!(combined("arith.muli", &[(-1, 3), (2, 4)]), Some((-4, 12)));
        assert_eq!(combined("arith.remui", &[(0, 9), (4, 4)]), Some((0, 3)));
        assert_eq!(combined("arith.divui", &[(0, 9), (0, 4)]), None);
        assert_eq!(combined("arith.xori", &[(0, 9), (0, 4)]), None);
    }
}
