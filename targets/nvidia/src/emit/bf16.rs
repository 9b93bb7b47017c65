//! Numbers of bf16 as those of f32, whose upper halves they are: of what is loaded in vectors, an instruction each. ptxas takes two for a
//! conversion of a register's upper half, `prmt` and a shift; but what is only compared it compares without a conversion, two numbers at once.

use super::emitter::Emitter;
use super::value::Bound;
use crate::state::types;
use axe_dialect::{Combiner, element_type, ops};
use axe_passes::PassResult;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{defining, name, operands, results, users};
use axe_passes::ir::walk::{block_arguments, blocks};
use axe_passes::ir::{Int, Op, Val};
use axe_passes::precision::{constant_integer, is_bf16};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The bits of a word that its upper half is, in `i32`.
const UPPER: i64 = !0xFFFF;
/// What moves the lower half to the upper one.
const LOWER: i64 = 1 << 16;

/// What compares numbers.
const COMPARES: [&str; 5] = [
    "arith.cmpf",
    "arith.maximumf",
    "arith.maxnumf",
    "arith.minimumf",
    "arith.minnumf",
];
/// Operations that are looked at for what numbers go to.
const MOST_FOLLOWED: usize = 64;

/// Whether an operation converts numbers so: what it gives is not only compared.
pub(super) fn widens(op: Op<'_>) -> bool {
    let (&[value], &[result]) = (operands(op).as_slice(), results(op).as_slice()) else {
        return false;
    };
    let [from, to] = [value, result].map(|value| element_type(value.r#type()));
    is_bf16(from) && is_float(to) && bits(to) == Some(32) && !is_only_compared(result)
}

/// Whether all that reads numbers compares them, or masks them before.
fn is_only_compared(value: Val<'_>) -> bool {
    let (mut next, mut followed) = (vec![value], 0);
    while let Some(value) = next.pop() {
        for user in users(value) {
            followed += 1;
            let own = name(user);
            match own.as_str() {
                _ if followed > MOST_FOLLOWED => return false,
                ops::REDUCE if compares(user) => {}
                ops::MASK => next.extend(results(user)),
                ops::MAP => next.extend(arguments_of(user, value)),
                own if COMPARES.contains(&own) => {}
                _ => return false,
            }
        }
    }
    true
}

/// Whether a reduction finds an extreme.
fn compares(reduction: Op<'_>) -> bool {
    let combiner = reduction
        .attribute("combiner")
        .ok()
        .and_then(Combiner::cast);
    matches!(combiner, Some(Combiner::Max | Combiner::Min))
}

/// The arguments of a map's body that are elements of a tensor.
fn arguments_of<'c>(map: Op<'c>, tensor: Val<'c>) -> Vec<Val<'c>> {
    let arguments = blocks(map).first().map(|body| block_arguments(*body));
    let arguments = arguments.into_iter().flatten().zip(operands(map));
    let own = arguments.filter(|(_, operand)| *operand == tensor);
    own.map(|(argument, _)| argument).collect()
}

impl<'c> Emitter<'c> {
    /// A number of bf16 in f32, where it is an element of a vector.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::emit) fn widen_bf16(
        &self,
        value: Val<'c>,
        to: Type<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let element = defining(value).filter(|op| name(*op) == "llvm.extractelement");
        let Some(&[vector, at]) = element.map(operands).as_deref() else {
            return Ok(None);
        };
        let Some((at, count)) = constant_integer(at).zip(types::vector_size(vector.r#type()))
        else {
            return Ok(None);
        };
        if count % 2 != 0 {
            return Ok(None);
        }
        let i32 = types::integer(self.builder, 32);
        let words = types::vector(count / 2, i32);
        let words = self.builder.value("llvm.bitcast", &[vector], words, &[])?;
        let ints = self.ints();
        let word = [words, ints.value(Int::Known(at / 2))?];
        let word = self.builder.value("llvm.extractelement", &word, i32, &[])?;
        let half = match at % 2 {
            0 => ints.mul(Int::Value(word), LOWER)?,
            _ => ints.and(Int::Value(word), UPPER)?,
        };
        self.bitcast(ints.value(half)?, to).map(Some)
    }

    /// Emits a conversion of such a scalar; false for other operations.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn bf16_conversion(&mut self, op: Op<'c>) -> PassResult<'c, bool> {
        if name(op) != "arith.extf" || !widens(op) {
            return Ok(false);
        }
        let (&[value], &[result]) = (operands(op).as_slice(), results(op).as_slice()) else {
            return Ok(false);
        };
        let own = self.scalar(value)?;
        let Some(wide) = self.widen_bf16(own, result.r#type())? else {
            return Ok(false);
        };
        self.bind(result, Bound::Scalar(wide));
        Ok(true)
    }
}
