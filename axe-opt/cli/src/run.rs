//! `axe run PACKAGE`: on a GPU, or on the host.

use crate::reference;
use axe_package::{Tensor, Unwritten, npy};
use axe_runtime::RuntimeError;
use axe_runtime::cli::{DeviceArgs, run as device_run};
use axe_runtime::run::Job;
use clap::Args;
use std::collections::BTreeMap;
use std::path::Path;

/// The arguments of a run.
#[derive(Debug, Args)]
pub struct RunCommand {
    #[command(flatten)]
    run: device_run::RunArgs,
    /// Compare with the CPU reference, computed from the module in the package. A run on the host is that reference:
    /// there, every output needs an --expect
    #[arg(long)]
    check: bool,
    /// Run the module on the host instead of the kernels on a GPU, as packages for `cpu` do
    #[arg(long)]
    host: bool,
}

/// Runs and prints the outcome.
///
/// # Errors
/// Whatever fails before there is an outcome.
pub fn main(args: &RunCommand, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let request = args.run.request(Path::new(""))?;
    let out = request.out.clone();
    let mut job = Job::new(request)?;
    let on_host = args.host || job.package().manifest().target.kind == "cpu";
    if on_host && args.check {
        something_to_compare_with(&job)?;
    }
    if on_host || args.check {
        let inputs = job.inputs(1)?;
        if on_host {
            return host(&job, &inputs, out.as_deref());
        }
        reference::expect(&mut job, &inputs)?;
    }
    device_run::on_device(&args.run, &job, device)
}

/// Refuses a check of the host's results with themselves.
fn something_to_compare_with(job: &Job) -> Result<(), RuntimeError> {
    let names: Vec<_> = job.package().manifest().outputs.iter().collect();
    if !names.is_empty() && job.expects_all() {
        return Ok(());
    }
    let missing: Vec<_> = names
        .iter()
        .filter(|spec| !job.expects(&spec.name))
        .map(|spec| format!("--expect {}=FILE.npy", spec.name))
        .collect();
    let help = if missing.is_empty() {
        "a package for cpu names no outputs: write them with --out and compare those".to_owned()
    } else {
        format!("add {}", missing.join(" "))
    };
    Err(RuntimeError::Usage(format!(
        "--check compares with what the host computes, and this run is on the host: {help}"
    )))
}

/// The module's results on the host, beside what the request expects.
fn host(
    job: &Job,
    inputs: &BTreeMap<String, Tensor>,
    out: Option<&Path>,
) -> Result<u8, RuntimeError> {
    let results = reference::compute(job.package(), inputs)?;
    let mut passed = true;
    if let Some(folder) = out {
        std::fs::create_dir_all(folder).map_err(|error| RuntimeError::File {
            path: folder.display().to_string(),
            error,
        })?;
    }
    for (at, result) in results.iter().enumerate() {
        match job.package().manifest().outputs.get(at) {
            Some(spec) => {
                let outcome = job.judge(spec, result, &Unwritten::by_pattern(result))?;
                passed &= outcome.passed();
                println!("{outcome}");
            }
            // A package for the host names no outputs: what they are is known when it has run.
            None => {
                println!("output out{at} {} {:?}", result.dtype(), result.shape());
                if let Some(folder) = out {
                    npy::write(folder.join(format!("out{at}.npy")), result)?;
                }
            }
        }
    }
    Ok(u8::from(!passed))
}
