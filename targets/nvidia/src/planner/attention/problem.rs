//! Attention as its kernel computes it: its tensors as that reads them, its extents, and whether there is such a kernel.

use super::by_column::Turned;
use super::config::{BYTES, Problem, ROWS};
use super::kernel::Tensors;
use super::memory::{STRIDE_BYTES, Strides};
use super::sizes::{GUESSED_LENGTH, GUESSED_PROBLEMS, Sizes};
use super::{MOST, MOST_COLUMNS, MOST_INPUTS, STEP, by_column, config, cost, lengths, pages};
use crate::facts::chip::Chip;
use crate::facts::wgmma::K_BYTES;
use crate::planner::gemm::product::asked;
use crate::planner::knobs::Plan;
use crate::planner::problem::count;
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::pack::{Order, Pack};
use axe_passes::fuse::attention::term::Term;
use axe_passes::fuse::attention::{Attention, Extents, Read};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::facts::gcd;
use axe_passes::ir::{TensorType, types};

/// Attention as a kernel computes it.
pub(super) struct Taken<'c> {
    pub packed: Attention<'c>,
    pub pack: Pack,
    pub tensors: Tensors,
    pub problem: Problem,
}

impl<'c> Taken<'c> {
    fn new(packed: Attention<'c>, pack: Pack) -> Result<Self, String> {
        let tensors = tensors(&packed)?;
        Ok(Self {
            problem: problem(&packed, &tensors),
            packed,
            pack,
            tensors,
        })
    }
}

/// Attention as the program has it, or with packed problems where that is right, fits, and is predicted to be quicker.
///
/// # Errors
/// Why no kernel reads its tensors.
pub(super) fn taken<'c>(
    attention: &Attention<'c>,
    asked: &Plan,
    chip: &Chip,
) -> Result<Taken<'c>, String> {
    let rows = attention.extents.rows;
    let pack = |problems, order| Pack {
        problems,
        rows,
        order,
    };
    let own = Taken::new(attention.clone(), pack(1, Order::Rows));
    let repeats = attention.repeats();
    let most = repeats.min(ROWS / rows.max(1));
    let Some(problems) = (2..=most).rev().find(|own| repeats % own == 0) else {
        return own;
    };
    let mut packed = [Order::Rows, Order::Problems].into_iter().map(|order| {
        let pack = pack(problems, order);
        attention
            .packed(pack)
            .and_then(|packed| Taken::new(packed, pack).ok())
    });
    let Some(packed) = packed.find_map(|packed| packed) else {
        return own;
    };
    let clocks = |taken: &Taken<'_>| {
        let config = config::configure(&taken.problem, asked, chip).ok();
        config.map_or(f64::MAX, |config| config.clocks(&taken.problem, chip))
    };
    Ok(match own {
        Ok(own) if clocks(&own) < clocks(&packed) => own,
        _ => packed,
    })
}

/// The tensors of attention as the kernel reads them.
fn tensors(attention: &Attention<'_>) -> Result<Tensors, String> {
    let extents = attention.extents;
    let bytes = element_bytes(attention.element);
    let sizes = Sizes::new(&attention.symbols, []);
    let (row, key) = ((Var::Row, extents.rows), (Var::Key, extents.keys));
    let (depth, column) = (
        (Var::Depth, attention.depth),
        (Var::Column, extents.columns),
    );
    let moved = |what: &str, strides: Option<Strides>| {
        let strides =
            strides.ok_or_else(|| format!("no one stride leads from row to row of {what}"))?;
        if let Some(why) = strides.irregular(&sizes) {
            return Err(format!("{what} {why}"));
        }
        match strides.declined(bytes) {
            Some(why) => Err(format!("{what} {why}")),
            None => Ok(strides),
        }
    };
    let queries = Strides::of_runs(&attention.queries, extents.batch, [row, depth], ROWS);
    let queries = queries.map(|own| own.with_rows_of_problems().ok_or("there is one query"));
    let in_pages = |at: usize, read: &Read<'_>, columns| {
        let pages = attention.pages[at].as_ref();
        let keys = pages.map_or(extents.keys, |own| own.size);
        pages::strides(
            Strides::of(read, extents.batch, [(Var::Key, keys), columns]),
            pages,
        )
    };
    // One row has no stride of its own.
    let rows = (Var::Row, extents.rows.max(2));
    let labels = labels(attention);
    let inputs = attention.inputs.iter().enumerate().map(|(at, read)| {
        let why = "no one stride leads from row to row, or from key to key, of a mask";
        let strides = match labels.contains(&at) {
            true => Strides::of(read, extents.batch, [rows, key]),
            false => Strides::of_shared(read, extents.batch, [rows, key], ROWS),
        };
        let strides = strides.ok_or(why)?;
        match strides.irregular(&sizes) {
            Some(why) => Err(format!("a mask {why}")),
            None => Ok(strides),
        }
    });
    Ok(Tensors {
        queries: moved("the queries' tensor", queries.transpose()?)?,
        keys: moved("the keys' tensor", in_pages(0, &attention.keys, depth))?,
        turned: Turned::of(attention),
        values: match Turned::of(attention) {
            Some(turned) => turned.strides(),
            None => moved("the values' tensor", in_pages(1, &attention.values, column))?,
        },
        inputs: inputs.collect::<Result<_, _>>()?,
        results: results_by(attention, Strides::of_runs).filter(|own| {
            let result = own.first().is_some_and(|own| own.declined(BYTES).is_none());
            result && extents.rows > 1
        }),
    })
}

