//! Operators that work register by register: `axe.cast`, `axe.map`, `axe.mask`.

use super::packed;
use super::text::Registers;
use crate::emit::access::register_index;
use crate::emit::bf16;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::{Bound, Registers as Values};
use crate::fragment::{Digit, Fragment};
use crate::math::intrinsic;
use crate::plan::Decline;
use crate::state::site::Site;
use crate::state::types;
use axe_dialect::ops::IndexOp;
use axe_dialect::{Typed, element_type};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{identity, name, only_result, operands};
use axe_passes::ir::walk::{block_arguments, blocks, nested};
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val, attribute};
use axe_passes::precision::is_bf16;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Type, ValueLike};
use std::collections::HashSet;
use std::rc::Rc;

/// Conversions.
#[derive(Clone, Copy)]
pub(super) struct Cast;
/// A scalar body.
#[derive(Clone, Copy)]
pub(super) struct Map;
/// Elements inside bounds.
#[derive(Clone, Copy)]
pub(super) struct Mask;

/// All operands in registers must be held as the result is.
pub(super) fn same(site: Site<'_, '_>, operands: usize) -> Result<Registers, Decline> {
    let fragment = site.result()?;
    for at in 0..operands {
        let other = &site.registers(at)?.fragment;
        if !Rc::ptr_eq(other, &fragment) && !other.holds_as(&fragment) {
            return Err(Decline::new(format!(
                "operand {at} is held by other threads or registers than the result"
            )));
        }
    }
    Registers::of_result(site)
}

impl Schedule for Cast {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        "cvt"
    }
}

impl<'c> Match<Site<'_, 'c>> for Cast {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        same(site, 1)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl Schedule for Map {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        "registers"
    }
}

impl<'c> Match<Site<'_, 'c>> for Map {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        same(site, site.operand_count())
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl Schedule for Mask {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        "select"
    }
}

impl<'c> Match<Site<'_, 'c>> for Mask {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        same(site, 1)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Cast {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (Some(source), Some(result)) = (operands(op).first().copied(), only_result(op)) else {
            return Err(emitter.error("expected a source and a result"));
        };
        let source = emitter.registers(source)?;
        let to = element_type(result.r#type());
        if types::is_float8(to) && emitter.kernel.chip.converts_float8 {
            return emitter.narrow_float8s(&source.values, to);
        }
        let sizes = [bits(source.element), bits(to)];
        if sizes == [Some(32), Some(16)] && is_float(source.element) && is_float(to) {
            return narrow_pairs(emitter, &source.values, to);
        }
        let widens = bf16::widens(op);
        let own = |value: &Val<'c>| {
            let wide = widens.then(|| emitter.widen_bf16(*value, to)).transpose()?;
            wide.flatten()
                .map_or_else(|| convert(emitter, *value, to), Ok)
        };
        source.values.iter().map(own).collect()
    }
}

impl<'c> Emit<'c> for Map {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let inputs = inputs(emitter, op)?;
        on_registers(emitter, op, &inputs)
    }
}

/// The registers of a map's inputs.
///
/// # Errors
/// When one is no register tensor.
pub(super) fn inputs<'c>(emitter: &Emitter<'c>, map: Op<'c>) -> PassResult<'c, Vec<Values<'c>>> {
    let all = operands(map).into_iter();
    all.map(|input| emitter.registers(input)).collect()
}

/// The arguments of a body that are the same in many registers.
fn shared<'c>(body: BlockRef<'c, 'c>, inputs: &[Values<'c>]) -> HashSet<usize> {
    let is_shared = |values: &[Val<'c>]| {
        let distinct: HashSet<_> = values.iter().map(|value| identity(*value)).collect();
        2 * distinct.len() <= values.len()
    };
    let arguments = block_arguments(body).into_iter().zip(inputs);
    let shared = arguments.filter(|(_, input)| is_shared(&input.values));
    shared.map(|(argument, _)| identity(argument)).collect()
}

/// The body of a map, register by register, or on two at once.
///
/// # Errors
/// At an operation that has no form.
pub(super) fn on_registers<'c>(
    emitter: &mut Emitter<'c>,
    map: Op<'c>,
    inputs: &[Values<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let body = blocks(map)
        .first()
        .copied()
        .ok_or_else(|| emitter.error("expected a body"))?;
    emitter.shared_arguments = shared(body, inputs);
    emitter.speculative = true;
    let values = of_each(emitter, map, body, inputs);
    emitter.speculative = false;
    emitter.shared_arguments.clear();
    values
}

