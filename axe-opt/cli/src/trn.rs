//! `axe trn`: kernels for Trainium, written in the trn dialect: NKI source, the simulator, the cost model.

use crate::module::ModuleFile;
use axe_package::{DType, Random, Tensor, npy};
use axe_trn::nki::{self, Generation};
use axe_trn::plan::{Attention, Matmul, Order};
use axe_trn::program::{Program, Role};
use axe_trn::{run, sync, time};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

/// A check found something, or a result is wrong.
const FOUND: u8 = 1;
/// A module or program is wrong.
const WRONG_FILE: u8 = 3;

/// What to do with a kernel.
#[derive(Debug, Args)]
pub struct TrnArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print NKI source
    Nki {
        #[command(flatten)]
        kernel: KernelArgs,
        /// The generation of the API
        #[arg(long, value_enum, default_value_t = Api::New)]
        api: Api,
    },
    /// Execute it, with every documented rule enforced, and look for semaphores that are missing
    Sim {
        #[command(flatten)]
        kernel: KernelArgs,
        /// An argument's values; random ones otherwise
        #[arg(long, value_name = "NAME=FILE.npy", value_parser = binding)]
        input: Vec<(String, PathBuf)>,
        /// Where to write a result
        #[arg(long, value_name = "NAME=FILE.npy", value_parser = binding)]
        output: Vec<(String, PathBuf)>,
        /// What the random arguments begin from
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Say how long it takes, by the cost model
    Time {
        #[command(flatten)]
        kernel: KernelArgs,
        /// Draw the timeline, one row an engine
        #[arg(long, value_name = "FILE.svg")]
        timeline: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the kernel as data: what the other verbs take too, as FILE.json
    Program(KernelArgs),
    /// Plan a matrix product of any size, and print it as data: tiles, loads that overlap, chosen by the cost model
    Matmul(MatmulArgs),
    /// Plan attention forward in one kernel, and print it as data
    Attention(AttentionArgs),
}

#[derive(Debug, Args)]
struct MatmulArgs {
    /// M,K,N: `result[M, N] = lhs[M, K] rhs[K, N]`
    #[arg(value_parser = sizes)]
    sizes: [i64; 3],
    /// The chip: trn1 or trn2
    #[arg(long, default_value = "trn2")]
    chip: String,
    /// The type of both operands: f32, bf16 or f16
    #[arg(long, default_value = "bf16")]
    dtype: DType,
    /// The type of the result; that of the operands where none is given
    #[arg(long, value_name = "DTYPE")]
    output: Option<DType>,
    /// The left operand lies as [K, M]
    #[arg(long)]
    lhs_transposed: bool,
    /// The right operand lies as [N, K]
    #[arg(long)]
    rhs_transposed: bool,
}

fn sizes(text: &str) -> Result<[i64; 3], String> {
    numbers(text).ok_or_else(|| format!("expected M,K,N such as 2048,2048,2048, got {text}"))
}

/// So many numbers between commas.
fn numbers<const COUNT: usize>(text: &str) -> Option<[i64; COUNT]> {
    let numbers: Result<Vec<i64>, _> = text.split(',').map(str::parse).collect();
    <[i64; COUNT]>::try_from(numbers.ok()?).ok()
}

/// How an operand lies, whose first dimension in memory is the one that is contracted where `k_major`.
const fn order(k_major: bool) -> Order {
    if k_major {
        Order::KMajor
    } else {
        Order::KMinor
    }
}

#[derive(Debug, Args)]
struct AttentionArgs {
    /// HEADS,QUERIES,KEYS,DIM: `softmax(scale q k^T) v` of each head, q, k and v of which are [QUERIES, DIM] and [KEYS, DIM]
    #[arg(value_parser = heads)]
    sizes: [i64; 4],
    /// The chip: trn1 or trn2
    #[arg(long, default_value = "trn2")]
    chip: String,
    /// The type of operands and results: bf16 or f16
    #[arg(long, default_value = "bf16")]
    dtype: DType,
    /// What scores are multiplied with; 1 / sqrt(DIM) where none is given
    #[arg(long)]
    scale: Option<f64>,
    /// Query i sees keys up to i
    #[arg(long)]
    causal: bool,
    /// Queries and keys lie as [DIM, QUERIES] and [DIM, KEYS]
    #[arg(long)]
    transposed: bool,
}

fn heads(text: &str) -> Result<[i64; 4], String> {
    numbers(text).ok_or_else(|| {
        format!("expected HEADS,QUERIES,KEYS,DIM such as 16,4096,4096,128, got {text}")
    })
}

impl AttentionArgs {
    fn plan(&self) -> Result<Program, String> {
        let [heads, queries, keys, dim] = self.sizes;
        let attention = Attention {
            heads,
            queries,
            keys,
            dim,
            q: order(self.transposed),
            k: order(self.transposed),
            dtype: self.dtype,
            scale: self.scale.unwrap_or_else(|| 1.0 / (dim as f64).sqrt()),
            causal: self.causal,
        };
        attention
            .plan("attention", &self.chip)
            .map_err(|error| error.to_string())
    }
}

impl MatmulArgs {
    fn plan(&self) -> Result<Program, String> {
        let matmul = Matmul {
            sizes: self.sizes,
            lhs: order(self.lhs_transposed),
            rhs: order(!self.rhs_transposed),
            inputs: self.dtype,
            output: self.output.unwrap_or(self.dtype),
        };
        matmul
            .plan("matmul", &self.chip)
            .map_err(|error| error.to_string())
    }
}

#[derive(Debug, Args)]
struct KernelArgs {
    /// The module (`-` for standard input), or a program as JSON
    file: PathBuf,
    /// The kernel, when there are several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
}

/// A generation of NKI's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Api {
    /// `nki`, 0.2 and later
    New,
    /// `neuronxcc.nki`, 0.1
    Old,
}

