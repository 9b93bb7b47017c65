//! The configuration of a product: what a plan asks for, and for what it leaves out the cost model's choice.

use super::offered;
use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::config::{Cluster, Config, Decomposition, MOST_SPLITS, Mma, Raster, Wgmma};
use crate::planner::knobs::{Mainloop, Plan, Schedule, Sharing, Side, Value as _};
use crate::planner::layouts::Grid;
use crate::planner::mainloop::mma_scaled;
use crate::planner::model;
use crate::planner::problem::Problem;
use axe_dialect::{RasterOrder, ops};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::DYNAMIC;

/// Bytes of operands, and of results, from which on tiles are visited row by row: an H200's L2 cache has 60 MB. Its 7416 x 16264
/// x 48 take 103 us for 115, 5912 x 5976 x 16 30 for 32.
const READ_AT_MOST: i64 = 16 << 20;
/// See [`READ_AT_MOST`].
const WRITTEN_AT_LEAST: i64 = 48 << 20;

/// The configuration of a plan, or why the product cannot have it.
pub(in crate::planner) type Configured<T> = Result<T, String>;

/// The configuration with the registers of a plan.
fn with_registers(plan: &Plan, config: Wgmma) -> Configured<Wgmma> {
    let Some(registers) = plan.registers else {
        return Ok(config);
    };
    config.with_registers(registers).ok_or_else(|| {
        format!(
            "expected registers in eights in axe.plan, and of all warpgroups no more than 64 K, got {registers:?} beside {} consumers",
            config.consumers()
        )
    })
}

