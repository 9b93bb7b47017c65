//! Segments of packed sequences: rows see the keys that have the same label (JAX's segment ids, the documents of FlexAttention).
//!
//! Labels are data of which nothing is assumed; they need not ascend. A small kernel goes through the labels before the kernel of
//! attention does through the keys, and leaves four numbers of each tile of rows: the keys `[first, end)` outside of which no key has a
//! label between the least and the greatest of the tile's rows, and those `[first, end)` that all rows see: the same keys, where the
//! tile has one label and each of them has it, else none. Blocks outside of the first are not brought; labels are compared outside of
//! the second only. Where sequences are packed one after the other, these are the blocks that rows see.

mod labels;

use super::lengths::Lengths;
use super::memory::Strides;
use super::parts::step;
use super::sizes::Sizes;
use crate::planner::family::Launch;
use crate::planner::problem::count;
use crate::planner::row_tile::RowTile;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, launch as launch_kernel, layout_error};
use axe_passes::fuse::arguments::{argument_types, launched};
use axe_passes::fuse::attention::index::{Digit, Step, Var};
use axe_passes::fuse::attention::visible::Segments;
use axe_passes::fuse::attention::{Attention, Read};
use axe_passes::fuse::frame::{Operand, operand};
use axe_passes::fuse::registers::registers;
use axe_passes::ir::{Val, types};
use labels::Own;
use melior::ir::ValueLike;
use melior::ir::r#type::IntegerType;

/// Numbers of a tile.
const NUMBERS: i64 = 4;
/// Elements of a number: a view has no boxes of rows where there is one.
const WIDTH: i64 = 2;
/// A warp goes through the labels of a tile, 16 of each lane at a time, so that several loads are under way.
const LANES: i64 = 32;
/// Labels that a lane loads at once.
const VECTOR: i64 = 4;
/// Labels of a step.
const STEP: i64 = LANES * 16;

/// What a tile's rows see by their labels: keys from the first number to the second, and all of those from the third to the fourth.
pub(super) type Seen<'c> = [Val<'c>; NUMBERS as usize];

/// The numbers of all tiles in memory, `[4, problems with labels of their own, tiles, 2]` of i32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// Digits of a problem that its labels depend on.
    digits: Vec<Step>,
    /// Problems whose labels differ.
    distinct: i64,
    /// All problems.
    problems: i64,
    /// Tiles of a problem.
    tiles: i64,
    /// Rows of a tile.
    rows: i64,
}

impl Table {
    /// The numbers that a kernel needs of tiles of so many rows; none where no labels are compared.
    pub(super) fn of(attention: &Attention<'_>, rows: i64) -> Option<Self> {
        let segments = &attention.visible.segments;
        if segments.is_empty() {
            return None;
        }
        let inputs = segments.iter().flat_map(|own| [own.rows, own.keys]);
        let steps = inputs.filter_map(|at| attention.inputs.get(at));
        let digits = steps.flat_map(|read| &read.steps).map(|step| step.digit);
        let digits = digits.filter(|digit| digit.var == Var::Batch);
        let problems = attention.extents.batch;
        let (digits, distinct) = numbered(digits.collect(), problems);
        Some(Self {
            digits,
            distinct,
            problems,
            tiles: count(attention.extents.rows, rows),
            rows,
        })
    }

    /// Tiles whose numbers are formed: CTAs of the kernel that does.
    const fn ctas(&self) -> i64 {
        self.distinct.saturating_mul(self.tiles)
    }

    /// Threads of those CTAs.
    const fn threads() -> i64 {
        LANES
    }

    /// Elements of the table.
    const fn elements(&self) -> i64 {
        self.ctas().saturating_mul(NUMBERS * WIDTH)
    }

