//! Where updates go along a dimension: what a column of a scatter's indices has for each of them.

use super::radix::Digit;
use crate::PassResult;
use crate::convert::operands::squeezed;
use crate::fuse::nest::{maps, reductions};
use crate::generalize::generic::{elementwise, extract, sizes_of};
use crate::ir::value::{
    argument_number, defined_by, defining, identity, is_used, name, operands, results,
};
use crate::ir::{Builder, Op, TensorType, Val, attribute, inline, walk};
use melior::ir::AffineMap;
use melior::ir::operation::OperationLike;

/// Tensors that a column is looked for behind, at most.
const MOST_TENSORS: usize = 64;

/// What a column of indices has.
pub(super) enum Coordinate<'c> {
    /// The same index for all updates.
    Fixed(i64),
    /// A digit of the update's number.
    Digit(Digit),
    /// The elements of a tensor, whose dimensions are digits of the update's number.
    Data(Val<'c>, Vec<Digit>),
}

/// What column `at` of indices `tensor<N x K>` has.
///
/// # Errors
/// When building fails.
pub(super) fn coordinate<'c>(
    builder: &Builder<'c>,
    indices: Val<'c>,
    at: i64,
) -> PassResult<'c, Coordinate<'c>> {
    let (tensor, at) = column(indices, at);
    let shape = builder.tensor_of(tensor)?.shape;
    let count = shape.first().copied().unwrap_or(1);
    if shape.get(1) == Some(&1) {
        let digits = vec![Digit::whole(count), Digit::whole(1)];
        if let Some(known) = read(builder, tensor, digits, 0)? {
            return Ok(known);
        }
    }
    let alone = taken(builder, tensor, at)?;
    Ok(Coordinate::Data(alone, vec![Digit::whole(count)]))
}

/// Column `at` of indices as a tensor of a number for each update.
///
/// # Errors
/// When building fails.
pub(super) fn numbers<'c>(
    builder: &Builder<'c>,
    indices: Val<'c>,
    at: i64,
) -> PassResult<'c, Val<'c>> {
    let (tensor, at) = column(indices, at);
    taken(builder, tensor, at)
}

/// The tensor that a column was put together of, and its column there.
fn column(mut tensor: Val<'_>, mut at: i64) -> (Val<'_>, i64) {
    for _ in 0..MOST_TENSORS {
        let Some((from, own)) = behind(tensor, at) else {
            break;
        };
        (tensor, at) = (from, own);
    }
    (tensor, at)
}

/// The tensor that a column comes from where others stand beside it.
fn behind(tensor: Val<'_>, at: i64) -> Option<(Val<'_>, i64)> {
    let op = defining(tensor)?;
    let list = |own: &str| op.attribute(own).ok().and_then(attribute::read_i64s);
    match name(op).as_str() {
        "tensor.concat" => {
            let dim = op.attribute("dim").ok().and_then(attribute::integer)?;
            let mut at = at;
            for part in operands(op).into_iter().filter(|_| dim == 1) {
                let width = *TensorType::of_value(part)?.shape.get(1)?;
                if (0..width).contains(&at) {
                    return Some((part, at));
                }
                at = at.checked_sub(width)?;
            }
            None
        }
        "tensor.insert_slice" => {
            let [part, whole] = operands(op)[..] else {
                return None;
            };
            let &[first, from] = &list("static_offsets")?[..] else {
                return None;
            };
            let &[count, width] = &list("static_sizes")?[..] else {
                return None;
            };
            let is_column = first == 0
                && list("static_strides")?.iter().all(|own| *own == 1)
                && TensorType::of_value(part)?.shape == [count, width]
                && TensorType::of_value(whole)?.shape.first() == Some(&count);
            let inside = (from..from.checked_add(width)?).contains(&at);
            is_column.then_some(if inside {
                (part, at - from)
            } else {
                (whole, at)
            })
        }
        _ => None,
    }
}

/// A column of a tensor, alone.
fn taken<'c>(builder: &Builder<'c>, tensor: Val<'c>, at: i64) -> PassResult<'c, Val<'c>> {
    let TensorType {
        mut shape, element, ..
    } = builder.tensor_of(tensor)?;
    if shape.get(1) == Some(&1) {
        if let Some(alone) = alone(builder, tensor)? {
            return Ok(alone);
        }
        return squeezed(builder, tensor, &[false, true]);
    }
    let mut sizes = sizes_of(builder, tensor)?;
    sizes.truncate(1);
    shape.truncate(1);
    let alone = TensorType {
        shape,
        element,
        encoded: false,
    };
    elementwise(builder, &alone, &sizes, |inner, own| {
        let mut index = own.to_vec();
        index.push(inner.index(at)?);
        extract(inner, tensor, &index)
    })
}

