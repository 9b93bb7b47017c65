//! Arguments of kernels of tiles: tensors in HBM, which a kernel reads or writes; and the blocks of the launch, which are
//! loops around the body.

use super::lowering::{Lowering, Value, failed};
use super::storage::{self, Form, Storage, Tensor};
use crate::read;
use axe_dialect::Typed;
use axe_dialect::ops::{self, CopyOp, FillOp, LaunchOp};
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::ir::types::is_memref;
use axe_passes::ir::value::{defined_by, name, only_result, operands, users};
use axe_passes::ir::{Op, Val, attribute, walk};
use axe_trn::program::Space;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};

/// A kernel with what it is launched on.
pub(super) struct Arguments<'c> {
    kernel: Op<'c>,
    body: BlockRef<'c, 'c>,
    values: Vec<Val<'c>>,
    /// How many are read; the others are written.
    inputs: usize,
    /// Blocks of the launch in x, y and z.
    grid: [i64; 3],
}

/// Whether a launch names a symbol of its own module.
pub(super) fn launches(launch: &LaunchOp<'_>, symbol: &str) -> bool {
    let text = launch.kernel.to_string();
    text.strip_prefix('@')
        .is_some_and(|text| text.trim_matches('"') == symbol)
}

impl<'c> Arguments<'c> {
    /// Reads a kernel's arguments.
    ///
    /// # Errors
    /// At the kernel or a launch of it, for what is no tensor in HBM, or is read and written.
    pub fn of(kernel: Op<'c>, launches: &[LaunchOp<'c>]) -> PassResult<'c, Self> {
        let blocks = walk::blocks(kernel);
        let &[body] = blocks.as_slice() else {
            return Err(failed(kernel, "expected a body without branches"));
        };
        let values = walk::block_arguments(body);
        let mut roles = Vec::new();
        for (number, value) in values.iter().enumerate() {
            if !is_memref(value.r#type()) {
                return Err(failed(
                    kernel,
                    format!(
                        "argument {number} is a scalar: kernels of Trainium have tensors as arguments alone"
                    ),
                ));
            }
            roles.push(is_written(kernel, number, *value)?);
        }
        let inputs = roles.iter().position(|role| *role == Some(true));
        let inputs = inputs.unwrap_or(roles.len());
        if let Some(at) = roles
            .iter()
            .skip(inputs)
            .position(|role| *role == Some(false))
        {
            let why = format!(
                "argument {} is read behind argument {inputs}, which is written: expected those that are written last",
                inputs + at
            );
            return Err(failed(kernel, why));
        }
        for launch in launches {
            if launch.inputs.len() != inputs {
                let why = format!(
                    "expected {inputs} tensors among ins and {} among outs, as the kernel reads and writes them, got {} and {}",
                    values.len() - inputs,
                    launch.inputs.len(),
                    launch.outputs.len()
                );
                return Err(failed(launch.op, why));
            }
        }
        let grid = grid(kernel, launches)?;
        Ok(Self {
            kernel,
            body,
            values,
            inputs,
            grid,
        })
    }

    /// Makes the arguments buffers in HBM.
    pub fn declare(&self, lowering: &mut Lowering<'c>) -> PassResult<'c> {
        lowering.code.locate(read::location(self.kernel));
        for (number, value) in self.values.iter().enumerate() {
            let form = storage::storage_form(value.r#type()).and_then(row_major);
            let form =
                form.map_err(|why| failed(self.kernel, format!("argument {number}: {why}")))?;
            let (shape, dtype) = (&form.shape, form.dtype);
            let tile = match number.checked_sub(self.inputs) {
                None => lowering.code.input(&format!("in{number}"), shape, dtype),
                Some(number) => lowering.code.output(&format!("out{number}"), shape, dtype),
            };
            let region = storage::region(tile.buffer(), &form);
            let tensor = Tensor {
                region: Lowering::found(self.kernel, region)?,
                dtype,
                space: Space::Hbm,
            };
            let rest = vec![Vec::new(); form.shape.len()];
            let lost = false;
            lowering.know(*value, Value::Storage(Storage { tensor, rest, lost }));
        }
        Ok(())
    }

    /// The body, in loops over the blocks of the launch.
    pub fn body(&self, lowering: &mut Lowering<'c>) -> PassResult<'c> {
        let mut ids: Vec<Vec<Val<'c>>> = vec![Vec::new(); 3];
        for op in walk::nested(self.kernel, &|_| true) {
            let Some((dimension, result)) = dimension(op).zip(only_result(op)) else {
                continue;
            };
            match name(op).as_str() {
                "gpu.block_id" => ids[dimension].push(result),
                _ => lowering.indices.bind(result, self.grid[dimension].into()),
            }
        }
        lowering.blocks(self.kernel, self.body, self.grid, &ids)
    }
}

/// The dimension of an operation that asks for a block's place or the grid.
fn dimension(op: Op<'_>) -> Option<usize> {
    ["gpu.block_id", "gpu.grid_dim"]
        .contains(&name(op).as_str())
        .then_some(())?;
    let text = op.attribute("dimension").ok()?.to_string();
    ["x", "y", "z"]
        .iter()
        .position(|known| text.contains(&format!("dim {known}")))
}

/// Whether a kernel writes an argument; `None` where it does not use it.
fn is_written<'c>(
    kernel: Op<'c>,
    number: usize,
    argument: Val<'c>,
) -> PassResult<'c, Option<bool>> {
    let (mut reads, mut writes) = (false, false);
    let mut names = vec![argument];
    while let Some(value) = names.pop() {
        for user in users(value) {
            match name(user).as_str() {
                ops::SLICE | ops::VIEW => names.extend(only_result(user)),
                ops::COPY => {
                    let copy: Option<CopyOp> = Typed::of(user);
                    let is = |of: Option<Val<'c>>| of == Some(value);
                    writes |= copy.as_ref().is_some_and(|copy| is(copy.dest));
                    reads |= copy.is_some_and(|copy| is(Some(copy.source)));
                }
                ops::FILL => {
                    let fill: Option<FillOp> = Typed::of(user);
                    writes |= fill.is_some_and(|fill| fill.dest == Some(value));
                }
                _ => reads = true,
            }
        }
    }
    match (reads, writes) {
        (true, true) => Err(failed(
            kernel,
            format!("argument {number} is read and written: expected a result of its own"),
        )),
        (false, false) => Ok(None),
        (_, writes) => Ok(Some(writes)),
    }
}

