//! `cp.async` from global to shared memory (PTX ISA 9.7.9.25.3).

use super::transfer::{plan, sides};
use crate::emit::int::{Int, Ints};
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::types;
use crate::emit::value::{Memory, Space};
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use axe_passes::PassResult;
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;

/// `cp.async` of 4, 8 or 16 bytes a thread; elements that do not exist are written as zeros.
pub(super) struct CpAsync;

struct Copies(TransferPlan);

impl<'c> Schedule<'c> for CpAsync {
    fn name(&self) -> &'static str {
        "cp.async"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let (from, to) = (site.memory(0)?, site.memory(1)?);
        if !site.flag("isAsync") {
            return Err(Decline::new("the copy is not asynchronous"));
        }
        if super::segment(site.op, 3) > 0 {
            return Err(Decline::new("the copy signals a pipeline"));
        }
        if from.space != Space::Global || to.space != Space::Shared {
            return Err(Decline::new("expected a copy from global to shared memory"));
        }
        if super::segment(site.op, 2) > 0 {
            return Err(Decline::new(
                "elements that do not exist become zero, and the copy asks for others",
            ));
        }
        if to.guards.iter().any(Option::is_some) {
            return Err(Decline::new("the destination may reach outside its source"));
        }
        let plan = plan(site)?;
        let bytes = plan.from.width * from.bytes;
        if !matches!(bytes, 4 | 8 | 16) {
            return Err(Decline::new(format!(
                "accesses of {bytes} bytes: expected 4, 8 or 16"
            )));
        }
        Ok(Box::new(Copies(plan)))
    }
}

impl<'c> Plan<'c> for Copies {
    fn describe(&self) -> String {
        self.0.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let all = |emitter: &mut Emitter<'c>| self.copies(emitter, &from, &to);
        match emitter.owns(&self.0.owner)? {
            None => all(emitter),
            Some(condition) => emitter.when(condition, &[], all),
        }
    }
}

impl Copies {
    fn copies<'c>(
        &self,
        emitter: &mut Emitter<'c>,
        from: &Memory<'c>,
        to: &Memory<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let plan = &self.0;
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
                Some(exists) => Some(self.size(emitter, exists, bytes)?),
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
    fn size<'c>(
        &self,
        emitter: &Emitter<'c>,
        exists: Val<'c>,
        bytes: i64,
    ) -> PassResult<'c, Val<'c>> {
        let ints = Ints::new(emitter.builder, 32);
        let (all, none) = (ints.value(Int::Known(bytes))?, ints.value(Int::ZERO)?);
        let i32 = types::integer(emitter.builder, 32);
        emitter
            .builder
            .value("arith.select", &[exists, all, none], i32, &[])
    }
}
