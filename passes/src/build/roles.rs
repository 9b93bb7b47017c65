//! Building roles, pipelines and loops over tiles.

use super::{Code, layout_error};
use crate::PassResult;
use crate::ir::{Val, value};
use axe_dialect::ops::{self, CopyOp, GemmOp};
use axe_dialect::{Level, RasterOrder, element_type};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Attribute, Type, ValueLike};

/// CTAs of a cluster that a copy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multicast {
    /// The one that executes it.
    #[default]
    No,
    /// All.
    All,
    /// So many, whose ranks are so far apart.
    Among([i64; 2]),
}

impl Multicast {
    /// So many CTAs, whose ranks are so far apart, of a cluster of `all`.
    #[must_use]
    pub const fn among([ctas, apart]: [i64; 2], all: i64) -> Self {
        match ctas {
            1 => Self::No,
            _ if ctas == all => Self::All,
            _ => Self::Among([ctas, apart]),
        }
    }
}

/// For whom a copy is, and how long the L2 cache is to keep what it reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// The CTAs that it is for, each of which fetches a part.
    pub multicast: Multicast,
    /// The option `l2` of `axe.copy`.
    pub l2: Option<&'static str>,
}

impl From<bool> for Traffic {
    /// With `multicast` or not.
    fn from(multicast: bool) -> Self {
        Self {
            multicast: match multicast {
                true => Multicast::All,
                false => Multicast::No,
            },
            l2: None,
        }
    }
}

