//! The layouts of planned kernels, built from the facts' fragments by the algebra.

use crate::facts::chip::{ACCESS_BYTES, BANKS_BYTES};
use crate::facts::matrix::Mma;
use axe_layout::{Axis, Error, Iter, Layout, Result, Swizzle};

/// Bytes of a row of a swizzled tile at most: the span of the widest swizzle (PTX ISA 9.7.15.5.1, "Shared Memory
/// Matrix Layout").
pub(super) const ROW_BYTES: i64 = 128;

/// Warps of a CTA over the rows and columns of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Warps (or threads) along the rows.
    pub rows: i64,
    /// Warps (or threads) along the columns.
    pub columns: i64,
}

impl Grid {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> i64 {
        self.rows * self.columns
    }
}

fn iters(parts: &[(i64, i64, &str)]) -> Result<Vec<Iter>> {
    let iter = |&(extent, stride, axis): &(i64, i64, &str)| {
        Ok(Iter::new(extent, stride, Axis::new(axis)?))
    };
    parts.iter().map(iter).collect()
}

pub(super) fn layout(shard: &[(i64, i64, &str)], replica: &[(i64, i64, &str)]) -> Result<Layout> {
    let moves = |iter: &Iter| iter.extent > 1;
    let shard = iters(shard)?.into_iter().filter(moves);
    let replica = iters(replica)?.into_iter().filter(moves);
    Layout::from_shard(shard)?.with_replica(replica)
}

/// Register tensors of a matrix product on one tile: A `[m, k]`, B `[n, k]`, the accumulators `[m, n]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Of A, for the shape `[m, k]`.
    pub a: Layout,
    /// Of B, for the shape `[n, k]`.
    pub b: Layout,
    /// Of the accumulators, for the shape `[m, n]`.
    pub d: Layout,
}

/// The register tensors of `m x n x k` by the instruction `atom`, one block of the tile for each warp.
///
/// # Errors
/// When the warps and the instruction do not divide the tile.
pub fn matrix_product([m, n, k]: [i64; 3], warps: Grid, atom: Mma) -> Result<Product> {
    let (rows, columns) = (warps.rows * atom.m, warps.columns * atom.n);
    if m % rows != 0 || n % columns != 0 || k % atom.k != 0 {
        return Err(Error::invalid(format!(
            "tile {m} x {n} x {k}: expected a multiple of {rows} x {columns} x {}",
            atom.k
        )));
    }
    let (mi, ni, ki) = (m / rows, n / columns, k / atom.k);
    let (wr, wc) = (warps.rows, warps.columns);
    let a = layout(
        &[(wr, wc, "warp"), (mi, ki, "reg"), (ki, 1, "reg")],
        &[(wc, 1, "warp")],
    )?;
    let b = layout(
        &[(wc, 1, "warp"), (ni, ki, "reg"), (ki, 1, "reg")],
        &[(wr, wc, "warp")],
    )?;
    let d = layout(
        &[
            (wr, wc, "warp"),
            (mi, ni, "reg"),
            (wc, 1, "warp"),
            (ni, 1, "reg"),
        ],
        &[],
    )?;
    Ok(Product {
        a: Layout::tile(&a, &[wr * mi, ki], &atom.a()?, &[atom.m, atom.k])?,
        b: Layout::tile(&b, &[wc * ni, ki], &atom.b()?, &[atom.n, atom.k])?,
        d: Layout::tile(&d, &[wr * mi, wc * ni], &atom.d()?, &[atom.m, atom.n])?,
    })
}

