//! `axe sim KERNEL.ptx` and `axe sim FOLDER` of Triton's cache: the simulator on a kernel without a package.

use axe_package::{Tensor, Tolerance, compare, npy};
use axe_runtime::RuntimeError;
use axe_sim::bare::{Bare, BareError, BareRun, Triton, Value};
use axe_sim::{Finding, Module, Options, SimError, Simulator, sarif};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How the outcome is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// A line of JSON for each schedule
    Json,
    /// One SARIF 2.1.0 log
    Sarif,
}

/// Run a kernel in the simulator and check what it does.
///
/// KERNEL is a PTX file, or a folder of Triton's cache (a PTX file beside a JSON file).
#[derive(Debug, Parser)]
#[command(name = "axe sim", version)]
#[command(
    after_help = "VALUE of --arg, --array and --variable: FILE.npy; DTYPE[SHAPE], such as f32[64,32], with :zeros, \
:ones, :arange, :NUMBER, :random, :random:SEED or :random:SEED:LOW:HIGH, else unwritten; a number of the \
parameter's type, or DTYPE:NUMBER; &NAME or &NAME+BYTES, the address of another array; &{NAME, NAME+BYTES}, a \
table of addresses; {VALUE, VALUE}, a structure by value; hex:BYTES or @FILE, bytes by value; map:NAME:BOX or \
map:NAME:BOX:SWIZZLE, a tensor map.\n\nExit codes: 0 all right; 1 a check found something, or a result is wrong; \
2 the command line is wrong; 3 a file is wrong. docs/sim.md says more."
)]
pub struct KernelArgs {
    /// A PTX file, or a folder of Triton's cache
    #[arg(value_name = "KERNEL")]
    path: PathBuf,
    /// The kernel, where the module holds several; its name may be demangled
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// CTAs: X, X,Y or X,Y,Z
    #[arg(long, default_value = "1", value_name = "X,Y,Z", value_parser = dims)]
    grid: [u32; 3],
    /// Threads a CTA; else the kernel's .reqntid, or what Triton wrote
    #[arg(long, value_name = "X,Y,Z", value_parser = dims)]
    block: Option<[u32; 3]>,
    /// CTAs a cluster
    #[arg(long, value_name = "X,Y,Z", value_parser = dims)]
    cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes
    #[arg(long, value_name = "BYTES")]
    smem: Option<u64>,
    /// The next argument: VALUE or NAME=VALUE (else it is called arg0, arg1, ...)
    #[arg(long = "arg", value_name = "[NAME=]VALUE", value_parser = named)]
    args: Vec<(Option<String>, Value)>,
    /// An array that arguments point to and that is none
    #[arg(long = "array", value_name = "NAME=VALUE", value_parser = named)]
    arrays: Vec<(Option<String>, Value)>,
    /// What a __constant__ or __device__ variable holds: a number, or an array's contents; NAME may be demangled
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = symbol)]
    variables: Vec<(String, Value)>,
    /// What an array must hold afterwards; may be given several times
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = expected)]
    expect: Vec<(String, PathBuf)>,
    /// Compare with these bounds instead of those of the array's type
    #[arg(long, value_name = "NORM,ELEMENT", value_parser = tolerance)]
    tolerance: Option<Tolerance>,
    /// Write every array to DIR/NAME.npy
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do not look for races, unwritten memory and misused barriers: bounds and deadlocks only
    #[arg(long)]
    no_check: bool,
    /// Print what the kernel did: instructions, sectors, bank conflicts, bytes
    #[arg(long)]
    stats: bool,
    /// Run once for each of N interleavings of the warps (seeds 0 to N - 1)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    schedules: u64,
    /// Run only the first N CTAs of the grid; arrays are then not compared
    #[arg(long, value_name = "N")]
    ctas: Option<u64>,
    /// Worker threads (all cores by default); one makes a run repeatable where CTAs talk to one another
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// End a schedule after so many instructions of a warp in one cluster
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End a schedule after so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// How many different findings are kept
    #[arg(long, default_value_t = 100, value_name = "N")]
    findings: usize,
    /// How the outcome is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

fn dims(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    let mut all = [1; 3];
    if parts.len() > 3 {
        return Err("expected at most three numbers".into());
    }
    for (to, part) in all.iter_mut().zip(&parts) {
        let n = part.trim().parse::<u32>().ok().filter(|&n| n > 0);
        *to = n.ok_or_else(|| format!("`{part}`: expected a positive number"))?;
    }
    Ok(all)
}

fn named(text: &str) -> Result<(Option<String>, Value), String> {
    let name = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match text.split_once('=') {
        Some((n, value)) if name(n) => Ok((Some(n.into()), value.parse()?)),
        _ => Ok((None, text.parse()?)),
    }
}

fn symbol(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.into(), value.parse()?))
}

fn expected(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=FILE.npy")?;
    Ok((name.into(), path.into()))
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let number = |s: &str| s.trim().parse::<f64>().ok().filter(|v| *v >= 0.0);
    let parts = text.split_once(',');
    let both = parts.and_then(|(n, e)| number(n).zip(number(e)));
    let (norm, element) = both.ok_or("expected two numbers, NORM,ELEMENT")?;
    Ok(Tolerance::new(norm, element))
}

