//! Shared memory through which register tensors leave, panel by panel: a ring of one or two slots for each team.
//!
//! With two slots a panel is written while the one before it is stored. All copies of a scope go around together: which
//! slot is next is a number that every thread has, and that loops and branches carry, so that the copies of one tile, and
//! those of the next, go on where the last one stopped.

use super::int::Int;
use super::kernel::{Emitter, SHARED_ALIGNMENT};
use axe_passes::PassResult;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::walk::nested;
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;

/// Bytes of the panels of a warpgroup at the most, two of 64 rows, unless one panel takes more: planners leave so much
/// beside theirs, for two warpgroups at the least.
pub(crate) const STAGING_BYTES: i64 = 16 * 1024;

/// Slots of panels for each part of each team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Parts of the team, each with a ring of its own.
    pub parts: i64,
    /// Slots of a ring.
    pub count: i64,
    /// Bytes of a slot.
    pub bytes: i64,
    /// The first byte of the first ring.
    first: i64,
}

impl Slots {
    /// Bytes of a ring.
    pub(crate) const fn ring_bytes(self) -> i64 {
        self.count * self.bytes
    }

    /// Whether they have no memory yet.
    pub(crate) const fn is_new(self) -> bool {
        self.first < 0
    }

    /// The byte at which a ring begins.
    pub(crate) const fn first(self) -> i64 {
        self.first
    }
}

/// The rings of a scope, and where its threads are in them.
#[derive(Clone, Debug)]
pub(crate) struct Staging<'c> {
    rings: Vec<Slots>,
    /// The slot, of two, that the next panel goes to. The one before it went to the other.
    next: Int<'c>,
    /// Whether stores of an earlier turn of the scope may still read its slots.
    stale: bool,
}

impl Staging<'_> {
    /// Rings that nothing was stored through, or, for a scope that is entered again, nothing that is known to be read.
    pub(crate) const fn new(stale: bool) -> Self {
        Self {
            rings: Vec::new(),
            next: Int::ZERO,
            stale,
        }
    }

    /// The slots for panels of so many bytes: those that there are, or new ones in the bytes that are left. Other rings'
    /// slots are not known to be free where another number of parts goes around.
    pub(crate) fn slots(&self, parts: i64, bytes: i64, teams: i64, left: i64) -> Slots {
        let whole = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
        let fits = |ring: &&Slots| ring.parts == parts && ring.bytes >= whole;
        let rings = teams * parts;
        let most = left.min(STAGING_BYTES * rings.max(2));
        let both = 2 * rings * whole <= most && !self.is_foreign(parts);
        self.rings.iter().find(fits).copied().unwrap_or(Slots {
            parts,
            count: if both { 2 } else { 1 },
            bytes: whole,
            first: -1,
        })
    }

    /// Bytes of the slots that there are for such parts; `None` before the first panel.
    pub(crate) fn room(&self, parts: i64) -> Option<i64> {
        let rings = self.rings.iter().filter(|ring| ring.parts == parts);
        rings.map(|ring| ring.bytes).max()
    }

    /// Whether the scope's first panels go around in other parts than these.
    pub(crate) fn is_foreign(&self, parts: i64) -> bool {
        self.rings.first().is_some_and(|ring| ring.parts != parts)
    }
}

