//! `axe run PACKAGE`: on a GPU, or on the host.

use crate::reference;
use axe_package::npy;
use axe_runtime::RuntimeError;
use axe_runtime::cli::{DeviceArgs, run as device_run};
use axe_runtime::run::Job;
use clap::Args;
use std::path::{Path, PathBuf};

/// The arguments of a run.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    run: device_run::RunArgs,
    /// Compare with the CPU reference, computed from the module in the package
    #[arg(long)]
    check: bool,
    /// Run the module on the host instead of the kernels on a GPU, as packages for `cpu` do; results go to
    /// --results
    #[arg(long)]
    host: bool,
    /// Write the results of a run on the host to DIR/outN.npy
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// Runs and prints the outcome.
///
/// # Errors
/// Whatever fails before there is an outcome.
pub fn main(args: &RunArgs, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let mut job = Job::new(args.run.request(Path::new(""))?)?;
    let on_host = args.host || job.package().manifest().target.kind == "cpu";
    if on_host || args.check {
        let inputs = job.inputs(1)?;
        if on_host {
            return host(args, &job, &inputs);
        }
        reference::expect(&mut job, &inputs)?;
    }
    device_run::on_device(&args.run, &job, device)
}

fn host(
    args: &RunArgs,
    job: &Job,
    inputs: &std::collections::BTreeMap<String, axe_package::Tensor>,
) -> Result<u8, RuntimeError> {
    let results = reference::compute(job.package(), inputs)?;
    let mut passed = true;
    for (at, result) in results.iter().enumerate() {
        let name = format!("out{at}");
        match job
            .package()
            .manifest()
            .outputs
            .iter()
            .find(|spec| spec.name == name)
        {
            Some(spec) => {
                let outcome = job.judge(spec, result)?;
                passed &= outcome.passed();
                println!("{outcome}");
            }
            None => println!("output {name} {} {:?}", result.dtype(), result.shape()),
        }
        if let Some(folder) = &args.results {
            let path = folder.join(format!("{name}.npy"));
            npy::write(&path, result)?;
        }
    }
    Ok(u8::from(!passed))
}
