//! Loops together with what is computed element by element around them: slices, concatenations, flips and what they are added to are
//! one kernel, in which nothing goes through memory.
//!
//! A group is made of loops without reductions, `axe.map`, `axe.cast`, `axe.broadcast` and transposes of whole rows, with reshapes
//! between them. Each of its results that something else reads becomes one `linalg.generic`, whose body computes at an index what
//! the others have there. Groups that end in a reduction along rows stay: their maps join its kernel.

mod again;
mod body;
mod readers;
mod rows;

use super::{Nest, Start, is_nest, maps};
use crate::PassResult;
use crate::fuse::operators::{is_operator, is_product, is_reshape, reshaped, splat};
use crate::fuse::reshape::element_bytes;
use crate::fuse::rewritten::erase_unread;
use crate::fuse::sliced::Sliced;
use crate::fuse::space::source;
use crate::generalize::generic::elementwise;
use crate::ir::value::{
    defining, identity, name, only_result, operands, replace_all_uses, results, users,
};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, types, walk};
use again::Again;
use axe_dialect::Typed;
use axe_dialect::ops::{self, FillOp};
use body::Body;
pub(super) use body::{is_computed, mapped};
use melior::ir::AffineMap;
use melior::ir::operation::OperationLike;
pub(in crate::fuse) use readers::loops_around;
pub(super) use readers::{all_readers, elements, source_index};
use readers::{is_moved, is_turned, keeps_rows, readers, repeats};
pub use rows::PointsOfRows;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Operations that the body of a group's loops has at most.
const MOST_OPERATIONS: usize = 512;

/// Makes loops of groups of a function's operations, of which [`is_inlined`] holds, where one would otherwise store for another. Loops whose
/// threads `share` rows form what rows are reduced to themselves; which of the `reductions` nothing reads any more are erased.
///
/// # Errors
/// When building fails.
pub fn inline_loops<'c>(
    ops: &[Op<'c>],
    reductions: &mut Vec<Op<'c>>,
    share: impl Fn(PointsOfRows) -> bool,
) -> PassResult<'c> {
    make_loops(ops, &share)?;
    let unread = reductions
        .iter()
        .filter(|op| results(**op).into_iter().all(|own| users(own).is_empty()));
    let unread: Vec<_> = unread.copied().collect();
    let block = unread.first().and_then(|op| op.block());
    let mut left = block.map_or_else(Vec::new, walk::operations);
    erase_unread(&mut left, unread);
    if block.is_some() {
        reductions.retain(|op| left.contains(op));
    }
    Ok(())
}

fn make_loops<'c>(ops: &[Op<'c>], share: &impl Fn(PointsOfRows) -> bool) -> PassResult<'c> {
    let mut ops = again::separate(ops)?;
    ops.retain(|op| is_inlined(*op));
    let mut again = Again::all(&ops);
    loop {
        let values = Rc::new(again::Values::of(&again));
        let all = groups(&ops, &values).into_iter().map(Group::without_rows);
        let taken: Vec<_> = all.filter(Group::is_worthwhile).collect();
        // What no loops form again after all is stored.
        let left = ops
            .iter()
            .filter(|op| !taken.iter().any(|group| group.members.contains(op)));
        let left = left.filter_map(|op| only_result(*op)).map(identity);
        let left: HashSet<usize> = left.collect();
        let before = again.len();
        again.retain(|again| !again.has(&left));
        if again.len() == before {
            return taken.iter().try_for_each(|group| group.replace(share));
        }
    }
}

/// Whether an operation can be computed at an index: an element of its one result by itself.
#[must_use]
pub fn is_inlined(op: Op<'_>) -> bool {
    let Some(tensor) = only_result(op).and_then(TensorType::of_value) else {
        return false;
    };
    if tensor.encoded || tensor.shape.contains(&DYNAMIC) || tensor.shape.contains(&0) {
        return false;
    }
    match name(op).as_str() {
        ops::MAP | ops::BROADCAST => true,
        ops::TRANSPOSE => keeps_rows(op),
        ops::CAST => {
            let narrow = |element| types::is_float(element) && types::bits(element) < Some(16);
            let from = source(op).and_then(TensorType::of_value);
            from.is_some_and(|from| !narrow(from.element) && !narrow(tensor.element))
        }
        _ => is_nest(op) && is_pointwise(op),
    }
}

/// Whether loops write each element of their one result once, and read their inputs at sums and products of indices.
fn is_pointwise(op: Op<'_>) -> bool {
    let Ok(nest) = Nest::read(op) else {
        return false;
    };
    let maps = maps(op).unwrap_or_default();
    let Some((own, inputs)) = maps.split_last() else {
        return false;
    };
    let known = |value: &Val<'_>| {
        let tensor = TensorType::of_value(*value);
        tensor.is_none_or(|tensor| !tensor.encoded && !tensor.shape.contains(&DYNAMIC))
    };
    matches!(nest.starts[..], [Start::Nothing])
        && !nest.reductions.contains(&true)
        && is_identity(*own, nest.reductions.len())
        && inputs.iter().all(|map| is_computed(*map))
        && operands(op).iter().all(known)
}

