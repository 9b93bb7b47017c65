//! Gated activations: of two columns of a projection, a half of the row apart or neighbours, and of two projections.

use crate::element::Element;
use crate::graph::{Graph, Operand, Value, type_of};
use Element::{BF16, F16, F32};

impl Graph<'_> {
    /// A gate and a value of the same rows, multiplied, and what they are formed of now and then.
    pub fn gated(&mut self) -> Vec<Value> {
        let element = self.random.pick(&[F16, BF16]);
        let m = match self.open {
            true => self.rows,
            false => self.random.pick(&[16, 33, 64, 80, 130]),
        };
        let [n, k] = [
            self.random.pick(&[8, 24, 40, 64, 100]),
            self.random.pick(&[16, 24, 48, 64, 100]),
        ];
        let x = self.input_of(element, &[m, k], self.open);
        let (mut results, [gate, value]) = match self.random.below(3) {
            0 => {
                let [gate, value] = [0; 2].map(|_| self.projection(&x, n));
                (vec![value.clone()], [gate, value])
            }
            kind => {
                let all = self.projection(&x, 2 * n);
                let sides = [0, 1].map(|side| self.side(&all, side, kind == 1));
                (vec![all], sides)
            }
        };
        if !self.random.once_in(4) {
            results.clear();
        }
        let residual = self.random.once_in(3).then(|| {
            let shape = gate.shape.clone();
            self.input_of(element, &shape, gate.open)
        });
        let made = self.like(&gate, element);
        let mut operands = vec![Operand::plain(&gate), Operand::plain(&value)];
        operands.extend(residual.iter().map(Operand::plain));
        let is_added = residual.is_some();
        let product = self.generic(2, &operands, &made, |body, scalars, _, _| {
            let [gate, value] = [0, 1].map(|at| {
                let wide = body.cast(&scalars[at], F32);
                body.tamed(&wide, 4.0)
            });
            let one = body.constant(1.0, F32);
            let below = body.away_from_zero(&gate, 1.0);
            let gate = body.divf(&gate, &below, 1.0);
            let gate = body.addf(&gate, &one);
            let mut product = body.mulf(&gate, &value);
            if is_added {
                let more = body.cast(&scalars[2], F32);
                product = body.addf(&product, &more);
            }
            body.cast(&product, element)
        });
        results.insert(0, product);
        results
    }

    /// `x w^T` in 16 bits, with a bias now and then.
    fn projection(&mut self, x: &Value, n: i64) -> Value {
        let product = self.multiplied_by(x, n);
        let bias = self.random.once_in(2).then(|| Operand {
            value: self.input_of(x.element, &[n], false),
            map: vec![Some(1)],
        });
        let made = self.like(&product, x.element);
        let has_bias = bias.is_some();
        let operands: Vec<_> = [Operand::plain(&product)].into_iter().chain(bias).collect();
        self.generic(2, &operands, &made, |body, scalars, _, _| {
            let mut sum = scalars[0].clone();
            if has_bias {
                let bias = body.cast(&scalars[1], F32);
                sum = body.addf(&sum, &bias);
            }
            let sum = body.tamed(&sum, 4.0);
            body.cast(&sum, x.element)
        })
    }

    /// One column of each pair.
    fn side(&mut self, all: &Value, side: i64, halves: bool) -> Value {
        let shape = [all.shape[0], all.shape[1] / 2];
        let (first, stride) = match halves {
            true => (side * shape[1], 1),
            false => (side, 2),
        };
        let rows = match all.open {
            true => self.extent(),
            false => shape[0].to_string(),
        };
        let text = format!(
            "NAME = tensor.extract_slice {}[0, {first}] [{rows}, {}] [1, {stride}] : {} to {}",
            all.name,
            shape[1],
            all.r#type(),
            type_of(&shape, all.open, all.element)
        );
        self.moving(all, &shape, &text)
    }
}
