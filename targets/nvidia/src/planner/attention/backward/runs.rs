//! The blocks of queries that see keys of a block: those whose keys are all seen, and those before and behind them in which some
//! are hidden. Lengths and labels may say it, which are data.

use super::super::crossed::some_see_none;
use super::super::lengths::{OfTile, with_length};
use super::super::segments::Seen;
use super::config::ROWS;
use crate::planner::problem::count;
use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::attention::Empty;
use axe_passes::fuse::attention::visible::{Edge, Length, Visible};
use axe_passes::ir::{Int, Val};

/// Blocks `[first, end)` of queries, and whether some of their keys are hidden by their index.
#[derive(Clone, Copy)]
pub(super) struct Run<'c> {
    pub first: Val<'c>,
    pub end: Val<'c>,
    pub masked: bool,
}

/// What blocks of keys are cut by.
#[derive(Clone, Copy)]
pub(super) struct Cut<'a> {
    pub visible: &'a Visible,
    /// Queries and keys of a problem.
    pub rows: i64,
    pub keys: i64,
    /// Keys of a block.
    pub block: i64,
    pub empty: Empty,
    /// Whether labels leave each row a key, as far as it is known.
    pub sees_some: bool,
    /// Whether a block with queries behind the last one is a masked one.
    pub tail: bool,
}

/// A block of keys of a problem: its first key, and what is data of the problem.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, 'c> {
    pub key: Val<'c>,
    pub lengths: &'a OfTile<'c>,
    /// The queries that some of its keys' labels leave, and those that all do.
    pub seen: Option<Seen<'c>>,
}

/// Which edge a bound is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    From,
    To,
    Rows,
}

/// Whether the kernel of gradients takes a mask.
///
/// # Errors
/// Why not.
pub(super) fn checked(visible: &Visible) -> Result<(), String> {
    let far = |edge: &Edge| edge.start.abs() >= 1 << 30;
    match visible.edges().any(far) {
        true => Err("its mask compares rows and keys with numbers that are too large".to_owned()),
        false => Ok(()),
    }
}

