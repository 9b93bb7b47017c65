//! How long copies of operands take whose rows no tensor map takes.

use crate::facts::chip::Chip;
use crate::planner::problem::{KFirst, Problem, takes_rows};

/// Clocks of the copies that `wgmma` takes of A and B.
pub fn cost(problem: Problem, k_first: KFirst, chip: &Chip) -> f64 {
    let Some(rates) = &chip.wgmma else {
        return 0.0;
    };
    let Problem {
        batch,
        m,
        n,
        k,
        element_bytes,
        ..
    } = problem;
    let [row_of_a, row_of_b] = problem.rows(k_first);
    let operands = [(row_of_a, m), (row_of_b, n)];
    let copied = operands
        .into_iter()
        .filter(|(row, _)| !takes_rows(*row, element_bytes));
    copied
        .map(|(_, extent)| {
            let bytes = batch as f64 * extent as f64 * k as f64 * element_bytes as f64;
            // It is read and written.
            rates.copy_start + 2.0 * bytes / rates.copied_bytes
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;
    use crate::planner::problem::Unit;

    #[test]
    fn rows_that_no_tensor_map_takes_are_copied() {
        let clocks = |k: i64, n: i64| {
            let problem = Problem {
                batch: 1,
                m: 100,
                n,
                k,
                element_bytes: 2,
                unit: Unit::Half,
            };
            let k_first = KFirst { a: false, b: true };
            cost(problem, k_first, chip("sm_90a").unwrap())
        };
        assert!(clocks(64, 72).abs() < f64::EPSILON);
        // Of A, of B, and of both.
        let (a, b, both) = (clocks(66, 72), clocks(64, 74), clocks(66, 74));
        assert!(0.0 < a && 0.0 < b && both > a.max(b), "{a} {b} {both}");
    }
}
