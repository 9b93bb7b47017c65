//! Stages of a graph: elementwise operations, reductions, changes of shape.

use crate::element::{Element, FLOATS, INTEGERS};
use crate::graph::{Graph, Made, Operand, Value};
use crate::scalar::{Body, Scalar};
use crate::steps;

impl Graph<'_> {
    /// A tensor of a random shape and type to start from.
    pub fn seed_tensor(&mut self) -> Value {
        let element = self.element();
        let shape = self.shape();
        self.input(element, &shape)
    }

    fn element(&mut self) -> Element {
        match self.random.below(60) {
            0..=35 => self.random.pick(&FLOATS),
            36..=54 => self.random.pick(&INTEGERS),
            _ => Element::I1,
        }
    }

    fn shape(&mut self) -> Vec<i64> {
        let rows = match self.open {
            true => self.rows,
            false => self.random.pick(&[1, 2, 7, 8, 16, 17, 33, 40]),
        };
        let columns = self
            .random
            .pick(&[1, 3, 8, 16, 31, 64, 65, 100, 128, 130, 200]);
        match self.random.below(8) {
            0 if self.open => vec![rows],
            0 => vec![self.random.pick(&[1, 5, 32, 100, 129, 257, 1000])],
            1 | 2 => {
                let middle = self.random.pick(&[1, 3, 8, 9]);
                vec![rows.min(17), middle, columns.min(65)]
            }
            _ => vec![rows, columns],
        }
    }

    fn is_open(&self, shape: &[i64]) -> bool {
        self.open && shape.first() == Some(&self.rows)
    }

    /// What an elementwise operation over the shape of a value makes.
    pub fn like(&self, value: &Value, element: Element) -> Made {
        Made {
            map: (0..value.shape.len()).map(Some).collect(),
            shape: value.shape.clone(),
            open: value.open,
            element,
            start: None,
        }
    }

    /// An operand that is broadcast over, or has, the shape of a value.
    fn companion(&mut self, value: &Value) -> Operand {
        let rank = value.shape.len();
        let element = match self.random.below(4) {
            0 => self.element(),
            _ => value.element,
        };
        let kept: Vec<usize> = match self.random.below(4) {
            0 => (0..rank).collect(),
            1 => vec![rank - 1],
            2 => vec![0],
            _ => (0..rank).filter(|_| self.random.once_in(2)).collect(),
        };
        let mut map: Vec<_> = kept.iter().map(|dim| Some(*dim)).collect();
        let mut shape: Vec<_> = kept.iter().map(|dim| value.shape[*dim]).collect();
        if self.random.once_in(4) {
            // A dimension of extent 1, as PyTorch leaves where it has reduced.
            let at = self.random.below(map.len() + 1);
            if !(at == 0 && self.open) {
                map.insert(at, None);
                shape.insert(at, 1);
            }
        }
        if value.open && kept.first() != Some(&0) && shape.first() == Some(&self.rows) {
            // Its first extent would be dynamic and run with a static one.
            return Operand::plain(&self.input(element, &value.shape.clone()));
        }
        if map.len() == 2
            && map[0].is_some()
            && map[1].is_some()
            && !value.open
            && self.random.once_in(3)
        {
            map.swap(0, 1);
            shape.swap(0, 1);
        }
        if self.open && !value.open && shape.first() == Some(&self.rows) {
            return Operand::plain(value);
        }
        let input = self.input(element, &shape);
        Operand { value: input, map }
    }

    /// Some elementwise steps on a value, with others.
    pub fn elementwise(&mut self, value: &Value) -> Value {
        if self.random.once_in(6)
            && let Some(made) = self.named(value)
        {
            return made;
        }
        let mut operands = vec![Operand::plain(value)];
        for _ in 0..self.random.below(3) {
            let companion = self.companion(value);
            operands.push(companion);
        }
        let to = match self.random.below(3) {
            0 => self.element(),
            _ => value.element,
        };
        let mut made = self.like(value, to);
        let rank = value.shape.len();
        if rank == 2 && !value.open && !self.is_open(&[value.shape[1]]) && self.random.once_in(8) {
            // The transpose, written where it is computed.
            made.map = vec![Some(1), Some(0)];
            made.shape = vec![value.shape[1], value.shape[0]];
        }
        let indexed = self.random.once_in(25);
        self.generic(rank, &operands, &made, |body, scalars, _, random| {
            let (first, mut others) = (scalars[0].clone(), scalars[1..].to_vec());
            if indexed {
                let dim = random.below(rank);
                let bound = value.shape[dim] as f64;
                let index = body.emit(
                    &format!("linalg.index {dim} : index"),
                    Element::Index,
                    bound,
                    0.0,
                );
                others.push(body.cast(&index, Element::I32));
            }
            let mut current = first;
            for _ in 0..random.range(1, 4) {
                current = steps::step(body, &current, &others, random);
                others.push(scalars[0].clone());
            }
            body.cast(&current, to)
        })
    }

    /// An elementwise operation by its name.
    fn named(&mut self, value: &Value) -> Option<Value> {
        let made = self.like(value, value.element);
        let other = self.input(value.element, &value.shape.clone());
        let (op, bound, error) = if value.element.is_float() {
            let u = value.element.roundoff();
            let sum = value.bound + other.bound;
            let product = value.bound * other.bound;
            match self.random.below(3) {
                0 => ("add", sum, value.error + u * sum),
                1 => ("sub", sum, value.error + u * sum),
                _ => ("mul", product, value.error * other.bound + u * product),
            }
        } else if value.element == Element::I1 {
            return None;
        } else {
            (
                self.random.pick(&["add", "sub", "mul", "max", "min"]),
                value.element.limit(),
                0.0,
            )
        };
        if bound > value.element.limit() {
            return None;
        }
        let (start, name) = (self.start(&made), self.fresh());
        let r#type = value.r#type();
        self.line(&format!(
            "{name} = linalg.{op} ins({}, {} : {type}, {type}) outs({start} : {type}) -> {type}",
            value.name, other.name
        ));
        Some(self.value(name, &made, bound, error))
    }

    /// A reduction over some dimensions.
    pub fn reduction(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        let mut reduced: Vec<usize> = match self.random.below(4) {
            0 => (0..rank).filter(|_| self.random.once_in(2)).collect(),
            1 if !value.open => vec![0],
            _ => vec![rank - 1],
        };
        if reduced.is_empty() {
            reduced.push(rank - 1);
        }
        if value.open {
            reduced.retain(|dim| *dim > 0);
        }
        if reduced.is_empty() {
            return self.elementwise(value);
        }
        let op = self.reduction_op(value.element);
        let count: i64 = reduced.iter().map(|dim| value.shape[*dim]).product();
        match op == "arith.addf" && count > 8 {
            true => {
                let wide = self.widened(value);
                self.reduce(&wide, &reduced, op)
            }
            false => self.reduce(value, &reduced, op),
        }
    }

    fn reduction_op(&mut self, element: Element) -> &'static str {
        match element {
            element if element.is_float() => self.random.pick(&[
                "arith.addf",
                "arith.addf",
                "arith.maximumf",
                "arith.minimumf",
            ]),
            Element::I1 => self.random.pick(&["arith.andi", "arith.ori", "arith.xori"]),
            _ => self.random.pick(&[
                "arith.addi",
                "arith.addi",
                "arith.maxsi",
                "arith.minsi",
                "arith.maxui",
                "arith.minui",
                "arith.xori",
                "arith.andi",
                "arith.ori",
                "arith.muli",
            ]),
        }
    }

    /// The reduction by an operation over dimensions; sometimes with a dimension of extent 1 kept.
    pub fn reduce(&mut self, value: &Value, reduced: &[usize], op: &'static str) -> Value {
        let rank = value.shape.len();
        let count: i64 = reduced.iter().map(|dim| value.shape[*dim]).product();
        let keep = self.random.once_in(3) && !reduced.contains(&0);
        let mut made = Made {
            map: Vec::new(),
            shape: Vec::new(),
            open: value.open,
            element: value.element,
            start: Some(start_of(op, value.element)),
        };
        for dim in 0..rank {
            match reduced.contains(&dim) {
                false => {
                    made.map.push(Some(dim));
                    made.shape.push(value.shape[dim]);
                }
                true if keep => {
                    made.map.push(None);
                    made.shape.push(1);
                }
                true => {}
            }
        }
        if !made.open && self.is_open(&made.shape) {
            return self.elementwise(value);
        }
        let tame = if op == "arith.addf" {
            value.element.limit() / count as f64
        } else {
            f64::MAX
        };
        self.generic(
            rank,
            &[Operand::plain(value)],
            &made,
            |body, scalars, out, random| {
                let x = body.tamed(&scalars[0], tame);
                let [a, b] = if random.once_in(2) {
                    [&x, out]
                } else {
                    [out, &x]
                };
                let (bound, error) = accumulated(op, &x, count as f64);
                body.binary(op, a, b, bound, error)
            },
        )
    }

    /// `linalg.transpose`, `linalg.broadcast`, or a reshape.
    pub fn reshaped(&mut self, value: &Value) -> Value {
        let rank = value.shape.len();
        if value.open || rank < 2 {
            return self.elementwise(value);
        }
        let (mut made, text) = match self.random.below(3) {
            0 => self.transposed(value),
            1 => self.collapsed(value),
            _ => self.broadcast(value),
        };
        if self.is_open(&made.shape) {
            return self.elementwise(value);
        }
        made.map.clear();
        let r#type = crate::graph::type_of(&made.shape, false, made.element);
        let text = if text.contains("OUT") {
            let start = self.start(&made);
            text.replace("OUT", &format!("outs({start} : {type})"))
        } else {
            text + &format!(" into {type}")
        };
        let name = self.fresh();
        self.line(&format!("{name} = {text}"));
        self.value(name, &made, value.bound, value.error)
    }

    /// `linalg.transpose` to an order of dimensions, of a value whose extents are known.
    pub fn transposed_to(&mut self, value: &Value, order: &[usize]) -> Value {
        let mut made = self.like(value, value.element);
        made.shape = order.iter().map(|dim| value.shape[*dim]).collect();
        made.map.clear();
        let (start, name) = (self.start(&made), self.fresh());
        let (from, to) = (
            value.r#type(),
            crate::graph::type_of(&made.shape, false, made.element),
        );
        self.line(&format!(
            "{name} = linalg.transpose ins({} : {from}) outs({start} : {to}) permutation = {order:?}",
            value.name,
        ));
        self.value(name, &made, value.bound, value.error)
    }

    fn transposed(&mut self, value: &Value) -> (Made, String) {
        let mut made = self.like(value, value.element);
        let mut order: Vec<usize> = (0..value.shape.len()).collect();
        let (i, j) = (
            self.random.below(order.len()),
            self.random.below(order.len()),
        );
        order.swap(i, j);
        made.shape = order.iter().map(|dim| value.shape[*dim]).collect();
        let text = format!(
            "linalg.transpose ins({} : {}) OUT permutation = {order:?}",
            value.name,
            value.r#type()
        );
        (made, text)
    }

    fn collapsed(&mut self, value: &Value) -> (Made, String) {
        let mut made = self.like(value, value.element);
        made.shape = vec![value.shape[0] * value.shape[1]];
        made.shape.extend(&value.shape[2..]);
        let mut groups = vec!["[0, 1]".to_owned()];
        groups.extend((2..value.shape.len()).map(|dim| format!("[{dim}]")));
        let text = format!(
            "tensor.collapse_shape {} [{}] : {}",
            value.name,
            groups.join(", "),
            value.r#type()
        );
        (made, text)
    }

    fn broadcast(&mut self, value: &Value) -> (Made, String) {
        let mut made = self.like(value, value.element);
        let dim = self.random.below(value.shape.len() + 1);
        made.shape.insert(dim, self.random.pick(&[2, 3, 5]));
        let text = format!(
            "linalg.broadcast ins({} : {}) OUT dimensions = [{dim}]",
            value.name,
            value.r#type()
        );
        (made, text)
    }

    /// A value in 32 bits where it has 16, as front ends sum it.
    fn widened(&mut self, value: &Value) -> Value {
        match value.element {
            Element::F16 | Element::BF16 => self.cast(value, Element::F32),
            _ => value.clone(),
        }
    }

    /// Softmax over the last dimension, as front ends write it.
    pub fn softmax(&mut self, value: &Value) -> Value {
        self.softmax_along(value, value.shape.len() - 1)
    }

    /// Softmax over a dimension of known extent.
    pub fn softmax_along(&mut self, value: &Value, dim: usize) -> Value {
        let value = &self.widened(value);
        let most = self.reduce(value, &[dim], "arith.maximumf");
        let powers = self.with_reduced(value, (&most, &[dim]), |body, x, most| {
            // What is subtracted is one of them.
            let less = body.subf(x, most);
            let bound = less.bound;
            body.unary(
                "math.exp",
                &less,
                1.0,
                less.error + x.element.approximation() * (1.0 + bound),
            )
        });
        let sums = self.reduce(&powers, &[dim], "arith.addf");
        let count = value.shape[dim] as f64;
        self.with_reduced(&powers, (&sums, &[dim]), |body, x, sum| {
            let mut quotient = body.divf(x, sum, 1.0);
            quotient.bound = 1.0;
            // All terms are positive: the sum is as near as each of them, but for its roundings.
            let element = x.element;
            quotient.error = 2.0 * x.error + count * element.roundoff() + element.approximation();
            quotient
        })
    }

    /// The root-mean-square norm over a dimension of known extent.
    pub fn norm_along(&mut self, value: &Value, dim: usize) -> Value {
        let value = &self.widened(value);
        let count = value.shape[dim] as f64;
        let made = self.like(value, value.element);
        let rank = value.shape.len();
        let squares = self.generic(
            rank,
            &[Operand::plain(value)],
            &made,
            |body, scalars, _, _| {
                let x = body.tamed(&scalars[0], 4.0);
                body.mulf(&x, &x.clone())
            },
        );
        let sums = self.reduce(&squares, &[dim], "arith.addf");
        self.with_reduced(value, (&sums, &[dim]), |body, x, sum| {
            let x = body.tamed(x, 4.0);
            let factor = body.constant(2f64.powi(-(count.log2().round() as i32)), x.element);
            let mean = body.mulf(sum, &factor);
            let epsilon = body.constant(0.125, x.element);
            let from = body.addf(&mean, &epsilon);
            // The slope of 1/sqrt at 1/8 is 11.4.
            let scale = body.unary(
                "math.rsqrt",
                &from,
                2.9,
                11.4 * from.error + 3.0 * x.element.approximation(),
            );
            body.mulf(&x, &scale)
        })
    }

    /// What an operation leaves of a value's last dimension.
    pub fn rows_of(&mut self, value: &Value, op: &'static str) -> Value {
        self.reduce(value, &[value.shape.len() - 1], op)
    }

    /// An elementwise operation on a value and what a reduction left of its last dimension.
    pub fn with_rows(
        &mut self,
        value: &Value,
        rows: &Value,
        work: impl FnOnce(&mut Body, &Scalar, &Scalar) -> Scalar,
    ) -> Value {
        self.with_reduced(value, (rows, &[value.shape.len() - 1]), work)
    }

    /// Sums of squares about the mean over dimensions of known extents.
    pub fn variance_along(&mut self, value: &Value, dims: &[usize]) -> Value {
        let value = &self.widened(value);
        let count: i64 = dims.iter().map(|dim| value.shape[*dim]).product();
        let (rank, made) = (value.shape.len(), self.like(value, value.element));
        let tame = self.generic(rank, &[Operand::plain(value)], &made, |body, own, _, _| {
            body.tamed(&own[0], 4.0)
        });
        let sums = self.reduce(&tame, dims, "arith.addf");
        let (rank, made) = (sums.shape.len(), self.like(&sums, sums.element));
        let mean = self.generic(rank, &[Operand::plain(&sums)], &made, |body, own, _, _| {
            let count = body.constant(count as f64, own[0].element);
            body.divf(&own[0], &count, count.bound)
        });
        let apart = self.with_reduced(&tame, (&mean, dims), |body, x, mean| body.subf(x, mean));
        let (rank, made) = (apart.shape.len(), self.like(&apart, apart.element));
        let squares = self.generic(rank, &[Operand::plain(&apart)], &made, |body, own, _, _| {
            body.mulf(&own[0], &own[0].clone())
        });
        self.reduce(&squares, dims, "arith.addf")
    }

    /// An elementwise operation on a value and what a reduction left of it along dimensions.
    fn with_reduced(
        &mut self,
        value: &Value,
        (reduced, dims): (&Value, &[usize]),
        work: impl FnOnce(&mut Body, &Scalar, &Scalar) -> Scalar,
    ) -> Value {
        let rank = value.shape.len();
        let kept = reduced.shape.len() == rank;
        let map = (0..rank).filter(|own| kept || !dims.contains(own));
        let map = map.map(|own| (!dims.contains(&own)).then_some(own));
        let map = map.collect();
        let rows = Operand {
            value: reduced.clone(),
            map,
        };
        let made = self.like(value, value.element);
        self.generic(
            rank,
            &[Operand::plain(value), rows],
            &made,
            |body, scalars, _, _| work(body, &scalars[0], &scalars[1]),
        )
    }
}

/// What a reduction by an operation starts with.
fn start_of(op: &str, element: Element) -> f64 {
    match op {
        "arith.maximumf" => -element.limit(),
        "arith.minimumf" => element.limit(),
        "arith.muli" => 1.0,
        "arith.andi" if element == Element::I1 => 1.0,
        "arith.andi" | "arith.minui" => -1.0,
        "arith.maxsi" => -element.limit(),
        "arith.minsi" => (element.limit() / 2.0).floor(),
        _ => 0.0,
    }
}

/// The bound and the error of a reduction of `count` values like `x`.
fn accumulated(op: &str, x: &Scalar, count: f64) -> (f64, f64) {
    match op {
        "arith.addf" => {
            let bound = x.bound * count;
            // Errors of rounding are of both signs: the square root of their number, with a margin of 4.
            let rounding = x.element.roundoff() * bound * (4.0 * count.sqrt()).min(count) / 2.0;
            (bound, x.error * count + rounding)
        }
        "arith.addi" => ((x.bound * count).min(x.element.limit()), 0.0),
        _ if x.element.is_float() => (x.bound, x.error),
        _ => (x.element.limit(), 0.0),
    }
}