fn of_each<'c>(
    emitter: &mut Emitter<'c>,
    map: Op<'c>,
    body: BlockRef<'c, 'c>,
    inputs: &[Values<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let places = Places::of(emitter, map)?;
    let arguments = block_arguments(body);
    let count = inputs.first().map_or(0, |input| input.values.len());
    if inputs.iter().any(|input| input.values.len() < count) {
        return Err(emitter.error("an input has fewer registers than the result"));
    }
    let packed = packed::is_packed(emitter, body);
    let mut values = Vec::new();
    let registers: Vec<_> = (0..count).collect();
    for registers in registers.chunks(if packed { 2 } else { 1 }) {
        if let &[first, second] = registers {
            let pairs = inputs
                .iter()
                .map(|input| [input.values[first], input.values[second]]);
            let pairs = arguments.iter().copied().zip(pairs);
            values.extend(packed::emit(emitter, body, pairs)?);
            continue;
        }
        for &register in registers {
            for (argument, input) in arguments.iter().zip(inputs) {
                emitter.bind(*argument, Bound::Scalar(input.values[register]));
            }
            emitter.element = places.of_register(emitter, register)?;
            let terminator = emitter.block(body)?;
            let yielded = terminator.and_then(|terminator| operands(terminator).first().copied());
            let yielded =
                yielded.ok_or_else(|| emitter.error("expected the body to yield a value"))?;
            values.push(emitter.scalar(yielded)?);
        }
    }
    Ok(values)
}

/// Where the elements of a map's result are that this thread holds.
struct Places<'c> {
    fragment: Rc<Fragment>,
    /// The thread's part of the index along each dimension, as an index; of none where the body does not ask.
    thread: Vec<Int<'c>>,
}

impl<'c> Places<'c> {
    fn of(emitter: &Emitter<'c>, map: Op<'c>) -> PassResult<'c, Self> {
        let fragment = emitter.result_fragment(map)?;
        let asks = nested(map, &|_| true)
            .into_iter()
            .any(|op| name(op) == IndexOp::NAME);
        let dims = fragment.dims().iter().filter(|_| asks);
        let index = Ints::index(emitter.builder);
        let thread = dims
            .map(|dim| index.cast(emitter.thread_index(dim)?))
            .collect::<PassResult<'c, _>>()?;
        Ok(Self { fragment, thread })
    }

    /// The index, along each dimension, of the element in a register.
    fn of_register(&self, emitter: &Emitter<'c>, register: usize) -> PassResult<'c, Vec<Int<'c>>> {
        let register = i64::try_from(register).map_err(|_| emitter.error("too many registers"))?;
        // Registers that differ in the last bits alone are equal above them only where the sum is that of the whole index.
        let index = Ints::index(emitter.builder);
        let along = |(dim, thread): (&Vec<Digit>, &Int<'c>)| {
            index.add(*thread, Int::Known(register_index(dim, register)))
        };
        let dims = self.fragment.dims().iter();
        dims.zip(&self.thread).map(along).collect()
    }
}

impl<'c> Emitter<'c> {
    /// `axe.index`: the index of the element that a map's body computes.
    pub(in crate::emit) fn element_index(&mut self, op: Op<'c>) -> PassResult<'c> {
        let dim = op.attribute("dim").ok().and_then(attribute::integer);
        let at = dim.and_then(|dim| self.element.get(usize::try_from(dim).ok()?).copied());
        let (Some(at), Some(result)) = (at, only_result(op)) else {
            return Err(self.error("expected a dimension of the map's result"));
        };
        let value = Ints::index(self.builder).value(at)?;
        self.bind(result, Bound::Scalar(value));
        Ok(())
    }
}

impl<'c> Emit<'c> for Mask {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let values = operands(op);
        let fragment = emitter.result_fragment(op)?;
        let rank = fragment.dims().len();
        let (Some(source), Some(origin), Some(limit), Some(other)) = (
            values.first(),
            values.get(1..1 + rank),
            values.get(1 + rank..1 + 2 * rank),
            values.get(1 + 2 * rank),
        ) else {
            return Err(emitter.error("expected one origin and one limit a dimension"));
        };
        let (source, other) = (emitter.registers(*source)?, emitter.scalar(*other)?);
        let wide = axe_passes::ir::Ints::new(emitter.builder, 64);
        let mut room = Vec::new();
        for (origin, limit) in origin.iter().zip(limit) {
            let left = wide.sub(
                wide.cast(emitter.int(*limit)?)?,
                wide.cast(emitter.int(*origin)?)?,
            )?;
            let clamped = wide.max(
                wide.min(left, Int::Known(i64::from(i32::MAX)))?,
                Int::Known(i64::from(i32::MIN)),
            )?;
            room.push(emitter.ints().cast(clamped)?);
        }
        (0..)
            .zip(&source.values)
            .map(|(register, value)| select(emitter, (&fragment, register), *value, other, &room))
            .collect()
    }
}

