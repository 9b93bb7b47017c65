//! The two products, read: their operands as views of tensors in memory, and where the result lies.

use super::index::{self, Digit, Index, Place, Var};
use super::narrow::{element_of, is_e4m3};
use super::read::{
    Extents, Operand, Product, Read, Reader, Reading, number, static_shape, stop, through,
};
use super::slice::Slice;
use super::term::{Id, Scalar, Term};
use super::weights;
use crate::fuse::nest::is_nest;
use crate::fuse::operators::splat;
use crate::fuse::space::source;
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{Op, TensorType, Val, attribute, types, walk};
use axe_dialect::Typed;
use axe_dialect::ops::{self, GemmOp};
use melior::ir::BlockRef;
use melior::ir::operation::OperationLike;
use std::collections::HashMap;

/// A product whose result has rows or keys first.
struct Sides<'c> {
    gemm: GemmOp<'c>,
    batch: Place,
    /// Whether its rows are those of the second operand.
    swapped: bool,
}

impl<'c> Sides<'c> {
    /// The operand that has the result's rows (or the other one), and its place at an index and one that is summed over.
    fn of(&self, rows: bool, index: &Index, over: &Index) -> (Val<'c>, Place) {
        let (value, over_first) = match rows != self.swapped {
            true => (self.gemm.a, self.gemm.trans_a),
            false => (self.gemm.b, !self.gemm.trans_b),
        };
        let own = match over_first {
            true => [over.clone(), index.clone()],
            false => [index.clone(), over.clone()],
        };
        (value, [self.batch.as_slice(), &own].concat())
    }
}

impl<'c> Reader<'c> {
    /// The first or the second product, where the place is its own.
    pub(super) fn product(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let Some(gemm) = GemmOp::of(op).filter(|gemm| gemm.acc.is_none_or(is_zero)) else {
            return Ok(None);
        };
        let Some(([m, n], batch)) = split_last(place) else {
            return Ok(None);
        };
        let (m, n) = (m.clone(), n.clone());
        let Extents {
            batch: problems,
            rows,
            keys,
            columns,
        } = self.extents;
        if index::canonical(batch.iter().flatten().copied()) != index::whole(Var::Batch, problems) {
            return Ok(None);
        }
        let row = index::whole(Var::Row, rows);
        let other = if op == self.second {
            index::whole(Var::Column, columns)
        } else {
            index::whole(Var::Key, keys)
        };
        let swapped = match (m == row && n == other, m == other && n == row) {
            (true, _) => false,
            (_, true) => true,
            _ => return Ok(None),
        };
        let Some(depth) = depth(&gemm) else {
            return Ok(None);
        };
        let sides = Sides {
            gemm,
            batch: batch.to_vec(),
            swapped,
        };
        match op == self.second {
            true => self.second_product(&sides, [row, other], depth),
            false => self.first_product(&sides, [row, other], depth),
        }
        .map(Some)
    }

