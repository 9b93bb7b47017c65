//! What a program has of the forward pass: logarithms of its rows' sums, its result, and `D = rowsum(dO O)`.

use crate::fuse::attention::Attention;
use crate::fuse::attention::index::{self, Place, Var};
use crate::fuse::attention::read::{
    Operand, Product, Read, Reader, dims, products_of, static_shape,
};
use crate::fuse::attention::term::{Id, Scalar, Term};
use crate::fuse::attention::weights;
use crate::fuse::space::source;
use crate::ir::value::{defining, identity, name, operands};
use crate::ir::{Op, TensorType, Val, types, walk};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;
use std::collections::HashMap;
use std::rc::Rc;

/// What a reader knows beside scores where gradients are looked for.
#[derive(Clone, Debug, Default)]
pub struct OfGradients<'c> {
    /// The product of the result's gradient and the values.
    pub product: Option<Product<'c>>,
    /// Tensors with a value of each row: [`Term::RowValue`]s.
    pub row_values: Vec<Read<'c>>,
    /// The tensors whose product is added up over columns: [`Term::RowProduct`].
    pub row_product: Option<[Read<'c>; 2]>,
}

/// Logarithms of the sums of rows, `log sum exp(x)`.
#[derive(Clone, Debug)]
pub enum Logs<'c> {
    /// `factor * value + offset`, of a tensor with a value of each row.
    Read {
        /// The tensor.
        read: Read<'c>,
        /// What it is multiplied by.
        factor: f64,
        /// What is added.
        offset: f64,
    },
    /// Those that a forward pass of the program leaves beside its result.
    Kept(Rc<Attention<'c>>),
}

/// What a program has of the forward pass.
#[derive(Clone, Debug, Default)]
pub struct Given<'c> {
    /// Logarithms of the sums of rows.
    pub logs: Option<Logs<'c>>,
    /// The result.
    pub result: Option<Read<'c>>,
    /// `rowsum(dO O)`.
    pub products: Option<Read<'c>>,
}

impl<'c> Given<'c> {
    /// The tensors that are read.
    pub(super) fn reads(&self) -> impl Iterator<Item = &Read<'c>> {
        let logs = self.logs.iter().map(|own| match own {
            Logs::Read { read, .. } => read,
            Logs::Kept(own) => &own.result,
        });
        logs.chain(&self.result).chain(&self.products)
    }
}

impl<'c> Reader<'c> {
    /// The number of a tensor with a value of each row, where gradients are looked for.
    pub(in crate::fuse::attention) fn row_value(&mut self, read: &Read<'c>) -> Option<Id> {
        let of_row = |var| matches!(var, Var::Batch | Var::Row);
        let OfGradients {
            product,
            row_values: all,
            ..
        } = self.gradients.as_mut()?;
        // What is formed of the weights' gradient is not there before it.
        let own = product.as_ref().map(|own| own.op);
        let formed = || {
            products_of(read.tensor)
                .into_iter()
                .any(|op| Some(op) == own)
        };
        let mut vars = read.steps.iter().map(|step| step.digit.var);
        let is_of_rows = vars.clone().all(of_row) && vars.any(|var| var == Var::Row);
        if !is_of_rows || formed() {
            return None;
        }
        let bits = types::bits(TensorType::of_value(read.tensor)?.element)?;
        let number = all.iter().position(|own| own == read);
        let number = number.unwrap_or_else(|| {
            all.push(read.clone());
            all.len() - 1
        });
        let term = Term::RowValue(number);
        matches!(bits, 16 | 32).then(|| self.terms.add(term, Scalar::Float))
    }

    pub(in crate::fuse::attention) fn is_row_value(&self, id: Id) -> bool {
        matches!(self.terms.get(id), Term::RowValue(_))
    }

    /// A sum over columns of the product of two tensors, where gradients are looked for.
    pub(in crate::fuse::attention) fn row_product(
        &mut self,
        op: Op<'c>,
        place: &Place,
    ) -> Option<Id> {
        self.gradients.as_ref()?;
        let combiner = op.attribute("combiner").ok();
        let is_sum = combiner.and_then(|own| Combiner::cast(own)) == Some(Combiner::Add);
        let of_row = |var| matches!(var, Var::Batch | Var::Row);
        if !is_sum || !place.iter().flatten().all(|digit| of_row(digit.var)) {
            return None;
        }
        let (from, columns) = (source(op)?, self.extents.columns);
        let (shape, &[dropped]) = (static_shape(from)?, dims(op, "dims")?.as_slice()) else {
            return None;
        };
        if shape.get(dropped) != Some(&columns) {
            return None;
        }
        let mut own = place.clone();
        own.insert(dropped, index::whole(Var::Column, columns));
        let (found, factor) = self.factors(from, &own)?;
        let gradients = self.gradients.as_mut()?;
        let known = gradients.row_product.get_or_insert_with(|| found.clone());
        if *known != found {
            return None;
        }
        let id = self.terms.add(Term::RowProduct, Scalar::Float);
        let factor = self.terms.float(factor);
        let scaled = [id, factor];
        let own = self.terms.apply("arith.mulf", None, &scaled, Scalar::Float);
        Some(own)
    }

    /// The two tensors that a value is the product of, at a place, and a number that it is multiplied by.
    fn factors(&mut self, value: Val<'c>, place: &Place) -> Option<([Read<'c>; 2], f64)> {
        let mut op = defining(value)?;
        while name(op) == ops::CAST {
            op = defining(source(op)?)?;
        }
        let &[a, b] = operands(op).as_slice() else {
            return None;
        };
        let factor = self.multiplies(op).filter(|_| name(op) == ops::MAP)?;
        let mut of = |value| {
            let found = self.operand(op, value, place.clone()).ok()?;
            found.pages.is_none().then_some(found)
        };
        let (
            Operand { read: a, scale, .. },
            Operand {
                read: b,
                scale: other,
                ..
            },
        ) = (of(a)?, of(b)?);
        Some(([a, b], factor * scale * other))
    }

    /// The number that a map multiplies the product of its two operands by.
    fn multiplies(&mut self, op: Op<'c>) -> Option<f64> {
        let block = walk::blocks(op).first().copied()?;
        let arguments = walk::block_arguments(block);
        let &[a, b] = arguments.as_slice() else {
            return None;
        };
        let before = self.terms.clone();
        // The elements themselves stand for what no map of operands has.
        let elements = [Term::Score, Term::Gradient].map(|own| self.terms.add(own, Scalar::Float));
        let product = self
            .terms
            .apply("arith.mulf", None, &elements, Scalar::Float);
        let values = HashMap::from([(identity(a), elements[0]), (identity(b), elements[1])]);
        let yielded = self.yielded(op, block, values);
        let factor = yielded.and_then(|id| weights::factor_of(&mut self.terms, id, product));
        self.terms = before;
        factor
    }
}
