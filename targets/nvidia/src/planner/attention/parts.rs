//! Keys in parts (flash-decoding): what the first kernel leaves of each part, and the second kernel, which merges the parts of a
//! row and stores its results.
//!
//! A part of a row is its maximum `m`, its sum of weights `l = sum exp(x - m)` and its sums of products `o = sum exp(x - m) v`, in
//! f32. With `m'` the greatest of the maxima, `exp(m - m')` scales both sums, which then add up. A part without a key that is seen has
//! minus infinity, 0 and 0.

use super::memory::{Strides, View};
use super::row::Rows;
use super::sizes::Sizes;
use crate::planner::problem::count;
use crate::planner::row_tile::{RowTile, power_of_two};
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, Number, layout_error};
use axe_passes::fuse::attention::Attention;
use axe_passes::fuse::attention::index::{Digit, Step, Var};
use axe_passes::fuse::attention::pack::Pack;
use axe_passes::fuse::registers::{Registers, registers};
use axe_passes::fuse::space::Kind;
use axe_passes::ir::Val;
use melior::ir::{Type, ValueLike};

/// Lanes of a warp, which has the columns of a part.
const LANES: i64 = 32;
/// Columns of a lane beside each other: with more, lanes exchange sums through few banks of shared memory. Measured: 16 warps with four
/// columns beside each other take 15 us more for 33 parts.
const VECTOR: i64 = 1;
/// Parts of a warp that merges, where that is not more than so many warps.
const PARTS: i64 = 4;
/// Warps that merge a row at most.
const MOST_WARPS: i64 = 8;

/// The parts of all rows in memory: sums of products `[splits, problems, rows, columns]`, and `[2, splits, problems, rows]` of maxima,
/// then sums of weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// Parts of the keys.
    pub splits: i64,
    /// How the problems are those of the program.
    pub pack: Pack,
    /// Problems of the kernel, each with the rows of a pack.
    pub packs: i64,
    /// Columns of the result.
    pub columns: i64,
}

impl Parts {
    /// Problems of the kernel.
    pub(super) const fn problems(self) -> i64 {
        self.packs
    }

    /// Parts of problems.
    pub(super) const fn parts(self) -> i64 {
        self.splits * self.packs
    }

    /// Rows of a part: one more than there is where there is one, for a view has no boxes of rows then.
    const fn rows(self) -> i64 {
        match self.pack.rows * self.pack.problems {
            0 | 1 => 2,
            rows => rows,
        }
    }

    /// The shapes of the two tensors.
    pub(super) fn shapes(self) -> [Vec<i64>; 2] {
        let (parts, rows) = (self.parts(), self.rows());
        [vec![parts, rows, self.columns], vec![2 * parts, rows]]
    }

    /// The tensors by parts of problems, as the first kernel stores them.
    pub(super) fn packed(self) -> [Strides; 2] {
        let (rows, columns) = (self.rows(), self.columns);
        let of = |parts, [of_part, of_row]: [i64; 2], columns| {
            let batch = vec![step([parts, 1], of_part)];
            Strides::new(parts, batch, [rows, of_row], columns)
        };
        [
            of(self.parts(), [rows * columns, columns], Some(columns)),
            of(2 * self.parts(), [rows, 1], None),
        ]
    }

    /// The tensors by rows of the program, `problem * rows + row`, each of whose parts is a row of a tile. The maxima come first in the
    /// second, then as many rows that are sums of weights.
    fn by_row(self) -> [Strides; 2] {
        let Pack { problems, rows, .. } = self.pack;
        let [by_row, by_problem] = self.pack.strides();
        let of = |elements: i64, columns: Option<i64>| {
            let part = self.packs * self.rows() * elements;
            let batch = [
                step([2, self.rows_of_program()], self.splits * part),
                step([self.packs, problems * rows], self.rows() * elements),
                step([problems, rows], by_problem * elements),
                step([rows, 1], by_row * elements),
            ];
            let kinds = batch.get(usize::from(columns.is_some())..);
            let kinds = kinds.unwrap_or_default().to_vec();
            let number = self.rows_of_program() * if columns.is_some() { 1 } else { 2 };
            Strides::new(number, kinds, [self.splits, part], columns)
        };
        [of(self.columns, Some(self.columns)), of(1, None)]
    }

    /// The second kernel's tile: the parts of a row.
    fn tile(self) -> RowTile {
        let wide = LANES * VECTOR;
        let whole = |extent: i64, by: i64| count(extent, by) * by;
        let warps = power_of_two(count(self.splits, PARTS)).min(MOST_WARPS);
        RowTile {
            rows: whole(self.splits, warps),
            columns: whole(self.columns, wide),
            along: LANES,
            vector: VECTOR,
            across: warps,
        }
    }

    /// Threads of the second kernel's CTAs.
    pub(super) fn threads(self) -> i64 {
        self.tile().threads()
    }

    /// CTAs of the second kernel: rows of the program.
    pub(super) const fn rows_of_program(self) -> i64 {
        self.packs * self.pack.problems * self.pack.rows
    }
}

/// The digit of an extent and a stride of the problem's number, whose values lie so many elements apart.
pub(super) const fn step([extent, stride]: [i64; 2], elements: i64) -> Step {
    let digit = Digit {
        var: Var::Batch,
        extent,
        stride,
    };
    Step { digit, elements }
}

