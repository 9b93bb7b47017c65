//! What the build scripts of Axe's crates share: where LLVM and MLIR 22.1 are, how C++ that uses them is compiled, TableGen.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the prefix; `mlir-sys` has it too.
const VARIABLE: &str = "MLIR_SYS_220_PREFIX";
/// Where Debian and Ubuntu put LLVM 22.
const DEBIAN: &str = "/usr/lib/llvm-22";

/// What is asked of an installation.
const NEEDED: [&str; 4] = [
    "bin/clang++",
    "bin/mlir-tblgen",
    "bin/llvm-tblgen",
    "include/mlir/IR/Dialect.h",
];

/// Where LLVM and MLIR are meant to be: `MLIR_SYS_220_PREFIX`, else where Debian and Ubuntu put them. The build script runs
/// again where that changes.
#[must_use]
pub fn prefix() -> PathBuf {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    std::env::var_os(VARIABLE).map_or_else(|| DEBIAN.into(), PathBuf::from)
}

/// An installation of LLVM and MLIR 22.1.
#[derive(Clone, Debug)]
pub struct Mlir {
    prefix: PathBuf,
}

impl Mlir {
    /// That of [`prefix`].
    ///
    /// # Errors
    /// What it lacks, and how to get it.
    pub fn find() -> Result<Self, Box<dyn Error>> {
        Self::at(prefix())
    }

    fn at(prefix: PathBuf) -> Result<Self, Box<dyn Error>> {
        let lacks = |file: &&str| !prefix.join(file).exists();
        let missing: Vec<_> = NEEDED.into_iter().filter(lacks).collect();
        if missing.is_empty() {
            return Ok(Self { prefix });
        }
        Err(format!(
            "{} has no {}: install LLVM and MLIR 22.1 (Debian, Ubuntu: libmlir-22-dev llvm-22-dev mlir-22-tools clang-22), \
             and name their prefix in {VARIABLE} and TABLEGEN_220_PREFIX",
            prefix.display(),
            missing.join(", ")
        )
        .into())
    }

    fn include(&self) -> PathBuf {
        self.prefix.join("include")
    }

    /// A library of C++, compiled as libMLIR was.
    #[must_use]
    pub fn cpp(&self) -> cc::Build {
        let mut build = cc::Build::new();
        build
            .cpp(true)
            // MLIR identifies traits by names that the compiler prints: use the one that built libMLIR.
            .compiler(self.prefix.join("bin/clang++"))
            .std("c++17")
            .flag("-fno-rtti")
            .flag("-fno-exceptions")
            // The size of a pass depends on it.
            .define("NDEBUG", None)
            .opt_level(1)
            .debug(false)
            .warnings(false)
            .include(self.include());
        // As the profile has it for Rust. In full, MLIR's templates would be most of each program and each test.
        if std::env::var("DEBUG").is_ok_and(|debug| debug != "false") {
            build.flag("-gline-tables-only");
        }
        build
    }

    /// A TableGen tool, `mlir-tblgen` or `llvm-tblgen`, on a file, which includes others of its folder and MLIR's.
    #[must_use]
    pub fn tablegen(&self, tool: &str, file: &Path) -> Command {
        let mut command = Command::new(self.prefix.join("bin").join(tool));
        command.arg(file).arg("-I").arg(self.include());
        if let Some(folder) = file.parent() {
            command.arg("-I").arg(folder);
        }
        command
    }

    /// Has `mlir-tblgen` write a file.
    ///
    /// # Errors
    /// That it does not start or fails; it says why itself.
    pub fn generate(
        &self,
        file: &Path,
        arguments: &[&str],
        output: &Path,
    ) -> Result<(), Box<dyn Error>> {
        let mut command = self.tablegen("mlir-tblgen", file);
        let status = command.args(arguments).arg("-o").arg(output).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("mlir-tblgen {arguments:?} {} failed", file.display()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_without_mlir_is_an_error_that_says_what_to_install() {
        let error = Mlir::at("/nowhere".into()).unwrap_err().to_string();
        for part in ["/nowhere has no bin/clang++", "libmlir-22-dev", VARIABLE] {
            assert!(error.contains(part), "{error}");
        }
    }
}
