//! Coalescing: the sectors of global memory that a warp's access touches.

use super::access::WarpAccess;

/// Global memory moves in sectors of 32 bytes (CUDA C++ Programming Guide, "Global Memory"; CUDA C++
/// Best Practices Guide, "Coalesced Access to Global Memory").
pub const SECTOR_BYTES: i64 = 32;

/// What an access to global memory costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectorCost {
    /// Different sectors touched.
    pub sectors: u64,
    /// The fewest sectors that hold so many different bytes: `ceil(bytes / 32)`.
    pub minimum: u64,
    /// Different bytes asked for; lanes that ask for the same ones count once.
    pub bytes: u64,
}

impl SectorCost {
    /// The part of the bytes moved that was asked for, `bytes / (32 * sectors)`: from 1/32 to 1, and 1
    /// for an access without an active lane.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        if self.sectors == 0 {
            return 1.0;
        }
        // Counts of at most 512 bytes in a warp are exact.
        self.bytes as f64 / (self.sectors as f64 * SECTOR_BYTES as f64)
    }
}

impl WarpAccess {
    /// The cost of this access when the addresses are those of global memory.
    #[must_use]
    pub fn sectors(&self) -> SectorCost {
        let mut starts: Vec<i64> = self.addresses().iter().flatten().copied().collect();
        starts.sort_unstable();
        // Aligned accesses of one width are equal or disjoint, and none crosses a sector.
        starts.dedup();
        let bytes = starts.len() as u64 * self.bytes().unsigned_abs();
        starts.dedup_by_key(|byte| byte.div_euclid(SECTOR_BYTES));
        SectorCost {
            sectors: starts.len() as u64,
            minimum: bytes.div_ceil(SECTOR_BYTES.unsigned_abs()),
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sectors_are_those_of_the_bytes(
            log in 0_u32..5,
            lanes in prop::collection::vec(prop::option::weighted(0.9, -60_i64..200), 1..33),
        ) {
            let width = 1_i64 << log;
            let lanes: Vec<_> = lanes.into_iter().map(|a| a.map(|a| a * width)).collect();
            let found = WarpAccess::new(width, lanes.clone()).unwrap().sectors();
            let starts = lanes.iter().flatten();
            let bytes: BTreeSet<i64> = starts.flat_map(|a| *a..a + width).collect();
            let sectors: BTreeSet<i64> = bytes.iter().map(|b| b.div_euclid(32)).collect();
            prop_assert_eq!(found.sectors, sectors.len() as u64);
            prop_assert_eq!(found.bytes, bytes.len() as u64);
            prop_assert!(found.minimum <= found.sectors && found.minimum * 32 >= found.bytes);
            prop_assert!(found.minimum == 0 || (found.minimum - 1) * 32 < found.bytes);
        }
    }

    #[test]
    fn known_accesses() {
        let cost = |bytes, stride: i64, base: i64| {
            let lanes = (0..32).map(|lane| Some(base + lane * stride)).collect();
            WarpAccess::new(bytes, lanes).unwrap().sectors()
        };
        let dense = cost(4, 4, 0);
        assert_eq!((dense.sectors, dense.minimum, dense.bytes), (4, 4, 128));
        assert!((dense.efficiency() - 1.0).abs() < 1e-12);
        // Off by one element: a sector more. Rows of 4 KiB: a sector a lane.
        assert_eq!(cost(4, 4, 4).sectors, 5);
        let column = cost(4, 4096, 0);
        assert_eq!((column.sectors, column.minimum), (32, 4));
        assert!((column.efficiency() - 0.125).abs() < 1e-12);
        // Broadcast.
        assert_eq!((cost(4, 0, 64).sectors, cost(4, 0, 64).minimum), (1, 1));
        assert_eq!(cost(16, 16, 0).sectors, 16);
        let none = WarpAccess::new(4, vec![None]).unwrap().sectors();
        assert!(none.sectors == 0 && none.efficiency() > 0.5);
    }
}