/// The result and the logarithms of sums in memory, where one stride leads from row to row of each.
pub(super) fn results(attention: &Attention<'_>) -> Option<Vec<Strides>> {
    results_by(attention, |read, problems, vars, _| {
        Strides::of(read, problems, vars)
    })
}

/// The result and the logarithms of sums in memory, each as `of` reads a tensor of so many problems in tiles of so many rows.
fn results_by(
    attention: &Attention<'_>,
    of: impl Fn(&Read<'_>, i64, [(Var, i64); 2], i64) -> Option<Strides>,
) -> Option<Vec<Strides>> {
    let extents = attention.extents;
    let row = (Var::Row, extents.rows);
    let of = |read, columns| of(read, extents.batch, [row, columns], ROWS);
    let result = of(&attention.result, (Var::Column, extents.columns))?;
    // Of a value a row, rows are the only dimension.
    let sums = attention
        .sums
        .iter()
        .map(|own| of(&own.read, (Var::Key, 2)));
    let all: Option<Vec<_>> = std::iter::once(Some(result)).chain(sums).collect();
    let sizes = Sizes::new(&attention.symbols, []);
    all.filter(|all| all.iter().all(|own| own.irregular(&sizes).is_none()))
}

/// A number with what extents are taken for where a plan is chosen: those of rows and keys are lengths, others problems.
fn guess(attention: &Attention<'_>, number: i64) -> i64 {
    let Extents { rows, keys, .. } = attention.extents;
    attention.symbols.with(number, |extent| {
        match [rows, keys].iter().any(|own| own % extent == 0) {
            true => GUESSED_LENGTH,
            false => GUESSED_PROBLEMS,
        }
    })
}

/// Extents with numbers for those that only a launch says.
fn guessed(attention: &Attention<'_>) -> Extents {
    let own = attention.extents;
    let of = |number| guess(attention, number);
    Extents {
        batch: of(own.batch),
        rows: of(own.rows),
        keys: of(own.keys),
        columns: own.columns,
    }
}

/// The extents and strides of a kernel of attention that a launch says.
pub(super) fn sizes<'c>(attention: &Attention<'c>, tensors: &[&Strides]) -> Sizes<'c> {
    let Extents {
        batch, rows, keys, ..
    } = attention.extents;
    let steps = attention.lengths.iter().chain(attention.tables());
    let steps = steps.flat_map(|read| &read.steps);
    let of_steps = steps.flat_map(|step| [step.digit.extent, step.digit.stride, step.elements]);
    let of_tensors = tensors.iter().flat_map(|own| own.numbers());
    let all = [batch, rows, keys].into_iter().chain(of_steps);
    Sizes::new(&attention.symbols, all.chain(of_tensors))
}

/// What is computed.
fn problem(attention: &Attention<'_>, tensors: &Tensors) -> Problem {
    let extents = guessed(attention);
    let (seen, causal) = config::seen(&attention.visible, extents.rows, extents.keys);
    let masks = attention.inputs.iter().map(|read| {
        let has = |var: Var| read.steps.iter().any(|step| step.digit.var == var);
        let bytes =
            TensorType::of_value(read.tensor).map_or(4, |tensor| element_bytes(tensor.element));
        match ([Var::Row, Var::Key].map(has), bytes) {
            ([true, true], 2) => 1,
            // Bytes are kept in registers of their own.
            ([true, true], _) => 2,
            // One value for each two scores, and what is compared with them. Measured: with less, ptxas spills.
            ([false, true], 4) => 3,
            ([false, true], 8) => 6,
            _ => 0,
        }
    });
    // Distances of rows and keys are formed beside the scores.
    let is_distance = |term: &Term| matches!(term, Term::Apply(name, ..) if name == "arith.sitofp");
    let runs = tensors.inputs.iter().filter_map(Strides::run_of_columns);
    let score = attention.weights.score;
    let distances = attention.terms.any(score, true, &is_distance);
    Problem {
        batch: extents.batch,
        rows: extents.rows,
        keys: extents.keys,
        depth: padded_depth(attention),
        columns: padded(extents.columns, STEP),
        bytes: element_bytes(attention.element),
        masks: masks.sum::<i64>() + 3 * i64::from(distances),
        causal,
        seen,
        repeats: guess(attention, attention.repeats()),
        page: pages::page_of(attention).unwrap_or(0),
        run: runs.fold(1, |all, run| all / gcd(all, run) * run),
        stores: tensors.results.is_some(),
        dynamic: !attention.symbols.is_empty(),
        straddles: [&tensors.keys, &tensors.values]
            .iter()
            .any(|own| own.straddles(element_bytes(attention.element))),
        same_blocks: attention.visible.is_all()
            && attention.tables().next().is_none()
            && !attention.symbols.has(attention.extents.rows),
    }
}

