//! `axe.reduce`.

use super::elementwise::convert;
use super::exchange::{put, take};
use super::scalar;
use super::text::expect;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Registers;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::gather::GatherPlan;
use crate::plan::owner::Owner;
use crate::plan::reduce::ReducePlan;
use crate::state::cursor::{Scratch, Taken};
use crate::state::form::Held;
use crate::state::site::Site;
use crate::state::site::dims;
use crate::state::types;
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use serde::{Deserialize, Serialize};
use std::fmt;

/// In each thread, across lanes by butterflies, across warps through shared memory.
#[derive(Clone, Copy)]
pub(super) struct Shuffle;
/// Everything through shared memory, each result by one loop.
#[derive(Clone, Copy)]
pub(super) struct Shared;

/// How parts are combined, and which of the sums each register of the result is.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Butterfly {
    combine: ReducePlan,
    gather: GatherPlan,
    /// Where parts of warps meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch: Option<Scratch>,
}

impl fmt::Display for Butterfly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.combine.fmt(f)
    }
}

/// The tensor in shared memory, and what is combined of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Serial {
    stored: Vec<i64>,
    dims: Vec<usize>,
    scratch: Scratch,
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "st.shared {:?}\nbar.sync", self.stored)?;
        writeln!(
            f,
            "for each result: combine along {:?}\nbar.sync",
            self.dims
        )
    }
}

pub(super) fn combiner(op: Op<'_>) -> Result<Combiner, Decline> {
    let combiner = op.attribute("combiner").ok().and_then(Combiner::cast);
    combiner.ok_or_else(|| Decline::new("expected a combiner"))
}

/// The combiner of an operator that has a plan.
pub(super) fn combiner_of<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Combiner> {
    combiner(op).map_err(|decline| emitter.error(decline.to_string()))
}

/// What is combined.
fn combined<'a, 'c>(site: Site<'a, 'c>) -> Result<&'a Held<'c>, Decline> {
    combiner(site.op)?;
    let source = site.registers(0)?;
    match bits(source.element) {
        Some(1 | 8 | 16 | 32 | 64) if !types::is_float8(source.element) => Ok(source),
        _ => Err(Decline::new(format!(
            "expected integers, or floats of 16, 32 or 64 bits, got {}",
            source.element
        ))),
    }
}

/// Where the parts of warps meet, where they do.
fn meeting(
    site: Site<'_, '_>,
    plan: &ReducePlan,
    source: &Held<'_>,
) -> Result<Option<Scratch>, Decline> {
    if plan.across_warps.is_empty() {
        return Ok(None);
    }
    let (stored, _) = plan.meeting(&source.fragment)?;
    Owner::new(&stored)?;
    let wide = wide(source.element, combiner(site.op)?);
    Scratch::at(site.cursor, stored.shape(), wide, (1, 0)).map(Some)
}

impl Schedule for Shuffle {
    type Plan = Butterfly;

    fn name(&self) -> &'static str {
        "shfl.bfly"
    }
}

impl<'c> Match<Site<'_, 'c>> for Shuffle {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Butterfly, Decline> {
        let source = combined(site)?;
        let plan = ReducePlan::new(&source.fragment, &dims(site.op, "dims"))?;
        let result = site.result()?;
        let made = Fragment::new(&plan.result, result.shape(), site.threads())?;
        Ok(Butterfly {
            gather: GatherPlan::new(&made, &result, |x| x)?,
            scratch: meeting(site, &plan, source)?,
            combine: plan,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Butterfly) -> Result<(), Decline> {
        let source = combined(site)?;
        plan.combine
            .verify(&source.fragment, &dims(site.op, "dims"))?;
        let result = site.result()?;
        let made = Fragment::read(&plan.combine.result, result.shape(), site.threads())?;
        plan.gather.check(&made, &result, |x| x)?;
        expect(&plan.scratch, &meeting(site, &plan.combine, source)?)
    }
}

impl Schedule for Shared {
    type Plan = Serial;

    fn name(&self) -> &'static str {
        "shared"
    }
}

impl<'c> Match<Site<'_, 'c>> for Shared {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Serial, Decline> {
        let source = site.registers(0)?;
        combiner(site.op)?;
        Owner::new(&source.fragment)?;
        site.result()?;
        let shape = source.fragment.shape();
        Ok(Serial {
            stored: shape.to_vec(),
            dims: dims(site.op, "dims"),
            scratch: Scratch::at(site.cursor, shape, source.element, (1, 0))?,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Serial) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

/// The type that values are combined in: sums and products of small floats in f32.
fn wide<'c>(element: Type<'c>, combiner: Combiner) -> Type<'c> {
    let small = is_float(element) && bits(element) < Some(32);
    match small && matches!(combiner, Combiner::Add | Combiner::Mul) {
        true => types::f32_like(element),
        false => element,
    }
}

