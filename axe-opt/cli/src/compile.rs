//! `axe compile` and `axe explain`.

use crate::module::ModuleFile;
use axe_compile::{CompileError, Elapsed, Options};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// A module or what came of it is wrong: the exit code of other wrong files.
const WRONG_FILE: u8 = 3;

/// The arguments of a compilation.
#[derive(Debug, Args)]
pub struct CompileArgs {
    /// The module: linalg on tensors, axe operators, or kernels with their launches; `-` for standard input
    input: PathBuf,
    /// A chip (sm_80, sm_86, sm_89, sm_90a, trn1, trn2), or cpu
    #[arg(long, value_name = "TARGET", default_value = axe_compile::default_target())]
    target: String,
    /// The package to write: a file, or a folder when it ends with a slash
    #[arg(short, long, value_name = "PACKAGE")]
    output: PathBuf,
    /// Write this text of the kernels instead of a package; `-` as output prints it
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// The function to compile, when there are several public ones
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The assembler [default: $AXE_PTXAS, or ptxas on the PATH; without one the package has PTX alone]
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
    /// Print how long the compiler and the assembler took
    #[arg(long)]
    timing: bool,
}

/// A text of kernels for Trainium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// NKI source, 0.2 and later
    Nki,
    /// NKI source, 0.1 (neuronxcc.nki)
    NkiOld,
    /// The trn dialect
    Trn,
}

/// The arguments of an explanation.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The module; `-` for standard input
    input: PathBuf,
    /// A chip
    #[arg(long, value_name = "TARGET", default_value = axe_compile::default_target())]
    target: String,
}

fn read(path: &Path) -> Result<ModuleFile, String> {
    ModuleFile::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn finish(result: Result<(), String>) -> u8 {
    match result {
        Ok(()) => axe_runtime::exit_code::OK,
        Err(message) => {
            eprintln!("axe: {message}");
            WRONG_FILE
        }
    }
}

/// Compiles and writes the package, or a text.
pub fn compile(args: &CompileArgs) -> u8 {
    finish(match args.emit {
        None => write(args),
        Some(emit) => write_text(args, emit),
    })
}

fn write_text(args: &CompileArgs, emit: Emit) -> Result<(), String> {
    let said = |error: CompileError| format!("{}: {error}", args.input.display());
    let module = read(&args.input)?;
    let text = match emit {
        Emit::Trn => axe_compile::trainium_kernels(module.source(), &args.target).map_err(said)?,
        Emit::Nki | Emit::NkiOld => {
            let options = Options {
                function: args.function.as_deref(),
                ..Options::for_target(&args.target)
            };
            let compiled = axe_compile::compile_with(module.source(), options).map_err(said)?;
            let file = if emit == Emit::Nki {
                "nki.py"
            } else {
                "nki-old.py"
            };
            let text = compiled.package.file(file).map(<[u8]>::to_vec);
            let text = text.ok_or_else(|| {
                format!("a package for {} has no NKI source: expected --target trn1 or trn2, and kernels", args.target)
            })?;
            String::from_utf8(text).map_err(|error| error.to_string())?
        }
    };
    if args.output.as_os_str() == "-" {
        print!("{text}");
        return Ok(());
    }
    std::fs::write(&args.output, text)
        .map_err(|error| format!("{}: {error}", args.output.display()))
}

fn write(args: &CompileArgs) -> Result<(), String> {
    let said = |error: CompileError| format!("{}: {error}", args.input.display());
    let module = read(&args.input)?;
    let options = Options {
        function: args.function.as_deref(),
        assembler: args.ptxas.as_deref(),
        ..Options::for_target(&args.target)
    };
    let compiled = axe_compile::compile_with(module.source(), options).map_err(said)?;
    for warning in &compiled.warnings {
        eprintln!("axe: warning: {warning}");
    }
    let package = &compiled.package;
    let written = match args.output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        true => package.write_dir(&args.output),
        false => package.write_file(&args.output),
    };
    written.map_err(|error| error.to_string())?;
    let kernels = package.manifest().kernels.len();
    println!(
        "{}: {kernels} kernels for {}",
        args.output.display(),
        args.target
    );
    if args.timing {
        let Elapsed {
            compiler,
            assembler,
        } = compiled.elapsed;
        println!(
            "  {:.3} s to code, {:.3} s in the assembler",
            compiler.as_secs_f64(),
            assembler.as_secs_f64()
        );
    }
    Ok(())
}

/// Explains the decisions of a module.
pub fn explain(args: &ExplainArgs) -> u8 {
    let said = |error: CompileError| format!("{}: {error}", args.input.display());
    finish(
        read(&args.input)
            .and_then(|module| axe_compile::explain(module.source(), &args.target).map_err(said)),
    )
}
