//! NVIDIA's assembler, as a process of its own.

use super::losses::losses;
use super::miscompiled::miscompiled;
use axe_package::Resources;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// Why there is no machine code.
#[derive(Debug, Error)]
pub(crate) enum PtxasError {
    /// The assembler that was asked for is not there.
    #[error("{by} names the assembler `{}`: expected a file", named.display())]
    Missing {
        /// The assembler.
        named: PathBuf,
        /// Who asked for it.
        by: String,
    },
    /// ptxas refused the code.
    #[error("ptxas: {0}")]
    Refused(String),
    /// ptxas assembled the code and gave up the overlap that it is written for: its messages, with advice.
    #[error("ptxas gave up what makes the kernel fast:\n{0}")]
    Losses(String),
    /// The code has an instruction that ptxas compiles wrongly.
    #[error(
        "ptxas 13.3 compiles `{0}` wrongly where a quotient by a constant has 0 subtracted: expected an index that is no difference of quotients"
    )]
    Miscompiled(String),
}

/// What the assembler made.
pub(crate) struct Assembled {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// What each kernel uses.
    pub resources: BTreeMap<String, Resources>,
    /// Its warnings.
    pub warnings: Vec<String>,
}

/// Who names an assembler, the first of them that does: the environment.
const VARIABLES: [&str; 2] = ["AXE_PTXAS", "PTXAS"];

/// The assembler: `named` where the caller names one, else what the environment names (`AXE_PTXAS`, then `PTXAS`), else
/// that of the workspace that the program was built in (`.deps/bin` above it), else the path's; `None` when there is
/// none.
///
/// Nothing is taken from the current directory, whoever wrote it there: folders of the path that are no absolute ones
/// are passed over. A name without a slash is looked up on the path.
///
/// # Errors
/// One that is named and is not there: another one is no substitute.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<PathBuf>, PtxasError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(named) = named {
        return located(named, "the option", &path).map(Some);
    }
    for variable in VARIABLES {
        let value = std::env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(value) = value {
            return located(Path::new(&value), variable, &path).map(Some);
        }
    }
    let program = std::env::current_exe().unwrap_or_default();
    let found = candidates(&path, &program).find(|path| path.is_file());
    Ok(found)
}

/// The file that `named` stands for; `by` says it.
fn located(named: &Path, by: &str, path: &OsStr) -> Result<PathBuf, PtxasError> {
    let bare = named.file_name() == Some(named.as_os_str());
    let found = match bare {
        true => folders(path)
            .map(|folder| folder.join(named))
            .find(|file| file.is_file()),
        false => Some(named.to_owned()).filter(|file| file.is_file()),
    };
    found.ok_or_else(|| PtxasError::Missing {
        named: named.to_owned(),
        by: by.to_owned(),
    })
}

/// The absolute folders of the path.
fn folders(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

fn candidates<'a>(path: &'a OsStr, program: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let above = program
        .ancestors()
        .skip(1)
        .filter(|folder| folder.is_absolute());
    above
        .map(|folder| folder.join(".deps/bin/ptxas"))
        .chain(folders(path).map(|folder| folder.join("ptxas")))
}

/// Assembles PTX for a chip.
///
/// # Errors
/// What the assembler says: that the code is wrong, or which optimisation it gave up; code that it compiles wrongly.
pub(crate) fn assemble(ptxas: &PathBuf, ptx: &str, chip: &str) -> Result<Assembled, PtxasError> {
    if let Some(wrong) = miscompiled(ptx) {
        return Err(PtxasError::Miscompiled(wrong.to_owned()));
    }
    let failed =
        |error: std::io::Error| PtxasError::Refused(format!("{}: {error}", ptxas.display()));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, target) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&source, ptx).map_err(failed)?;
    let output = Command::new(ptxas)
        .arg(format!("-arch={chip}"))
        .args(["-v", "-o"])
        .arg(&target)
        .arg(&source)
        .output()
        .map_err(failed)?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if !output.status.success() {
        return Err(PtxasError::Refused(text.trim().to_owned()));
    }
    let lost: Vec<_> = losses(&text).iter().map(ToString::to_string).collect();
    if !lost.is_empty() {
        return Err(PtxasError::Losses(lost.join("\n")));
    }
    Ok(Assembled {
        cubin: std::fs::read(&target).map_err(failed)?,
        resources: resources(&text),
        warnings: text
            .lines()
            .filter(|line| line.contains("warning"))
            .map(str::to_owned)
            .collect(),
    })
}

/// The lines of `-v`, by kernel.
fn resources(text: &str) -> BTreeMap<String, Resources> {
    let mut found: BTreeMap<String, Resources> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(name) = line
            .split("entry function '")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
        {
            name.clone_into(&mut current);
        }
        let number = |before: &str| -> Option<u32> {
            let end = line
                .split(before)
                .next()
                .filter(|head| head.len() < line.len())?;
            end.trim().rsplit([' ', ',']).next()?.parse().ok()
        };
        let own = found.entry(current.clone()).or_default();
        if let Some(bytes) = number(" bytes spill stores") {
            own.spill_bytes = bytes;
        }
        if let Some(registers) = number(" registers") {
            own.registers = registers;
        }
        if let Some(bytes) = number(" bytes smem") {
            own.static_shared_bytes = bytes;
        }
    }
    found.remove("");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_from_the_current_directory() {
        let path = OsStr::new(":.:bin:/opt/cuda/bin:../bin");
        let found: Vec<_> = candidates(path, Path::new("target/debug/axe")).collect();
        assert_eq!(found, [PathBuf::from("/opt/cuda/bin/ptxas")]);
        let mut found = candidates(OsStr::new(""), Path::new("/src/target/axe"));
        assert_eq!(found.next(), Some("/src/target/.deps/bin/ptxas".into()));
        assert_eq!(found.next(), Some("/src/.deps/bin/ptxas".into()));
    }

    #[test]
    fn an_assembler_that_is_named_is_the_one_or_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("my-ptxas");
        std::fs::write(&there, "").unwrap();
        let path = std::env::join_paths([Path::new("."), folder.path()]).unwrap();
        assert_eq!(located(&there, "AXE_PTXAS", &path).unwrap(), there);
        assert_eq!(
            located(Path::new("my-ptxas"), "AXE_PTXAS", &path).unwrap(),
            there
        );
        let missing = located(Path::new("./my-ptxas"), "AXE_PTXAS", &path).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "AXE_PTXAS names the assembler `./my-ptxas`: expected a file"
        );
        assert!(located(Path::new("my-ptxas"), "PTXAS", OsStr::new(".")).is_err());
        assert!(find(Some(&there)).unwrap() == Some(there));
    }

    #[test]
    fn resources_are_read_by_kernel() {
        let text = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'a' for 'sm_90a'\n    \
                    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
                    ptxas info    : Used 207 registers, used 1 barriers, 64 bytes smem\n";
        let found = resources(text);
        let a = &found["a"];
        assert_eq!(
            (a.registers, a.spill_bytes, a.static_shared_bytes),
            (207, 8, 64)
        );
    }
}
