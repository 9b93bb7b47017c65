//! Bodies of maps as values of a graph.

use super::read::dtype;
use axe_package::DType;
use axe_passes::ir::value::{defining, identity, name, operands, results};
use axe_passes::ir::{Op, TensorType, Val, attribute, walk};
use axe_passes::{PassError, PassResult};
use axe_trn::plan::graph::{Graph, Id};
use axe_trn::program::{Alu, Function};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// Highest power that is multiplied out.
const MOST_POWER: i64 = 16;

fn refused<'c>(op: Op<'c>, why: impl AsRef<str>) -> PassError<'c> {
    PassError::new(op.location(), format!("'{}' {}", name(op), why.as_ref()))
}

/// The function of the scalar engine that an operation of math is.
fn function(name: &str) -> Option<Function> {
    Some(match name {
        "math.exp" => Function::Exp,
        "math.log" => Function::Log,
        "math.tanh" => Function::Tanh,
        "math.sqrt" => Function::Sqrt,
        "math.rsqrt" => Function::Rsqrt,
        "math.erf" => Function::Erf,
        "math.absf" => Function::Abs,
        "math.atan" => Function::Arctan,
        _ => return None,
    })
}

/// The function of two values that an operation of arith is.
fn alu(name: &str) -> Option<Alu> {
    Some(match name {
        "arith.addf" => Alu::Add,
        "arith.subf" => Alu::Subtract,
        "arith.mulf" => Alu::Multiply,
        "arith.maximumf" | "arith.maxnumf" => Alu::Maximum,
        "arith.minimumf" | "arith.minnumf" => Alu::Minimum,
        "arith.andi" => Alu::LogicalAnd,
        "arith.ori" => Alu::LogicalOr,
        "arith.xori" => Alu::LogicalXor,
        "math.powf" => Alu::Power,
        _ => return None,
    })
}

/// The comparison of a predicate of `arith.cmpf`; the engines' are false for NaN, and that of inequality true.
fn compared(graph: &mut Graph, predicate: i64, a: Id, b: Id) -> Option<Id> {
    const BITS: DType = DType::Bool;
    let mut of = |op, x, y| graph.binary(op, x, y, BITS);
    let (value, negated) = match predicate {
        1 => (of(Alu::Equal, a, b), false),
        2 => (of(Alu::Greater, a, b), false),
        3 => (of(Alu::GreaterEqual, a, b), false),
        4 => (of(Alu::Less, a, b), false),
        5 => (of(Alu::LessEqual, a, b), false),
        6 | 8 => {
            let (less, greater) = (of(Alu::Less, a, b), of(Alu::Greater, a, b));
            (of(Alu::LogicalOr, less, greater), predicate == 8)
        }
        7 | 14 => {
            let (one, other) = (of(Alu::Equal, a, a), of(Alu::Equal, b, b));
            (of(Alu::LogicalAnd, one, other), predicate == 14)
        }
        9 => (of(Alu::LessEqual, a, b), true),
        10 => (of(Alu::Less, a, b), true),
        11 => (of(Alu::GreaterEqual, a, b), true),
        12 => (of(Alu::Greater, a, b), true),
        13 => (of(Alu::NotEqual, a, b), false),
        _ => return None,
    };
    if !negated {
        return Some(value);
    }
    let zero = graph.number(0.0);
    Some(graph.binary(Alu::Equal, value, zero, BITS))
}

/// Reads bodies into a graph.
pub(crate) struct Body<'a> {
    pub graph: &'a mut Graph,
}

impl<'c> Body<'_> {
    /// What a map yields of values of its operands.
    pub(crate) fn map(&mut self, op: Op<'c>, inputs: &[Id]) -> PassResult<'c, Id> {
        let blocks = walk::blocks(op);
        let block = blocks.first().ok_or_else(|| refused(op, "has no body"))?;
        let mut values: HashMap<usize, Id> = HashMap::new();
        for (argument, id) in walk::block_arguments(*block).into_iter().zip(inputs) {
            values.insert(identity(argument), *id);
        }
        for inner in walk::operations(*block) {
            if name(inner).ends_with(".yield") {
                let yielded = operands(inner).first().copied();
                let yielded = yielded.ok_or_else(|| refused(inner, "yields nothing"))?;
                return self.scalar(inner, yielded, &values);
            }
            let id = self.operation(inner, &values)?;
            if let Some(result) = results(inner).first() {
                values.insert(identity(*result), id);
            }
        }
        Err(refused(op, "yields nothing"))
    }

    /// A value in a body: of the body, or of constants above it.
    fn scalar(
        &mut self,
        user: Op<'c>,
        value: Val<'c>,
        values: &HashMap<usize, Id>,
    ) -> PassResult<'c, Id> {
        if let Some(id) = values.get(&identity(value)) {
            return Ok(*id);
        }
        match defining(value) {
            Some(op) if op.region_count() == 0 && TensorType::of_value(value).is_none() => {
                self.operation(op, &HashMap::new())
            }
            _ => Err(refused(
                user,
                "reads a scalar of the function: kernels of Trainium have tensors as arguments alone",
            )),
        }
    }