pub(super) fn combine<'c>(
    emitter: &Emitter<'c>,
    combiner: Combiner,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let name = axe_passes::ir::combiner::operation(combiner, a.r#type());
    emitter.builder.value(name, &[a, b], a.r#type(), &[])
}

/// Chains of a long maximum or minimum in a thread.
const CHAINS: usize = 4;

fn combine_all<'c>(
    emitter: &Emitter<'c>,
    combiner: Combiner,
    values: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    // In whatever order: a long chain waits for each of its links, several do not wait for each other.
    if values.len() < 4 * CHAINS || !matches!(combiner, Combiner::Max | Combiner::Min) {
        return chain(emitter, combiner, values.iter());
    }
    let parts = (0..CHAINS).map(|first| {
        let own = values.iter().skip(first).step_by(CHAINS);
        chain(emitter, combiner, own)
    });
    let parts = parts.collect::<PassResult<'c, Vec<_>>>()?;
    chain(emitter, combiner, parts.iter())
}

/// Values one after the other.
pub(super) fn chain<'v, 'c: 'v>(
    emitter: &Emitter<'c>,
    combiner: Combiner,
    mut values: impl Iterator<Item = &'v Val<'c>>,
) -> PassResult<'c, Val<'c>> {
    let Some(&first) = values.next() else {
        return Err(emitter.error("a reduction of nothing"));
    };
    values.try_fold(first, |sum, value| combine(emitter, combiner, sum, *value))
}

fn source<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Registers<'c>> {
    emitter.registers(emitter.source(op)?)
}

impl<'c> Emit<'c> for Shuffle {
    fn taken(&self, plan: &Butterfly) -> Taken {
        match plan.scratch {
            Some(scratch) => Taken::Scratch(scratch.bytes),
            None => Taken::Nothing,
        }
    }

    fn emit(
        &self,
        plan: &Butterfly,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let source = source(emitter, op)?;
        let combiner = combiner_of(emitter, op)?;
        let wide = wide(source.element, combiner);
        let mut sums = Vec::new();
        for group in &plan.combine.in_thread {
            let mut members = Vec::new();
            for &register in group {
                let value = usize::try_from(register)
                    .ok()
                    .and_then(|at| source.values.get(at).copied());
                let value =
                    value.ok_or_else(|| emitter.error("a register of the plan does not exist"))?;
                members.push(convert(emitter, value, wide)?);
            }
            sums.push(combine_all(emitter, combiner, &members)?);
        }
        for &mask in &plan.combine.lane_masks {
            for sum in &mut sums {
                let other = shuffle(emitter, *sum, mask)?;
                *sum = combine(emitter, combiner, *sum, other)?;
            }
        }
        if let Some(scratch) = plan.scratch {
            let meeting = Meeting {
                combiner,
                wide,
                scratch,
            };
            sums = plan.across(emitter, &source.fragment, meeting, &sums)?;
        }
        let narrow = |value: Val<'c>| convert(emitter, value, source.element);
        let sums = sums
            .into_iter()
            .map(narrow)
            .collect::<PassResult<'c, Vec<_>>>()?;
        let pick = |from: &i64| {
            usize::try_from(*from)
                .ok()
                .and_then(|at| sums.get(at).copied())
        };
        let picked: Option<Vec<_>> = plan.gather.from.iter().map(pick).collect();
        picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
    }
}

/// How parts of warps are combined in shared memory.
#[derive(Clone, Copy)]
struct Meeting<'c> {
    combiner: Combiner,
    wide: Type<'c>,
    scratch: Scratch,
}

impl Butterfly {
    /// Each warp's part of each result meets the others' in shared memory.
    fn across<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        source: &Fragment,
        meeting: Meeting<'c>,
        parts: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let failed = |decline: Decline| emitter.error(decline.to_string());
        let (stored, loaded) = self.combine.meeting(source).map_err(failed)?;
        let scratch = emitter.scratch(meeting.scratch, stored.shape(), meeting.wide)?;
        put(emitter, &scratch, &stored, parts)?;
        emitter.barrier()?;
        let all = take(emitter, &scratch, &loaded)?;
        emitter.barrier()?;
        let results = parts.len();
        (0..results)
            .map(|result| {
                let slots: Vec<_> = all.iter().skip(result).step_by(results).copied().collect();
                combine_all(emitter, meeting.combiner, &slots)
            })
            .collect()
    }
}

