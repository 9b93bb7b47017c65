//! The command line of `axe-run`.

pub mod batch;
pub mod bench;
pub mod info;
pub mod run;
pub mod tune;

use std::ffi::OsString;
use std::io::Write;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::device::Device;
use crate::error::{RuntimeError, exit_code};
use run::RunArgs;

/// Run, check and time kernel packages on an NVIDIA GPU.
#[derive(Debug, Parser)]
#[command(
    name = "axe-run",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[command(
    after_help = "Exit codes: 0 all right; 1 a result is wrong; 2 the command line is wrong; \
    3 a package, argument or file is wrong; 4 no driver, no GPU or not one the package fits; \
    5 the driver or a library failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Which GPU.
#[derive(Debug, Clone, Copy, Args)]
pub struct DeviceArgs {
    /// The number of the GPU
    #[arg(long, default_value_t = 0, global = true)]
    pub device: usize,
}

impl DeviceArgs {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open(self) -> Result<Device, RuntimeError> {
        Device::open(self.device)
    }
}

/// The command line, for manual pages.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a package holds; needs no GPU
    Info(info::InfoArgs),
    /// Run many cases: a list file with the arguments of one run on each line
    Batch(batch::BatchArgs),
    /// Compare with NVIDIA's libraries
    Bench(Box<bench::BenchArgs>),
    /// Find the fastest of several packages for each shape
    Tune(Box<tune::TuneArgs>),
}

/// Runs the command line `args` (the program's name first) and returns the exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let matches = match Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                exit_code::USAGE
            } else {
                exit_code::OK
            };
        }
    };
    let result = match Cli::from_arg_matches(&matches) {
        Ok(Cli {
            command: Some(Command::Info(args)),
            ..
        }) => info::main(&args),
        Ok(Cli {
            command: Some(Command::Batch(args)),
            device,
            ..
        }) => batch::main(&args, device),
        Ok(Cli {
            command: Some(Command::Bench(args)),
            device,
            ..
        }) => bench::main(&args, device),
        Ok(Cli {
            command: Some(Command::Tune(args)),
            device,
            ..
        }) => tune::main(&args, device),
        Ok(Cli {
            command: None,
            run,
            device,
        }) => run::main(&run, device),
        Err(error) => Err(RuntimeError::Usage(error.to_string())),
    };
    result.unwrap_or_else(|error| {
        eprintln!("axe-run: {error}");
        error.exit_code()
    })
}

/// Writes a line to standard output and ends the program when nobody reads it any more: `println`
/// would panic under `axe-run ... | head`.
pub(crate) fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(i32::from(exit_code::INPUT));
    }
}

/// Writes one JSON document to standard output.
pub(crate) fn print_json<T: serde::Serialize>(value: &T) {
    match serde_json::to_string(value) {
        Ok(text) => say(text),
        Err(error) => eprintln!("axe-run: cannot write JSON: {error}"),
    }
}