    /// The numbers of a tile, of the kernel's argument.
    pub(super) fn load<'c>(
        &self,
        code: Code<'c>,
        memref: Val<'c>,
        [batch, tile]: [Val<'c>; 2],
    ) -> PassResult<'c, Seen<'c>> {
        let own = Lengths::new(
            self.digits.clone(),
            memref,
            (self.problems, &Sizes::default()),
        );
        let problem = own.place(code, batch)?;
        let place = code.add(code.times(problem, self.tiles)?, tile)?;
        let index = code.builder.index_type();
        let number = |which: i64| {
            let at = code.add(place, code.index(which * self.ctas())?)?;
            let value = own.element(code, code.times(at, WIDTH)?)?;
            code.builder.value("arith.index_cast", &[value], index, &[])
        };
        Ok([number(0)?, number(1)?, number(2)?, number(3)?])
    }

    /// The problem of a number among those whose labels differ: the first of those with the same.
    fn problem<'c>(&self, code: Code<'c>, number: Val<'c>) -> PassResult<'c, Val<'c>> {
        first_of(code, &self.digits, number)
    }

    /// Adds the kernel that forms the numbers of these labels, pair after pair, and launches it: its result.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn launch<'c>(
        &self,
        attention: &Attention<'c>,
        labels: &[Operand<'c>],
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, Option<Operand<'c>>> {
        let builder = *launch.builder;
        let i32 = builder.r#type(|context| IntegerType::new(context, 32).into());
        let shape = [self.elements()];
        let empty = builder.tensor(&shape, i32)?;
        let empty = builder.value("tensor.empty", &[], empty, &[])?;
        let to = operand(&builder, empty, &shape)?;
        let types = argument_types(labels, &[], &[(empty, to.clone())]);
        let kernel = Kernel::new(builder.location, launch.frame.module, &types);
        self.emit(&kernel, attention)?;
        let name = launch.frame.name("segments");
        kernel.finish(launch.frame.module, &name, Self::threads())?;
        let one = builder.index(1)?;
        let grid = [builder.index(self.ctas())?, one, one];
        let formed = launch_kernel(&builder, &name, grid, &launched(labels, &[]), &[to.tensor])?;
        let formed = formed.first().copied();
        Ok(formed.map(|tensor| Operand { tensor, ..to }))
    }

    /// Emits the body of the kernel that forms the numbers. Its arguments are the labels of rows and of keys, pair after pair, and the
    /// table.
    ///
    /// # Errors
    /// When MLIR does not build it.
    fn emit<'c>(&self, kernel: &Kernel<'c>, attention: &Attention<'c>) -> PassResult<'c> {
        let code = kernel.code;
        let lost = || layout_error(code.builder.location, "labels have one stride each");
        let (to, labels) = kernel.arguments.split_last().ok_or_else(lost)?;
        let tile = RowTile {
            rows: 1,
            columns: STEP,
            along: LANES,
            vector: VECTOR,
            across: 1,
        };
        let layout = tile.layout();
        let layout = layout.map_err(|error| layout_error(code.builder.location, error))?;
        let bits = |own: &Val<'c>| types::bits(element_type(own.r#type()));
        let own = Own {
            code,
            saturates: labels.iter().any(|own| bits(own) > Some(32)),
            registers: &registers(code, [1, STEP], layout)?,
            i32: code
                .builder
                .r#type(|context| IntegerType::new(context, 32).into()),
        };
        let (cta, tiles) = (code.block("x")?, code.index(self.tiles)?);
        let batch = self.problem(code, code.div(cta, tiles)?)?;
        let row = code.times(code.rem(cta, tiles)?, self.rows)?;
        let mut all: Option<Seen<'c>> = None;
        let pairs = attention.visible.segments.iter().zip(labels.chunks(2));
        for (segments, memrefs) in pairs {
            let views = views(attention, *segments).ok_or_else(lost)?;
            let &[rows, keys] = memrefs else {
                return Err(lost());
            };
            let ends = own.ends((&views[0], rows), batch, [row, code.index(self.rows)?])?;
            let seen = own.seen((&views[1], keys), batch, ends)?;
            all = Some(match all {
                None => seen,
                Some(all) => own.both(all, seen)?,
            });
        }
        let all = all.ok_or_else(lost)?;
        let place = Strides::new(
            NUMBERS * self.ctas(),
            vec![step([NUMBERS * self.ctas(), 1], WIDTH)],
            [WIDTH, 1],
            None,
        );
        let view = place.view(code, *to)?;
        let zero = code.index(0)?;
        for (which, value) in (0..NUMBERS).zip(all) {
            let at = code.add(cta, code.index(which * self.ctas())?)?;
            code.store(value, view.boxed(code, at, [zero, zero], [1, STEP])?)?;
        }
        Ok(())
    }
}

