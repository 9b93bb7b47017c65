//! Elementwise operators and reductions of rows: tiles in registers, read once. The columns of rows that are reduced are what
//! the kernel streams; its reductions are the folds, what is an element a row is outer, the rest inner.

use super::choose::search::{self, Candidate};
use super::family::{Family, Launch};
use super::flat::Flat;
use super::knobs::Plan;
use super::long_rows::RowWork;
use super::packed_tile::{self, Use};
use super::row::Row;
use super::row_kernel::RowKernel;
use super::row_tile::elementwise_tile;
use crate::facts::chip::{ACCESS_BYTES, BANK_BYTES, Chip};
use axe_dialect::Combiner;
use axe_passes::PassResult;
use axe_passes::fuse::fold::{Fold, Stream};
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::rounds::Round;
use axe_passes::fuse::space::{Kind, Size};
use axe_passes::ir::{Builder, TensorType, Val};
use melior::ir::Type;

/// Threads of a CTA, among which free elements are cut.
const THREADS: i64 = 128;

/// Columns for elements that nothing ties to rows: any row length gives the same tensor, so one that
/// tiles divide.
fn free_columns(total: Size) -> i64 {
    let most = if total.dynamic {
        total.known
    } else {
        total.known / THREADS
    };
    let fits = |columns: &i64| *columns <= most.max(1) && total.known % columns == 0;
    [2048, 1024, 512, 256, 128]
        .into_iter()
        .find(fits)
        .unwrap_or(total.known)
}

/// The family.
pub(super) struct Rows;

/// Operators of a group, read.
pub(super) struct Read<'c> {
    fusion: Fusion<'c>,
    problem: Problem,
}

/// What they compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Elements of the space.
    total: Size,
    columns: i64,
    /// Bytes of the elements that vectors are made of: of those that are written, where rows begin at boundaries, since as many of wider elements
    /// as of the narrowest would be stored in pieces of sectors. Measured, f16 to f32: softmax of 8192 x 4096 takes 73.4 us in eights, 51.4 in fours.
    bytes: i64,
    /// 32-bit registers of the widest that a thread keeps.
    words: i64,
    /// Bytes that are moved for an element of the space, and those that are read.
    moved: i64,
    read: i64,
    /// Bytes of an element that a CTA holds of all tensors, where results take the place of what they are formed of.
    held: i64,
    /// How often rows are reduced.
    folds: usize,
    /// Whether rows are reduced: their columns are streamed.
    streams: bool,
    /// Whether the kernel goes through rows once and stores no elements of them.
    is_read_once: bool,
    /// Whether moments are among the folds.
    has_moments: bool,
    /// Whether all folds are sums.
    adds: bool,
    /// Whether elements are wider between than in memory.
    is_widened: bool,
    /// Whether elements are of one row, as any would do.
    is_flat: bool,
    /// Whether a value a column is read for all rows.
    repeats: bool,
    /// Bytes of such values of a column; none where bodies read elements anywhere.
    repeated: i64,
}

impl Family for Rows {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = RowWork;

    /// The tile follows from the types and the columns.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        _: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let fusion = Fusion::read(group, outputs, None)?;
        let [read, written] = [&fusion.inputs, &fusion.outputs].map(|own| Fusion::full_bytes(own));
        let bytes = || read.iter().chain(&written).copied();
        let streams = fusion.stream() == Some(Stream::Columns);
        let words = words(&fusion);
        let problem = Problem {
            total: fusion.total,
            columns: fusion
                .columns()
                .unwrap_or_else(|| free_columns(fusion.total)),
            bytes: vector_bytes(&fusion, [&read, &written]),
            words,
            moved: bytes().sum(),
            read: read.iter().sum(),
            held: held(&fusion),
            folds: fusion.folds.len(),
            streams,
            is_read_once: streams && is_read_once(&fusion),
            adds: adds(&fusion),
            is_widened: fusion.widest > BANK_BYTES * words,
            has_moments: !fusion.rounds().iter().all(Round::is_online),
            is_flat: is_flat(&fusion),
            repeats: fusion.inputs.iter().any(|(_, kind)| *kind == Kind::Column),
            repeated: repeated(&fusion),
        };
        Ok(Read { fusion, problem })
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Read<'_>, _: &Plan, chip: &Chip) -> Result<RowWork, String> {
        Ok(operators.problem.work(chip))
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<RowWork>> {
        let config = problem.work(chip);
        let clocks = Self::clocks(problem, config, chip);
        search::only(config, clocks, limit)
    }