fn select<'c>(
    emitter: &Emitter<'c>,
    (fragment, register): (&Fragment, i64),
    value: Val<'c>,
    other: Val<'c>,
    room: &[Int<'c>],
) -> PassResult<'c, Val<'c>> {
    let ints = emitter.ints();
    let mut inside = None;
    for (dim, &room) in fragment.dims().iter().zip(room) {
        let at = emitter.index_along(dim, register)?;
        inside = Some(emitter.both(inside, ints.less(at, room)?)?);
    }
    match inside {
        None => Ok(value),
        Some(inside) => {
            emitter
                .builder
                .value("arith.select", &[inside, value, other], value.r#type(), &[])
        }
    }
}

/// Numbers of f32 as 16-bit ones, in pairs. Sums of products are: ptxas may take single conversions for reads of accumulators whose
/// products are under way (C7514). LLVM makes single ones of the vectors that it knows, so that these are the chip's own.
fn narrow_pairs<'c>(
    emitter: &Emitter<'c>,
    values: &[Val<'c>],
    to: Type<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let mut narrow = Vec::new();
    for pair in values.chunks(2) {
        match *pair {
            [first, second] => narrow.extend(narrow_pair(emitter, [first, second], to)?),
            _ => {
                for one in pair {
                    narrow.push(convert(emitter, *one, to)?);
                }
            }
        }
    }
    Ok(narrow)
}

/// Two numbers of f32 as 16-bit ones (PTX ISA 9.7.9.22, `cvt`, whose first operand is the upper half).
fn narrow_pair<'c>(
    emitter: &Emitter<'c>,
    [first, second]: [Val<'c>; 2],
    to: Type<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let name = match is_bf16(to) {
        true => "llvm.nvvm.ff2bf16x2.rn",
        false => "llvm.nvvm.ff2f16x2.rn",
    };
    let vector = types::vector(2, to);
    let both = intrinsic(emitter.builder, name, &[second, first], vector, "none")?;
    emitter.unpack(both, 2, to)
}

/// A scalar in another element type, as `axe.cast` defines it.
pub(in crate::emit) fn convert<'c>(
    emitter: &Emitter<'c>,
    value: Val<'c>,
    to: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let from = value.r#type();
    if from == to {
        return Ok(value);
    }
    if types::is_float8(from) {
        return convert(emitter, emitter.widen_float8(value)?, to);
    }
    if types::is_float8(to) {
        let f32 = emitter.builder.r#type(|context| Type::float32(context));
        return emitter.narrow_float8(convert(emitter, value, f32)?, to);
    }
    let widens = bits(from) < bits(to);
    let boolean = bits(from) == Some(1);
    let name = match (is_float(from), is_float(to)) {
        (true, true) if bits(from) == bits(to) => return through_f32(emitter, value, to),
        (true, true) if widens => "arith.extf",
        (true, true) => "arith.truncf",
        (true, false) => return saturate(emitter, value, to),
        (false, true) if boolean => "arith.uitofp",
        (false, true) => "arith.sitofp",
        (false, false) if boolean => "arith.extui",
        (false, false) if widens => "arith.extsi",
        (false, false) => "arith.trunci",
    };
    emitter.builder.value(name, &[value], to, &[])
}

/// f16 to bf16 and back.
fn through_f32<'c>(emitter: &Emitter<'c>, value: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
    let f32 = emitter.builder.r#type(|context| Type::float32(context));
    let wide = emitter.builder.value("arith.extf", &[value], f32, &[])?;
    emitter.builder.value("arith.truncf", &[wide], to, &[])
}

/// `arith.cmpf`'s predicates that are used here.
#[derive(Clone, Copy)]
enum Ordering {
    OrderedGreaterOrEqual = 3,
    OrderedLess = 4,
    Unordered = 14,
}

/// A float as a signed integer: towards zero, at the ends where it does not fit, zero for NaN.
fn saturate<'c>(emitter: &Emitter<'c>, value: Val<'c>, to: Type<'c>) -> PassResult<'c, Val<'c>> {
    let builder = emitter.builder;
    let end = 2f64.powi(i32::try_from(bits(to).unwrap_or(1)).unwrap_or(1) - 1);
    let float = |number: f64| builder.constant(builder.float(value.r#type(), number));
    let integer = |number: i64| builder.constant(IntegerAttribute::new(to, number).into());
    let most = i64::MAX >> (64 - bits(to).unwrap_or(64));
    let converted = builder.value("arith.fptosi", &[value], to, &[])?;
    [
        (Ordering::OrderedGreaterOrEqual, float(end)?, integer(most)?),
        (Ordering::OrderedLess, float(-end)?, integer(-most - 1)?),
        (Ordering::Unordered, value, integer(0)?),
    ]
    .into_iter()
    .try_fold(converted, |otherwise, (ordering, bound, end)| {
        let (i1, i64) = (types::integer(builder, 1), types::integer(builder, 64));
        let predicate = IntegerAttribute::new(i64, ordering as i64).into();
        let operands = [value, bound];
        let outside = builder.value("arith.cmpf", &operands, i1, &[("predicate", predicate)])?;
        builder.value("arith.select", &[outside, end, otherwise], to, &[])
    })
}