/// Emits the body of the second kernel, whose arguments are the two tensors of parts, the result, and the logarithms of sums.
/// `results` are the last of them in memory, by the program's problems.
///
/// # Errors
/// When MLIR does not build it.
pub(super) fn merge<'c>(
    kernel: &Kernel<'c>,
    attention: &Attention<'c>,
    parts: Parts,
    results: &[Strides],
    sizes: &Sizes<'c>,
) -> PassResult<'c> {
    let code = kernel.code;
    let location = code.builder.location;
    let lost = || layout_error(location, "a kernel of parts has its arguments");
    let [of_results, of_states, to @ ..] = kernel.arguments.as_slice() else {
        return Err(lost());
    };
    let tile = parts.tile();
    let layout = tile
        .layout()
        .map_err(|error| layout_error(location, error))?;
    let registers = registers(code, [tile.rows, tile.columns], layout)?;
    let [own_results, own_states] = parts.by_row();
    let views = to.iter().zip(results);
    let views = views.map(|(argument, strides)| strides.by_row().sized(code, *argument, sizes));
    let views: Vec<_> = views.collect::<PassResult<_>>()?;
    let merge = Merge {
        rows: Rows {
            attention,
            f32: code.builder.r#type(|context| Type::float32(context)),
        },
        registers: &registers,
        of_results: own_results.sized(code, *of_results, sizes)?,
        of_states: own_states.sized(code, *of_states, sizes)?,
        row: code.block("x")?,
    };
    let sums = code.add(merge.row, sizes.index(code, parts.rows_of_program())?)?;
    let [maximum, sum, results] = merge.merged(code, sums)?;
    merge.store(code, [maximum, sum, results], &views)
}

/// The second kernel, for a row of the program: a tile has a part in each of its rows.
struct Merge<'a, 'c> {
    rows: Rows<'a, 'c>,
    registers: &'a Registers,
    of_results: View<'c>,
    of_states: View<'c>,
    row: Val<'c>,
}

impl<'c> Merge<'_, 'c> {
    fn r#type(&self, code: Code<'c>, kind: Kind) -> PassResult<'c, Type<'c>> {
        self.registers.r#type(code, kind, self.rows.f32)
    }

    /// The row's maximum, sum of weights and sums of products, all by column.
    fn merged(&self, code: Code<'c>, sums: Val<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let (full, column) = (
            self.r#type(code, Kind::Full)?,
            self.r#type(code, Kind::Column)?,
        );
        let maxima = self.state(code, self.row, Number::Least)?;
        let weights = self.state(code, sums, Number::Of(0))?;
        let zero = code.index(0)?;
        let shape = self.registers.shape;
        let from = self.of_results.boxed(code, self.row, [zero, zero], shape)?;
        let products = code.load(from, full)?;
        let maximum = code.reduce(Combiner::Max, maxima, 0, column)?;
        let shown = code.broadcast(self.rows.shown(code, maximum)?, 0, full)?;
        let factors = self.rows.exponentials(code, maxima, shown)?;
        let sum = |own| code.reduce(Combiner::Add, self.product(code, own, factors)?, 0, column);
        Ok([maximum, sum(weights)?, sum(products)?])
    }

    /// A value of each part, in all of its columns.
    fn state(&self, code: Code<'c>, number: Val<'c>, none: Number) -> PassResult<'c, Val<'c>> {
        let zero = code.index(0)?;
        let shape = self.registers.shape;
        let from = self.of_states.boxed(code, number, [zero, zero], shape)?;
        let none = code.scalar(self.rows.f32, none)?;
        let own = code.load_padded(from, none, self.r#type(code, Kind::Row)?)?;
        code.broadcast(own, 1, self.r#type(code, Kind::Full)?)
    }

    fn product(&self, code: Code<'c>, a: Val<'c>, b: Val<'c>) -> PassResult<'c, Val<'c>> {
        code.map(&[a, b], a.r#type(), |code, own| {
            code.builder.value("arith.mulf", own, self.rows.f32, &[])
        })
    }

    /// Stores the row, and the logarithm of its sum.
    fn store(
        &self,
        code: Code<'c>,
        [maximum, sum, results]: [Val<'c>; 3],
        to: &[View<'c>],
    ) -> PassResult<'c> {
        let (rows, shape) = (self.rows, self.registers.shape);
        let zero = code.index(0)?;
        if let (Some(own), Some(view)) = (&rows.attention.sums, to.get(1)) {
            let value = rows.log_sum(code, own.is, [maximum, sum])?;
            // All columns have it: one value of those is stored.
            let wide = code.broadcast(value, 0, self.r#type(code, Kind::Full)?)?;
            let value = code.reduce(Combiner::Max, wide, 1, self.r#type(code, Kind::Row)?)?;
            code.store(value, view.boxed(code, self.row, [zero, zero], shape)?)?;
        }
        let Some(view) = to.first() else {
            return Err(layout_error(code.builder.location, "a kernel has a result"));
        };
        let scaled = self.product(code, results, rows.factor(code, sum)?)?;
        let element = rows.attention.rounded;
        let narrow = code.cast(scaled, self.registers.r#type(code, Kind::Column, element)?)?;
        code.store(narrow, view.boxed(code, self.row, [zero, zero], shape)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::attention::config::MOST_SPLITS;
    use axe_passes::fuse::attention::pack::Order;

    #[test]
    fn tiles_have_all_parts_and_columns_in_legal_ctas() {
        for splits in 1..=MOST_SPLITS {
            for columns in (16..=256).step_by(16) {
                let pack = Pack {
                    problems: 4,
                    rows: 1,
                    order: Order::Rows,
                };
                let parts = Parts {
                    splits,
                    pack,
                    packs: 8,
                    columns,
                };
                let tile = parts.tile();
                assert!(tile.layout().is_ok(), "{tile:?}");
                assert!(tile.rows >= splits && tile.columns >= columns, "{tile:?}");
                let held = tile.rows * tile.columns / tile.threads();
                assert!(tile.threads() <= 256 && held <= 128, "{tile:?}");
            }
        }
    }
}
