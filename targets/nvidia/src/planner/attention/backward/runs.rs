//! The blocks of queries that see keys of a block: those whose keys are all seen, and those before and behind them in which some
//! are hidden.

use super::config::ROWS;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::attention::visible::{Edge, Visible};
use axe_passes::ir::Val;

/// Blocks `[first, end)` of queries, and whether some of their keys are hidden by their index.
#[derive(Clone, Copy)]
pub(super) struct Run<'c> {
    pub first: Val<'c>,
    pub end: Val<'c>,
    pub masked: bool,
}

/// Whether keys that rows see are a band along the diagonal.
pub(super) fn takes(visible: &Visible) -> bool {
    let band =
        |edge: &Edge| edge.per_row == 1 && edge.length.is_none() && edge.start.abs() < 1 << 30;
    visible.rows.is_empty() && !visible.all_where_none && visible.edges().all(band)
}

/// `max(value + offset, 0)`, of numbers that are not negative.
fn at_least_zero<'c>(code: Code<'c>, value: Val<'c>, offset: i64) -> PassResult<'c, Val<'c>> {
    if offset >= 0 {
        return code.add(value, code.index(offset)?);
    }
    let less = code.index(-offset)?;
    code.sub(value, code.min(value, less)?)
}

fn greater<'c>(code: Code<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
    code.where_at_most([a, b], [b, a])
}

/// The runs of the block of so many keys from `key` on, of so many blocks of queries: at most three, in order.
pub(super) fn runs<'c>(
    code: Code<'c>,
    visible: &Visible,
    (key, keys): (Val<'c>, i64),
    blocks: i64,
) -> PassResult<'c, Vec<Run<'c>>> {
    let (zero, all) = (code.index(0)?, code.index(blocks)?);
    let rows = code.index(ROWS)?;
    let (mut first, mut whole, mut end, mut behind) = (zero, zero, all, all);
    // A row sees keys before `row + start`: some from row `key + 1 - start` on, all from row `key + keys - start` on.
    for Edge { start, .. } in &visible.to {
        let some = code.div(at_least_zero(code, key, 1 - start)?, rows)?;
        let every = code.ceil_div(at_least_zero(code, key, keys - start)?, ROWS)?;
        (first, whole) = (greater(code, first, some)?, greater(code, whole, every)?);
    }
    // And keys from `row + start` on: some up to row `key + keys - 1 - start`, all up to row `key - start`.
    for Edge { start, .. } in &visible.from {
        let some = code.ceil_div(at_least_zero(code, key, keys - start)?, ROWS)?;
        let every = code.div(at_least_zero(code, key, 1 - start)?, rows)?;
        (end, behind) = (code.min(end, some)?, code.min(behind, every)?);
    }
    first = code.min(first, all)?;
    end = greater(code, first, end)?;
    whole = greater(code, first, code.min(whole, end)?)?;
    behind = greater(code, whole, code.min(behind, end)?)?;
    let of = |first, end, masked| Run { first, end, masked };
    let mut found = Vec::new();
    if !visible.to.is_empty() {
        found.push(of(first, whole, true));
    }
    found.push(of(whole, behind, false));
    if !visible.from.is_empty() {
        found.push(of(behind, end, true));
    }
    Ok(found)
}
