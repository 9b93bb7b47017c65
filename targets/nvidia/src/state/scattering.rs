//! The storage of `axe.reduce_scatter`: the parts of the other CTAs, and behind them two mbarriers.

use super::rings::BARRIER_BYTES;
use super::types;
use melior::ir::Type;

/// Bytes of an element.
pub(crate) const ELEMENT_BYTES: i64 = 4;

/// Bytes of parts of such shape.
pub(crate) fn bytes_of_parts(shape: &[i64]) -> Option<i64> {
    let mut extents = shape.iter();
    extents.try_fold(ELEMENT_BYTES, |bytes, extent| bytes.checked_mul(*extent))
}

/// Where the mbarrier is that is complete when all parts have come, behind so many bytes of them.
pub(crate) const fn full_behind(bytes: i64) -> i64 {
    bytes.saturating_add(BARRIER_BYTES - 1) / BARRIER_BYTES * BARRIER_BYTES
}

/// Where the mbarrier is that is complete when all CTAs have read theirs.
pub(crate) const fn read_behind(bytes: i64) -> i64 {
    full_behind(bytes).saturating_add(BARRIER_BYTES)
}

/// Bytes of the storage of a type, with its mbarriers; `None` for one of unknown size.
pub(crate) fn bytes_of(storage: Type<'_>) -> Option<i64> {
    let parts = bytes_of_parts(&types::memref_shape(storage)?)?;
    read_behind(parts).checked_add(BARRIER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mbarriers_are_aligned() {
        let bytes = bytes_of_parts(&[1, 3, 1]);
        assert_eq!(bytes, Some(12));
        assert_eq!((full_behind(12), read_behind(12)), (16, 24));
        assert_eq!(bytes_of_parts(&[i64::MAX, 2]), None);
    }
}
