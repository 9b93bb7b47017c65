//! Generates the pass classes from Passes.td and compiles them.

use std::{env, error::Error, path::PathBuf, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    let prefix = PathBuf::from(env::var("DEP_AXE_DIALECT_PREFIX")?);
    let cpp = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("cpp");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let include = prefix.join("include");
    let status = Command::new(prefix.join("bin/mlir-tblgen"))
        .args(["-gen-pass-decls", "-name=Axe"])
        .arg(cpp.join("Passes.td"))
        .arg("-I")
        .arg(&include)
        .arg("-o")
        .arg(out.join("AxePasses.h.inc"))
        .status()?;
    if !status.success() {
        return Err("mlir-tblgen -gen-pass-decls failed".into());
    }
    // The dialect's build script publishes its include folders.
    let dialect = env::var("DEP_AXE_DIALECT_INCLUDE")?;
    cc::Build::new()
        .cpp(true)
        // MLIR identifies traits by names that the compiler prints: use the one that built libMLIR.
        .compiler(prefix.join("bin/clang++"))
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        // As libMLIR was built: the size of a pass depends on it.
        .define("NDEBUG", None)
        .opt_level(1)
        .warnings(false)
        .include(&cpp)
        .includes(dialect.split(':'))
        .include(&out)
        .include(&include)
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