/// Whether an operator may store a register tensor by way of panels.
fn stores_registers(op: &Op<'_>) -> bool {
    let first = || operands(*op).first().map(|source| source.r#type());
    name(*op) == "axe.copy"
        && results(*op).is_empty()
        && first().is_some_and(|source| super::types::tensor_shape(source).is_some())
}

impl<'c> Emitter<'c> {
    /// The memory of slots, which is set aside for the rest of the kernel at the first use.
    pub(crate) fn staged(&mut self, slots: Slots) -> Slots {
        if !slots.is_new() {
            return slots;
        }
        let rings = self.team.count() * slots.parts;
        let end = self.scratch + self.scratch_used + SHARED_ALIGNMENT - 1;
        let first = end / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
        self.scratch = first + rings * slots.ring_bytes();
        self.scratch_used = 0;
        let made = Slots { first, ..slots };
        self.staging.rings.push(made);
        made
    }

    /// The slot of a ring that the next panel goes to, in bytes from the ring's start.
    pub(crate) fn next_panel(&self, slots: Slots) -> PassResult<'c, Int<'c>> {
        match slots.count {
            1 => Ok(Int::ZERO),
            _ => self.ints().mul(self.staging.next, slots.bytes),
        }
    }

    /// Goes on to the other slot.
    pub(crate) fn pass_panel(&mut self, slots: Slots) -> PassResult<'c> {
        if slots.count > 1 {
            self.staging.next = self.ints().xor(self.staging.next, Int::Known(1))?;
        }
        Ok(())
    }

    /// Waits, all of the team together, until the stores of its panels have read them.
    pub(crate) fn settle(&mut self) -> PassResult<'c> {
        self.bulk_wait(0, true)?;
        self.barrier()
    }

    /// Settles what an earlier turn of the scope has left, before the scope's first panel.
    pub(crate) fn settle_earlier(&mut self) -> PassResult<'c> {
        match std::mem::take(&mut self.staging.stale) {
            true => self.settle(),
            false => Ok(()),
        }
    }

    /// Whether the body of a loop, or a branch, may go around the scope's rings of panels. What an earlier turn of the
    /// scope has left is settled before it.
    pub(crate) fn carries_panels(&mut self, op: Op<'c>) -> PassResult<'c, bool> {
        let inside = |op: Op<'c>| name(op) != "axe.scope";
        let carries = self.warp.is_some()
            && self.chip.has_tma
            && nested(op, &inside).iter().any(stores_registers);
        if carries {
            self.settle_earlier()?;
        }
        Ok(carries)
    }

    /// The slot of the next panel, where a loop or a branch carries it.
    pub(crate) fn panel_values(&self, carried: bool) -> PassResult<'c, Vec<Val<'c>>> {
        let next = carried.then(|| self.ints().value(self.staging.next));
        next.into_iter().collect()
    }

    /// Sets the slot of the next panel, where a loop or a branch carries it.
    pub(crate) fn set_panels(&mut self, values: &[Val<'c>]) {
        if let &[next] = values {
            self.staging.next = Int::Value(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: i64 = 64 * 1024;

    #[test]
    fn two_slots_where_a_warpgroup_has_room() {
        let staging = Staging::new(false);
        // 64 rows of 128 bytes for each of two parts; 128 rows for each of two teams.
        assert_eq!(staging.slots(2, 64 * 128, 1, LEFT).count, 2);
        assert_eq!(staging.slots(1, 128 * 128, 2, LEFT).count, 1);
        assert_eq!(staging.slots(1, 128 * 64, 2, LEFT).count, 2);
        // One warpgroup alone has the memory of two.
        assert_eq!(staging.slots(1, 128 * 128, 1, LEFT).count, 2);
        assert_eq!(staging.slots(1, 100, 1, LEFT).bytes, SHARED_ALIGNMENT);
        assert_eq!(staging.slots(1, 128 * 64, 2, 20 * 1024).count, 1);
    }

    #[test]
    fn later_panels_use_the_slots_that_they_fit() {
        let mut staging = Staging::new(false);
        let first = Slots {
            first: 0,
            ..staging.slots(2, 64 * 128, 1, LEFT)
        };
        staging.rings.push(first);
        assert_eq!(staging.slots(2, 64 * 32, 1, LEFT), first);
        assert_eq!(staging.slots(2, 64 * 128 + 1, 1, LEFT).first, -1);
        assert!(staging.is_foreign(1) && !staging.is_foreign(2));
        assert_eq!(staging.slots(1, 64, 1, LEFT).count, 1);
    }
}
