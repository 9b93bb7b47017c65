//! Kernels of rows: elementwise values and reductions along the free dimension, 128 rows at a time on the partitions.
//!
//! Rows stay in SBUF while they are reduced and read again, where they fit; longer ones go through in pieces, once for
//! each reduction that waits for another, and once for what is stored. What has an element a column is formed once, and
//! stays. Two copies of each tile take turns where they fit, so that loads overlap with work.

use super::graph::{Form, Graph, Id, Kind};
use super::values::{Area, Values, matrix, stored};
use super::{Declined, Part, chip, parts};
use crate::facts::chip::Chip;
use crate::facts::memory::PARTITIONS;
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Program, Space, View};
use crate::{place, rules};
use axe_package::DType;
use std::collections::HashMap;

/// Columns of a piece, most first: transfers of 16-bit elements have full rate from 2048 on (DMA).
const PIECES: [i64; 4] = [4096, 2048, 1024, 512];
/// Largest extent: positions in tensors stay far inside of 64 bits.
const MAX_EXTENT: i64 = 1 << 40;

/// How rows are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Columns of a piece.
    pub columns: i64,
    /// Copies of each tile.
    pub copies: i64,
}

/// The program of a graph without a product: the largest pieces that fit.
///
/// # Errors
/// A space that is empty or too large, a type that no tile has, a chip that is not known, and what does not fit, by the
/// smallest pieces.
pub fn plan(graph: &Graph, name: &str, chip_name: &str) -> Result<Program, Declined> {
    let chip = chip(chip_name)?;
    check(graph)?;
    let mut why = None;
    for pieces in candidates(graph) {
        let program = program(graph, name, chip, pieces);
        if let Some(violation) = rules::check(&program).into_iter().next() {
            why = Some(Declined::Invalid(violation.to_string()));
            continue;
        }
        match place::place(&program, chip) {
            Ok(_) => return Ok(program),
            Err(error) => why = Some(Declined::DoesNotFit(error.to_string())),
        }
    }
    Err(why.unwrap_or_else(|| Declined::Invalid("a space without elements".into())))
}

pub(super) fn check(graph: &Graph) -> Result<(), Declined> {
    let extents = [graph.rows, graph.columns];
    if extents.iter().any(|size| !(1..=MAX_EXTENT).contains(size)) {
        return Err(Declined::Invalid(format!(
            "a space of {} rows and {} columns: expected extents from 1 to {MAX_EXTENT}",
            graph.rows, graph.columns
        )));
    }
    let tensors = graph
        .inputs
        .iter()
        .chain(graph.outputs.iter().map(|(tensor, _)| tensor));
    for tensor in tensors {
        if !matches!(
            tensor.dtype,
            DType::F32 | DType::BF16 | DType::F16 | DType::Bool
        ) {
            return Err(Declined::Invalid(format!(
                "tensor '{}' of {}: expected f32, bf16, f16 or bits in memory, which engines compute with",
                tensor.name, tensor.dtype
            )));
        }
    }
    Ok(())
}

fn candidates(graph: &Graph) -> Vec<Pieces> {
    let whole = graph.columns;
    let pieces = PIECES.into_iter().filter(|piece| *piece < whole);
    let mut widths: Vec<i64> = pieces.collect();
    // Rows that are reduced go through once where they are whole; others lose nothing in pieces.
    if !graph.folds().is_empty() || whole <= PIECES[0] {
        widths.insert(0, whole);
    }
    let with = |copies| move |columns| Pieces { columns, copies };
    let mut all: Vec<Pieces> = Vec::new();
    for width in widths {
        all.extend([2, 1].map(|copies| with(copies)(width)));
    }
    all
}

fn program(graph: &Graph, name: &str, chip: &'static Chip, pieces: Pieces) -> Program {
    let mut b = Builder::new(name, chip.name);
    let inputs = declared(&mut b, graph);
    let outputs: Vec<Tile> = (graph.outputs.iter())
        .map(|(tensor, _)| {
            let shape = shape(graph, tensor.kind);
            b.output(&tensor.name, &shape, stored(tensor.dtype))
        })
        .collect();
    let rows = Rows {
        graph,
        inputs,
        outputs,
        pieces,
    };
    rows.kernel(&mut b);
    b.finish()
}

