//! Links MLIR and LLVM statically into the extension module where `AXE_STATIC_MLIR=1` asks for it, as wheels do: the
//! module then needs no LLVM on the user's machine, and another MLIR in the process is not its concern.
//!
//! `mlir-sys` and `axe-dialect` ask the linker for `libMLIR.so` and `libLLVM-22.so`. Linker scripts of those names, found
//! first, stand for the archives, so that the crates are compiled once for both forms.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// The libraries that Debian's LLVM archives need, beyond libc's.
const SYSTEM: [&str; 2] = ["z", "zstd"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=AXE_STATIC_MLIR");
    if env::var("AXE_STATIC_MLIR").as_deref() != Ok("1") {
        return Ok(());
    }
    let archives = axe_build::prefix().join("lib");
    let scripts = Path::new(&env::var("OUT_DIR")?).join("static");
    fs::create_dir_all(&scripts)?;
    stand_for(&scripts, "libMLIR.so", &archives, "libMLIR")?;
    for name in ["libLLVM.so", "libLLVM-22.so"] {
        stand_for(&scripts, name, &archives, "libLLVM")?;
    }
    println!("cargo:rustc-link-search=native={}", scripts.display());
    // Only what Python asks for is to be seen: symbols of archives stay inside.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    for library in SYSTEM {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-Bstatic,-l{library},-Bdynamic");
    }
    Ok(())
}

/// Writes the linker script `name` for the archives that start with `prefix`.
fn stand_for(
    folder: &Path,
    name: &str,
    archives: &Path,
    prefix: &str,
) -> Result<(), Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(archives)? {
        let path = entry?.path();
        let file = path.file_name().and_then(|name| name.to_str());
        let wanted = |file: &str| file.starts_with(prefix) && file.ends_with(".a");
        if file.is_some_and(wanted) {
            found.push(path.display().to_string());
        }
    }
    if found.is_empty() {
        let problem = format!("{} has no {prefix}*.a", archives.display());
        return Err(format!("{problem}: install libmlir-22-dev and llvm-22-dev").into());
    }
    found.sort();
    fs::write(
        folder.join(name),
        format!("GROUP (\n{}\n)\n", found.join("\n")),
    )?;
    Ok(())
}
