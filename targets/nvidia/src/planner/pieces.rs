//! What a CTA of a kernel with roles goes through: tiles, parts of their depth, or both.

use super::specialised::Tiles;
use super::tail::Tail;
use super::wide::WideTile;
use axe_dialect::RasterOrder;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::ir::Val;

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

/// What a CTA computes at once: a tile, or a part of one's depth.
pub(super) struct Piece<'c> {
    pub origin: Origin<'c>,
    pub steps: Steps<'c>,
    /// Where its sums go, for another kernel to add up; none where its results are stored.
    pub sums: Option<[Val<'c>; 3]>,
}

impl<'c> Tiles<'_, 'c> {
    /// A loop over this CTA's pieces, or with `turns` over this team's.
    pub(super) fn visit(
        &self,
        code: Code<'c>,
        turns: bool,
        body: impl Fn(Code<'c>, Piece<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        if let Some(tail) = &self.body.tail {
            return self.visit_tail(code, turns, tail, body);
        }
        let tile = self.body.tile;
        let counts = &self.grid.counts;
        code.for_tiles(counts, (tile.order, tile.group), turns, |code, at| {
            let &[ref outer @ .., row, column] = at else {
                return Err(layout_error(
                    code.builder.location,
                    "a loop over tiles has two indices",
                ));
            };
            let origin = self.origin(code, [row, column])?;
            let piece = match (tile.parts, outer.first().copied()) {
                (2.., Some(part)) => Piece {
                    steps: self.share(code, part, tile.parts)?,
                    sums: Some([part, origin.row, origin.column]),
                    origin,
                },
                (_, batch) => Piece {
                    steps: self.all_steps(code)?,
                    sums: None,
                    origin: Origin { batch, ..origin },
                },
            };
            body(code, piece)
        })
    }

    /// The tiles that fill turns, then the parts of the others.
    fn visit_tail(
        &self,
        code: Code<'c>,
        turns: bool,
        tail: &Tail,
        body: impl Fn(Code<'c>, Piece<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let tile = self.body.tile;
        let &[rows, columns] = self.grid.counts.as_slice() else {
            let what = "the last tiles of one product alone are shared";
            return Err(layout_error(code.builder.location, what));
        };
        let by_number = (RasterOrder::Rows, 1);
        let origin = |code: Code<'c>, number| {
            let order = (tile.order, tile.group);
            self.origin(code, code.tile_at(number, [rows, columns], order)?)
        };
        let whole = [code.index(1)?, code.index(tail.whole)?];
        code.for_tiles(&whole, by_number, turns, |code, at| {
            let piece = Piece {
                origin: origin(code, last(code, at)?)?,
                steps: self.all_steps(code)?,
                sums: None,
            };
            body(code, piece)
        })?;
        let parts = [code.index(tile.tail)?, code.index(tail.rest)?];
        code.for_tiles(&parts, by_number, turns, |code, at| {
            let (part, number) = (first(code, at)?, last(code, at)?);
            // As many steps in each part: those beyond the last add zeros.
            let steps = Steps {
                first: Some(code.times(part, tail.steps)?),
                count: code.index(tail.steps)?,
            };
            let place = match tile.cluster {
                1 => number,
                cluster => code.add(code.times(number, cluster)?, code.rank_in_cluster()?)?,
            };
            let sums = [part, code.times(place, tile.shape[0])?, code.index(0)?];
            let number = code.add(number, code.index(tail.whole)?)?;
            let piece = Piece {
                origin: origin(code, number)?,
                steps,
                sums: Some(sums),
            };
            body(code, piece)
        })
    }

    fn all_steps(&self, code: Code<'c>) -> PassResult<'c, Steps<'c>> {
        Ok(Steps {
            first: None,
            count: code.index(self.steps())?,
        })
    }

    /// Where this CTA's tile is, of the cluster's at this place.
    fn origin(&self, code: Code<'c>, at: [Val<'c>; 2]) -> PassResult<'c, Origin<'c>> {
        let rank = match self.body.tile.cluster {
            1 => None,
            _ => Some(code.rank_in_cluster()?),
        };
        let [row, column] = corner(code, self.body.tile, at, rank)?;
        Ok(Origin {
            batch: None,
            row,
            column,
            limit: [self.grid.rows, code.index(self.body.gemm.n)?],
        })
    }
}

/// The first row and column of the tile of a cluster's CTA of this rank, where the cluster's tiles are at this place.
pub(super) fn corner<'c>(
    code: Code<'c>,
    tile: WideTile,
    [row, column]: [Val<'c>; 2],
    rank: Option<Val<'c>>,
) -> PassResult<'c, [Val<'c>; 2]> {
    let [m, n, _] = tile.shape;
    let in_cluster = |at| match rank {
        None => Ok(at),
        Some(rank) => code.add(code.times(at, tile.cluster)?, rank),
    };
    let [row, column] = match tile.beside {
        true => [row, in_cluster(column)?],
        false => [in_cluster(row)?, column],
    };
    Ok([code.times(row, m)?, code.times(column, n)?])
}

fn first<'c>(code: Code<'c>, at: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
    let lost = || layout_error(code.builder.location, "a loop over tiles has indices");
    at.first().copied().ok_or_else(lost)
}

fn last<'c>(code: Code<'c>, at: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
    let lost = || layout_error(code.builder.location, "a loop over tiles has indices");
    at.last().copied().ok_or_else(lost)
}
