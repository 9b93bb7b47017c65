//! Matrix products: a ring of tiles in shared memory, fragments, accumulators, and the epilogue on them.

use super::code::{Code, Kernel, Number, layout_error};
use super::cost::{Problem, Tile, Unit, choose};
use super::evaluate::{Argument, Evaluator, Needed, Origin, Registers, registers};
use super::frame::{Frame, Operand, element_bytes, leading, shape_in};
use super::group::Group;
use super::layouts::{
    Grid, Product, matrix_product, scalar_product, shared_ring, shared_tile, transposed,
};
use super::space::Kind;
use crate::facts::matrix::{M16N8K8, M16N8K16};
use axe_layout::Layout;
use axe_passes::ir::value::{identity, operands, results};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute, types};
use axe_passes::{PassError, PassResult};
use melior::ir::attribute::{DictionaryAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike, Type, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;

/// Rows of tiles that a group of neighbouring CTAs covers, so that they share what they read in L2.
const RASTER_ROWS: i64 = 8;
/// What a dynamic extent is expected to be when tiles are chosen.
const EXPECTED: i64 = 2048;

/// A matrix product, read.
#[derive(Clone, Debug)]
struct Gemm<'c> {
    op: Op<'c>,
    a: Val<'c>,
    b: Val<'c>,
    start: Option<Val<'c>>,
    result: Val<'c>,
    /// Products, when there is a batch.
    batch: Option<i64>,
    m: i64,
    n: i64,
    k: i64,
    trans_a: bool,
    trans_b: bool,
    element: Type<'c>,
    /// The type of the accumulators.
    accumulator: Type<'c>,
    unit: Unit,
}

/// One operand's way from global memory to registers.
#[derive(Clone, Debug)]
struct Path<'c> {
    global: Val<'c>,
    extents: Vec<i64>,
    ring: Val<'c>,
    shape: [i64; 2],
    stage: Type<'c>,
    fragment: Type<'c>,
    /// Whether k is the first dimension.
    transposed: bool,
}

/// The entry `key` of the operator's `axe.plan`, which overrides what the planner would choose.
fn option<'c>(op: Op<'c>, key: &str) -> Option<Attribute<'c>> {
    let plan = op.attribute("axe.plan").ok()?;
    let plan = DictionaryAttribute::try_from(plan).ok()?;
    let key = melior::StringRef::new(key).to_raw();
    // SAFETY: the attribute is a dictionary; a key that it lacks gives the null attribute.
    unsafe {
        let found = sys::mlirDictionaryAttrGetElementByName(plan.to_raw(), key);
        Attribute::from_option_raw(found)
    }
}

impl<'c> Gemm<'c> {
    fn read(op: Op<'c>) -> PassResult<'c, Self> {
        let builder = Builder::before(op);
        let unreadable = || PassError::new(op.location(), "expected a matrix product of tensors");
        let values = operands(op);
        let (&[a, b], &[result]) = (values.get(..2).unwrap_or_default(), &results(op)[..]) else {
            return Err(unreadable());
        };
        let (ta, tr) = (builder.tensor_of(a)?, builder.tensor_of(result)?);
        let [.., a0, a1] = ta.shape[..] else {
            return Err(unreadable());
        };
        let [ref batch @ .., m, n] = tr.shape[..] else {
            return Err(unreadable());
        };
        let trans_a = op.has_attribute("trans_a");
        let batch = match batch {
            [] => None,
            [DYNAMIC, ..] => Some(DYNAMIC),
            extents => Some(extents.iter().product()),
        };
        let mut gemm = Self {
            op,
            a,
            b,
            start: values.get(2).copied(),
            result,
            batch,
            m,
            n,
            k: if trans_a { a0 } else { a1 },
            trans_a,
            trans_b: op.has_attribute("trans_b"),
            element: ta.element,
            accumulator: tr.element,
            unit: Unit::Scalar,
        };
        gemm.check_extents()?;
        gemm.choose_unit(builder)?;
        Ok(gemm)
    }

    fn check_extents(&self) -> PassResult<'c> {
        let dynamic = [self.n, self.k].contains(&DYNAMIC) || (self.m == DYNAMIC && self.trans_a);
        if dynamic {
            return Err(PassError::new(
                self.op.location(),
                "expected a matrix product whose only dynamic extent is the leading one of A and the result",
            ));
        }
        Ok(())
    }

