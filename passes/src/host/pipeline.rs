//! `--axe-cpu`: from linalg, logical or scheduled axe to LLVM for the host.

use crate::pipeline::Pipeline;

/// `--axe-cpu`.
pub(crate) const PIPELINE: Pipeline = Pipeline {
    name: "axe-cpu",
    summary: "From linalg on tensors to LLVM for the host, through the axe dialect",
    description: "Takes functions on tensors (linalg, logical operators, kernels with their launches) and leaves LLVM's dialect. \
        Tensors are memrefs with an identity layout, and each function has the wrapper of MLIR's C interface \
        (`_mlir_ciface_NAME`), which takes a descriptor a tensor.",
    options: &[],
    text,
};

/// The passes of the pipeline. Conversions between f32 and bf16 are done in integers, so that few symbols are needed
/// beyond libm's and malloc.
fn text(_: &[(&str, &str)]) -> Result<String, String> {
    let passes = [
        "func.func(convert-elementwise-to-linalg)",
        "convert-linalg-to-axe{allow-unsupported=true}",
        "func.func(llvm-request-c-wrappers)",
        "axe-lower-to-host",
        "one-shot-bufferize{bufferize-function-boundaries=true \
         function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=true}",
        "buffer-deallocation-pipeline",
        "convert-bufferization-to-memref",
        "convert-linalg-to-loops",
        "convert-scf-to-cf",
        "expand-strided-metadata",
        "lower-affine",
        "convert-math-to-funcs",
        "func.func(arith-expand{include-bf16=true})",
        "convert-math-to-llvm",
        "convert-math-to-libm",
        "convert-to-llvm",
        "reconcile-unrealized-casts",
    ];
    Ok(passes.join(","))
}
