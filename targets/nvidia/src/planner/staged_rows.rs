//! Parts of long rows in shared memory: how a CTA, or each of those of a cluster, brings its own and goes through it
//! ([`super::long_rows`]).

use super::layouts::layout;
use super::long_rows::RowWork;
use super::row_states::States;
use super::row_window::{Tail, Window};
use crate::facts::chip::ACCESS_BYTES;
use crate::vocabulary::WARP;
use axe_layout::Layout;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::arguments::{Argument, Inputs};
use axe_passes::fuse::evaluate::RowPart;
use axe_passes::fuse::peel::Peel;
use axe_passes::fuse::registers::registers;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::rounds::Round;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::ValueLike;

/// A CTA's part of a row, and the others of its cluster that have the other parts.
#[derive(Debug)]
pub(super) struct Staged<'c> {
    ctas: i64,
    /// Warps of a CTA.
    warps: i64,
    /// Whether each of them has a part of its columns.
    in_parts: bool,
    /// Whether the CTA goes through several rows.
    stays: bool,
    /// Whether its warps hold them in registers.
    holds: bool,
    /// Whether it has what all rows have of its columns.
    has_common: bool,
    columns: i64,
    /// Elements that a thread has next to each other.
    vector: i64,
    /// Columns of the row.
    whole: i64,
    /// The row, the CTA's first column of it, and where the CTA's part begins if nothing is peeled off.
    row: Val<'c>,
    first: Val<'c>,
    part: Val<'c>,
    states: Option<States<'c>>,
    peeled: Option<Peeled<'c>>,
}

/// The columns of a row in front of its first boundary in memory.
#[derive(Debug)]
struct Peeled<'c> {
    /// How many they are.
    columns: Val<'c>,
    /// The boundary's place in row-major memory.
    boundary: Val<'c>,
    /// What is read there.
    arguments: Inputs<'c>,
}

