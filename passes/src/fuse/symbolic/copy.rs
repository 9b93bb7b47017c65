//! The copy of a function whose extents are numbers, with operators for what is left of linalg.

use super::Symbols;
use super::infer::Extents;
use crate::PassResult;
use crate::convert;
use crate::fuse::attention::{Attention, Read, RowSums};
use crate::fuse::nest::{is_nest, maps};
use crate::ir::value::{
    defined_by, defining, identity, is_used, name, only_result, operands, replace_all_uses, results,
};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use axe_dialect::ops;
use melior::ir::operation::{Operation, OperationLike};
use melior::ir::{BlockRef, TypeLike, ValueLike};
use mlir_sys as sys;
use std::collections::{HashMap, HashSet};

/// A copy, which goes with this.
pub(super) struct Copy<'c> {
    _owned: Operation<'c>,
    block: BlockRef<'c, 'c>,
    /// The function's value that a value of the copy is.
    of: HashMap<usize, Val<'c>>,
}

/// Whether a body has an exponential: no attention is without.
pub(super) fn has_exponential(ops: &[Op<'_>]) -> bool {
    let mut all = ops.iter().flat_map(|op| walk::nested(*op, &|_| true));
    all.any(|op| name(op).starts_with("math.exp"))
}

impl<'c> Copy<'c> {
    /// Copies a function.
    pub(super) fn new(func: Op<'c>, extents: &Extents<'c>) -> PassResult<'c, Self> {
        // SAFETY: the function is live; the copy is destroyed with what owns it.
        let owned = unsafe { Operation::from_raw(sys::mlirOperationClone(func.to_raw())) };
        // SAFETY: the owner lives as long as what refers to it: `Copy`.
        let own = unsafe { Op::from_raw(owned.to_raw()) };
        let (from, to) = (values(func), values(own));
        let of: HashMap<_, _> = to.iter().map(|own| identity(*own)).zip(from).collect();
        for value in to {
            let shape = of
                .get(&identity(value))
                .and_then(|from| extents.shape(*from));
            if let (Some(shape), Some(tensor)) = (shape, TensorType::of_value(value))
                && tensor.shape.contains(&DYNAMIC)
                && let Some(r#type) =
                    axe_dialect::tensor_type(func.location(), shape, tensor.element, None)
            {
                // SAFETY: value and type are live and of one context; nothing verifies the copy.
                unsafe { sys::mlirValueSetType(value.to_raw(), r#type.to_raw()) };
            }
        }
        let lost = || crate::PassError::new(func.location(), "a function has a block");
        let block = walk::blocks(own).first().copied().ok_or_else(lost)?;
        let mut copy = Self {
            _owned: owned,
            block,
            of,
        };
        copy.convert(extents)?;
        Ok(copy)
    }

    /// Operators for what is left of linalg, where there are some.
    fn convert(&mut self, extents: &Extents<'c>) -> PassResult<'c> {
        for op in walk::operations(self.block) {
            let own = name(op);
            if !own.starts_with("linalg.") {
                continue;
            }
            let replacements = match self.repeated(extents, op)? {
                Some(value) => Some(vec![Some(value)]),
                None => convert::operators(op).ok(),
            };
            let Some(replacements) = replacements else {
                continue;
            };
            let replaced: Vec<_> = results(op).into_iter().zip(replacements).collect();
            let whole = replaced.iter().all(|(result, value)| match value {
                Some(value) => value.r#type() == result.r#type(),
                None => !is_used(*result),
            });
            if !whole {
                continue;
            }
            let mut formed = Vec::new();
            for (result, value) in replaced {
                // What is erased leaves its number to others.
                let from = self.of.remove(&identity(result));
                if let Some(value) = value {
                    replace_all_uses(result, value);
                    formed.push((value, from));
                }
            }
            walk::erase(op);
            for (value, from) in formed {
                if let Some(from) = from {
                    self.of.entry(identity(value)).or_insert(from);
                }
            }
        }
        // What was built for an operation that then failed, and what was read by others alone, is read by nothing.
        for op in walk::operations(self.block).into_iter().rev() {
            let own = name(op);
            let kinds = ["axe.", "linalg.", "tensor.", "arith."];
            if op.result_count() > 0 && kinds.iter().any(|kind| own.starts_with(kind)) {
                walk::erase(op);
            }
        }
        Ok(())
    }

    /// Loops that read one tensor at their own indices, and at 0 where it has one element, as a broadcast.
    fn repeated(&self, extents: &Extents<'c>, op: Op<'c>) -> PassResult<'c, Option<Val<'c>>> {
        let Some((from, _)) = extracted(op) else {
            return Ok(None);
        };
        // Scalars of the copy are not those that extents are known of.
        let original = results(op)
            .first()
            .and_then(|own| self.of.get(&identity(*own)));
        let indices = original.and_then(|of| extracted(defining(*of)?));
        let (Some((_, indices)), Some(shape), Some(to)) = (
            indices,
            TensorType::of_value(from).map(|tensor| tensor.shape),
            results(op)
                .first()
                .and_then(|own| TensorType::of_value(*own)),
        ) else {
            return Ok(None);
        };
        let mut loops = Vec::new();
        for (dim, index) in indices.iter().enumerate() {
            let extent = shape.get(dim).copied();
            let own = match place(extents, *index) {
                Place::Loop(at) => Some(at),
                Place::Clamped(at, of) if Some(of) == extent => Some(at),
                Place::Zero if extent == Some(1) => None,
                _ => return Ok(None),
            };
            if own.is_some_and(|at| to.shape.get(at).copied() != extent) {
                return Ok(None);
            }
            loops.push(own);
        }
        let kept: Vec<_> = loops.iter().flatten().copied().collect();
        if !kept.is_sorted() || kept.windows(2).any(|pair| pair[0] == pair[1]) {
            return Ok(None);
        }
        let builder = Builder::before(op);
        let extents: Vec<_> = kept
            .iter()
            .filter_map(|at| to.shape.get(*at).copied())
            .collect();
        let r#type = builder.tensor(&extents, to.element)?;
        let narrow = match extents == shape {
            true => from,
            false => builder.value("tensor.collapse_shape", &[from], r#type, &[])?,
        };
        let added: Vec<_> = (0i64..)
            .zip(&to.shape)
            .map(|(at, _)| at)
            .filter(|at| !kept.iter().any(|own| i64::try_from(*own) == Ok(*at)))
            .collect();
        if added.is_empty() {
            return Ok(Some(narrow));
        }
        let dims = [("dims", builder.i64s(&added))];
        let r#type = builder.tensor(&to.shape, to.element)?;
        builder
            .value(ops::BROADCAST, &[narrow], r#type, &dims)
            .map(Some)
    }

    /// Its operations.
    pub(super) fn operations(&self) -> Vec<Op<'c>> {
        walk::operations(self.block)
    }

    /// What was found in it, of tensors of the function.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) fn told(
        &self,
        attention: &Attention<'c>,
        symbols: &Symbols<'c>,
    ) -> Result<Attention<'c>, String> {
        let of = |read: &Read<'c>| {
            let tensor = self.of.get(&identity(read.tensor)).copied();
            let tensor =
                tensor.ok_or("a tensor of dynamic extents is no result of the program's own")?;
            Ok::<_, String>(Read {
                tensor,
                ..read.clone()
            })
        };
        let all = |reads: &[Read<'c>]| reads.iter().map(of).collect::<Result<Vec<_>, _>>();
        if attention.pages.iter().any(Option::is_some) {
            return Err("its pages are of dynamic extents".to_owned());
        }
        let result = of(&attention.result)?;
        let formed = only_result(attention.op).and_then(|own| self.of.get(&identity(own)));
        let op = formed.copied().or(Some(result.tensor)).and_then(defining);
        let mut told = Attention {
            queries: of(&attention.queries)?,
            keys: of(&attention.keys)?,
            values: of(&attention.values)?,
            result,
            inputs: all(&attention.inputs)?,
            lengths: all(&attention.lengths)?,
            sums: match &attention.sums {
                None => None,
                Some(sums) => {
                    let mut own: RowSums<'c> = sums.clone();
                    own.read = of(&sums.read)?;
                    Some(own)
                }
            },
            symbols: symbols.clone(),
            op: op.ok_or("its result is an argument")?,
            ..attention.clone()
        };
        told.inner = inside(&told);
        Ok(told)
    }

    /// The operation of the function that forms the last result.
    pub(super) fn last(&self, attention: &Attention<'c>, ops: &[Op<'c>]) -> Option<usize> {
        let formed: Vec<_> = attention.results().filter_map(defining).collect();
        let last = ops.iter().rev().find(|op| formed.contains(op))?;
        Some(last.to_raw().ptr as usize)
    }
}

/// The operations that results are formed by, of what attention reads.
fn inside(attention: &Attention<'_>) -> HashSet<usize> {
    let read: HashSet<_> = attention.reads().map(identity).collect();
    let mut next: Vec<_> = attention.results().collect();
    let mut found = HashSet::new();
    while let Some(value) = next.pop() {
        let Some(op) = defining(value).filter(|_| !read.contains(&identity(value))) else {
            continue;
        };
        if found.insert(op.to_raw().ptr as usize) {
            next.extend(operands(op));
        }
    }
    found
}

/// The arguments and results of a function's block.
fn values<'c>(func: Op<'c>) -> Vec<Val<'c>> {
    let Some(block) = walk::blocks(func).first().copied() else {
        return Vec::new();
    };
    let results = walk::operations(block).into_iter().flat_map(results);
    walk::block_arguments(block)
        .into_iter()
        .chain(results)
        .collect()
}

