//! Values that one instruction of the scalar engine computes, found by algebra where they are built: relu, squares, the
//! logistic function, silu, and gelu in both forms. What a program rounds on the way is left out then: values inside have
//! excess precision.

use super::graph::{Form, Graph, Id};
use crate::program::{Alu, Function};
use axe_package::DType;

/// How far a coefficient may be from the function's, which programs round to their own types.
const NEAR: f64 = 1e-2;

fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= NEAR * wanted.abs()
}

impl Graph {
    /// A function of one value that `a op b` is.
    pub(super) fn simplified(&mut self, op: Alu, a: Id, b: Id, dtype: DType) -> Option<Id> {
        let (one, other) = (self.as_number(a), self.as_number(b));
        match op {
            Alu::Maximum if other == Some(0.0) => Some(self.apply(Function::Relu, a, dtype)),
            Alu::Maximum if one == Some(0.0) => Some(self.apply(Function::Relu, b, dtype)),
            Alu::Multiply if other == Some(1.0) => Some(self.cast(a, dtype)),
            Alu::Multiply if one == Some(1.0) => Some(self.cast(b, dtype)),
            Alu::Add | Alu::Subtract if other == Some(0.0) => Some(self.cast(a, dtype)),
            Alu::Multiply if a == b => Some(self.apply(Function::Square, a, dtype)),
            Alu::Multiply => self.gated(a, b, dtype),
            _ => None,
        }
    }

    /// `x > 0 ? x : 0`, however the comparison is written.
    pub(super) fn rectified(&mut self, condition: Id, a: Id, b: Id, dtype: DType) -> Option<Id> {
        let zero = |graph: &Self, id: Id| graph.as_number(id) == Some(0.0);
        let positive = match self.node(condition).form {
            Form::Binary(Alu::Greater | Alu::GreaterEqual, x, y) => x == a && zero(self, y),
            Form::Binary(Alu::Equal, x, y) if zero(self, y) => match self.node(x).form {
                Form::Binary(Alu::LessEqual | Alu::Less, x, y) => x == a && zero(self, y),
                _ => false,
            },
            _ => false,
        };
        (positive && zero(self, b)).then(|| self.apply(Function::Relu, a, dtype))
    }

    /// `a / b` as the logistic function: `1 / (1 + exp(-x))`.
    pub(super) fn logistic(&mut self, a: Id, b: Id, dtype: DType) -> Option<Id> {
        let (one, rest) = self.terms(b);
        let &[exponential] = rest.as_slice() else {
            return None;
        };
        let Form::Apply(Function::Exp, argument) = self.node(self.plain(exponential)).form else {
            return None;
        };
        let (sign, x) = self.factors(argument);
        let &[x] = x.as_slice() else {
            return None;
        };
        if one != 1.0 || sign != -1.0 {
            return None;
        }
        let logistic = self.apply(Function::Sigmoid, x, dtype);
        match self.as_number(a) {
            Some(1.0) => Some(logistic),
            _ => Some(self.binary(Alu::Multiply, a, logistic, dtype)),
        }
    }

    /// A product of a value and a function of it: silu, gelu.
    fn gated(&mut self, a: Id, b: Id, dtype: DType) -> Option<Id> {
        let (mut scale, mut factors) = self.factors(a);
        let (more, others) = self.factors(b);
        scale *= more;
        factors.extend(others);
        let &[first, second] = factors.as_slice() else {
            return None;
        };
        for (x, gate) in [(first, second), (second, first)] {
            let found = match self.node(gate).form {
                Form::Apply(Function::Sigmoid, of) if scale == 1.0 && of == x => {
                    Some(Function::Silu)
                }
                _ if near(scale, 0.5) => self.gelu_gate(x, gate),
                _ => None,
            };
            if let Some(function) = found {
                return Some(self.apply(function, x, dtype));
            }
        }
        None
    }

    /// The gelu whose gate is `1 + erf(x / sqrt 2)` or `1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))`.
    fn gelu_gate(&self, x: Id, gate: Id) -> Option<Function> {
        let (one, rest) = self.terms(gate);
        let &[function] = rest.as_slice() else {
            return None;
        };
        let Form::Apply(function, argument) = self.node(self.plain(function)).form else {
            return None;
        };
        let (scale, inner) = self.factors(argument);
        let &[inner] = inner.as_slice() else {
            return None;
        };
        let is = |wanted: f64| one == 1.0 && near(scale, wanted);
        match function {
            Function::Erf if is(std::f64::consts::FRAC_1_SQRT_2) && inner == x => {
                Some(Function::Gelu)
            }
            Function::Tanh
                if is((2.0 / std::f64::consts::PI).sqrt()) && self.is_cubic(inner, x) =>
            {
                Some(Function::GeluTanh)
            }
            _ => None,
        }
    }

