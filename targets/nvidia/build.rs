//! Compiles what MLIR has in C++ alone.

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let prefix = PathBuf::from(env::var("DEP_AXE_DIALECT_PREFIX")?);
    let cpp = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("cpp");
    cc::Build::new()
        .cpp(true)
        // MLIR identifies traits by names that the compiler prints: use the one that built libMLIR.
        .compiler(prefix.join("bin/clang++"))
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .define("NDEBUG", None)
        .opt_level(1)
        .warnings(false)
        .include(prefix.join("include"))
        .file(cpp.join("Models.cpp"))
        .compile("axe_nvidia_models");
    println!("cargo:rerun-if-changed={}", cpp.display());
    Ok(())
}
