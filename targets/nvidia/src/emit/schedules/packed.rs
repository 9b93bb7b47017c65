//! The body of a map on two registers at once: arithmetic of 16-bit floats is on pairs (`.f16x2`, `.bf16x2`), the rest on
//! each.

use crate::emit::emitter::Emitter;
use crate::emit::value::Bound;
use crate::state::types;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{identity, name, operands, results};
use axe_passes::ir::walk::operations;
use axe_passes::ir::{Op, Val};
use axe_passes::precision::constant_integer;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Type, ValueLike};
use std::collections::HashMap;

/// Operations that there are of pairs, elementwise on vectors.
const ARITHMETIC: [&str; 6] = [
    "arith.addf",
    "arith.subf",
    "arith.mulf",
    "arith.negf",
    "arith.maximumf",
    "arith.minimumf",
];

/// Two registers' values of a value of the body: each, a pair, or both.
#[derive(Clone, Copy)]
struct Pair<'c> {
    each: Option<[Val<'c>; 2]>,
    pair: Option<Val<'c>>,
}

/// The type of a body's operation that there is of pairs.
fn packed_type(op: Op<'_>) -> Option<Type<'_>> {
    let r#type = results(op).first()?.r#type();
    let narrow = is_float(r#type) && bits(r#type) == Some(16);
    let own = name(op);
    let power = own == "math.fpowi" && matches!(power(op), Some(2 | 3));
    (narrow && (power || ARITHMETIC.contains(&own.as_str()))).then_some(r#type)
}

/// The constant exponent of `math.fpowi`.
fn power(op: Op<'_>) -> Option<i64> {
    operands(op).get(1).copied().and_then(constant_integer)
}

/// Whether a body is better emitted on pairs: it has arithmetic of them, in a kernel of elementary functions.
pub(super) fn is_packed<'c>(emitter: &Emitter<'c>, body: BlockRef<'c, 'c>) -> bool {
    let operations = operations(body);
    emitter.precision.is_transcendental()
        && operations
            .iter()
            .all(|op| op.region_count() == 0 && name(*op) != ops::INDEX)
        && operations.iter().any(|op| packed_type(*op).is_some())
}

/// Emits a body on two registers' arguments.
///
/// # Errors
/// At an operation that has no form.
pub(super) fn emit<'c>(
    emitter: &mut Emitter<'c>,
    body: BlockRef<'c, 'c>,
    arguments: impl Iterator<Item = (Val<'c>, [Val<'c>; 2])>,
) -> PassResult<'c, [Val<'c>; 2]> {
    let of = |(argument, each): (Val<'c>, _)| {
        let pair = Pair {
            each: Some(each),
            pair: None,
        };
        (identity(argument), pair)
    };
    let mut pairs = Pairs {
        emitter,
        values: arguments.map(of).collect(),
    };
    let mut operations = operations(body);
    let terminator = operations.pop();
    for op in operations {
        pairs.operation(op)?;
    }
    let yielded = terminator.and_then(|last| operands(last).first().copied());
    let yielded =
        yielded.ok_or_else(|| pairs.emitter.error("expected the body to yield a value"))?;
    pairs.each(yielded)
}

struct Pairs<'a, 'c> {
    emitter: &'a mut Emitter<'c>,
    /// By identity; what is not here is the same for both registers.
    values: HashMap<usize, Pair<'c>>,
}

impl<'c> Pairs<'_, 'c> {
    fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        let all = operands(op);
        let differ = |operand: &Val<'c>| self.values.contains_key(&identity(*operand));
        if !all.iter().any(differ) {
            return self.emitter.operation(op);
        }
        match packed_type(op) {
            Some(element) => self.on_pair(op, &all, element),
            None => self.on_each(op, &all),
        }
    }

    /// The values of both registers.
    fn each(&mut self, value: Val<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let Some(known) = self.values.get(&identity(value)).copied() else {
            return self.emitter.scalar(value).map(|value| [value; 2]);
        };
        let each = match (known.each, known.pair) {
            (Some(each), _) => each,
            (None, Some(pair)) => match *self.emitter.unpack(pair, 2, value.r#type())?.as_slice() {
                [first, second] => [first, second],
                _ => return Err(self.emitter.error("expected a pair")),
            },
            (None, None) => return Err(self.emitter.error("expected a value")),
        };
        self.set(value, Some(each), known.pair);
        Ok(each)
    }

    /// The pair of both registers' values.
    fn pair(&mut self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        if let Some(Pair {
            pair: Some(pair), ..
        }) = self.values.get(&identity(value))
        {
            return Ok(*pair);
        }
        let differ = self.values.contains_key(&identity(value));
        let each = self.each(value)?;
        let pair = self.emitter.pack(&each, value.r#type())?;
        if differ {
            self.set(value, Some(each), Some(pair));
        }
        Ok(pair)
    }

    fn set(&mut self, value: Val<'c>, each: Option<[Val<'c>; 2]>, pair: Option<Val<'c>>) {
        self.values.insert(identity(value), Pair { each, pair });
    }

    fn on_pair(&mut self, op: Op<'c>, all: &[Val<'c>], element: Type<'c>) -> PassResult<'c> {
        self.emitter.builder.location = op.location();
        let (own, vector) = (name(op), types::vector(2, element));
        let flags: Vec<_> = op
            .attribute("fastmath")
            .into_iter()
            .map(|flags| ("fastmath", flags))
            .collect();
        let builder = self.emitter.builder;
        let value = match (own.as_str(), all.first()) {
            ("math.fpowi", Some(&base)) => {
                let base = self.pair(base)?;
                let square = builder.value("arith.mulf", &[base, base], vector, &flags)?;
                match power(op) {
                    Some(3) => builder.value("arith.mulf", &[square, base], vector, &flags)?,
                    _ => square,
                }
            }
            _ => {
                let pairs: Vec<_> = all
                    .iter()
                    .map(|value| self.pair(*value))
                    .collect::<PassResult<_>>()?;
                builder.value(&own, &pairs, vector, &flags)?
            }
        };
        if let Some(&result) = results(op).first() {
            self.set(result, None, Some(value));
        }
        Ok(())
    }

    fn on_each(&mut self, op: Op<'c>, all: &[Val<'c>]) -> PassResult<'c> {
        let mut both = Vec::new();
        for lane in 0..2 {
            for &operand in all {
                if self.values.contains_key(&identity(operand)) {
                    let [first, second] = self.each(operand)?;
                    let value = if lane == 0 { first } else { second };
                    self.emitter.bind(operand, Bound::Scalar(value));
                }
            }
            self.emitter.operation(op)?;
            let formed = results(op)
                .into_iter()
                .map(|result| self.emitter.scalar(result));
            both.push(formed.collect::<PassResult<Vec<_>>>()?);
        }
        if let [first, second] = both.as_slice() {
            for ((result, first), second) in results(op).into_iter().zip(first).zip(second) {
                self.set(result, Some([*first, *second]), None);
            }
        }
        Ok(())
    }
}
