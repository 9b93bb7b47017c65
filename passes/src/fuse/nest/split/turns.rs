//! The turns of a split reduction: its body on an element, on the elements of a part, and on the states of a part.

use super::Split;
use crate::ir::value::{identity, name, operands, results};
use crate::ir::{Builder, Int, TensorType, Val, inline, types, walk};
use crate::{PassError, PassResult};
use melior::ir::r#type::IntegerType;
use melior::ir::{AffineMap, Type, ValueLike};

/// A part: the indices of the reduction that it has, and those of the point that it is of.
pub(super) struct Part<'c> {
    pub(super) low: Val<'c>,
    pub(super) high: Val<'c>,
    /// One a loop; that of the reduction is the part's number.
    pub(super) indices: Vec<Val<'c>>,
}

impl<'c> Split<'c> {
    /// Whether a part is folded again from the states before it: where one of its own is a NaN and none of those is.
    pub(super) fn again(
        &self,
        builder: &Builder<'c>,
        own: &[Val<'c>],
        before: &[Val<'c>],
    ) -> PassResult<'c, Option<Val<'c>>> {
        if !self.merge.again {
            return Ok(None);
        }
        let nan = |values: &[Val<'c>]| -> PassResult<'c, Option<Val<'c>>> {
            let mut any = None;
            for value in values
                .iter()
                .filter(|value| types::is_float(value.r#type()))
            {
                let one = is_nan(builder, *value)?;
                any = Some(match any {
                    Some(any) => builder.value("arith.ori", &[any, one], one.r#type(), &[])?,
                    None => one,
                });
            }
            Ok(any)
        };
        let (Some(own), Some(before)) = (nan(own)?, nan(before)?) else {
            return Ok(None);
        };
        let bit = own.r#type();
        let set = builder.constant(builder.parsed("true")?)?;
        let none = builder.value("arith.xori", &[before, set], bit, &[])?;
        builder
            .value("arith.andi", &[own, none], bit, &[])
            .map(Some)
    }

    /// The body, which takes the states of a part for an element.
    pub(super) fn merge_once(
        &self,
        builder: &Builder<'c>,
        own: &[Val<'c>],
        before: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let mut inputs = Vec::new();
        for (result, r#type) in self.merge.inputs.iter().zip(self.arguments()) {
            inputs.push(match result.and_then(|result| own.get(result)) {
                Some(state) => *state,
                None => builder.zero(r#type)?,
            });
        }
        let at = match self.merge.index.and_then(|result| own.get(result)) {
            Some(state) if state.r#type() != builder.index_type() => {
                builder.value("arith.index_cast", &[*state], builder.index_type(), &[])?
            }
            Some(state) => *state,
            None => builder.index(0)?,
        };
        self.turn(builder, &[inputs, before.to_vec()].concat(), at)
    }

    /// The loop over the elements of a part, several a turn where the parts have whole turns: their loads do not wait for each other.
    pub(super) fn fold(
        &self,
        builder: &Builder<'c>,
        part: &Part<'c>,
        starts: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let index = builder.index_type();
        let types: Vec<_> = starts.iter().map(ValueLike::r#type).collect();
        let arguments: Vec<_> = std::iter::once(index)
            .chain(types.iter().copied())
            .collect();
        let (region, arguments, inner) = builder.region(&arguments);
        let Some((&at, states)) = arguments.split_first() else {
            return Err(PassError::new(builder.location, "a loop without its index"));
        };
        let all = operands(self.nest.op)
            .into_iter()
            .zip(&self.maps)
            .take(self.inputs());
        let all: Vec<_> = all.collect();
        let mut elements = Vec::new();
        for next in 0..self.step {
            let at = inner.value("arith.addi", &[at, inner.index(next)?], index, &[])?;
            let mut values = Vec::new();
            for (source, map) in &all {
                values.push(self.element(&inner, *source, **map, (at, part))?);
            }
            elements.push((at, values));
        }
        let mut states = states.to_vec();
        for (at, mut values) in elements {
            values.extend(states);
            states = self.turn(&inner, &values, at)?;
        }
        inner.operation("scf.yield", &states, &[], &[], Vec::new())?;
        let step = builder.index(self.step)?;
        let bounds = [&[part.low, part.high, step], starts].concat();
        builder
            .operation("scf.for", &bounds, &types, &[], vec![region])
            .map(results)
    }

    /// An element of an input where the reduction is at `at`.
    fn element(
        &self,
        builder: &Builder<'c>,
        source: Val<'c>,
        map: AffineMap<'c>,
        (at, part): (Val<'c>, &Part<'c>),
    ) -> PassResult<'c, Val<'c>> {
        let Some(tensor) = TensorType::of_value(source) else {
            return Ok(source);
        };
        let mut indices = vec![source];
        for index in (0..map.result_count()).filter_map(|at| map.result(at).ok()) {
            let dim = index.is_dim().then(|| index.dim_position());
            indices.push(match dim.and_then(|dim| part.indices.get(dim)) {
                Some(_) if dim == Some(self.dim) => at,
                Some(own) => *own,
                None => builder.index(index.constant_value())?,
            });
        }
        builder.value("tensor.extract", &indices, tensor.element, &[])
    }

    /// A copy of the body on these arguments, with this index of the reduction; what it yields.
    fn turn(
        &self,
        builder: &Builder<'c>,
        arguments: &[Val<'c>],
        at: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let own = walk::block_arguments(self.body).into_iter().map(identity);
        let mut values: inline::Values<'c> = own.zip(arguments.iter().copied()).collect();
        let mut all = walk::operations(self.body);
        let last = all.pop();
        for op in all {
            if name(op) == "linalg.index" {
                values.insert(identity(builder.result_of(op)?), at);
                continue;
            }
            inline::copy_operation(builder, op, &mut values);
        }
        let yielded = last.map(operands).unwrap_or_default().into_iter();
        Ok(yielded
            .map(|value| values.get(&identity(value)).copied().unwrap_or(value))
            .collect())
    }

    /// The types of the body's arguments.
    pub(super) fn arguments(&self) -> Vec<Type<'c>> {
        let all = walk::block_arguments(self.body).into_iter();
        all.map(|argument| argument.r#type()).collect()
    }

    /// The part at a place in a group of so many, whose number is the index of the reduction's loop; parts have `length` of its
    /// `turns`.
    pub(super) fn part(
        &self,
        builder: &Builder<'c>,
        (place, together): (i64, i64),
        (turns, length): (Val<'c>, Val<'c>),
    ) -> PassResult<'c, Part<'c>> {
        let index = builder.index_type();
        let mut indices = Vec::new();
        for dim in 0..self.nest.reductions.len() {
            let dim = [("dim", builder.parsed(&format!("{dim} : i64"))?)];
            indices.push(builder.value("linalg.index", &[], index, &dim)?);
        }
        let number = indices.get(self.dim).copied();
        let number =
            number.ok_or_else(|| PassError::new(builder.location, "expected a reduction"))?;
        let ints = builder.ints();
        let number = ints.add(ints.mul(Int::Value(number), together)?, Int::Known(place))?;
        let low = ints.value(ints.times(number, Int::Value(length))?)?;
        let high = builder.value("arith.addi", &[low, length], index, &[])?;
        let high = builder.value("arith.minui", &[high, turns], index, &[])?;
        Ok(Part { low, high, indices })
    }
}

/// Whether a float is a NaN.
fn is_nan<'c>(builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    // `arith.cmpf uno` (ArithBase.td).
    let unordered = [("predicate", builder.parsed("14 : i64")?)];
    let bit = builder.r#type(|context| IntegerType::new(context, 1).into());
    builder.value("arith.cmpf", &[value, value], bit, &unordered)
}
