//! Generates the pass classes from Passes.td and compiles them.

use axe_build::Mlir;
use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mlir = Mlir::find()?;
    let cpp = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("cpp");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let header = out.join("AxePasses.h.inc");
    mlir.generate(
        &cpp.join("Passes.td"),
        &["-gen-pass-decls", "-name=Axe"],
        &header,
    )?;
    // The dialect's build script publishes its include folders.
    let dialect = env::var("DEP_AXE_DIALECT_INCLUDE")?;
    mlir.cpp()
        .include(&cpp)
        .includes(dialect.split(':'))
        .include(&out)
        .files(
            [
                "Passes.cpp",
                "Pipelines.cpp",
                "Layouts.cpp",
                "Speculation.cpp",
                "Named.cpp",
            ]
            .map(|file| cpp.join(file)),
        )
        .compile("axe_passes");
    println!("cargo:rerun-if-changed={}", cpp.display());
    println!("cargo:include={}:{}", cpp.display(), out.display());
    Ok(())
}
