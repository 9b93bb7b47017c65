//! The loops of a product over blocks of the result, and over blocks of K.

use super::super::graph::{Graph, Id};
use super::super::operand::{Operand, Order};
use super::super::values::stored;
use super::super::{Part, parts, rows};
use super::sums::{Depth, Sums, kept};
use super::{Blocks, Fused, Matmul};
use crate::facts::chip::Chip;
use crate::facts::memory::{BANKS, PARTITIONS};
use crate::program::build::Tile;
use crate::program::{Builder, Expr, Program, Space};
use axe_package::DType;
use std::collections::HashMap;

/// What all blocks share.
pub(super) struct Kernel<'a> {
    pub chip: &'static Chip,
    pub lhs: Operand,
    pub rhs: Operand,
    pub graph: &'a Graph,
    /// The graph's inputs.
    pub tensors: Vec<Tile>,
    /// What is stored.
    pub results: Vec<Tile>,
    /// M, K, N.
    pub sizes: [i64; 3],
    pub blocks: Blocks,
    /// Banks of PSUM for sums.
    pub banks: i64,
}

/// Where blocks are.
pub(super) struct At {
    /// The product of the batch.
    pub batch: Expr,
    /// The right operand's columns over all of K, where they stay for all rows.
    pub rhs: Option<Tile>,
    /// Whether they are loaded already.
    pub loaded: bool,
    /// Values with an element a column.
    pub lasting: HashMap<Id, Tile>,
}

impl Fused {
    pub(super) fn program(&self, name: &str, chip: &'static Chip, blocks: Blocks) -> Program {
        let mut b = Builder::new(name, chip.name);
        let kernel = Kernel::new(&mut b, self, chip, blocks);
        match self.batch {
            1 => kernel.product(&mut b, &0.into()),
            batch => b.repeat("batch", 0, batch, 1, |b, index| kernel.product(b, &index)),
        }
        b.finish()
    }

    /// One of the two operands, as an argument.
    fn operand(&self, b: &mut Builder, side: usize) -> Operand {
        let Matmul { sizes, inputs, .. } = self.matmul;
        let (name, order, columns) = match side {
            0 => ("lhs", self.matmul.lhs, sizes[0]),
            _ => ("rhs", self.matmul.rhs, sizes[2]),
        };
        let [rows, width] = order.shape(sizes[1], columns);
        let (count, batch_rows) = match self.shared[side] {
            true => (1, 0),
            false => (self.batch, rows),
        };
        Operand {
            name,
            tensor: b.input(name, &[count * rows, width], inputs),
            batch_rows,
            order,
            dtype: inputs,
        }
    }
}

impl<'a> Kernel<'a> {
    /// Declares the arguments.
    fn new(b: &mut Builder, fused: &'a Fused, chip: &'static Chip, blocks: Blocks) -> Self {
        let [lhs, rhs] = [0, 1].map(|side| fused.operand(b, side));
        let tensors = rows::declared(b, &fused.graph);
        let results = fused.graph.outputs.iter().map(|(tensor, _)| {
            let shape = rows::shape(&fused.graph, tensor.kind);
            b.output(&tensor.name, &shape, stored(tensor.dtype))
        });
        let results = results.collect();
        let turned = [&lhs, &rhs]
            .iter()
            .filter(|operand| operand.turned_by_products(chip))
            .count();
        Kernel {
            chip,
            lhs,
            rhs,
            graph: &fused.graph,
            tensors,
            results,
            sizes: fused.matmul.sizes,
            blocks,
            // Each operand that the tensor engine transposes has two banks.
            banks: BANKS - 2 * turned as i64,
        }
    }

    /// One product of the batch.
    fn product(&self, b: &mut Builder, batch: &Expr) {
        let columns = (&0.into(), self.sizes[2], self.blocks.n);
        parts(b, "n", columns, &mut |b, columns| {
            self.columns(b, batch, &columns);
        });
    }

    /// Whether columns of the right operand stay over all of K.
    fn stays(&self) -> bool {
        self.sizes[1] <= self.blocks.k
    }

