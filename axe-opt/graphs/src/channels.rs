//! What rows of a product share: a matrix for a whole batch, numbers of a channel at all places, gates of a batch at all of its rows. And rows that are parts
//! of longer ones.

use crate::element::Element;
use crate::graph::{Graph, Made, Operand, Value, type_of};
use Element::{BF16, F16, F32};

impl Graph<'_> {
    /// `w x[b] + c`, `w` of all of a batch, scaled and shifted by numbers of a channel, of a place of an image, or of an image's channel.
    pub fn channels(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        let batch = self.random.pick(&[2, 3]);
        let [m, n] = [
            self.random.pick(&[8, 24, 64, 72, 130]),
            self.random.pick(&[16, 49, 64, 100, 136]),
        ];
        let k = self.random.pick(&[16, 32, 64]);
        let (w, x) = (
            self.input_of(element, &[m, k], false),
            self.input_of(element, &[batch, k, n], false),
        );
        let made = Made {
            map: vec![Some(0), Some(1), Some(2)],
            open: false,
            shape: vec![batch, m, n],
            element: F32,
            start: Some(0.0),
        };
        let operand = |value: &Value, map: &[usize]| Operand {
            value: value.clone(),
            map: map.iter().copied().map(Some).collect(),
        };
        let operands = [operand(&w, &[1, 3]), operand(&x, &[0, 3, 2])];
        let bound = 4.0 * k as f64;
        let product = self.multiplied(4, &operands, &made, (bound, bound * 1e-6 * k as f64));
        let product = self.cast(&product, element);
        vec![self.with_shared(&product, element)]
    }

    /// A product of rows that lie in a batch, with gates of it.
    pub fn gates(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16]);
        let shape = [
            self.random.pick(&[2, 3, 5]),
            self.random.pick(&[16, 33, 64, 128]),
            self.random.pick(&[16, 40, 64, 136]),
        ];
        let k = self.random.pick(&[16, 48]);
        let x = self.input_of(element, &[shape[0] * shape[1], k], false);
        let product = self.multiplied_by(&x, shape[2]);
        let product = self.cast(&product, element);
        let text = format!(
            "NAME = tensor.expand_shape {} [[0, 1], [2]] output_shape [{}, {}, {}] : {} into {}",
            product.name,
            shape[0],
            shape[1],
            shape[2],
            product.r#type(),
            type_of(&shape, false, element)
        );
        let product = self.moving(&product, &shape, &text);
        vec![self.with_shared(&product, element)]
    }

    /// Rows that begin at a column of longer ones, normalised.
    pub fn slices(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        let columns = self.random.pick(&[16, 64, 96, 256, 1000]);
        let [before, behind] = [0; 2].map(|_| self.random.pick(&[0, 8, 64, 5]));
        let shape = [
            self.random.pick(&[2, 3]),
            self.random.pick(&[8, 21, 40]),
            before + columns + behind,
        ];
        let x = self.input_of(element, &shape, false);
        let rows = self.columns(&x, before, columns);
        let made = match self.random.below(3) {
            0 => self.softmax_along(&rows, 2),
            _ => self.norm_along(&rows, 2),
        };
        let mut results = vec![self.cast(&made, element)];
        if self.random.once_in(3) {
            let other = self.columns(&x, 0, before + columns);
            results.push(self.norm_along(&other, 2));
        }
        results
    }

    /// A value of `[batch, rows, columns]`, times and plus numbers that some of these share.
    fn with_shared(&mut self, value: &Value, element: Element) -> Value {
        let mut value = value.clone();
        for turn in 0..2 {
            let dims = self.random.pick(&[&[1][..], &[0, 2], &[0, 1], &[2]]);
            let shape: Vec<_> = dims.iter().map(|dim| value.shape[*dim]).collect();
            let shared = self.input_of(element, &shape, false);
            let shared = match self.random.once_in(2) {
                true => self.cast(&shared, F32),
                false => shared,
            };
            let made = self.like(&value, F32);
            let shared = Operand {
                value: shared,
                map: dims.iter().copied().map(Some).collect(),
            };
            let operands = [Operand::plain(&value), shared];
            value = self.generic(3, &operands, &made, |body, scalars, _, _| {
                let [x, y] = [0, 1].map(|at: usize| body.cast(&scalars[at], F32));
                match turn {
                    0 => body.mulf(&x, &y),
                    _ => body.addf(&x, &y),
                }
            });
        }
        self.cast(&value, element)
    }
}