/// What a tensor whose dimensions are these digits has; none of one that is data as it stands.
fn read<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    digits: Vec<Digit>,
    depth: usize,
) -> PassResult<'c, Option<Coordinate<'c>>> {
    let data = || Some(Coordinate::Data(tensor, digits.clone()));
    if let Some(value) = constant(tensor) {
        return Ok(Some(Coordinate::Fixed(value)));
    }
    let Some(op) = defining(tensor).filter(|_| depth < MOST_TENSORS) else {
        return Ok(data());
    };
    let source = operands(op).first().copied();
    let shape_of = |value: Val<'c>| TensorType::of_value(value).map(|own| own.shape);
    let shape = source.and_then(shape_of).unwrap_or_default();
    match (name(op).as_str(), source) {
        ("tensor.expand_shape", Some(source)) => {
            let wide = digits.iter().filter(|own| own.extent != 1);
            let wide: Vec<_> = wide.copied().collect();
            match wide.iter().map(|own| own.extent).eq(shape) {
                true => read(builder, source, wide, depth + 1),
                false => Ok(data()),
            }
        }
        ("tensor.collapse_shape", Some(source)) => match collapsed(op, &shape, &digits) {
            Some(finer) => read(builder, source, finer, depth + 1),
            None => Ok(data()),
        },
        ("linalg.generic", _) => match Body::of(op, tensor, &digits) {
            Some(Body::Known(known)) => Ok(Some(known)),
            Some(Body::Spread(from, digits)) => read(builder, from, digits, depth + 1),
            None if results(op).len() > 1 => Ok(alone(builder, tensor)?.map(|alone| {
                let wide = digits.iter().filter(|own| own.extent != 1);
                Coordinate::Data(alone, wide.copied().collect())
            })),
            None => Ok(data()),
        },
        _ => Ok(data()),
    }
}

/// The integer that all elements of a tensor are.
fn constant(tensor: Val<'_>) -> Option<i64> {
    let op = defining(tensor)?;
    let value = |op: Op<'_>| op.attribute("value").ok().and_then(attribute::integer);
    match name(op).as_str() {
        "arith.constant" => {
            let splat = attribute::splat(op.attribute("value").ok()?)?;
            attribute::integer(splat)
        }
        "linalg.fill" => value(defined_by(*operands(op).first()?, "arith.constant")?),
        _ => None,
    }
}

/// The digits of the dimensions that were collapsed to these.
fn collapsed(op: Op<'_>, shape: &[i64], digits: &[Digit]) -> Option<Vec<Digit>> {
    let groups = attribute::read_groups(op.attribute("reassociation").ok()?)?;
    let mut all = Vec::new();
    for (group, digit) in groups.iter().zip(digits) {
        let extent = |dim: &i64| shape.get(usize::try_from(*dim).ok()?).copied();
        let extents: Option<Vec<_>> = group.iter().map(extent).collect();
        all.extend(digit.split(&extents?)?);
    }
    (groups.len() == digits.len()).then_some(all)
}

