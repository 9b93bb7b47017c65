//! Generates the dialect's C++ and Rust from ODS, and compiles the C++ with the C API.

mod ods;
mod wrappers;

use axe_build::Mlir;
use std::{env, error::Error, path::Path, path::PathBuf};

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

/// The same of torch-mlir's dialect, whose modules are read.
const FRONTEND: [(&[&str], &str); 4] = [
    (
        &["-gen-dialect-decls", "-dialect=tm_tensor"],
        "TMTensorDialect.h.inc",
    ),
    (
        &["-gen-dialect-defs", "-dialect=tm_tensor"],
        "TMTensorDialect.cpp.inc",
    ),
    (&["-gen-op-decls"], "TMTensorOps.h.inc"),
    (&["-gen-op-defs"], "TMTensorOps.cpp.inc"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mlir = Mlir::find()?;
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // In the repository these are links to the folders that CMake builds from; a packaged crate holds the files.
    let ir = manifest.join("ir").canonicalize()?;
    let capi = manifest.join("capi").canonicalize()?;
    let frontends = manifest.join("frontends").canonicalize()?;

    let operations = ir.join("AxeOps.td");
    for (arguments, file) in GENERATED {
        mlir.generate(&operations, arguments, &out.join(file))?;
    }
    for (arguments, file) in FRONTEND {
        let declared = frontends.join("TMTensor.td");
        mlir.generate(&declared, arguments, &out.join(file))?;
    }
    let records = ods::Records::parse(&records(&mlir, &operations)?)?;
    let wrappers = wrappers::text(&records.operations()?, &records.traits()?)?;
    std::fs::write(out.join("ops.rs"), wrappers)?;
    let mut sources = sources_in(&ir)?;
    sources.extend(sources_in(&capi)?);
    sources.extend(sources_in(&frontends)?);
    mlir.cpp()
        .opt_level(2)
        .include(&ir)
        .include(capi.join("include"))
        .include(&out)
        .files(sources)
        .compile("axe_dialect");

    println!("cargo:rerun-if-changed={}", ir.display());
    println!("cargo:rerun-if-changed={}", frontends.display());
    for part in ["Axe.cpp", "include"] {
        println!("cargo:rerun-if-changed={}", capi.join(part).display());
    }
    println!(
        "cargo:include={}:{}:{}",
        ir.display(),
        capi.join("include").display(),
        out.display()
    );
    Ok(())
}

/// The records of ODS as JSON, which `mlir-tblgen` does not print.
fn records(mlir: &Mlir, operations: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut tool = mlir.tablegen("llvm-tblgen", operations);
    let output = tool.arg("--dump-json").output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("llvm-tblgen --dump-json failed: {said}").into());
    }
    Ok(output.stdout)
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
