//! The storage of `axe.all_gather`: a row of words a thread group, and behind them an mbarrier.

use super::rings::BARRIER_BYTES;
use super::types;
use melior::ir::Type;

/// Bytes of a word.
const WORD_BYTES: i64 = 4;

/// Bytes of so many rows of so many words.
pub(crate) const fn bytes_of_rows(rows: i64, words: i64) -> i64 {
    rows.saturating_mul(words).saturating_mul(WORD_BYTES)
}

/// Where the mbarrier behind rows of so many bytes is.
pub(crate) const fn mbarrier_behind(bytes: i64) -> i64 {
    bytes.saturating_add(BARRIER_BYTES - 1) / BARRIER_BYTES * BARRIER_BYTES
}

/// Bytes of the storage of a type, with its mbarrier; `None` for one of unknown size.
pub(crate) fn bytes_of(storage: Type<'_>) -> Option<i64> {
    match types::memref_shape(storage)?[..] {
        [rows, words] => mbarrier_behind(bytes_of_rows(rows, words)).checked_add(BARRIER_BYTES),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mbarrier_is_aligned() {
        assert_eq!(mbarrier_behind(bytes_of_rows(64, 2)), 512);
        assert_eq!(mbarrier_behind(bytes_of_rows(3, 1)), 16);
    }
}
