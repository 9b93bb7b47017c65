//! What a CTA goes through: tiles of rows of each problem, and the blocks of keys of a tile.

use super::config::Config;
use super::crossed::some_see_none;
use super::lengths::{self, Lengths, OfTile, are_even, with_length};
use super::masked::{Known, known, known_of_any};
use super::segments::{Seen, Table};
use super::sizes::Sizes;
use crate::planner::problem::count;
use axe_dialect::RasterOrder;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::attention::visible::{Edge, Visible};
use axe_passes::ir::{Int, Val};

/// A tile of rows.
#[derive(Clone, Copy)]
pub(super) struct Tile<'c> {
    /// The problem of the batch.
    pub batch: Val<'c>,
    /// Its first row.
    pub row: Val<'c>,
    /// The part of its keys; none where it has all.
    pub split: Option<Val<'c>>,
    /// The lengths of its problem.
    pub lengths: OfTile<'c>,
    /// The keys that its labels leave.
    pub seen: Option<Seen<'c>>,
}

/// Blocks of keys that a tile goes through from the last to the first: those before `masked` have keys that rows do not see, then
/// come whole ones, then those before `below` again have hidden keys.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'c> {
    /// The last block.
    pub top: Val<'c>,
    /// How many blocks there are beside it.
    pub rest: Val<'c>,
    /// Of those, the first so many are masked in every tile, and are no loop: a loop before that of whole blocks takes registers from it.
    pub peeled: i64,
    /// Of the others, in this order: masked, whole, masked; none where it is known that there are none.
    pub runs: [Option<Val<'c>>; 3],
}

/// The tiles of a problem, and their blocks.
pub(super) struct Tiles<'a, 'c> {
    visible: &'a Visible,
    lengths: Vec<Lengths<'c>>,
    segments: Option<(Table, Val<'c>)>,
    config: Config,
    batch: i64,
    rows: i64,
    keys: i64,
    by_problem: bool,
    pub(super) sizes: &'a Sizes<'c>,
}

impl<'a, 'c> Tiles<'a, 'c> {
    pub(super) fn new(
        attention: &'a Attention<'_>,
        config: Config,
        by_problem: bool,
        (lengths, segments): (Vec<Lengths<'c>>, Option<(Table, Val<'c>)>),
        sizes: &'a Sizes<'c>,
    ) -> Self {
        let extents = attention.extents;
        Self {
            visible: &attention.visible,
            lengths,
            segments,
            config,
            batch: extents.batch,
            rows: extents.rows,
            keys: extents.keys,
            by_problem,
            sizes,
        }
    }

    /// Tiles of a problem.
    pub(super) fn count(&self, code: Code<'c>) -> PassResult<'c, Int<'c>> {
        match self.sizes.knows(self.rows) {
            true => Ok(Int::Known(count(self.rows, self.config.rows()))),
            false => {
                let tiles = self.sizes.pieces(code, self.rows, self.config.rows())?;
                Ok(Int::Value(tiles))
            }
        }
    }

    /// Blocks of all keys.
    fn all_blocks(&self, code: Code<'c>) -> PassResult<'c, Val<'c>> {
        self.sizes.pieces(code, self.keys, self.config.keys)
    }

    /// Whether some part of a tile's keys may have no block.
    pub(super) fn may_be_empty(&self) -> bool {
        if !self.sizes.knows(self.keys) {
            return true;
        }
        let all = self.visible.is_all() && self.config.splits <= count(self.keys, self.config.keys);
        self.config.splits > 1 && !all
    }

    /// The tile of a problem, or its part, by its number, from the first rows on or from the last.
    fn tile(
        &self,
        code: Code<'c>,
        batch: Val<'c>,
        number: Val<'c>,
        backwards: bool,
    ) -> PassResult<'c, Tile<'c>> {
        let (mut tile, mut split) = (number, None);
        if self.config.splits > 1 {
            let splits = code.index(self.config.splits)?;
            tile = code.div(number, splits)?;
            split = Some(code.rem(number, splits)?);
        }
        if backwards {
            let ints = code.builder.ints();
            let last = ints.sub(self.count(code)?, Int::Known(1))?;
            tile = code.sub(ints.value(last)?, tile)?;
        }
        self.at(code, batch, tile, split)
    }