    fn second_product(
        &mut self,
        sides: &Sides<'c>,
        [row, column]: [Index; 2],
        depth: i64,
    ) -> Reading<'c, Id> {
        let op = sides.gemm.op;
        let over = index::whole(Var::Key, self.extents.keys);
        let (weights, at) = sides.of(true, &row, &over);
        self.find_rounding(weights);
        let weight = self.element(weights, &at)?;
        let (values, at) = sides.of(false, &column, &over);
        let values = self.operand(op, values, at)?;
        self.product = Some(Product {
            op,
            operands: vec![values],
            depth,
        });
        Ok(self.terms.add(Term::Product(weight), Scalar::Float))
    }

    fn first_product(
        &mut self,
        sides: &Sides<'c>,
        [row, key]: [Index; 2],
        depth: i64,
    ) -> Reading<'c, Id> {
        let op = sides.gemm.op;
        if self.scores.as_ref().is_some_and(|own| own.op != op) && self.gradients.is_none() {
            return stop(op, "there is another product before it");
        }
        // Gradients form the scores again, by a product of the same operands, and have one of their own.
        let mut found = None;
        for (over, term) in [(Var::Depth, Term::Score), (Var::Column, Term::Gradient)] {
            let over = index::whole(over, depth);
            let (queries, at) = sides.of(true, &row, &over);
            let queries = self.operand(op, queries, at)?;
            let (keys, at) = sides.of(false, &key, &over);
            let operands = vec![queries, self.operand(op, keys, at)?];
            let own = Product {
                op,
                operands,
                depth,
            };
            let known = match (&term, &mut self.gradients) {
                (Term::Score, _) => &mut self.scores,
                (_, Some(gradients)) => &mut gradients.product,
                (_, None) => break,
            };
            let known = known.get_or_insert_with(|| own.clone());
            if known.op == op || known.is_same(&own) {
                found = Some((term, own.operands));
                break;
            }
        }
        let Some((term, operands)) = found else {
            return stop(op, "there is another product before it");
        };
        let scale = operands.iter().map(|own| own.scale).product();
        let score = self.terms.add(term, Scalar::Float);
        let scale = self.terms.float(scale);
        Ok(self
            .terms
            .apply("arith.mulf", None, &[score, scale], Scalar::Float))
    }

    /// An operand of a product: the tensor of floats of 16 or 8 bits that it is a view of, times a number.
    pub(super) fn operand(
        &mut self,
        op: Op<'c>,
        value: Val<'c>,
        place: Place,
    ) -> Reading<'c, Operand<'c>> {
        let (mut value, mut place, mut scale) = (value, place, 1.0);
        let mut found: Option<Operand<'c>> = None;
        let mut passed = Vec::new();
        loop {
            let half = TensorType::of_value(value).is_some_and(|tensor| {
                types::is_float(tensor.element) && types::bits(tensor.element) == Some(16)
            });
            let byte = element_of(value).is_some_and(is_e4m3);
            if (half || byte)
                && let Some(read) = Read::of(value, &place)
            {
                found = Some(Operand {
                    read,
                    scale,
                    pages: None,
                });
                self.inner.extend(passed.drain(..));
            }
            // What is rounded to 8 bits is not what it was.
            let own = defining(value).filter(|own| !byte || name(*own) != ops::CAST);
            let Some(own) = own else { break };
            if (half || byte)
                && self.paged
                && is_nest(own)
                && let Some((read, pages)) = self.pages(own, &place)
            {
                self.inner.insert(number(own));
                found = Some(Operand {
                    read,
                    scale,
                    pages: Some(pages),
                });
                break;
            }
            let slice = Slice::of(own).filter(|_| (half || byte) && self.symbols.is_empty());
            let view = match &slice {
                Some(slice) => slice.through(&place),
                None => through(own, &place),
            };
            if let (Some(slice), None) = (&slice, &view)
                && let Some(read) = slice.read(&place)
            {
                self.inner.extend(passed.drain(..).chain([number(own)]));
                found = Some(Operand {
                    read,
                    scale,
                    pages: None,
                });
                break;
            }
            let step = match view {
                Some((from, at)) => Some((from, at, 1.0)),
                None => self
                    .scaled(own)
                    .map(|(from, factor)| (from, place.clone(), factor)),
            };
            let Some((from, at, factor)) = step else {
                break;
            };
            passed.push(number(own));
            (value, place, scale) = (from, at, scale * factor);
        }
        match found {
            Some(found) => Ok(found),
            None => stop(
                op,
                "an operand has no elements of f16, bf16 or f8E4M3FN in memory",
            ),
        }
    }

    /// What a conversion of floats, or a map, multiplies by a number.
    pub(super) fn scaled(&mut self, op: Op<'c>) -> Option<(Val<'c>, f64)> {
        let from = source(op)?;
        match name(op).as_str() {
            ops::CAST => {
                types::is_float(TensorType::of_value(from)?.element).then_some((from, 1.0))
            }
            ops::MAP => Some((from, self.factor(op)?)),
            _ => None,
        }
    }

    /// The number that a map multiplies its only operand by.
    fn factor(&mut self, op: Op<'c>) -> Option<f64> {
        let block = walk::blocks(op).first().copied()?;
        let arguments = walk::block_arguments(block);
        let &[argument] = arguments.as_slice() else {
            return None;
        };
        let before = self.terms.clone();
        // The element itself stands for a score, which no map of an operand has.
        let element = self.terms.add(Term::Score, Scalar::Float);
        let values = HashMap::from([(identity(argument), element)]);
        let yielded = self.yielded(op, block, values);
        let factor = yielded.and_then(|id| weights::factor_of(&mut self.terms, id, element));
        self.terms = before;
        factor
    }

    /// What a map's body yields first of these values.
    pub(super) fn yielded(
        &mut self,
        op: Op<'c>,
        block: BlockRef<'c, 'c>,
        mut values: HashMap<usize, Id>,
    ) -> Option<Id> {
        for inner in walk::operations(block) {
            if name(inner).ends_with(".yield") {
                return self.scalar(op, *operands(inner).first()?, &values).ok();
            }
            let id = self.operation(inner, &values).ok()?;
            values.insert(identity(*results(inner).first()?), id);
        }
        None
    }
}

