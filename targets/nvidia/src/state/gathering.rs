//! The storage of `axe.all_gather`: slots of a row of words a thread group, and behind them an mbarrier a slot.

use super::rings::BARRIER_BYTES;
use super::types;
use melior::ir::Type;

/// Bytes of a word.
const WORD_BYTES: i64 = 4;

/// What thread groups gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Slots: one of what is gathered once, two of what is gathered in a loop.
    pub count: i64,
    /// Rows of each.
    pub rows: i64,
    /// Words of a row.
    pub words: i64,
}

impl Slots {
    /// Those of storage of this shape; `None` for others.
    pub(crate) const fn of(shape: &[i64]) -> Option<Self> {
        match *shape {
            [rows, words] => Some(Self {
                count: 1,
                rows,
                words,
            }),
            [count, rows, words] => Some(Self { count, rows, words }),
            _ => None,
        }
    }

    /// Words of a slot.
    pub(crate) const fn words_of_slot(self) -> i64 {
        self.rows.saturating_mul(self.words)
    }

    /// Bytes of a slot.
    pub(crate) const fn bytes_of_slot(self) -> i64 {
        self.words_of_slot().saturating_mul(WORD_BYTES)
    }

    /// Where the mbarriers are.
    pub(crate) const fn mbarriers(self) -> i64 {
        let bytes = self.bytes_of_slot().saturating_mul(self.count);
        bytes.saturating_add(BARRIER_BYTES - 1) / BARRIER_BYTES * BARRIER_BYTES
    }
}

/// Bytes of the storage of a type, with its mbarriers; `None` for one of unknown size.
pub(crate) fn bytes_of(storage: Type<'_>) -> Option<i64> {
    let slots = Slots::of(&types::memref_shape(storage)?)?;
    let mbarriers = slots.count.checked_mul(BARRIER_BYTES)?;
    slots.mbarriers().checked_add(mbarriers)
}

/// Whether what is gathered through storage of a type may be gathered in a loop.
pub(crate) fn takes_turns(storage: Type<'_>) -> bool {
    let slots = types::memref_shape(storage).and_then(|shape| Slots::of(&shape));
    slots.is_some_and(|slots| slots.count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mbarriers_are_aligned() {
        for (shape, wanted) in [
            (&[64, 2][..], Some(512)),
            (&[3, 1], Some(16)),
            (&[2, 3, 1], Some(24)),
            (&[4], None),
        ] {
            assert_eq!(Slots::of(shape).map(Slots::mbarriers), wanted);
        }
    }
}
