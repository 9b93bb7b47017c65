//! Digits on partitions: runs of consecutive ones, where they may begin, and why not.

use super::nest::Point;
use super::problem::{Problem, name_of};
use super::reason::Reason;
use super::residue::Residue;
use crate::facts::memory::{PARTITIONS, start_step};
use crate::program::Builder;

/// The digits that move an operand through consecutive partitions, outermost first: the one that moves by one partition,
/// then each that continues it.
pub(super) fn unit_run(
    problem: &Problem,
    operand: usize,
    digits: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let mut moving: Vec<(i64, usize)> = digits
        .map(|at| (problem.digits[at].steps[operand].p, at))
        .filter(|(step, _)| *step > 0)
        .collect();
    moving.sort_unstable();
    let (mut run, mut next) = (Vec::new(), 1i64);
    for (step, at) in moving {
        if step != next {
            break;
        }
        run.push(at);
        next = next.saturating_mul(problem.digits[at].extent);
    }
    run.reverse();
    run
}

/// Where the partitions of an operand begin at a point, modulo 128.
fn start(b: &Builder, problem: &Problem, operand: usize, point: &Point) -> Residue {
    Residue::of(&point.start(problem, operand).0, PARTITIONS, b.bounds())
}

/// Whether an operand's partitions may begin where they do at a point, with a run of them inside.
pub(super) fn may_start(
    b: &Builder,
    problem: &Problem,
    operand: usize,
    point: &Point,
    run: &[usize],
) -> bool {
    let count = point.count(run);
    count <= PARTITIONS && start(b, problem, operand, point).is_multiple(start_step(count))
}

/// Why partitions of some operands do not begin where they may: a digit of these dimensions that is no instruction's, or
/// the region itself.
pub(super) fn refused(
    b: &Builder,
    problem: &Problem,
    operands: &[usize],
    point: &Point,
    inside: &[usize],
    dims: &[usize],
) -> Reason {
    let quadrant = start_step(1);
    for (at, digit) in problem.digits.iter().enumerate() {
        let relevant = digit.dim.is_none_or(|dim| dims.contains(&dim)) && !inside.contains(&at);
        let steps: Vec<i64> = operands.iter().map(|o| digit.steps[*o].p).collect();
        if !relevant || steps.iter().all(|step| step % quadrant == 0) {
            continue;
        }
        let dimension = name_of(problem.names, digit.dim).to_owned();
        let named = |moves: bool| {
            let found = operands
                .iter()
                .zip(&steps)
                .find(|(_, step)| (**step != 0) == moves);
            found.map(|(operand, _)| problem.operands[*operand].name)
        };
        if let (Some(on), Some(off)) = (named(true), named(false)) {
            return Reason::OnePartitioned {
                dimension,
                extent: digit.extent,
                on,
                off,
            };
        }
        let shown: Vec<String> = (operands.iter().zip(&steps))
            .map(|(operand, step)| format!("{step} in {}", problem.operands[*operand].name))
            .collect();
        return Reason::PartitionOrder {
            dimension,
            extent: digit.extent,
            steps: shown.join(", "),
        };
    }
    let bad = |operand: &&usize| !start(b, problem, **operand, point).is_multiple(quadrant);
    let operand = operands
        .iter()
        .find(bad)
        .or(operands.first())
        .copied()
        .unwrap_or(0);
    let residue = start(b, problem, operand, point);
    Reason::Start {
        operand: problem.operands[operand].name,
        count: 1,
        start: match residue.unit {
            PARTITIONS => residue.rest.to_string(),
            unit => format!("{} modulo {unit}", residue.rest),
        },
        step: quadrant,
    }
}