/// The problem of a number that these steps give: the first of those with the same.
pub(super) fn first_of<'c>(
    code: Code<'c>,
    steps: &[Step],
    number: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let mut problem = code.index(0)?;
    for Step { digit, elements } in steps {
        let own = code.div(number, code.index(*elements)?)?;
        let own = code.rem(own, code.index(digit.extent)?)?;
        problem = code.add(problem, code.times(own, digit.stride)?)?;
    }
    Ok(problem)
}

/// Digits of a problem as those of a number: how many such numbers there are.
pub(super) fn numbered(mut digits: Vec<Digit>, problems: i64) -> (Vec<Step>, i64) {
    digits.sort_by_key(|digit| (digit.stride, digit.extent));
    digits.dedup();
    let ends = digits
        .iter()
        .map(|own| own.stride.saturating_mul(own.extent));
    let next = digits.iter().skip(1).map(|own| own.stride);
    if ends.zip(next).any(|(end, next)| end > next) {
        // Digits that share values of the problem: each problem has a number of its own.
        digits = vec![step([problems, 1], 1).digit];
    }
    let mut distinct = 1;
    let mut of = |digit: Digit| {
        let elements = distinct;
        distinct *= digit.extent;
        Step { digit, elements }
    };
    let steps = digits.into_iter().map(&mut of).collect();
    (steps, distinct)
}

/// The labels of rows and of keys, each as a row of columns.
fn views(attention: &Attention<'_>, segments: Segments) -> Option<[Strides; 2]> {
    let extents = attention.extents;
    let of = |number: usize, extent| {
        let read = attention.inputs.get(number)?;
        let mut steps = read.steps.clone();
        for step in &mut steps {
            if step.digit.var == Var::Row {
                step.digit.var = Var::Key;
            }
        }
        let read = Read::whole(read.tensor, steps);
        Strides::of(&read, extents.batch, [(Var::Row, 2), (Var::Key, extent)])
    };
    Some([
        of(segments.rows, extents.rows)?,
        of(segments.keys, extents.keys)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the problems themselves: those with equal digits have one number, and the number's problem has the same digits.
    #[test]
    fn problems_with_the_same_labels_have_one_number() {
        let cases: [&[[i64; 2]]; 5] = [
            &[],
            &[[3, 4]],
            &[[4, 1]],
            &[[3, 8], [2, 1]],
            &[[6, 1], [4, 2]],
        ];
        for own in cases {
            let digits: Vec<_> = own.iter().map(|own| step(*own, 1).digit).collect();
            let (steps, distinct) = numbered([digits.clone(), digits.clone()].concat(), 24);
            let value = |digit: &Digit, problem: i64| problem / digit.stride % digit.extent;
            let number = |problem| {
                let parts = steps
                    .iter()
                    .map(|step| value(&step.digit, problem) * step.elements);
                parts.sum::<i64>()
            };
            for problem in 0..24 {
                let own = number(problem);
                assert!((0..distinct).contains(&own), "{digits:?}");
                let parts = steps
                    .iter()
                    .map(|step| own / step.elements % step.digit.extent * step.digit.stride);
                let first = parts.sum();
                assert_eq!(number(first), own);
                for digit in &digits {
                    assert_eq!(value(digit, first), value(digit, problem), "{digits:?}");
                }
            }
        }
    }
}
