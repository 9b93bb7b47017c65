//! A tile of a group's space in registers: its layout, and those of a value a row and a value a column.

use super::space::Kind;
use crate::PassResult;
use crate::build::{Code, layout_error};
use axe_layout::{Axis, Iter, Layout, Result};
use melior::ir::Type;
use std::ops::Range;

/// A tile of the space in registers.
#[derive(Clone, Debug)]
pub struct Registers {
    /// Rows and columns.
    pub shape: [i64; 2],
    full: Layout,
    row: Layout,
    column: Layout,
}

impl Registers {
    /// The tile with this layout of the whole.
    pub fn new(shape: [i64; 2], full: Layout) -> Result<Self> {
        let row = without(&full, &shape, 1)?;
        let column = without(&full, &shape, 0)?;
        Ok(Self {
            shape,
            full,
            row,
            column,
        })
    }

    /// The columns `[first, first + columns)` of the tile, whose rows are held as the tile's are.
    pub fn part(&self, first: i64, columns: i64) -> Result<Self> {
        let [rows, _] = self.shape;
        let region = [0..rows, first..first.saturating_add(columns)];
        let part = Self::new([rows, columns], part(&self.full, &self.shape, &region)?)?;
        Ok(Self {
            row: self.row.clone(),
            ..part
        })
    }

    pub(super) fn of(&self, kind: Kind) -> (Vec<i64>, &Layout) {
        let [rows, columns] = self.shape;
        match kind {
            // A pair has the register of its first column.
            Kind::Full | Kind::Pairs(_) => (vec![rows, columns], &self.full),
            Kind::Row => (vec![rows], &self.row),
            Kind::Column => (vec![columns], &self.column),
            // One block at a time.
            Kind::Blocks(_) => (vec![rows, 1], &self.row),
        }
    }

    /// The type of a value of this kind.
    pub fn r#type<'c>(
        &self,
        code: Code<'c>,
        kind: Kind,
        element: Type<'c>,
    ) -> PassResult<'c, Type<'c>> {
        let (shape, layout) = self.of(kind);
        code.fragment(&shape, element, layout)
    }
}

/// The register tensors of a tile whose whole has this layout.
///
/// # Errors
/// When the layout does not have the shape.
pub fn registers<'c>(code: Code<'c>, shape: [i64; 2], full: Layout) -> PassResult<'c, Registers> {
    Registers::new(shape, full).map_err(|error| layout_error(code.builder.location, error))
}

/// The layout of a register tensor without dimension `dim`, as a reduction leaves it: the dropped places of
/// threads become replicas, the kept registers are numbered densely in their order.
///
/// # Errors
/// When the layout does not have the shape.
pub fn without(of: &Layout, shape: &[i64], dim: usize) -> Result<Layout> {
    let register = Axis::new("reg")?;
    let grouped = of.group(shape)?;
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for (at, block) in grouped.blocks().enumerate() {
        let side = if at == dim { &mut dropped } else { &mut kept };
        side.extend(block.iter().copied().filter(|iter| iter.extent > 1));
    }
    let mut registers: Vec<usize> = (0..kept.len())
        .filter(|&at| kept[at].axis == register)
        .collect();
    registers.sort_by_key(|&at| kept[at].stride);
    let mut next = 1;
    for at in registers {
        kept[at].stride = next;
        next *= kept[at].extent;
    }
    let replicas = dropped
        .into_iter()
        .filter(|iter| iter.axis != register)
        .chain(of.replica().iter().copied());
    if kept.is_empty() {
        kept.push(Iter::new(1, 1, register));
    }
    Layout::from_shard(kept)?.with_replica(replicas)
}

/// The layout of a box of a register tensor: its elements in their threads, and in as many registers as it has, where
/// those of the tensor's other parts may lie between.
///
/// # Errors
/// When the box has no layout.
pub fn part(layout: &Layout, shape: &[i64], region: &[Range<i64>]) -> Result<Layout> {
    without_gaps(&layout.slice(shape, region)?)
}

fn without_gaps(part: &Layout) -> Result<Layout> {
    let register: Axis = "reg".parse()?;
    let mut shard = part.shard().to_vec();
    let mut order: Vec<_> = (0..shard.len())
        .filter(|at| {
            shard
                .get(*at)
                .is_some_and(|iter| iter.axis == register && iter.extent > 1)
        })
        .collect();
    order.sort_by_key(|at| shard.get(*at).map(|iter| iter.stride));
    let mut stride = 1;
    for at in order {
        if let Some(iter) = shard.get_mut(at) {
            iter.stride = stride;
            stride *= iter.extent;
        }
    }
    let mut offset = part.offset().clone();
    offset.set(register, 0);
    Layout::new(shard, part.replica().to_vec(), offset, part.swizzle())
}
