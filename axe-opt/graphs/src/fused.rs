//! Programs that are to become few kernels: products with what people fuse into them, chains of products, masked rows.

use crate::element::Element;
use crate::graph::{Graph, Operand, Value};
use crate::products::Shape;
use crate::scalar::{Body, Scalar};
use Element::{BF16, F16, F32, I1, I32};

/// How a mask says what is seen.
pub enum Mask {
    /// Columns up to the row's number and some more.
    Causal(i64),
    /// As many columns before that one, too.
    Window(i64),
    /// A tensor of bits.
    Bits(Value),
    /// A tensor that is added.
    Added(Value),
    /// Labels of rows, which are those of columns too: a row sees the columns of its label.
    Segments(Value),
}

impl Graph<'_> {
    /// The results of a program.
    pub fn fused(&mut self) -> Vec<Value> {
        let kind = self.random.below(15);
        // The others have extents that are known.
        self.open &= [0, 3, 4, 7, 8, 14].contains(&kind);
        match kind {
            0 => self.attention(),
            1 => self.chain(),
            2 | 5 => self.masked_rows(kind == 5),
            6 => self.gradients(),
            7 => self.strided_rows(),
            8 => self.gated(),
            9 => self.heads(),
            10 => self.column_sums(),
            11 => self.channels(),
            12 => self.gates(),
            13 => self.slices(),
            14 => self.apart(),
            _ => self.product_and_rows(),
        }
    }

    /// A product, elementwise steps, and often what a reduction makes of its rows as a second result.
    fn product_and_rows(&mut self) -> Vec<Value> {
        let product = self.product(None);
        if product.shape.is_empty() {
            return vec![product];
        }
        let made = self.elementwise(&product);
        let mut results = vec![made];
        if results[0].shape.len() == 2 && self.random.once_in(2) {
            let last = results[0].clone();
            results.push(self.rows_of_any(&last));
        } else if self.random.once_in(3) {
            results.push(product);
        }
        results
    }

    /// A reduction of rows that is right in every element type.
    fn rows_of_any(&mut self, value: &Value) -> Value {
        let op = match value.element {
            element if element.is_float() => "arith.maximumf",
            I1 => "arith.ori",
            _ => "arith.maxsi",
        };
        self.reduce(value, &[value.shape.len() - 1], op)
    }

    /// `f(x a) b`, with a residual.
    fn chain(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16]);
        let m = self.random.pick(&[16, 33, 64, 80]);
        let [k, n] = [0; 2].map(|_| self.random.pick(&[16, 24, 48, 64, 100]));
        let x = self.input_of(element, &[m, k], false);
        let first = self.multiplied_by(&x, n);
        let made = self.elementwise(&first);
        let hidden = self.small_cast(&made, element);
        let second = self.multiplied_by(&hidden, k);
        if second.shape != x.shape {
            return vec![self.small_cast(&second, element)];
        }
        let residual = Operand::plain(&x);
        let made = self.like(&second, F32);
        let sum = self.generic(
            2,
            &[Operand::plain(&second), residual],
            &made,
            |body, scalars, _, _| {
                let x = body.cast(&scalars[1], F32);
                body.addf(&scalars[0], &x)
            },
        );
        vec![self.small_cast(&sum, element)]
    }

    /// `value w^T` with sums in f32.
    pub fn multiplied_by(&mut self, value: &Value, n: i64) -> Value {
        let (m, k) = (value.shape[0], value.shape[1]);
        let weights = self.input_of(value.element, &[n, k], false);
        let shape = Shape {
            batch: None,
            m,
            n,
            k,
        };
        self.contracted(value, &weights, &shape, [false, true], F32, false)
    }

    /// The value in 16 bits, at a magnitude that keeps the next product's error small.
    fn small_cast(&mut self, value: &Value, to: Element) -> Value {
        let made = self.like(value, to);
        let rank = value.shape.len();
        self.generic(
            rank,
            &[Operand::plain(value)],
            &made,
            |body, scalars, _, _| {
                let x = match scalars[0].element.is_float() {
                    true => scalars[0].clone(),
                    false => body.cast(&scalars[0], F32),
                };
                let x = body.tamed(&x, 4.0);
                body.cast(&x, to)
            },
        )
    }

    /// Softmax of masked rows, or elements of it by an index that is data.
    fn masked_rows(&mut self, picked: bool) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        let shape = [
            self.random.pick(&[2, 17, 40]),
            self.random.pick(&[8, 65, 128, 200, 1000]),
        ];
        let x = self.input_of(element, &shape, false);
        let mask = self.mask(&shape);
        let x = self.cast(&x, F32);
        let masked = self.masked(&x, mask);
        let mut rows = self.softmax(&masked);
        if picked {
            rows = self.picked(&rows);
        }
        vec![self.cast(&rows, element)]
    }

    /// Softmax or a norm along a dimension that others follow, or a variance of others than the last, behind elementwise operations.
    fn strided_rows(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        // An extent that is known at run time only is the graph's own.
        let (outer, most) = if self.open {
            (self.rows, 100)
        } else {
            (2, 2000)
        };
        let columns = self.random.pick(&[3, 21, 100, 301, 2000]).min(most);
        let strides: &[i64] = if columns > 301 {
            &[16, 24]
        } else {
            &[16, 33, 49, 200]
        };
        let shape = [outer, columns, self.random.pick(strides)];
        let mut value = self.input_of(element, &shape, self.open);
        if self.random.once_in(2) {
            value = self.elementwise(&value);
        }
        if !value.element.is_float() || value.shape.len() != 3 {
            return vec![value];
        }
        let first = usize::from(value.open);
        if !value.open && self.random.once_in(3) {
            // The same rows, written as the last dimension.
            let turned = self.transposed_to(&value, &[0, 2, 1]);
            let rows = match self.random.once_in(2) {
                true => self.softmax_along(&turned, 2),
                false => self.norm_along(&turned, 2),
            };
            let back = self.transposed_to(&rows, &[0, 2, 1]);
            return vec![self.cast(&back, element)];
        }
        let rows = match self.random.below(4) {
            0 => self.softmax_along(&value, 1),
            1 => self.norm_along(&value, 1),
            2 => self.variance_along(&value, &[1]),
            _ => self.variance_along(&value, &[first, 2]),
        };
        vec![self.cast(&rows, element)]
    }

    /// A mask of a value's last two dimensions.
    pub fn mask(&mut self, shape: &[i64]) -> Mask {
        let tail = shape[shape.len() - 2..].to_vec();
        if tail[0] == tail[1] && self.random.once_in(2) {
            return Mask::Segments(self.input_of(I32, &tail[..1], false));
        }
        match self.random.below(4) {
            0 => Mask::Causal(self.random.pick(&[0, 0, 3])),
            1 => Mask::Window(self.random.pick(&[1, 7, 40])),
            2 => {
                let bits = self.input_of(I1, &tail, false);
                Mask::Bits(bits)
            }
            _ => Mask::Added(self.input_of(F32, &tail, false)),
        }
    }

    /// A value where its mask lets it be seen, else the least one. Each row sees its first columns.
    pub fn masked(&mut self, value: &Value, mask: Mask) -> Value {
        let (made, rank) = (self.like(value, value.element), value.shape.len());
        let tail = |mask: &Value| Operand {
            value: mask.clone(),
            map: vec![Some(rank - 2), Some(rank - 1)],
        };
        let mut operands = vec![Operand::plain(value)];
        operands.extend(match &mask {
            Mask::Bits(value) | Mask::Added(value) => vec![tail(value)],
            Mask::Causal(_) | Mask::Window(_) => Vec::new(),
            Mask::Segments(value) => {
                let label = |dim| Operand {
                    value: value.clone(),
                    map: vec![Some(dim)],
                };
                vec![label(rank - 2), label(rank - 1)]
            }
        });
        self.generic(rank, &operands, &made, |body, scalars, _, _| {
            let x = &scalars[0];
            match mask {
                Mask::Added(_) => body.addf(x, &scalars[1]),
                Mask::Segments(_) => {
                    let same = body.compare("eq", &scalars[1], &scalars[2]);
                    body.seen(&same, x)
                }
                Mask::Bits(_) => {
                    // The first column is always seen, so that no row is without one.
                    let column = body.index(rank - 1);
                    let first = body.at_most(&column, 0);
                    let seen = body.binary("arith.ori", &scalars[1], &first, 1.0, 0.0);
                    body.seen(&seen, x)
                }
                Mask::Causal(more) => {
                    let seen = not_behind(body, rank, more);
                    body.seen(&seen, x)
                }
                Mask::Window(width) => {
                    let seen = not_behind(body, rank, width);
                    let column = body.index(rank - 1);
                    let first = body.at_most(&column, 0);
                    let near = not_before(body, rank, width);
                    let near = body.binary("arith.ori", &near, &first, 1.0, 0.0);
                    let seen = body.binary("arith.andi", &seen, &near, 1.0, 0.0);
                    body.seen(&seen, x)
                }
            }
        })
    }
}

/// Whether the column is at most the row and some more.
fn not_behind(body: &mut Body, rank: usize, more: i64) -> Scalar {
    let (row, column) = (body.index(rank - 2), body.index(rank - 1));
    let last = body.plus(&row, more);
    body.compare("ule", &column, &last)
}

/// Whether the row is at most the column and some more.
fn not_before(body: &mut Body, rank: usize, more: i64) -> Scalar {
    let (row, column) = (body.index(rank - 2), body.index(rank - 1));
    let last = body.plus(&column, more);
    body.compare("ule", &row, &last)
}
