//! How work is shared out among CTAs.

use crate::planner::knobs::Sharing;
use axe_dialect::RasterOrder;

/// CTAs of a cluster that fetch an operand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cluster {
    /// One CTA.
    Alone,
    /// So many CTAs, one below the other: their tiles share B's columns.
    Rows(i64),
    /// So many CTAs, side by side: their tiles share A's rows.
    Columns(i64),
    /// Rows and columns of CTAs, both several: those of a row share A's rows, those of a column B's columns.
    Both([i64; 2]),
}

impl Cluster {
    /// The cluster of a shape.
    #[must_use]
    pub const fn of(shape: [i64; 2]) -> Self {
        match shape {
            [1, 1] => Self::Alone,
            [ctas, 1] => Self::Rows(ctas),
            [1, ctas] => Self::Columns(ctas),
            shape => Self::Both(shape),
        }
    }

    /// Rows and columns of CTAs.
    #[must_use]
    pub const fn shape(self) -> [i64; 2] {
        match self {
            Self::Alone => [1, 1],
            Self::Rows(ctas) => [ctas, 1],
            Self::Columns(ctas) => [1, ctas],
            Self::Both(shape) => shape,
        }
    }

    /// How many CTAs.
    #[must_use]
    pub const fn ctas(self) -> i64 {
        let [rows, columns] = self.shape();
        rows * columns
    }
}

/// How the work is shared out among CTAs. Clusters that fetch operands for each other do not exchange sums as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decomposition {
    /// A tile is one CTA's.
    DataParallel(Cluster),
    /// The CTAs of a cluster, so many, share each tile's depth.
    ClusterSplitK(i64),
    /// So many CTAs share each tile's depth through memory.
    SplitK(Cluster, i64),
    /// The same for the tiles of the last wave, which do not fill the chip's multiprocessors.
    StreamK(Cluster, i64),
    /// A tile is one CTA's, of groups of rows that are found by their offsets.
    Grouped,
}

impl Decomposition {
    /// CTAs that fetch an operand for each other.
    #[must_use]
    pub const fn cluster(self) -> Cluster {
        match self {
            Self::DataParallel(cluster) | Self::SplitK(cluster, _) | Self::StreamK(cluster, _) => {
                cluster
            }
            Self::ClusterSplitK(_) | Self::Grouped => Cluster::Alone,
        }
    }

    /// Which it is, and how many CTAs share a depth.
    #[must_use]
    pub const fn sharing(self) -> (Sharing, i64) {
        match self {
            Self::DataParallel(_) => (Sharing::DataParallel, 1),
            Self::ClusterSplitK(splits) => (Sharing::ClusterSplitK, splits),
            Self::SplitK(_, splits) => (Sharing::SplitK, splits),
            Self::StreamK(_, splits) => (Sharing::StreamK, splits),
            Self::Grouped => (Sharing::Grouped, 1),
        }
    }
}

/// The order in which tiles are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Raster {
    /// The order.
    pub order: RasterOrder,
    /// Rows of tiles in a group of it.
    pub swizzle: i64,
}