/// The value of the lane whose number differs by `mask`.
pub(super) fn shuffle<'c>(
    emitter: &Emitter<'c>,
    value: Val<'c>,
    mask: i64,
) -> PassResult<'c, Val<'c>> {
    let builder = emitter.builder;
    let r#type = value.r#type();
    match bits(r#type) {
        Some(32) => exchange(emitter, value, mask),
        Some(narrow @ ..32) => {
            let (own, i32) = (types::integer(builder, narrow), types::integer(builder, 32));
            let wide = builder.value("arith.extui", &[emitter.bitcast(value, own)?], i32, &[])?;
            let moved =
                builder.value("arith.trunci", &[exchange(emitter, wide, mask)?], own, &[])?;
            emitter.bitcast(moved, r#type)
        }
        _ => {
            let pair = types::vector(2, types::integer(builder, 32));
            let halves = emitter.unpack(
                emitter.bitcast(value, pair)?,
                2,
                types::integer(builder, 32),
            )?;
            let moved = halves
                .into_iter()
                .map(|half| exchange(emitter, half, mask))
                .collect::<PassResult<'c, Vec<_>>>()?;
            emitter.bitcast(emitter.pack(&moved, types::integer(builder, 32))?, r#type)
        }
    }
}

/// `shfl.sync.bfly` of 32 bits by all lanes (PTX ISA 9.7.9.6).
fn exchange<'c>(emitter: &Emitter<'c>, value: Val<'c>, mask: i64) -> PassResult<'c, Val<'c>> {
    let builder = emitter.builder;
    let ints = Ints::new(builder, 32);
    let operands = [
        ints.value(Int::Known(-1))?,
        value,
        ints.value(Int::Known(mask))?,
        ints.value(Int::Known(31))?,
    ];
    let kind = builder.parsed("#nvvm<shfl_kind bfly>")?;
    builder.value(
        "nvvm.shfl.sync",
        &operands,
        value.r#type(),
        &[("kind", kind)],
    )
}

impl<'c> Emit<'c> for Shared {
    fn taken(&self, plan: &Serial) -> Taken {
        Taken::Scratch(plan.scratch.bytes)
    }

    fn emit(
        &self,
        plan: &Serial,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let source = source(emitter, op)?;
        let combiner = combiner_of(emitter, op)?;
        let result = emitter.result_fragment(op)?;
        let wide = wide(source.element, combiner);
        let scratch = emitter.scratch(plan.scratch, source.fragment.shape(), source.element)?;
        put(emitter, &scratch, &source.fragment, &source.values)?;
        emitter.barrier()?;
        let pad = emitter.zero(source.element)?;
        let extents: Vec<_> = plan
            .dims
            .iter()
            .filter_map(|&dim| source.fragment.shape().get(dim).copied())
            .collect();
        let mut results = Vec::new();
        for register in 0..result.registers() {
            let kept = emitter.index_of(&result, register)?;
            let first = plan.index(&kept, &vec![Int::ZERO; extents.len()]);
            let first = scalar::load_at(emitter, &scratch, &first, pad)?;
            let first = convert(emitter, first, wide)?;
            let rest = extents.iter().product::<i64>() - 1;
            let sums = emitter.repeat(rest, &[first], |emitter, turn, sums| {
                let at = emitter.ints().add(turn, Int::Known(1))?;
                let along = scalar::unravel(emitter, at, &extents)?;
                let value = scalar::load_at(emitter, &scratch, &plan.index(&kept, &along), pad)?;
                let value = convert(emitter, value, wide)?;
                let sum = sums
                    .first()
                    .copied()
                    .ok_or_else(|| emitter.error("a loop without its sum"))?;
                Ok(vec![combine(emitter, combiner, sum, value)?])
            })?;
            let sum = sums.first().copied().unwrap_or(first);
            results.push(convert(emitter, sum, source.element)?);
        }
        emitter.barrier()?;
        Ok(results)
    }
}

impl Serial {
    /// The source's index from the result's and the reduced one.
    fn index<'c>(&self, kept: &[Int<'c>], along: &[Int<'c>]) -> Vec<Int<'c>> {
        let (mut kept, mut along) = (kept.iter(), along.iter());
        (0..self.stored.len())
            .map(|dim| {
                let next = if self.dims.contains(&dim) {
                    along.next()
                } else {
                    kept.next()
                };
                next.copied().unwrap_or(Int::ZERO)
            })
            .collect()
    }
}
