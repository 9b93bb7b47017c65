//! Loops with constant bounds: `scf.for`, and `axe.for_tiles` in its raster order. Iterations in which boxes reach outside
//! their tensors are taken out of a loop, so that each box has a size.

use super::carried::Carried;
use super::index::Values;
use super::lowering::{Lowering, failed};
use super::raster::{Order, Place, orders};
use axe_dialect::ops::ForTilesOp;
use axe_passes::PassResult;
use axe_passes::ir::attribute::text;
use axe_passes::ir::value::{operands, parts};
use axe_passes::ir::{Op, Val, walk};
use axe_trn::program::{Builder as Code, Expr};
use melior::ir::BlockRef;
use melior::ir::operation::OperationLike;

/// A loop from `lower` to below `upper`.
pub(super) struct Level {
    pub name: String,
    pub lower: i64,
    pub upper: i64,
    pub step: i64,
}

impl Level {
    /// The last index of a part.
    pub fn last(&self, lower: i64, upper: i64) -> i64 {
        lower + (upper - 1 - lower).max(0) / self.step * self.step
    }
}

/// What an argument of a loop is: `constant + sum of terms`, each a level and its factor.
pub(super) struct Coordinate<'c> {
    pub value: Val<'c>,
    pub constant: i64,
    pub terms: Vec<(usize, i64)>,
}

/// Loops inside one another, and the body.
pub(super) struct Nest<'a, 'c> {
    pub op: Op<'c>,
    pub levels: &'a [Level],
    pub coordinates: &'a [Coordinate<'c>],
    body: BlockRef<'c, 'c>,
    carried: Option<&'a Carried<'c>>,
}

