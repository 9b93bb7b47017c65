//! The C API, compiled as C: without a driver, and with one that writes down what it is asked for.

use axe_package::{Manifest, Package};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An addition with a buffer that starts as zeros and a constant. The fake driver reads the parameters alone.
const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry vadd(\n .param .u64 a,\n .param .u64 b,\n\
                   .param .u64 c,\n .param .u64 w,\n .param .u64 k,\n .param .u32 n)\n{ ret; }\n";

fn package() -> Package {
    let pointer = |name: &str, access: &str| json!({"name": name, "kind": {"pointer": {"access": access, "align": 4}}});
    let memory = |name: &str| json!({"memory": {"name": name}});
    let manifest = json!({
        "version": 1, "name": "vadd", "target": {"kind": "nvidia", "chip": "sm_80"}, "source_sha256": "0".repeat(64),
        "symbols": [{"name": "n", "from": {"input": "a", "dim": 0}, "min": 1}],
        "inputs": [{"name": "a", "dtype": "f32", "shape": ["n"]}, {"name": "b", "dtype": "f32", "shape": ["n"]}],
        "outputs": [{"name": "c", "dtype": "f32", "shape": ["n"]}],
        "buffers": [
            {"name": "w", "dtype": "f32", "shape": [32], "init": "zero"},
            {"name": "k", "dtype": "f32", "shape": [2], "init": {"data": {"file": "k.bin"}}},
        ],
        "kernels": [{
            "name": "add", "symbol": "vadd", "ptx": "code.ptx", "block": [128, 1, 1], "dynamic_shared_bytes": 0,
            "params": [
                pointer("a", "read"), pointer("b", "read"), pointer("c", "write"), pointer("w", "read_write"),
                pointer("k", "read"), {"name": "n", "kind": {"scalar": {"type": "i32"}}},
            ],
        }],
        "steps": [{"launch": {
            "kernel": "add", "grid": [{"ceil_div": ["n", 128]}, 1, 1],
            "args": [memory("a"), memory("b"), memory("c"), memory("w"), memory("k"), {"int": "n"}],
        }}],
        "files": {},
    });
    let manifest: Manifest = serde_json::from_value(manifest).unwrap();
    let files = BTreeMap::from([
        ("code.ptx".to_owned(), PTX.as_bytes().to_vec()),
        ("k.bin".to_owned(), vec![0; 8]),
    ]);
    Package::new(manifest, files).unwrap()
}

/// The folder of the library under test.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let mut folders = program.ancestors().skip(1);
    let found = folders.find(|folder| folder.join("libaxert.so").is_file());
    found.expect("libaxert.so beside the tests").to_owned()
}

fn compile(arguments: &[&str]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {arguments:?}: {said}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with the C program, under sanitizers, and the package.
fn built() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (libraries, program) = (libraries(), folder.path().join("capi_test"));
    let search = format!("-L{}", text(&libraries));
    let include = format!("-I{}", text(&here.join("include")));
    let source = here.join("test/capi_test.c");
    compile(&[
        "-std=c11",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Werror",
        &include,
        text(&source),
        &search,
        "-laxert",
        "-ldl",
        "-o",
        text(&program),
    ]);
    package()
        .write_file(folder.path().join("vadd.axe"))
        .unwrap();
    folder
}

fn run(folder: &Path, mode: &str, log: Option<&Path>) -> Output {
    let mut command = Command::new(folder.join("capi_test"));
    let found = format!("{}:{}", text(&libraries()), text(&folder.join("driver")));
    command.env("LD_LIBRARY_PATH", found);
    if let Some(log) = log {
        command.env("FAKE_CUDA_LOG", log);
    }
    command
        .arg(folder.join("vadd.axe"))
        .arg(mode)
        .output()
        .unwrap()
}

#[test]
fn without_a_driver_every_failure_is_a_value() {
    // A machine with a driver has no such case.
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    let folder = built();
    let output = run(folder.path(), "no-driver", None);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn launches_go_to_the_callers_streams_contexts_and_graphs() {
    let folder = built();
    let driver = folder.path().join("driver");
    std::fs::create_dir(&driver).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/fake_cuda.c");
    let library = driver.join("libcuda.so.1");
    compile(&[
        "-shared",
        "-fPIC",
        "-w",
        text(&source),
        "-o",
        text(&library),
    ]);
    let log = folder.path().join("log");
    let output = run(folder.path(), "driver", Some(&log));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let log = std::fs::read_to_string(log).unwrap();
    let launches: Vec<Vec<&str>> = log
        .lines()
        .filter(|line| line.starts_with("launch"))
        .map(|line| line.split(' ').skip(2).collect())
        .collect();
    let row = |at: usize| &launches[at][..6];
    assert_eq!(launches.len(), 7, "{log}");
    let at = |stream, context, grid, a, b| [stream, context, grid, a, b, "30000"];
    assert_eq!(
        row(0),
        at(
            "stream=(nil)",
            "context=primary",
            "grid=2",
            "10000",
            "20000"
        )
    );
    assert_eq!(
        row(1),
        at(
            "stream=(nil)",
            "context=primary",
            "grid=2",
            "20000",
            "10000"
        )
    );
    assert_eq!(row(2)[0], "stream=0x40");
    assert_eq!(row(3)[0], "stream=0x100");
    assert_eq!(row(5)[5], "30010", "the tensor's offset counts");
    assert_eq!(
        row(6),
        at("stream=0x41", "context=other", "grid=4", "10000", "20000")
    );
    // A stream has buffers of its own, a capture too; the same one again has the same.
    let buffers = |at: usize| &launches[at][6..8];
    assert_eq!(buffers(0), buffers(1));
    assert_ne!(buffers(0), buffers(2));
    assert_ne!(buffers(0), buffers(3));
    assert_eq!(buffers(3), buffers(4));
    // Each launch starts from zeros, on its own stream.
    let zeroed = log
        .lines()
        .filter(|line| line.starts_with("fill") && line.ends_with("bytes=128 value=0"));
    assert_eq!(zeroed.count(), 7, "{log}");
    // Five sets of buffers: two streams and a capture of one shape, a stream of another, a stream in another context.
    assert_eq!(log.matches("allocate").count(), 10, "{log}");
    assert!(
        !log.contains("destroy"),
        "a caller's context is the caller's"
    );
}
