//! `axe.reduce`.

use super::elementwise::convert;
use super::exchange::{put, take};
use super::scalar;
use crate::emit::int::{Int, Ints};
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::types;
use crate::emit::value::Registers;
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::gather::GatherPlan;
use crate::plan::owner::Owner;
use crate::plan::reduce::ReducePlan;
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::ir::types::{bits, is_float};
use axe_passes::ir::{Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::rc::Rc;

/// In each thread, across lanes by butterflies, across warps through shared memory.
pub(super) struct Shuffle;
/// Everything through shared memory, each result by one loop.
pub(super) struct Shared;

struct Butterfly {
    combiner: Combiner,
    plan: ReducePlan,
    source: Rc<Fragment>,
    gather: GatherPlan,
}

struct Serial {
    combiner: Combiner,
    source: Rc<Fragment>,
    owner: Owner,
    result: Rc<Fragment>,
    dims: Vec<usize>,
}

fn combiner(op: Op<'_>) -> Result<Combiner, Decline> {
    let combiner = op.attribute("combiner").ok().and_then(Combiner::cast);
    combiner.ok_or_else(|| Decline::new("expected a combiner"))
}

impl<'c> Schedule<'c> for Shuffle {
    fn name(&self) -> &'static str {
        "shfl.bfly"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let source = site.registers(0)?;
        if bits(source.element).is_none_or(|bits| !matches!(bits, 16 | 32 | 64)) {
            return Err(Decline::new(format!(
                "expected elements of 16, 32 or 64 bits, got {}",
                source.element
            )));
        }
        let plan = ReducePlan::new(&source.fragment, &site.dims("dims"))?;
        let result = site.result()?;
        let made = Fragment::new(&plan.result, result.shape(), site.emitter.threads)?;
        Ok(Box::new(Butterfly {
            combiner: combiner(site.op)?,
            gather: GatherPlan::new(&made, &result, |x| x)?,
            source: source.fragment.clone(),
            plan,
        }))
    }
}

impl<'c> Schedule<'c> for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let source = site.registers(0)?.fragment.clone();
        Ok(Box::new(Serial {
            combiner: combiner(site.op)?,
            owner: Owner::new(&source)?,
            source,
            result: site.result()?,
            dims: site.dims("dims"),
        }))
    }
}

/// The type that values are combined in: sums and products of small floats in f32.
fn wide<'c>(emitter: &Emitter<'c>, combiner: Combiner, element: Type<'c>) -> Type<'c> {
    let small = is_float(element) && bits(element) < Some(32);
    match small && matches!(combiner, Combiner::Add | Combiner::Mul) {
        true => emitter.builder.r#type(|context| Type::float32(context)),
        false => element,
    }
}

fn combine<'c>(
    emitter: &Emitter<'c>,
    combiner: Combiner,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let name = axe_passes::ir::combiner::operation(combiner, a.r#type());
    emitter.builder.value(name, &[a, b], a.r#type(), &[])
}

fn combine_all<'c>(
    emitter: &Emitter<'c>,
    combiner: Combiner,
    values: &[Val<'c>],
) -> PassResult<'c, Val<'c>> {
    let Some((&first, rest)) = values.split_first() else {
        return Err(emitter.error("a reduction of nothing"));
    };
    rest.iter()
        .try_fold(first, |sum, value| combine(emitter, combiner, sum, *value))
}

fn source<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Registers<'c>> {
    emitter.registers(emitter.source(op)?)
}

impl<'c> Plan<'c> for Butterfly {
    fn describe(&self) -> String {
        self.plan.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let source = source(emitter, op)?;
        let wide = wide(emitter, self.combiner, source.element);
        let mut sums = Vec::new();
        for group in &self.plan.in_thread {
            let mut members = Vec::new();
            for &register in group {
                let value = usize::try_from(register)
                    .ok()
                    .and_then(|at| source.values.get(at).copied());
                let value =
                    value.ok_or_else(|| emitter.error("a register of the plan does not exist"))?;
                members.push(convert(emitter, value, wide)?);
            }
            sums.push(combine_all(emitter, self.combiner, &members)?);
        }
        for &mask in &self.plan.lane_masks {
            for sum in &mut sums {
                let other = shuffle(emitter, *sum, mask)?;
                *sum = combine(emitter, self.combiner, *sum, other)?;
            }
        }
        if !self.plan.across_warps.is_empty() {
            sums = self.across(emitter, wide, &sums)?;
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
        let picked: Option<Vec<_>> = self.gather.from.iter().map(pick).collect();
        picked.ok_or_else(|| emitter.error("a register of the plan does not exist"))
    }
}

impl Butterfly {
    /// Each warp's part of each result meets the others' in shared memory.
    fn across<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        wide: Type<'c>,
        parts: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let failed = |decline: Decline| emitter.error(decline.to_string());
        let (stored, loaded) = self.plan.meeting(&self.source).map_err(failed)?;
        let owner = Owner::new(&stored).map_err(|decline| emitter.error(decline.to_string()))?;
        let scratch = emitter.scratch(stored.shape(), wide)?;
        put(emitter, &scratch, &stored, parts, &owner)?;
        emitter.barrier()?;
        let all = take(emitter, &scratch, &loaded)?;
        emitter.barrier()?;
        let slots = usize::try_from(self.plan.slots()).unwrap_or(1);
        all.chunks(slots)
            .map(|slots| combine_all(emitter, self.combiner, slots))
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
        Some(16) => {
            let (i16, i32) = (types::integer(builder, 16), types::integer(builder, 32));
            let wide = builder.value("arith.extui", &[emitter.bitcast(value, i16)?], i32, &[])?;
            let moved =
                builder.value("arith.trunci", &[exchange(emitter, wide, mask)?], i16, &[])?;
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

impl<'c> Plan<'c> for Serial {
    fn describe(&self) -> String {
        format!(
            "st.shared {:?}\nbar.sync\nfor each result: combine along {:?}\nbar.sync\n",
            self.source.shape(),
            self.dims
        )
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let source = source(emitter, op)?;
        let wide = wide(emitter, self.combiner, source.element);
        let scratch = emitter.scratch(self.source.shape(), source.element)?;
        put(emitter, &scratch, &self.source, &source.values, &self.owner)?;
        emitter.barrier()?;
        let pad = emitter.zero(source.element)?;
        let extents: Vec<_> = self
            .dims
            .iter()
            .filter_map(|&dim| self.source.shape().get(dim).copied())
            .collect();
        let mut results = Vec::new();
        for register in 0..self.result.registers() {
            let kept = emitter.index_of(&self.result, register)?;
            let first = self.index(&kept, &vec![Int::ZERO; extents.len()]);
            let first = scalar::load_at(emitter, &scratch, &first, pad)?;
            let first = convert(emitter, first, wide)?;
            let rest = extents.iter().product::<i64>() - 1;
            let sums = emitter.repeat(rest, &[first], |emitter, turn, sums| {
                let at = emitter.ints().add(turn, Int::Known(1))?;
                let along = scalar::unravel(emitter, at, &extents)?;
                let value = scalar::load_at(emitter, &scratch, &self.index(&kept, &along), pad)?;
                let value = convert(emitter, value, wide)?;
                let sum = sums
                    .first()
                    .copied()
                    .ok_or_else(|| emitter.error("a loop without its sum"))?;
                Ok(vec![combine(emitter, self.combiner, sum, value)?])
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
        (0..self.source.shape().len())
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
