//! Generates the trn dialect's C++ from ODS and compiles it.

use std::{env, error::Error, path::Path, path::PathBuf, process::Command};

/// TableGen back ends and the files that they write.
const GENERATED: [(&[&str], &str); 8] = [
    (&["-gen-dialect-decls", "-dialect=trn"], "TrnDialect.h.inc"),
    (&["-gen-dialect-defs", "-dialect=trn"], "TrnDialect.cpp.inc"),
    (&["-gen-enum-decls"], "TrnEnums.h.inc"),
    (&["-gen-enum-defs"], "TrnEnums.cpp.inc"),
    (
        &["-gen-typedef-decls", "-typedefs-dialect=trn"],
        "TrnTypes.h.inc",
    ),
    (
        &["-gen-typedef-defs", "-typedefs-dialect=trn"],
        "TrnTypes.cpp.inc",
    ),
    (&["-gen-op-decls"], "TrnOps.h.inc"),
    (&["-gen-op-defs"], "TrnOps.cpp.inc"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let prefix = PathBuf::from(env::var("DEP_AXE_DIALECT_PREFIX")?);
    let ir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("ir");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for (arguments, file) in GENERATED {
        generate(&prefix, &ir, arguments, &out.join(file))?;
    }
    cc::Build::new()
        .cpp(true)
        // MLIR identifies traits by names that the compiler prints: use the one that built libMLIR.
        .compiler(prefix.join("bin/clang++"))
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        // As libMLIR was built.
        .define("NDEBUG", None)
        .opt_level(1)
        .warnings(false)
        .include(&ir)
        .include(&out)
        .include(prefix.join("include"))
        .files(["TrnOps.cpp", "TrnTypes.cpp"].map(|file| ir.join(file)))
        .compile("axe_trainium");
    println!("cargo:rerun-if-changed={}", ir.display());
    println!("cargo:include={}", ir.display());
    Ok(())
}

fn generate(
    prefix: &Path,
    ir: &Path,
    arguments: &[&str],
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let status = Command::new(prefix.join("bin/mlir-tblgen"))
        .args(arguments)
        .arg(ir.join("TrnOps.td"))
        .arg("-I")
        .arg(ir)
        .arg("-I")
        .arg(prefix.join("include"))
        .arg("-o")
        .arg(file)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("mlir-tblgen {arguments:?} failed").into()),
    }
}
