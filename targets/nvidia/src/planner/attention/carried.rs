//! What the loop over blocks of keys carries.

use axe_passes::ir::Val;

/// What the loop over blocks carries.
#[derive(Clone, Copy)]
pub(super) struct State<'c> {
    /// Sums of the second product.
    pub results: Val<'c>,
    /// What they are still to be multiplied by, of each row.
    pub factor: Val<'c>,
    /// The weights of the block before, whose product is not issued yet.
    pub weights: Val<'c>,
    /// What weights of each row are formed with: its greatest score, or one that is not far below.
    pub maximum: Val<'c>,
    /// The sum of each row's weights in parts, one for each of [`super::fragments::LANE_COLUMNS`] columns: lanes add them up at the end.
    pub sum: Val<'c>,
    /// The slot and the stage of the values of the block before.
    pub slot: Val<'c>,
    pub stage: Val<'c>,
}

impl<'c> State<'c> {
    /// Its values, as a loop carries them.
    pub(super) fn values(self) -> [Val<'c>; 7] {
        [
            self.results,
            self.factor,
            self.weights,
            self.maximum,
            self.sum,
            self.slot,
            self.stage,
        ]
    }

    /// What a loop has carried.
    pub(super) fn of(values: &[Val<'c>]) -> Option<Self> {
        let &[results, factor, weights, maximum, sum, slot, stage] = values else {
            return None;
        };
        Some(Self {
            results,
            factor,
            weights,
            maximum,
            sum,
            slot,
            stage,
        })
    }
}
