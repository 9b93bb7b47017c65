//! `axe.for_tiles`: a grid of tiles, shared out among the blocks of the launch; `axe.tile_at`: the place of one.

use super::emitter::Emitter;
use super::value::Bound;
use crate::state::rings::{RingKey, Side, rings_below};
use crate::state::site::pending;
use crate::state::threads::parents;
use crate::state::types;
use axe_dialect::{RasterOrder, ops};
use axe_passes::PassResult;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::walk::{block_arguments, blocks, nested};
use axe_passes::ir::{Int, Ints, Predicate};
use axe_passes::ir::{Op, Val, attribute};
use melior::ir::operation::OperationLike;

/// Rows of tiles in a group at most: tiles are counted in 32 bits, also where their rows and columns come at run time.
pub(crate) const MOST_GROUPED: i64 = 1 << 16;

/// The raster order of the last two dimensions, and rows of tiles that are visited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raster {
    order: RasterOrder,
    swizzle: i64,
}

impl Raster {
    fn of(op: Op<'_>) -> Option<Self> {
        let order = op.attribute("raster").ok().and_then(RasterOrder::cast)?;
        let swizzle = op.attribute("swizzle").ok().and_then(attribute::integer);
        Some(Self {
            order,
            swizzle: swizzle.unwrap_or(1).max(1),
        })
    }
}

/// Whether a loop in a loop over tiles that an operator is, or is in, waits for all but the last products.
fn products_stay_under_way(op: Op<'_>) -> bool {
    let tiles = std::iter::once(op).chain(parents(op));
    let mut tiles = tiles.filter(|op| [ops::FOR_TILES, "scf.for"].contains(&name(*op).as_str()));
    let waits = |op: Op<'_>| name(op) == ops::WAIT && pending(op) > 0;
    tiles.any(|tiles| nested(tiles, &|_| true).into_iter().any(waits))
}

/// A tile's row and column.
type Place<'c> = (Int<'c>, Int<'c>);

