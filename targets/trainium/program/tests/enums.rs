//! The dialect's enums are those of the program, in the same order: a number in the IR is an index here.

use axe_trn::facts::chip::Engine;
use axe_trn::program::{Accumulate, Alu, Function, Reduction};

/// The names of an enum's cases in ODS, in order, whose numbers are checked to count from 0.
fn cases(name: &str) -> Vec<&'static str> {
    let text = include_str!("../../ir/TrnEnums.td");
    let begin = format!("Trn_Enum<\"{name}\"");
    let (_, rest) = text.split_once(&begin).unwrap();
    let (body, _) = rest.split_once("]>;").unwrap();
    let case = |(index, part): (usize, &'static str)| {
        let fields: Vec<&str> = part.split(',').collect();
        assert_eq!(fields[1].trim(), index.to_string(), "{name}: {part}");
        fields[2].split('"').nth(1).unwrap()
    };
    body.split("I32EnumAttrCase<")
        .skip(1)
        .enumerate()
        .map(case)
        .collect()
}

#[test]
fn enums_of_the_dialect_are_those_of_programs() {
    let same = |name, all: Vec<&str>| assert_eq!(cases(name), all);
    same("Alu", Alu::ALL.iter().map(|case| case.name()).collect());
    same(
        "Function",
        Function::ALL.iter().map(|case| case.name()).collect(),
    );
    same(
        "Engine",
        Engine::ALL.iter().map(|case| case.name()).collect(),
    );
    let serialized = |value: serde_json::Value| value.as_str().unwrap().to_owned();
    let accumulate = [Accumulate::Auto, Accumulate::Always, Accumulate::Never];
    let accumulate = accumulate.map(|case| serialized(serde_json::to_value(case).unwrap()));
    assert_eq!(cases("Accumulate"), accumulate);
    let reductions = [Reduction::Reduce, Reduction::ResetReduce];
    let reductions = reductions.map(|case| serialized(serde_json::to_value(case).unwrap()));
    assert_eq!(cases("Reduction"), reductions);
}
