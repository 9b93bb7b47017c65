//! `axe.gemm` by one multiply-add an element: whatever the layouts and types.

use super::elementwise::convert;
use super::exchange::put;
use super::scalar::load_at;
use super::text::expect;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::fragment::{Digit, Fragment, Source};
use crate::plan::Decline;
use crate::plan::owner::Owner;
use crate::state::cursor::{Scratch, Taken};
use crate::state::form::Form;
use crate::state::site::Site;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::Int;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Each thread sums its own elements of the result; operands are read from memory, and operands in
/// registers go through shared memory.
#[derive(Clone, Copy)]
pub(super) struct Fma;

/// How long the sums are, how many a thread has, and where operands in registers go.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Product {
    depth: i64,
    registers: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch_a: Option<Scratch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch_b: Option<Scratch>,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            depth, registers, ..
        } = self;
        writeln!(f, "for k < {depth}: {registers} multiply-adds a thread")
    }
}

impl Schedule for Fma {
    type Plan = Product;

    fn name(&self) -> &'static str {
        "fma"
    }
}

impl<'c> Match<Site<'_, 'c>> for Fma {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Product, Decline> {
        let result = site.result()?;
        let (shape, scratch_a) = operand(site, 0, 0)?;
        let before = scratch_a.map_or(0, |scratch| scratch.bytes);
        let (_, scratch_b) = operand(site, 1, before)?;
        let depth = match (shape.as_slice(), site.flag("trans_a")) {
            ([.., k, _], true) | ([.., k], false) => *k,
            _ => return Err(Decline::new("expected a matrix")),
        };
        Ok(Product {
            depth,
            registers: result.registers(),
            scratch_a,
            scratch_b,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Product) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

/// The shape of an operand, and where it goes when it is in registers, behind so many bytes.
fn operand(
    site: Site<'_, '_>,
    at: usize,
    before: i64,
) -> Result<(Vec<i64>, Option<Scratch>), Decline> {
    match site.operand(at)? {
        Form::Memory(storage) => Ok((storage.shape.clone(), None)),
        Form::Registers(held) => {
            Owner::new(&held.fragment)?;
            let shape = held.fragment.shape();
            let behind = (site.group.count(), before);
            let scratch = Scratch::at(site.cursor, shape, held.element, behind)?;
            Ok((shape.to_vec(), Some(scratch)))
        }
        _ => Err(Decline::new(format!("operand {at} is no matrix"))),
    }
}

/// What all schedules of a matrix product need to know of its result.
pub(super) struct Shape<'c> {
    element: Type<'c>,
    registers: usize,
}

