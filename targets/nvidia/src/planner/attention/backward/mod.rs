//! Attention's gradients, which [`axe_passes::fuse::attention`] finds, in four kernels (sm_90a):
//!
//! * the forward pass, which leaves its result and the logarithms of its rows' sums, unless the program has those;
//! * [`rows`]: `D = rowsum(dO O)`, zeros for the sums of dQ, and logarithms that the program has as powers of two want them;
//! * [`kernel`]: blocks of keys, each through all queries that see some of them: dK, dV, and dQ's sums in f32;
//! * [`rows`]: dQ in its own type.

mod block;
mod config;
mod kernel;
mod launches;
mod rows;
mod runs;
mod scored;
mod storage;
mod weights;

use super::config::{BYTES, configure};
use super::memory::Strides;
use super::parts::step;
use super::problem::{checked, whole};
use super::{MOST, results, sums, taken};
use crate::facts::chip::Chip;
use crate::planner::choose::search::Candidate;
use crate::planner::family::{Family, Launch};
use crate::planner::gemm::product::asked;
use crate::planner::knobs::Plan;
use crate::planner::problem::count;
use axe_passes::build::layout_error;
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::visible::Visible;
use axe_passes::fuse::attention::{Backward, Extents, Logs, Read};
use axe_passes::fuse::group::Group;
use axe_passes::ir::{Builder, Val};
use axe_passes::{PassError, PassResult};
use config::{Config, Lengths, Problem, ROWS};
use launches::Between;
use scored::Scored;
use std::rc::Rc;

/// Columns of queries, keys and values come in steps of `wgmma`'s depth.
const STEP: i64 = 16;
/// What rows of one value are padded to, so that a tensor map takes them: 16 bytes.
const PADDED: i64 = 4;
/// CTAs that read the same queries at a time, so that memory need not bring them for each. Measured: causal, 32 problems of 8192 places
/// on 132 multiprocessors take 2469 us with long tiles first and 2605 problem after problem, 128 of 2048 take 1169 and 808. Twice as
/// many do so where the long tiles of the last problems can be first instead.
const SHARED: i64 = 4;
/// Rows that are looked at one by one.
const MOST_ROWS: i64 = 1 << 20;

/// The family.
pub(in crate::planner) struct Gradients;

/// Gradients, with their tensors as the kernels read them.
pub(in crate::planner) struct Operators<'c> {
    backward: Rc<Backward<'c>>,
    tensors: Tensors,
    problem: Problem,
    scored: Scored<'c>,
}

/// How tensors lie in memory.
struct Tensors {
    queries: Strides,
    keys: Strides,
    values: Strides,
    /// dO.
    gradient: Strides,
    /// O, `rowsum(dO O)` and logarithms of sums, where they are given.
    result: Option<Strides>,
    products: Option<Strides>,
    logs: Option<Strides>,
    /// dQ, dK, dV.
    results: [Strides; 3],
}

/// Rows of a value each, as memory has them.
pub(super) const fn padded(rows: i64) -> i64 {
    count(rows, PADDED).saturating_mul(PADDED)
}

/// The tensors of gradients as the kernels read them.
fn tensors(backward: &Backward<'_>) -> Result<Tensors, String> {
    let own = &backward.forward;
    let Extents {
        batch,
        rows,
        keys,
        columns,
    } = own.extents;
    let moved = |what: &str, read: &Read<'_>, vars| {
        let strides = Strides::of(read, batch, vars)
            .ok_or_else(|| format!("no one stride leads from row to row of {what}"))?;
        match strides.declined(BYTES) {
            Some(why) => Err(format!("{what} {why}")),
            None => Ok(strides),
        }
    };
    let (depth, column) = ((Var::Depth, own.depth), (Var::Column, columns));
    let [result, products, logs] = given(backward)?;
    let [queries, of_keys, of_values] = &backward.results;
    let of_depth = (Var::Column, own.depth);
    Ok(Tensors {
        queries: moved(
            "the queries' tensor",
            &own.queries,
            [(Var::Row, rows), depth],
        )?,
        keys: moved("the keys' tensor", &own.keys, [(Var::Key, keys), depth])?,
        values: moved(
            "the values' tensor",
            &own.values,
            [(Var::Key, keys), column],
        )?,
        gradient: moved(
            "the tensor of the result's gradient",
            &backward.gradient,
            [(Var::Row, rows), column],
        )?,
        result,
        products,
        logs,
        results: [
            moved(
                "the queries' gradient",
                &queries.read,
                [(Var::Row, rows), of_depth],
            )?,
            moved(
                "the keys' gradient",
                &of_keys.read,
                [(Var::Row, keys), of_depth],
            )?,
            moved(
                "the values' gradient",
                &of_values.read,
                [(Var::Row, keys), column],
            )?,
        ],
    })
}

