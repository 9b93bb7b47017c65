//! Broadcasts whose last dimensions repeat each element a few times (nearest upsampling, `repeat_interleave`), as loops. A kernel of
//! tiles has rows of so few columns, and stores a few bytes a thread; a thread of loops has neighbours of the whole result, whatever
//! dimensions they are of.

use super::inline::source_index;
use crate::PassResult;
use crate::fuse::operators::{dims_of, is_operator, is_product, is_reshape};
use crate::fuse::rewritten::Rewritten;
use crate::fuse::space::{product, source};
use crate::generalize::generic::{elementwise, extract};
use crate::ir::value::{defining, name, only_result, operands, replace_all_uses, users};
use crate::ir::walk::erase;
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val};
use axe_dialect::ops;

/// Elements that a tile's thread stores at once: where each is repeated as often, tiles are as good.
const VECTOR: i64 = 8;
/// Operators that are followed from a broadcast.
const MOST_FOLLOWED: usize = 32;

/// Makes loops of such broadcasts where no kernel of rows would form them itself. `ops` are operations of a block in
/// order; they are given with those that are new.
///
/// # Errors
/// When an operation cannot be built.
pub fn repeats_to_loops<'c>(ops: &[Op<'c>]) -> PassResult<'c, Vec<Op<'c>>> {
    let rewritten = Rewritten::of(ops);
    let mut replaced = Vec::new();
    for repeat in ops.iter().filter_map(|op| Repeat::of(*op)) {
        repeat.replace()?;
        replaced.push(repeat.op);
    }
    Ok(rewritten.without(replaced))
}

/// A broadcast that repeats elements a few times.
struct Repeat<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
    /// What is read of it: the result, or its only reshape.
    read: Val<'c>,
    /// The dimensions that it adds.
    dims: Vec<i64>,
}

impl<'c> Repeat<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let (result, from) = only_result(op).zip(source(op))?;
        let dims = dims_of(op).filter(|_| name(op) == ops::BROADCAST)?;
        let (own, shape) = (shape_of(from)?, shape_of(result)?);
        let added = |dim: &usize| i64::try_from(*dim).is_ok_and(|dim| dims.contains(&dim));
        let last = (0..shape.len()).rfind(|dim| !added(dim) && shape.get(*dim) != Some(&1))?;
        let times = product(shape.get(last + 1..)?)?;
        let few = times > 1 && times < VECTOR && product(&own)? > 0;
        let read = match users(result)[..] {
            [user] if is_reshape(user) => only_result(user)?,
            _ => result,
        };
        let is_static = shape_of(read).is_some();
        (few && is_static && is_stored(result, MOST_FOLLOWED)).then_some(Self {
            op,
            from,
            result,
            read,
            dims,
        })
    }

    fn replace(&self) -> PassResult<'c> {
        let builder = Builder::before(self.op);
        let tensor = builder.tensor_of(self.read)?;
        let made = elementwise(&builder, &tensor, &[], |inner, at| {
            let at = match self.read == self.result {
                true => at.to_vec(),
                false => source_index(inner, self.read, self.result, at)?,
            };
            let at = (0i64..).zip(at);
            let kept: Vec<_> = at
                .filter(|(dim, _)| !self.dims.contains(dim))
                .map(|(_, at)| at)
                .collect();
            extract(inner, self.from, &kept)
        })?;
        replace_all_uses(self.read, made);
        if let Some(reshape) = defining(self.read).filter(|op| *op != self.op) {
            erase(reshape);
        }
        Ok(())
    }
}

/// The extents of a tensor in memory, where they are known.
fn shape_of(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    (!tensor.encoded && !tensor.shape.contains(&DYNAMIC)).then_some(tensor.shape)
}

/// Whether a value is stored as it is, or what maps make of it and of tensors in memory: products read it from there, and no
/// reduction has a kernel that would form it.
fn is_stored(value: Val<'_>, most: usize) -> bool {
    most > 0
        && users(value).into_iter().all(|user| {
            let own = name(user);
            let follows = || only_result(user).is_some_and(|own| is_stored(own, most / 2));
            match own.as_str() {
                ops::MAP | ops::CAST => {
                    operands(user).into_iter().all(|own| is_read(own, most / 2)) && follows()
                }
                _ if is_reshape(user) => follows(),
                _ => !is_operator(user) || is_product(user),
            }
        })
}

/// Whether a value is read from memory, or formed of such element by element.
fn is_read(value: Val<'_>, most: usize) -> bool {
    let Some(op) = defining(value) else {
        return true;
    };
    let lazy = [ops::MAP, ops::CAST, ops::BROADCAST, ops::FILL];
    let one_by_one = is_reshape(op) || lazy.contains(&name(op).as_str());
    let formed = || operands(op).into_iter().all(|own| is_read(own, most / 2));
    name(op) == "arith.constant" || most > 0 && one_by_one && formed()
}
