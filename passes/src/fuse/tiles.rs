//! The tiles of rows that are longer than one: in a loop, or one after the other where they are loaded for good.

use super::evaluate::{Evaluator, Loaded};
use crate::PassResult;
use crate::ir::Val;

impl<'c> Evaluator<'_, 'c> {
    /// A loop over the tiles of the rows, or of the CTA's part of them, at each of which `body` forms values.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn for_columns(
        &self,
        starts: &[Val<'c>],
        body: impl FnOnce(&mut Self, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let [count, step] = self.range()?;
        self.for_columns_of([self.code.index(0)?, count, step], starts, body)
    }

    /// The same in two loops where rows are not made of whole tiles: `body` knows of all tiles but the last that they are inside. Tiles that are loaded for good
    /// have no loop, since registers have no index.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn for_tiles(
        &self,
        starts: &[Val<'c>],
        body: impl Fn(&mut Self, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        if self.held.is_some() {
            let mut carried = starts.to_vec();
            for mut tile in self.held_tiles()? {
                carried = body(&mut tile, &carried)?;
            }
            return Ok(carried);
        }
        let Some(edge) = self.edge()? else {
            return self.for_columns(starts, body);
        };
        let [count, step] = self.range()?;
        let code = self.code;
        let whole = [code.index(0)?, code.min(count, edge)?, step];
        let results = self.for_columns_of(whole, starts, |inner, carried| {
            inner.inside = true;
            body(inner, carried)
        })?;
        self.for_columns_of([edge, count, step], &results, body)
    }

    /// How many of [`Self::for_tiles`]' tiles are known to be inside; none where that is not known of tiles one by one.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn inside_tiles(&self) -> PassResult<'c, Option<Val<'c>>> {
        if self.held.is_some() {
            return Ok(None);
        }
        let Some(edge) = self.edge()? else {
            return Ok(None);
        };
        let [count, _] = self.range()?;
        let whole = self.code.min(count, edge)?;
        self.code.ceil_div(whole, self.registers.shape[1]).map(Some)
    }

    /// How far the tile that may have columns beyond the row's is behind the first of the CTA's; none where rows are made of whole tiles.
    fn edge(&self) -> PassResult<'c, Option<Val<'c>>> {
        let beyond = self.cut.columns % self.registers.shape[1];
        if beyond == 0 {
            return Ok(None);
        }
        let code = self.code;
        let [count, step] = self.range()?;
        let edge = match (self.first(), self.peel()) {
            (_, Some(_)) => code.mul(code.div(count, step)?, step)?,
            (Some(first), None) => code.above(code.index(self.cut.columns - beyond)?, first)?,
            (None, None) => code.index(self.cut.columns - beyond)?,
        };
        Ok(Some(edge))
    }

    /// The tiles that are loaded for good.
    fn held_tiles(&self) -> PassResult<'c, Vec<Self>> {
        let tile = |(at, loaded): (i64, &Loaded<'c>)| {
            let mut tile = self.tile_at(at)?;
            tile.known.extend(loaded);
            Ok(tile)
        };
        let held = self.held.unwrap_or_default();
        let places = (0..).map(|number| number * self.registers.shape[1]);
        places.zip(held).map(tile).collect()
    }

    /// The first tile of the CTA's columns.
    pub(super) fn first_tile(&self) -> PassResult<'c, Self> {
        match self.held_tiles()?.into_iter().next() {
            Some(tile) => Ok(tile),
            None => self.tile_at(0),
        }
    }

    /// The tile so many columns behind the first of the CTA's.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn tile_at(&self, along: i64) -> PassResult<'c, Self> {
        let code = self.code;
        let along = code.index(along)?;
        let column = match self.first() {
            Some(first) => code.add(first, along)?,
            None => along,
        };
        let mut tile = self.at_column(code, column);
        tile.along = Some(along);
        Ok(tile)
    }

    /// The first of the CTA's columns, where it has a part of them.
    pub(super) fn first(&self) -> Option<Val<'c>> {
        self.part.map(|part| part.columns()[0])
    }

    /// How many columns the CTA has, and those of a tile.
    fn range(&self) -> PassResult<'c, [Val<'c>; 2]> {
        let count = match self.part {
            Some(part) => part.columns()[1],
            None => self.origin.limit[1],
        };
        Ok([count, self.code.index(self.registers.shape[1])?])
    }

    /// A loop over tiles whose columns are counted from the first of the CTA's.
    fn for_columns_of(
        &self,
        range: [Val<'c>; 3],
        starts: &[Val<'c>],
        body: impl FnOnce(&mut Self, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        self.code.for_range(range, starts, |code, at, carried| {
            let column = match self.first() {
                Some(first) => code.add(first, at)?,
                None => at,
            };
            let mut tile = self.at_column(code, column);
            tile.along = Some(at);
            body(&mut tile, carried)
        })
    }
}
