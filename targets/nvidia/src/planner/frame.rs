//! The function around the kernels: operands in the shape of a kernel's space, launches, results.

use super::group::is_reshape;
use super::space::{Kind, Size, source};
use crate::build::launch;
use crate::facts::chip::Chip;
use axe_package::TunedDb;
use axe_passes::ir::value::{defining, identity, name, operands};
use axe_passes::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, types};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Type, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;
use std::sync::Arc;

/// A function whose kernels are planned.
pub(super) struct Frame<'c> {
    /// Where kernels go.
    pub module: BlockRef<'c, 'c>,
    /// What they run on.
    pub chip: &'static Chip,
    /// Plans that were fastest on a device.
    pub plans: Arc<TunedDb>,
    /// Whether to print where plans come from.
    pub explain: bool,
    /// The start of their names.
    pub prefix: String,
    /// Kernels so far.
    pub kernels: usize,
    /// What launches gave, for the values of the logical function.
    pub stored: HashMap<usize, Val<'c>>,
}

/// A tensor outside a kernel and the memref that the kernel has for it.
#[derive(Clone, Debug)]
pub(super) struct Operand<'c> {
    /// In the kernel's shape.
    pub tensor: Val<'c>,
    /// That shape.
    pub shape: Vec<i64>,
    /// The kernel's type.
    pub memref: Type<'c>,
}

impl<'c> Frame<'c> {
    /// The next kernel's name.
    pub(super) fn name(&mut self, what: &str) -> String {
        let number = self.kernels;
        self.kernels += 1;
        format!("{}_{number}_{what}", self.prefix)
    }

    /// A value of the logical function, as launches give it.
    ///
    /// # Errors
    /// When a reshape cannot be built again.
    pub(super) fn resolve(
        &mut self,
        builder: &Builder<'c>,
        value: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if let Some(stored) = self.stored.get(&identity(value)) {
            return Ok(*stored);
        }
        let Some(op) = defining(value).filter(|op| is_reshape(*op)) else {
            return Ok(value);
        };
        let Some(from) = source(op) else {
            return Ok(value);
        };
        let new = self.resolve(builder, from)?;
        if new == from {
            return Ok(value);
        }
        let copy = builder.clone_of(op);
        // SAFETY: a reshape has the operand, and the new one has its type.
        unsafe { sys::mlirOperationSetOperand(copy.to_raw(), 0, new.to_raw()) };
        builder.result_of(copy)
    }

    /// A tensor as a kernel reads it: `known` static extents, in front of them the dynamic one where the
    /// tensor has one.
    ///
    /// # Errors
    /// At the builder's place, when the tensor's element type is not one of a kernel's.
    pub(super) fn operand(
        &mut self,
        builder: &Builder<'c>,
        value: Val<'c>,
        shape: &[i64],
    ) -> PassResult<'c, Operand<'c>> {
        let leading = match shape.first() {
            Some(&DYNAMIC) => Some(leading_of(builder, value, shape)?),
            _ => None,
        };
        let tensor = self.resolve(builder, value)?;
        let tensor = reshape(builder, tensor, shape, leading)?;
        operand(builder, tensor, shape)
    }

    /// A new tensor that a kernel fills, of the shape that `value` has in the kernel's space.
    ///
    /// # Errors
    /// As for [`Self::operand`].
    pub(super) fn out(
        &mut self,
        builder: &Builder<'c>,
        value: Val<'c>,
        shape: &[i64],
    ) -> PassResult<'c, Operand<'c>> {
        let element = builder.tensor_of(value)?.element;
        let sizes: Vec<_> = match shape.first() {
            Some(&DYNAMIC) => vec![leading_of(builder, value, shape)?],
            _ => Vec::new(),
        };
        let r#type = builder.tensor(shape, element)?;
        let tensor = builder.value("tensor.empty", &sizes, r#type, &[])?;
        operand(builder, tensor, shape)
    }

    /// Launches a kernel; its results take the place of `values`, in their own shapes.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn launch(
        &mut self,
        builder: &Builder<'c>,
        kernel: &str,
        grid: [Val<'c>; 3],
        ins: &[Val<'c>],
        outs: &[(Val<'c>, Operand<'c>)],
    ) -> PassResult<'c> {
        let tensors: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch(builder, kernel, grid, ins, &tensors)?;
        for ((value, _), result) in outs.iter().zip(results) {
            let shape = builder.tensor_of(*value)?.shape;
            let leading = match shape.first() {
                Some(&DYNAMIC) => Some(leading(builder, *value)?),
                _ => None,
            };
            let result = reshape(builder, result, &shape, leading)?;
            self.stored.insert(identity(*value), result);
        }
        Ok(())
    }
}

pub(super) fn operand<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Operand<'c>> {
    let element = builder.tensor_of(tensor)?.element;
    check_element(builder, element)?;
    let memref = axe_dialect::memref_type(builder.location, shape, element, None, None)
        .ok_or_else(|| PassError::new(builder.location, format!("no memref of {element}")))?;
    Ok(Operand {
        tensor,
        shape: shape.to_vec(),
        memref,
    })
}

