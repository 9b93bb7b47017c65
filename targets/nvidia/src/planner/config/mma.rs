//! A configuration of `mma.sync` and of scalar multiply-adds: every warp copies and multiplies.

use super::MOST_SPLITS;
use crate::facts::chip::LEAST_ASYNC_BYTES;
use crate::planner::knobs::{Mainloop, Plan, Sharing};
use crate::planner::layouts::Grid;
use crate::planner::problem::{Problem, Unit, count};
use crate::vocabulary;

/// A tile and how it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    /// Rows, columns and depth.
    pub tile: [i64; 3],
    /// Warps over the tile; threads for [`Unit::Scalar`].
    pub warps: Grid,
    /// Tiles of A and B in flight.
    pub stages: i64,
    /// CTAs that share the depth of each tile through memory.
    pub splits: i64,
}

impl Mma {
    /// The same with a depth, of so many elements, that so many CTAs share; `None` where one would have none of it.
    #[must_use]
    pub fn split_k(self, splits: i64, k: i64) -> Option<Self> {
        let config = Self { splits, ..self };
        let others = config.steps(k).saturating_mul(splits - 1);
        let possible = (1..=MOST_SPLITS).contains(&splits) && others < count(k, self.tile[2]);
        possible.then_some(config)
    }

    /// Tiles along k, of so many elements, that a CTA multiplies.
    #[must_use]
    pub const fn steps(self, k: i64) -> i64 {
        count(count(k, self.tile[2]), self.splits)
    }

    /// The plan that asks for all of it.
    #[must_use]
    pub fn plan(self) -> Plan {
        let shared = self.splits > 1;
        Plan {
            mainloop: Some(Mainloop::Mma),
            tile: Some(self.tile),
            warps: Some([self.warps.rows, self.warps.columns]),
            stages: Some(self.stages),
            decomposition: shared.then_some(Sharing::SplitK),
            splits: shared.then_some(self.splits),
            ..Plan::default()
        }
    }

    /// Threads of the CTA.
    #[must_use]
    pub const fn threads(self, unit: Unit) -> i64 {
        match unit {
            Unit::Scalar => self.warps.count(),
            Unit::Half | Unit::Tf32 | Unit::Byte => self.warps.count() * vocabulary::WARP,
        }
    }

    /// 32-bit registers of a thread for its accumulators and, on tensor cores, for the fragments of two steps: the one
    /// multiplied and the one loaded.
    #[must_use]
    pub const fn registers(self, unit: Unit) -> i64 {
        let [m, n, k] = self.tile;
        let (m, n) = (m / self.warps.rows, n / self.warps.columns);
        match unit.atom() {
            None => m * n + (m + n) * k,
            Some(atom) => {
                let lanes = vocabulary::WARP;
                m * n / lanes + 2 * (m + n) * atom.k * atom.element_bytes / (4 * lanes)
            }
        }
    }

    /// Elements of A and of B that each thread loads and stores of a stage where it copies single ones, as rows are aligned to fewer
    /// bytes than `cp.async` copies (PTX ISA 9.7.9.25.3): registers that they take.
    pub fn staged(self, problem: Problem, [a, b, _]: [i64; 3]) -> [i64; 2] {
        let [m, n, k] = self.tile;
        let threads = self.threads(problem.unit);
        let of = |rows: i64, alignment: i64| match alignment < LEAST_ASYNC_BYTES {
            true => count(rows.saturating_mul(k), threads),
            false => 0,
        };
        [of(m, a), of(n, b)]
    }

    /// Bytes of shared memory that the ring takes.
    #[must_use]
    pub const fn shared_bytes(self, element_bytes: i64) -> i64 {
        let [m, n, k] = self.tile;
        self.stages * (m + n) * k * element_bytes
    }
}
