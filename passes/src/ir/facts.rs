//! What is known of an index value without running the kernel: a divisor and a range.

use super::value::{argument_number, defining, identity, name, operands, parent, results};
use super::walk::{blocks, operations};
use super::{DYNAMIC, Op, Val, attribute, types};
use axe_dialect::Typed;
use axe_dialect::ops::{self, ForTilesOp, TileAtOp, Trait};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::cell::RefCell;
use std::collections::HashMap;

/// The bounds of an `scf.for`, and its step, in front of what it carries.
const BOUNDS: usize = 3;

/// Multiples of `divisor` (0 for the number zero) from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Divides the value.
    pub divisor: i64,
    /// The least value, when known.
    pub low: Option<i64>,
    /// The greatest value, when known.
    pub high: Option<i64>,
}

impl Fact {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        divisor: 1,
        low: None,
        high: None,
    };
    /// It is not negative.
    const NATURAL: Self = Self {
        divisor: 1,
        low: Some(0),
        high: None,
    };

    /// One number.
    #[must_use]
    pub fn number(number: i64) -> Self {
        Self {
            divisor: number.checked_abs().unwrap_or(1),
            low: Some(number),
            high: Some(number),
        }
    }

    /// The number, when there is only one.
    #[must_use]
    pub fn known(&self) -> Option<i64> {
        self.low.filter(|low| self.high == Some(*low))
    }

    fn add(self, other: Self) -> Self {
        Self {
            divisor: gcd(self.divisor, other.divisor),
            low: both(self.low, other.low, i64::checked_add),
            high: both(self.high, other.high, i64::checked_add),
        }
    }

    fn sub(self, other: Self) -> Self {
        Self {
            divisor: gcd(self.divisor, other.divisor),
            low: both(self.low, other.high, i64::checked_sub),
            high: both(self.high, other.low, i64::checked_sub),
        }
    }

    fn mul(self, other: Self) -> Self {
        let natural = self.low.is_some_and(|low| low >= 0) && other.low.is_some_and(|low| low >= 0);
        let bound =
            |a: Option<i64>, b: Option<i64>| both(a, b, i64::checked_mul).filter(|_| natural);
        Self {
            divisor: self.divisor.checked_mul(other.divisor).unwrap_or(1),
            low: bound(self.low, other.low),
            high: bound(self.high, other.high),
        }
    }

    fn rem(self, other: Self) -> Self {
        let Some(modulus) = other.known().filter(|modulus| *modulus > 0) else {
            return Self::UNKNOWN;
        };
        let natural = self.low.is_some_and(|low| low >= 0);
        Self {
            divisor: gcd(self.divisor, modulus),
            low: natural.then_some(0),
            high: Some(
                self.high
                    .filter(|_| natural)
                    .unwrap_or(i64::MAX)
                    .min(modulus - 1),
            ),
        }
    }

    /// The remainder of a number without a sign, of which nothing else need be known: that of a negative one is of another number.
    fn rem_unsigned(self, other: Self) -> Self {
        match other.known() {
            Some(modulus) if modulus > 0 && self.low.is_none_or(|low| low < 0) => Self {
                high: Some(modulus - 1),
                ..Self::NATURAL
            },
            _ => self.rem(other),
        }
    }

    fn div(self, other: Self) -> Self {
        let Some(by) = other.known().filter(|by| *by > 0) else {
            return Self::UNKNOWN;
        };
        if self.low.is_none_or(|low| low < 0) {
            return Self::UNKNOWN;
        }
        Self {
            divisor: if self.divisor % by == 0 {
                self.divisor / by
            } else {
                1
            },
            low: self.low.map(|low| low / by),
            high: self.high.map(|high| high / by),
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            divisor: gcd(self.divisor, other.divisor),
            low: both(self.low, other.low, |a, b| Some(a.min(b))),
            high: both(self.high, other.high, |a, b| Some(a.max(b))),
        }
    }

    fn min(self, other: Self) -> Self {
        let high = match (self.high, other.high) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        Self {
            high,
            ..self.join(other)
        }
    }
}

fn both(a: Option<i64>, b: Option<i64>, f: impl Fn(i64, i64) -> Option<i64>) -> Option<i64> {
    f(a?, b?)
}

/// The greatest common divisor; that of 0 and 0 is 0.
#[must_use]
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// The facts of a kernel's index values, each found once.
#[derive(Debug, Default)]
pub struct Facts {
    known: RefCell<HashMap<usize, Fact>>,
}