fn is_identity(map: AffineMap<'_>, rank: usize) -> bool {
    let is_own = |at: usize| {
        let index = map.result(at);
        index.is_ok_and(|index| index.is_dim() && index.dim_position() == at)
    };
    map.result_count() == rank && (0..rank).all(is_own)
}

/// Operations that compute at each other's indices.
struct Group<'c> {
    members: Vec<Op<'c>>,
    /// The values that are computed wherever they are read.
    inlined: Rc<HashSet<usize>>,
    /// Those of them that are formed again of what rows are reduced to.
    again: Rc<again::Values>,
}

/// Groups of operations, each in order, where these values are formed again.
fn groups<'c>(members: &[Op<'c>], again: &Rc<again::Values>) -> Vec<Group<'c>> {
    let mut number: HashMap<usize, usize> = HashMap::new();
    for (at, op) in members.iter().enumerate() {
        number.insert(op.to_raw().ptr as usize, at);
    }
    let numbered = |op: Op<'c>| number.get(&(op.to_raw().ptr as usize)).copied();
    let mut of_group: Vec<usize> = (0..members.len()).collect();
    let mut inlined = HashSet::new();
    for (at, op) in members.iter().enumerate() {
        let Some(result) = only_result(*op) else {
            continue;
        };
        let found: Option<Vec<_>> = if again.formed.contains(&identity(result)) {
            all_readers(result).into_iter().map(numbered).collect()
        } else if again.stored.contains(&identity(result)) || is_kept(result) {
            None
        } else {
            let found = readers(result).unwrap_or_default().into_iter();
            let few = |(reader, read)| numbered(reader).filter(|_| !repeats(reader, read, *op));
            found.map(few).collect()
        };
        let readers = match found.filter(|readers| !readers.is_empty()) {
            Some(readers) => {
                inlined.insert(identity(result));
                readers
            }
            // What the function returns is stored, and read there.
            None if !is_kept(result) => {
                let readers = returned(result).unwrap_or_default().into_iter();
                readers
                    .map(numbered)
                    .collect::<Option<_>>()
                    .unwrap_or_default()
            }
            None => continue,
        };
        for reader in readers {
            let (from, to) = (of_group[at], of_group[reader]);
            for group in &mut of_group {
                if *group == from {
                    *group = to;
                }
            }
        }
    }
    let inlined = Rc::new(inlined);
    let mut found: Vec<Group<'c>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for (op, group) in members.iter().zip(of_group) {
        let at = *place.entry(group).or_insert_with(|| {
            found.push(Group {
                members: Vec::new(),
                inlined: Rc::clone(&inlined),
                again: Rc::clone(again),
            });
            found.len() - 1
        });
        found[at].members.push(*op);
    }
    found
}

