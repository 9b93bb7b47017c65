//! Maps of a number for each row or each column of a space, of what is in memory: one more than a weight, the root of a variance. Each kernel that reads them
//! forms them of what they are formed of, and none is launched for them alone.

use super::operators::{reshaped, splat};
use super::rematerialize::is_cheap_but_for;
use super::space::Kind;
use crate::ir::value::{defining, name, operands};
use crate::ir::{Op, Val, walk};
use axe_dialect::ops;

/// Operations of a map that is formed again, at most.
const MOST_OPERATIONS: usize = 16;
/// Maps that are followed from one.
const MOST_FOLLOWED: usize = 8;
/// Operations that are computed for each column of a tile too, beside cheap ones.
const OF_COLUMNS: [&str; 4] = ["arith.divf", "math.absf", "math.rsqrt", "math.sqrt"];

/// Whether kernels that read the result of a map as something of this kind form it.
pub(super) fn is_formed_by_readers(op: Op<'_>, kind: Kind) -> bool {
    let is_one_each = matches!(kind, Kind::Row | Kind::Column);
    is_one_each && name(op) == ops::MAP && is_of_memory(op, kind, MOST_FOLLOWED)
}

/// Whether a map is a short one of what is in memory, or of other such maps.
fn is_of_memory(op: Op<'_>, kind: Kind, left: usize) -> bool {
    let is_short = walk::nested(op, &|_| true).len() <= MOST_OPERATIONS;
    // A tile has few rows, and many columns.
    let is_quick = kind == Kind::Row || is_cheap_but_for(op, &OF_COLUMNS);
    let is_known = |value: Val<'_>| {
        let Some(own) = defining(reshaped(value)) else {
            return true;
        };
        let is_map = [ops::MAP, ops::CAST].contains(&name(own).as_str());
        splat(own).is_some() || left > 0 && is_map && is_of_memory(own, kind, left - 1)
    };
    is_short && is_quick && operands(op).into_iter().all(is_known)
}
