//! `axe`: look at layouts; compile modules; run kernel packages in the simulator, on a GPU or on the host. [`main`] is
//! the whole command, for the program `axe` and for those that hold it, such as the Python package.

mod banks;
mod boxes;
#[cfg(feature = "compiler")]
mod compile;
mod kernel;
#[cfg(feature = "compiler")]
mod module;
mod part;
mod reference;
mod run;
mod shell;
mod sim;
#[cfg(feature = "compiler")]
mod trn;
mod trn_package;
#[cfg(feature = "compiler")]
mod tune;

#[cfg(not(feature = "compiler"))]
use axe_runtime::cli::tune::TuneArgs;
use axe_runtime::cli::{DeviceArgs, bench::BenchArgs, info::InfoArgs};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;

/// Axe: layouts over named hardware axes, and the kernels that they give.
#[derive(Debug, Parser)]
#[command(name = "axe", version = axe_version::LONG, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 all right; 1 a result is wrong or a check found something; \
    2 the command line is wrong; 3 a package, argument or file is wrong; 4 no driver, no GPU or not one \
    the package fits; 5 the driver or a library failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at layouts, compute with them, translate them
    Layout(Box<axe_layout::tools::cli::LayoutArgs>),
    /// Run a kernel package in the simulator and check what it does; of a bare kernel, see `axe sim K.ptx --help`
    Sim(Box<sim::SimArgs>),
    /// Run a kernel package on a GPU, or on the host
    Run {
        #[command(flatten)]
        run: Box<run::RunCommand>,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Compile a module into a kernel package
    #[cfg(feature = "compiler")]
    Compile(compile::CompileArgs),
    /// Say which schedule each operator gets, its plan, and why not another
    #[cfg(feature = "compiler")]
    Explain(compile::ExplainArgs),
    /// Kernels for Trainium, written in the trn dialect: NKI source, the simulator, the cost model
    #[cfg(feature = "compiler")]
    Trn(trn::TrnArgs),
    /// Show what a kernel package holds
    Info(InfoArgs),
    /// Compare packages with NVIDIA's libraries on a GPU
    Bench {
        #[command(flatten)]
        bench: Box<BenchArgs>,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Find the fastest plan for each shape: compile candidates, and time them on a GPU
    #[cfg(feature = "compiler")]
    Tune {
        #[command(flatten)]
        tune: Box<tune::TuneCommand>,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Find the fastest of several packages for each shape, on a GPU
    #[cfg(not(feature = "compiler"))]
    Tune {
        #[command(flatten)]
        tune: Box<TuneArgs>,
        #[command(flatten)]
        device: DeviceArgs,
    },
    /// Print what a shell completes of this command: bash, zsh, fish, elvish, powershell
    Completions(shell::CompletionsArgs),
    /// Write manual pages
    #[command(hide = true)]
    Manual(shell::ManualArgs),
}

/// Runs a command line, the program's name first; the exit code.
#[must_use]
pub fn main(arguments: &[OsString]) -> u8 {
    #[cfg(feature = "compiler")]
    axe_compile::exit_where_the_parser_crashes();
    // A bare kernel has options of its own.
    if let Some(line) = kernel::bare_command(arguments) {
        return finish(kernel::main(line));
    }
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        Err(error) => {
            // Where nobody reads it any more, there is nobody to tell.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(axe_runtime::exit_code::USAGE);
        }
    };
    // The process is this command's alone.
    #[cfg(feature = "compiler")]
    axe_compile::set_recovery(axe_compile::Recovery::Crashes);
    finish(run_command(command))
}

fn run_command(command: Command) -> Result<u8, axe_runtime::RuntimeError> {
    match command {
        Command::Layout(args) => Ok(axe_layout::tools::cli::run(*args)),
        Command::Sim(args) => sim::main(&args),
        Command::Run { run, device } => run::main(&run, device),
        #[cfg(feature = "compiler")]
        Command::Compile(args) => Ok(compile::compile(&args)),
        #[cfg(feature = "compiler")]
        Command::Explain(args) => Ok(compile::explain(&args)),
        #[cfg(feature = "compiler")]
        Command::Trn(args) => Ok(trn::main(&args)),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Manual(args) => {
            shell::manual(&args, vec![Cli::command(), axe_runtime::cli::command()])
        }
        Command::Info(args) => axe_runtime::cli::info::main(&args),
        Command::Bench { bench, device } => axe_runtime::cli::bench::main(&bench, device),
        #[cfg(feature = "compiler")]
        Command::Tune { tune, device } => tune::main(*tune, device),
        #[cfg(not(feature = "compiler"))]
        Command::Tune { tune, device } => axe_runtime::cli::tune::main(&tune, device),
    }
}

fn finish(result: Result<u8, axe_runtime::RuntimeError>) -> u8 {
    result.unwrap_or_else(|error| {
        eprintln!("axe: {error}");
        error.exit_code()
    })
}