    /// Waves of tiles, each of which reads and writes its elements once.
    fn clocks(problem: Problem, config: RowWork, chip: &Chip) -> f64 {
        let elements = problem.total.known.max(1) as f64;
        let tile = (config.tile.rows * config.tile.columns) as f64;
        let waves = (elements / tile / chip.multiprocessors as f64).ceil();
        waves * tile * problem.moved as f64 / chip.mma.l2_bytes + chip.mma.overhead
    }

    fn tile(config: RowWork) -> [i64; 3] {
        [config.tile.rows, config.tile.columns, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        let Problem { total, columns, .. } = operators.problem;
        let rows = if total.dynamic { "? x " } else { "" };
        format!("{rows}{} elements in rows of {columns}", total.known)
    }

    fn emit<'c>(
        operators: &Read<'c>,
        work: RowWork,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let Read { fusion, problem } = operators;
        let kernel = RowKernel {
            fusion,
            columns: problem.columns,
            bytes: problem.bytes,
            streams: problem.streams,
            flat: problem.flat(),
            work,
        };
        kernel.launch(launch)
    }
}

/// Bytes of the elements that vectors are made of, of kernels that read and write elements of so many: see [`Problem::bytes`]. Rows that lie apart from
/// each other begin at boundaries of vectors of their own elements, and are in none that begin anywhere in one piece of memory.
fn vector_bytes(fusion: &Fusion<'_>, [read, written]: [&[i64]; 2]) -> i64 {
    let all = || read.iter().chain(written).copied();
    let least = all().min().unwrap_or(BANK_BYTES);
    let columns = fusion.columns();
    let divide =
        |bytes: &i64| columns.is_none_or(|columns| columns % (ACCESS_BYTES / bytes).max(1) == 0);
    let streams = fusion.stream() == Some(Stream::Columns);
    let own = match streams && !divide(&least) {
        true => least,
        false => written.iter().copied().max().unwrap_or(least),
    };
    match fusion.reads_apart() && !divide(&own) {
        true => all().filter(divide).min().unwrap_or(own),
        false => own,
    }
}

/// Whether there are folds, and all are sums.
fn adds(fusion: &Fusion<'_>) -> bool {
    let adds = |(_, fold): &(Val<'_>, Fold)| fold.combiner == Combiner::Add;
    !fusion.folds.is_empty() && fusion.folds.iter().all(adds)
}

/// 32-bit registers of the widest element that a thread keeps. What sums are formed of that is wider than what is moved is converted where it is
/// used.
fn words(fusion: &Fusion<'_>) -> i64 {
    let tensors = [&fusion.inputs, &fusion.outputs];
    let moved = tensors.into_iter().flat_map(|own| Fusion::full_bytes(own));
    let stores = fusion.outputs.iter().any(|(_, kind)| *kind == Kind::Full);
    let bytes = if stores && adds(fusion) {
        moved.max().unwrap_or(0)
    } else {
        fusion.widest
    };
    bytes.max(BANK_BYTES) / BANK_BYTES
}

/// Types of the elements of tensors with columns.
fn elements<'c>(tensors: &[(Val<'c>, Kind)]) -> Vec<Type<'c>> {
    let full = tensors.iter().filter(|(_, kind)| *kind == Kind::Full);
    let types = full.filter_map(|(value, _)| TensorType::of_value(*value));
    types.map(|own| own.element).collect()
}

/// Bytes of an element of all of them, of results only those whose type no tensor that is read has left.
fn held(fusion: &Fusion<'_>) -> i64 {
    let read = elements(&fusion.inputs);
    let mut free = read.clone();
    let mut written = elements(&fusion.outputs);
    written.retain(|element| {
        let place = free.iter().position(|own| own == element);
        place.is_none_or(|at| {
            free.swap_remove(at);
            false
        })
    });
    read.into_iter().chain(written).map(element_bytes).sum()
}

