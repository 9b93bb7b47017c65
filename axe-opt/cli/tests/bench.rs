//! `axe bench` and `axe tune` up to the point where they need a GPU.

use std::process::Command;

/// Runs `axe`: exit code and standard error.
fn axe(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_axe"))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn command_lines_are_checked() {
    let (code, said) = axe(&["bench", "gemm"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--suite") && said.contains("--packages"),
        "{said}"
    );
    let (code, said) = axe(&["bench", "gemm", "--suite", "none"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = axe(&["bench", "gemm", "--suite", "llm", "--rival", "triton"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("NAME=DIR"), "{said}");
    let (code, said) = axe(&["tune", "--case", "1,2,3,f16"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--packages"), "{said}");
    let (code, said) = axe(&["bench", "gemm", "--packages", "/no/such/folder"]);
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn without_that_gpu_they_say_so() {
    for arguments in [
        ["bench", "gemm", "--suite", "ragged"],
        ["bench", "gemm-fp8", "--case", "64,64,64,e4m3-block"],
    ] {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--device", "99"]);
        let (code, said) = axe(&arguments);
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains("GPU"), "{said}");
    }
}
