//! Programs for operators of any size: tiles that fit the memories, loads that overlap with work, chosen by the cost model.

pub mod graph;
mod matmul;
mod operand;
pub mod relayout;
pub mod rows;
mod simplify;
mod values;

pub use matmul::{Blocks, Fused, Matmul, bound};
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
