//! A group, read once: what its kernel takes, forms and gives. Nothing after this looks at the group again.

use super::between::Between;
use super::fold::{Fold, Stream};
use super::group::Group;
use super::lookup::Lookup;
use super::nest::Pointwise;
use super::operators::{captured, is_product, is_reshape};
use super::pairs;
use super::reshape::{element_bytes, shape_in};
use super::sliced::Sliced;
use super::space::{Cut, Kind, Place, Size, broadcast_of, place_of, source};
use crate::PassResult;
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, TensorType, Val};
use axe_dialect::ops;
use std::collections::HashSet;

/// What the kernel of a group takes, forms and gives.
#[derive(Clone, Debug)]
pub struct Fusion<'c> {
    /// Elements of the space.
    pub total: Size,
    /// Its columns; none where nothing ties elements to rows.
    pub cut: Option<Cut>,
    /// What is stored.
    pub outputs: Vec<(Val<'c>, Kind)>,
    /// Tensors of the space that are read.
    pub inputs: Vec<(Val<'c>, Kind)>,
    /// Those of them that are parts of longer rows.
    pub sliced: Vec<(Val<'c>, Sliced<'c>)>,
    /// Those of them that are rows which data names.
    pub lookups: Vec<(Val<'c>, Lookup<'c>)>,
    /// Tensors of which bodies read elements anywhere.
    pub tables: Vec<Val<'c>>,
    /// Scalars of the function that bodies read.
    pub scalars: Vec<Val<'c>>,
    /// What is summed up over the dimension that the kernel streams.
    pub folds: Vec<(Val<'c>, Fold)>,
    /// Bytes of the widest element that a thread keeps many of: not of values that rows have one of.
    pub widest: i64,
    seen: HashSet<(usize, Kind)>,
}

impl<'c> Fusion<'c> {
    /// What forming `outputs`, results of a group's operators, takes; with what a product starts from.
    ///
    /// # Errors
    /// At a reduction that cannot be read.
    pub fn read(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        start: Option<Val<'c>>,
    ) -> PassResult<'c, Self> {
        let kind_of = |value: &Val<'c>| {
            let formed = group.formed.iter();
            let kinds = formed.filter(|(formed, _)| *formed == identity(*value));
            Some((*value, kinds.map(|(_, kind)| *kind).min()?))
        };
        let outputs: Vec<_> = outputs.iter().filter_map(kind_of).collect();
        let mut fusion = Self {
            cut: group.cut,
            sliced: group.sliced.clone(),
            lookups: group.lookups.clone(),
            ..Self::storing(group.total, None, outputs.clone())
        };
        let start = start.map(|start| (start, Kind::Full));
        for (value, kind) in outputs.into_iter().chain(start) {
            fusion.add(group, value, kind)?;
        }
        Ok(fusion)
    }

    /// A kernel that stores values which it takes nothing more to form.
    #[must_use]
    pub fn storing(total: Size, columns: Option<i64>, outputs: Vec<(Val<'c>, Kind)>) -> Self {
        Self {
            total,
            cut: columns.map(Cut::rows_of),
            outputs,
            inputs: Vec::new(),
            sliced: Vec::new(),
            lookups: Vec::new(),
            tables: Vec::new(),
            scalars: Vec::new(),
            folds: Vec::new(),
            widest: 0,
            seen: HashSet::new(),
        }
    }

    /// Its columns, as a number.
    #[must_use]
    pub fn columns(&self) -> Option<i64> {
        self.cut.map(|cut| cut.columns)
    }

    /// Bytes of an element of each of these tensors that have one for each of the space.
    #[must_use]
    pub fn full_bytes(tensors: &[(Val<'c>, Kind)]) -> Vec<i64> {
        let full = tensors.iter().filter(|(_, kind)| *kind == Kind::Full);
        let types = full.filter_map(|(value, _)| TensorType::of_value(*value));
        types.map(|own| element_bytes(own.element)).collect()
    }

    /// Where an input lies whose rows are parts of longer ones.
    #[must_use]
    pub fn sliced(&self, value: Val<'c>, kind: Kind) -> Option<Sliced<'c>> {
        let mut all = self.sliced.iter();
        let own = all.find(|(own, _)| *own == value && kind == Kind::Full);
        own.map(|(_, sliced)| *sliced)
    }

    /// The table and the numbers of an input whose rows data names.
    #[must_use]
    pub fn lookup(&self, value: Val<'c>, kind: Kind) -> Option<Lookup<'c>> {
        let mut all = self.lookups.iter();
        let own = all.find(|(own, _)| *own == value && kind == Kind::Full);
        own.map(|(_, lookup)| *lookup)
    }

    /// Whether rows of what it reads lie apart from each other: those of longer ones, or of a table. Their tensors are not one piece of memory.
    #[must_use]
    pub fn reads_apart(&self) -> bool {
        !self.sliced.is_empty() || !self.lookups.is_empty()
    }

    /// The dimension that the kernel streams: that of its folds. A product's comes first, for no reduction joins it.
    #[must_use]
    pub fn stream(&self) -> Option<Stream> {
        self.folds.first().map(|(_, fold)| fold.over)
    }

    /// The shape of a value of a kind among rows of so many columns; with a batch, its number of products leads.
    #[must_use]
    pub fn shape(&self, columns: i64, batch: Option<[i64; 2]>, kind: Kind) -> Vec<i64> {
        shape_in(self.total, columns, batch, kind)
    }

    /// Adds what a value needs.
    fn add(&mut self, group: &Group<'c>, value: Val<'c>, kind: Kind) -> PassResult<'c> {
        if !self.seen.insert((identity(value), kind)) {
            return Ok(());
        }
        if let Some(tensor) = TensorType::of_value(value).filter(|_| kind != Kind::Row) {
            self.widest = self.widest.max(element_bytes(tensor.element));
        }
        if group.inputs.contains(&(value, kind)) {
            self.inputs.push((value, kind));
            if let Some(lookup) = self.lookup(value, kind) {
                self.add(group, lookup.numbers, Kind::Row)?;
            }
            return Ok(());
        }
        let Some(op) = defining(value) else {
            return Ok(());
        };
        let fold = Fold::of(op)?;
        self.folds.extend(fold.map(|fold| (value, fold)));
        if is_product(op) {
            return Ok(());
        }
        let nest = Pointwise::of(op);
        if nest.is_some() || [ops::MAP, ops::FILL].contains(&name(op).as_str()) {
            // What pairs are formed of is in the space.
            let nest = nest.filter(|_| !matches!(kind, Kind::Pairs(_)));
            for table in nest.map(|nest| nest.tables).unwrap_or_default() {
                if !self.tables.contains(&table) {
                    self.tables.push(table);
                }
            }
            for scalar in captured(op) {
                let constant = defining(scalar).is_some_and(|op| name(op) == "arith.constant");
                if !constant && !self.scalars.contains(&scalar) {
                    self.scalars.push(scalar);
                }
            }
        }
        let of = kind_of_source(op, (value, kind), self.cut);
        if name(op) == ops::BROADCAST && of.is_none() {
            self.tables
                .extend(source(op).filter(|from| !self.tables.contains(from)));
        }
        for (operand, kind) in needs(op, (value, kind), self.cut) {
            self.add(group, operand, kind)?;
        }
        Ok(())
    }
}

/// What the source of a broadcast to a value of a kind is in a space with these columns. None where its elements are taken from memory,
/// each at its index: the dimensions that it adds are neither all rows nor all columns.
pub(super) fn kind_of_source(
    op: Op<'_>,
    (value, kind): (Val<'_>, Kind),
    cut: Option<Cut>,
) -> Option<Kind> {
    match place_of(op, value) {
        Place::Unit => Some(kind),
        _ => broadcast_of(op, value, Some(cut?)).map(|(of, _)| of),
    }
}

/// Whether a value of a space with these columns is a number for each row.
#[must_use]
pub fn is_by_row(value: Val<'_>, cut: Cut) -> bool {
    let Some(op) = defining(value) else {
        return false;
    };
    match name(op).as_str() {
        ops::BROADCAST => match kind_of_source(op, (value, Kind::Full), Some(cut)) {
            Some(of) => of == Kind::Row,
            None => Between::of(op, value, cut.columns) == Some(Between::Element),
        },
        ops::CAST => source(op).is_some_and(|from| is_by_row(from, cut)),
        _ if is_reshape(op) => source(op).is_some_and(|from| is_by_row(from, cut)),
        _ => false,
    }
}

/// What forming a value needs, in the tile, of a space with these columns.
pub(super) fn needs<'c>(
    op: Op<'c>,
    (value, kind): (Val<'c>, Kind),
    cut: Option<Cut>,
) -> Vec<(Val<'c>, Kind)> {
    let of_kind = |values: Vec<Val<'c>>| values.into_iter().map(|value| (value, kind)).collect();
    if let (Kind::Pairs(_), Some(cut)) = (kind, cut)
        && let Some(own) = pairs::needs(op, cut.columns)
    {
        return own;
    }
    if let Some(nest) = Pointwise::of(op) {
        return of_kind(nest.inputs);
    }
    let Some(from) = source(op) else {
        return Vec::new();
    };
    match name(op).as_str() {
        ops::FILL => Vec::new(),
        ops::BROADCAST => {
            let of = kind_of_source(op, (value, kind), cut);
            of.into_iter().map(|of| (from, of)).collect()
        }
        ops::REDUCE => vec![(from, Kind::Full)],
        ops::MAP => of_kind(operands(op)),
        _ => vec![(from, kind)],
    }
}