/// Whether kernels move elements of the type: whole bytes, up to 8.
fn check_element<'c>(builder: &Builder<'c>, element: Type<'c>) -> PassResult<'c> {
    match types::bits(element) {
        Some(8 | 16 | 32 | 64) => Ok(()),
        _ => Err(PassError::new(
            builder.location,
            format!(
                "expected elements of 8, 16, 32 or 64 bits in a kernel's tensors, got {element}"
            ),
        )),
    }
}

/// The shape of a value of a kind in the space of `total` elements and `columns` columns; with a batch, its
/// number of products leads.
pub(super) fn shape_in(total: Size, columns: i64, batch: Option<[i64; 2]>, kind: Kind) -> Vec<i64> {
    let rows = match batch {
        Some(batch) => batch.to_vec(),
        None if total.dynamic => vec![DYNAMIC],
        None => vec![total.known / columns.max(1)],
    };
    match kind {
        Kind::Full => [rows, vec![columns]].concat(),
        Kind::Row => rows,
        Kind::Column => vec![columns],
    }
}

/// Groups of the dimensions `fine` whose products are `coarse`; `None` when there are none.
fn groups(fine: &[i64], coarse: &[i64]) -> Option<Vec<Vec<i64>>> {
    if coarse.is_empty() {
        return fine.iter().all(|extent| *extent == 1).then(Vec::new);
    }
    let mut groups = vec![Vec::new(); coarse.len()];
    let mut next = fine.len();
    for (at, &extent) in coarse.iter().enumerate().rev() {
        let group = groups.get_mut(at)?;
        let mut have = 1i64;
        loop {
            let done = have == extent && !group.is_empty() && at > 0;
            if done || next == 0 {
                break;
            }
            next -= 1;
            have = match *fine.get(next)? {
                DYNAMIC => DYNAMIC,
                _ if have == DYNAMIC => DYNAMIC,
                size => have.checked_mul(size)?,
            };
            group.insert(0, i64::try_from(next).ok()?);
        }
        if have != extent || group.is_empty() {
            return None;
        }
    }
    (next == 0).then_some(groups)
}

/// The same elements in another shape; `leading` is its dynamic extent.
pub(super) fn reshape<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    shape: &[i64],
    leading: Option<Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let have = builder.tensor_of(tensor)?.shape;
    if have == shape {
        return Ok(tensor);
    }
    if let Some(groups) = groups(&have, shape).filter(|_| shape.len() < have.len()) {
        return builder.collapse(tensor, &groups);
    }
    let sizes: Vec<_> = leading.into_iter().collect();
    if let Some(groups) = groups(shape, &have).filter(|_| shape.len() > have.len()) {
        return builder.expand(tensor, shape, &groups, &sizes);
    }
    let all = |rank: usize| vec![(0i64..).take(rank).collect::<Vec<_>>()];
    let flat = builder.collapse(tensor, &all(have.len()))?;
    builder.expand(flat, shape, &all(shape.len()), &sizes)
}

/// The dynamic leading extent that `value` has in another shape.
pub(super) fn leading_of<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Val<'c>> {
    let known: i64 = shape.iter().skip(1).product();
    let own = leading(builder, value)?;
    let size = Size::of(value).map_or(1, |size| size.known);
    scaled(builder, own, size, known)
}

