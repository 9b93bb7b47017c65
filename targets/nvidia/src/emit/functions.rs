//! Operations of math that are accurate functions in f64 ([`crate::math`]), or arithmetic on bits.

use super::emitter::Emitter;
use super::value::Bound;
use crate::math::{self, Emitted, Float, intrinsic};
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::Int;
use axe_passes::ir::pattern;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{operands, results};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Type, ValueLike};
use mlir_sys as sys;

/// Functions of f64 that are one instruction.
const INSTRUCTIONS: [(&str, &str); 9] = [
    ("math.sqrt", "llvm.nvvm.sqrt.rn.d"),
    ("math.absf", "llvm.fabs.f64"),
    ("math.ceil", "llvm.ceil.f64"),
    ("math.floor", "llvm.floor.f64"),
    ("math.trunc", "llvm.trunc.f64"),
    ("math.roundeven", "llvm.rint.f64"),
    ("math.fma", "llvm.fma.f64"),
    ("arith.maxnumf", "llvm.maxnum.f64"),
    ("arith.minnumf", "llvm.minnum.f64"),
];

/// What narrow floats have in f32 already (`math.rs`): enough for f32, and faster.
const FAST: [&str; 8] = [
    "math.exp",
    "math.exp2",
    "math.log",
    "math.log1p",
    "math.log2",
    "math.tanh",
    "math.erf",
    "math.rsqrt",
];

/// The integer operations of math that LLVM has for integers.
const COUNTS: [(&str, &str); 3] = [
    ("math.ctpop", "llvm.intr.ctpop"),
    ("math.ctlz", "llvm.intr.ctlz"),
    ("math.cttz", "llvm.intr.cttz"),
];

/// The powers of f64 that are products.
const MOST_PRODUCTS: i64 = 4;

// `arith.cmpi`'s predicates.
const EQUAL: i64 = 0;
const LESS: i64 = 2;

