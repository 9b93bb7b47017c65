//! Operators between a transpose and its inverse, or behind a transpose of which only reductions are left: they are the same
//! operators of what is transposed, along other dimensions. Layer normalisation of channels, which come first in memory and last in
//! the program, is one kernel so and not three.

use super::nest::{Pointwise, loops_around};
use super::operators::{dims_of, splat};
use super::rewritten::Rewritten;
use super::space::source;
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses, users};
use crate::ir::{Builder, Op, TensorType, Val, attribute};
use axe_dialect::ops;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Type, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::HashSet;

/// Operators that are followed from a transpose.
const MOST_FOLLOWED: usize = 256;

/// Removes such transposes. `ops` are operations of a block in order; they are given with those that are new, and without those that
/// nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn remove<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let all = ops.iter().map(key).collect();
    let (mut replaced, mut done) = (Vec::new(), HashSet::new());
    for &op in ops.iter().filter(|op| name(**op) == ops::TRANSPOSE) {
        let between = permutation(op).and_then(|own| Between::of(op, &own, &all));
        let is_new = |between: &Between<'c>| {
            let mut all = between.transposes.iter().chain(&between.inverses);
            all.all(|op| !done.contains(&key(op)))
        };
        if let Some(between) = between.filter(is_new) {
            between.rewrite()?;
            let gone = between.transposes.iter().chain(&between.inverses);
            done.extend(gone.clone().map(key));
            replaced.extend(gone.copied());
        }
    }
    Ok(rewritten.without(replaced))
}

/// The dimension of the source that each one of a transpose's result is.
pub(super) fn permutation(op: Op<'_>) -> Option<Vec<usize>> {
    let own = op.attribute("permutation").ok();
    let own = own.and_then(attribute::read_i64s)?;
    own.into_iter()
        .map(|dim| usize::try_from(dim).ok())
        .collect()
}

/// What tells operations apart.
pub(super) fn key(op: &Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    for (at, own) in permutation.iter().enumerate() {
        if let Some(slot) = inverse.get_mut(*own) {
            *slot = at;
        }
    }
    inverse
}

/// What lies between transposes and their inverses.
struct Between<'c> {
    turned: Turned,
    /// The transposes with the permutation, and those with its inverse.
    transposes: Vec<Op<'c>>,
    inverses: Vec<Op<'c>>,
    /// Maps and casts of what is transposed, and reductions of it.
    maps: Vec<Op<'c>>,
    reductions: Vec<Op<'c>>,
    /// What maps read of broadcasts, fills and numbers.
    repeated: Vec<(Op<'c>, Val<'c>)>,
    /// What loops read few elements with.
    extracts: Vec<Op<'c>>,
}

impl<'c> Between<'c> {
    /// What is behind a transpose; none where something else reads it, or it would not be the same otherwise.
    fn of(first: Op<'c>, permutation: &[usize], all: &HashSet<usize>) -> Option<Self> {
        let mut found = Self {
            turned: Turned::new(permutation.to_vec()),
            transposes: Vec::new(),
            inverses: Vec::new(),
            maps: Vec::new(),
            reductions: Vec::new(),
            repeated: Vec::new(),
            extracts: Vec::new(),
        };
        let (mut next, mut seen) = (vec![first], HashSet::new());
        while let Some(op) = next.pop() {
            if !seen.insert(key(&op)) {
                continue;
            }
            let result = only_result(op)?;
            let tensor = TensorType::of_value(result)?;
            if seen.len() > MOST_FOLLOWED || tensor.encoded || !all.contains(&key(&op)) {
                return None;
            }
            match name(op).as_str() {
                ops::TRANSPOSE if self::permutation(op)? == permutation => {
                    found.transposes.push(op);
                }
                ops::MAP | ops::CAST => {
                    for value in operands(op) {
                        match defining(value) {
                            Some(from) if found.turned.is_repeated(from) => {
                                found.repeated.push((op, value));
                            }
                            from => next.push(from?),
                        }
                    }
                    found.maps.push(op);
                }
                _ => return None,
            }
            for user in users(result) {
                if is_of_few(user, result) {
                    found.extracts.push(user);
                    continue;
                }
                if !all.contains(&key(&user)) {
                    return None;
                }
                match name(user).as_str() {
                    ops::MAP | ops::CAST => next.push(user),
                    ops::REDUCE if found.turned.keeps_order(&dims_of(user)?) => {
                        found.reductions.push(user);
                    }
                    ops::TRANSPOSE if self::permutation(user)? == inverse(permutation) => {
                        found.inverses.push(user);
                    }
                    _ => return None,
                }
            }
        }
        let is_left = !found.reductions.is_empty() || !found.inverses.is_empty();
        is_left.then_some(found)
    }

