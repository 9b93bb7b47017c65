//! Attention's gradients, found by algebra: three matrix products of what is formed of two others, row by row. With the scores
//! `S = Q K^T`, the weights `P = softmax(S)` and `dP = dO V^T`,
//!
//! * `dV = P^T dO`;
//! * `dS = P (dP - D) f'`, where `D` is `rowsum(P dP)` ([`score`]) and `f'` what a score grows by with its product ([`derivative`]);
//!   `dQ = dS K` and `dK = dS^T Q`, each times a number.
//!
//! A product whose operand reads as P opens the search; those that read as dS of the same terms complete it. Gradients of keys and
//! values may be added up over the queries' heads that share them. The forward pass is what [`Attention`] says of the same scores;
//! what of it the program has is [`Given`].

mod derivative;
mod empty;
mod given;
mod polynomial;
mod result;
mod score;
mod sides;

pub use empty::Empty;
pub use given::{Given, Logs, OfGradients};

use super::index::{self, Var};
use super::read::{Extents, Product, Read, Reader, Stop, number};
use super::sums::readers;
use super::term::{Id, Terms};
use super::weights::{self, RowLog, Weights};
use super::{Attention, MadeOf, compact, element_types, visible};
use crate::fuse::operators::is_product;
use crate::fuse::symbolic::Symbols;
use crate::ir::value::defining;
use crate::ir::{Op, Val};
use melior::ir::operation::OperationLike;
use score::{OfScores, Products};
use sides::Sides;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A gradient as the program stores it.
#[derive(Clone, Debug)]
pub struct Gradient<'c> {
    /// The tensor, and its steps in memory by problem of the queries.
    pub read: Read<'c>,
    /// What the sums of products are multiplied by.
    pub scale: f64,
    /// Problems that follow each other and whose gradients are added up.
    group: i64,
}

/// The gradients of attention: `dV = sum_row P dO`, `dK = sum_row dS Q`, `dQ = sum_key dS K`, each times its scale.
#[derive(Clone, Debug)]
pub struct Backward<'c> {
    /// The weights: queries, keys, values, scores. Its result and sums are those of no operator.
    pub forward: Attention<'c>,
    /// The gradient of its result, with its columns.
    pub gradient: Read<'c>,
    /// Problems that follow each other and share the gradients of keys and values, which are added up over them.
    pub group: i64,
    /// dQ, dK, dV.
    pub results: [Gradient<'c>; 3],
    /// What rows have that see no key.
    pub empty: Empty,
    /// What the program has of the forward pass: without logarithms of sums, or with neither the result nor `rowsum(dO O)`, it is
    /// computed again.
    pub given: Given<'c>,
    /// The operators that it takes the place of.
    pub inner: HashSet<usize>,
}

impl<'c> Backward<'c> {
    /// The tensors that it reads: queries, keys, values, the gradient of the result, what scores read, and what is given.
    pub fn reads(&self) -> impl Iterator<Item = Val<'c>> {
        let own = &self.forward;
        let all = [&own.queries, &own.keys, &own.values, &self.gradient].into_iter();
        let all = all.chain(&own.inputs).chain(&own.lengths);
        all.chain(self.given.reads()).map(|read| read.tensor)
    }

    /// The same with the result and the logarithms of sums of a forward pass of the program, where that is its own.
    pub(super) fn sharing(&self, forward: &Rc<Attention<'c>>) -> Option<Self> {
        let is_whole = forward.weights.normalized && forward.weights.scale == 1.0;
        if self.given.logs.is_some() || !is_whole || !self.forward.is_same(forward) {
            return None;
        }
        let logs = match &forward.sums {
            Some(sums) => Logs::Read {
                read: sums.read.clone(),
                factor: 1.0 / sums.is.scale,
                offset: -sums.is.offset / sums.is.scale,
            },
            None => Logs::Kept(Rc::clone(forward)),
        };
        let result = self.given.result.clone();
        let given = Given {
            logs: Some(logs),
            result: Some(result.unwrap_or_else(|| forward.result.clone())),
            products: self.given.products.clone(),
        };
        Some(Self {
            given,
            ..self.clone()
        })
    }

    /// What the gradient of a score is multiplied by beside `P (dP - D)`: a term of the score's product, among the terms of the score; none
    /// where that is one number.
    pub fn derivative(&self, terms: &mut Terms) -> Option<Id> {
        derivative::derivative(terms, self.forward.weights.score)?.term(terms)
    }

    /// The tensors that it forms: dQ, dK, dV.
    pub fn formed(&self) -> impl Iterator<Item = Val<'c>> {
        self.results.iter().map(|own| own.read.tensor)
    }

    /// The last operator that forms one of its results, where the kernels are launched; an error where another reads one before it.
    fn placed(&self, ops: &[Op<'c>]) -> Result<Op<'c>, String> {
        let numbers = ops.iter().enumerate().map(|(at, op)| (number(*op), at));
        let numbers: HashMap<_, _> = numbers.collect();
        let place = |op: Op<'c>| numbers.get(&number(op)).copied();
        let last = self
            .formed()
            .filter_map(defining)
            .max_by_key(|op| place(*op));
        let last = last.ok_or("its gradients are formed by no operators")?;
        let early = |user: &Op<'c>| {
            !self.inner.contains(&number(*user))
                && place(*user).is_some_and(|at| Some(at) < place(last))
        };
        let mut users = self.formed().flat_map(readers);
        match users.any(|user| early(&user)) {
            true => Err("a gradient is read before all of them are formed".to_owned()),
            false => Ok(last),
        }
    }
}

