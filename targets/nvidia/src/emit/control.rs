//! Loops and branches: a register tensor that a loop carries is as many values as it has registers.

use super::emitter::Emitter;
use super::hoist::hoist_addresses;
use super::value::Bound;
use crate::state::rings::{RingKey, rings_below};
use crate::state::types;
use axe_dialect::element_type;
use axe_passes::ir::Int;
use axe_passes::ir::types::{bits, is_float, is_token};
use axe_passes::ir::value::{operands, results};
use axe_passes::ir::walk::{block_arguments, blocks};
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::{PassResult, speculation};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// How many elements of a tensor of this type a word carries, of so many registers: narrow floats in a register each would take
/// two or four times as many.
fn in_word(r#type: Type<'_>, registers: usize) -> Option<usize> {
    types::tensor_shape(r#type)?;
    let element = element_type(r#type);
    let elements = match bits(element) {
        Some(8) if types::is_float8(element) => 4,
        Some(16) if is_float(element) => 2,
        _ => return None,
    };
    registers.is_multiple_of(elements).then_some(elements)
}

impl<'c> Emitter<'c> {
    /// How often a loop's body runs, where that is known.
    pub(crate) fn trips(&self, op: Op<'c>) -> Option<i64> {
        let bounds: Vec<_> = operands(op)
            .into_iter()
            .take(3)
            .map(|bound| self.kernel.facts.of(bound).known())
            .collect();
        let &[Some(first), Some(end), Some(step)] = bounds.as_slice() else {
            return None;
        };
        let span = end.checked_sub(first)?.max(0);
        (step > 0).then(|| span / step + i64::from(span % step != 0))
    }

    /// The scalars that a value consists of.
    fn expand(&self, value: Val<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        match self.bound(value)? {
            Bound::Scalar(scalar) => Ok(vec![*scalar]),
            Bound::Registers(own) => match in_word(value.r#type(), own.values.len()) {
                Some(elements) => {
                    let words = own.values.chunks(elements);
                    words.map(|word| self.word_of(word)).collect()
                }
                None => Ok(own.values.clone()),
            },
            Bound::Token => Ok(Vec::new()),
            Bound::Memory(_) => {
                Err(self.error("storage cannot be carried by a loop or chosen by a branch"))
            }
        }
    }

    fn expand_all(&self, values: &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>> {
        let mut expanded = Vec::new();
        for value in values {
            expanded.extend(self.expand(*value)?);
        }
        Ok(expanded)
    }

    /// Registers of a value of this type.
    fn width(&self, r#type: Type<'c>) -> PassResult<'c, usize> {
        if is_token(r#type) {
            return Ok(0);
        }
        if types::tensor_shape(r#type).is_none() {
            return Ok(1);
        }
        let fragment = self
            .fragment(r#type)
            .map_err(|decline| self.error(decline.to_string()))?;
        usize::try_from(fragment.registers()).map_err(|_| self.error("too many registers"))
    }

    /// Binds values to their registers, in order.
    pub(super) fn bind_expanded(
        &mut self,
        values: &[Val<'c>],
        scalars: &[Val<'c>],
    ) -> PassResult<'c> {
        let mut rest = scalars;
        for value in values {
            let width = self.width(value.r#type())?;
            let (own, others) = rest
                .split_at_checked(width)
                .ok_or_else(|| self.error("a loop carries fewer values than it has"))?;
            rest = others;
            let bound = match own {
                [] => Bound::Token,
                [scalar] if types::tensor_shape(value.r#type()).is_none() => Bound::Scalar(*scalar),
                _ => Bound::Registers(self.registers_of(value.r#type(), own.to_vec())?),
            };
            self.bind(*value, bound);
        }
        Ok(())
    }

    /// Binds values to the scalars that they consist of where loops carry them and branches choose them.
    fn bind_carried(&mut self, values: &[Val<'c>], scalars: &[Val<'c>]) -> PassResult<'c> {
        let mut scalars = scalars.iter().copied();
        let mut expanded = Vec::new();
        for value in values {
            let (r#type, registers) = (value.r#type(), self.width(value.r#type())?);
            let Some(elements) = in_word(r#type, registers) else {
                expanded.extend(scalars.by_ref().take(registers));
                continue;
            };
            let element = element_type(r#type);
            let width = i64::try_from(elements).unwrap_or(1);
            for word in scalars.by_ref().take(registers / elements) {
                let bytes = self.bitcast(word, types::vector(width, element))?;
                expanded.extend(self.unpack(bytes, width, element)?);
            }
        }
        self.bind_expanded(values, &expanded)
    }

    /// Emits a block's operations into the builder, and its terminator's operands, then the state of `rings`,
    /// as `scf.yield`.
    fn region_body(
        &mut self,
        block: melior::ir::BlockRef<'c, 'c>,
        into: Builder<'c>,
        (rings, subtiles): (&[RingKey], bool),
    ) -> PassResult<'c, Vec<Type<'c>>> {
        let outside = std::mem::replace(&mut self.builder, into);
        let terminator = self.block(block)?;
        let yielded = terminator.map(operands).unwrap_or_default();
        let mut yielded = self.expand_all(&yielded)?;
        yielded.extend(self.cursor_values(rings)?);
        yielded.extend(self.subtile_values(subtiles)?);
        self.builder
            .operation("scf.yield", &yielded, &[], &[], Vec::new())?;
        self.builder = outside;
        Ok(yielded.iter().map(Val::r#type).collect())
    }

    /// Sets the state of rings, and that of subtiles behind it where it is carried too.
    pub(super) fn set_carried(&mut self, rings: &[RingKey], values: &[Val<'c>]) {
        let (cursors, subtiles) = values.split_at((2 * rings.len()).min(values.len()));
        self.set_cursors(rings, cursors);
        self.set_subtiles(subtiles);
    }

    /// Freezes what a map's body branches by.
    fn define_branch(&self, op: Op<'c>) -> PassResult<'c> {
        match self.speculative {
            true => speculation::define_branch(op),
            false => Ok(()),
        }
    }

    /// `scf.for`.
    pub(crate) fn for_loop(&mut self, op: Op<'c>) -> PassResult<'c> {
        let values = operands(op);
        let (Some(bounds), Some(carried)) = (values.get(..3), values.get(3..)) else {
            return Err(self.error("expected the bounds of a loop"));
        };
        let Some(block) = blocks(op).first().copied() else {
            return Err(self.error("expected the body of a loop"));
        };
        let mut start = Vec::new();
        for bound in bounds {
            start.push(self.scalar(*bound)?);
        }
        let rings = rings_below(op);
        let subtiles = self.carries_subtiles(op)?;
        let mut initial = self.expand_all(carried)?;
        let own_count = initial.len();
        initial.extend(self.cursor_values(&rings)?);
        initial.extend(self.subtile_values(subtiles)?);
        let mut arguments = vec![bounds[0].r#type()];
        arguments.extend(initial.iter().map(Val::r#type));
        let (region, scalars, inner) = self.builder.region(&arguments);
        let (scalars, cursors) = scalars.split_at(1 + own_count);
        let own = block_arguments(block);
        let outside = std::mem::replace(&mut self.builder, inner);
        self.bind_carried(&own, scalars)?;
        self.builder = outside;
        self.set_carried(&rings, cursors);
        let location = self.builder.location;
        self.loops += 1;
        let types = self.region_body(block, inner, (&rings, subtiles))?;
        self.loops -= 1;
        self.builder.location = location;
        start.extend(initial);
        let emitted = self
            .builder
            .operation("scf.for", &start, &types, &[], vec![region])?;
        self.define_branch(emitted)?;
        let emitted = results(emitted);
        let (values, cursors) = emitted.split_at(own_count.min(emitted.len()));
        self.set_carried(&rings, cursors);
        self.bind_carried(&results(op), values)
    }

    /// `scf.if`.
    pub(crate) fn branch(&mut self, op: Op<'c>) -> PassResult<'c> {
        let condition = operands(op)
            .first()
            .copied()
            .ok_or_else(|| self.error("expected a condition"))?;
        let condition = self.scalar(condition)?;
        let location = self.builder.location;
        let rings = rings_below(op);
        let subtiles = self.carries_subtiles(op)?;
        let mut before = self.cursor_values(&rings)?;
        before.extend(self.subtile_values(subtiles)?);
        let (mut regions, mut types) = (Vec::new(), Vec::new());
        for side in op.regions() {
            self.set_carried(&rings, &before);
            let region = self.builder.region(&[]);
            match first_block(side) {
                Some(block) => types = self.region_body(block, region.2, (&rings, subtiles))?,
                // An absent `else` is a region without a block, unless a ring's state must come out of it.
                None if before.is_empty() => {
                    regions.push(melior::ir::Region::new());
                    continue;
                }
                None => {
                    region
                        .2
                        .operation("scf.yield", &before, &[], &[], Vec::new())?;
                }
            }
            regions.push(region.0);
        }
        self.builder.location = location;
        let emitted = self
            .builder
            .operation("scf.if", &[condition], &types, &[], regions)?;
        self.define_branch(emitted)?;
        if self.nest.is_some() {
            hoist_addresses(emitted);
        }
        let emitted = results(emitted);
        let (values, cursors) = emitted.split_at(emitted.len().saturating_sub(before.len()));
        self.set_carried(&rings, cursors);
        self.bind_carried(&results(op), values)
    }

    /// `scf.if` with one side, which `then` fills and whose values default to `otherwise`.
    pub(crate) fn when(
        &mut self,
        condition: Val<'c>,
        otherwise: &[Val<'c>],
        then: impl FnOnce(&mut Self) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (region, _, inner) = self.builder.region(&[]);
        let outside = std::mem::replace(&mut self.builder, inner);
        let values = then(self)?;
        self.builder
            .operation("scf.yield", &values, &[], &[], Vec::new())?;
        self.builder = outside;
        let types: Vec<_> = values.iter().map(Val::r#type).collect();
        let mut regions = vec![region];
        if values.is_empty() {
            regions.push(melior::ir::Region::new());
        } else {
            let (other, _, inner) = self.builder.region(&[]);
            inner.operation("scf.yield", otherwise, &[], &[], Vec::new())?;
            regions.push(other);
        }
        let emitted = self
            .builder
            .operation("scf.if", &[condition], &types, &[], regions)?;
        Ok(results(emitted))
    }

    /// A loop of `count` turns from 0 that carries `initial`; `body` gives the carried values of the next turn.
    pub(crate) fn repeat(
        &mut self,
        count: i64,
        initial: &[Val<'c>],
        body: impl FnOnce(&mut Self, Int<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        if count <= 0 {
            return Ok(initial.to_vec());
        }
        if count == 1 {
            return body(self, Int::ZERO, initial);
        }
        let ints = self.ints();
        let mut operands = Vec::new();
        for bound in [0, count, 1] {
            operands.push(ints.value(Int::Known(bound))?);
        }
        operands.extend(initial);
        let i32 = types::integer(self.builder, 32);
        let carried = initial.iter().map(Val::r#type);
        let arguments: Vec<_> = std::iter::once(i32).chain(carried).collect();
        let (region, values, inner) = self.builder.region(&arguments);
        let outside = std::mem::replace(&mut self.builder, inner);
        let next = match values.split_first() {
            Some((turn, carried)) => body(self, Int::Value(*turn), carried)?,
            None => return Err(self.error("a loop without its variable")),
        };
        self.builder
            .operation("scf.yield", &next, &[], &[], Vec::new())?;
        self.builder = outside;
        let types: Vec<_> = initial.iter().map(Val::r#type).collect();
        let emitted = self
            .builder
            .operation("scf.for", &operands, &types, &[], vec![region])?;
        Ok(results(emitted))
    }
}

fn first_block<'c>(region: melior::ir::RegionRef<'c, 'c>) -> Option<melior::ir::BlockRef<'c, 'c>> {
    use melior::ir::RegionLike;
    region.first_block()
}
