//! Sums of columns of what is formed element by element, and stored: gradients of an activation and of a bias in front of it.

use crate::element::Element;
use crate::graph::{Graph, Operand, Value};
use Element::{BF16, F16, F32};

impl Graph<'_> {
    /// A gradient, its sum, and the sum of its product with something else.
    pub fn column_sums(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16, F32]);
        let shape = [
            self.random.pick(&[40, 128, 600, 1001, 2048]),
            self.random.pick(&[8, 24, 33, 64, 200]),
        ];
        let is_batched = self.random.once_in(4);
        let shape = match is_batched {
            true => vec![3, shape[0], shape[1]],
            false => shape.to_vec(),
        };
        let rows = shape.len() - 2;
        let [gradient, x] = [0; 2].map(|_| self.input_of(element, &shape, false));
        let made = self.like(&x, element);
        let operands = [Operand::plain(&gradient), Operand::plain(&x)];
        let steep = self.random.once_in(2);
        let formed = self.generic(shape.len(), &operands, &made, |body, scalars, _, _| {
            let [gradient, x] = [0, 1].map(|at| body.cast(&scalars[at], F32));
            let slope = match steep {
                true => {
                    let less = body.tamed(&x, 1.0);
                    body.unary("math.exp", &less, 2.8, less.error + 1e-5)
                }
                false => {
                    let half = body.constant(0.5, F32);
                    body.addf(&x, &half)
                }
            };
            let product = body.mulf(&gradient, &slope);
            let product = body.tamed(&product, 4.0);
            body.cast(&product, element)
        });
        let wide = self.cast(&formed, F32);
        let mut results = vec![self.reduce(&wide, &[rows], "arith.addf")];
        if self.random.once_in(2) {
            let made = self.like(&x, F32);
            let operands = [Operand::plain(&formed), Operand::plain(&x)];
            let products = self.generic(shape.len(), &operands, &made, |body, scalars, _, _| {
                let [a, b] = [0, 1].map(|at: usize| body.cast(&scalars[at], F32));
                body.mulf(&a, &b)
            });
            results.push(self.reduce(&products, &[rows], "arith.addf"));
        }
        if self.random.once_in(2) {
            results.push(formed);
        }
        results
    }
}
