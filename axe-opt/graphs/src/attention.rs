//! Attention and its gradients, as front ends write them.

use crate::element::Element;
use crate::fused::Mask;
use crate::graph::{Graph, Operand, Value};
use crate::products::Shape;
use Element::{BF16, F16, F32};

/// Products of a batch of matrices.
struct Batch(i64);

impl Batch {
    const fn of(&self, [m, n, k]: [i64; 3]) -> Shape {
        Shape {
            batch: Some(self.0),
            m,
            n,
            k,
        }
    }
}

impl Graph<'_> {
    /// `softmax(scale q k^T + mask) v` of a batch, whose number may be known at run time only.
    pub fn attention(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16]);
        let open = self.open;
        let batch = match open {
            true => self.rows,
            false => self.random.pick(&[1, 2, 3]),
        };
        let (rows, mut keys) = (
            self.random.pick(&[1, 5, 17, 64, 70]),
            self.random.pick(&[9, 33, 64, 100, 130]),
        );
        if rows > 1 && self.random.once_in(3) {
            keys = rows;
        }
        let width = self.random.pick(&[16, 32, 64, 80]);
        let q = self.input_of(element, &[batch, rows, width], open);
        let [k, v] = [0; 2].map(|_| self.input_of(element, &[batch, keys, width], open));
        let scaled = self.scores(&q, &k, 8.0);
        let scaled = match self.random.once_in(4) {
            true => self.capped(&scaled, 4.0),
            false => scaled,
        };
        let masked = match self.random.once_in(3) {
            true => scaled,
            false => {
                let mask = self.mask(&[batch, rows, keys]);
                self.masked(&scaled, mask)
            }
        };
        let weights = self.softmax(&masked);
        let weights = self.cast(&weights, element);
        let shape = Batch(batch).of([rows, width, keys]);
        let context = self.contracted(&weights, &v, &shape, [false, false], F32, false);
        // Weights are positive, and their sum is 1: rounded ones are as far from it as each of them.
        let error = v.bound * (weights.error.min(1.0) + 2.0 * element.roundoff());
        let context = Value {
            error: error + keys as f64 * F32.roundoff() * v.bound,
            bound: v.bound * 1.01,
            ..context
        };
        vec![self.cast(&context, element)]
    }

    /// The gradients of q, k and v for one of the result: `P = softmax(scale q k^T + mask)`, `dP = dO v^T`,
    /// `dS = P (dP - rowsum(P dP))`, then `dQ = scale dS k`, `dK = scale dS^T q` and `dV = P^T dO`.
    pub fn gradients(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16]);
        let batch = self.random.pick(&[1, 2]);
        let rows = self.random.pick(&[17, 64, 70, 130]);
        let keys = match self.random.once_in(2) {
            true => rows,
            false => self.random.pick(&[33, 64, 100]),
        };
        let width = self.random.pick(&[16, 32, 64, 80]);
        let of = Batch(batch);
        let [q, d_o] = [0; 2].map(|_| self.input_of(element, &[batch, rows, width], false));
        let [k, v] = [0; 2].map(|_| self.input_of(element, &[batch, keys, width], false));
        let most = 8.0;
        let scaled = self.scores(&q, &k, most);
        let cap = 4.0;
        let (scaled, tanh) = match self.random.once_in(3) {
            true => {
                let tanh = self.tanh(&scaled, cap);
                (self.times(&tanh, cap), Some(tanh))
            }
            false => (scaled, None),
        };
        let masked = match self.random.below(4) {
            0 => scaled,
            1 => self.masked(&scaled, Mask::Causal(0)),
            2 => self.masked(&scaled, Mask::Window(7)),
            _ => {
                let mask = self.mask(&[batch, rows, keys]);
                self.masked(&scaled, mask)
            }
        };
        let weights = self.softmax(&masked);
        let inner = of.of([rows, keys, width]);
        let d_p = self.contracted(&d_o, &v, &inner, [false, true], F32, false);
        let d_s = self.behind_softmax(&weights, &d_p);
        let scale = scale_of(width as f64 * q.bound * k.bound, most);
        let made = self.like(&d_s, element);
        let all: Vec<_> = std::iter::once(&d_s).chain(&tanh).collect();
        let all: Vec<_> = all.into_iter().map(Operand::plain).collect();
        let d_s = self.generic(3, &all, &made, |body, scalars, _, _| {
            let scale = body.constant(scale, F32);
            let mut x = body.mulf(&scalars[0], &scale);
            if let Some(tanh) = scalars.get(1).filter(|_| tanh.is_some()) {
                // The cap's derivative.
                let one = body.constant(1.0, F32);
                let squared = body.mulf(tanh, tanh);
                let slope = body.subf(&one, &squared);
                x = body.mulf(&x, &slope);
            }
            body.cast(&x, element)
        });
        let weights = self.cast(&weights, element);
        let d_q = self.contracted(
            &d_s,
            &k,
            &of.of([rows, width, keys]),
            [false, false],
            F32,
            false,
        );
        let outer = of.of([keys, width, rows]);
        let d_k = self.contracted(&d_s, &q, &outer, [true, false], F32, false);
        let d_v = self.contracted(&weights, &d_o, &outer, [true, false], F32, false);
        [d_q, d_k, d_v]
            .iter()
            .map(|value| self.cast(value, element))
            .collect()
    }

    /// `scale q k^T`, of a magnitude of at most so much.
    fn scores(&mut self, q: &Value, k: &Value, most: f64) -> Value {
        let (rows, keys, width) = (q.shape[1], k.shape[1], q.shape[2]);
        let generic = !self.random.once_in(2);
        let shape = Batch(q.shape[0]).of([rows, keys, width]);
        let scores = self.contracted(q, k, &shape, [false, true], F32, generic);
        let scale = scale_of(scores.bound, most);
        let made = self.like(&scores, F32);
        self.generic(
            3,
            &[Operand::plain(&scores)],
            &made,
            |body, scalars, _, _| {
                let scale = body.constant(scale, F32);
                body.mulf(&scalars[0], &scale)
            },
        )
    }

    /// `P (dP - D)` with `D = rowsum(P dP)`, or `P dP - P D` as torch writes it.
    fn behind_softmax(&mut self, weights: &Value, d_p: &Value) -> Value {
        let made = self.like(d_p, F32);
        let both = [Operand::plain(weights), Operand::plain(d_p)];
        let terms = self.generic(3, &both, &made, |body, scalars, _, _| {
            body.mulf(&scalars[0], &scalars[1])
        });
        let sums = self.rows_of(&terms, "arith.addf");
        if self.random.once_in(2) {
            let less = self.with_rows(d_p, &sums, |body, x, sum| body.subf(x, sum));
            let both = [Operand::plain(weights), Operand::plain(&less)];
            return self.generic(3, &both, &made, |body, scalars, _, _| {
                body.mulf(&scalars[0], &scalars[1])
            });
        }
        let mean = self.with_rows(weights, &sums, |body, x, sum| body.mulf(x, sum));
        let both = [Operand::plain(&terms), Operand::plain(&mean)];
        self.generic(3, &both, &made, |body, scalars, _, _| {
            body.subf(&scalars[0], &scalars[1])
        })
    }

    /// `cap tanh(x / cap)`.
    fn capped(&mut self, value: &Value, cap: f64) -> Value {
        let tanh = self.tanh(value, cap);
        self.times(&tanh, cap)
    }

    /// A value times a number.
    fn times(&mut self, value: &Value, by: f64) -> Value {
        let (made, rank) = (self.like(value, F32), value.shape.len());
        let own = [Operand::plain(value)];
        self.generic(rank, &own, &made, |body, scalars, _, _| {
            let by = body.constant(by, F32);
            body.mulf(&scalars[0], &by)
        })
    }

    /// `tanh(x / cap)`.
    fn tanh(&mut self, value: &Value, cap: f64) -> Value {
        let made = self.like(value, F32);
        let rank = value.shape.len();
        self.generic(
            rank,
            &[Operand::plain(value)],
            &made,
            |body, scalars, _, _| {
                let by = body.constant(1.0 / cap, F32);
                let x = body.mulf(&scalars[0], &by);
                // Where the result is bf16, 2^-11 of it may be wrong.
                body.unary("math.tanh", &x, 1.0, x.error + 2f64.powi(-11))
            },
        )
    }
}

/// The power of two that makes magnitudes up to `bound` ones up to `most`.
fn scale_of(bound: f64, most: f64) -> f64 {
    2f64.powi(-(bound / most).log2().ceil().max(0.0) as i32)
}