/// Whether a chip has a kernel of attention, and it is predicted to be quicker than those of its operators.
///
/// # Errors
/// Why not.
pub(in crate::planner) fn takes(attention: &Attention<'_>, chip: &Chip) -> Result<(), String> {
    if !chip.has_wgmma {
        return Err(format!(
            "attention in one kernel is for chips with wgmma, and {} has none",
            chip.name
        ));
    }
    checked(attention)?;
    let asked = asked(attention.op).map_err(|error| error.message)?;
    let Taken { problem, .. } = taken(attention, &asked, chip)?;
    if !problem.stores && !attention.symbols.is_empty() {
        return Err("its result has no tensor map, and its extents are dynamic".to_owned());
    }
    results(attention).ok_or("no one stride leads from row to row of the result")?;
    if asked.chooses() {
        return Ok(());
    }
    let config = config::configure(&problem, &asked, chip)?;
    let (own, apart) = (config.clocks(&problem, chip), cost::apart(&problem, chip));
    if own > apart {
        return Err(format!(
            "it is predicted to take {own:.0} clocks in one kernel, and {apart:.0} in three"
        ));
    }
    Ok(())
}

/// Whether columns are whole steps of products, so that none has to be padded.
///
/// # Errors
/// Which have to be.
pub(super) fn whole(attention: &Attention<'_>) -> Result<(), String> {
    in_steps(attention, [depth_step(attention), STEP])
}

/// Whether columns of queries and keys, and of values, are multiples of these.
fn in_steps(attention: &Attention<'_>, [depth, columns]: [i64; 2]) -> Result<(), String> {
    for (what, columns, step) in [
        ("what scores are summed over", attention.depth, depth),
        ("the values' columns", attention.extents.columns, columns),
    ] {
        if columns % step != 0 || !(step..=MOST_COLUMNS).contains(&columns) {
            return Err(format!(
                "expected {what} in multiples of {step} up to {MOST_COLUMNS}, got {columns}"
            ));
        }
    }
    Ok(())
}

/// What a product sums over at a time.
fn depth_step(attention: &Attention<'_>) -> i64 {
    K_BYTES / element_bytes(attention.element)
}

/// What the columns of queries and keys, and of values, are multiples of: of 16 bits, those of a vector. The tensor memory accelerator
/// fills shared memory with zeros behind the last one.
fn steps(attention: &Attention<'_>) -> [i64; 2] {
    match element_bytes(attention.element) {
        2 => [STRIDE_BYTES / 2; 2],
        _ => [depth_step(attention), STEP],
    }
}

/// What the first product sums over, with the zeros that fill its last step.
pub(super) fn padded_depth(attention: &Attention<'_>) -> i64 {
    padded(attention.depth, depth_step(attention))
}

/// Columns with those that are zeros.
fn padded(columns: i64, step: i64) -> i64 {
    count(columns, step).saturating_mul(step)
}

/// The numbers of the tensors that are labels of segments.
fn labels(attention: &Attention<'_>) -> Vec<usize> {
    let segments = attention.visible.segments.iter();
    segments.flat_map(|own| [own.rows, own.keys]).collect()
}

/// Whether a kernel has its extents, and takes what its scores read.
pub(super) fn checked(attention: &Attention<'_>) -> Result<(), String> {
    let extents = attention.extents;
    in_steps(attention, steps(attention))?;
    if extents.keys < 2 {
        return Err(
            "expected more than one key: a tensor map has no boxes of rows where there is one"
                .to_owned(),
        );
    }
    let symbols = &attention.symbols;
    if !symbols.is_empty() && !attention.visible.segments.is_empty() {
        return Err("it compares labels of segments, and its extents are dynamic".to_owned());
    }
    if symbols.has(attention.depth) || symbols.has(extents.columns) {
        return Err("what scores are summed over is known at run time only".to_owned());
    }
    if [extents.batch, extents.rows, extents.keys]
        .iter()
        .any(|extent| *extent > MOST)
    {
        return Err(format!("expected at most {MOST} rows, keys and problems"));
    }
    if attention.inputs.len() > MOST_INPUTS {
        return Err(format!(
            "its scores read {} tensors, and a kernel takes {MOST_INPUTS}",
            attention.inputs.len()
        ));
    }
    lengths::checked(attention)?;
    pages::page_of(attention)?;
    by_column::checked(attention)?;
    let labels = labels(attention);
    let wide = |(at, read): &(usize, &Read<'_>)| {
        let tensor = TensorType::of_value(read.tensor);
        tensor.is_some_and(|tensor| {
            let bits = types::bits(tensor.element);
            let is_wide = bits > Some(32) && !labels.contains(at);
            is_wide || types::is_float(tensor.element) && bits < Some(16)
        })
    };
    if let Some((_, read)) = attention.inputs.iter().enumerate().find(wide) {
        return Err(format!(
            "its scores read a tensor of type {}",
            melior::ir::ValueLike::r#type(&read.tensor)
        ));
    }
    Ok(())
}
