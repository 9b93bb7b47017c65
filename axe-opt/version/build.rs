//! Finds the commit and LLVM's version.

use std::env;
use std::path::Path;
use std::process::Command;

/// Where cargo says what a package is of.
const CARGO_SAYS: &str = ".cargo_vcs_info.json";

/// What a program prints, without the line's end.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The commit that a source without a repository is of: git writes it into `commit.txt` of an archive, cargo into a file of
/// a package.
fn recorded() -> Option<String> {
    let read = |file: &str| {
        println!("cargo:rerun-if-changed={file}");
        std::fs::read_to_string(file).unwrap_or_default()
    };
    let hash = |text: &str| {
        let mut words = text.split(|letter: char| !letter.is_ascii_hexdigit());
        let full = words.find(|word| word.len() == 40)?;
        Some(full[..12].to_owned())
    };
    hash(&read("commit.txt")).or_else(|| match Path::new(CARGO_SAYS).exists() {
        true => hash(&read(CARGO_SAYS)),
        false => None,
    })
}

/// `AXE_COMMIT`, else what the source says, else, where the build is for users, what git says. In a development build each
/// commit would otherwise be a reason to link all drivers again.
fn commit() -> Option<String> {
    println!("cargo:rerun-if-env-changed=AXE_COMMIT");
    let given = env::var("AXE_COMMIT").ok().filter(|text| !text.is_empty());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let describe: Vec<_> = "describe --always --dirty --exclude=* --abbrev=12"
        .split(' ')
        .collect();
    let git = || release.then(|| output("git", &describe)).flatten();
    given.or_else(recorded).or_else(git)
}

fn main() {
    let config = axe_build::prefix().join("bin/llvm-config");
    let llvm = config
        .to_str()
        .and_then(|tool| output(tool, &["--version"]));
    let commit = commit().map_or("development build".to_owned(), |commit| {
        format!("commit {commit}")
    });
    let llvm = llvm.map_or(String::new(), |version| format!(", LLVM {version}"));
    println!("cargo:rustc-env=AXE_BUILT_FROM={commit}{llvm}");
}
