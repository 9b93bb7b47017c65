//! The `axe-run` binary on a machine without a GPU (and, where there is one, on it).

#[allow(dead_code)]
#[path = "../examples/samples/main.rs"]
mod samples;

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A folder with the samples, made once.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            samples::write_all(dir.path(), None).unwrap();
            std::fs::write(dir.path().join("junk.axe"), "not a package").unwrap();
            let whole = std::fs::read(dir.path().join("saxpy.axe")).unwrap();
            std::fs::write(dir.path().join("cut.axe"), &whole[..whole.len() / 2]).unwrap();
            dir
        })
        .path()
}

/// Runs the binary in the samples' folder: exit code, standard output, standard error.
fn axe_run(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_axe-run"))
        .args(args)
        .current_dir(folder())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Asserts the exit code and that standard error has all of `parts`.
fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let (got, out, err) = axe_run(args);
    assert_eq!(got, code, "{args:?}: {out} {err}");
    for part in parts {
        assert!(err.contains(part), "{args:?}: `{part}` is not in {err}");
    }
}

#[test]
fn without_a_gpu_it_says_so_and_ends_with_4() {
    let (code, out, err) = axe_run(&["saxpy.axe", "--dim", "N=1000", "--expect", "out=saxpy.npy"]);
    if code == 0 {
        assert!(
            out.contains("output out f32 [1000]: ok"),
            "with a GPU: {out}"
        );
    } else {
        assert_eq!(code, 4, "{err}");
        assert!(
            err.contains("no NVIDIA driver") || err.contains("there is no GPU"),
            "{err}"
        );
        fails(&["batch", "cases.txt"], 4, &["GPU"]);
        fails(&["bench", "gemm", "--case", "64,64,64,f16"], 4, &["GPU"]);
        fails(&["bench", "gemm", "--suite", "llm,ragged"], 4, &["GPU"]);
        fails(&["bench", "gemm", "--packages", "."], 3, &["cut"]);
        let fp8 = [
            "bench",
            "gemm-fp8",
            "--suite",
            "square",
            "--scaling",
            "row,block",
        ];
        fails(&fp8, 4, &["GPU"]);
        let case = "1000,520,264,f16,nt,gemm.axe";
        fails(&["tune", "--case", case, "--out", "db.json"], 4, &["GPU"]);
        assert!(!folder().join("db.json").exists());
    }
}

#[test]
fn damaged_packages_are_named() {
    fails(&["junk.axe"], 3, &["junk.axe", "not a kernel package"]);
    fails(&["cut.axe"], 3, &["cut"]);
    fails(&["none.axe"], 3, &["none.axe", "No such file"]);
    fails(&["info", "junk.axe"], 3, &["not a kernel package"]);
}

#[test]
fn arguments_are_checked_before_the_device() {
    fails(&["saxpy.axe"], 3, &["`N` has no value"]);
    fails(
        &["saxpy.axe", "--dim", "M=3"],
        3,
        &["no dimension `M`; the dimensions are N"],
    );
    fails(&["saxpy.axe", "--dim", "N=0"], 3, &["`N` is 0"]);
    fails(
        &["saxpy.axe", "--input", "z=x.npy"],
        2,
        &["no input `z`; there are: x, y"],
    );
    fails(
        &["saxpy.axe", "--dim", "N=1000", "--expect", "z=x.npy"],
        2,
        &["no output `z`"],
    );
    fails(
        &["saxpy.axe", "--input", "x=tma.npy"],
        3,
        &["tma.npy", "expected f32, got f16"],
    );
    fails(
        &["saxpy.axe", "--input", "x=x.npy", "--dim", "N=7"],
        3,
        &["`N` is 7 by its own value and 1000"],
    );
    fails(
        &["tma.axe", "--input", "a=x.npy"],
        3,
        &["expected f16, got f32"],
    );
    fails(
        &["saxpy.axe", "--input", "x=cases.txt"],
        3,
        &["cases.txt", "not a .npy file"],
    );
}

#[test]
fn command_lines_are_checked() {
    fails(&[], 2, &["PACKAGE"]);
    fails(&["saxpy.axe", "--dim", "N"], 2, &["NAME=VALUE"]);
    fails(&["saxpy.axe", "--tolerance", "x"], 2, &["NORM,ELEMENT"]);
    fails(&["bench", "gemm"], 2, &["no cases"]);
    fails(&["bench", "gemm", "--case", "1,2,3"], 2, &["too short"]);
    fails(
        &["bench", "gemm", "--suite", "large"],
        2,
        &["llm", "square", "skinny"],
    );
    fails(&["bench", "gemm", "--packages", "none"], 3, &["none"]);
    fails(
        &["bench", "gemm-fp8", "--scaling", "none"],
        2,
        &["tensor", "row", "block"],
    );
    let rival = |value| ["bench", "gemm", "--case", "8,8,8,f16", "--rival", value];
    fails(&rival("triton"), 2, &["NAME=DIR"]);
    fails(&rival("triton=none"), 3, &["none"]);
    fails(&["tune", "--suite", "llm"], 2, &["--out"]);
    let tune = ["tune", "--case", "8,8,8,f16", "--out", "none.json"];
    fails(&tune, 2, &["no case has a candidate"]);
    let tune = ["tune", "--case", "8,8,8,f16", "--out", "cases.txt"];
    fails(&tune, 3, &["cases.txt: line"]);
    fails(&["batch", "none.txt"], 3, &["none.txt"]);
    assert_eq!(axe_run(&["--help"]).0, 0);
    assert_eq!(axe_run(&["--version"]).0, 0);
}

#[test]
fn packages_in_a_folder_are_told_apart() {
    let dir = folder().join("packages");
    std::fs::create_dir_all(&dir).unwrap();
    for name in ["gemm.axe", "saxpy.axe"] {
        std::fs::copy(folder().join(name), dir.join(name)).unwrap();
    }
    // saxpy is no GEMM, and the GEMM's sizes are known at run time only: nothing to measure.
    let parts = ["no cases", "saxpy.axe: ", "computes none of the cases"];
    fails(&["bench", "gemm", "--packages", "packages"], 2, &parts);
}

/// Found on a GPU machine: `axe-run batch --json LIST | head -3` panicked.
#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_axe-run"));
    let output = command
        .args(["info", "tma.axe"])
        .current_dir(folder())
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(3), &b""[..])
    );
}

#[test]
fn info_describes_a_package() {
    let (code, out, _) = axe_run(&["info", "tma.axe"]);
    assert_eq!(code, 0);
    for part in [
        "tma for nvidia sm_90a",
        "input a: f16 [M, 200]",
        "kernel tma_copy",
        "launch tma_copy on [4, ceil_div(M, 64), 1]",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, out, _) = axe_run(&["info", "tma.axe", "--json"]);
    assert_eq!(code, 0);
    assert!(out.contains("\"swizzle\":\"b128\""), "{out}");
}
