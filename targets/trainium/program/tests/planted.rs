//! Errors planted in correct programs: each is reported, and nothing is reported without one.

mod common;

use axe_package::DType;
use axe_trn::facts::chip::Engine;
use axe_trn::kernels::{Tutorial, matmul};
use axe_trn::program::{Accumulate, Instruction, Op, Place, Program, Role, Space, Statement};
use axe_trn::run::execute;
use axe_trn::{sync, walk::Refused};
use common::{Sample, difference, samples};
use std::collections::BTreeMap;

/// A product that adds where nothing was begun.
fn always(program: &mut Program) -> bool {
    let mut changed = false;
    each_instruction(&mut program.body, &mut |instruction| {
        if let Op::NcMatmul { accumulate, .. } = &mut instruction.op {
            *accumulate = Accumulate::Always;
            changed = true;
        }
    });
    changed
}

/// Calls `change` with every instruction.
fn each_instruction(body: &mut [Statement], change: &mut impl FnMut(&mut Instruction)) {
    for statement in body {
        match statement {
            Statement::Loop(inner) => each_instruction(&mut inner.body, change),
            Statement::Instruction(instruction) => change(instruction),
            Statement::Alloc(_) | Statement::Comment(_) => {}
        }
    }
}

/// The rules that a run of a program reports.
fn reported(program: &Program, inputs: &[Vec<u8>]) -> Vec<String> {
    match execute(program, inputs) {
        Ok(outcome) => outcome
            .findings
            .iter()
            .map(|finding| finding.violation.rule.to_owned())
            .collect(),
        Err(Refused::Rules(violations)) => violations
            .iter()
            .map(|violation| violation.rule.to_owned())
            .collect(),
        Err(Refused::Memory(_)) => vec!["B2".into()],
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn correct_programs_are_right_and_raise_no_alarm() {
    for chip in ["trn1", "trn2"] {
        for sample in samples(chip) {
            let name = &sample.program.name;
            let outcome =
                execute(&sample.program, &sample.inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(
                outcome.findings.is_empty(),
                "{name}: {}",
                outcome.findings[0]
            );
            let worst = difference(&sample, &outcome.outputs);
            assert!(worst <= sample.tolerance, "{name} on {chip}: {worst}");
            let trace = sync::trace(&sample.program).unwrap();
            let hazards = sync::hazards(&trace, &sync::semaphores(&trace));
            assert!(hazards.is_empty(), "{name}: {}", hazards[0]);
        }
    }
}

/// Counts planted errors by class; an unreported one fails.
#[derive(Default)]
struct Planted(BTreeMap<&'static str, usize>);

impl Planted {
    fn expect(
        &mut self,
        class: &'static str,
        sample: &Sample,
        program: &Program,
        rules: &[&str],
        what: &str,
    ) {
        let found = reported(program, &sample.inputs);
        let hit = found.iter().any(|rule| rules.contains(&rule.as_str()));
        assert!(
            hit,
            "{class} in {}, {what}: expected one of {rules:?}, got {found:?}",
            sample.program.name
        );
        *self.0.entry(class).or_default() += 1;
    }
}

/// The program with its instruction of this number changed.
fn changed(program: &Program, number: usize, change: impl Fn(&mut Instruction)) -> Program {
    let mut program = program.clone();
    let mut at = 0;
    each_instruction(&mut program.body, &mut |instruction| {
        if at == number {
            change(instruction);
        }
        at += 1;
    });
    program
}

/// The destination of an operation, to be changed: through its serial form, which names all fields.
fn change_dst(op: &mut Op, change: impl Fn(&mut axe_trn::program::View)) {
    let mut value = serde_json::to_value(&*op).unwrap();
    let fields = value.as_object_mut().unwrap().values_mut().next().unwrap();
    let mut dst = serde_json::from_value(fields["dst"].clone()).unwrap();
    change(&mut dst);
    fields["dst"] = serde_json::to_value(dst).unwrap();
    *op = serde_json::from_value(value).unwrap();
}

fn instructions(program: &Program) -> Vec<Instruction> {
    let mut found = Vec::new();
    program.instructions(&mut |instruction, _| found.push(instruction.clone()));
    found
}

fn removed(body: &[Statement], number: usize, at: &mut usize) -> Vec<Statement> {
    let mut kept = Vec::new();
    for statement in body {
        match statement {
            Statement::Loop(inner) => {
                let mut inner = inner.clone();
                inner.body = removed(&inner.body, number, at);
                kept.push(Statement::Loop(inner));
            }
            Statement::Instruction(_) => {
                if *at != number {
                    kept.push(statement.clone());
                }
                *at += 1;
            }
            other => kept.push(other.clone()),
        }
    }
    kept
}

fn plant_in_views(planted: &mut Planted, sample: &Sample) {
    let program = &sample.program;
    for (number, instruction) in instructions(program).iter().enumerate() {
        let name = format!("{} {number}", instruction.op.name());
        let dst = instruction.op.dst();
        if dst.space(program) != Space::Hbm {
            let shifted = changed(program, number, |i| {
                change_dst(&mut i.op, |dst| {
                    dst.origin[0] = dst.origin[0].clone().plus(16)
                })
            });
            planted.expect("start partition", sample, &shifted, &["O2", "O5"], &name);
        }
        let beyond = changed(program, number, |i| {
            change_dst(&mut i.op, |dst| {
                let last = dst.origin.len() - 1;
                dst.origin[last] = dst.origin[last].clone().plus(100_000);
            });
        });
        planted.expect("bounds", sample, &beyond, &["O5"], &name);
        let fills = matches!(instruction.op, Op::Memset { .. } | Op::Iota { .. });
        if !fills && dst.axes.last().is_some_and(|axis| axis.size > 1) {
            let shrunk = changed(program, number, |i| {
                change_dst(&mut i.op, |dst| dst.axes.last_mut().unwrap().size -= 1)
            });
            let rules = ["O9", "MM4", "RD2", "CP1", "TR1", "BN1", "MX2", "O8"];
            planted.expect("shape", sample, &shrunk, &rules, &name);
        }
        let wrong = if instruction.engine == Engine::Tensor {
            Engine::Scalar
        } else {
            Engine::Tensor
        };
        let moved = changed(program, number, |i| i.engine = wrong);
        planted.expect("engine", sample, &moved, &["O7", "O6"], &name);
    }
}

fn plant_omissions(planted: &mut Planted, sample: &Sample) {
    let program = &sample.program;
    let all = instructions(program);
    for (number, instruction) in all.iter().enumerate() {
        let buffer = instruction.op.dst().buffer;
        let writers = all
            .iter()
            .filter(|other| {
                other
                    .op
                    .operands()
                    .iter()
                    .any(|operand| operand.writes && operand.view.buffer == buffer)
            })
            .count();
        if writers == 1 {
            let mut without = program.clone();
            without.body = removed(&program.body, number, &mut 0);
            planted.expect(
                "unwritten",
                sample,
                &without,
                &["R1", "R2"],
                &format!("{} {number}", instruction.op.name()),
            );
        }
    }
}

fn plant_in_buffers(planted: &mut Planted, sample: &Sample) {
    for (index, buffer) in sample.program.buffers.iter().enumerate() {
        let with = |change: &dyn Fn(&mut axe_trn::program::Buffer)| {
            let mut program = sample.program.clone();
            change(&mut program.buffers[index]);
            program
        };
        let name = buffer.name.as_str();
        if buffer.role == Role::Local {
            let large = with(&|buffer| {
                buffer.copies = 1024;
                *buffer.shape.last_mut().unwrap() *= 64;
            });
            planted.expect("capacity", sample, &large, &["B2", "B4"], name);
            if buffer.partitions() <= 8 {
                continue;
            }
            let outside = with(&|buffer| {
                buffer.place = Some(Place {
                    partition: 120,
                    byte: 0,
                })
            });
            planted.expect("placement", sample, &outside, &["B1"], name);
        }
        if buffer.space == Space::Psum {
            let off = with(&|buffer| {
                buffer.place = Some(Place {
                    partition: 0,
                    byte: 1024,
                })
            });
            planted.expect("bank", sample, &off, &["B3"], name);
        }
    }
}

#[test]
fn planted_errors_are_reported() {
    let mut planted = Planted::default();
    for sample in samples("trn1") {
        plant_in_views(&mut planted, &sample);
        plant_omissions(&mut planted, &sample);
        plant_in_buffers(&mut planted, &sample);
        let mut adds = sample.program.clone();
        if always(&mut adds) {
            planted.expect("accumulation", &sample, &adds, &["R2"], "always");
        }
    }
    println!("{:?}", planted.0);
    assert!(planted.0.values().sum::<usize>() >= 300, "{:?}", planted.0);
    assert_eq!(planted.0.len(), 9, "{:?}", planted.0);
}

#[test]
fn every_semaphore_is_needed() {
    let mut dropped = 0;
    let tiled = matmul(Tutorial::Tiled, [256, 512, 1024], DType::BF16, "trn1").unwrap();
    let programs = samples("trn1")
        .into_iter()
        .map(|sample| sample.program)
        .chain([tiled]);
    for program in programs {
        let trace = sync::trace(&program).unwrap();
        let all = sync::semaphores(&trace);
        for index in 0..all.len() {
            let mut some = all.clone();
            let (earlier, later) = some.remove(index);
            let hazards = sync::hazards(&trace, &some);
            assert!(
                !hazards.is_empty(),
                "{}: {earlier} before {later}",
                program.name
            );
            assert!(hazards.iter().all(|hazard| hazard.violation.rule == "R3"));
            dropped += 1;
        }
    }
    println!("{dropped} semaphores dropped");
    assert!(dropped >= 100);
}

#[test]
fn programs_from_files_are_checked() {
    let sample = common::softmax("trn1");
    let text = serde_json::to_string(&sample.program).unwrap();
    assert_eq!(
        serde_json::from_str::<Program>(&text).unwrap(),
        sample.program
    );
    for cut in (0..text.len()).step_by(97) {
        assert!(serde_json::from_str::<Program>(&text[..cut]).is_err());
    }
    let mut wrong = sample.program.clone();
    each_instruction(&mut wrong.body, &mut |i| {
        change_dst(&mut i.op, |dst| dst.buffer = 99)
    });
    assert!(matches!(
        execute(&wrong, &sample.inputs),
        Err(Refused::Malformed(_))
    ));
    assert!(matches!(
        execute(&sample.program, &[]),
        Err(Refused::Arguments(_))
    ));
    let mut endless = sample.program;
    if let Some(Statement::Loop(first)) = endless
        .body
        .iter_mut()
        .find(|s| matches!(s, Statement::Loop(_)))
    {
        first.upper = i64::MAX;
    }
    assert!(matches!(
        execute(&endless, &sample.inputs),
        Err(Refused::Malformed(_))
    ));
}
