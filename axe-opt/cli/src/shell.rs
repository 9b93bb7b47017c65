//! What shells and `man` know of the commands: `axe completions`, and the manual pages of a distribution.

use axe_runtime::RuntimeError;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `axe completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The arguments of `axe manual`.
#[derive(Debug, Args)]
pub struct ManualArgs {
    /// The folder to write the pages to
    folder: PathBuf,
}

/// Prints the completions of a command.
///
/// # Errors
/// A standard output that cannot be written.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<u8, RuntimeError> {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let written = io::stdout().lock().write_all(&script);
    written.map_err(|error| failed(Path::new("standard output"), error))?;
    Ok(0)
}

/// Writes the manual pages of commands and of their subcommands.
///
/// # Errors
/// A folder that cannot be written.
pub fn manual(args: &ManualArgs, commands: Vec<Command>) -> Result<u8, RuntimeError> {
    for command in commands {
        let written = clap_mangen::generate_to(command, &args.folder);
        written.map_err(|error| failed(&args.folder, error))?;
    }
    Ok(0)
}

fn failed(path: &Path, error: io::Error) -> RuntimeError {
    RuntimeError::File {
        path: path.display().to_string(),
        error,
    }
}
