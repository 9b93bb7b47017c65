//! Kernels of loops: what no operator says (`linalg.generic` with indices, gathers, windows, several results), and operators
//! that no other family takes. Threads share out the points of the parallel loops, however many there are.

use super::choose::search::{self, Candidate};
use super::family::{Family, Launch};
use super::knobs::Plan;
use super::problem::count;
use crate::facts::chip::{ACCESS_BYTES, Chip};
use crate::plan::nest::{is_cached, neighbours, of_rows, shares};
use axe_passes::build::{Kernel, launch};
use axe_passes::fuse::arguments::{argument_types, launched};
use axe_passes::fuse::frame::{Operand, Out, operand};
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::nest::{Nest, PointsOfRows, Start, reused_table, row_folds};
use axe_passes::fuse::reshape::{element_bytes, extent_of};
use axe_passes::ir::value::{identity, name, results};
use axe_passes::ir::{Builder, DYNAMIC, TensorType, Val, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::fmt;

/// The family of loops.
pub(super) struct Loops;

/// Threads of a CTA: eight warps hide the latency of gathers, and leave each thread as many registers as it can have.
const THREADS: i64 = 256;
/// CTAs a multiprocessor has work for: the eight that it holds, some times over, so that long points do not wait for each other.
const CTAS_A_MULTIPROCESSOR: i64 = 64;

/// The CTAs and their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    threads: i64,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{threads = {}}}", self.threads)
    }
}

/// What is moved and computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Bytes of the tensors, for each of the extents that are known at run time only.
    bytes: i64,
    /// Turns of all loops.
    turns: i64,
}

impl Family for Loops {
    type Operators<'c> = Nest<'c>;
    type Problem = Problem;
    type Config = Config;

    /// The loops' order follows from the result.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        _: &[Val<'c>],
        builder: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Nest<'c>> {
        match group.root {
            Root::Single(op) => Nest::read(op),
            _ => Err(PassError::new(builder.location, "expected one operator")),
        }
    }

    fn problem(nest: &Nest<'_>, _: &Chip) -> Problem {
        let known = |extents: &[i64]| {
            let known = extents.iter().filter(|extent| **extent != DYNAMIC);
            known.fold(1i64, |product, extent| product.saturating_mul(*extent))
        };
        let bytes = |value: &Val<'_>| {
            let tensor = TensorType::of_value(*value);
            tensor.map_or(0, |tensor| {
                known(&tensor.shape).saturating_mul(element_bytes(tensor.element))
            })
        };
        let tensors = nest.reads.iter().chain(&nest.inits);
        Problem {
            bytes: tensors.fold(0, |sum, value| sum.saturating_add(bytes(value))),
            turns: known(&nest.extents),
        }
    }

    fn configure(_: &Nest<'_>, _: &Plan, _: &Chip) -> Result<Config, String> {
        Ok(Config { threads: THREADS })
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<Config>> {
        let config = Config { threads: THREADS };
        let clocks = Self::clocks(problem, config, chip);
        search::only(config, clocks, limit)
    }

    /// All multiprocessors move the bytes, or their lanes take the turns, one at a time.
    fn clocks(problem: Problem, _: Config, chip: &Chip) -> f64 {
        let share = 1.0 / chip.multiprocessors as f64;
        let moved = problem.bytes as f64 * share / chip.mma.l2_bytes;
        moved.max(problem.turns as f64 / lanes(chip) as f64) + chip.mma.overhead
    }

    fn tile(config: Config) -> [i64; 3] {
        [1, config.threads, 1]
    }

    fn described(nest: &Nest<'_>) -> String {
        name(nest.op)
    }

    fn emit<'c>(
        nest: &Nest<'c>,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let builder = launch.builder;
        let mut ins = Vec::new();
        for value in &nest.reads {
            ins.push(argument(launch, *value)?);
        }
        let outs = outs(nest, launch)?;
        let types = argument_types(&ins, &nest.scalars, &outs);
        let kernel = Kernel::new(builder.location, launch.frame.module, &types);
        nest.emit(&kernel)?;
        let symbol = launch.frame.name("loops");
        kernel.finish(launch.frame.module, &symbol, config.threads)?;
        let grid = grid(nest, config, launch)?;
        let given = launched(&ins, &nest.scalars);
        store(launch, &symbol, grid, (&given, &outs))?;
        Ok(symbol)
    }
}

/// Lanes of the chip that compute at once: four warps of each multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities").
pub(super) const fn lanes(chip: &Chip) -> i64 {
    chip.multiprocessors.saturating_mul(128)
}

/// A tensor in its own shape.
fn argument<'c>(launch: &mut Launch<'_, 'c>, value: Val<'c>) -> PassResult<'c, Operand<'c>> {
    let tensor = launch.frame.resolve(launch.builder, value)?;
    let shape = launch.builder.tensor_of(tensor)?.shape;
    operand(launch.builder, tensor, &shape)
}

