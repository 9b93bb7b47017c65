//! Slots of shared memory through which register tensors leave, subtile by subtile: a ring of one or two for each thread group.

use super::storage::SHARED_ALIGNMENT;
use serde::{Deserialize, Serialize};

/// Bytes of the subtiles of a warpgroup at the most, two of 64 rows, unless one subtile takes more: planners leave so much
/// beside theirs, for two warpgroups at the least.
pub(crate) const STORE_PIPELINE_BYTES: i64 = 16 * 1024;

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
        let rings = groups * parts;
        let most = left.min(STORE_PIPELINE_BYTES * rings.max(2));
        let both = 2 * rings * whole <= most && !self.is_foreign(parts);
        self.0.iter().find(fits).copied().unwrap_or(Slots {
            parts,
            count: if both { 2 } else { 1 },
            bytes: whole,
            first,
        })
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
    fn two_slots_where_a_warpgroup_has_room() {
        let rings = Rings::default();
        // 64 rows of 128 bytes for each of two parts; 128 rows for each of two groups.
        assert_eq!(rings.slots(2, 64 * 128, 1, FREE).count, 2);
        assert_eq!(rings.slots(1, 128 * 128, 2, FREE).count, 1);
        assert_eq!(rings.slots(1, 128 * 64, 2, FREE).count, 2);
        // One warpgroup alone has the memory of two.
        assert_eq!(rings.slots(1, 128 * 128, 1, FREE).count, 2);
        assert_eq!(rings.slots(1, 100, 1, FREE).bytes, SHARED_ALIGNMENT);
        assert_eq!(rings.slots(1, 128 * 64, 2, (1024, 20 * 1024)).count, 1);
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
}