/// The graph's inputs as arguments.
pub(super) fn declared(b: &mut Builder, graph: &Graph) -> Vec<Tile> {
    let input = |tensor: &super::graph::Tensor| {
        let shape = shape(graph, tensor.kind);
        b.input(&tensor.name, &shape, stored(tensor.dtype))
    };
    graph.inputs.iter().map(input).collect()
}

/// The shape in HBM of a tensor of a kind.
pub(super) fn shape(graph: &Graph, kind: Kind) -> Vec<i64> {
    match kind {
        Kind::Full => vec![graph.rows, graph.columns],
        Kind::Row => vec![graph.rows],
        Kind::Column => vec![graph.columns],
        Kind::Number => vec![1],
    }
}

/// The values that have an element a column and are read by others, or stored: formed once.
pub(super) fn lasting(graph: &Graph) -> Vec<Id> {
    let needed = graph.needed();
    let mut read: Vec<Id> = graph.outputs.iter().map(|(_, id)| *id).collect();
    for id in &needed {
        if graph.kind(*id) != Kind::Column {
            read.extend(graph.node(*id).form.operands());
        }
    }
    needed
        .into_iter()
        .filter(|id| graph.kind(*id) == Kind::Column && read.contains(id))
        .collect()
}

/// Tiles of the values with an element a column, over an area's columns, on all partitions.
pub(super) fn columns(
    b: &mut Builder,
    graph: &Graph,
    inputs: &[Tile],
    columns: &(Expr, i64),
) -> HashMap<Id, Tile> {
    let ids = lasting(graph);
    let rows = graph.rows.min(PARTITIONS);
    let area = Area {
        rows: (0.into(), rows),
        columns: columns.clone(),
    };
    let mut values = Values::new(graph, inputs, area, 1);
    let mut tiles = HashMap::new();
    for id in ids {
        let dtype = stored(graph.node(id).dtype);
        let tile = b.tile("column", Space::Sbuf, &[rows, columns.1], dtype, 1);
        let into = matrix(&tile, &(0.into(), rows), &(0.into(), columns.1));
        values.value_in(b, id, Some(into));
        tiles.insert(id, tile);
    }
    tiles
}

struct Rows<'a> {
    graph: &'a Graph,
    inputs: Vec<Tile>,
    outputs: Vec<Tile>,
    pieces: Pieces,
}

