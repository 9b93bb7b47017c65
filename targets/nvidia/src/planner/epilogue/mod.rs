//! Epilogues: what follows a product's sums on one tile, and their stores.
//!
//! * [`Epilogue::store`]: a tile at once;
//! * [`Epilogue::store_subtiles`]: one subtile after the other;
//! * [`reduction`]: after the sums of the parts of split-K and stream-K, from memory;
//! * [`pairs`]: what is formed of two columns;
//! * [`by_row`]: along rows of memory, through shared memory;
//! * [`cluster`]: after those of the CTAs of a cluster, from distributed shared memory.

pub(super) mod by_row;
pub(super) mod cluster;
pub(super) mod pairs;
pub(super) mod reduction;
pub(super) mod subtile;

use super::gemm::product::Gemm;
use axe_dialect::{element_type, ops};
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::{Argument, Arguments, Inputs};
use axe_passes::fuse::evaluate::{Evaluator, Origin};
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::fusion::{Fusion, is_by_row};
use axe_passes::fuse::operators::is_reshape;
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Cut, Kind, source};
use axe_passes::ir::Val;
use axe_passes::ir::value::{defining, identity, name};
use by_row::Together;
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;
use subtile::{RowBytes, Subtile};

/// What follows a product's sums in one kernel.
pub(super) struct Epilogue<'a, 'c> {
    pub gemm: &'a Gemm<'c>,
    pub fusion: &'a Fusion<'c>,
    inputs: Inputs<'c>,
    scalars: HashMap<usize, Val<'c>>,
    pub outputs: Vec<Argument<'c>>,
}

impl<'a, 'c> Epilogue<'a, 'c> {
    /// The epilogue of a kernel with these arguments, and what else it reads.
    pub(super) fn of(
        gemm: &'a Gemm<'c>,
        fusion: &'a Fusion<'c>,
        arguments: Arguments<'c>,
    ) -> (Self, std::vec::IntoIter<Argument<'c>>) {
        let Arguments {
            mut operands,
            inputs,
            scalars,
            outputs,
        } = arguments;
        // Tables come first.
        operands.drain(..fusion.tables.len().min(operands.len()));
        let epilogue = Self {
            gemm,
            fusion,
            inputs,
            scalars,
            outputs,
        };
        (epilogue, operands.into_iter())
    }
}

