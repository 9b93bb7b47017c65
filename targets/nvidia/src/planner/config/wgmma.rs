//! A configuration of `wgmma` (sm_90a): one warp copies, warpgroups multiply.

use super::budgets;
use super::work::{Cluster, Decomposition, Raster};
use crate::facts::chip::{Chip, MULTIPROCESSOR_REGISTERS, THREAD_REGISTERS};
use crate::planner::knobs::{Mainloop, Plan, Schedule, Sharing, Side};
use crate::planner::problem::{KFirst, SUM_BYTES};
use crate::state::slots::STORE_PIPELINE_BYTES;
use crate::vocabulary::WARPGROUP;
use axe_dialect::RasterOrder;
use std::fmt;

/// A configuration. It is had from [`Wgmma::new`] and its like, and changed by methods that give none for what does not
/// go together: consumers at tiles of their own neither swap A and B nor share a tile's depth, but in the last wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wgmma {
    tile: [i64; 3],
    consumers: i64,
    stages: i64,
    raster: Raster,
    swap_ab: bool,
    schedule: Schedule,
    decomposition: Decomposition,
    /// Of a thread that copies and of one that multiplies, where a plan says so.
    registers: Option<[i64; 2]>,
    evict_first: Option<Side>,
}

/// Accumulators of a thread at most: the rest of its 255 registers, or of what `setmaxnreg` gives it, is left to
/// addresses and the epilogue.
const ACCUMULATORS: i64 = 192;
/// Accumulators of a thread from which on the roles' registers are shared out unevenly.
const WIDE: i64 = 112;
/// Registers beside an instruction's accumulators without which ptxas refuses it (C7602): it wants them among those that
/// every thread of the CTA can have, whatever `setmaxnreg` gives to some.
const BESIDE: i64 = 28;
/// Stages of a ring at the most.
const MOST_STAGES: i64 = 8;
/// Bytes of the ring's barriers and of alignment.
const RESERVED: i64 = 2048;
/// Rows of a tile: more of 8 columns fill no registers that three warpgroups have.
const MOST_ROWS: i64 = THREAD_REGISTERS * 3 * WARPGROUP / 8;
/// Rows of tiles in a group, unless a tuner knows better.
const GROUP: i64 = 8;

/// CTAs that may share a tile: a portable cluster has up to 8 (CUDA C++ Programming Guide, "Thread Block Clusters").
pub(in crate::planner) const SPLITS: [i64; 4] = [1, 2, 4, 8];
/// CTAs that may share a tile's depth through memory.
pub(in crate::planner) const MOST_SPLITS: i64 = 64;

/// Bytes that a stage should have, so that the one thread that copies keeps memory busy.
const STAGE_BYTES: i64 = 24 * 1024;