impl Cut<'_> {
    /// All edges, and by which factor the row counts in what is not negative where a row sees a key.
    fn sides(&self) -> impl Iterator<Item = (Side, Edge, i64)> {
        let visible = self.visible;
        let from = visible
            .from
            .iter()
            .map(|edge| (Side::From, *edge, -edge.per_row));
        let to = visible
            .to
            .iter()
            .map(|edge| (Side::To, *edge, edge.per_row));
        let rows = visible
            .rows
            .iter()
            .map(|edge| (Side::Rows, *edge, edge.per_row));
        from.chain(to).chain(rows)
    }

    /// The runs of a block of keys: at most three, in order.
    pub(super) fn runs<'c>(
        &self,
        code: Code<'c>,
        block: Block<'_, 'c>,
    ) -> PassResult<'c, Vec<Run<'c>>> {
        let blocks = count(self.rows, ROWS);
        let [some, all] = self.queries(code, block)?;
        let rows = code.index(ROWS)?;
        let end = code.ceil_div(some[1], ROWS)?;
        let first = code.min(code.div(some[0], rows)?, end)?;
        let end = code.min(end, code.index(blocks)?)?;
        let whole = code.ceil_div(all[0], ROWS)?;
        let whole = clamp(code, whole, [first, end])?;
        let behind = clamp(code, code.div(all[1], rows)?, [whole, end])?;
        let of = |first, end, masked| Run { first, end, masked };
        let by_label = !self.visible.segments.is_empty();
        let mut found = Vec::new();
        if by_label || self.sides().any(|(_, _, factor)| factor >= 0) {
            found.push(of(first, whole, true));
        }
        found.push(of(whole, behind, false));
        if by_label || self.has_tail() || self.sides().any(|(_, _, factor)| factor < 0) {
            found.push(of(behind, end, true));
        }
        Ok(found)
    }

    pub(super) fn has_tail(&self) -> bool {
        self.tail && self.rows % ROWS != 0
    }

    /// The queries that see some of a block's keys, and those that see all, within all queries.
    fn queries<'c>(
        &self,
        code: Code<'c>,
        block: Block<'_, 'c>,
    ) -> PassResult<'c, [[Val<'c>; 2]; 2]> {
        let (zero, rows) = (code.index(0)?, code.index(self.rows)?);
        let last = match self.has_tail() {
            true => rows,
            false => code.index(count(self.rows, ROWS) * ROWS)?,
        };
        let (mut some, mut all) = ([zero, rows], [zero, last]);
        if let Some([first, end, whole, behind]) = block.seen {
            all = [whole, behind];
            if self.empty == Empty::Zero || self.sees_some {
                some = [first, end];
            }
        }
        for (side, edge, factor) in self.sides() {
            let own = self.constant(code, block, (side, edge), false)?;
            some = bounded(code, some, (own, factor), rows)?;
            let own = self.constant(code, block, (side, edge), true)?;
            all = bounded(code, all, (own, factor), last)?;
        }
        if self.empty != Empty::Zero && self.visible.has_lengths() {
            let ends = [zero, code.index(self.rows - 1)?];
            let keys = code.index(self.keys)?;
            let none = some_see_none(code, self.visible, (ends, keys), block.lengths)?;
            some = [
                code.choose(none, [zero, some[0]])?,
                code.choose(none, [rows, some[1]])?,
            ];
        }
        for (range, end) in [(&mut some, rows), (&mut all, last)] {
            for own in range {
                *own = clamp(code, *own, [zero, end])?;
            }
        }
        Ok([some, all])
    }

    /// What is added to the row times its factor: not negative in all where a row sees some key of the block (or all of them).
    fn constant<'c>(
        &self,
        code: Code<'c>,
        block: Block<'_, 'c>,
        (side, edge): (Side, Edge),
        all: bool,
    ) -> PassResult<'c, Val<'c>> {
        let Edge { start, length, .. } = edge;
        let last = if (side == Side::To) == all {
            self.block - 1
        } else {
            0
        };
        let negated = length.map(|own| Length {
            factor: -own.factor,
            ..own
        });
        let (own, length) = match side {
            // key < factor * row + start
            Side::To => (code.sub(code.index(start - 1 - last)?, block.key)?, length),
            // key >= start - factor * row
            Side::From => (code.add(block.key, code.index(last - start)?)?, negated),
            Side::Rows => (code.index(start)?, length),
        };
        with_length(code, own, length, block.lengths)
    }
}

/// The rows of a range for which `factor * row + constant` is not negative, of so many.
fn bounded<'c>(
    code: Code<'c>,
    [first, end]: [Val<'c>; 2],
    (constant, factor): (Val<'c>, i64),
    rows: Val<'c>,
) -> PassResult<'c, [Val<'c>; 2]> {
    let index = code.builder.index_type();
    let (zero, one) = (code.index(0)?, code.index(1)?);
    match factor {
        1 => {
            let least = code.sub(zero, constant)?;
            let first = code
                .builder
                .value("arith.maxsi", &[first, least], index, &[])?;
            Ok([first, end])
        }
        -1 => {
            let most = code.add(constant, one)?;
            let end = code
                .builder
                .value("arith.minsi", &[end, most], index, &[])?;
            Ok([first, end])
        }
        _ => {
            let none = code
                .builder
                .ints()
                .less(Int::Value(constant), Int::Value(zero))?;
            Ok([code.choose(none, [rows, first])?, end])
        }
    }
}

/// A value between two others.
fn clamp<'c>(
    code: Code<'c>,
    value: Val<'c>,
    [least, most]: [Val<'c>; 2],
) -> PassResult<'c, Val<'c>> {
    let index = code.builder.index_type();
    let above = code
        .builder
        .value("arith.maxsi", &[value, least], index, &[])?;
    code.builder
        .value("arith.minsi", &[above, most], index, &[])
}
