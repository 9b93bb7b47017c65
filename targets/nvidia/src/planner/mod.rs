//! Kernels from logical operators: `--axe-plan-kernels`.
//!
//! What enters: functions of logical axe operators on tensors. What remains: the same functions with one
//! `axe.launch` a group of operators, reshapes of its operands and results, and one `axe.kernel` a group.
//!
//! * [`layouts`] and [`cost`]: register tensors, shared memory, tiles, without any IR;
//! * [`budgets`]: the registers of roles;
//! * [`gemm`], [`specialised`], [`pieces`], [`scaled`], [`plain`], [`tiles`], [`single`]: the kernels;
//! * [`padded`], [`parts`], [`tail`]: kernels before a product's own, and after it;
//! * [`entries`], [`choice`], [`tuned`], [`offered`], [`search`], [`variant`]: where the plan of a product comes from, and
//!   what a tuner tries;
//! * [`widen`]: products of 8-bit floats where no instruction takes them;
//!
//! Groups, their evaluation on a tile and the function around the kernels are [`axe_passes::fuse`].

mod budgets;
mod choice;
pub mod cost;
mod entries;
mod factors;
mod gemm;
pub mod layouts;
mod offered;
mod padded;
mod panels;
mod parts;
mod pieces;
mod pipeline;
mod plain;
mod product;
mod scaled;
pub mod search;
mod single;
mod specialised;
mod split;
mod tail;
pub mod tiles;
mod time;
mod tuned;
pub mod variant;
pub mod wide;
mod widen;

pub use scaled::Blocks;
pub use tuned::products;

use crate::facts::chip::Chip;
use axe_package::TunedDb;
use axe_passes::PassResult;
use axe_passes::fuse::frame::Frame;
use axe_passes::fuse::function::{self, Kernels};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::operators::start_of;
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::registry::PassContext;
use melior::ir::OperationRef;
use std::sync::Arc;

/// What kernels are planned for.
pub(crate) struct Planner {
    /// What they run on.
    chip: &'static Chip,
    /// Plans that were fastest on a device.
    plans: Arc<TunedDb>,
    /// Whether to print where plans come from.
    explain: bool,
}

/// Plans the kernels of a module.
///
/// # Errors
/// At the operator that cannot be planned.
pub(crate) fn run<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let planner = Planner {
        chip,
        plans: tuned::plans(module, pass.option("tuned"))?,
        explain: pass.flag("explain"),
    };
    let kernels = function::plan(module, &planner)?;
    pass.count("num-kernels", kernels);
    Ok(())
}

impl<'c> Kernels<'c> for Planner {
    fn prepare(&self, ops: &[Op<'c>]) -> PassResult<'c> {
        single::split_reductions(ops)?;
        widen::widen(ops, self.chip)
    }

    fn plan(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        group: &Group<'c>,
        outputs: &[Val<'c>],
    ) -> PassResult<'c> {
        match group.root {
            Root::Gemm(op) => {
                let fusion = Fusion::read(group, outputs, start_of(op))?;
                gemm::plan(self, frame, builder, op, &fusion)
            }
            Root::Tiles => {
                let fusion = Fusion::read(group, outputs, None)?;
                tiles::plan(frame, builder, &fusion)
            }
            Root::Single(op) => single::plan(frame, builder, op),
        }
    }
}