    fn rewrite(&self) -> PassResult<'c> {
        for (map, value) in &self.repeated {
            self.turned.repeat(*map, *value)?;
        }
        for op in &self.maps {
            if let Some(result) = only_result(*op) {
                set_type(result, self.turned.r#type(&Builder::before(*op), result)?);
            }
        }
        for op in &self.reductions {
            self.turned.permute_dims(*op);
        }
        for op in &self.extracts {
            self.turned.permute_indices(*op);
        }
        for op in self.transposes.iter().chain(&self.inverses) {
            if let Some((result, from)) = only_result(*op).zip(source(*op)) {
                replace_all_uses(result, from);
            }
        }
        Ok(())
    }
}

/// The order of dimensions that a transpose gives.
pub(super) struct Turned {
    permutation: Vec<usize>,
}

impl Turned {
    pub(super) const fn new(permutation: Vec<usize>) -> Self {
        Self { permutation }
    }

    /// The permutation, as an attribute has it.
    pub(super) fn order(&self) -> Vec<i64> {
        let own = self.permutation.iter();
        own.filter_map(|dim| i64::try_from(*dim).ok()).collect()
    }

    /// Whether an operator repeats values, in an order that the permutation keeps.
    pub(super) fn is_repeated(&self, op: Op<'_>) -> bool {
        let kept = || dims_of(op).is_some_and(|dims| self.keeps_order(&dims));
        splat(op).is_some() || name(op) == ops::FILL || name(op) == ops::BROADCAST && kept()
    }

    /// Whether the dimensions other than these are in the same order in the source.
    fn keeps_order(&self, dims: &[i64]) -> bool {
        let kept = (0i64..).zip(&self.permutation);
        let kept = kept.filter(|(dim, _)| !dims.contains(dim));
        let kept: Vec<_> = kept.map(|(_, own)| *own).collect();
        kept.is_sorted()
    }

    /// The type of a value in the order of the source.
    pub(super) fn r#type<'c>(
        &self,
        builder: &Builder<'c>,
        value: Val<'c>,
    ) -> PassResult<'c, Type<'c>> {
        let tensor = builder.tensor_of(value)?;
        // What has no last dimension has the others in the same order.
        let own = inverse(&self.permutation).into_iter();
        let shape: Vec<_> = own
            .filter_map(|dim| tensor.shape.get(dim).copied())
            .collect();
        builder.tensor(&shape, tensor.element)
    }

    /// Lets a map read its own copy of what repeats values, in the order of the source.
    pub(super) fn repeat<'c>(&self, map: Op<'c>, value: Val<'c>) -> PassResult<'c> {
        let Some(from) = defining(value) else {
            return Ok(());
        };
        let builder = Builder::before(map);
        let r#type = self.r#type(&builder, value)?;
        let own = match splat(from) {
            Some(number) => {
                let number = builder.constant(number)?;
                Code { builder }.fill(number, r#type)?
            }
            None => {
                let copy = builder.clone_of(from);
                if name(copy) == ops::BROADCAST {
                    self.permute_dims(copy);
                }
                let own = builder.result_of(copy)?;
                set_type(own, r#type);
                own
            }
        };
        for (at, operand) in (0..).zip(operands(map)) {
            if identity(operand) == identity(value) {
                // SAFETY: the position is that of an operand of a live operation.
                unsafe { sys::mlirOperationSetOperand(map.to_raw(), at, own.to_raw()) };
            }
        }
        Ok(())
    }

    /// Lets an extraction read where the element is in the source.
    fn permute_indices(&self, extract: Op<'_>) {
        let read = operands(extract);
        for (own, at) in self.permutation.iter().zip(read.iter().skip(1)) {
            let place = isize::try_from(own + 1);
            if let Ok(place) = place {
                // SAFETY: the position is that of an operand of a live operation.
                unsafe { sys::mlirOperationSetOperand(extract.to_raw(), place, at.to_raw()) };
            }
        }
    }

    /// Lets an operator have the dimensions of the source that its own are.
    fn permute_dims(&self, op: Op<'_>) {
        let own = dims_of(op).unwrap_or_default().into_iter();
        let own = own.filter_map(|dim| self.permutation.get(usize::try_from(dim).ok()?));
        let mut dims: Vec<_> = own.filter_map(|dim| i64::try_from(*dim).ok()).collect();
        dims.sort_unstable();
        let dims = Builder::before(op).i64s(&dims);
        // SAFETY: the operation is live, and nothing else refers to its attributes.
        unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute("dims", dims);
    }
}

/// Whether loops read few of a value's elements with an operation.
fn is_of_few(op: Op<'_>, value: Val<'_>) -> bool {
    let reads = name(op) == "tensor.extract" && operands(op).first() == Some(&value);
    let around = || loops_around(op).and_then(Pointwise::of);
    reads && around().is_some_and(|nest| nest.reads_few())
}

/// Gives a value another type.
pub(super) fn set_type<'c>(value: Val<'c>, r#type: Type<'c>) {
    // SAFETY: the verifier checks the operator with its new type.
    unsafe { sys::mlirValueSetType(value.to_raw(), r#type.to_raw()) };
}
