//! Compiles modules for sm_90a one after the other in one process, and says how long each took.
//!
//!     warm < LIST
//!
//! Reads the path of a module on each line and answers with a line `PTX ASSEMBLER`: seconds from its text to
//! PTX, and in ptxas. `targets/runtime/baselines/triton_compile.py` times it beside Triton.

use std::io::{BufRead, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("warm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::io::stdin().lock().lines() {
        let text = std::fs::read_to_string(path?)?;
        let compiled = axe_compile::compile(&text, None, "sm_90a")?;
        if let Some(warning) = compiled.warnings.first() {
            eprintln!("warm: {warning}");
        }
        let [compiler, assembler] = [compiled.elapsed.compiler, compiled.elapsed.assembler];
        let seconds = [compiler.as_secs_f64(), assembler.as_secs_f64()];
        writeln!(out, "{:.6} {:.6}", seconds[0], seconds[1])?;
        out.flush()?;
    }
    Ok(())
}
