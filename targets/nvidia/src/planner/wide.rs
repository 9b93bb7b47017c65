//! The tile of a matrix product by roles.

use super::budgets;
use super::layouts::{ROW_BYTES, RowTile};
use crate::emit::STAGING_BYTES;
use crate::facts::chip::{Chip, MULTIPROCESSOR_REGISTERS, THREAD_REGISTERS};
use crate::vocabulary;
use axe_dialect::RasterOrder;
use std::fmt;

/// A tile of a kernel with roles, and the order of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WideTile {
    /// Rows, columns and depth.
    pub shape: [i64; 3],
    /// Warpgroups that multiply.
    pub consumers: i64,
    /// Tiles of A and B in flight.
    pub stages: i64,
    /// The order in which tiles are visited.
    pub order: RasterOrder,
    /// Rows of tiles in a group of the order.
    pub group: i64,
    /// CTAs of a cluster, whose tiles have an operand in common that each fetches a part of for all.
    pub cluster: i64,
    /// Whether those tiles are side by side and share A's rows; otherwise they are one below the other and share B's
    /// columns.
    pub beside: bool,
    /// Whether the instruction's rows, of which it has 64, are the result's columns: for results of few rows.
    pub swap: bool,
    /// CTAs of a cluster that share a tile, each of which sums a part of the depth.
    pub split: i64,
    /// CTAs that share a tile, each of which writes the sums of a part of the depth for another kernel.
    pub parts: i64,
    /// The same for the tiles of the last turn, which do not fill the chip's multiprocessors.
    pub tail: i64,
    /// Whether the consumers take turns at tiles, each of which one of them multiplies alone: while one stores its
    /// tile another multiplies.
    pub turns: bool,
}

/// Which operands are stored with k as their outer dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KFirst {
    /// A, as `[k, m]`.
    pub a: bool,
    /// B, as `[k, n]`.
    pub b: bool,
}

/// Threads of a warpgroup.
pub(super) const WARPGROUP: i64 = vocabulary::WARPGROUP * vocabulary::WARP;
/// Accumulators of a thread at most: the rest of its 255 registers, or of what `setmaxnreg` gives it, is left to
/// addresses and the epilogue.
const ACCUMULATORS: i64 = 192;
/// Accumulators of a thread from which on the roles' registers are shared out unevenly.
const WIDE: i64 = 112;
/// Registers beside an instruction's accumulators without which ptxas refuses it (C7602): it wants them among those that
/// every thread of the CTA can have, whatever `setmaxnreg` gives to some.
const BESIDE: i64 = 28;
/// Bytes of the ring's barriers and of alignment.
const RESERVED: i64 = 2048;
/// Rows of a tile: more of 8 columns fill no registers that three warpgroups have.
const MOST_ROWS: i64 = THREAD_REGISTERS * 3 * WARPGROUP / 8;
/// Rows of tiles in a group, unless a tuner knows better.
const GROUP: i64 = 8;

/// CTAs that may share a tile: a portable cluster has up to 8 (CUDA C++ Programming Guide, "Thread Block Clusters").
pub(super) const SPLITS: [i64; 4] = [1, 2, 4, 8];
/// The most parts, which CTAs share a tile in through memory, that a plan may ask for.
pub(super) const MOST_PARTS: i64 = 64;
/// Elements between the rows of a tile of partial sums beside the tile's own: threads that hold eight columns of
/// four pairs of rows then store to 32 banks.
pub(super) const PARTIAL_PADDING: i64 = 4;

/// Bytes that a stage should have, so that the one thread that copies keeps memory busy.
const STAGE_BYTES: i64 = 24 * 1024;

impl WideTile {
    /// The tile of this shape with as many stages as fit; `None` when fewer than two do, or the shape is not one
    /// of whole instructions whose accumulators fit in registers.
    #[must_use]
    pub fn new((m, n, consumers): (i64, i64, i64), bytes: i64, chip: &Chip) -> Option<Self> {
        let row = 128 / bytes;
        let stage = |depth: i64| (m + n) * depth * bytes;
        let depth = match m {
            // A's rows are few, and mostly not there.
            ..=64 => [row, 2 * row, 4 * row]
                .into_iter()
                .find(|depth| stage(*depth) >= STAGE_BYTES)
                .unwrap_or(4 * row),
            _ => row,
        };
        Self::with_depth((m, n, consumers), depth, false, bytes, chip)
    }

    /// The swapped tile of this shape; its stages are at least as long as memory wants them.
    pub(super) fn swapped(
        (m, n, consumers): (i64, i64, i64),
        bytes: i64,
        chip: &Chip,
    ) -> Option<Self> {
        let row = 128 / bytes;
        let depth = [row, 2 * row, 4 * row]
            .into_iter()
            .find(|depth| (m + n) * depth * bytes >= STAGE_BYTES)
            .unwrap_or(4 * row);
        Self::with_depth((m, n, consumers), depth, true, bytes, chip)
    }

