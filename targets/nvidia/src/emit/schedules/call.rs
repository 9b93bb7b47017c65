//! `axe.map` by calls: a body of many instructions is a function of a few elements, once in the code.
//!
//! A thread of a product's epilogue has up to 176 sums, and a GELU is 13 instructions of each. ptxas keeps calls as they are, and
//! passes elements in registers. It takes a call while products are under way for an end of their pipeline (C7510), so only maps
//! behind the wait for a tile's sums are called.

use super::elementwise::{inputs, on_registers, same};
use crate::emit::emitter::Emitter;
use crate::emit::outlined::{call, outlined};
use crate::emit::schedule::Emit;
use crate::emit::value::Registers as Values;
use crate::plan::Decline;
use crate::state::site::{Site, pending};
use crate::state::threads::{is_pingpong, parents};
use crate::state::types;
use axe_dialect::{element_type, ops};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::fuse::operators::captured;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{defined_by, defining, name, only_result, operands};
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Op, Val};
use axe_passes::precision::is_transcendental;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Type, ValueLike};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Elements of a call: chains of instructions enough to hide each other's latency, and code that stays short.
const ELEMENTS: i64 = 16;
/// Registers of a call's arguments at the most: they are beside a tile's sums.
const ARGUMENT_REGISTERS: i64 = 16;
/// Steps of a tile's sums behind which calls cost nothing where loads are on their way, for which a call probably waits: 8192 x 8192 x
/// 512 with a bias and GELU takes 153 us by calls and 138 without, 8192 x 12288 x 4096 as long. Without loads it takes the instructions of all
/// subtiles together where no call keeps them apart, and spills: 8192 x 8192 x 512 with SiLU takes 128 us by calls, 149 without.
const LEAST_STEPS: i64 = 32;
/// Instructions of a body that is worth a call: one that takes two inputs and gives a result in f32 is one for each element.
const LEAST_INSTRUCTIONS: i64 = 6;
/// Functions of one or two instructions of the chip.
const OF_CHIP: [&str; 6] = [
    "math.exp",
    "math.exp2",
    "math.log",
    "math.log2",
    "math.sqrt",
    "math.rsqrt",
];

/// A scalar body in a function.
#[derive(Clone, Copy)]
pub(super) struct Call;

/// So many calls of so many elements.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calls {
    /// Registers of the result.
    registers: i64,
    /// Elements that a call takes of each input.
    elements: i64,
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} registers a thread, {} a call",
            self.registers, self.elements
        )
    }
}

impl Schedule for Call {
    type Plan = Calls;

    fn name(&self) -> &'static str {
        "call"
    }
}

impl<'c> Match<Site<'_, 'c>> for Call {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Calls, Decline> {
        let registers = same(site, site.operand_count())?.registers;
        check_body(site.op)?;
        let elements = elements(site.op);
        if registers < ELEMENTS || registers % elements != 0 {
            return Err(Decline::new(format!(
                "{registers} registers: expected a multiple of {elements} from {ELEMENTS} on"
            )));
        }
        check_place(site)?;
        Ok(Calls {
            registers,
            elements,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Calls) -> Result<(), Decline> {
        super::text::expect(plan, &self.plan(site)?)
    }
}

