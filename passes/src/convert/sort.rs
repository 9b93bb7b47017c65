//! torch-mlir's `tm_tensor.sort`, as `torch.topk` and `torch.sort` are written: elements along a dimension in descending or ascending order, and the number of
//! each. As far as slices of the first ones are read, it is `axe.top_k`; of more than its kernels keep, all are ranked.

use super::operands::{inverse, transpose};
use super::{sorted_rows, unsupported};
use crate::error::PassResult;
use crate::ir::value::{
    defined_by, defining, identity, is_used, name, operands, replace_all_uses, results, users,
};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use axe_dialect::ops::TopKOp;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;

/// The operation.
pub(super) const SORT: &str = "tm_tensor.sort";

/// `arith.cmpf`'s predicates, ordered and not, and `arith.cmpi`'s signed ones (ArithBase.td) for what comes first in descending order, and in ascending
/// order.
const DESCENDING: [&[i64]; 2] = [&[2, 3, 9, 10], &[4, 5]];
const ASCENDING: [&[i64]; 2] = [&[4, 5, 11, 12], &[2, 3]];

/// Elements that kernels of `axe.top_k` keep of a row.
const MOST_KEPT: i64 = 64;

/// Replaces a sort.
///
/// # Errors
/// For an order of another kind, or of something else than elements and their numbers.
pub(super) fn replace<'c>(op: Op<'c>, for_kernels: bool) -> PassResult<'c> {
    let builder = Builder::before(op);
    let sorted = Sorted::of(op)?;
    let (values, numbers) = (sorted.values, sorted.numbers);
    let order = sorted.order();
    let source = transpose(&builder, values, &order)?;
    let from = builder.tensor_of(source)?;
    let k = sorted.first();
    let is_ranked = for_kernels && k > MOST_KEPT;
    let is_long = |extent: &i64| *extent >= i64::from(i32::MAX);
    if is_ranked && from.shape.last().is_some_and(is_long) {
        return Err(unsupported(
            op,
            "expected rows of fewer than 2^31 - 1 elements",
        ));
    }
    let mut shape = from.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = k;
    }
    let index = match numbers {
        Some(numbers) => builder.tensor_of(numbers)?.element,
        None => builder.r#type(|context| IntegerType::new(context, 64).into()),
    };
    let made = match is_ranked {
        true => sorted_rows::sorted(&builder, source, (k, index), sorted.is_ascending)?.to_vec(),
        false => {
            let types = [
                builder.tensor(&shape, from.element)?,
                builder.tensor(&shape, index)?,
            ];
            let smallest = [("smallest", builder.unit())];
            let smallest = &smallest[..usize::from(sorted.is_ascending)];
            results(builder.operator(&TopKOp::operands(source, &[]), &types, smallest)?)
        }
    };
    for (result, made) in results(op).into_iter().zip(made) {
        let made = transpose(&builder, made, &inverse(&order))?;
        for slice in sorted.slices(result) {
            match results(slice)[..] {
                [own] if sorted.kept(slice) == Some(k) => {
                    replace_all_uses(own, made);
                    walk::erase(slice);
                }
                _ => {}
            }
        }
        replace_all_uses(result, made);
    }
    walk::erase(op);
    Ok(())
}

/// A sort, read.
struct Sorted<'c> {
    op: Op<'c>,
    values: Val<'c>,
    /// The number of each element, where it goes with it.
    numbers: Option<Val<'c>>,
    shape: Vec<i64>,
    dim: usize,
    is_ascending: bool,
}

