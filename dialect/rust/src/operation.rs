//! Operations by their parts: what the wrappers that are generated from ODS ([`crate::ops`]) are made of.

use melior::ir::attribute::{
    DenseI32ArrayAttribute, DenseI64ArrayAttribute, IntegerAttribute, StringAttribute,
};
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Value, ValueLike};
use std::vec::IntoIter;

/// An operation that lives as long as the context.
pub type Op<'c> = OperationRef<'c, 'c>;
/// A value that lives as long as the context.
pub type Val<'c> = Value<'c, 'c>;

/// The attribute that says how many operands each group has.
const SEGMENTS: &str = "operandSegmentSizes";

/// An operation of the dialect by its parts.
pub trait Typed<'c>: Sized {
    /// The operation's name, `axe.gemm`.
    const NAME: &'static str;

    /// The parts of an operation; `None` for one of another name, and for one that ODS does not allow.
    fn of(op: Op<'c>) -> Option<Self>;

    /// The parts of the operation that defines a value; `None` where another does, and for a block's argument.
    #[must_use]
    fn defining(value: Val<'c>) -> Option<Self> {
        // SAFETY: the owner is read only of the result of an operation.
        let op = value.is_operation_result().then(|| unsafe {
            OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(value.to_raw()))
        })?;
        Self::of(op)
    }
}

/// Whether an operation has this name.
pub(crate) fn is_named(op: Op<'_>, name: &str) -> bool {
    op.name()
        .as_string_ref()
        .as_str()
        .is_ok_and(|own| own == name)
}

/// How many values a group of operands or results has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    One,
    Optional,
    Variadic,
}

/// Operands or results, a group at a time.
pub(crate) struct Groups<'c> {
    values: IntoIter<Val<'c>>,
    sizes: IntoIter<usize>,
}

impl<'c> Groups<'c> {
    /// The operands of an operation whose segments are in an attribute.
    pub(crate) fn by_segments(op: Op<'c>) -> Option<Self> {
        let segments = op.attribute(SEGMENTS).ok()?;
        let segments = DenseI32ArrayAttribute::try_from(segments).ok()?;
        let sizes = (0..segments.len()).map(|at| usize::try_from(segments.element(at).ok()?).ok());
        Self::new(op.operands().collect(), sizes.collect::<Option<Vec<_>>>()?)
    }

    /// The operands of an operation with at most one group that is not one value.
    pub(crate) fn by_count(op: Op<'c>, shape: &[Arity]) -> Option<Self> {
        let operands: Vec<_> = op.operands().collect();
        let sizes = sizes(shape, operands.len())?;
        Self::new(operands, sizes)
    }

    /// The results of an operation with at most one group that is not one value.
    pub(crate) fn of_results(op: Op<'c>, shape: &[Arity]) -> Option<Self> {
        let results: Vec<_> = op
            .results()
            // SAFETY: each result is a value of a live operation.
            .map(|result| unsafe { Value::from_raw(result.to_raw()) })
            .collect();
        let sizes = sizes(shape, results.len())?;
        Self::new(results, sizes)
    }

    fn new(values: Vec<Val<'c>>, sizes: Vec<usize>) -> Option<Self> {
        (sizes.iter().sum::<usize>() == values.len()).then(|| Self {
            values: values.into_iter(),
            sizes: sizes.into_iter(),
        })
    }

    /// The value of the next group, which has one.
    pub(crate) fn one(&mut self) -> Option<Val<'c>> {
        self.optional()?
    }

    /// The value of the next group, which has at most one.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether there is such a group"
    )]
    pub(crate) fn optional(&mut self) -> Option<Option<Val<'c>>> {
        match self.all()?.as_slice() {
            [] => Some(None),
            [value] => Some(Some(*value)),
            _ => None,
        }
    }

    /// The values of the next group.
    pub(crate) fn all(&mut self) -> Option<Vec<Val<'c>>> {
        let size = self.sizes.next()?;
        Some(self.values.by_ref().take(size).collect())
    }
}

/// The sizes of groups, at most one of which is not one value; `None` where so many values do not fit.
fn sizes(shape: &[Arity], count: usize) -> Option<Vec<usize>> {
    let single = shape.iter().filter(|arity| **arity == Arity::One).count();
    let rest = count.checked_sub(single)?;
    let size = |arity: &Arity| match arity {
        Arity::One => 1,
        Arity::Optional | Arity::Variadic => rest,
    };
    Some(shape.iter().map(size).collect())
}

/// The value of an integer attribute.
pub(crate) fn integer(op: Op<'_>, name: &str) -> Option<i64> {
    let attribute = IntegerAttribute::try_from(op.attribute(name).ok()?);
    attribute.ok().map(|attribute| attribute.value())
}

/// The values of `array<i64: ...>`.
pub(crate) fn integers(op: Op<'_>, name: &str) -> Option<Vec<i64>> {
    let array = DenseI64ArrayAttribute::try_from(op.attribute(name).ok()?).ok()?;
    (0..array.len()).map(|at| array.element(at).ok()).collect()
}

/// The text of a string attribute.
pub(crate) fn text<'c>(op: Op<'c>, name: &str) -> Option<&'c str> {
    let attribute = StringAttribute::try_from(op.attribute(name).ok()?);
    attribute.ok().map(|attribute| attribute.value())
}

/// The operands of an operation to build: in ODS's order, and how many each group has.
#[derive(Clone, Debug)]
pub struct Operands<'c> {
    /// The operation's name.
    pub name: &'static str,
    /// The operands.
    pub values: Vec<Val<'c>>,
    /// How many operands each group has, for the attribute `operandSegmentSizes` where the operation has it.
    pub segments: Option<Vec<i32>>,
}

impl<'c> Operands<'c> {
    pub(crate) fn new(name: &'static str, segmented: bool) -> Self {
        Self {
            name,
            values: Vec::new(),
            segments: segmented.then(Vec::new),
        }
    }

    pub(crate) fn push(&mut self, group: &[Val<'c>]) {
        self.values.extend(group);
        if let Some(segments) = &mut self.segments {
            // More operands than this do not fit in an operation.
            segments.push(i32::try_from(group.len()).unwrap_or(i32::MAX));
        }
    }
}