    /// Whether a value is `x + 0.044715 x^3`.
    fn is_cubic(&self, value: Id, x: Id) -> bool {
        let (zero, terms) = self.terms(value);
        let &[first, second] = terms.as_slice() else {
            return false;
        };
        let cube = |id: Id| {
            let (scale, mut factors) = self.factors(id);
            factors.sort_unstable();
            let square = |id: &Id| matches!(self.node(*id).form, Form::Apply(Function::Square, of) if of == x);
            let cubed = factors.len() == 2 && factors.contains(&x) && factors.iter().any(square);
            cubed && near(scale, 0.044_715)
        };
        zero == 0.0 && ((first == x && cube(second)) || (second == x && cube(first)))
    }

    /// A value without conversions around it.
    fn plain(&self, id: Id) -> Id {
        match self.node(id).form {
            Form::Cast(of) => self.plain(of),
            _ => id,
        }
    }

    /// A product as a number and the other factors.
    fn factors(&self, id: Id) -> (f64, Vec<Id>) {
        match self.node(id).form {
            Form::Number(value) => (value, Vec::new()),
            Form::Binary(Alu::Multiply, a, b) => {
                let ((one, mut factors), (other, more)) = (self.factors(a), self.factors(b));
                factors.extend(more);
                (one * other, factors)
            }
            _ => (1.0, vec![id]),
        }
    }

    /// A sum as a number and the other terms.
    fn terms(&self, id: Id) -> (f64, Vec<Id>) {
        match self.node(id).form {
            Form::Number(value) => (value, Vec::new()),
            Form::Binary(Alu::Add, a, b) => {
                let ((one, mut terms), (other, more)) = (self.terms(a), self.terms(b));
                terms.extend(more);
                (one + other, terms)
            }
            _ => (0.0, vec![id]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::graph::Kind;

    const F32: DType = DType::F32;

    fn with_x() -> (Graph, Id) {
        let mut graph = Graph::new(1, 1);
        let x = graph.input("x", Kind::Full, F32);
        (graph, x)
    }

    fn scaled(graph: &mut Graph, x: Id, by: f64) -> Id {
        let by = graph.number(by);
        graph.binary(Alu::Multiply, x, by, F32)
    }

    #[test]
    fn silu_is_found_in_its_definition() {
        let (mut graph, x) = with_x();
        let negated = scaled(&mut graph, x, -1.0);
        let exponential = graph.apply(Function::Exp, negated, F32);
        let one = graph.number(1.0);
        let sum = graph.binary(Alu::Add, exponential, one, F32);
        let sigmoid = graph.divide(one, sum, F32);
        assert_eq!(graph.node(sigmoid).form, Form::Apply(Function::Sigmoid, x));
        let silu = graph.binary(Alu::Multiply, sigmoid, x, F32);
        assert_eq!(graph.node(silu).form, Form::Apply(Function::Silu, x));
    }

    #[test]
    fn gelu_is_found_in_both_forms_and_nothing_else_is() {
        for (coefficient, found) in [(0.044_708_3, true), (0.05, false)] {
            let (mut graph, x) = with_x();
            let square = graph.binary(Alu::Multiply, x, x, F32);
            let cube = graph.binary(Alu::Multiply, x, square, F32);
            let cube = scaled(&mut graph, cube, coefficient);
            let sum = graph.binary(Alu::Add, x, cube, F32);
            let inner = scaled(&mut graph, sum, 0.797_852);
            let tanh = graph.apply(Function::Tanh, inner, F32);
            let one = graph.number(1.0);
            let gate = graph.binary(Alu::Add, tanh, one, F32);
            let half = scaled(&mut graph, gate, 0.5);
            let value = graph.binary(Alu::Multiply, x, half, F32);
            let is = graph.node(value).form == Form::Apply(Function::GeluTanh, x);
            assert_eq!(is, found, "{coefficient}");
        }
        let (mut graph, x) = with_x();
        let inner = scaled(&mut graph, x, std::f64::consts::FRAC_1_SQRT_2);
        let erf = graph.apply(Function::Erf, inner, F32);
        let one = graph.number(1.0);
        let gate = graph.binary(Alu::Add, one, erf, F32);
        let half = scaled(&mut graph, x, 0.5);
        let value = graph.binary(Alu::Multiply, half, gate, F32);
        assert_eq!(graph.node(value).form, Form::Apply(Function::Gelu, x));
    }
}
