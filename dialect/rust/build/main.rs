//! Generates the dialect's C++ and Rust from ODS, and compiles the C++ with the C API.

mod ods;
mod wrappers;

use std::{env, error::Error, path::Path, path::PathBuf, process::Command};

/// TableGen back ends and the files that they write.
const GENERATED: [(&[&str], &str); 10] = [
    (&["-gen-dialect-decls", "-dialect=axe"], "AxeDialect.h.inc"),
    (&["-gen-dialect-defs", "-dialect=axe"], "AxeDialect.cpp.inc"),
    (&["-gen-enum-decls"], "AxeEnums.h.inc"),
    (&["-gen-enum-defs"], "AxeEnums.cpp.inc"),
    (
        &["-gen-attrdef-decls", "-attrdefs-dialect=axe"],
        "AxeAttrs.h.inc",
    ),
    (
        &["-gen-attrdef-defs", "-attrdefs-dialect=axe"],
        "AxeAttrs.cpp.inc",
    ),
    (
        &["-gen-typedef-decls", "-typedefs-dialect=axe"],
        "AxeTypes.h.inc",
    ),
    (
        &["-gen-typedef-defs", "-typedefs-dialect=axe"],
        "AxeTypes.cpp.inc",
    ),
    (&["-gen-op-decls"], "AxeOps.h.inc"),
    (&["-gen-op-defs"], "AxeOps.cpp.inc"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let prefix = llvm_prefix()?;
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let include = prefix.join("include");
    // In the repository these are links to the folders that CMake builds from; a packaged crate holds the files.
    let ir = manifest.join("ir").canonicalize()?;
    let capi = manifest.join("capi").canonicalize()?;

    for (arguments, file) in GENERATED {
        generate(&prefix, &ir, arguments, &out.join(file))?;
    }
    let records = ods::Records::parse(&records(&prefix, &ir)?)?;
    let wrappers = wrappers::text(&records.operations()?, &records.traits()?)?;
    std::fs::write(out.join("ops.rs"), wrappers)?;
    let mut sources = sources_in(&ir)?;
    sources.extend(sources_in(&capi)?);
    cc::Build::new()
        .cpp(true)
        // MLIR identifies traits by names that the compiler prints: use the one that built libMLIR.
        .compiler(prefix.join("bin/clang++"))
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        // As libMLIR was built: the size of a pass depends on it.
        .define("NDEBUG", None)
        .opt_level(2)
        .warnings(false)
        .include(&ir)
        .include(capi.join("include"))
        .include(&out)
        .include(&include)
        .files(sources)
        .compile("axe_dialect");

    println!("cargo:rerun-if-changed={}", ir.display());
    for part in ["Axe.cpp", "include"] {
        println!("cargo:rerun-if-changed={}", capi.join(part).display());
    }
    // Those that build on the dialect use the same LLVM.
    println!("cargo:prefix={}", prefix.display());
    println!(
        "cargo:include={}:{}:{}",
        ir.display(),
        capi.join("include").display(),
        out.display()
    );
    Ok(())
}

/// Where Debian and Ubuntu put LLVM 22.
const DEBIAN: &str = "/usr/lib/llvm-22";

/// Where LLVM and MLIR 22 are: `MLIR_SYS_220_PREFIX`, else where Debian and Ubuntu put them.
fn llvm_prefix() -> Result<PathBuf, Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let named = env::var_os("MLIR_SYS_220_PREFIX").map(PathBuf::from);
    let prefix = named.unwrap_or_else(|| DEBIAN.into());
    let missing: Vec<_> = [
        "bin/clang++",
        "bin/mlir-tblgen",
        "bin/llvm-tblgen",
        "include/mlir/IR/Dialect.h",
    ]
    .into_iter()
    .filter(|file| !prefix.join(file).exists())
    .collect();
    if missing.is_empty() {
        return Ok(prefix);
    }
    Err(format!(
        "{} has no {}: install LLVM and MLIR 22.1 (Debian, Ubuntu: libmlir-22-dev llvm-22-dev mlir-22-tools clang-22), and name \
         their prefix in MLIR_SYS_220_PREFIX and TABLEGEN_220_PREFIX",
        prefix.display(),
        missing.join(", ")
    )
    .into())
}

fn generate(
    prefix: &Path,
    ir: &Path,
    arguments: &[&str],
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut command = tablegen(prefix, ir, "mlir-tblgen");
    if !command
        .args(arguments)
        .arg("-o")
        .arg(file)
        .status()?
        .success()
    {
        return Err(format!("mlir-tblgen {arguments:?} failed").into());
    }
    Ok(())
}

/// The records of ODS as JSON, which `mlir-tblgen` does not print.
fn records(prefix: &Path, ir: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let output = tablegen(prefix, ir, "llvm-tblgen")
        .arg("--dump-json")
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("llvm-tblgen --dump-json failed: {said}").into());
    }
    Ok(output.stdout)
}

fn tablegen(prefix: &Path, ir: &Path, tool: &str) -> Command {
    let mut command = Command::new(prefix.join("bin").join(tool));
    command
        .arg(ir.join("AxeOps.td"))
        .arg("-I")
        .arg(ir)
        .arg("-I")
        .arg(prefix.join("include"));
    command
}

fn sources_in(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cpp") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}
