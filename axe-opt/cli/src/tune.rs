//! `axe tune`: compile the candidates of each shape, and time them on a GPU.
//!
//! The timing is another process of this program: a candidate that takes the device down makes it start again
//! without that one, and what was compiled stays.

use crate::module::ModuleFile;
use axe_compile::tune::{Job, chosen, jobs, products};
use axe_package::{DType, Key, OperandOrder, TunedOp};
use axe_runtime::RuntimeError;
use axe_runtime::bench::case::Case;
use axe_runtime::bench::problem::{Gemm, Scaling};
use axe_runtime::cli::DeviceArgs;
use axe_runtime::cli::tune::{self as timing, TuneArgs};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The arguments.
#[derive(Debug, Args)]
#[command(
    mut_arg("out", |out| out.required(false)),
    mut_arg("packages", |packages| packages.help(
        "The folder for the candidates; without --case, --list, --suite and modules, a folder of packages to time as they are"
    )),
    after_help = "Without --out the candidates are compiled into --packages and not timed: \
`axe-run tune --packages DIR --out FILE` does that on a machine with a GPU and without a compiler. \
With --out they are timed at once, and kept when --packages names a folder."
)]
pub struct TuneCommand {
    /// Modules whose matrix products are tuned: linalg on tensors, or axe operators
    modules: Vec<PathBuf>,
    /// Candidates for each shape at most; the cost model's choice is the first
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    candidates: u16,
    /// Compile each shape as the compiler itself chooses, by the database or the cost model, and nothing else
    #[arg(long, conflicts_with_all = ["candidates", "out"])]
    chosen: bool,
    /// The chip to compile for
    #[arg(long, value_name = "CHIP", default_value = "sm_90a")]
    target: String,
    /// Compilations at a time (default: one a core)
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    timing: TuneArgs,
    /// Time the candidates of this folder; what the program starts itself again with
    #[arg(long, hide = true, value_name = "DIR")]
    compiled: Option<PathBuf>,
}

/// Tunes.
///
/// # Errors
/// Shapes that make no sense, modules that cannot be read, nothing that compiles, and whatever the timing says.
pub fn main(mut command: TuneCommand, device: DeviceArgs) -> Result<u8, RuntimeError> {
    let found = command.products()?;
    if let Some(folder) = command.compiled.take() {
        let timing = &mut command.timing;
        timing.selection.packages = vec![folder];
        let cases = found.iter().filter_map(gemm).map(|gemm| Case {
            gemm,
            label: String::new(),
            candidates: Vec::new(),
            rivals: Vec::new(),
        });
        timing.selection.cases.extend(cases);
        return timing::main(timing, device);
    }
    let mut keys = found;
    for gemm in command.timing.gemms()? {
        let key = gemm.tuned_key(&command.target);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return timing::main(&command.timing, device);
    }
    command.compile_and_time(&keys)
}

