//! Bodies of elementwise maps: quotients, bits, comparisons, with what they compute.

use crate::array::{mlir, round};
use crate::random::Random;
use axe_package::DType;

/// A function of one element, as scalar operations.
pub struct Body {
    /// Constants that the lines name `{0}`, `{1}`, ...
    pub constants: Vec<f64>,
    /// Operations on `%e`; the last one defines `%s`.
    pub lines: Vec<String>,
    /// What they compute, before it is brought to the element type.
    pub apply: Box<dyn Fn(f64) -> f64>,
}

/// A random body for elements of a type.
pub fn body(dtype: DType, random: &mut Random) -> Body {
    match dtype.unit_roundoff() {
        Some(_) => float(dtype, random),
        None => match random.below(4) {
            0 => bits(dtype, random),
            3 => counts(dtype, random),
            1 => quotient_by_constant(dtype, random),
            _ => quotient(dtype, random),
        },
    }
}

/// An integer as the unsigned one of the same bits.
fn unsigned(value: i64, dtype: DType) -> u64 {
    match dtype.bytes() {
        1 => u64::from(value as u8),
        2 => u64::from(value as u16),
        4 => u64::from(value as u32),
        _ => value as u64,
    }
}

fn divide(op: &str, a: i64, b: i64, dtype: DType) -> f64 {
    let (ua, ub) = (unsigned(a, dtype), unsigned(b, dtype));
    let floor = a.wrapping_div_euclid(b) - i64::from(b < 0 && a.wrapping_rem_euclid(b) != 0);
    match op {
        "divsi" => a.wrapping_div(b) as f64,
        "remsi" => a.wrapping_rem(b) as f64,
        "divui" => (ua / ub) as i64 as f64,
        "remui" => (ua % ub) as i64 as f64,
        "ceildivui" => ua.div_ceil(ub) as i64 as f64,
        "floordivsi" => floor as f64,
        _ => (floor + i64::from(a.wrapping_rem(b) != 0)) as f64,
    }
}

const QUOTIENTS: [&str; 7] = [
    "divsi",
    "remsi",
    "divui",
    "remui",
    "ceildivui",
    "floordivsi",
    "ceildivsi",
];

/// Those whose values f64 holds: an unsigned number of 64 bits may need all of them.
fn quotients(dtype: DType) -> &'static [&'static str] {
    match dtype {
        DType::I64 => &["divsi", "remsi", "floordivsi", "ceildivsi"],
        _ => &QUOTIENTS,
    }
}

/// A quotient or remainder by a number that is known when compiling.
fn quotient_by_constant(dtype: DType, random: &mut Random) -> Body {
    let op = random.pick(quotients(dtype));
    let by = random.pick(&[1_i64, 2, 3, 7, 16, -3]);
    Body {
        constants: vec![by as f64],
        lines: vec![format!("%s = arith.{op} %e, {{0}} : {}", mlir(dtype))],
        apply: Box::new(move |value| divide(op, value as i64, by, dtype)),
    }
}

/// A quotient or remainder by odd numbers that come from the elements.
fn quotient(dtype: DType, random: &mut Random) -> Body {
    let op = random.pick(quotients(dtype));
    let (mask, scalar) = (random.pick(&[3_i64, 7, 31]), mlir(dtype));
    let dividend = random.range(-90, 90);
    let [a, b] = random.pick(&[["{2}", "%d"], ["%e", "%d"]]);
    let by_elements = a == "{2}";
    Body {
        constants: vec![mask as f64, 1.0, dividend as f64],
        lines: vec![
            format!("%m = arith.andi %e, {{0}} : {scalar}"),
            format!("%d = arith.ori %m, {{1}} : {scalar}"),
            format!("%s = arith.{op} {a}, {b} : {scalar}"),
        ],
        apply: Box::new(move |value| {
            let value = value as i64;
            let dividend = if by_elements { dividend } else { value };
            divide(op, dividend, value & mask | 1, dtype)
        }),
    }
}

/// The absolute value, and counts of bits.
fn counts(dtype: DType, random: &mut Random) -> Body {
    let op = random.pick(&["absi", "ctpop", "ctlz", "cttz"]);
    let bits = dtype.bytes() as u32 * 8;
    Body {
        constants: vec![],
        lines: vec![format!("%s = math.{op} %e : {}", mlir(dtype))],
        apply: Box::new(move |value| {
            let own = unsigned(value as i64, dtype);
            match op {
                "absi" => value.abs(),
                "ctpop" => f64::from(own.count_ones()),
                "ctlz" => f64::from(own.leading_zeros() + bits - 64),
                _ => f64::from(own.trailing_zeros().min(bits)),
            }
        }),
    }
}

