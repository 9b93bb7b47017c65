//! Stores of register tensors: a loop over tiles of the destination, in which the stored value is computed tile by
//! tile from storage. Register tensors cannot be cut, so that everything between the loads and the store moves into
//! the loop; a tile's layout is the algebra's slice, and has to be the same for every tile, up to the registers.

use super::Options;
use super::memory::{fail, slice};
use super::part::{Part, along, copy_of, extents, map_of, nest};
use super::product;
use crate::boxes;
use crate::error::PassResult;
use crate::ir::value::{self, defining, identity, name, only_result, operands};
use crate::ir::{Builder, Op, Val, types, walk};
use axe_dialect::ops::{
    self, BroadcastOp, CopyOp, FillOp, MaskOp, ReduceOp, SliceOp, Trait, TransposeOp, ViewOp,
};
use axe_dialect::{Operands, Typed, element_type, layout_of, tensor_type};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// Tiles a store; false where it is no larger than a tile.
pub(super) fn store<'c>(op: Op<'c>, options: &Options) -> PassResult<'c, bool> {
    let Some(CopyOp {
        source: value,
        dest: Some(target),
        pad: None,
        signal: None,
        ..
    }) = CopyOp::of(op)
    else {
        return Ok(false);
    };
    let shape = types::shape(value.r#type()).unwrap_or_default();
    if !options.splits(&shape) {
        return Ok(false);
    }
    let builder = Builder::before(op);
    let dims = along(&shape, options, true, |_| {
        Err(fail(op, "expected a register tensor of static shape"))
    })?;
    nest(&builder, &dims, &[], &mut |builder, parts, _| {
        let tiles = Tiles {
            root: op,
            target,
            options,
            builder: *builder,
        };
        let tile = tiles.value(value, parts)?;
        copy_of(builder, op, &[tile, slice(builder, target, parts)?], None);
        Ok(Vec::new())
    })?;
    walk::erase(op);
    Ok(true)
}

/// Computes tiles of values in front of a store.
pub(super) struct Tiles<'a, 'c> {
    /// The store.
    pub root: Op<'c>,
    /// What it writes.
    pub target: Val<'c>,
    pub options: &'a Options,
    pub builder: Builder<'c>,
}

