//! A group: operators that become one kernel, and how they lie in its space.

mod columns;

use super::apart::Apart;
use super::attention::{Attention, Backward};
use super::between::Between;
use super::few::is_formed_by_readers;
use super::lookup::Lookup;
use super::nest::{Pointwise, is_nest};
use super::operators::{bases, is_reshape, is_widening, splat};
use super::pairs::{Paired, Side};
use super::reshape::element_bytes;
use super::sliced::Sliced;
use super::space::{Cut, Kind, Pairs, Place, Size, broadcast_of, place_of, product, source};
use super::strided;
use crate::ir::value::{defining, identity, name, only_result, operands, results, users};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute};
use axe_dialect::ops;
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use std::collections::HashSet;
use std::rc::Rc;

pub use columns::ColumnFold;

/// Columns of rows of several dimensions at most, where only how a tensor lies says what its rows are.
const MOST_COLUMNS: i64 = 8192;

/// What a group is built around.
#[derive(Clone, Copy, Debug)]
pub enum Root<'c> {
    /// A matrix product; the space is `[batch * M, N]`.
    Gemm(Op<'c>),
    /// Elementwise operators and reductions of rows.
    Tiles,
    /// Attention, whose result this operator forms.
    Attention(Op<'c>),
    /// Gradients of attention, of which this operator forms the last.
    Gradients(Op<'c>),
    /// A reduction of dimensions that others follow, and elementwise operators that form what it reads.
    Columns(Op<'c>),
    /// One operator by itself.
    Single(Op<'c>),
}

/// Where a group's launch goes: before the operation of this number; of several there, in the order of the rest.
pub type Position = (usize, usize);

/// The operators of one kernel.
#[derive(Clone, Debug)]
pub struct Group<'c> {
    /// What it is built around.
    pub root: Root<'c>,
    /// Another product of the same rows, whose result has the same space: a dual GEMM.
    pub second: Option<Op<'c>>,
    /// Elements of the space.
    pub total: Size,
    /// The columns of the space, once something depends on them.
    pub cut: Option<Cut>,
    /// What the kernel reads.
    pub inputs: Vec<(Val<'c>, Kind)>,
    /// What it reads of rows that are parts of longer ones, where these lie.
    pub sliced: Vec<(Val<'c>, Sliced<'c>)>,
    /// What it reads of rows that data names, where these lie.
    pub lookups: Vec<(Val<'c>, Lookup<'c>)>,
    /// Tensors of which bodies read elements anywhere.
    pub tables: Vec<Val<'c>>,
    /// What the kernel forms.
    pub formed: HashSet<(usize, Kind)>,
    /// The operators whose results the kernel may store.
    pub owned: Vec<Op<'c>>,
    /// What it computes, where it is attention.
    pub attention: Option<Rc<Attention<'c>>>,
    /// What it computes, where those are gradients of attention.
    pub gradients: Option<Rc<Backward<'c>>>,
    /// Where its launch goes.
    pub position: Position,
    /// The groups that it reads and is no part of, and why.
    pub apart: Vec<Apart<'c>>,
    /// Whether its tiles can have loops.
    pub(super) takes_loops: bool,
    /// Whether the epilogue of its product loads elements of tables.
    pub(super) takes_tables: bool,
    /// Values of other kernels that are formed again rather than read, where that reads no more.
    pub(super) again: Rc<HashSet<usize>>,
    pub(super) sealed: bool,
    /// What reads one of its values outside of it, where that sealed it.
    pub(super) sealed_by: Option<Op<'c>>,
}

impl<'c> Group<'c> {
    pub(super) fn new(root: Root<'c>, total: Size, columns: Option<i64>) -> Self {
        Self {
            root,
            second: None,
            total,
            cut: columns.map(Cut::rows_of),
            inputs: Vec::new(),
            sliced: Vec::new(),
            lookups: Vec::new(),
            tables: Vec::new(),
            formed: HashSet::new(),
            owned: Vec::new(),
            attention: None,
            gradients: None,
            position: (0, 0),
            apart: Vec::new(),
            takes_loops: false,
            takes_tables: false,
            again: Rc::default(),
            sealed: false,
            sealed_by: None,
        }
    }

    /// Whether tensors of a size are elements, rows or columns of the space.
    pub(super) fn has_size(&self, size: Size) -> bool {
        let columns = self.columns();
        size == self.total
            || columns.and_then(|columns| self.total.rows(columns)) == Some(size)
            || (!size.dynamic && Some(size.known) == columns)
    }

    /// Whether a value can be had in the kernel.
    pub(super) fn has(&self, value: Val<'c>) -> bool {
        let kinds = [Kind::Full, Kind::Row, Kind::Column];
        kinds.into_iter().any(|kind| self.clone().pull(value, kind))
    }

    fn owns(&self, value: Val<'c>) -> bool {
        self.owned
            .iter()
            .flat_map(|op| results(*op))
            .any(|result| result == value)
    }

    /// Columns of the space, once something depends on them.
    #[must_use]
    pub fn columns(&self) -> Option<i64> {
        self.cut.map(|cut| cut.columns)
    }

    /// Elements of a result of a reduction of columns: those of all dimensions that it keeps.
    fn kept_columns(&self) -> Option<i64> {
        match self.root {
            Root::Columns(op) => ColumnFold::of(op)?.kept(),
            _ => None,
        }
    }

    /// Takes columns as the space's, unless it has other ones.
    fn set_cut(&mut self, cut: Cut) -> bool {
        self.cut.get_or_insert(cut) == &cut && self.total.rows(cut.columns).is_some()
    }

    /// Whether rows are made of several blocks of so many columns; which a kernel reduces is the target's to say.
    fn has_blocks(&self, of: i64) -> bool {
        self.columns()
            .is_some_and(|columns| of > 0 && columns > of && columns % of == 0)
    }

    fn fits(&self, value: Val<'c>, kind: Kind) -> bool {
        let Some(size) = Size::of(value) else {
            return false;
        };
        match kind {
            Kind::Full => size == self.total,
            Kind::Row => self.columns().and_then(|columns| self.total.rows(columns)) == Some(size),
            Kind::Column => {
                let own = Some(size.known);
                !size.dynamic && (own == self.columns() || own == self.kept_columns())
            }
            Kind::Blocks(of) => self.total.rows(of) == Some(size),
            Kind::Pairs(_) => self.total.rows(2) == Some(size),
        }
    }

    /// Makes a value available in the kernel: formed there, or read. False, with the group in disorder, when
    /// neither can be.
    pub(super) fn pull(&mut self, value: Val<'c>, kind: Kind) -> bool {
        let key = (identity(value), kind);
        if self.formed.contains(&key) || self.inputs.contains(&(value, kind)) {
            return true;
        }
        if self.owns(value) || !self.fits(value, kind) {
            return false;
        }
        let formed = match defining(value) {
            Some(op) => self.form(op, value, kind),
            None => None,
        };
        match formed {
            Some(true) => self.formed.insert(key),
            Some(false) => false,
            // A value that is read must not come from the group itself.
            None if bases(value).into_iter().any(|base| self.is_of_own(base)) => false,
            None => {
                self.slice(value, kind);
                self.look_up(value, kind);
                self.inputs.push((value, kind));
                true
            }
        }
    }

    /// Whether a value is the group's, or rows of one that is, which no kernel may have stored yet.
    fn is_of_own(&self, value: Val<'c>) -> bool {
        let owned = |value: Val<'c>| bases(value).into_iter().any(|base| self.owns(base));
        let parts = || Sliced::of(value).or_else(|| Sliced::in_blocks(value, None));
        self.owns(value)
            || self.takes_loops
                && (parts().is_some_and(|own| owned(own.from))
                    || Lookup::of(value).is_some_and(|own| owned(own.table) || owned(own.numbers)))
    }

    /// Reads rows where they lie that are parts of longer ones; they are the space's rows, unless it has other ones.
    fn slice(&mut self, value: Val<'c>, kind: Kind) {
        let is_taken = match self.root {
            Root::Tiles => self.takes_loops && kind == Kind::Full,
            Root::Gemm(_) => self.takes_tables && kind == Kind::Full,
            _ => false,
        };
        let is_row = self.cut.is_some();
        // Some rows of each block are no row, where nothing else says what rows are.
        let last = TensorType::of_value(value).and_then(|tensor| tensor.shape.last().copied());
        let divides =
            |own: &Sliced<'c>| own.whole % own.columns == 0 && own.columns <= MOST_COLUMNS;
        let fits = |own: &Sliced<'c>| is_row || Some(own.columns) == last || divides(own);
        let sliced = is_taken.then(|| Sliced::of(value)).flatten();
        let sliced = sliced.filter(fits);
        if let Some(sliced) = sliced.filter(|own| self.set_cut(Cut::rows_of(own.columns))) {
            self.sliced.push((value, sliced));
            return;
        }
        let has_blocks = is_taken && matches!(self.root, Root::Tiles);
        let of_blocks = || Sliced::in_blocks(value, self.columns());
        let sliced = has_blocks.then(of_blocks).flatten();
        if let Some(sliced) = sliced.filter(|own| self.set_cut(Cut::rows_of(own.columns))) {
            self.sliced.push((value, sliced));
        }
    }

    /// Reads rows of a table where they lie, and the numbers that name them.
    fn look_up(&mut self, value: Val<'c>, kind: Kind) {
        let has_rows = matches!(self.root, Root::Tiles | Root::Columns(_)) && self.takes_loops;
        let is_taken = has_rows && kind == Kind::Full;
        let Some(lookup) = is_taken.then(|| Lookup::of(value)).flatten() else {
            return;
        };
        if self.set_cut(Cut::rows_of(lookup.columns)) {
            let numbers = (lookup.numbers, Kind::Row);
            if !self.inputs.contains(&numbers) {
                self.inputs.push(numbers);
            }
            self.lookups.push((value, lookup));
        }
    }

    /// Whether its kernel has a value in registers that it reads of longer rows, or of a table.
    pub(super) fn reads_rows_of(&self, value: Val<'c>) -> bool {
        let is_sliced = self.sliced.iter().any(|(own, _)| *own == value);
        is_sliced || self.lookups.iter().any(|(own, _)| *own == value)
    }

    /// The tensors in memory that it reads.
    pub(super) fn read(&self) -> Vec<Val<'c>> {
        let of = |value: &Val<'c>| {
            let sliced = self.sliced.iter().find(|(own, _)| own == value);
            let lookup = self.lookups.iter().find(|(own, _)| own == value);
            let from = sliced.map(|(_, own)| own.from);
            from.or(lookup.map(|(_, own)| own.table)).unwrap_or(*value)
        };
        let inputs = self.inputs.iter().map(|(value, _)| of(value));
        inputs.chain(self.tables.iter().copied()).collect()
    }

    /// Forms the result of an operator that is formed again; `None` when it is rather read.
    pub(super) fn form(&mut self, op: Op<'c>, value: Val<'c>, kind: Kind) -> Option<bool> {
        if splat(op).is_some() || name(op) == ops::FILL {
            return Some(true);
        }
        if let Some(nest) = Pointwise::of(op) {
            return (self.takes_loops && nest.is_formed_again()).then_some(true);
        }
        if let (Kind::Pairs(pairs), Some(columns)) = (kind, self.columns())
            && let Some(side) = Side::of(op, columns)
        {
            return Some(side.pairs == pairs && self.pull(side.table, Kind::Full));
        }
        let from = source(op)?;
        if is_reshape(op) {
            // A cast that says an extent stays outside: what it casts has a size of another kind.
            let dynamic = |value| Size::of(value).is_some_and(|size: Size| size.dynamic);
            let same = name(op) != "tensor.cast" || dynamic(from) == dynamic(value);
            return same.then(|| self.pull(from, kind));
        }
        if name(op) == ops::CAST && (kind != Kind::Full || is_widening(op)) {
            return Some(self.pull(from, kind));
        }
        if is_formed_by_readers(op, kind) {
            return Some(operands(op).into_iter().all(|from| self.pull(from, kind)));
        }
        if kind == Kind::Full && self.again.contains(&identity(value)) {
            return self.form_again(op, value).then_some(true);
        }
        if name(op) != ops::BROADCAST {
            return None;
        }
        if place_of(op, value) == Place::Unit {
            return Some(self.pull(from, kind));
        }
        match broadcast_of(op, value, self.cut) {
            Some((of, cut)) if kind == Kind::Full && self.set_cut(cut) => Some(self.pull(from, of)),
            _ if kind == Kind::Full && self.takes_loops && is_static(from) && is_static(value) => {
                // The innermost added dimensions are rows of their own, where nothing else says what rows are.
                let own = || repeated_along(op, value).map(Cut::rows_of);
                self.cut = self.cut.or_else(own);
                Some(self.reads(vec![from]))
            }
            _ if kind == Kind::Full && self.takes_table(op, value) => Some(self.reads(vec![from])),
            _ => None,
        }
    }

    /// Whether the epilogue of a product loads what a broadcast repeats between its rows.
    fn takes_table(&self, op: Op<'c>, value: Val<'c>) -> bool {
        let between = self.columns().map(|own| Between::of(op, value, own));
        self.takes_tables && source(op).is_some_and(is_static) && between.flatten().is_some()
    }

    /// Forms an elementwise operator of another kernel here too. False where that would read more than its result, unless nothing
    /// else reads that.
    fn form_again(&mut self, op: Op<'c>, value: Val<'c>) -> bool {
        let mut trial = self.clone();
        if !operands(op)
            .into_iter()
            .all(|operand| trial.pull(operand, Kind::Full))
        {
            return false;
        }
        let alone = users(value).len() == 1;
        let fits = alone || trial.read_bytes() - self.read_bytes() <= bytes(value);
        if fits {
            *self = trial;
        }
        fits
    }

    /// Bytes of an element of each tensor that it reads all of.
    fn read_bytes(&self) -> i64 {
        let full = self.inputs.iter().filter(|(_, kind)| *kind == Kind::Full);
        full.map(|(input, _)| bytes(*input)).sum()
    }

    /// The same operators and a reduction of rows of other columns than those that the group has so far.
    pub(super) fn cut_otherwise(&self, op: Op<'c>) -> Option<Self> {
        let cut = strided::rows_of(op)?;
        let tiles = matches!(self.root, Root::Tiles) && self.takes_loops;
        if !tiles || self.cut.is_none_or(|own| own == cut) {
            return None;
        }
        let mut otherwise = Self {
            position: self.position,
            apart: self.apart.clone(),
            takes_loops: true,
            cut: Some(cut),
            ..Self::new(self.root, self.total, None)
        };
        let mut all = self.owned.iter().chain([&op]);
        all.all(|own| otherwise.join(*own)).then_some(otherwise)
    }

    /// The product and the columns of its blocks, where an operator would be a reduction of those.
    pub(super) fn reduced(&self, op: Op<'c>) -> Option<(Op<'c>, i64)> {
        match (self.root, place_of(op, source(op)?)) {
            (Root::Gemm(product), Place::Inner(columns)) if name(op) == ops::REDUCE => {
                Some((product, columns))
            }
            _ => None,
        }
    }

    /// Takes loops into the kernel whose points are formed of pairs of its columns. False, with the group in disorder, when they do
    /// not fit.
    pub(super) fn join_pairs(&mut self, op: Op<'c>, paired: &Paired<'c>) -> bool {
        let (kind, Some(result)) = (Kind::Pairs(paired.pairs), only_result(op)) else {
            return false;
        };
        let mut needs = paired.needs().into_iter();
        if !self.takes_pairs()
            || !self.fits(result, kind)
            || !needs.all(|(value, kind)| self.pull(value, kind))
        {
            return false;
        }
        self.formed.insert((identity(result), kind));
        self.owned.push(op);
        true
    }

    /// Whether elements can be formed of pairs of its columns: a block's are not in one subtile, and two products have others.
    fn takes_pairs(&self) -> bool {
        self.second.is_none() && !self.forms(|kind| matches!(kind, Kind::Blocks(_)))
    }

    /// Whether loops that take one column of each pair can be formed in the kernel, which stores nothing of the result then. Neighbours of
    /// other tensors of its size, of as many rows, are not read.
    pub(super) fn takes_side(&self, side: &Side<'c>) -> bool {
        let Root::Gemm(product) = self.root else {
            return false;
        };
        let mut trial = self.clone();
        let is_formed = self.takes_pairs() && trial.pull(side.table, Kind::Full);
        let read = trial.inputs.iter().filter(|(_, kind)| *kind == Kind::Full);
        let is_alone = side.pairs == Pairs::Halves || read.count() == operands(product).len();
        is_formed && is_alone && self.owned.iter().all(|op| self.is_read_here(*op, side))
    }

    /// Whether what an operator gives is read by others of the kernel and by loops that take columns of pairs alone.
    fn is_read_here(&self, op: Op<'c>, side: &Side<'c>) -> bool {
        let mut left = results(op);
        while let Some(value) = left.pop() {
            for user in users(value) {
                let loops = user.parent_operation().filter(|op| is_nest(*op));
                match loops {
                    Some(loops) if self.columns().is_some_and(|all| side.has(loops, all)) => {}
                    None if is_reshape(user) => left.extend(results(user)),
                    None if self.owned.contains(&user) => {}
                    _ => return false,
                }
            }
        }
        true
    }

    /// The group of two products of the same rows, with what follows both, and an operator that reads of both. None where they are not such,
    /// or do not fit.
    pub(super) fn dual(&self, other: &Self, op: Op<'c>) -> Option<Self> {
        let (Root::Gemm(first), Root::Gemm(second)) = (self.root, other.root) else {
            return None;
        };
        let is_one = |group: &Self| {
            group.second.is_none()
                && group.forms(|kind| kind == Kind::Full)
                && !group.forms(is_several)
        };
        let same = is_one(self) && is_one(other) && is_same_rows(first, second);
        let (result, b) = (only_result(second)?, *operands(second).get(1)?);
        let mut group = Self {
            second: Some(second),
            ..self.clone()
        };
        group.inputs.push((b, Kind::Full));
        group.formed.insert((identity(result), Kind::Full));
        group.owned.push(second);
        group.apart.extend(other.apart.iter().cloned());
        let mut more = other
            .owned
            .iter()
            .filter(|own| **own != second)
            .chain([&op]);
        (same && more.all(|own| group.join(*own))).then_some(group)
    }

    /// Whether the kernel forms a value of such a kind.
    fn forms(&self, is_wanted: impl Fn(Kind) -> bool) -> bool {
        self.formed.iter().any(|(_, kind)| is_wanted(*kind))
    }

    /// Adds tensors that bodies read anywhere. False when the kernel forms one of them.
    fn reads(&mut self, tables: Vec<Val<'c>>) -> bool {
        let own = |table: &Val<'c>| bases(*table).into_iter().any(|base| self.owns(base));
        if tables.iter().any(own) {
            return false;
        }
        for table in tables {
            if !self.tables.contains(&table) {
                self.tables.push(table);
            }
        }
        true
    }

    /// Takes an operator into the kernel. False, with the group in disorder, when it does not fit.
    pub(super) fn join(&mut self, op: Op<'c>) -> bool {
        let (Some(from), &[result]) = (source(op), &results(op)[..]) else {
            return false;
        };
        if name(op) != ops::REDUCE {
            let kinds: &[Kind] = match self.root {
                Root::Columns(_) => &[Kind::Column],
                Root::Gemm(_) if self.takes_pairs() => &[
                    Kind::Full,
                    Kind::Row,
                    Kind::Column,
                    Kind::Pairs(Pairs::Halves),
                    Kind::Pairs(Pairs::Interleaved),
                ],
                _ => &[Kind::Full, Kind::Row, Kind::Column],
            };
            return self.join_as(op, kinds);
        }
        let kind = {
            let Some(cut) = strided::rows_of(op) else {
                return false;
            };
            let blocks = || {
                let has_pairs = self.forms(|kind| matches!(kind, Kind::Pairs(_)));
                let is_one = self.second.is_none() && !has_pairs;
                !cut.is_strided() && is_one && self.has_blocks(cut.columns)
            };
            let kind = match self.root {
                Root::Gemm(_) => blocks().then_some(Kind::Blocks(cut.columns)),
                Root::Tiles => self.set_cut(cut).then_some(Kind::Row),
                _ => None,
            };
            kind.filter(|_| self.pull(from, Kind::Full))
        };
        let Some(kind) = kind else { return false };
        self.formed.insert((identity(result), kind));
        self.owned.push(op);
        true
    }

    /// Takes an elementwise operator into the kernel as the first of these kinds that fits. False, with the group in disorder, when none does.
    fn join_as(&mut self, op: Op<'c>, kinds: &[Kind]) -> bool {
        let &[result] = &results(op)[..] else {
            return false;
        };
        let (read, tables) = match Pointwise::of(op) {
            Some(nest) if self.takes_loops => (nest.inputs, nest.tables),
            Some(_) => return false,
            None => (operands(op), Vec::new()),
        };
        if !self.reads(tables) {
            return false;
        }
        let kind = kinds.iter().copied().find(|kind| {
            let mut trial = self.clone();
            let joined =
                self.fits(result, *kind) && read.iter().all(|operand| trial.pull(*operand, *kind));
            if joined {
                *self = trial;
            }
            joined
        });
        let Some(kind) = kind else { return false };
        self.formed.insert((identity(result), kind));
        self.owned.push(op);
        true
    }
}

/// Whether elements are of several columns.
const fn is_several(kind: Kind) -> bool {
    matches!(kind, Kind::Blocks(_) | Kind::Pairs(_))
}

/// Whether products are of the same rows, and alike otherwise: A, types, extents and order.
fn is_same_rows(first: Op<'_>, second: Op<'_>) -> bool {
    let read = |op| operands(op).into_iter().take(2).collect::<Vec<_>>();
    let types = |op| {
        let all = read(op).into_iter().chain(results(op));
        all.map(|value| value.r#type()).collect::<Vec<_>>()
    };
    let flags = |op: Op<'_>| ["trans_a", "trans_b"].map(|name| op.has_attribute(name));
    let is_plain = |op| name(op) == ops::GEMM && operands(op).len() == 2;
    is_plain(first)
        && is_plain(second)
        && read(first).first() == read(second).first()
        && types(first) == types(second)
        && flags(first) == flags(second)
}

/// Elements of the last dimensions of a broadcast, where it adds those.
pub(super) fn repeated_along(op: Op<'_>, value: Val<'_>) -> Option<i64> {
    let shape = TensorType::of_value(value)?.shape;
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
    let kept = |(dim, extent): &(i64, &i64)| **extent != 1 && !dims.contains(dim);
    let last = (0i64..).zip(&shape).filter(kept).last();
    let behind = last.map_or(0, |(dim, _)| usize::try_from(dim + 1).unwrap_or(0));
    let columns = product(shape.get(behind..)?)?;
    (columns > 1).then_some(columns)
}

fn is_static(value: Val<'_>) -> bool {
    TensorType::of_value(value).is_some_and(|tensor| !tensor.shape.contains(&DYNAMIC))
}

/// Bytes of an element of a tensor.
fn bytes(value: Val<'_>) -> i64 {
    TensorType::of_value(value).map_or(0, |tensor| element_bytes(tensor.element))
}
