//! Compiles the shims around `MlirOptMain` and `MlirLspServerMain`.

use axe_build::Mlir;
use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let cpp = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("cpp");
    Mlir::find()?
        .cpp()
        .define("AXE_VERSION", format!("\"{}\"", axe_version::LONG).as_str())
        .opt_level(0)
        .include(&cpp)
        .includes(env::var("DEP_AXE_DIALECT_INCLUDE")?.split(':'))
        .includes(env::var("DEP_AXE_PASSES_INCLUDE")?.split(':'))
        .include(env::var("DEP_AXE_TRAINIUM_INCLUDE")?)
        .file(cpp.join("Driver.cpp"))
        .file(cpp.join("Survive.cpp"))
        .file(cpp.join("Server.cpp"))
        .compile("axe_driver");
    println!("cargo:rerun-if-changed={}", cpp.display());
    Ok(())
}
