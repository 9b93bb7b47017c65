//! Matrix products by roles: one warp copies tiles, warpgroups multiply them and store (sm_90a).
//!
//! The kernel is persistent: every CTA goes through its share of the result's tiles, and while the consumers
//! store one tile the producer fills the ring for the next.

use super::code::{Code, Kernel, layout_error};
use super::evaluate::{Argument, Evaluator, Needed, Origin, Registers, registers};
use super::frame::{Operand, element_bytes};
use super::gemm::count;
use super::group::Group;
use super::product::Gemm;
use super::space::Kind;
use super::wide::WideTile;
use axe_dialect::{Level, element_type};
use axe_layout::{Axis, Iter, Layout, Swizzle};
use axe_passes::PassResult;
use axe_passes::ir::value::identity;
use axe_passes::ir::{DYNAMIC, Val};
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;

/// Bytes of a row of a shared tile: the span of the widest swizzle.
const ROW_BYTES: i64 = 128;

/// The kernel's body.
pub(super) struct Body<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub tile: WideTile,
    pub group: &'a Group<'c>,
    pub needed: &'a Needed<'c>,
    pub kinds: &'a [(Val<'c>, Kind)],
}

/// One operand's way from global to shared memory.
struct Path<'c> {
    global: Argument<'c>,
    ring: Val<'c>,
    shape: [i64; 2],
    stage: Type<'c>,
    /// Whether memory has k first.
    k_first: bool,
}

