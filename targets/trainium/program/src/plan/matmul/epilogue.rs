//! What becomes of the sums of a tile of rows before they leave the chip.

use super::super::Part;
use super::super::graph::{Form, Id};
use super::super::operand::evict;
use super::super::values::{Area, Values, matrix, stored};
use super::kernel::{At, Kernel};
use super::sums::kept_piece;
use crate::facts::memory::MOVING_COLUMNS;
use crate::program::build::Tile;
use crate::program::{Alu, Builder, Expr, Space, View};
use axe_package::DType;

/// Tiles in which what is stored of a tile of rows is gathered, and its first row.
pub(super) struct Leaving {
    outs: Vec<Tile>,
    row: Expr,
}

impl Kernel<'_> {
    /// Forms what is stored of the sums of a tile of rows: of PSUM, of those that are kept, or of both.
    pub fn finish(
        &self,
        b: &mut Builder,
        at: &At,
        sums: (Option<&Tile>, Option<&Tile>),
        tile: &Part,
        rows: &Part,
        columns: &Part,
    ) {
        let leaving = self.begin_finish(b, at, tile, (rows, columns));
        // Bank by bank: temporaries are as wide as one, and each bank is free again as soon as it may be.
        for begin in (0..columns.size).step_by(MOVING_COLUMNS as usize) {
            self.finish_piece(b, at, &leaving, sums, (tile, columns), begin);
        }
        self.end_finish(b, &leaving, (tile, columns));
    }

    /// Tiles for what is stored of a tile of rows.
    pub fn begin_finish(
        &self,
        b: &mut Builder,
        at: &At,
        tile: &Part,
        (rows, columns): (&Part, &Part),
    ) -> Leaving {
        let outs = (self.graph.outputs.iter())
            .map(|(tensor, _)| {
                let shape = [tile.size, columns.size];
                b.tile("out", Space::Sbuf, &shape, stored(tensor.dtype), 2)
            })
            .collect();
        let product = at.batch.clone().times(self.sizes[0]);
        Leaving {
            outs,
            row: product.plus(rows.at.clone()).plus(tile.at.clone()),
        }
    }

    /// Forms the columns of a bank.
    pub fn finish_piece(
        &self,
        b: &mut Builder,
        at: &At,
        leaving: &Leaving,
        (psum, sums): (Option<&Tile>, Option<&Tile>),
        (tile, columns): (&Part, &Part),
        begin: i64,
    ) {
        let piece = (Expr::from(begin), MOVING_COLUMNS.min(columns.size - begin));
        let area = Area {
            rows: (leaving.row.clone(), tile.size),
            columns: (columns.at.clone().plus(begin), piece.1),
        };
        let mut values = Values::new(self.graph, &self.tensors, area, 2);
        for (id, column) in &at.lasting {
            values.know(*id, matrix(column, &(0.into(), tile.size), &piece));
        }
        let parts = [
            psum.map(|psum| matrix(psum, &(0.into(), tile.size), &piece)),
            sums.map(|sums| kept_piece(sums, tile, &piece)),
        ];
        self.settle(b, &mut values, parts, (tile, &piece), &leaving.outs);
    }

    /// Stores what was formed.
    pub fn end_finish(&self, b: &mut Builder, leaving: &Leaving, (tile, columns): (&Part, &Part)) {
        for (result, out) in self.results.iter().zip(&leaving.outs) {
            let rows = (leaving.row.clone(), tile.size);
            b.dma_copy(result.part([rows, columns.range()]), out.all());
        }
    }

    /// The value that is stored where that is the sums alone, in some type.
    fn plain(&self) -> bool {
        let is_sums = |id: Id| match self.graph.node(id).form {
            Form::Product => true,
            Form::Cast(of) => matches!(self.graph.node(of).form, Form::Product),
            _ => false,
        };
        self.graph.outputs.iter().all(|(_, id)| is_sums(*id))
    }

    /// Forms a piece of what is stored.
    fn settle(
        &self,
        b: &mut Builder,
        values: &mut Values<'_>,
        parts: [Option<View>; 2],
        (tile, piece): (&Part, &(Expr, i64)),
        outs: &[Tile],
    ) {
        let out = |at: usize| matrix(&outs[at], &(0.into(), tile.size), piece);
        let sums = match parts {
            [Some(psum), Some(kept)] if self.plain() && outs.len() == 1 => {
                return b.tensor_tensor(out(0), kept, psum, Alu::Add);
            }
            [Some(psum), Some(kept)] => {
                let whole = b.tile("sum", Space::Sbuf, &[tile.size, piece.1], DType::F32, 2);
                b.tensor_tensor(whole.all(), kept, psum, Alu::Add);
                whole.all()
            }
            [Some(one), None] | [None, Some(one)] => one,
            [None, None] => return,
        };
        if let Some(id) = self.graph.product_id() {
            values.know(id, sums.clone());
        }
        for (at, (_, id)) in self.graph.outputs.iter().enumerate() {
            match self.plain() {
                true => evict(b, out(at), sums.clone()),
                false => {
                    values.value_in(b, *id, Some(out(at)));
                }
            }
        }
    }
}