impl<'c> Code<'c> {
    pub(super) fn i64(&self, value: i64) -> Attribute<'c> {
        self.builder.attribute(|context| {
            let i64 = melior::ir::r#type::IntegerType::new(context, 64).into();
            IntegerAttribute::new(i64, value).into()
        })
    }

    fn effect(&self, name: &str, operands: &[Val<'c>]) -> PassResult<'c> {
        self.builder
            .operation(name, operands, &[], &[], Vec::new())
            .map(|_| ())
    }

    /// `axe.scope level [range)`, with a budget of registers.
    pub fn scope(
        &self,
        level: Level,
        range: [i64; 2],
        registers: Option<i64>,
        body: impl FnOnce(Self) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let mut attributes = vec![("range", self.builder.i64s(&range))];
        attributes.extend(registers.map(|registers| ("registers", self.i64(registers))));
        self.scope_with(level, attributes, body)
    }

    /// `axe.scope level`: a thread group for each member.
    pub fn thread_groups(
        &self,
        level: Level,
        body: impl FnOnce(Self) -> PassResult<'c>,
    ) -> PassResult<'c> {
        self.scope_with(level, Vec::new(), body)
    }

    fn scope_with(
        &self,
        level: Level,
        mut attributes: Vec<(&str, Attribute<'c>)>,
        body: impl FnOnce(Self) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let (region, _, inner) = self.builder.region(&[]);
        body(Self { builder: inner })?;
        inner.operation(ops::END, &[], &[], &[], Vec::new())?;
        let level = self.builder.attribute(|context| level.attribute(context));
        attributes.insert(0, ("level", level));
        self.builder
            .operation(ops::SCOPE, &[], &[], &attributes, vec![region])
            .map(|_| ())
    }

    /// `axe.for_tiles` over a grid, in a raster order with so many rows of tiles at a time; with `pingpong` thread groups take turns.
    pub fn for_tiles(
        &self,
        counts: &[Val<'c>],
        (raster, swizzle): (RasterOrder, i64),
        pingpong: bool,
        body: impl FnOnce(Self, &[Val<'c>]) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let index = self.builder.index_type();
        let (region, at, inner) = self.builder.region(&vec![index; counts.len()]);
        body(Self { builder: inner }, &at)?;
        inner.operation(ops::END, &[], &[], &[], Vec::new())?;
        let raster = self.builder.attribute(|context| raster.attribute(context));
        let mut attributes = vec![("raster", raster), ("swizzle", self.i64(swizzle))];
        attributes.extend(pingpong.then(|| ("pingpong", self.builder.unit())));
        self.builder
            .operation(ops::FOR_TILES, counts, &[], &attributes, vec![region])
            .map(|_| ())
    }

    /// `axe.tile_at`: the row and the column of a tile by its number.
    pub fn tile_at(
        &self,
        number: Val<'c>,
        [rows, columns]: [Val<'c>; 2],
        (raster, swizzle): (RasterOrder, i64),
    ) -> PassResult<'c, [Val<'c>; 2]> {
        let raster = self.builder.attribute(|context| raster.attribute(context));
        let op = self.builder.operation(
            ops::TILE_AT,
            &[number, rows, columns],
            &[self.builder.index_type(); 2],
            &[("raster", raster), ("swizzle", self.i64(swizzle))],
            Vec::new(),
        )?;
        match value::results(op).as_slice() {
            &[row, column] => Ok([row, column]),
            _ => Err(layout_error(
                self.builder.location,
                "a tile has a row and a column",
            )),
        }
    }

    /// The number of this CTA in its cluster.
    pub fn rank_in_cluster(&self) -> PassResult<'c, Val<'c>> {
        let dimension = self.builder.parsed("#gpu<dim x>")?;
        self.builder.value(
            "gpu.cluster_block_id",
            &[],
            self.builder.index_type(),
            &[("dimension", dimension)],
        )
    }

    /// `axe.pipeline.create`.
    pub fn pipeline(&self, stages: i64) -> PassResult<'c, Val<'c>> {
        let r#type = self.builder.r#type(axe_dialect::pipeline_type);
        let attributes = [("stages", self.i64(stages))];
        self.builder
            .value(ops::PIPELINE_CREATE, &[], r#type, &attributes)
    }

    fn take(&self, name: &str, ring: Val<'c>) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        let slot = self.builder.r#type(axe_dialect::slot_type);
        let types = [slot, self.builder.index_type()];
        let op = self
            .builder
            .operation(name, &[ring], &types, &[], Vec::new())?;
        match value::results(op).as_slice() {
            &[slot, stage] => Ok((slot, stage)),
            _ => Err(layout_error(self.builder.location, "a slot has a stage")),
        }
    }

    /// The next stage to fill: its slot and number.
    pub fn acquire(&self, ring: Val<'c>) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        self.take(ops::PIPELINE_ACQUIRE, ring)
    }

    /// The next full stage: its slot and number.
    pub fn wait_slot(&self, ring: Val<'c>) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        self.take(ops::PIPELINE_WAIT, ring)
    }

    /// `axe.pipeline.commit`.
    pub fn commit_slot(&self, ring: Val<'c>, slot: Val<'c>) -> PassResult<'c> {
        self.effect(ops::PIPELINE_COMMIT, &[ring, slot])
    }

    /// `axe.pipeline.release`.
    pub fn release_slot(&self, ring: Val<'c>, slot: Val<'c>) -> PassResult<'c> {
        self.effect(ops::PIPELINE_RELEASE, &[ring, slot])
    }

    /// An asynchronous copy that completes a slot.
    ///
    /// # Errors
    /// When building fails.
    pub fn copy_signal(
        &self,
        from: Val<'c>,
        to: Val<'c>,
        slot: Val<'c>,
        traffic: impl Into<Traffic>,
    ) -> PassResult<'c> {
        let operands = CopyOp::operands(from, Some(to), None, Some(slot));
        let traffic = traffic.into();
        let mut attributes = vec![("isAsync", self.builder.unit())];
        if traffic.multicast != Multicast::No {
            attributes.push(("multicast", self.builder.unit()));
        }
        if let Multicast::Among(ctas) = traffic.multicast {
            attributes.push(("among", self.builder.i64s(&ctas)));
        }
        if let Some(hint) = traffic.l2 {
            let options = self.builder.parsed(&format!("{{l2 = \"{hint}\"}}"))?;
            attributes.push(("options", options));
        }
        self.builder
            .operator(&operands, &[], &attributes)
            .map(|_| ())
    }

    /// An asynchronous product; `flags` are `trans_a` and `trans_b`.
    pub fn gemm_async(
        &self,
        [a, b]: [Val<'c>; 2],
        acc: Option<Val<'c>>,
        sums: Type<'c>,
        flags: [bool; 2],
    ) -> PassResult<'c, Val<'c>> {
        let names = ["trans_a", "trans_b"].into_iter().zip(flags);
        let mut attributes: Vec<_> = names
            .filter(|(_, set)| *set)
            .map(|(name, _)| (name, self.builder.unit()))
            .collect();
        attributes.push(("isAsync", self.builder.unit()));
        if element_type(a.r#type()).to_string() == "f32" {
            // A product of f32 is one of roles only where it may round to tf32.
            let options = self.builder.parsed("{precision = \"tf32\"}")?;
            attributes.push(("options", options));
        }
        let operands = GemmOp::operands(a, b, acc);
        self.builder.operator_value(&operands, sums, &attributes)
    }

    /// The sums once at most `pending` products are under way.
    pub fn wait_products(&self, sums: Val<'c>, pending: i64) -> PassResult<'c, Val<'c>> {
        let attributes = [("pending", self.i64(pending))];
        self.builder
            .value(ops::WAIT, &[sums], sums.r#type(), &attributes)
    }

    /// The same, and another value that is not used before.
    pub fn wait_products_with(
        &self,
        sums: Val<'c>,
        other: Val<'c>,
        pending: i64,
    ) -> PassResult<'c, (Val<'c>, Val<'c>)> {
        let types = [sums.r#type(), other.r#type()];
        let attributes = [("pending", self.i64(pending))];
        let op =
            self.builder
                .operation(ops::WAIT, &[sums, other], &types, &attributes, Vec::new())?;
        match value::results(op).as_slice() {
            &[sums, other] => Ok((sums, other)),
            _ => Err(layout_error(self.builder.location, "a wait has two values")),
        }
    }
}
