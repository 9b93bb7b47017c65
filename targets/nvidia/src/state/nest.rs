//! A `linalg.generic` of a kernel: loops that the whole grid executes.

use super::branches::is_same;
use super::kernel::Kernel;
use super::storage::is_row_major;
use crate::plan::Decline;
use crate::plan::nest::{MOST_OPERATIONS, NestPlan, neighbours, of_rows, shares, slices};
use crate::state::types;
use axe_passes::fuse::nest::{
    INITIAL, RowFold, maps, parallel, reductions, reused_table, row_folds,
};
use axe_passes::ir::value::{identity, name, operands};
use axe_passes::ir::walk::{block_arguments, blocks, nested};
use axe_passes::ir::{DYNAMIC, Op, Val, attribute};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Attribute, ValueLike};

/// The operation.
pub(crate) const NEST: &str = "linalg.generic";

/// Loops, read.
pub(crate) struct Nest<'c> {
    /// The memrefs, inputs first.
    pub operands: Vec<Val<'c>>,
    /// How many of them are inputs.
    pub inputs: usize,
    /// For each, what its dimensions are indexed with.
    pub maps: Vec<Vec<AffineExpr<'c>>>,
    /// For each loop, whether it is a reduction.
    pub reductions: Vec<bool>,
    /// For each loop, an operand and its dimension that has the extent.
    pub sources: Vec<(usize, usize)>,
    /// For each result, the number that it starts from; none where that is in memory.
    pub initial: Vec<Option<Attribute<'c>>>,
    order: Vec<usize>,
    /// How many operations the body has; none where it cannot be repeated for neighbours.
    operations: Option<i64>,
    /// The bounds of the loops in the body, which neighbours run together.
    bounds: Vec<Val<'c>>,
    op: Op<'c>,
    cache_bytes: i64,
}

