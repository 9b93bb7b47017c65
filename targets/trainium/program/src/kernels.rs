//! The matrix products of the vendor's tutorial (MM), for which it publishes times: four ways to compute
//! `result[M, N] = lhsT[K, M]^T rhs[K, N]`, from one tile at a time to blocks in all dimensions.
//!
//! They are here as the cost model's anchors, and as examples of the builder. Tiles and blocks are the tutorial's; what its
//! compiler chooses, how many copies of a tile take turns, is chosen here.

use crate::program::build::Tile;
use crate::program::{Alu, Builder, Expr, Program, Space, View};
use axe_package::DType;

/// Rows of a tile of either operand: the partitions.
const TILE_K: i64 = 128;
/// Columns of a stationary tile.
const TILE_M: i64 = 128;
/// Columns of a moving tile.
const TILE_N: i64 = 512;

/// Which of the tutorial's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tutorial {
    /// `nki_matmul_tiled_`: loads both operands for every product.
    Tiled,
    /// `nki_matmul_hoist_load_`: loads all of K for a tile of the result.
    HoistLoad,
    /// `nki_matmul_block_free_dimension_`: keeps blocks of 256 x 1024 of the result's operands.
    BlockFreeDimension,
    /// `nki_matmul_fully_optimized_`: blocks of 2048 x 1024 x 1024, sums of blocks in SBUF.
    FullyOptimized,
}

/// A kernel with its published time.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The kernel.
    pub kernel: Tutorial,
    /// Seconds on one core of trn1.32xlarge for 4096 x 8192 x 8192 in bf16 (MM).
    pub seconds: f64,
    /// Whether the DMA table of [`crate::facts::dma`] is fitted to it.
    pub fitted: bool,
}

/// The published times.
pub const PUBLISHED: [Published; 4] = [
    Published {
        kernel: Tutorial::Tiled,
        seconds: 51.80e-3,
        fitted: true,
    },
    Published {
        kernel: Tutorial::HoistLoad,
        seconds: 42.96e-3,
        fitted: true,
    },
    Published {
        kernel: Tutorial::BlockFreeDimension,
        seconds: 22.07e-3,
        fitted: true,
    },
    Published {
        kernel: Tutorial::FullyOptimized,
        seconds: 6.97e-3,
        fitted: false,
    },
];

/// The sizes of the published times: M, K, N.
pub const PUBLISHED_SIZES: [i64; 3] = [4096, 8192, 8192];

/// The operands of a product that is being built.
struct Product {
    b: Builder,
    lhs: Tile,
    rhs: Tile,
    result: Tile,
    dtype: DType,
    sizes: [i64; 3],
}

/// One of the tutorial's kernels for `sizes` of M, K, N, on a chip; `None` when a size is no multiple of the kernel's
/// tiles or blocks.
#[must_use]
pub fn matmul(kernel: Tutorial, sizes: [i64; 3], dtype: DType, chip: &str) -> Option<Program> {
    let [m, k, n] = sizes;
    let unit = match kernel {
        Tutorial::Tiled | Tutorial::HoistLoad => [TILE_M, TILE_K, TILE_N],
        Tutorial::BlockFreeDimension => [2 * TILE_M, TILE_K, 2 * TILE_N],
        Tutorial::FullyOptimized => [BLOCK_M, BLOCK_K, BLOCK_N],
    };
    if sizes
        .iter()
        .zip(unit)
        .any(|(size, unit)| *size < unit || size % unit != 0)
    {
        return None;
    }
    let (name, fill): (_, fn(&mut Product)) = match kernel {
        Tutorial::Tiled => ("matmul_tiled", tiled),
        Tutorial::HoistLoad => ("matmul_hoist_load", hoist_load),
        Tutorial::BlockFreeDimension => ("matmul_block_free_dimension", block_free_dimension),
        Tutorial::FullyOptimized => ("matmul_fully_optimized", fully_optimized),
    };
    let mut b = Builder::new(name, chip);
    let lhs = b.input("lhsT", &[k, m], dtype);
    let rhs = b.input("rhs", &[k, n], dtype);
    let result = b.output("result", &[m, n], dtype);
    let mut product = Product {
        b,
        lhs,
        rhs,
        result,
        dtype,
        sizes,
    };
    fill(&mut product);
    Some(product.b.finish())
}

