//! Operators that get a kernel of their own: transposes, and broadcasts and reductions in the middle.

mod broadcast;
mod permutation;
mod reduce;
mod split;

pub(super) use split::split_reductions;

use super::gemm::count;
use crate::facts::chip::MOST_BLOCKS;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::frame::{Frame, Operand};
use axe_passes::fuse::reshape::leading_of;
use axe_passes::fuse::space::source;
use axe_passes::ir::value::{name, only_result};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;

/// Neighbouring dimensions with one role, as one: extent and role.
fn runs(shape: &[i64], role: impl Fn(i64) -> bool) -> Vec<(i64, bool)> {
    let mut runs: Vec<(i64, bool)> = Vec::new();
    for (dim, &extent) in (0i64..).zip(shape).filter(|(_, extent)| **extent != 1) {
        match runs.last_mut() {
            Some((have, last)) if *last == role(dim) => {
                *have = if *have == DYNAMIC {
                    DYNAMIC
                } else {
                    have.saturating_mul(extent)
                };
            }
            _ => runs.push((extent, role(dim))),
        }
    }
    runs
}

/// Plans the kernel of one operator.
///
/// # Errors
/// At the operator, when it has no kernel of its own.
pub(super) fn plan<'c>(frame: &mut Frame<'c>, builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c> {
    let unreadable = || {
        PassError::new(
            op.location(),
            format!("'{}' has no kernel of its own", name(op)),
        )
    };
    let (from, result) = source(op).zip(only_result(op)).ok_or_else(unreadable)?;
    let dims = |key| op.attribute(key).ok().and_then(attribute::read_i64s);
    let single = Single { op, from, result };
    match name(op).as_str() {
        "axe.transpose" => {
            single.transpose(frame, builder, &dims("permutation").ok_or_else(unreadable)?)
        }
        "axe.broadcast" => single.broadcast(frame, builder, &dims("dims").ok_or_else(unreadable)?),
        "axe.reduce" => single.reduce(frame, builder, &dims("dims").ok_or_else(unreadable)?),
        _ => Err(unreadable()),
    }
}

/// One operator, its source and its result.
#[derive(Clone, Copy)]
struct Single<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
}

/// The tile's place among blocks: rows along x, columns along y, the other dimensions along z.
fn places<'c>(code: Code<'c>, outer: &[i64], tile: [i64; 2]) -> PassResult<'c, Vec<Val<'c>>> {
    let mut places = vec![
        code.times(code.block("y")?, tile[1])?,
        code.times(code.block("x")?, tile[0])?,
    ];
    let mut rest = code.block("z")?;
    for (at, &extent) in outer.iter().enumerate().rev() {
        if at == 0 {
            places.push(rest);
        } else {
            let extent = code.index(extent)?;
            places.push(code.rem(rest, extent)?);
            rest = code.div(rest, extent)?;
        }
    }
    places.reverse();
    Ok(places)
}

/// The blocks for a tensor whose last two dimensions are tiled. `leading` is the first extent where dynamic.
fn blocks<'c>(
    builder: &Builder<'c>,
    shape: &[i64],
    tile: [i64; 2],
    leading: Option<Val<'c>>,
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let [outer @ .., rows, columns] = shape else {
        return Err(PassError::new(builder.location, "expected a matrix"));
    };
    let x = match (outer, leading) {
        ([], Some(rows)) => code.ceil_div(rows, tile[0])?,
        _ => code.index(count(*rows, tile[0]))?,
    };
    let known: i64 = outer.iter().filter(|extent| **extent != DYNAMIC).product();
    let z = match (outer, leading) {
        ([_, ..], Some(leading)) => code.times(leading, known)?,
        _ => code.index(known)?,
    };
    let y = count(*columns, tile[1]);
    if y > MOST_BLOCKS || known > MOST_BLOCKS {
        return Err(PassError::new(
            builder.location,
            format!("{y} x {known} tiles are more than the 65535 x 65535 of a grid"),
        ));
    }
    Ok([x, code.index(y)?, z])
}

impl<'c> Single<'c> {
    fn kernel(
        &self,
        frame: &Frame<'c>,
        from: &Operand<'c>,
        to: &Operand<'c>,
    ) -> PassResult<'c, (Kernel<'c>, Val<'c>, Val<'c>)> {
        let kernel = Kernel::new(self.op.location(), frame.module, &[from.memref, to.memref]);
        match kernel.arguments[..] {
            [source, result] => Ok((kernel, source, result)),
            _ => Err(layout_error(
                self.op.location(),
                "a kernel lacks its arguments",
            )),
        }
    }
}

/// The leading extent of `shape`, a shape of `value`'s elements, where it is dynamic.
fn dynamic_leading<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Option<Val<'c>>> {
    match shape.first() {
        Some(&DYNAMIC) => leading_of(builder, value, shape).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_role_are_one_run() {
        let repeated = |dim| [1, 2].contains(&dim);
        assert_eq!(
            runs(&[2, 3, 4, 5], repeated),
            [(2, false), (12, true), (5, false)]
        );
        assert_eq!(
            runs(&[DYNAMIC, 1, 4, 5], repeated),
            [(DYNAMIC, false), (4, true), (5, false)]
        );
    }
}