/// The result, the sums of it and its gradient, and the logarithms of sums, where the program has them.
fn given(backward: &Backward<'_>) -> Result<[Option<Strides>; 3], String> {
    let Extents {
        batch,
        rows,
        columns,
        ..
    } = backward.forward.extents;
    // Threads read what is given, in rows of columns or, where rows have one value each, of none.
    let of_given = |what: &str, read: Option<&Read<'_>>, vars| {
        let strides = read.map(|read| Strides::of(read, batch, vars));
        match strides {
            Some(None) => Err(format!("no one stride leads from row to row of {what}")),
            Some(Some(own)) if !own.has()[0] => Err(format!("{what} is the same for all rows")),
            own => Ok(own.flatten()),
        }
    };
    let given = &backward.given;
    let logs = given.logs.as_ref().and_then(|own| match own {
        Logs::Read { read, .. } => Some(read),
        Logs::Kept(_) => None,
    });
    let of_row = [(Var::Row, rows), (Var::Key, 2)];
    let column = (Var::Column, columns);
    Ok([
        of_given(
            "the result",
            given.result.as_ref(),
            [(Var::Row, rows), column],
        )?,
        of_given(
            "the sums of the result and its gradient",
            given.products.as_ref(),
            of_row,
        )?,
        of_given("the logarithms of sums", logs, of_row)?,
    ])
}

fn problem(backward: &Backward<'_>) -> Problem {
    let Extents {
        batch,
        rows,
        keys,
        columns,
    } = backward.forward.extents;
    Problem {
        batch,
        rows,
        keys,
        depth: backward.forward.depth,
        columns,
        group: backward.group,
        lengths: lengths_of(&backward.forward.visible),
        more: scored::registers(backward),
    }
}

fn lengths_of(visible: &Visible) -> Lengths {
    match visible {
        all if all.is_all() => Lengths::Even,
        band if band.is_band() => Lengths::Falling,
        _ => Lengths::Unknown,
    }
}

/// Whether a chip has kernels of these gradients.
///
/// # Errors
/// Why not.
pub(in crate::planner) fn takes(backward: &Backward<'_>, chip: &Chip) -> Result<(), String> {
    let own = &backward.forward;
    if !chip.has_wgmma {
        return Err(format!(
            "attention's gradients are for chips with wgmma, and {} has none",
            chip.name
        ));
    }
    whole(own)?;
    checked(own)?;
    let Extents {
        batch, rows, keys, ..
    } = own.extents;
    if rows < 2 || keys < 2 || [batch, rows, keys].iter().any(|extent| *extent > MOST) {
        return Err(format!(
            "expected 2 to {MOST} rows and keys, got {rows} and {keys}"
        ));
    }
    runs::checked(&own.visible)?;
    if backward.given.logs.is_none()
        && !own.weights.empty_is_zero
        && !own.visible.is_data()
        && hides_rows(&own.visible, rows, keys)
    {
        return Err("its mask hides all keys of a row, whose weights are NaN".to_owned());
    }
    if own.repeats() % backward.group != 0 {
        return Err(
            "gradients are added up over heads that do not share keys and values".to_owned(),
        );
    }
    tensors(backward)?;
    let config = problem(backward).config(chip)?;
    Scored::new(backward, config.keys())?;
    forward(backward, chip)
}