/// Whether a value is zero everywhere.
pub(super) fn is_zero(value: Val<'_>) -> bool {
    let zero = |attribute| attribute::float(attribute) == Some(0.0);
    let Some(op) = defining(value) else {
        return false;
    };
    let filled = || {
        let scalar = source(op)
            .filter(|_| name(op) == ops::FILL)
            .and_then(defining)?;
        scalar.attribute("value").ok()
    };
    splat(op).or_else(filled).is_some_and(zero)
}

/// What a product sums over.
pub(super) fn depth(gemm: &GemmOp<'_>) -> Option<i64> {
    let shape = static_shape(gemm.a)?;
    let from_end = if gemm.trans_a { 2 } else { 1 };
    shape.get(shape.len().checked_sub(from_end)?).copied()
}

/// The last two indices, and those before.
fn split_last(place: &Place) -> Option<(&[Index; 2], &[Index])> {
    place
        .split_last_chunk::<2>()
        .map(|(rest, last)| (last, rest))
}

/// The place of a result in memory, as the place of the product that a chain of operators formed it of: `chain` ends with the
/// product's own result.
#[must_use]
pub fn place_in<'c>(chain: &[Val<'c>]) -> Option<Place> {
    let (last, _) = chain.split_first()?;
    let shape = static_shape(*last)?;
    let total = shape
        .iter()
        .try_fold(1i64, |total, extent| total.checked_mul(*extent))?;
    let mut place = index::regrouped(&[index::whole(Var::Element, total)], &shape)?;
    for pair in chain.windows(2) {
        let &[value, from] = pair else { return None };
        let op = defining(value)?;
        if [ops::CAST, ops::MAP].contains(&name(op).as_str()) {
            continue;
        }
        let (source, own) = through(op, &place)?;
        if source != from {
            return None;
        }
        place = own;
    }
    Some(place)
}

/// A result's place, of the digits that its product's indices are made of in memory: each named by a variable.
#[must_use]
pub fn named(indices: &[(Var, Index)], shape: &[i64]) -> Option<Place> {
    let mut digits = Vec::new();
    for (var, index) in indices {
        let mut stride = 1;
        for digit in index.iter().rev() {
            let own = Digit {
                var: *var,
                extent: digit.extent,
                stride,
            };
            digits.push((digit.stride, own));
            stride *= digit.extent;
        }
    }
    digits.sort_by_key(|(memory, _)| std::cmp::Reverse(*memory));
    let digits: Index = digits.into_iter().map(|(_, digit)| digit).collect();
    index::regrouped(&[digits], shape)
}
