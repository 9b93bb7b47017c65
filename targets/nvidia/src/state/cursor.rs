//! What of shared memory is taken, operator after operator.
//!
//! An operator's own use, its scratch storage, begins behind the kernel's storage and ends with the operator; slots of subtiles
//! stay. Scopes run side by side, also with what comes after them: each has its own.

use super::form::Storage;
use super::slots::{Rings, Slots};
use super::storage::SHARED_ALIGNMENT;
use super::types;
use crate::plan::Decline;
use melior::ir::Type;
use serde::{Deserialize, Serialize};

/// Alignment of scratch memory and of a ring's barriers, in bytes: the widest access of a thread.
pub(crate) const SCRATCH_ALIGNMENT: i64 = 16;

/// The next byte of scratch memory.
pub(crate) fn aligned(at: i64) -> i64 {
    (at + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT
}

/// Scratch storage of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scratch {
    /// The first byte of the first thread group's.
    pub first: i64,
    /// Bytes of each thread group's.
    pub bytes: i64,
}

impl Scratch {
    /// Storage of `shape` for an operator of this cursor, behind so many bytes of each thread group that it takes already.
    ///
    /// # Errors
    /// For elements without a place in shared memory.
    pub(crate) fn at(
        cursor: &Cursor,
        shape: &[i64],
        element: Type<'_>,
        (groups, before): (i64, i64),
    ) -> Result<Self, Decline> {
        let (_, bytes) = scratch_storage(shape, element)?;
        Ok(Self {
            first: cursor.scratch + groups * before,
            bytes,
        })
    }
}

/// Scratch storage, row-major, and its bytes.
///
/// # Errors
/// For elements without a place in shared memory.
pub(crate) fn scratch_storage<'c>(
    shape: &[i64],
    element: Type<'c>,
) -> Result<(Storage<'c>, i64), Decline> {
    let bytes = types::bytes(element).ok_or_else(|| {
        Decline::new(format!(
            "elements of type {element} have no place in shared memory"
        ))
    })?;
    let storage = Storage::shared(element, bytes, shape, SCRATCH_ALIGNMENT)
        .map_err(|error| Decline::new(error.to_string()))?;
    Ok((storage, aligned(shape.iter().product::<i64>() * bytes)))
}

/// What a plan takes of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing.
    Nothing,
    /// Bytes of each thread group, while the operator is executed.
    Scratch(i64),
    /// Slots, from the first use on.
    Slots(Slots),
}

/// How far the shared memory of a CTA is taken.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// The first byte of scratch memory.
    scratch: i64,
    /// The most bytes that an operator takes there.
    used: i64,
    /// The rings of subtiles of the scope.
    rings: Rings,
}

impl Cursor {
    /// Behind the kernel's storage.
    pub(crate) fn new(first: i64) -> Self {
        Self {
            scratch: first,
            used: 0,
            rings: Rings::default(),
        }
    }

    /// The rings of subtiles of the scope.
    pub(crate) fn rings(&self) -> &Rings {
        &self.rings
    }

    /// The byte from which on new slots may be, and the bytes that a CTA of so many has there.
    pub(crate) fn free(&self, all: i64) -> (i64, i64) {
        let end = self.scratch + self.used + SHARED_ALIGNMENT - 1;
        let left = all - (self.scratch + self.used + SHARED_ALIGNMENT);
        (end / SHARED_ALIGNMENT * SHARED_ALIGNMENT, left.max(0))
    }

    /// Goes past what an operator of so many thread groups takes.
    pub(crate) fn take(&mut self, taken: Taken, groups: i64) {
        match taken {
            Taken::Nothing => {}
            Taken::Scratch(bytes) => self.used = self.used.max(bytes * groups),
            Taken::Slots(slots) if self.rings.has(slots) => {}
            Taken::Slots(slots) => {
                self.scratch = slots.first + groups * slots.parts * slots.ring_bytes();
                self.used = 0;
                self.rings.add(slots);
            }
        }
    }

    /// Enters a scope; gives what [`Cursor::leave`] restores.
    pub(crate) fn enter(&mut self) -> Rings {
        self.keep();
        std::mem::take(&mut self.rings)
    }

    /// Leaves a scope.
    pub(crate) fn leave(&mut self, outside: Rings) {
        self.rings = outside;
        self.keep();
    }

    fn keep(&mut self) {
        self.scratch = aligned(self.scratch + self.used);
        self.used = 0;
    }

    /// Bytes in all. LLVM widens loads of aligned storage up to 16 bytes.
    pub(crate) fn bytes(&self) -> i64 {
        (self.scratch + self.used + 15) / 16 * 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_memory_of_their_own() {
        let mut cursor = Cursor::new(100);
        cursor.take(Taken::Scratch(10), 1);
        cursor.take(Taken::Scratch(4), 1);
        let outside = cursor.enter();
        assert_eq!(cursor.scratch, 112);
        cursor.take(Taken::Scratch(32), 2);
        cursor.leave(outside);
        assert_eq!((cursor.scratch, cursor.bytes()), (176, 176));
    }

    #[test]
    fn slots_stay() {
        let mut cursor = Cursor::new(0);
        let (first, left) = cursor.free(8192);
        assert_eq!((first, left), (0, 7168));
        let slots = cursor.rings().slots(1, 1024, 2, (first, left));
        cursor.take(Taken::Slots(slots), 2);
        let bytes = cursor.scratch;
        assert_eq!(bytes, 2 * slots.ring_bytes());
        cursor.take(Taken::Slots(slots), 2);
        assert_eq!(cursor.scratch, bytes);
    }
}
