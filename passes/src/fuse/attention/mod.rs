//! Attention, found by algebra: a matrix product whose operand is weights that are formed of another product, row by row.
//!
//! The result is read as a term of elements ([`read`], [`term`]), through whatever operators lie between, with each index as
//! digits of the kernel's variables ([`index`]), so that views, transposes and repeated heads are steps in memory; the term is
//! factored into exponentials and factors of a row ([`weights`]), and its mask into edges of blocks ([`visible`]). The streamed
//! dimension is that of keys: the first product and the scores are inner, maximum, sum and second product are folds.
//!
//! Values inside have excess precision: rounding to f16 or bf16 and back, as programs write it between operators, is left out,
//! and the weights are rounded to the type of the values once, before they are multiplied and before they are divided by
//! their sum. Results are those of a result that is rounded to 16 bits; others are not taken. Of operands in 8 bits, weights are rounded
//! to those where the program rounds them.

mod backward;
mod body;
mod found;
mod gather;
pub mod index;
mod narrow;
pub mod pack;
mod product;
mod read;
mod slice;
mod sums;
pub mod term;
mod triangle;
pub mod visible;
pub mod weights;

pub use backward::{Backward, Empty, Given, Gradient, Logs};
pub use found::{Declined, Found};
pub use gather::Pages;
pub use narrow::is_e4m3;
pub use read::{Extents, Operand, Read};
pub use sums::RowSums;

use super::operators::is_product;
use super::symbolic::Symbols;
use crate::ir::value::{defining, name, operands};
use crate::ir::{DYNAMIC, Op, TensorType, Val};
use axe_dialect::ops;
use index::{Step, Var};
use melior::ir::Type;
use melior::ir::operation::OperationLike;
use read::{Reader, Stop};
use std::collections::{HashMap, HashSet};
use term::{Id, Label, Term, Terms};
use visible::Visible;
use weights::{Value, Weights};

/// Attention: `result = scale * sum_key w(row, key) values(key, column)`, weights by [`Weights`].
#[derive(Clone, Debug)]
pub struct Attention<'c> {
    /// The extents of its variables.
    pub extents: Extents,
    /// What the first product sums over.
    pub depth: i64,
    /// The operands of the first product, and that of the second.
    pub queries: Read<'c>,
    /// Keys.
    pub keys: Read<'c>,
    /// Values.
    pub values: Read<'c>,
    /// The result, and its steps in memory.
    pub result: Read<'c>,
    /// The type of the values' elements, and of the queries' and keys'.
    pub element: Type<'c>,
    /// The type of the result's elements.
    pub rounded: Type<'c>,
    /// The weights.
    pub weights: Weights,
    /// What the terms of the score are.
    pub terms: Terms,
    /// Tensors that the score reads: its [`Term::Input`]s, [`Term::Value`]s and [`Term::Label`]s; and those that results are multiplied by.
    pub inputs: Vec<Read<'c>>,
    /// Tensors of integers with one value a problem that it reads: its [`Term::Length`]s.
    pub lengths: Vec<Read<'c>>,
    /// The pages of keys and of values, where they are read through a table.
    pub pages: [Option<Pages<'c>>; 2],
    /// The keys that rows see, as far as indices say it.
    pub visible: Visible,
    /// The score without what indices say of keys.
    pub bare: Id,
    /// The second product.
    pub op: Op<'c>,
    /// The operators that it takes the place of.
    pub inner: HashSet<usize>,
    /// The logarithm of the sum of each row's exponentials, where the program reads it too.
    pub sums: Option<RowSums<'c>>,
    /// Whether gradients of the program want those logarithms, which are then left beside the result.
    pub keeps_sums: bool,
    /// What numbers of extents and steps stand for that are known at run time only.
    pub symbols: Symbols<'c>,
}

