//! Products whose depth several CTAs share through memory: one kernel writes each part's sums, another adds them
//! up in order and goes on with the epilogue.
//!
//! For results of few tiles and long sums (split-K), or for the tiles of the last wave alone (stream-K): clusters share a
//! tile's depth without a second kernel, but between eight CTAs at most.

use super::Product;
use super::kernel::GemmKernel;
use super::product::Gemm;
use super::wgmma::WgmmaKernel;
use crate::facts::chip::MOST_BLOCKS;
use crate::planner::config::{Cluster, Config, Raster, Wgmma};
use crate::planner::epilogue::Epilogue;
use crate::planner::epilogue::reduction::{low_enough, padded_row, sums_tile};
use crate::planner::family::Launch;
use crate::planner::problem::{SUM_BYTES, count};
use crate::planner::row_tile::{RowTile, elementwise_tile};
use crate::planner::scheduler::stream_k::LastWave;
use crate::planner::scheduler::{corner, persistent};
use axe_passes::build::{Code, Kernel, launch as launch_kernel, layout_error};
use axe_passes::fuse::arguments::{Arguments, argument_types, launched};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::frame::{Operand, Out, operand};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use axe_passes::{PassError, PassResult};

/// The two kernels of a product each of whose tiles several CTAs share; the name of the first.
///
/// # Errors
/// When an operation cannot be built, or rows are too long for a grid.
pub(super) fn split_k<'c>(
    product: &Product<'_, 'c>,
    config: Config,
    launch: &mut Launch<'_, 'c>,
    factors: &[Operand<'c>],
) -> PassResult<'c, String> {
    let gemm = product.gemm;
    let multiplies = launch.frame.name("gemm");
    let sums = multiply_parts(product, config, launch, factors, &multiplies)?;
    let mut ins = vec![sums];
    let outs = product.epilogue(launch, &mut ins)?;
    // A block that is reduced is a tile's row.
    let tile = match gemm.reduced {
        None => elementwise_tile(gemm.n, SUM_BYTES),
        Some(columns) => sums_tile(columns),
    };
    let tile = low_enough(tile, config.splits());
    let reduction = Reduction::new(product, launch, &ins, &outs);
    let code = reduction.kernel.code;
    let origin = Origin {
        batch: None,
        row: code.times(code.block("x")?, tile.rows)?,
        column: code.times(code.block("y")?, tile.columns)?,
        limit: [code.index(gemm.m)?, code.index(gemm.n)?],
    };
    let at = [origin.row, origin.column];
    let grid = |code: Code<'c>| {
        let y = count(gemm.n, tile.columns);
        if y > MOST_BLOCKS {
            let what = format!("rows of {} elements are more than a grid has", gemm.n);
            return Err(PassError::new(code.builder.location, what));
        }
        let x = code.index(count(gemm.m, tile.rows))?;
        Ok([x, code.index(y)?, code.index(1)?])
    };
    reduction.finish(launch, (tile, config.splits()), (origin, at), grid)?;
    Ok(multiplies)
}

/// The kernel that multiplies: the sums of each part, in rows that begin with a line.
fn multiply_parts<'c>(
    product: &Product<'_, 'c>,
    config: Config,
    launch: &mut Launch<'_, 'c>,
    factors: &[Operand<'c>],
    name: &str,
) -> PassResult<'c, Operand<'c>> {
    let (builder, module) = (launch.builder, launch.frame.module);
    let gemm @ &Gemm { m, n, .. } = product.gemm;
    let sums = workspace(launch, gemm, [config.splits(), m, padded_row(n)])?;
    let outs = [(gemm.result, sums.clone())];
    let types = argument_types(factors, &[], &outs);
    let kernel = Kernel::new(builder.location, module, &types);
    let stored = vec![(gemm.result, Kind::Full)];
    let body = GemmKernel {
        gemm,
        config,
        fusion: &Fusion::storing(product.fusion.total, Some(n), stored),
        chip: launch.chip,
    };
    body.emit(kernel, (factors, &outs), (module, name))?;
    let grid = body.grid(builder)?;
    let results = launch_kernel(builder, name, grid, &launched(factors, &[]), &[sums.tensor])?;
    match results.as_slice() {
        &[tensor] => Ok(Operand { tensor, ..sums }),
        _ => Err(layout_error(builder.location, "a launch lacks its result")),
    }
}

