//! Transposes of 16-bit matrices whose rows begin anywhere in memory, so that no vector is a row's. A CTA's tile has its rows in shared memory
//! as they are in global memory, modulo vectors: rows are as far apart there, so that what is read in vectors is written in vectors,
//! whichever column a vector begins with. Each column leaves from its first boundary of a sector on, a little further down than the tile
//! begins; for that the tile has more rows than it moves of a column. Nothing else than the ends of columns is stored by element.

use super::plan::Permutation;
use crate::facts::chip::{ACCESS_BYTES, SECTOR_BYTES};
use crate::planner::columns::Columns;
use crate::planner::layouts::layout;
use crate::planner::problem::count;
use crate::planner::row_tile::RowTile;
use crate::vocabulary::WARP;
use axe_dialect::Level;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::ir::{Int, Val};
use melior::ir::Type;

/// Bytes of an element.
const BYTES: i64 = 2;
/// Elements of a vector, and of a sector.
const VECTOR: i64 = ACCESS_BYTES / BYTES;
const SECTOR: i64 = SECTOR_BYTES / BYTES;
/// Warps of a CTA: each brings rows that begin alike, of which there is one in as many as a sector has elements, and moves columns that do.
const WARPS: i64 = SECTOR;
/// Elements of a column that a CTA moves, four a lane.
const ROWS: i64 = 4 * WARP;
/// Columns of a vector of each of 16 lanes, of which the last are the next tile's: rows begin inside the first vector, and columns
/// are as many of each sector.
const READ: i64 = 16 * VECTOR;
const COLUMNS: i64 = READ - SECTOR;
/// Rows of the tile, as many of each warp: more than a column's last elements are further down.
const HELD: i64 = ROWS + 2 * SECTOR;

/// Such a transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unaligned {
    /// How many matrices there are, and their rows and columns.
    batch: i64,
    rows: i64,
    columns: i64,
}

/// A CTA's tile: its matrix, and its first row and column.
#[derive(Clone, Copy)]
struct Tile<'c> {
    matrix: Val<'c>,
    row: Val<'c>,
    column: Val<'c>,
}

/// The tile in shared memory: `HELD` rows, as rows that begin alike, and as columns.
struct Room<'c> {
    all: Val<'c>,
    alike: Val<'c>,
    by_column: Val<'c>,
}

impl Unaligned {
    /// Reads a permutation of elements of so many bytes; none where it is another, or vectors are parts of rows.
    pub(super) fn of(plan: &Permutation, bytes: i64) -> Option<Self> {
        let (batch, rows, columns) = match (plan.order().as_slice(), plan.from.as_slice()) {
            ([1, 0], &[rows, columns]) => (1, rows, columns),
            // Rows of the source that begin alike are as many apart in all matrices.
            ([0, 2, 1], &[batch, rows, columns]) if rows % WARPS == 0 => (batch, rows, columns),
            _ => return None,
        };
        let is_unaligned = rows % VECTOR != 0 || columns % VECTOR != 0;
        let fits = is_unaligned && bytes == BYTES && batch > 0 && rows >= HELD && columns >= READ;
        fits.then_some(Self {
            batch,
            rows,
            columns,
        })
    }

    /// What a CTA moves.
    pub(super) const fn tile(self) -> RowTile {
        RowTile {
            rows: ROWS,
            columns: COLUMNS,
            along: READ / VECTOR,
            vector: VECTOR,
            across: WARPS * WARP * VECTOR / READ,
        }
    }

    /// The source and the result as matrices.
    pub(super) const fn matrices(self) -> [[i64; 2]; 2] {
        [
            [self.batch.saturating_mul(self.rows), self.columns],
            [self.batch.saturating_mul(self.columns), self.rows],
        ]
    }

    /// Elements of the result.
    const fn elements(self) -> i64 {
        let [_, [rows, columns]] = self.matrices();
        rows.saturating_mul(columns)
    }

    /// Tiles of a column, the last of which has its last elements, and those of a row.
    const fn tiles(self) -> [i64; 2] {
        [
            count(self.rows - SECTOR + 1, ROWS),
            count(self.columns, COLUMNS),
        ]
    }