    /// All rows of a block of columns.
    fn columns(&self, b: &mut Builder, batch: &Expr, columns: &Part) {
        let [m, k, _] = self.sizes;
        let lasting = rows::columns(b, self.graph, &self.tensors, &columns.range());
        let rhs = self.stays().then(|| self.rhs.tile(b, k, columns.size, 1));
        let mut at = At {
            batch: batch.clone(),
            rhs,
            loaded: false,
            lasting,
        };
        let lead = self.blocks.lead.filter(|_| self.stays());
        // Columns that are transposed, or that no first rows load chunk by chunk, are loaded at once.
        if lead.is_none() || self.rhs.order == Order::KMinor {
            self.load_resident(b, &mut at, columns);
        }
        let first = lead.map_or(0, |lead| lead.m.min(m));
        if let Some(lead) = lead {
            let rows = Part {
                at: 0.into(),
                index: 0.into(),
                size: first,
            };
            self.block(b, &at, &rows, columns, lead.k);
        }
        at.loaded = true;
        if let Some(rhs) = at
            .rhs
            .as_ref()
            .filter(|_| self.lhs.turned_by_products(self.chip))
        {
            let rest = Part {
                at: first.into(),
                index: 0.into(),
                size: m - first,
            };
            return self.stream(b, &at, rhs, (&rest, columns));
        }
        parts(
            b,
            "m",
            (&first.into(), m - first, self.blocks.m),
            &mut |b, rows| {
                self.block(b, &at, &rows, columns, self.blocks.k);
            },
        );
    }

    /// Loads columns of the right operand over all of K, where they stay.
    fn load_resident(&self, b: &mut Builder, at: &mut At, columns: &Part) {
        let Some(tile) = &at.rhs else { return };
        let whole = Depth::from_start(self.sizes[1]);
        match self.rhs.order {
            Order::KMinor => {
                let range = (&columns.at, columns.size);
                let k = (&whole.at(), whole.size);
                self.rhs
                    .load_turned(b, self.chip, tile, &at.batch, k, range);
            }
            Order::KMajor => self.load_chunks(
                b,
                &at.batch,
                &whole,
                &[(&self.rhs, tile, columns, 0.into())],
            ),
        }
        at.loaded = true;
    }

    /// A block of the result, by blocks of K.
    fn block(&self, b: &mut Builder, at: &At, rows: &Part, columns: &Part, unit: i64) {
        let depth = self.sizes[1];
        if depth <= unit {
            return self.products(b, at, &Depth::from_start(depth), (rows, columns), Sums::All);
        }
        let tiles = (rows.size + PARTITIONS - 1) / PARTITIONS;
        let shape = [rows.size.min(PARTITIONS), tiles, columns.size];
        let sums = b.tile("sums", Space::Sbuf, &shape, DType::F32, 1);
        if self.blocks.peeled {
            self.peeled(b, at, (rows, columns), unit, &sums);
        } else {
            self.rolled(b, at, (rows, columns), unit, &sums);
        }
    }

    /// The first and the last block of K outside of the loop over them.
    fn peeled(&self, b: &mut Builder, at: &At, place: (&Part, &Part), unit: i64, sums: &Tile) {
        let depth = self.sizes[1];
        let last = (depth - 1) / unit;
        let middle = |b: &mut Builder, k: Expr| {
            let depth = Depth::block(k, unit, unit);
            self.products(b, at, &depth, place, Sums::Middle(sums));
        };
        let first = Depth::block(0.into(), unit, unit);
        self.products(b, at, &first, place, Sums::First(sums));
        match last {
            1 => {}
            2 => middle(b, 1.into()),
            _ => b.repeat("k", 1, last, 1, middle),
        }
        let rest = Depth::block(last.into(), unit, depth - last * unit);
        self.products(b, at, &rest, place, Sums::Last(sums));
    }

    /// All blocks of K in one loop.
    fn rolled(&self, b: &mut Builder, at: &At, place: (&Part, &Part), unit: i64, sums: &Tile) {
        let (rows, columns) = place;
        let tiles = |b: &mut Builder, name: &str, fill: &mut dyn FnMut(&mut Builder, Part)| {
            parts(b, name, (&0.into(), rows.size, PARTITIONS), fill);
        };
        tiles(b, "mz", &mut |b, tile| {
            b.memset(kept(sums, &tile, columns), 0.0);
        });
        parts(b, "k", (&0.into(), self.sizes[1], unit), &mut |b, k| {
            let depth = Depth::block(k.index.clone(), unit, k.size);
            self.products(b, at, &depth, place, Sums::Middle(sums));
        });
        tiles(b, "ms", &mut |b, tile| {
            self.finish(b, at, (None, Some(sums)), &tile, rows, columns);
        });
    }
}