impl<'c> Epilogue<'_, 'c> {
    /// The same, but that rows from `end` on are not stored: those of a tile that reaches into the next group.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn up_to(&self, code: Code<'c>, end: Val<'c>) -> PassResult<'c, Self> {
        let first_rows = |((_, kind), to): (&(Val<'c>, Kind), &Argument<'c>)| {
            let memref = match kind {
                Kind::Full | Kind::Row | Kind::Blocks(_) | Kind::Pairs(_) => {
                    code.first_rows(to.memref, &to.extents, end)?
                }
                Kind::Column => to.memref,
            };
            Ok(Argument::global(memref, to.extents.clone()))
        };
        let outputs = self.fusion.outputs.iter().zip(&self.outputs);
        Ok(Self {
            gemm: self.gemm,
            fusion: self.fusion,
            inputs: self.inputs.clone(),
            scalars: self.scalars.clone(),
            outputs: outputs.map(first_rows).collect::<PassResult<_>>()?,
        })
    }

    /// The group's values on a tile at this place.
    pub(super) fn evaluator<'e>(
        &'e self,
        code: Code<'c>,
        registers: &'e Registers,
        origin: Origin<'c>,
    ) -> Evaluator<'e, 'c> {
        let tile = (registers, Cut::rows_of(self.gemm.columns()));
        Evaluator::new(code, tile, (&self.inputs, &self.scalars), origin)
    }

    /// What the sums start from, where a product is added to something.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn start(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
    ) -> PassResult<'c, Option<Val<'c>>> {
        let Some(start) = self.gemm.start.filter(|_| !self.adds_behind()) else {
            return Ok(None);
        };
        let value = evaluator.value(start, Kind::Full)?;
        convert(evaluator, value, self.gemm.accumulator).map(Some)
    }

    /// Whether what a product is added to comes behind its sums: of a number for each row, several accumulators would begin in one register, and
    /// `ptxas` waits for each `wgmma` then.
    fn adds_behind(&self) -> bool {
        let columns = Cut::rows_of(self.gemm.columns());
        self.gemm
            .start
            .is_some_and(|start| is_by_row(start, columns))
    }

    /// Makes sums a product's value.
    fn begin(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        result: Val<'c>,
        mut sum: Val<'c>,
    ) -> PassResult<'c> {
        let start = self.gemm.start.filter(|_| result == self.gemm.result);
        if let Some(start) = start.filter(|_| self.adds_behind()) {
            let start = evaluator.value(start, Kind::Full)?;
            let element = element_type(sum.r#type());
            let start = convert(evaluator, start, element)?;
            sum = Fold::PRODUCT.merge(evaluator.code, element, sum, start)?;
        }
        let element = evaluator.code.builder.tensor_of(result)?.element;
        let value = convert(evaluator, sum, element)?;
        evaluator
            .known
            .insert((identity(result), Kind::Full), value);
        Ok(())
    }

    /// Forms what follows a tile of sums, and stores it, by a CTA where all of its threads do so together.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store(
        &self,
        evaluator: &mut Evaluator<'_, 'c>,
        sum: Val<'c>,
        mut together: Option<Together>,
    ) -> PassResult<'c> {
        evaluator.known.clear();
        self.begin(evaluator, self.gemm.result, sum)?;
        for ((value, kind), to) in self.fusion.outputs.iter().zip(&self.outputs) {
            let is_stored = match (kind, &mut together) {
                (Kind::Full, Some(cta)) => self.store_by_row(evaluator, (*value, to), cta)?,
                _ => false,
            };
            match kind {
                _ if is_stored => {}
                Kind::Blocks(of) => {
                    evaluator.store_blocks(*value, (*of, 0), None, to)?;
                }
                _ => evaluator.store(*value, *kind, to)?,
            }
        }
        Ok(())
    }

    /// Stores sums to their place in the workspace of parts, which comes after the results.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn keep(
        &self,
        code: Code<'c>,
        shape: &[i64],
        at: [Val<'c>; 3],
        sum: Val<'c>,
    ) -> PassResult<'c> {
        let Some(to) = self.outputs.last() else {
            return Err(layout_error(code.builder.location, "a part has no sums"));
        };
        code.store(sum, code.global_box(to.memref, &to.extents, &at, shape)?)
    }

    /// The subtiles in which sums become results, where that is not all of them at once.
    ///
    /// # Errors
    /// When a subtile has no layout.
    pub(super) fn subtiles(
        &self,
        tile: &Registers,
        row_bytes: RowBytes,
    ) -> axe_layout::Result<Vec<Subtile>> {
        let outputs = || {
            self.fusion
                .outputs
                .iter()
                .filter(|(_, kind)| by_part(*kind))
        };
        let bytes = outputs().map(|(value, _)| element_bytes(element_type(value.r#type())));
        let subtiles = match bytes.max() {
            Some(bytes) => {
                let plain =
                    outputs().all(|(value, kind)| *kind == Kind::Full && self.is_plain(*value));
                Subtile::of(tile, bytes, row_bytes, plain)
            }
            None => Ok(Vec::new()),
        }?;
        // Both halves of sums are in a subtile.
        Ok(match self.gemm.has_halves() && subtiles.is_empty() {
            true => vec![Subtile {
                first: 0,
                registers: tile.clone(),
            }],
            false => subtiles,
        })
    }

    /// Whether a value is the product, in whatever type.
    fn is_plain(&self, value: Val<'c>) -> bool {
        value == self.gemm.result
            || defining(value)
                .filter(|op| name(*op) == ops::CAST || is_reshape(*op))
                .and_then(source)
                .is_some_and(|from| self.is_plain(from))
    }

    /// The same subtile by subtile; what the epilogue needs of whole rows is formed once. With `ahead` threads have registers
    /// for what the next one needs.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn store_subtiles<'a>(
        &'a self,
        evaluator: &'a mut Evaluator<'_, 'c>,
        sum: Val<'c>,
        subtiles: &'a [Subtile],
        ahead: bool,
    ) -> PassResult<'c> {
        let (code, gemm) = (evaluator.code, self.gemm);
        evaluator.known.clear();
        // Products are there: nothing below them is needed.
        let second = gemm.second.map(|second| second.result);
        let products: Vec<_> = [gemm.result].into_iter().chain(second).collect();
        let known = products.iter();
        let known = known.map(|product| ((identity(*product), Kind::Full), sum));
        evaluator.known.extend(known.clone());
        let outputs = || self.fusion.outputs.iter().zip(&self.outputs);
        for ((value, kind), to) in outputs() {
            match by_part(*kind) {
                true => evaluator.form_rows(*value, *kind)?,
                false => evaluator.store(*value, *kind, to)?,
            }
        }
        if let Some(start) = gemm.start.filter(|_| self.adds_behind()) {
            evaluator.form_rows(start, Kind::Full)?;
        }
        // Those of the largest elements first: the others' subtiles fit in their slots, and sums that are stored as they are
        // make room for what is formed of them.
        let mut full: Vec<_> = outputs().filter(|((_, kind), _)| by_part(*kind)).collect();
        let mut states = vec![None; full.len()];
        full.sort_by_key(|((value, _), _)| -element_bytes(element_type(value.r#type())));
        let fetch = |subtile: &'a Subtile| {
            let column = code.add(evaluator.origin.column, code.index(subtile.first)?)?;
            let mut inner = evaluator.at_part(&subtile.registers, column);
            inner.known.extend(known.clone());
            for ((value, kind), _) in full.iter().filter(|_| ahead) {
                inner.fetch(*value, *kind)?;
            }
            Ok((subtile, inner))
        };
        let mut subtiles = subtiles.iter();
        let mut next = subtiles.next().map(fetch).transpose()?;
        while let Some((subtile, mut inner)) = next {
            // What the next subtile needs is on its way while this one is formed and stored.
            next = subtiles.next().map(fetch).transpose()?;
            let r#type = subtile
                .registers
                .r#type(code, Kind::Full, gemm.accumulator)?;
            // The sums of a second product are behind those of the first.
            for (number, product) in (0..).zip(&products) {
                let at = number * evaluator.registers.shape[1] + subtile.first;
                let part = code.extract_slice(sum, &[0, at], r#type)?;
                self.begin(&mut inner, *product, part)?;
            }
            for (((value, kind), to), state) in full.iter().zip(&mut states) {
                match kind {
                    Kind::Blocks(of) => {
                        let place = (*of, subtile.first);
                        *state = inner.store_blocks(*value, place, state.take(), to)?;
                    }
                    _ => inner.store(*value, *kind, to)?,
                }
            }
        }
        Ok(())
    }
}

/// Whether each subtile stores its own part of a value.
const fn by_part(kind: Kind) -> bool {
    matches!(kind, Kind::Full | Kind::Blocks(_) | Kind::Pairs(_))
}

/// A tile of another element type.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn convert<'c>(
    evaluator: &Evaluator<'_, 'c>,
    value: Val<'c>,
    element: Type<'c>,
) -> PassResult<'c, Val<'c>> {
    let code = evaluator.code;
    if code.builder.tensor_of(value)?.element == element {
        return Ok(value);
    }
    let r#type = evaluator.registers.r#type(code, Kind::Full, element)?;
    code.builder.value(ops::CAST, &[value], r#type, &[])
}
