//! What scores read in the kernel of gradients: the description of the forward pass, with blocks that are keys by queries.

use super::super::lengths::{self, Lengths, OfTile};
use super::super::memory::Strides;
use super::super::score::{BY_KEY, Input, OfProblem, Scores};
use super::super::segments::{Seen, Table};
use super::super::sizes::Sizes;
use super::config::ROWS;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::term::{Id, Term};
use axe_passes::fuse::attention::visible::{Segments, sees_some};
use axe_passes::fuse::attention::{Attention, Backward, Empty, Extents, Read};
use axe_passes::fuse::registers::Registers;
use axe_passes::ir::Val;
use std::mem::swap;

/// The scores of gradients.
pub(super) struct Scored<'c> {
    /// The forward pass, with the derivative among its terms.
    pub attention: Attention<'c>,
    /// What the gradient of a score is multiplied by beside `P (dP - D)`.
    pub derivative: Option<Id>,
    /// What its scores read, keys by queries.
    pub inputs: Vec<Strides>,
    /// The numbers of blocks of keys, where labels are compared, and the attention whose rows are keys that they are formed of.
    pub table: Option<(Table, Attention<'c>)>,
    /// Whether its masks are known to leave each row a key.
    pub sees_some: bool,
}

/// What a kernel has of scores' data.
pub(super) struct Data<'a, 'c> {
    pub scores: Scores<'a, 'c>,
    lengths: Vec<Lengths<'c>>,
    table: Option<(&'a Table, Val<'c>)>,
}

/// What is data of a problem and a block of keys.
#[derive(Clone, Copy)]
pub(super) struct Own<'c> {
    pub batch: Val<'c>,
    pub lengths: OfTile<'c>,
    pub values: OfProblem<'c>,
    pub seen: Option<Seen<'c>>,
}

/// The tensors that scores read, as blocks of keys by queries.
pub(super) fn inputs(attention: &Attention<'_>) -> Result<Vec<Strides>, String> {
    let Extents {
        batch, rows, keys, ..
    } = attention.extents;
    let of = |read| Strides::of(read, batch, [(Var::Key, keys), (Var::Row, rows)]);
    let why = "no one stride leads from row to row, or from key to key, of what its scores read";
    let all = attention.inputs.iter();
    all.map(|read| of(read).ok_or_else(|| why.to_owned()))
        .collect()
}

/// Registers of a consumer's thread for what scores of 128 keys read, and for weights beside what gradients are formed with.
pub(super) fn registers(backward: &Backward<'_>) -> i64 {
    let own = &backward.forward;
    let has = |read: &Read<'_>, var: Var| read.steps.iter().any(|step| step.digit.var == var);
    let of_block = 128 * ROWS / 256;
    let inputs =
        own.inputs.iter().map(
            |read| match [Var::Row, Var::Key].map(|var| has(read, var)) {
                [true, true] => of_block,
                [true, false] => ROWS / 4,
                _ => 0,
            },
        );
    let mut terms = own.terms.clone();
    let is_apart = backward.derivative(&mut terms).is_some()
        || matches!(backward.empty, Empty::Mean { chosen: true });
    inputs.sum::<i64>() + if is_apart { of_block / 2 } else { 0 }
}

impl<'c> Scored<'c> {
    /// Those of gradients, whose kernel has blocks of so many keys.
    pub(super) fn new(backward: &Backward<'c>, keys: i64) -> Result<Self, String> {
        let mut attention = backward.forward.clone();
        let derivative = backward.derivative(&mut attention.terms);
        let exchanged = exchanged(&attention);
        let table = Table::of(&exchanged, keys).map(|table| (table, exchanged));
        let Extents { rows, keys, .. } = attention.extents;
        Ok(Self {
            inputs: inputs(&attention)?,
            sees_some: sees_some(&attention.terms, attention.weights.score, [rows, keys]),
            attention,
            derivative,
            table,
        })
    }

    /// Whether more than products and masks is in its scores: they may then be anything behind the last query.
    pub(super) fn is_more(&self) -> bool {
        *self.attention.terms.get(self.attention.bare) != Term::Score
    }

    /// The labels of keys and of queries, pair after pair, by their numbers among the inputs.
    pub(super) fn labels(&self) -> Vec<usize> {
        let all = self.table.iter();
        let pairs = all.flat_map(|(_, own)| &own.visible.segments);
        pairs.flat_map(|own| [own.rows, own.keys]).collect()
    }

    /// Tensors that the kernel reads for them.
    pub(super) fn arguments(&self) -> usize {
        let own = &self.attention;
        own.inputs.len() + own.lengths.len() + usize::from(self.table.is_some())
    }

    /// What a kernel has of these arguments.
    pub(super) fn data<'a>(
        &'a self,
        code: Code<'c>,
        arguments: &[Val<'c>],
        (registers, sizes): (&'a Registers, &'a Sizes<'c>),
    ) -> PassResult<'c, Data<'a, 'c>> {
        let attention = &self.attention;
        let lost = || layout_error(code.builder.location, "a kernel has what its scores read");
        let (inputs, rest) = arguments
            .split_at_checked(attention.inputs.len())
            .ok_or_else(lost)?;
        let (lengths, table) = rest
            .split_at_checked(attention.lengths.len())
            .ok_or_else(lost)?;
        let inputs = self.inputs.iter().zip(inputs);
        let inputs = inputs.map(|(strides, argument)| Input::new(code, strides, *argument, sizes));
        Ok(Data {
            scores: Scores {
                attention,
                dims: BY_KEY,
                registers,
                inputs: inputs.collect::<PassResult<_>>()?,
                sizes,
            },
            lengths: Lengths::of(attention, lengths, sizes),
            table: self
                .table
                .as_ref()
                .map(|(table, _)| table)
                .zip(table.first().copied()),
        })
    }
}

impl<'c> Data<'_, 'c> {
    /// What is data of a problem and the block of keys of a number.
    pub(super) fn of(
        &self,
        code: Code<'c>,
        [batch, number]: [Val<'c>; 2],
    ) -> PassResult<'c, Own<'c>> {
        Ok(Own {
            batch,
            lengths: lengths::load(code, &self.lengths, batch)?,
            values: self.scores.values(code, batch)?,
            seen: match self.table {
                Some((table, memref)) => Some(table.load(code, memref, [batch, number])?),
                None => None,
            },
        })
    }
}

/// The same with rows for keys, and keys for rows, as far as labels are read.
fn exchanged<'c>(attention: &Attention<'c>) -> Attention<'c> {
    let mut own = attention.clone();
    swap(&mut own.extents.rows, &mut own.extents.keys);
    for step in own.inputs.iter_mut().flat_map(|read| &mut read.steps) {
        step.digit.var = match step.digit.var {
            Var::Row => Var::Key,
            Var::Key => Var::Row,
            other => other,
        };
    }
    for Segments { rows, keys } in &mut own.visible.segments {
        swap(rows, keys);
    }
    own
}