/// Whether there is a kernel of the forward pass, with logarithms of sums, where one is needed.
fn forward(backward: &Backward<'_>, chip: &Chip) -> Result<(), String> {
    let own = match &backward.given.logs {
        Some(Logs::Read { .. }) => return Ok(()),
        Some(Logs::Kept(own)) => own,
        None => &backward.forward,
    };
    // Where its tensor will be is not looked at.
    let own = sums::beside(own, own.result.tensor).ok_or("rows have no places")?;
    let asked = match backward.given.logs {
        Some(_) => asked(own.op).map_err(|error| error.message)?,
        None => Plan::default(),
    };
    let taken = taken(&own, &asked, chip)?;
    results(&own).ok_or("no one stride leads from row to row of the result")?;
    configure(&taken.problem, &asked, chip).map(|_| ())
}

/// Whether some row sees no key.
fn hides_rows(visible: &Visible, rows: i64, keys: i64) -> bool {
    let empty = |row| {
        let [first, end] = visible.some(row, 1, keys);
        end <= first
    };
    !visible.is_all() && (rows > MOST_ROWS || (0..rows).any(empty))
}

impl Family for Gradients {
    type Operators<'c> = Operators<'c>;
    type Problem = Problem;
    type Config = Config;

    const HAS_CHOICE: bool = true;

    fn read<'c>(
        group: &Group<'c>,
        _: &[Val<'c>],
        builder: &Builder<'c>,
        chip: &Chip,
    ) -> PassResult<'c, Operators<'c>> {
        let lost = || layout_error(builder.location, "a group without gradients");
        let backward = group.gradients.clone().ok_or_else(lost)?;
        let failed = |why: String| PassError::new(builder.location, why);
        let tensors = tensors(&backward).map_err(failed)?;
        let problem = problem(&backward);
        let config = problem.config(chip).map_err(failed)?;
        Ok(Operators {
            problem,
            scored: Scored::new(&backward, config.keys()).map_err(failed)?,
            backward,
            tensors,
        })
    }

    fn problem(operators: &Operators<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn configure(operators: &Operators<'_>, plan: &Plan, chip: &Chip) -> Result<Config, String> {
        if let Some((key, _)) = plan.entries().first() {
            return Err(format!(
                "the kernels of attention's gradients have no '{key}'"
            ));
        }
        operators.problem.config(chip)
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<Config>> {
        let only = problem.config(chip).into_iter().map(|config| Candidate {
            clocks: Self::clocks(problem, config, chip),
            config,
        });
        only.take(limit).collect()
    }

    /// Five products of each block, one CTA a multiprocessor.
    fn clocks(problem: Problem, config: Config, chip: &Chip) -> f64 {
        let Some(rates) = &chip.attention else {
            return f64::INFINITY;
        };
        let blocks = problem.group as f64 * count(problem.rows, ROWS) as f64;
        let [depth, columns] = config.padded(&problem);
        let products = (3 * depth + 2 * columns) as f64;
        let block = products * (config.keys() * ROWS) as f64 / rates.products;
        let rounds = count(config.tiles(&problem), chip.multiprocessors) as f64;
        rounds * blocks * block + chip.mma.overhead
    }

    fn tile(config: Config) -> [i64; 3] {
        [config.keys(), ROWS, config.depth]
    }

    fn described(operators: &Operators<'_>) -> String {
        let Problem {
            batch,
            rows,
            keys,
            depth,
            columns,
            ..
        } = operators.problem;
        let element = operators.backward.forward.element;
        format!(
            "gradients of attention of {batch} x {rows} queries to {keys} keys of {depth}, values of {columns}, of {element}"
        )
    }

    fn emit<'c>(
        operators: &Operators<'c>,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let between = Between::new(operators, launch)?;
        if operators.backward.given.logs.is_none() {
            operators.attend(launch, &between)?;
        }
        operators.of_rows(launch, &between)?;
        let name = operators.gradients(launch, &between, config)?;
        operators.of_queries(launch, &between)?;
        Ok(name)
    }
}

/// A tensor of `[problems, rows]` of a value each, with so many elements from problem to problem.
fn of_rows(problem: &Problem) -> Strides {
    let batch = vec![step([problem.batch, 1], padded(problem.rows))];
    Strides::new(problem.batch, batch, [problem.rows, 1], None)
}

/// A tensor of `[problems, rows, columns]`, one after another.
fn of_matrices(problem: &Problem, columns: i64) -> Strides {
    let batch = vec![step(
        [problem.batch, 1],
        problem.rows.saturating_mul(columns),
    )];
    Strides::new(problem.batch, batch, [problem.rows, columns], Some(columns))
}
