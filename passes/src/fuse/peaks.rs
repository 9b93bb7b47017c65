//! Exponentials of a row less its maximum, which only their sum reads: one of them is 1, so that the sum is 1 or more, and
//! numbers below 2^-126 change nothing in it. The logarithm of another sum shows them.

use super::operators::{dims_of, is_reshape, reduces};
use super::space::source;
use super::wide_sums::mapped;
use crate::ir::value::{defining, name, only_result, users};
use crate::ir::{Builder, Op, Val, walk};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};

/// The attribute of such exponentials, which copies of them keep.
pub(super) const REACHES_ONE: &str = "axe.reaches_one";

/// Marks such exponentials among operators.
pub fn mark(ops: &[Op<'_>]) {
    for &op in ops.iter().filter(|op| reads_its_peak(**op)) {
        let unit = Builder::before(op).unit();
        let all = walk::nested(op, &|_| true).into_iter();
        for inner in all.filter(|op| name(*op) == "math.exp") {
            // SAFETY: the operation is live, and nothing else refers to its attributes.
            unsafe { OperationRefMut::from_raw(inner.to_raw()) }.set_attribute(REACHES_ONE, unit);
        }
    }
}

/// Whether an exponential was marked.
#[must_use]
pub fn reaches_one(op: Op<'_>) -> bool {
    op.attribute(REACHES_ONE).is_ok()
}

/// Whether a map is `exp(x - max x)` along dimensions along which all that reads it adds it up.
fn reads_its_peak(op: Op<'_>) -> bool {
    let dims = only_result(op).and_then(|result| {
        let [difference] = mapped(result, "math.exp")?[..] else {
            return None;
        };
        let [x, peak] = mapped(difference, "arith.subf")?[..] else {
            return None;
        };
        peak_dims(x, peak).map(|dims| (result, dims))
    });
    dims.is_some_and(|(result, dims)| {
        let sums = |user: Op<'_>| reduces(user, Combiner::Add).as_ref() == Some(&dims);
        let users = users(result);
        !users.is_empty() && users.into_iter().all(sums)
    })
}

/// The dimensions of whose maximum a value is repeated along them.
fn peak_dims<'c>(x: Val<'c>, repeated: Val<'c>) -> Option<Vec<i64>> {
    let broadcast = defining(repeated).filter(|op| name(*op) == ops::BROADCAST)?;
    let mut from = defining(source(broadcast)?)?;
    while is_reshape(from) {
        from = defining(source(from)?)?;
    }
    let dims = reduces(from, Combiner::Max).filter(|_| source(from) == Some(x));
    dims.filter(|dims| dims_of(broadcast).as_ref() == Some(dims))
}