impl Facts {
    /// What is known of `value`.
    #[must_use]
    pub fn of(&self, value: Val) -> Fact {
        if let Some(fact) = self.known.borrow().get(&identity(value)) {
            return *fact;
        }
        let fact = match defining(value) {
            Some(op) if name(op) == ops::TILE_AT => self.of_place(op, value),
            Some(op) if name(op) == "scf.for" => {
                let same = |result: &Val| identity(*result) == identity(value);
                let at = results(op).iter().position(same);
                at.map_or(Fact::UNKNOWN, |at| self.of_carried(op, at))
            }
            Some(op) => self.of_result(op),
            None => self.of_argument(value),
        };
        // A range of one number has that number's divisor too.
        let fact = fact.known().map_or(fact, Fact::number);
        self.known.borrow_mut().insert(identity(value), fact);
        fact
    }

    fn of_result(&self, op: Op) -> Fact {
        let operands = operands(op);
        let operand = |at: usize| {
            operands
                .get(at)
                .map_or(Fact::UNKNOWN, |value| self.of(*value))
        };
        match name(op).as_str() {
            "arith.constant" => op
                .attribute("value")
                .ok()
                .and_then(attribute::integer)
                .map_or(Fact::UNKNOWN, Fact::number),
            "arith.addi" => operand(0).add(operand(1)),
            "arith.subi" => operand(0).sub(operand(1)),
            "arith.muli" => operand(0).mul(operand(1)),
            "arith.remui" => operand(0).rem_unsigned(operand(1)),
            "arith.remsi" => operand(0).rem(operand(1)),
            "arith.divui" | "arith.divsi" => operand(0).div(operand(1)),
            "arith.minui" | "arith.minsi" => operand(0).min(operand(1)),
            "arith.select" => operand(1).join(operand(2)),
            "arith.index_cast" | "arith.index_castui" => operand(0),
            "gpu.block_id" | "gpu.cluster_block_id" | "gpu.thread_id" | "gpu.grid_dim" => {
                Fact::NATURAL
            }
            "memref.dim" | "tensor.dim" | "arith.ceildivui" | "arith.ceildivsi" => {
                self.of_extent(&operands)
            }
            axe if ops::has(axe, Trait::TakesStage) => of_stage(&operands),
            _ => Fact::UNKNOWN,
        }
    }

    /// The extent of a memref, or a quotient that is rounded up: not negative, known when all of it is.
    fn of_extent(&self, operands: &[Val]) -> Fact {
        let &[first, second] = operands else {
            return Fact::UNKNOWN;
        };
        let second = self.of(second).known();
        if let Some(shape) = types::shape(first.r#type()) {
            let extent = second.and_then(|dim| shape.get(usize::try_from(dim).ok()?));
            return match extent {
                Some(&extent) if extent != DYNAMIC => Fact::number(extent),
                _ => Fact::NATURAL,
            };
        }
        let first = self.of(first);
        match (first.known(), second) {
            (Some(a), Some(b)) if a >= 0 && b > 0 => Fact::number(a / b + i64::from(a % b != 0)),
            _ if first.low.is_some_and(|low| low >= 0) => Fact::NATURAL,
            _ => Fact::UNKNOWN,
        }
    }

    /// The number of a tile is below the count of tiles.
    fn of_tile(&self, count: Option<Val>) -> Fact {
        let high = count.and_then(|count| self.of(count).high);
        Fact {
            high: high.map(|high| high - 1),
            ..Fact::NATURAL
        }
    }

    /// The row or the column of a tile by its number.
    fn of_place(&self, op: Op, value: Val) -> Fact {
        let Some(place) = TileAtOp::of(op) else {
            return Fact::NATURAL;
        };
        let is_row = identity(place.row) == identity(value);
        self.of_tile(Some(if is_row { place.rows } else { place.columns }))
    }

    /// What a loop carries: what it begins with, or what a turn leaves.
    fn of_carried(&self, op: Op, at: usize) -> Fact {
        let first = operands(op).get(BOUNDS + at).copied();
        let yielded = blocks(op).first().and_then(|body| operations(*body).pop());
        let next = yielded.and_then(|op| operands(op).get(at).copied());
        first.zip(next).map_or(Fact::UNKNOWN, |(first, next)| {
            self.of(first).join(self.of(next))
        })
    }

