//! Packages, arguments and expected results on disk, for `axe-run batch` on a GPU.

use crate::sample::Sample;
use anyhow::{Context, Result};
use axe_package::{Tensor, npy};
use std::fmt::Write;
use std::path::Path;

/// Writes a sample's package for a chip, its inputs and what stock MLIR makes of them; the line of a list that runs it.
///
/// # Errors
/// When the sample does not compile, or a file cannot be written.
pub fn keep(
    folder: &Path,
    seed: u64,
    sample: &Sample,
    want: &[Tensor],
    chip: &str,
) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    let options = axe_compile::Options::for_target(chip);
    let package = axe_compile::compile_with(sample.module.as_str(), options)
        .with_context(|| format!("graph {seed}"))?
        .package;
    package.write_file(folder.join(format!("{seed}.axe")))?;
    let mut line = format!("{seed}.axe");
    let manifest = package.manifest();
    for (at, (spec, tensor)) in manifest.inputs.iter().zip(&sample.inputs).enumerate() {
        let file = format!("{seed}-in{at}.npy");
        npy::write(folder.join(&file), tensor)?;
        let _ = write!(line, " --input {}={file}", spec.name);
    }
    let mut most = 0.0_f64;
    for (at, (spec, tensor)) in manifest.outputs.iter().zip(want).enumerate() {
        let file = format!("{seed}-out{at}.npy");
        npy::write(folder.join(&file), tensor)?;
        let _ = write!(line, " --expect {}={file}", spec.name);
        most = most.max(
            sample
                .results
                .get(at)
                .map_or(0.0, |limit| relative(*limit, tensor)),
        );
    }
    let norm = sample.norm.map_or(most, |norm| norm.min(most));
    let _ = write!(line, " --tolerance {norm:e},{most:e}");
    Ok(line)
}

/// The sample's tolerance of an element over the root mean square of all, which no right result is beyond.
fn relative(limit: (f64, f64), want: &Tensor) -> f64 {
    let tolerance = crate::judge::tolerance(limit);
    let squares: f64 = want.iter_f64().map(|value| value * value).sum();
    let rms = (squares / want.len().max(1) as f64).sqrt();
    match (tolerance, rms) {
        (0.0, _) => 0.0,
        (_, 0.0) => 1.0,
        (tolerance, rms) => tolerance / rms,
    }
}
