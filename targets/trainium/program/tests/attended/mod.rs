//! Attention in f64, from its definition.

use axe_package::DType;
use axe_trn::plan::{Attention, Order};
use axe_trn::run::memory;

/// One head, whose sizes tests change.
pub const PLAIN: Attention = Attention {
    heads: 1,
    queries: 128,
    keys: 128,
    dim: 64,
    q: Order::KMinor,
    k: Order::KMinor,
    dtype: DType::BF16,
    scale: 0.125,
    causal: false,
};

/// Numbers in the operands' type, scores of which are far apart: `spread` times those between -2 and 2.
fn tensor(attention: &Attention, count: i64, seed: i64, spread: f32) -> Vec<f32> {
    let number = |i: i64| ((i * 37 + seed * 101 + i / 11 * 13) % 65 - 32) as f32 / 16.0 * spread;
    let numbers: Vec<f32> = (0..count).map(number).collect();
    memory::decode(attention.dtype, &memory::encode(attention.dtype, &numbers))
}

/// Elements of one head in the order `[row, dim]`, from a tensor that lies in either.
fn at(order: Order, tensor: &[f32], (rows, dim): (i64, i64), head: i64, row: i64, x: i64) -> f64 {
    let own = match order {
        Order::KMajor => x * rows + row,
        Order::KMinor => row * dim + x,
    };
    f64::from(tensor[(head * rows * dim + own) as usize])
}

/// A row of the result.
pub fn expected(a: &Attention, [q, k, v]: [&[f32]; 3], head: i64, query: i64) -> Vec<f64> {
    let keys = if a.causal { query + 1 } else { a.keys };
    let score = |key: i64| {
        let of = |x| {
            at(a.q, q, (a.queries, a.dim), head, query, x)
                * at(a.k, k, (a.keys, a.dim), head, key, x)
        };
        a.scale * (0..a.dim).map(of).sum::<f64>()
    };
    let scores: Vec<f64> = (0..keys).map(score).collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let value = |x: i64| {
        let of =
            |key: i64| weights[key as usize] * at(Order::KMinor, v, (a.keys, a.dim), head, key, x);
        (0..keys).map(of).sum::<f64>() / sum
    };
    (0..a.dim).map(value).collect()
}

/// Queries, keys and values, as they lie.
pub fn operands(a: &Attention, spread: f32) -> [Vec<f32>; 3] {
    [(a.queries, 1), (a.keys, 2), (a.keys, 3)].map(|(rows, seed)| {
        let spread = if seed < 3 { spread } else { 1.0 };
        tensor(a, a.heads * rows * a.dim, seed, spread)
    })
}
