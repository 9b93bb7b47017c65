//! Copies of contiguous runs by one thread: `cp.async.bulk` (PTX ISA 9.7.9.25.5.2).

use super::traffic::Traffic;
use super::transfer::sides;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::plan::bulk::{BulkPlan, Run, Side};
use crate::state::form::{Space, Storage};
use crate::state::site::Site;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::Int;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// From global to shared memory, completing a pipeline's stage.
#[derive(Clone, Copy)]
pub(super) struct Load;
/// From shared to global memory, in bulk groups.
#[derive(Clone, Copy)]
pub(super) struct Store;

/// Global and shared memory of a copy.
struct Ends<'a, 'c> {
    global: &'a Storage<'c>,
    shared: &'a Storage<'c>,
}

impl<'a, 'c> Ends<'a, 'c> {
    fn of_load(site: Site<'a, 'c>) -> Result<Self, Decline> {
        if site.segment(3) == 0 {
            return Err(Decline::new("the copy signals no pipeline"));
        }
        if site.flag("multicast") && site.kernel.cluster_size() > 1 {
            return Err(Decline::new("each CTA of the cluster fetches a part"));
        }
        let (global, shared) = (site.memory(0)?, site.memory(1)?);
        let wrong = "expected a copy from global to shared memory";
        Self { global, shared }.admitted(site, wrong)
    }

    fn of_store(site: Site<'a, 'c>) -> Result<Self, Decline> {
        if !site.flag("isAsync") {
            return Err(Decline::new("the copy is not asynchronous"));
        }
        let (global, shared) = (site.memory(1)?, site.memory(0)?);
        let wrong = "expected a copy from shared to global memory";
        Self { global, shared }.admitted(site, wrong)
    }

    fn admitted(self, site: Site<'_, '_>, wrong: &str) -> Result<Self, Decline> {
        if !site.chip().has_tma {
            return Err(Decline::new(format!(
                "{} has no bulk copies",
                site.chip().name
            )));
        }
        if self.global.space != Space::Global || self.shared.space != Space::Shared {
            return Err(Decline::new(wrong));
        }
        for storage in [self.global, self.shared] {
            if storage.is_guarded() {
                return Err(Decline::new(
                    "the box may reach outside its source, and a run is copied as a whole",
                ));
            }
            if !storage.begins_period() {
                return Err(Decline::new(
                    "the box begins inside the period of its swizzle",
                ));
            }
        }
        Ok(self)
    }

    /// Both sides, as the plan sees them.
    fn with<T>(
        &self,
        plan: impl FnOnce(Side<'_>, Side<'_>) -> Result<T, Decline>,
    ) -> Result<T, Decline> {
        let layout = |storage: &Storage<'c>| {
            storage
                .layout()
                .map_err(|error| Decline::new(error.to_string()))
        };
        let (from, to) = (layout(self.global)?, layout(self.shared)?);
        let side = |layout, storage: &Storage<'c>| Side {
            layout,
            alignment: storage.alignment,
        };
        plan(side(&from, self.global), side(&to, self.shared))
    }

    fn plan(&self) -> Result<BulkPlan, Decline> {
        self.with(|global, shared| BulkPlan::new(global, shared, self.global.bytes))
    }

    fn check(&self, plan: &BulkPlan) -> Result<(), Decline> {
        if plan.bytes != self.global.bytes {
            return Err(Decline::new(format!(
                "expected elements of {} bytes, got {}",
                self.global.bytes, plan.bytes
            )));
        }
        self.with(|global, shared| plan.check(global, shared))
    }
}

impl Schedule for Load {
    type Plan = BulkPlan;

    fn name(&self) -> &'static str {
        "bulk.load"
    }
}

impl<'c> Match<Site<'_, 'c>> for Load {
    fn plan(&self, site: Site<'_, 'c>) -> Result<BulkPlan, Decline> {
        Ends::of_load(site)?.plan()
    }

    fn check(&self, site: Site<'_, 'c>, plan: &BulkPlan) -> Result<(), Decline> {
        Ends::of_load(site)?.check(plan)
    }
}

impl Schedule for Store {
    type Plan = BulkPlan;

    fn name(&self) -> &'static str {
        "bulk.store"
    }
}

impl<'c> Match<Site<'_, 'c>> for Store {
    fn plan(&self, site: Site<'_, 'c>) -> Result<BulkPlan, Decline> {
        Ends::of_store(site)?.plan()
    }

    fn check(&self, site: Site<'_, 'c>, plan: &BulkPlan) -> Result<(), Decline> {
        Ends::of_store(site)?.check(plan)
    }
}

impl<'c> Emit<'c> for Load {
    fn emit(
        &self,
        plan: &BulkPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let slot = operands(op).get(2..).and_then(<[_]>::last).copied();
        let slot = slot.ok_or_else(|| emitter.error("expected a slot"))?;
        let barrier = emitter.signal(slot)?;
        let leads = emitter.leads()?;
        let runs = Runs::of(plan, op);
        emitter.when(leads, &[], |emitter| {
            for run in &plan.runs {
                runs.fetch(emitter, run, &from, &to, barrier)?;
            }
            Ok(Vec::new())
        })
    }
}

impl<'c> Emit<'c> for Store {
    fn emit(
        &self,
        plan: &BulkPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = sides(emitter, op)?;
        let leads = emitter.leads()?;
        emitter.bulk_stores = true;
        let runs = Runs::of(plan, op);
        emitter.when(leads, &[], |emitter| {
            for run in &plan.runs {
                runs.put(emitter, run, &from, &to)?;
            }
            Ok(Vec::new())
        })
    }
}

/// How the runs of a plan are copied.
struct Runs {
    bytes: i64,
    traffic: Traffic,
}

impl Runs {
    fn of(plan: &BulkPlan, op: Op<'_>) -> Self {
        Self {
            bytes: plan.bytes,
            traffic: Traffic::of(op),
        }
    }

    fn size<'c>(&self, emitter: &Emitter<'c>, run: &Run) -> PassResult<'c, Val<'c>> {
        emitter.ints().value(Int::Known(run.elements * self.bytes))
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
