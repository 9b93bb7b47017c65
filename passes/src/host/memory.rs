//! Operators on storage: allocation, copies, fills.

use super::gemm::Matrix;
use super::ops::{generate, memref, nest, sharpen};
use super::scalar::poison;
use super::storage::Storage;
use super::{Lowering, address::Address};
use crate::error::{PassError, PassResult};
use crate::ir::value::{identity, operands, parts};
use crate::ir::{Builder, Int, Op, Val, types};
use axe_dialect::ops::{AllocOp, CopyOp, FillOp};
use axe_dialect::{element_type, layout_of};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

impl<'c> Lowering<'c> {
    /// `axe.alloc`: a flat buffer for the addresses of the layout, with the pattern of memory that nothing wrote.
    ///
    /// # Errors
    /// When the layout's addresses are no range of memory.
    pub(super) fn alloc(&mut self, builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c> {
        let AllocOp { result, .. } = parts(op)?;
        let r#type = result.r#type();
        let fail = |message: String| {
            PassError::new(
                op.location(),
                format!("the CPU target cannot store {type}: {message}"),
            )
        };
        let address = Address::of_allocation(r#type).map_err(fail)?;
        let elements = address.elements().map_err(fail)?;
        let element = element_type(r#type);
        let flat = memref(builder, &[elements], element)?;
        let buffer = builder.value("memref.alloc", &[], flat, &[builder.segments(&[0, 0])])?;
        let storage = Storage::Whole(buffer, vec![Int::Known(elements)]);
        let pattern = poison(builder, element)?;
        nest(builder, &[Int::Known(elements)], &mut |inner, at| {
            storage.store(inner, at, pattern)
        })?;
        self.buffers.insert(identity(result), (buffer, address));
        Ok(())
    }

    /// `axe.copy`: the tensor read from storage, or `None` after a write into storage. An asynchronous copy is done
    /// at once; CTAs run one after the other, so that one that accumulates reads, adds and writes.
    ///
    /// # Errors
    /// When storage cannot be followed.
    pub(super) fn copy(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let copy: CopyOp = parts(op)?;
        let (source, extents) = Matrix::of(self, builder, copy.source)?;
        let Some(dest) = copy.dest else {
            let result = builder.result_of(op)?;
            if let Matrix::Tensor(tensor) = source {
                return builder.with_type(tensor, result.r#type()).map(Some);
            }
            let shape = types::shape(result.r#type()).unwrap_or_default();
            let sizes = sharpen(extents, &shape);
            return generate(builder, result.r#type(), &sizes, |inner, at| {
                source.element(inner, at, copy.pad)
            })
            .map(Some);
        };
        let storage = self.storage(builder, dest)?;
        let shape = types::shape(dest.r#type()).unwrap_or_default();
        nest(builder, &sharpen(extents, &shape), &mut |inner, at| {
            let mut element = source.element(inner, at, copy.pad)?;
            if copy.accumulate {
                element = sum(inner, storage.load(inner, at, None)?, element)?;
            }
            storage.store(inner, at, element)
        })?;
        Ok(None)
    }

    /// `axe.fill` of storage.
    ///
    /// # Errors
    /// When storage cannot be followed.
    pub(super) fn fill(&self, builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c> {
        let fill: FillOp = parts(op)?;
        let Some(dest) = fill.dest else {
            return Err(PassError::new(
                op.location(),
                "a fill without a destination",
            ));
        };
        let storage = self.storage(builder, dest)?;
        let extents = self.extents(builder, dest)?;
        nest(builder, &extents, &mut |inner, at| {
            storage.store(inner, at, fill.value)
        })
    }

    /// Loads, stores and extents of memrefs that another dialect's operation reads through axe's types.
    ///
    /// # Errors
    /// When storage cannot be followed.
    pub(super) fn upstream(&self, op: Op<'c>) -> PassResult<'c, bool> {
        let all = operands(op);
        let name = crate::ir::value::name(op);
        let at = usize::from(name == "memref.store");
        let Some(memref) = all.get(at).copied().filter(|value| self.is_axe(*value)) else {
            return Ok(false);
        };
        let builder = Builder::before(op);
        let indices: Vec<_> = all.iter().skip(at + 1).copied().map(Int::of).collect();
        match name.as_str() {
            "memref.load" => {
                let value = self
                    .storage(&builder, memref)?
                    .load(&builder, &indices, None)?;
                crate::ir::value::replace_all_uses(builder.result_of(op)?, value);
            }
            "memref.store" => {
                let value = all.first().copied().unwrap_or(memref);
                self.storage(&builder, memref)?
                    .store(&builder, &indices, value)?;
            }
            "memref.dim" => {
                let extents = self.extents(&builder, memref)?;
                let extent = match indices.first() {
                    Some(Int::Known(dim)) => {
                        usize::try_from(*dim).ok().and_then(|dim| extents.get(dim))
                    }
                    _ => None,
                };
                let Some(extent) = extent else {
                    return Err(PassError::new(
                        op.location(),
                        "expected a constant dimension of the memref",
                    ));
                };
                crate::ir::value::replace_all_uses(
                    builder.result_of(op)?,
                    builder.ints().value(*extent)?,
                );
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a memref is one of axe's: allocated, sliced or viewed by it, or with one of its layouts.
    fn is_axe(&self, value: Val<'c>) -> bool {
        types::is_memref(value.r#type())
            && (layout_of(value.r#type()).is_some()
                || crate::ir::value::defining(value)
                    .is_some_and(|op| crate::ir::value::name(op).starts_with("axe.")))
    }
}

/// `a + b` of an element type.
fn sum<'c>(builder: &Builder<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
    let name = if types::is_float(a.r#type()) {
        "arith.addf"
    } else {
        "arith.addi"
    };
    builder.value(name, &[a, b], a.r#type(), &[])
}
