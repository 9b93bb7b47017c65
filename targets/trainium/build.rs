//! Generates the trn dialect's C++ from ODS and compiles it.

use axe_build::Mlir;
use std::{env, error::Error, path::PathBuf};

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
    let mlir = Mlir::find()?;
    let ir = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("ir");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for (arguments, file) in GENERATED {
        mlir.generate(&ir.join("TrnOps.td"), arguments, &out.join(file))?;
    }
    mlir.cpp()
        .include(&ir)
        .include(&out)
        .files(["TrnOps.cpp", "TrnTypes.cpp"].map(|file| ir.join(file)))
        .compile("axe_trainium");
    println!("cargo:rerun-if-changed={}", ir.display());
    println!("cargo:include={}", ir.display());
    Ok(())
}