/// A range of a dimension: tile `index` of `size`.
fn tile(index: &Expr, size: i64) -> (Expr, i64) {
    (index.clone().times(size), size)
}

/// The same with an expression that counts elements already.
fn from(begin: &Expr, size: i64) -> (Expr, i64) {
    (begin.clone(), size)
}

/// All of a dimension.
fn all(size: i64) -> (Expr, i64) {
    (0.into(), size)
}

fn tiled(p: &mut Product) {
    let ([m, k, n], dtype) = (p.sizes, p.dtype);
    let (lhs, rhs, result) = (&p.lhs, &p.rhs, &p.result);
    p.b.repeat("m", 0, m / TILE_M, 1, |b, m| {
        b.repeat("n", 0, n / TILE_N, 1, |b, n| {
            let sums = b.tile("res_psum", Space::Psum, &[TILE_M, TILE_N], DType::F32, 2);
            b.repeat("k", 0, k / TILE_K, 1, |b, k| {
                let a = b.tile("lhsT_tile", Space::Sbuf, &[TILE_K, TILE_M], dtype, 4);
                let w = b.tile("rhs_tile", Space::Sbuf, &[TILE_K, TILE_N], dtype, 4);
                b.dma_copy(a.all(), lhs.part([tile(&k, TILE_K), tile(&m, TILE_M)]));
                b.dma_copy(w.all(), rhs.part([tile(&k, TILE_K), tile(&n, TILE_N)]));
                b.matmul(sums.all(), a.all(), w.all());
            });
            let out = b.tile("res_sb", Space::Sbuf, &[TILE_M, TILE_N], dtype, 2);
            b.copy(out.all(), sums.all());
            b.dma_copy(result.part([tile(&m, TILE_M), tile(&n, TILE_N)]), out.all());
        });
    });
}

/// Loads all of K for one tile of columns into `[TILE_K, K / TILE_K, columns]`.
fn load_columns(
    b: &mut Builder,
    name: &str,
    to: &Tile,
    from_tensor: &Tile,
    k: i64,
    column: &Expr,
    size: i64,
) {
    b.repeat(name, 0, k / TILE_K, 1, |b, k| {
        b.dma_copy(
            to.part([all(TILE_K), from(&k, 1), all(size)]),
            from_tensor.part([tile(&k, TILE_K), from(column, size)]),
        );
    });
}

fn hoist_load(p: &mut Product) {
    let ([m, k, n], dtype) = (p.sizes, p.dtype);
    let (lhs, rhs, result) = (&p.lhs, &p.rhs, &p.result);
    p.b.repeat("m", 0, m / TILE_M, 1, |b, m| {
        let a = b.tile(
            "lhsT_tiles",
            Space::Sbuf,
            &[TILE_K, k / TILE_K, TILE_M],
            dtype,
            2,
        );
        load_columns(b, "k_l", &a, lhs, k, &m.clone().times(TILE_M), TILE_M);
        b.repeat("n", 0, n / TILE_N, 1, |b, n| {
            let w = b.tile(
                "rhs_tiles",
                Space::Sbuf,
                &[TILE_K, k / TILE_K, TILE_N],
                dtype,
                2,
            );
            load_columns(b, "k_r", &w, rhs, k, &n.clone().times(TILE_N), TILE_N);
            let sums = b.tile("res_psum", Space::Psum, &[TILE_M, TILE_N], DType::F32, 2);
            b.repeat("k", 0, k / TILE_K, 1, |b, k| {
                b.matmul(
                    sums.all(),
                    a.part([all(TILE_K), from(&k, 1), all(TILE_M)]),
                    w.part([all(TILE_K), from(&k, 1), all(TILE_N)]),
                );
            });
            let out = b.tile("res_sb", Space::Sbuf, &[TILE_M, TILE_N], dtype, 2);
            b.copy(out.all(), sums.all());
            b.dma_copy(result.part([tile(&m, TILE_M), tile(&n, TILE_N)]), out.all());
        });
    });
}