/// The two kernels of a product the tiles of whose last wave several CTAs share: `ins` are the factors, their scales, and
/// what the epilogue reads; the name of the first.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn stream_k<'c>(
    product: &Product<'_, 'c>,
    config: Wgmma,
    last: LastWave,
    launch: &mut Launch<'_, 'c>,
    (ins, outs): (Vec<Operand<'c>>, Vec<Out<'c>>),
) -> PassResult<'c, String> {
    let name = launch.frame.name("gemm");
    let wave = Wave {
        gemm: product.gemm,
        config,
        last,
    };
    let (sums, outs) = wave.multiply(product.fusion, launch, (&ins, outs), &name)?;
    // Tables are in front of the factors, what else the epilogue reads behind them.
    let inputs = ins.len().saturating_sub(product.fusion.inputs.len());
    let inputs = ins.get(inputs..).unwrap_or_default();
    let tables = ins.get(..product.fusion.tables.len()).unwrap_or_default();
    let ins: Vec<_> = tables
        .iter()
        .chain([&sums])
        .chain(inputs)
        .cloned()
        .collect();
    let reduction = Reduction::new(product, launch, &ins, &outs);
    let [m, n, _] = config.tile();
    let tile = low_enough(sums_tile(product.gemm.reduced.unwrap_or(n)), last.splits);
    let rows = m / tile.rows;
    let code = reduction.kernel.code;
    let block = code.block("x")?;
    let number = code.div(block, code.index(rows)?)?;
    let row = code.times(code.rem(block, code.index(rows)?)?, tile.rows)?;
    let column = code.times(code.block("y")?, tile.columns)?;
    let at = [code.add(code.times(number, m)?, row)?, column];
    let origin = wave.origin(code, number, [row, column])?;
    let grid = |code: Code<'c>| {
        let blocks = wave.tiles().saturating_mul(rows);
        let columns = n / tile.columns;
        Ok([code.index(blocks)?, code.index(columns)?, code.index(1)?])
    };
    reduction.finish(launch, (tile, last.splits), (origin, at), grid)?;
    Ok(name)
}

/// A new tensor of sums.
fn workspace<'c>(
    launch: &Launch<'_, 'c>,
    gemm: &Gemm<'c>,
    shape: [i64; 3],
) -> PassResult<'c, Operand<'c>> {
    let builder = launch.builder;
    let r#type = builder.tensor(&shape, gemm.accumulator)?;
    let empty = builder.value("tensor.empty", &[], r#type, &[])?;
    operand(builder, empty, &shape)
}

/// The kernel that adds parts up, in the making.
struct Reduction<'a, 'c> {
    product: &'a Product<'a, 'c>,
    kernel: Kernel<'c>,
    /// The sums, and what the epilogue reads.
    ins: &'a [Operand<'c>],
    outs: &'a [Out<'c>],
}

impl<'a, 'c> Reduction<'a, 'c> {
    fn new(
        product: &'a Product<'a, 'c>,
        launch: &Launch<'_, 'c>,
        ins: &'a [Operand<'c>],
        outs: &'a [Out<'c>],
    ) -> Self {
        let types = argument_types(ins, &product.fusion.scalars, outs);
        Self {
            product,
            kernel: Kernel::new(launch.builder.location, launch.frame.module, &types),
            ins,
            outs,
        }
    }

    /// Adds up so many parts on a tile with its place in the result and in the sums, and launches the kernel.
    fn finish(
        self,
        launch: &mut Launch<'_, 'c>,
        (tile, parts): (RowTile, i64),
        place: (Origin<'c>, [Val<'c>; 2]),
        grid: impl FnOnce(Code<'c>) -> PassResult<'c, [Val<'c>; 3]>,
    ) -> PassResult<'c> {
        let Product { gemm, fusion } = *self.product;
        let code = self.kernel.code;
        let arguments = Arguments::of(&self.kernel, self.ins, fusion, self.outs);
        let (epilogue, mut operands) = Epilogue::of(gemm, fusion, arguments);
        let Some(sums) = operands.next() else {
            return Err(layout_error(
                code.builder.location,
                "a kernel lacks its sums",
            ));
        };
        epilogue.add_parts(code, (tile, parts), &sums, place)?;
        let (frame, builder) = (&mut launch.frame, launch.builder);
        let name = frame.name("sum");
        self.kernel.finish(frame.module, &name, tile.threads())?;
        let grid = grid(Code { builder: *builder })?;
        let ins = launched(self.ins, &fusion.scalars);
        frame.launch(builder, &name, grid, &ins, self.outs)
    }
}

