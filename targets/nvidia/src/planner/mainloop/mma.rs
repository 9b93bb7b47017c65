//! `mma.sync` and scalar multiply-adds: a ring of tiles in shared memory, filled by `cp.async`, and fragments in registers.
//!
//! Elements that `cp.async` does not copy, as rows are not aligned to 4 bytes, go through registers: threads load those of a stage
//! before the step's products, and store them behind its barrier. Without one between them, ptxas issues each load where its store
//! waits for it.

use crate::planner::layouts::{shared_box, shared_ring, shared_tile, transposed};
use crate::planner::row_tile::RowTile;
use axe_layout::Layout;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::arguments::Argument;
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::Val;
use axe_passes::{PassError, PassResult};
use melior::ir::Type;

/// How the operands of a product are staged.
#[derive(Clone, Copy, Debug)]
pub(in crate::planner) struct Staged<'c> {
    /// The type of the elements of A and B.
    pub element: Type<'c>,
    /// Tiles in the ring.
    pub stages: i64,
    /// The depth of a tile along k.
    pub depth: i64,
    /// The depth of the fragments along k, which divides that of the tile.
    pub step: i64,
    /// Threads of the CTA.
    pub threads: i64,
}

/// One operand's way from global memory to registers.
#[derive(Clone, Debug)]
pub(in crate::planner) struct Path<'c> {
    global: Val<'c>,
    extents: Vec<i64>,
    ring: Val<'c>,
    shape: [i64; 2],
    stage: Type<'c>,
    /// The part of a stage that a step reads.
    part: Type<'c>,
    fragment: Type<'c>,
    /// A stage in the registers of threads that load single elements of it, where they do.
    elements: Option<Type<'c>>,
    /// Whether k is the first dimension.
    transposed: bool,
}

impl<'c> Staged<'c> {
    /// The way of an operand whose tile has `rows` rows of the result's extent; `swapped` says that memory has
    /// k first, `by_element` that threads load single elements; `fragment` is the layout of a step for the shape `[rows, step]`.
    pub(in crate::planner) fn path(
        self,
        code: Code<'c>,
        global: Argument<'c>,
        (swapped, by_element): (bool, bool),
        rows: i64,
        fragment: &Layout,
    ) -> PassResult<'c, Path<'c>> {
        let failed = |error| layout_error(code.builder.location, error);
        let box_of = |k| if swapped { [k, rows] } else { [rows, k] };
        let (shape, part) = (box_of(self.depth), box_of(self.step));
        let fragment = match swapped {
            true => transposed(fragment, &[rows, self.step]).map_err(failed)?,
            false => fragment.clone(),
        };
        let (element, bytes) = (self.element, element_bytes(self.element));
        let shared =
            |shape: &[i64; 2], layout: &Layout| code.memref(shape, element, layout, Some("shared"));
        let ring = shared_ring(self.stages, shape, bytes).map_err(failed)?;
        // Threads that share a stage unevenly copy its elements.
        let elements = elements(shape, self.threads).layout().ok();
        let elements = elements
            .filter(|_| by_element)
            .map(|layout| code.fragment(&shape, element, &layout))
            .transpose()?;
        Ok(Path {
            global: global.memref,
            extents: global.extents,
            ring: code.alloc(&[self.stages, shape[0], shape[1]], element, &ring)?,
            shape,
            stage: shared(&shape, &shared_tile(shape, bytes).map_err(failed)?)?,
            part: shared(&part, &shared_box(shape, part, bytes).map_err(failed)?)?,
            fragment: code.fragment(&part, element, &fragment)?,
            elements,
            transposed: swapped,
        })
    }
}

/// A stage of this shape whose elements so many threads load one by one, neighbours beside each other.
fn elements([rows, columns]: [i64; 2], threads: i64) -> RowTile {
    let along = (1 << columns.trailing_zeros().min(10)).min(threads);
    RowTile {
        rows,
        columns,
        along,
        vector: 1,
        across: threads / along.max(1),
    }
}

