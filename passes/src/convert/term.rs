//! What a body multiplies and adds up: the two terms of a product, each of tensors that the other does not read.

use super::Counts;
use super::factor::{Factor, factor};
use super::operands::{Operand, Space, align};
use super::quantized::{self, Shift};
use super::scalar::{arguments, evaluate};
use super::structured::{Index, Structured};
use crate::error::PassResult;
use crate::ir::value::{defined_by, name, operands};
use crate::ir::{Builder, Op, TensorType, Val, types};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// One side of a product.
pub(super) struct Term<'c> {
    /// The loops of its tensors.
    pub(super) loops: Vec<usize>,
    form: Form<'c>,
}

/// How it comes of its tensors.
enum Form<'c> {
    /// An argument of the body, widened exactly where it is narrower: products of the narrow values are exact in the
    /// wide type.
    Argument(usize),
    /// A byte, widened with or without its sign, less its zero point.
    Quantized { argument: usize, shift: Shift<'c> },
    /// Anything else that a map computes.
    Computed(Val<'c>),
}

/// The terms that the body multiplies, when it adds their product to the running value.
pub(super) fn terms<'c>(op: &Structured<'c>) -> Option<[Term<'c>; 2]> {
    if op.inits.len() != 1 {
        return None;
    }
    let (left, right) = binary(op, op.yielded(0)?, &["arith.addf", "arith.addi"])?;
    let product = match (op.is_running(left, 0), op.is_running(right, 0)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let product = unwidened_product(op, product);
    let (left, right) = binary(op, product, &["arith.mulf", "arith.muli"])?;
    let (of_left, of_right) = (tensors(op, left)?, tensors(op, right)?);
    let apart = !of_left.iter().any(|argument| of_right.contains(argument));
    let several = !of_left.is_empty() && !of_right.is_empty();
    (apart && several).then(|| {
        [
            Term::new(op, left, &of_left),
            Term::new(op, right, &of_right),
        ]
    })
}

/// The product under an exact conversion of it to a wider float: the wide sums are those of a wide accumulator.
fn unwidened_product<'c>(op: &Structured<'c>, product: Val<'c>) -> Val<'c> {
    let cast = op
        .inner(product)
        .filter(|inner| name(*inner) == "arith.extf");
    let source = cast.and_then(|cast| cast.operand(0).ok());
    let narrow = source.and_then(|source| op.inner(source));
    match (source, narrow) {
        (Some(source), Some(narrow)) if name(narrow) == "arith.mulf" => source,
        _ => product,
    }
}

/// The operands of an operation of the body that has one of these names.
fn binary<'c>(op: &Structured<'c>, value: Val<'c>, names: &[&str]) -> Option<(Val<'c>, Val<'c>)> {
    let inner = op
        .inner(value)
        .filter(|inner| names.contains(&name(*inner).as_str()))?;
    match operands(inner).as_slice() {
        &[left, right] => Some((left, right)),
        _ => None,
    }
}

/// The arguments that a value of the body depends on and that are elements of tensors; `None` where it reads the running
/// value, or has no form in a map.
fn tensors<'c>(op: &Structured<'c>, value: Val<'c>) -> Option<Vec<usize>> {
    let slice = op.slice(value).ok()?;
    let all = arguments(op, &slice, value);
    let numbers = all.into_iter().map(|(number, _)| number);
    let own: Vec<usize> = numbers.filter(|number| is_tensor(op, *number)).collect();
    own.iter()
        .all(|number| *number < op.inputs.len())
        .then_some(own)
}

fn is_tensor(op: &Structured<'_>, argument: usize) -> bool {
    let operand = op.operand(argument);
    operand.is_some_and(|(value, _)| TensorType::of_value(value).is_some())
}