    fn choose_unit(&mut self, builder: Builder<'c>) -> PassResult<'c> {
        let f32 = builder.r#type(|context| Type::float32(context));
        let bits = types::bits(self.element);
        let reduced = option(self.op, "precision")
            .and_then(|value| StringAttribute::try_from(value).ok())
            .is_some_and(|value| value.value() == "tf32");
        let half = [
            builder.r#type(|context| Type::float16(context)),
            builder.r#type(|context| Type::bfloat16(context)),
        ]
        .contains(&self.element);
        self.unit = match bits {
            Some(16) if half => Unit::Half,
            Some(32) if reduced && self.element == f32 => Unit::Tf32,
            Some(32 | 64) => Unit::Scalar,
            Some(8 | 16) if types::is_integer(self.element) => Unit::Scalar,
            _ => {
                return Err(PassError::new(
                    self.op.location(),
                    format!(
                        "expected f16, bf16, f32, f64 or integers in a matrix product, got {}",
                        self.element
                    ),
                ));
            }
        };
        let wide = types::bits(self.accumulator) > Some(32);
        if self.unit != Unit::Scalar && !wide {
            self.accumulator = f32;
        } else if self.unit != Unit::Scalar {
            self.unit = Unit::Scalar;
        }
        Ok(())
    }

    fn tile(&self, chip: &'static crate::facts::chip::Chip) -> PassResult<'c, Tile> {
        let expected = |extent| if extent == DYNAMIC { EXPECTED } else { extent };
        let problem = Problem {
            batch: self
                .batch
                .map_or(1, |batch| if batch == DYNAMIC { 8 } else { batch }),
            m: expected(self.m),
            n: self.n,
            k: self.k,
            element_bytes: element_bytes(self.element),
            unit: self.unit,
        };
        let mut tile = choose(problem, chip)
            .ok_or_else(|| PassError::new(self.op.location(), "no tile fits in shared memory"))?;
        if let Some(&[m, n, k]) = option(self.op, "tile")
            .and_then(attribute::read_i64s)
            .as_deref()
        {
            tile.shape = [m, n, k];
        }
        if let Some(&[rows, columns]) = option(self.op, "warps")
            .and_then(attribute::read_i64s)
            .as_deref()
        {
            tile.grid = Grid { rows, columns };
        }
        if let Some(stages) = option(self.op, "stages").and_then(attribute::integer) {
            tile.stages = stages;
        }
        self.check_tile(tile, chip)
    }

    fn check_tile(&self, tile: Tile, chip: &crate::facts::chip::Chip) -> PassResult<'c, Tile> {
        let error = |what: String| Err(PassError::new(self.op.location(), what));
        let sizes = [
            &tile.shape[..],
            &[tile.grid.rows, tile.grid.columns, tile.stages],
        ]
        .concat();
        if sizes.iter().any(|size| !(1..=4096).contains(size)) {
            return error(
                "expected tile, warps and stages of axe.plan between 1 and 4096".to_owned(),
            );
        }
        let threads = tile.threads(self.unit);
        if threads % 32 != 0 || !(32..=1024).contains(&threads) || tile.stages < 2 {
            return error(format!(
                "expected at least 2 stages and a multiple of 32 threads up to 1024, got {} stages and {threads} threads",
                tile.stages
            ));
        }
        let bytes = tile.shared_bytes(element_bytes(self.element));
        if bytes > chip.shared_bytes {
            return error(format!(
                "a ring of {} stages takes {bytes} bytes of shared memory, and a CTA of {} has {}",
                tile.stages, chip.name, chip.shared_bytes
            ));
        }
        Ok(tile)
    }

    fn product(&self, tile: Tile) -> PassResult<'c, Product> {
        match self.unit {
            Unit::Half => matrix_product(tile.shape, tile.grid, M16N8K16),
            Unit::Tf32 => matrix_product(tile.shape, tile.grid, M16N8K8),
            Unit::Scalar => scalar_product(tile.shape, tile.grid),
        }
        .map_err(|error| layout_error(self.op.location(), error))
    }

    /// `[batch, rows, columns]` of an operand.
    fn shape(&self, rows: i64, columns: i64) -> Vec<i64> {
        self.batch.into_iter().chain([rows, columns]).collect()
    }

    fn extents_of_a(&self) -> Vec<i64> {
        if self.trans_a {
            self.shape(self.k, self.m)
        } else {
            self.shape(self.m, self.k)
        }
    }

