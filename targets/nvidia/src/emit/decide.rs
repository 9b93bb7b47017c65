//! Plans of a kernel: chosen (`--axe-dispatch-schedules`), or read from the IR and checked (`--axe-verify-schedules`,
//! `--axe-lower-schedules`).

use super::emitter::{Decided, number};
use super::schedule::{Candidate, Planned};
use super::schedules;
use crate::facts::chip::Chip;
use crate::state::cursor::Taken;
use crate::state::kernel::Kernel;
use crate::state::places::KernelPlaces;
use crate::state::protocol;
use crate::state::rings::RingCounts;
use crate::state::site::Site;
use crate::state::visit::visit;
use axe_dialect::ops;
use axe_passes::dispatch::schedule::{Declines, first, named};
use axe_passes::dispatch::{Decision, record, report};
use axe_passes::ir::Op;
use axe_passes::ir::value::name;
use axe_passes::ir::walk::nested;
use axe_passes::registry::PassContext;
use axe_passes::{PassError, PassResult, error};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::rc::Rc;

/// What stands on a kernel.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelPlan {
    /// The chip that all plans are for.
    chip: String,
    /// Bytes of shared memory.
    shared_bytes: i64,
}

/// A kernel's plans and how they came about.
struct Chosen<'c> {
    decided: Decided<'c>,
    operators: Vec<Op<'c>>,
    decisions: Vec<Decision<'c>>,
}

/// Chooses a schedule and a plan for every operator of every kernel, and leaves them in the IR. What has a plan keeps it.
///
/// # Errors
/// At the operator of each kernel that no schedule takes, with every schedule's reason; at a plan that is wrong.
pub(crate) fn dispatch<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    let (mut chosen, mut failures) = (Vec::new(), Vec::new());
    for kernel in record::kernels(module) {
        if let Some(other) = record::chip(kernel).filter(|other| other != chip.name) {
            return Err(other_chip(kernel, &other, chip));
        }
        match choose(kernel, chip) {
            Ok(kernel) => chosen.push(kernel),
            Err(why) if pass.flag("allow-unsupported") => report::left(&why),
            Err(why) => failures.push(why),
        }
    }
    error::all(failures)?;
    for kernel in chosen {
        leave(&kernel)?;
        let name = record::symbol(kernel.decided.kernel.op).unwrap_or_default();
        pass.count("num-dispatched", kernel.decisions.len());
        report::remarks(&name, &kernel.decisions);
        if pass.flag("explain") {
            eprint!("{}", report::explain(&name, &kernel.decisions));
        }
    }
    Ok(())
}

/// Checks what stands in the IR; changes nothing.
///
/// # Errors
/// At a plan that is missing or wrong.
pub(crate) fn verify<'c>(
    module: OperationRef<'c, 'c>,
    chip: &'static Chip,
    pass: &mut PassContext,
) -> PassResult<'c> {
    for kernel in record::kernels(module) {
        let decided = read(kernel, chip, true)?;
        pass.count("num-verified", decided.plans.len());
    }
    Ok(())
}

fn other_chip<'c>(kernel: Op<'c>, other: &str, chip: &Chip) -> PassError<'c> {
    let message = format!(
        "the kernel's plans are for {other}, and {} is compiled for",
        chip.name
    );
    PassError::new(kernel.location(), message)
}

fn choose<'c>(kernel: Op<'c>, chip: &'static Chip) -> PassResult<'c, Chosen<'c>> {
    let read = Kernel::of(kernel, chip)?;
    check_rings(&read)?;
    let places = KernelPlaces::choose(kernel, read.cluster_size())?;
    let (mut decisions, mut operators) = (Vec::new(), Vec::new());
    if let Some(text) = &places.text {
        decisions.push(Decision {
            location: kernel.location(),
            operator: ops::ALLOC.to_owned(),
            schedule: "shared.lifetimes",
            plan: text.clone(),
            declines: Vec::new(),
        });
    }
    let decided = decide(read, places, &mut |site| {
        let (plan, declines) = match record::planned(site.op) {
            Some(_) => (read_operator(site, true)?, Vec::new()),
            None => choose_operator(site)?,
        };
        operators.push(site.op);
        decisions.push(Decision {
            location: site.op.location(),
            operator: name(site.op),
            schedule: plan.schedule(),
            plan: plan.text(),
            declines,
        });
        Ok(plan)
    })?;
    Ok(Chosen {
        decided,
        operators,
        decisions,
    })
}

