//! Compiles the shims around `MlirOptMain` and `MlirLspServerMain`.

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
        // As libMLIR was built: the size of a pass depends on it.
        .define("NDEBUG", None)
        .define("AXE_VERSION", format!("\"{}\"", axe_version::LONG).as_str())
        .opt_level(0)
        .warnings(false)
        .include(&cpp)
        .includes(env::var("DEP_AXE_DIALECT_INCLUDE")?.split(':'))
        .includes(env::var("DEP_AXE_PASSES_INCLUDE")?.split(':'))
        .include(env::var("DEP_AXE_TRAINIUM_INCLUDE")?)
        .include(prefix.join("include"))
        .file(cpp.join("Driver.cpp"))
        .file(cpp.join("Survive.cpp"))
        .file(cpp.join("Server.cpp"))
        .compile("axe_driver");
    println!("cargo:rerun-if-changed={}", cpp.display());
    Ok(())
}
