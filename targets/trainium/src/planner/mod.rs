//! Kernels from logical operators: `--axe-plan-kernels=target=trn1`.
//!
//! What enters: functions of logical axe operators on tensors. What remains: the same functions with one `axe.launch` a
//! group of operators, and one `trn.kernel` a group. Groups are [`axe_passes::fuse`]'s; a group is read as a graph of
//! values ([`read`], [`body`]), which [`axe_trn::plan`] makes a program of; [`crate::write`] writes it.

mod attention;
mod body;
mod explain;
mod product;
mod read;
mod single;

use crate::{tiles, write};
use axe_dialect::ops;
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::frame::{Frame, Out};
use axe_passes::fuse::function::{self, Kernels};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::nest::is_nest;
use axe_passes::fuse::space::{Kind, Size};
use axe_passes::ir::value::{defining, name};
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult};
use axe_trn::facts::chip::Chip;
use axe_trn::plan::rows;
use axe_trn::program::Program;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use read::Reader;

pub(crate) use body::Body;
pub(crate) use read::{combined, dtype};

/// Most columns of a space that nothing ties to rows: transfers have full rate long before.
const MOST_COLUMNS: i64 = 4096;

/// What kernels are planned for.
struct Planner {
    chip: &'static Chip,
    explain: bool,
}

/// Plans the kernels of a module; how many there are.
///
/// # Errors
/// At each operator that cannot be planned.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c, usize> {
    let tiles = tiles::run(module, chip, pass)?;
    let planner = Planner {
        chip,
        explain: pass.flag("explain"),
    };
    let planned = function::plan(module, &planner, pass.flag("allow-unsupported"))?;
    Ok(tiles + planned)
}

impl<'c> Kernels<'c> for Planner {
    fn prepare(&self, ops: &[Op<'c>]) -> PassResult<'c> {
        single::turn_reductions(ops)
    }

    fn takes(&self, found: &Attention<'c>) -> Result<(), String> {
        self.takes_attention(found)
    }

    fn explains(&self) -> bool {
        self.explain
    }

    fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c> {
        if group.total.dynamic {
            return Err(PassError::new(
                builder.location,
                "expected static extents: a kernel of Trainium is compiled for its sizes",
            ));
        }
        match group.root {
            Root::Gemm(op) => self.product(frame, builder, group, outputs, op),
            Root::Tiles => self.rows(frame, builder, group, outputs),
            Root::Single(op) if name(op) == ops::TOP_K => Err(PassError::new(
                op.location(),
                "'axe.top_k' has no kernel of its own on Trainium: expected a kernel with trn.max8, which finds eight at a time",
            )),
            Root::Single(op) if !is_nest(op) => self.single(frame, builder, op),
            Root::Single(op) => Err(PassError::new(
                op.location(),
                format!(
                    "'{}' is a loop nest that no operator says: Trainium has kernels of operators alone",
                    name(op)
                ),
            )),
            Root::Columns(op) => self.single(frame, builder, op),
            Root::Attention(_) => self.attention(frame, builder, group),
            Root::Gradients(op) => Err(PassError::new(
                op.location(),
                "Trainium has no kernel of attention's gradients",
            )),
        }
    }
}

/// What is launched: a program, and its operands.
struct Launch<'c> {
    program: Program,
    inputs: Vec<Val<'c>>,
    outputs: Vec<Out<'c>>,
}

impl Planner {
    /// Elementwise operators and reductions of rows.
    fn rows<'c>(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c> {
        let user = owner(group, builder)?;
        let fusion = Fusion::read(group, outputs, None)?;
        refuse_scalars(&fusion, user)?;
        let columns = fusion
            .columns()
            .unwrap_or_else(|| free_columns(fusion.total));
        let reader = Reader::read(&fusion, user, columns)?;
        let what = if reader.graph.folds().is_empty() {
            "map"
        } else {
            "rows"
        };
        let kernel = frame.name(what);
        let program = rows::plan(&reader.graph, &kernel, self.chip.name)
            .map_err(|declined| PassError::new(builder.location, declined.to_string()))?;
        self.report(&program, &reader, group, Vec::new());
        let (inputs, outputs) = operands(frame, builder, &fusion, columns)?;
        let launch = Launch {
            program,
            inputs,
            outputs,
        };
        launched(frame, builder, launch)
    }
}

/// An operator of a group, where errors about all of it are.
fn owner<'c>(group: &Group<'c>, builder: &Builder<'c>) -> PassResult<'c, Op<'c>> {
    let first = group.owned.first().copied();
    first.ok_or_else(|| PassError::new(builder.location, "a group without operators"))
}

/// A kernel's arguments are tensors.
fn refuse_scalars<'c>(fusion: &Fusion<'c>, user: Op<'c>) -> PassResult<'c> {
    // What is computed from constants is read as a constant.
    let foreign = fusion
        .scalars
        .iter()
        .find(|scalar| defining(**scalar).is_none());
    match foreign {
        None => Ok(()),
        Some(scalar) => Err(PassError::new(
            user.location(),
            format!(
                "'{}' reads the scalar {scalar}: kernels of Trainium have tensors as arguments alone",
                name(user)
            ),
        )),
    }
}

/// Columns for elements that nothing ties to rows: the most that leave rows for all partitions.
fn free_columns(total: Size) -> i64 {
    let divides = |columns: &i64| total.known % columns == 0;
    let most = (total.known / 128).clamp(1, MOST_COLUMNS);
    let found = (1..=most).rev().find(divides);
    match found {
        Some(columns) if columns > 1 => columns,
        _ => (1..=MOST_COLUMNS.min(total.known))
            .rev()
            .find(divides)
            .unwrap_or(1),
    }
}

/// The tensors of a group outside its kernel, in the kernel's shapes.
fn operands<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    fusion: &Fusion<'c>,
    columns: i64,
) -> PassResult<'c, (Vec<Val<'c>>, Vec<Out<'c>>)> {
    let shape = |kind: Kind| fusion.shape(columns, None, kind);
    let mut inputs = Vec::new();
    for (value, kind) in &fusion.inputs {
        inputs.push(frame.operand(builder, *value, &shape(*kind))?.tensor);
    }
    let mut outputs = Vec::new();
    for (value, kind) in &fusion.outputs {
        outputs.push((*value, frame.out(builder, *value, &shape(*kind))?));
    }
    Ok((inputs, outputs))
}

/// Adds the kernel, and launches it.
fn launched<'c>(
    frame: &mut Frame<'c>,
    builder: &Builder<'c>,
    launch: Launch<'c>,
) -> PassResult<'c> {
    write::kernel(frame.module, builder.location, &launch.program)?;
    let one = builder.index(1)?;
    frame.launch(
        builder,
        &launch.program.name,
        [one; 3],
        &launch.inputs,
        &launch.outputs,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_elements_leave_rows_for_the_partitions() {
        let of = |known| {
            free_columns(Size {
                dynamic: false,
                known,
            })
        };
        assert_eq!(of(128 * 1000), 1000);
        assert_eq!(of(1 << 24), 4096);
        assert_eq!(of(1000), 5);
        assert_eq!(of(97), 97);
        assert_eq!(of(1), 1);
    }
}