fn block_free_dimension(p: &mut Product) {
    let ([m, k, n], dtype) = (p.sizes, p.dtype);
    let (lhs, rhs, result) = (&p.lhs, &p.rhs, &p.result);
    p.b.repeat("m", 0, m / (TILES * TILE_M), 1, |b, m| {
        let a = b.tile(
            "lhsT_tiles",
            Space::Sbuf,
            &[TILE_K, TILES, k / TILE_K, TILE_M],
            dtype,
            1,
        );
        b.repeat("bm_l", 0, TILES, 1, |b, bm| {
            b.repeat("k_l", 0, k / TILE_K, 1, |b, k| {
                let column = m.clone().times(TILES).plus(bm.clone()).times(TILE_M);
                b.dma_copy(
                    a.part([all(TILE_K), from(&bm, 1), from(&k, 1), all(TILE_M)]),
                    lhs.part([tile(&k, TILE_K), from(&column, TILE_M)]),
                );
            });
        });
        b.repeat("n", 0, n / (TILES * TILE_N), 1, |b, n| {
            let w = b.tile(
                "rhs_tiles",
                Space::Sbuf,
                &[TILE_K, TILES, k / TILE_K, TILE_N],
                dtype,
                1,
            );
            b.repeat("bn_r", 0, TILES, 1, |b, bn| {
                b.repeat("k_r", 0, k / TILE_K, 1, |b, k| {
                    let column = n.clone().times(TILES).plus(bn.clone()).times(TILE_N);
                    b.dma_copy(
                        w.part([all(TILE_K), from(&bn, 1), from(&k, 1), all(TILE_N)]),
                        rhs.part([tile(&k, TILE_K), from(&column, TILE_N)]),
                    );
                });
            });
            b.repeat("bm", 0, TILES, 1, |b, bm| {
                b.repeat("bn", 0, TILES, 1, |b, bn| {
                    let row = m.clone().times(TILES).plus(bm.clone()).times(TILE_M);
                    let column = n.clone().times(TILES).plus(bn.clone()).times(TILE_N);
                    let to = result.part([from(&row, TILE_M), from(&column, TILE_N)]);
                    result_tile(b, k / TILE_K, (&a, &bm), (&w, &bn), to);
                });
            });
        });
    });
}

/// Sums of one tile of the result over `chunks` of K, of tile `bm` of one operand's block and tile `bn` of the other's.
fn result_tile(
    b: &mut Builder,
    chunks: i64,
    (a, bm): (&Tile, &Expr),
    (w, bn): (&Tile, &Expr),
    to: View,
) {
    let sums = b.tile("result_tile", Space::Psum, &[TILE_M, TILE_N], DType::F32, 2);
    b.repeat("k", 0, chunks, 1, |b, k| {
        b.matmul(
            sums.all(),
            a.part([all(TILE_K), from(bm, 1), from(&k, 1), all(TILE_M)]),
            w.part([all(TILE_K), from(bn, 1), from(&k, 1), all(TILE_N)]),
        );
    });
    let dtype = b.dtype(&to);
    let out = b.tile("result_tmp", Space::Sbuf, &[TILE_M, TILE_N], dtype, 2);
    b.copy(out.all(), sums.all());
    b.dma_copy(to, out.all());
}

/// Tiles of a block in each of M and N.
const TILES: i64 = 2;

/// The tutorial's block of M: 16 tiles.
const BLOCK_M: i64 = 16 * TILE_M;
/// The tutorial's block of N: 2 tiles.
const BLOCK_N: i64 = 2 * TILE_N;
/// The tutorial's block of K: 8 tiles.
const BLOCK_K: i64 = 8 * TILE_K;