    /// The tile of this shape and depth, a multiple of 128 bytes.
    #[must_use]
    pub fn with_depth(
        (m, n, consumers): (i64, i64, i64),
        depth: i64,
        swap: bool,
        bytes: i64,
        chip: &Chip,
    ) -> Option<Self> {
        let [rows, columns] = if swap { [n, m] } else { [m, n] };
        let whole = (1..=3).contains(&consumers)
            && (1..=MOST_ROWS).contains(&rows)
            && rows % (64 * consumers) == 0
            && (8..=256).contains(&columns)
            && columns % 8 == 0
            && (1..=1024).contains(&depth)
            && (128..=1024).contains(&(depth * bytes))
            && depth * bytes % 128 == 0;
        let mut tile = Self {
            shape: [m, n, depth],
            consumers,
            stages: 0,
            order: RasterOrder::Groups,
            group: GROUP,
            cluster: 1,
            beside: false,
            swap,
            split: 1,
            parts: 1,
            tail: 1,
            turns: false,
        };
        if !whole || !tile.fits_registers() {
            return None;
        }
        tile.stages = tile.most_stages(0, bytes, chip);
        (tile.stages >= 2).then_some(tile)
    }

    /// The tile whose stages have so many bytes beside those of A and B; `None` when fewer than two fit.
    pub(super) fn with_more(mut self, more: i64, bytes: i64, chip: &Chip) -> Option<Self> {
        self.stages = self.stages.min(self.most_stages(more, bytes, chip));
        (self.stages >= 2).then_some(self)
    }

    /// The tile of one warpgroup, at which so many take turns; `None` where it is not one's, or too much for several.
    #[must_use]
    pub fn in_turns(mut self, consumers: i64, bytes: i64, chip: &Chip) -> Option<Self> {
        let alone = self.consumers == 1 && !self.swap && self.split == 1;
        self.consumers = consumers;
        self.turns = true;
        if !(alone && (2..=3).contains(&consumers) && self.fits_registers()) {
            return None;
        }
        self.stages = self.most_stages(0, bytes, chip);
        (self.stages >= 2).then_some(self)
    }

    /// The tile in clusters of so many CTAs that fetch parts of B for each other, or where they are `beside` each other of
    /// A; `None` where the parts would not begin with the period of their swizzle, of eight rows.
    #[must_use]
    pub fn in_clusters(self, cluster: i64, beside: bool, k_first: KFirst) -> Option<Self> {
        let [m, n, k] = self.shape;
        let (rows, k_first) = if beside {
            (m, k_first.a)
        } else {
            (n, k_first.b)
        };
        let rows = if k_first { k } else { rows };
        let possible = cluster == 1 || (self.split == 1 && rows % (8 * cluster) == 0);
        let beside = beside && cluster > 1;
        possible.then_some(Self {
            cluster,
            beside,
            ..self
        })
    }

