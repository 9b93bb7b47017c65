//! Kernel packages for NVIDIA GPUs: PTX, the tensor maps of launches, and machine code by ptxas.

mod incomplete;
mod losses;
mod miscompiled;
mod ptxas;
mod tensor_maps;

use crate::facts::chip::{CHIPS, chip};
use crate::planner;
use axe_dialect::ops;
use axe_package::{Arg, Expr, Kernel, Key, Param};
use axe_passes::dispatch::record;
use axe_passes::ir::value::name;
use axe_passes::ir::walk;
use axe_passes::ir::{Op, TensorType};
use axe_passes::{PassError, PassResult};
use axe_toolchain::{Assembled, Memory, Toolchain};
use melior::ir::attribute::ArrayAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike, Module};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
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
        format!("axe-nvidia{{target={chip}}}")
    }

    fn explained_to_logical(&self, _: &str) -> String {
        axe_passes::pipeline::logical(" explain=true")
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
        scalars: &BTreeMap<usize, Expr>,
    ) -> PassResult<'c, Vec<(Param, Arg)>> {
        tensor_maps::tensor_maps(launch, |at| memory.get(&at), |at| scalars.get(&at))
    }

    fn assemble(
        &self,
        code: &str,
        chip: &str,
        kernels: &mut [Kernel],
        assembler: Option<&Path>,
    ) -> Result<Assembled, Box<dyn Error + Send + Sync>> {
        let mut made = Assembled::default();
        let Some(path) = ptxas::find(assembler)? else {
            made.warnings.push(
                "ptxas was not found (--ptxas, AXE_PTXAS, PATH): the package holds PTX only, which the driver compiles"
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

    fn candidates(&self, key: &Key, limit: usize) -> Vec<String> {
        let chip = chip(&key.chip);
        chip.map_or_else(Vec::new, |chip| planner::candidates(key, chip, limit))
    }

    fn tunable(&self, module: Op<'_>, name: &str) -> (Vec<Key>, Vec<String>) {
        let chip = chip(name);
        chip.map_or_else(Default::default, |chip| planner::products(module, chip))
    }
}

/// Checks the PTX of a module's binaries.
///
/// # Errors
/// At a binary whose code is not complete.
pub(crate) fn verify<'c>(module: Op<'c>) -> PassResult<'c> {
    let launches = walk::nested(module, &|_| true);
    let launches = launches.into_iter().filter(|op| name(*op) == ops::LAUNCH);
    let writing: Vec<_> = launches.filter_map(written).collect();
    for binary in walk::blocks(module).into_iter().flat_map(walk::operations) {
        if name(binary) != "gpu.binary" {
            continue;
        }
        let Some(code) = ptx(binary) else { continue };
        let symbol = record::symbol(binary).unwrap_or_default();
        let own = writing.iter().filter(|(holder, _)| *holder == symbol);
        let kernels: Vec<_> = own.map(|(_, kernel)| kernel.as_str()).collect();
        incomplete::complete(&code, &kernels)
            .map_err(|why| PassError::new(binary.location(), why.to_string()))?;
    }
    Ok(())
}

/// The binary and the kernel of a launch that has elements to write.
fn written(launch: Op<'_>) -> Option<(String, String)> {
    let results = axe_passes::ir::value::results(launch);
    let mut shapes = results.into_iter().filter_map(TensorType::of_value);
    if !shapes.any(|tensor| !tensor.shape.contains(&0)) {
        return None;
    }
    let symbol = launch.attribute("kernel").ok()?.to_string();
    let (holder, kernel) = symbol.split_once("::")?;
    let plain = |part: &str| part.trim_start_matches('@').trim_matches('"').to_owned();
    Some((plain(holder), plain(kernel)))
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
