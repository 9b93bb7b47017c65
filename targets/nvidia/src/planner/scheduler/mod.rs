//! Tile schedulers: what a CTA goes through. A [`WorkTile`] is a tile, or a part of one's depth.
//!
//! * data-parallel: a tile is one CTA's;
//! * split-K: so many CTAs share each tile's depth, through memory or in a cluster ([`Scheduler::share`]);
//! * grouped: the tiles of groups of rows, whose ends are data ([`grouped`]);
//! * stream-K: tiles that fill waves, then the parts of the others ([`stream_k`]).
//!
//! The grid is persistent: as many clusters as run at once, each of which goes through its share.

pub(super) mod grouped;
pub(super) mod stream_k;

use super::config::{Cluster, Raster, Wgmma};
use super::problem::count;
use crate::facts::chip::Chip;
use axe_dialect::RasterOrder;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};
use grouped::{GroupTile, Groups};
use stream_k::LastWave;

/// The steps along k that a CTA goes: `count` of them from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Steps<'c> {
    /// None: from the first.
    pub first: Option<Val<'c>>,
    pub count: Val<'c>,
}

impl<'c> Steps<'c> {
    /// Those after the first.
    pub(super) fn rest(self, code: Code<'c>) -> PassResult<'c, Self> {
        let count = code.sub(self.count, code.index(1)?)?;
        Ok(Self { count, ..self })
    }
}

/// What a CTA computes at once.
pub(super) struct WorkTile<'c> {
    pub origin: Origin<'c>,
    pub steps: Steps<'c>,
    /// Where its sums go, for another kernel to add up; none where its results are stored.
    pub sums: Option<[Val<'c>; 3]>,
    /// The group that its rows are of, where rows are in groups.
    pub group: Option<GroupTile<'c>>,
}

/// The extents of what is scheduled; the rows and the batch may be dynamic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    pub batch: Option<i64>,
    pub m: i64,
    pub n: i64,
    pub k: i64,
}

/// The tiles of a result, as its CTAs go through them.
pub(super) struct Scheduler<'c> {
    config: Wgmma,
    extents: Extents,
    /// The tiles of the last wave, where other CTAs share them than have the rest.
    last: Option<LastWave>,
    /// Products when there is a batch, or parts of the depth; rows, columns of tiles.
    counts: Vec<Val<'c>>,
    /// The result's rows.
    rows: Val<'c>,
    /// The groups of rows, where there are some.
    groups: Option<Groups<'c>>,
}