impl<'c> Attention<'c> {
    /// The tensors that it reads: queries, keys, values, those of the score, lengths, and tables of pages.
    pub fn reads(&self) -> impl Iterator<Item = Val<'c>> {
        let own = [&self.queries, &self.keys, &self.values].into_iter();
        let own = own.chain(&self.inputs).chain(&self.lengths);
        let own = own.chain(self.tables());
        own.map(|read| read.tensor)
    }

    /// The tables of pages of keys and of values.
    pub fn tables(&self) -> impl Iterator<Item = &Read<'c>> {
        self.pages.iter().flatten().map(|own| &own.table)
    }

    /// Whether both are of the same scores of the same queries, keys and values.
    fn is_same(&self, other: &Self) -> bool {
        let close = (self.weights.slope - other.weights.slope).abs() <= 1e-6 * self.weights.slope;
        let of = |own: &Self| {
            let empty = own.weights.empty_is_zero;
            let tensors = [&own.queries, &own.keys, &own.values].map(Clone::clone);
            let read = [&own.inputs, &own.lengths].map(Clone::clone);
            (
                own.extents,
                own.depth,
                (own.weights.score, empty),
                tensors,
                read,
            )
        };
        let paged = other.pages.iter().any(Option::is_some);
        close && !paged && of(self) == of(other) && self.terms == other.terms
    }

    /// The tensors that it forms: the result, and the logarithms of sums.
    pub fn results(&self) -> impl Iterator<Item = Val<'c>> {
        let sums = self.sums.iter().map(|sums| sums.read.tensor);
        std::iter::once(self.result.tensor).chain(sums)
    }
}

/// Reads a chain as attention. The error is none where it is nothing like it.
fn attention<'c>(
    op: Op<'c>,
    chain: &[Val<'c>],
    symbols: &Symbols<'c>,
    paged: bool,
) -> Result<Attention<'c>, Option<Stop<'c>>> {
    let result = *chain.first().ok_or(None)?;
    let tensor = TensorType::of_value(result).ok_or(None)?;
    if tensor.shape.contains(&DYNAMIC) {
        return Err(is_like(op).then(|| Stop {
            location: op.location(),
            why: "its extents are not known in those of the program's arguments".to_owned(),
        }));
    }
    let mut last = None;
    for swapped in [false, true] {
        let Some((extents, place, steps)) = places(op, chain, &tensor.shape, swapped) else {
            continue;
        };
        let mut reader = Reader::new(op, extents);
        reader.paged = paged;
        reader.symbols = symbols.clone();
        match settle(&mut reader, result, &place, steps) {
            Ok(attention) => return Ok(attention),
            Err(stopped) => last = last.or(stopped),
        }
    }
    Err(last.filter(|_| is_like(op)))
}

/// What the operands of a product are formed of, up to other products.
#[derive(Clone, Copy, Default)]
struct MadeOf {
    product: bool,
    fold: bool,
    exponential: bool,
}

impl MadeOf {
    fn of(op: Op<'_>) -> Self {
        let (mut next, mut seen) = (operands(op), HashSet::new());
        let mut found = Self::default();
        while let Some(value) = next.pop() {
            let Some(own) = defining(value).filter(|own| seen.insert(read::number(*own))) else {
                continue;
            };
            found.product |= is_product(own);
            found.fold |= name(own) == ops::REDUCE;
            let body = crate::ir::walk::nested(own, &|_| true);
            found.exponential |= body.into_iter().any(|op| name(op).starts_with("math.exp"));
            if !is_product(own) {
                next.extend(operands(own));
            }
        }
        found
    }
}

/// Whether an operand of a product is formed of another product by an exponential and a reduction.
fn is_like(op: Op<'_>) -> bool {
    let own = MadeOf::of(op);
    own.product && own.fold && own.exponential
}