/// An argument's elements lie one after another, as the tensor that is passed.
fn row_major(form: Form) -> storage::Found<Form> {
    let expected = Layout::row_major(&form.shape).map_err(|error| error.to_string())?;
    match form.space == Space::Hbm && storage::same_places(&expected, &form.layout) {
        true => Ok(form),
        false => Err(format!(
            "expected a tensor in HBM in row-major order, got one at {} in {}: axe.view says another order",
            form.layout, form.space
        )),
    }
}

/// The blocks that a kernel is launched by, where it asks for them; one else, which visits all tiles.
fn grid<'c>(kernel: Op<'c>, launches: &[LaunchOp<'c>]) -> PassResult<'c, [i64; 3]> {
    let inside = walk::nested(kernel, &|_| true);
    let Some(asks) = inside.iter().find(|op| dimension(**op).is_some()) else {
        return Ok([1; 3]);
    };
    let mut found: Option<[i64; 3]> = None;
    for launch in launches {
        let extents = operands(launch.op).into_iter().take(3);
        let numbers: Option<Vec<i64>> = extents.map(constant).collect();
        let Some(Ok(grid)) = numbers.map(<[i64; 3]>::try_from) else {
            return Err(failed(
                launch.op,
                "expected a grid known when compiling: blocks are loops of the kernel",
            ));
        };
        if found.is_some_and(|known| known != grid) || grid.iter().any(|extent| *extent < 1) {
            return Err(failed(
                launch.op,
                "expected the same grid in every launch, of at least one block",
            ));
        }
        found = Some(grid);
    }
    let Some(grid) = found else {
        return Err(failed(
            *asks,
            "expected a launch of the kernel, which says how many blocks there are",
        ));
    };
    let tiles = inside.iter().find(|op| name(**op) == ops::FOR_TILES);
    match tiles {
        Some(tiles) if grid != [1; 3] => Err(failed(
            *tiles,
            "expected a kernel that does not ask for its block: one NeuronCore visits all tiles",
        )),
        _ => Ok(grid),
    }
}

fn constant(value: Val<'_>) -> Option<i64> {
    let op = defined_by(value, "arith.constant")?;
    attribute::integer(op.attribute("value").ok()?)
}
