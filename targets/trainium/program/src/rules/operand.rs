//! Rules of every operand: access patterns, start partitions, bounds.

use super::Checker;
use crate::facts::chip::Engine;
use crate::facts::memory::{
    FREE_DIMENSIONS, MOST_SIZE, MOST_STEP, PARTITIONS, PSUM_BYTES, SBUF_ELEMENTS, may_start,
    start_step,
};
use crate::program::view::Access;
use crate::program::{Buffer, Space, View};

pub(super) fn check(checker: &mut Checker<'_>) {
    let op = &checker.instruction.op;
    for operand in op.operands() {
        let Some(buffer) = checker.program.buffers.get(operand.view.buffer) else {
            continue;
        };
        let mut found = check_view(operand.view, buffer);
        if operand.writes && repeats(operand.view) {
            found.push((
                "O10",
                "expected every element once, got a dimension that repeats".into(),
            ));
        }
        // What names no loop is known now; the rest when it is executed.
        if let Some(access) = operand.view.access(buffer, &[]) {
            let engine = checker.instruction.engine;
            found.extend(check_access(operand.view, &access, buffer, &[], engine));
        }
        for (rule, message) in found {
            checker.report(rule, format!("{}: {message}", operand.role));
        }
    }
}

type Found = Vec<(&'static str, String)>;

/// Whether an element is named twice: an axis that does not move, or axes along one dimension that meet.
fn repeats(view: &View) -> bool {
    if view
        .axes
        .iter()
        .any(|axis| axis.size > 1 && (axis.of.is_none() || axis.step == 0))
    {
        return true;
    }
    let dimensions = view.origin.len();
    (0..dimensions).any(|dimension| {
        let mut along: Vec<(i64, i64)> = view
            .axes
            .iter()
            .filter(|axis| axis.of == Some(dimension) && axis.size > 1)
            .map(|axis| (axis.step.abs(), axis.size))
            .collect();
        along.sort_unstable();
        let mut reach = 0i64;
        along.iter().any(|(step, size)| {
            let meets = *step <= reach;
            reach = reach.saturating_add(step.saturating_mul(size - 1));
            meets
        })
    })
}

/// The rules that depend on the shape of a view alone.
fn check_view(view: &View, buffer: &Buffer) -> Found {
    let mut found = Found::new();
    if !buffer.space.has_partitions() {
        return found;
    }
    let partitions = view.partitions();
    let first = view.axes.first();
    let consecutive =
        first.is_some_and(|axis| (axis.of == Some(0) && axis.step == 1) || axis.size == 1);
    let alone = view
        .axes
        .iter()
        .skip(1)
        .all(|axis| axis.of != Some(0) || axis.size == 1);
    if !(1..=PARTITIONS).contains(&partitions) {
        found.push((
            "O1",
            format!("expected 1 to {PARTITIONS} partitions, got {partitions}"),
        ));
    } else if !consecutive || !alone {
        found.push((
            "O1",
            "expected its first dimension, and no other, to count consecutive partitions".into(),
        ));
    }
    let (most, unit) = match buffer.space {
        Space::Psum => (PSUM_BYTES / buffer.dtype.bytes() as i64, "PSUM"),
        _ => (SBUF_ELEMENTS, "SBUF"),
    };
    if view.free() > most {
        found.push((
            "O4",
            format!(
                "expected at most {most} elements a partition in {unit}, got {}",
                view.free()
            ),
        ));
    }
    found
}

/// The rules that depend on where a view is at these loop indices, for an instruction of an engine.
#[must_use]
pub fn check_access(
    view: &View,
    access: &Access,
    buffer: &Buffer,
    indices: &[i64],
    engine: Engine,
) -> Found {
    let mut found = Found::new();
    if let Some((dimension, first, last)) = view.outside(buffer, indices) {
        found.push((
            "O5",
            format!(
                "expected indices 0 to {} in dimension {dimension} of '{}', got {first} to {last}",
                buffer.shape[dimension] - 1,
                buffer.name
            ),
        ));
        return found;
    }
    if !buffer.space.has_partitions() {
        return found;
    }
    let start = access.partition + buffer.place.map_or(0, |place| place.partition);
    let partitions = view.partitions();
    // DMA addresses SBUF as linear memory: it begins at any partition (A1).
    if engine != Engine::Dma && !may_start(start, partitions) {
        found.push((
            "O2",
            format!(
                "expected {partitions} partitions to begin at a multiple of {}, got {start}",
                start_step(partitions)
            ),
        ));
    }
    let free: Vec<_> = access
        .merged()
        .into_iter()
        .filter(|axis| axis.partitions == 0)
        .collect();
    let fits = free
        .iter()
        .all(|axis| axis.size <= MOST_SIZE && axis.elements.abs() <= MOST_STEP);
    if free.len() > FREE_DIMENSIONS || !fits {
        let shown: Vec<_> = free.iter().map(|axis| (axis.elements, axis.size)).collect();
        found.push((
            "O3",
            format!(
                "expected at most {FREE_DIMENSIONS} free dimensions, sizes up to {MOST_SIZE} and steps up to {MOST_STEP}, \
                 got (step, size) {shown:?}"
            ),
        ));
    }
    found
}
