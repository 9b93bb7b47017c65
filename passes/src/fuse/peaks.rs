//! Exponentials of a row less its maximum: they are 1 at most. Where only their sum reads them, one of them is 1, so that the sum is 1 or more, and
//! numbers below 2^-126 change nothing in it. The logarithm of another sum shows them.

use super::below::{Exponentials, Peak};
use super::element::Element;
use super::operators::{dims_of, is_reshape, reduces};
use super::space::source;
use super::wide_sums::mapped;
use crate::ir::value::{defining, name, only_result, operands, users};
use crate::ir::{Builder, Op, Val, walk};
use axe_dialect::{Combiner, ops};
use melior::ir::Attribute;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};

/// The attribute of exponentials that only such a sum reads, which copies of them keep.
pub(super) const REACHES_ONE: &str = "axe.reaches_one";

/// The same of all exponentials of a row less its maximum, whoever reads them.
const BELOW_PEAK: &str = "axe.below_peak";

/// Marks such exponentials among operators.
pub fn mark(ops: &[Op<'_>]) {
    for &op in ops {
        let unit = Builder::before(op).unit();
        if reads_its_peak(op) {
            let all = walk::nested(op, &|_| true).into_iter();
            for inner in all.filter(|op| name(*op) == "math.exp") {
                set(inner, REACHES_ONE, unit);
            }
        }
        if let Some(inner) = below_peak(op) {
            set(inner, BELOW_PEAK, unit);
        }
    }
}

fn set<'c>(op: Op<'c>, attribute: &str, value: Attribute<'c>) {
    // SAFETY: the operation is live, and nothing else refers to its attributes.
    unsafe { OperationRefMut::from_raw(op.to_raw()) }.set_attribute(attribute, value);
}

/// Whether an exponential was marked as that of an element less its row's maximum, which is at most zero.
#[must_use]
pub fn is_below_peak(op: Op<'_>) -> bool {
    op.attribute(BELOW_PEAK).is_ok()
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

/// The exponential that a map yields of an element less the maximum of its row.
fn below_peak(op: Op<'_>) -> Option<Op<'_>> {
    let result = only_result(op).filter(|_| name(op) == ops::MAP)?;
    let yielded = walk::operations(walk::blocks(op).first().copied()?).pop()?;
    let inner = defining(*operands(yielded).first()?).filter(|op| name(*op) == "math.exp")?;
    let terms = Exponentials::of(result).filter(|terms| terms.stands == Peak::Plain)?;
    let peak = defining(terms.peak)?;
    let dims = reduces(peak, Combiner::Max)?;
    let is_own = dims_of(terms.broadcast)? == dims && terms.x.is(Element::of(source(peak)?));
    is_own.then_some(inner)
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
