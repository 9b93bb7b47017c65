//! The pass on text. What each form becomes in full is in lit-tests/passes.

use super::run;
use crate::registry::PassContext;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, OperationRef};
use melior::utility::register_all_dialects;

fn context() -> Context {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    axe_dialect::register(&registry);
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    context
}

/// What a run gave: the module's text, whether or not the pass failed, its statistics, and its failure.
struct Outcome {
    text: String,
    counts: [i64; 3],
    failure: Option<String>,
}

/// Runs the pass and verifies what it leaves.
fn outcome(text: &str, options: &[(&'static str, &'static str)]) -> Outcome {
    let context = context();
    let module = Module::parse(&context, text).unwrap_or_else(|| panic!("does not parse: {text}"));
    let mut counts = [0; 3];
    let mut add = |name: &str, count: i64| match name {
        "num-gemms" => counts[0] += count,
        "num-maps" => counts[1] += count,
        "num-reductions" => counts[2] += count,
        other => panic!("statistic {other}"),
    };
    // SAFETY: the module outlives the reference.
    let op: OperationRef = unsafe { OperationRef::from_raw(module.as_operation().to_raw()) };
    let failure = run(op, &mut PassContext::new(options.to_vec(), &mut add))
        .err()
        .map(|error| format!("{}: {}", error.location, error.message));
    assert!(module.as_operation().verify(), "{}", module.as_operation());
    Outcome {
        text: module.as_operation().to_string(),
        counts,
        failure,
    }
}

/// The text after a run that must succeed and leave no linalg.
fn converted(text: &str) -> Outcome {
    let outcome = outcome(text, &[]);
    assert_eq!(outcome.failure, None, "{}", outcome.text);
    assert!(!outcome.text.contains("linalg."), "{}", outcome.text);
    outcome
}

fn model(name: &str) -> String {
    let path = format!(
        "{}/../examples/models/{name}.mlir",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn no_linalg_is_left_of_any_model() {
    let models = format!("{}/../examples/models", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in std::fs::read_dir(models).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "mlir")
        {
            converted(&std::fs::read_to_string(&path).unwrap());
            seen += 1;
        }
    }
    assert!(seen >= 32, "{seen} models");
}

#[test]
fn three_idioms_of_a_linear_layer_are_one_gemm() {
    for (name, operands) in [
        (
            "linear_f16",
            "%arg0, %arg1 {trans_b} : tensor<128x256xf16>, tensor<192x256xf16>",
        ),
        (
            "mm_f16",
            "%arg0, %arg1 : tensor<128x256xf16>, tensor<256x192xf16>",
        ),
        (
            "dot_jax_f16",
            "%arg0, %arg1 : tensor<128x256xf16>, tensor<256x192xf16>",
        ),
    ] {
        let outcome = converted(&model(name));
        let expected = format!("axe.gemm {operands} -> tensor<128x192xf32>");
        assert!(outcome.text.contains(&expected), "{name}: {}", outcome.text);
        assert_eq!(
            outcome.text.matches("axe.").count(),
            2,
            "{name}: {}",
            outcome.text
        );
        assert!(
            outcome
                .text
                .contains("axe.cast %0 : tensor<128x192xf32> -> tensor<128x192xf16>"),
            "{name}"
        );
        assert_eq!(outcome.counts, [1, 0, 0]);
    }
}

#[test]
fn activations_stay_behind_the_gemm_before() {
    let outcome = converted(&model("mlp_dynamic_f16"));
    assert_eq!(outcome.counts, [2, 3, 0]);
    assert_eq!(outcome.text.matches("math.tanh").count(), 1);
    let second = outcome.text.rfind("axe.gemm").unwrap();
    assert!(outcome.text.find("math.tanh").unwrap() < second);
    assert!(
        outcome.text[second..]
            .contains("tensor<?x1024xf16>, tensor<512x1024xf16> -> tensor<?x512xf32>")
    );
    assert_eq!(outcome.text.matches("cf.assert").count(), 4);
}

#[test]
fn a_transpose_behind_a_collapse_folds_into_the_gemm() {
    let outcome = converted(&model("attention_f16"));
    assert!(!outcome.text.contains("axe.transpose"), "{}", outcome.text);
    assert_eq!(outcome.text.matches("{trans_b}").count(), 1);
    // The unread index of the argmax and its loop index are gone.
    assert!(!outcome.text.contains("i64"), "{}", outcome.text);
    assert_eq!(outcome.counts[2], 2);
}

#[test]
fn unsupported_operations_are_errors_where_they_are() {
    let conv = "func.func @f(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x8xf32>, %o: tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32> {
        %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4x8xf32>) outs(%o : tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
        return %0 : tensor<1x6x6x8xf32>
    }";
    let failed = outcome(conv, &[]);
    let message = failed.failure.unwrap();
    assert!(
        message.contains(":2:14")
            && message.contains("'linalg.conv_2d_nhwc_hwcf' is not supported"),
        "{message}"
    );
    assert!(failed.text.contains("linalg.conv_2d_nhwc_hwcf"));
    let left = outcome(conv, &[("allow-unsupported", "true")]);
    assert_eq!(left.failure, None);
    assert!(left.text.contains("linalg.conv_2d_nhwc_hwcf"));
}

