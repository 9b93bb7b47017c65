//! Constants of products in f32 that need not be exact: they are gathered until one of them, or none, is left to multiply with.
//! GELU by tanh, `x / 2 (1 + tanh(k (x + c x^3)))`, is seven instructions an element so, and ten as it stands.
//!
//! Operands are values of the code that was emitted.

use super::math::Floats;
use axe_passes::PassResult;
use axe_passes::ir::value::{defined_by, identity, name, operands, results, users};
use axe_passes::ir::{Op, Val};
use axe_passes::precision::constant;

/// Products of products that are looked at, one inside the other, at most.
const DEEPEST: usize = 4;

impl<'c> Floats<'_, 'c> {
    /// The product of two products by numbers whose own product is one; `None` of others.
    pub(super) fn without_numbers(
        &self,
        a: Val<'c>,
        b: Val<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let ((x, by), (y, other)) = (by_number(a), by_number(b));
        match by != 1.0 && by * other == 1.0 {
            true => self.apply("arith.mulf", &[x, y]).map(Some),
            false => Ok(None),
        }
    }

    /// `x (a b k + c k)` of `x (a b + c)` and numbers b, c and k; `None` of other products by k.
    pub(super) fn by_sum(&self, value: Val<'c>, k: f64) -> PassResult<'c, Option<Val<'c>>> {
        let Some(&[x, sum]) = defined_by(value, "arith.mulf").map(operands).as_deref() else {
            return Ok(None);
        };
        let Some(&[a, b, c]) = defined_by(sum, FMA).map(operands).as_deref() else {
            return Ok(None);
        };
        let (Some(b), Some(c)) = (constant(b), constant(c)) else {
            return Ok(None);
        };
        if ![b * k, c * k].into_iter().all(is_normal) {
            return Ok(None);
        }
        let sum = self.fma(a, self.number(b * k)?, self.number(c * k)?)?;
        self.apply("arith.mulf", &[x, sum]).map(Some)
    }

    /// `x (c y + 1)` of `x + c x y`, where a number is what it is multiplied by next; `None` of other sums. Nothing cancels: c is positive.
    pub(super) fn factored(
        &self,
        op: Op<'c>,
        [a, b]: [Val<'c>; 2],
    ) -> PassResult<'c, Option<Val<'c>>> {
        if !is_scaled(op) {
            return Ok(None);
        }
        for (x, product) in [(a, b), (b, a)] {
            let mut factors = Vec::new();
            let by = gather(product, x, DEEPEST, &mut factors);
            let own = factors.iter().position(|own| identity(*own) == identity(x));
            let Some(own) = own.filter(|_| by > 0.0 && is_normal(by)) else {
                continue;
            };
            factors.remove(own);
            let Some((&first, rest)) = factors.split_first() else {
                continue;
            };
            let rest = rest.iter().try_fold(first, |product, own| {
                self.apply("arith.mulf", &[product, *own])
            })?;
            let sum = self.fma(rest, self.number(by)?, self.number(1.0)?)?;
            return self.apply("arith.mulf", &[x, sum]).map(Some);
        }
        Ok(None)
    }
}

/// `a b + c`, as [`Floats::fma`] emits it.
const FMA: &str = "llvm.intr.fma";

/// A value without the number that it was multiplied by last, and that number; one where there is none.
fn by_number(value: Val<'_>) -> (Val<'_>, f64) {
    let Some(&[a, b]) = defined_by(value, "arith.mulf").map(operands).as_deref() else {
        return (value, 1.0);
    };
    match (constant(a), constant(b)) {
        (None, Some(by)) => (a, by),
        (Some(by), None) => (b, by),
        _ => (value, 1.0),
    }
}

/// The same, where that number is positive, and of a size whose powers f32 has.
pub(super) fn by_ordinary_number(value: Val<'_>) -> (Val<'_>, f64) {
    match by_number(value) {
        (of, by) if (2f64.powi(-8)..2f64.powi(8)).contains(&by) => (of, by),
        _ => (value, 1.0),
    }
}

/// Whether f32 has a number with all of its digits.
const fn is_normal(number: f64) -> bool {
    (number as f32).is_normal()
}

/// Adds the factors of a product to others, `x` as it stands, and returns the number that they are multiplied by.
fn gather<'c>(value: Val<'c>, x: Val<'c>, depth: usize, factors: &mut Vec<Val<'c>>) -> f64 {
    if let Some(number) = constant(value) {
        return number;
    }
    let product = defined_by(value, "arith.mulf").map(operands);
    match product.as_deref() {
        Some(&[a, b]) if identity(value) != identity(x) && depth > 0 => {
            gather(a, x, depth - 1, factors) * gather(b, x, depth - 1, factors)
        }
        _ => {
            factors.push(value);
            1.0
        }
    }
}

/// Whether a sum goes into one product by a number, or into a function that multiplies its operand by one.
fn is_scaled(op: Op<'_>) -> bool {
    let all = results(op).first().copied().map(users).unwrap_or_default();
    let &[user] = all.as_slice() else {
        return false;
    };
    match name(user).as_str() {
        "arith.mulf" => operands(user)
            .into_iter()
            .any(|own| constant(own).is_some()),
        name => ["math.tanh", "math.exp"].contains(&name),
    }
}