impl<'c> Group<'c> {
    /// The group without maps at its end that join the kernel of rows: that reads what is in front of them.
    fn without_rows(mut self) -> Self {
        let is_root = |group: &Self, op: &Op<'c>| {
            let result =
                only_result(*op).filter(|result| !group.inlined.contains(&identity(*result)));
            !is_nest(*op) && result.is_some_and(|result| group.joins_rows(result))
        };
        if !self.members.iter().any(|op| is_nest(*op)) {
            return self;
        }
        loop {
            let (rows, members): (Vec<_>, Vec<_>) = self
                .members
                .iter()
                .copied()
                .partition(|op| is_root(&self, op));
            if rows.is_empty() {
                return self;
            }
            let mut inlined = HashSet::clone(&self.inlined);
            for value in rows.into_iter().flat_map(operands) {
                inlined.remove(&identity(reshaped(value)));
            }
            self.members = members;
            self.inlined = Rc::new(inlined);
        }
    }

    /// Whether loops store for others or others for them, and nothing is lost by one kernel.
    fn is_worthwhile(&self) -> bool {
        let inlined = |op: &Op<'c>| {
            only_result(*op).is_some_and(|result| self.inlined.contains(&identity(result)))
        };
        let (loops, others): (Vec<Op<'c>>, Vec<Op<'c>>) =
            self.members.iter().partition(|op| is_nest(**op));
        if self.joins_product(&loops) {
            return false;
        }
        // Such loops may join the rows that the reduction is in.
        let joins = loops.iter().any(|op| operands(*op).len() > 1);
        if joins && self.members.iter().any(|op| reads_reduction(*op)) {
            return false;
        }
        let mut maps = others.iter().filter(|op| name(**op) != ops::BROADCAST);
        let turned = || others.iter().filter(|op| name(**op) == ops::TRANSPOSE);
        let turns = turned()
            .flat_map(|op| operands(*op))
            .any(|value| self.forms_again(value));
        let stores = turns || loops.iter().any(inlined) || !loops.is_empty() && maps.any(inlined);
        let mut roots = self.members.iter().filter(|op| !inlined(op));
        stores
            && self.members.iter().all(|op| self.reads_memory(*op))
            && roots.all(|op| {
                let result = only_result(*op);
                (is_nest(*op) || result.is_some_and(|result| !self.joins_rows(result)))
                    && result.is_some_and(|result| {
                        self.size(result, &mut HashSet::new()) <= MOST_OPERATIONS
                    })
            })
    }

    /// Whether maps read a product, whose kernel they join, and all loops are parts of rows of other tensors, which it reads where they lie.
    fn joins_product(&self, loops: &[Op<'c>]) -> bool {
        let mut maps = self.members.iter().filter(|op| name(**op) == ops::MAP);
        let reads_product = |op: &Op<'c>| {
            operands(*op)
                .into_iter()
                .any(|value| is_alone_of_product(value))
        };
        let is_slice = |op: &Op<'c>| {
            let sliced = only_result(*op).and_then(Sliced::of);
            sliced.is_some_and(|own| !follows_kernel(own.from))
        };
        !loops.is_empty() && loops.iter().all(is_slice) && maps.any(reads_product)
    }

    /// Whether a value, or what it is a reshape of, is computed wherever it is read.
    fn computes(&self, value: Val<'c>) -> bool {
        self.inlined.contains(&identity(reshaped(value)))
    }

    /// Whether a value, or what it is a reshape of, is formed again wherever it is read.
    fn forms_again(&self, value: Val<'c>) -> bool {
        self.again.formed.contains(&identity(reshaped(value)))
    }

    /// Whether what an operation reads is a group's, or in memory in any case.
    fn reads_memory(&self, op: Op<'c>) -> bool {
        let mut all = read(op).into_iter();
        let stored = |value| self.again.stored.contains(&identity(value)) || is_kept(value);
        all.all(|value| {
            let own = reshaped(value);
            let is_root = || defining(own).is_some_and(|op| self.members.contains(&op));
            self.computes(value) || is_stored(value) || stored(own) || is_root()
        })
    }

    /// Operations that computing a value takes beside what is `known` at its index, each as often as loops read it elsewhere.
    fn size(&self, value: Val<'c>, known: &mut HashSet<usize>) -> usize {
        let value = reshaped(value);
        if !known.insert(identity(value)) {
            return 0;
        }
        let Some(op) = defining(value).filter(|op| self.members.contains(op)) else {
            return 1;
        };
        let inside = walk::nested(op, &|_| true);
        let extracted = inside
            .iter()
            .filter(|inner| name(**inner) == "tensor.extract")
            .filter_map(|inner| operands(*inner).first().copied());
        let own = inside.len();
        let inlined = operands(op)
            .into_iter()
            .chain(extracted)
            .filter(|value| self.computes(*value));
        inlined.fold(own, |sum, value| {
            // Deep chains are over the bound before they are walked through.
            match (sum > MOST_OPERATIONS, is_nest(op)) {
                (true, _) => sum,
                (false, true) => sum.saturating_add(self.size(value, &mut HashSet::new())),
                (false, false) => sum.saturating_add(self.size(value, known)),
            }
        })
    }

    /// Whether what reads a value elementwise, or along rows, and is not the group's would be one kernel with what forms it. Products read operands
    /// from memory, and so does attention, which they are part of.
    fn joins_rows(&self, value: Val<'c>) -> bool {
        let mut others = users(value)
            .into_iter()
            .filter(|user| !self.members.contains(user));
        others.any(|user| match name(user).as_str() {
            ops::REDUCE => true,
            ops::MAP | ops::CAST | ops::BROADCAST => !only_result(user).is_some_and(is_operand),
            _ if is_reshape(user) => {
                only_result(user).is_some_and(|result| self.joins_rows(result))
            }
            _ => false,
        })
    }

    /// Builds the loops of each result that something else reads, and drops the group.
    fn replace(&self, share: impl Fn(PointsOfRows) -> bool) -> PassResult<'c> {
        for &op in &self.members {
            let Some(result) = only_result(op) else {
                continue;
            };
            if self.inlined.contains(&identity(result)) {
                continue;
            }
            let builder = Builder::before(op);
            let tensor = builder.tensor_of(result)?;
            let points = PointsOfRows {
                columns: tensor.shape.last().copied().unwrap_or(0),
                points: elements(result),
                bytes: element_bytes(tensor.element),
                operations: self.size(result, &mut HashSet::new()),
            };
            let columns = share(points).then_some(points.columns);
            let made = elementwise(&builder, &tensor, &[], |inner, at| {
                Body::new(self, at, columns).formed(inner, op, at)
            })?;
            replace_all_uses(result, made);
        }
        for op in self.members.iter().rev() {
            only_result(*op).into_iter().for_each(erase_reshapes);
            walk::erase(*op);
        }
        Ok(())
    }
}

