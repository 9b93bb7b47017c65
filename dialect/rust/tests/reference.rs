//! What ODS says of each operation holds together: numbers of constraints, errors with an example, a pair of lit files.

use axe_dialect::ops;
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