    /// An induction variable runs from its lower bound by its step; another argument may be anything.
    fn of_argument(&self, value: Val) -> Fact {
        let Some(op) = parent(value) else {
            return Fact::UNKNOWN;
        };
        match (name(op).as_str(), argument_number(value)) {
            (ops::FOR_TILES, Some(at)) => {
                let counts = ForTilesOp::of(op).map(|tiles| tiles.counts);
                return self.of_tile(counts.unwrap_or_default().get(at).copied());
            }
            ("scf.for", Some(0)) => {}
            ("scf.for", Some(at)) => {
                // What a turn makes of it may depend on it: of which nothing is known meanwhile.
                let meanwhile = (identity(value), Fact::UNKNOWN);
                self.known.borrow_mut().extend([meanwhile]);
                return self.of_carried(op, at - 1);
            }
            _ => return Fact::UNKNOWN,
        }
        let bounds: Vec<_> = operands(op)
            .into_iter()
            .take(BOUNDS)
            .map(|bound| self.of(bound))
            .collect();
        let &[low, high, step] = bounds.as_slice() else {
            return Fact::UNKNOWN;
        };
        let last = match (low.known(), high.high, step.known()) {
            (Some(low), Some(high), Some(step)) if step > 0 && high > low => {
                Some(low + (high - 1 - low) / step * step)
            }
            _ => high.high.map(|high| high.saturating_sub(1)),
        };
        Fact {
            divisor: gcd(low.divisor, step.divisor),
            low: low.low,
            high: last,
        }
    }
}

/// The stage of a slot: one of the ring's.
fn of_stage(operands: &[Val]) -> Fact {
    let create = operands.first().and_then(|ring| defining(*ring));
    let stages = create.and_then(|create| create.attribute("stages").ok());
    Fact {
        high: stages.and_then(attribute::integer).map(|stages| stages - 1),
        ..Fact::NATURAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(divisor: i64, low: i64, high: i64) -> Fact {
        Fact {
            divisor,
            low: Some(low),
            high: Some(high),
        }
    }

    /// Every pair of members of two sets obeys the fact of the operation.
    fn holds(a: Fact, b: Fact, fact: Fact, f: impl Fn(i64, i64) -> i64) {
        let members = |fact: Fact| {
            let (low, high) = (fact.low.unwrap(), fact.high.unwrap());
            (low..=high).filter(move |n| {
                fact.divisor == 0 && *n == 0 || fact.divisor != 0 && n % fact.divisor == 0
            })
        };
        for x in members(a) {
            for y in members(b) {
                let z = f(x, y);
                assert!(
                    fact.low.is_none_or(|low| low <= z),
                    "{x}, {y}: {z} and {fact:?}"
                );
                assert!(
                    fact.high.is_none_or(|high| z <= high),
                    "{x}, {y}: {z} and {fact:?}"
                );
                assert!(
                    fact.divisor != 0 && z % fact.divisor == 0 || z == 0,
                    "{x}, {y}: {z} and {fact:?}"
                );
            }
        }
    }

    #[test]
    fn facts_hold_for_every_member() {
        let sets = [
            range(1, 0, 9),
            range(4, -8, 12),
            range(6, 0, 30),
            Fact::number(7),
            Fact::number(0),
        ];
        for a in sets {
            for b in sets {
                holds(a, b, a.add(b), |x, y| x + y);
                holds(a, b, a.sub(b), |x, y| x - y);
                holds(a, b, a.mul(b), |x, y| x * y);
                holds(a, b, a.min(b), i64::min);
                if b.known().is_some_and(|b| b > 0) {
                    holds(a, b, a.rem_unsigned(b), |x, y| {
                        (x.cast_unsigned() % y.cast_unsigned()).cast_signed()
                    });
                }
                if b.known().is_some_and(|b| b > 0) && a.low >= Some(0) {
                    holds(a, b, a.rem(b), |x, y| x % y);
                    holds(a, b, a.div(b), |x, y| x / y);
                }
            }
        }
    }

    #[test]
    fn the_divisor_of_zero_is_zero() {
        assert_eq!((gcd(0, 12), gcd(12, 18), gcd(0, 0)), (12, 6, 0));
        assert_eq!(Fact::number(0).add(range(8, 0, 64)).divisor, 8);
    }
}