impl<'c> Emitter<'c> {
    /// Emits an operation of math that this file has; false for others.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(crate) fn function(&mut self, op: Op<'c>, name: &str) -> PassResult<'c, bool> {
        let mut values = Vec::new();
        for operand in operands(op) {
            values.push(self.scalar(operand)?);
        }
        let (Some(&result), Some(&x)) = (results(op).first(), values.first()) else {
            return Ok(false);
        };
        let bound = match is_float(x.r#type()) {
            true => self.of_floats(name, &values, result.r#type())?,
            false => self.of_integers(name, &values)?,
        };
        if name == "math.sincos"
            && let Some(&cosine) = results(op).get(1)
            && let Some(value) = self.of_floats("math.cos", &values, x.r#type())?
        {
            self.bind(cosine, Bound::Scalar(value));
        }
        match bound {
            Some(value) => self.bind(result, Bound::Scalar(value)),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn of_floats(
        &mut self,
        name: &str,
        values: &[Val<'c>],
        r#type: Type<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        match (name, values) {
            ("math.isnan" | "math.isinf" | "math.isfinite" | "math.isnormal", &[x]) => {
                pattern::class(&self.builder, name, x)
            }
            ("math.copysign", &[x, sign]) => pattern::copysign(&self.builder, x, sign).map(Some),
            ("math.clampf", &[x, least, most]) => {
                let above = self
                    .builder
                    .value("arith.maximumf", &[x, least], r#type, &[])?;
                let inside = self
                    .builder
                    .value("arith.minimumf", &[above, most], r#type, &[])?;
                Ok(Some(inside))
            }
            ("math.fpowi", &[x, n]) => self.whole_power(x, n),
            ("math.sincos", _) => self.of_floats("math.sin", values, r#type),
            ("math.sin" | "math.cos", &[x]) if bits(r#type) < Some(64) => {
                self.sine(name, x, r#type).map(Some)
            }
            _ if bits(r#type) == Some(64) => self.of_f64(name, values),
            _ if FAST.contains(&name) => Ok(None),
            _ => self.in_f64(name, values, r#type),
        }
    }

    /// A function of f64.
    fn of_f64(&self, name: &str, values: &[Val<'c>]) -> PassResult<'c, Option<Val<'c>>> {
        let f64 = self.float64();
        match INSTRUCTIONS
            .iter()
            .find(|(operation, _)| *operation == name)
        {
            Some((_, instruction)) => {
                intrinsic(self.builder, instruction, values, f64, "none").map(Some)
            }
            None => self.in_f64(name, values, f64),
        }
    }

    /// A function that is computed in f64, of operands and with a result of any float; `None` when it is none.
    fn in_f64(
        &self,
        name: &str,
        values: &[Val<'c>],
        r#type: Type<'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let mut wide = Vec::new();
        for value in values {
            wide.push(self.widened(*value)?);
        }
        let Some(&any) = wide.first() else {
            return Ok(None);
        };
        let machine = Emitted::new(self.builder, any);
        let operands: Vec<_> = wide
            .into_iter()
            .map(|value| Float::new(&machine, value))
            .collect();
        let Some(value) = math::of(name, &operands).map(|value| value.value) else {
            return Ok(None);
        };
        let value = machine.finish(value)?;
        self.narrowed(value, r#type).map(Some)
    }

    /// `math.fpowi`; `None` where the exponent is a constant for products in f32.
    fn whole_power(&mut self, x: Val<'c>, n: Val<'c>) -> PassResult<'c, Option<Val<'c>>> {
        let r#type = x.r#type();
        let known = axe_passes::ir::value::defined_by(n, "arith.constant")
            .and_then(|constant| {
                use melior::ir::operation::OperationLike;
                constant.attribute("value").ok()
            })
            .and_then(axe_passes::ir::attribute::integer);
        let narrow = bits(r#type) < Some(64);
        let most = if narrow { 64 } else { MOST_PRODUCTS };
        if narrow && known.is_some_and(|n| (-most..=most).contains(&n)) {
            return Ok(None);
        }
        let wide = self.widened(x)?;
        let machine = Emitted::new(self.builder, wide);
        let base = Float::new(&machine, wide);
        let value = match known {
            Some(n) if (0..=most).contains(&n) => {
                (0..n).fold(base.constant(1.0), |product, _| product * base)
            }
            _ => {
                let exponent = self
                    .builder
                    .value("arith.sitofp", &[n], wide.r#type(), &[])?;
                let odd =
                    self.builder
                        .value("arith.trunci", &[n], types::integer(self.builder, 1), &[]);
                let odd = match bits(n.r#type()) {
                    Some(1) => n,
                    _ => odd?,
                };
                math::whole_power(base, Float::new(&machine, exponent), base.condition(odd))
            }
        };
        let value = value.value;
        let value = machine.finish(value)?;
        self.narrowed(value, r#type).map(Some)
    }

    fn float64(&self) -> Type<'c> {
        self.builder.r#type(|context| Type::float64(context))
    }

    fn is_bf16(r#type: Type<'c>) -> bool {
        use melior::ir::TypeLike;
        // SAFETY: the type is valid.
        unsafe { sys::mlirTypeIsABF16(r#type.to_raw()) }
    }

    /// A float in f64, exactly. No instruction converts between bf16 and f64.
    fn widened(&self, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        let f64 = self.float64();
        if value.r#type() == f64 {
            return Ok(value);
        }
        let value = match Self::is_bf16(value.r#type()) {
            true => {
                self.builder
                    .value("arith.extf", &[value], types::f32_like(value.r#type()), &[])?
            }
            false => value,
        };
        self.builder.value("arith.extf", &[value], f64, &[])
    }

    fn narrowed(&self, value: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
        if value.r#type() == to {
            return Ok(value);
        }
        let value = match Self::is_bf16(to) {
            true => self
                .builder
                .value("arith.truncf", &[value], types::f32_like(to), &[])?,
            false => value,
        };
        self.builder.value("arith.truncf", &[value], to, &[])
    }

    fn number(&self, r#type: Type<'c>, value: i64) -> PassResult<'c, Val<'c>> {
        self.builder
            .constant(IntegerAttribute::new(r#type, value).into())
    }

    fn binary(&self, name: &str, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.builder.value(name, &[a, b], a.r#type(), &[])
    }

    fn compared(&self, predicate: i64, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        let i64 = types::integer(self.builder, 64);
        let predicate = IntegerAttribute::new(i64, predicate).into();
        let bit = types::integer(self.builder, 1);
        self.builder
            .value("arith.cmpi", &[a, b], bit, &[("predicate", predicate)])
    }

    fn select(&self, condition: Val<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        self.builder
            .value("arith.select", &[condition, a, b], a.r#type(), &[])
    }

    fn of_integers(&mut self, name: &str, values: &[Val<'c>]) -> PassResult<'c, Option<Val<'c>>> {
        let Some(&x) = values.first() else {
            return Ok(None);
        };
        let r#type = x.r#type();
        if let Some((_, count)) = COUNTS.iter().find(|(operation, _)| *operation == name) {
            // Of zero, all bits are counted.
            let i1 = types::integer(self.builder, 1);
            let defined = IntegerAttribute::new(i1, 0).into();
            let attributes = [("is_zero_poison", defined)];
            let attributes: &[_] = if name == "math.ctpop" {
                &[]
            } else {
                &attributes
            };
            return self
                .builder
                .value(count, &[x], r#type, attributes)
                .map(Some);
        }
        match (name, values) {
            ("math.absi", _) => {
                let negative = self.binary("arith.subi", self.number(r#type, 0)?, x)?;
                self.binary("arith.maxsi", x, negative).map(Some)
            }
            ("math.ipowi", &[x, n]) => self.integer_power(x, n).map(Some),
            _ => Ok(None),
        }
    }

    /// `x^n`, wrapped: by squaring; of a negative power what is left of 1 / x^-n, which is zero but for 1 and -1.
    fn integer_power(&mut self, x: Val<'c>, n: Val<'c>) -> PassResult<'c, Val<'c>> {
        let r#type = x.r#type();
        let (zero, one) = (self.number(r#type, 0)?, self.number(r#type, 1)?);
        let steps = i64::from(bits(r#type).unwrap_or(64));
        let powers = self.repeat(steps, &[one, x, n], |emitter, _: Int<'c>, carried| {
            let &[product, square, left] = carried else {
                return Err(emitter.error("a loop without its values"));
            };
            let bit = emitter.binary("arith.andi", left, one)?;
            let odd = emitter.compared(EQUAL, bit, one)?;
            let more = emitter.binary("arith.muli", product, square)?;
            Ok(vec![
                emitter.select(odd, more, product)?,
                emitter.binary("arith.muli", square, square)?,
                emitter.binary("arith.shrui", left, one)?,
            ])
        })?;
        let power = powers.first().copied().unwrap_or(one);
        let minus = self.number(r#type, -1)?;
        let unit = {
            let (is_one, is_minus) = (
                self.compared(EQUAL, x, one)?,
                self.compared(EQUAL, x, minus)?,
            );
            let bit = types::integer(self.builder, 1);
            self.builder
                .value("arith.ori", &[is_one, is_minus], bit, &[])?
        };
        // 1 and -1 are their own inverses: their powers are those of the exponent's last bit, whatever its sign.
        let inverse = self.select(unit, power, zero)?;
        let negative = self.compared(LESS, n, zero)?;
        self.select(negative, inverse, power)
    }
}