impl<'c> Shape<'c> {
    pub(super) fn of(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Self> {
        let result = only_result(op).ok_or_else(|| emitter.error("expected a result"))?;
        let fragment = emitter
            .fragment(result.r#type())
            .map_err(|decline| emitter.error(decline.to_string()))?;
        Ok(Self {
            element: element_type(result.r#type()),
            registers: usize::try_from(fragment.registers()).unwrap_or(0),
        })
    }

    /// What the sums start from.
    pub(super) fn start(&self, emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        match operands(op).get(2) {
            Some(accumulator) => Ok(emitter.registers(*accumulator)?.values),
            None => Ok(vec![emitter.zero(self.element)?; self.registers]),
        }
    }
}

impl<'c> Emit<'c> for Fma {
    fn taken(&self, plan: &Product) -> Taken {
        let bytes = |scratch: &Option<Scratch>| scratch.map_or(0, |scratch| scratch.bytes);
        Taken::Scratch(bytes(&plan.scratch_a) + bytes(&plan.scratch_b))
    }

    fn emit(
        &self,
        plan: &Product,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let result = emitter.result_fragment(op)?;
        let shape = Shape::of(emitter, op)?;
        let wide = accumulator(emitter, shape.element);
        let (a, b) = plan.memories(emitter, op)?;
        let start = shape.start(emitter, op)?;
        let start = start
            .iter()
            .map(|value| convert(emitter, *value, wide))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let (trans_a, trans_b) = (
            op.attribute("trans_a").is_ok(),
            op.attribute("trans_b").is_ok(),
        );
        let sums = emitter.repeat(plan.depth, &start, |emitter, k, sums| {
            let rank = result.dims().len();
            let rows = loaded(emitter, &result, &a, wide, |index| {
                with_k(index, rank - 2, k, trans_a)
            })?;
            let columns = loaded(emitter, &result, &b, wide, |index| {
                with_k(index, rank - 1, k, !trans_b)
            })?;
            let mut next = Vec::new();
            for ((x, y), sum) in rows.iter().zip(&columns).zip(sums) {
                next.push(multiply_add(emitter, *x, *y, *sum, wide)?);
            }
            Ok(next)
        })?;
        if plan.scratch_a.or(plan.scratch_b).is_some() {
            emitter.barrier()?;
        }
        sums.iter()
            .map(|sum| convert(emitter, *sum, shape.element))
            .collect()
    }
}

impl Product {
    /// Both operands in memory.
    fn memories<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, (Memory<'c>, Memory<'c>)> {
        let &[a, b, ..] = operands(op).as_slice() else {
            return Err(emitter.error("expected two operands"));
        };
        let mut found = Vec::new();
        for (value, scratch) in [(a, self.scratch_a), (b, self.scratch_b)] {
            found.push(match scratch {
                None => emitter.memory(value)?,
                Some(scratch) => {
                    let registers = emitter.registers(value)?;
                    let fragment = &registers.fragment;
                    let memory = emitter.scratch(scratch, fragment.shape(), registers.element)?;
                    put(emitter, &memory, fragment, &registers.values)?;
                    memory
                }
            });
        }
        if self.scratch_a.or(self.scratch_b).is_some() {
            emitter.barrier()?;
        }
        match (found.pop(), found.pop()) {
            (Some(b), Some(a)) => Ok((a, b)),
            _ => Err(emitter.error("expected two operands")),
        }
    }
}

/// The elements of an operand that meet each of the result's registers; each is loaded once.
fn loaded<'c>(
    emitter: &mut Emitter<'c>,
    result: &Fragment,
    memory: &Memory<'c>,
    wide: Type<'c>,
    place: impl Fn(&[Int<'c>]) -> Vec<Int<'c>>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let pad = emitter.zero(memory.element)?;
    let mut loaded: BTreeMap<Vec<i64>, Val<'c>> = BTreeMap::new();
    let mut values = Vec::new();
    let thread = result
        .dims()
        .iter()
        .map(|dim| emitter.thread_index(dim))
        .collect::<PassResult<'c, Vec<_>>>()?;
    for register in 0..result.registers() {
        let parts: Vec<_> = result
            .dims()
            .iter()
            .map(|dim| part(dim, register))
            .collect();
        let marks: Vec<_> = parts.iter().map(|part| Int::Known(*part)).collect();
        // Registers that differ in the other operand's dimension alone share a load.
        let key: Vec<_> = place(&marks)
            .iter()
            .map(|int| int.known().unwrap_or(0))
            .collect();
        if let Some(value) = loaded.get(&key) {
            values.push(*value);
            continue;
        }
        let index = thread
            .iter()
            .zip(&parts)
            .map(|(thread, part)| emitter.ints().add(*thread, Int::Known(*part)));
        let index = place(&index.collect::<PassResult<'c, Vec<_>>>()?);
        let value = load_at(emitter, memory, &index, pad)?;
        let value = convert(emitter, value, wide)?;
        loaded.insert(key, value);
        values.push(value);
    }
    Ok(values)
}

fn part(dim: &[Digit], register: i64) -> i64 {
    let own = dim.iter().filter(|digit| digit.source == Source::Register);
    own.map(|digit| digit.value(0, register)).sum()
}

/// The index of an operand: batch, then the result's dimension `own` and `k`; `k` first where `k_first`.
fn with_k<'c>(index: &[Int<'c>], own: usize, k: Int<'c>, k_first: bool) -> Vec<Int<'c>> {
    let batch = index.len().saturating_sub(2);
    let mut place: Vec<_> = index.iter().take(batch).copied().collect();
    let own = index.get(own).copied().unwrap_or(Int::ZERO);
    place.extend(if k_first { [k, own] } else { [own, k] });
    place
}

/// Sums of floats are in f32 at least.
fn accumulator<'c>(emitter: &Emitter<'c>, element: Type<'c>) -> Type<'c> {
    match is_float(element) && bits(element) < Some(32) {
        true => emitter.builder.r#type(|context| Type::float32(context)),
        false => element,
    }
}

fn multiply_add<'c>(
    emitter: &Emitter<'c>,
    x: Val<'c>,
    y: Val<'c>,
    sum: Val<'c>,
    wide: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    if is_float(wide) {
        return emitter
            .builder
            .value("llvm.intr.fma", &[x, y, sum], wide, &[]);
    }
    let product = emitter.builder.value("arith.muli", &[x, y], wide, &[])?;
    emitter
        .builder
        .value("arith.addi", &[sum, product], wide, &[])
}
