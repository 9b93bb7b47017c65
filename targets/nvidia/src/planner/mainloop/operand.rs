//! Operand tiles of `wgmma`: A's and B's ways from global to shared memory, by the tensor memory accelerator.

use crate::planner::gemm::product::Gemm;
use crate::planner::layouts::ROW_BYTES;
use axe_dialect::element_type;
use axe_layout::{Axis, Iter, Layout, Swizzle};
use axe_passes::PassResult;
use axe_passes::build::{Code, Traffic, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::Pairs;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// One operand's way from global to shared memory.
pub(in crate::planner) struct OperandTile<'c> {
    global: Argument<'c>,
    ring: Val<'c>,
    shape: [i64; 2],
    /// The shape of a stage, of which a last step fills a part.
    whole: [i64; 2],
    stage: Type<'c>,
    /// Whether memory has k first.
    k_first: bool,
    /// How far apart in global memory, in rows and k, the boxes of both halves are that a stage is made of, where it is.
    halves: Option<[i64; 2]>,
    /// Where the second half is, where that is another matrix.
    second: Option<Argument<'c>>,
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
            whole: shape,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first,
            halves: None,
            second: None,
        })
    }

    /// The same where a stage is made of the columns of both halves, of every other one and its neighbours, or of those of a second matrix.
    pub(in crate::planner) fn in_halves(
        self,
        gemm: &Gemm<'c>,
        second: Option<Argument<'c>>,
    ) -> Self {
        let halves = match (gemm.pairs, &second) {
            (Some(Pairs::Halves), _) => Some([gemm.n / 2, 0]),
            (Some(Pairs::Interleaved), _) => Some([0, gemm.k]),
            (None, Some(_)) => Some([0, 0]),
            (None, None) => None,
        };
        Self {
            halves,
            second,
            ..self
        }
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
        let stage = swizzled(None, self.whole, element_bytes(element)).map_err(failed)?;
        let stage = stage
            .slice(&self.whole, &shape.map(|extent| 0..extent))
            .map_err(failed)?;
        Ok(Self {
            global: self.global.clone(),
            ring: self.ring,
            shape,
            whole: self.whole,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first: self.k_first,
            halves: self.halves,
            second: self.second.clone(),
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
        let Some([apart, behind]) = self.halves else {
            let whole = self.from(code, &self.global, (batch, [start, k]), &self.shape)?;
            return code.copy_signal(whole, self.stage(code, stage)?, slot, traffic);
        };
        let [shape, second] = self.half();
        let next = [
            code.add(start, code.index(apart)?)?,
            code.add(k, code.index(behind)?)?,
        ];
        let other = self.second.as_ref().unwrap_or(&self.global);
        for (of, from, at) in [(&self.global, [start, k], [0, 0]), (other, next, second)] {
            let from = self.from(code, of, (batch, from), &shape)?;
            let to = self.half_of_stage(code, stage, (at, shape))?;
            code.copy_signal(from, to, slot, traffic)?;
        }
        Ok(())
    }

    /// A box in global memory.
    fn from(
        &self,
        code: Code<'c>,
        of: &Argument<'c>,
        (batch, [start, k]): (Option<Val<'c>>, [Val<'c>; 2]),
        shape: &[i64],
    ) -> PassResult<'c, Val<'c>> {
        let at = if self.k_first { [k, start] } else { [start, k] };
        // A matrix that the whole batch shares has no number.
        let batch = batch.filter(|_| of.extents.len() > at.len());
        let at: Vec<_> = batch.into_iter().chain(at).collect();
        code.global_box(of.memref, &of.extents, &at, shape)
    }

    /// The shape of a half of a stage's rows along the result, and the place of the second half.
    const fn half(&self) -> [[i64; 2]; 2] {
        let [outer, inner] = self.shape;
        match self.k_first {
            true => [[outer, inner / 2], [0, inner / 2]],
            false => [[outer / 2, inner], [outer / 2, 0]],
        }
    }

    /// A half of a stage.
    fn half_of_stage(
        &self,
        code: Code<'c>,
        stage: Val<'c>,
        (at, shape): ([i64; 2], [i64; 2]),
    ) -> PassResult<'c, Val<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let element = element_type(self.global.memref.r#type());
        let whole = swizzled(None, self.whole, element_bytes(element)).map_err(failed)?;
        let half = whole.slice(&self.whole, &shape.map(|extent| 0..extent));
        let half = code.memref(&shape, element, &half.map_err(failed)?, Some("shared"))?;
        let [outer, inner] = at;
        code.slice(
            self.ring,
            &[stage, code.index(outer)?, code.index(inner)?],
            half,
        )
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