/// The gradients in a block, each by the operator where its kernels are launched; a target says why it has none.
pub(super) fn find<'c>(
    ops: &[Op<'c>],
    takes: &impl Fn(&Backward<'c>) -> Result<(), String>,
) -> (Vec<(Op<'c>, Backward<'c>)>, Vec<Stop<'c>>) {
    let products: Vec<_> = ops.iter().copied().filter(|op| is_product(*op)).collect();
    let (mut found, mut stopped): (Vec<(Op<'c>, Backward<'c>)>, Vec<_>) = (Vec::new(), Vec::new());
    // There are five products, of which three have such operands.
    let like = products.iter().copied().filter(|op| {
        let own = MadeOf::of(*op);
        own.product && own.exponential
    });
    let like: Vec<_> = like.collect();
    if like.len() < 3 {
        return (found, stopped);
    }
    for &op in &like {
        for weights_are_a in [true, false] {
            let Some(own) = Search::read(op, weights_are_a, &like) else {
                continue;
            };
            let taken = own.and_then(|own| takes(&own).and_then(|()| Ok((own.placed(ops)?, own))));
            match taken {
                Ok(own) => found.push(own),
                Err(why) => stopped.push(Stop {
                    location: op.location(),
                    why: format!("nor its gradients: {why}"),
                }),
            }
        }
    }
    (found, stopped)
}

/// The search for the products that belong to one of weights.
struct Search<'c> {
    reader: Reader<'c>,
    values: Sides<'c>,
    scores: Product<'c>,
    /// The weights' term.
    weights: Id,
    read: Weights,
    /// The logarithms of its rows' sums, where they are read.
    log: Option<RowLog>,
    /// The gradient of the result, as the product of weights reads it.
    gradient: super::Operand<'c>,
}

/// A product of gradients of scores that was found.
struct Found<'c> {
    op: Op<'c>,
    weights_are_a: bool,
    scale: f64,
    /// The gradient of scores.
    scores: OfScores,
}

impl<'c> Search<'c> {
    /// Reads a product as dV. None where it is nothing like it, an error where what belongs to it is not found.
    fn read(
        op: Op<'c>,
        weights_are_a: bool,
        products: &[Op<'c>],
    ) -> Option<Result<Backward<'c>, String>> {
        let values = Sides::of(op, weights_are_a)?;
        let (batch, _) = values.batch()?;
        let extents = Extents {
            batch,
            rows: values.over,
            keys: values.outer,
            columns: values.free,
        };
        let mut reader = Reader::new(op, extents);
        reader.gradients = Some(OfGradients::default());
        // No kernel of gradients reads pages through their table.
        reader.paged = false;
        let (row, key) = (
            index::whole(Var::Row, extents.rows),
            index::whole(Var::Key, extents.keys),
        );
        let (value, place) = values.operand(true, key, row.clone())?;
        let id = reader.element(value, &place).ok()?;
        let of_gradient = reader
            .gradients
            .as_ref()
            .and_then(|own| own.product.as_ref());
        let scores = reader.scores.clone().filter(|_| of_gradient.is_none())?;
        let weights = visible::with_infinity(
            &mut reader.terms,
            id,
            [extents.rows, extents.keys],
            &Symbols::default(),
        );
        let (read, log) = match weights::probabilities(&mut reader.terms, weights) {
            Ok(read) => (read, None),
            Err(_) => {
                let (read, log) = weights::with_logs(&mut reader.terms, weights).ok()?;
                (read, Some(log))
            }
        };
        let column = index::whole(Var::Column, extents.columns);
        let (other, place) = values.operand(false, column, row)?;
        let gradient = reader.operand(op, other, place).ok()?;
        let mut search = Self {
            reader,
            values,
            scores,
            weights,
            read,
            log,
            gradient,
        };
        let [queries, keys] = search.scored(products)?;
        Some(search.settle([queries, keys]))
    }

