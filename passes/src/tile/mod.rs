//! `--axe-tile`: operators become loops over tiles.
//!
//! What enters: operators over a whole tensor, such as one copy or one product over a CTA's tile. What remains:
//! `scf.for` nests over tiles of at most the sizes that were asked for. Sizes count the dimensions of what an
//! operator writes, outermost first, and then, for a product, `K`; a dimension without a size, or with size 0, stays
//! whole.
//!
//! * [`memory`]: copies and fills between memrefs, on slices, whose bounds make ragged ends right;
//! * [`registers`]: stores of register tensors, with all that computes the stored value pulled into the loop;
//! * [`product`]: products with accumulators in registers, along `K`;
//! * [`tensors`]: operators on tensors without layouts, through `tensor.extract_slice` and `tensor.insert_slice`.

mod memory;
mod part;
mod product;
mod registers;
mod tensors;

use crate::error::{PassError, PassResult};
use crate::ir::value::{is_used, name, only_result, results};
use crate::ir::{Op, types, walk};
use crate::registry::PassContext;
use crate::remark::{self, Kind};
use axe_dialect::ops::{self, CopyOp, Trait};
use axe_dialect::{Typed, layout_of};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;

/// The operators that can be tiled, without the dialect's prefix.
fn tileable() -> Vec<&'static str> {
    let tileable = ops::NAMES
        .into_iter()
        .filter(|name| ops::has(name, Trait::Tileable));
    tileable
        .filter_map(|name| name.strip_prefix("axe."))
        .collect()
}

/// What to tile, and how.
struct Options {
    /// Tile extents, outermost first; 0 keeps a dimension whole.
    sizes: Vec<i64>,
    /// Names with the dialect's prefix.
    operators: Vec<String>,
}

impl Options {
    fn read(pass: &PassContext<'_>) -> Result<Self, String> {
        let list = |key| {
            pass.option(key)
                .split(',')
                .filter(|item: &&str| !item.is_empty())
        };
        let sizes = list("sizes")
            .map(|size| match size.parse() {
                Ok(size) if size >= 0 => Ok(size),
                _ => Err(format!(
                    "sizes: expected numbers from 0 up (0 keeps a dimension whole), got '{size}'"
                )),
            })
            .collect::<Result<Vec<i64>, _>>()?;
        if sizes.iter().all(|size| *size == 0) {
            return Err("expected the extents of a tile: sizes=64,64".into());
        }
        let mut operators = Vec::new();
        for item in list("operators") {
            let short = item.strip_prefix("axe.").unwrap_or(item);
            if !tileable().contains(&short) {
                return Err(format!(
                    "operators: expected some of {}, got '{item}'",
                    tileable().join(", ")
                ));
            }
            operators.push(format!("axe.{short}"));
        }
        if operators.is_empty() {
            operators = tileable()
                .iter()
                .map(|short| format!("axe.{short}"))
                .collect();
        }
        Ok(Self { sizes, operators })
    }

    /// The tile extent along a dimension; 0 for all of it.
    fn size(&self, dim: usize) -> i64 {
        self.sizes.get(dim).copied().unwrap_or(0)
    }

    /// Whether some dimension of a shape is larger than its tile.
    fn splits(&self, shape: &[i64]) -> bool {
        (0..).zip(shape).any(|(dim, extent)| {
            let size = self.size(dim);
            size > 0 && (*extent < 0 || size < *extent)
        })
    }
}

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, pass: &mut PassContext<'_>) -> PassResult<'c> {
    let options =
        Options::read(pass).map_err(|message| PassError::new(module.location(), message))?;
    let mut tiled = 0;
    // Stores before products: a product that a store pulls into its loop is tiled there.
    for stage in [Stage::Stores, Stage::Others] {
        for op in walk::nested(module, &|op| name(op) != ops::MAP) {
            if !options.operators.contains(&name(op)) || is_dead(op) || stage_of(op) != stage {
                continue;
            }
            match tile(op, &options) {
                Ok(true) => tiled += 1,
                Ok(false) => (),
                // Nothing was changed: what was built is without effect and goes below.
                Err(why) => missed(op, &why.message),
            }
        }
        walk::erase_dead(module, &|_| true, &|op| is_pure(op));
    }
    pass.count("num-tiled", tiled);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Stores,
    Others,
}

fn stage_of(op: Op<'_>) -> Stage {
    match results(op).is_empty() {
        true => Stage::Stores,
        false => Stage::Others,
    }
}

/// Whether nothing would miss the operation.
fn is_dead(op: Op<'_>) -> bool {
    let results = results(op);
    !results.is_empty() && results.into_iter().all(|result| !is_used(result))
}

/// Whether an operation that nothing uses may go.
fn is_pure(op: Op<'_>) -> bool {
    let name = name(op);
    !results(op).is_empty()
        && (ops::has(&name, Trait::Tileable)
            || matches!(
                name.as_str(),
                ops::SLICE
                    | "arith.constant"
                    | "arith.addi"
                    | "arith.subi"
                    | "arith.minsi"
                    | "tensor.empty"
                    | "tensor.dim"
                    | "memref.dim"
                    | "tensor.extract_slice"
            ))
}

/// Says why an operation stays as it is.
fn missed(op: Op<'_>, why: &str) {
    remark::emit(op.location(), Kind::Missed, "axe-tile", &name(op), "", why);
}

/// Tiles one operator in its form; false where it is no larger than a tile.
fn tile<'c>(op: Op<'c>, options: &Options) -> PassResult<'c, bool> {
    let Some(result) = only_result(op) else {
        let from_registers = CopyOp::of(op).is_some_and(|CopyOp { source, .. }| {
            layout_of(source.r#type()).is_some() && !types::is_memref(source.r#type())
        });
        return match from_registers {
            true => registers::store(op, options),
            false => memory::tile(op, options),
        };
    };
    if layout_of(result.r#type()).is_none() {
        return tensors::tile(op, result, options);
    }
    if name(op) == ops::GEMM {
        return product::along_k(op, result, options);
    }
    let shape = types::shape(result.r#type()).unwrap_or_default();
    if !options.splits(&shape) {
        return Ok(false);
    }
    Err(PassError::new(
        op.location(),
        "a register tensor is tiled with the copy that stores it",
    ))
}
