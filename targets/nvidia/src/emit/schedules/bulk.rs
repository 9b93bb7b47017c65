//! Copies of contiguous runs by one thread: `cp.async.bulk` (PTX ISA 9.7.9.25.5.2).

use super::segment;
use super::traffic::Traffic;
use crate::emit::int::Int;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::types;
use crate::emit::value::{Memory, Space};
use crate::plan::Decline;
use crate::plan::bulk::{BulkPlan, Run, Side};
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// From global to shared memory, completing a pipeline's stage.
pub(super) struct Load;
/// From shared to global memory, in bulk groups.
pub(super) struct Store;

struct Runs {
    plan: BulkPlan,
    traffic: Traffic,
    load: bool,
}

impl<'c> Schedule<'c> for Load {
    fn name(&self) -> &'static str {
        "bulk.load"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        if segment(site.op, 3) == 0 {
            return Err(Decline::new("the copy signals no pipeline"));
        }
        if site.flag("multicast") && site.emitter.cluster > 1 {
            return Err(Decline::new("each CTA of the cluster fetches a part"));
        }
        plan(site, site.memory(0)?, site.memory(1)?, true)
    }
}

impl<'c> Schedule<'c> for Store {
    fn name(&self) -> &'static str {
        "bulk.store"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        if !site.flag("isAsync") {
            return Err(Decline::new("the copy is not asynchronous"));
        }
        plan(site, site.memory(1)?, site.memory(0)?, false)
    }
}

fn plan<'c>(
    site: Site<'_, 'c>,
    global: &Memory<'c>,
    shared: &Memory<'c>,
    load: bool,
) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
    if !site.emitter.chip.has_tma {
        return Err(Decline::new(format!(
            "{} has no bulk copies",
            site.emitter.chip.name
        )));
    }
    if global.space != Space::Global || shared.space != Space::Shared {
        return Err(Decline::new(if load {
            "expected a copy from global to shared memory"
        } else {
            "expected a copy from shared to global memory"
        }));
    }
    for memory in [global, shared] {
        if memory.guards.iter().any(Option::is_some) {
            return Err(Decline::new(
                "the box may reach outside its source, and a run is copied as a whole",
            ));
        }
        if memory.pending.known() != Some(0) {
            return Err(Decline::new(
                "the box begins inside the period of its swizzle",
            ));
        }
    }
    let layout = |memory: &Memory<'c>| {
        memory
            .layout()
            .map_err(|error| Decline::new(error.to_string()))
    };
    let (from, to) = (layout(global)?, layout(shared)?);
    let side = |layout, memory: &Memory<'c>| Side {
        layout,
        alignment: memory.alignment,
    };
    Ok(Box::new(Runs {
        plan: BulkPlan::new(side(&from, global), side(&to, shared), global.bytes)?,
        traffic: Traffic::of(site.op),
        load,
    }))
}

impl<'c> Plan<'c> for Runs {
    fn describe(&self) -> String {
        self.plan.to_string()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let operands = operands(op);
        let &[from, to, ref rest @ ..] = operands.as_slice() else {
            return Err(emitter.error("expected a source and a destination"));
        };
        let (from, to) = (emitter.memory(from)?, emitter.memory(to)?);
        let barrier = match (self.load, rest.last()) {
            (false, _) => None,
            (true, Some(slot)) => Some(emitter.signal(*slot)?),
            (true, None) => return Err(emitter.error("expected a slot")),
        };
        let leads = emitter.leads()?;
        emitter.bulk_stores |= !self.load;
        emitter.when(leads, &[], |emitter| {
            for run in &self.plan.runs {
                match barrier {
                    Some(barrier) => self.fetch(emitter, run, &from, &to, barrier)?,
                    None => self.put(emitter, run, &from, &to)?,
                }
            }
            Ok(Vec::new())
        })
    }
}

impl Runs {
    fn size<'c>(&self, emitter: &Emitter<'c>, run: &Run) -> PassResult<'c, Val<'c>> {
        emitter
            .ints()
            .value(Int::Known(run.elements * self.plan.bytes))
    }

    fn fetch<'c>(
        &self,
        emitter: &Emitter<'c>,
        run: &Run,
        global: &Memory<'c>,
        shared: &Memory<'c>,
        barrier: Val<'c>,
    ) -> PassResult<'c> {
        let source = emitter.offset_pointer(global, global.base, Int::Known(run.global))?;
        let target = emitter.offset_pointer(shared, shared.base, Int::Known(run.shared))?;
        let cluster = types::pointer(emitter.builder, 7);
        let target = emitter
            .builder
            .value("llvm.addrspacecast", &[target], cluster, &[])?;
        let policy = self.traffic.operand(emitter)?;
        let mut operands = vec![target, source, barrier, self.size(emitter, run)?];
        operands.extend(policy);
        let segments = [1, 1, 1, 1, 0, i32::from(policy.is_some())];
        let segments = emitter.builder.segments(&segments);
        let name = "nvvm.cp.async.bulk.shared.cluster.global";
        emitter
            .builder
            .operation(name, &operands, &[], &[segments], Vec::new())?;
        Ok(())
    }

    fn put<'c>(
        &self,
        emitter: &Emitter<'c>,
        run: &Run,
        shared: &Memory<'c>,
        global: &Memory<'c>,
    ) -> PassResult<'c> {
        let source = emitter.offset_pointer(shared, shared.base, Int::Known(run.shared))?;
        let target = emitter.offset_pointer(global, global.base, Int::Known(run.global))?;
        let policy = self.traffic.operand(emitter)?;
        let mut operands = vec![target, source, self.size(emitter, run)?];
        operands.extend(policy);
        let segments = [1, 1, 1, i32::from(policy.is_some()), 0];
        let segments = emitter.builder.segments(&segments);
        let name = "nvvm.cp.async.bulk.global.shared.cta";
        emitter
            .builder
            .operation(name, &operands, &[], &[segments], Vec::new())?;
        Ok(())
    }
}