impl<'c> Tiles<'_, 'c> {
    /// The tile of a register tensor.
    ///
    /// # Errors
    /// Why it cannot be computed tile by tile.
    pub(super) fn value(&self, value: Val<'c>, parts: &[Part<'c>]) -> PassResult<'c, Val<'c>> {
        if parts.iter().all(|part| part.at.is_none()) {
            return Ok(value);
        }
        let op = defining(value).ok_or_else(|| {
            fail(
                self.root,
                "the stored value comes from a loop or a branch: it cannot be computed tile by tile",
            )
        })?;
        let r#type = self.tile_type(op, value, parts)?;
        let built = |operands: &[Val<'c>]| {
            let copy = copy_of(&self.builder, op, operands, Some(r#type));
            self.builder.result_of(copy)
        };
        let operands = operands(op);
        let source = || {
            operands
                .first()
                .copied()
                .ok_or_else(|| fail(op, "expected a source"))
        };
        match name(op).as_str() {
            ops::FILL => built(&operands),
            ops::COPY if types::is_memref(source()?.r#type()) => {
                self.check_load(op, source()?)?;
                let mut operands = operands.clone();
                if let Some(first) = operands.first_mut() {
                    *first = slice(&self.builder, *first, parts)?;
                }
                built(&operands)
            }
            ops::COPY | ops::CAST | ops::MAP => {
                let tile = |operand: &Val<'c>| self.value(*operand, parts);
                let tiles = operands
                    .iter()
                    .map(tile)
                    .collect::<PassResult<'c, Vec<_>>>()?;
                let copy = map_of(&self.builder, op, &tiles, (r#type, parts))?;
                self.builder.result_of(copy)
            }
            ops::MASK => {
                let mask: MaskOp = value::parts(op)?;
                let source = self.value(mask.source, parts)?;
                built(&mask_operands(&self.builder, &mask, source, parts)?.values)
            }
            ops::BROADCAST | ops::REDUCE | ops::TRANSPOSE => {
                built(&[self.value(source()?, &source_parts(op, source()?, parts)?)?])
            }
            ops::GEMM => product::tile(self, op, r#type, parts),
            other => Err(fail(
                self.root,
                format!(
                    "the stored value comes from '{other}', which cannot be computed tile by tile"
                ),
            )),
        }
    }

    /// The type of a tile of a register tensor.
    pub(super) fn tile_type(
        &self,
        op: Op<'c>,
        value: Val<'c>,
        parts: &[Part<'c>],
    ) -> PassResult<'c, Type<'c>> {
        let shape = types::shape(value.r#type()).unwrap_or_default();
        let attribute = layout_of(value.r#type())
            .ok_or_else(|| fail(op, format!("expected a layout on {}", value.r#type())))?;
        let extents = extents(parts);
        let layout = attribute
            .layout()
            .map_err(|error| error.to_string())
            .and_then(|layout| boxes::register_tile(&layout, &shape, &extents))
            .map_err(|why| fail(op, why))?;
        let element = element_type(value.r#type());
        tensor_type(self.builder.location, &extents, element, Some(&layout))
            .ok_or_else(|| fail(op, format!("no tensor has the layout {layout}")))
    }

    /// Whether a read of storage may move to the store: nothing between them writes what it reads, and the store
    /// does not.
    pub(super) fn check_load(&self, load: Op<'c>, source: Val<'c>) -> PassResult<'c> {
        let from = storage(source);
        if identity(from) == identity(storage(self.target)) {
            return Err(fail(
                self.root,
                "the stored value is read from the storage that the copy writes",
            ));
        }
        let mut next = load.next_in_block();
        while let Some(op) = next {
            if op == self.root {
                return Ok(());
            }
            if let Some(why) = writes(op, from) {
                return Err(fail(
                    self.root,
                    format!("the stored value is loaded in front of {why}"),
                ));
            }
            next = op.next_in_block();
        }
        Err(fail(
            self.root,
            "the stored value is loaded in another block",
        ))
    }
}

/// The operands of a masked tile, which counts from the tile's place.
pub(super) fn mask_operands<'c>(
    builder: &Builder<'c>,
    mask: &MaskOp<'c>,
    source: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Operands<'c>> {
    let mut origin = mask.origin.clone();
    for (at, part) in origin.iter_mut().zip(parts) {
        if let Some(by) = part.at {
            *at = builder.value("arith.addi", &[*at, by], builder.index_type(), &[])?;
        }
    }
    Ok(MaskOp::operands(source, &origin, &mask.limit, mask.value))
}

/// Where storage comes from.
fn storage<'c>(memref: Val<'c>) -> Val<'c> {
    let slice = SliceOp::defining(memref).map(|slice| slice.source);
    let view = || ViewOp::defining(memref).map(|view| view.source);
    slice.or_else(view).map_or(memref, storage)
}

/// What an operation may do to storage; `None` when it leaves it as it is.
fn writes(op: Op<'_>, from: Val<'_>) -> Option<String> {
    let name = name(op);
    match name.as_str() {
        ops::COPY | ops::FILL if only_result(op).is_none() => {
            let copied = CopyOp::of(op).and_then(|copy| copy.dest);
            let target = copied.or_else(|| FillOp::of(op)?.dest)?;
            (identity(storage(target)) == identity(from))
                .then(|| format!("a '{name}' that writes the same storage"))
        }
        ops::ALLOC | "memref.dim" | "gpu.block_id" | "gpu.thread_id" | "gpu.grid_dim" => None,
        axe if [Trait::Operator, Trait::StorageView]
            .iter()
            .any(|of| ops::has(axe, *of)) =>
        {
            None
        }
        _ if ["arith.", "math.", "tensor."]
            .iter()
            .any(|prefix| name.starts_with(prefix)) =>
        {
            None
        }
        _ => Some(format!("'{name}'")),
    }
}

/// The parts of an operator's source, from those of its result.
pub(super) fn source_parts<'c>(
    op: Op<'c>,
    source: Val<'c>,
    parts: &[Part<'c>],
) -> PassResult<'c, Vec<Part<'c>>> {
    let shape = types::shape(source.r#type()).unwrap_or_default();
    if let Some(BroadcastOp { dims, .. }) = BroadcastOp::of(op) {
        let kept = (0..).zip(parts).filter(|(dim, _)| !dims.contains(dim));
        return Ok(kept.map(|(_, part)| *part).collect());
    }
    let found: Option<Vec<_>> = if let Some(ReduceOp { dims, .. }) = ReduceOp::of(op) {
        let mut kept = parts.iter();
        let part = |(dim, extent): (i64, &i64)| match dims.contains(&dim) {
            true => Some(Part::whole(*extent, None)),
            false => kept.next().copied(),
        };
        (0..).zip(&shape).map(part).collect()
    } else {
        let permutation = TransposeOp::of(op).map(|op| op.permutation);
        let permutation = permutation.unwrap_or_default();
        let at = |(dim, _): (i64, &i64)| {
            let from = permutation.iter().position(|from| *from == dim)?;
            parts.get(from).copied()
        };
        (0..).zip(&shape).map(at).collect()
    };
    found.ok_or_else(|| fail(op, "its dimensions do not fit its source"))
}