/// The sum of the products of all tiles along k.
#[derive(Clone, Debug)]
pub(in crate::planner) struct Ring<'c> {
    /// How A and B are staged.
    pub staged: Staged<'c>,
    /// The ways of A and B.
    pub paths: [Path<'c>; 2],
    /// The tile of the result.
    pub origin: Origin<'c>,
    /// Tiles along k, and the first of them where others have those before it.
    pub tiles: i64,
    /// See [`Self::tiles`].
    pub first: Option<Val<'c>>,
    /// Whether A and B are stored transposed: `trans_a` and `trans_b`.
    pub transposed: [bool; 2],
    /// Whether fragments are loaded a step before they are multiplied, which hides the latency of shared memory
    /// behind the products and takes the registers of a second step.
    pub ahead: bool,
}

impl<'c> Ring<'c> {
    /// Adds the products to `start`, with `stages - 1` tiles on their way from global memory.
    pub(in crate::planner) fn emit(
        &self,
        code: Code<'c>,
        start: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        for k in 0..self.on_their_way() {
            let k = code.index(k)?;
            self.fetch(code, k, k)?;
        }
        let tiles = code.index(self.tiles)?;
        let sums = if self.ahead {
            code.wait(self.on_their_way() - 1)?;
            let [a, b] = self.load(code, code.index(0)?, 0)?;
            code.for_each(tiles, 1, &[start, a, b], |code, k, carried| {
                self.steps(code, k, carried)
            })?
        } else {
            code.for_each(tiles, 1, &[start], |code, k, carried| {
                self.whole(code, k, carried)
            })?
        };
        // No copy may still be writing when shared memory is used again.
        code.wait(0)?;
        sums.first().copied().ok_or_else(|| lost(code))
    }

    fn on_their_way(&self) -> i64 {
        self.staged.stages - 1
    }

    /// Tile `k` in steps: each loads the fragments of the next step, the last one those of the next tile's first,
    /// before its own products. The barrier before the last one's loads hands over the next tile, and frees the
    /// stage that the next round's copies overwrite: all its fragments are in registers.
    fn steps(
        &self,
        code: Code<'c>,
        k: Val<'c>,
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[mut sum, mut a, mut b] = carried else {
            return Err(lost(code));
        };
        let stages = code.index(self.staged.stages)?;
        let stage = code.rem(k, stages)?;
        let next = code.rem(code.add(k, code.index(1)?)?, stages)?;
        let steps = self.staged.depth / self.staged.step.max(1);
        let elements = self.load_ahead(code, k)?;
        if steps == 1 {
            self.fetch_ahead(code, k)?;
        }
        for step in 1..=steps {
            let fragments = if step < steps {
                self.load(code, stage, step)?
            } else {
                code.wait(self.on_their_way() - 1)?;
                self.store_ahead(code, k, &elements)?;
                self.load(code, next, 0)?
            };
            if step == 1 && steps > 1 {
                self.fetch_ahead(code, k)?;
            }
            sum = code.gemm([a, b, sum], self.transposed)?;
            [a, b] = fragments;
        }
        Ok(vec![sum, a, b])
    }

    /// Tile `k` as one step, whose fragments are loaded when the tile has arrived.
    fn whole(
        &self,
        code: Code<'c>,
        k: Val<'c>,
        carried: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[sum] = carried else {
            return Err(lost(code));
        };
        // The tile has arrived, and all threads are done with the one before: its stage is free.
        code.wait(self.on_their_way() - 1)?;
        self.fetch_ahead(code, k)?;
        let stage = code.rem(k, code.index(self.staged.stages)?)?;
        let [a, b] = self.load(code, stage, 0)?;
        Ok(vec![code.gemm([a, b, sum], self.transposed)?])
    }

