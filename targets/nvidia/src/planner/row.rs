//! What rows are, as far as their tiles depend on it: whoever chooses those reads it.

/// What rows are, as far as their tiles depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// How many rows there are; as many as fill a chip where that is known at run time only.
    pub rows: i64,
    pub columns: i64,
    /// Bytes of the elements that vectors are made of.
    pub bytes: i64,
    /// 32-bit registers of the widest element that a thread keeps.
    pub words: i64,
    /// Bytes that are read for a column, of all tensors.
    pub read: i64,
    /// The same of tensors that have an element a column, for all rows; none where bodies read elements anywhere.
    pub repeated: i64,
    /// How often rows are reduced.
    pub folds: usize,
    /// Whether the number of rows is known at run time only.
    pub dynamic: bool,
    /// Whether a kernel stores elements of them.
    pub stores: bool,
    /// Whether it goes through rows once and stores none.
    pub is_read_once: bool,
    /// Whether moments are among the folds: of those that a thread group has of a part each.
    pub has_moments: bool,
    /// Whether all folds are sums.
    pub adds: bool,
    /// Whether elements are wider between than in memory.
    pub is_widened: bool,
}

impl Row {
    /// Rows that are read twice.
    #[cfg(test)]
    pub(super) const fn plain(columns: i64, bytes: i64) -> Self {
        Self {
            rows: 4096,
            columns,
            bytes,
            words: 1,
            read: bytes,
            repeated: 0,
            folds: 1,
            dynamic: false,
            stores: true,
            is_read_once: false,
            has_moments: false,
            adds: false,
            is_widened: false,
        }
    }
}
