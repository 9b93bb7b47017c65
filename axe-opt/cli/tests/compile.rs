//! `axe compile`, and what it makes, through `axe sim`, `axe run` and `axe explain`.
#![cfg(feature = "compiler")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn axe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_axe"))
        .args(arguments)
        .output()
        .unwrap()
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/models")
        .join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_model_compiles_and_runs_as_the_cpu_reference_does() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["mm_f16", "softmax_f16", "mlp_constants_f16"] {
        let package = folder.path().join(name);
        let source = model(&format!("{name}.mlir"));
        let compiled = axe(&[
            "compile",
            text(&source),
            "--target",
            "sm_90a",
            "-o",
            text(&package),
        ]);
        assert!(compiled.status.success(), "{}", said(&compiled));
        let run = axe(&["sim", text(&package), "--check"]);
        assert!(run.status.success(), "{}", said(&run));
        assert!(
            said(&run).contains("output out0") && said(&run).contains("ok: norm error"),
            "{}",
            said(&run)
        );
    }
}

#[test]
fn a_dynamic_dimension_is_given_when_the_package_runs() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("rmsnorm.axe");
    let source = model("rmsnorm_dynamic_bf16.mlir");
    let compiled = axe(&[
        "compile",
        text(&source),
        "--target",
        "sm_80",
        "-o",
        text(&package),
        "--timing",
    ]);
    let timed = said(&compiled).contains(" s to code, ");
    assert!(compiled.status.success() && timed, "{}", said(&compiled));
    for rows in ["1", "33"] {
        let run = axe(&[
            "sim",
            text(&package),
            "--check",
            "--dim",
            &format!("arg0_dim0={rows}"),
        ]);
        assert!(
            run.status.success() && said(&run).contains(&format!("[{rows}, 768]: ok")),
            "{}",
            said(&run)
        );
    }
    let none = axe(&["sim", text(&package)]);
    assert!(
        !none.status.success() && said(&none).contains("arg0_dim0"),
        "{}",
        said(&none)
    );
}

/// Three elementwise functions of one input, all written to one `tensor.empty`, and their use together.
const SHARED_EMPTY: &str = r#"
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %c = linalg.matmul ins(%b, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%a : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %a, %b, %c : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>
}
"#;

#[test]
fn results_written_to_one_empty_tensor_have_memory_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (source, package) = (folder.path().join("f.mlir"), folder.path().join("f.axe"));
    std::fs::write(&source, SHARED_EMPTY).unwrap();
    let compiled = axe(&[
        "compile",
        text(&source),
        "--target",
        "sm_80",
        "-o",
        text(&package),
    ]);
    assert!(compiled.status.success(), "{}", said(&compiled));
    let run = axe(&["sim", text(&package), "--check", "--tolerance", "2e-3,1e-2"]);
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(
        said(&run).matches("ok: norm error").count(),
        3,
        "{}",
        said(&run)
    );
}

/// A product whose last tiles another kernel adds up, into the same memory.
const TAILED: &str = r#"
func.func @f(%a: tensor<832x256xf16>, %w: tensor<768x256xf16>) -> tensor<832x768xf16> {
  %s = axe.gemm %a, %w {trans_b, axe.plan = {mainloop = "wgmma", tile = array<i64: 64, 64, 64>, decomposition = "stream_k", splits = 2 : i64}}
    : tensor<832x256xf16>, tensor<768x256xf16> -> tensor<832x768xf32>
  %c = axe.cast %s : tensor<832x768xf32> -> tensor<832x768xf16>
  return %c : tensor<832x768xf16>
}
"#;

#[test]
fn memory_that_nothing_else_reads_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (source, package) = (folder.path().join("f.mlir"), folder.path().join("f.axe"));
    std::fs::write(&source, TAILED).unwrap();
    let (source, package) = (text(&source), text(&package));
    let compiled = axe(&["compile", source, "--target", "sm_90a", "-o", package]);
    assert!(compiled.status.success(), "{}", said(&compiled));
    let shown = axe(&["info", package]);
    assert!(
        shown.status.success() && !said(&shown).contains("copy"),
        "{}",
        said(&shown)
    );
    let run = axe(&["sim", package, "--check"]);
    assert!(run.status.success(), "{}", said(&run));
}

