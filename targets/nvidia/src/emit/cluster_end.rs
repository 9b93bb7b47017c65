//! When a CTA of a cluster may end: its shared memory and barriers are there for others until then.
//!
//! Of a ring whose stages copies of all CTAs fill, the warps that fill it stay until all of its stages are empty again: every copy to this
//! CTA is done then, its own copies to others are, and nobody signals its barriers any more. Consumers store and end meanwhile. CUTLASS
//! does so in a producer's `load_tail`. Other accesses of other CTAs end with a barrier of all of them.

use super::emitter::Emitter;
use crate::state::rings::{Side, is_multicast};
use crate::state::threads::{Selection, ThreadGroup, parents};
use axe_dialect::{memory_space, ops};
use axe_passes::PassResult;
use axe_passes::ir::value::{identity, name, operands, results, users};
use axe_passes::ir::walk::{blocks, nested, operations};
use axe_passes::ir::{Op, Val};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Whether the CTAs of a cluster have to wait for each other at a kernel's end: where they reach each other's memory behind the last
/// barrier of all of them, by an access or by the signals of a pipeline that no role of its own fills. Such a barrier orders the stores
/// of a result before it, and waits for them. Who has gathered the values of all with `axe.all_gather` is written to no more.
pub(super) fn ends_together(kernel: Op<'_>, threads: i64) -> bool {
    let all = nested(kernel, &|_| true).into_iter();
    let rings = all.filter(|op| name(*op) == ops::PIPELINE_CREATE);
    let mut rings = rings.filter_map(|create| results(create).first().copied());
    if rings.any(|ring| is_multicast(ring) && filling_scope(ring, threads).is_none()) {
        return true;
    }
    let Some(body) = blocks(kernel).first().copied() else {
        return true;
    };
    let body = operations(body);
    let behind = body.iter().rposition(|op| meets(*op));
    let behind = behind.map_or(0, |last| last + 1);
    body.iter()
        .skip(behind)
        .flat_map(|op| std::iter::once(*op).chain(nested(*op, &|_| true)))
        .any(touches_another)
}

/// Whether an operation is a barrier of all threads of a cluster.
pub(super) fn meets(op: Op<'_>) -> bool {
    name(op) == ops::BARRIER && op.attribute("acrossCluster").is_ok()
}

/// The scope that alone fills a ring, and that every one of its threads enters once, in a kernel of so many; `None` where there is none,
/// or where its warps release stages behind it, for which they would wait.
fn filling_scope<'c>(ring: Val<'c>, threads: i64) -> Option<Op<'c>> {
    let those = |wanted: &'static str| {
        let users = users(ring).into_iter();
        users.filter(move |op| name(*op) == wanted)
    };
    let mut scopes = those(ops::PIPELINE_ACQUIRE).map(scope_around);
    let first = scopes.next()??;
    let same = scopes.all(|scope| scope.is_some_and(|scope| scope == first));
    let once = parents(first).find(|op| name(*op) != ops::SCOPE);
    let own = ThreadGroup::around(first, threads).select(&Selection::of(first)?);
    let outside = |op: &Op<'c>| parents(*op).all(|parent| parent != first);
    let mut releases = those(ops::PIPELINE_RELEASE).filter(outside);
    let releases = releases.any(|op| ThreadGroup::around(op, threads).meets(&own));
    let alone = same && !releases && once.is_some_and(|op| name(op) == ops::KERNEL);
    alone.then_some(first)
}

fn scope_around<'c>(op: Op<'c>) -> Option<Op<'c>> {
    parents(op).find(|op| name(*op) == ops::SCOPE)
}

impl<'c> Emitter<'c> {
    /// At the end of a scope: waits until the rings that it fills for the cluster are empty.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn wait_until_empty(&mut self, scope: Op<'c>) -> PassResult<'c> {
        let acquires = nested(scope, &|_| true).into_iter();
        let acquires = acquires.filter(|op| name(*op) == ops::PIPELINE_ACQUIRE);
        let mut rings: Vec<Val<'c>> = Vec::new();
        for ring in acquires.filter_map(|acquire| operands(acquire).first().copied()) {
            let fills = || filling_scope(ring, self.kernel.threads) == Some(scope);
            if !rings.contains(&ring) && is_multicast(ring) && fills() {
                rings.push(ring);
            }
        }
        for ring in rings {
            self.wait_for_releases((identity(ring), Side::Producer))?;
        }
        Ok(())
    }
}

fn touches_another(op: Op<'_>) -> bool {
    let values = operands(op).into_iter().chain(results(op));
    values
        .into_iter()
        .any(|value| memory_space(value.r#type()) == Some("cluster_shared"))
}