/// A product whose last wave is shared.
struct Wave<'a, 'c> {
    gemm: &'a Gemm<'c>,
    config: Wgmma,
    last: LastWave,
}

impl<'c> Wave<'_, 'c> {
    /// The tiles of the last wave.
    const fn tiles(&self) -> i64 {
        self.last.rest * self.config.cluster().ctas()
    }

    /// The kernel that multiplies: the sums of the last wave's parts, tile below tile, and the results with the other tiles
    /// in them.
    fn multiply(
        &self,
        fusion: &Fusion<'c>,
        launch: &mut Launch<'_, 'c>,
        (ins, mut outs): (&[Operand<'c>], Vec<Out<'c>>),
        name: &str,
    ) -> PassResult<'c, (Operand<'c>, Vec<Out<'c>>)> {
        let (config, last) = (self.config, self.last);
        let (builder, module) = (launch.builder, launch.frame.module);
        let [m, n, _] = config.tile();
        let rows = self.tiles().saturating_mul(m);
        let sums = workspace(launch, self.gemm, [last.splits, rows, padded_row(n)])?;
        outs.push((self.gemm.result, sums));
        let types = argument_types(ins, &fusion.scalars, &outs);
        let mut kernel = Kernel::new(builder.location, module, &types);
        let body = WgmmaKernel {
            gemm: self.gemm,
            config,
            fusion,
            chip: launch.chip,
            last: Some(last),
        };
        body.emit(&kernel, ins, &outs)?;
        kernel.cluster = config.ctas();
        kernel.finish(module, name, config.threads())?;
        let code = Code { builder: *builder };
        let parts = last.rest.saturating_mul(last.splits);
        let work = code.index(last.whole.saturating_add(parts))?;
        let one = code.index(1)?;
        let grid = persistent(builder, [work, one, one], config.ctas(), launch.chip)?;
        let ins = launched(ins, &fusion.scalars);
        let inits: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch_kernel(builder, name, grid, &ins, &inits)?;
        for ((_, out), tensor) in outs.iter_mut().zip(results) {
            out.tensor = tensor;
        }
        let sums = outs
            .pop()
            .ok_or_else(|| layout_error(builder.location, "a kernel has no sums of parts"))?;
        Ok((sums.1, outs))
    }

    /// Where a part of the last wave's tile of this number is in the result.
    fn origin(
        &self,
        code: Code<'c>,
        number: Val<'c>,
        [row, column]: [Val<'c>; 2],
    ) -> PassResult<'c, Origin<'c>> {
        let (config, gemm) = (self.config, self.gemm);
        let [high, wide] = config.span();
        let (cluster, rank) = match config.cluster() {
            Cluster::Alone => (number, None),
            cluster => {
                let ctas = code.index(cluster.ctas())?;
                (code.div(number, ctas)?, Some(code.rem(number, ctas)?))
            }
        };
        let cluster = code.add(cluster, code.index(self.last.whole)?)?;
        let counts = [
            code.index(count(gemm.m, high))?,
            code.index(count(gemm.n, wide))?,
        ];
        let Raster { order, swizzle } = config.raster();
        let at = code.tile_at(cluster, counts, (order, swizzle))?;
        let [first_row, first_column] = corner(code, config, at, rank)?;
        Ok(Origin {
            batch: None,
            row: code.add(first_row, row)?,
            column: code.add(first_column, column)?,
            limit: [code.index(gemm.m)?, code.index(gemm.n)?],
        })
    }
}
