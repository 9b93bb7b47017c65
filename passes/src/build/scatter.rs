//! Building what CTAs of a cluster combine, of which each has a part.

use super::{Code, layout_error};
use crate::PassResult;
use crate::ir::Val;
use axe_dialect::ops::{self, ReduceScatterOp};
use axe_dialect::{Combiner, SpaceAttribute, memref_type};
use melior::ir::Type;

impl<'c> Code<'c> {
    /// `axe.reduce_scatter.create`: for parts of this shape, of all CTAs but one.
    ///
    /// # Errors
    /// When building fails.
    pub fn reduce_scatter_create(
        &self,
        others: i64,
        part: &[i64],
        element: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let location = self.builder.location;
        let shape: Vec<_> = std::iter::once(others)
            .chain(part.iter().copied())
            .collect();
        let shared = SpaceAttribute::new(location, "shared");
        let r#type = memref_type(location, &shape, element, None, shared)
            .ok_or_else(|| layout_error(location, "no storage of parts"))?;
        self.builder
            .value(ops::REDUCE_SCATTER_CREATE, &[], r#type, &[])
    }

    /// `axe.reduce_scatter`: this CTA's part of a tile along `dim`, combined over the cluster.
    ///
    /// # Errors
    /// When building fails.
    pub fn reduce_scatter(
        &self,
        combiner: Combiner,
        (source, dim): (Val<'c>, i64),
        through: Val<'c>,
        part: Type<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let combiner = self
            .builder
            .attribute(|context| combiner.attribute(context));
        let attributes = [("combiner", combiner), ("dim", self.i64(dim))];
        let operands = ReduceScatterOp::operands(source, through);
        self.builder.operator_value(&operands, part, &attributes)
    }
}
