//! The groups of a function's block.
//!
//! Operators are taken in program order. An elementwise operator or a reduction of rows joins the latest
//! group that feeds it, while the group is open: a group is sealed when another reads one of its values,
//! so that launches in the order of each group's last operator have their operands at hand. Broadcasts,
//! fills, reshapes and conversions to a wider type cost nothing in registers: they are formed again in every
//! group that reads them, and become a kernel only for a reader that cannot.

mod pairs;
mod slices;

use super::apart::Apart;
use super::attention::{Attention, Backward, Found};
use super::group::{ColumnFold, Group, Root};
use super::nest::{Nest, Pointwise, Start, is_nest};
use super::operators::{
    bases, has, is_lazy, is_operator, is_product, is_reshape, shared_operand, start_of,
};
use super::reduced::reduced_apart;
use super::siblings::stored;
use super::space::{Kind, Pairs, Size, source};
use super::strided;
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{Op, TensorType, Val};
use axe_dialect::ops::{self, Trait};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What a target decides about groups.
pub(super) struct Choices<'a, 'c> {
    /// Whether an operator is left to the host.
    pub left: &'a dyn Fn(Op<'c>) -> bool,
    /// Whether tiles of rows can have loops.
    pub loops: bool,
    /// Whether products read a matrix that all of a batch share where it is, and their epilogues what rows share.
    pub tables: bool,
    /// Whether there are kernels of reductions of dimensions that others follow, which form what they reduce.
    pub columns: bool,
    /// Whether these store elements that they form, of tensors whose narrowest elements have so many bytes, of rows that CTAs share or not.
    pub stores_folded: &'a dyn Fn(ColumnFold, i64, bool) -> bool,
    /// Whether the kernel of a product reduces blocks of so many columns.
    pub reduces_blocks: &'a dyn Fn(Op<'c>, i64) -> bool,
    /// Whether it forms elements of pairs of columns.
    pub forms_pairs: &'a dyn Fn(Op<'c>, Pairs) -> bool,
    /// Whether one kernel forms these two products.
    pub forms_two: &'a dyn Fn(Op<'c>, Op<'c>) -> bool,
}

/// The groups of a block.
#[derive(Debug, Default)]
pub(super) struct Groups<'c> {
    groups: Vec<Group<'c>>,
    owner: HashMap<usize, usize>,
    /// Values that something outside the groups reads.
    wanted: HashSet<usize>,
    /// Whether tiles of rows can have loops.
    loops: bool,
    /// Whether products read what a batch and rows share.
    tables: bool,
    /// Columns of pairs of products' results, which readers form, or else a kernel of their own.
    sides: HashSet<usize>,
    /// Parts of rows, and rows of tables, which readers read where these lie, or else a kernel of their own.
    slices: HashSet<usize>,
    /// The operation that is taken up.
    reader: Option<Op<'c>>,
}