impl<'c> Nest<'c> {
    /// Reads the loops of a kernel.
    ///
    /// # Errors
    /// Why they cannot be executed.
    pub(crate) fn of(kernel: &Kernel<'c>, op: Op<'c>) -> Result<Self, Decline> {
        if op.result_count() > 0 {
            return Err(Decline::new("expected loops on memrefs, without results"));
        }
        let operands = operands(op);
        whole_arguments(kernel, &operands)?;
        whole_arguments(kernel, &loaded(op))?;
        let maps =
            maps(op).ok_or_else(|| Decline::new("expected indexing maps without symbols"))?;
        let maps: Vec<Vec<_>> = maps.into_iter().map(results_of).collect();
        let reductions = reductions(op);
        let sources = (0..reductions.len()).map(|at| {
            source(&operands, &maps, at)
                .ok_or_else(|| Decline::new(format!("no operand has the extent of loop {at}")))
        });
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let segments = super::site::segment(op, 0);
        let initial = op.attribute(INITIAL).ok().and_then(attribute::elements);
        let initial = initial.unwrap_or_default().into_iter();
        let number = |value: &Attribute<'c>| {
            attribute::integer(*value).is_some() || attribute::float(*value).is_some()
        };
        let mut initial: Vec<_> = initial.map(|value| Some(value).filter(number)).collect();
        initial.resize(operands.len().saturating_sub(segments), None);
        Ok(Self {
            order: parallel(op, &reductions),
            operations: repeated(op),
            bounds: bounds(op),
            op,
            cache_bytes: kernel.chip.cache_bytes,
            inputs: segments,
            operands,
            maps,
            reductions,
            sources,
            initial,
        })
    }

    /// The plan of the loops.
    pub(crate) fn plan(&self) -> NestPlan {
        let extents = self.sources.iter().map(|source| self.extent(source));
        let extents: Vec<_> = extents.collect();
        let along = self
            .order
            .iter()
            .map(|at| extents.get(*at).copied().flatten());
        let along: Vec<_> = along.collect();
        let plan = NestPlan::new(&self.order, &extents);
        if let Some([vector, lanes]) = self.of_rows(&along) {
            return plan.by(vector).in_rows_of(lanes);
        }
        let vector = self.vector(&along);
        let slices = self.slices(&along, vector);
        plan.by(vector).in_slices(slices)
    }

    /// The loops of the body that go over the row of a point along the last parallel loop.
    pub(crate) fn row_folds(&self) -> Vec<RowFold<'c>> {
        let last = self.order.last().copied();
        let found = last.and_then(|last| {
            let extent = self.extent(self.sources.get(last)?)?;
            row_folds(self.op, last, extent)
        });
        found.unwrap_or_default()
    }

    /// How many neighbours a thread has, and how many lanes a row, where the body goes over rows alone ([`of_rows`]).
    fn of_rows(&self, extents: &[Option<i64>]) -> Option<[i64; 2]> {
        let is_for_rows = !self.reductions.contains(&true) && !self.row_folds().is_empty();
        let sizes = is_for_rows.then_some([self.narrowest()?, self.operations?])?;
        of_rows(sizes, extents)
    }

    fn extent(&self, (operand, dim): &(usize, usize)) -> Option<i64> {
        let shape = types::memref_shape(self.operands.get(*operand)?.r#type())?;
        shape.get(*dim).copied().filter(|extent| *extent != DYNAMIC)
    }

    /// Bytes of the narrowest result.
    fn narrowest(&self) -> Option<i64> {
        let outs = self.operands.get(self.inputs..).unwrap_or_default().iter();
        outs.filter_map(|out| types::bytes(axe_dialect::element_type(out.r#type())))
            .min()
    }

    /// In how many slices of the last parallel loop, of these extents, rows of a table that is read again stay in L2.
    fn slices(&self, extents: &[Option<i64>], vector: i64) -> i64 {
        let known = extents.iter().copied().collect::<Option<Vec<_>>>();
        let Some((own, last)) = known.as_ref().and_then(|own| Some((own, *own.last()?))) else {
            return 1;
        };
        let all = shares(vector, extents);
        let share = all.and_then(|all| all.last().copied()).unwrap_or(1);
        let points = own
            .iter()
            .try_fold(1i64, |all, extent| all.checked_mul(*extent));
        let table = self.order.last().zip(points);
        let table = table.and_then(|(at, points)| reused_table(self.op, *at, points));
        match (table, self.narrowest()) {
            (Some(table), Some(bytes)) if own.len() > 1 && !self.reductions.contains(&true) => {
                slices(
                    [table, self.cache_bytes],
                    last.saturating_mul(bytes),
                    share * bytes,
                )
            }
            _ => 1,
        }
    }

    /// How many neighbours along the last parallel loops, of these extents, fill the widest access of a thread to the narrowest result.
    fn vector(&self, extents: &[Option<i64>]) -> i64 {
        let (Some(bytes), Some(operations)) = (self.narrowest(), self.operations) else {
            return 1;
        };
        if self.reductions.contains(&true) {
            return 1;
        }
        let together = |shares: Vec<i64>| {
            let along = self.order.iter().copied().zip(shares);
            let along: Vec<_> = along.filter(|(_, share)| *share > 1).collect();
            self.bounds.iter().all(|bound| is_same(*bound, &along))
        };
        neighbours([bytes, operations], !self.bounds.is_empty(), |number| {
            shares(number, extents).is_some_and(together)
        })
    }

    /// How many turns of the last reduction, of this extent, have their elements on their way together.
    pub(crate) fn turns_at_once(&self, extent: Option<i64>) -> i64 {
        let (Some(extent), Some(operations)) = (extent, self.operations) else {
            return 1;
        };
        let fits = |turns: &i64| {
            extent > *turns && extent % turns == 0 && turns * operations <= MOST_OPERATIONS
        };
        let turns = [8, 4, 2].into_iter().find(fits);
        turns.filter(|_| self.carries()).unwrap_or(1)
    }

    /// Whether the results are carried in registers: none of them is indexed by a reduction.
    pub(crate) fn carries(&self) -> bool {
        let results = self.maps.get(self.inputs..).unwrap_or_default();
        let reduced = |at: usize| self.reductions.get(at) == Some(&true);
        !results.iter().flatten().any(|index| {
            (0..self.reductions.len()).any(|at| reduced(at) && index.is_function_of_dim(at))
        })
    }
}

/// Declines what are no arguments of the kernel, whole and row-major, which operators have that the whole grid executes.
pub(crate) fn whole_arguments<'c>(kernel: &Kernel<'c>, values: &[Val<'c>]) -> Result<(), Decline> {
    let body = blocks(kernel.op).first().copied();
    let arguments = body.map(block_arguments).unwrap_or_default();
    let is_argument = |value: &Val<'c>| {
        arguments
            .iter()
            .any(|argument| identity(*argument) == identity(*value))
    };
    for value in values {
        if !is_argument(value) || !is_row_major(value.r#type()) {
            return Err(Decline::new(format!(
                "expected arguments of the kernel that are memrefs without layouts, got {}",
                value.r#type()
            )));
        }
        kernel.storage(*value).map_err(Decline::new)?;
    }
    Ok(())
}

/// The bounds of the loops in a body.
fn bounds(op: Op<'_>) -> Vec<Val<'_>> {
    let all = nested(op, &|_| true).into_iter();
    let loops = all.filter(|inner| name(*inner) == "scf.for");
    loops
        .flat_map(|inner| operands(inner).into_iter().take(3))
        .collect()
}

/// The operations of a body that neighbours can have next to each other: branches and loops are all that has others in it.
fn repeated(op: Op<'_>) -> Option<i64> {
    let all = nested(op, &|_| true);
    let plain =
        |op: &Op<'_>| op.region_count() == 0 || ["scf.if", "scf.for"].contains(&name(*op).as_str());
    let own = |inner: &Op<'_>| inner.to_raw().ptr != op.to_raw().ptr;
    let inner: Vec<_> = all.into_iter().filter(own).collect();
    inner
        .iter()
        .all(plain)
        .then(|| i64::try_from(inner.len()).unwrap_or(i64::MAX))
}

/// The memrefs that a body takes elements of.
fn loaded<'c>(op: Op<'c>) -> Vec<Val<'c>> {
    let all = nested(op, &|_| true).into_iter();
    let loads = all.filter(|inner| name(*inner) == "memref.load");
    loads
        .filter_map(|load| operands(load).first().copied())
        .collect()
}

fn results_of(map: AffineMap<'_>) -> Vec<AffineExpr<'_>> {
    (0..map.result_count())
        .filter_map(|at| map.result(at).ok())
        .collect()
}

/// An operand and its dimension that has the extent of a loop, a static one where there is one.
fn source(operands: &[Val<'_>], maps: &[Vec<AffineExpr<'_>>], at: usize) -> Option<(usize, usize)> {
    let mut found = None;
    for (operand, (value, map)) in operands.iter().zip(maps).enumerate() {
        let shape = types::memref_shape(value.r#type())?;
        for (dim, (index, extent)) in map.iter().zip(shape).enumerate() {
            if index.is_dim() && index.dim_position() == at {
                if extent != DYNAMIC {
                    return Some((operand, dim));
                }
                found = found.or(Some((operand, dim)));
            }
        }
    }
    found
}