impl TuneCommand {
    /// The products of the modules.
    fn products(&self) -> Result<Vec<Key>, RuntimeError> {
        let mut keys = Vec::new();
        for path in &self.modules {
            let said = |what: String| wrong(path, &what);
            if path.as_os_str() == "-" {
                // The timing is another process, which reads the modules again.
                return Err(RuntimeError::Usage(
                    "modules are read twice: expected files, got standard input".into(),
                ));
            }
            let module = ModuleFile::read(path).map_err(|error| said(error.to_string()))?;
            let (found, notes) =
                products(module.source(), &self.target).map_err(|error| said(error.to_string()))?;
            for note in notes.iter().filter(|_| self.compiled.is_none()) {
                eprintln!("note: {}: {note}", path.display());
            }
            for key in found {
                if gemm(&key).is_none() {
                    let Key { m, n, k, .. } = key;
                    let why = match key.op {
                        TunedOp::GroupedGemm => "groups of rows are not timed",
                        _ => "a transposed A is not timed",
                    };
                    eprintln!("note: {m} x {n} x {k}: {why}");
                } else if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        Ok(keys)
    }

    fn compile_and_time(&self, keys: &[Key]) -> Result<u8, RuntimeError> {
        let temporary;
        let folder = match (self.timing.selection.packages.as_slice(), &self.timing.out) {
            ([folder], _) => folder.as_path(),
            ([], Some(_)) => {
                temporary = tempfile::tempdir().map_err(file(Path::new("a temporary folder")))?;
                temporary.path()
            }
            ([], None) => {
                return Err(RuntimeError::Usage(
                    "give --out FILE to time the candidates, --packages DIR to keep them, or both"
                        .into(),
                ));
            }
            _ => return Err(RuntimeError::Usage("give one --packages folder".into())),
        };
        std::fs::create_dir_all(folder).map_err(file(folder))?;
        self.compile(keys, folder)?;
        match self.timing.out {
            Some(_) => time(folder),
            None => Ok(0),
        }
    }

    /// Compiles the candidates of all products into a folder.
    fn compile(&self, keys: &[Key], folder: &Path) -> Result<(), RuntimeError> {
        let (jobs, notes) = match self.chosen {
            true => (chosen(keys), Vec::new()),
            false => jobs(keys, usize::from(self.candidates)),
        };
        notes.iter().for_each(|note| eprintln!("note: {note}"));
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(self.jobs.unwrap_or(0))
            .build()
            .map_err(|error| RuntimeError::Usage(error.to_string()))?;
        let (start, all) = (Instant::now(), jobs.len());
        let bar = ProgressBar::new(all as u64).with_style(
            ProgressStyle::with_template(
                "{bar:30} {pos}/{len} candidates, {elapsed} of {duration}  {msg}",
            )
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let done: Vec<bool> = threads.install(|| {
            jobs.into_par_iter()
                .map(|job| {
                    let name = job.name();
                    let result = package(&job, &folder.join(&name));
                    if let Err(why) = &result {
                        bar.suspend(|| {
                            eprintln!("note: {name}: {}: {why}", job.plan().unwrap_or("chosen"))
                        });
                    }
                    bar.set_message(name);
                    bar.inc(1);
                    result.is_ok()
                })
                .collect()
        });
        bar.finish_and_clear();
        let good = done.iter().filter(|good| **good).count();
        println!(
            "{}: {good} of {all} candidates for {} shapes in {:.1} s",
            folder.display(),
            keys.len(),
            start.elapsed().as_secs_f64()
        );
        match good {
            0 => Err(wrong(folder, "no candidate compiles")),
            _ => Ok(()),
        }
    }
}

/// Compiles one candidate. What the assembler warns of costs speed, which the timing shows.
fn package(job: &Job, path: &Path) -> Result<(), String> {
    let compiled = job.compile().map_err(|error| error.to_string())?;
    let written = compiled.package.write_file(path);
    written.map_err(|error| error.to_string())
}

/// Times the candidates of a folder with the arguments of this process.
fn time(folder: &Path) -> Result<u8, RuntimeError> {
    let failed = file(Path::new("this program"));
    let program = std::env::current_exe().map_err(&failed)?;
    let status = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--compiled")
        .arg(folder)
        .status()
        .map_err(&failed)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(axe_runtime::exit_code::CUDA))
}

fn file(path: &Path) -> impl Fn(std::io::Error) -> RuntimeError {
    let path = path.display().to_string();
    move |error| RuntimeError::File {
        path: path.clone(),
        error,
    }
}

fn wrong(path: &Path, what: &str) -> RuntimeError {
    file(path)(std::io::Error::other(what.to_owned()))
}

/// The GEMM of a product; `None` for a transposed A and for groups of rows, which are not timed.
fn gemm(key: &Key) -> Option<Gemm> {
    let transposed = match key.layout {
        OperandOrder::Nt => true,
        OperandOrder::Nn => false,
        OperandOrder::Tn | OperandOrder::Tt => return None,
    };
    let scaling = match (key.op, key.dtype) {
        (TunedOp::Gemm, DType::F16 | DType::BF16) => Scaling::None,
        (TunedOp::GemmTensorScaled, DType::F8E4M3) => Scaling::Tensor,
        (TunedOp::GemmRowScaled, DType::F8E4M3) => Scaling::Row,
        (TunedOp::GemmBlockScaled, DType::F8E4M3) => Scaling::Block,
        _ => return None,
    };
    Some(Gemm {
        m: key.m,
        n: key.n,
        k: key.k,
        dtype: key.dtype,
        transposed,
        scaling,
    })
}
