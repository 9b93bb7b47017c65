//! Random steps of elementwise bodies.

use crate::element::Element;
use crate::scalar::{Body, Scalar};
use axe_cases::random::Random;

/// Applies a random operation to `x`, with `others` as further operands.
pub fn step(body: &mut Body, x: &Scalar, others: &[Scalar], random: &mut Random) -> Scalar {
    match x.element {
        element if element.is_float() => float(body, x, others, random),
        Element::I1 => bit(body, x, others, random),
        _ => integer(body, x, others, random),
    }
}

/// A further operand of the type of `x`: another one, cast, or a constant.
fn other(body: &mut Body, x: &Scalar, others: &[Scalar], random: &mut Random) -> Scalar {
    if others.is_empty() || random.once_in(6) {
        let value = match x.element {
            Element::I1 => random.range(0, 1) as f64,
            element if element.is_float() => random.range(1, 12) as f64 * 0.25,
            _ => random.range(1, 7) as f64,
        };
        return body.constant(value, x.element);
    }
    let picked = random.pick(others);
    body.cast(&picked, x.element)
}

fn float(body: &mut Body, x: &Scalar, others: &[Scalar], random: &mut Random) -> Scalar {
    let x = &body.tamed(x, 512.0);
    if random.once_in(2) {
        return function(body, x, random);
    }
    let y = other(body, x, others, random);
    let y = &body.tamed(&y, 512.0);
    let wider = x.bound.max(y.bound);
    let error = x.error.max(y.error);
    match random.below(10) {
        0 => body.addf(x, y),
        1 => body.subf(x, y),
        2 | 3 => body.mulf(x, y),
        4 => {
            let divisor = body.away_from_zero(y, 1.0);
            body.divf(x, &divisor, 1.0)
        }
        5 => body.binary("arith.maximumf", x, y, wider, error),
        6 => body.binary("arith.minimumf", x, y, wider, error),
        8 => {
            let op = random.pick(&["arith.maxnumf", "arith.minnumf"]);
            body.binary(op, x, y, wider, error)
        }
        7 => select(body, x, y, others, random),
        _ => {
            let z = other(body, x, others, random);
            let z = body.tamed(&z, 512.0);
            let product = x.bound * y.bound;
            let bound = product + z.bound;
            let error = x.error * y.bound
                + y.error * x.bound
                + x.error * y.error
                + z.error
                + x.element.roundoff() * (bound + product);
            let names = format!(
                "math.fma {}, {}, {} : {}",
                x.name,
                y.name,
                z.name,
                x.element.name()
            );
            body.emit(&names, x.element, bound, error)
        }
    }
}

/// `x` where two values that are certain compare so, else `y`.
fn select(
    body: &mut Body,
    x: &Scalar,
    y: &Scalar,
    others: &[Scalar],
    random: &mut Random,
) -> Scalar {
    let certain: Vec<_> = others
        .iter()
        .filter(|one| one.error == 0.0)
        .cloned()
        .collect();
    let condition = match certain.first() {
        None => body.constant(1.0, Element::I1),
        Some(_) => {
            let a = random.pick(&certain);
            comparison(body, &a, random)
        }
    };
    let (bound, error) = (x.bound.max(y.bound), x.error.max(y.error));
    let text = format!(
        "arith.select {}, {}, {} : {}",
        condition.name,
        x.name,
        y.name,
        x.element.name()
    );
    body.emit(&text, x.element, bound, error)
}

/// How a value that is certain compares with a constant.
fn comparison(body: &mut Body, a: &Scalar, random: &mut Random) -> Scalar {
    if a.element == Element::I1 {
        return a.clone();
    }
    // As in `round_to_integer`.
    let a = &match a.element {
        Element::BF16 => body.cast(a, Element::F32),
        _ => a.clone(),
    };
    let (op, predicates): (_, &[&str]) = if a.element.is_float() {
        (
            "cmpf",
            &[
                "oeq", "ogt", "oge", "olt", "ole", "one", "ueq", "ugt", "uge", "ult", "ule", "une",
                "ord", "uno",
            ],
        )
    } else {
        (
            "cmpi",
            &[
                "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
            ],
        )
    };
    let with = body.constant(random.range(-1, 2) as f64, a.element);
    let text = format!(
        "arith.{op} {}, {}, {} : {}",
        random.pick(predicates),
        a.name,
        with.name,
        a.element.name()
    );
    body.emit(&text, Element::I1, 1.0, 0.0)
}