    fn extents_of_b(&self) -> Vec<i64> {
        if self.trans_b {
            self.shape(self.n, self.k)
        } else {
            self.shape(self.k, self.n)
        }
    }
}

/// Plans a matrix product with its epilogue.
///
/// # Errors
/// At the operator, when its extents, types or options are not supported.
pub(super) fn plan<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    op: Op<'c>,
    group: &Group<'c>,
    outputs: &[Val<'c>],
) -> PassResult<'c> {
    let gemm = Gemm::read(op)?;
    let tile = gemm.tile(frame.chip)?;
    let product = gemm.product(tile)?;
    let mut needed = Needed::default();
    let kinds = output_kinds(group, outputs);
    for (value, kind) in kinds
        .iter()
        .copied()
        .chain(gemm.start.map(|start| (start, Kind::Full)))
    {
        needed.add(group, value, kind);
    }
    let batch = gemm.batch.map(|batch| [batch, gemm.m]);
    let shape = |kind| shape_in(group.total, gemm.n, batch, kind);
    let mut ins = vec![
        frame.operand(builder, gemm.a, &gemm.extents_of_a())?,
        frame.operand(builder, gemm.b, &gemm.extents_of_b())?,
    ];
    for (value, kind) in &needed.inputs {
        ins.push(frame.operand(builder, *value, &shape(*kind))?);
    }
    let mut outs = Vec::new();
    for (value, kind) in &kinds {
        outs.push((*value, frame.out(builder, *value, &shape(*kind))?));
    }
    let name = frame.name("gemm");
    let kernel = Kernel::new(
        op.location(),
        frame.module,
        &argument_types(&ins, &needed.scalars, &outs),
    );
    let body = Body {
        gemm: &gemm,
        tile,
        product: &product,
        group,
        needed: &needed,
        kinds: &kinds,
    };
    body.emit(&kernel, &ins, &outs)?;
    kernel.finish(frame.module, &name, tile.threads(gemm.unit))?;
    let grid = grid(builder, &gemm, tile)?;
    let ins: Vec<_> = ins
        .iter()
        .map(|operand| operand.tensor)
        .chain(needed.scalars.iter().copied())
        .collect();
    frame.launch(builder, &name, grid, &ins, &outs)
}

/// The kinds in which a group forms its outputs.
pub(super) fn output_kinds<'c>(group: &Group<'c>, outputs: &[Val<'c>]) -> Vec<(Val<'c>, Kind)> {
    let kinds = [Kind::Full, Kind::Row, Kind::Column];
    outputs
        .iter()
        .filter_map(|value| {
            let kind = kinds
                .into_iter()
                .find(|kind| group.formed.contains(&(identity(*value), *kind)))?;
            Some((*value, kind))
        })
        .collect()
}

/// The types of a kernel's arguments: tensors read, scalars, tensors written.
pub(super) fn argument_types<'c>(
    ins: &[Operand<'c>],
    scalars: &[Val<'c>],
    outs: &[(Val<'c>, Operand<'c>)],
) -> Vec<Type<'c>> {
    let scalars = scalars.iter().map(|value| value.r#type());
    ins.iter()
        .map(|operand| operand.memref)
        .chain(scalars)
        .chain(outs.iter().map(|(_, out)| out.memref))
        .collect()
}

/// CTAs along x, y and z: all tiles of a product along x, products along z.
fn grid<'c>(builder: &Builder<'c>, gemm: &Gemm<'c>, tile: Tile) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let [bm, bn, _] = tile.shape;
    let columns = count(gemm.n, bn);
    let tiles = if gemm.m == DYNAMIC && gemm.batch.is_none() {
        let rows = code.ceil_div(leading(builder, gemm.result)?, bm)?;
        code.times(rows, columns)?
    } else {
        let tiles = count(gemm.m, bm).saturating_mul(columns);
        if tiles > i64::from(i32::MAX) {
            return Err(PassError::new(
                builder.location,
                format!("{tiles} tiles are more than a grid has"),
            ));
        }
        code.index(tiles)?
    };
    let batch = match gemm.batch {
        // The shape `[?, M, N]` of a batch has the leading extent of its outermost dimension, times the others.
        Some(DYNAMIC) => batch_extent(builder, gemm)?,
        Some(batch) if batch > 65_535 => {
            return Err(PassError::new(
                builder.location,
                format!("a batch of {batch} is more than the 65535 of a grid"),
            ));
        }
        batch => code.index(batch.unwrap_or(1))?,
    };
    Ok([tiles, code.index(1)?, batch])
}

