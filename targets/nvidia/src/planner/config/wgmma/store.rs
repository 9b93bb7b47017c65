//! How results leave a tile: in subtiles, through slots of shared memory beside the stages.

use super::{RESERVED, Wgmma};
use crate::emit::SUBTILE_ROW_BYTES;
use crate::facts::chip::Chip;
use crate::planner::layouts::ROW_BYTES;
use crate::planner::problem::{RESULT_BYTES, count};
use crate::state::slots::{planned_bytes, ring_slots};

/// The subtiles of a tile's results, of 16 bits and as they are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Bytes of a row of the widest.
    pub row_bytes: i64,
    /// How many there are along a row of the tile, at least in part.
    pub subtiles: i64,
    /// Slots that those of a warpgroup go through.
    pub slots: i64,
}

impl Wgmma {
    /// How results leave: in the widest subtiles of which two have slots, but where rows are whole subtiles at once, if need
    /// be through one slot.
    #[must_use]
    pub fn store(self, bytes: i64, chip: &Chip) -> Store {
        let part = self.part().unwrap_or(self);
        let ([_, n, _], left) = (part.tile, self.beside_stages(bytes, chip));
        let each = |row_bytes: i64| part.slot_bytes(row_bytes);
        let slots = |row_bytes: i64| ring_slots(self.consumers, each(row_bytes), left);
        let whole = n * RESULT_BYTES % ROW_BYTES == 0;
        let row_bytes = [ROW_BYTES, ROW_BYTES / 2]
            .into_iter()
            .find(|row| slots(*row) > 1 || whole && each(*row) <= left)
            .unwrap_or(SUBTILE_ROW_BYTES);
        Store {
            row_bytes,
            subtiles: count(n * RESULT_BYTES, row_bytes),
            slots: slots(row_bytes),
        }
    }

    /// The same with as many stages as leave two slots of the widest subtiles; `None` where it has these, or too few stages.
    #[must_use]
    pub fn double_buffered(self, bytes: i64, chip: &Chip) -> Option<Self> {
        let (each, planned) = (self.slot_bytes(ROW_BYTES), planned_bytes(self.consumers));
        let slots = (planned + each).max(2 * each);
        let stages = (chip.shared_bytes - RESERVED - slots) / self.stage_bytes(bytes).max(1);
        let wide = 2 * each > planned && self.cluster_splits() == 1;
        self.with_stages(stages)
            .filter(|config| wide && config.stages < self.stages)
    }

    /// Bytes of one slot of each warpgroup, for subtiles of such rows.
    fn slot_bytes(self, row_bytes: i64) -> i64 {
        let [m, ..] = self.tile;
        let rows = match self.swap_ab {
            true => m,
            false => m / self.warpgroups(),
        };
        self.consumers * rows * row_bytes
    }

    /// Bytes of a stage.
    const fn stage_bytes(self, bytes: i64) -> i64 {
        let [m, n, k] = self.tile;
        (m + n) * k * bytes
    }

    /// Bytes of shared memory beside the stages.
    const fn beside_stages(self, bytes: i64, chip: &Chip) -> i64 {
        chip.shared_bytes
            - RESERVED
            - self.exchanged_bytes()
            - self.stages * self.stage_bytes(bytes)
    }
}