/// The command line of `axe sim`, if it names a bare kernel: a PTX file, or a folder that holds one and is
/// no package.
pub fn bare_command(arguments: &[std::ffi::OsString]) -> Option<Vec<std::ffi::OsString>> {
    let [_, command, rest @ ..] = arguments else {
        return None;
    };
    (command == "sim" && rest.iter().any(|a| is_bare(Path::new(a)))).then(|| {
        std::iter::once("axe sim".into())
            .chain(rest.iter().cloned())
            .collect()
    })
}

fn is_bare(path: &Path) -> bool {
    let ptx = |p: &Path| p.extension().is_some_and(|e| e == "ptx");
    if path.is_dir() && !path.join(axe_package::MANIFEST_FILE).exists() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|e| e.path()).any(|p| ptx(&p));
    }
    ptx(path) && !path.to_string_lossy().starts_with('-')
}

/// Runs the command line; the exit code says whether all was well.
///
/// # Errors
/// A file or an argument that is wrong.
pub fn main(line: Vec<std::ffi::OsString>) -> Result<u8, RuntimeError> {
    let args = KernelArgs::parse_from(line);
    let (bare, path) = args.bare()?;
    let want = args.wanted()?;
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} schedules, {elapsed}");
    let bar = ProgressBar::new(args.schedules)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    let mut outcome = Outcome {
        args: &args,
        passed: true,
        first: None,
        sarif: Vec::new(),
    };
    for seed in 0..args.schedules {
        bar.set_position(seed);
        let simulator = Simulator::new(args.options(seed));
        match bare.run(&simulator) {
            Ok(run) => bar.suspend(|| outcome.take(seed, &run, &want))?,
            Err(BareError::Sim(SimError::Fault(fault, earlier))) => {
                bar.suspend(|| outcome.fault(seed, &fault, &earlier));
            }
            Err(error) => return Err(runtime(error)),
        }
    }
    bar.finish_and_clear();
    if args.format == Format::Sarif {
        say(sarif(outcome.sarif.iter(), &path.display().to_string()));
    }
    Ok(u8::from(!outcome.passed))
}

impl KernelArgs {
    /// The kernel with its arguments, and the PTX file.
    fn bare(&self) -> Result<(Bare, PathBuf), RuntimeError> {
        let triton = self.path.is_dir();
        let (path, meta) = if triton {
            Triton::open(&self.path, self.kernel.as_deref()).map_err(runtime)?
        } else {
            (self.path.clone(), Triton::default())
        };
        let text = std::fs::read_to_string(&path).map_err(|error| RuntimeError::File {
            path: path.display().to_string(),
            error,
        })?;
        let module = Module::parse(&text).map_err(|e| file_error(&path, e))?;
        let bare = if triton {
            meta.kernel(module, self.grid)
        } else {
            Bare::of(module, self.kernel.as_deref(), self.grid, self.block)
        };
        let mut bare = bare.map_err(runtime)?;
        bare.block = self.block.unwrap_or(bare.block);
        bare.cluster = self.cluster.unwrap_or(bare.cluster);
        bare.smem = self.smem.unwrap_or(bare.smem);
        for (name, value) in &self.variables {
            bare.variable(name, value.clone());
        }
        for (name, value) in &self.arrays {
            let name = name
                .as_ref()
                .ok_or_else(|| RuntimeError::Usage("--array takes NAME=VALUE".into()))?;
            bare.array(name, value.clone());
        }
        for (i, (name, value)) in self.args.iter().enumerate() {
            let name = name.clone().unwrap_or_else(|| format!("arg{i}"));
            bare.arg(&name, value.clone());
        }
        if triton {
            meta.scratch(&mut bare);
        }
        Ok((bare, path))
    }

    fn wanted(&self) -> Result<BTreeMap<String, Tensor>, RuntimeError> {
        let read = |(name, path): &(String, PathBuf)| Ok((name.clone(), npy::read(path)?));
        self.expect.iter().map(read).collect()
    }

    fn options(&self, seed: u64) -> Options {
        let defaults = Options::default();
        let deadline = self.timeout.filter(|s| s.is_finite() && *s >= 0.0);
        Options {
            checks: !self.no_check,
            counters: self.stats,
            seed,
            threads: self.threads,
            max_ctas: self.ctas,
            max_warp_instructions: self.limit.unwrap_or(defaults.max_warp_instructions),
            deadline: deadline.map(|s| Instant::now() + Duration::from_secs_f64(s.min(1e9))),
            max_findings: self.findings,
            ..defaults
        }
    }
}

fn file_error(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> RuntimeError {
    RuntimeError::File {
        path: path.display().to_string(),
        error: std::io::Error::other(error),
    }
}

fn runtime(error: BareError) -> RuntimeError {
    match error {
        BareError::File { path, error } => file_error(&path, error),
        BareError::Npy(error) => RuntimeError::Npy(error),
        other => RuntimeError::Usage(other.to_string()),
    }
}

/// What all schedules together gave.
struct Outcome<'a> {
    args: &'a KernelArgs,
    passed: bool,
    /// The arrays of the first schedule.
    first: Option<BTreeMap<String, Tensor>>,
    sarif: Vec<Finding>,
}

