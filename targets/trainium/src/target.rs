//! What the target-neutral passes ask of Trainium.

use crate::planner;
use axe_passes::registry::PassContext;
use axe_passes::target::Target;
use axe_passes::{PassError, PassResult};
use axe_trn::facts::chip::{self, CHIPS, Chip};
use melior::dialect::DialectHandle;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

/// The family of Trainium chips.
pub(crate) struct Trainium;

/// The chip's facts.
fn chip_of<'c>(module: OperationRef<'c, 'c>, name: &str) -> PassResult<'c, &'static Chip> {
    chip::chip(name)
        .ok_or_else(|| PassError::new(module.location(), format!("unknown chip '{name}'")))
}

impl Target for Trainium {
    fn name(&self) -> &'static str {
        "trainium"
    }

    fn has_chip(&self, chip: &str) -> bool {
        chip::chip(chip).is_some()
    }

    fn chips(&self) -> Vec<&'static str> {
        CHIPS.iter().map(|chip| chip.name).collect()
    }

    fn dialects(&self) -> Vec<DialectHandle> {
        // Loops and their bounds are written where a kernel had none.
        vec![
            crate::handle(),
            DialectHandle::scf(),
            DialectHandle::arith(),
        ]
    }

    fn plan_kernels<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        let kernels = planner::run(module, chip_of(module, chip)?, pass)?;
        pass.count("num-kernels", kernels);
        Ok(())
    }

    /// Logical operators are bound to instructions when their kernel is planned, for the tiles follow from the engines.
    fn dispatch<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        let kernels = planner::run(module, chip_of(module, chip)?, pass)?;
        pass.count("num-dispatched", kernels);
        Ok(())
    }

    /// There is nothing left to lower: plans are kernels of the trn dialect.
    fn lower<'c>(&self, _: OperationRef<'c, 'c>, _: &str, _: &mut PassContext) -> PassResult<'c> {
        Ok(())
    }

    /// Instructions are verified as operations.
    fn verify<'c>(&self, _: OperationRef<'c, 'c>, _: &str, _: &mut PassContext) -> PassResult<'c> {
        Ok(())
    }

    fn verify_code<'c>(&self, _: OperationRef<'c, 'c>) -> PassResult<'c> {
        Ok(())
    }
}
