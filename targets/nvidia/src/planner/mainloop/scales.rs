//! The scales of the blocks of a product of 8-bit floats, on their way to the sums.

use crate::planner::config::Wgmma;
use crate::planner::gemm::product::Scales;
use crate::planner::problem::{SCALE_BYTES, takes_rows};
use axe_dialect::{element_type, ops};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{DYNAMIC, Val};
use melior::ir::{Type, ValueLike};

/// The scales as a kernel has them.
#[derive(Debug)]
pub(in crate::planner) struct BlockScales<'c> {
    /// What they are of.
    pub of: Scales<'c>,
    a: Argument<'c>,
    b: Argument<'c>,
    /// Those of A in shared memory, where they come with the stages.
    staged: Option<Staged<'c>>,
}

/// The scales of the rows of each stage, `[stages, 1, rows]`.
#[derive(Debug)]
struct Staged<'c> {
    ring: Val<'c>,
    rows: i64,
}

impl<'c> Staged<'c> {
    fn new(code: Code<'c>, config: Wgmma, element: Type<'c>) -> PassResult<'c, Self> {
        let rows = config.tile()[0];
        let layout = strided(code, &[config.stages(), 1, rows], &[rows, rows, 1])?;
        let ring = code.alloc(&[config.stages(), 1, rows], element, &layout)?;
        Ok(Self { ring, rows })
    }

    /// The scales of a stage, `[1, rows]`.
    fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let layout = strided(code, &[1, self.rows], &[self.rows, 1])?;
        let element = element_type(self.ring.r#type());
        let r#type = code.memref(&[1, self.rows], element, &layout, Some("shared"))?;
        let zero = code.index(0)?;
        code.slice(self.ring, &[stage, zero, zero], r#type)
    }

    /// The scales of a stage, `[rows]`.
    fn line(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let layout = strided(code, &[self.rows], &[1])?;
        let element = element_type(self.ring.r#type());
        let r#type = code.memref(&[self.rows], element, &layout, Some("shared"))?;
        code.view(self.stage(code, stage)?, r#type)
    }
}

fn strided<'c>(code: Code<'c>, shape: &[i64], strides: &[i64]) -> PassResult<'c, Layout> {
    Layout::strided(shape, strides).map_err(|error| layout_error(code.builder.location, error))
}

impl<'c> BlockScales<'c> {
    /// The kernel's next two arguments, where a product has scales.
    pub(in crate::planner) fn take(
        scales: &Option<Scales<'c>>,
        arguments: &mut impl Iterator<Item = Argument<'c>>,
    ) -> Option<Self> {
        Some(Self {
            of: (*scales)?,
            a: arguments.next()?,
            b: arguments.next()?,
            staged: None,
        })
    }

    /// Lets the scales of A come with the stages of a tile, where memory has those of its rows one after the other and
    /// a tensor map takes them.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn stage(
        mut self,
        code: Code<'c>,
        config: Wgmma,
    ) -> PassResult<'c, Self> {
        let row = self.a.extents.last().copied().unwrap_or(DYNAMIC);
        if self.of.transposed && row != DYNAMIC && takes_rows(row, SCALE_BYTES) {
            self.staged = Some(Staged::new(code, config, self.element())?);
        }
        Ok(self)
    }

    /// Whether the scales of A come with the stages.
    pub(in crate::planner) const fn are_staged(&self) -> bool {
        self.staged.is_some()
    }

    /// Copies the scales of A for a block of k with its stage.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn copy(
        &self,
        code: Code<'c>,
        [row, block]: [Val<'c>; 2],
        [slot, stage]: [Val<'c>; 2],
    ) -> PassResult<'c> {
        let Some(staged) = &self.staged else {
            return Ok(());
        };
        let shape = [1, staged.rows];
        let from = code.global_box(self.a.memref, &self.a.extents, &[block, row], &shape)?;
        code.copy_signal(from, staged.stage(code, stage)?, slot, false)
    }

    /// The scales of a block of k: one for each row of the tile, and that of the tile's columns.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn fetch(
        &self,
        code: Code<'c>,
        registers: &Registers,
        origin: &Origin<'c>,
        block: Val<'c>,
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let of_rows = self.rows(code, registers, origin, block)?;
        let of_rows = code.load(of_rows, registers.r#type(code, Kind::Row, self.element())?)?;
        Ok([of_rows, self.columns(code, origin, block)?])
    }

    /// The scales of a block of k whose stage has those of the rows.
    ///
    /// # Errors
    /// When an operation cannot be built, or the stages have none.
    pub(in crate::planner) fn fetch_staged(
        &self,
        code: Code<'c>,
        registers: &Registers,
        origin: &Origin<'c>,
        [block, stage]: [Val<'c>; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let Some(staged) = &self.staged else {
            return self.fetch(code, registers, origin, block);
        };
        let r#type = registers.r#type(code, Kind::Row, self.element())?;
        let of_rows = code.load(staged.line(code, stage)?, r#type)?;
        Ok([of_rows, self.columns(code, origin, block)?])
    }

    /// The scales of the tile's rows in global memory.
    fn rows(
        &self,
        code: Code<'c>,
        registers: &Registers,
        origin: &Origin<'c>,
        block: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let rows = registers.shape[0];
        let memref = self.a.memref;
        if self.of.transposed {
            return code.strided_box(memref, &[block, origin.row], &[rows], &[1]);
        }
        let stride = self.a.extents.get(1).copied().unwrap_or(1);
        let at = [origin.row, block];
        let column = code.strided_box(memref, &at, &[rows, 1], &[stride, 1])?;
        // The rows beside a single one do not exist: their places are its own.
        let step = match self.a.extents.first() {
            Some(1) => 0,
            _ => stride,
        };
        let layout = strided(code, &[rows], &[step])?;
        let r#type = code.memref(&[rows], self.element(), &layout, None)?;
        code.view(column, r#type)
    }

    /// The scale of the tile's columns.
    fn columns(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        block: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let column = code.div(origin.column, code.index(self.of.blocks.n)?)?;
        let operands = [self.b.memref, column, block];
        code.builder
            .value("memref.load", &operands, self.element(), &[])
    }

    /// The type of scales and sums.
    fn element(&self) -> Type<'c> {
        element_type(self.a.memref.r#type())
    }

    /// `sums + part * scales`.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(in crate::planner) fn add(
        &self,
        code: Code<'c>,
        [sums, part]: [Val<'c>; 2],
        [of_rows, of_columns]: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let element = self.element();
        let (region, at, body) = code.builder.region(&[element]);
        let &[of_row] = at.as_slice() else {
            return Err(layout_error(code.builder.location, "a body has arguments"));
        };
        let scale = body.value("arith.mulf", &[of_row, of_columns], element, &[])?;
        body.operation(ops::YIELD, &[scale], &[], &[], Vec::new())?;
        let types = [of_rows.r#type()];
        let op = code
            .builder
            .operation(ops::MAP, &[of_rows], &types, &[], vec![region])?;
        let scales = code.builder.result_of(op)?;
        let dims = [("dims", code.builder.i64s(&[1]))];
        let types = [sums.r#type()];
        let scales = code
            .builder
            .value(ops::BROADCAST, &[scales], types[0], &dims)?;
        let (region, at, body) = code.builder.region(&[element; 3]);
        let sum = body.value("math.fma", &at, element, &[])?;
        body.operation(ops::YIELD, &[sum], &[], &[], Vec::new())?;
        let operands = [part, scales, sums];
        let op = code
            .builder
            .operation(ops::MAP, &operands, &types, &[], vec![region])?;
        code.builder.result_of(op)
    }
}