impl Outcome<'_> {
    /// One schedule that ran to its end.
    fn take(
        &mut self,
        seed: u64,
        run: &BareRun,
        want: &BTreeMap<String, Tensor>,
    ) -> Result<(), RuntimeError> {
        let mut results = Vec::new();
        let mut right = true;
        if self.args.ctas.is_none() {
            for (name, want) in want {
                let got = run.arrays.get(name).ok_or_else(|| {
                    RuntimeError::Usage(format!("--expect names `{name}`, which is no array"))
                })?;
                let (passed, text) = judge(name, got, want, self.args.tolerance)?;
                right &= passed;
                results.push((name.clone(), passed, text));
            }
        }
        let differ = self.differing(run);
        right &= run.report.findings.is_empty();
        self.passed &= right;
        self.print(seed, run, right, &results, &differ);
        if let (0, Some(out)) = (seed, &self.args.out) {
            write_arrays(out, &run.arrays)?;
        }
        self.first.get_or_insert_with(|| run.arrays.clone());
        Ok(())
    }

    /// Arrays that another schedule leaves otherwise.
    fn differing(&self, run: &BareRun) -> Vec<String> {
        let Some(first) = &self.first else {
            return Vec::new();
        };
        let other = |(name, tensor): &(&String, &Tensor)| first.get(*name) != Some(*tensor);
        let names = run
            .arrays
            .iter()
            .filter(other)
            .map(|(name, _)| name.clone());
        names.collect()
    }

    fn print(
        &mut self,
        seed: u64,
        run: &BareRun,
        right: bool,
        results: &[(String, bool, String)],
        differ: &[String],
    ) {
        let report = &run.report;
        match self.args.format {
            Format::Sarif => {
                self.sarif.extend(report.findings.iter().cloned());
                self.sarif.extend(report.notes.iter().cloned());
            }
            Format::Json => {
                let results: Vec<_> = (results.iter())
                    .map(|(name, passed, text)| json!({"name": name, "passed": passed, "text": text}))
                    .collect();
                say(json!({
                    "schedule": seed, "passed": right, "report": report, "outputs": results,
                    "differs_from_schedule_0": differ,
                }));
            }
            Format::Text => {
                for line in report.output.lines() {
                    say(line);
                }
                let all = report.findings.iter().map(|f| ("", f));
                let notes = report.notes.iter().map(|f| ("note: ", f));
                for (what, finding) in all.chain(notes) {
                    say(format_args!("schedule {seed}: {what}{finding}"));
                }
                for (_, _, text) in results {
                    say(format_args!("schedule {seed}: {text}"));
                }
                for name in differ {
                    say(format_args!(
                        "schedule {seed}: note: `{name}` differs from schedule 0"
                    ));
                }
                if self.args.stats {
                    say(&report.counters);
                }
                if right && report.notes.is_empty() && results.is_empty() {
                    let n = report.counters.thread_instructions();
                    say(format_args!(
                        "schedule {seed}: nothing found in {n} thread instructions"
                    ));
                }
            }
        }
    }

    /// One schedule that a fault ended.
    fn fault(&mut self, seed: u64, fault: &Finding, earlier: &[Finding]) {
        self.passed = false;
        let all = earlier.iter().chain([fault]);
        match self.args.format {
            Format::Sarif => self.sarif.extend(all.cloned()),
            Format::Json => {
                let findings: Vec<_> = earlier.iter().collect();
                say(
                    json!({"schedule": seed, "passed": false, "ended_by": fault, "findings": findings}),
                );
            }
            Format::Text => {
                for finding in all {
                    say(format_args!("schedule {seed}: {finding}"));
                }
            }
        }
    }
}

/// Compares an array; says how it went.
fn judge(
    name: &str,
    got: &Tensor,
    want: &Tensor,
    tolerance: Option<Tolerance>,
) -> Result<(bool, String), RuntimeError> {
    let tolerance = tolerance.unwrap_or_else(|| Tolerance::for_dtype(got.dtype()));
    let report = compare(got, want, tolerance).map_err(|error| RuntimeError::Compare {
        output: name.into(),
        error,
    })?;
    let verdict = if report.passed() {
        "as expected"
    } else {
        "WRONG"
    };
    Ok((report.passed(), format!("`{name}` is {verdict}: {report}")))
}

fn write_arrays(out: &Path, arrays: &BTreeMap<String, Tensor>) -> Result<(), RuntimeError> {
    std::fs::create_dir_all(out).map_err(|error| RuntimeError::File {
        path: out.display().to_string(),
        error,
    })?;
    for (name, tensor) in arrays {
        npy::write(out.join(format!("{name}.npy")), tensor)?;
    }
    Ok(())
}

/// Writes a line to standard output; ends the program when nobody reads it any more.
fn say(line: impl std::fmt::Display) {
    if writeln!(std::io::stdout().lock(), "{line}").is_err() {
        std::process::exit(3);
    }
}