#[test]
fn a_sum_that_would_be_written_out_is_refused() {
    let failed = outcome(
        "func.func @f(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>, %o: tensor<16x32xf32>) -> tensor<16x32xf32> {
            %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]} ins(%x, %w : tensor<16x64xf32>, tensor<64x32xf32>) outs(%o : tensor<16x32xf32>) {
            ^bb0(%a: f32, %b: f32, %c: f32):
                %s = arith.maximumf %a, %b : f32
                %t = arith.addf %c, %s : f32
                linalg.yield %t : f32
            } -> tensor<16x32xf32>
            return %0 : tensor<16x32xf32>
        }",
        &[],
    );
    let message = failed.failure.unwrap();
    assert!(
        message.contains("none of the 2 tensors") && message.contains("'arith.maximumf'"),
        "{message}"
    );
    assert_eq!(failed.counts, [0, 0, 0]);
}

#[test]
fn a_sum_of_rows_is_no_product_where_its_body_computes() {
    let outcome = converted(
        "func.func @f(%x: tensor<16x64xf32>, %w: tensor<64xf32>, %o: tensor<16xf32>) -> tensor<16xf32> {
            %0 = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = [\"parallel\", \"reduction\"]} ins(%x, %w : tensor<16x64xf32>, tensor<64xf32>) outs(%o : tensor<16xf32>) {
            ^bb0(%a: f32, %b: f32, %c: f32):
                %e = math.exp %a : f32
                %p = arith.mulf %e, %b : f32
                %s = arith.addf %c, %p : f32
                linalg.yield %s : f32
            } -> tensor<16xf32>
            return %0 : tensor<16xf32>
        }",
    );
    assert_eq!(outcome.counts, [0, 2, 1]);
}

#[test]
fn unsigned_bytes_are_signed_ones_and_sums() {
    let outcome = converted(
        "func.func @f(%x: tensor<16x64xi8>, %w: tensor<64x32xi8>, %o: tensor<16x32xi32>) -> tensor<16x32xi32> {
            %0 = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%x, %w : tensor<16x64xi8>, tensor<64x32xi8>) outs(%o : tensor<16x32xi32>) -> tensor<16x32xi32>
            return %0 : tensor<16x32xi32>
        }",
    );
    assert_eq!(outcome.counts, [1, 3, 2]);
}

#[test]
fn complex_splats_are_tensors_like_others() {
    let outcome = converted(
        "func.func @f(%o: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
            %c = arith.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
            %0 = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%c : tensor<complex<f32>>) outs(%o : tensor<4xcomplex<f32>>) {
            ^bb0(%a: complex<f32>, %x: complex<f32>):
                linalg.yield %a : complex<f32>
            } -> tensor<4xcomplex<f32>>
            return %0 : tensor<4xcomplex<f32>>
        }",
    );
    assert!(outcome.text.contains("axe.broadcast"), "{}", outcome.text);
}

#[test]
fn effects_in_a_body_are_not_lost() {
    let outcome = outcome(
        "func.func private @effect()
         func.func @f(%o: tensor<4xf32>) {
            %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} outs(%o : tensor<4xf32>) {
            ^bb0(%x: f32):
                func.call @effect() : () -> ()
                linalg.yield %x : f32
            } -> tensor<4xf32>
            return
        }",
        &[],
    );
    assert!(outcome.failure.unwrap().contains("'func.call' in its body"));
    assert!(
        outcome.text.contains("func.call @effect"),
        "{}",
        outcome.text
    );
}