impl Wgmma {
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
    pub(in crate::planner) fn swapped(
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
            tile: [m, n, depth],
            consumers,
            stages: 0,
            raster: Raster {
                order: RasterOrder::Groups,
                swizzle: GROUP,
            },
            swap_ab: swap,
            schedule: Schedule::Cooperative,
            decomposition: Decomposition::DataParallel(Cluster::Alone),
            registers: None,
            evict_first: None,
        };
        if !whole || !tile.fits_registers() {
            return None;
        }
        tile.stages = tile.most_stages(0, bytes, chip);
        (tile.stages >= 2).then_some(tile)
    }

    /// The tile whose stages have so many bytes beside those of A and B; `None` when fewer than two fit.
    pub(in crate::planner) fn with_more(
        mut self,
        more: i64,
        bytes: i64,
        chip: &Chip,
    ) -> Option<Self> {
        self.stages = self.stages.min(self.most_stages(more, bytes, chip));
        (self.stages >= 2).then_some(self)
    }

    /// The tile of one warpgroup, of which each of so many has its own; `None` where it is not one's, or too much for
    /// several.
    #[must_use]
    pub fn pingpong(mut self, consumers: i64, bytes: i64, chip: &Chip) -> Option<Self> {
        let whole = matches!(self.decomposition, Decomposition::DataParallel(_));
        let alone = self.consumers == 1 && !self.swap_ab && whole;
        self.consumers = consumers;
        self.schedule = Schedule::Pingpong;
        if !(alone && (2..=3).contains(&consumers) && self.fits_registers()) {
            return None;
        }
        self.stages = self.most_stages(0, bytes, chip);
        (self.stages >= 2).then_some(self)
    }

    /// The tile in a cluster whose CTAs fetch parts of an operand for each other; `None` where the parts would not begin
    /// with the period of their swizzle, of eight rows, or the CTAs of a cluster share depth.
    #[must_use]
    pub fn in_clusters(self, cluster: Cluster, k_first: KFirst) -> Option<Self> {
        let [m, n, k] = self.tile;
        let [of_b, of_a] = cluster.shape();
        let falls = |rows: i64, k_first: bool, ctas: i64| {
            ctas == 1 || (if k_first { k } else { rows }) % (8 * ctas) == 0
        };
        let fits = falls(m, k_first.a, of_a) && falls(n, k_first.b, of_b);
        self.with_cluster(cluster).filter(|_| fits)
    }

    /// The same whatever the operands; `None` where the CTAs of a cluster share depth.
    const fn with_cluster(mut self, cluster: Cluster) -> Option<Self> {
        self.decomposition = match (self.decomposition, cluster) {
            (Decomposition::DataParallel(_), _) => Decomposition::DataParallel(cluster),
            (Decomposition::SplitK(_, splits), _) => Decomposition::SplitK(cluster, splits),
            (Decomposition::StreamK(_, splits), _) => Decomposition::StreamK(cluster, splits),
            (Decomposition::ClusterSplitK(_) | Decomposition::Grouped, Cluster::Alone) => {
                return Some(self);
            }
            (Decomposition::ClusterSplitK(_) | Decomposition::Grouped, _) => return None,
        };
        Some(self)
    }

    /// The tile of one CTA alone, or of those that share its depth.
    #[must_use]
    pub fn alone(self) -> Self {
        self.with_cluster(Cluster::Alone).unwrap_or(self)
    }

    /// The same with so many stages, of which there are no more than fit.
    #[must_use]
    pub fn with_stages(self, stages: i64) -> Option<Self> {
        let fits = (2..=self.stages).contains(&stages);
        fits.then_some(Self { stages, ..self })
    }

    /// The same with so many registers for a thread that copies and for one that multiplies; `None` where they are not
    /// whole eights, or more than a multiprocessor has.
    #[must_use]
    pub fn with_registers(self, registers: [i64; 2]) -> Option<Self> {
        let [copies, multiplies] = registers;
        let all = (copies + self.consumers * multiplies) * WARPGROUP;
        let eights = registers.iter().all(|count| count % 8 == 0);
        let fits = eights && all <= MULTIPROCESSOR_REGISTERS;
        fits.then_some(Self {
            registers: Some(registers),
            ..self
        })
    }

    /// The registers that a plan asks for.
    #[must_use]
    pub const fn registers(self) -> Option<[i64; 2]> {
        self.registers
    }

    /// The same, where the L2 cache may drop an operand first.
    #[must_use]
    pub const fn with_evict_first(self, evict_first: Option<Side>) -> Self {
        Self {
            evict_first,
            ..self
        }
    }

    /// The operand that the L2 cache may drop first.
    #[must_use]
    pub const fn evicts_first(self) -> Option<Side> {
        self.evict_first
    }

    /// The same in another order.
    #[must_use]
    pub const fn with_raster(self, raster: Raster) -> Self {
        Self { raster, ..self }
    }

    /// Rows, columns and depth.
    #[must_use]
    pub const fn tile(self) -> [i64; 3] {
        self.tile
    }

    /// Warpgroups that multiply.
    #[must_use]
    pub const fn consumers(self) -> i64 {
        self.consumers
    }

    /// Tiles of A and B in flight.
    #[must_use]
    pub const fn stages(self) -> i64 {
        self.stages
    }

    /// The order in which tiles are visited.
    #[must_use]
    pub const fn raster(self) -> Raster {
        self.raster
    }

    /// Whether the instruction's rows, of which it has 64, are the result's columns: for results of few rows.
    #[must_use]
    pub const fn swaps_ab(self) -> bool {
        self.swap_ab
    }

    /// Whether each consumer multiplies a tile of its own.
    #[must_use]
    pub const fn is_pingpong(self) -> bool {
        matches!(self.schedule, Schedule::Pingpong)
    }

    /// How the work is shared out among CTAs.
    #[must_use]
    pub const fn decomposition(self) -> Decomposition {
        self.decomposition
    }

    /// CTAs that fetch an operand for each other.
    #[must_use]
    pub const fn cluster(self) -> Cluster {
        self.decomposition.cluster()
    }

    /// CTAs of a cluster that share a tile's depth.
    #[must_use]
    pub const fn cluster_splits(self) -> i64 {
        match self.decomposition {
            Decomposition::ClusterSplitK(splits) => splits,
            _ => 1,
        }
    }

    /// CTAs that share every tile's depth through memory.
    #[must_use]
    pub const fn splits(self) -> i64 {
        match self.decomposition {
            Decomposition::SplitK(_, splits) => splits,
            _ => 1,
        }
    }

    /// The plan that asks for all of it.
    #[must_use]
    pub fn plan(self) -> Plan {
        let (sharing, splits) = self.decomposition.sharing();
        let other = sharing != Sharing::DataParallel;
        Plan {
            mainloop: Some(Mainloop::Wgmma),
            tile: Some(self.tile),
            consumers: Some(self.consumers),
            stages: Some(self.stages),
            raster: Some(self.raster.order),
            swizzle: Some(self.raster.swizzle),
            cluster: Some(self.cluster().shape()),
            swap_ab: self.swap_ab.then_some(true),
            decomposition: other.then_some(sharing),
            splits: (other && sharing != Sharing::Grouped).then_some(splits),
            schedule: self.is_pingpong().then_some(self.schedule),
            registers: self.registers,
            evict_first: self.evict_first,
            ..Plan::default()
        }
    }

    /// Rows and columns of the tiles of a cluster together.
    #[must_use]
    pub const fn span(self) -> [i64; 2] {
        let ([m, n, _], [rows, columns]) = (self.tile, self.cluster().shape());
        [m.saturating_mul(rows), n.saturating_mul(columns)]
    }

    /// Warpgroups that multiply a tile together.
    #[must_use]
    pub const fn warpgroups(self) -> i64 {
        if self.is_pingpong() {
            1
        } else {
            self.consumers
        }
    }

    /// Accumulators of a thread.
    const fn accumulators(self) -> i64 {
        let [m, n, _] = self.tile;
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
    /// than a second subtile for it.
    fn most_stages(self, more: i64, bytes: i64, chip: &Chip) -> i64 {
        match self.stages_beside(STORE_PIPELINE_BYTES, more, bytes, chip) {
            ..=3 => self.stages_beside(STORE_PIPELINE_BYTES / 2, more, bytes, chip),
            enough => enough,
        }
    }

    /// The same with so many bytes for each consumer's subtiles, of two consumers at least.
    fn stages_beside(self, subtiles: i64, more: i64, bytes: i64, chip: &Chip) -> i64 {
        let [m, n, depth] = self.tile;
        let most = subtiles * self.consumers.max(2);
        let pipelined =
            self.exchanged_bytes() + most.min(m * n / self.cluster_splits() * SUM_BYTES);
        let stage = (m + n) * depth * bytes + more;
        ((chip.shared_bytes - pipelined - RESERVED) / stage).min(MOST_STAGES)
    }

    /// CTAs of a cluster.
    #[must_use]
    pub const fn ctas(self) -> i64 {
        self.cluster().ctas() * self.cluster_splits()
    }

    /// Rows and columns as the instruction has them.
    #[must_use]
    pub const fn instruction(self) -> [i64; 2] {
        match self.tile {
            [m, n, _] if self.swap_ab => [n, m],
            [m, n, _] => [m, n],
        }
    }

    /// Whether it can read operands that are stored so: with k first their tiles are whole rows of the swizzle.
    #[must_use]
    pub const fn reads(self, k_first: KFirst, bytes: i64) -> bool {
        (!k_first.b || self.has_whole_rows(bytes)) && !(k_first.a && self.swap_ab)
    }

    /// Threads of the CTA: one warpgroup copies.
    #[must_use]
    pub const fn threads(self) -> i64 {
        (1 + self.consumers) * WARPGROUP
    }

    /// Whether the columns are whole swizzled rows of 128 bytes or divide one, as shared memory holds them where B is
    /// stored `[k, n]`.
    #[must_use]
    const fn has_whole_rows(self, bytes: i64) -> bool {
        let (row, [_, n, _]) = (128 / bytes, self.tile);
        n % row == 0 || row % n == 0
    }

    /// The registers of the role that copies and of those that multiply, where they matter.
    #[must_use]
    pub const fn budgets(self) -> (Option<i64>, Option<i64>) {
        // With fewer accumulators an even share of the registers is enough, and ptxas gives less.
        let wide = self.accumulators() >= WIDE;
        match (wide, self.consumers) {
            (true, 2) => budgets::shared_out(2),
            _ => (None, None),
        }
    }
}

impl fmt::Display for Wgmma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan().fmt(f)
    }
}

mod sharing;
mod store;
mod tail;
pub use store::Store;
#[cfg(test)]
mod tests;
