//! What the target-neutral passes ask of NVIDIA GPUs.

use crate::facts::chip::{self, CHIPS, Chip};
use crate::{emit, planner};
use axe_passes::registry::PassContext;
use axe_passes::target::Target;
use axe_passes::{PassError, PassResult};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

/// The family of NVIDIA GPUs.
pub(crate) struct Nvidia;

/// The chip's facts.
fn chip_of<'c>(module: OperationRef<'c, 'c>, name: &str) -> PassResult<'c, &'static Chip> {
    chip::chip(name)
        .ok_or_else(|| PassError::new(module.location(), format!("unknown chip '{name}'")))
}

impl Target for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    fn has_chip(&self, chip: &str) -> bool {
        chip::chip(chip).is_some()
    }

    fn chips(&self) -> Vec<&'static str> {
        CHIPS.iter().map(|chip| chip.name).collect()
    }

    fn plan_kernels<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        planner::run(module, chip_of(module, chip)?, pass)
    }

    fn dispatch<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        emit::dispatch(module, chip_of(module, chip)?, pass)
    }

    fn verify<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        emit::verify(module, chip_of(module, chip)?, pass)
    }
}
