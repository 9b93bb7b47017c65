//! Reductions of dimensions that others follow, with the elementwise operators that form what they reduce: neighbouring threads have
//! neighbouring columns, and go through the rows. What is reduced is formed in registers, and what follows on the results, where
//! there is one a column, too.

mod kernel;

use super::choose::search::{self, Candidate};
use super::family::{Family, Launch};
use super::joined_rows::{Joined, can_join};
use super::knobs::Plan;
use super::model;
use super::row_tile::RowTile;
use super::single::{Elements, column_tile, is_costly, reduced_tile, uneven_parts};
use crate::facts::chip::{ACCESS_BYTES, Chip};
use axe_passes::PassResult;
use axe_passes::build::layout_error;
use axe_passes::fuse::fold::Fold;
use axe_passes::fuse::fusion::Fusion;
use axe_passes::fuse::group::{ColumnFold, Group, Root};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::row_parts;
use axe_passes::fuse::space::{Kind, Size, source};
use axe_passes::ir::types::is_float;
use axe_passes::ir::value::defining;
use axe_passes::ir::{Builder, Op, TensorType, Val};
use kernel::ColumnKernel;

/// The family.
pub(super) struct ColumnFolds;

/// Reductions of the same columns, and what is formed around them.
pub(super) struct Read<'c> {
    fusion: Fusion<'c>,
    /// At least one.
    reductions: Vec<Reduction<'c>>,
    problem: Problem,
}

/// A reduction.
#[derive(Clone, Copy)]
struct Reduction<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
    fold: Fold,
}

impl<'c> Reduction<'c> {
    fn of(result: Val<'c>, fold: Fold) -> Option<Self> {
        let op = defining(result)?;
        let from = source(op)?;
        Some(Self {
            op,
            from,
            result,
            fold,
        })
    }
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    fold: ColumnFold,
    /// The narrowest elements that are read.
    elements: Elements,
    /// Tensors of which each element is read.
    tensors: i64,
    /// Bytes that are moved.
    moved: i64,
    /// Whether elements that it forms are stored.
    stores: bool,
    /// Whether CTAs share the rows.
    in_parts: bool,
    /// Rows that are reduced as one, because they begin anywhere in memory.
    joined: Joined,
}

impl<'c> Read<'c> {
    /// The reductions of what came of so many parts, and what is formed of their results.
    fn rest(&self, parts: i64) -> Self {
        let fold = ColumnFold {
            rows: parts,
            ..self.problem.fold
        };
        let mut fusion = self.fusion.clone();
        fusion.total = Size {
            dynamic: false,
            known: fold.outer * parts * fold.columns,
        };
        let columns = fusion.inputs.iter();
        let columns = columns.filter(|(_, kind)| *kind == Kind::Column).copied();
        let states = self.reductions.iter().map(|own| (own.from, Kind::Full));
        fusion.inputs = states.chain(columns).collect();
        fusion.lookups.clear();
        fusion.outputs.retain(|(_, kind)| *kind != Kind::Full);
        let elements = self.reductions.iter();
        let elements = elements.filter_map(|own| TensorType::of_value(own.result));
        let narrowest = elements
            .map(|own| own.element)
            .min_by_key(|own| element_bytes(*own));
        let problem = Problem {
            fold,
            elements: narrowest.map_or(self.problem.elements, Elements::of),
            tensors: i64::try_from(self.reductions.len()).unwrap_or(1),
            in_parts: false,
            stores: false,
            joined: Joined::NONE,
            ..self.problem
        };
        Self {
            fusion,
            problem,
            reductions: self.reductions.clone(),
        }
    }
}

impl Problem {
    /// Into how many parts the rows are cut, and rows of each but the last.
    fn parts(self, chip: &Chip) -> [i64; 2] {
        let fold = self.joined.of(self.fold);
        match self.in_parts {
            true => uneven_parts(fold, (self.tile(), self.elements), chip),
            false => [1, fold.rows],
        }
    }

    /// Rows that are on their way at once are shared out among the tensors that are read.
    fn tile(self) -> RowTile {
        let ColumnFold {
            outer,
            rows,
            columns,
        } = self.joined.of(self.fold);
        let tile = match self.in_parts {
            // CTAs that share rows are many.
            true => column_tile([rows, columns], self.elements),
            false => reduced_tile(outer, [rows, columns], self.elements),
        };
        let at_once = tile.rows / tile.across;
        let mut own = at_once;
        // What is stored ends with the rows of a CTA.
        let is_part = |own: i64| self.stores && !self.in_parts && rows % (tile.across * own) != 0;
        while own > 1 && (own * self.tensors > at_once || is_part(own)) {
            own /= 2;
        }
        RowTile {
            rows: tile.across * own,
            ..tile
        }
    }
}

