//! A configuration of `mma.sync` and of scalar multiply-adds: every warp copies and multiplies.

use crate::planner::knobs::{Mainloop, Plan};
use crate::planner::layouts::Grid;
use crate::planner::problem::Unit;
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
}

impl Mma {
    /// The plan that asks for all of it.
    #[must_use]
    pub fn plan(self) -> Plan {
        Plan {
            mainloop: Some(Mainloop::Mma),
            tile: Some(self.tile),
            warps: Some([self.warps.rows, self.warps.columns]),
            stages: Some(self.stages),
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

    /// Bytes of shared memory that the ring takes.
    #[must_use]
    pub const fn shared_bytes(self, element_bytes: i64) -> i64 {
        let [m, n, k] = self.tile;
        self.stages * (m + n) * k * element_bytes
    }
}