/// The register tensors of `m x n x k` by scalar multiply-adds: each thread of the grid a block of the
/// accumulators, with the rows of A and B that it needs.
///
/// # Errors
/// When the threads do not divide the tile.
pub fn scalar_product([m, n, k]: [i64; 3], threads: Grid) -> Result<Product> {
    let (tr, tc) = (threads.rows, threads.columns);
    if m % tr != 0 || n % tc != 0 {
        return Err(Error::invalid(format!(
            "tile {m} x {n}: expected a multiple of {tr} x {tc}"
        )));
    }
    let (mi, ni) = (m / tr, n / tc);
    Ok(Product {
        a: layout(
            &[(tr, tc, "thread"), (mi, k, "reg"), (k, 1, "reg")],
            &[(tc, 1, "thread")],
        )?,
        b: layout(
            &[(tc, 1, "thread"), (ni, k, "reg"), (k, 1, "reg")],
            &[(tr, tc, "thread")],
        )?,
        d: layout(
            &[
                (tr, tc, "thread"),
                (mi, ni, "reg"),
                (tc, 1, "thread"),
                (ni, 1, "reg"),
            ],
            &[],
        )?,
    })
}

/// The layout of a matrix with rows and columns exchanged, of the shape that it has before.
///
/// # Errors
/// When the layout does not have the shape.
pub fn transposed(of: &Layout, shape: &[i64; 2]) -> Result<Layout> {
    of.permute_dims(shape, &[1, 0])
}

/// A ring of `stages` row-major tiles in shared memory. Where rows are a power of two long they are
/// swizzled so that 8 accesses of 16 bytes in a column of the tile, as `ldmatrix` makes them, and 8 in a
/// row, as `cp.async` makes them, meet each bank once.
///
/// # Errors
/// When the sizes overflow.
pub fn shared_ring(stages: i64, [rows, columns]: [i64; 2], element_bytes: i64) -> Result<Layout> {
    Layout::row_major(&[stages, rows, columns])
        .map(|ring| ring.with_swizzle(swizzle(rows, columns, element_bytes)))
}

/// One tile of [`shared_ring`].
///
/// # Errors
/// When the sizes overflow.
pub fn shared_tile([rows, columns]: [i64; 2], element_bytes: i64) -> Result<Layout> {
    Layout::row_major(&[rows, columns])
        .map(|tile| tile.with_swizzle(swizzle(rows, columns, element_bytes)))
}

/// The box `of` of one tile of [`shared_ring`], which keeps the tile's strides and swizzle.
///
/// # Errors
/// When the sizes overflow.
pub fn shared_box([rows, columns]: [i64; 2], of: [i64; 2], element_bytes: i64) -> Result<Layout> {
    Layout::strided(&of, &[columns, 1])
        .map(|part| part.with_swizzle(swizzle(rows, columns, element_bytes)))
}

