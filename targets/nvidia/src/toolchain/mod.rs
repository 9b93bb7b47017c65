//! Kernel packages for NVIDIA GPUs: PTX, the tensor maps of launches, and machine code by ptxas.

mod incomplete;
mod losses;
mod miscompiled;
mod ptxas;
mod tensor_maps;

use crate::facts::chip::CHIPS;
use axe_package::{Arg, Kernel, Param};
use axe_passes::PassResult;
use axe_passes::ir::Op;
use axe_passes::ir::value::name;
use axe_passes::ir::walk;
use axe_toolchain::{Assembled, Memory, Toolchain};
use melior::ir::attribute::ArrayAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike, Module};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

/// The package's file of machine code.
const CUBIN: &str = "kernels.cubin";

/// NVIDIA's toolchain.
pub(crate) struct Nvidia;

impl Toolchain for Nvidia {
    fn kind(&self) -> &'static str {
        "nvidia"
    }

    fn chips(&self) -> Vec<&'static str> {
        CHIPS.iter().map(|chip| chip.name).collect()
    }

    fn pipeline(&self, chip: &str) -> String {
        format!("axe-nvidia{{chip={chip}}}")
    }

    fn code(&self, module: &Module<'_>) -> Result<Option<String>, String> {
        // SAFETY: the operations live as long as the module, which the caller keeps.
        let module = unsafe { Op::from_raw(module.as_operation().to_raw()) };
        let mut operations = walk::blocks(module).into_iter().flat_map(walk::operations);
        let Some(binary) = operations.find(|op| name(*op) == "gpu.binary") else {
            return Ok(None);
        };
        ptx(binary)
            .map(Some)
            .ok_or_else(|| "the pipeline left no PTX".to_owned())
    }

    fn complete(&self, code: &str, writing: &[&str]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(incomplete::complete(code, writing)?)
    }

    fn code_file(&self) -> &'static str {
        "kernels.ptx"
    }

    fn parameters<'c>(
        &self,
        launch: Op<'c>,
        memory: &BTreeMap<usize, Memory>,
    ) -> PassResult<'c, Vec<(Param, Arg)>> {
        tensor_maps::tensor_maps(launch, |at| memory.get(&at))
    }

    fn assemble(
        &self,
        code: &str,
        chip: &str,
        kernels: &mut [Kernel],
    ) -> Result<Assembled, Box<dyn Error + Send + Sync>> {
        let mut made = Assembled::default();
        let Some(path) = ptxas::find() else {
            made.warnings.push(
                "ptxas was not found: the package holds PTX only, which the driver compiles"
                    .to_owned(),
            );
            return Ok(made);
        };
        let start = Instant::now();
        let assembled = ptxas::assemble(&path, code, chip)?;
        made.elapsed = start.elapsed();
        made.warnings = assembled.warnings;
        for kernel in kernels {
            kernel.cubin = Some(CUBIN.to_owned());
            kernel.resources = assembled.resources.get(&kernel.symbol).cloned();
        }
        made.files.insert(CUBIN.to_owned(), assembled.cubin);
        Ok(made)
    }
}

/// The PTX of a `gpu.binary`.
fn ptx(binary: Op<'_>) -> Option<String> {
    let objects = ArrayAttribute::try_from(binary.attribute("objects").ok()?).ok()?;
    let object: Attribute = objects.element(0).ok()?;
    // SAFETY: the kind is checked before the object is read; its text lives as long as the context.
    let text = unsafe {
        if !mlir_sys::mlirAttributeIsAGPUObjectAttr(object.to_raw()) {
            return None;
        }
        melior::StringRef::from_raw(mlir_sys::mlirGPUObjectAttrGetObject(object.to_raw()))
    };
    Some(text.as_str().ok()?.trim_end_matches('\0').to_owned())
}