/// Whether the kernel stores elements that it forms of tensors whose narrowest elements have so many bytes: where CTAs share the rows, unless these begin
/// anywhere, since such rows are joined; else where threads have whole steps of rows, so that none goes on behind the rows that become one.
pub(super) fn stores(fold: ColumnFold, bytes: i64, in_parts: bool) -> bool {
    if in_parts {
        return fold.outer == 1 && fold.columns.saturating_mul(bytes) % ACCESS_BYTES == 0;
    }
    let of = Elements {
        bytes,
        is_float: true,
        is_costly: false,
    };
    let tile = reduced_tile(fold.outer, [fold.rows, fold.columns], of);
    fold.rows % tile.across == 0
}

impl Family for ColumnFolds {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = RowTile;

    /// The tile follows from the shape.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        outputs: &[Val<'c>],
        builder: &Builder<'c>,
        chip: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let unreadable = || layout_error(builder.location, "expected a reduction of columns");
        let Root::Columns(op) = group.root else {
            return Err(unreadable());
        };
        let fold = ColumnFold::of(op).ok_or_else(unreadable)?;
        let fusion = Fusion::read(group, outputs, None)?;
        let folds = fusion.folds.iter();
        let reductions = folds.map(|(result, fold)| Reduction::of(*result, *fold));
        let reductions: Vec<_> = reductions.collect::<Option<_>>().ok_or_else(unreadable)?;
        if reductions.is_empty() {
            return Err(unreadable());
        }
        let full = fusion.inputs.iter().filter(|(_, kind)| *kind == Kind::Full);
        let mut elements = Vec::new();
        for (value, _) in full {
            elements.push(builder.tensor_of(*value)?.element);
        }
        let narrowest = elements
            .iter()
            .min_by_key(|element| element_bytes(**element));
        let bytes: i64 = elements.iter().map(|element| element_bytes(*element)).sum();
        let bytes_of_narrowest = narrowest.map_or(4, |element| element_bytes(*element));
        let in_parts = row_parts::is_marked(op);
        let stored: i64 = Fusion::full_bytes(&fusion.outputs).iter().sum();
        let mut all = reductions.iter();
        let is_joined = in_parts && stored == 0 && all.all(|own| can_join(&fusion, own.from));
        let problem = Problem {
            fold,
            elements: Elements {
                bytes: bytes_of_narrowest,
                is_float: elements.iter().all(|element| is_float(*element)),
                is_costly: stored > 0 && is_costly(op),
            },
            tensors: i64::try_from(elements.len()).unwrap_or(1).max(1),
            moved: fusion.total.known.saturating_mul(bytes + stored),
            stores: stored > 0,
            in_parts,
            joined: Joined::NONE,
        };
        let joined = Problem {
            joined: match is_joined {
                true => Joined::whole_vectors(fold, bytes_of_narrowest),
                false => Joined::NONE,
            },
            ..problem
        };
        // What comes of one part is the result.
        let problem = match joined.parts(chip) {
            [1, _] => problem,
            _ => joined,
        };
        Ok(Read {
            fusion,
            reductions,
            problem,
        })
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Read<'_>, _: &Plan, _: &Chip) -> Result<RowTile, String> {
        Ok(operators.problem.tile())
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<RowTile>> {
        let config = problem.tile();
        let clocks = Self::clocks(problem, config, chip);
        search::only(config, clocks, limit)
    }

    /// All multiprocessors move the bytes.
    fn clocks(problem: Problem, _: RowTile, chip: &Chip) -> f64 {
        model::moving(problem.moved, chip)
    }

    fn tile(config: RowTile) -> [i64; 3] {
        [config.rows, config.columns, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        let ColumnFold {
            outer,
            rows,
            columns,
        } = operators.problem.fold;
        let several = match operators.reductions.len() {
            1 => String::new(),
            number => format!(", {number} times"),
        };
        format!("{outer} x {rows} rows of {columns} elements, reduced to one each{several}")
    }

    fn emit<'c>(
        operators: &Read<'c>,
        tile: RowTile,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let [parts, rows] = operators.problem.parts(launch.chip);
        let kernel = ColumnKernel {
            operators,
            tile,
            parts,
            rows,
            states: Vec::new(),
        };
        match parts {
            1 => kernel.launch(launch),
            _ => kernel.launch_in_parts(launch),
        }
    }
}
