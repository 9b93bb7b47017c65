//! A sample executed by stock MLIR, by the CPU target and in the simulator, and what comes of it.

use crate::sample::Sample;
use axe_package::Tensor;
use axe_sim::{Options, Simulator, package::run_package};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// MLIR's own way from linalg on tensors to LLVM for the host: loops that follow the module to the letter.
pub const STOCK: &str = "func.func(llvm-request-c-wrappers),\
one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map},\
buffer-deallocation-pipeline,convert-bufferization-to-memref,convert-linalg-to-loops,convert-scf-to-cf,\
expand-strided-metadata,lower-affine,convert-math-to-funcs,func.func(arith-expand{include-bf16=true}),\
convert-math-to-llvm,convert-math-to-libm,convert-to-llvm,reconcile-unrealized-casts";

/// How one target did with one sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Right.
    Right,
    /// Wrong, refused or crashed: why.
    Wrong(String),
}

/// What comes of a sample.
pub struct Judged {
    /// For each target.
    pub verdicts: Vec<Verdict>,
    /// What stock MLIR makes of it.
    pub want: Vec<Tensor>,
    /// Whether the tolerance of some result is so wide that a wrong one could pass.
    pub weak: bool,
}

/// Runs a sample on the targets, each a chip or `cpu`; an error when stock MLIR itself fails.
pub fn judge(sample: &Sample, targets: &[String]) -> Result<Judged, String> {
    let stock = || {
        let program = axe_cpu::Program::compile_through(sample.module.as_str(), "main", STOCK);
        program?.run(&sample.inputs)
    };
    let want = guarded(|| stock().map_err(|error| error.to_string()));
    let want = want.map_err(|message| format!("stock MLIR: {message}"))?;
    let run = |target: &String| {
        let got = guarded(|| match target.as_str() {
            axe_compile::CPU => on_cpu(sample),
            chip => on_chip(sample, chip),
        });
        match got.and_then(|got| compared(sample, &got, &want)) {
            Ok(()) => Verdict::Right,
            Err(message) => Verdict::Wrong(message),
        }
    };
    Ok(Judged {
        verdicts: targets.iter().map(run).collect(),
        weak: is_weak(sample, &want),
        want,
    })
}

/// A panic as an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let text = text.unwrap_or("without a message");
        Err(format!("a panic: {text}"))
    })
}

fn on_cpu(sample: &Sample) -> Result<Vec<Tensor>, String> {
    let program = axe_cpu::Program::compile(sample.module.as_str(), "main");
    let program = program.map_err(|error| format!("refused: {error}"))?;
    let results = program.run(&sample.inputs);
    results.map_err(|error| error.to_string())
}

fn on_chip(sample: &Sample, chip: &str) -> Result<Vec<Tensor>, String> {
    let package = axe_compile::translate(sample.module.as_str(), None, chip);
    let package = package.map_err(|error| format!("refused: {error}"))?;
    let manifest = package.manifest();
    let names = manifest.inputs.iter().map(|input| input.name.clone());
    let inputs: BTreeMap<_, _> = names.zip(sample.inputs.iter().cloned()).collect();
    let options = Options {
        checks: true,
        threads: 1,
        ..Options::default()
    };
    let run = run_package(&package, &inputs, &BTreeMap::new(), &Simulator { options });
    let run = run.map_err(|error| error.to_string())?;
    let mut findings = run.launches.iter().flat_map(|(_, launch)| &launch.findings);
    if let Some(finding) = findings.next() {
        return Err(format!("in the simulator: {finding}"));
    }
    let mut tensors = Vec::new();
    for spec in &manifest.outputs {
        let Some(output) = run.outputs.get(&spec.name) else {
            return Err(format!("output {} is missing", spec.name));
        };
        match output.unwritten.count() {
            0 => tensors.push(output.tensor.clone()),
            count => return Err(format!("{count} elements of {} never written", spec.name)),
        }
    }
    Ok(tensors)
}

/// Compares results with those of stock MLIR.
fn compared(sample: &Sample, got: &[Tensor], want: &[Tensor]) -> Result<(), String> {
    if got.len() != want.len() {
        return Err(format!(
            "expected {} results, got {}",
            want.len(),
            got.len()
        ));
    }
    let results = got.iter().zip(want).zip(&sample.results);
    for (at, ((got, want), expected)) in results.enumerate() {
        if got.shape() != want.shape() || got.dtype() != want.dtype() {
            let describe = |tensor: &Tensor| format!("{} {:?}", tensor.dtype(), tensor.shape());
            let (want, got) = (describe(want), describe(got));
            return Err(format!("result {at}: expected {want}, got {got}"));
        }
        let norm = distance(got, want);
        if let Some(most) = sample.norm.filter(|most| norm > *most) {
            return Err(format!(
                "result {at}: a norm error of {norm:.2e}, over {most}"
            ));
        }
        let tolerance = tolerance(*expected);
        let wrong: Vec<_> = differing(got, want, tolerance);
        if let Some((first, want_value, got_value)) = wrong.first() {
            return Err(format!(
                "result {at}: {} of {} elements wrong (tolerance {tolerance:.2e}); element {first}: expected {want_value}, got {got_value}",
                wrong.len(),
                got.len()
            ));
        }
    }
    Ok(())
}

/// The norm of the difference of two tensors, by that of the second; of what is finite in both.
fn distance(got: &Tensor, want: &Tensor) -> f64 {
    let (mut apart, mut whole) = (0.0_f64, 0.0_f64);
    for (got, want) in got.iter_f64().zip(want.iter_f64()) {
        if got.is_finite() && want.is_finite() {
            apart += (got - want).powi(2);
            whole += want.powi(2);
        }
    }
    match whole {
        0.0 => apart.sqrt(),
        whole => (apart / whole).sqrt(),
    }
}

/// How far a result may be from stock MLIR's: each is as far from the truth as the sample says, and the last
/// place of an estimate is a guess.
pub fn tolerance((error, bound): (f64, f64)) -> f64 {
    match error {
        0.0 => 0.0,
        error => 3.0 * error + 1e-9 * bound.min(1.0),
    }
}

/// The elements that differ by more than the tolerance: number, wanted, got.
fn differing(got: &Tensor, want: &Tensor, tolerance: f64) -> Vec<(usize, f64, f64)> {
    let size = got.dtype().bytes();
    let bytes = got
        .bytes()
        .chunks_exact(size)
        .zip(want.bytes().chunks_exact(size));
    let values = want.iter_f64().zip(got.iter_f64()).zip(bytes).enumerate();
    values
        .filter(|(_, ((want, got), (got_bytes, want_bytes)))| {
            let near = tolerance > 0.0 && (got - want).abs() <= tolerance;
            let zeros = *got == 0.0 && *want == 0.0;
            !(near || zeros || got_bytes == want_bytes || (got.is_nan() && want.is_nan()))
        })
        .map(|(at, ((want, got), _))| (at, want, got))
        .collect()
}

fn is_weak(sample: &Sample, want: &[Tensor]) -> bool {
    let most = |tensor: &Tensor| tensor.iter_f64().map(f64::abs).fold(0.0, f64::max);
    let mut pairs = sample.results.iter().zip(want);
    pairs.any(|(expected, want)| tolerance(*expected) > 0.25 * most(want))
}