    /// The tile without a cluster.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self {
            cluster: 1,
            beside: false,
            ..self
        }
    }

    /// Rows and columns of the tiles of a cluster together.
    #[must_use]
    pub const fn span(self) -> [i64; 2] {
        match self.shape {
            [m, n, _] if self.beside => [m, n.saturating_mul(self.cluster)],
            [m, n, _] => [m.saturating_mul(self.cluster), n],
        }
    }

    /// Warpgroups that multiply a tile together.
    #[must_use]
    pub const fn warpgroups(self) -> i64 {
        if self.turns { 1 } else { self.consumers }
    }

    /// Accumulators of a thread.
    const fn accumulators(self) -> i64 {
        let [m, n, _] = self.shape;
        m * n / (self.warpgroups() * WARPGROUP)
    }

    /// Whether the accumulators fit in the registers of a thread, and those of an instruction in what threads have
    /// at launch.
    fn fits_registers(self) -> bool {
        let even = MULTIPROCESSOR_REGISTERS / self.threads() / 8 * 8;
        let at_launch = even.min(THREAD_REGISTERS);
        let [_, columns] = self.instruction();
        // With three consumers there are no budgets: what threads have at launch is all.
        let most = match self.consumers {
            ..=2 => ACCUMULATORS,
            _ => at_launch - BESIDE,
        };
        columns / 2 + BESIDE <= at_launch && self.accumulators() <= most
    }

    /// Stages, with `more` bytes beside those of A and B, that fit beside what stores the results. A fourth is worth more
    /// than a second panel for it.
    fn most_stages(self, more: i64, bytes: i64, chip: &Chip) -> i64 {
        match self.stages_beside(STAGING_BYTES, more, bytes, chip) {
            ..=3 => self.stages_beside(STAGING_BYTES / 2, more, bytes, chip),
            enough => enough,
        }
    }

    /// The same with so many bytes for each consumer's panels, of two consumers at least.
    fn stages_beside(self, panels: i64, more: i64, bytes: i64, chip: &Chip) -> i64 {
        let [m, n, depth] = self.shape;
        let most = panels * self.consumers.max(2);
        // The threads of a tile that is split hold parts of all rows: a panel has all of them.
        let (partial, most) = match self.split {
            1 => (0, most),
            _ => (m * (n + PARTIAL_PADDING) * 4, most.max(m * ROW_BYTES)),
        };
        let staging = partial + most.min(m * n / self.split * 4);
        let stage = (m + n) * depth * bytes + more;
        ((chip.shared_bytes - staging - RESERVED) / stage).min(8)
    }

    /// The tile shared by `split` CTAs; `None` when their parts of the result have no threads each, or nothing fits.
    #[must_use]
    pub fn split_by(mut self, split: i64, bytes: i64, chip: &Chip) -> Option<Self> {
        match split {
            1 => return Some(self),
            _ if !SPLITS.contains(&split) => return None,
            _ => self.split = split,
        }
        self.stages = self.most_stages(0, bytes, chip);
        let possible = self.cluster == 1 && self.stages >= 2;
        (possible && self.part().is_some()).then_some(self)
    }

    /// A CTA's columns of a tile that is split, as the consumers' threads hold them after summing the parts.
    #[must_use]
    pub fn part(self) -> Option<RowTile> {
        let [rows, n, _] = self.shape;
        let (columns, threads) = (n / self.split, self.consumers * WARPGROUP);
        let tile = |vector: i64| RowTile {
            rows,
            columns,
            along: columns / vector,
            vector,
            across: threads / (columns / vector).max(1),
        };
        let fits = |tile: &RowTile| {
            let along = u64::try_from(tile.along).unwrap_or(0);
            columns * self.split == n
                && columns % tile.vector == 0
                && along.is_power_of_two()
                && tile.threads() == threads
                && rows % tile.across == 0
        };
        [4, 2, 1].into_iter().map(tile).find(fits)
    }

    /// Whether each CTA of a tile has a part of this depth.
    #[must_use]
    pub const fn can_split(self, k: i64) -> bool {
        k > (self.split - 1) * self.shape[2]
    }

    /// The tile whose depth, of so many elements, this many CTAs share through memory; `None` where one would have none of
    /// it, or a cluster shares it as well, or warpgroups take turns.
    #[must_use]
    pub fn in_parts(self, parts: i64, k: i64) -> Option<Self> {
        let possible = self.split == 1 && !self.turns && (1..=MOST_PARTS).contains(&parts);
        (possible && k > (parts - 1) * self.shape[2]).then_some(Self { parts, ..self })
    }

    /// CTAs of a cluster.
    #[must_use]
    pub const fn ctas(self) -> i64 {
        self.cluster * self.split
    }

    /// Rows and columns as the instruction has them.
    #[must_use]
    pub const fn instruction(self) -> [i64; 2] {
        match self.shape {
            [m, n, _] if self.swap => [n, m],
            [m, n, _] => [m, n],
        }
    }

    /// Whether it can read operands that are stored so: with k first their tiles are whole panels.
    #[must_use]
    pub const fn reads(self, k_first: KFirst, bytes: i64) -> bool {
        (!k_first.b || self.has_whole_panels(bytes)) && !(k_first.a && self.swap)
    }

    /// Threads of the CTA: one warpgroup copies.
    #[must_use]
    pub const fn threads(self) -> i64 {
        (1 + self.consumers) * WARPGROUP
    }

    /// Whether the columns are whole panels of 128 bytes or divide one, as shared memory holds them where B is
    /// stored `[k, n]`.
    #[must_use]
    const fn has_whole_panels(self, bytes: i64) -> bool {
        let (panel, [_, n, _]) = (128 / bytes, self.shape);
        n % panel == 0 || panel % n == 0
    }

    /// The registers of the role that copies and of those that multiply, where they matter.
    #[must_use]
    pub const fn budgets(self) -> (Option<i64>, Option<i64>) {
        // With fewer accumulators an even share of the registers is enough, and ptxas gives less.
        let wide = self.accumulators() >= WIDE && self.split == 1;
        match (wide, self.consumers) {
            (true, 2) => budgets::shared_out(2),
            _ => (None, None),
        }
    }
}