/// The swizzle of a row-major tile: the chunk of 16 bytes within 128 bytes is xored with the row's number
/// (rows of 128 bytes and more) or with the number of the 128 bytes that hold it (shorter rows). None when
/// rows are no power of two, or no longer than a chunk.
fn swizzle(rows: i64, columns: i64, element_bytes: i64) -> Option<Swizzle> {
    let log = |value: i64| (value > 0 && value & (value - 1) == 0).then(|| value.trailing_zeros());
    let (base, row) = (log(ACCESS_BYTES / element_bytes.max(1))?, log(columns)?);
    let banks = log(BANKS_BYTES / element_bytes)?;
    let bits = row.min(banks).checked_sub(base).filter(|bits| *bits > 0)?;
    let period = 1i64 << row.max(banks).checked_add(bits)?;
    // The copies of a ring must start at multiples of the period.
    (rows.checked_mul(columns)? % period == 0)
        .then(|| Swizzle::new(bits, base, row.max(banks) - base, true).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::matrix::{M16N8K8, M16N8K16};
    use crate::fragment::Fragment;
    use crate::plan::mma::MmaPlan;
    use crate::plan::reduce::ReducePlan;
    use crate::vocabulary::WARP;
    use axe_passes::fuse::registers::without;

    fn product_plans(tile: [i64; 3], warps: Grid, atom: Mma) -> usize {
        let [m, n, k] = tile;
        let product = matrix_product(tile, warps, atom).unwrap();
        let threads = warps.count() * WARP;
        let of = |layout, shape: &[i64]| Fragment::new(layout, shape, threads).unwrap();
        let plan = MmaPlan::new(
            atom,
            &of(&product.a, &[m, k]),
            &of(&product.b, &[n, k]),
            &of(&product.d, &[m, n]),
        );
        plan.unwrap().instructions.len()
    }

    #[test]
    fn tiles_are_made_of_the_instruction() {
        let grid = |rows, columns| Grid { rows, columns };
        assert_eq!(
            product_plans([128, 128, 32], grid(2, 2), M16N8K16),
            4 * 8 * 2
        );
        assert_eq!(
            product_plans([128, 256, 32], grid(2, 4), M16N8K16),
            4 * 8 * 2
        );
        assert_eq!(product_plans([16, 64, 64], grid(1, 4), M16N8K16), 2 * 4);
        assert_eq!(product_plans([64, 64, 32], grid(2, 2), M16N8K8), 2 * 4 * 4);
        assert!(matrix_product([24, 64, 32], grid(1, 4), M16N8K16).is_err());
    }

    #[test]
    fn a_vector_of_a_tile_is_what_a_reduction_leaves() {
        let grid = Grid {
            rows: 2,
            columns: 2,
        };
        let d = matrix_product([64, 64, 16], grid, M16N8K16).unwrap().d;
        let rows = crate::planner::row_tile::RowTile {
            rows: 4,
            columns: 768,
            along: 32,
            vector: 8,
            across: 4,
        };
        for (layout, shape) in [(d, [64, 64]), (rows.layout().unwrap(), [4, 768])] {
            let source = Fragment::new(&layout, &shape, 128).unwrap();
            for dim in 0..2 {
                let vector = without(&layout, &shape, dim).unwrap();
                let kept = [shape[1 - dim]];
                let got = Fragment::new(&vector, &kept, 128).unwrap();
                let plan = ReducePlan::new(&source, &[dim]).unwrap();
                let expected = Fragment::new(&plan.result, &kept, 128).unwrap();
                for thread in 0..128 {
                    for register in 0..got.registers() {
                        assert_eq!(
                            got.linear(thread, register),
                            expected.linear(thread, register)
                        );
                    }
                }
            }
        }
    }

    /// Banks of 16 bytes that 8 accesses meet.
    fn distinct_banks(layout: &Layout, indices: impl Iterator<Item = i64>, bytes: i64) -> usize {
        let mut banks: Vec<_> = indices
            .map(|x| {
                let m = layout.points(x).unwrap()[0].get(Axis::M);
                m * bytes % BANKS_BYTES / ACCESS_BYTES
            })
            .collect();
        banks.sort_unstable();
        banks.dedup();
        banks.len()
    }

    #[test]
    fn shared_tiles_meet_no_bank_twice() {
        for (shape, bytes) in [
            ([128, 32], 2),
            ([128, 64], 2),
            ([32, 128], 2),
            ([32, 256], 2),
            ([64, 64], 2),
            ([16, 64], 2),
            ([128, 32], 4),
            ([64, 16], 2),
        ] {
            let layout = shared_tile(shape, bytes).unwrap();
            for row in (0..shape[0]).step_by(8) {
                let column = (0..8).map(|k| (row + k) * shape[1]);
                assert_eq!(distinct_banks(&layout, column, bytes), 8, "{shape:?}");
            }
            let vector = ACCESS_BYTES / bytes;
            let along = (0..8).map(|k| k * vector);
            assert_eq!(distinct_banks(&layout, along, bytes), 8, "{shape:?}");
        }
    }

    #[test]
    fn a_ring_is_tiles_one_after_the_other() {
        let (ring, tile) = (
            shared_ring(3, [128, 32], 2).unwrap(),
            shared_tile([128, 32], 2).unwrap(),
        );
        for x in (0..128 * 32).step_by(37) {
            let at = |layout: &Layout, x| layout.points(x).unwrap()[0].get(Axis::M);
            assert_eq!(at(&ring, 2 * 4096 + x), 2 * 4096 + at(&tile, x));
        }
    }
}
