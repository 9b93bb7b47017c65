//! Compiles what MLIR has in C++ alone.

use axe_build::Mlir;
use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let cpp = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("cpp");
    Mlir::find()?
        .cpp()
        .file(cpp.join("Models.cpp"))
        .compile("axe_nvidia_models");
    println!("cargo:rerun-if-changed={}", cpp.display());
    Ok(())
}
