//! `axe sim PACKAGE`: the simulator on a kernel package.

use axe_runtime::RuntimeError;
use axe_runtime::cli::run::RunArgs;
use axe_runtime::run::Job;
use axe_sim::package::{PackageRun, run_package};
use axe_sim::{Options, Simulator};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::part::Judge;
use crate::{banks, reference, trn_package};

/// The arguments of one simulation.
#[derive(Debug, Args)]
pub struct SimArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Look for races, accesses out of bounds, unwritten memory and misused barriers, and compare with the CPU
    /// reference where the package holds the module that it was compiled from and --expect names no results. Kernels
    /// with roles have no reference
    #[arg(long)]
    check: bool,
    /// Print what each kernel did: instructions, sectors, bank conflicts, bytes
    #[arg(long)]
    stats: bool,
    /// Draw how often each shared-memory bank served a word, as SVG
    #[arg(long, value_name = "FILE.svg")]
    banks: Option<PathBuf>,
    /// Run once for each of N interleavings of the warps (seeds 0 to N - 1)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    schedules: u64,
    /// Run only the first N CTAs of each grid; of the outputs, what they wrote is compared
    #[arg(long, value_name = "N")]
    ctas: Option<u64>,
    /// Worker threads (all cores by default)
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
}

/// Simulates and prints the outcome; the exit code says whether all was well.
///
/// # Errors
/// A package or an argument that is wrong.
pub fn main(args: &SimArgs) -> Result<u8, RuntimeError> {
    let mut job = Job::new(args.run.request(Path::new(""))?)?;
    let manifest = job.package().manifest();
    let target = &manifest.target;
    if target.kind == "trainium" {
        return trainium(args, &mut job);
    }
    if target.kind != "nvidia" {
        return Err(RuntimeError::Usage(format!(
            "package `{}` is for {} {}: expected one with PTX, of a chip (axe compile --target sm_90a); axe run executes this one",
            manifest.name, target.kind, target.chip
        )));
    }
    let sms = Options::default().sms;
    let inputs = job.inputs(sms)?;
    let with_reference = args.check && job.package().manifest().source.is_some();
    if with_reference && args.ctas.is_none() {
        reference::expect(&mut job, &inputs)?;
    }
    let mut part = Judge::new(&job, &inputs, with_reference);
    let bar = ProgressBar::new(args.schedules).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} schedules, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut passed = true;
    let mut banks = Vec::new();
    for seed in 0..args.schedules {
        let options = Options {
            checks: args.check,
            counters: args.stats || args.banks.is_some(),
            seed,
            sms,
            threads: args.threads,
            max_ctas: args.ctas,
            ..Options::default()
        };
        bar.set_position(seed);
        match run_package(job.package(), &inputs, job.dims(), &Simulator { options }) {
            Ok(run) => {
                passed &= report(args, &job, &mut part, seed, &run)?;
                banks = run.launches;
            }
            Err(error) => {
                passed = false;
                say_error(args, seed, &error.to_string());
            }
        }
    }
    bar.finish_and_clear();
    if let Some(path) = &args.banks {
        std::fs::write(path, banks::svg(&banks)).map_err(|error| RuntimeError::File {
            path: path.display().to_string(),
            error,
        })?;
    }
    Ok(u8::from(!passed))
}

/// A package for Trainium, whose kernels have one order and no CTAs.
fn trainium(args: &SimArgs, job: &mut Job) -> Result<u8, RuntimeError> {
    if args.ctas.is_some() || args.banks.is_some() || args.schedules > 1 {
        return Err(RuntimeError::Usage(
            "--ctas, --banks and --schedules are for packages with PTX: kernels of Trainium have one order".into(),
        ));
    }
    let asked = trn_package::Asked {
        check: args.check,
        stats: args.stats,
        json: args.run.json(),
    };
    trn_package::main(job, &asked)
}

/// Reports one run; true when its outputs are right and no check found anything.
fn report(
    args: &SimArgs,
    job: &Job,
    part: &mut Judge<'_>,
    seed: u64,
    run: &PackageRun,
) -> Result<bool, RuntimeError> {
    let mut outcomes = Outcomes::default();
    if args.ctas.is_some() {
        for result in part.judge(run)? {
            outcomes.add(result.passed(), &result);
        }
    } else {
        for spec in &job.package().manifest().outputs {
            if let Some(got) = run.outputs.get(&spec.name) {
                let result = job.judge(spec, &got.tensor, &got.unwritten)?;
                outcomes.add(result.passed(), &result);
            }
        }
    }
    let launches = run.launches.iter();
    let clean = launches
        .clone()
        .all(|(_, launch)| launch.findings.is_empty());
    let passed = clean && !outcomes.wrong;
    if args.run.json() {
        let launches: Vec<_> = launches
            .map(|(kernel, launch)| json!({"kernel": kernel, "report": launch}))
            .collect();
        say(
            json!({"schedule": seed, "passed": passed, "launches": launches, "outputs": outcomes.values}),
        );
    } else {
        print(args, seed, run, &outcomes.lines);
    }
    Ok(passed)
}

/// How outputs came out, for people and as JSON.
#[derive(Default)]
struct Outcomes {
    wrong: bool,
    lines: Vec<String>,
    values: Vec<serde_json::Value>,
}

impl Outcomes {
    fn add(&mut self, passed: bool, result: &(impl Serialize + std::fmt::Display)) {
        self.wrong |= !passed;
        self.lines.push(result.to_string());
        self.values.push(json!(result));
    }
}

fn print(args: &SimArgs, seed: u64, run: &PackageRun, outputs: &[String]) {
    for (kernel, launch) in &run.launches {
        for finding in &launch.findings {
            say(format_args!("schedule {seed}: {kernel}: {finding}"));
        }
        if args.stats {
            say(format_args!("{kernel}\n{}", launch.counters));
        }
    }
    for output in outputs {
        say(format_args!("schedule {seed}: {output}"));
    }
}

fn say_error(args: &SimArgs, seed: u64, error: &str) {
    if args.run.json() {
        say(json!({"schedule": seed, "passed": false, "error": error}));
    } else {
        say(format_args!("schedule {seed}: {error}"));
    }
}

/// Writes a line to standard output; ends the program when nobody reads it any more.
fn say(line: impl std::fmt::Display) {
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(3);
    }
}