    /// Starts the copies of the tile that is `stages - 1` after `k`.
    fn fetch_ahead(&self, code: Code<'c>, k: Val<'c>) -> PassResult<'c> {
        let (next, stage) = self.ahead(code, k)?;
        for path in self.paths.iter().zip(self.starts()) {
            if !self.goes_through_registers(path.0) {
                self.copy(code, path, next, stage)?;
            }
        }
        code.commit()
    }

    /// The elements of that tile which go through registers, of A and B.
    fn load_ahead(&self, code: Code<'c>, k: Val<'c>) -> PassResult<'c, [Option<Val<'c>>; 2]> {
        let (next, _) = self.ahead(code, k)?;
        let mut loaded = [None; 2];
        for (path, loaded) in self.paths.iter().zip(self.starts()).zip(&mut loaded) {
            let through = path
                .0
                .elements
                .filter(|_| self.goes_through_registers(path.0));
            if let Some(elements) = through {
                let zero = code.scalar(self.staged.element, Number::Of(0))?;
                let from = self.source(code, path, next)?;
                *loaded = Some(code.load_padded(from, zero, elements)?);
            }
        }
        Ok(loaded)
    }

    /// Stores what was loaded: the barrier before freed its stage, and the one behind the next tile hands it over.
    fn store_ahead(
        &self,
        code: Code<'c>,
        k: Val<'c>,
        elements: &[Option<Val<'c>>; 2],
    ) -> PassResult<'c> {
        let (_, stage) = self.ahead(code, k)?;
        for (path, elements) in self.paths.iter().zip(elements) {
            if let Some(elements) = elements {
                code.store(*elements, path.stage(code, stage)?)?;
            }
        }
        Ok(())
    }

    /// Whether an operand's elements are loaded a step before they are stored: they are handed over a tile later than copies, and
    /// so need a stage more.
    fn goes_through_registers(&self, path: &Path<'c>) -> bool {
        path.elements.is_some() && self.staged.stages > 2
    }

    /// The tile that is `stages - 1` after `k`, and its stage.
    fn ahead(&self, code: Code<'c>, k: Val<'c>) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        let next = code.add(k, code.index(self.on_their_way())?)?;
        Ok((next, code.rem(next, code.index(self.staged.stages)?)?))
    }

    /// Starts the copies of tile `k` of A and B, as one group. A tile beyond the end reads as zeros.
    fn fetch(&self, code: Code<'c>, k: Val<'c>, stage: Val<'c>) -> PassResult<'c> {
        for path in self.paths.iter().zip(self.starts()) {
            self.copy(code, path, k, stage)?;
        }
        code.commit()
    }

    /// Where the result's tile begins in the rows of A and B.
    const fn starts(&self) -> [Val<'c>; 2] {
        [self.origin.row, self.origin.column]
    }

    fn copy(
        &self,
        code: Code<'c>,
        path: (&Path<'c>, Val<'c>),
        k: Val<'c>,
        stage: Val<'c>,
    ) -> PassResult<'c> {
        let from = self.source(code, path, k)?;
        code.copy_async(from, path.0.stage(code, stage)?)
    }

    /// Tile `k` of an operand in global memory.
    fn source(
        &self,
        code: Code<'c>,
        (path, start): (&Path<'c>, Val<'c>),
        k: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let k = match self.first {
            Some(first) => code.add(first, k)?,
            None => k,
        };
        let depth = code.times(k, self.staged.depth)?;
        let at = if path.transposed {
            [depth, start]
        } else {
            [start, depth]
        };
        // A matrix that the whole batch shares has no number.
        let batch = self.origin.batch.filter(|_| path.extents.len() > at.len());
        let at: Vec<_> = batch.into_iter().chain(at).collect();
        code.global_box(path.global, &path.extents, &at, &path.shape)
    }

    /// The fragments of step `step` of the tile in `stage`.
    fn load(&self, code: Code<'c>, stage: Val<'c>, step: i64) -> PassResult<'c, [Val<'c>; 2]> {
        let at = step * self.staged.step;
        let [a, b] = &self.paths;
        Ok([a.load(code, stage, at)?, b.load(code, stage, at)?])
    }
}

impl<'c> Path<'c> {
    fn stage(&self, code: Code<'c>, stage: Val<'c>) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        code.slice(self.ring, &[stage, zero, zero], self.stage)
    }

    /// The fragment of the step that starts at `k` of the tile in `stage`.
    fn load(&self, code: Code<'c>, stage: Val<'c>, k: i64) -> PassResult<'c, Val<'c>> {
        let mut tile = self.stage(code, stage)?;
        if self.part != self.stage {
            let at = if self.transposed { [k, 0] } else { [0, k] };
            let at = [code.index(at[0])?, code.index(at[1])?];
            tile = code.slice(tile, &at, self.part)?;
        }
        code.load(tile, self.fragment)
    }
}

fn lost<'c>(code: Code<'c>) -> PassError<'c> {
    layout_error(code.builder.location, "the loop along k carries no sum")
}
