//! Values of 8 bits, turned: a small kernel writes them with a row for each column, whose keys follow each other.
//!
//! `wgmma` of 8 bits takes operands in shared memory with k along rows alone (PTX ISA 9.7.15.5.1.2), and k of the second product are keys.
//! Keys are written in the order in which accumulators have them when they are taken as A's fragment as they lie: of each 16, a thread has
//! columns `2 t`, `2 t + 1`, `8 + 2 t` and `8 + 2 t + 1` of the scores, and k from `4 t` to `4 t + 3` of the weights.

use super::memory::Strides;
use super::segments::{first_of, numbered};
use crate::facts::chip::BANK_BYTES;
use crate::planner::problem::count;
use crate::planner::row_tile::RowTile;
use crate::planner::single::{swizzle, words};
use axe_dialect::element_type;
use axe_layout::{Layout, Result};
use axe_passes::PassResult;
use axe_passes::build::{Code, Kernel, layout_error};
use axe_passes::fuse::attention::index::{Step, Var};
use axe_passes::fuse::attention::{Attention, is_e4m3};
use axe_passes::ir::Val;
use melior::ir::ValueLike;

/// Digits of a key in 16, outermost first: their extents, and how far apart their keys are written.
pub(super) const DIGITS: [[i64; 2]; 3] = [[2, 2], [4, 4], [2, 1]];
/// Keys and columns of a tile, which a CTA turns.
const SIDE: i64 = 64;
/// The tile in registers, of which threads load and store 16 bytes at a time.
const TILE: RowTile = RowTile {
    rows: SIDE,
    columns: SIDE,
    along: 4,
    vector: 16,
    across: 16,
};

/// Values as they are turned.
#[derive(Clone, Debug)]
pub(super) struct Turned {
    /// As they are.
    from: Strides,
    /// The digits of a problem that they depend on, and how many problems have others.
    digits: Vec<Step>,
    distinct: i64,
    problems: i64,
    keys: i64,
    columns: i64,
}

/// Whether a kernel turns the values, where it must.
///
/// # Errors
/// Why not.
pub(super) fn checked(attention: &Attention<'_>) -> std::result::Result<(), String> {
    if !is_e4m3(attention.element) {
        return Ok(());
    }
    if attention.pages.iter().any(Option::is_some) {
        return Err("its operands have 8 bits and are in pages".to_owned());
    }
    if !attention.symbols.is_empty() {
        return Err("its operands have 8 bits, and its extents are dynamic".to_owned());
    }
    match Turned::of(attention) {
        Some(_) => Ok(()),
        None => Err("no one stride leads from row to row of the values' tensor".to_owned()),
    }
}

impl Turned {
    /// Those of attention whose operands have 8 bits.
    pub(super) fn of(attention: &Attention<'_>) -> Option<Self> {
        if !is_e4m3(attention.element) {
            return None;
        }
        let extents = attention.extents;
        let (keys, columns) = (extents.keys, extents.columns);
        let vars = [(Var::Key, keys), (Var::Column, columns)];
        let digits = attention.values.steps.iter().map(|step| step.digit);
        let digits = digits.filter(|digit| digit.var == Var::Batch);
        let (digits, distinct) = numbered(digits.collect(), extents.batch);
        Some(Self {
            from: Strides::of(&attention.values, extents.batch, vars)?,
            digits,
            distinct,
            problems: extents.batch,
            keys,
            columns,
        })
    }

    /// Keys of a row: whole tiles, zeros behind the last key.
    const fn padded(&self) -> i64 {
        count(self.keys, SIDE) * SIDE
    }

    /// Elements of them all.
    pub(super) const fn elements(&self) -> i64 {
        self.distinct * self.columns * self.padded()
    }

    /// How they lie in memory, by the kernel's problems: columns, then keys.
    pub(super) fn strides(&self) -> Strides {
        self.by_problem(self.digits.clone(), self.problems)
    }

    fn by_problem(&self, digits: Vec<Step>, problems: i64) -> Strides {
        let of = |step: Step| Step {
            elements: step.elements * self.columns * self.padded(),
            ..step
        };
        let digits = digits.into_iter().map(of).collect();
        let rows = [self.columns, self.padded()];
        Strides::new(problems, digits, rows, Some(self.padded()))
    }