/// What loops over an update's digits yield.
enum Body<'c> {
    Known(Coordinate<'c>),
    /// An element of a tensor, whose dimensions are these digits.
    Spread(Val<'c>, Vec<Digit>),
}

impl<'c> Body<'c> {
    fn of(op: Op<'c>, tensor: Val<'c>, digits: &[Digit]) -> Option<Self> {
        let number = results(op)
            .iter()
            .position(|own| identity(*own) == identity(tensor))?;
        let all = maps(op)?;
        let inputs = all.len().checked_sub(results(op).len())?;
        let of_loops = of_loops(all.get(inputs + number)?, digits)?;
        if reductions(op).contains(&true) || of_loops.len() != reductions(op).len() {
            return None;
        }
        let block = walk::blocks(op).first().copied()?;
        let yielded = walk::operations(block).last().copied().map(operands)?;
        let mut value = *yielded.get(number)?;
        while let Some(cast) =
            defining(value).filter(|op| ["arith.index_cast", "arith.extsi"].contains(&&*name(*op)))
        {
            value = *operands(cast).first()?;
        }
        if let Some(argument) = argument_number(value).filter(|at| *at < inputs) {
            let map = all.get(argument)?;
            let own = (0..map.result_count()).map(|at| {
                let index = map.result(at).ok()?;
                match index.is_dim() {
                    true => of_loops.get(index.dim_position()).copied(),
                    false => is_zero(map, at).then(|| Digit::whole(1)),
                }
            });
            let from = operands(op).get(argument).copied()?;
            return Some(Self::Spread(from, own.collect::<Option<_>>()?));
        }
        known(value, &of_loops, 0).map(Self::Known)
    }
}

/// The digit of each loop of a map that has all of them in order, and zeros beside them.
fn of_loops(map: &AffineMap<'_>, digits: &[Digit]) -> Option<Vec<Digit>> {
    let mut all = Vec::new();
    for (at, digit) in digits.iter().enumerate() {
        let index = map.result(at).ok()?;
        if index.is_dim() && index.dim_position() == all.len() {
            all.push(*digit);
        } else if !is_zero(map, at) || digit.extent != 1 {
            return None;
        }
    }
    (map.result_count() == digits.len() && map.dim_count() == all.len()).then_some(all)
}

fn is_zero(map: &AffineMap<'_>, at: usize) -> bool {
    let index = map.result(at);
    index.is_ok_and(|index| index.is_constant() && index.constant_value() == 0)
}

/// A digit of a loop's index, or a constant.
fn known<'c>(value: Val<'c>, loops: &[Digit], depth: usize) -> Option<Coordinate<'c>> {
    let op = defining(value).filter(|_| depth < MOST_TENSORS)?;
    let integer = |own: &str| op.attribute(own).ok().and_then(attribute::integer);
    let all = operands(op);
    let by = |at: usize| {
        let op = defined_by(*all.get(at)?, "arith.constant")?;
        op.attribute("value").ok().and_then(attribute::integer)
    };
    let first = |by: fn(Digit, i64) -> Option<Digit>, of: Option<i64>| match known(
        *all.first()?,
        loops,
        depth + 1,
    )? {
        Coordinate::Digit(own) => by(own, of?).map(Coordinate::Digit),
        _ => None,
    };
    match name(op).as_str() {
        "arith.constant" => integer("value").map(Coordinate::Fixed),
        "linalg.index" => {
            let at = usize::try_from(integer("dim")?).ok()?;
            loops.get(at).copied().map(Coordinate::Digit)
        }
        "arith.index_cast" | "arith.extsi" => known(*all.first()?, loops, depth + 1),
        "arith.divsi" | "arith.divui" => first(Digit::over, by(1)),
        "arith.remsi" | "arith.remui" => first(Digit::modulo, by(1)),
        _ => None,
    }
}

/// One of several results of loops, as loops of its own, so that it is not stored beside the others. None for loops of one result, for
/// those with operands (torch-mlir's take elements by `tensor.extract`) and for other operations.
///
/// # Errors
/// When building fails.
pub(super) fn alone<'c>(builder: &Builder<'c>, tensor: Val<'c>) -> PassResult<'c, Option<Val<'c>>> {
    let Some(op) = defining(tensor).filter(|op| name(*op) == "linalg.generic") else {
        return Ok(None);
    };
    let all = results(op);
    let (Some(number), Some(block), Some(maps)) = (
        all.iter()
            .position(|own| identity(*own) == identity(tensor)),
        walk::blocks(op).first().copied(),
        maps(op),
    ) else {
        return Ok(None);
    };
    let TensorType { shape, element, .. } = builder.tensor_of(tensor)?;
    let digits: Vec<_> = shape.iter().copied().map(Digit::whole).collect();
    let map = maps.get(number).and_then(|map| of_loops(map, &digits));
    let Some(loops) = map.filter(|loops| {
        all.len() > 1
            && operands(op).len() == all.len()
            && loops.len() == reductions(op).len()
            && !reductions(op).contains(&true)
            && !walk::block_arguments(block).into_iter().any(is_used)
    }) else {
        return Ok(None);
    };
    let own = TensorType {
        shape: loops.iter().map(|own| own.extent).collect(),
        element,
        encoded: false,
    };
    let sizes = sizes_of(builder, tensor)?;
    elementwise(builder, &own, &sizes, |inner, _| {
        let arguments = walk::block_arguments(block);
        let yielded = inline::copy(inner, block, &arguments);
        Ok(yielded.get(number).copied().unwrap_or(tensor))
    })
    .map(Some)
}
