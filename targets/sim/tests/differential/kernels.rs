//! Every case through the PTX front end and the executor: the outputs of the H200, and no finding.

use crate::data::{Case, cases};
use crate::launch::{difference, only, run, text};
use axe_sim::Options;

fn verdict(case: &Case, seed: u64) -> Result<(), String> {
    let options = Options {
        seed,
        threads: 1,
        max_warp_instructions: 50_000_000,
        ..Options::default()
    };
    let ran =
        run(case, &only(&text(&case.ptx), &case.kernel), options).map_err(|e| e.to_string())?;
    if let Some(e) = difference(case, &ran) {
        return Err(e);
    }
    match ran.report.findings.first() {
        Some(f) => Err(format!("{} findings, first {f}", ran.report.findings.len())),
        None => Ok(()),
    }
}

/// Cases that the simulator does not run, and why.
const SKIPPED: [(&str, &str); 1] = [(
    "convert_all_any",
    "payloads of NaN in binary64 arithmetic are not kept",
)];

fn all(select: impl Fn(&Case) -> bool, seed: u64) {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in cases().iter().filter(|c| select(c)) {
        if SKIPPED.iter().any(|(name, _)| *name == case.name) {
            continue;
        }
        count += 1;
        if let Err(e) = verdict(case, seed) {
            failures.push(format!(
                "{}: {}",
                case.name,
                e.chars().take(400).collect::<String>()
            ));
        }
    }
    assert!(count > 0);
    assert!(
        failures.is_empty(),
        "{} of {count} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn ordinary_cuda() {
    all(|c| c.ptx == "basic", 0);
}

#[test]
fn matrix_products() {
    all(|c| c.ptx == "gemm", 0);
}

#[test]
fn triton() {
    all(|c| c.ptx.starts_with("triton"), 0);
}

#[test]
fn probes_of_mma() {
    all(|c| c.kernel.starts_with("mma_"), 0);
}

#[test]
fn probes_of_wgmma() {
    all(|c| c.kernel.starts_with("wgmma_"), 0);
}

#[test]
fn probes_of_copies() {
    all(|c| c.ptx == "probe" && !c.kernel.contains("mma_"), 0);
}

/// Other interleavings of warps and completions of copies change nothing.
#[test]
fn other_schedules() {
    for seed in [1, 2] {
        all(
            |c| c.ptx == "gemm" || c.ptx == "triton_matmul_f16" || c.kernel == "scan",
            seed,
        );
    }
}
