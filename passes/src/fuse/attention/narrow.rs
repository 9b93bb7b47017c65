//! Operands of 8 bits. Their kernel rounds weights to the operands' type, as all kernels do; three bits of mantissa are so few that a
//! program must say so: it rounds its weights itself, and nothing else.

use super::read::{Reader, number};
use crate::fuse::nest::is_nest;
use crate::fuse::operators::is_reshape;
use crate::fuse::space::source;
use crate::ir::float8::Float8;
use crate::ir::value::{defining, name, operands, results};
use crate::ir::{Op, TensorType, Val, types};
use axe_dialect::ops;
use melior::ir::{Type, ValueLike};

/// Whether elements are those of 8 bits that kernels have: `f8E4M3FN`.
#[must_use]
pub fn is_e4m3(element: Type<'_>) -> bool {
    Float8::of(element) == Some(Float8::E4M3)
}

/// The element types of operands and of the result.
///
/// # Errors
/// Why no kernel has them.
pub(super) fn element_types<'c>(
    [queries, keys, values, result]: [Type<'c>; 4],
    rounds_weights: bool,
) -> Result<[Type<'c>; 2], String> {
    let half = |element| types::is_float(element) && types::bits(element) == Some(16);
    if keys != queries || values != queries {
        return Err(format!(
            "expected queries, keys and values of one type, f16, bf16 or f8E4M3FN, got {queries}, {keys} and {values}"
        ));
    }
    if !is_e4m3(queries) && rounds_weights {
        return Err(format!(
            "its weights are rounded to f8E4M3FN, and its values are of {queries}"
        ));
    }
    if !is_e4m3(queries) {
        return match result == queries && half(result) {
            true => Ok([queries, result]),
            false => Err("expected queries, keys, values and result of one type, f16 or bf16: weights are rounded to it".to_owned()),
        };
    }
    if !half(result) {
        return Err(format!(
            "expected a result in f16 or bf16 of operands in {queries}, got {result}"
        ));
    }
    match rounds_weights {
        true => Ok([queries, result]),
        false => Err(format!(
            "its weights are not rounded to {queries}, the type of its values, in which a kernel multiplies them"
        )),
    }
}

/// The element type of a tensor.
pub(super) fn element_of(value: Val<'_>) -> Option<Type<'_>> {
    TensorType::of_value(value).map(|tensor| tensor.element)
}

impl<'c> Reader<'c> {
    /// Finds where weights are rounded to 8 bits on their way to the second product.
    pub(super) fn find_rounding(&mut self, weights: Val<'c>) {
        let mut value = weights;
        while let Some(own) = defining(value) {
            if !is_view(own) && element_of(value).is_some_and(is_e4m3) {
                self.rounding = Some(number(own));
                return;
            }
            let Some(from) = single_source(own) else {
                return;
            };
            value = from;
        }
    }

    /// Whether a value is the weights, rounded to 8 bits.
    pub(super) fn is_rounded(&self, value: Val<'c>) -> bool {
        let mut value = value;
        while let Some(own) = defining(value) {
            match source(own).filter(|_| is_view(own)) {
                Some(from) => value = from,
                None => return self.rounds_weights(own),
            }
        }
        false
    }

    /// Whether an operation in the body of an operator rounds what are not the weights to 8 bits.
    pub(super) fn rounds_others(&self, op: Op<'c>, inner: Op<'c>) -> bool {
        let mut formed = results(inner).into_iter().map(|own| own.r#type());
        formed.any(is_e4m3) && !self.rounds_weights(op)
    }

    /// Whether an operator, or one in its body, is where weights are rounded to 8 bits.
    pub(super) fn rounds_weights(&self, op: Op<'c>) -> bool {
        self.rounding == Some(number(op))
    }
}

/// Whether an operator only says where elements are.
fn is_view(op: Op<'_>) -> bool {
    is_reshape(op) || [ops::TRANSPOSE, ops::BROADCAST].contains(&name(op).as_str())
}

/// What an operator that changes elements one by one, or their order, is of.
fn single_source(op: Op<'_>) -> Option<Val<'_>> {
    if is_view(op) || name(op) == ops::CAST {
        return source(op);
    }
    let inputs = operands(op);
    match (name(op) == ops::MAP, is_nest(op), inputs.as_slice()) {
        (true, _, &[from]) | (_, true, &[from, _]) => Some(from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::Context;

    #[test]
    fn types_that_a_kernel_has() {
        let context = Context::new();
        let of = |text: &str| Type::parse(&context, text).expect("a type");
        let [half, brain, byte, other, wide] = ["f16", "bf16", "f8E4M3FN", "f8E5M2", "f32"].map(of);
        let same = |own| [own; 4];
        assert_eq!(element_types(same(half), false), Ok([half, half]));
        let narrow = [byte, byte, byte, brain];
        assert_eq!(element_types(narrow, true), Ok([byte, brain]));
        for (types, rounds, why) in [
            (narrow, false, "its weights are not rounded to f8E4M3FN"),
            (
                same(brain),
                true,
                "its weights are rounded to f8E4M3FN, and its values are of bf16",
            ),
            (
                same(byte),
                true,
                "expected a result in f16 or bf16 of operands in f8E4M3FN, got f8E4M3FN",
            ),
            (
                [half, half, half, brain],
                false,
                "expected queries, keys, values and result of one type",
            ),
            (
                [byte, half, byte, half],
                true,
                "expected queries, keys and values of one type",
            ),
            (
                same(wide),
                false,
                "expected queries, keys, values and result of one type",
            ),
            (
                same(other),
                false,
                "expected queries, keys, values and result of one type",
            ),
        ] {
            let got = element_types(types, rounds).expect_err(why);
            assert!(got.starts_with(why), "{got}");
        }
    }
}
