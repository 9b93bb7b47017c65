//! `axe sim` on packages of hand-written PTX: a right kernel, a racy one, and what is no package.

use axe_package::{
    Access, DType, Expr, Kernel, Launch, MANIFEST_VERSION, Manifest, MemRef, Package, Param,
    ParamKind, Step, Target, TensorSpec,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Each of 64 threads writes its number plus one; the racy form hands it through shared memory to the
/// thread 32 further on, without a barrier.
const RIGHT: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry count(.param .u64 out) {
  .reg .b64 %a<3>; .reg .b32 %r<3>;
  ld.param.b64 %a0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a2, %a0, %a1;
  add.s32 %r1, %r0, 1; st.global.b32 [%a2], %r1; ret; }";
const RACY: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry count(.param .u64 out) {
  .reg .b64 %a<3>; .reg .b32 %r<8>; .shared .align 4 .b8 box[256];
  ld.param.b64 %a0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %a1, %r0, 4; add.s64 %a2, %a0, %a1;
  mov.u32 %r1, box; shl.b32 %r2, %r0, 2; add.s32 %r3, %r1, %r2; st.shared.b32 [%r3], %r0;
  xor.b32 %r4, %r2, 128; add.s32 %r5, %r1, %r4; ld.shared.b32 %r6, [%r5]; st.global.b32 [%a2], %r6; ret; }";

/// Nothing.
const IDLE: &str = "
.version 8.0 .target sm_80 .address_size 64
.visible .entry count(.param .u64 out) { ret; }";

fn package(ptx: &str) -> Package {
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        name: "count".into(),
        target: Target {
            kind: "nvidia".into(),
            chip: "sm_80".into(),
        },
        tools: BTreeMap::new(),
        candidate: None,
        source_sha256: "0".repeat(64),
        source: None,
        symbols: vec![],
        inputs: vec![],
        outputs: vec![TensorSpec::new("out", DType::I32, [Expr::Const(64)])],
        buffers: vec![],
        kernels: vec![Kernel {
            name: "count".into(),
            symbol: "count".into(),
            cubin: None,
            program: None,
            sources: Vec::new(),
            ptx: Some("code.ptx".into()),
            params: vec![Param {
                name: "out".into(),
                kind: ParamKind::Pointer {
                    access: Access::Write,
                    align: 4,
                },
            }],
            block: [64, 1, 1],
            cluster: None,
            dynamic_shared_bytes: 0,
            resources: None,
        }],
        steps: vec![Step::Launch(Launch {
            kernel: "count".into(),
            args: vec![axe_package::Arg::Memory(MemRef::start_of("out"))],
            grid: [Expr::Const(1), Expr::Const(1), Expr::Const(1)],
            overlaps_previous: false,
        })],
        files: BTreeMap::new(),
    };
    let files = BTreeMap::from([("code.ptx".to_owned(), ptx.as_bytes().to_vec())]);
    Package::new(manifest, files).unwrap()
}

fn written(folder: &Path, ptx: &str) -> PathBuf {
    let path = folder.join("count.axe");
    package(ptx).write_file(&path).unwrap();
    path
}

fn axe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_axe"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_right_kernel_passes_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), RIGHT);
    let out = folder.path().join("out");
    let (package, out) = (path.to_str().unwrap(), out.to_str().unwrap());
    let arguments = [
        "sim",
        package,
        "--check",
        "--stats",
        "--schedules",
        "3",
        "--out",
        out,
    ];
    let run = axe(&arguments);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let printed = text(&run.stdout);
    assert!(printed.contains("thread instructions"), "{printed}");
    assert!(printed.contains("schedule 2: output out"), "{printed}");
    let counted = axe_package::npy::read(Path::new(out).join("out.npy")).unwrap();
    let expected: Vec<f64> = (1..=64).map(f64::from).collect();
    assert_eq!(counted.iter_f64().collect::<Vec<_>>(), expected);
}

#[test]
fn a_race_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), RACY);
    let run = axe(&["sim", path.to_str().unwrap(), "--check"]);
    let printed = text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("Race at PTX line 7") || printed.contains("Unwritten at PTX line 7"),
        "{printed}"
    );
}

/// A file of 64 zeros.
fn zeros(folder: &Path) -> String {
    let path = folder.join("zeros.npy");
    let zeros = axe_package::Tensor::filled(DType::I32, vec![64], 0).unwrap();
    axe_package::npy::write(&path, &zeros).unwrap();
    format!("out={}", path.to_str().unwrap())
}

#[test]
fn a_kernel_that_writes_nothing_is_wrong_whatever_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), IDLE);
    let zeros = zeros(folder.path());
    let package = path.to_str().unwrap();
    for (more, says) in [
        (&["--expect", &zeros][..], "64 never written"),
        (&["--check", "--expect", &zeros], "64 never written"),
        (&["--check"], "64 elements never written"),
        (&["--ctas", "1"], "these CTAs wrote nothing"),
    ] {
        let run = axe(&[&["sim", package], more].concat());
        let printed = text(&run.stdout);
        assert_eq!(run.status.code(), Some(1), "{more:?}: {printed}");
        assert!(printed.contains(says), "{more:?}: {printed}");
    }
}

#[test]
fn what_the_first_ctas_write_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), RIGHT);
    let zeros = zeros(folder.path());
    let package = path.to_str().unwrap();
    let run = axe(&["sim", package, "--ctas", "1", "--expect", &zeros]);
    let printed = text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("64 elements written, in [0..64]: WRONG")
            && printed.contains("at [0]: expected 0, got 1"),
        "{printed}"
    );
    let run = axe(&["sim", package, "--ctas", "1"]);
    assert!(run.status.success(), "{}", text(&run.stdout));
}

#[test]
fn what_is_no_package_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.axe");
    std::fs::write(&path, b"not a package").unwrap();
    for arguments in [["sim", path.to_str().unwrap()], ["sim", "/nowhere.axe"]] {
        let run = axe(&arguments);
        assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
        assert!(
            text(&run.stderr).starts_with("axe: "),
            "{}",
            text(&run.stderr)
        );
    }
    assert_eq!(axe(&["sim"]).status.code(), Some(2));
}

#[test]
fn the_outcome_comes_as_json_and_bank_use_as_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), RACY);
    let banks = folder.path().join("banks.svg");
    let (package, banks) = (path.to_str().unwrap(), banks.to_str().unwrap());
    let run = axe(&["sim", package, "--json", "--banks", banks]);
    let outcome: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(outcome["launches"][0]["kernel"], "count");
    let counters = &outcome["launches"][0]["report"]["counters"];
    assert_eq!(counters["shared_requests"], 4, "{outcome}");
    let picture = std::fs::read_to_string(banks).unwrap();
    assert_eq!(picture.matches("<title>bank ").count(), 32);
    assert!(picture.contains("4 requests, 4 wavefronts, 0 by bank conflicts"));
}
