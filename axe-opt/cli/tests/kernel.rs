//! `axe sim KERNEL.ptx`: exit codes, text, JSON and SARIF.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RIGHT: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by) {
  .reg .b64 %a<3>; .reg .b32 %r<3>; .reg .f32 %f<3>;
  ld.param.b64 %a0, [x]; ld.param.f32 %f0, [by]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a0, %a0, %a1;
  ld.global.f32 %f1, [%a0]; mul.f32 %f1, %f1, %f0; st.global.f32 [%a0], %f1; ret; }";
const RACY: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry hand_over(.param .u64 out) {
  .reg .b64 %a<3>; .reg .b32 %r<8>; .shared .align 4 .b8 box[256];
  ld.param.b64 %a0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a2, %a0, %a1;
  mov.u32 %r1, box; shl.b32 %r2, %r0, 2; add.s32 %r3, %r1, %r2; st.shared.b32 [%r3], %r0;
  xor.b32 %r4, %r2, 128; add.s32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5]; st.global.b32 [%a2], %r6; ret; }";
const ENDLESS: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry endless() { .reg .b32 %r; l: add.u32 %r, %r, 1; bra l; }";

fn axe(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_axe"))
        .current_dir(folder)
        .arg("sim")
        .args(arguments)
        .output()
        .unwrap()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_right_kernel_ends_with_0_and_its_arrays_are_files() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "k.ptx", RIGHT);
    let launch = [
        "k.ptx",
        "--block",
        "32",
        "--arg",
        "x=f32[32]:arange",
        "--arg",
        "by=2",
    ];
    let output = axe(
        folder.path(),
        &[&launch[..], &["--out", "got", "--schedules", "2"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output).contains("nothing found"), "{output:?}");
    // What it left is what it is expected to leave; from another start it is not.
    let expect = ["--expect", "x=got/x.npy"];
    let output = axe(folder.path(), &[&launch[..], &expect].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let other = [
        "k.ptx",
        "--block",
        "32",
        "--arg",
        "x=f32[32]:arange",
        "--arg",
        "by=3",
    ];
    let output = axe(folder.path(), &[&other[..], &expect].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output).contains("`x` is WRONG"), "{output:?}");
}

#[test]
fn a_racy_kernel_ends_with_1_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "racy.ptx", RACY);
    let launch = ["racy.ptx", "--block", "64", "--arg", "i32[64]"];
    let run = |format: &str| {
        axe(
            folder.path(),
            &[&launch[..], &["--format", format]].concat(),
        )
    };
    let output = run("text");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output).contains("in shared memory is not ordered after it"),
        "{output:?}"
    );
    let output = run("json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line: Value = serde_json::from_str(text(&output).trim()).unwrap();
    assert_eq!(line["passed"], false);
    assert_eq!(line["report"]["findings"][0]["kind"], "race");
    let output = run("sarif");
    let log: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "race");
    let at = &result["locations"][0]["physicalLocation"];
    assert_eq!(at["artifactLocation"]["uri"], "racy.ptx");
    let output = axe(folder.path(), &[&launch[..], &["--no-check"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn limits_command_lines_and_files() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "endless.ptx", ENDLESS);
    written(folder.path(), "broken.ptx", "this is no PTX");
    for limit in [["--timeout", "0.05"], ["--limit", "10000"]] {
        let arguments = [&["endless.ptx", "--block", "32"], &limit[..]].concat();
        let output = axe(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output).contains("Limit at PTX line"), "{output:?}");
    }
    let code = |arguments: &[&str]| axe(folder.path(), arguments).status.code();
    assert_eq!(code(&["endless.ptx", "--block", "0"]), Some(2));
    assert_eq!(
        code(&["endless.ptx", "--block", "32", "--arg", "1"]),
        Some(2)
    );
    assert_eq!(
        code(&["endless.ptx", "--block", "32", "--kernel", "other"]),
        Some(2)
    );
    assert_eq!(code(&["absent.ptx", "--block", "32"]), Some(3));
    assert_eq!(code(&["broken.ptx", "--block", "32"]), Some(3));
}