    /// CTAs: columns are written from their beginning on.
    pub(super) fn grid<'c>(self, code: Code<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let [down, across] = self.tiles();
        let others = across.saturating_mul(self.batch);
        Columns::in_order(down).grid(code, code.index(others)?, others)
    }

    fn place<'c>(self, code: Code<'c>) -> PassResult<'c, Tile<'c>> {
        let [down, across] = self.tiles();
        let [row, others] = Columns::in_order(down).place(code)?;
        let across = code.index(across)?;
        Ok(Tile {
            matrix: code.div(others, across)?,
            row: code.times(row, ROWS)?,
            column: code.times(code.rem(others, across)?, COLUMNS)?,
        })
    }

    /// Elements from one row of the tile to the next: as many as in global memory, modulo vectors, where these are odd, so that lanes
    /// that read a column meet no bank twice. Else rows are written by element.
    const fn pitch(self) -> i64 {
        let least = READ + VECTOR;
        match self.columns % 2 {
            1 => least + self.columns % VECTOR,
            _ => least + 1,
        }
    }

    fn room<'c>(self, code: Code<'c>, element: Type<'c>) -> PassResult<'c, Room<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let pitch = self.pitch();
        let strided =
            |shape: [i64; 2], strides: [i64; 2]| Layout::strided(&shape, &strides).map_err(failed);
        let all = code.alloc(
            &[HELD, pitch],
            element,
            &strided([HELD, pitch], [pitch, 1])?,
        )?;
        let view = |shape: [i64; 2], strides| {
            let layout = strided(shape, strides)?;
            code.view(all, code.memref(&shape, element, &layout, Some("shared"))?)
        };
        Ok(Room {
            all,
            alike: view([HELD / WARPS, WARPS * pitch], [WARPS * pitch, 1])?,
            by_column: view([pitch, HELD], [1, pitch])?,
        })
    }

    /// The tile's way from the source to the result.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn emit<'c>(
        self,
        kernel: &Kernel<'c>,
        element: Type<'c>,
        [source, result]: [Val<'c>; 2],
    ) -> PassResult<'c> {
        let code = kernel.code;
        let moved = Moved {
            work: self,
            element,
            source,
            result,
            tile: self.place(code)?,
            room: self.room(code, element)?,
        };
        code.thread_groups(Level::Warp, |code| moved.bring(code))?;
        code.barrier()?;
        if self.rows % WARPS != 0 {
            moved.bring_last(code)?;
            code.barrier()?;
        }
        code.thread_groups(Level::Warp, |code| moved.store(code))
    }

    /// Whether rows are written to the tile in vectors.
    const fn is_in_vectors(self) -> bool {
        self.columns % 2 == 1
    }
}

/// A warp's columns: one of each sector of a tile's, which begin alike.
#[derive(Clone, Copy)]
struct Alike<'c> {
    /// The first of them, in the tile and as a row of the result.
    first: Val<'c>,
    row: Val<'c>,
    /// Elements in front of the first boundary of a sector, and where that is in the result.
    skipped: Val<'c>,
    boundary: Val<'c>,
}

/// What is moved: a tile from the source to the result.
struct Moved<'c> {
    work: Unaligned,
    element: Type<'c>,
    source: Val<'c>,
    result: Val<'c>,
    tile: Tile<'c>,
    room: Room<'c>,
}