impl<'c> Term<'c> {
    fn new(op: &Structured<'c>, value: Val<'c>, arguments: &[usize]) -> Self {
        let mut loops = Vec::new();
        for (_, map) in arguments.iter().filter_map(|number| op.operand(*number)) {
            for index in map {
                if let Index::Loop(at) = index
                    && !loops.contains(at)
                {
                    loops.push(*at);
                }
            }
        }
        Self {
            loops,
            form: Form::of(op, value),
        }
    }

    /// Whether it is an operand as it is, but for its width.
    pub(super) const fn is_operand(&self) -> bool {
        matches!(self.form, Form::Argument(_))
    }

    /// What a product of its bytes lacks of a product of it.
    pub(super) fn shift(&self) -> Option<Shift<'c>> {
        match self.form {
            Form::Quantized { shift, .. } => Some(shift),
            _ => None,
        }
    }

    /// The tensor of the term, or of the signed bytes that it comes of.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn formed(
        &self,
        builder: &Builder<'c>,
        op: &Structured<'c>,
        counts: &mut Counts,
    ) -> PassResult<'c, Factor<'c>> {
        let root = match self.form {
            Form::Argument(argument) => return factor(builder, op, argument),
            Form::Quantized { argument, shift } => {
                let factor = factor(builder, op, argument)?;
                return match shift.unsigned {
                    true => quantized::signed(builder, factor, counts),
                    false => Ok(factor),
                };
            }
            Form::Computed(root) => root,
        };
        let space = Space::new(op, self.loops.clone())?;
        let slice = op.slice(root)?;
        let mut of: Vec<(Val<'c>, Operand<'c>)> = Vec::new();
        for (argument, value) in arguments(op, &slice, root) {
            if let Some(operand) = op.operand(argument) {
                of.push((value, align(builder, &space, operand)?));
            }
        }
        Ok(Factor {
            value: evaluate(builder, op, &space, root, &of, counts)?,
            loops: self.loops.clone(),
        })
    }
}

impl<'c> Form<'c> {
    fn of(op: &Structured<'c>, value: Val<'c>) -> Self {
        if let Some(argument) = op.argument(value) {
            return Self::Argument(argument);
        }
        let Some(inner) = op.inner(value) else {
            return Self::Computed(value);
        };
        if ["arith.extf", "arith.extsi"].contains(&name(inner).as_str())
            && let Some(argument) = inner.operand(0).ok().and_then(|from| op.argument(from))
        {
            return Self::Argument(argument);
        }
        match quantized_form(op, value, inner) {
            Some((argument, shift)) => Self::Quantized { argument, shift },
            None => Self::Computed(value),
        }
    }
}

/// A byte, widened to i32, less a scalar.
fn quantized_form<'c>(
    op: &Structured<'c>,
    value: Val<'c>,
    inner: Op<'c>,
) -> Option<(usize, Shift<'c>)> {
    if types::bits(value.r#type()) != Some(32) {
        return None;
    }
    let (wide, zero) = match (name(inner).as_str(), operands(inner).as_slice()) {
        ("arith.subi", &[wide, zero]) => (op.inner(wide)?, Some(scalar(op, zero)?)),
        _ => (inner, None),
    };
    let unsigned = match name(wide).as_str() {
        "arith.extui" => true,
        "arith.extsi" => false,
        _ => return None,
    };
    let byte = wide.operand(0).ok()?;
    let argument = op.argument(byte)?;
    let is_byte = types::bits(byte.r#type()) == Some(8) && is_tensor(op, argument);
    is_byte.then_some((argument, Shift { zero, unsigned }))
}

/// A scalar of the function that a body reads: a constant, one from above, or a scalar operand.
fn scalar<'c>(op: &Structured<'c>, value: Val<'c>) -> Option<Val<'c>> {
    match op.argument(value) {
        Some(argument) => {
            let (scalar, _) = op.operand(argument)?;
            TensorType::of_value(scalar).is_none().then_some(scalar)
        }
        None if op.inner(value).is_none() => Some(value),
        None => defined_by(value, "arith.constant").map(|_| value),
    }
}
