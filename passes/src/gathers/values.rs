//! The values of an index of a body at all points of its loops: scalars as they are computed, each in its type.

use super::digits::Points;
use crate::ir::value::{argument_number, defining, name, only_result, operands};
use crate::ir::{Op, Val, attribute, types, walk};
use axe_dialect::element_type;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, AttributeLike, TypeLike, ValueLike};
use mlir_sys as sys;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Points at which an index is evaluated at most.
const MOST_POINTS: usize = 1 << 18;
/// Operations that form an index at most.
const MOST_OPERATIONS: usize = 64;
/// What a comparison says of an order.
type Says = fn(Ordering) -> bool;
/// `arith.cmpi`'s predicates of signed integers, from `eq` on (ArithBase.td of MLIR 22.1).
const INTEGERS: [Says; 6] = [
    Ordering::is_eq,
    Ordering::is_ne,
    Ordering::is_lt,
    Ordering::is_le,
    Ordering::is_gt,
    Ordering::is_ge,
];
/// `arith.cmpf`'s predicates of numbers: from `oeq`, the first, and from `ueq`, the eighth.
const FLOATS: [Says; 6] = [
    Ordering::is_eq,
    Ordering::is_gt,
    Ordering::is_ge,
    Ordering::is_lt,
    Ordering::is_le,
    Ordering::is_ne,
];

/// A scalar of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar {
    Int(i64),
    Float(f64),
}

/// Where a scalar comes from: an operation by its number, or an element of an input.
#[derive(Clone, Copy, Debug)]
enum Place {
    Step(usize),
    Input(usize),
}

/// An operation of a body, read once for all points.
struct Step {
    name: String,
    operands: Vec<Place>,
    /// Bits of its result.
    bits: u32,
    /// A constant's value.
    constant: Option<Scalar>,
    /// The loop of an index.
    dim: Option<usize>,
    /// What a comparison says.
    says: Option<Says>,
}

/// The body of loops.
pub(super) struct Body<'c> {
    inputs: Vec<Input<'c>>,
    shape: Vec<usize>,
}

/// A tensor of integers that the body reads, where it is a constant.
struct Input<'c> {
    argument: Val<'c>,
    map: AffineMap<'c>,
    shape: Vec<usize>,
    values: Vec<i64>,
}

