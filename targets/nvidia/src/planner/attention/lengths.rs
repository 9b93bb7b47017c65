//! Lengths of sequences, and other integers with one value a problem: read once a tile, by each role.

use super::memory::digit;
use super::sizes::Sizes;
use axe_dialect::element_type;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::index::{Step, Var};
use axe_passes::fuse::attention::visible::{Length, Visible};
use axe_passes::fuse::attention::{Attention, Extents};
use axe_passes::ir::{Int, Ints, Val, types};
use melior::ir::ValueLike;

/// Lengths of a kernel at most: each is a load of a tile, in both roles.
pub(super) const MOST_LENGTHS: usize = 4;
/// What lengths are taken for where they are more, or less than its negative: sums with rows, keys and constants of half as much have 32 bits.
const FURTHEST: i64 = 1 << 28;

/// The lengths of all problems in memory: a row of integers.
#[derive(Clone, Debug)]
pub(super) struct Lengths<'c> {
    memref: Val<'c>,
    steps: Vec<Step>,
    problems: i64,
    sizes: Sizes<'c>,
}

/// A length of a tile's problem.
#[derive(Clone, Copy)]
pub(super) struct Loaded<'c> {
    /// As an index, which may be negative, between the numbers that say the same of every row and key.
    index: Val<'c>,
    /// As it is in memory.
    pub value: Val<'c>,
}

/// The lengths of a tile's problem, by their number.
pub(super) type OfTile<'c> = [Option<Loaded<'c>>; MOST_LENGTHS];

/// Whether a kernel takes an attention's lengths.
///
/// # Errors
/// Why not.
pub(super) fn checked(attention: &Attention<'_>) -> Result<(), String> {
    let number = attention.lengths.len();
    if number > MOST_LENGTHS {
        return Err(format!(
            "its mask reads {number} tensors of lengths, and a kernel takes {MOST_LENGTHS}"
        ));
    }
    let Extents { rows, keys, .. } = attention.extents;
    let starts = attention.visible.edges().map(|edge| edge.start);
    let far = [rows, keys].into_iter().chain(starts);
    let too_far = number > 0 && far.into_iter().any(|at| at.saturating_abs() > FURTHEST / 2);
    match too_far {
        true => Err(format!(
            "expected at most {} rows and keys beside lengths that are read",
            FURTHEST / 2
        )),
        false => Ok(()),
    }
}

impl<'c> Lengths<'c> {
    /// Those of each tensor of lengths, of the kernel's arguments.
    pub(super) fn of(
        attention: &Attention<'c>,
        arguments: &[Val<'c>],
        sizes: &Sizes<'c>,
    ) -> Vec<Self> {
        let all = attention.lengths.iter().zip(arguments);
        let all = all.map(|(read, memref)| {
            Self::new(
                read.steps.clone(),
                *memref,
                (attention.extents.batch, sizes),
            )
        });
        all.collect()
    }

    /// Those of a tensor with these steps, which is this argument, for so many problems.
    pub(super) fn new(
        steps: Vec<Step>,
        memref: Val<'c>,
        (problems, sizes): (i64, &Sizes<'c>),
    ) -> Self {
        Self {
            memref,
            steps,
            problems,
            sizes: sizes.clone(),
        }
    }

    /// Where what a problem has begins.
    pub(super) fn place(&self, code: Code<'c>, batch: Val<'c>) -> PassResult<'c, Val<'c>> {
        let mut at = code.index(0)?;
        for step in &self.steps {
            if step.digit.var == Var::Batch {
                let digit = digit(code, batch, step, (self.problems, &self.sizes))?;
                let elements = self.sizes.index(code, step.elements)?;
                at = code.add(at, code.mul(digit, elements)?)?;
            }
        }
        Ok(at)
    }

    /// The integer at a place.
    pub(super) fn element(&self, code: Code<'c>, at: Val<'c>) -> PassResult<'c, Val<'c>> {
        let element = element_type(self.memref.r#type());
        code.builder
            .value("memref.load", &[self.memref, at], element, &[])
    }

    /// The length of a problem.
    fn load(&self, code: Code<'c>, batch: Val<'c>) -> PassResult<'c, Loaded<'c>> {
        let value = self.element(code, self.place(code, batch)?)?;
        let bits = types::bits(value.r#type())
            .ok_or_else(|| layout_error(code.builder.location, "a length is an integer"))?;
        let ints = Ints::new(code.builder, bits);
        let own = ints.min(Int::Value(value), Int::Known(FURTHEST))?;
        let own = ints.max(own, Int::Known(-FURTHEST))?;
        let indices = Ints::index(code.builder);
        Ok(Loaded {
            index: indices.value(indices.cast(own)?)?,
            value,
        })
    }
}

/// The lengths of a problem.
pub(super) fn load<'c>(
    code: Code<'c>,
    all: &[Lengths<'c>],
    batch: Val<'c>,
) -> PassResult<'c, OfTile<'c>> {
    let mut found = [None; MOST_LENGTHS];
    for (slot, own) in found.iter_mut().zip(all) {
        *slot = Some(own.load(code, batch)?);
    }
    Ok(found)
}

/// A number, and a length times its factor where there is one.
pub(super) fn with_length<'c>(
    code: Code<'c>,
    number: Val<'c>,
    length: Option<Length>,
    of_tile: &OfTile<'c>,
) -> PassResult<'c, Val<'c>> {
    let Some(Length { number: at, factor }) = length else {
        return Ok(number);
    };
    let own = of_tile.get(at).copied().flatten();
    let own = own.ok_or_else(|| layout_error(code.builder.location, "a tile has its lengths"))?;
    match factor < 0 {
        true => code.sub(number, own.index),
        false => code.add(number, own.index),
    }
}

/// Whether tiles of a problem are as long as each other, as far as it is known when the kernel is planned.
pub(super) fn are_even(visible: &Visible) -> bool {
    let edges = visible.from.iter().chain(&visible.to);
    visible.is_data() && edges.into_iter().all(|edge| edge.per_row == 0)
}