impl<'c> Moved<'c> {
    /// Brings a warp's rows. They are one of each row of a matrix whose rows are as many together as there are warps, at the same place
    /// inside a vector.
    fn bring(&self, code: Code<'c>) -> PassResult<'c> {
        let Self {
            work, tile, room, ..
        } = self;
        let failed = |error| layout_error(code.builder.location, error);
        let warp = warp(code)?;
        let shape = [HELD / WARPS, READ];
        // Lanes that write neighbours by element meet no bank twice; vectors would be four words apart.
        let each = if work.is_in_vectors() { VECTOR } else { 2 };
        let lanes = WARP.min(READ / each);
        let of_lanes = [
            (shape[0] * lanes / WARP, READ / lanes, "reg"),
            (WARP / lanes, lanes, "lane"),
            (READ / each / lanes, each, "reg"),
            (lanes, 1, "lane"),
            (each, 1, "reg"),
        ];
        let of_lanes = layout(&of_lanes, &[]).map_err(failed)?;
        let vector = code.index(VECTOR)?;
        let begin = code.times(warp, work.columns)?;
        let behind = code.rem(begin, vector)?;
        let aligned = code.times(code.div(begin, vector)?, VECTOR)?;
        let extents = [
            work.batch.saturating_mul(work.rows) / WARPS,
            WARPS.saturating_mul(work.columns),
        ];
        let from = code.reinterpret(
            self.source,
            &extents.map(Int::Known),
            &[extents[1], 1].map(Int::Known),
            &[1, 1],
        )?;
        let row = code.add(code.times(tile.matrix, work.rows)?, tile.row)?;
        let together = code.index(WARPS)?;
        let at = [code.div(row, together)?, code.add(aligned, tile.column)?];
        let from = code.global_box(from, &extents, &at, &shape)?;
        let own = code.load(from, code.fragment(&shape, self.element, &of_lanes)?)?;
        let pitch = work.pitch();
        let place = code.sub(code.add(code.times(warp, pitch)?, vector)?, behind)?;
        let place = match work.is_in_vectors() {
            true => code.times(code.div(place, vector)?, VECTOR)?,
            false => place,
        };
        let extents = [HELD / WARPS, WARPS * pitch];
        let to = code.shared_box(room.alike, &extents, &[code.index(0)?, place], &shape)?;
        code.store(own, to)
    }

    /// Brings the last rows, which are less than warps, by element.
    fn bring_last(&self, code: Code<'c>) -> PassResult<'c> {
        let Self {
            work, tile, room, ..
        } = self;
        let first = work.rows - work.rows % WARPS;
        let end = code.add(tile.row, code.index(HELD)?)?;
        let is_last = code.at_most(code.index(first + 1)?, end)?;
        let bring = |code: Code<'c>| {
            let failed = |error| layout_error(code.builder.location, error);
            let shape = [WARPS, READ];
            let warps = [
                (WARPS, 1, "warp"),
                (READ / WARP, 1, "reg"),
                (WARP, 1, "lane"),
            ];
            let warps = layout(&warps, &[]).map_err(failed)?;
            let first = code.index(first)?;
            let [extents, _] = work.matrices();
            let from = code.global_box(self.source, &extents, &[first, tile.column], &shape)?;
            let own = code.load(from, code.fragment(&shape, self.element, &warps)?)?;
            let at = [code.sub(first, tile.row)?, code.index(VECTOR)?];
            let to = code.shared_box(room.all, &[HELD, work.pitch()], &at, &shape)?;
            code.store(own, to)
        };
        code.branch(is_last, bring, |_| Ok(()))
    }

    /// Stores a warp's columns, one of each sector of columns. Warps store neighbours at a time: 67,041 x 1001 takes 88 us so, and 95 where
    /// a warp goes through several of a sector one after the other (by a kernel of eight warps in CUDA C++).
    fn store(&self, code: Code<'c>) -> PassResult<'c> {
        let Self { work, tile, .. } = self;
        let own = self.alike(code, warp(code)?)?;
        let left = code.above(code.index(work.columns)?, code.add(tile.column, own.first)?)?;
        let columns = code.min(code.ceil_div(left, SECTOR)?, code.index(COLUMNS / SECTOR)?)?;
        let of_all = |code: Code<'c>, store: &dyn Fn(Code<'c>, Val<'c>) -> PassResult<'c>| {
            let each = |code, at, _: &[Val<'c>]| store(code, at).map(|()| Vec::new());
            code.for_each(columns, 1, &[], each).map(drop)
        };
        let [down, _] = work.tiles();
        let is_first = code.at_most(tile.row, code.index(0)?)?;
        let is_last = code.at_most(code.index((down - 1) * ROWS)?, tile.row)?;
        let head = |code| of_all(code, &|code, at| self.head(code, own, at));
        code.branch(is_first, head, |_| Ok(()))?;
        let last = |code| of_all(code, &|code, at| self.last(code, own, at));
        let whole = |code| of_all(code, &|code, at| self.in_vectors(code, own, at));
        code.branch(is_last, last, whole)
    }

    /// Column `first` of each sector.
    fn alike(&self, code: Code<'c>, first: Val<'c>) -> PassResult<'c, Alike<'c>> {
        let tile = self.tile;
        let sector = code.index(SECTOR)?;
        let row = code.add(code.times(tile.matrix, self.work.columns)?, tile.column)?;
        let row = code.add(row, first)?;
        let begin = code.add(code.times(row, self.work.rows)?, tile.row)?;
        let skipped = code.sub(sector, code.rem(begin, sector)?)?;
        Ok(Alike {
            first,
            row,
            skipped: code.rem(skipped, sector)?,
            boundary: code.times(code.ceil_div(begin, SECTOR)?, SECTOR)?,
        })
    }

    /// The column of sector `at`, in the tile and as a row of the result.
    fn place(&self, code: Code<'c>, own: Alike<'c>, at: Val<'c>) -> PassResult<'c, [Val<'c>; 2]> {
        let within = code.times(at, SECTOR)?;
        let column = code.add(code.add(within, own.first)?, code.index(VECTOR)?)?;
        Ok([column, code.add(own.row, within)?])
    }

    /// So many elements of a column of the tile in registers.
    fn column(
        &self,
        code: Code<'c>,
        (rows, layout): (i64, axe_layout::Result<Layout>),
        at: [Val<'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let apart = Layout::strided(&[rows], &[self.work.pitch()]).map_err(failed)?;
        let memref = code.memref(&[rows], self.element, &apart, Some("shared"))?;
        let column = code.slice(self.room.by_column, &at, memref)?;
        let layout = layout.map_err(failed)?;
        code.load(column, code.fragment(&[rows], self.element, &layout)?)
    }

    /// So many of the result's elements, as they lie in memory.
    fn flat(&self, code: Code<'c>, elements: i64) -> PassResult<'c, Val<'c>> {
        code.reinterpret(self.result, &[Int::Known(elements)], &[Int::Known(1)], &[1])
    }

    /// Where the boundary of sector `at`'s column is.
    fn boundary(&self, code: Code<'c>, own: Alike<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        let further = code.times(at, SECTOR.saturating_mul(self.work.rows))?;
        code.add(own.boundary, further)
    }

    /// From the boundary on.
    fn in_vectors(&self, code: Code<'c>, own: Alike<'c>, at: Val<'c>) -> PassResult<'c> {
        let [column, _] = self.place(code, own, at)?;
        let of_lanes = [(WARP, 1, "lane"), (ROWS / WARP, 1, "reg")];
        let value = self.column(code, (ROWS, layout(&of_lanes, &[])), [column, own.skipped])?;
        let elements = self.work.elements() - self.work.elements() % SECTOR;
        let to = self.flat(code, elements)?;
        let boundary = self.boundary(code, own, at)?;
        code.store(
            value,
            code.global_box(to, &[elements], &[boundary], &[ROWS])?,
        )
    }

    /// A column's elements in front of its first boundary.
    fn head(&self, code: Code<'c>, own: Alike<'c>, at: Val<'c>) -> PassResult<'c> {
        let [column, row] = self.place(code, own, at)?;
        let value = self.column(code, of_lanes(SECTOR), [column, code.index(0)?])?;
        let elements = self.work.elements();
        let end = self.boundary(code, own, at)?;
        let to = code.first_rows(self.flat(code, elements)?, &[elements], end)?;
        let begin = code.times(row, self.work.rows)?;
        code.store(
            value,
            code.global_box(to, &[elements], &[begin], &[SECTOR])?,
        )
    }

    /// From the boundary to the column's end.
    fn last(&self, code: Code<'c>, own: Alike<'c>, at: Val<'c>) -> PassResult<'c> {
        let [column, row] = self.place(code, own, at)?;
        let first = code.add(self.tile.row, own.skipped)?;
        self.by_element(code, ROWS, [column, own.skipped], [row, first])?;
        let rows = code.index(ROWS)?;
        let (skipped, first) = (code.add(own.skipped, rows)?, code.add(first, rows)?);
        self.by_element(code, SECTOR, [column, skipped], [row, first])
    }

    /// Of a row of the result, as far as it has them.
    fn by_element(
        &self,
        code: Code<'c>,
        rows: i64,
        at: [Val<'c>; 2],
        to: [Val<'c>; 2],
    ) -> PassResult<'c> {
        let own = self.column(code, of_lanes(rows), at)?;
        let [_, extents] = self.work.matrices();
        code.store(own, code.global_box(self.result, &extents, &to, &[rows])?)
    }
}

/// So many elements, neighbours of neighbouring lanes.
fn of_lanes(elements: i64) -> (i64, axe_layout::Result<Layout>) {
    let own = match elements / WARP {
        0 => {
            let copies = [(WARP / elements, elements, "lane")];
            layout(&[(elements, 1, "lane")], &copies)
        }
        each => layout(&[(each, 1, "reg"), (WARP, 1, "lane")], &[]),
    };
    (elements, own)
}

/// The number of the warp.
fn warp<'c>(code: Code<'c>) -> PassResult<'c, Val<'c>> {
    code.div(code.thread("x")?, code.index(WARP)?)
}
