//! Maps of few elements between reductions of rows and a broadcast of what they give, computed for each element that the broadcast
//! has. Group normalisation is such: a scale for each row and channel, `rstd[row] * weight[channel]`, is neither one value a row nor
//! one a column, so that a kernel of rows would have to store it for another one, which reads all elements once more. Computed
//! where it is used it takes one more product an element, and the kernel of the rows has all that it needs.

use super::operators::{dims_of, is_reshape, splat};
use super::reshape::reshape;
use super::rewritten::Rewritten;
use super::space::{Cut, product, source};
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{defining, identity, name, only_result, operands, replace_all_uses};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, types, walk};
use axe_dialect::ops;
use melior::ir::{TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// Scalar operations that are computed again for each element at the most.
const MOST_OPERATIONS: usize = 16;
/// Operators that are followed from a broadcast.
const MOST_FOLLOWED: usize = 64;
/// A value that neighbours have in common is loaded once for so many of them.
const NEIGHBOURS: i64 = 8;

/// Rewrites such broadcasts. `ops` are operations of a block in order; they are given with those that are new, and without those that
/// nothing reads any more.
///
/// # Errors
/// When an operation cannot be built.
pub fn rewrite<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for &op in ops {
        if let Some(spread) = Spread::of(op)
            && let Some((result, from)) = only_result(op).zip(source(op))
        {
            let builder = Builder::before(op);
            let formed = spread.form(&builder, from, &mut HashMap::new())?;
            let shape = builder.tensor_of(result)?.shape;
            replace_all_uses(result, reshape(&builder, formed, &shape, None)?);
            replaced.push(op);
        }
    }
    Ok(rewritten.without(replaced))
}

/// A broadcast along dimensions that follow all others.
struct Spread {
    /// The extents of those.
    added: Vec<i64>,
}

impl Spread {
    /// Of a broadcast of maps that read what rows of its result are reduced to, and are cheap to compute again.
    fn of(op: Op<'_>) -> Option<Self> {
        let (result, from) = only_result(op).zip(source(op))?;
        let dims = dims_of(op).filter(|_| name(op) == ops::BROADCAST)?;
        let (shape, kept) = (shape_of(result)?, shape_of(from)?.len());
        let last = i64::try_from(kept).ok()?;
        let added = shape.get(kept..)?.to_vec();
        let spread = Self { added };
        let follows = dims.iter().all(|dim| *dim >= last);
        let mut read = Read::default();
        let known = follows && product(&shape)? > 0 && spread.read(from, &mut read).is_some();
        let each = product(&spread.added)?;
        // Elsewhere nothing is gained by it.
        let joins = read.maps > 0 && read.rows && read.tables;
        (known && joins && each % NEIGHBOURS == 0).then_some(spread)
    }

    /// The shape of a value with the dimensions that are added to it.
    fn shape(&self, value: Val<'_>) -> Option<Vec<i64>> {
        Some([shape_of(value)?, self.added.clone()].concat())
    }

    /// The dimensions that a broadcast to a value adds, and those that are added to that.
    fn dims(&self, op: Option<Op<'_>>, value: Val<'_>) -> Option<Vec<i64>> {
        let rank = i64::try_from(shape_of(value)?.len()).ok()?;
        let own = op.map_or_else(|| Some(Vec::new()), dims_of)?;
        let added = (rank..).take(self.added.len());
        Some(own.into_iter().chain(added).collect())
    }