impl<'c> Scheduler<'c> {
    /// The tiles of a product of A, the argument; with groups of its rows, of their offsets and B.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        config: Wgmma,
        extents: Extents,
        last: Option<LastWave>,
        (a, groups): (&Argument<'c>, Option<(Argument<'c>, Argument<'c>)>),
    ) -> PassResult<'c, Self> {
        let [high, wide] = config.span();
        let outer = match (config.splits(), extents.batch) {
            (1, None) => None,
            (1, Some(batch)) => Some(code.leading(a.memref, batch)?),
            (splits, _) => Some(code.index(splits)?),
        };
        let dynamic = extents.m == DYNAMIC;
        let rows = if dynamic {
            code.leading(a.memref, DYNAMIC)?
        } else {
            code.index(extents.m)?
        };
        let row_tiles = if dynamic {
            code.ceil_div(rows, high)?
        } else {
            code.index(count(extents.m, high))?
        };
        let columns = code.index(count(extents.n, wide))?;
        Ok(Self {
            config,
            extents,
            last,
            counts: outer.into_iter().chain([row_tiles, columns]).collect(),
            rows,
            groups: groups
                .map(|(offsets, b)| Groups::new(code, offsets, &b))
                .transpose()?,
        })
    }

    /// A loop over this CTA's work tiles, or with `pingpong` over this warpgroup's.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn visit(
        &self,
        code: Code<'c>,
        pingpong: bool,
        body: impl Fn(Code<'c>, WorkTile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        if let Some(last) = &self.last {
            return self.visit_waves(code, pingpong, last, body);
        }
        if let Some(groups) = &self.groups {
            return self.visit_groups(code, groups, body);
        }
        let Raster { order, swizzle } = self.config.raster();
        code.for_tiles(&self.counts, (order, swizzle), pingpong, |code, at| {
            let &[ref outer @ .., row, column] = at else {
                return Err(lost(code));
            };
            let origin = self.origin(code, [row, column])?;
            let work = match (self.config.splits(), outer.first().copied()) {
                (splits @ 2.., Some(part)) => WorkTile {
                    steps: self.share(code, part, splits)?,
                    sums: Some([part, origin.row, origin.column]),
                    group: None,
                    origin,
                },
                (_, batch) => WorkTile {
                    steps: match self.config.cluster_splits() {
                        1 => self.all_steps(code)?,
                        splits => self.share(code, code.rank_in_cluster()?, splits)?,
                    },
                    sums: None,
                    group: None,
                    origin: Origin { batch, ..origin },
                },
            };
            body(code, work)
        })
    }

    /// The tiles that fill waves, then the parts of the others.
    fn visit_waves(
        &self,
        code: Code<'c>,
        pingpong: bool,
        last: &LastWave,
        body: impl Fn(Code<'c>, WorkTile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let config = self.config;
        let &[rows, columns] = self.counts.as_slice() else {
            let what = "the last tiles of one product alone are shared";
            return Err(layout_error(code.builder.location, what));
        };
        let by_number = (RasterOrder::Rows, 1);
        let origin = |code: Code<'c>, number| {
            let Raster { order, swizzle } = config.raster();
            self.origin(
                code,
                code.tile_at(number, [rows, columns], (order, swizzle))?,
            )
        };
        let whole = [code.index(1)?, code.index(last.whole)?];
        code.for_tiles(&whole, by_number, pingpong, |code, at| {
            let &[_, number] = at else {
                return Err(lost(code));
            };
            let work = WorkTile {
                origin: origin(code, number)?,
                steps: self.all_steps(code)?,
                sums: None,
                group: None,
            };
            body(code, work)
        })?;
        let parts = [code.index(last.splits)?, code.index(last.rest)?];
        code.for_tiles(&parts, by_number, pingpong, |code, at| {
            let &[part, number] = at else {
                return Err(lost(code));
            };
            let (steps, sums) = self.part(code, last, [part, number])?;
            let number = code.add(number, code.index(last.whole)?)?;
            let work = WorkTile {
                origin: origin(code, number)?,
                steps,
                sums: Some(sums),
                group: None,
            };
            body(code, work)
        })
    }

    /// The steps of a part of the last wave's tile of this number, and the place of its sums.
    fn part(
        &self,
        code: Code<'c>,
        last: &LastWave,
        [part, number]: [Val<'c>; 2],
    ) -> PassResult<'c, (Steps<'c>, [Val<'c>; 3])> {
        // As many steps in each part: those beyond the last add zeros.
        let steps = Steps {
            first: Some(code.times(part, last.steps)?),
            count: code.index(last.steps)?,
        };
        let place = match self.config.cluster() {
            Cluster::Alone => number,
            cluster => {
                let first = code.times(number, cluster.ctas())?;
                code.add(first, code.rank_in_cluster()?)?
            }
        };
        let first = code.times(place, self.config.tile()[0])?;
        Ok((steps, [part, first, code.index(0)?]))
    }

    /// Steps along all of k.
    pub(super) fn steps(&self) -> i64 {
        count(self.extents.k, self.config.tile()[2])
    }

    /// Steps of a tile, or of a part of one in the last wave.
    pub(super) fn steps_of(&self, work: &WorkTile<'c>) -> i64 {
        match (&self.last, work.sums) {
            (Some(last), Some(_)) => last.steps,
            _ => self.steps(),
        }
    }

    /// All steps of a tile.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn all_steps(&self, code: Code<'c>) -> PassResult<'c, Steps<'c>> {
        Ok(Steps {
            first: None,
            count: code.index(self.steps())?,
        })
    }

    /// The steps of the CTA `rank` of so many: the first ranks have one more where they do not fall into equal shares.
    /// Quotients of the ranks' would do as well, but ptxas 13.3 takes the difference of two that it has as halves of
    /// products for negative where the second is 0.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn share(
        &self,
        code: Code<'c>,
        rank: Val<'c>,
        of: i64,
    ) -> PassResult<'c, Steps<'c>> {
        let (each, over) = (self.steps() / of, self.steps() % of);
        let first = code.times(rank, each)?;
        if over == 0 {
            return Ok(Steps {
                first: Some(first),
                count: code.index(each)?,
            });
        }
        let over = code.index(over)?;
        let before = code.min(rank, over)?;
        let more = code.min(code.sub(over, before)?, code.index(1)?)?;
        Ok(Steps {
            first: Some(code.add(first, before)?),
            count: code.add(code.index(each)?, more)?,
        })
    }

    /// Where this CTA's tile is, of the cluster's at this place.
    fn origin(&self, code: Code<'c>, at: [Val<'c>; 2]) -> PassResult<'c, Origin<'c>> {
        let rank = match self.config.cluster() {
            Cluster::Alone => None,
            _ => Some(code.rank_in_cluster()?),
        };
        let [row, column] = corner(code, self.config, at, rank)?;
        Ok(Origin {
            batch: None,
            row,
            column,
            limit: [self.rows, code.index(self.extents.n)?],
        })
    }
}

/// The first row and column of the tile of a cluster's CTA of this rank, where the cluster's tiles are at this place.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn corner<'c>(
    code: Code<'c>,
    config: Wgmma,
    [row, column]: [Val<'c>; 2],
    rank: Option<Val<'c>>,
) -> PassResult<'c, [Val<'c>; 2]> {
    let [m, n, _] = config.tile();
    let in_cluster = |at, ctas, number| code.add(code.times(at, ctas)?, number);
    let [row, column] = match (rank, config.cluster().shape()) {
        (None, _) => [row, column],
        (Some(rank), [ctas, 1]) => [in_cluster(row, ctas, rank)?, column],
        (Some(rank), [1, ctas]) => [row, in_cluster(column, ctas, rank)?],
        (Some(rank), [rows, columns]) => {
            let wide = code.index(columns)?;
            [
                in_cluster(row, rows, code.div(rank, wide)?)?,
                in_cluster(column, columns, code.rem(rank, wide)?)?,
            ]
        }
    };
    Ok([code.times(row, m)?, code.times(column, n)?])
}

/// The grid of a kernel whose clusters go through the tiles: as many as there are multiprocessors for.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn persistent<'c>(
    builder: &Builder<'c>,
    [tiles, one, batch]: [Val<'c>; 3],
    cluster: i64,
    chip: &Chip,
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let all = code.mul(tiles, batch)?;
    let most = code.index(chip.clusters(cluster))?;
    let clusters = code.min(all, most)?;
    let blocks = if cluster == 1 {
        clusters
    } else {
        code.times(clusters, cluster)?
    };
    Ok([blocks, one, one])
}

fn lost<'c>(code: Code<'c>) -> PassError<'c> {
    layout_error(code.builder.location, "a loop over tiles has two indices")
}