impl<'c> Sorted<'c> {
    fn of(op: Op<'c>) -> PassResult<'c, Self> {
        let dim = op.attribute("dimension").ok().and_then(attribute::integer);
        let dim = dim.and_then(|dim| usize::try_from(dim).ok());
        let all = operands(op);
        let (values, numbers) = match all[..] {
            [values] => (values, None),
            [values, numbers] => (values, Some(numbers)),
            _ => {
                return Err(unsupported(
                    op,
                    "expected elements, or elements and their numbers",
                ));
            }
        };
        let shape = TensorType::of_value(values).map(|tensor| tensor.shape);
        let (Some(shape), Some(dim)) = (shape, dim) else {
            return Err(unsupported(op, "expected a dimension of a tensor"));
        };
        let is_known = shape.get(dim).is_some_and(|extent| *extent != DYNAMIC);
        if !is_known {
            return Err(unsupported(op, "expected a dimension of static extent"));
        }
        let are_numbers = |numbers| !is_used_beside(op) || counts(numbers, dim);
        if !numbers.is_none_or(are_numbers) {
            return Err(unsupported(
                op,
                "expected the numbers of elements along the dimension beside them",
            ));
        }
        let is_ascending = is_ascending(op).ok_or_else(|| {
            unsupported(op, "expected a comparison of two elements, greater or less")
        })?;
        Ok(Self {
            op,
            values,
            numbers,
            shape,
            dim,
            is_ascending,
        })
    }

    /// The order of dimensions in which the sorted one comes last.
    fn order(&self) -> Vec<usize> {
        let others = (0..self.shape.len()).filter(|dim| *dim != self.dim);
        others.chain([self.dim]).collect()
    }

    /// How many of the first elements are read.
    fn first(&self) -> i64 {
        let all = self.shape.get(self.dim).copied().unwrap_or(1);
        let of = results(self.op).into_iter().filter(|own| is_used(*own));
        let read = of.map(|own| {
            let read = users(own).into_iter().filter(|op| !self.asks_extent(*op));
            let kept: Option<Vec<_>> = read.map(|op| self.kept(op)).collect();
            kept.map_or(Some(all), |kept| kept.into_iter().max())
        });
        let read = read.flatten();
        read.max().unwrap_or(1)
    }

    /// Whether an operation asks for an extent that is no other one when fewer elements are left.
    fn asks_extent(&self, op: Op<'c>) -> bool {
        let dim = operands(op).get(1).copied().and_then(constant);
        name(op) == "tensor.dim" && dim.is_some_and(|dim| dim != self.dim)
    }

    /// Slices of a result that take first elements.
    fn slices(&self, result: Val<'c>) -> Vec<Op<'c>> {
        let mut all = users(result);
        all.retain(|op| self.kept(*op).is_some());
        all
    }

    /// How many of the first elements an operation takes, where it is a slice of all others.
    fn kept(&self, op: Op<'c>) -> Option<i64> {
        let list = |name| op.attribute(name).ok().and_then(attribute::read_i64s);
        let own = (name(op) == "tensor.extract_slice").then(|| operands(op))?;
        let (&sliced, sizes) = own.split_first()?;
        let (offsets, wanted, strides) = (
            list("static_offsets")?,
            list("static_sizes")?,
            list("static_strides")?,
        );
        let mut sizes = sizes.iter();
        let is_whole = |(dim, (wanted, extent)): (usize, (&i64, &i64))| match *wanted {
            _ if dim == self.dim => *wanted != DYNAMIC,
            DYNAMIC => sizes
                .next()
                .is_some_and(|size| is_extent(*size, sliced, dim)),
            wanted => wanted == *extent,
        };
        let mut pairs = wanted.iter().zip(&self.shape).enumerate();
        let begins = offsets.iter().all(|offset| *offset == 0);
        let follows = strides.iter().all(|stride| *stride == 1);
        let result = TensorType::of_value(*results(op).first()?)?;
        let is_full_rank = result.shape.len() == self.shape.len();
        let is_taken = begins && follows && is_full_rank && pairs.all(is_whole);
        is_taken.then(|| wanted.get(self.dim).copied()).flatten()
    }
}

/// Whether an index is the extent of a tensor along a dimension, or of a sort's operand.
fn is_extent<'c>(size: Val<'c>, of: Val<'c>, dim: usize) -> bool {
    let Some(asked) = defined_by(size, "tensor.dim") else {
        return false;
    };
    let &[tensor, at] = &operands(asked)[..] else {
        return false;
    };
    let is_dim = constant(at) == Some(dim);
    let sorted = defining(of).into_iter().flat_map(operands);
    is_dim && (tensor == of || sorted.into_iter().any(|own| own == tensor))
}

/// The dimension that a constant names.
fn constant(value: Val<'_>) -> Option<usize> {
    let own = defined_by(value, "arith.constant")?.attribute("value").ok();
    own.and_then(attribute::integer)
        .and_then(|own| usize::try_from(own).ok())
}

/// Whether what is sorted beside the elements is read.
fn is_used_beside(op: Op<'_>) -> bool {
    results(op).get(1).copied().is_some_and(is_used)
}

/// Whether a tensor has the number of each element along a dimension.
fn counts(value: Val<'_>, dim: usize) -> bool {
    let Some(op) = defined_by(value, "linalg.generic") else {
        return false;
    };
    let Some(block) = walk::blocks(op).first().copied() else {
        return false;
    };
    let body = walk::operations(block);
    let &[index, cast, yielded] = &body[..] else {
        return false;
    };
    let own = index.attribute("dim").ok().and_then(attribute::integer);
    let reads = |op: Op<'_>, from: Op<'_>| operands(op).first() == results(from).first();
    let names = [index, cast, yielded].map(name);
    let is_counted = names == ["linalg.index", "arith.index_cast", "linalg.yield"];
    let is_in_order = crate::fuse::nest::maps(op).is_some_and(|maps| {
        let shape = TensorType::of_value(value).map(|tensor| tensor.shape);
        maps.last()
            .zip(shape)
            .is_some_and(|(map, shape)| crate::fuse::nest::is_identity(*map, &shape))
    });
    is_counted
        && is_in_order
        && own.and_then(|own| usize::try_from(own).ok()) == Some(dim)
        && reads(cast, index)
        && reads(yielded, cast)
}

/// Whether the least elements come first; none where neither these nor the greatest do.
fn is_ascending(op: Op<'_>) -> Option<bool> {
    let block = walk::blocks(op).first().copied()?;
    let body = walk::operations(block);
    let &[compared, yielded] = &body[..] else {
        return None;
    };
    let arguments = walk::block_arguments(block);
    let in_order = operands(compared)
        .iter()
        .map(|own| identity(*own))
        .eq(arguments.iter().take(2).map(|own| identity(*own)));
    let is_given = operands(yielded).first() == results(compared).first();
    let predicate = compared
        .attribute("predicate")
        .ok()
        .and_then(attribute::integer)?;
    let kind = ["arith.cmpf", "arith.cmpi"]
        .iter()
        .position(|own| *own == name(compared))?;
    let has = |of: [&[i64]; 2]| of.get(kind).is_some_and(|own| own.contains(&predicate));
    let is_read = in_order && is_given;
    match (is_read && has(ASCENDING), is_read && has(DESCENDING)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