impl Gemm<'_> {
    /// The configuration of a plan.
    ///
    /// # Errors
    /// A plan that asks for what there is not, or nothing that fits.
    pub(in crate::planner) fn configure(&self, plan: &Plan, chip: &Chip) -> Configured<Config> {
        Ok(match self.wgmma(plan, chip)? {
            Some(config) if !self.takes_halves(&config) => {
                return Err(format!(
                    "expected tiles in axe.plan with two halves of columns, each in eights (in 64 with B stored [k, n]) for each CTA that shares B, not swapped or split, for pairs of columns or two products, got {config}"
                ));
            }
            Some(config) if self.takes_blocks(&config) => Config::Wgmma(config),
            Some(config) => {
                let of = self.reduced.unwrap_or_default();
                return Err(format!(
                    "expected tiles, or their parts with decomposition = \"cluster_split_k\", of whole blocks of the {of} columns that the epilogue reduces, not swapped, got {config}"
                ));
            }
            None if self.reduced.is_some() => {
                return Err("an epilogue by mma.sync reduces no blocks of columns".to_owned());
            }
            None if self.has_halves() => {
                return Err("a kernel by mma.sync has no tiles of two halves of columns".to_owned());
            }
            None if self.groups.is_some() => return Err(self.grouped_by_mma(chip)),
            None => Config::Mma(self.mma(plan, chip)?),
        })
    }

    /// Whether what a CTA stores of a tile is made of whole blocks that the epilogue reduces, each of which few lanes hold.
    fn takes_blocks(&self, config: &Wgmma) -> bool {
        let columns = config.part().map(|part| part.tile()[1]);
        let columns = columns.filter(|_| !config.swaps_ab());
        self.reduced
            .is_none_or(|of| columns.is_some_and(|columns| columns % of == 0))
    }

    /// Why there is no kernel of a product of groups of rows.
    fn grouped_by_mma(&self, chip: &Chip) -> String {
        let reason = match self.admits_wgmma(chip) {
            Err(reason) => reason,
            Ok(()) => "axe.plan asks for mainloop = \"mma\"".to_owned(),
        };
        format!("the tile scheduler of groups is for mainloop = \"wgmma\" alone: {reason}")
    }

    /// The configuration of `wgmma`, where the chip and the operands allow one.
    fn wgmma(&self, plan: &Plan, chip: &Chip) -> Configured<Option<Wgmma>> {
        let possible = self.admits_wgmma(chip);
        match (plan.mainloop(), possible) {
            (None, Err(_)) | (Some(Mainloop::Mma), _) => return Ok(None),
            (None, _) if !plan.asks_for_tiles() && self.is_quicker_by_mma(chip) => return Ok(None),
            (Some(Mainloop::Wgmma), Err(reason)) => return Err(reason),
            (None | Some(Mainloop::Wgmma), Ok(())) => {}
        }
        let config = match plan.tile {
            Some(tile) => self.tiled(plan, tile, chip)?,
            None => self.chosen(chip).ok_or("no tile fits in shared memory")?,
        };
        let config = self.with_stages(plan, self.decomposed(plan, config, chip)?)?;
        let config = with_registers(plan, self.with_raster(plan, self.clustered(plan, config)?))?;
        let evict_first = match plan.tile {
            Some(_) => plan.evict_first,
            None => self.read_once(config),
        };
        let config = config.with_evict_first(evict_first);
        let fits = |blocks| offered::fits_blocks(config, blocks);
        match self
            .scales
            .as_ref()
            .is_none_or(|scales| fits(scales.blocks))
        {
            true => Ok(Some(config)),
            false => Err(format!(
                "expected tile = [rows, columns, depth] in axe.plan for blocks with scales 64 rows for each consumer, columns that divide a block's, and its depth, not swapped or split, got {config}"
            )),
        }
    }

    /// Whether the result is more than the L2 cache holds and the operands are not: then rows of tiles, whose results follow each
    /// other in memory, take less than groups of them, which share what they read.
    fn is_mostly_written(&self) -> bool {
        let Problem {
            batch,
            m,
            n,
            k,
            element_bytes,
            ..
        } = self.problem();
        let bytes = |elements: i64| batch.saturating_mul(elements).saturating_mul(element_bytes);
        let read = bytes(m.saturating_add(n).saturating_mul(k));
        let written = bytes(m.saturating_mul(n));
        self.groups.is_none() && read <= READ_AT_MOST && written >= WRITTEN_AT_LEAST
    }

    /// The operand of which each element is read for one tile alone, where the other's are read for several: hints keep the
    /// other in the L2 cache.
    fn read_once(&self, config: Wgmma) -> Option<Side> {
        let [rows, columns, _] = config.tile();
        match (self.m != DYNAMIC && self.m <= rows, self.n <= columns) {
            (true, false) => Some(Side::B),
            (false, true) => Some(Side::A),
            _ => None,
        }
    }

    /// The cost model's choice.
    fn chosen(&self, chip: &Chip) -> Option<Wgmma> {
        let query = self.query_where(true);
        let of = |columns: i64| {
            offered::choose_of(query, chip, |config| {
                let [_, own, _] = config.tile();
                let takes = self.takes_blocks(config) && self.takes_halves(config);
                own % columns == 0 && takes && self.can_have(&Config::Wgmma(*config))
            })
        };
        match self.has_halves() {
            true => self.chosen_halves(of, |config| {
                model::clocks(query, Config::Wgmma(config), chip)
            }),
            false => of(1),
        }
    }

    /// Whether depths that are shared through memory can be.
    fn can_have(&self, config: &Config) -> bool {
        let shares = match config {
            Config::Wgmma(config) => match config.decomposition() {
                Decomposition::SplitK(..) | Decomposition::StreamK(..) => true,
                Decomposition::DataParallel(_)
                | Decomposition::ClusterSplitK(_)
                | Decomposition::Grouped => false,
            },
            Config::Mma(config) => config.splits > 1,
        };
        !shares || self.not_shared().is_none()
    }

    /// Whether `mma.sync` is predicted to be quicker, which reads operands whose rows no tensor map takes without copies of them.
    fn is_quicker_by_mma(&self, chip: &Chip) -> bool {
        let plain = self.scales.is_none() && self.groups.is_none() && self.reduced.is_none();
        let plain = plain && !self.has_halves();
        // Of rows that are not known there may be many.
        let known = self.m != DYNAMIC || self.needs_no_copies().is_err();
        plain
            && known
            && offered::is_quicker_by_mma(self.query_where(true), chip, |config| {
                self.can_have(config)
            })
    }

    /// The configuration of a plan's tile, with its consumers and their schedule.
    fn tiled(&self, plan: &Plan, [m, n, k]: [i64; 3], chip: &Chip) -> Configured<Wgmma> {
        let swap = plan.swap_ab == Some(true);
        let pingpong = plan.schedule == Some(Schedule::Pingpong);
        let rows = if swap { n } else { m };
        let usual = if pingpong { 2 } else { (rows / 64).clamp(1, 2) };
        let consumers = plan.consumers.unwrap_or(usual);
        let bytes = element_bytes(self.element);
        let of = |consumers| Wgmma::with_depth((m, n, consumers), k, swap, bytes, chip);
        let asked = match pingpong {
            true => of(1).and_then(|config| config.pingpong(consumers, bytes, chip)),
            false => of(consumers),
        };
        let with_scales = |config| match self.scales {
            Some(_) => offered::with_scales(config, bytes, chip),
            None => Some(config),
        };
        asked
            .and_then(with_scales)
            .filter(|config| config.reads(self.k_first(), bytes))
            .ok_or_else(|| {
                format!(
                    "expected tile = [rows, columns, depth] in axe.plan with 64 rows or a multiple for each of 1 to 3 consumers (or for each tile of 2 or 3 with schedule = \"pingpong\"), up to 256 columns in 8 (in 64 with B stored [k, n]), or the other way round with swap_ab = true (and A not stored [k, m]), a depth in 128 bytes up to 1024, sums that fit in registers, and two stages in shared memory, got [{m}, {n}, {k}] and {consumers} consumers"
                )
            })
    }

    /// The configuration with a plan's way to share depth, out of a cluster where that shares it.
    fn decomposed(&self, plan: &Plan, config: Wgmma, chip: &Chip) -> Configured<Wgmma> {
        if self.groups.is_some() || plan.decomposition == Some(Sharing::Grouped) {
            return self.grouped(plan, config);
        }
        let Some(sharing) = plan.decomposition else {
            return Ok(config);
        };
        let splits = plan.splits.unwrap_or(1);
        let whole = config.data_parallel();
        if let (Sharing::SplitK | Sharing::StreamK, 2.., Some(reason)) =
            (sharing, splits, self.not_shared())
        {
            return Err(format!(
                "expected no depth shared through memory in axe.plan for {reason}"
            ));
        }
        match sharing {
            Sharing::DataParallel => Some(whole),
            Sharing::ClusterSplitK => whole
                .alone()
                .cluster_split_k(splits, element_bytes(self.element), chip)
                .filter(|config| config.can_split(self.k)),
            Sharing::SplitK => whole.split_k(splits, self.k),
            Sharing::StreamK => whole.stream_k(splits),
            Sharing::Grouped => whole.grouped(),
        }
        .ok_or_else(|| {
            let expected = match sharing {
                Sharing::ClusterSplitK => "splits of 2, 4 or 8 with decomposition = \"cluster_split_k\" in axe.plan, a step along k and eight columns for each, or rows where A and B are swapped, and all consumers at one tile".to_owned(),
                Sharing::SplitK => format!("splits of 1 to {MOST_SPLITS} with decomposition = \"split_k\" in axe.plan, a step along k for each, and all consumers at one tile"),
                _ => format!("splits of 1 to {MOST_SPLITS} with decomposition = \"stream_k\" in axe.plan, and A and B not swapped"),
            };
            format!("expected {expected}, got {splits} of {config}")
        })
    }

    /// The configuration over the tiles of groups of rows.
    fn grouped(&self, plan: &Plan, config: Wgmma) -> Configured<Wgmma> {
        let asked = plan.decomposition.unwrap_or(Sharing::Grouped);
        if self.groups.is_none() || asked != Sharing::Grouped {
            let (op, expected) = match self.groups {
                None => (
                    "a product without groups of rows",
                    "another decomposition than",
                ),
                Some(_) => (ops::GROUPED_GEMM, "decomposition ="),
            };
            return Err(format!(
                "expected {expected} \"grouped\" in axe.plan of {op}, got {}",
                asked.entry()
            ));
        }
        if let Some(shape) = plan.cluster.filter(|shape| *shape != [1, 1]) {
            return Err(format!(
                "expected no cluster with decomposition = \"grouped\" in axe.plan, got {shape:?}"
            ));
        }
        if plan.raster == Some(RasterOrder::Hilbert) {
            return Err("expected another raster than \"hilbert\" with decomposition = \"grouped\" in axe.plan: it needs counts of tiles that are known".to_owned());
        }
        match config.is_grouped() {
            true => Ok(config),
            false => config.data_parallel().alone().grouped().ok_or_else(|| {
                format!("expected no swap_ab and schedule = \"cooperative\" with decomposition = \"grouped\" in axe.plan, got {config}")
            }),
        }
    }

    /// Why no tile's depth can be shared through memory, where it cannot.
    const fn not_shared(&self) -> Option<&'static str> {
        match self.batch {
            Some(_) => Some("a batch"),
            None if self.m == DYNAMIC => Some("rows that are counted at run time"),
            None => None,
        }
    }

    fn with_stages(&self, plan: &Plan, config: Wgmma) -> Configured<Wgmma> {
        let Some(stages) = plan.stages else {
            return Ok(config);
        };
        config.with_stages(stages).ok_or_else(|| {
            format!(
                "expected 2 to {} stages in axe.plan, got {stages}",
                config.stages()
            )
        })
    }

    fn clustered(&self, plan: &Plan, config: Wgmma) -> Configured<Wgmma> {
        let Some(shape) = plan.cluster else {
            return Ok(config);
        };
        let [rows, columns] = shape;
        let ctas = rows.checked_mul(columns).filter(|_| rows > 0);
        if !ctas.is_some_and(|ctas| [1, 2, 4, 8].contains(&ctas)) {
            return Err(format!(
                "expected a cluster of 1, 2, 4 or 8 CTAs in axe.plan, got {shape:?}"
            ));
        }
        let cluster = Cluster::of(shape);
        if config.cluster_splits() > 1 && cluster != Cluster::Alone {
            return Err(format!(
                "expected no cluster with decomposition = \"cluster_split_k\" in axe.plan, got {shape:?}"
            ));
        }
        let [m, n, k] = config.tile();
        config.in_clusters(cluster, self.k_first()).ok_or_else(|| {
            let [of_b, of_a] = shape;
            let parts = match (of_a, of_b) {
                (1, _) => format!("part of B falls into {of_b} parts"),
                (_, 1) => format!("part of A falls into {of_a} parts"),
                _ => format!("parts of A and B fall into {of_a} and {of_b} parts"),
            };
            let ctas = cluster.ctas();
            format!(
                "expected a tile in axe.plan whose {parts} of whole periods of 8 rows for a cluster of {ctas}, got [{m}, {n}, {k}]"
            )
        })
    }

    fn with_raster(&self, plan: &Plan, config: Wgmma) -> Wgmma {
        let own = config.raster();
        let order = plan.raster.unwrap_or(match self.is_mostly_written() {
            true => RasterOrder::Rows,
            false => own.order,
        });
        // Other orders have no groups.
        let swizzle = match order {
            RasterOrder::Groups | RasterOrder::Snake => plan.swizzle.unwrap_or(own.swizzle),
            _ => 1,
        };
        config.with_raster(Raster { order, swizzle })
    }

    fn mma(&self, plan: &Plan, chip: &Chip) -> Configured<Mma> {
        if let Some(scales) = &self.scales {
            return Ok(mma_scaled::tile(scales));
        }
        let chosen = offered::mma::choose_of(self.query_where(false), chip, |config| {
            self.can_have(&Config::Mma(*config))
        });
        let (mut config, _) = chosen.ok_or("no tile fits in shared memory")?;
        config.tile = plan.tile.unwrap_or(config.tile);
        config.stages = plan.stages.unwrap_or(config.stages);
        if let Some([rows, columns]) = plan.warps {
            config.warps = Grid { rows, columns };
        }
        if plan.tile.is_some() || plan.decomposition.is_some() {
            config.splits = 1;
        }
        self.check_mma(config, chip)?;
        self.in_parts(plan, config)
    }

    /// The configuration of `mma.sync` with a plan's way to share depth.
    fn in_parts(&self, plan: &Plan, config: Mma) -> Configured<Mma> {
        let splits = plan.splits.unwrap_or(1);
        match (plan.decomposition, self.not_shared()) {
            (None | Some(Sharing::DataParallel), _) => Ok(config),
            (Some(Sharing::SplitK), Some(reason)) if splits > 1 => Err(format!(
                "expected no depth shared through memory in axe.plan for {reason}"
            )),
            (Some(Sharing::SplitK), _) => config.split_k(splits, self.k).ok_or_else(|| {
                format!(
                    "expected splits of 1 to {MOST_SPLITS} with decomposition = \"split_k\" in axe.plan, and a step along k for each, got {splits} of {config}",
                    config = Config::Mma(config)
                )
            }),
            (Some(other), _) => Err(format!(
                "expected decomposition = \"data_parallel\" or \"split_k\" in axe.plan of a product by mma.sync, got {}",
                other.entry()
            )),
        }
    }

    fn check_mma(&self, config: Mma, chip: &Chip) -> Configured<()> {
        let Grid { rows, columns } = config.warps;
        let sizes = [&config.tile[..], &[rows, columns, config.stages]].concat();
        if sizes.iter().any(|size| !(1..=4096).contains(size)) {
            return Err(
                "expected tile, warps and stages of axe.plan between 1 and 4096".to_owned(),
            );
        }
        let threads = config.threads(self.unit);
        if threads % 32 != 0 || !(32..=1024).contains(&threads) || config.stages < 2 {
            return Err(format!(
                "expected at least 2 stages and a multiple of 32 threads up to 1024, got {} stages and {threads} threads",
                config.stages
            ));
        }
        let bytes = config.shared_bytes(element_bytes(self.element));
        if bytes > chip.shared_bytes {
            return Err(format!(
                "a ring of {} stages takes {bytes} bytes of shared memory, and a CTA of {} has {}",
                config.stages, chip.name, chip.shared_bytes
            ));
        }
        Ok(())
    }
}
