//! Operand tiles of `wgmma`: A's and B's ways from global to shared memory, by the tensor memory accelerator.

use crate::planner::layouts::ROW_BYTES;
use axe_dialect::element_type;
use axe_layout::{Axis, Iter, Layout, Swizzle};
use axe_passes::PassResult;
use axe_passes::build::{Code, Traffic, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// One operand's way from global to shared memory.
pub(in crate::planner) struct OperandTile<'c> {
    global: Argument<'c>,
    ring: Val<'c>,
    shape: [i64; 2],
    stage: Type<'c>,
    /// Whether memory has k first.
    k_first: bool,
}

/// A swizzled operand tile `[rows, columns]`: pieces of 128 bytes, or of 64 or 32 where those divide the columns, each row after
/// row; `stages` of them when there are several.
///
/// # Errors
/// When it has no layout.
pub(in crate::planner) fn swizzled(
    stages: Option<i64>,
    [rows, columns]: [i64; 2],
    bytes: i64,
) -> axe_layout::Result<Layout> {
    in_pieces(stages, [rows, columns], widest(columns, bytes), bytes)
}

/// The most columns of a piece of 128, 64 or 32 bytes that divide all of them.
pub(in crate::planner) const fn widest(columns: i64, bytes: i64) -> i64 {
    let mut width = ROW_BYTES / bytes;
    while columns % width != 0 {
        width /= 2;
    }
    width
}

/// The same in pieces of so many columns, of 32, 64 or 128 bytes.
///
/// # Errors
/// When it has no layout.
pub(in crate::planner) fn in_pieces(
    stages: Option<i64>,
    [rows, columns]: [i64; 2],
    width: i64,
    bytes: i64,
) -> axe_layout::Result<Layout> {
    let iter = |extent, stride| Iter::new(extent, stride, Axis::M);
    let mut iters: Vec<_> = stages
        .map(|stages| iter(stages, rows * columns))
        .into_iter()
        .collect();
    iters.extend([
        iter(rows, width),
        iter(columns / width, rows * width),
        iter(width, 1),
    ]);
    let span = u32::try_from(width * bytes / 16)
        .unwrap_or(1)
        .trailing_zeros();
    let base = u32::try_from(16 / bytes).unwrap_or(1).trailing_zeros();
    let swizzle = Swizzle::new(span, base, 3, true)?;
    Layout::new(iters, [], axe_layout::Offset::new(), Some(swizzle))
}

impl<'c> OperandTile<'c> {
    /// The tile of an operand in global memory: so many of its rows, along the result, by `k`.
    ///
    /// # Errors
    /// When it has no layout.
    pub(in crate::planner) fn new(
        code: Code<'c>,
        global: Argument<'c>,
        stages: i64,
        k_first: bool,
        [rows, k]: [i64; 2],
    ) -> PassResult<'c, Self> {
        let shape = if k_first { [k, rows] } else { [rows, k] };
        // Operands may be floats of 8 bits of two kinds.
        let element = element_type(global.memref.r#type());
        let bytes = element_bytes(element);
        let failed = |error| layout_error(code.builder.location, error);
        let ring = swizzled(Some(stages), shape, bytes).map_err(failed)?;
        let stage = swizzled(None, shape, bytes).map_err(failed)?;
        Ok(Self {
            global,
            ring: code.alloc(&[stages, shape[0], shape[1]], element, &ring)?,
            shape,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first,
        })
    }

    /// The same stages, of whose depth only so much is filled and read.
    ///
    /// # Errors
    /// When it has no layout.
    pub(in crate::planner) fn with_depth(
        &self,
        code: Code<'c>,
        depth: i64,
    ) -> PassResult<'c, Self> {
        let [outer, inner] = self.shape;
        let shape = match self.k_first {
            true => [depth, inner],
            false => [outer, depth],
        };
        let element = element_type(self.global.memref.r#type());
        let failed = |error| layout_error(code.builder.location, error);
        let stage = swizzled(None, self.shape, element_bytes(element)).map_err(failed)?;
        let stage = stage
            .slice(&self.shape, &shape.map(|extent| 0..extent))
            .map_err(failed)?;
        Ok(Self {
            global: self.global.clone(),
            ring: self.ring,
            shape,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first: self.k_first,
        })
    }

    /// Copies the box that begins at this row and this k, of a matrix of the batch, to a stage, and signals its slot.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn copy(
        &self,
        code: Code<'c>,
        batch: Option<Val<'c>>,
        [start, k]: [Val<'c>; 2],
        [slot, stage]: [Val<'c>; 2],
        traffic: Traffic,
    ) -> PassResult<'c> {
        let at = if self.k_first { [k, start] } else { [start, k] };
        let at: Vec<_> = batch.into_iter().chain(at).collect();
        let from = code.global_box(self.global.memref, &self.global.extents, &at, &self.shape)?;
        code.copy_signal(from, self.stage(code, stage)?, slot, traffic)
    }

    /// The tile in a stage.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn stage(
        &self,
        code: Code<'c>,
        stage: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(self.ring, &[stage, zero, zero], self.stage)
    }
}