    /// The tile of a problem, or a part of it, by its place.
    fn at(
        &self,
        code: Code<'c>,
        batch: Val<'c>,
        tile: Val<'c>,
        split: Option<Val<'c>>,
    ) -> PassResult<'c, Tile<'c>> {
        Ok(Tile {
            batch,
            row: code.times(tile, self.config.rows())?,
            split,
            lengths: lengths::load(code, &self.lengths, batch)?,
            seen: match &self.segments {
                Some((table, memref)) => Some(table.load(code, *memref, [batch, tile])?),
                None => None,
            },
        })
    }

    /// Goes through the tiles of a CTA.
    pub(super) fn visit(
        &self,
        code: Code<'c>,
        body: impl FnOnce(Code<'c>, Tile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let ints = code.builder.ints();
        let tiles = ints.mul(self.count(code)?, self.config.splits)?;
        let batch = self.sizes.index(code, self.batch)?;
        if self.visible.is_all() || are_even(self.visible) {
            return self.in_order(code, batch, tiles, body);
        }
        let tiles = ints.value(tiles)?;
        if self.by_problem {
            return self.in_pairs(code, body);
        }
        self.longest_first(code, [batch, tiles], body)
    }

    /// Tile after tile; the CTAs of a cluster have tiles that follow each other, of which the last may have no rows.
    fn in_order(
        &self,
        code: Code<'c>,
        batch: Val<'c>,
        tiles: Int<'c>,
        body: impl FnOnce(Code<'c>, Tile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let ints = code.builder.ints();
        let cluster = self.config.cluster;
        let above = ints.add(tiles, Int::Known(cluster - 1))?;
        let clusters = ints.value(ints.div(above, cluster)?)?;
        let order = (RasterOrder::Rows, 1);
        code.for_tiles(&[batch, clusters], order, false, |code, at| {
            let &[batch, number] = at else {
                let lost = "a tile has a problem and rows";
                return Err(layout_error(code.builder.location, lost));
            };
            let number = match cluster {
                1 => number,
                _ => code.add(code.times(number, cluster)?, code.rank_in_cluster()?)?,
            };
            body(code, self.tile(code, batch, number, false)?)
        })
    }

    /// Problem after problem, so that their keys and values are read from L2: a long tile and a short one together are as long as
    /// other pairs.
    fn in_pairs(
        &self,
        code: Code<'c>,
        body: impl FnOnce(Code<'c>, Tile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let ints = code.builder.ints();
        let tiles = self.count(code)?;
        let pairs = ints.div(ints.add(tiles, Int::Known(1))?, 2)?;
        let one = code.index(1)?;
        let (cta, ctas) = (code.block("x")?, code.blocks("x")?);
        let all = match (pairs.known(), self.sizes.knows(self.batch)) {
            (Some(pairs), true) => code.index(self.batch * pairs)?,
            _ => code.mul(self.sizes.index(code, self.batch)?, ints.value(pairs)?)?,
        };
        let rounds = code.div(code.add(all, code.sub(code.sub(ctas, one)?, cta)?)?, ctas)?;
        code.for_each(rounds, 1, &[], |code, round, _| {
            let number = code.add(code.mul(round, ctas)?, cta)?;
            let pairs = ints.value(pairs)?;
            let (batch, place) = (code.div(number, pairs)?, code.rem(number, pairs)?);
            // The pair in the middle may be one tile: all CTAs come to it in turns.
            let turn = code.div(code.mul(batch, pairs)?, ctas)?;
            let pair = code.rem(code.add(place, turn)?, pairs)?;
            let last = ints.value(ints.sub(tiles, Int::Known(1))?)?;
            let last = code.sub(last, pair)?;
            let left = code.add(code.sub(last, pair)?, one)?;
            let own = code.min(left, code.index(2)?)?;
            code.for_each(own, 1, &[], |code, short, _| {
                let tile = code.where_at_most([one, short], [pair, last])?;
                body(code, self.at(code, batch, tile, None)?)?;
                Ok(Vec::new())
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Long tiles first, and every other round of the CTAs backwards: each CTA gets long and short ones.
    fn longest_first(
        &self,
        code: Code<'c>,
        [batch, tiles]: [Val<'c>; 2],
        body: impl FnOnce(Code<'c>, Tile<'c>) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let one = code.index(1)?;
        let dimension = [("dimension", code.builder.parsed("#gpu<dim x>")?)];
        let ctas =
            code.builder
                .value("gpu.grid_dim", &[], code.builder.index_type(), &dimension)?;
        let cta = code.block("x")?;
        let backwards = code.sub(code.sub(ctas, one)?, cta)?;
        let all = code.mul(batch, tiles)?;
        let (whole, rest) = (code.div(all, ctas)?, code.rem(all, ctas)?);
        let place = turned(code, whole, [cta, backwards])?;
        // place < rest, as place + 1 <= rest.
        let more = code.where_at_most([code.add(place, one)?, rest], [one, code.index(0)?])?;
        let rounds = code.add(whole, more)?;
        code.for_each(rounds, 1, &[], |code, round, _| {
            let own = turned(code, round, [cta, backwards])?;
            let number = code.add(code.mul(round, ctas)?, own)?;
            let [tile, batch] = code.tile_at(number, [tiles, batch], (RasterOrder::Rows, 1))?;
            body(code, self.tile(code, batch, tile, true)?)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// The blocks of a tile.
    pub(super) fn blocks(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, Blocks<'c>> {
        let keys = self.config.keys;
        let one = code.index(1)?;
        if self.visible.is_all() {
            let top = self.last(code)?;
            let (top, rest) = match tile.split {
                None => (self.behind_none(code, top)?, top),
                Some(_) => {
                    let [first, top] = self.part(code, tile, [code.index(0)?, top])?;
                    (top, code.sub(top, first)?)
                }
            };
            return Ok(Blocks {
                top,
                rest,
                peeled: 0,
                runs: [None, Some(rest), None],
            });
        }
        let block = code.index(keys)?;
        let [first, end] = self.some(code, tile)?;
        let [first, end] = self.all_where_none(code, tile, [first, end])?;
        // A tile that sees no key goes through one block, in which all are hidden.
        let end = code.builder.value(
            "arith.maxsi",
            &[code.ceil_div(end, keys)?, one],
            code.builder.index_type(),
            &[],
        )?;
        let top = code.sub(end, one)?;
        let first = code.min(code.div(first, block)?, top)?;
        let [first, top] = self.part(code, tile, [first, top])?;
        let rest = code.sub(top, first)?;
        let [whole_first, whole_end] = self.all(code, tile)?;
        let known = self.known();
        let below = code.sub(top, code.index(known.peeled)?)?;
        let whole_end = clamp(code, code.div(whole_end, block)?, [first, below])?;
        let whole_first = clamp(code, code.ceil_div(whole_first, keys)?, [first, whole_end])?;
        let run = |is: bool, from, to| is.then(|| code.sub(from, to)).transpose();
        Ok(Blocks {
            top: self.behind_none(code, top)?,
            rest,
            peeled: known.peeled,
            runs: [
                run(known.above, below, whole_end)?,
                run(true, whole_end, whole_first)?,
                run(known.below, whole_first, first)?,
            ],
        })
    }

    /// The first and the last block of a tile's part of its blocks; where it has none, that behind all keys, which has zeros.
    fn part(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        [first, top]: [Val<'c>; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let Some(split) = tile.split else {
            return Ok([first, top]);
        };
        let one = code.index(1)?;
        let blocks = code.add(code.sub(top, first)?, one)?;
        let splits = code.index(self.config.splits)?;
        let edge = |split| code.add(first, code.div(code.mul(split, blocks)?, splits)?);
        let (from, end) = (edge(split)?, edge(code.add(split, one)?)?);
        let last = code.sub(end, one)?;
        if !self.may_be_empty() {
            return Ok([from, last]);
        }
        let behind = self.all_blocks(code)?;
        let some = code.at_most(code.add(from, one)?, end)?;
        Ok([
            code.choose(some, [from, behind])?,
            code.choose(some, [last, behind])?,
        ])
    }

    /// The last of all blocks of keys; the first, where there are none.
    fn last(&self, code: Code<'c>) -> PassResult<'c, Val<'c>> {
        if self.sizes.knows(self.keys) {
            return code.index(count(self.keys, self.config.keys) - 1);
        }
        let one = code.index(1)?;
        let blocks = self.all_blocks(code)?;
        let some = code.builder.value(
            "arith.maxui",
            &[blocks, one],
            code.builder.index_type(),
            &[],
        )?;
        code.sub(some, one)
    }

    /// A block, or where there are no keys the one behind, which has zeros.
    fn behind_none(&self, code: Code<'c>, top: Val<'c>) -> PassResult<'c, Val<'c>> {
        if self.sizes.knows(self.keys) {
            return Ok(top);
        }
        let one = code.index(1)?;
        let keys = self.sizes.index(code, self.keys)?;
        code.where_at_most([one, keys], [top, one])
    }

    /// What is known of all tiles.
    fn known(&self) -> Known {
        if !self.sizes.knows(self.rows) || !self.sizes.knows(self.keys) {
            return known_of_any(self.visible, self.config);
        }
        known(self.visible, self.config, self.rows, self.keys)
    }

    /// The keys that some row of a tile sees.
    fn some(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        self.edges(code, tile, [false, true])
    }

    /// The keys that all rows of a tile see.
    fn all(&self, code: Code<'c>, tile: Tile<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        self.edges(code, tile, [true, false])
    }

    /// Where keys begin and end, of the greatest or the least edges of the tile's rows, within all keys.
    fn edges(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        greatest: [bool; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let index = code.builder.index_type();
        let (zero, keys) = (code.index(0)?, self.sizes.index(code, self.keys)?);
        let mut found = match (tile.seen, greatest) {
            (None, _) => [zero, keys],
            (Some([from, to, _, _]), [false, _]) | (Some([_, _, from, to]), _) => [from, to],
        };
        let sides = [
            (&self.visible.from, "arith.maxsi"),
            (&self.visible.to, "arith.minsi"),
        ];
        for (at, (edges, combine)) in sides.into_iter().enumerate() {
            for edge in edges {
                let own = self.edge(code, tile, *edge, greatest[at])?;
                found[at] = code.builder.value(combine, &[found[at], own], index, &[])?;
            }
            let above = code
                .builder
                .value("arith.maxsi", &[found[at], zero], index, &[])?;
            found[at] = code
                .builder
                .value("arith.minsi", &[above, keys], index, &[])?;
        }
        for edge in &self.visible.rows {
            let own = self.edge(code, tile, *edge, greatest[1])?;
            let none = code.builder.ints().less(Int::Value(own), Int::Known(0))?;
            found[1] = code.choose(none, [zero, found[1]])?;
        }
        Ok(found)
    }

    /// The keys that a tile goes through: all, where a row that sees none has the same weight for each.
    fn all_where_none(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        [first, end]: [Val<'c>; 2],
    ) -> PassResult<'c, [Val<'c>; 2]> {
        if !self.visible.all_where_none {
            return Ok([first, end]);
        }
        let (zero, keys) = (code.index(0)?, self.sizes.index(code, self.keys)?);
        let last = code.add(tile.row, code.index(self.config.rows() - 1)?)?;
        let rows = match self.sizes.int(self.rows) {
            Int::Known(rows) => code.index(rows - 1)?,
            Int::Value(rows) => code.sub(rows, code.index(1)?)?,
        };
        let last = code.min(last, rows)?;
        let rows = ([tile.row, last], keys);
        let none = some_see_none(code, self.visible, rows, &tile.lengths)?;
        Ok([
            code.choose(none, [zero, first])?,
            code.choose(none, [keys, end])?,
        ])
    }

    fn edge(
        &self,
        code: Code<'c>,
        tile: Tile<'c>,
        edge: Edge,
        greatest: bool,
    ) -> PassResult<'c, Val<'c>> {
        // The edge of the tile's first row, and by how much the others' is greater or less.
        let [least, most] = edge.over(0, self.config.rows());
        let constant = if greatest { most } else { least };
        let own = code.add(code.times(tile.row, edge.per_row)?, code.index(constant)?)?;
        with_length(code, own, edge.length, &tile.lengths)
    }
}

/// The second of two values in odd rounds.
fn turned<'c>(
    code: Code<'c>,
    round: Val<'c>,
    [even, odd]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let parity = code.rem(round, code.index(2)?)?;
    code.where_at_most([code.index(1)?, parity], [odd, even])
}

/// A value between two others.
fn clamp<'c>(
    code: Code<'c>,
    value: Val<'c>,
    [least, most]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let index = code.builder.index_type();
    let above = code
        .builder
        .value("arith.maxsi", &[value, least], index, &[])?;
    code.builder
        .value("arith.minsi", &[above, most], index, &[])
}
