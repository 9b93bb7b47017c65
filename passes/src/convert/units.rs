//! Loops of one step of a contraction: dimensions of extent 1, as front ends write an einsum with.

use super::factor::Factor;
use super::operands::{Space, squeezed};
use super::reduction::starts_from_zero;
use super::structured::Structured;
use crate::error::PassResult;
use crate::ir::reshape::groups_without;
use crate::ir::{Builder, DYNAMIC, Val};

/// Loops of one step that a result has: without them what stands in front of the product is found, as the transposes of its factors.
#[derive(Default)]
pub(super) struct Units {
    pub(super) loops: Vec<usize>,
    /// The result's shape, with them.
    shape: Vec<i64>,
    /// Which of its dimensions they are.
    are: Vec<bool>,
}

impl Units {
    /// Those of which `holds` is true; none where the product is added to something, or extents are known at run time only.
    ///
    /// # Errors
    /// When no operand has one of the loops, or building fails.
    pub(super) fn of<'c>(
        builder: &Builder<'c>,
        op: &Structured<'c>,
        result: &[usize],
        holds: impl Fn(&usize) -> bool,
    ) -> PassResult<'c, Self> {
        let shape = Space::new(op, result.to_vec())?.shape;
        let is_unit = |(at, extent): (&usize, &i64)| *extent == 1 && holds(at);
        let are: Vec<bool> = result.iter().zip(&shape).map(is_unit).collect();
        let is_plain = !shape.contains(&DYNAMIC) && are.contains(&true) && are.contains(&false);
        if !is_plain || !starts_from_zero(builder, op)? {
            return Ok(Self::default());
        }
        let loops = result.iter().zip(&are).filter(|(_, unit)| **unit);
        Ok(Self {
            loops: loops.map(|(at, _)| *at).collect(),
            shape,
            are,
        })
    }

    /// The other loops of these.
    pub(super) fn left_of(&self, loops: &[usize]) -> Vec<usize> {
        let left = loops.iter().filter(|at| !self.loops.contains(at));
        left.copied().collect()
    }

    /// A factor without them.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn dropped<'c>(
        &self,
        builder: &Builder<'c>,
        factor: Factor<'c>,
    ) -> PassResult<'c, Factor<'c>> {
        let are: Vec<_> = factor
            .loops
            .iter()
            .map(|at| self.loops.contains(at))
            .collect();
        Ok(Factor {
            value: squeezed(builder, factor.value, &are)?,
            loops: self.left_of(&factor.loops),
        })
    }

    /// The result with them.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn added<'c>(
        &self,
        builder: &Builder<'c>,
        value: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        match self.loops.is_empty() {
            true => Ok(value),
            false => builder.expand(value, &self.shape, &groups_without(&self.are), &[]),
        }
    }
}
