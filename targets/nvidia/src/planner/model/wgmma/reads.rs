//! How long a multiprocessor takes to read a tile's operands.
//!
//! A stage is boxes whose rows are lines of 128 bytes, as shared memory has them. Each is asked for once in a cluster that
//! multicasts it, and comes in at every CTA. One that begins inside a line of the L2 cache is in two, and one that the tensor has
//! in part, or not at all, is filled with zeros, which takes longer than reading it.

use super::{Model, together};
use crate::facts::chip::{LINE_BYTES, SECTOR_BYTES};
use crate::facts::rates::WgmmaRates;
use crate::planner::problem::{count, takes_rows};

/// How sharply the slower of asking for lines and taking them in decides.
const SHARPNESS: f64 = 4.0;

/// An operand's part of a stage.
#[derive(Clone, Copy)]
struct Operand {
    /// Rows of the tile.
    rows: f64,
    /// Those that the tensor has.
    there: f64,
    /// Elements that follow each other in memory.
    along: i64,
    k_first: bool,
    /// What a CTA of the cluster asks for.
    share: f64,
}

/// Clocks of the lines that follow each other along k: of those that the tensor has, of the one that it has in part, and of those
/// that it has not.
pub(super) struct Lines {
    whole: f64,
    partial: f64,
    absent: f64,
    /// Lines of the depth that the tensor has whole, and at least in part.
    there: [f64; 2],
}

impl Lines {
    /// Clocks of so many of them from the first on.
    pub(super) fn clocks(&self, lines: f64) -> f64 {
        let [whole, all] = self.there;
        let (of_whole, of_all) = (lines.min(whole), lines.min(all));
        of_whole * self.whole + (of_all - of_whole) * self.partial + (lines - of_all) * self.absent
    }
}

impl Model<'_> {
    /// The lines of a tile's stages.
    pub(super) fn lines(&self) -> Lines {
        let (problem, rates) = (self.problem, self.rates);
        let operands = self.operands();
        let sum = |of: &dyn Fn(&Operand) -> f64| operands.iter().map(of).sum::<f64>();
        let gone =
            sum(&|operand| (operand.rows - operand.there) * operand.share * rates.absent_line);
        let asked = sum(&|operand| operand.there * operand.share * self.crossings(operand.along));
        let taken = sum(&|operand| operand.there);
        let busy = self.active() / self.chip.multiprocessors as f64;
        let asking = rates.asked_line[0] + (rates.asked_line[1] - rates.asked_line[0]) * busy;
        let bytes = problem.k.saturating_mul(problem.element_bytes);
        let all = count(bytes, LINE_BYTES) as f64;
        // A copy's rows are whole lines.
        let whole = match takes_rows(problem.k, problem.element_bytes) {
            true => (bytes / LINE_BYTES) as f64,
            false => all,
        };
        // Of the last line, where its box has less.
        let boxed = match self.last_bytes() % LINE_BYTES {
            0 => LINE_BYTES,
            part => part,
        };
        Lines {
            whole: together([asked * asking, taken * rates.line], SHARPNESS) + gone,
            partial: sum(&|operand| operand.partial([bytes, boxed], asking, rates)) + gone,
            absent: sum(&|operand| operand.rows * operand.share * rates.absent_line),
            there: [whole, all],
        }
    }

    fn operands(&self) -> [Operand; 2] {
        let (problem, [m, n, _]) = (self.problem, self.config.tile());
        let [of_b, of_a] = self.config.cluster().shape().map(|ctas| 1.0 / ctas as f64);
        // With k first, a box's lines are along the extent.
        let operand = |rows: i64, extent: i64, k_first: bool, share: f64| Operand {
            rows: rows as f64,
            there: if k_first { rows } else { rows.min(extent) } as f64,
            along: if k_first { extent } else { problem.k },
            k_first,
            share,
        };
        [
            operand(m, problem.m, self.k_first.a, of_a),
            operand(n, problem.n, self.k_first.b, of_b),
        ]
    }

    /// What a line of a box costs whose rows are so many elements apart: more where it is in two lines of the L2 cache, and more
    /// where it begins inside a sector; rows of a copy begin with a line.
    fn crossings(&self, along: i64) -> f64 {
        let bytes = self.problem.element_bytes;
        match along.wrapping_mul(bytes) {
            _ if !takes_rows(along, bytes) => 1.0,
            row if row % LINE_BYTES == 0 => 1.0,
            row if row % SECTOR_BYTES == 0 => self.rates.crossing[0],
            _ => self.rates.crossing[1],
        }
    }
}

impl Operand {
    /// Clocks of the lines that end k, of so many bytes, in boxes that are so wide. With k first some of them are there, and the others are
    /// zeros in every CTA.
    fn partial(&self, [bytes, boxed]: [i64; 2], asking: f64, rates: &WgmmaRates) -> f64 {
        let [in_sectors, within] = match boxed {
            LINE_BYTES => rates.partial_line,
            _ => rates.narrow_line,
        };
        match self.k_first {
            true => {
                let of_line = |bytes: i64| bytes as f64 / LINE_BYTES as f64;
                let part = of_line(bytes % LINE_BYTES);
                let absent = (of_line(boxed) - part).max(0.0);
                self.there * (part * asking * self.share + absent * rates.absent_line)
            }
            false if bytes % SECTOR_BYTES == 0 => self.there * self.share * in_sectors,
            false => self.there * self.share * within,
        }
    }
}