/// The extents of a second product, and its result's place and steps; `swapped`, where its rows are the result's columns.
fn places<'c>(
    op: Op<'c>,
    chain: &[Val<'c>],
    shape: &[i64],
    swapped: bool,
) -> Option<(Extents, index::Place, Vec<Step>)> {
    let place = product::place_in(chain)?;
    let (last, batch) = place
        .split_last_chunk::<2>()
        .map(|(rest, last)| (last, rest))?;
    let [rows, columns] = if swapped {
        [&last[1], &last[0]]
    } else {
        [&last[0], &last[1]]
    };
    let batch = index::canonical(batch.iter().flatten().copied());
    let extent = |index: &index::Index| index.iter().map(|digit| digit.extent).product();
    let own = TensorType::of_value(*operands(op).first()?)?;
    let depth_at = own
        .shape
        .len()
        .checked_sub(if op.has_attribute("trans_a") { 2 } else { 1 })?;
    let extents = Extents {
        batch: extent(&batch),
        rows: extent(rows),
        keys: *own.shape.get(depth_at)?,
        columns: extent(columns),
    };
    let named = product::named(
        &[
            (Var::Batch, batch),
            (Var::Row, rows.clone()),
            (Var::Column, columns.clone()),
        ],
        shape,
    )?;
    let steps = index::access(&named, shape)?;
    Some((extents, named, steps))
}

/// The weights of the second product, and the sums of their rows where the program reads them, too.
type Formed<'c> = (Terms, Weights, Option<RowSums<'c>>);

/// What a second product's result is formed of.
fn formed<'c>(
    reader: &mut Reader<'c>,
    (result, id): (Val<'c>, Id),
    scores: Op<'c>,
) -> Result<Formed<'c>, weights::Why> {
    let mut candidates = sums::candidates(reader, result, scores);
    let mut terms = std::mem::take(&mut reader.terms);
    let Extents { rows, keys, .. } = reader.extents;
    let id = visible::with_infinity(&mut terms, id, [rows, keys], &reader.symbols);
    let (read, exponent) = weights::read(&mut terms, id)?;
    // What is written in the place of the program's low number is no logarithm that it would give.
    let is_low = |term: &Term| *term == Term::Float(visible::HIDDEN.to_bits());
    if terms.any(read.score, true, &is_low) {
        candidates.clear();
    }
    let of = (read.score, &exponent);
    let sums = sums::settle(&mut terms, candidates, of, ([rows, keys], &reader.symbols));
    Ok((terms, read, sums))
}

/// Attention, read of the term of a result; else why there is none, where something but its form stops it.
fn settle<'c>(
    reader: &mut Reader<'c>,
    result: Val<'c>,
    place: &index::Place,
    steps: Vec<Step>,
) -> Result<Attention<'c>, Option<Stop<'c>>> {
    let id = reader.element(result, place).map_err(Some)?;
    let (Some(product), Some(scores)) = (reader.product.clone(), reader.scores.clone()) else {
        return Err(None);
    };
    let stop = |why: String| {
        Some(Stop {
            location: product.op.location(),
            why,
        })
    };
    let (terms, read, sums) = formed(reader, (result, id), scores.op).map_err(stop)?;
    let [queries, keys] =
        <[Operand<'c>; 2]>::try_from(scores.operands.clone()).map_err(|_| None)?;
    let [values] = <[Operand<'c>; 1]>::try_from(product.operands.clone()).map_err(|_| None)?;
    let tensors = [&queries, &keys, &values].map(|operand| operand.read.tensor);
    if queries.pages.is_some() {
        return Err(stop("its queries are in pages".to_owned()));
    }
    let [element, rounded] =
        element_types(tensors, result, reader.rounding.is_some()).map_err(stop)?;
    let read_by = [&reader.inputs, &reader.lengths].map(Vec::as_slice);
    let (mut terms, [mut inputs, lengths], score) = compact(&terms, read.score, read_by);
    let values_of = compacted(&read.values, &reader.inputs, &mut inputs);
    let extents = [reader.extents.rows, reader.extents.keys];
    let visible = visible::visible(&terms, score, extents, &reader.symbols);
    let bare = visible::bare(&mut terms, score);
    Ok(Attention {
        extents: reader.extents,
        depth: scores.depth,
        pages: [keys.pages, values.pages.clone()],
        queries: queries.read,
        keys: keys.read,
        values: values.read.clone(),
        result: Read::whole(result, steps),
        element,
        rounded,
        weights: Weights {
            score,
            values: values_of,
            scale: read.scale * values.scale,
            ..read
        },
        terms,
        inputs,
        lengths,
        visible,
        bare,
        op: product.op,
        inner: std::mem::take(&mut reader.inner),
        sums,
        keeps_sums: false,
        symbols: reader.symbols.clone(),
    })
}

/// The element types of operands and result.
///
/// # Errors
/// Why no kernel has them.
fn element_types<'c>(
    operands: [Val<'c>; 3],
    result: Val<'c>,
    rounds_weights: bool,
) -> Result<[Type<'c>; 2], String> {
    let [queries, keys, values] = operands;
    let of = |value| narrow::element_of(value).ok_or("an operand is no tensor");
    let all = [of(queries)?, of(keys)?, of(values)?, of(result)?];
    narrow::element_types(all, rounds_weights)
}

/// The values of problems that results are multiplied by, by the numbers of their tensors among those that are kept, to which theirs are
/// added.
fn compacted<'c>(values: &[Value], from: &[Read<'c>], to: &mut Vec<Read<'c>>) -> Vec<Value> {
    let mut found = Vec::new();
    for value in values {
        let Some(read) = from.get(value.number) else {
            continue;
        };
        let number = to.iter().position(|own| own == read).unwrap_or(to.len());
        if number == to.len() {
            to.push(read.clone());
        }
        found.push(Value { number, ..*value });
    }
    found
}

