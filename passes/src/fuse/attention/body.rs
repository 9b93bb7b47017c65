//! Bodies of operators, read: what they yield of elements of their operands.

use super::index::{self, Index, Place, Var};
use super::read::{Extents, Reader, Reading, scalar_of, stop};
use super::term::{Id, Scalar, Term};
use crate::fuse::nest::{maps, reductions};
use crate::ir::value::{defining, identity, is_used, name, operands, results};
use crate::ir::{Op, TensorType, Val, attribute, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, ValueLike};
use std::collections::HashMap;

impl<'c> Reader<'c> {
    /// A `linalg.generic` whose loops are all parallel.
    pub(super) fn generic(&mut self, op: Op<'c>, value: Val<'c>, place: &Place) -> Reading<'c, Id> {
        let no = |why: &str| stop(op, format!("a loop nest {why}"));
        let (Some(maps), all) = (maps(op), operands(op)) else {
            return no("has maps with symbols");
        };
        if reductions(op).contains(&true) {
            return no("reduces");
        }
        let inputs = all.len().saturating_sub(op.result_count());
        let number = results(op)
            .iter()
            .position(|result| *result == value)
            .unwrap_or(0);
        let Some(out) = maps.get(inputs + number) else {
            return no("has no map of its result");
        };
        let Some(loops) = loops_at(out, place, reductions(op).len()) else {
            return no("writes its result out of order");
        };
        let mut at = Vec::new();
        for (operand, map) in all.iter().zip(&maps).take(inputs) {
            let Some(own) = operand_at(map, &loops) else {
                return no("reads more than one element after the other");
            };
            at.push((*operand, own));
        }
        self.body(op, &at, Some(&loops), number)
    }

    /// What the body of an operator yields of elements of its operands.
    pub(super) fn body(
        &mut self,
        op: Op<'c>,
        at: &[(Val<'c>, Place)],
        loops: Option<&Place>,
        number: usize,
    ) -> Reading<'c, Id> {
        let blocks = walk::blocks(op);
        let Some(block) = blocks.first() else {
            return stop(op, "an operator has no body");
        };
        let mut values = HashMap::new();
        for (argument, (operand, place)) in walk::block_arguments(*block).into_iter().zip(at) {
            // Arguments that the body does not use need not be read: they may be what no kernel can.
            if is_used(argument) {
                let id = match TensorType::of_value(*operand) {
                    Some(_) => self.element(*operand, place)?,
                    None => self.captured(op, *operand)?,
                };
                values.insert(identity(argument), id);
            }
        }
        for inner in walk::operations(*block) {
            if name(inner).ends_with(".yield") {
                let yielded = operands(inner).get(number).copied();
                return match yielded {
                    Some(value) => self.scalar(op, value, &values),
                    None => stop(op, "a body yields nothing"),
                };
            }
            let id = match name(inner).as_str() {
                "linalg.index" => self.index(inner, loops)?,
                _ if self.rounds_others(op, inner) => {
                    return stop(op, "it rounds other values than weights to f8E4M3FN");
                }
                _ => self.operation(inner, &values)?,
            };
            if let Some(result) = results(inner).first() {
                values.insert(identity(*result), id);
            }
        }
        stop(op, "a body yields nothing")
    }

    pub(super) fn scalar(
        &mut self,
        op: Op<'c>,
        value: Val<'c>,
        values: &HashMap<usize, Id>,
    ) -> Reading<'c, Id> {
        match values.get(&identity(value)) {
            Some(id) => Ok(*id),
            None => self.captured(op, value),
        }
    }

    /// A scalar from outside of a body: of constants.
    pub(super) fn captured(&mut self, op: Op<'c>, value: Val<'c>) -> Reading<'c, Id> {
        match defining(value) {
            Some(own) if own.region_count() == 0 => self.operation(own, &HashMap::new()),
            _ => stop(op, "a body reads a scalar of the function"),
        }
    }

    /// `linalg.index`, where it is a row or a key.
    fn index(&mut self, op: Op<'c>, loops: Option<&Place>) -> Reading<'c, Id> {
        let dim = op.attribute("dim").ok().and_then(attribute::integer);
        let dim = dim.and_then(|dim| usize::try_from(dim).ok());
        let place = loops.and_then(|loops| loops.get(dim?));
        let Extents { rows, keys, .. } = self.extents;
        match place.map(Vec::as_slice) {
            Some([]) => Ok(self.terms.int(0, 64)),
            Some(&[digit])
                if [(Var::Row, rows), (Var::Key, keys)]
                    .iter()
                    .any(|(var, extent)| index::whole(*var, *extent) == [digit]) =>
            {
                Ok(self.terms.add(Term::Index(digit.var), Scalar::Int(64)))
            }
            _ => stop(op, "an index is neither that of a row nor that of a key"),
        }
    }

    /// A scalar operation of arith or math.
    pub(super) fn operation(&mut self, op: Op<'c>, values: &HashMap<usize, Id>) -> Reading<'c, Id> {
        let name = name(op);
        if name == "arith.constant" {
            let constant = op
                .attribute("value")
                .ok()
                .and_then(|value| self.constant(value));
            return constant.map_or_else(|| stop(op, "a constant is no number"), Ok);
        }
        let scalar = results(op)
            .first()
            .and_then(|result| scalar_of(result.r#type()));
        let (Some(scalar), true, 0) = (
            scalar,
            name.starts_with("arith.") || name.starts_with("math."),
            op.region_count(),
        ) else {
            return stop(op, format!("'{name}' is no operation of scalars"));
        };
        if name == "arith.bitcast" || results(op).len() != 1 {
            return stop(op, format!("'{name}' is not read through"));
        }
        let mut of = Vec::new();
        for operand in operands(op) {
            of.push(self.scalar(op, operand, values)?);
        }
        let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
        Ok(self.terms.apply(&name, predicate, &of, scalar))
    }
}

/// The index of each loop where a result has this place.
pub(super) fn loops_at(map: &AffineMap<'_>, place: &Place, loops: usize) -> Option<Place> {
    let mut found: Vec<Option<Index>> = vec![None; loops];
    for (at, index) in place.iter().enumerate() {
        let expression = map.result(at).ok()?;
        if !expression.is_dim() {
            return None;
        }
        let slot = found.get_mut(expression.dim_position())?;
        if slot.is_some() {
            return None;
        }
        *slot = Some(index.clone());
    }
    found.into_iter().collect()
}

/// The place of an operand at these loops: loops and zeros.
pub(super) fn operand_at(map: &AffineMap<'_>, loops: &Place) -> Option<Place> {
    (0..map.result_count())
        .map(|at| {
            let expression = map.result(at).ok()?;
            match expression.is_dim() {
                true => loops.get(expression.dim_position()).cloned(),
                false => (expression.to_string() == "0").then(Index::new),
            }
        })
        .collect()
}