fn binding(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("expected NAME=FILE.npy")?;
    Ok((name.to_owned(), file.into()))
}

/// Does it; the exit code says whether all was well.
pub fn main(args: &TrnArgs) -> u8 {
    match act(&args.verb) {
        Ok(true) => axe_runtime::exit_code::OK,
        Ok(false) => FOUND,
        Err(message) => {
            eprintln!("axe: {message}");
            WRONG_FILE
        }
    }
}

fn act(verb: &Verb) -> Result<bool, String> {
    match verb {
        Verb::Nki { kernel, api } => {
            let generation = match api {
                Api::New => Generation::New,
                Api::Old => Generation::Old,
            };
            let source =
                nki::print(&load(kernel)?, generation).map_err(|error| error.to_string())?;
            print!("{source}");
            Ok(true)
        }
        Verb::Sim {
            kernel,
            input,
            output,
            seed,
        } => simulate(&load(kernel)?, input, output, *seed),
        Verb::Time {
            kernel,
            timeline,
            json,
        } => {
            let timing = time::simulate(&load(kernel)?).map_err(|error| error.to_string())?;
            if let Some(path) = timeline {
                std::fs::write(path, time::svg::svg(&timing)).map_err(|error| at(path, &error))?;
            }
            match json {
                true => println!(
                    "{}",
                    serde_json::to_string(&timing).map_err(|error| error.to_string())?
                ),
                false => println!("{timing}"),
            }
            Ok(true)
        }
        Verb::Program(kernel) => as_data(&load(kernel)?),
        Verb::Matmul(matmul) => as_data(&matmul.plan()?),
        Verb::Attention(attention) => as_data(&attention.plan()?),
    }
}

fn as_data(program: &Program) -> Result<bool, String> {
    let text = serde_json::to_string_pretty(program).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(true)
}

