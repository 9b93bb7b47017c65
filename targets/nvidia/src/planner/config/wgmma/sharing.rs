//! How CTAs share the tiles of a configuration, and the depth of each.

use super::{MOST_SPLITS, SPLITS, Wgmma};
use crate::facts::chip::Chip;
use crate::planner::config::work::{Cluster, Decomposition};
use crate::planner::problem::SUM_BYTES;

impl Wgmma {
    /// The tile whose depth so many CTAs of a cluster share; `None` where the instruction's columns do not fall into eights for each, nothing
    /// fits, or it is in a cluster that fetches operands.
    #[must_use]
    pub fn cluster_split_k(mut self, splits: i64, bytes: i64, chip: &Chip) -> Option<Self> {
        match splits {
            1 => return Some(self.data_parallel()),
            _ if !SPLITS.contains(&splits) => return None,
            _ => {}
        }
        let alone = self.cluster() == Cluster::Alone && !self.is_pingpong();
        self.decomposition = Decomposition::ClusterSplitK(splits);
        self.stages = self.most_stages(0, bytes, chip);
        (alone && self.stages >= 2 && self.part().is_some()).then_some(self)
    }

    /// The tile that is one CTA's.
    #[must_use]
    pub const fn data_parallel(mut self) -> Self {
        self.decomposition = Decomposition::DataParallel(self.cluster());
        self
    }

    /// What a CTA stores of a tile whose depth a cluster shares: part of the instruction's columns, which each thread has some of. `None`
    /// where those do not fall into eights.
    #[must_use]
    pub const fn part(self) -> Option<Self> {
        let ([m, n, k], splits) = (self.tile, self.cluster_splits());
        let [_, columns] = self.instruction();
        let tile = match self.swap_ab {
            true => [m / splits, n, k],
            false => [m, n / splits, k],
        };
        if columns % (8 * splits) == 0 {
            Some(Self { tile, ..self })
        } else {
            None
        }
    }

    /// Bytes in which a CTA has the sums of the other CTAs that share a tile's depth.
    pub(super) const fn exchanged_bytes(self) -> i64 {
        let ([m, n, _], splits) = (self.tile, self.cluster_splits());
        m * n / splits * (splits - 1) * SUM_BYTES
    }

    /// Whether each CTA of a tile has a part of this depth.
    #[must_use]
    pub const fn can_split(self, k: i64) -> bool {
        k > (self.cluster_splits() - 1) * self.tile[2]
    }

    /// The tile whose depth, of so many elements, this many CTAs share through memory; `None` where one would have none of
    /// it, or each consumer has a tile of its own.
    #[must_use]
    pub fn split_k(mut self, splits: i64, k: i64) -> Option<Self> {
        let possible = !self.is_pingpong() && (1..=MOST_SPLITS).contains(&splits);
        self.decomposition = match splits {
            1 => Decomposition::DataParallel(self.cluster()),
            _ => Decomposition::SplitK(self.cluster(), splits),
        };
        (possible && k > (splits - 1) * self.tile[2]).then_some(self)
    }

    /// The tile that so many CTAs share in the last wave; `None` where the instruction's rows are the result's columns.
    #[must_use]
    pub const fn stream_k(mut self, splits: i64) -> Option<Self> {
        self.decomposition = match splits {
            1 => Decomposition::DataParallel(self.cluster()),
            2..=MOST_SPLITS if !self.swap_ab => Decomposition::StreamK(self.cluster(), splits),
            _ => return None,
        };
        Some(self)
    }

    /// The tile of groups of rows; `None` where the instruction's rows are the result's columns, or warpgroups or CTAs share
    /// work in another way than cooperative warpgroups of CTAs alone do.
    #[must_use]
    pub fn grouped(mut self) -> Option<Self> {
        let alone = self.decomposition == Decomposition::DataParallel(Cluster::Alone);
        let possible = alone && !self.swap_ab && !self.is_pingpong();
        self.decomposition = Decomposition::Grouped;
        possible.then_some(self)
    }

    /// Whether its tiles are those of groups of rows.
    #[must_use]
    pub fn is_grouped(self) -> bool {
        self.decomposition == Decomposition::Grouped
    }
}
