//! Steps that move elements: to other layouts, other dimensions, and through shared memory.

use super::{Chain, Held};
use crate::array::{Array, mlir};
use crate::layouts::shared;

impl Chain<'_> {
    pub(super) fn relayout(&mut self, held: &Held) -> Held {
        let distribution = match self.random.once_in(4) {
            true => held.distribution.renamed(self.random),
            false => self.distribution(&held.shape),
        };
        let made = self.held(&held.shape, held.dtype, distribution, held.tiles.clone());
        self.line(&format!(
            "{} = axe.copy {} : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    pub(super) fn transpose(&mut self, held: &Held) -> Held {
        if held.shape.len() != 2 {
            return held.clone();
        }
        let shape = [held.shape[1], held.shape[0]];
        let distribution = match self.random.once_in(2) {
            true => held.distribution.permuted(&[1, 0]),
            false => self.distribution(&shape),
        };
        let flip = |tile: &Array| {
            Array::from_fn(&shape, held.dtype, |at| {
                tile.get(&[at[1], at[0]]).unwrap_or(0.0)
            })
        };
        let tiles = held.tiles.iter().map(flip).collect();
        let made = self.held(&shape, held.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.transpose {} [1, 0] : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    pub(super) fn through_shared(&mut self, held: &Held) -> Held {
        let &[rows, columns] = held.shape.as_slice() else {
            return held.clone();
        };
        let layout = shared(rows, columns, held.dtype.bytes() as i64, self.random);
        let storage = format!(
            "memref<{rows}x{columns}x{}, {layout}, #axe.space<shared>>",
            mlir(held.dtype)
        );
        let name = self.fresh();
        self.line(&format!("{name} = axe.alloc : {storage}"));
        self.line(&format!(
            "axe.copy {} to {name} : {} to {storage}",
            held.name,
            held.r#type()
        ));
        self.line("axe.barrier");
        let distribution = self.distribution(&held.shape);
        let made = self.held(&held.shape, held.dtype, distribution, held.tiles.clone());
        self.line(&format!(
            "{} = axe.copy {name} : {storage} -> {}",
            made.name,
            made.r#type()
        ));
        made
    }
}