fn at(path: &Path, error: &impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn load(args: &KernelArgs) -> Result<Program, String> {
    if args
        .file
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        let text = std::fs::read_to_string(&args.file).map_err(|error| at(&args.file, &error))?;
        return serde_json::from_str(&text).map_err(|error| at(&args.file, &error));
    }
    let module = ModuleFile::read(&args.file).map_err(|error| at(&args.file, &error))?;
    let mut programs =
        axe_compile::trainium_programs(module.source()).map_err(|error| error.to_string())?;
    let names: Vec<String> = programs
        .iter()
        .map(|program| program.name.clone())
        .collect();
    let chosen = match &args.kernel {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None if names.len() == 1 => Some(0),
        None => None,
    };
    match chosen {
        Some(index) => Ok(programs.swap_remove(index)),
        None if names.is_empty() => Err("the module has no trn.kernel".into()),
        None => Err(format!(
            "name one of the kernels {} with --kernel",
            names.join(", ")
        )),
    }
}

/// The shape of a buffer, as tensors have it.
fn shape(buffer: &axe_trn::program::Buffer) -> Vec<u64> {
    buffer
        .shape
        .iter()
        .map(|extent| extent.unsigned_abs())
        .collect()
}

fn argument(
    buffer: &axe_trn::program::Buffer,
    given: &[(String, PathBuf)],
    seed: u64,
) -> Result<Vec<u8>, String> {
    let dtype: DType = buffer.dtype;
    let tensor = match given.iter().find(|(name, _)| *name == buffer.name) {
        Some((_, path)) => npy::read_as(path, dtype).map_err(|error| error.to_string())?,
        None => Tensor::random(dtype, shape(buffer), Random::for_dtype(dtype, seed))
            .map_err(|error| error.to_string())?,
    };
    if tensor.shape() != shape(buffer) {
        return Err(format!(
            "input '{}': expected shape {:?}, got {:?}",
            buffer.name,
            buffer.shape,
            tensor.shape()
        ));
    }
    Ok(tensor.bytes().to_vec())
}

fn simulate(
    program: &Program,
    input: &[(String, PathBuf)],
    output: &[(String, PathBuf)],
    seed: u64,
) -> Result<bool, String> {
    for (role, given) in [(Role::Input, input), (Role::Output, output)] {
        if let Some((name, _)) = given
            .iter()
            .find(|(name, _)| program.with_role(role).all(|(_, b)| b.name != *name))
        {
            return Err(format!(
                "kernel '{}' has no {role:?} '{name}'",
                program.name
            ));
        }
    }
    let inputs = program
        .with_role(Role::Input)
        .zip(seed..)
        .map(|((_, buffer), seed)| argument(buffer, input, seed))
        .collect::<Result<Vec<_>, _>>()?;
    let outcome = match run::execute(program, &inputs) {
        Ok(outcome) => outcome,
        // What breaks a rule before it is executed is a finding too.
        Err(axe_trn::walk::Refused::Rules(violations)) => {
            violations
                .iter()
                .for_each(|violation| println!("{violation}"));
            return Ok(false);
        }
        Err(error) => return Err(error.to_string()),
    };
    for finding in &outcome.findings {
        println!("{finding}");
    }
    for ((_, buffer), bytes) in program.with_role(Role::Output).zip(&outcome.outputs) {
        let Some((_, path)) = output.iter().find(|(name, _)| *name == buffer.name) else {
            continue;
        };
        let tensor = Tensor::new(buffer.dtype, shape(buffer), bytes.clone())
            .map_err(|error| error.to_string())?;
        npy::write(path, &tensor).map_err(|error| error.to_string())?;
    }
    println!(
        "{}: {} findings, {}",
        program.name,
        outcome.findings.len(),
        semaphores(program)
    );
    Ok(outcome.findings.is_empty())
}

/// How many semaphores a program needs between engines.
fn semaphores(program: &Program) -> String {
    match sync::trace(program) {
        Ok(trace) => format!(
            "{} instructions executed, {} semaphores between engines",
            trace.executions.len(),
            sync::semaphores(&trace).len()
        ),
        Err(error) => format!("semaphores not counted: {error}"),
    }
}
