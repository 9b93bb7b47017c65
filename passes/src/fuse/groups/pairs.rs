//! Groups of products whose kernels form elements of two columns: of pairs of one result's, and of two products' results.

use super::{Choices, Groups, at_number};
use crate::fuse::group::{Group, Root};
use crate::fuse::nest::{Nest, Pointwise};
use crate::fuse::operators::bases;
use crate::fuse::pairs::{Paired, Side};
use crate::ir::value::{defining, identity, results};
use crate::ir::{Op, Val};

impl<'c> Groups<'c> {
    /// Makes one group of those of two products of the same rows, where an operator reads of both and the kernel of a product forms two.
    pub(super) fn dual(
        &mut self,
        op: Op<'c>,
        candidates: &[usize],
        choices: &Choices<'_, 'c>,
    ) -> Option<(usize, Group<'c>)> {
        // Products are in order.
        let &[into, from] = candidates else {
            return None;
        };
        let (own, other) = (self.groups.get(into)?, self.groups.get(from)?);
        let group = own.dual(other, op)?;
        let (Root::Gemm(product), Some(second)) = (group.root, group.second) else {
            return None;
        };
        if !(choices.forms_two)(product, second) {
            return None;
        }
        self.hand_over(from, into);
        Some((into, group))
    }

    /// Loops whose points are formed of two columns of a product's result join its kernel. False where they are others.
    pub(super) fn paired(
        &mut self,
        op: Op<'c>,
        nest: &Pointwise<'c>,
        number: usize,
        choices: &Choices<'_, 'c>,
    ) -> bool {
        let owners = nest.tables.iter().flat_map(|table| bases(*table));
        let owners = owners.filter_map(|base| self.owner.get(&identity(base)).copied());
        let found = owners.collect::<Vec<_>>().into_iter().find_map(|at| {
            let mut group = self.groups.get(at).filter(|group| !group.sealed)?.clone();
            let Root::Gemm(product) = group.root else {
                return None;
            };
            let paired = Paired::of(op, group.columns()?)?;
            let joins =
                (choices.forms_pairs)(product, paired.pairs) && group.join_pairs(op, &paired);
            joins.then_some((at, group))
        });
        let Some((at, group)) = found else {
            return false;
        };
        self.place(at, at_number(group, number), op, number);
        true
    }

    /// Loops that take one column of each pair of a product's result, for operators that may join its kernel. False where they are others.
    pub(super) fn side(&mut self, op: Op<'c>, choices: &Choices<'_, 'c>) -> bool {
        let Some(side) = self.side_of(op) else {
            return false;
        };
        // Neither is left to a kernel of its own, which would read the product's result.
        let meets = |group: &Group<'c>| {
            let columns = group.columns();
            columns.is_some_and(|columns| side.meets_other(op, columns))
        };
        let takes = |group: &Group<'c>| match group.root {
            Root::Gemm(product) => {
                meets(group)
                    && (choices.forms_pairs)(product, side.pairs)
                    && group.takes_side(&side)
            }
            _ => false,
        };
        let mut owners = bases(side.table).into_iter();
        let owner = owners.find_map(|base| self.owner.get(&identity(base)).copied());
        let group = owner.and_then(|at| self.groups.get(at));
        let taken = group.is_some_and(|group| !group.sealed && takes(group));
        if taken {
            self.sides.extend(results(op).into_iter().map(identity));
        }
        taken
    }

    /// The columns that loops take of a product's result.
    fn side_of(&self, op: Op<'c>) -> Option<Side<'c>> {
        let read = Nest::read(op).ok()?.reads;
        let mut owners = read.into_iter().flat_map(bases);
        let at = owners.find_map(|base| self.owner.get(&identity(base)).copied())?;
        Side::of(op, self.groups.get(at)?.columns()?)
    }

    /// Open groups that form some of these values, which are columns of pairs.
    pub(super) fn of_sides(&self, values: &[Val<'c>]) -> Vec<usize> {
        let sides = values
            .iter()
            .filter(|value| self.sides.contains(&identity(**value)));
        let tables = sides.filter_map(|value| Some(self.side_of(defining(*value)?)?.table));
        let owners = tables
            .flat_map(bases)
            .filter_map(|base| self.owner.get(&identity(base)).copied());
        let open = owners.filter(|at| self.groups.get(*at).is_some_and(|group| !group.sealed));
        open.collect()
    }
}
