//! When a CTA of a cluster may end: its shared memory and barriers are there for others until then.

use axe_dialect::{memory_space, ops};
use axe_passes::ir::Op;
use axe_passes::ir::value::{name, operands, results};
use axe_passes::ir::walk::{blocks, nested, operations};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// Whether CTAs reach each other's memory behind the last barrier of all of them, by an access or by the signals of a pipeline:
/// they then wait for each other at the end. Such a barrier orders the stores of a result before it, and waits for them.
/// Who has gathered the values of all with `axe.all_gather` is written to no more.
pub(super) fn reaches_others(kernel: Op<'_>) -> bool {
    let mut all = nested(kernel, &|_| true).into_iter();
    if all.any(|op| name(op) == ops::PIPELINE_CREATE) {
        return true;
    }
    let Some(body) = blocks(kernel).first().copied() else {
        return true;
    };
    let body = operations(body);
    let meets = |op: &Op<'_>| name(*op) == ops::BARRIER && op.attribute("acrossCluster").is_ok();
    let Some(last) = body.iter().rposition(meets) else {
        return true;
    };
    body.iter()
        .skip(last + 1)
        .flat_map(|op| std::iter::once(*op).chain(nested(*op, &|_| true)))
        .any(touches_another)
}

fn touches_another(op: Op<'_>) -> bool {
    let values = operands(op).into_iter().chain(results(op));
    values
        .into_iter()
        .any(|value| memory_space(value.r#type()) == Some("cluster_shared"))
}