impl<'c> Groups<'c> {
    /// The groups of these operations, in program order, but for those that are `left` to the host. Operators inside of
    /// attention get groups too, for others may read them; nothing reads most of those, and they are dropped.
    pub(super) fn of(ops: &[Op<'c>], found: &Found<'c>, choices: &Choices<'_, 'c>) -> Self {
        let mut groups = Self {
            loops: choices.loops,
            tables: choices.tables,
            ..Self::default()
        };
        for (number, &op) in ops.iter().enumerate() {
            groups.reader = Some(op);
            if let Some(attention) = found.of_result(op) {
                groups.attention(op, attention, number);
            } else if let Some(gradients) = found.gradients_of(op) {
                groups.gradients(op, gradients, number);
            } else if found.is_formed_later(op) {
                // Nothing between reads it.
            } else if (choices.left)(op) {
                for operand in operands(op) {
                    groups.want(operand, number);
                }
            } else if has(op, Trait::Elementwise) || has(op, Trait::Reduction) {
                groups.elementwise(op, number, choices);
            } else if is_product(op) {
                groups.gemm(op, number);
            } else if is_lazy(op) || name(op) == "tensor.dim" {
                // Formed by each reader.
            } else if is_operator(op) && (has(op, Trait::Relayout) || name(op) == ops::TOP_K) {
                groups.single(op, number);
            } else if groups.slice(op, choices) {
                // Formed by each reader.
            } else if let Some(nest) = Pointwise::of(op) {
                groups.pointwise(op, &nest, number, choices);
            } else if groups.side(op, choices) {
                // Formed by each reader.
            } else if is_nest(op) {
                groups.nest(op, number);
            } else {
                for operand in operands(op) {
                    groups.want(operand, number);
                }
            }
        }
        groups
    }

    /// The groups whose results are read, with those results, in the order of their launches.
    pub(super) fn launches(mut self) -> Vec<(Group<'c>, Vec<Val<'c>>)> {
        self.groups.sort_by_key(|group| group.position);
        let mut live = Vec::new();
        for group in std::mem::take(&mut self.groups).into_iter().rev() {
            let results = group.owned.iter().flat_map(|op| results(*op));
            let outputs: Vec<_> = results
                .filter(|result| self.wanted.contains(&identity(*result)))
                .collect();
            if outputs.is_empty() {
                continue;
            }
            for value in group.read() {
                self.wanted.extend(chain(value));
            }
            live.push((by_itself(group), outputs));
        }
        live.reverse();
        live
    }

    fn add(&mut self, group: Group<'c>) {
        let number = self.groups.len();
        for result in group.owned.iter().flat_map(|op| results(*op)) {
            self.owner.insert(identity(result), number);
        }
        self.groups.push(group);
    }

    fn elementwise(&mut self, op: Op<'c>, number: usize, choices: &Choices<'_, 'c>) {
        let values = operands(op);
        if self.join(op, &values, number, choices)
            || choices.columns && !strided::is_marked(op) && self.column_fold(op, number, choices)
        {
            return;
        }
        let Some(total) = values.first().copied().and_then(Size::of) else {
            return self.single(op, number);
        };
        if !self.open(op, total, number) {
            self.single(op, number);
        }
    }

    /// Opens a group with a reduction of dimensions that others follow. False where it only reads a tensor.
    fn column_fold(&mut self, op: Op<'c>, number: usize, choices: &Choices<'_, 'c>) -> bool {
        let tiles = self.groups.iter();
        let tiles = tiles.filter(|group| matches!(group.root, Root::Tiles));
        let owned = tiles.flat_map(|group| &group.owned);
        let maps = owned.filter(|op| has(**op, Trait::Elementwise));
        let again: HashSet<_> = maps.flat_map(|op| results(*op)).map(identity).collect();
        let tiles = || self.columns_of_tiles(op, choices);
        let own = self.columns_beside(op, &again).or_else(tiles);
        if let Some((at, group)) = own {
            self.place(at, at_number(group, number), op, number);
            return true;
        }
        let Some(mut group) = Group::of_columns(op, again) else {
            return false;
        };
        group.apart = self.apart(op);
        let group = at_number(group, number);
        self.add(group.clone());
        self.place(self.groups.len() - 1, group, op, number);
        true
    }

    /// An open kernel of columns that takes a reduction of the same ones, of what it reads; `again` as in [`Group::of_columns`].
    fn columns_beside(&self, op: Op<'c>, again: &HashSet<usize>) -> Option<(usize, Group<'c>)> {
        let open = self.groups.iter().enumerate().rev();
        let mut open = open.filter(|(_, group)| !group.sealed && !group.owned.is_empty());
        open.find_map(|(at, group)| Some((at, group.with_columns(op, again.clone())?)))
    }

    /// An open kernel of maps that takes a reduction of columns of what it forms.
    fn columns_of_tiles(
        &self,
        op: Op<'c>,
        choices: &Choices<'_, 'c>,
    ) -> Option<(usize, Group<'c>)> {
        let mut read: Vec<_> = operands(op).into_iter().flat_map(bases).collect();
        let owner = |base: Val<'c>| self.owner.get(&identity(base)).copied();
        let at = read.pop().and_then(owner)?;
        let group = self.groups.get(at).filter(|group| !group.sealed)?;
        let is_one = read.into_iter().all(|base| owner(base) == Some(at));
        is_one.then(|| Some((at, group.folded(op, choices.stores_folded)?)))?
    }

    /// Puts an operator that reads these values into an open group that forms some of them. False where none takes it.
    fn join(
        &mut self,
        op: Op<'c>,
        values: &[Val<'c>],
        number: usize,
        choices: &Choices<'_, 'c>,
    ) -> bool {
        let mut candidates: Vec<usize> = values
            .iter()
            .flat_map(|value| bases(*value))
            .filter_map(|base| self.owner.get(&identity(base)).copied())
            .filter(|at| self.groups.get(*at).is_some_and(|group| !group.sealed))
            .collect();
        candidates.extend(self.of_sides(values));
        candidates.extend(self.beside(op));
        // A product first: its epilogue costs no pass over memory. Then the latest.
        candidates.sort_unstable_by_key(|at| (self.is_product(*at), *at));
        candidates.dedup();
        let both = self.dual(op, &candidates, choices);
        if let Some((at, group)) = both.or_else(|| self.merged(op, &candidates)) {
            self.place(at, at_number(group, number), op, number);
            return true;
        }
        for at in candidates.into_iter().rev() {
            let Some(mut trial) = self.groups.get(at).cloned() else {
                continue;
            };
            let taken = trial
                .reduced(op)
                .is_none_or(|(product, columns)| (choices.reduces_blocks)(product, columns));
            if !taken || reduced_apart(op, &trial, choices) {
                continue;
            }
            let otherwise = trial.cut_otherwise(op);
            let joined = if trial.join(op) {
                Some(trial)
            } else {
                otherwise
            };
            if let Some(group) = joined {
                self.place(at, at_number(group, number), op, number);
                return true;
            }
        }
        false
    }

    /// Open groups that reduce the rows of a tensor which a reduction reduces along too: they read it once for both.
    fn beside(&self, op: Op<'c>) -> Vec<usize> {
        let Some((from, cut)) = source(op).zip(strided::rows_of(op)) else {
            return Vec::new();
        };
        let reads = |group: &Group<'c>| {
            let is_read = group.inputs.contains(&(stored(from), Kind::Full));
            let reduces = group.owned.iter().any(|own| name(*own) == ops::REDUCE);
            let tiles = matches!(group.root, Root::Tiles) && group.cut == Some(cut);
            !group.sealed && tiles && reduces && is_read
        };
        let groups = self.groups.iter().enumerate();
        groups
            .filter(|(_, group)| reads(group))
            .map(|(at, _)| at)
            .collect()
    }

    /// Makes another group the owner of what a group has.
    fn hand_over(&mut self, from: usize, into: usize) {
        let owned = self.groups.get_mut(from);
        let owned = owned.map(|group| std::mem::take(&mut group.owned));
        for result in owned.into_iter().flatten().flat_map(results) {
            self.owner.insert(identity(result), into);
        }
    }

    /// The open group of most elements, of several ones of tiles; or that of a product, where the others read tables alone.
    fn largest(&self, candidates: &[usize]) -> Option<usize> {
        let size = |at: &usize| {
            let group = self.groups.get(*at)?;
            let is_product = matches!(group.root, Root::Gemm(_));
            let is_tiles = matches!(group.root, Root::Tiles);
            let is_taken = is_product && group.takes_tables || is_tiles;
            is_taken.then_some((is_product, group.total.known, *at))
        };
        let sizes: Option<Vec<_>> = candidates.iter().map(size).collect();
        let sizes = sizes.filter(|sizes| sizes.len() > 1)?;
        let (has_product, _, into) = sizes.iter().copied().max()?;
        let reads_tables = |at: &usize| {
            self.groups
                .get(*at)
                .is_some_and(|own| own.inputs.is_empty())
        };
        let mut others = candidates.iter().filter(|at| **at != into);
        (!has_product || others.all(reads_tables)).then_some(into)
    }

    /// Makes one group of several open ones that an operator reads, where the one of most elements can have the operators of all
    /// and this one. None of them reads another: nothing outside reads what an open group forms.
    fn merged(&mut self, op: Op<'c>, candidates: &[usize]) -> Option<(usize, Group<'c>)> {
        let into = self.largest(candidates)?;
        let mut trial = self.groups.get(into)?.clone();
        for other in candidates.iter().filter(|at| **at != into) {
            let other = self.groups.get(*other)?;
            if !other.owned.iter().all(|op| trial.join(*op)) {
                return None;
            }
            trial.apart.extend(other.apart.iter().cloned());
        }
        if !trial.join(op) {
            return None;
        }
        for other in candidates.iter().filter(|at| **at != into) {
            self.hand_over(*other, into);
        }
        Some((into, trial))
    }

    /// Loops whose points are elements of rows join the kernel of those, or open one that others may join.
    fn pointwise(
        &mut self,
        op: Op<'c>,
        nest: &Pointwise<'c>,
        number: usize,
        choices: &Choices<'_, 'c>,
    ) {
        if self.paired(op, nest, number, choices) {
            return;
        }
        let total = nest.inputs.first().copied().and_then(Size::of);
        match total.filter(|_| nest.reads_few()) {
            Some(total)
                if self.join(op, &nest.inputs, number, choices) || self.open(op, total, number) => {
            }
            _ => self.nest(op, number),
        }
    }

    /// Opens a group of tiles with an operator. False where it does not fit.
    fn open(&mut self, op: Op<'c>, total: Size, number: usize) -> bool {
        let mut group = self.tiles(total);
        if !group.join(op) {
            return false;
        }
        group.apart = self.apart(op);
        let group = at_number(group, number);
        self.add(group.clone());
        self.place(self.groups.len() - 1, group, op, number);
        true
    }

    /// A group of tiles, without operators.
    fn tiles(&self, total: Size) -> Group<'c> {
        Group {
            takes_loops: self.loops,
            ..Group::new(Root::Tiles, total, None)
        }
    }

