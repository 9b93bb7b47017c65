//! What ODS says of each operation holds together: numbers of constraints, errors with an example, a pair of lit files; and what
//! the crate makes of it: parts of operations.

use axe_dialect::ops::{self, CopyOp, FillOp, KernelOp, SliceOp};
use axe_dialect::{Op, Typed};
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, Module, RegionLike};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of every file in a folder whose name ends so.
fn texts(of: &str, ending: &str) -> String {
    let files = fs::read_dir(folder(of)).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .map(|path| read(&path))
        .collect()
}

/// The records of ODS (`def Axe_...`, `class Axe_...`) with their text.
fn records() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in texts("dialect/ir", ".td").lines() {
        let start = ["def Axe_", "class Axe_"]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        if let Some(rest) = start {
            let name = rest.split([' ', '<', ':']).next().unwrap_or_default();
            found.push((name.to_owned(), String::new()));
        }
        if let Some((_, text)) = found.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    found
}

/// The numbers of the constraints that a text lists, as in `* (C1) ...`.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("* (")?.split_once(')'))
        .map(|(number, _)| number)
}

#[test]
fn a_constraint_has_a_number_of_its_own() {
    let mut owners = BTreeMap::new();
    for (record, text) in records() {
        for number in numbers(&text) {
            let other = owners.insert(number.to_owned(), record.clone());
            assert_eq!(other, None, "({number}) is of {record} too");
        }
    }
    assert!(owners.len() > 60, "{owners:?}");
}

#[test]
fn a_constraint_is_tested_under_its_number() {
    let tests = texts("lit-tests/dialect", "_errors.mlir");
    for (record, text) in records() {
        for number in numbers(&text) {
            assert!(
                tests.contains(&format!("({number})")),
                "no lit-tests/dialect/*_errors.mlir expects ({number}) of {record}"
            );
        }
    }
}

#[test]
fn an_operation_has_documented_errors_and_a_pair_of_tests() {
    let records = records();
    for name in ops::NAMES {
        let file = name.trim_start_matches("axe.").replace('.', "_");
        for ending in ["", "_errors"] {
            let path = folder("lit-tests/dialect").join(format!("{file}{ending}.mlir"));
            assert!(
                read(&path).contains(name),
                "{} is about {name}",
                path.display()
            );
        }
        let mnemonic = format!("<\"{}\"", name.trim_start_matches("axe."));
        let (record, text) = records
            .iter()
            .find(|(_, text)| {
                text.lines()
                    .next()
                    .is_some_and(|line| line.contains(&mnemonic))
            })
            .unwrap_or_else(|| panic!("{name} is in ODS"));
        assert!(text.contains("**Errors**"), "{record} lists its errors");
    }
}

#[test]
fn names_lead_to_traits() {
    assert!(ops::has(ops::MAP, ops::Trait::Elementwise));
    assert!(!ops::has(ops::MAP, ops::Trait::Product));
    assert!(ops::has(ops::PIPELINE_WAIT, ops::Trait::TakesStage));
    assert_eq!(ops::traits("linalg.matmul"), []);
    assert!(ops::NAMES.contains(&ops::SCALED_GEMM));
}

const KERNEL: &str =
    "axe.kernel @k(%a: memref<8x8xf16>, %i: index, %z: f16) threads(64) cluster(2, 1) {
  %b = axe.slice %a[%i, %i] : memref<8x8xf16> to memref<4xf16>
  %c = axe.copy %b pad %z : f16 : memref<4xf16> -> tensor<4xf16>
  axe.copy async %b to %b options = {l2 = \"evict_last\"} : memref<4xf16> to memref<4xf16>
  axe.fill %z to %b : f16 to memref<4xf16>
  axe.return
}";

/// The kernel's operation, and those of its body.
fn with_kernel(check: impl for<'c> FnOnce(Op<'c>, &[Op<'c>])) {
    let registry = DialectRegistry::new();
    axe_dialect::register(&registry);
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    let module = Module::parse(&context, KERNEL).expect("the kernel parses");
    let kernel = module.body().first_operation().unwrap();
    // SAFETY: the operations live as long as the module, which outlives the check.
    let op = |raw| unsafe { Op::from_raw(raw) };
    let mut body = Vec::new();
    let mut next = kernel
        .region(0)
        .unwrap()
        .first_block()
        .unwrap()
        .first_operation();
    while let Some(inner) = next {
        body.push(op(inner.to_raw()));
        next = inner.next_in_block();
    }
    check(op(kernel.to_raw()), &body);
}

#[test]
fn parts_are_read_by_name() {
    with_kernel(|kernel, body| {
        let parts = KernelOp::of(kernel).unwrap();
        assert_eq!((parts.sym_name, parts.threads), ("k", 64));
        assert_eq!(parts.cluster.as_deref(), Some(&[2, 1][..]));
        let slice = SliceOp::of(body[0]).unwrap();
        assert_eq!(slice.origin.len(), 2);
        assert!(SliceOp::of(body[1]).is_none() && CopyOp::of(body[0]).is_none());
        let load = CopyOp::of(body[1]).unwrap();
        assert_eq!(load.source, slice.result);
        assert!(load.dest.is_none() && load.pad.is_some() && load.result.is_some());
        let copy = CopyOp::of(body[2]).unwrap();
        assert!(copy.is_async && !copy.multicast && copy.pad.is_none());
        assert!(copy.options.is_some() && copy.dest == Some(slice.result));
        let fill = FillOp::of(body[3]).unwrap();
        assert_eq!((fill.dest, fill.sizes.len()), (Some(slice.result), 0));
        assert_eq!(SliceOp::defining(load.source).unwrap().op, body[0]);
        assert!(SliceOp::defining(fill.value).is_none());
    });
}

#[test]
fn operands_have_their_segments() {
    with_kernel(|_, body| {
        let load = CopyOp::of(body[1]).unwrap();
        let operands = CopyOp::operands(load.source, None, load.pad, None);
        assert_eq!(operands.name, ops::COPY);
        assert_eq!(operands.segments.as_deref(), Some(&[1, 0, 1, 0][..]));
        assert_eq!(operands.values, [load.source, load.pad.unwrap()]);
        let slice = SliceOp::of(body[0]).unwrap();
        let operands = SliceOp::operands(slice.source, &slice.origin);
        assert_eq!((operands.segments, operands.values.len()), (None, 3));
    });
}