/// Tensors that terms are elements of: inputs, and lengths.
type Tensors<T> = [T; 2];

/// The terms of a score alone, and the tensors that it reads.
fn compact<'c>(
    terms: &Terms,
    score: Id,
    tensors: Tensors<&[Read<'c>]>,
) -> (Terms, Tensors<Vec<Read<'c>>>, Id) {
    fn copy<'c>(
        from: &Terms,
        id: Id,
        tensors: Tensors<&[Read<'c>]>,
        to: &mut (Terms, Tensors<Vec<Read<'c>>>),
        known: &mut HashMap<Id, Id>,
    ) -> Id {
        if let Some(own) = known.get(&id) {
            return *own;
        }
        let scalar = from.scalar(id);
        let read = |at: usize, number: usize, to: &mut Tensors<Vec<Read<'c>>>| {
            to[at].extend(tensors[at].get(number).cloned());
            to[at].len().saturating_sub(1)
        };
        let own = match from.get(id) {
            Term::Input(number) => {
                let number = read(0, *number, &mut to.1);
                to.0.add(Term::Input(number), scalar)
            }
            Term::Value(number) => {
                let number = read(0, *number, &mut to.1);
                to.0.add(Term::Value(number), scalar)
            }
            Term::Label(label) => {
                let number = read(0, label.number, &mut to.1);
                to.0.add(Term::Label(Label { number, ..*label }), scalar)
            }
            Term::Length(number) => {
                let number = read(1, *number, &mut to.1);
                to.0.add(Term::Length(number), scalar)
            }
            Term::Apply(name, predicate, of) => {
                let operands: Vec<_> = of
                    .iter()
                    .map(|id| copy(from, *id, tensors, to, known))
                    .collect();
                to.0.add(Term::Apply(name.clone(), *predicate, operands), scalar)
            }
            Term::Fold(combiner, of) => {
                let of = copy(from, *of, tensors, to, known);
                to.0.add(Term::Fold(*combiner, of), scalar)
            }
            Term::Product(of) => {
                let of = copy(from, *of, tensors, to, known);
                to.0.add(Term::Product(of), scalar)
            }
            other => to.0.add(other.clone(), scalar),
        };
        known.insert(id, own);
        own
    }
    let mut to = (Terms::default(), [Vec::new(), Vec::new()]);
    let score = copy(terms, score, tensors, &mut to, &mut HashMap::new());
    (to.0, to.1, score)
}