impl<'c> Staged<'c> {
    /// The part of `staged` columns of a row of so many.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        work: RowWork,
        (row, [staged, columns]): (Val<'c>, [i64; 2]),
    ) -> PassResult<'c, Self> {
        let ctas = work.ctas;
        let part = match ctas {
            1 => code.index(0)?,
            _ => code.times(code.rank_in_cluster()?, staged)?,
        };
        let peeled = work.peels(columns).then(|| {
            let begin = code.times(row, columns)?;
            let vector = work.tile.vector;
            let behind = code.rem(begin, code.index(vector)?)?;
            let front = code.sub(code.index(vector)?, behind)?;
            Ok(Peeled {
                columns: code.rem(front, code.index(vector)?)?,
                boundary: code.times(code.ceil_div(begin, vector)?, vector)?,
                arguments: Inputs::new(),
            })
        });
        let peeled = peeled.transpose()?;
        let first = match &peeled {
            Some(peeled) => code.add(peeled.columns, part)?,
            None => part,
        };
        Ok(Self {
            ctas,
            warps: work.threads() / WARP,
            in_parts: work.warps > 1,
            stays: work.clusters.is_some(),
            holds: work.holds,
            has_common: work.has_common,
            columns: staged,
            vector: work.tile.vector,
            whole: columns,
            row,
            first,
            part,
            states: None,
            peeled,
        })
    }

    /// Begins to copy the part of an argument in this row to shared memory, where its elements are to be read.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch(
        &mut self,
        code: Code<'c>,
        (key, argument): ((usize, Kind), &Argument<'c>),
    ) -> PassResult<'c, (Argument<'c>, Option<Tail<'c>>)> {
        let element = axe_dialect::element_type(argument.memref.r#type());
        let vector = match self.peeled {
            Some(_) => self.vector,
            None => ACCESS_BYTES / element_bytes(element),
        };
        let Some(window) = Window::of(self.whole, vector, self.warps * WARP) else {
            return Ok((self.fetch_aligned(code, argument)?, None));
        };
        let staged = |memref: Val<'c>, columns: i64, first: Val<'c>| {
            Argument::staged(memref, vec![1, columns], [self.row, first])
        };
        let first = code.add(code.times(self.row, self.whole)?, self.part)?;
        let (copied, tail) = window.fetch(code, argument, (first, self.columns))?;
        let at = match &mut self.peeled {
            None => copied.skipped,
            Some(peeled) => {
                let front = copied.part(code, copied.skipped, vector)?;
                let front = staged(front, vector, code.index(0)?);
                peeled.arguments.insert(key, front);
                let at = code.add(copied.skipped, peeled.columns)?;
                code.times(code.div(at, code.index(vector)?)?, vector)?
            }
        };
        let memref = copied.part(code, at, self.columns)?;
        Ok((staged(memref, self.columns, self.first), tail))
    }

    /// The same of an argument that has an element a column, for all rows, where the row's front is peeled off: vectors of it begin anywhere, and threads
    /// cut them out of what is in shared memory.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn fetch_common(
        &mut self,
        code: Code<'c>,
        (key, argument): ((usize, Kind), &Argument<'c>),
    ) -> PassResult<'c, Option<(Argument<'c>, Option<Tail<'c>>)>> {
        let window = Window::of(self.whole, self.vector, self.warps * WARP);
        let (Some(window), Some(peeled), true) = (window, &mut self.peeled, self.has_common) else {
            return Ok(None);
        };
        let (copied, tail) = window.fetch(code, argument, (self.first, self.columns))?;
        let line = |skipped: Val<'c>, columns: i64, first: Val<'c>| {
            let memref = copied.line(code, skipped, columns)?;
            Ok(Argument::staged(memref, vec![columns], [self.row, first]))
        };
        let zero = code.index(0)?;
        let fetched = line(copied.skipped, self.columns, self.first)?;
        peeled.arguments.insert(key, line(zero, self.vector, zero)?);
        Ok(Some((fetched, tail)))
    }

    fn fetch_aligned(
        &self,
        code: Code<'c>,
        argument: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let shape = [1, self.columns];
        let layout = Layout::strided(&shape, &[self.columns, 1])
            .map_err(|error| layout_error(code.builder.location, error))?;
        let element = axe_dialect::element_type(argument.memref.r#type());
        let memref = code.alloc(&shape, element, &layout)?;
        let at = [self.row, self.first];
        let place = argument.place(code, at)?;
        let from = code.global_box(argument.memref, &argument.extents, &place, &shape)?;
        code.copy_async(from, memref)?;
        Ok(Argument::staged(memref, shape.to_vec(), at))
    }

    /// Makes room for the states of rounds of folds, and waits until all CTAs of the cluster run, so that they can be written to;
    /// meanwhile the row is on its way.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn begin(&mut self, code: Code<'c>, rounds: &[Round<'c>]) -> PassResult<'c> {
        if self.in_parts {
            let warps = self.ctas * self.warps;
            self.states = Some(States::new(code, (warps, self.stays), rounds)?);
        }
        match self.ctas {
            1 => Ok(()),
            _ => code.cluster_barrier(),
        }
    }

    /// The CTA's first column of its row.
    pub(super) const fn first(&self) -> Val<'c> {
        self.first
    }

    /// The part of a warp, in its scope, of what the kernel reads.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn of_warp(
        &self,
        code: Code<'c>,
        inputs: &Inputs<'c>,
        rows: i64,
    ) -> PassResult<'c, OfWarp<'_, 'c>> {
        let columns = self.columns / self.warps;
        let warp = code.div(code.thread("x")?, code.index(WARP)?)?;
        // Which copies of warps have to know of their places.
        let warp = match self.holds {
            true => code.rem(warp, code.index(self.warps)?)?,
            false => warp,
        };
        let within = code.times(warp, columns)?;
        let first = code.add(self.first, within)?;
        let all = code.index(columns)?;
        // Rows that clusters stay for are in parts that are alike.
        let own = match self.stays {
            true => all,
            false => code.min(code.above(code.index(self.whole)?, first)?, all)?,
        };
        let peel = self.peeled.as_ref().map(|peeled| {
            let of_lanes = |columns: i64| {
                let copies = [(WARP / columns, columns, "lane")];
                let lanes = layout(&[(columns, 1, "lane")], &copies);
                let lanes = lanes.map_err(|error| layout_error(code.builder.location, error));
                registers(code, [1, columns], lanes?)
            };
            let widths = std::iter::successors(Some(self.vector / 2), |width| Some(width / 2));
            let widths = widths.take_while(|width| *width > 0);
            // The row's first warp takes them.
            let own = [peeled.columns, code.index(0)?];
            let own = code.where_at_most([first, peeled.columns], own)?;
            let elements = rows.saturating_mul(self.whole);
            let mut arguments = inputs.clone();
            arguments.extend(peeled.arguments.clone());
            Ok(Peel {
                pieces: widths.map(of_lanes).collect::<PassResult<'c, _>>()?,
                columns: own,
                arguments,
                first: code.add(code.add(peeled.boundary, self.part)?, within)?,
                elements,
                whole: elements - elements % self.vector,
            })
        });
        Ok(OfWarp {
            row: self,
            within,
            columns: [first, own],
            peel: peel.transpose()?,
        })
    }
}

/// A warp's part of a row: it forms states of its own without waiting for another.
#[derive(Debug)]
pub(super) struct OfWarp<'a, 'c> {
    row: &'a Staged<'c>,
    /// Where it begins in the CTA's.
    within: Val<'c>,
    columns: [Val<'c>; 2],
    peel: Option<Peel<'c>>,
}

impl<'c> OfWarp<'_, 'c> {
    /// The warp's part of what the CTA has in shared memory, so that all of its tiles are known to be there.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn argument(
        &self,
        code: Code<'c>,
        argument: &Argument<'c>,
    ) -> PassResult<'c, Argument<'c>> {
        let Some([row, _]) = argument.staged_at else {
            return Ok(argument.clone());
        };
        let columns = self.row.columns / self.row.warps;
        let (at, extents) = match argument.extents.len() {
            1 => (vec![self.within], vec![columns]),
            _ => (vec![code.index(0)?, self.within], vec![1, columns]),
        };
        let memref = code.shared_box(argument.memref, &argument.extents, &at, &extents)?;
        Ok(Argument::staged(memref, extents, [row, self.columns[0]]))
    }
}

impl<'c> RowPart<'c> for OfWarp<'_, 'c> {
    fn columns(&self) -> [Val<'c>; 2] {
        self.columns
    }

    fn peel(&self) -> Option<&Peel<'c>> {
        self.peel.as_ref()
    }

    fn gather(
        &self,
        code: Code<'c>,
        round: usize,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let own = self.row.states.as_ref();
        let own = own.ok_or_else(|| layout_error(code.builder.location, "no room for states"))?;
        own.gather(code, round, states)
    }
}
