//! The schedule that costs least, and what it appended.

use super::reason::{Declined, Reason};
use super::{Bound, Count};
use crate::facts::dma::START_LATENCY;
use crate::program::build::Mark;
use crate::program::{Builder, Instruction, Op, Statement};
use crate::rules;
use crate::rules::buffer::check_buffer;
use crate::time::cost::cost;
use std::collections::BTreeMap;

/// A schedule: its name, and what appends it.
pub(super) type Schedule<'a> = (&'static str, &'a dyn Fn(&mut Builder) -> Result<(), Reason>);

/// Appends the schedule that takes the operator at the least cost, the first of those.
pub(super) fn choose(
    b: &mut Builder,
    operator: &'static str,
    schedules: &[Schedule<'_>],
) -> Result<Bound, Declined> {
    let mark = b.mark();
    let mut best: Option<(f64, usize)> = None;
    let mut reasons = Vec::new();
    let mut taken = Vec::new();
    for (index, (_, append)) in schedules.iter().enumerate() {
        let outcome = append(b).and_then(|()| check(b, mark));
        let seconds = seconds(b, mark);
        b.rewind(mark);
        match outcome {
            Err(reason) => reasons.push((index, reason)),
            Ok(()) => {
                taken.push((index, seconds));
                if best.is_none_or(|(least, _)| seconds < least) {
                    best = Some((seconds, index));
                }
            }
        }
    }
    let named = |(index, reason): (usize, Reason)| (schedules[index].0, reason);
    let declined = |reasons| Declined { operator, reasons };
    let Some((least, index)) = best else {
        return Err(declined(reasons.into_iter().map(named).collect()));
    };
    let (name, append) = schedules[index];
    if let Err(reason) = append(b) {
        b.rewind(mark);
        return Err(declined(vec![(name, reason)]));
    }
    let others = taken.into_iter().filter(|(_, seconds)| *seconds > least);
    let slower = others.map(|(other, seconds)| (other, Reason::Slower { seconds, least }));
    let before = reasons.into_iter().filter(|(other, _)| *other < index);
    Ok(Bound {
        schedule: name,
        counts: counts(b, mark),
        declined: before.chain(slower).map(named).collect(),
    })
}

/// Calls `visit` with every instruction of statements, and how often it is executed.
fn each<'a>(body: &'a [Statement], times: i64, visit: &mut dyn FnMut(&'a Instruction, i64)) {
    for statement in body {
        match statement {
            Statement::Instruction(instruction) => visit(instruction, times),
            Statement::Loop(inner) => {
                each(&inner.body, times.saturating_mul(inner.trips()), visit);
            }
            Statement::Alloc(_) | Statement::Comment(_) => {}
        }
    }
}

/// The first rule that what was appended breaks.
fn check(b: &Builder, mark: Mark) -> Result<(), Reason> {
    let Some(chip) = b.program().chip() else {
        return Err(Reason::Malformed(format!("no chip '{}'", b.program().chip)));
    };
    let buffers = b.buffers_since(mark).iter();
    let mut found = buffers.flat_map(|buffer| check_buffer(buffer, chip)).next();
    each(b.since(mark), 1, &mut |instruction, _| {
        if found.is_none() {
            let broken = rules::check_instruction(b.program(), chip, instruction);
            found = broken.into_iter().next();
        }
    });
    found.map_or(Ok(()), |violation| Err(Reason::Rule(violation)))
}

/// The time of all that was appended, one after the other.
fn seconds(b: &Builder, mark: Mark) -> f64 {
    let program = b.program();
    let Some(chip) = program.chip() else {
        return 0.0;
    };
    let mut all = 0.0;
    each(b.since(mark), 1, &mut |instruction, times| {
        all += times as f64 * seconds_of(b, chip, instruction);
    });
    all
}

/// The time of one execution; starts do not change it.
pub(super) fn seconds_of(
    b: &Builder,
    chip: &crate::facts::chip::Chip,
    instruction: &Instruction,
) -> f64 {
    let program = b.program();
    let zeros = vec![0; program.indices.len()];
    let operands = instruction.op.operands();
    let accesses: Option<Vec<_>> = (operands.iter())
        .map(|operand| {
            operand
                .view
                .access(&program.buffers[operand.view.buffer], &zeros)
        })
        .collect();
    let accesses = accesses.unwrap_or_default();
    let accesses: Vec<_> = accesses.iter().collect();
    let own = cost(
        &instruction.op,
        instruction.engine,
        program,
        chip,
        &accesses,
    )
    .seconds;
    match instruction.engine {
        crate::facts::chip::Engine::Dma => own + START_LATENCY,
        _ => own,
    }
}

/// The instructions that were appended, by shape.
fn counts(b: &Builder, mark: Mark) -> Vec<Count> {
    let mut order: Vec<String> = Vec::new();
    let mut times_of: BTreeMap<String, i64> = BTreeMap::new();
    each(b.since(mark), 1, &mut |instruction, times| {
        let name = described(instruction);
        if !times_of.contains_key(&name) {
            order.push(name.clone());
        }
        *times_of.entry(name).or_default() += times;
    });
    let count = |instruction: String| Count {
        times: times_of.get(&instruction).copied().unwrap_or(0),
        instruction,
    };
    order.into_iter().map(count).collect()
}

/// An instruction as its name, sizes and engine: K x M x N of a product, else partitions x elements.
fn described(instruction: &Instruction) -> String {
    let sizes = match &instruction.op {
        Op::NcMatmul {
            stationary, moving, ..
        } => format!(
            "{}x{}x{}",
            stationary.partitions(),
            stationary.free(),
            moving.free()
        ),
        Op::NcTranspose { data: view, .. } | Op::TensorReduce { data: view, .. } => {
            format!("{}x{}", view.partitions(), view.free())
        }
        op => format!("{}x{}", op.dst().partitions(), op.dst().free()),
    };
    format!(
        "{} {sizes} on {}",
        instruction.op.name(),
        instruction.engine
    )
}