/// A kernel that adds one to a row in place, and two launches of it: the second writes to what the first gave.
const IN_PLACE: &str = r#"
#row = #axe.layout<S[32 : 1@thread]>
axe.kernel @more(%x: memref<32xf32>) threads(32) {
  %v = axe.copy %x : memref<32xf32> -> tensor<32xf32, #row>
  %w = axe.map ins(%v : tensor<32xf32, #row>) -> tensor<32xf32, #row> {
  ^bb0(%e: f32):
    %one = arith.constant 1.0 : f32
    %f = arith.addf %e, %one : f32
    axe.yield %f : f32
  }
  axe.copy %w to %x : tensor<32xf32, #row> to memref<32xf32>
  axe.return
}
axe.kernel @sum(%x: memref<32xf32>, %y: memref<32xf32>) threads(32) {
  %v = axe.copy %x : memref<32xf32> -> tensor<32xf32, #row>
  %u = axe.copy %y : memref<32xf32> -> tensor<32xf32, #row>
  %w = axe.map ins(%v, %u : tensor<32xf32, #row>, tensor<32xf32, #row>) -> tensor<32xf32, #row> {
  ^bb0(%e: f32, %g: f32):
    %f = arith.addf %e, %g : f32
    axe.yield %f : f32
  }
  axe.copy %w to %y : tensor<32xf32, #row> to memref<32xf32>
  axe.return
}
func.func @f(%x: tensor<32xf32>) -> RESULTS {
  %c1 = arith.constant 1 : index
  %a = axe.launch @more grid(%c1, %c1, %c1) outs(%x : tensor<32xf32>) -> tensor<32xf32>
  %b = axe.launch @more grid(%c1, %c1, %c1) outs(%a : tensor<32xf32>) -> tensor<32xf32>
  REST
}
"#;

/// The copies that a package makes for [`IN_PLACE`] with this end, whose results are those of the simulator.
fn copies(results: &str, rest: &str, expected: &[f32]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = IN_PLACE.replace("RESULTS", results).replace("REST", rest);
    std::fs::write(path("f.mlir"), source).unwrap();
    let package = path("f.axe");
    let compiled = axe(&[
        "compile",
        text(&path("f.mlir")),
        "--target",
        "sm_80",
        "-o",
        text(&package),
    ]);
    assert!(compiled.status.success(), "{}", said(&compiled));
    let write = |name: &str, number: f32| {
        let bytes: Vec<u8> = std::iter::repeat_n(number.to_le_bytes(), 32)
            .flatten()
            .collect();
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (32,), }";
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{header:<117}\n").bytes());
        file.extend(bytes);
        std::fs::write(path(name), file).unwrap();
        path(name)
    };
    let mut given = vec![format!("--input=arg0={}", text(&write("x.npy", 5.0)))];
    for (at, number) in expected.iter().enumerate() {
        let file = write(&format!("{at}.npy"), *number);
        given.push(format!("--expect=out{at}={}", text(&file)));
    }
    let mut arguments = vec!["sim", text(&package), "--check"];
    arguments.extend(given.iter().map(String::as_str));
    let run = axe(&arguments);
    assert!(run.status.success(), "{}", said(&run));
    let shown = axe(&["info", text(&package)]);
    assert!(shown.status.success(), "{}", said(&shown));
    said(&shown).matches("copy").count()
}

#[test]
fn memory_that_something_else_reads_is_copied() {
    let row = "tensor<32xf32>";
    // The argument is the caller's; what the first launch gave is the second's to write to.
    let alone = copies(row, &format!("return %b : {row}"), &[7.0]);
    // Returned as well.
    let both = format!("return %a, %b : {row}, {row}");
    assert_eq!(
        copies(&format!("({row}, {row})"), &both, &[6.0, 7.0]),
        alone + 1
    );
    // Read by a later launch.
    let read = format!(
        "%s = axe.launch @sum grid(%c1, %c1, %c1) ins(%a : {row}) outs(%b : {row}) -> {row}\n  return %s : {row}"
    );
    assert_eq!(copies(row, &read, &[13.0]), alone + 1);
    // Both read and written by one launch.
    let twice = format!(
        "%s = axe.launch @sum grid(%c1, %c1, %c1) ins(%b : {row}) outs(%b : {row}) -> {row}\n  return %s : {row}"
    );
    assert_eq!(copies(row, &twice, &[14.0]), alone + 1);
}