impl<'c> Emitter<'c> {
    /// `axe.for_tiles`.
    pub(crate) fn for_tiles(&mut self, op: Op<'c>) -> PassResult<'c> {
        let raster = Raster::of(op).ok_or_else(|| self.error("expected a raster order"))?;
        let Some(body) = blocks(op).first().copied() else {
            return Err(self.error("expected the body of a loop"));
        };
        let ints = self.ints();
        let mut counts = Vec::new();
        for count in operands(op) {
            counts.push(ints.cast(self.int(count)?)?);
        }
        let mut total = Int::Known(1);
        for &count in &counts {
            total = ints.times(total, count)?;
        }
        let rings = rings_below(op);
        let turns = self.turns(op)?;
        // The CTAs of a cluster visit the same tiles.
        let first = ints.div(self.grid("gpu.block_id")?, self.cluster)?;
        let step = ints.div(self.grid("gpu.grid_dim")?, self.cluster)?;
        let own = ints.add(first, ints.times(turns.number, step)?)?;
        let before = self.cursor_values(&rings)?;
        let ordered = turns.count > 1 && !rings.is_empty();
        if ordered {
            self.begin_turns(turns)?;
        }
        self.pass_tiles(op, &rings, turns.number)?;
        let subtiles = self.carries_subtiles(op)?;
        let stride = ints.mul(step, turns.count)?;
        let places = |emitter: &Self, tile| emitter.places(op, raster, &counts, tile);
        // Who fills stages knows the first tile before it waits, and each next one at the end of the one before. Of counts that come at
        // run time there may be none, and a place is a quotient by them.
        let fills = rings.iter().any(|(_, side)| *side == Side::Producer);
        let known = counts.iter().all(|count| count.known().is_some());
        let ahead = match fills && known && turns.count == 1 && self.start.in_roles {
            true => self.before_start(places(self, own)?)?,
            false => Vec::new(),
        };
        self.finish_start()?;
        let carried = (rings.as_slice(), subtiles, ahead);
        self.loop_over([own, total, stride], carried, |emitter, tile, ahead| {
            let tile = Int::Value(tile);
            let here = match ahead {
                [] => places(emitter, tile)?,
                ahead => ahead.iter().copied().map(Int::Value).collect(),
            };
            emitter.bind_tile(op, &here)?;
            emitter.loops += 1;
            emitter.tile(body, turns)?;
            emitter.loops -= 1;
            emitter.pass_tiles(op, &rings, Int::Known(turns.count - 1))?;
            match ahead {
                [] => Ok(Vec::new()),
                _ => {
                    let ints = emitter.ints();
                    let last = ints.sub(total, Int::Known(1))?;
                    places(emitter, ints.min(ints.add(tile, stride)?, last)?)
                }
            }
        })?;
        if turns.count == 1 {
            return Ok(());
        }
        // Whichever group had the last tile, all go on behind it.
        self.set_cursors(&rings, &before);
        let rest = ints.max(ints.sub(total, first)?, Int::ZERO)?;
        let tiles = ints.divide(ints.add(rest, ints.sub(step, Int::Known(1))?)?, step)?;
        if ordered {
            self.end_turns(turns, tiles)?;
        }
        self.pass_tiles(op, &rings, tiles)
    }

    /// Numbers that are computed before what waits at the start: LLVM moves them to where they are used.
    fn before_start(&self, numbers: Vec<Int<'c>>) -> PassResult<'c, Vec<Int<'c>>> {
        let pin = |number| match number {
            Int::Value(value) => {
                let pinned = self.after("", &[value])?;
                Ok(pinned.first().map_or(number, |value| Int::Value(*value)))
            }
            Int::Known(_) => Ok(number),
        };
        numbers.into_iter().map(pin).collect()
    }

    /// A loop over numbers of tiles, which carries the state of rings, that of subtiles where `subtiles` says so, and the places of the
    /// next tile where they are found `ahead`: `body` gives those of the next turn.
    fn loop_over(
        &mut self,
        bounds: [Int<'c>; 3],
        (rings, subtiles, ahead): (&[RingKey], bool, Vec<Int<'c>>),
        body: impl FnOnce(&mut Self, Val<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Int<'c>>>,
    ) -> PassResult<'c> {
        let values = |emitter: &Self, numbers: Vec<Int<'c>>| {
            let values = numbers
                .into_iter()
                .map(|number| emitter.ints().value(number));
            values.collect::<PassResult<'c, Vec<_>>>()
        };
        let mut carried = values(self, ahead)?;
        let places = carried.len();
        carried.extend(self.cursor_values(rings)?);
        carried.extend(self.subtile_values(subtiles)?);
        let bounds = bounds.map(|bound| self.ints().value(bound));
        let mut start = bounds.into_iter().collect::<PassResult<'c, Vec<_>>>()?;
        start.extend(&carried);
        let i32 = types::integer(self.builder, 32);
        let (region, arguments, inner) = self.builder.region(&vec![i32; 1 + carried.len()]);
        let outside = std::mem::replace(&mut self.builder, inner);
        let Some((&tile, (ahead, cursors))) = arguments
            .split_first()
            .and_then(|(tile, carried)| Some((tile, carried.split_at_checked(places)?)))
        else {
            return Err(self.error("a loop without its variable"));
        };
        self.set_carried(rings, cursors);
        let next = body(self, tile, ahead)?;
        let mut yielded = values(self, next)?;
        yielded.extend(self.cursor_values(rings)?);
        yielded.extend(self.subtile_values(subtiles)?);
        self.builder
            .operation("scf.yield", &yielded, &[], &[], Vec::new())?;
        self.builder = outside;
        let types = vec![i32; carried.len()];
        let emitted = self
            .builder
            .operation("scf.for", &start, &types, &[], vec![region])?;
        self.set_carried(rings, results(emitted).get(places..).unwrap_or_default());
        Ok(())
    }

    /// `axe.tile_at`.
    pub(crate) fn tile_at(&mut self, op: Op<'c>) -> PassResult<'c> {
        let raster = Raster::of(op).ok_or_else(|| self.error("expected a raster order"))?;
        let ints = self.ints();
        let mut numbers = Vec::new();
        for operand in operands(op) {
            numbers.push(ints.cast(self.int(operand)?)?);
        }
        let &[tile, rows, columns] = numbers.as_slice() else {
            return Err(self.error("expected the number of a tile, and two counts of tiles"));
        };
        let (row, column) = self.place(raster, tile, rows, columns)?;
        let index = Ints::index(self.builder);
        for (result, place) in results(op).into_iter().zip([row, column]) {
            let value = index.value(index.cast(self.here(op, place)?)?)?;
            self.bind(result, Bound::Scalar(value));
        }
        Ok(())
    }

    /// This CTA's number in its cluster. Where CTAs follow each other along `x` it comes of the block's: the hardware would divide by
    /// extents that it has at run time.
    pub(crate) fn rank_in_cluster(&self) -> PassResult<'c, Int<'c>> {
        if let &[ctas, 1, 1] = self.kernel.cluster.as_slice() {
            return self.ints().rem(self.grid("gpu.block_id")?, ctas);
        }
        let rank = "nvvm.read.ptx.sreg.cluster.ctarank";
        let i32 = types::integer(self.builder, 32);
        Ok(Int::Value(self.builder.value(rank, &[], i32, &[])?))
    }

    /// `gpu.cluster_block_id` along the dimension that alone has several CTAs; whether it is that.
    pub(crate) fn block_in_cluster(&mut self, op: Op<'c>) -> PassResult<'c, bool> {
        let along_x = self.builder.parsed("#gpu<dim x>")?;
        let is_along_x = op.attribute("dimension") == Ok(along_x);
        let is_rank = matches!(self.kernel.cluster.as_slice(), [_, 1, 1]);
        if name(op) != "gpu.cluster_block_id" || !is_along_x || !is_rank {
            return Ok(false);
        }
        let index = Ints::index(self.builder);
        let rank = index.value(index.cast(self.rank_in_cluster()?)?)?;
        if let Some(&result) = results(op).first() {
            self.bind(result, Bound::Scalar(rank));
        }
        Ok(true)
    }

    /// `gpu.block_id` or `gpu.grid_dim` along `x`.
    fn grid(&self, name: &str) -> PassResult<'c, Int<'c>> {
        let dimension = self.builder.parsed("#gpu<dim x>")?;
        let index = self.builder.index_type();
        let value = self
            .builder
            .value(name, &[], index, &[("dimension", dimension)])?;
        self.ints().cast(Int::Value(value))
    }

    /// The place of a tile, along each dimension that is counted.
    fn places(
        &self,
        op: Op<'c>,
        raster: Raster,
        counts: &[Int<'c>],
        tile: Int<'c>,
    ) -> PassResult<'c, Vec<Int<'c>>> {
        let ints = self.ints();
        let &[ref outer @ .., rows, columns] = counts else {
            return Err(self.error("expected at least two counts of tiles"));
        };
        let mut rest = tile;
        let mut places = Vec::new();
        if !outer.is_empty() {
            let area = ints.times(rows, columns)?;
            let mut batch = ints.divide(rest, area)?;
            rest = ints.modulo(rest, area)?;
            for (at, &count) in outer.iter().enumerate().rev() {
                if at == 0 {
                    places.push(batch);
                } else {
                    places.push(ints.modulo(batch, count)?);
                    batch = ints.divide(batch, count)?;
                }
            }
            places.reverse();
        }
        let (row, column) = self.place(raster, rest, rows, columns)?;
        places.extend([self.here(op, row)?, self.here(op, column)?]);
        Ok(places)
    }

    /// Binds the body's arguments to the place of a tile.
    fn bind_tile(&mut self, op: Op<'c>, places: &[Int<'c>]) -> PassResult<'c> {
        let index = Ints::index(self.builder);
        let arguments = blocks(op).into_iter().flat_map(block_arguments);
        for (argument, &place) in arguments.zip(places) {
            let value = index.value(index.cast(place)?)?;
            self.bind(argument, Bound::Scalar(value));
        }
        Ok(())
    }

    /// A number that is computed here, where products stay under way around a loop: LLVM moves divisions to where their
    /// results are used, and one between products under way and the wait for them has ptxas complete each product before
    /// the next (C7514).
    fn here(&self, op: Op<'c>, number: Int<'c>) -> PassResult<'c, Int<'c>> {
        let Int::Value(value) = number else {
            return Ok(number);
        };
        if !products_stay_under_way(op) {
            return Ok(number);
        }
        match self.after("", &[value])?.as_slice() {
            &[value] => Ok(Int::Value(value)),
            _ => Err(self.error("expected a number")),
        }
    }

    fn place(
        &self,
        raster: Raster,
        tile: Int<'c>,
        rows: Int<'c>,
        columns: Int<'c>,
    ) -> PassResult<'c, Place<'c>> {
        let ints = self.ints();
        match raster.order {
            RasterOrder::Rows => Ok((ints.divide(tile, columns)?, ints.modulo(tile, columns)?)),
            RasterOrder::Columns => Ok((ints.modulo(tile, rows)?, ints.divide(tile, rows)?)),
            RasterOrder::Groups => self.grouped(tile, rows, columns, raster.swizzle, false),
            RasterOrder::Snake => self.grouped(tile, rows, columns, raster.swizzle, true),
            RasterOrder::Hilbert => self.hilbert(tile, rows, columns),
        }
    }

    /// Groups of `swizzle` rows, each from column to column; the last group may have fewer rows.
    fn grouped(
        &self,
        tile: Int<'c>,
        rows: Int<'c>,
        columns: Int<'c>,
        swizzle: i64,
        snake: bool,
    ) -> PassResult<'c, Place<'c>> {
        if swizzle > MOST_GROUPED {
            return Err(self.error(format!(
                "expected a swizzle of at most {MOST_GROUPED} rows of tiles, got {swizzle}"
            )));
        }
        let ints = self.ints();
        let area = ints.mul(columns, swizzle)?;
        // One group, whose number is 0.
        let (number, within) = match rows.known() {
            Some(rows) if rows <= swizzle => (Int::ZERO, tile),
            _ => (ints.divide(tile, area)?, ints.modulo(tile, area)?),
        };
        let first = ints.mul(number, swizzle)?;
        let (row, column) = self.in_group(number, within, rows, swizzle)?;
        let row = ints.add(first, row)?;
        if !snake {
            return Ok((row, column));
        }
        let last = ints.sub(columns, Int::Known(1))?;
        let odd = ints.compare(Predicate::Equal, ints.and(number, 1)?, Int::Known(1))?;
        let back = ints.sub(last, column)?;
        Ok((row, ints.select(odd, back, column)?))
    }

    /// The row and the column of a tile `within` the group of this `number`. A warp's first copy waits for this: where the height of the
    /// last group is known, both heights are divided by, which are constants, and not by the one that holds.
    fn in_group(
        &self,
        number: Int<'c>,
        within: Int<'c>,
        rows: Int<'c>,
        swizzle: i64,
    ) -> PassResult<'c, Place<'c>> {
        let ints = self.ints();
        let split = |height: Int<'c>| -> PassResult<'c, Place<'c>> {
            Ok((ints.modulo(within, height)?, ints.divide(within, height)?))
        };
        let Some(rows) = rows.known() else {
            let left = ints.sub(rows, ints.mul(number, swizzle)?)?;
            return split(ints.min(left, Int::Known(swizzle))?);
        };
        let (groups, last) = (rows / swizzle, rows % swizzle);
        match (groups, last) {
            (_, 0) => split(Int::Known(swizzle)),
            (0, _) => split(Int::Known(last)),
            _ => {
                let whole = ints.less(number, Int::Known(groups))?;
                let (many, few) = (split(Int::Known(swizzle))?, split(Int::Known(last))?);
                let choose = |a, b| ints.select(whole, a, b);
                Ok((choose(many.0, few.0)?, choose(many.1, few.1)?))
            }
        }
    }

    /// Hilbert's curve over the smallest square of a power of two that covers the grid, without the places
    /// outside the grid: at each level the tile's rank finds its quadrant among the areas that are inside.
    fn hilbert(&self, tile: Int<'c>, rows: Int<'c>, columns: Int<'c>) -> PassResult<'c, Place<'c>> {
        let (Some(height), Some(width)) = (rows.known(), columns.known()) else {
            return Err(self.error(
                "raster(hilbert) needs counts that are known when compiling: expected another raster order",
            ));
        };
        let mut walk = Walk {
            rank: tile,
            row: Int::ZERO,
            column: Int::ZERO,
            flip: Int::ZERO,
            swap: Int::ZERO,
        };
        let mut half = u64::try_from(height.max(width))
            .unwrap_or(1)
            .next_power_of_two()
            / 2;
        while half > 0 {
            walk = walk.descend(self.ints(), i64::try_from(half).unwrap_or(1), height, width)?;
            half /= 2;
        }
        Ok((walk.row, walk.column))
    }
}

/// A square of Hilbert's curve: its corner, the rank within it, and how its frame lies.
#[derive(Clone, Copy)]
struct Walk<'c> {
    rank: Int<'c>,
    row: Int<'c>,
    column: Int<'c>,
    /// 1 when the frame's axes point backwards.
    flip: Int<'c>,
    /// 1 when the frame's axes are exchanged.
    swap: Int<'c>,
}

impl<'c> Walk<'c> {
    /// The quadrant, `half` tiles a side, that holds the rank.
    fn descend(self, ints: Ints<'c>, half: i64, height: i64, width: i64) -> PassResult<'c, Self> {
        let mut left = self.rank;
        let mut quadrants = Vec::new();
        // The curve in its own frame goes (0, 0), (0, 1), (1, 1), (1, 0); the first and the last quadrant
        // exchange the axes, and the last one turns them round.
        for (own_row, own_column, turns) in [
            (0, 0, (0, 1)),
            (0, 1, (0, 0)),
            (1, 1, (0, 0)),
            (1, 0, (1, 1)),
        ] {
            let across = ints.xor(self.flip, Int::Known(own_row))?;
            let along = ints.xor(self.flip, Int::Known(own_column))?;
            // Where the two differ, exchanging the axes is negating both.
            let turn = if own_row == own_column {
                Int::ZERO
            } else {
                self.swap
            };
            let row = ints.add(self.row, ints.mul(ints.xor(across, turn)?, half)?)?;
            let column = ints.add(self.column, ints.mul(ints.xor(along, turn)?, half)?)?;
            let inside = |at: Int<'c>, limit: i64| {
                let room = ints.sub(Int::Known(limit), at)?;
                ints.max(ints.min(room, Int::Known(half))?, Int::ZERO)
            };
            let area = ints.times(inside(row, height)?, inside(column, width)?)?;
            let quadrant = Self {
                rank: left,
                row,
                column,
                flip: ints.xor(self.flip, Int::Known(turns.0))?,
                swap: ints.xor(self.swap, Int::Known(turns.1))?,
            };
            quadrants.push((ints.less(left, area)?, quadrant));
            left = ints.sub(left, area)?;
        }
        let Some((_, mut chosen)) = quadrants.pop() else {
            return Ok(self);
        };
        for (holds, quadrant) in quadrants.into_iter().rev() {
            let choose = |a: Int<'c>, b: Int<'c>| ints.select(holds, a, b);
            chosen = Self {
                rank: choose(quadrant.rank, chosen.rank)?,
                row: choose(quadrant.row, chosen.row)?,
                column: choose(quadrant.column, chosen.column)?,
                flip: choose(quadrant.flip, chosen.flip)?,
                swap: choose(quadrant.swap, chosen.swap)?,
            };
        }
        Ok(chosen)
    }
}
