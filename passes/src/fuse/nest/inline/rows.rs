//! What loops form of a row that they have points of, instead of reading what a kernel of rows stored for them: sums and largest elements,
//! and what is formed of these. Rows that are normalised and then moved (rotated, taken apart into heads) are read once so.

use super::again::Values;
use super::is_stored;
use super::readers::{elements, keeps_rows};
use crate::fuse::operators::{is_product, is_reshape, reshaped, splat};
use crate::ir::value::{defining, identity, name, only_result, operands, users};
use crate::ir::{Op, TensorType, Val, attribute, types};
use axe_dialect::ops::{self, FillOp};
use axe_dialect::{Combiner, Typed};
use melior::ir::operation::OperationLike;
use std::collections::HashSet;

/// Operators that form a value, at most.
const MOST_OPERATORS: usize = 48;

/// Rows of which loops have the points.
#[derive(Clone, Copy, Debug)]
pub struct PointsOfRows {
    /// Elements of a row.
    pub columns: i64,
    /// Points of the loops.
    pub points: i64,
    /// Bytes of an element of their result.
    pub bytes: i64,
    /// Operations of the body.
    pub operations: usize,
}

/// How a value that has an element a row is formed of the rows.
pub(super) struct OfRows<'c> {
    /// Elements of a row.
    pub columns: i64,
    /// The values that form it, and itself.
    pub values: HashSet<usize>,
    /// The reductions among them.
    pub reductions: Vec<Op<'c>>,
    rows: i64,
    /// Tensors of whole rows that are read.
    read: HashSet<usize>,
}

impl<'c> OfRows<'c> {
    /// None where the value is not formed of rows alone, or where its reductions are stored in any case, since others than loops which form
    /// `again` what they normalise read them.
    pub(super) fn of(value: Val<'c>, again: &Values) -> Option<Self> {
        let mut of = Self {
            columns: 0,
            values: HashSet::new(),
            reductions: Vec::new(),
            rows: elements(value),
            read: HashSet::new(),
        };
        of.row(value)?;
        let read = |op: &Op<'c>| only_result(*op).is_some_and(|sum| is_for_loops(sum, again));
        (of.read.len() == 1 && of.reductions.iter().all(read)).then_some(of)
    }

    /// What the elements of rows that a reduction reads are formed of beside rows: values that have an element a row.
    pub(super) fn read_by(&self, reduction: Op<'c>) -> Vec<Val<'c>> {
        let (mut next, mut seen, mut found) = (operands(reduction), HashSet::new(), Vec::new());
        while let Some(value) = next.pop() {
            if self.is_of_row(value) {
                found.push(value);
            } else if self.values.contains(&identity(reshaped(value)))
                && seen.insert(identity(value))
            {
                next.extend(defining(reshaped(value)).map(operands).unwrap_or_default());
            }
        }
        found
    }

    /// Whether it is formed of rows, and has an element for each.
    fn is_of_row(&self, value: Val<'c>) -> bool {
        self.values.contains(&identity(reshaped(value))) && elements(value) == self.rows
    }

    /// A value that has an element a row.
    fn row(&mut self, value: Val<'c>) -> Option<()> {
        let value = reshaped(value);
        if is_number(value) || self.values.contains(&identity(value)) {
            return Some(());
        }
        let op = defining(value).filter(|_| elements(value) == self.rows)?;
        match name(op).as_str() {
            ops::REDUCE => {
                let columns = columns_of(op)?;
                (self.columns == 0 || self.columns == columns).then_some(())?;
                self.columns = columns;
                self.element(*operands(op).first()?, false)?;
                self.reductions.push(op);
            }
            ops::MAP | ops::CAST | ops::BROADCAST => {
                let mut read = operands(op).into_iter();
                read.try_for_each(|value| self.row(value))?;
            }
            _ => return None,
        }
        self.values.insert(identity(value));
        (self.values.len() <= MOST_OPERATORS).then_some(())
    }

    /// A value of the rows' elements, in another order of rows below a transpose.
    fn element(&mut self, value: Val<'c>, turned: bool) -> Option<()> {
        let value = reshaped(value);
        if is_number(value) || self.values.contains(&identity(value)) {
            return Some(());
        }
        (elements(value) == self.rows.checked_mul(self.columns)?).then_some(())?;
        let Some(op) = defining(value).filter(|op| !is_stored(value) || is_turn(*op)) else {
            self.read.insert(identity(value));
            return (!defining(value).is_some_and(is_product)).then_some(());
        };
        let read = operands(op);
        match name(op).as_str() {
            ops::MAP | ops::CAST => {
                let mut read = read.into_iter();
                read.try_for_each(|value| self.element(value, turned))?;
            }
            ops::TRANSPOSE => self.element(*read.first()?, true)?,
            ops::BROADCAST => self.repeated(*read.first()?, turned)?,
            _ => return None,
        }
        self.values.insert(identity(value));
        (self.values.len() <= MOST_OPERATORS).then_some(())
    }

    /// A value that is repeated for elements of rows: along each of them, or, of memory, for all of them.
    fn repeated(&mut self, value: Val<'c>, turned: bool) -> Option<()> {
        match elements(value) == self.rows {
            true if !turned => self.row(value),
            true => None,
            false => (is_number(value) || is_stored(reshaped(value))).then_some(()),
        }
    }
}

/// The elements of a row that a reduction along rows reduces, in a type that it is formed in.
fn columns_of(op: Op<'_>) -> Option<i64> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
    let combiner = op.attribute("combiner").ok().and_then(Combiner::cast)?;
    let tensor = TensorType::of_value(*operands(op).first()?)?;
    let last = i64::try_from(tensor.shape.len()).ok()?.checked_sub(1)?;
    let is_wide = types::bits(tensor.element) >= Some(32);
    let is_known = types::is_float(tensor.element)
        && match combiner {
            Combiner::Add => is_wide,
            Combiner::Max | Combiner::Min => types::bits(tensor.element) >= Some(16),
            _ => false,
        };
    (is_known && dims == [last]).then(|| tensor.shape.last().copied())?
}

fn is_turn(op: Op<'_>) -> bool {
    name(op) == ops::TRANSPOSE && keeps_rows(op)
}

/// Whether all elements are a number of the function.
fn is_number(value: Val<'_>) -> bool {
    let value = reshaped(value);
    defining(value).and_then(splat).is_some() || FillOp::defining(value).is_some()
}

/// Whether nothing but what loops form again reads a value, or what is formed of it.
fn is_for_loops(value: Val<'_>, again: &Values) -> bool {
    users(value).into_iter().all(|user| {
        let Some(result) = only_result(user) else {
            return false;
        };
        let forms = [ops::MAP, ops::CAST, ops::BROADCAST, ops::REDUCE];
        let passes = is_reshape(user) || forms.contains(&name(user).as_str());
        again.formed.contains(&identity(result)) || passes && is_for_loops(result, again)
    })
}
