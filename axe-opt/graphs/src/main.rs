//! `axe-graphs`: random graphs of linalg on tensors, executed by stock MLIR, by the CPU target and in the simulator.
//!
//! A graph is what its seed makes it. Its arguments hold multiples of an eighth or small integers; each value carries
//! a bound of how far two right implementations may be apart, and that bound is what results are held to.

mod apart;
mod attention;
mod channels;
mod columns;
mod element;
mod fused;
mod gated;
mod graph;
mod heads;
mod judge;
mod keep;
mod moves;
mod products;
mod sample;
mod scalar;
mod stages;
mod steps;

use anyhow::{Result, bail};
use clap::Parser;
use judge::{Judged, Verdict, judge};
use rayon::prelude::*;
use sample::sample;
use std::path::{Path, PathBuf};

/// Run random linalg graphs on stock MLIR, the CPU target and the simulator, and compare
#[derive(Parser)]
struct Arguments {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many graphs
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// What to run beside stock MLIR: cpu, or chips to simulate
    #[arg(long, value_delimiter = ',', default_value = "cpu,sm_80,sm_90a")]
    targets: Vec<String>,
    /// Write the module of each graph that is wrong to DIR/SEED.mlir, its messages first
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Programs that are to become one kernel or two instead: products with maps, masks, reductions and other
    /// products behind them, gated activations, attention and its gradients
    #[arg(long)]
    fused: bool,
    /// Write packages for the last chip of the targets, arguments, and what stock MLIR makes of them, with DIR/list.txt
    /// for `axe-run batch`
    #[arg(long, value_name = "DIR")]
    packages: Option<PathBuf>,
    /// Print the module of the first seed and stop
    #[arg(long)]
    print: bool,
    /// Print each seed before its graph runs: the last one is that of a crash
    #[arg(long)]
    verbose: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.print {
        print!("{}", sample(arguments.seed, arguments.fused).module);
        return Ok(());
    }
    axe_compile::set_recovery(axe_compile::Recovery::Crashes);
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.count);
    let all: Vec<_> = seeds
        .into_par_iter()
        .map(|seed| (seed, one(&arguments, seed)))
        .collect();
    let mut wrong = 0;
    for (seed, judged) in &all {
        let problems = problems(&arguments, judged);
        wrong += usize::from(!problems.is_empty());
        for problem in &problems {
            eprintln!("graph {seed}: {problem}");
        }
        if let (Some(folder), false) = (&arguments.out, problems.is_empty()) {
            std::fs::create_dir_all(folder)?;
            let notes: String = problems
                .join("\n")
                .lines()
                .map(|l| format!("// {l}\n"))
                .collect();
            let text = notes + &sample(*seed, arguments.fused).module;
            std::fs::write(folder.join(format!("{seed}.mlir")), text)?;
        }
    }
    if let Some(folder) = &arguments.packages {
        keep_all(&arguments, folder, &all)?;
    }
    summary(&arguments, &all);
    println!("{} graphs, {wrong} wrong", all.len());
    if wrong > 0 {
        bail!("{wrong} graphs are wrong");
    }
    Ok(())
}

/// Writes what a GPU is to run, and the list of it.
fn keep_all(
    arguments: &Arguments,
    folder: &Path,
    all: &[(u64, Result<Judged, String>)],
) -> Result<()> {
    let chip = arguments.targets.iter().rfind(|target| *target != "cpu");
    let Some(chip) = chip else {
        bail!("expected a chip among the targets, for which packages are made");
    };
    let mut list = String::new();
    for (seed, judged) in all {
        if let Ok(judged) = judged {
            let sample = sample(*seed, arguments.fused);
            list += &keep::keep(folder, *seed, &sample, &judged.want, chip)?;
            list.push('\n');
        }
    }
    std::fs::write(folder.join("list.txt"), list)?;
    Ok(())
}

fn one(arguments: &Arguments, seed: u64) -> Result<Judged, String> {
    if arguments.verbose {
        eprintln!("graph {seed}");
    }
    judge(&sample(seed, arguments.fused), &arguments.targets)
}

/// What is wrong with a graph, for each target.
fn problems(arguments: &Arguments, judged: &Result<Judged, String>) -> Vec<String> {
    match judged {
        Err(message) => vec![message.clone()],
        Ok(judged) => arguments
            .targets
            .iter()
            .zip(&judged.verdicts)
            .filter_map(|(target, verdict)| match verdict {
                Verdict::Wrong(message) => Some(format!("{target}: {message}")),
                Verdict::Right => None,
            })
            .collect(),
    }
}

/// Prints how many graphs each target ran right.
fn summary(arguments: &Arguments, all: &[(u64, Result<Judged, String>)]) {
    let judged: Vec<_> = all
        .iter()
        .filter_map(|(_, judged)| judged.as_ref().ok())
        .collect();
    for (at, target) in arguments.targets.iter().enumerate() {
        let verdicts = judged.iter().filter_map(|judged| judged.verdicts.get(at));
        let right = verdicts.filter(|verdict| **verdict == Verdict::Right);
        println!("{target:8} {:6} right", right.count());
    }
    let weak = judged.iter().filter(|judged| judged.weak).count();
    println!(
        "{weak} graphs with a result whose tolerance is above a quarter of its largest element"
    );
}
