//! Matrix products, in the forms that front ends write them.

use crate::element::Element;
use crate::graph::{Graph, Made, Operand, Value, type_of};
use Element::{BF16, F16, F32, F64, I8, I16, I32};

/// Element types of operands and of sums.
const TYPES: [(Element, Element); 9] = [
    (F16, F32),
    (F16, F32),
    (BF16, F32),
    (F32, F32),
    (F16, F16),
    (BF16, BF16),
    (F64, F64),
    (I8, I32),
    (I32, I32),
];

/// The loops of a product: `[batch,] m, n, k`.
pub struct Shape {
    /// Products of a batch.
    pub batch: Option<i64>,
    /// Rows.
    pub m: i64,
    /// Columns.
    pub n: i64,
    /// The depth.
    pub k: i64,
}

impl Graph<'_> {
    /// A product of new tensors, or of a value with a new one.
    pub fn product(&mut self, value: Option<&Value>) -> Value {
        let fits = value.filter(|value| value.shape.len() == 2 && value.element != Element::I1);
        match self.random.below(8) {
            0 if !self.open => self.vectors(),
            1 => self.linear(),
            2 => self.casted(),
            _ => self
                .contraction(fits.filter(|value| value.element.is_float() || value.bound < 64.0)),
        }
    }

    fn types(&mut self) -> (Element, Element) {
        let picked = self.random.pick(&TYPES);
        match self.random.once_in(24) {
            true => (I16, I32),
            false => picked,
        }
    }

    fn sizes(&mut self) -> [i64; 3] {
        let m = match self.open {
            true => self.rows,
            false => self.random.pick(&[1, 5, 8, 16, 17, 33, 64, 80]),
        };
        let n = self
            .random
            .pick(&[1, 7, 8, 16, 24, 31, 32, 64, 65, 100, 128]);
        [m, n, self.random.pick(&[1, 3, 8, 16, 17, 32, 48, 64, 65])]
    }

    /// The bound and the error of a sum of `k` products.
    fn summed(a: &Value, b: &Value, k: i64, sum: Element) -> (f64, f64) {
        let (terms, product) = (k as f64, a.bound * b.bound);
        let bound = terms * product;
        let operands = terms * (a.error * b.bound + b.error * a.bound + a.error * b.error);
        // A sum of 16-bit floats is rounded at each step, or once: both are right.
        let rounding = sum.roundoff() * bound * (4.0 * terms.sqrt()).min(terms + 1.0) / 2.0;
        // Tensor cores take the operands of f32 products as tf32 nowhere unless asked.
        (
            bound.min(if sum.is_float() {
                f64::MAX
            } else {
                sum.limit()
            }),
            operands + rounding,
        )
    }

    /// `linalg.matmul`, `linalg.batch_matmul` or a generic contraction, with operands in either order of dimensions.
    fn contraction(&mut self, value: Option<&Value>) -> Value {
        let (mut element, mut sum) = self.types();
        let [mut m, n, mut k] = self.sizes();
        if let Some(value) = value {
            (m, k) = (value.shape[0], value.shape[1]);
            element = value.element;
            sum = match element {
                F16 | BF16 => self.random.pick(&[F32, F32, element]),
                I8 | I16 => I32,
                other => other,
            };
        }
        if element.bits() == 16 && element == sum && value.is_none() {
            // Sums of many terms say little in so few bits.
            k = k.min(17);
        }
        let batch = match value.is_none() && !self.open && self.random.once_in(4) {
            true => Some(self.random.pick(&[1, 2, 3])),
            false => None,
        };
        let shape = Shape { batch, m, n, k };
        let flips = [
            value.is_none() && !self.open && self.random.once_in(4),
            self.random.once_in(2),
        ];
        let a = match value {
            Some(value) => value.clone(),
            None => self.operand(element, batch, [m, k], flips[0], self.open),
        };
        let b = self.operand(element, batch, [k, n], flips[1], false);
        let generic = self.random.once_in(3)
            || (element != sum && !element.is_float() && self.random.once_in(2));
        let made = self.contracted(&a, &b, &shape, flips, sum, generic);
        self.epilogue(made)
    }

    /// An operand; its last two dimensions exchanged when `flipped`.
    fn operand(
        &mut self,
        element: Element,
        batch: Option<i64>,
        mut shape: [i64; 2],
        flipped: bool,
        open: bool,
    ) -> Value {
        if flipped {
            shape.swap(0, 1);
        }
        let all: Vec<_> = batch.into_iter().chain(shape).collect();
        self.input_of(element, &all, open)
    }

    /// The product of operands, the last two dimensions of which are exchanged where `flips` says so.
    pub fn contracted(
        &mut self,
        a: &Value,
        b: &Value,
        shape: &Shape,
        flips: [bool; 2],
        sum: Element,
        generic: bool,
    ) -> Value {
        let first = usize::from(shape.batch.is_some());
        let (m, n, k) = (Some(first), Some(first + 1), Some(first + 2));
        let with_batch = |dims: [Option<usize>; 2], flipped: bool| {
            let [i, j] = if flipped { [dims[1], dims[0]] } else { dims };
            let mut map: Vec<_> = shape.batch.iter().map(|_| Some(0)).collect();
            map.extend([i, j]);
            map
        };
        let extents: Vec<_> = shape.batch.into_iter().chain([shape.m, shape.n]).collect();
        let made = Made {
            map: with_batch([m, n], false),
            open: a.open,
            shape: extents,
            element: sum,
            start: Some(0.0),
        };
        let operands = [
            Operand {
                value: a.clone(),
                map: with_batch([m, k], flips[0]),
            },
            Operand {
                value: b.clone(),
                map: with_batch([k, n], flips[1]),
            },
        ];
        let limits = Self::summed(a, b, shape.k, sum);
        if generic {
            return self.multiplied(first + 3, &operands, &made, limits);
        }
        let op = if shape.batch.is_some() {
            "linalg.batch_matmul"
        } else {
            "linalg.matmul"
        };
        let maps = match flips == [false, false] {
            true => String::new(),
            false => {
                let maps = [&operands[0].map, &operands[1].map, &made.map];
                let maps = maps.map(|map| crate::graph::affine(first + 3, map));
                format!(" indexing_maps = [{}]", maps.join(", "))
            }
        };
        self.named_product(op, &maps, [a, b], &made, limits)
    }

    /// The sum of products as a `linalg.generic`, operands converted in its body; the bound of results and of their errors.
    pub fn multiplied(
        &mut self,
        loops: usize,
        operands: &[Operand; 2],
        made: &Made,
        (bound, error): (f64, f64),
    ) -> Value {
        let sum = made.element;
        self.generic(loops, operands, made, |body, scalars, out, _| {
            let (x, y) = (body.cast(&scalars[0], sum), body.cast(&scalars[1], sum));
            let (times, plus) = match sum.is_float() {
                true => ("arith.mulf", "arith.addf"),
                false => ("arith.muli", "arith.addi"),
            };
            let product = body.binary(times, &x, &y, bound, error);
            body.binary(plus, out, &product, bound, error)
        })
    }

    fn named_product(
        &mut self,
        op: &str,
        maps: &str,
        [a, b]: [&Value; 2],
        made: &Made,
        (bound, error): (f64, f64),
    ) -> Value {
        let (start, name) = (self.start(made), self.fresh());
        let r#type = type_of(&made.shape, made.open, made.element);
        self.line(&format!(
            "{name} = {op}{maps} ins({}, {} : {}, {}) outs({start} : {type}) -> {type}",
            a.name,
            b.name,
            a.r#type(),
            b.r#type()
        ));
        self.value(name, made, bound, error)
    }

    /// Matrix times vector, vector times matrix, vector times vector.
    fn vectors(&mut self) -> Value {
        let (element, sum) = self.types();
        let [m, n, k] = self.sizes();
        let kind = self.random.below(3);
        let (op, a, b, shape) = match kind {
            0 => ("linalg.matvec", vec![m, k], vec![k], vec![m]),
            1 => ("linalg.vecmat", vec![k], vec![k, n], vec![n]),
            _ => ("linalg.dot", vec![k], vec![k], vec![]),
        };
        let (a, b) = (self.input(element, &a), self.input(element, &b));
        let made = Made {
            map: Vec::new(),
            shape,
            open: false,
            element: sum,
            start: Some(0.0),
        };
        let result = Self::summed(&a, &b, k, sum);
        self.named_product(op, "", [&a, &b], &made, result)
    }

    /// `torch.nn.functional.linear` in 16 bits: both operands extended, the weights transposed, an f32 product, `truncf`.
    fn linear(&mut self) -> Value {
        let element = self.random.pick(&[F16, BF16]);
        let [m, n, k] = self.sizes();
        let (x, w) = (
            self.input(element, &[m, k]),
            self.operand(element, None, [n, k], false, false),
        );
        let x = self.cast(&x, F32);
        let w = self.cast(&w, F32);
        let made = |shape: Vec<i64>, open, start| Made {
            map: Vec::new(),
            shape,
            open,
            element: F32,
            start,
        };
        let turned = made(vec![k, n], false, None);
        let (start, name) = (self.start(&turned), self.fresh());
        let r#type = type_of(&turned.shape, false, F32);
        self.line(&format!(
            "{name} = linalg.transpose ins({} : {}) outs({start} : {type}) permutation = [1, 0]",
            w.name,
            w.r#type()
        ));
        let w = self.value(name, &turned, w.bound, w.error);
        let product = made(vec![m, n], x.open, Some(0.0));
        let result = Self::summed(&x, &w, k, F32);
        let product = self.named_product("linalg.matmul", "", [&x, &w], &product, result);
        let sum = self.epilogue(product);
        self.cast(&sum, element)
    }

    /// `torch.mm` in 16 bits: a product with an f32 sum, `truncf`.
    fn casted(&mut self) -> Value {
        let element = self.random.pick(&[F16, BF16]);
        let [m, n, k] = self.sizes();
        let a = self.input(element, &[m, k]);
        let b = self.operand(element, None, [k, n], false, false);
        let shape = Shape {
            batch: None,
            m,
            n,
            k,
        };
        let sum = self.contracted(&a, &b, &shape, [false, false], F32, false);
        self.cast(&sum, element)
    }

    /// An elementwise cast.
    pub fn cast(&mut self, value: &Value, to: Element) -> Value {
        let made = Made {
            map: (0..value.shape.len()).map(Some).collect(),
            shape: value.shape.clone(),
            open: value.open,
            element: to,
            start: None,
        };
        self.generic(
            value.shape.len(),
            &[Operand::plain(value)],
            &made,
            |body, scalars, _, _| body.cast(&scalars[0], to),
        )
    }

    /// Sometimes elementwise steps behind a product.
    fn epilogue(&mut self, product: Value) -> Value {
        match self.random.once_in(2) {
            true => self.elementwise(&product),
            false => product,
        }
    }
}