    /// Why an operator that begins a group is apart from those that it reads.
    fn apart(&self, op: Op<'c>) -> Vec<Apart<'c>> {
        let read = operands(op).into_iter().flat_map(bases);
        let mut read: Vec<_> = read
            .filter_map(|base| self.owner.get(&identity(base)).copied())
            .collect();
        read.sort_unstable();
        read.dedup();
        let groups = read.into_iter().filter_map(|at| self.groups.get(at));
        groups.filter_map(|group| Apart::new(op, group)).collect()
    }

    fn is_product(&self, at: usize) -> bool {
        let root = self.groups.get(at).map(|group| group.root);
        matches!(root, Some(Root::Gemm(_)))
    }

    /// Puts the group that took `op` in its place.
    fn place(&mut self, at: usize, group: Group<'c>, op: Op<'c>, number: usize) {
        for result in results(op) {
            self.owner.insert(identity(result), at);
        }
        let read = group.read();
        if let Some(slot) = self.groups.get_mut(at) {
            *slot = group;
        }
        for value in read {
            self.provide(value, number);
        }
    }

    fn gemm(&mut self, op: Op<'c>, number: usize) {
        let ([result], Some(total)) = (
            &results(op)[..],
            results(op).first().copied().and_then(Size::of),
        ) else {
            return self.single(op, number);
        };
        let columns = TensorType::of_value(*result).and_then(|tensor| tensor.shape.last().copied());
        let mut group = Group {
            takes_tables: self.tables && name(op) == ops::GEMM,
            ..Group::new(Root::Gemm(op), total, columns)
        };
        let values = operands(op);
        let start = start_of(op);
        let factors = values.len() - usize::from(start.is_some());
        for (at, value) in values.iter().take(factors).enumerate() {
            let shared = shared_operand(op, at).filter(|_| self.tables);
            group.inputs.push((shared.unwrap_or(*value), Kind::Full));
        }
        // A value that cannot be had in the kernel's space is found when the kernel is built.
        if let Some(start) = start {
            group.pull(start, Kind::Full);
        }
        group.formed.insert((identity(*result), Kind::Full));
        group.owned.push(op);
        group.apart = self.apart(op);
        group.position = (number, usize::MAX);
        self.add(group.clone());
        self.place(self.groups.len() - 1, group, op, number);
    }

    fn single(&mut self, op: Op<'c>, number: usize) {
        let total = Size {
            dynamic: false,
            known: 1,
        };
        let mut group = Group::new(Root::Single(op), total, None);
        group.inputs = operands(op)
            .into_iter()
            .filter(|operand| TensorType::of_value(*operand).is_some())
            .map(|operand| (operand, Kind::Full))
            .collect();
        group.owned.push(op);
        group.apart = self.apart(op);
        group.sealed = true;
        group.position = (number, usize::MAX);
        self.add(group.clone());
        self.place(self.groups.len() - 1, group, op, number);
    }

    /// Attention reads its operands where they lie.
    fn attention(&mut self, op: Op<'c>, attention: Rc<Attention<'c>>, number: usize) {
        let tensors = (attention.reads().collect(), attention.results().collect());
        let group = Group {
            attention: Some(attention),
            ..where_they_lie(Root::Attention(op), tensors)
        };
        self.sealed(op, group, number);
    }

    /// Gradients of attention, which read theirs so too.
    fn gradients(&mut self, op: Op<'c>, gradients: Rc<Backward<'c>>, number: usize) {
        let tensors = (gradients.reads().collect(), gradients.formed().collect());
        let group = Group {
            gradients: Some(gradients),
            ..where_they_lie(Root::Gradients(op), tensors)
        };
        self.sealed(op, group, number);
    }

    /// Adds a group that nothing joins, at the place of this operator.
    fn sealed(&mut self, op: Op<'c>, mut group: Group<'c>, number: usize) {
        group.sealed = true;
        group.position = (number, usize::MAX);
        self.add(group.clone());
        self.place(self.groups.len() - 1, group, op, number);
    }

    /// A kernel of loops reads the tensors that its body does, and what its results start from.
    fn nest(&mut self, op: Op<'c>, number: usize) {
        let own = self.groups.len();
        self.single(op, number);
        let Ok(nest) = Nest::read(op) else {
            // Said when the kernel is planned.
            return;
        };
        let inits = nest.inits.iter().zip(&nest.starts);
        let inits = inits.filter(|(_, start)| matches!(start, Start::Memory));
        let read: Vec<_> = nest
            .reads
            .iter()
            .chain(inits.map(|(init, _)| init))
            .copied()
            .collect();
        for value in &read {
            self.provide(*value, number);
        }
        if let Some(group) = self.groups.get_mut(own) {
            group.inputs = read.into_iter().map(|value| (value, Kind::Full)).collect();
        }
    }

    /// Something outside the groups reads a value.
    fn want(&mut self, value: Val<'c>, number: usize) {
        if TensorType::of_value(value).is_some() {
            self.provide(value, number);
            self.wanted.extend(chain(value));
        }
    }

    /// Sees to it that a value is stored before operation `number`.
    fn provide(&mut self, value: Val<'c>, number: usize) {
        if let Some(owner) = self.owner.get(&identity(value)) {
            if let Some(group) = self.groups.get_mut(*owner)
                && !group.sealed
            {
                (group.sealed, group.sealed_by) = (true, self.reader);
            }
            return;
        }
        let Some(op) = defining(value) else { return };
        if let Some(at) = self.reads_rows_of(value) {
            self.stores_too(at, op, value);
            return self.provide(value, number);
        }
        if self.sides.remove(&identity(value)) || self.slices.remove(&identity(value)) {
            // In front of what reads it, which has its place already.
            let own = self.groups.len();
            self.nest(op, number);
            if let Some(group) = self.groups.get_mut(own) {
                group.position = (number, own);
            }
        } else if is_reshape(op) {
            if let Some(from) = source(op) {
                self.provide(from, number);
            }
        } else if has(op, Trait::Lazy) {
            self.lazy(op, value, number);
        }
    }

    /// A kernel for an operator that would be formed again, in front of operation `number`.
    fn lazy(&mut self, op: Op<'c>, value: Val<'c>, number: usize) {
        // A broadcast alone is better written by a kernel of its own than taken element by element.
        let mut group = Size::of(value).map(|total| Group::new(Root::Tiles, total, None));
        let formed = group
            .as_mut()
            .is_some_and(|group| group.form(op, value, Kind::Full) == Some(true));
        let Some(mut group) = group.filter(|_| formed) else {
            if let Some(from) = source(op) {
                self.provide(from, number);
            }
            self.single(op, number);
            let order = self.groups.len();
            if let Some(group) = self.groups.last_mut() {
                group.position = (number, order);
            }
            return;
        };
        group.formed.insert((identity(value), Kind::Full));
        group.owned.push(op);
        group.sealed = true;
        for (input, _) in group.inputs.clone() {
            self.provide(input, number);
        }
        group.position = (number, self.groups.len());
        self.add(group);
    }
}

/// A group of tiles that nothing joined the loops of is a kernel of loops, where it forms nothing else that these read.
fn by_itself(group: Group<'_>) -> Group<'_> {
    let reads = |value: &Val<'_>| group.inputs.contains(&(*value, Kind::Full));
    let reads_inputs = |op| Pointwise::of(op).is_none_or(|nest| nest.inputs.iter().all(reads));
    match group.owned[..] {
        [op] if matches!(group.root, Root::Tiles) && is_nest(op) && reads_inputs(op) => Group {
            root: Root::Single(op),
            ..group
        },
        _ => group,
    }
}

/// A group whose launch goes before operation `number`.
fn at_number<'c>(group: Group<'c>, number: usize) -> Group<'c> {
    Group {
        position: (number, usize::MAX),
        ..group
    }
}

/// A value and those that it is a reshape of.
pub(super) fn chain(value: Val<'_>) -> Vec<usize> {
    let mut found = vec![identity(value)];
    let mut next = defining(value)
        .filter(|op| is_reshape(*op))
        .and_then(source);
    while let Some(value) = next {
        found.push(identity(value));
        next = defining(value)
            .filter(|op| is_reshape(*op))
            .and_then(source);
    }
    found
}

/// A group that reads these tensors where they lie, and forms the others.
fn where_they_lie<'c>(root: Root<'c>, (reads, formed): (Vec<Val<'c>>, Vec<Val<'c>>)) -> Group<'c> {
    let total = Size {
        dynamic: false,
        known: 1,
    };
    let mut group = Group::new(root, total, None);
    for value in reads {
        if !group.inputs.contains(&(value, Kind::Full)) {
            group.inputs.push((value, Kind::Full));
        }
    }
    group.owned.extend(formed.into_iter().filter_map(defining));
    group
}