/// What the kernel writes: new tensors, and initial values that it adds to.
fn outs<'c>(nest: &Nest<'c>, launch: &mut Launch<'_, 'c>) -> PassResult<'c, Vec<Out<'c>>> {
    let builder = launch.builder;
    let mut outs = Vec::new();
    for ((result, init), start) in results(nest.op)
        .into_iter()
        .zip(&nest.inits)
        .zip(&nest.starts)
    {
        if matches!(start, Start::Memory) {
            outs.push((result, argument(launch, *init)?));
            continue;
        }
        let tensor = builder.tensor_of(result)?;
        let mut sizes = Vec::new();
        for (dim, extent) in tensor.shape.iter().enumerate() {
            if *extent == DYNAMIC {
                sizes.push(extent_of(builder, *init, dim)?);
            }
        }
        let empty = builder.value("tensor.empty", &sizes, result.r#type(), &[])?;
        outs.push((result, operand(builder, empty, &tensor.shape)?));
    }
    Ok(outs)
}

/// As many CTAs as there are points for, and the chip has room for.
fn grid<'c>(
    nest: &Nest<'c>,
    config: Config,
    launch: &Launch<'_, 'c>,
) -> PassResult<'c, [Val<'c>; 3]> {
    let builder = launch.builder;
    let index = builder.index_type();
    let most = launch
        .chip
        .multiprocessors
        .saturating_mul(CTAS_A_MULTIPROCESSOR);
    let mut known = 1i64;
    let mut unknown = Vec::new();
    for at in nest.parallel() {
        match nest.extents.get(at) {
            Some(&extent) if extent != DYNAMIC => {
                known = known.checked_mul(extent).ok_or_else(|| {
                    PassError::new(
                        nest.op.location(),
                        "expected fewer than 2^63 points of parallel loops",
                    )
                })?;
            }
            _ => unknown.push(nest.extent(builder, at)?),
        }
    }
    let one = builder.index(1)?;
    if unknown.is_empty() {
        let blocks = match in_order(nest, known, launch.chip) {
            Some(at_once) => count(known, config.threads.saturating_mul(at_once)),
            None => count(known, config.threads * at_once(nest)).min(most),
        };
        return Ok([builder.index(blocks.min(i64::from(i32::MAX)))?, one, one]);
    }
    let mut points = builder.index(known)?;
    for extent in unknown {
        points = builder.value("arith.muli", &[points, extent], index, &[])?;
    }
    let threads = builder.index(config.threads)?;
    let blocks = builder.value("arith.ceildivui", &[points, threads], index, &[])?;
    let blocks = builder.value("arith.minui", &[blocks, builder.index(most)?], index, &[])?;
    Ok([blocks, one, one])
}

/// The neighbours that a thread has at once ([`NestPlan`]), where its body is no longer than it is here.
fn at_once(nest: &Nest<'_>) -> i64 {
    let parallel = nest.parallel().into_iter();
    let extents: Vec<_> = parallel
        .map(|at| nest.extents.get(at).copied().filter(|own| *own != DYNAMIC))
        .collect();
    let body = walk::nested(nest.op, &|_| true);
    let loops = body.iter().any(|op| name(*op) == "scf.for");
    let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    if nest.reductions.contains(&true) {
        return 1;
    }
    let sizes = [narrowest(nest), length];
    let in_rows = || {
        let last = nest.parallel().last().copied()?;
        let row = nest.extents.get(last).copied()?;
        let folds = row_folds(nest.op, last, row).filter(|folds| !folds.is_empty());
        folds.and_then(|_| of_rows(sizes, &extents))
    };
    match loops.then(in_rows).flatten() {
        Some([vector, _]) => vector,
        None => neighbours(sizes, loops, |number| shares(number, &extents).is_some()),
    }
}

/// Operations that forming what a row is reduced to adds to a body, about.
const OPERATIONS_OF_ROWS: usize = 24;

/// Whether warps have the points of whole rows, and share out what the rows are reduced to.
pub(super) fn share_rows(rows: PointsOfRows) -> bool {
    let operations = rows.operations.saturating_add(OPERATIONS_OF_ROWS);
    let sizes = [rows.bytes, i64::try_from(operations).unwrap_or(i64::MAX)];
    let others = rows.points.checked_div(rows.columns);
    of_rows(sizes, &[others, Some(rows.columns)]).is_some()
}

/// Bytes of the narrowest result.
fn narrowest(nest: &Nest<'_>) -> i64 {
    let results = results(nest.op).into_iter();
    let results = results.filter_map(TensorType::of_value);
    let bytes = results.map(|result| element_bytes(result.element)).min();
    bytes.unwrap_or(ACCESS_BYTES).max(1)
}

/// Where points read rows of a table several times that half of L2 does not hold, they are gone through in order, so that what was read
/// is there (`slices` in `plan/nest.rs`): each thread has its points once, so many neighbours at most.
fn in_order(nest: &Nest<'_>, points: i64, chip: &Chip) -> Option<i64> {
    let last = nest.parallel().last().copied()?;
    let table = reused_table(nest.op, last, points)?;
    (!is_cached(table, chip.cache_bytes)).then(|| (ACCESS_BYTES / narrowest(nest)).max(1))
}

/// Launches the kernel, whose results take the place of the operation's.
fn store<'c>(
    here: &mut Launch<'_, 'c>,
    symbol: &str,
    grid: [Val<'c>; 3],
    (ins, outs): (&[Val<'c>], &[Out<'c>]),
) -> PassResult<'c> {
    let tensors: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
    let given = launch(here.builder, symbol, grid, ins, &tensors)?;
    for ((value, _), result) in outs.iter().zip(given) {
        let result = here.builder.with_type(result, value.r#type())?;
        here.frame.stored.insert(identity(*value), result);
    }
    Ok(())
}
