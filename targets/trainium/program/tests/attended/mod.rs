//! Attention in f64, from its definition.

use axe_package::DType;
use axe_trn::plan::{Attention, Digit, Order, Strided, Tensors};
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

/// `[batch, rows, heads, dim]`, each of whose heads so many heads of queries share.
fn interleaved(batch: i64, rows: i64, heads: i64, shared: i64, dim: i64) -> Strided {
    let digit = |every, extent, stride| Digit {
        every,
        extent,
        stride,
    };
    Strided {
        elements: batch * rows * heads * dim,
        heads: vec![
            digit(heads * shared, batch, rows * heads * dim),
            digit(shared, heads, dim),
        ],
        row: heads * dim,
        column: 1,
    }
}

/// Two problems of four heads as `[batch, rows, heads, dim]`, two heads of keys and of values for them.
pub fn grouped(a: &Attention) -> Tensors {
    assert_eq!((a.heads, a.q, a.k), (8, Order::KMinor, Order::KMinor));
    Tensors {
        q: interleaved(2, a.queries, 4, 1, a.dim),
        k: interleaved(2, a.keys, 2, 2, a.dim),
        v: interleaved(2, a.keys, 2, 2, a.dim),
        result: interleaved(2, a.queries, 4, 1, a.dim),
    }
}

/// Where in memory the elements of `[heads, rows, dim]` lie.
pub fn places(a: &Attention, strided: &Strided, rows: i64) -> Vec<usize> {
    let begin = |head: i64| -> i64 {
        let of = |digit: &Digit| head / digit.every % digit.extent * digit.stride;
        strided.heads.iter().map(of).sum()
    };
    let mut all = Vec::new();
    for head in 0..a.heads {
        for row in 0..rows {
            let row = begin(head) + row * strided.row;
            all.extend((0..a.dim).map(|x| (row + x * strided.column) as usize));
        }
    }
    all
}

/// Numbers in memory as heads one below the other, `[heads, rows, dim]`.
pub fn gathered(a: &Attention, strided: &Strided, rows: i64, memory: &[f32]) -> Vec<f32> {
    let places = places(a, strided, rows).into_iter();
    places.map(|at| memory[at]).collect()
}

/// Queries, keys and values as they lie in memory.
pub fn in_memory(a: &Attention, tensors: &Tensors) -> [Vec<f32>; 3] {
    [(&tensors.q, 1), (&tensors.k, 2), (&tensors.v, 3)]
        .map(|(strided, seed)| tensor(a, strided.elements, seed, 1.0))
}