fn fully_optimized(p: &mut Product) {
    let ([m, k, n], dtype) = (p.sizes, p.dtype);
    let (lhs, rhs, result) = (&p.lhs, &p.rhs, &p.result);
    p.b.repeat("n", 0, n / BLOCK_N, 1, |b, n| {
        let sums = b.tile(
            "result_tmps",
            Space::Sbuf,
            &[TILE_M, m / TILE_M, BLOCK_N],
            dtype,
            1,
        );
        b.repeat("m_z", 0, m / TILE_M, 1, |b, m| {
            b.repeat("bn_z", 0, BLOCK_N / TILE_N, 1, |b, bn| {
                b.memset(
                    sums.part([all(TILE_M), from(&m, 1), tile(&bn, TILE_N)]),
                    0.0,
                );
            });
        });
        b.repeat("k", 0, k / BLOCK_K, 1, |b, k| {
            let w = b.tile(
                "rhs_tiles",
                Space::Sbuf,
                &[TILE_K, BLOCK_K / TILE_K, BLOCK_N],
                dtype,
                2,
            );
            load_block(b, "bk_r", &w, rhs, &k, (&n, BLOCK_N));
            b.repeat("m", 0, m / BLOCK_M, 1, |b, m| {
                let a = b.tile(
                    "lhsT_tiles",
                    Space::Sbuf,
                    &[TILE_K, BLOCK_K / TILE_K, BLOCK_M],
                    dtype,
                    2,
                );
                load_block(b, "bk_l", &a, lhs, &k, (&m, BLOCK_M));
                products(b, &a, &w, &sums, &m);
            });
        });
        b.repeat("m_s", 0, m / TILE_M, 1, |b, m| {
            let packed = b.tile("result_packed", Space::Sbuf, &[TILE_M, BLOCK_N], dtype, 2);
            b.repeat("bn_s", 0, BLOCK_N / TILE_N, 1, |b, bn| {
                b.copy(
                    packed.part([all(TILE_M), tile(&bn, TILE_N)]),
                    sums.part([all(TILE_M), from(&m, 1), tile(&bn, TILE_N)]),
                );
            });
            b.dma_copy(
                result.part([tile(&m, TILE_M), tile(&n, BLOCK_N)]),
                packed.all(),
            );
        });
    });
}

/// Loads a block of K and of one free dimension.
fn load_block(
    b: &mut Builder,
    name: &str,
    to: &Tile,
    from_tensor: &Tile,
    k: &Expr,
    (column, size): (&Expr, i64),
) {
    b.repeat(name, 0, BLOCK_K / TILE_K, 1, |b, bk| {
        let row = k
            .clone()
            .times(BLOCK_K / TILE_K)
            .plus(bk.clone())
            .times(TILE_K);
        b.dma_copy(
            to.part([all(TILE_K), from(&bk, 1), all(size)]),
            from_tensor.part([from(&row, TILE_K), tile(column, size)]),
        );
    });
}

/// All products of a block, each added to its tile of sums.
fn products(b: &mut Builder, a: &Tile, w: &Tile, sums: &Tile, m: &Expr) {
    b.repeat("bn", 0, BLOCK_N / TILE_N, 1, |b, bn| {
        b.repeat("bm", 0, BLOCK_M / TILE_M, 1, |b, bm| {
            let tile_sum = b.tile("result_tile", Space::Psum, &[TILE_M, TILE_N], DType::F32, 4);
            b.repeat("bk", 0, BLOCK_K / TILE_K, 1, |b, bk| {
                b.matmul(
                    tile_sum.all(),
                    a.part([all(TILE_K), from(&bk, 1), tile(&bm, TILE_M)]),
                    w.part([all(TILE_K), from(&bk, 1), tile(&bn, TILE_N)]),
                );
            });
            let row = m.clone().times(BLOCK_M / TILE_M).plus(bm.clone());
            let into = || sums.part([all(TILE_M), from(&row, 1), tile(&bn, TILE_N)]);
            b.tensor_tensor(into(), into(), tile_sum.all(), Alu::Add);
        });
    });
}