#[test]
fn a_package_for_the_host_runs_there() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("host.axe");
    let source = model("rowsum_f32.mlir");
    let compiled = axe(&[
        "compile",
        text(&source),
        "--target",
        "cpu",
        "-o",
        text(&package),
    ]);
    assert!(compiled.status.success(), "{}", said(&compiled));
    let run = axe(&["run", text(&package), "--out", text(folder.path())]);
    assert!(
        run.status.success() && said(&run).contains("output out0 f32 [128]"),
        "{}",
        said(&run)
    );
    assert!(folder.path().join("out0.npy").is_file());
}

#[test]
fn a_check_on_the_host_needs_something_to_compare_with() {
    let folder = tempfile::tempdir().unwrap();
    let source = model("rowsum_f32.mlir");
    for (target, help) in [("sm_80", "--expect out0=FILE.npy"), ("cpu", "--out")] {
        let package = folder.path().join(target);
        let compiled = axe(&[
            "compile",
            text(&source),
            "--target",
            target,
            "-o",
            text(&package),
        ]);
        assert!(compiled.status.success(), "{}", said(&compiled));
        let run = axe(&["run", text(&package), "--check", "--host"]);
        assert!(
            !run.status.success() && said(&run).contains(help),
            "{}",
            said(&run)
        );
    }
    let package = folder.path().join("sm_80");
    let out = folder.path().join("out");
    let run = axe(&["run", text(&package), "--host", "--out", text(&out)]);
    assert!(run.status.success(), "{}", said(&run));
    let file = out.join("out0.npy");
    let expect = format!("out0={}", text(&file));
    let check = [
        "run",
        text(&package),
        "--check",
        "--host",
        "--expect",
        &expect,
    ];
    let run = axe(&check);
    assert!(
        run.status.success() && said(&run).contains("ok: norm error"),
        "{}",
        said(&run)
    );
    let other = ["--input", "arg0=random:5"];
    let run = axe(&[&check[..], &other].concat());
    assert_eq!(run.status.code(), Some(1), "{}", said(&run));
}

/// A product of which a CTA computes a small part, with bias and rounding behind it.
const LARGE: &str = r#"
#m = affine_map<(d0, d1) -> (d0, d1)>
#n = affine_map<(d0, d1) -> (d1)>
func.func @f(%x: tensor<4096x1024xf16>, %w: tensor<1024x4096xf16>, %b: tensor<4096xf16>) -> tensor<4096x4096xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %a = linalg.matmul ins(%x, %w : tensor<4096x1024xf16>, tensor<1024x4096xf16>) outs(%z : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %h = tensor.empty() : tensor<4096x4096xf16>
  %y = linalg.generic {indexing_maps = [#m, #n, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<4096x4096xf32>, tensor<4096xf16>) outs(%h : tensor<4096x4096xf16>) {
  ^bb0(%in: f32, %bias: f16, %out: f16):
    %t = arith.truncf %in : f32 to f16
    %r = arith.addf %t, %bias : f16
    linalg.yield %r : f16
  } -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}
"#;

/// The whole reference of this product takes minutes: the test ends because what one CTA computed is checked alone. On sm_90a a CTA has
/// tiles far apart.
#[test]
fn what_one_cta_computed_of_a_large_product_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (source, package) = (folder.path().join("f.mlir"), folder.path().join("f.axe"));
    std::fs::write(&source, LARGE).unwrap();
    let (source, package) = (text(&source), text(&package));
    for (target, boxes) in [("sm_80", "]: ok: "), ("sm_90a", " other boxes: ok: ")] {
        let compiled = axe(&["compile", source, "--target", target, "-o", package]);
        assert!(compiled.status.success(), "{}", said(&compiled));
        let run = axe(&["sim", package, "--check", "--ctas", "1"]);
        let said = said(&run);
        assert!(
            run.status.success()
                && said.contains("elements written, in [0..")
                && said.contains(boxes),
            "{target}: {said}"
        );
    }
}