/// Erases the reshapes of a value that nothing reads any more.
fn erase_reshapes(value: Val<'_>) {
    for user in users(value) {
        only_result(user).into_iter().for_each(erase_reshapes);
        walk::erase(user);
    }
}

/// The maps that read a value that a function returns beside; none of others.
fn returned<'c>(value: Val<'c>) -> Option<Vec<Op<'c>>> {
    let is_return = |op: &Op<'c>| name(*op) == "func.return";
    let (returns, others): (Vec<_>, Vec<_>) = users(value).into_iter().partition(is_return);
    let are_maps = others.iter().all(|op| name(*op) == ops::MAP);
    (!returns.is_empty() && are_maps).then_some(others)
}

/// The tensors that an operation reads.
fn read<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    match is_nest(op) {
        true => Nest::read(op).map(|nest| nest.reads).unwrap_or_default(),
        false => operands(op),
    }
}

/// Whether an operation reads what a reduction gives.
fn reads_reduction(op: Op<'_>) -> bool {
    let reduced =
        |value: Val<'_>| defining(reshaped(value)).is_some_and(|op| name(op) == ops::REDUCE);
    read(op).into_iter().any(reduced)
}

/// Whether a value is in memory whatever becomes of its readers.
fn is_stored(value: Val<'_>) -> bool {
    let Some(op) = defining(value) else {
        return true;
    };
    if is_reshape(op) {
        return source(op).is_some_and(is_stored);
    }
    let lazy = [ops::MAP, ops::CAST, ops::BROADCAST];
    FillOp::of(op).is_some()
        || splat(op).is_some()
        || is_nest(op)
        || is_product(op)
        || is_operator(op) && !lazy.contains(&name(op).as_str()) && name(op) != ops::INDEX
}

/// Whether the kernel of a product or a reduction stores a value that it forms, since others read it elsewhere: slices or heads of what a
/// linear layer gives, or of normalised rows.
fn is_kept(value: Val<'_>) -> bool {
    (is_moved(value) || is_turned(value)) && follows_kernel(value)
}

/// Whether a value is formed element by element of what a product or a reduction gives.
fn follows_kernel(value: Val<'_>) -> bool {
    let below = formed_of(value);
    below
        .into_iter()
        .any(|op| is_product(op) || name(op) == ops::REDUCE)
}

/// Whether a value is a product's result, or this in another type or shape, that nothing else reads.
fn is_alone_of_product(value: Val<'_>) -> bool {
    let Some(op) = defining(value).filter(|_| users(value).len() == 1) else {
        return false;
    };
    let passes = is_reshape(op) || [ops::CAST, ops::MAP].contains(&name(op).as_str());
    is_product(op) || passes && operands(op).into_iter().any(is_alone_of_product)
}

/// Whether a value is formed element by element of what a product gives, and of no reduction.
pub(super) fn follows_product(value: Val<'_>) -> bool {
    formed_of(value).into_iter().any(is_product) && !is_reduced(value)
}

/// Whether a value is, or is formed element by element of, what a reduction gives.
fn is_reduced(value: Val<'_>) -> bool {
    formed_of(value)
        .into_iter()
        .any(|op| name(op) == ops::REDUCE)
}

/// The operations from which a value is formed element by element.
fn formed_of<'c>(value: Val<'c>) -> Vec<Op<'c>> {
    let (mut next, mut seen, mut found) = (vec![value], HashSet::new(), Vec::new());
    while let Some(value) = next.pop() {
        let Some(op) = defining(reshaped(value)).filter(|_| seen.insert(identity(value))) else {
            continue;
        };
        match name(op).as_str() {
            ops::MAP | ops::CAST | ops::BROADCAST => next.extend(operands(op)),
            _ => found.push(op),
        }
    }
    found
}

/// Whether only products read a value, or what is formed of it element by element.
fn is_operand(value: Val<'_>) -> bool {
    let readers = users(value);
    let forms = [ops::MAP, ops::CAST, ops::TRANSPOSE, ops::BROADCAST];
    !readers.is_empty()
        && readers.into_iter().all(|user| {
            let passes = forms.contains(&name(user).as_str()) || is_reshape(user);
            is_product(user) || passes && only_result(user).is_some_and(is_operand)
        })
}