/// `value * by / per`.
fn scaled<'c>(builder: &Builder<'c>, value: Val<'c>, by: i64, per: i64) -> PassResult<'c, Val<'c>> {
    let index = builder.index_type();
    if per > 0 && by % per == 0 {
        return match by / per {
            1 => Ok(value),
            factor => builder.value("arith.muli", &[value, builder.index(factor)?], index, &[]),
        };
    }
    let product = builder.value("arith.muli", &[value, builder.index(by)?], index, &[])?;
    builder.value("arith.divui", &[product, builder.index(per)?], index, &[])
}

/// The leading extent of a value of the logical function, from values that no operator makes.
///
/// # Errors
/// When the value is not a tensor, or its producer does not determine the extent.
pub(super) fn leading<'c>(builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(value)?.shape;
    match shape.first() {
        Some(&DYNAMIC) => {}
        Some(extent) => return builder.index(*extent),
        None => return builder.index(1),
    }
    let Some(op) = defining(value) else {
        return builder.extent(value, 0);
    };
    let values = operands(op);
    let dims = op
        .attribute("dims")
        .ok()
        .and_then(attribute::read_i64s)
        .unwrap_or_default();
    let from = |at: usize| match values.get(at) {
        Some(value) => Ok(*value),
        None => Err(PassError::new(
            op.location(),
            "its leading extent is not known",
        )),
    };
    match name(op).as_str() {
        "axe.map" | "axe.cast" | "axe.reduce" | "axe.transpose" | "tensor.cast" => {
            leading(builder, from(0)?)
        }
        "axe.broadcast" if dims.contains(&0) => from(1),
        "axe.broadcast" => leading(builder, from(0)?),
        "axe.fill" => from(1),
        "tensor.empty" => from(0),
        "axe.gemm" | "axe.scaled_gemm" => {
            let dynamic = |value: Val<'c>| {
                TensorType::of_value(value)
                    .is_some_and(|tensor| tensor.shape.first() == Some(&DYNAMIC))
            };
            leading(
                builder,
                if dynamic(from(0)?) {
                    from(0)?
                } else {
                    from(1)?
                },
            )
        }
        "tensor.expand_shape" | "tensor.collapse_shape" => {
            let source = from(0)?;
            let own = leading(builder, source)?;
            let known = |value| Size::of(value).map_or(1, |size: Size| size.known);
            scaled(builder, own, known(source), known(value))
        }
        _ => builder.extent(value, 0),
    }
}

/// Bytes of an element.
pub(super) fn element_bytes(element: Type<'_>) -> i64 {
    types::bits(element).map_or(4, |bits| i64::from(bits.div_ceil(8)))
}

/// Checks that no extent of an operation's tensors but the leading one is dynamic, that none is zero, and
/// that none has a layout yet.
///
/// # Errors
/// At the operation.
pub(super) fn check_tensors<'c>(op: Op<'c>) -> PassResult<'c> {
    for value in operands(op)
        .into_iter()
        .chain(axe_passes::ir::value::results(op))
    {
        let Some(tensor) = TensorType::of_value(value) else {
            continue;
        };
        let error = |what: &str| {
            let r#type = value.r#type();
            Err(PassError::new(op.location(), format!("{what}, got {type}")))
        };
        if tensor.encoded {
            return error("expected logical tensors without layouts");
        }
        if tensor.shape.iter().skip(1).any(|extent| *extent == DYNAMIC) {
            return error("expected every extent but the leading one to be static");
        }
        if tensor.shape.contains(&0) {
            return error("expected a tensor with elements");
        }
        if Size::of(value).is_none() {
            return error("expected a tensor of fewer than 2^63 elements");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_grouped_by_their_products() {
        assert_eq!(
            groups(&[2, 4, 64], &[8, 64]),
            Some(vec![vec![0, 1], vec![2]])
        );
        assert_eq!(
            groups(&[DYNAMIC, 4, 8], &[DYNAMIC, 8]),
            Some(vec![vec![0, 1], vec![2]])
        );
        assert_eq!(groups(&[128, 1], &[128]), Some(vec![vec![0, 1]]));
        assert_eq!(groups(&[1, 128], &[128]), Some(vec![vec![0, 1]]));
        assert_eq!(groups(&[6, 4], &[4, 6]), None);
        assert_eq!(groups(&[], &[]), Some(vec![]));
        assert_eq!(groups(&[1, 1], &[]), Some(vec![]));
    }
}