/// The plans that stand in the IR of a kernel; unless `check` is set, what dispatch has just checked is not checked again.
///
/// # Errors
/// At a plan that is missing or wrong.
pub(crate) fn read<'c>(
    kernel: Op<'c>,
    chip: &'static Chip,
    check: bool,
) -> PassResult<'c, Decided<'c>> {
    let plan: KernelPlan = record::read(kernel)?;
    if plan.chip != chip.name {
        return Err(other_chip(kernel, &plan.chip, chip));
    }
    let read = Kernel::of(kernel, chip)?;
    if check {
        check_rings(&read)?;
    }
    let places = KernelPlaces::read(kernel, read.cluster_size())?;
    let decided = decide(read, places, &mut |site| read_operator(site, check))?;
    if decided.shared_bytes != plan.shared_bytes {
        let reason = format!(
            "expected {} bytes of shared memory, got {}",
            decided.shared_bytes, plan.shared_bytes
        );
        return Err(record::wrong(kernel, &reason));
    }
    Ok(decided)
}

/// Decides operator after operator, and how much shared memory the kernel needs.
fn decide<'c>(
    kernel: Kernel<'c>,
    places: KernelPlaces<'c>,
    each: &mut dyn FnMut(Site<'_, 'c>) -> PassResult<'c, Rc<dyn Planned<'c> + 'c>>,
) -> PassResult<'c, Decided<'c>> {
    let mut plans = HashMap::new();
    let shared_bytes = visit(&kernel, &places, &mut |site| {
        let plan = each(site)?;
        let taken: Taken = plan.taken();
        plans.insert(number(site.op), plan);
        Ok(taken)
    })?;
    let chip = kernel.chip;
    if shared_bytes > chip.shared_bytes {
        return Err(PassError::new(
            kernel.op.location(),
            format!(
                "the kernel needs {shared_bytes} bytes of shared memory, and a CTA of {} has {}",
                chip.name, chip.shared_bytes
            ),
        ));
    }
    let places = places.of.iter().map(|(op, place)| (number(*op), *place));
    Ok(Decided {
        kernel,
        plans,
        places: places.collect(),
        shared_bytes,
    })
}

fn check_rings<'c>(kernel: &Kernel<'c>) -> PassResult<'c> {
    let all = nested(kernel.op, &|_| true);
    for create in all
        .into_iter()
        .filter(|op| name(*op) == ops::PIPELINE_CREATE)
    {
        let counts = RingCounts::of(create, kernel.chip, kernel.threads, kernel.cluster_size())?;
        protocol::check(create, kernel.threads, counts)?;
    }
    Ok(())
}

type Candidates<'c> = Vec<Box<dyn Candidate<'c> + 'c>>;

/// The schedules that may execute an operator, of which it may name one.
fn candidates<'c>(site: Site<'_, 'c>) -> PassResult<'c, Candidates<'c>> {
    let forced = record::schedule(site.op);
    let found = named(
        schedules::of(site),
        |candidate| candidate.name(),
        forced.as_deref(),
    );
    found.map_err(|refused| refused.error(site.op.location(), &name(site.op), site.chip().name))
}

fn choose_operator<'c>(site: Site<'_, 'c>) -> PassResult<'c, (Rc<dyn Planned<'c> + 'c>, Declines)> {
    let chosen = first(
        candidates(site)?,
        |candidate| candidate.name(),
        |candidate| candidate.choose(site),
    );
    chosen.map_err(|refused| refused.error(site.op.location(), &name(site.op), site.chip().name))
}

/// The plan that stands on an operator.
fn read_operator<'c>(site: Site<'_, 'c>, check: bool) -> PassResult<'c, Rc<dyn Planned<'c> + 'c>> {
    let missing = |what: &str| {
        PassError::new(
            site.op.location(),
            format!(
                "'{}' has no {what}: expected a kernel that --axe-dispatch-schedules has been through",
                name(site.op)
            ),
        )
    };
    let plan = record::planned(site.op).ok_or_else(|| missing("plan"))?;
    record::schedule(site.op).ok_or_else(|| missing("schedule"))?;
    let candidates = candidates(site)?;
    let schedule = candidates.first().ok_or_else(|| missing("schedule"))?;
    schedule
        .read(site, plan, check)
        .map_err(|reason| record::wrong(site.op, &reason))
}

/// Leaves the plans in the IR.
fn leave<'c>(chosen: &Chosen<'c>) -> PassResult<'c> {
    let Decided {
        kernel,
        plans,
        places,
        shared_bytes,
    } = &chosen.decided;
    for &op in &chosen.operators {
        if let Some(plan) = plans.get(&number(op)) {
            let attribute = plan
                .attribute(op)
                .map_err(|reason| record::wrong(op, &reason))?;
            record::bind(op, plan.schedule(), attribute);
        }
    }
    for op in nested(kernel.op, &|_| true) {
        if let Some(place) = places.get(&number(op)) {
            record::write(op, place)?;
        }
    }
    let plan = KernelPlan {
        chip: kernel.chip.name.to_owned(),
        shared_bytes: *shared_bytes,
    };
    record::write(kernel.op, &plan)
}