    /// The products that dQ and dK are. None where there is neither: then the weights are another program's.
    fn scored(&mut self, products: &[Op<'c>]) -> Option<[Option<Found<'c>>; 2]> {
        let mut found = [None, None];
        let own = [self.values.gemm.op, self.scores.op];
        for op in products.iter().copied().filter(|op| !own.contains(op)) {
            for weights_are_a in [true, false] {
                for (at, slot) in found
                    .iter_mut()
                    .enumerate()
                    .filter(|(_, slot)| slot.is_none())
                {
                    let before = self.reader.inner.clone();
                    *slot = self.of_scores(op, weights_are_a, at == 0);
                    if slot.is_none() {
                        self.reader.inner = before;
                    }
                }
            }
        }
        found.iter().any(Option::is_some).then_some(found)
    }

    /// A product as dQ (or dK): that of dS and the keys (or the queries).
    fn of_scores(&mut self, op: Op<'c>, weights_are_a: bool, queries: bool) -> Option<Found<'c>> {
        let sides = Sides::of(op, weights_are_a)?;
        let Extents {
            batch, rows, keys, ..
        } = self.reader.extents;
        let (row, key) = (index::whole(Var::Row, rows), index::whole(Var::Key, keys));
        let ((outer, outer_extent), (over, over_extent)) = match queries {
            true => ((row, rows), (key, keys)),
            false => ((key, keys), (row, rows)),
        };
        let fits = sides.outer == outer_extent
            && sides.over == over_extent
            && sides.free == self.scores.depth
            && sides.batch()?.0 == batch;
        let expected = self.scores.operands.get(usize::from(queries))?.read.clone();
        let depth = index::whole(Var::Depth, sides.free);
        let (other, place) = sides.operand(false, depth, over.clone()).filter(|_| fits)?;
        let other = self.reader.operand(op, other, place).ok()?;
        if other.read != expected {
            return None;
        }
        let (value, place) = sides.operand(true, outer, over)?;
        let id = self.reader.element(value, &place).ok()?;
        let terms = &mut self.reader.terms;
        let id = visible::with_infinity(terms, id, [rows, keys], &Symbols::default());
        let scores = score::read(terms, id, self.weights, self.read.score)?;
        Some(Found {
            op,
            weights_are_a,
            scale: scores.factor * other.scale,
            scores,
        })
    }

    /// What was found, where it is all there and fits together.
    fn settle(mut self, found: [Option<Found<'c>>; 2]) -> Result<Backward<'c>, String> {
        let [Some(queries), Some(keys)] = found else {
            return Err(
                "there is no product of the scores' gradient with the queries, or with the keys"
                    .to_owned(),
            );
        };
        let product = self.reader.gradients.as_ref();
        let product = product.and_then(|own| own.product.clone());
        let product =
            product.ok_or("its scores' gradient has no product of the result's gradient")?;
        let [of_rows, values] = <[super::Operand<'c>; 2]>::try_from(product.operands)
            .map_err(|_| "a product has two operands")?;
        if of_rows.read != self.gradient.read || product.depth != self.reader.extents.columns {
            return Err("the gradients of weights and of values are of two results".to_owned());
        }
        if self.read.scale != 1.0 || !self.read.normalized {
            return Err("the weights of its rows do not add up to one".to_owned());
        }
        let of = |own: &Found<'_>| (own.scores.products, own.scores.chosen);
        if of(&queries) != of(&keys) {
            return Err("the gradients of queries and of keys are of two results".to_owned());
        }
        let given = self.given(queries.scores.products)?;
        let chosen = queries.scores.chosen;
        let own = &self.values;
        let own = (own.gemm.op, own.weights_are_a, self.gradient.scale);
        let of = |found: Found<'c>| (found.op, found.weights_are_a, found.scale);
        let mut results = Vec::new();
        for (op, weights_are_a, scale) in [of(queries), of(keys), own] {
            let (read, factor, group) = self
                .reader
                .result(op, weights_are_a)
                .ok_or("a gradient is stored as no f16 or bf16")?;
            results.push(Gradient {
                read,
                scale: scale * factor,
                group,
            });
        }
        let results = <[Gradient<'c>; 3]>::try_from(results).map_err(|_| "three gradients")?;
        let [alone, group, other] = [0, 1, 2].map(|at: usize| results[at].group);
        if alone != 1 || group != other {
            return Err(
                "gradients of keys and of values are added up over different heads".to_owned(),
            );
        }
        self.backward(values.read, (results, group), (given, chosen))
    }

    /// What the program has of the forward pass, with D formed of this.
    fn given(&self, products: Products) -> Result<Given<'c>, String> {
        let lost = "a value of each row is read";
        let gradients = self.reader.gradients.as_ref().ok_or(lost)?;
        let row_value = |number: usize| gradients.row_values.get(number).cloned().ok_or(lost);
        let mut given = Given::default();
        if let Some(log) = self.log {
            given.logs = Some(Logs::Read {
                read: row_value(log.value)?,
                factor: log.factor,
                offset: log.offset,
            });
        }
        match products {
            Products::Weights if self.log.is_some() => {
                return Err(
                    "logarithms of its rows' sums are given, and its result is not".to_owned(),
                );
            }
            Products::Weights => {}
            Products::Given(number) => given.products = Some(row_value(number)?),
            Products::Result => {
                let [a, b] = gradients.row_product.clone().ok_or(lost)?;
                let own = &self.gradient.read;
                let result = match (a == *own, b == *own) {
                    (true, _) => b,
                    (_, true) => a,
                    _ => {
                        return Err(
                            "the result that its scores' gradient reads has another gradient"
                                .to_owned(),
                        );
                    }
                };
                given.result = Some(result);
            }
        }
        Ok(given)
    }

    fn backward(
        self,
        values: Read<'c>,
        (results, group): ([Gradient<'c>; 3], i64),
        (given, chosen): (Given<'c>, bool),
    ) -> Result<Backward<'c>, String> {
        let Reader {
            terms,
            inputs,
            lengths,
            mut inner,
            extents,
            ..
        } = self.reader;
        let [queries, keys] = <[super::Operand<'c>; 2]>::try_from(self.scores.operands.clone())
            .map_err(|_| "scores have two operands")?;
        let op = self.values.gemm.op;
        inner.extend([number(op), number(self.scores.op)]);
        if !self.read.values.is_empty() {
            return Err("its weights are multiplied by values of their problem".to_owned());
        }
        let tensors = [queries.read.tensor, keys.read.tensor, values.tensor];
        let all = results.iter().map(|own| own.read.tensor);
        let [mut element, _] = element_types(tensors, self.gradient.read.tensor, false)?;
        for tensor in all {
            [element, _] = element_types(tensors, tensor, false)?;
        }
        let read_by = [&inputs, &lengths].map(Vec::as_slice);
        let (mut terms, [inputs, lengths], score) = compact(&terms, self.read.score, read_by);
        let own = [extents.rows, extents.keys];
        let visible = visible::visible(&terms, score, own, &Symbols::default());
        let bare = visible::bare(&mut terms, score);
        let forward = Attention {
            extents,
            depth: self.scores.depth,
            queries: queries.read,
            keys: keys.read,
            values,
            result: self.gradient.read.clone(),
            element,
            rounded: element,
            weights: Weights { score, ..self.read },
            terms,
            inputs,
            lengths,
            pages: [None, None],
            visible,
            bare,
            op,
            inner: HashSet::new(),
            sums: None,
            keeps_sums: false,
            symbols: Symbols::default(),
        };
        Ok(Backward {
            empty: Empty::of(&forward, chosen, given.logs.is_some())?,
            forward,
            gradient: self.gradient.read,
            group,
            results,
            given,
            inner,
        })
    }
}