/// A function of one float.
fn function(body: &mut Body, x: &Scalar, random: &mut Random) -> Scalar {
    let about = x.element.approximation();
    match random.below(22) {
        0 => body.unary("arith.negf", x, x.bound, x.error),
        1 => body.unary("math.absf", x, x.bound, x.error),
        2 => grown(body, "math.exp", x, std::f64::consts::E),
        3 => grown(body, "math.exp2", x, 2.0),
        4 => {
            let from = body.away_from_zero(x, 1.0);
            let bound = from.bound.ln().max(1.0);
            body.unary("math.log", &from, bound, from.error + about * bound)
        }
        5 => {
            let from = body.away_from_zero(x, 1.0);
            let bound = from.bound.log2().max(1.0);
            body.unary("math.log2", &from, bound, 1.5 * from.error + about * bound)
        }
        6 => {
            let from = body.away_from_zero(x, 0.25);
            let bound = from.bound.sqrt();
            body.unary("math.sqrt", &from, bound, from.error + about * bound)
        }
        7 => {
            let from = body.away_from_zero(x, 0.25);
            body.unary("math.rsqrt", &from, 2.0, 4.0 * from.error + 2.0 * about)
        }
        8 | 9 => body.unary("math.tanh", x, 1.0, x.error + about),
        10 => body.unary("math.erf", x, 1.0, 1.13 * x.error + about),
        16 | 17 => {
            let op = random.pick(&["math.sin", "math.cos", "math.atan"]);
            // What rounding leaves of a large number is more than a turn.
            let x = body.tamed(x, 8.0);
            body.unary(op, &x, 1.6, x.error + 2.0 * about)
        }
        18 => {
            // Stock MLIR rounds the exponentials that it subtracts to 16 bits: little is left of small results.
            let op = match x.element.bits() {
                16 => "math.cosh",
                _ => random.pick(&["math.sinh", "math.cosh", "math.expm1"]),
            };
            let x = body.tamed(x, 2.0);
            // Their slopes are e^2 at most.
            body.unary(op, &x, 7.4, 7.4 * (x.error + 2.0 * about))
        }
        19 => body.unary("math.erfc", x, 2.0, 1.13 * x.error + 4.0 * about),
        20 => function_of_two(body, x, random),
        11 => {
            let from = body.unary("math.absf", x, x.bound, x.error);
            let bound = (1.0 + from.bound).ln().max(1.0);
            body.unary("math.log1p", &from, bound, from.error + about * bound)
        }
        12 if x.error == 0.0 => {
            let op = random.pick(&["math.floor", "math.ceil", "math.trunc", "math.roundeven"]);
            body.unary(op, x, x.bound + 1.0, 0.0)
        }
        13 => integer_power(body, x, random),
        _ => {
            let constant = body.constant(random.range(-8, 8) as f64 * 0.25, x.element);
            match random.once_in(2) {
                true => body.addf(x, &constant),
                false => body.mulf(x, &constant),
            }
        }
    }
}

/// A function of a float and of another one made of it.
fn function_of_two(body: &mut Body, x: &Scalar, random: &mut Random) -> Scalar {
    let about = x.element.approximation();
    let other = body.away_from_zero(x, 1.0);
    let op = random.pick(&["math.atan2", "math.powf"]);
    let x = body.tamed(x, 2.0);
    if op == "math.atan2" {
        let error = x.error + other.error + 4.0 * about;
        return body.binary(op, &x, &other, 3.2, error);
    }
    // From 1 to 3, to a power up to 2: slopes below 6 and 10.
    let base = body.tamed(&other, 2.0);
    let base = body.away_from_zero(&base, 1.0);
    let error = 6.0 * base.error + 10.0 * x.error + 40.0 * about;
    body.binary(op, &base, &x, 9.0, error)
}

