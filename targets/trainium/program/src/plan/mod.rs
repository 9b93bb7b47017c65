//! Programs for operators of any size: tiles that fit the memories, loads that overlap with work, chosen by the cost model.

mod attention;
mod fold;
pub mod graph;
mod matmul;
mod operand;
pub mod relayout;
pub mod rows;
mod simplify;
pub(crate) mod values;

pub use attention::{Attention, Digit, Strided, Tensors, attention_bound};
pub use matmul::{Blocks, Fused, Lead, Matmul, bound};
pub use operand::Order;

use crate::facts::chip::Chip;
use crate::program::{Builder, Expr};

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    /// The question is malformed, or no engine has the types.
    #[error("{0}")]
    Invalid(String),
    /// No block fits the memories; the reason of the smallest one.
    #[error("{0}")]
    DoesNotFit(String),
}

fn no_chip(name: &str) -> Declined {
    let known: Vec<&str> = crate::facts::chip::CHIPS
        .iter()
        .map(|chip| chip.name)
        .collect();
    Declined::Invalid(format!(
        "expected chip {}, got '{name}'",
        known.join(" or ")
    ))
}

fn chip(name: &str) -> Result<&'static Chip, Declined> {
    crate::facts::chip::chip(name).ok_or_else(|| no_chip(name))
}

/// Calls `fill` for the parts of `size` in steps of `unit`, from `begin` on: a loop over the whole ones, and the tail.
fn parts(
    b: &mut Builder,
    name: &str,
    (begin, size, unit): (&Expr, i64, i64),
    fill: &mut dyn FnMut(&mut Builder, Part),
) {
    let whole = size / unit;
    let part = |index: Expr, size| Part {
        at: begin.clone().plus(index.clone().times(unit)),
        index,
        size,
    };
    match whole {
        0 => {}
        1 => fill(b, part(0.into(), unit)),
        _ => b.repeat(name, 0, whole, 1, |b, index| fill(b, part(index, unit))),
    }
    if size % unit > 0 {
        fill(b, part(whole.into(), size % unit));
    }
}

/// Calls `first` for the parts of `size` in steps of `unit`, and `then` for each part after `first` of the next one: what
/// `first` does for the next part overlaps with what `then` does for this one.
fn ahead(
    b: &mut Builder,
    name: &str,
    (size, unit): (i64, i64),
    first: &mut dyn FnMut(&mut Builder, Part),
    then: &mut dyn FnMut(&mut Builder, Part),
) {
    let (whole, tail) = (size / unit, size % unit);
    let part = |index: Expr, size| Part {
        at: index.clone().times(unit),
        index,
        size,
    };
    let last = whole - 1;
    if whole > 0 {
        first(b, part(0.into(), unit));
    }
    let mut both = |b: &mut Builder, index: Expr| {
        first(b, part(index.clone().plus(1), unit));
        then(b, part(index, unit));
    };
    match last {
        ..=0 => {}
        1 => both(b, 0.into()),
        _ => b.repeat(name, 0, last, 1, both),
    }
    if tail > 0 {
        first(b, part(whole.into(), tail));
    }
    if whole > 0 {
        then(b, part(last.into(), unit));
    }
    if tail > 0 {
        then(b, part(whole.into(), tail));
    }
}

/// A part of a dimension.
struct Part {
    /// Its first element.
    at: Expr,
    /// Which part it is, from 0.
    index: Expr,
    /// Its elements.
    size: i64,
}

impl Part {
    /// As a range of a tensor.
    fn range(&self) -> (Expr, i64) {
        (self.at.clone(), self.size)
    }
}