#[test]
fn explanations_name_schedules_and_declines() {
    let explained = axe(&["explain", text(&model("mm_f16.mlir")), "--target", "sm_80"]);
    let said = said(&explained);
    assert!(explained.status.success(), "{said}");
    assert!(
        said.contains("axe.gemm -> mma.sync") && said.contains("not stmatrix"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("none.axe");
    let whole = std::fs::read_to_string(model("mm_f16.mlir")).unwrap();
    let truncated = folder.path().join("truncated.mlir");
    std::fs::write(&truncated, &whole[..whole.len() / 2]).unwrap();
    let unsupported = folder.path().join("unsupported.mlir");
    std::fs::write(&unsupported, "func.func @f(%x: tensor<4xf128>) -> tensor<4xf128> {\n  %y = math.exp %x : tensor<4xf128>\n  return %y : tensor<4xf128>\n}\n").unwrap();
    let good = model("mm_f16.mlir");
    let cases = [
        (text(&truncated), "sm_90a", "truncated.mlir"),
        (text(&unsupported), "sm_90a", "unsupported.mlir"),
        (
            text(&good),
            "sm_10",
            "unknown target `sm_10`: expected cpu or one of sm_80",
        ),
        ("absent.mlir", "sm_80", "absent.mlir: No such file"),
    ];
    for (source, target, expected) in cases {
        let output = axe(&["compile", source, "--target", target, "-o", text(&package)]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(
            said(&output).contains(expected),
            "{expected}: {}",
            said(&output)
        );
        assert!(!package.exists());
    }
}

/// Does not parse, does not lower, and does not verify, each in line 2.
const WRONG: [(&str, &str); 3] = [
    (
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = math.exp %x : tensor<5xf32>\n  return %y : tensor<5xf32>\n}\n",
        ":2:17: error: use of value '%x'",
    ),
    (
        "func.func @f(%x: tensor<4xf128>) -> tensor<4xf128> {\n  %y = math.exp %x : tensor<4xf128>\n  return %y : tensor<4xf128>\n}\n",
        ":2:8: error: ",
    ),
    (
        "axe.mesh @pod(tp = 8)\nfunc.func @f(%x: tensor<8xf32, #axe.layout<S[8 : 1@pod.dp]>>) { return }\n",
        ":2:1: error: ",
    ),
];

#[test]
fn what_is_wrong_is_located_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (source, package) = (folder.path().join("wrong.mlir"), folder.path().join("none"));
    let (source, package) = (text(&source), text(&package));
    for (module, place) in WRONG {
        std::fs::write(source, module).unwrap();
        let lowers = !module.contains("f128");
        let commands: [(&[&str], bool); 4] = [
            (&["compile", source, "-o", package], true),
            (
                &["compile", source, "--target", "cpu", "-o", package],
                lowers,
            ),
            (&["explain", source], lowers),
            (&["tune", source, "--packages", package], lowers),
        ];
        for (command, _) in commands.iter().filter(|(_, fails)| *fails) {
            let said = said(&axe(command));
            let line = said.lines().find(|line| line.contains(place));
            assert!(
                line.is_some_and(|line| line.starts_with(source)),
                "{command:?}: {said}"
            );
            assert!(!said.contains("\"-\""), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_module_comes_through_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("f.axe");
    for (module, code, expected) in [
        (SHARED_EMPTY, 0, " kernels for sm_80"),
        (WRONG[0].0, 3, "\n-:2:17: error: "),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_axe"))
            .args(["compile", "-", "--target", "sm_80", "-o", text(&package)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(module.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    let tuned = axe(&["tune", "-", "--packages", text(&package)]);
    assert_eq!(tuned.status.code(), Some(2), "{}", said(&tuned));
}

#[test]
fn the_assembler_is_the_one_that_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    // An assembler that says so and fails: whoever is asked is seen.
    let assembler = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho asked {name}\nexit 1\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    };
    let (option, environment) = (assembler("by-option"), assembler("by-environment"));
    assembler("ptxas");
    let run = |arguments: &[&str], axe_ptxas: Option<&Path>, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_axe"));
        command.current_dir(folder.path()).env("PATH", path);
        command.env_remove("PTXAS").env_remove("AXE_PTXAS");
        if let Some(assembler) = axe_ptxas {
            command.env("AXE_PTXAS", assembler);
        }
        let source = std::path::absolute(model("mm_f16.mlir")).unwrap();
        command.args([
            "compile",
            text(&source),
            "--target",
            "sm_80",
            "-o",
            "out.axe",
        ]);
        let output = command.args(arguments).output().unwrap();
        let written = folder.path().join("out.axe").exists();
        assert_eq!(output.status.success(), written);
        said(&output)
    };
    let by_option = ["--ptxas", text(&option)];
    assert!(run(&by_option, Some(&environment), "/bin").contains("asked by-option"));
    assert!(run(&[], Some(&environment), "/bin").contains("asked by-environment"));
    let missing = run(&["--ptxas", "nowhere/ptxas"], None, "/bin");
    assert!(
        missing.contains("the option names the assembler `nowhere/ptxas`"),
        "{missing}"
    );
    // The one in the current directory is nobody's choice.
    assert!(!run(&[], None, ".:/bin").contains("asked"));
}