impl<'c> Lowering<'c> {
    pub(super) fn for_loop(&mut self, op: Op<'c>) -> PassResult<'c> {
        let all = operands(op);
        let mut bounds = Vec::new();
        for bound in all.iter().take(3) {
            let known = self.indices.expr(*bound, op)?.constant();
            bounds
                .push(known.ok_or_else(|| {
                    failed(op, "expected bounds and a step known when compiling")
                })?);
        }
        let &[lower, upper, step] = bounds.as_slice() else {
            return Err(failed(op, "expected bounds and a step"));
        };
        if step < 1 {
            return Err(failed(
                op,
                format!("expected a step of at least 1, got {step}"),
            ));
        }
        let level = Level {
            name: op
                .attribute("trn.index")
                .ok()
                .and_then(text)
                .map_or_else(|| self.index_name(0), str::to_owned),
            lower,
            upper,
            step,
        };
        let body = first_block(op)?;
        let arguments = walk::block_arguments(body);
        let Some((&index, arguments)) = arguments.split_first() else {
            return Err(failed(op, "expected a body with its index"));
        };
        let coordinate = Coordinate {
            value: index,
            constant: 0,
            terms: vec![(0, 1)],
        };
        let carried = self.carry(op, arguments, &all[3..], lower < upper)?;
        if lower < upper {
            let nest = Nest {
                op,
                levels: &[level],
                coordinates: &[coordinate],
                body,
                carried: Some(&carried),
            };
            self.level(&nest, &mut Vec::new())?;
        }
        self.leave(op, carried)
    }

    /// The name of an index so many loops further in.
    fn index_name(&self, further: usize) -> String {
        const NAMES: [&str; 6] = ["i", "j", "k", "l", "m", "n"];
        let depth = self.open + further;
        NAMES
            .get(depth)
            .map_or_else(|| format!("i{depth}"), |name| (*name).to_owned())
    }

    pub(super) fn for_tiles(&mut self, op: Op<'c>) -> PassResult<'c> {
        let tiles: ForTilesOp = parts(op)?;
        if tiles.pingpong {
            return Err(failed(
                op,
                "expected no 'pingpong': there are no groups of threads to take turns",
            ));
        }
        let mut counts = Vec::new();
        for count in &tiles.counts {
            let known = self.indices.expr(*count, op)?.constant();
            counts.push(
                known.ok_or_else(|| failed(op, "expected counts of tiles known when compiling"))?,
            );
        }
        let body = first_block(op)?;
        let arguments = walk::block_arguments(body);
        let (Some((&columns, &rows)), Some((&j, &i))) = (
            counts
                .split_last()
                .and_then(|(last, rest)| Some((last, rest.last()?))),
            arguments
                .split_last()
                .and_then(|(last, rest)| Some((last, rest.last()?))),
        ) else {
            return Err(failed(op, "expected two counts, and an argument for each"));
        };
        if counts.iter().any(|count| *count < 1) {
            return Ok(());
        }
        let before = (&arguments[..counts.len() - 2], &counts[..counts.len() - 2]);
        for order in orders(op, &tiles, [rows, columns])? {
            self.visit((op, body), &order, before, [i, j])?;
        }
        Ok(())
    }

    /// One nest over tiles: dimensions in front, outermost, then those of a raster order.
    fn visit(
        &mut self,
        (op, body): (Op<'c>, BlockRef<'c, 'c>),
        order: &Order,
        (before, counts): (&[Val<'c>], &[i64]),
        [i, j]: [Val<'c>; 2],
    ) -> PassResult<'c> {
        let all = counts.iter().chain(&order.levels).enumerate();
        let levels: Vec<Level> = all
            .map(|(at, count)| self.tiles_level(at, *count))
            .collect();
        let place = |value, place: &Place| Coordinate {
            value,
            constant: place.constant,
            terms: (place.terms.iter())
                .map(|(at, by)| (before.len() + at, *by))
                .collect(),
        };
        let mut coordinates = vec![place(i, &order.row), place(j, &order.column)];
        let before = before.iter().enumerate();
        coordinates.extend(before.map(|(at, value)| Coordinate {
            value: *value,
            constant: 0,
            terms: vec![(at, 1)],
        }));
        let nest = Nest {
            op,
            levels: &levels,
            coordinates: &coordinates,
            body,
            carried: None,
        };
        self.level(&nest, &mut Vec::new())
    }

    /// A kernel's body, in loops over blocks of a launch.
    pub(super) fn blocks(
        &mut self,
        kernel: Op<'c>,
        body: BlockRef<'c, 'c>,
        grid: [i64; 3],
        ids: &[Vec<Val<'c>>],
    ) -> PassResult<'c> {
        // Blocks are numbered along x first.
        let levels = [2, 1, 0].map(|dimension| Level {
            name: format!("block_{}", ["x", "y", "z"][dimension]),
            lower: 0,
            upper: grid[dimension],
            step: 1,
        });
        let coordinate = |dimension: usize, value: Val<'c>| Coordinate {
            value,
            constant: 0,
            terms: vec![(2 - dimension, 1)],
        };
        let coordinates: Vec<_> = ids
            .iter()
            .enumerate()
            .flat_map(|(dimension, ids)| ids.iter().map(move |id| coordinate(dimension, *id)))
            .collect();
        let nest = Nest {
            op: kernel,
            levels: &levels,
            coordinates: &coordinates,
            body,
            carried: None,
        };
        self.level(&nest, &mut Vec::new())
    }

    fn tiles_level(&self, further: usize, count: i64) -> Level {
        Level {
            name: self.index_name(further),
            lower: 0,
            upper: count,
            step: 1,
        }
    }

    /// The loop of the first level that is not bound, in its parts.
    fn level(&mut self, nest: &Nest<'_, 'c>, bound: &mut Vec<Expr>) -> PassResult<'c> {
        let Some(level) = nest.levels.get(bound.len()) else {
            return self.body(nest, bound);
        };
        for (lower, upper) in self.parts(nest, level, bound)? {
            let last = level.last(lower, upper);
            if lower == last {
                bound.push(lower.into());
                self.level(nest, bound)?;
                bound.pop();
                continue;
            }
            let step = level.step;
            self.repeat(
                &level.name,
                Values { lower, last, step },
                upper,
                |lowering, index| {
                    bound.push(index);
                    let done = lowering.level(nest, bound);
                    bound.pop();
                    done
                },
            )?;
        }
        Ok(())
    }

    fn body(&mut self, nest: &Nest<'_, 'c>, bound: &[Expr]) -> PassResult<'c> {
        for coordinate in nest.coordinates {
            let mut expr = Expr::Const(coordinate.constant);
            for (level, by) in &coordinate.terms {
                expr = expr.plus(bound[*level].clone().times(*by));
            }
            self.indices.bind(coordinate.value, expr);
        }
        if let Some(carried) = nest.carried {
            self.enter(carried);
        }
        self.statements(nest.body)?;
        match nest.carried {
            Some(carried) => self.turn(nest.op, carried),
            None => Ok(()),
        }
    }

    /// A loop of the program.
    fn repeat(
        &mut self,
        name: &str,
        values: Values,
        upper: i64,
        fill: impl FnOnce(&mut Self, Expr) -> PassResult<'c>,
    ) -> PassResult<'c> {
        let mut code = std::mem::replace(&mut self.code, Code::new("", ""));
        let mut done = Ok(());
        code.repeat(name, values.lower, upper, values.step, |inner, index| {
            std::mem::swap(inner, &mut self.code);
            if let Expr::Index(number) = index {
                self.indices.open(number, values);
            }
            self.open += 1;
            done = fill(self, index);
            self.open -= 1;
            std::mem::swap(inner, &mut self.code);
        });
        self.code = code;
        done
    }
}

fn first_block<'c>(op: Op<'c>) -> PassResult<'c, BlockRef<'c, 'c>> {
    let blocks = walk::blocks(op);
    blocks
        .first()
        .copied()
        .ok_or_else(|| failed(op, "expected a body"))
}