    /// CTAs of the kernel that turns them: tiles of keys and columns.
    pub(super) const fn ctas(&self) -> i64 {
        self.distinct * count(self.keys, SIDE) * count(self.columns, SIDE)
    }

    /// Threads of those CTAs.
    pub(super) const fn threads() -> i64 {
        TILE.threads()
    }

    /// Emits the body of that kernel, whose arguments are the values and the turned ones.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub(super) fn emit<'c>(&self, kernel: &Kernel<'c>) -> PassResult<'c> {
        let code = kernel.code;
        let failed = |error| layout_error(code.builder.location, error);
        let &[from, to] = kernel.arguments.as_slice() else {
            return Err(failed(axe_layout::Error::invalid("two arguments")));
        };
        let element = element_type(from.r#type());
        let [tile, rest] = divided(code, code.block("x")?, count(self.columns, SIDE))?;
        let [keys, number] = divided(code, rest, count(self.keys, SIDE))?;
        let (column, key) = (code.times(tile, SIDE)?, code.times(keys, SIDE)?);
        let problem = first_of(code, &self.digits, number)?;
        let shape = [SIDE, SIDE];
        let rows = TILE.layout().map_err(failed)?;
        let from = self.from.view(code, from)?;
        let from = from.boxed(code, problem, [key, column], shape)?;
        let loaded = code.load(from, code.fragment(&shape, element, &rows)?)?;
        let swizzle = swizzle(TILE).map_err(failed)?;
        let stored = Layout::strided(&shape, &[SIDE, 1]).map_err(failed)?;
        let storage = code.alloc(&shape, element, &stored.with_swizzle(Some(swizzle)))?;
        code.store(loaded, storage)?;
        code.barrier()?;
        let by_column = by_column().map_err(failed)?.with_swizzle(Some(swizzle));
        let by_column = code.memref(&shape, element, &by_column, Some("shared"))?;
        let layouts = words(TILE, BANK_BYTES).map_err(failed)?;
        let [words, vectors] = layouts.map(|layout| code.fragment(&shape, element, &layout));
        let words = code.load(code.view(storage, by_column)?, words?)?;
        let turned = code.load(words, vectors?)?;
        let view = self.strides().view(code, to)?;
        code.store(turned, view.boxed(code, problem, [column, key], shape)?)
    }
}

/// The tile in shared memory by columns, with keys in the order in which they are written.
fn by_column() -> Result<Layout> {
    // The key of each digit, whose extents are those of DIGITS in order.
    let mut key = 16;
    let mut keys = Vec::new();
    for [extent, stride] in DIGITS {
        key /= extent;
        keys.push((stride, extent, key));
    }
    keys.sort_unstable_by_key(|(stride, ..)| std::cmp::Reverse(*stride));
    let extents = [SIDE, SIDE / 16].into_iter();
    let extents: Vec<_> = extents.chain(keys.iter().map(|own| own.1)).collect();
    let strides = [1, 16 * SIDE].into_iter();
    let strides: Vec<_> = strides.chain(keys.iter().map(|own| own.2 * SIDE)).collect();
    Layout::strided(&extents, &strides)
}

/// The remainder and the quotient of a number.
fn divided<'c>(code: Code<'c>, number: Val<'c>, by: i64) -> PassResult<'c, [Val<'c>; 2]> {
    let by = code.index(by)?;
    Ok([code.rem(number, by)?, code.div(number, by)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_layout::Axis;

    #[test]
    fn each_key_is_written_where_instructions_read_it() {
        let layout = by_column().expect("a layout");
        for key in 0..SIDE {
            // The place of a key, as the kernel of attention has it.
            let (mut rest, mut place) = (key % 16, key / 16 * 16);
            for [extent, stride] in DIGITS.into_iter().rev() {
                place += rest % extent * stride;
                rest /= extent;
            }
            for column in [0, 5, 63] {
                let read = layout.origin(column * SIDE + place).expect("a place");
                assert_eq!(read.get(Axis::M), key * SIDE + column);
            }
        }
    }
}
