//! `axe-layout`: the layout tools without MLIR.

use std::process::ExitCode;

use axe_layout::tools::cli::{self, LayoutArgs};
use clap::Parser;

/// Axe layouts: look at them, compute with them, translate them.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    layout: LayoutArgs,
}

fn main() -> ExitCode {
    ExitCode::from(cli::run(Cli::parse().layout))
}
