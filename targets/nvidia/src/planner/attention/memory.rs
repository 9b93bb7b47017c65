//! Tensors of attention in memory: views by their strides, one dimension for each digit of the batch, and boxes of rows or keys.

use super::lengths::Lengths;
use super::sizes::Sizes;
use crate::facts::chip::SECTOR_BYTES;
use crate::planner::mainloop::operand::{in_pieces, widest};
use axe_dialect::element_type;
use axe_layout::{Axis, Iter, Layout, Offset};
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::Read;
use axe_passes::fuse::attention::index::{Digit, Step, Var, merged, stride_of};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// Dimensions of a tensor map (PTX ISA 5.5.2).
const MOST_DIMENSIONS: usize = 5;
/// What strides of a tensor map are multiples of, in bytes (PTX ISA 5.5.2).
pub(super) const STRIDE_BYTES: i64 = 16;

/// How a tensor lies in memory: the digits of the batch, and two dimensions.
#[derive(Clone, Debug)]
pub(super) struct Strides {
    /// Of so many problems.
    problems: i64,
    batch: Vec<Step>,
    extents: [i64; 2],
    strides: [i64; 2],
    /// Of rows, and of columns, with two strides, how many follow each other by the one in `strides`, and the other stride.
    runs: [Option<[i64; 2]>; 2],
    /// The digit of the problem that rows are of, where problems have one row.
    rows_of: Option<Step>,
    /// Pages, and elements from one to the next, where rows are those of a page.
    pages: Option<[i64; 2]>,
    /// Elements of each row before the first one that is read: of a slice.
    first: i64,
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
        let is_whole = read.first == 0 || strides[1] == 1;
        (only_batch && is_whole).then_some(Self {
            problems,
            batch,
            extents: vars.map(|(_, extent)| extent),
            strides,
            runs: [None; 2],
            rows_of: None,
            pages: None,
            first: read.first,
        })
    }

    /// The same of a tensor whose rows may have two strides, in runs that divide `rows` of a box.
    pub(super) fn of_runs(
        read: &Read<'_>,
        problems: i64,
        vars: [(Var, i64); 2],
        rows: i64,
    ) -> Option<Self> {
        let own = run_of(&steps_of(read, vars[0].0), vars[0].1);
        let own = own.filter(|own| own.strides.iter().all(|stride| *stride != 0));
        Self::in_runs(read, problems, vars, [own, None])?.of_boxes(rows)
    }

    /// The same of a tensor that scores read: packed problems may have it in common, where each of its rows is one of several of the pack, or all
    /// of its rows are those of each problem, in runs that divide `rows` of a box; and so may runs of keys have an element in common, or all
    /// runs the same elements.
    pub(super) fn of_shared(
        read: &Read<'_>,
        problems: i64,
        vars: [(Var, i64); 2],
        rows: i64,
    ) -> Option<Self> {
        let runs = vars.map(|(var, extent)| run_of(&steps_of(read, var), extent));
        Self::in_runs(read, problems, vars, runs)?.of_boxes(rows)
    }

    /// The same of a tensor whose rows and columns have these strides.
    fn in_runs(
        read: &Read<'_>,
        problems: i64,
        vars: [(Var, i64); 2],
        runs: [Option<Run>; 2],
    ) -> Option<Self> {
        let regular = |step: &Step| {
            let mut own = vars.iter().zip(&runs);
            !own.any(|((var, _), run)| *var == step.digit.var && run.is_some())
        };
        let others = Read {
            steps: read.steps.iter().copied().filter(regular).collect(),
            ..read.clone()
        };
        let mut own = Self::of(&others, problems, vars)?;
        for (at, run) in runs.into_iter().enumerate() {
            if let Some(Run { length, strides }) = run {
                own.strides[at] = strides[0];
                own.runs[at] = Some([length, strides[1]]);
            }
        }
        Some(own)
    }

    /// Where runs of rows divide the rows of a box.
    fn of_boxes(self, rows: i64) -> Option<Self> {
        let divides = self.runs[0].is_none_or(|[length, _]| rows % length == 0);
        divides.then_some(self)
    }

    /// How many columns follow each other by one stride, where there are two.
    pub(super) fn run_of_columns(&self) -> Option<i64> {
        self.runs[1].map(|[length, _]| length)
    }

    /// The same where problems have one row: rows are then those of problems that follow each other, of which a tile uses its
    /// first. A tensor map has no boxes of rows where there is one.
    pub(super) fn with_rows_of_problems(mut self) -> Option<Self> {
        if self.extents[0] > 1 {
            return Some(self);
        }
        let own = self.batch.iter().position(|step| step.digit.stride == 1)?;
        let step = self.batch.remove(own);
        self.extents[0] = step.digit.extent;
        self.strides[0] = step.elements;
        self.rows_of = Some(step);
        Some(self)
    }

    /// The same of so many pages, so many elements apart.
    pub(super) fn in_pages(self, pages: [i64; 2]) -> Self {
        Self {
            pages: Some(pages),
            ..self
        }
    }

    /// A tensor by so many problems with digits of these steps, of rows with a stride. Columns follow each other; none where there is
    /// one value a row.
    pub(super) fn new(
        problems: i64,
        batch: Vec<Step>,
        [rows, stride]: [i64; 2],
        columns: Option<i64>,
    ) -> Self {
        Self {
            problems,
            batch: merged(batch),
            extents: [rows, columns.unwrap_or(2)],
            strides: [stride, i64::from(columns.is_some())],
            runs: [None; 2],
            rows_of: None,
            pages: None,
            first: 0,
        }
    }

    /// The same with each row a problem of its own, `problem * rows + row`, and no dimension of rows where there are columns.
    pub(super) fn by_row(&self) -> Self {
        let [rows, columns] = self.extents;
        let row = Digit {
            var: Var::Row,
            extent: rows,
            stride: 1,
        };
        let of = |step: &Step| Step {
            digit: Digit {
                stride: step.digit.stride.saturating_mul(rows),
                ..step.digit
            },
            ..*step
        };
        let own = Step {
            digit: row,
            elements: self.strides[0],
        };
        let batch = self.batch.iter().map(of).chain((rows > 1).then_some(own));
        let has_columns = self.strides[1] != 0 || columns == 1;
        Self {
            problems: self.problems.saturating_mul(rows),
            batch: batch.collect(),
            // A dimension of two without a stride is none of the view.
            extents: [if has_columns { 2 } else { 1 }, columns],
            strides: [i64::from(!has_columns), self.strides[1]],
            ..self.clone()
        }
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
        if self.runs[1].is_some() {
            return Some("has columns of two strides".to_owned());
        }
        let runs = self.runs[0].map(|[_, stride]| stride);
        let all = steps
            .chain((rows > 1).then_some(self.strides[0]))
            .chain(runs)
            .chain(self.pages.map(|[_, elements]| elements));
        let odd = all
            .map(|stride| stride.saturating_mul(bytes))
            .find(|stride| stride % STRIDE_BYTES != 0);
        if let Some(odd) = odd {
            return Some(format!(
                "has rows {odd} bytes apart: a tensor map takes multiples of {STRIDE_BYTES}"
            ));
        }
        let more = usize::from(self.runs[0].is_some()) + usize::from(self.pages.is_some());
        let dimensions = self.batch.len() + 2 + more;
        (dimensions > MOST_DIMENSIONS).then(|| {
            format!("has {dimensions} dimensions in memory: a tensor map takes {MOST_DIMENSIONS}")
        })
    }

    /// Whether each row, and each column, has an element of its own.
    pub(super) fn has(&self) -> [bool; 2] {
        [0, 1].map(|at| self.strides[at] != 0 || self.runs[at].is_some())
    }

    /// Columns of a row.
    pub(super) const fn columns(&self) -> i64 {
        self.extents[1]
    }

    /// The values of problems, in a row of all elements in memory.
    pub(super) fn values<'c>(&self, memref: Val<'c>, sizes: &Sizes<'c>) -> Lengths<'c> {
        Lengths::new(self.batch.clone(), memref, (self.problems, sizes))
    }

    /// Its extents and strides.
    pub(super) fn numbers(&self) -> Vec<i64> {
        let steps = self.batch.iter().chain(&self.rows_of);
        let steps = steps.flat_map(|step| [step.digit.extent, step.digit.stride, step.elements]);
        let own = [self.problems].into_iter().chain(self.extents);
        own.chain(self.strides).chain(steps).collect()
    }

    /// Whether rows of elements of so many bytes begin inside of sectors of memory.
    pub(super) fn straddles(&self, bytes: i64) -> bool {
        let batch = self.batch.iter().chain(&self.rows_of);
        let mut apart = batch
            .map(|step| step.elements)
            .chain([self.strides[0], self.first]);
        // Numbers below zero stand for those that are known at run time only.
        apart.any(|elements| elements > 0 && elements * bytes % SECTOR_BYTES != 0)
    }

    /// Why no kernel has it where some of its strides are known at run time only.
    pub(super) fn irregular(&self, sizes: &Sizes<'_>) -> Option<&'static str> {
        let runs = self.runs.iter().flatten().chain(&self.pages).flatten();
        let mut strides = self.strides.iter().chain(runs);
        let columns = !sizes.knows(self.extents[1]) && self.strides[1] != 0;
        (columns || strides.any(|own| !sizes.knows(*own)))
            .then_some("has rows or columns whose distance is known at run time only")
    }

    /// The tensor as a kernel reads it, of which all extents and strides are known.
    pub(super) fn view<'c>(&self, code: Code<'c>, memref: Val<'c>) -> PassResult<'c, View<'c>> {
        self.sized(code, memref, &Sizes::default())
    }

    /// The tensor as the kernel reads it.
    pub(super) fn sized<'c>(
        &self,
        code: Code<'c>,
        memref: Val<'c>,
        sizes: &Sizes<'c>,
    ) -> PassResult<'c, View<'c>> {
        let has = self.has();
        let kept = [0, 1]
            .into_iter()
            .filter(|at| has[*at] || self.extents[*at] == 1);
        let kept: Vec<_> = kept.collect();
        let shape = self.batch.iter().map(|step| step.digit.extent);
        let pages = self.pages.into_iter();
        let shape: Vec<i64> = pages
            .clone()
            .map(|[count, _]| count)
            .chain(shape)
            .chain(kept.iter().map(|at| self.extent(*at)))
            .collect();
        let batch = self
            .batch
            .iter()
            .map(|step| [step.digit.extent, step.elements]);
        let own = kept.iter().flat_map(|at| self.iters(*at, self.extent(*at)));
        let iters: Vec<_> = pages.chain(batch).chain(own).collect();
        let memref = match iters.iter().flatten().all(|own| sizes.knows(*own)) {
            true => {
                let layout = strided(code, &iters)?;
                let r#type = code.memref(&shape, element_type(memref.r#type()), &layout, None)?;
                code.view(memref, r#type)?
            }
            false => {
                let [extents, strides] =
                    [0, 1].map(|at| iters.iter().map(move |iter| iter[at]).collect::<Vec<_>>());
                let of = |all: &[i64]| all.iter().map(|own| sizes.int(*own)).collect::<Vec<_>>();
                let multiples: Vec<_> = strides.iter().map(|own| sizes.known(*own)).collect();
                code.reinterpret(memref, &of(&extents), &of(&strides), &multiples)?
            }
        };
        Ok(View {
            memref,
            strides: self.clone(),
            kept,
            sizes: sizes.clone(),
        })
    }

    /// The extent of a dimension of the view, in whose rows a slice has others before it.
    fn extent(&self, at: usize) -> i64 {
        match (self.first, at) {
            (0, _) | (_, 0) => self.extents[at],
            (first, _) => self.extents[at].saturating_add(first),
        }
    }

    /// The extents and strides of so many elements of a dimension.
    fn iters(&self, at: usize, extent: i64) -> Vec<[i64; 2]> {
        match self.runs.get(at).copied().flatten() {
            Some([run, stride]) => vec![[extent / run, stride], [run, self.strides[at]]],
            None => vec![[extent, self.stride(at)]],
        }
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
    sizes: Sizes<'c>,
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
        self.slice(code, Vec::new(), batch, (at, shape))
    }

    /// The same in a page.
    pub(super) fn in_page(
        &self,
        code: Code<'c>,
        page: Val<'c>,
        batch: Val<'c>,
        region: ([Val<'c>; 2], [i64; 2]),
    ) -> PassResult<'c, Val<'c>> {
        self.slice(code, vec![page], batch, region)
    }

    fn slice(
        &self,
        code: Code<'c>,
        mut origin: Vec<Val<'c>>,
        batch: Val<'c>,
        (at, shape): ([Val<'c>; 2], [i64; 2]),
    ) -> PassResult<'c, Val<'c>> {
        for step in &self.strides.batch {
            origin.push(digit(
                code,
                batch,
                step,
                (self.strides.problems, &self.sizes),
            )?);
        }
        let row = match &self.strides.rows_of {
            Some(step) => digit(code, batch, step, (self.strides.problems, &self.sizes))?,
            None => at[0],
        };
        let column = match self.strides.first {
            0 => at[1],
            first => code.add(at[1], code.index(first)?)?,
        };
        origin.extend(self.kept.iter().map(|dim| [row, column][*dim]));
        let own: Vec<_> = self.kept.iter().map(|dim| shape[*dim]).collect();
        let iters = self.kept.iter();
        let iters = iters.flat_map(|dim| self.strides.iters(*dim, shape[*dim]));
        let layout = strided(code, &iters.collect::<Vec<_>>())?;
        let element = element_type(self.memref.r#type());
        let r#type = code.memref(&own, element, &layout, None)?;
        code.slice(self.memref, &origin, r#type)
    }
}

/// Places with two strides: those of a run, and from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    length: i64,
    strides: [i64; 2],
}

/// The runs that so many values of a variable with these steps are in; none where no two strides lead from one to the next, or one does.
fn run_of(steps: &[Step], all: i64) -> Option<Run> {
    let digits = |step: &Step| (step.digit.extent, step.digit.stride, step.elements);
    let run = |length, strides| Some(Run { length, strides });
    match steps.iter().map(digits).collect::<Vec<_>>()[..] {
        [(extent, 1, elements)] if extent < all && all % extent == 0 => run(extent, [elements, 0]),
        [(extent, stride @ 2.., elements)] if stride.checked_mul(extent) == Some(all) => {
            run(stride, [0, elements])
        }
        [(extent, stride, outer), (inner, 1, elements)]
            if stride == inner && inner.checked_mul(extent) == Some(all) =>
        {
            run(inner, [elements, outer])
        }
        _ => None,
    }
}

/// The digits of a variable that a tensor's place depends on.
fn steps_of(read: &Read<'_>, var: Var) -> Vec<Step> {
    let steps = read.steps.iter().filter(|step| step.digit.var == var);
    steps.copied().collect()
}

/// The layout of these extents and strides.
fn strided<'c>(code: Code<'c>, iters: &[[i64; 2]]) -> PassResult<'c, Layout> {
    let [extents, strides] = [0, 1].map(|at| iters.iter().map(|iter| iter[at]).collect::<Vec<_>>());
    Layout::strided(&extents, &strides).map_err(|error| layout_error(code.builder.location, error))
}

/// A digit of the number of one of so many problems.
pub(super) fn digit<'c>(
    code: Code<'c>,
    batch: Val<'c>,
    step: &Step,
    (problems, sizes): (i64, &Sizes<'c>),
) -> PassResult<'c, Val<'c>> {
    let Step { digit, .. } = step;
    let above = match digit.stride {
        1 => batch,
        stride => code.div(batch, sizes.index(code, stride)?)?,
    };
    match digit.stride.saturating_mul(digit.extent) == problems {
        true => Ok(above),
        false => code.rem(above, sizes.index(code, digit.extent)?),
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
    /// Columns of a piece of it.
    width: i64,
}

impl<'c> Ring<'c> {
    /// A ring of stages.
    pub(super) fn new(
        code: Code<'c>,
        stages: i64,
        shape: [i64; 2],
        element: Type<'c>,
    ) -> PassResult<'c, Self> {
        let width = widest(shape[1], element_bytes(element));
        Self::in_pieces(code, stages, (shape, width), element)
    }

    /// The same in pieces of so many columns, which are the spans of their swizzle.
    pub(super) fn in_pieces(
        code: Code<'c>,
        stages: i64,
        (shape, width): ([i64; 2], i64),
        element: Type<'c>,
    ) -> PassResult<'c, Self> {
        let failed = |error| layout_error(code.builder.location, error);
        let bytes = element_bytes(element);
        let all = in_pieces(Some(stages), shape, width, bytes).map_err(failed)?;
        let one = in_pieces(None, shape, width, bytes).map_err(failed)?;
        Ok(Self {
            stages,
            storage: code.alloc(&[stages, shape[0], shape[1]], element, &all)?,
            stage: code.memref(&shape, element, &one, Some("shared"))?,
            pipeline: code.pipeline(stages)?,
            shape,
            width,
        })
    }

    /// Rows of a block.
    pub(super) fn rows(
        &self,
        code: Code<'c>,
        stage: Val<'c>,
        first: i64,
        rows: i64,
    ) -> PassResult<'c, Val<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let bytes = element_bytes(element_type(self.stage));
        let whole = in_pieces(None, self.shape, self.width, bytes).map_err(failed)?;
        let swizzle = whole.swizzle();
        let part = whole.with_swizzle(None);
        let part = part.slice(&self.shape, &[0..rows, 0..self.shape[1]]);
        let part = part.map_err(failed)?.with_swizzle(swizzle);
        let element = element_type(self.stage);
        let shape = [rows, self.shape[1]];
        let r#type = code.memref(&shape, element, &part, Some("shared"))?;
        code.slice(stage, &[code.index(first)?, code.index(0)?], r#type)
    }

    /// The block in a stage, with its columns in an order of their own: `digits` are their extents and strides, outermost first.
    pub(super) fn reordered(
        &self,
        code: Code<'c>,
        stage: Val<'c>,
        digits: &[[i64; 2]],
    ) -> PassResult<'c, Val<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let [rows, columns] = self.shape;
        let iter = |extent, stride| Iter::new(extent, stride, Axis::M);
        let inside: i64 = digits.iter().map(|[extent, _]| extent).product();
        let mut iters = vec![
            iter(rows, self.width),
            iter(columns / self.width, rows * self.width),
            iter(self.width / inside, inside),
        ];
        iters.extend(digits.iter().map(|[extent, stride]| iter(*extent, *stride)));
        let element = element_type(self.stage);
        let bytes = element_bytes(element);
        let whole = in_pieces(None, self.shape, self.width, bytes).map_err(failed)?;
        let layout = Layout::new(iters, [], Offset::new(), whole.swizzle()).map_err(failed)?;
        let r#type = code.memref(&self.shape, element, &layout, Some("shared"))?;
        code.view(self.stage(code, stage)?, r#type)
    }

    /// The block in a stage.
    pub(super) fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        let stage = if self.stages == 1 { zero } else { stage };
        code.slice(self.storage, &[stage, zero, zero], self.stage)
    }
}