/// Bits, shifts, comparisons.
fn bits(dtype: DType, random: &mut Random) -> Body {
    type Apply = fn(i64, i64, DType) -> i64;
    const OPS: [(&str, Apply); 11] = [
        ("andi", |a, b, _| a & b),
        ("ori", |a, b, _| a | b),
        ("xori", |a, b, _| a ^ b),
        ("shli", |a, b, _| a << b),
        ("shrsi", |a, b, _| a >> b),
        ("shrui", |a, b, of| (unsigned(a, of) >> b) as i64),
        ("maxsi", |a, b, _| a.max(b)),
        ("minsi", |a, b, _| a.min(b)),
        ("maxui", |a, b, of| {
            unsigned(a, of).max(unsigned(b, of)) as i64
        }),
        ("minui", |a, b, of| {
            unsigned(a, of).min(unsigned(b, of)) as i64
        }),
        ("subi", |a, b, _| a.wrapping_sub(b)),
    ];
    let (mut op, mut apply) = random.pick(&OPS);
    if dtype == DType::I64 && op == "shrui" {
        (op, apply) = OPS[4];
    }
    let by = random.range(0, 7);
    let scalar = mlir(dtype);
    if random.once_in(4) {
        let predicate = random.pick(&["slt", "ult"]);
        return Body {
            constants: vec![by as f64, -2.0],
            lines: vec![
                format!("%q = arith.cmpi {predicate}, %e, {{0}} : {scalar}"),
                format!("%s = arith.select %q, %e, {{1}} : {scalar}"),
            ],
            apply: Box::new(move |value| {
                let a = value as i64;
                let below = match predicate {
                    "slt" => a < by,
                    _ => unsigned(a, dtype) < unsigned(by, dtype),
                };
                if below { value } else { -2.0 }
            }),
        };
    }
    Body {
        constants: vec![by as f64],
        lines: vec![format!("%s = arith.{op} %e, {{0}} : {scalar}")],
        apply: Box::new(move |value| apply(value as i64, by, dtype) as f64),
    }
}

/// Operations whose results IEEE 754 defines to the last bit.
fn float(dtype: DType, random: &mut Random) -> Body {
    let scalar = mlir(dtype);
    let line = |text: &str| vec![format!("%s = {text} : {scalar}")];
    let (constants, lines, apply): (Vec<f64>, _, Box<dyn Fn(f64) -> f64>) = match random.below(10) {
        0 => (vec![], line("arith.negf %e"), Box::new(|x| -x)),
        1 => (
            vec![0.5],
            line("arith.maximumf %e, {0}"),
            Box::new(|x| x.max(0.5)),
        ),
        2 => (
            vec![0.5],
            line("arith.minimumf {0}, %e"),
            Box::new(|x| x.min(0.5)),
        ),
        3 => (vec![3.0], line("arith.divf %e, {0}"), Box::new(|x| x / 3.0)),
        4 => (
            vec![-0.5, 2.0],
            vec![
                format!("%q = arith.cmpf olt, %e, {{0}} : {scalar}"),
                format!("%s = arith.select %q, {{1}}, %e : {scalar}"),
            ],
            Box::new(|x| if x < -0.5 { 2.0 } else { x }),
        ),
        5 => (vec![], line("math.absf %e"), Box::new(f64::abs)),
        7 | 8 => {
            type Apply = fn(f64) -> f64;
            let (op, apply): (_, Apply) = random.pick(&[
                ("floor", f64::floor as Apply),
                ("ceil", f64::ceil),
                ("trunc", f64::trunc),
                ("round", f64::round),
                ("roundeven", f64::round_ties_even),
            ]);
            (vec![], line(&format!("math.{op} %e")), Box::new(apply))
        }
        9 => (
            vec![-2.5],
            line("math.copysign {0}, %e"),
            Box::new(|x| 2.5f64.copysign(x)),
        ),
        _ => (
            vec![1.0],
            vec![
                format!("%m = math.absf %e : {scalar}"),
                format!("%d = arith.addf %m, {{0}} : {scalar}"),
                format!("%s = arith.divf {{0}}, %d : {scalar}"),
            ],
            Box::new(move |x| 1.0 / round(x.abs() + 1.0, dtype)),
        ),
    };
    Body {
        constants,
        lines,
        apply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_those_of_mlir() {
        let q = |op, a, b| divide(op, a, b, DType::I8);
        assert_eq!((q("divsi", -7, 2), q("remsi", -7, 2)), (-3.0, -1.0));
        assert_eq!(
            (q("floordivsi", -7, 2), q("ceildivsi", -7, 2)),
            (-4.0, -3.0)
        );
        assert_eq!(
            (q("floordivsi", 7, -2), q("ceildivsi", 7, -2)),
            (-4.0, -3.0)
        );
        assert_eq!((q("floordivsi", -8, -2), q("ceildivsi", 8, 2)), (4.0, 4.0));
        // 249 / 2, and its remainder.
        assert_eq!((q("divui", -7, 2), q("remui", -7, 2)), (124.0, 1.0));
        assert_eq!(q("ceildivui", -7, 2), 125.0);
    }
}