impl Rows<'_> {
    fn kernel(&self, b: &mut Builder) {
        let graph = self.graph;
        let lasting = columns(b, graph, &self.inputs, &(0.into(), graph.columns));
        for (at, (tensor, id)) in graph.outputs.iter().enumerate() {
            if tensor.kind == Kind::Column {
                self.store_column(b, at, *id, &lasting);
            }
        }
        if graph
            .outputs
            .iter()
            .all(|(tensor, _)| tensor.kind == Kind::Column)
        {
            return;
        }
        parts(
            b,
            "r",
            (&0.into(), graph.rows, PARTITIONS),
            &mut |b, rows| match self.pieces.columns >= graph.columns {
                true => self.whole(b, &rows, &lasting),
                false => self.in_pieces(b, &rows, &lasting),
            },
        );
    }

    fn store_column(&self, b: &mut Builder, at: usize, id: Id, lasting: &HashMap<Id, Tile>) {
        let area = Area {
            rows: (0.into(), 1),
            columns: (0.into(), self.graph.columns),
        };
        let mut values = self.values(&area, lasting);
        let from = values.value(b, id);
        let from = match from.free() == self.graph.columns {
            true => from,
            false => repeated(&from, self.graph.columns),
        };
        b.dma_copy(area.of(&self.outputs[at], Kind::Column), from);
    }

    /// Values over an area, those of columns being there.
    fn values(&self, area: &Area, lasting: &HashMap<Id, Tile>) -> Values<'_> {
        let mut values = Values::new(self.graph, &self.inputs, area.clone(), self.pieces.copies);
        for (id, tile) in lasting {
            values.know(*id, matrix(tile, &(0.into(), area.rows.1), &area.columns));
        }
        values
    }

    /// Rows at once.
    fn whole(&self, b: &mut Builder, rows: &Part, lasting: &HashMap<Id, Tile>) {
        let area = Area {
            rows: rows.range(),
            columns: (0.into(), self.graph.columns),
        };
        let mut values = self.values(&area, lasting);
        self.store(b, &mut values, &area, &[Kind::Full, Kind::Row]);
    }

    /// Rows piece by piece: each reduction in a pass of its own.
    fn in_pieces(&self, b: &mut Builder, rows: &Part, lasting: &HashMap<Id, Tile>) {
        let graph = self.graph;
        let mut folded: Vec<(Id, View)> = Vec::new();
        for id in graph.folds() {
            let Form::Reduce(op, of) = graph.node(id).form else {
                continue;
            };
            let state = b.tile("state", Space::Sbuf, &[rows.size, 1], DType::F32, 1);
            let state = matrix(&state, &(0.into(), rows.size), &(0.into(), 1));
            // The first piece begins the state, the others are taken in.
            let first = Area {
                rows: rows.range(),
                columns: (0.into(), self.pieces.columns),
            };
            let mut values = self.knowing(&first, lasting, &folded);
            values.piece(b, op, of, Some(state.clone()));
            let rest = graph.columns - self.pieces.columns;
            self.each_piece(b, rows, "c", (self.pieces.columns, rest), &mut |b, area| {
                let mut values = self.knowing(area, lasting, &folded);
                let piece = values.piece(b, op, of, None);
                b.tensor_tensor(state.clone(), state.clone(), piece, op);
            });
            folded.push((id, state));
        }
        let area = Area {
            rows: rows.range(),
            columns: (0.into(), 1),
        };
        let mut values = self.knowing(&area, lasting, &folded);
        self.store(b, &mut values, &area, &[Kind::Row]);
        if graph
            .outputs
            .iter()
            .any(|(tensor, _)| tensor.kind == Kind::Full)
        {
            let all = (0, graph.columns);
            self.each_piece(b, rows, "s", all, &mut |b, area| {
                let mut values = self.knowing(area, lasting, &folded);
                self.store(b, &mut values, area, &[Kind::Full]);
            });
        }
    }

    /// Values over an area, with the reductions that are done.
    fn knowing(
        &self,
        area: &Area,
        lasting: &HashMap<Id, Tile>,
        folded: &[(Id, View)],
    ) -> Values<'_> {
        let mut values = self.values(area, lasting);
        folded
            .iter()
            .for_each(|(id, view)| values.know(*id, view.clone()));
        values
    }

    fn each_piece(
        &self,
        b: &mut Builder,
        rows: &Part,
        name: &str,
        (begin, size): (i64, i64),
        fill: &mut dyn FnMut(&mut Builder, &Area),
    ) {
        let cut = (&begin.into(), size, self.pieces.columns);
        parts(b, name, cut, &mut |b, piece| {
            let area = Area {
                rows: rows.range(),
                columns: piece.range(),
            };
            fill(b, &area);
        });
    }

    /// Stores what has one of these kinds.
    fn store(&self, b: &mut Builder, values: &mut Values<'_>, area: &Area, kinds: &[Kind]) {
        for (at, (tensor, id)) in self.graph.outputs.iter().enumerate() {
            if kinds.contains(&tensor.kind) {
                let to = area.of(&self.outputs[at], tensor.kind);
                let from = values.value(b, *id);
                let from = match from.free() == to.free() {
                    true => from,
                    false => repeated(&from, to.free()),
                };
                b.dma_copy(to, from);
            }
        }
    }
}

/// One element a partition, as many times as asked.
pub(super) fn repeated(view: &View, free: i64) -> View {
    let mut repeated = view.clone();
    repeated.axes.truncate(1);
    repeated.axes.push(crate::program::Axis {
        of: None,
        size: free,
        step: 0,
    });
    repeated
}