    /// The number of a constant above a body.
    pub(crate) fn captured(&mut self, user: Op<'c>, value: Val<'c>) -> PassResult<'c, Id> {
        self.scalar(user, value, &HashMap::new())
    }

    fn operation(&mut self, op: Op<'c>, values: &HashMap<usize, Id>) -> PassResult<'c, Id> {
        let kind = name(op);
        if kind == "arith.constant" {
            let value = op.attribute("value").ok();
            let float = value.and_then(attribute::float);
            let integer = || {
                value
                    .and_then(attribute::integer)
                    .map(|number| (number & 1) as f64)
            };
            let bits = results(op)
                .first()
                .is_some_and(|result| dtype(result.r#type()) == Some(DType::Bool));
            return match float.or_else(|| bits.then(integer).flatten()) {
                Some(number) => Ok(self.graph.number(number)),
                None => Err(refused(op, "is no float: engines compute in f32")),
            };
        }
        let result = results(op).first().map(ValueLike::r#type);
        let own = result.and_then(dtype);
        let Some(own) = own.filter(|own| own.is_float() || *own == DType::Bool) else {
            return Err(refused(op, "is not planned: maps are of floats and bits"));
        };
        let all = operands(op);
        if kind == "math.fpowi" {
            let &[base, exponent] = all.as_slice() else {
                return Err(refused(op, "has no exponent"));
            };
            let base = self.scalar(op, base, values)?;
            return self.integer_power(op, base, exponent, own);
        }
        let mut of = Vec::new();
        for operand in all {
            of.push(self.scalar(op, operand, values)?);
        }
        self.apply(op, &kind, &of, own)
    }

    fn apply(&mut self, op: Op<'c>, kind: &str, of: &[Id], own: DType) -> PassResult<'c, Id> {
        let graph = &mut *self.graph;
        if let (Some(function), &[x]) = (function(kind), of) {
            return Ok(graph.apply(function, x, own));
        }
        if let (Some(alu), &[a, b]) = (alu(kind), of) {
            return Ok(graph.binary(alu, a, b, own));
        }
        let id = match (kind, of) {
            ("arith.divf", &[a, b]) => graph.divide(a, b, own),
            ("arith.negf", &[x]) => {
                let minus = graph.number(-1.0);
                graph.binary(Alu::Multiply, x, minus, own)
            }
            ("arith.extf" | "arith.truncf" | "arith.uitofp", &[x]) => graph.cast(x, own),
            ("arith.select", &[c, a, b]) => graph.select(c, a, b, own),
            ("arith.cmpf", &[a, b]) => {
                let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
                let value = predicate.and_then(|predicate| compared(graph, predicate, a, b));
                value.ok_or_else(|| refused(op, "is always true or false"))?
            }
            ("math.exp2", &[x]) => {
                let ln2 = graph.number(std::f64::consts::LN_2);
                let scaled = graph.binary(Alu::Multiply, x, ln2, DType::F32);
                graph.apply(Function::Exp, scaled, own)
            }
            ("math.fma", &[a, b, c]) => {
                let product = graph.binary(Alu::Multiply, a, b, DType::F32);
                graph.binary(Alu::Add, product, c, own)
            }
            ("math.sin" | "math.cos", _) => {
                return Err(refused(op, "has a table from -pi to pi alone"));
            }
            _ => return Err(refused(op, "is no function of an engine")),
        };
        Ok(id)
    }

    /// A power by multiplication.
    fn integer_power(
        &mut self,
        op: Op<'c>,
        base: Id,
        exponent: Val<'c>,
        own: DType,
    ) -> PassResult<'c, Id> {
        let constant = defining(exponent).filter(|op| name(*op) == "arith.constant");
        let value = constant.and_then(|op| op.attribute("value").ok());
        let exponent = value.and_then(attribute::integer);
        let Some(exponent) = exponent.filter(|power| power.abs() <= MOST_POWER) else {
            return Err(refused(
                op,
                format!("is multiplied out for constant powers up to {MOST_POWER}"),
            ));
        };
        let graph = &mut *self.graph;
        let mut power = graph.number(1.0);
        for _ in 0..exponent.abs() {
            power = match graph.as_number(power) {
                Some(_) => base,
                // `x * x` is one instruction, `x * x^2` two.
                None => graph.binary(Alu::Multiply, base, power, own),
            };
        }
        if exponent < 0 {
            let one = graph.number(1.0);
            return Ok(graph.divide(one, power, own));
        }
        Ok(power)
    }
}