fn batch_extent<'c>(builder: &Builder<'c>, gemm: &Gemm<'c>) -> PassResult<'c, Val<'c>> {
    let shape = builder.tensor_of(gemm.result)?.shape;
    let inner: i64 = shape.iter().skip(1).rev().skip(2).product();
    let code = Code { builder: *builder };
    let outer = leading(builder, gemm.result)?;
    if inner == 1 {
        Ok(outer)
    } else {
        code.times(outer, inner)
    }
}

/// `extent / by`, rounded up.
pub(super) fn count(extent: i64, by: i64) -> i64 {
    let by = by.max(1);
    extent / by + i64::from(extent % by != 0)
}

/// The body of the kernel.
struct Body<'a, 'c> {
    gemm: &'a Gemm<'c>,
    tile: Tile,
    product: &'a Product,
    group: &'a Group<'c>,
    needed: &'a Needed<'c>,
    kinds: &'a [(Val<'c>, Kind)],
}

impl<'c> Body<'_, 'c> {
    fn emit(
        &self,
        kernel: &Kernel<'c>,
        ins: &[Operand<'c>],
        outs: &[(Val<'c>, Operand<'c>)],
    ) -> PassResult<'c> {
        let code = kernel.code;
        let [bm, bn, _] = self.tile.shape;
        let mut arguments = kernel.arguments.iter().copied();
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
        let keys = self
            .needed
            .inputs
            .iter()
            .map(|(value, kind)| (identity(*value), *kind));
        let inputs: HashMap<_, _> = keys.zip(memrefs).collect();
        let scalars: HashMap<_, _> = self
            .needed
            .scalars
            .iter()
            .map(|value| identity(*value))
            .zip(arguments.by_ref())
            .collect();
        let registers = registers(code, [bm, bn], self.product.d.clone())?;
        let origin = self.origin(code, &a)?;
        let a = self.path(code, a, self.gemm.trans_a, bm, &self.product.a)?;
        let b = self.path(code, b, !self.gemm.trans_b, bn, &self.product.b)?;
        let mut evaluator = Evaluator {
            code,
            group: self.group,
            registers: &registers,
            columns: self.gemm.n,
            arguments: &inputs,
            scalars: &scalars,
            origin: origin.clone(),
            known: HashMap::new(),
        };
        let start = self.start(&mut evaluator, &registers)?;
        let sum = self.main_loop(code, &origin, [&a, &b], start)?;
        let result = self.convert(
            code,
            &registers,
            sum,
            code.builder.tensor_of(self.gemm.result)?.element,
        )?;
        evaluator.known.clear();
        evaluator
            .known
            .insert((identity(self.gemm.result), Kind::Full), result);
        for ((value, kind), ((_, out), memref)) in self.kinds.iter().zip(outs.iter().zip(arguments))
        {
            let to = Argument {
                memref,
                extents: out.shape.clone(),
            };
            evaluator.store(*value, *kind, &to)?;
        }
        Ok(())
    }

    /// The tile of this CTA. Tiles are taken in groups of [`RASTER_ROWS`] rows, column by column in a group.
    fn origin(&self, code: Code<'c>, a: &Argument<'c>) -> PassResult<'c, Origin<'c>> {
        let [bm, bn, _] = self.tile.shape;
        let block = code.block("x")?;
        let m = self.gemm.m;
        let rows = code.leading(a.memref, m)?;
        let columns = count(self.gemm.n, bn);
        let (row, column) = if columns == 1 {
            (block, code.index(0)?)
        } else if m != DYNAMIC && count(m, bm) <= RASTER_ROWS {
            let tiles = code.index(count(m, bm))?;
            (code.rem(block, tiles)?, code.div(block, tiles)?)
        } else {
            let tiles = code.ceil_div(rows, bm)?;
            let width = code.index(RASTER_ROWS * columns)?;
            let first = code.times(code.div(block, width)?, RASTER_ROWS)?;
            let high = code.min(code.sub(tiles, first)?, code.index(RASTER_ROWS)?)?;
            let inside = code.rem(block, width)?;
            (
                code.add(first, code.rem(inside, high)?)?,
                code.div(inside, high)?,
            )
        };
        Ok(Origin {
            batch: self.gemm.batch.map(|_| code.block("z")).transpose()?,
            row: code.times(row, bm)?,
            column: code.times(column, bn)?,
            limit: [rows, code.index(self.gemm.n)?],
        })
    }

    /// The way of an operand whose tile has `rows` rows of the result's extent; `swapped` says that memory has
    /// k first.
    fn path(
        &self,
        code: Code<'c>,
        global: Argument<'c>,
        swapped: bool,
        rows: i64,
        fragment: &Layout,
    ) -> PassResult<'c, Path<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let [.., k] = self.tile.shape;
        let shape = if swapped { [k, rows] } else { [rows, k] };
        let fragment = match swapped {
            true => transposed(fragment, &[rows, k]).map_err(failed)?,
            false => fragment.clone(),
        };
        let (element, bytes) = (self.gemm.element, element_bytes(self.gemm.element));
        let ring = shared_ring(self.tile.stages, shape, bytes).map_err(failed)?;
        let tile = shared_tile(shape, bytes).map_err(failed)?;
        Ok(Path {
            global: global.memref,
            extents: global.extents,
            ring: code.alloc(&[self.tile.stages, shape[0], shape[1]], element, &ring)?,
            shape,
            stage: code.memref(&shape, element, &tile, Some("shared"))?,
            fragment: code.fragment(&shape, element, &fragment)?,
            transposed: swapped,
        })
    }

    fn start(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        registers: &Registers,
    ) -> PassResult<'c, Val<'c>> {
        let code = evaluator.code;
        match self.gemm.start {
            Some(start) => {
                let value = evaluator.value(start, Kind::Full)?;
                self.convert(code, registers, value, self.gemm.accumulator)
            }
            None => {
                let zero = code.scalar(self.gemm.accumulator, Number::Of(0))?;
                code.fill(
                    zero,
                    registers.r#type(code, Kind::Full, self.gemm.accumulator)?,
                )
            }
        }
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

    /// Starts the copies of tile `k` of A and B, as one group. A tile beyond the end reads as zeros.
    fn fetch(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        paths: [&Path<'c>; 2],
        k: Val<'c>,
        stage: Val<'c>,
    ) -> PassResult<'c> {
        let depth = code.times(k, self.tile.shape[2])?;
        for (path, start) in paths.into_iter().zip([origin.row, origin.column]) {
            let at = if path.transposed {
                [depth, start]
            } else {
                [start, depth]
            };
            let at: Vec<_> = origin.batch.into_iter().chain(at).collect();
            let from = code.global_box(path.global, &path.extents, &at, &path.shape)?;
            code.copy_async(from, self.stage(code, path, stage)?)?;
        }
        code.commit()
    }

    fn stage(&self, code: Code<'c>, path: &Path<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(path.ring, &[stage, zero, zero], path.stage)
    }

    /// Sums the products of all tiles along k, with `stages - 1` tiles on their way.
    fn main_loop(
        &self,
        code: Code<'c>,
        origin: &Origin<'c>,
        paths: [&Path<'c>; 2],
        start: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let ahead = self.tile.stages - 1;
        for k in 0..ahead {
            let k = code.index(k)?;
            self.fetch(code, origin, paths, k, k)?;
        }
        let tiles = code.index(count(self.gemm.k, self.tile.shape[2]))?;
        let sums = code.for_each(tiles, 1, &[start], |code, k, carried| {
            // The tile has arrived, and all threads are done with the one before: its stage is free.
            code.wait(ahead - 1)?;
            let stages = code.index(self.tile.stages)?;
            let next = code.add(k, code.index(ahead)?)?;
            self.fetch(code, origin, paths, next, code.rem(next, stages)?)?;
            let stage = code.rem(k, stages)?;
            let [a, b] = paths;
            let a = code.load(self.stage(code, a, stage)?, a.fragment)?;
            let b = code.load(self.stage(code, b, stage)?, b.fragment)?;
            let sum = carried.first().copied().unwrap_or(start);
            Ok(vec![code.gemm(
                [a, b, sum],
                [self.gemm.trans_a, self.gemm.trans_b],
            )?])
        })?;
        // No copy may still be writing when shared memory is used again.
        code.wait(0)?;
        sums.first()
            .copied()
            .ok_or_else(|| layout_error(code.builder.location, "the loop gives no sum"))
    }
}
