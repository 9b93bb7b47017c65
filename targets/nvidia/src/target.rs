//! What the target-neutral passes ask of NVIDIA GPUs.

use crate::facts::chip::{self, CHIPS, Chip};
use crate::{emit, limits, planner, toolchain};
use axe_passes::registry::PassContext;
use axe_passes::target::Target;
use axe_passes::{PassError, PassResult};
use melior::dialect::DialectHandle;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use mlir_sys as sys;

/// The chip that passes and pipelines take where none is named.
pub(crate) const DEFAULT_CHIP: &str = "sm_90a";

unsafe extern "C" {
    /// Adds what passes find by interfaces; cpp/Models.cpp.
    fn axeNvidiaModels(registry: sys::MlirDialectRegistry);
}

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

    fn default_chip(&self) -> &'static str {
        DEFAULT_CHIP
    }

    fn dialects(&self) -> Vec<DialectHandle> {
        // SAFETY: the functions return the handles of dialects that are linked in.
        let linked = unsafe {
            [
                DialectHandle::from_raw(sys::mlirGetDialectHandle__nvvm__()),
                DialectHandle::from_raw(sys::mlirGetDialectHandle__vector__()),
            ]
        };
        let mut all = vec![DialectHandle::gpu(), DialectHandle::llvm()];
        all.extend(linked);
        all
    }

    fn models(&self, registry: sys::MlirDialectRegistry) {
        // SAFETY: the registry is live.
        unsafe { axeNvidiaModels(registry) };
    }

    fn documentation(&self) -> String {
        include_str!("documentation.md").to_owned()
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
        limits::check(module)?;
        emit::dispatch(module, chip_of(module, chip)?, pass)
    }

    fn lower<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        limits::check(module)?;
        emit::lower(module, chip_of(module, chip)?, pass)
    }

    fn verify<'c>(
        &self,
        module: OperationRef<'c, 'c>,
        chip: &str,
        pass: &mut PassContext,
    ) -> PassResult<'c> {
        limits::check(module)?;
        emit::verify(module, chip_of(module, chip)?, pass)
    }

    fn verify_code<'c>(&self, module: OperationRef<'c, 'c>) -> PassResult<'c> {
        toolchain::verify(module)
    }
}