/// A shared tile `[rows, columns]` in panels of 128 bytes, each row after row, swizzled; `stages` of them when
/// there are several.
fn panels(
    stages: Option<i64>,
    [rows, columns]: [i64; 2],
    bytes: i64,
) -> axe_layout::Result<Layout> {
    let width = (ROW_BYTES / bytes).min(columns);
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

/// The accumulators of `wgmma` over the consumers: rows of 64 a warpgroup, in one or several blocks (PTX ISA
/// 9.7.15.5.1.1, "Register Fragments").
pub(super) fn accumulators(tile: WideTile) -> axe_layout::Result<Layout> {
    let [m, n, _] = tile.shape;
    let axis = |name: &str| name.parse::<Axis>();
    let (warp, lane, reg) = (axis("warp")?, axis("lane")?, axis("reg")?);
    let blocks = m / 64 / tile.consumers;
    Layout::from_shard([
        Iter::new(tile.consumers, 4, warp),
        Iter::new(blocks, n / 2, reg),
        Iter::new(4, 1, warp),
        Iter::new(2, 2, reg),
        Iter::new(8, 4, lane),
        Iter::new(n / 8, 4, reg),
        Iter::new(4, 1, lane),
        Iter::new(2, 1, reg),
    ])
}

impl<'c> Body<'_, 'c> {
    /// Emits the kernel's body.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn emit(
        &self,
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        outs: &[(Val<'c>, Operand<'c>)],
    ) -> PassResult<'c> {
        let code = kernel.code;
        let arguments = &mut kernel.arguments.iter().copied();
        let mut memrefs = ins
            .iter()
            .zip(arguments.by_ref())
            .map(|(operand, memref)| Argument {
                memref,
                extents: operand.shape.clone(),
            });
        let (Some(a), Some(b)) = (memrefs.next(), memrefs.next()) else {
            return Err(layout_error(
                code.builder.location,
                "a product has two operands",
            ));
        };
        let keys = self.needed.inputs.iter();
        let inputs: HashMap<_, _> = keys
            .map(|(value, kind)| (identity(*value), *kind))
            .zip(memrefs)
            .collect();
        let scalars: HashMap<_, _> = self
            .needed
            .scalars
            .iter()
            .map(|value| identity(*value))
            .zip(arguments.by_ref())
            .collect();
        let outputs: Vec<_> = outs
            .iter()
            .zip(arguments)
            .map(|((_, out), memref)| Argument {
                memref,
                extents: out.shape.clone(),
            })
            .collect();
        let [m, n, k] = self.tile.shape;
        let grid = self.grid(code, &a)?;
        let paths = [
            self.path(code, a, self.gemm.trans_a, [m, k])?,
            self.path(code, b, !self.gemm.trans_b, [n, k])?,
        ];
        let ring = code.pipeline(self.tile.stages)?;
        let accumulators =
            accumulators(self.tile).map_err(|error| layout_error(code.builder.location, error))?;
        let registers = registers(code, [m, n], accumulators)?;
        let (own, others) = self.tile.budgets();
        code.scope(Level::Warpgroup, [0, 1], own, |code| {
            code.scope(Level::Warp, [0, 1], None, |code| {
                self.tiles(code, &grid, |code, origin| {
                    self.produce(code, ring, &paths, &origin)
                })
            })
        })?;
        let range = [1, 1 + self.tile.consumers];
        code.scope(Level::Warpgroup, range, others, |code| {
            self.tiles(code, &grid, |code, origin| {
                let evaluator = Evaluator {
                    code,
                    group: self.group,
                    registers: &registers,
                    columns: self.gemm.n,
                    arguments: &inputs,
                    scalars: &scalars,
                    origin,
                    known: HashMap::new(),
                };
                self.consume(evaluator, &registers, ring, &paths, &outputs)
            })
        })
    }

    /// Tiles of the result: products when there is a batch, rows, columns; and the result's rows.
    fn grid(&self, code: Code<'c>, a: &Argument<'c>) -> PassResult<'c, Grid<'c>> {
        let [m, n, _] = self.tile.shape;
        let batch = match self.gemm.batch {
            None => None,
            Some(batch) => Some(code.leading(a.memref, batch)?),
        };
        let dynamic = self.gemm.m == DYNAMIC;
        let rows = if dynamic {
            code.leading(a.memref, DYNAMIC)?
        } else {
            code.index(self.gemm.m)?
        };
        let high = m * self.tile.cluster;
        let row_tiles = if dynamic {
            code.ceil_div(rows, high)?
        } else {
            code.index(count(self.gemm.m, high))?
        };
        let columns = code.index(count(self.gemm.n, n))?;
        Ok(Grid {
            counts: batch.into_iter().chain([row_tiles, columns]).collect(),
            rows,
        })
    }

    fn tiles(
        &self,
        code: Code<'c>,
        grid: &Grid<'c>,
        body: impl FnOnce(Code<'c>, Origin<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let [m, n, _] = self.tile.shape;
        code.for_tiles(
            &grid.counts,
            self.tile.order,
            self.tile.group,
            |code, at| {
                let &[ref batch @ .., row, column] = at else {
                    return Err(layout_error(
                        code.builder.location,
                        "a loop over tiles has two indices",
                    ));
                };
                let row = match self.tile.cluster {
                    1 => row,
                    cluster => code.add(code.times(row, cluster)?, code.rank_in_cluster()?)?,
                };
                let origin = Origin {
                    batch: batch.first().copied(),
                    row: code.times(row, m)?,
                    column: code.times(column, n)?,
                    limit: [grid.rows, code.index(self.gemm.n)?],
                };
                body(code, origin)
            },
        )
    }

    fn path(
        &self,
        code: Code<'c>,
        global: Argument<'c>,
        k_first: bool,
        [rows, k]: [i64; 2],
    ) -> PassResult<'c, Path<'c>> {
        let shape = if k_first { [k, rows] } else { [rows, k] };
        // Operands may be floats of 8 bits of two kinds.
        let element = element_type(global.memref.r#type());
        let bytes = element_bytes(element);
        let failed = |error| layout_error(code.builder.location, error);
        let stages = self.tile.stages;
        let ring = panels(Some(stages), shape, bytes).map_err(failed)?;
        let stage = panels(None, shape, bytes).map_err(failed)?;
        Ok(Path {
            global,
            ring: code.alloc(&[stages, shape[0], shape[1]], element, &ring)?,
            shape,
            stage: code.memref(&shape, element, &stage, Some("shared"))?,
            k_first,
        })
    }

    /// Fills a stage for each step along k.
    fn produce(
        &self,
        code: Code<'c>,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        origin: &Origin<'c>,
    ) -> PassResult<'c> {
        let depth = self.tile.shape[2];
        let end = code.index(count(self.gemm.k, depth) * depth)?;
        code.for_each(end, depth, &[], |code, k, _| {
            let (slot, stage) = code.acquire(ring)?;
            let shared = [false, self.tile.cluster > 1];
            for ((path, start), multicast) in
                paths.iter().zip([origin.row, origin.column]).zip(shared)
            {
                let at = if path.k_first { [k, start] } else { [start, k] };
                let at: Vec<_> = origin.batch.into_iter().chain(at).collect();
                let from =
                    code.global_box(path.global.memref, &path.global.extents, &at, &path.shape)?;
                code.copy_signal(from, path.stage(code, stage)?, slot, multicast)?;
            }
            code.commit_slot(ring, slot)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Multiplies the stages of one tile, and stores the result.
    fn consume(
        &self,
        mut evaluator: Evaluator<'_, 'c>,
        registers: &Registers,
        ring: Val<'c>,
        paths: &[Path<'c>; 2],
        outputs: &[Argument<'c>],
    ) -> PassResult<'c> {
        let code = evaluator.code;
        let start = match self.gemm.start {
            None => None,
            Some(start) => {
                let value = evaluator.value(start, Kind::Full)?;
                Some(self.convert(code, registers, value, self.gemm.accumulator)?)
            }
        };
        let sums = registers.r#type(code, Kind::Full, self.gemm.accumulator)?;
        let multiply = |code: Code<'c>, acc: Option<Val<'c>>| {
            let (slot, stage) = code.wait_slot(ring)?;
            let [a, b] = paths;
            let operands = [a.stage(code, stage)?, b.stage(code, stage)?];
            let flags = [self.gemm.trans_a, self.gemm.trans_b];
            let sum = code.gemm_async(operands, acc, sums, flags)?;
            Ok([sum, slot])
        };
        // The first step starts the sums, so that no register is set to zero while a product is under way.
        let first = multiply(code, start)?;
        let steps = code.index(count(self.gemm.k, self.tile.shape[2]) - 1)?;
        let last = code.for_each(steps, 1, &first, |code, _, carried| {
            let &[sum, held] = carried else {
                return Err(layout_error(
                    code.builder.location,
                    "the loop along k carries a sum and a slot",
                ));
            };
            let [sum, slot] = multiply(code, Some(sum))?;
            let sum = code.wait_products(sum, 1)?;
            code.release_slot(ring, held)?;
            Ok(vec![sum, slot])
        })?;
        let &[sum, held] = last.as_slice() else {
            return Err(layout_error(
                code.builder.location,
                "the loop along k carries a sum and a slot",
            ));
        };
        let sum = code.wait_products(sum, 0)?;
        code.release_slot(ring, held)?;
        let element = code.builder.tensor_of(self.gemm.result)?.element;
        let result = self.convert(code, registers, sum, element)?;
        evaluator.known.clear();
        evaluator
            .known
            .insert((identity(self.gemm.result), Kind::Full), result);
        for ((value, kind), to) in self.kinds.iter().zip(outputs) {
            evaluator.store(*value, *kind, to)?;
        }
        Ok(())
    }

    fn convert(
        &self,
        code: Code<'c>,
        registers: &Registers,
        value: Val<'c>,
        element: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if code.builder.tensor_of(value)?.element == element {
            return Ok(value);
        }
        let r#type = registers.r#type(code, Kind::Full, element)?;
        code.builder.value("axe.cast", &[value], r#type, &[])
    }
}

/// The tiles of the result.
struct Grid<'c> {
    counts: Vec<Val<'c>>,
    rows: Val<'c>,
}

impl<'c> Path<'c> {
    fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(self.ring, &[stage, zero, zero], self.stage)
    }
}
