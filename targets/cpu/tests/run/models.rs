//! Every model of examples/models on random inputs, compared by its numpy reference: as it is, and as kernels that
//! are planned for a GPU.

use crate::root;
use axe_package::{DType, npy};
use std::path::PathBuf;
use std::process::Command;

/// A command of examples/models/reference.py; its standard output.
fn reference(arguments: &[&str]) -> String {
    let output = Command::new("python3")
        .arg(root().join("examples/models/reference.py"))
        .args(arguments)
        .env("PYTHONPATH", root().join(".deps/python"))
        .output()
        .expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{error}");
    text
}

/// The element type that a model's name ends with.
fn dtype(model: &str) -> DType {
    match model.rsplit('_').next() {
        Some("bf16") => DType::BF16,
        Some("f32") => DType::F32,
        _ => DType::F16,
    }
}

fn model(name: &str) -> String {
    std::fs::read_to_string(root().join(format!("examples/models/{name}.mlir"))).unwrap()
}

/// The model as launches of kernels, for a chip whose kernels have no roles: those run side by side, which the host
/// does not.
fn planned(name: &str) -> String {
    let passes = "convert-linalg-to-axe,axe-plan-kernels{target=sm_80}";
    let text = axe_context::transform(&model(name), passes).unwrap();
    assert!(text.contains("axe.kernel") && text.contains("axe.launch"));
    text
}

fn check(model: &str, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let listed = reference(&["inputs", model, path]);
    let inputs: Vec<_> = listed
        .lines()
        .map(|file| npy::read_as(PathBuf::from(file), dtype(model)).unwrap())
        .collect();
    let function = if text.contains("@main(") {
        "main"
    } else {
        model
    };
    let outputs = axe_cpu::run(text, function, &inputs).unwrap();
    let file = folder.path().join("output.npy");
    npy::write(&file, &outputs[0]).unwrap();
    print!(
        "{}",
        reference(&["check", model, path, file.to_str().unwrap()])
    );
}

macro_rules! models {
    ($($model:ident)*) => {
        $(#[test] fn $model() { check(stringify!($model), &model(stringify!($model))); })*

        mod kernels {
            $(#[test] fn $model() { super::check(stringify!($model), &super::planned(stringify!($model))); })*
        }

        #[test]
        fn every_model_is_listed() {
            let mut files: Vec<_> = std::fs::read_dir(root().join("examples/models"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "mlir"))
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort();
            assert_eq!(files, [$(stringify!($model)),*]);
        }
    };
}

models! {
    attention_f16 batch_matmul_broadcast_f16 batch_matmul_f16 batch_matmul_jax_f16 dot_jax_f16
    dot_jax_f32acc_f16 layernorm_f16 layernorm_f32 linear_bias_f16 linear_f16 mlp_bf16
    mlp_constants_f16 mlp_dynamic_bf16 mlp_dynamic_f16 mlp_erf_f16 mlp_f16 mlp_jax_f16
    mlp_ragged_bf16 mlp_ragged_f16 mm_bf16 mm_f16 mm_f32 residual_f32 rmsnorm_dynamic_bf16
    rmsnorm_f16 rmsnorm_jax_f16 rowsum_f32 softmax_f16 softmax_f32 softmax_jax_f16 swiglu_f16
    transpose_f16
}
