//! Forms of what scores are made of whose results need not be as exact as f32: weights are rounded to 16 bits.

use super::score::{Dims, i32_of, integer, place};
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::attention::Extents;
use axe_passes::fuse::attention::term::{Id, Term, Terms};
use axe_passes::fuse::attention::visible::{Affine, affine};
use axe_passes::ir::Val;
use melior::ir::Type;
use std::f64::consts::LOG2_E;

/// A term as a number times another one.
pub(super) fn scaled(terms: &Terms, id: Id) -> (Id, f64) {
    let (mut id, mut factor) = (id, 1.0);
    while let Term::Apply(name, _, operands) = terms.get(id) {
        let number = |at: usize| {
            let own = operands.get(at).and_then(|own| terms.as_float(*own));
            own.filter(|value| value.is_finite() && *value != 0.0)
        };
        let (at, by) = match (name.as_str(), number(0), number(1)) {
            ("arith.mulf", _, Some(by)) => (0, by),
            ("arith.mulf", Some(by), None) => (1, by),
            ("arith.divf", _, Some(by)) => (0, by.recip()),
            _ => break,
        };
        let Some(inner) = operands.get(at) else { break };
        (id, factor) = (*inner, factor * by);
    }
    (id, factor)
}

/// `tanh(factor * x)`: `tanh.approx`, whose relative error of 2^-11 is below that of bf16 and 8 bits; `1 - 2 / (e^2x + 1)`, which is 2^-21 wrong,
/// where weights are f16.
pub(super) fn tanh<'c>(
    code: Code<'c>,
    x: Val<'c>,
    factor: f64,
    is_coarse: bool,
) -> PassResult<'c, Val<'c>> {
    let builder = code.builder;
    let f32 = builder.r#type(|context| Type::float32(context));
    let number = |value: f64| builder.constant(builder.float(f32, value));
    let fast = [("fastmath", builder.parsed("#arith.fastmath<afn>")?)];
    let times = |by: f64| match by {
        1.0 => Ok(x),
        by => builder.value("arith.mulf", &[x, number(by)?], f32, &[]),
    };
    if is_coarse {
        return builder.value("math.tanh", &[times(factor)?], f32, &fast);
    }
    let power = builder.value("math.exp2", &[times(2.0 * LOG2_E * factor)?], f32, &fast)?;
    let sum = builder.value("arith.addf", &[power, number(1.0)?], f32, &[])?;
    let part = builder.value("arith.divf", &[number(1.0)?, sum], f32, &fast)?;
    builder.value("math.fma", &[part, number(-2.0)?, number(1.0)?], f32, &[])
}

/// The sum of indices that is converted to a float, where it has 32 bits for all rows and keys.
pub(super) fn converted(terms: &Terms, id: Id, extents: Extents) -> Option<Affine> {
    let &[of] = terms.operands(id, "arith.sitofp")? else {
        return None;
    };
    let sum = affine(terms, of).filter(|sum| sum.length.is_none())?;
    let part = |factor: i64, extent: i64| factor.checked_abs()?.checked_mul(extent);
    let most = part(sum.rows, extents.rows)?
        .checked_add(part(sum.keys, extents.keys)?)?
        .checked_add(sum.constant.checked_abs()?)?;
    (most < i64::from(i32::MAX) && (sum.rows, sum.keys) != (0, 0)).then_some(sum)
}

/// A sum of indices as a float, of what it is at a block's first element.
pub(super) fn float_of<'c>(
    code: Code<'c>,
    sum: &Affine,
    origin: Val<'c>,
    dims: Dims,
) -> PassResult<'c, Val<'c>> {
    let (builder, i32) = (code.builder, integer(code, 32));
    let mut value = origin;
    for (dim, factor) in [(dims.row, sum.rows), (dims.key, sum.keys)] {
        if factor != 0 {
            let factor = builder.constant(builder.parsed(&format!("{factor} : i32"))?)?;
            let own = builder.value("arith.muli", &[place(code, dim)?, factor], i32, &[])?;
            value = builder.value("arith.addi", &[value, own], i32, &[])?;
        }
    }
    let f32 = builder.r#type(|context| Type::float32(context));
    builder.value("arith.sitofp", &[value], f32, &[])
}

/// A sum of indices at a block's first element, as i32.
pub(super) fn at_block<'c>(
    code: Code<'c>,
    sum: &Affine,
    [row, key]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let row = code.times(row, sum.rows)?;
    let key = code.times(key, sum.keys)?;
    let all = code.add(code.add(row, key)?, code.index(sum.constant)?)?;
    i32_of(code, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_passes::fuse::attention::index::Var;
    use axe_passes::fuse::attention::term::Scalar;

    #[test]
    fn constant_factors_are_one() {
        let mut terms = Terms::default();
        let score = terms.add(Term::Score, Scalar::Float);
        let (four, half) = (terms.float(4.0), terms.float(0.5));
        let quotient = terms.apply("arith.divf", None, &[score, four], Scalar::Float);
        let product = terms.apply("arith.mulf", None, &[half, quotient], Scalar::Float);
        assert_eq!(scaled(&terms, product), (score, 0.125));
        let sum = terms.apply("arith.addf", None, &[score, four], Scalar::Float);
        assert_eq!(scaled(&terms, sum), (sum, 1.0));
    }

    #[test]
    fn indices_that_need_more_bits_are_converted_as_they_are() {
        let mut terms = Terms::default();
        let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
        let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
        let extents = |rows| Extents {
            batch: 1,
            rows,
            keys: 100,
            columns: 64,
        };
        let distance = terms.apply("arith.subi", None, &[row, key], Scalar::Int(64));
        let float = terms.apply("arith.sitofp", None, &[distance], Scalar::Float);
        let own = converted(&terms, float, extents(1000));
        assert_eq!(own.map(|own| (own.rows, own.keys)), Some((1, -1)));
        let far = terms.int(1 << 31, 64);
        let moved = terms.apply("arith.addi", None, &[distance, far], Scalar::Int(64));
        let moved = terms.apply("arith.sitofp", None, &[moved], Scalar::Float);
        assert_eq!(converted(&terms, moved, extents(1000)), None);
        assert_eq!(converted(&terms, float, extents(1 << 31)), None);
        assert_eq!(converted(&terms, distance, extents(1000)), None);
    }
}
