//! Slots of shared memory through which register tensors leave, subtile by subtile: a ring of some for each thread group.

use super::storage::SHARED_ALIGNMENT;
use serde::{Deserialize, Serialize};

/// Bytes of the subtiles of a warpgroup at the most, two of 64 rows, unless one subtile takes more: planners leave so much
/// beside theirs, for two warpgroups at the least.
pub(crate) const STORE_PIPELINE_BYTES: i64 = 16 * 1024;
/// Slots of a ring at the most: with so many, stores of two subtiles are read while a third is written and a fourth is free.
const MOST_SLOTS: i64 = 4;

/// Slots of rings, so many, whose first slots take `each` bytes together: two where they fit in what planners leave for as many
/// rings, and more where more is left, so that what comes later finds as much as planners leave it.
pub(crate) fn ring_slots(rings: i64, each: i64, left: i64) -> i64 {
    let (planned, each) = (planned_bytes(rings), each.max(1));
    let usual = if 2 * each <= left.min(planned) { 2 } else { 1 };
    let more = (left - planned).max(0) / each;
    (usual + more).min(left / each).clamp(1, MOST_SLOTS)
}

/// Bytes that planners leave for so many rings.
pub(crate) const fn planned_bytes(rings: i64) -> i64 {
    STORE_PIPELINE_BYTES * if rings < 2 { 2 } else { rings }
}

/// Slots of subtiles for each part of each thread group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slots {
    /// Parts of the group, each with a ring of its own.
    pub parts: i64,
    /// Slots of a ring.
    pub count: i64,
    /// Bytes of a slot.
    pub bytes: i64,
    /// The first byte of the first ring.
    pub first: i64,
}

impl Slots {
    /// Bytes of a ring.
    pub(crate) const fn ring_bytes(self) -> i64 {
        self.count * self.bytes
    }
}

/// The rings of a scope that have memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rings(Vec<Slots>);

impl Rings {
    /// The slots for subtiles of so many bytes: those that there are, or new ones, that begin at `first`, in the bytes that are
    /// left. Other rings' slots are not known to be free where another number of parts goes around.
    pub(crate) fn slots(
        &self,
        parts: i64,
        bytes: i64,
        groups: i64,
        (first, left): (i64, i64),
    ) -> Slots {
        let whole = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
        let fits = |ring: &&Slots| ring.parts == parts && ring.bytes >= whole;
        if let Some(slots) = self.0.iter().find(fits) {
            return *slots;
        }
        let each = groups * parts * whole;
        // Those of a scope go around together.
        let count = match self.0.iter().find(|ring| ring.count > 1) {
            _ if self.is_foreign(parts) => 1,
            Some(ring) if ring.count * each <= left => ring.count,
            Some(_) => 1,
            None => ring_slots(groups * parts, each, left),
        };
        Slots {
            parts,
            count,
            bytes: whole,
            first,
        }
    }

    /// Whether these slots have memory already.
    pub(crate) fn has(&self, slots: Slots) -> bool {
        self.0.contains(&slots)
    }

    /// Gives slots memory.
    pub(crate) fn add(&mut self, slots: Slots) {
        self.0.push(slots);
    }

    /// Bytes of the slots that there are for such parts; `None` before the first subtile.
    pub(crate) fn room(&self, parts: i64) -> Option<i64> {
        let rings = self.0.iter().filter(|ring| ring.parts == parts);
        rings.map(|ring| ring.bytes).max()
    }

    /// Whether the scope's first subtiles go around in other parts than these.
    pub(crate) fn is_foreign(&self, parts: i64) -> bool {
        self.0.first().is_some_and(|ring| ring.parts != parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: (i64, i64) = (1024, 64 * 1024);

    #[test]
    fn two_slots_where_planners_leave_them() {
        let slots = |parts, bytes, groups, left| {
            let rings = Rings::default();
            rings.slots(parts, bytes, groups, (1024, left)).count
        };
        // 64 rows of 128 bytes for each of two parts; 128 rows for each of two groups.
        assert_eq!(slots(2, 64 * 128, 1, 32 * 1024), 2);
        assert_eq!(slots(1, 128 * 128, 2, 32 * 1024), 1);
        assert_eq!(slots(1, 128 * 64, 2, 32 * 1024), 2);
        // One warpgroup alone has the memory of two.
        assert_eq!(slots(1, 128 * 128, 1, 32 * 1024), 2);
        assert_eq!(slots(1, 128 * 64, 2, 20 * 1024), 1);
        assert_eq!(
            Rings::default().slots(1, 100, 1, FREE).bytes,
            SHARED_ALIGNMENT
        );
    }

    #[test]
    fn more_slots_beside_what_planners_leave() {
        // Of 128 rows for each of two groups: a second slot of each takes as much as all that was planned.
        let of = |left: i64| ring_slots(2, 32 * 1024, left * 1024);
        assert_eq!([32, 63, 64, 96, 128, 200].map(of), [1, 1, 2, 3, 4, 4]);
        let of = |left: i64| ring_slots(2, 16 * 1024, left * 1024);
        assert_eq!([32, 47, 48, 64, 200].map(of), [2, 2, 3, 4, 4]);
        // Slots larger than what is planned are there as often as they fit.
        let of = |left: i64| ring_slots(2, 64 * 1024, left * 1024);
        assert_eq!([10, 64, 96, 128, 192].map(of), [1, 1, 1, 2, 3]);
        assert_eq!(ring_slots(1, 0, 0), 1);
    }

    #[test]
    fn later_subtiles_use_the_slots_that_they_fit() {
        let mut rings = Rings::default();
        let first = rings.slots(2, 64 * 128, 1, (0, 64 * 1024));
        assert!(!rings.has(first));
        rings.add(first);
        assert_eq!(rings.slots(2, 64 * 32, 1, FREE), first);
        assert_eq!(rings.slots(2, 64 * 128 + 1, 1, FREE).first, 1024);
        assert!(rings.is_foreign(1) && !rings.is_foreign(2));
        assert_eq!(rings.slots(1, 64, 1, FREE).count, 1);
    }

    #[test]
    fn larger_subtiles_go_around_with_the_first() {
        let mut rings = Rings::default();
        let first = rings.slots(1, 64 * 64, 2, FREE);
        rings.add(first);
        assert_eq!(first.count, 4);
        assert_eq!(rings.slots(1, 64 * 128, 2, FREE).count, 4);
        assert_eq!(rings.slots(1, 128 * 128, 2, FREE).count, 1);
    }
}