/// What a nest of parallel loops reads, with the indices: where its body is one `tensor.extract` and what those are formed of.
fn extracted<'c>(op: Op<'c>) -> Option<(Val<'c>, Vec<Val<'c>>)> {
    if !is_nest(op) || op.result_count() != 1 {
        return None;
    }
    let identity_map = maps(op)?.last().copied()?;
    let rank = identity_map.result_count();
    let straight = (0..rank).all(|at| {
        let own = identity_map.result(at);
        own.is_ok_and(|own| own.is_dim() && own.dim_position() == at)
    });
    let block = walk::blocks(op).first().copied()?;
    let last = walk::operations(block).last().copied()?;
    let extract = defining(*operands(last).first()?)?;
    let of = operands(extract);
    let (&from, indices) = of.split_first()?;
    let outside =
        defining(from).is_none_or(|own| walk::operations(block).iter().all(|op| *op != own));
    (name(extract) == "tensor.extract" && straight && outside).then(|| (from, indices.to_vec()))
}

/// Where an index of a tensor is.
enum Place {
    Loop(usize),
    /// That of a loop, or 0 where this extent is one: a broadcast as torch writes it.
    Clamped(usize, i64),
    Zero,
    Other,
}

fn place<'c>(extents: &Extents<'c>, index: Val<'c>) -> Place {
    let loop_of = |value: Val<'c>| {
        let op = defined_by(value, "linalg.index")?;
        let dim = op.attribute("dim").ok().and_then(attribute::integer)?;
        usize::try_from(dim).ok()
    };
    if let Some(at) = loop_of(index) {
        return Place::Loop(at);
    }
    if extents.number(index) == Some(0) {
        return Place::Zero;
    }
    let Some(select) = defined_by(index, "arith.select") else {
        return Place::Other;
    };
    let all = operands(select);
    let &[condition, zero, own] = all.as_slice() else {
        return Place::Other;
    };
    // extent == 1
    let of = defined_by(condition, "arith.cmpi").and_then(|compare| {
        let predicate = compare
            .attribute("predicate")
            .ok()
            .and_then(attribute::integer);
        let all = operands(compare);
        let &[extent, one] = all.as_slice() else {
            return None;
        };
        let is_one = predicate == Some(0) && extents.number(one) == Some(1);
        extents.number(extent).filter(|_| is_one)
    });
    match (loop_of(own), of) {
        (Some(at), Some(of)) if extents.number(zero) == Some(0) => Place::Clamped(at, of),
        _ => Place::Other,
    }
}

/// The dimensions of a tensor that loops read at one of their indices, or at 0 where it has one element there: the dimension, the
/// loop, and the tensor.
pub(super) fn clamped<'c>(extents: &Extents<'c>, op: Op<'c>) -> Vec<(usize, usize, Val<'c>)> {
    let Some((from, indices)) = extracted(op) else {
        return Vec::new();
    };
    let of = |(dim, index): (usize, &Val<'c>)| match place(extents, *index) {
        Place::Clamped(at, of) => {
            let own = extents.shape(from).and_then(|shape| shape.get(dim));
            (own == Some(&of)).then_some((dim, at, from))
        }
        _ => None,
    };
    indices.iter().enumerate().filter_map(of).collect()
}
