//! Heads: rows of a few dozen elements that are normalised, rotated, and stored in another order of rows.

use crate::element::Element;
use crate::graph::{Graph, Operand, Value};
use Element::{BF16, F16, F32};

impl Graph<'_> {
    /// Heads of `[batch, places, heads, elements]`.
    pub fn heads(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        let shape = [
            self.random.pick(&[1, 3]),
            self.random.pick(&[8, 21, 64]),
            self.random.pick(&[2, 3, 8]),
            self.random.pick(&[16, 32, 64, 64, 96, 128, 128, 256]),
        ];
        let x = self.input_of(element, &shape, false);
        let turns_first = self.random.once_in(2);
        let mut value = match turns_first {
            true => self.transposed_to(&x, &[0, 2, 1, 3]),
            false => x,
        };
        let rows = match self.random.below(3) {
            0 => self.softmax_along(&value, 3),
            _ => self.norm_along(&value, 3),
        };
        value = self.cast(&rows, element);
        if self.random.once_in(2) {
            value = self.rotated(&value);
        }
        if !turns_first {
            value = self.transposed_to(&value, &[0, 2, 1, 3]);
        }
        vec![value]
    }

    /// `x c + (-x[half:], x[:half]) s`, where `c` and `s` are of each element of a row.
    fn rotated(&mut self, value: &Value) -> Value {
        let half = value.shape[3] / 2;
        let [front, back] = [0, half].map(|first| self.columns(value, first, half));
        let made = self.like(&back, value.element);
        let back = self.generic(4, &[Operand::plain(&back)], &made, |body, scalars, _, _| {
            let zero = body.constant(0.0, scalars[0].element);
            body.subf(&zero, &scalars[0])
        });
        let text = format!(
            "NAME = tensor.concat dim(3) {}, {} : ({}, {}) -> {}",
            back.name,
            front.name,
            back.r#type(),
            front.r#type(),
            value.r#type()
        );
        let mut turned = self.moving(&back, &value.shape, &text);
        turned.bound = turned.bound.max(front.bound);
        turned.error = turned.error.max(front.error);
        let table = |graph: &mut Self| Operand {
            value: graph.input_of(value.element, &value.shape[3..], false),
            map: vec![Some(3)],
        };
        let [c, s] = [0; 2].map(|_| table(self));
        let made = self.like(value, value.element);
        let operands = [Operand::plain(value), Operand::plain(&turned), c, s];
        self.generic(4, &operands, &made, |body, scalars, _, _| {
            let [x, y, c, s] = [0, 1, 2, 3].map(|at: usize| body.cast(&scalars[at], F32));
            let [x, y] = [body.mulf(&x, &c), body.mulf(&y, &s)];
            let sum = body.addf(&x, &y);
            body.cast(&sum, value.element)
        })
    }
}
