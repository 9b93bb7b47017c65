//! The largest elements of rows: `axe.top_k`, a kernel of its own. Warps or CTAs share out the rows.

use super::choose::search::{self, Candidate};
use super::family::{Family, Launch};
use super::knobs::Plan;
use super::model;
use super::problem::count;
use crate::emit::top_k::{self, THREADS, rows_of_cta};
use crate::facts::chip::{Chip, MOST_BLOCKS};
use axe_dialect::Typed;
use axe_dialect::ops::{self, TopKOp};
use axe_passes::build::{Code, Kernel};
use axe_passes::fuse::arguments::argument_types;
use axe_passes::fuse::group::{Group, Root};
use axe_passes::fuse::reshape::{element_bytes, leading_of};
use axe_passes::fuse::space::Size;
use axe_passes::ir::{Builder, DYNAMIC, Val};
use axe_passes::{PassError, PassResult};
use std::fmt;

/// The family.
pub(super) struct TopKs;

/// The operator, read.
pub(super) struct Read<'c> {
    source: Val<'c>,
    /// Values and indices.
    results: [Val<'c>; 2],
    smallest: bool,
    /// Rows, or [`DYNAMIC`].
    rows: i64,
    problem: Problem,
}

/// What is chosen of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Elements of a row.
    columns: i64,
    /// How many are chosen.
    k: i64,
    /// Bytes of all rows, for each of a leading extent that is known at run time.
    bytes: i64,
}

/// The CTAs are of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{threads = {THREADS}}}")
    }
}

impl Family for TopKs {
    type Operators<'c> = Read<'c>;
    type Problem = Problem;
    type Config = Config;

    /// Which threads have a row follows from its length.
    const HAS_CHOICE: bool = false;

    fn read<'c>(
        group: &Group<'c>,
        _: &[Val<'c>],
        builder: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Read<'c>> {
        let error = |what: String| PassError::new(builder.location, what);
        let operator = match group.root {
            Root::Single(op) => TopKOp::of(op),
            _ => None,
        };
        let operator = operator.ok_or_else(|| error("expected axe.top_k".to_owned()))?;
        let &[values, indices] = &operator.results[..] else {
            return Err(error("expected values and indices".to_owned()));
        };
        let (tensor, size) = (
            builder.tensor_of(operator.source)?,
            Size::of(operator.source),
        );
        let last = |shape: &[i64]| shape.last().copied().unwrap_or(1);
        let (columns, k) = (last(&tensor.shape), last(&builder.tensor_of(values)?.shape));
        top_k::taken(tensor.element, columns, k)
            .map_err(|why| error(format!("'axe.top_k': {why}")))?;
        let rows = size.and_then(|size| size.rows(columns));
        let rows = rows.ok_or_else(|| error("expected rows of a known length".to_owned()))?;
        // A row by itself has a dynamic extent nowhere.
        let leading = tensor.shape.first() == Some(&DYNAMIC);
        let bytes = rows
            .known
            .saturating_mul(columns)
            .saturating_mul(element_bytes(tensor.element));
        Ok(Read {
            source: operator.source,
            results: [values, indices],
            smallest: operator.smallest,
            rows: if leading { DYNAMIC } else { rows.known },
            problem: Problem { columns, k, bytes },
        })
    }

    fn problem(operators: &Read<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(_: &Read<'_>, _: &Plan, _: &Chip) -> Result<Config, String> {
        Ok(Config)
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<Config>> {
        let clocks = Self::clocks(problem, Config, chip);
        search::only(Config, clocks, limit)
    }

    /// All multiprocessors read the rows.
    fn clocks(problem: Problem, _: Config, chip: &Chip) -> f64 {
        model::moving(problem.bytes, chip)
    }

    fn tile(_: Config) -> [i64; 3] {
        [1, THREADS, 1]
    }

    fn described(operators: &Read<'_>) -> String {
        let Problem { columns, k, .. } = operators.problem;
        format!("{k} of rows of {columns}")
    }

    fn emit<'c>(
        operators: &Read<'c>,
        _: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        operators.launch(launch)
    }
}

impl<'c> Read<'c> {
    fn launch(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, String> {
        let Launch { frame, builder, .. } = launch;
        let Problem { columns, k, .. } = self.problem;
        let source = frame.operand(builder, self.source, &[self.rows, columns])?;
        let mut outs = Vec::new();
        for result in self.results {
            outs.push((result, frame.out(builder, result, &[self.rows, k])?));
        }
        let ins = [source];
        let types = argument_types(&ins, &[], &outs);
        let kernel = Kernel::new(builder.location, frame.module, &types);
        self.body(&kernel)?;
        let name = frame.name("top_k");
        kernel.finish(frame.module, &name, THREADS)?;
        let grid = self.grid(builder)?;
        let [source] = ins.map(|operand| operand.tensor);
        frame.launch(builder, &name, grid, &[source], &outs)?;
        Ok(name)
    }

    fn body(&self, kernel: &Kernel<'c>) -> PassResult<'c> {
        let builder = kernel.code.builder;
        let flag = [("smallest", builder.unit())];
        let attributes = if self.smallest { &flag[..] } else { &[] };
        builder
            .operation(ops::TOP_K, &kernel.arguments, &[], attributes, Vec::new())
            .map(drop)
    }

    /// A CTA a row, or eight where a row is a warp's; as many as a grid has, which go on to further rows. Of short rows there are too many
    /// then, which find none.
    fn grid(&self, builder: &Builder<'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let one = code.index(1)?;
        let rows = rows_of_cta(self.problem.columns);
        let ctas = match self.rows {
            DYNAMIC => {
                let leading = leading_of(builder, self.source, &[DYNAMIC, self.problem.columns])?;
                let ctas = code.ceil_div(leading, rows)?;
                let most = code.index(MOST_BLOCKS)?;
                builder.value("arith.minui", &[ctas, most], builder.index_type(), &[])?
            }
            known => code.index(count(known, rows).min(MOST_BLOCKS))?,
        };
        Ok([ctas, one, one])
    }
}
