//! Extents and strides of attention that are known at run time only: arguments of its kernels.

use axe_passes::PassResult;
use axe_passes::build::Code;
use axe_passes::fuse::symbolic::Symbols;
use axe_passes::ir::{Builder, Int, Val};
use std::collections::BTreeSet;

/// What a batch is taken for where a plan is chosen, and how many queries and keys there are, where only a launch says it. One plan
/// is for all: tiles of long sequences, which a few heads of a few of them are enough of.
pub(super) const GUESSED_PROBLEMS: i64 = 4;
/// As [`GUESSED_PROBLEMS`].
pub(super) const GUESSED_LENGTH: i64 = 4096;

/// The numbers of a kernel that are its arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes<'c> {
    symbols: Symbols<'c>,
    numbers: Vec<i64>,
    values: Vec<Val<'c>>,
}

impl<'c> Sizes<'c> {
    /// Those of these numbers that depend on extents which a launch says.
    pub(super) fn new(symbols: &Symbols<'c>, numbers: impl IntoIterator<Item = i64>) -> Self {
        let own: BTreeSet<i64> = numbers
            .into_iter()
            .filter(|own| symbols.has(*own))
            .collect();
        Self {
            symbols: symbols.clone(),
            numbers: own.into_iter().collect(),
            values: Vec::new(),
        }
    }

    /// Their values in the function.
    ///
    /// # Errors
    /// When one is not known there.
    pub(super) fn scalars(&self, builder: &Builder<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let all = self.numbers.iter();
        all.map(|number| self.symbols.value(builder, *number))
            .collect()
    }

    /// How many they are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The same with the kernel's arguments.
    pub(super) fn with(self, values: &[Val<'c>]) -> Self {
        Self {
            values: values.to_vec(),
            ..self
        }
    }

    /// Whether a number is known when compiling.
    pub(super) fn knows(&self, number: i64) -> bool {
        !self.symbols.has(number)
    }

    /// The part of a number that is.
    pub(super) fn known(&self, number: i64) -> i64 {
        self.symbols.known(number)
    }

    /// A number, or the argument that it is.
    pub(super) fn int(&self, number: i64) -> Int<'c> {
        let at = self.numbers.iter().position(|own| *own == number);
        match at.and_then(|at| self.values.get(at)) {
            Some(value) => Int::Value(*value),
            None => Int::Known(number),
        }
    }

    /// The same as an index.
    pub(super) fn index(&self, code: Code<'c>, number: i64) -> PassResult<'c, Val<'c>> {
        match self.int(number) {
            Int::Value(value) => Ok(value),
            Int::Known(number) => code.index(number),
        }
    }

    /// How many pieces of a number that is known a number has, the last one perhaps cut.
    pub(super) fn pieces(&self, code: Code<'c>, number: i64, of: i64) -> PassResult<'c, Val<'c>> {
        match self.int(number) {
            Int::Value(value) => code.ceil_div(value, of),
            Int::Known(number) => code.index(crate::planner::problem::count(number, of)),
        }
    }
}