/// Bytes of the elements that tensors have one of a column, for all rows; none where bodies read elements anywhere.
fn repeated(fusion: &Fusion<'_>) -> i64 {
    let columns = fusion.inputs.iter();
    let columns = columns.filter(|(_, kind)| *kind == Kind::Column && fusion.tables.is_empty());
    let tensors = columns.filter_map(|(value, _)| TensorType::of_value(*value));
    tensors.map(|own| element_bytes(own.element)).sum()
}

/// Whether nothing ties elements to rows.
fn is_flat(fusion: &Fusion<'_>) -> bool {
    let tensors = || fusion.inputs.iter().chain(&fusion.outputs);
    let is_free = fusion.cut.is_none() && !fusion.total.dynamic;
    is_free && tensors().all(|(_, kind)| *kind == Kind::Full)
}

/// Whether one round of folds is all that a kernel takes of its rows' elements. Rows that begin anywhere have columns that a load
/// does not find together.
fn is_read_once(fusion: &Fusion<'_>) -> bool {
    let rounds = fusion.rounds();
    let is_online = matches!(&rounds[..], [round] if round.is_online());
    let is_aligned = || {
        fusion
            .columns()
            .is_some_and(|columns| columns % ACCESS_BYTES == 0)
    };
    let is_column = |(_, kind): &(Val<'_>, Kind)| *kind == Kind::Column;
    let of_rows = |(_, kind): &(Val<'_>, Kind)| *kind == Kind::Row;
    is_online
        && !fusion.total.dynamic
        && !fusion.reads_apart()
        && fusion.outputs.iter().all(of_rows)
        && (is_aligned() || !fusion.inputs.iter().any(is_column))
}

impl Problem {
    fn row(self) -> Row {
        let rows = self.total.known / self.columns.max(1);
        Row {
            rows: if self.total.dynamic { i64::MAX } else { rows },
            columns: self.columns,
            bytes: self.bytes,
            words: self.words,
            read: self.read,
            repeated: self.repeated,
            folds: self.folds,
            dynamic: self.total.dynamic,
            stores: self.moved > self.read,
            is_read_once: self.is_read_once,
            has_moments: self.has_moments,
            adds: self.adds,
            is_widened: self.is_widened,
        }
    }

    /// Elements in one row, of which the last are in no vector.
    fn flat(self) -> Option<Flat> {
        let one_row = self.is_flat && self.columns == self.total.known;
        Flat::of(self.columns, self.bytes).filter(|_| one_row)
    }

    /// The tile of short rows that begin anywhere, where columns are read and written.
    fn packed(self) -> Option<RowWork> {
        let moves = self.read > 0 && self.moved > self.read && !self.is_flat;
        let how = match (self.streams, self.repeats) {
            (false, _) => Use::Elementwise,
            (true, false) => Use::Reduced,
            (true, true) if self.has_moments => Use::Moments,
            (true, true) => Use::Repeated,
        };
        let tile = packed_tile::tile(self.row(), self.held, how);
        let tile = tile.filter(|_| moves && !self.total.dynamic)?;
        Some(RowWork {
            is_packed: true,
            ..RowWork::of(tile)
        })
    }

    fn work(self, chip: &Chip) -> RowWork {
        if let Some(packed) = self.packed() {
            return packed;
        }
        match self.streams {
            true => RowWork::of_rows(self.row(), chip),
            false => RowWork::of(match self.flat() {
                Some(flat) => flat.tile(self.bytes),
                None => elementwise_tile(self.columns, self.bytes),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_elements_are_cut_where_tiles_divide_them() {
        assert_eq!(
            free_columns(Size {
                dynamic: false,
                known: 128 * 1000
            }),
            512
        );
        assert_eq!(
            free_columns(Size {
                dynamic: true,
                known: 768
            }),
            256
        );
        assert_eq!(
            free_columns(Size {
                dynamic: true,
                known: 300
            }),
            300
        );
    }
}