    /// Reads what a value is formed of; none where that is not computed again.
    fn read<'c>(&self, value: Val<'c>, read: &mut Read) -> Option<()> {
        if !read.seen.insert(identity(value)) {
            return Some(());
        }
        let op = defining(value);
        let of_reshape = op.filter(|op| is_reshape(*op));
        if let Some(from) = of_reshape.and_then(source) {
            return self.read(from, read);
        }
        match op.map(|op| (op, name(op))) {
            Some((op, own)) if [ops::MAP, ops::CAST].contains(&own.as_str()) => {
                read.maps += 1;
                read.operations += walk::nested(op, &|_| true).len();
                let few = read.operations <= MOST_OPERATIONS && read.seen.len() <= MOST_FOLLOWED;
                let mut all = operands(op).into_iter();
                (few && is_cheap(op)).then_some(())?;
                all.try_for_each(|operand| self.read(operand, read))
            }
            Some((op, own)) if own == ops::BROADCAST => {
                let (from, shape) = (source(op)?, self.shape(value)?);
                let elements = product(&shape)?;
                let is_row = Cut::along(&shape, &self.dims(Some(op), value)?).is_some();
                match is_row && is_reduced(from, elements, MOST_FOLLOWED) {
                    true => read.rows = true,
                    false => read.tables = true,
                }
                Some(())
            }
            Some((op, _)) if splat(op).is_some() => Some(()),
            _ => {
                read.tables = true;
                Some(())
            }
        }
    }

    /// The value for each element of the added dimensions; `formed` are those that are there already.
    fn form<'c>(
        &self,
        builder: &Builder<'c>,
        value: Val<'c>,
        formed: &mut HashMap<usize, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        if let Some(own) = formed.get(&identity(value)) {
            return Ok(*own);
        }
        let tensor = builder.tensor_of(value)?;
        let shape = [tensor.shape, self.added.clone()].concat();
        let r#type = builder.tensor(&shape, tensor.element)?;
        let op = defining(value).map(|op| (op, name(op)));
        let own = match op {
            Some((op, _)) if is_reshape(op) => {
                let from = source(op).unwrap_or(value);
                let from = self.form(builder, from, formed)?;
                reshape(builder, from, &shape, None)?
            }
            Some((op, own)) if [ops::MAP, ops::CAST].contains(&own.as_str()) => {
                let mut inputs = Vec::new();
                for operand in operands(op) {
                    inputs.push(self.form(builder, operand, formed)?);
                }
                let copy = builder.clone_of(op);
                let result = builder.result_of(copy)?;
                // SAFETY: the copy is live, the positions are those of its own operands, and the verifier checks it with its new type.
                unsafe {
                    for (at, input) in (0..).zip(&inputs) {
                        sys::mlirOperationSetOperand(copy.to_raw(), at, input.to_raw());
                    }
                    sys::mlirValueSetType(result.to_raw(), r#type.to_raw());
                }
                result
            }
            Some((op, _)) if let Some(number) = splat(op) => {
                let number = builder.constant(number)?;
                Code { builder: *builder }.fill(number, r#type)?
            }
            op => {
                let broadcast = op.filter(|(_, own)| own == ops::BROADCAST);
                let broadcast = broadcast.map(|(op, _)| op);
                let from = broadcast.and_then(source).unwrap_or(value);
                let dims = self.dims(broadcast, value).unwrap_or_default();
                let dims = [("dims", builder.i64s(&dims))];
                builder.value(ops::BROADCAST, &[from], r#type, &dims)?
            }
        };
        formed.insert(identity(value), own);
        Ok(own)
    }
}

/// What a value is formed of.
#[derive(Default)]
struct Read {
    seen: HashSet<usize>,
    maps: usize,
    operations: usize,
    /// Whether it reads what rows are reduced to.
    rows: bool,
    /// Whether it reads something else, of which a row has several values.
    tables: bool,
}

/// The static extents of a tensor.
fn shape_of(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    let known = !tensor.encoded && !tensor.shape.contains(&DYNAMIC);
    known.then_some(tensor.shape)
}

/// Whether a value is computed, one by one, of what so many elements are reduced to.
fn is_reduced(value: Val<'_>, elements: i64, most: usize) -> bool {
    let Some(op) = defining(value).filter(|_| most > 0) else {
        return false;
    };
    if name(op) == ops::REDUCE {
        let shape = source(op).and_then(shape_of);
        return shape.and_then(|shape| product(&shape)) == Some(elements);
    }
    let one_by_one = is_reshape(op) || [ops::MAP, ops::CAST].contains(&name(op).as_str());
    let mut all = operands(op).into_iter();
    one_by_one && all.any(|operand| is_reduced(operand, elements, most / 2))
}

/// Whether a map or cast has scalar operations alone that take a clock or two, of types that a chip is quick with.
pub(super) fn is_cheap(op: Op<'_>) -> bool {
    is_cheap_but_for(op, &[])
}

/// The same where operations of these names are taken for cheap too.
pub(super) fn is_cheap_but_for(op: Op<'_>, others: &[&str]) -> bool {
    const CHEAP: [&str; 14] = [
        ops::YIELD,
        "arith.addf",
        "arith.cmpf",
        "arith.constant",
        "arith.extf",
        "arith.maximumf",
        "arith.maxnumf",
        "arith.minimumf",
        "arith.minnumf",
        "arith.mulf",
        "arith.negf",
        "arith.select",
        "arith.subf",
        "arith.truncf",
    ];
    // Numbers are converted when the code is compiled.
    let narrow = |value: &Val<'_>| {
        let element = axe_dialect::element_type(value.r#type());
        let is_number = defining(*value).is_some_and(|op| name(op) == "arith.constant");
        is_number || types::bits(element).is_none_or(|bits| bits <= 32)
    };
    let inner = walk::nested(op, &|_| true).into_iter();
    let own = inner.into_iter().all(|op| {
        let name = name(op);
        let known = CHEAP.contains(&name.as_str()) || others.contains(&name.as_str());
        known && operands(op).iter().chain(&only_result(op)).all(narrow)
    });
    own && operands(op).iter().chain(&only_result(op)).all(narrow)
}
