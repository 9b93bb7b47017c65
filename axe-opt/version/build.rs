//! Finds the commit and LLVM's version.

use std::env;
use std::process::Command;

/// What a program prints, without the line's end.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// `AXE_COMMIT`, else, where the build is for users, git's. In a development build each commit would otherwise be a
/// reason to link all drivers again.
fn commit() -> Option<String> {
    println!("cargo:rerun-if-env-changed=AXE_COMMIT");
    let given = env::var("AXE_COMMIT").ok().filter(|text| !text.is_empty());
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    given.or_else(|| {
        let git = || {
            output(
                "git",
                &[
                    "describe",
                    "--always",
                    "--dirty",
                    "--exclude=*",
                    "--abbrev=12",
                ],
            )
        };
        if release { git() } else { None }
    })
}

fn main() {
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let llvm = output(&format!("{prefix}/bin/llvm-config"), &["--version"]);
    let commit = commit().map_or("development build".to_owned(), |commit| {
        format!("commit {commit}")
    });
    let llvm = llvm.map_or(String::new(), |version| format!(", LLVM {version}"));
    println!("cargo:rustc-env=AXE_BUILT_FROM={commit}{llvm}");
}
