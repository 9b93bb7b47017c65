//! Tensors of attention in memory: views by their strides, one dimension for each digit of the batch, and boxes of rows or keys.

use super::config::BYTES;
use crate::planner::mainloop::operand::swizzled;
use axe_dialect::element_type;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::Read;
use axe_passes::fuse::attention::index::{Step, Var, stride_of};
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// Dimensions of a tensor map (PTX ISA 5.5.2).
const MOST_DIMENSIONS: usize = 5;
/// What strides of a tensor map are multiples of, in bytes (PTX ISA 5.5.2).
const STRIDE_BYTES: i64 = 16;

/// How a tensor lies in memory: the digits of the batch, and two dimensions.
#[derive(Clone, Debug)]
pub(super) struct Strides {
    /// Of so many problems.
    problems: i64,
    batch: Vec<Step>,
    extents: [i64; 2],
    strides: [i64; 2],
}

impl Strides {
    /// Those of a tensor whose dimensions are these variables, where they have one stride each; the last may be repeated.
    pub(super) fn of(read: &Read<'_>, problems: i64, vars: [(Var, i64); 2]) -> Option<Self> {
        let known = |step: &&Step| vars.iter().any(|(var, _)| *var == step.digit.var);
        let (own, batch): (Vec<_>, Vec<_>) = read.steps.iter().partition(known);
        let own: Vec<Step> = own.into_iter().copied().collect();
        let stride = |(var, extent)| stride_of(&own, var, extent);
        let strides = [stride(vars[0])?, stride(vars[1])?];
        let batch: Vec<Step> = batch.into_iter().copied().collect();
        let only_batch = batch.iter().all(|step| step.digit.var == Var::Batch);
        only_batch.then_some(Self {
            problems,
            batch,
            extents: vars.map(|(_, extent)| extent),
            strides,
        })
    }

    /// Why the tensor memory accelerator does not move boxes of it; elements have `bytes`.
    pub(super) fn declined(&self, bytes: i64) -> Option<String> {
        let [rows, columns] = self.extents;
        if self.strides[1] != 1 && columns > 1 {
            return Some("has columns that do not follow each other in memory".to_owned());
        }
        if self.strides[0] == 0 && rows > 1 {
            return Some("repeats its rows".to_owned());
        }
        let steps = self.batch.iter().map(|step| step.elements);
        let all = steps.chain((rows > 1).then_some(self.strides[0]));
        let odd = all
            .map(|stride| stride.saturating_mul(bytes))
            .find(|stride| stride % STRIDE_BYTES != 0);
        if let Some(odd) = odd {
            return Some(format!(
                "has rows {odd} bytes apart: a tensor map takes multiples of {STRIDE_BYTES}"
            ));
        }
        (self.batch.len() + 2 > MOST_DIMENSIONS).then(|| {
            format!(
                "has {} dimensions in memory: a tensor map takes {MOST_DIMENSIONS}",
                self.batch.len() + 2
            )
        })
    }

    /// Whether each row, and each column, has an element of its own.
    pub(super) fn has(&self) -> [bool; 2] {
        [0, 1].map(|at| self.strides[at] != 0)
    }

    /// The tensor as the kernel reads it.
    pub(super) fn view<'c>(&self, code: Code<'c>, memref: Val<'c>) -> PassResult<'c, View<'c>> {
        let kept = [0, 1]
            .into_iter()
            .filter(|at| self.strides[*at] != 0 || self.extents[*at] == 1);
        let kept: Vec<_> = kept.collect();
        let mut shape: Vec<i64> = self.batch.iter().map(|step| step.digit.extent).collect();
        let mut strides: Vec<i64> = self.batch.iter().map(|step| step.elements).collect();
        for &at in &kept {
            shape.push(self.extents[at]);
            strides.push(self.stride(at));
        }
        let layout = Layout::strided(&shape, &strides)
            .map_err(|error| layout_error(code.builder.location, error))?;
        let r#type = code.memref(&shape, element_type(memref.r#type()), &layout, None)?;
        Ok(View {
            memref: code.view(memref, r#type)?,
            strides: self.clone(),
            kept,
        })
    }

    /// The stride of a dimension; of one element, that of as many as a row has.
    fn stride(&self, at: usize) -> i64 {
        match (self.strides[at], at) {
            (0, 0) => self.extents[1],
            (0, _) => 1,
            (stride, _) => stride,
        }
    }
}

/// A tensor in memory with a dimension for each digit of the batch, and one or two behind them.
#[derive(Clone, Debug)]
pub(super) struct View<'c> {
    memref: Val<'c>,
    strides: Strides,
    kept: Vec<usize>,
}

impl<'c> View<'c> {
    /// The box of a shape at a problem of the batch and two indices.
    pub(super) fn boxed(
        &self,
        code: Code<'c>,
        batch: Val<'c>,
        at: [Val<'c>; 2],
        shape: [i64; 2],
    ) -> PassResult<'c, Val<'c>> {
        let mut origin = Vec::new();
        for step in &self.strides.batch {
            origin.push(digit(code, batch, step, self.strides.problems)?);
        }
        origin.extend(self.kept.iter().map(|dim| at[*dim]));
        let own: Vec<_> = self.kept.iter().map(|dim| shape[*dim]).collect();
        let strides: Vec<_> = self
            .kept
            .iter()
            .map(|dim| self.strides.stride(*dim))
            .collect();
        code.strided_box(self.memref, &origin, &own, &strides)
    }
}

/// A digit of the number of one of so many problems.
fn digit<'c>(
    code: Code<'c>,
    batch: Val<'c>,
    step: &Step,
    problems: i64,
) -> PassResult<'c, Val<'c>> {
    let Step { digit, .. } = step;
    let above = match digit.stride {
        1 => batch,
        stride => code.div(batch, code.index(stride)?)?,
    };
    match digit.stride.saturating_mul(digit.extent) == problems {
        true => Ok(above),
        false => code.rem(above, code.index(digit.extent)?),
    }
}

/// Stages of blocks in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Ring<'c> {
    stages: i64,
    storage: Val<'c>,
    stage: Type<'c>,
    /// Its pipeline.
    pub pipeline: Val<'c>,
    /// The shape of a block.
    pub shape: [i64; 2],
}

impl<'c> Ring<'c> {
    /// A ring of stages.
    pub(super) fn new(
        code: Code<'c>,
        stages: i64,
        shape: [i64; 2],
        element: Type<'c>,
    ) -> PassResult<'c, Self> {
        let failed = |error| layout_error(code.builder.location, error);
        let all = swizzled(Some(stages), shape, BYTES).map_err(failed)?;
        let one = swizzled(None, shape, BYTES).map_err(failed)?;
        Ok(Self {
            stages,
            storage: code.alloc(&[stages, shape[0], shape[1]], element, &all)?,
            stage: code.memref(&shape, element, &one, Some("shared"))?,
            pipeline: code.pipeline(stages)?,
            shape,
        })
    }

    /// The block in a stage.
    pub(super) fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        let stage = if self.stages == 1 { zero } else { stage };
        code.slice(self.storage, &[stage, zero, zero], self.stage)
    }
}
