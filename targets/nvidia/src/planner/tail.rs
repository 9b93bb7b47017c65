//! The tiles of a product's last turn, which are too few for the chip's multiprocessors: their depth is shared through memory
//! (stream-K with a turn for each tile that fills one; Osama et al., "Stream-K", 2023).
//!
//! The kernel goes through the tiles that fill turns as ever, then through the parts of the others, whose sums another
//! kernel adds up in order.

use super::Planner;
use super::cost::Problem;
use super::gemm::{count, persistent};
use super::layouts::RowTile;
use super::parts::{BYTES, Parts, padded_row};
use super::pieces::corner;
use super::specialised::Body;
use super::wide::{MOST_PARTS, WideTile};
use crate::facts::chip::Chip;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, launch, layout_error};
use axe_passes::fuse::arguments::{Out, argument_types, launched};
use axe_passes::fuse::evaluate::Origin;
use axe_passes::fuse::frame::{Frame, Operand, operand};
use axe_passes::ir::{Builder, Val};

/// Parts of a tile that the cost model considers at most: their sums are written and read once each.
const MOST_OFFERED: i64 = 8;
/// Steps of a part at least, so that filling the ring is not most of it.
const LEAST_STEPS: i64 = 4;
/// Threads of a CTA that adds parts up.
const THREADS: i64 = 256;
/// Rows of its tile at most: a warpgroup's, which divide every tile's.
const ROWS: i64 = 64;

/// The tiles of the last turn, counted in those of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Tiles that fill turns.
    pub whole: i64,
    /// The others.
    pub rest: i64,
    /// Steps along k of a part.
    pub steps: i64,
}

impl Tail {
    /// The tail of a tile with parts for it; `None` where it has none, where no tile fills a turn or all do, or where a part
    /// would have no steps.
    pub(super) fn of(tile: WideTile, [m, n, k]: [i64; 3], chip: &Chip) -> Option<Self> {
        let alone = tile.split == 1 && tile.parts == 1 && !tile.swap;
        let (whole, rest) = whole_and_rest(tile, [m, n], chip);
        let all = count(k, tile.shape[2]);
        let steps = count(all, tile.tail);
        let possible = alone && (2..=MOST_PARTS).contains(&tile.tail) && whole > 0 && rest > 0;
        (possible && (tile.tail - 1).saturating_mul(steps) < all).then_some(Self {
            whole,
            rest,
            steps,
        })
    }

    /// The tile with the parts that fill the last turn, where there are some worth trying.
    pub(super) fn offered(tile: WideTile, problem: Problem, chip: &Chip) -> Option<WideTile> {
        let Problem { batch, m, n, k, .. } = problem;
        let (_, rest) = whole_and_rest(tile, [m, n], chip);
        let fill = chip.clusters(tile.ctas()) / rest.max(1);
        let long = count(k, tile.shape[2]) / LEAST_STEPS;
        let tail = fill.min(long).min(MOST_OFFERED);
        let shared = WideTile { tail, ..tile };
        (batch == 1 && Self::of(shared, [m, n, k], chip).is_some()).then_some(shared)
    }
}

/// The tiles that fill turns, and the others.
fn whole_and_rest(tile: WideTile, [m, n]: [i64; 2], chip: &Chip) -> (i64, i64) {
    let [high, wide] = tile.span();
    let tiles = count(m, high).saturating_mul(count(n, wide));
    let rest = tiles % chip.clusters(tile.ctas()).max(1);
    (tiles - rest, rest)
}

/// The tile of a CTA that adds parts up: columns that divide a tile's.
fn sums_tile(columns: i64) -> RowTile {
    let columns = 1 << columns.trailing_zeros().min(7);
    let vector = columns.min(16 / BYTES);
    let along = columns / vector;
    let across = (THREADS / along).min(ROWS);
    RowTile {
        rows: (2 * across).min(ROWS),
        columns,
        along,
        vector,
        across,
    }
}

/// A product with a tail.
pub(super) struct Tailed<'a, 'c> {
    pub product: Parts<'a, 'c>,
    pub tail: Tail,
}