/// `x^2` or `x^3`.
fn integer_power(body: &mut Body, x: &Scalar, random: &mut Random) -> Scalar {
    let (u, about) = (x.element.roundoff(), x.element.approximation());
    let power = random.range(2, 3);
    let x = body.tamed(x, 8.0);
    let exponent = body.constant(power as f64, Element::I32);
    let bound = x.bound.powi(power as i32);
    let slope = power as f64 * (x.bound + x.error).powi(power as i32 - 1);
    let error = slope * x.error + (3.0 * u).max(about) * bound;
    let text = format!(
        "math.fpowi {}, {} : {}, i32",
        x.name,
        exponent.name,
        x.element.name()
    );
    body.emit(&text, x.element, bound, error)
}

/// `base^x`.
fn grown(body: &mut Body, op: &str, x: &Scalar, base: f64) -> Scalar {
    let x = body.tamed(x, 4.0);
    let bound = base.powf(x.bound);
    // The hardware multiplies the argument by log2(e) first, which rounds at the argument's size.
    let about = x.element.approximation() * (1.0 + x.bound);
    let error = bound * (base.powf(x.error) - 1.0 + about);
    body.unary(op, &x, bound, error)
}

fn bit(body: &mut Body, x: &Scalar, others: &[Scalar], random: &mut Random) -> Scalar {
    let y = other(body, x, others, random);
    let op = random.pick(&["arith.andi", "arith.ori", "arith.xori"]);
    body.binary(op, x, &y, 1.0, 0.0)
}

fn integer(body: &mut Body, x: &Scalar, others: &[Scalar], random: &mut Random) -> Scalar {
    let y = other(body, x, others, random);
    let all = x.element.limit();
    let wider = x.bound.max(y.bound);
    match random.below(14) {
        0 => body.binary("arith.addi", x, &y, (x.bound + y.bound).min(all), 0.0),
        1 => body.binary("arith.subi", x, &y, (x.bound + y.bound).min(all), 0.0),
        2 => body.binary("arith.muli", x, &y, (x.bound * y.bound).min(all), 0.0),
        3..=7 => divided(body, x, &y, random),
        8 => {
            let op = random.pick(&["arith.maxsi", "arith.minsi"]);
            body.binary(op, x, &y, wider, 0.0)
        }
        9 => {
            let op = random.pick(&["arith.maxui", "arith.minui"]);
            body.binary(op, x, &y, wider, 0.0)
        }
        10 => {
            let op = random.pick(&["arith.andi", "arith.ori", "arith.xori"]);
            body.binary(op, x, &y, all, 0.0)
        }
        11 => {
            let most = body.constant(f64::from(x.element.bits().min(32) - 1), x.element);
            let by = body.binary("arith.andi", &y, &most, most.bound, 0.0);
            let op = random.pick(&["arith.shli", "arith.shrsi", "arith.shrui"]);
            body.binary(op, x, &by, all, 0.0)
        }
        12 => select(body, x, &y, others, random),
        _ => {
            let op = random.pick(&["math.absi", "math.ctpop", "math.ctlz", "math.cttz"]);
            body.unary(op, x, all, 0.0)
        }
    }
}

/// A quotient or a remainder by what is not 0.
fn divided(body: &mut Body, x: &Scalar, y: &Scalar, random: &mut Random) -> Scalar {
    let divisor = if y.nonzero {
        y.clone()
    } else {
        let low = body.constant(7.0, x.element);
        let one = body.constant(1.0, x.element);
        let below = body.binary("arith.andi", y, &low, 7.0, 0.0);
        body.binary("arith.ori", &below, &one, 7.0, 0.0)
    };
    // The least integer divided by -1 has no quotient.
    let signed = x.bound < x.element.limit() || !y.nonzero;
    let op = match random.below(if signed { 7 } else { 3 }) {
        0 => "arith.divui",
        1 => "arith.remui",
        2 => "arith.ceildivui",
        3 => "arith.divsi",
        4 => "arith.remsi",
        5 => "arith.floordivsi",
        _ => "arith.ceildivsi",
    };
    body.binary(op, x, &divisor, x.element.limit(), 0.0)
}
