//! `cp.async` from global to shared memory (PTX ISA 9.7.9.25.3).

use super::transfer::{check, plan, sides};
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use crate::state::form::Space;
use crate::state::site::Site;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;

/// `cp.async` of 4, 8 or 16 bytes a thread; elements that do not exist are written as zeros.
#[derive(Clone, Copy)]
pub(super) struct CpAsync;

/// Declines what is no asynchronous copy from global to shared memory, by accesses of other sizes.
fn admits(site: Site<'_, '_>) -> Result<(), Decline> {
    let (from, to) = (site.memory(0)?, site.memory(1)?);
    if !site.flag("isAsync") {
        return Err(Decline::new("the copy is not asynchronous"));
    }
    if site.segment(3) > 0 {
        return Err(Decline::new("the copy signals a pipeline"));
    }
    if from.space != Space::Global || to.space != Space::Shared {
        return Err(Decline::new("expected a copy from global to shared memory"));
    }
    if site.segment(2) > 0 {
        return Err(Decline::new(
            "elements that do not exist become zero, and the copy asks for others",
        ));
    }
    if to.is_guarded() {
        return Err(Decline::new("the destination may reach outside its source"));
    }
    Ok(())
}

fn admits_width(site: Site<'_, '_>, plan: &TransferPlan) -> Result<(), Decline> {
    let bytes = plan.from.width * site.memory(0)?.bytes;
    match matches!(bytes, 4 | 8 | 16) {
        true => Ok(()),
        false => Err(Decline::new(format!(
            "accesses of {bytes} bytes: expected 4, 8 or 16"
        ))),
    }
}

impl Schedule for CpAsync {
    type Plan = TransferPlan;

    fn name(&self) -> &'static str {
        "cp.async"
    }
}

impl<'c> Match<Site<'_, 'c>> for CpAsync {
    fn plan(&self, site: Site<'_, 'c>) -> Result<TransferPlan, Decline> {
        admits(site)?;
        let plan = plan(site)?;
        admits_width(site, &plan)?;
        Ok(plan)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &TransferPlan) -> Result<(), Decline> {
        admits(site)?;
        admits_width(site, plan)?;
        check(site, plan)
    }
}

impl<'c> Emit<'c> for CpAsync {
    fn emit(
        &self,
        plan: &TransferPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let all = |emitter: &mut Emitter<'c>| copies(emitter, plan, &from, &to);
        match emitter.owns(&plan.owner)? {
            None => all(emitter),
            Some(condition) => emitter.when(condition, &[], all),
        }
    }
}

fn copies<'c>(
    emitter: &mut Emitter<'c>,
    plan: &TransferPlan,
    from: &Memory<'c>,
    to: &Memory<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let (sources, targets) = (
        emitter.pointers(&plan.from, from)?,
        emitter.pointers(&plan.to, to)?,
    );
    let bytes = plan.from.width * from.bytes;
    let groups = emitter.groups(
        &plan.fragment,
        from,
        plan.from.accesses.iter().map(|access| access.register),
    );
    let i32 = types::integer(emitter.builder, 32);
    // Only copies of 16 bytes may bypass L1 (PTX ISA, cp.async: `.cg`).
    let cache = if bytes == 16 { "cg" } else { "ca" };
    let attributes = [
        ("size", IntegerAttribute::new(i32, bytes).into()),
        (
            "modifier",
            emitter
                .builder
                .parsed(&format!("#nvvm<load_cache_modifier {cache}>"))?,
        ),
    ];
    for (key, members) in &groups {
        let size = match emitter.exist(&plan.fragment, from, key)? {
            None => None,
            Some(exists) => Some(size(emitter, exists, bytes)?),
        };
        for &member in members {
            let mut operands = vec![targets[member], sources[member]];
            operands.extend(size);
            emitter.builder.operation(
                "nvvm.cp.async.shared.global",
                &operands,
                &[],
                &attributes,
                Vec::new(),
            )?;
        }
    }
    Ok(Vec::new())
}

/// Bytes that are read: all or none.
fn size<'c>(emitter: &Emitter<'c>, exists: Val<'c>, bytes: i64) -> PassResult<'c, Val<'c>> {
    let ints = Ints::new(emitter.builder, 32);
    let (all, none) = (ints.value(Int::Known(bytes))?, ints.value(Int::ZERO)?);
    let i32 = types::integer(emitter.builder, 32);
    emitter
        .builder
        .value("arith.select", &[exists, all, none], i32, &[])
}
