//! Building loops and branches.

use super::Code;
use crate::ir::{Val, value};
use crate::{PassError, PassResult};
use melior::ir::{Type, ValueLike};

impl<'c> Code<'c> {
    /// `scf.for` from 0 to `end`; `body` gives the values that the next round starts from.
    pub fn for_each(
        &self,
        end: Val<'c>,
        step: i64,
        starts: &[Val<'c>],
        body: impl FnOnce(Self, Val<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let bounds = [self.index(0)?, end, self.index(step)?];
        self.for_range(bounds, starts, body)
    }

    /// `scf.for` from a number to before another in steps; `body` gives the values that the next round starts from.
    pub fn for_range(
        &self,
        bounds: [Val<'c>; 3],
        starts: &[Val<'c>],
        body: impl FnOnce(Self, Val<'c>, &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let types: Vec<Type<'c>> = starts.iter().map(|start| start.r#type()).collect();
        let arguments: Vec<_> = std::iter::once(self.builder.index_type())
            .chain(types.iter().copied())
            .collect();
        let (region, values, inner) = self.builder.region(&arguments);
        let Some((&at, carried)) = values.split_first() else {
            return Err(PassError::new(self.location(), "a loop has no variable"));
        };
        let next = body(Self { builder: inner }, at, carried)?;
        inner.operation("scf.yield", &next, &[], &[], Vec::new())?;
        let mut operands = bounds.to_vec();
        operands.extend(starts);
        let op = self
            .builder
            .operation("scf.for", &operands, &types, &[], vec![region])?;
        Ok(value::results(op))
    }

    /// `scf.if` without results.
    pub fn branch(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(Self) -> PassResult<'c>,
        otherwise: impl FnOnce(Self) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let (first, _, inner) = self.builder.region(&[]);
        then(Self { builder: inner })?;
        inner.operation("scf.yield", &[], &[], &[], Vec::new())?;
        let (second, _, inner) = self.builder.region(&[]);
        otherwise(Self { builder: inner })?;
        inner.operation("scf.yield", &[], &[], &[], Vec::new())?;
        let regions = vec![first, second];
        let op = self
            .builder
            .operation("scf.if", &[condition], &[], &[], regions);
        op.map(drop)
    }
}
