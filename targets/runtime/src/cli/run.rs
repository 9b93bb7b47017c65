//! `axe-run PACKAGE`.

use std::path::{Path, PathBuf};

use axe_package::Tolerance;
use clap::Args;

use super::{DeviceArgs, print_json, say};
use crate::error::{RuntimeError, exit_code};
use crate::loaded::Code;
use crate::run::{Job, Outcome, Request, Source};

/// The arguments of one run.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The package, a file or a directory
    #[arg(required = true, value_name = "PACKAGE")]
    package: Option<PathBuf>,
    /// An input: NAME=FILE.npy, NAME=random:SEED or NAME=random:SEED:LOW:HIGH. Input number i (from
    /// 0) that is not given is random with seed i
    #[arg(long = "input", value_name = "NAME=SOURCE", value_parser = pair::<Source>)]
    inputs: Vec<(String, Source)>,
    /// A dynamic dimension that no given input defines
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = pair::<i64>)]
    dims: Vec<(String, i64)>,
    /// An expected output; wrong results end with exit code 1
    #[arg(long = "expect", value_name = "NAME=FILE.npy", value_parser = pair::<PathBuf>)]
    expect: Vec<(String, PathBuf)>,
    /// Compare with these bounds instead of those of the output's type: NORM,ELEMENT
    #[arg(long, value_name = "NORM,ELEMENT", value_parser = tolerance)]
    tolerance: Option<Tolerance>,
    /// Write each output to DIR/NAME.npy
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Take times with device events: the median of --repeat runs, rotating over buffers that
    /// exceed the L2 cache
    #[arg(long)]
    time: bool,
    /// How many runs to time
    #[arg(long, default_value_t = 50, value_name = "N")]
    repeat: usize,
    /// Compile the PTX with the driver even where the cubin fits
    #[arg(long)]
    ptx: bool,
    /// Print the outcome as one line of JSON
    #[arg(long)]
    json: bool,
}

fn pair<T: std::str::FromStr>(text: &str) -> Result<(String, T), String>
where
    T::Err: std::fmt::Display,
{
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((
        name.to_owned(),
        value.parse().map_err(|e: T::Err| e.to_string())?,
    ))
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let number = |s: &str| s.parse::<f64>().ok().filter(|v| *v >= 0.0);
    let parts = text
        .split_once(',')
        .and_then(|(n, e)| number(n).zip(number(e)));
    let (norm, element) = parts.ok_or("expected two numbers, NORM,ELEMENT")?;
    Ok(Tolerance::new(norm, element))
}

impl RunArgs {
    /// Whether the outcome is wanted as JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        self.json
    }

    /// The request, with files relative to `dir`.
    ///
    /// # Errors
    /// A name given twice, no package.
    pub fn request(&self, dir: &Path) -> Result<Request, RuntimeError> {
        let usage = RuntimeError::Usage;
        let package = self
            .package
            .as_ref()
            .ok_or_else(|| usage("no package is given".into()))?;
        let mut dims = std::collections::BTreeMap::new();
        for (name, value) in &self.dims {
            if dims.insert(name.clone(), *value).is_some() {
                return Err(usage(format!("dimension `{name}` is given twice")));
            }
        }
        let inputs = self.inputs.iter().map(|(name, source)| match source {
            Source::File(path) => (name.clone(), Source::File(dir.join(path))),
            random @ Source::Random { .. } => (name.clone(), random.clone()),
        });
        Ok(Request {
            package: dir.join(package),
            inputs: inputs.collect(),
            dims,
            expect: self
                .expect
                .iter()
                .map(|(name, path)| (name.clone(), dir.join(path)))
                .collect(),
            out: self.out.as_ref().map(|out| dir.join(out)),
            repeat: if self.time { self.repeat } else { 0 },
            code: if self.ptx { Code::Ptx } else { Code::Best },
            tolerance: self.tolerance,
        })
    }
}

/// Runs it and prints the outcome.
///
/// # Errors
/// Whatever fails before there is an outcome.
pub fn main(args: &RunArgs, device: DeviceArgs) -> Result<u8, RuntimeError> {
    on_device(args, &Job::new(args.request(Path::new(""))?)?, device)
}

/// Runs a job on a device and prints the outcome.
///
/// # Errors
/// Whatever fails before there is an outcome.
pub fn on_device(args: &RunArgs, job: &Job, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let device = device.open()?;
    let outcome = job.run(&job.load(&device)?)?;
    if args.json {
        print_json(&outcome);
    } else {
        print(&outcome, &device.properties().name);
    }
    Ok(if outcome.passed {
        exit_code::OK
    } else {
        exit_code::WRONG
    })
}

fn print(outcome: &Outcome, device: &str) {
    let how = if outcome.via_ptx {
        "PTX compiled by the driver"
    } else {
        "cubin"
    };
    say(format_args!("{} on {device} ({how})", outcome.name));
    for output in &outcome.outputs {
        say(output);
    }
    if let Some(t) = &outcome.times {
        say(format_args!(
            "time: median {:.2} us (min {:.2}, p10 {:.2}, p90 {:.2}; {} runs)",
            t.median_us, t.min_us, t.p10_us, t.p90_us, t.samples
        ));
    }
}