impl<'c> Tailed<'_, 'c> {
    /// Plans both kernels: `ins` are the factors, their scales, and what the epilogue reads.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn plan(
        &self,
        planner: &Planner,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        ins: &[Operand<'c>],
        outs: Vec<Out<'c>>,
    ) -> PassResult<'c> {
        let (sums, outs) = self.multiply(planner, frame, builder, ins, outs)?;
        let inputs = ins.len().saturating_sub(self.product.fusion.inputs.len());
        let inputs = ins.get(inputs..).unwrap_or_default();
        let ins: Vec<_> = std::iter::once(&sums).chain(inputs).cloned().collect();
        let types = argument_types(&ins, &self.product.fusion.scalars, &outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        let [m, n, _] = self.product.tile.shape;
        let tile = sums_tile(n);
        let rows = m / tile.rows;
        let code = kernel.code;
        let block = code.block("x")?;
        let number = code.div(block, code.index(rows)?)?;
        let row = code.times(code.rem(block, code.index(rows)?)?, tile.rows)?;
        let column = code.times(code.block("y")?, tile.columns)?;
        let at = [code.add(code.times(number, m)?, row)?, column];
        let origin = self.origin(code, number, [row, column])?;
        let parts = self.product.tile.tail;
        self.product
            .add(&kernel, (tile, parts), (&ins, &outs), (origin, at))?;
        let name = frame.name("sum");
        kernel.finish(frame.module, &name, tile.threads())?;
        let code = Code { builder: *builder };
        let blocks = self.tiles().saturating_mul(rows);
        let grid = [
            code.index(blocks)?,
            code.index(n / tile.columns)?,
            code.index(1)?,
        ];
        let ins = launched(&ins, &self.product.fusion.scalars);
        frame.launch(builder, &name, grid, &ins, &outs)
    }

    /// The tiles of the tail.
    const fn tiles(&self) -> i64 {
        self.tail.rest * self.product.tile.cluster
    }

    /// The kernel that multiplies: the sums of the tail's parts, tile below tile, and the results with the other tiles in
    /// them.
    fn multiply(
        &self,
        planner: &Planner,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        ins: &[Operand<'c>],
        mut outs: Vec<Out<'c>>,
    ) -> PassResult<'c, (Operand<'c>, Vec<Out<'c>>)> {
        let [m, n, _] = self.product.tile.shape;
        let rows = self.tiles().saturating_mul(m);
        let shape = [self.product.tile.tail, rows, padded_row(n)];
        let r#type = builder.tensor(&shape, self.product.gemm.accumulator)?;
        let empty = builder.value("tensor.empty", &[], r#type, &[])?;
        outs.push((self.product.gemm.result, operand(builder, empty, &shape)?));
        let types = argument_types(ins, &self.product.fusion.scalars, &outs);
        let mut kernel = Kernel::new(builder.location, frame.module, &types);
        let body = Body {
            gemm: self.product.gemm,
            tile: self.product.tile,
            fusion: self.product.fusion,
            tail: Some(self.tail),
        };
        body.emit(&kernel, ins, &outs)?;
        kernel.cluster = self.product.tile.ctas();
        kernel.finish(frame.module, self.product.name, self.product.tile.threads())?;
        let code = Code { builder: *builder };
        let parts = self.tail.rest.saturating_mul(self.product.tile.tail);
        let pieces = code.index(self.tail.whole.saturating_add(parts))?;
        let one = code.index(1)?;
        let grid = persistent(
            builder,
            [pieces, one, one],
            self.product.tile.ctas(),
            planner.chip,
        )?;
        let ins = launched(ins, &self.product.fusion.scalars);
        let inits: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch(builder, self.product.name, grid, &ins, &inits)?;
        for ((_, out), tensor) in outs.iter_mut().zip(results) {
            out.tensor = tensor;
        }
        let sums = outs
            .pop()
            .ok_or_else(|| layout_error(builder.location, "a kernel has no sums of parts"))?;
        Ok((sums.1, outs))
    }

    /// Where a part of the tail's tile of this number is in the result.
    fn origin(
        &self,
        code: Code<'c>,
        number: Val<'c>,
        [row, column]: [Val<'c>; 2],
    ) -> PassResult<'c, Origin<'c>> {
        let tile = self.product.tile;
        let [high, wide] = tile.span();
        let (cluster, rank) = match tile.cluster {
            1 => (number, None),
            ctas => {
                let ctas = code.index(ctas)?;
                (code.div(number, ctas)?, Some(code.rem(number, ctas)?))
            }
        };
        let cluster = code.add(cluster, code.index(self.tail.whole)?)?;
        let counts = [
            code.index(count(self.product.gemm.m, high))?,
            code.index(count(self.product.gemm.n, wide))?,
        ];
        let at = code.tile_at(cluster, counts, (tile.order, tile.group))?;
        let [first_row, first_column] = corner(code, tile, at, rank)?;
        Ok(Origin {
            batch: None,
            row: code.add(first_row, row)?,
            column: code.add(first_column, column)?,
            limit: [
                code.index(self.product.gemm.m)?,
                code.index(self.product.gemm.n)?,
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::Unit;
    use super::super::wide::SPLITS;
    use super::*;
    use crate::facts::chip::chip;
    use proptest::prelude::*;

    fn sm_90a() -> &'static Chip {
        chip("sm_90a").unwrap()
    }

    fn tile(shape: (i64, i64, i64), tail: i64) -> WideTile {
        let tile = WideTile::with_depth(shape, 64, false, 2, sm_90a()).unwrap();
        WideTile { tail, ..tile }
    }

    fn problem(m: i64, n: i64, k: i64) -> Problem {
        Problem {
            batch: 1,
            m,
            n,
            k,
            element_bytes: 2,
            unit: Unit::Half,
        }
    }

    #[test]
    fn the_tiles_beyond_whole_turns_are_shared() {
        let of = |tile, extents| Tail::of(tile, extents, sm_90a());
        let shared = tile((64, 64, 1), 3);
        let tail = |whole, rest, steps| Some(Tail { whole, rest, steps });
        // 13 x 12 tiles on 132 multiprocessors; the last ones are ragged.
        assert_eq!(of(shared, [832, 768, 576]), tail(132, 24, 3));
        assert_eq!(of(shared, [801, 705, 8 * 64 + 1]), tail(132, 24, 3));
        // 25 x 13 of them are two turns and 61.
        assert_eq!(of(shared, [1600, 832, 640]), tail(264, 61, 4));
        // Tiles of pairs are counted, of which 66 run at once.
        let pairs = WideTile {
            cluster: 2,
            ..shared
        };
        assert_eq!(of(pairs, [832, 768, 576]), tail(66, 18, 3));
        let beside = WideTile {
            beside: true,
            ..pairs
        };
        assert_eq!(of(beside, [832, 768, 576]), tail(66, 12, 3));
    }

    #[test]
    fn what_needs_no_tail_has_none() {
        let of = |tile, extents| Tail::of(tile, extents, sm_90a());
        let shared = tile((64, 64, 1), 3);
        let some = [832, 768, 576];
        assert_eq!(of(tile((64, 64, 1), 1), some), None);
        // All tiles fill a turn, or none does.
        assert_eq!(of(shared, [704, 768, 576]), None);
        assert_eq!(of(shared, [704, 704, 576]), None);
        // The third part of four steps would have none.
        assert_eq!(of(shared, [832, 768, 4 * 64]), None);
        assert_eq!(of(shared, [832, 768, 64]), None);
        for tail in [i64::MIN, -1, 0, MOST_PARTS + 1, i64::MAX] {
            assert_eq!(of(WideTile { tail, ..shared }, some), None);
        }
        let others = [
            WideTile {
                split: SPLITS[1],
                ..shared
            },
            WideTile { parts: 2, ..shared },
            WideTile {
                swap: true,
                ..shared
            },
        ];
        assert!(others.iter().all(|tile| of(*tile, some).is_none()));
    }

    #[test]
    fn long_sums_of_few_last_tiles_are_offered_with_a_tail() {
        let alone = tile((64, 64, 1), 1);
        let offered = |problem| Tail::offered(alone, problem, sm_90a()).map(|tile| tile.tail);
        // 24 tiles in five parts each are 120; 61 in two.
        assert_eq!(offered(problem(832, 768, 4096)), Some(5));
        assert_eq!(offered(problem(1600, 832, 4096)), Some(2));
        // Seven steps have no two parts of four; most of the chip is busy with 92 tiles.
        assert_eq!(offered(problem(832, 768, 7 * 64)), None);
        assert_eq!(offered(problem(64 * 14, 64 * 16, 4096)), None);
        let batch = Problem {
            batch: 2,
            ..problem(832, 768, 4096)
        };
        assert_eq!(offered(batch), None);
    }

    #[test]
    fn those_that_add_parts_divide_every_tile() {
        for columns in (8..=256).step_by(8) {
            let sums = sums_tile(columns);
            assert_eq!(columns % sums.columns, 0, "{sums:?}");
            assert_eq!(64 % sums.rows, 0, "{sums:?}");
            assert_eq!(sums.rows % sums.across, 0, "{sums:?}");
            assert_eq!(sums.columns, sums.along * sums.vector, "{sums:?}");
            assert_eq!(sums.threads() % 32, 0, "{sums:?}");
            assert!(
                sums.threads() <= THREADS && sums.layout().is_ok(),
                "{sums:?}"
            );
        }
    }

    proptest! {
        /// Every tile is whole or in the tail, and every step is in one part.
        #[test]
        fn nothing_is_left_out(
            [m, n, k] in [1..1_i64 << 20, 1..1_i64 << 20, 1..1_i64 << 20],
            parts in -1..70_i64,
            cluster in prop::sample::select(vec![1_i64, 2, 4]),
            beside: bool,
        ) {
            let tile = WideTile { cluster, beside: beside && cluster > 1, ..tile((128, 96, 2), parts) };
            let Some(Tail { whole, rest, steps }) = Tail::of(tile, [m, n, k], sm_90a()) else {
                return Ok(());
            };
            let [high, wide] = tile.span();
            prop_assert_eq!(whole + rest, count(m, high) * count(n, wide));
            let turn = sm_90a().clusters(cluster);
            prop_assert!(whole % turn == 0 && whole > 0 && (1..turn).contains(&rest));
            let all = count(k, 64);
            prop_assert!(parts * steps >= all && (parts - 1) * steps < all);
        }

        #[test]
        fn hostile_sizes_have_an_answer(
            [m, n, k] in prop::array::uniform3(prop_oneof![
                Just(i64::MIN), Just(-1), Just(0), Just(1), Just(i64::MAX), Just(1 << 62), any::<i64>()
            ]),
            parts: i64,
            batch: i64,
        ) {
            let tile = tile((64, 64, 1), parts);
            Tail::of(tile, [m, n, k], sm_90a());
            let problem = Problem { batch, ..problem(m, n, k) };
            if let Some(tile) = Tail::offered(tile, problem, sm_90a()) {
                prop_assert!((2..=MOST_OFFERED).contains(&tile.tail));
            }
        }
    }
}
