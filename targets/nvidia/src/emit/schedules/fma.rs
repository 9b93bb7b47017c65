//! `axe.gemm` by one multiply-add an element: whatever the layouts and types.

use super::elementwise::convert;
use super::exchange::put;
use super::scalar::load_at;
use crate::emit::access::scratch_bytes;
use crate::emit::int::Int;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::value::{Bound, Memory};
use crate::fragment::{Digit, Fragment, Source};
use crate::plan::Decline;
use crate::plan::owner::Owner;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::value::{only_result, operands};
use axe_passes::ir::{Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Each thread sums its own elements of the result; operands are read from memory, and operands in
/// registers go through shared memory.
pub(super) struct Fma;

struct Product {
    result: Rc<Fragment>,
    depth: i64,
    owners: [Option<Owner>; 2],
}

impl<'c> Schedule<'c> for Fma {
    fn name(&self) -> &'static str {
        "fma"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let result = site.result()?;
        let (shape, owner) = operand(site, 0)?;
        let (_, other) = operand(site, 1)?;
        let depth = match (shape.as_slice(), site.flag("trans_a")) {
            ([.., k, _], true) | ([.., k], false) => *k,
            _ => return Err(Decline::new("expected a matrix")),
        };
        Ok(Box::new(Product {
            result,
            depth,
            owners: [owner, other],
        }))
    }
}

/// The shape of an operand, and who stores it when it is in registers.
fn operand(site: Site<'_, '_>, at: usize) -> Result<(Vec<i64>, Option<Owner>), Decline> {
    match site.operand(at)? {
        Bound::Memory(memory) => Ok((memory.shape.clone(), None)),
        Bound::Registers(registers) => Ok((
            registers.fragment.shape().to_vec(),
            Some(Owner::new(&registers.fragment)?),
        )),
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

impl<'c> Plan<'c> for Product {
    fn describe(&self) -> String {
        format!(
            "for k < {}: {} multiply-adds a thread\n",
            self.depth,
            self.result.registers()
        )
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let shape = Shape::of(emitter, op)?;
        let wide = accumulator(emitter, shape.element);
        let (a, b) = self.memories(emitter, op)?;
        let start = shape.start(emitter, op)?;
        let start = start
            .iter()
            .map(|value| convert(emitter, *value, wide))
            .collect::<PassResult<'c, Vec<_>>>()?;
        let (trans_a, trans_b) = (
            op.attribute("trans_a").is_ok(),
            op.attribute("trans_b").is_ok(),
        );
        let sums = emitter.repeat(self.depth, &start, |emitter, k, sums| {
            let rank = self.result.dims().len();
            let rows = self.operand(emitter, &a, wide, |index| {
                with_k(index, rank - 2, k, trans_a)
            })?;
            let columns = self.operand(emitter, &b, wide, |index| {
                with_k(index, rank - 1, k, !trans_b)
            })?;
            let mut next = Vec::new();
            for ((x, y), sum) in rows.iter().zip(&columns).zip(sums) {
                next.push(multiply_add(emitter, *x, *y, *sum, wide)?);
            }
            Ok(next)
        })?;
        if self.owners.iter().any(Option::is_some) {
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
        let mut found = Vec::new();
        let (mut taken, outer) = (0, emitter.scratch);
        for (at, owner) in self.owners.iter().enumerate() {
            let value = operands(op)
                .get(at)
                .copied()
                .ok_or_else(|| emitter.error("expected two operands"))?;
            let Some(owner) = owner else {
                found.push(emitter.memory(value)?);
                continue;
            };
            let registers = emitter.registers(value)?;
            emitter.scratch = outer + taken;
            let memory = emitter.scratch(registers.fragment.shape(), registers.element)?;
            put(
                emitter,
                &memory,
                &registers.fragment,
                &registers.values,
                owner,
            )?;
            taken += scratch_bytes(&memory.shape, memory.bytes) * emitter.team.count();
            emitter.scratch_used = emitter.scratch_used.max(taken);
            found.push(memory);
        }
        emitter.scratch = outer;
        if taken > 0 {
            emitter.barrier()?;
        }
        match (found.pop(), found.pop()) {
            (Some(b), Some(a)) => Ok((a, b)),
            _ => Err(emitter.error("expected two operands")),
        }
    }

    /// The elements of an operand that meet each of the result's registers; each is loaded once.
    fn operand<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        memory: &Memory<'c>,
        wide: Type<'c>,
        place: impl Fn(&[Int<'c>]) -> Vec<Int<'c>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let pad = emitter.zero(memory.element)?;
        let mut loaded: BTreeMap<Vec<i64>, Val<'c>> = BTreeMap::new();
        let mut values = Vec::new();
        let thread = self
            .result
            .dims()
            .iter()
            .map(|dim| emitter.thread_index(dim))
            .collect::<PassResult<'c, Vec<_>>>()?;
        for register in 0..self.result.registers() {
            let parts: Vec<_> = self
                .result
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
