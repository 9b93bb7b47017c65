//! What it costs to form what a reduction reduces, where a kernel stores it on the way.

use axe_dialect::ops;
use axe_passes::fuse::operators::is_reshape;
use axe_passes::ir::value::{defining, identity, name, operands, results, users};
use axe_passes::ir::{Op, walk};
use std::collections::HashSet;

/// Operations that are followed from a reduction.
const MOST_FOLLOWED: usize = 64;
/// Clocks of an element beyond which threads are many rather than rows on their way.
const COSTLY: usize = 24;
/// Clocks of a few exponentials or quotients.
const LONG: usize = 12;

/// Whether a reduction's elements take long to form, of maps of which others read something, too.
pub(in crate::planner) fn is_costly(reduction: Op<'_>) -> bool {
    let (clocks, own) = followed(reduction);
    let mut all = own
        .iter()
        .skip(1)
        .flat_map(|op| results(*op))
        .flat_map(users);
    clocks > COSTLY && all.any(|user| !own.contains(&user))
}

/// Whether a reduction's elements are exponentials, quotients and the like.
pub(super) fn takes_long(reduction: Op<'_>) -> bool {
    followed(reduction).0 >= LONG
}

/// Clocks of a reduction's element, and the reduction and the maps that form it.
fn followed<'c>(reduction: Op<'c>) -> (usize, Vec<Op<'c>>) {
    let mut next = operands(reduction);
    let (mut seen, mut own) = (HashSet::new(), vec![reduction]);
    let mut clocks = 0usize;
    while let Some(value) = next.pop() {
        let formed =
            |op: &Op<'_>| is_reshape(*op) || [ops::MAP, ops::CAST].contains(&name(*op).as_str());
        let Some(op) = defining(value).filter(formed) else {
            continue;
        };
        if !seen.insert(identity(value)) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        let inside = walk::nested(op, &|_| true).into_iter();
        clocks += inside.map(|op| clocks_of(&name(op))).sum::<usize>();
        own.push(op);
        next.extend(operands(op));
    }
    (clocks, own)
}

/// Clocks of an operation on an element, about.
fn clocks_of(name: &str) -> usize {
    match name {
        "math.erf" => 20,
        "math.tanh" | "math.exp" | "math.log" | "math.log1p" => 8,
        "arith.divf" | "math.sqrt" | "math.rsqrt" => 6,
        "math.absf" | "math.fma" | "math.copysign" => 1,
        name if name.starts_with("math.") => 12,
        name if name.starts_with("arith.") && name != "arith.constant" => 1,
        _ => 0,
    }
}