impl fmt::Display for WideTile {
    /// The tile as the dictionary `axe.plan`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape;
        write!(
            f,
            "{{kernel = \"wgmma\", tile = array<i64: {m}, {n}, {k}>, consumers = {} : i64, stages = {} : i64, order = \"{}\", group = {} : i64, cluster = {} : i64",
            self.consumers,
            self.stages,
            order_name(self.order),
            self.group,
            self.cluster
        )?;
        if self.beside {
            f.write_str(", beside = true")?;
        }
        if self.swap {
            f.write_str(", swap = true")?;
        }
        if self.split > 1 {
            write!(f, ", split = {} : i64", self.split)?;
        }
        if self.parts > 1 {
            write!(f, ", parts = {} : i64", self.parts)?;
        }
        if self.tail > 1 {
            write!(f, ", tail = {} : i64", self.tail)?;
        }
        if self.turns {
            f.write_str(", turns = true")?;
        }
        f.write_str("}")
    }
}

/// The orders and their names in `axe.plan`.
const ORDERS: [(&str, RasterOrder); 5] = [
    ("rows", RasterOrder::Rows),
    ("columns", RasterOrder::Columns),
    ("groups", RasterOrder::Groups),
    ("snake", RasterOrder::Snake),
    ("hilbert", RasterOrder::Hilbert),
];

/// The order of a name in `axe.plan`.
pub(super) fn order(name: &str) -> Option<RasterOrder> {
    let mut orders = ORDERS.into_iter();
    orders
        .find(|(known, _)| *known == name)
        .map(|(_, order)| order)
}

fn order_name(order: RasterOrder) -> &'static str {
    let mut orders = ORDERS.into_iter();
    orders
        .find(|(_, known)| *known == order)
        .map_or("rows", |(name, _)| name)
}

/// Whether a descriptor takes rows of this many elements: strides are multiples of 16 bytes (CUDA driver API,
/// `cuTensorMapEncodeTiled`, globalStrides).
#[must_use]
pub const fn takes_rows(elements: i64, bytes: i64) -> bool {
    elements.wrapping_mul(bytes) % 16 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::chip::chip;

    #[test]
    fn what_no_tile_has_is_refused() {
        let chip = chip("sm_90a").unwrap();
        let tile = |shape, depth| WideTile::with_depth(shape, depth, false, 2, chip);
        let whole = tile((128, 64, 2), 64).unwrap();
        for far in [0, -64, 1 << 40, 1 << 62, i64::MAX - 63, i64::MIN] {
            assert_eq!(tile((far, 8, 1), 64), None);
            assert_eq!(tile((64, far, 1), 64), None);
            assert_eq!(tile((64, 8, far), 64), None);
            assert_eq!(tile((64, 8, 1), far), None);
            assert_eq!(whole.split_by(far, 2, chip), None);
            assert_eq!(whole.in_turns(far, 2, chip), None);
        }
    }

    #[test]
    fn parts_have_steps_each() {
        let tile = WideTile::new((128, 128, 2), 2, chip("sm_90a").unwrap()).unwrap();
        assert!(tile.in_parts(3, 129).is_some() && tile.in_parts(3, 128).is_none());
        assert!(
            tile.in_parts(0, 4096).is_none() && tile.in_parts(MOST_PARTS + 1, 1 << 20).is_none()
        );
        let turns = WideTile::new((128, 128, 1), 2, chip("sm_90a").unwrap()).unwrap();
        let turns = turns.in_turns(2, 2, chip("sm_90a").unwrap()).unwrap();
        assert!(turns.in_parts(2, 4096).is_none());
    }

    #[test]
    fn clusters_fetch_whole_periods_of_the_swizzle() {
        let chip = chip("sm_90a").unwrap();
        let tile = |n| {
            let tile = WideTile::new((128, n, 1), 2, chip).unwrap();
            tile.in_turns(2, 2, chip).unwrap()
        };
        let k_first = |b| KFirst { a: false, b };
        assert!(tile(144).in_clusters(2, false, k_first(false)).is_some());
        assert!(tile(152).in_clusters(2, false, k_first(false)).is_none());
        assert!(tile(152).in_clusters(2, false, k_first(true)).is_some());
    }

    #[test]
    fn a_fourth_stage_comes_before_a_second_panel() {
        let chip = chip("sm_90a").unwrap();
        let stages = |shape| WideTile::new(shape, 2, chip).unwrap().stages;
        assert_eq!(stages((256, 160, 2)), 4);
        assert_eq!(stages((256, 192, 2)), 3);
        assert_eq!(stages((128, 256, 2)), 4);
    }

    #[test]
    fn accumulators_fit_in_registers() {
        let tile = |shape| WideTile::new(shape, 2, chip("sm_90a").unwrap());
        // ptxas takes 192 accumulators of 384 threads where others give registers up, and refuses an instruction of
        // 128 with 512.
        assert!(tile((128, 256, 2)).is_some() && tile((256, 192, 2)).is_some());
        assert!(tile((256, 208, 2)).is_none());
        assert!(tile((192, 192, 3)).is_some() && tile((192, 256, 3)).is_none());
        assert!(tile((64, 256, 1)).is_some() && tile((128, 200, 1)).is_none());
    }
}
