//! `axe-cases`: compiles random kernels, and simulates them or writes them for `axe-run batch`.

use anyhow::{Context, Result, bail};
use axe_cases::case::Programs;
use axe_cases::{Built, Case, case, coverage, planned, roles};
use axe_package::{Tolerance, compare_written, npy};
use axe_sim::{Options, Simulator, package::run_package};
use clap::Parser;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Compile random kernels with every schedule, and run them
#[derive(Parser)]
struct Arguments {
    /// The axe-opt to compile with
    #[arg(long, default_value = "axe-opt")]
    axe_opt: String,
    /// The axe to compile with where a kernel needs tensor maps
    #[arg(long, default_value = "axe")]
    axe: String,
    /// Kernels with roles: TMA, wgmma, rings of stages
    #[arg(long)]
    roles: bool,
    /// Products whose kernels the planner makes for sm_90a, with random knobs
    #[arg(long, conflicts_with = "roles")]
    planned: bool,
    /// The chip to compile for
    #[arg(long, default_value = "sm_90a")]
    chip: String,
    /// Passes to run before the schedules are chosen, as in a textual pipeline
    #[arg(long, value_name = "PIPELINE", default_value = "")]
    passes: String,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many kernels
    #[arg(long, default_value_t = 60)]
    count: u64,
    /// Write packages with their inputs and results here, and do not simulate
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the kernel of the first seed and stop
    #[arg(long)]
    print: bool,
    /// What at least one kernel must have, a line each: `operator -> schedule`, or `operator -> schedule : element types`, or
    /// `plan knob = value`
    #[arg(long, value_name = "FILE")]
    require: Option<PathBuf>,
}

/// Whether a case was right, and its schedules.
struct Outcome {
    failure: Option<String>,
    schedules: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.print {
        let case = made(&arguments, arguments.seed);
        print!("{}{}", case.mlir, case.host.unwrap_or_default());
        return Ok(());
    }
    let seeds = arguments.seed..arguments.seed + arguments.count;
    let outcomes: Vec<Outcome> = seeds
        .into_par_iter()
        .map(|seed| one(&arguments, seed))
        .collect();
    let failures: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.failure.as_ref())
        .collect();
    for failure in &failures {
        eprintln!("{failure}");
    }
    let used: BTreeSet<_> = outcomes
        .iter()
        .flat_map(|outcome| &outcome.schedules)
        .collect();
    for schedule in &used {
        let times = outcomes
            .iter()
            .flat_map(|outcome| &outcome.schedules)
            .filter(|one| one == schedule)
            .count();
        println!("{times:6} {schedule}");
    }
    if let Some(path) = &arguments.require {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let missing = coverage::missing(&text, &used);
        if !missing.is_empty() {
            bail!("no kernel used: {}", missing.join(", "));
        }
    }
    println!("{} kernels, {} wrong", arguments.count, failures.len());
    if failures.is_empty() {
        Ok(())
    } else {
        bail!("{} kernels are wrong", failures.len())
    }
}

fn one(arguments: &Arguments, seed: u64) -> Outcome {
    let case = made(arguments, seed);
    let programs = Programs {
        axe_opt: &arguments.axe_opt,
        axe: &arguments.axe,
    };
    let built = match case.build(programs, &arguments.chip, &arguments.passes) {
        Ok(built) => built,
        Err(error) => {
            return Outcome {
                failure: Some(format!("{}: {error:#}", case.name)),
                schedules: Vec::new(),
            };
        }
    };
    let done = match &arguments.out {
        Some(directory) => write(&case, &built, directory),
        None => simulate(&case, &built),
    };
    let failure = done.err().map(|error| {
        format!(
            "{}: {error:#}\n  {}",
            case.name,
            built.schedules.join("\n  ")
        )
    });
    Outcome {
        failure,
        schedules: built.schedules,
    }
}

fn made(arguments: &Arguments, seed: u64) -> Case {
    match (arguments.roles, arguments.planned) {
        (true, _) => roles::case(seed),
        (_, true) => planned::case(seed),
        _ => case(seed),
    }
}

/// The names of the package's inputs and of its output.
fn names(built: &Built) -> Result<(Vec<&str>, &str)> {
    let manifest = built.package.manifest();
    let inputs = manifest.inputs.iter().map(|input| input.name.as_str());
    let output = manifest.outputs.first().context("no output")?;
    Ok((inputs.collect(), &output.name))
}

/// Runs the case in the simulator, with all its checks.
fn simulate(case: &Case, built: &Built) -> Result<()> {
    let (names, output) = names(built)?;
    let mut inputs = BTreeMap::new();
    for (name, input) in names.into_iter().zip(&case.inputs) {
        inputs.insert(name.to_owned(), input.tensor()?);
    }
    let options = Options {
        checks: true,
        threads: 1,
        ..Options::default()
    };
    let run = run_package(
        &built.package,
        &inputs,
        &BTreeMap::new(),
        &Simulator { options },
    )?;
    if let Some(finding) = run
        .launches
        .iter()
        .flat_map(|(_, launch)| &launch.findings)
        .next()
    {
        bail!("{finding}");
    }
    let got = run.outputs.get(output).context("no output")?;
    let report = compare_written(
        &got.tensor,
        &case.expected.tensor()?,
        Tolerance::for_dtype(case.expected.dtype),
        &got.unwritten,
    )?;
    if !report.passed() {
        bail!("{report}");
    }
    Ok(())
}

/// Writes the case for `axe-run batch`: one line of its list.
fn write(case: &Case, built: &Built, directory: &std::path::Path) -> Result<()> {
    let (inputs, output) = names(built)?;
    let name = case.name.replace(' ', "-");
    let directory = directory.join(&name);
    std::fs::create_dir_all(&directory)?;
    built.package.write_file(directory.join("kernel.axe"))?;
    let mut line = format!("{name}/kernel.axe");
    for (input, array) in inputs.into_iter().zip(&case.inputs) {
        npy::write(directory.join(format!("{input}.npy")), &array.tensor()?)?;
        line += &format!(" --input {input}={name}/{input}.npy");
    }
    npy::write(directory.join("expected.npy"), &case.expected.tensor()?)?;
    line += &format!(" --expect {output}={name}/expected.npy\n");
    std::fs::write(directory.join("line"), line)?;
    Ok(())
}
