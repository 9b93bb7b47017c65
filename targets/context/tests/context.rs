//! Contexts, modules and pipelines, as a program that embeds Axe calls them.

use axe_context::{
    ModuleError, Source, context, decisions, parse, register_all, run_passes, transform,
};
use melior::Context;
use melior::dialect::DialectRegistry;

const EXP: &str = "func.func @f(%a: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.exp ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %s : tensor<64xf32>
}";

#[test]
fn a_module_is_lowered_step_by_step() {
    let context = context();
    let mut module = parse(&context, EXP).unwrap();
    run_passes(
        &context,
        &mut module,
        "axe-nvidia{target=sm_90a until=scheduled}",
    )
    .unwrap();
    assert!(module.as_operation().to_string().contains("axe.kernel"));
}

#[test]
fn decisions_come_as_records() {
    let context = context();
    let name = "exp.mlir";
    let mut module = parse(&context, Source { name, text: EXP }).unwrap();
    let (done, decisions) = decisions(|| {
        run_passes(
            &context,
            &mut module,
            "axe-nvidia{target=sm_90a until=dispatched}",
        )
    });
    done.unwrap();
    assert!(
        decisions
            .iter()
            .any(|each| each.place.starts_with("exp.mlir:3:")),
        "{decisions:?}"
    );
}

#[test]
fn a_registry_of_the_programs_own_takes_the_rest() {
    let registry = DialectRegistry::new();
    register_all(&registry);
    register_all(&registry);
    let context = Context::new_with_registry(&registry, false);
    context.get_or_load_dialect("func");
    let mut module = parse(&context, EXP).unwrap();
    run_passes(&context, &mut module, "cse,axe-nvidia{target=sm_80}").unwrap();
    assert!(module.as_operation().to_string().contains("gpu.binary"));
}

#[test]
fn texts_that_are_no_modules_are_located() {
    let context = context();
    let source = Source {
        name: "f.mlir",
        text: "func.func @f(",
    };
    let error = parse(&context, source).unwrap_err();
    assert!(matches!(error, ModuleError::Parse(_)));
    let position = error.diagnostics()[0].position.as_ref().unwrap();
    assert_eq!((position.file.as_str(), position.line), ("f.mlir", 1));
    assert!(parse(&context, "\0").is_err());
}

#[test]
fn pipelines_that_are_not_known_or_fail_are_errors() {
    for (passes, words) in [
        ("no-such-pass", "no-such-pass"),
        ("axe-nvidia{target=sm_1}", "sm_1"),
        ("axe-nvidia{no-such-option=1}", "no-such-option"),
        ("canonicalize)", ")"),
        ("axe-plan-kernels{target=sm_1}", "sm_1"),
    ] {
        let error = transform(EXP, passes).unwrap_err();
        assert!(matches!(error, ModuleError::Passes(_)));
        assert!(error.to_string().contains(words), "{passes}: {error}");
    }
}