/// Elements of a call of a map's body.
fn elements(map: Op<'_>) -> i64 {
    let inputs = operands(map).into_iter();
    let bits: i64 = inputs
        .filter_map(|input| bits(element_type(input.r#type())))
        .map(i64::from)
        .sum();
    match ELEMENTS * bits > 32 * ARGUMENT_REGISTERS {
        true => ELEMENTS / 2,
        false => ELEMENTS,
    }
}

/// Declines bodies that are short, and those that need more than their arguments and constants.
fn check_body(map: Op<'_>) -> Result<(), Decline> {
    let inside = nested(map, &|_| true);
    if inside
        .iter()
        .map(|op| instructions(&name(*op)))
        .sum::<i64>()
        < LEAST_INSTRUCTIONS
    {
        return Err(Decline::new("the body is a few instructions"));
    }
    let is_plain = |op: &Op<'_>| op.region_count() == 0 && name(*op) != ops::INDEX;
    if !inside.iter().all(is_plain) {
        return Err(Decline::new("the body depends on more than its arguments"));
    }
    let is_passed = |r#type: Type<'_>| is_float(r#type) && matches!(bits(r#type), Some(16 | 32));
    let values = operands(map).into_iter().chain(only_result(map));
    if !values
        .into_iter()
        .all(|value| is_passed(element_type(value.r#type())))
    {
        return Err(Decline::new("expected floats of 16 or 32 bits"));
    }
    match captured(map).iter().all(|value| is_constant(*value)) {
        true => Ok(()),
        false => Err(Decline::new("the body has values of the kernel around it")),
    }
}

/// About how many instructions an operation of a body is.
fn instructions(name: &str) -> i64 {
    match name {
        ops::YIELD | "arith.constant" => 0,
        "arith.divf" => 3,
        _ if OF_CHIP.contains(&name) => 2,
        _ if is_transcendental(name) => LEAST_INSTRUCTIONS,
        _ => 1,
    }
}

fn is_constant(value: Val<'_>) -> bool {
    defined_by(value, "arith.constant").is_some()
}

/// Declines maps that do not follow a tile's sums, and those whose time shows: other warpgroups' products hide it where a CTA has several
/// tiles.
fn check_place(site: Site<'_, '_>) -> Result<(), Decline> {
    let before = Before::of(site, site.op);
    let Before { steps, loads } =
        before.ok_or_else(|| Decline::new("the map does not follow a tile's sums"))?;
    if tiles_in_turn(site) <= site.chip().multiprocessors / site.kernel.cluster_size() {
        return Err(Decline::new(
            "expected tiles in turn (pingpong), several for each CTA",
        ));
    }
    match loads && steps < LEAST_STEPS {
        true => Err(Decline::new(format!(
            "a call waits for loads, behind sums of {steps} steps: expected {LEAST_STEPS} or more"
        ))),
        false => Ok(()),
    }
}

/// What a tile's threads have done before a map.
#[derive(Clone, Copy)]
struct Before {
    /// Steps of the tile's sums, as many as can be where that is not known.
    steps: i64,
    /// Whether they have loaded since.
    loads: bool,
}

impl Before {
    /// `None` for an operator that does not follow a tile's sums, whose products are done.
    fn of(site: Site<'_, '_>, op: Op<'_>) -> Option<Self> {
        let around = parents(op).next()?;
        if name(around) == "scf.for" {
            return None;
        }
        let all = blocks(around).into_iter().map(operations);
        let block = all.into_iter().find(|all| all.contains(&op))?;
        let (mut steps, mut loads, mut is_done) = (None::<i64>, false, true);
        for before in block.into_iter().take_while(|other| *other != op) {
            let own = name(before);
            if own == ops::WAIT && only_result(before).is_some() {
                is_done = pending(before) == 0;
            } else if let Some(products) = products(before) {
                is_done = !products.iter().any(|op| op.attribute("isAsync").is_ok());
                steps = Some(trips(site, before).saturating_add(steps.unwrap_or(0)));
                loads = false;
            } else {
                loads |= own == ops::COPY && only_result(before).is_some();
            }
        }
        match steps {
            Some(steps) => is_done.then_some(Self { steps, loads }),
            None if name(around) == "scf.if" => Self::of(site, around),
            None => None,
        }
    }
}

/// The tiles that thread groups take in turn around an operator, as many as can be where that is not known; 0 where they do not.
fn tiles_in_turn(site: Site<'_, '_>) -> i64 {
    let Some(tiles) = parents(site.op).find(|op| is_pingpong(*op)) else {
        return 0;
    };
    let known = |extent| site.kernel.facts.of(extent).known().unwrap_or(i64::MAX);
    let extents = operands(tiles).into_iter().map(known);
    extents.fold(1, i64::saturating_mul)
}

/// The products that an operation is, or has in its regions; `None` for one that has none.
fn products(op: Op<'_>) -> Option<Vec<Op<'_>>> {
    let all = nested(op, &|_| true).into_iter().chain([op]);
    let products: Vec<_> = all.filter(|op| name(*op) == ops::GEMM).collect();
    (!products.is_empty()).then_some(products)
}

/// How often an operation is done: a loop's trips, which count from zero in ones.
fn trips(site: Site<'_, '_>, op: Op<'_>) -> i64 {
    match (name(op).as_str(), operands(op).get(1)) {
        ("scf.for", Some(end)) => site.kernel.facts.of(*end).known().unwrap_or(i64::MAX),
        _ => 1,
    }
}

impl<'c> Emit<'c> for Call {
    fn emit(
        &self,
        plan: &Calls,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let inputs = inputs(emitter, op)?;
        let Some(result) = only_result(op) else {
            return Err(emitter.error("expected a result"));
        };
        let (count, element) = (plan.elements, element_type(result.r#type()));
        let callee = function(emitter, op, (&inputs, element), count)?;
        let vector = types::vector(count, element);
        let mut values = Vec::new();
        let size = usize::try_from(count).unwrap_or(1).max(1);
        let registers = usize::try_from(plan.registers).unwrap_or(0);
        for first in (0..registers).step_by(size) {
            let packed = inputs.iter().map(|input| {
                let own = input.values.get(first..first + size);
                let own = own.ok_or_else(|| emitter.error("an input has too few registers"))?;
                emitter.pack(own, input.element)
            });
            let packed = packed.collect::<PassResult<'c, Vec<_>>>()?;
            let formed = call(emitter.builder, callee, &packed, vector)?;
            values.extend(emitter.unpack(formed, count, element)?);
        }
        Ok(values)
    }
}

/// The name of the function of a map's body on so many elements.
fn function<'c>(
    emitter: &mut Emitter<'c>,
    map: Op<'c>,
    (inputs, result): (&[Values<'c>], Type<'c>),
    count: i64,
) -> PassResult<'c, Attribute<'c>> {
    let vectors = inputs
        .iter()
        .map(|input| types::vector(count, input.element));
    let vectors: Vec<_> = vectors.collect();
    let returned = types::vector(count, result);
    outlined(
        emitter,
        "map",
        (&vectors, returned),
        |emitter, arguments| body(emitter, map, (inputs, arguments), (result, count)),
    )
}

/// Emits a body on a function's arguments: what the function returns.
fn body<'c>(
    emitter: &mut Emitter<'c>,
    map: Op<'c>,
    (inputs, arguments): (&[Values<'c>], &[Val<'c>]),
    (result, count): (Type<'c>, i64),
) -> PassResult<'c, Val<'c>> {
    let constants = captured(map);
    let outer = constants.iter().map(|value| emitter.bound(*value).cloned());
    let outer = outer.collect::<PassResult<'c, Vec<_>>>()?;
    for constant in constants.iter().filter_map(|value| defining(*value)) {
        emitter.operation(constant)?;
    }
    let taken = inputs.iter().zip(arguments).map(|(input, argument)| {
        let values = emitter.unpack(*argument, count, input.element)?;
        Ok(Values {
            values,
            ..input.clone()
        })
    });
    let taken = taken.collect::<PassResult<'c, Vec<_>>>()?;
    let values = on_registers(emitter, map, &taken);
    for (constant, bound) in constants.into_iter().zip(outer) {
        emitter.bind(constant, bound);
    }
    emitter.pack(&values?, result)
}