impl<'c> Body<'c> {
    /// Of loops of these extents, whose inputs have these maps.
    pub(super) fn new(op: Op<'c>, maps: &[AffineMap<'c>], extents: &[i64]) -> Self {
        let block = walk::blocks(op).first().copied();
        let arguments = block.map(walk::block_arguments).unwrap_or_default();
        let all = arguments.into_iter().zip(operands(op)).zip(maps);
        let inputs = all.filter_map(|((argument, from), map)| Input::of(argument, from, *map));
        let sizes = extents.iter().filter_map(|own| usize::try_from(*own).ok());
        Self {
            inputs: inputs.collect(),
            shape: sizes.collect(),
        }
    }

    /// Whether an index is computed by floats, or of elements of tensors.
    pub(super) fn is_roundabout(&self, index: Val<'c>) -> bool {
        let mut order = Vec::new();
        let known = self.read(index, (&mut order, &mut BTreeSet::new()), 0);
        let mut read = order.into_iter().flat_map(operands).chain([index]);
        let is_other =
            |value: Val<'c>| defining(value).is_none() || types::is_float(value.r#type());
        known.is_some() && read.any(is_other)
    }

    /// An index at all points; none where it depends on something else than loops and constants, or on too many of them.
    pub(super) fn values(&self, index: Val<'c>) -> Option<Points> {
        let (mut order, mut loops) = (Vec::new(), BTreeSet::new());
        self.read(index, (&mut order, &mut loops), 0)?;
        let of = |(at, extent): (usize, &usize)| if loops.contains(&at) { *extent } else { 1 };
        let extents: Vec<_> = self.shape.iter().enumerate().map(of).collect();
        let count = extents
            .iter()
            .try_fold(1usize, |all, own| all.checked_mul(*own));
        let count = count.filter(|count| *count <= MOST_POINTS)?;
        let mut steps = Vec::new();
        for op in &order {
            let step = Step::of(*op, |value| self.place(&order, value))?;
            steps.push(step);
        }
        let index = self.place(&order, index)?;
        let mut values = Vec::with_capacity(count);
        for number in 0..count {
            match self.value(&steps, index, &point(&extents, number))? {
                Scalar::Int(value) => values.push(value),
                Scalar::Float(_) => return None,
            }
        }
        Some(Points { extents, values })
    }

    /// The operations that form a value, in order, and the loops that it depends on.
    fn read(
        &self,
        value: Val<'c>,
        (order, loops): (&mut Vec<Op<'c>>, &mut BTreeSet<usize>),
        depth: usize,
    ) -> Option<()> {
        if depth > MOST_OPERATIONS {
            return None;
        }
        let Some(op) = defining(value) else {
            let input = self.input(value)?;
            for index in (0..input.map.result_count()).filter_map(|at| input.map.result(at).ok()) {
                if index.is_dim() {
                    loops.insert(index.dim_position());
                }
            }
            return Some(());
        };
        if order.contains(&op) {
            return Some(());
        }
        if name(op) == "linalg.index" {
            loops.insert(dim_of(op)?);
        }
        for operand in operands(op) {
            self.read(operand, (&mut *order, &mut *loops), depth + 1)?;
        }
        order.push(op);
        (order.len() <= MOST_OPERATIONS && op.region_count() == 0).then_some(())
    }

    fn input(&self, argument: Val<'c>) -> Option<&Input<'c>> {
        self.inputs.iter().find(|own| own.argument == argument)
    }

    /// Where a value comes from.
    fn place(&self, order: &[Op<'c>], value: Val<'c>) -> Option<Place> {
        match defining(value) {
            Some(op) => order.iter().position(|own| *own == op).map(Place::Step),
            None => {
                let input = self.inputs.iter().position(|own| own.argument == value);
                input.map(Place::Input)
            }
        }
    }

    /// The value at a point.
    fn value(&self, steps: &[Step], value: Place, point: &[usize]) -> Option<Scalar> {
        let mut known: Vec<Scalar> = Vec::with_capacity(steps.len());
        let of = |place: Place, known: &[Scalar]| match place {
            Place::Step(at) => known.get(at).copied(),
            Place::Input(at) => self.inputs.get(at)?.element(point).map(Scalar::Int),
        };
        let mut all = Vec::new();
        for step in steps {
            all.clear();
            for place in &step.operands {
                all.push(of(*place, &known)?);
            }
            known.push(step.computed(&all, point)?);
        }
        of(value, &known)
    }
}

impl<'c> Input<'c> {
    fn of(argument: Val<'c>, from: Val<'c>, map: AffineMap<'c>) -> Option<Self> {
        argument_number(argument)?;
        let shape = types::shape(from.r#type())?;
        let shape: Option<Vec<_>> = shape.iter().map(|own| usize::try_from(*own).ok()).collect();
        let shape = shape?;
        let count = shape
            .iter()
            .try_fold(1usize, |all, own| all.checked_mul(*own));
        let count = count.filter(|count| *count <= MOST_POINTS)?;
        let element = element_type(from.r#type());
        let constant = defining(from).filter(|op| name(*op) == "arith.constant")?;
        // SAFETY: the type is an integer where it is asked for its sign.
        let is_signless = types::is_integer(element)
            && unsafe { sys::mlirIntegerTypeIsSignless(element.to_raw()) };
        let constant = Some(constant).filter(|_| is_signless)?;
        let values = integers(constant, types::bits(element)?, count)?;
        Some(Self {
            argument,
            map,
            shape,
            values,
        })
    }

    fn element(&self, point: &[usize]) -> Option<i64> {
        let mut number = 0usize;
        for (at, extent) in self.shape.iter().enumerate() {
            let index = self.map.result(at).ok()?;
            let own = match index.is_dim() {
                true => *point.get(index.dim_position())?,
                false if index.is_constant() => usize::try_from(index.constant_value()).ok()?,
                false => return None,
            };
            number = number.checked_mul(*extent)?.checked_add(own)?;
            if own >= *extent {
                return None;
            }
        }
        self.values.get(number).copied()
    }
}

/// The elements of a constant tensor of integers of 32 or 64 bits.
fn integers(constant: Op<'_>, bits: u32, count: usize) -> Option<Vec<i64>> {
    let value = constant.attribute("value").ok()?;
    if let Some(bytes) = attribute::resource(value) {
        let size = usize::try_from(bits / 8)
            .ok()
            .filter(|size| bytes.len() == size * count)?;
        let of = |own: &[u8]| match size {
            4 => Some(i64::from(i32::from_le_bytes(own.try_into().ok()?))),
            8 => Some(i64::from_le_bytes(own.try_into().ok()?)),
            _ => None,
        };
        return bytes.chunks(size.max(1)).map(of).collect();
    }
    if let Some(splat) = attribute::splat(value) {
        return Some(vec![attribute::integer(splat)?; count]);
    }
    let raw = value.to_raw();
    // SAFETY: the attribute is one of so many elements, of the width that is asked for.
    unsafe {
        let dense = sys::mlirAttributeIsADenseElements(raw);
        let of = |at: usize| {
            let at = isize::try_from(at).ok()?;
            match bits {
                32 => Some(i64::from(sys::mlirDenseElementsAttrGetInt32Value(raw, at))),
                64 => Some(sys::mlirDenseElementsAttrGetInt64Value(raw, at)),
                _ => None,
            }
        };
        dense.then(|| (0..count).map(of).collect()).flatten()
    }
}

/// The indices of the point of this number.
fn point(extents: &[usize], number: usize) -> Vec<usize> {
    let mut rest = number;
    let mut point: Vec<_> = extents
        .iter()
        .rev()
        .map(|extent| {
            let own = rest % extent;
            rest /= extent;
            own
        })
        .collect();
    point.reverse();
    point
}

fn dim_of(op: Op<'_>) -> Option<usize> {
    let dim = op.attribute("dim").ok().and_then(attribute::integer)?;
    usize::try_from(dim).ok()
}

impl Step {
    /// Reads an operation; none where conditions are more than chosen by: they have no one value as a number.
    fn of<'c>(op: Op<'c>, place: impl Fn(Val<'c>) -> Option<Place>) -> Option<Self> {
        let own = name(op);
        let is_condition = |value: &Val<'_>| types::bits(value.r#type()) == Some(1);
        if own != "arith.select" && operands(op).iter().any(is_condition) {
            return None;
        }
        let value = || {
            let value = op.attribute("value").ok()?;
            let int = attribute::integer(value).map(Scalar::Int);
            int.or_else(|| attribute::float(value).map(Scalar::Float))
        };
        Some(Self {
            operands: operands(op).into_iter().map(place).collect::<Option<_>>()?,
            bits: types::bits(only_result(op)?.r#type()).unwrap_or(64),
            constant: value().filter(|_| own == "arith.constant"),
            dim: dim_of(op),
            says: says(&own, op),
            name: own,
        })
    }

    /// What it computes of these; none where that is not known, not defined, or not exact.
    fn computed(&self, all: &[Scalar], point: &[usize]) -> Option<Scalar> {
        let (own, bits) = (self.name.as_str(), self.bits);
        match (own, all) {
            ("linalg.index", _) => {
                let index = point.get(self.dim?)?;
                i64::try_from(*index).ok().map(Scalar::Int)
            }
            ("arith.constant", _) => self.constant,
            ("arith.select", &[Scalar::Int(condition), yes, no]) => {
                Some(if condition == 0 { no } else { yes })
            }
            // f64 in between would round twice.
            ("arith.sitofp", &[Scalar::Int(value)]) if bits == 32 => {
                Some(Scalar::Float(f64::from(value as f32)))
            }
            ("arith.sitofp", &[Scalar::Int(value)]) => rounded(value as f64, bits),
            ("arith.fptosi", &[Scalar::Float(value)]) => {
                let whole = value.trunc();
                // Beyond this f64 has no bits for ones.
                (whole.abs() < 2f64.powi(52))
                    .then_some(Scalar::Int(whole as i64))
                    .and_then(|own| fitting(own, bits))
            }
            ("arith.extf" | "arith.truncf", &[Scalar::Float(value)]) => rounded(value, bits),
            (_, &[Scalar::Float(value)]) => rounded(of_float(own, value)?, bits),
            ("arith.cmpf", &[Scalar::Float(a), Scalar::Float(b)]) => {
                self.compared(a.partial_cmp(&b)?)
            }
            (_, &[Scalar::Float(a), Scalar::Float(b)]) => rounded(of_floats(own, a, b)?, bits),
            ("arith.index_cast" | "arith.extsi" | "arith.trunci", &[Scalar::Int(value)]) => {
                fitting(Scalar::Int(value), bits)
            }
            ("arith.cmpi", &[Scalar::Int(a), Scalar::Int(b)]) => self.compared(a.cmp(&b)),
            (_, &[Scalar::Int(a), Scalar::Int(b)]) => {
                fitting(Scalar::Int(of_integers(own, a, b)?), bits)
            }
            _ => None,
        }
    }

    /// Whether a comparison holds of numbers in this order, none of them a NaN.
    fn compared(&self, order: Ordering) -> Option<Scalar> {
        Some(Scalar::Int(i64::from((self.says?)(order))))
    }
}

/// What a comparison says.
fn says(name: &str, op: Op<'_>) -> Option<Says> {
    let predicate = op.attribute("predicate").ok();
    let predicate = usize::try_from(predicate.and_then(attribute::integer)?).ok()?;
    match name {
        "arith.cmpi" => INTEGERS.get(predicate).copied(),
        _ => {
            let from = if predicate < 8 { 1 } else { 8 };
            FLOATS.get(predicate.checked_sub(from)?).copied()
        }
    }
}

/// An integer in a type of so many bits, where it is the same there.
fn fitting(value: Scalar, bits: u32) -> Option<Scalar> {
    let Scalar::Int(own) = value else { return None };
    let half = 1i64.checked_shl(bits.checked_sub(1)?)?;
    (bits == 64 || bits > 1 && (-half..half).contains(&own)).then_some(value)
}

/// A number in f32 or f64. Sums, products and quotients of f32 that are formed in f64 are rounded to f32 as if they were exact.
fn rounded(value: f64, bits: u32) -> Option<Scalar> {
    match bits {
        32 => Some(Scalar::Float(f64::from(value as f32))),
        64 => Some(Scalar::Float(value)),
        _ => None,
    }
}

fn of_float(name: &str, value: f64) -> Option<f64> {
    match name {
        "math.floor" => Some(value.floor()),
        "math.ceil" => Some(value.ceil()),
        "math.trunc" => Some(value.trunc()),
        "math.round" => Some(value.round()),
        "math.roundeven" => Some(value.round_ties_even()),
        "math.absf" => Some(value.abs()),
        "arith.negf" => Some(-value),
        _ => None,
    }
}

fn of_floats(name: &str, a: f64, b: f64) -> Option<f64> {
    let ordered = !a.is_nan() && !b.is_nan();
    match name {
        "arith.addf" => Some(a + b),
        "arith.subf" => Some(a - b),
        "arith.mulf" => Some(a * b),
        "arith.divf" => Some(a / b),
        "arith.maximumf" | "arith.maxnumf" if ordered => Some(a.max(b)),
        "arith.minimumf" | "arith.minnumf" if ordered => Some(a.min(b)),
        _ => None,
    }
}

fn of_integers(name: &str, a: i64, b: i64) -> Option<i64> {
    let positive = a >= 0 && b > 0;
    match name {
        "arith.addi" => a.checked_add(b),
        "arith.subi" => a.checked_sub(b),
        "arith.muli" => a.checked_mul(b),
        "arith.divsi" => a.checked_div(b),
        "arith.remsi" => a.checked_rem(b),
        "arith.divui" if positive => a.checked_div(b),
        "arith.remui" if positive => a.checked_rem(b),
        "arith.floordivsi" if b > 0 => a.checked_div_euclid(b),
        "arith.maxsi" => Some(a.max(b)),
        "arith.minsi" => Some(a.min(b)),
        _ => None,
    }
}
