//! Reductions and their broadcasts.

use super::{Chain, Held, wrap};
use crate::array::Array;

impl Chain<'_> {
    /// A reduction and its broadcast.
    pub(super) fn reduce(&mut self, held: &Held) -> Held {
        if held.shape.len() != 2 {
            return held.clone();
        }
        let combiner = self.random.pick(&["add", "max", "min"]);
        let dtype = held.dtype;
        self.reduce_by(held, combiner, move |values| match combiner {
            "add" => wrap(values.sum(), dtype),
            "max" => values.fold(f64::NEG_INFINITY, f64::max),
            _ => values.fold(f64::INFINITY, f64::min),
        })
    }

    pub(super) fn reduce_by(
        &mut self,
        held: &Held,
        combiner: &str,
        combine_values: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
    ) -> Held {
        let dim = self.random.below(2);
        let kept = [held.shape[1 - dim]];
        let natural = !self.random.once_in(3);
        let distribution = if natural {
            held.distribution.reduced(dim)
        } else {
            self.distribution(&kept)
        };
        let combine = |tile: &Array| {
            Array::from_fn(&kept, held.dtype, |at| {
                combine_values(&mut (0..held.shape[dim]).map(|k| {
                    let index = if dim == 0 { [k, at[0]] } else { [at[0], k] };
                    tile.get(&index).unwrap_or(0.0)
                }))
            })
        };
        let tiles = held.tiles.iter().map(combine).collect();
        let reduced = self.held(&kept, held.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.reduce <{combiner}> {} dims [{dim}] : {} -> {}",
            reduced.name,
            held.name,
            held.r#type(),
            reduced.r#type()
        ));
        self.broadcast(&reduced, dim, held)
    }

    pub(super) fn broadcast(&mut self, reduced: &Held, dim: usize, like: &Held) -> Held {
        let spread = |tile: &Array| {
            Array::from_fn(&like.shape, reduced.dtype, |at| {
                tile.get(&[at[1 - dim]]).unwrap_or(0.0)
            })
        };
        let tiles = reduced.tiles.iter().map(spread).collect();
        let distribution = if self.random.once_in(3) {
            self.distribution(&like.shape)
        } else {
            like.distribution.clone()
        };
        let made = self.held(&like.shape, reduced.dtype, distribution, tiles);
        self.line(&format!(
            "{} = axe.broadcast {} dims [{dim}] : {} -> {}",
            made.name,
            reduced.name,
            reduced.r#type(),
            made.r#type()
        ));
        made
    }
}
