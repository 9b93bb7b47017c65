//! Steps that change elements where they are: casts, maps, masks, loops.

use super::{Chain, Held, wrap};
use crate::array::{Array, mlir, round};
use crate::case::ELEMENTS;
use crate::maps;
use axe_package::DType;

impl Chain<'_> {
    pub(super) fn cast(&mut self, held: &Held) -> Held {
        let to = self.random.pick(&ELEMENTS);
        if to == held.dtype {
            return held.clone();
        }
        self.cast_to(held, to)
    }

    pub(super) fn cast_to(&mut self, held: &Held, to: DType) -> Held {
        // An integer in fewer bits keeps the low ones.
        let wraps = held.dtype.unit_roundoff().is_none();
        let convert = |tile: &Array| {
            Array::from_fn(&tile.shape, to, |at| {
                let value = tile.get(at).unwrap_or(0.0);
                if wraps { wrap(value, to) } else { value }
            })
        };
        let tiles = held.tiles.iter().map(convert).collect();
        let made = self.held(&held.shape, to, held.distribution.clone(), tiles);
        self.line(&format!(
            "{} = axe.cast {} : {} -> {}",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        made
    }

    /// `x * a + b`.
    pub(super) fn map(&mut self, held: &Held) -> Held {
        let is_float = held.dtype.unit_roundoff().is_some();
        let a = if is_float {
            self.random.pick(&[0.5, 2.0, -1.0])
        } else {
            self.random.pick(&[1.0, -1.0])
        };
        let b = self.random.pick(&[1.0, -2.0, 3.0]);
        let (a_name, b_name) = (self.constant(a, held.dtype), self.constant(b, held.dtype));
        let dtype = held.dtype;
        let apply = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                wrap(round(tile.get(at).unwrap_or(0.0) * a, dtype) + b, dtype)
            })
        };
        let tiles = held.tiles.iter().map(apply).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (suffix, scalar) = (if is_float { "f" } else { "i" }, mlir(dtype));
        self.line(&format!(
            "{} = axe.map ins({} : {}) -> {} {{",
            made.name,
            held.name,
            held.r#type(),
            made.r#type()
        ));
        self.line(&format!("^bb0(%e: {scalar}):"));
        self.line(&format!("  %p = arith.mul{suffix} %e, {a_name} : {scalar}"));
        self.line(&format!("  %s = arith.add{suffix} %p, {b_name} : {scalar}"));
        self.line(&format!("  axe.yield %s : {scalar}"));
        self.line("}");
        made
    }

    /// A map with another body than `x * a + b`.
    pub(super) fn other_map(&mut self, held: &Held) -> Held {
        let dtype = held.dtype;
        let body = maps::body(dtype, self.random);
        let names: Vec<_> = body
            .constants
            .iter()
            .map(|value| self.constant(*value, dtype))
            .collect();
        let apply = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                wrap((body.apply)(tile.get(at).unwrap_or(0.0)), dtype)
            })
        };
        let tiles = held.tiles.iter().map(apply).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (of, scalar) = (held.r#type(), mlir(dtype));
        let (name, source) = (&made.name, &held.name);
        self.line(&format!("{name} = axe.map ins({source} : {of}) -> {of} {{"));
        self.line(&format!("^bb0(%e: {scalar}):"));
        for line in &body.lines {
            let line = names
                .iter()
                .enumerate()
                .fold(line.clone(), |line, (at, name)| {
                    line.replace(&format!("{{{at}}}"), name)
                });
            self.line(&format!("  {line}"));
        }
        self.line(&format!("  axe.yield %s : {scalar}"));
        self.line("}");
        made
    }

    pub(super) fn mask(&mut self, held: &Held) -> Held {
        let limits: Vec<_> = held
            .shape
            .iter()
            .map(|&extent| self.random.range(0, extent))
            .collect();
        let value = match held.dtype {
            DType::Bool => self.random.pick(&[0.0, 1.0]),
            _ => self.random.pick(&[0.0, -5.0]),
        };
        let other = self.constant(value, held.dtype);
        let (mut origins, mut ends) = (Vec::new(), Vec::new());
        for limit in &limits {
            let shift = self.random.range(0, 9);
            for (number, into) in [(shift, &mut origins), (limit + shift, &mut ends)] {
                let name = self.fresh();
                self.line(&format!("{name} = arith.constant {number} : index"));
                into.push(name);
            }
        }
        let cover = |tile: &Array| {
            Array::from_fn(&tile.shape, tile.dtype, |at| {
                match at.iter().zip(&limits).all(|(at, limit)| at < limit) {
                    true => tile.get(at).unwrap_or(0.0),
                    false => value,
                }
            })
        };
        let tiles = held.tiles.iter().map(cover).collect();
        let made = self.held(&held.shape, held.dtype, held.distribution.clone(), tiles);
        self.line(&format!(
            "{} = axe.mask {} at ({}) in ({}) else {other} : {}, {} -> {}",
            made.name,
            held.name,
            origins.join(", "),
            ends.join(", "),
            mlir(held.dtype),
            held.r#type(),
            made.r#type()
        ));
        made
    }

    /// A loop that carries the tensor.
    pub(super) fn repeat(&mut self, held: &Held) -> Held {
        let turns = self.random.range(1, 3);
        let add = self.constant(1.0, held.dtype);
        let [low, high, one] = [0, turns, 1].map(|number| {
            let name = self.fresh();
            self.line(&format!("{name} = arith.constant {number} : index"));
            name
        });
        let dtype = held.dtype;
        let count = |tile: &Array| {
            Array::from_fn(&tile.shape, dtype, |at| {
                (0..turns).fold(tile.get(at).unwrap_or(0.0), |value, _| {
                    wrap(value + 1.0, dtype)
                })
            })
        };
        let tiles = held.tiles.iter().map(count).collect();
        let made = self.held(&held.shape, dtype, held.distribution.clone(), tiles);
        let (suffix, scalar) = (
            if dtype.unit_roundoff().is_some() {
                "f"
            } else {
                "i"
            },
            mlir(dtype),
        );
        let r#type = held.r#type();
        self.line(&format!(
            "{} = scf.for %i = {low} to {high} step {one} iter_args(%t = {}) -> ({type}) {{",
            made.name, held.name
        ));
        self.line(&format!("  %u = axe.map ins(%t : {type}) -> {type} {{"));
        self.line(&format!("  ^bb0(%e: {scalar}):"));
        self.line(&format!("    %s = arith.add{suffix} %e, {add} : {scalar}"));
        self.line(&format!("    axe.yield %s : {scalar}"));
        self.line("  }");
        self.line(&format!("  scf.yield %u : {type}"));
        self.line("}");
        made
    }
}
