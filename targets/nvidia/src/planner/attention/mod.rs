//! Attention in one kernel: what [`axe_passes::fuse::attention`] finds, by warps that copy and warpgroups that multiply (sm_90a).
//!
//! * [`config`]: the problem as data, configurations and their cost;
//! * [`memory`]: tensors by their strides, and rings in shared memory;
//! * [`tiles`]: tiles of rows, and the blocks of keys that their masks leave;
//! * [`score`]: scores and masks in registers;
//! * [`kernel`]: the kernel.

pub(super) mod config;
mod kernel;
mod memory;
mod score;
mod tiles;

use super::choose::search::Candidate;
use super::family::{Family, Launch};
use super::gemm::product::asked;
use super::knobs::Plan;
use super::problem::count;
use crate::facts::chip::Chip;
use axe_passes::build::{Kernel, layout_error};
use axe_passes::fuse::arguments::{argument_types, launched};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::{Attention, Read};
use axe_passes::fuse::frame::operand;
use axe_passes::fuse::group::Group;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::ir::{Builder, TensorType, Val, types};
use axe_passes::{PassError, PassResult};
use config::{BYTES, Config, Problem};
use kernel::{Arguments, Tensors};
use memory::Strides;
use std::rc::Rc;

/// The greatest column counts that one accumulator takes (PTX ISA 9.7.15.5.1: N of `wgmma` up to 256).
const MOST_COLUMNS: i64 = 256;
/// Columns come in steps of `wgmma`'s depth of 16-bit elements (PTX ISA 9.7.15.2).
const STEP: i64 = 16;
/// Tensors that scores read at most: each takes registers.
const MOST_INPUTS: usize = 4;
/// Rows, keys and problems at most, so that places are numbers of 32 bits.
const MOST: i64 = 1 << 30;

/// The family.
pub(super) struct Attentions;

/// Attention, with its tensors as the kernel reads them.
pub(super) struct Operators<'c> {
    attention: Rc<Attention<'c>>,
    tensors: Tensors,
    problem: Problem,
    asked: Plan,
}

/// The tensors of attention as the kernel reads them.
fn tensors(attention: &Attention<'_>) -> Result<Tensors, String> {
    let extents = attention.extents;
    let (row, key) = ((Var::Row, extents.rows), (Var::Key, extents.keys));
    let (depth, column) = (
        (Var::Depth, attention.depth),
        (Var::Column, extents.columns),
    );
    let moved = |what: &str, read: &Read<'_>, vars| {
        let strides = Strides::of(read, extents.batch, vars)
            .ok_or_else(|| format!("no one stride leads from row to row of {what}"))?;
        match strides.declined(BYTES) {
            Some(why) => Err(format!("{what} {why}")),
            None => Ok(strides),
        }
    };
    let inputs = attention.inputs.iter().map(|read| {
        let strides = Strides::of(read, extents.batch, [row, key])
            .ok_or("no one stride leads from row to row, or from key to key, of a mask")?;
        match strides.has() {
            [false, false] if extents.rows > 1 || extents.keys > 1 => {
                Err("a mask is one number for all rows and keys".to_owned())
            }
            _ => Ok(strides),
        }
    });
    Ok(Tensors {
        queries: moved("the queries' tensor", &attention.queries, [row, depth])?,
        keys: moved("the keys' tensor", &attention.keys, [key, depth])?,
        values: moved("the values' tensor", &attention.values, [key, column])?,
        result: moved("the result", &attention.result, [row, column])?,
        inputs: inputs.collect::<Result<_, _>>()?,
    })
}

/// What is computed.
fn problem(attention: &Attention<'_>) -> Problem {
    let extents = attention.extents;
    let (seen, causal) = config::seen(&attention.visible, extents.rows, extents.keys);
    let full = |read: &&Read<'_>| {
        [Var::Row, Var::Key]
            .iter()
            .all(|var| read.steps.iter().any(|step| step.digit.var == *var))
    };
    let masks = attention.inputs.iter().filter(full).map(|read| {
        let bytes =
            TensorType::of_value(read.tensor).map_or(4, |tensor| element_bytes(tensor.element));
        // Bytes are kept in registers of their own.
        if bytes == 2 { 1 } else { 2 }
    });
    Problem {
        batch: extents.batch,
        rows: extents.rows,
        keys: extents.keys,
        depth: attention.depth,
        columns: extents.columns,
        masks: masks.sum(),
        causal,
        seen,
    }
}

/// Whether a chip has a kernel of attention, and it is predicted to be quicker than those of its operators.
///
/// # Errors
/// Why not.
pub(super) fn takes(attention: &Attention<'_>, chip: &Chip) -> Result<(), String> {
    if !chip.has_wgmma {
        return Err(format!(
            "attention in one kernel is for chips with wgmma, and {} has none",
            chip.name
        ));
    }
    let extents = attention.extents;
    for (what, columns) in [
        ("what scores are summed over", attention.depth),
        ("the values' columns", extents.columns),
    ] {
        if columns % STEP != 0 || !(STEP..=MOST_COLUMNS).contains(&columns) {
            return Err(format!(
                "expected {what} in multiples of {STEP} up to {MOST_COLUMNS}, got {columns}"
            ));
        }
    }
    if extents.rows < 2 || extents.keys < 2 {
        return Err("expected more than one query, and more than one key: a tensor map has no boxes of rows where there is one".to_owned());
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
    let wide = |read: &&Read<'_>| {
        TensorType::of_value(read.tensor).and_then(|tensor| types::bits(tensor.element)) > Some(32)
    };
    if let Some(read) = attention.inputs.iter().find(wide) {
        return Err(format!(
            "its scores read a tensor of type {}",
            melior::ir::ValueLike::r#type(&read.tensor)
        ));
    }
    tensors(attention)?;
    let problem = problem(attention);
    let asked = asked(attention.op).map_err(|error| error.message)?;
    if asked.chooses() {
        return Ok(());
    }
    let config = config::configure(&problem, &asked, chip)?;
    let (own, apart) = (config.clocks(&problem, chip), config::apart(&problem, chip));
    if own > apart {
        return Err(format!(
            "it is predicted to take {own:.0} clocks in one kernel, and {apart:.0} in three"
        ));
    }
    Ok(())
}

impl Family for Attentions {
    type Operators<'c> = Operators<'c>;
    type Problem = Problem;
    type Config = Config;

    const HAS_CHOICE: bool = true;

    fn read<'c>(
        group: &Group<'c>,
        _: &[Val<'c>],
        builder: &Builder<'c>,
        _: &Chip,
    ) -> PassResult<'c, Operators<'c>> {
        let attention = group.attention.clone();
        let attention =
            attention.ok_or_else(|| layout_error(builder.location, "a group without attention"))?;
        Ok(Operators {
            tensors: tensors(&attention).map_err(|why| PassError::new(builder.location, why))?,
            problem: problem(&attention),
            asked: asked(attention.op)?,
            attention,
        })
    }

    fn problem(operators: &Operators<'_>, _: &Chip) -> Problem {
        operators.problem
    }

    fn asked(operators: &Operators<'_>) -> Plan {
        operators.asked
    }

    fn configure(operators: &Operators<'_>, plan: &Plan, chip: &Chip) -> Result<Config, String> {
        config::configure(&operators.problem, plan, chip)
    }

    fn candidates(problem: Problem, chip: &Chip, limit: usize) -> Vec<Candidate<Config>> {
        let all = config::offered(&problem, chip).into_iter().take(limit);
        let timed = |config: Config| Candidate {
            clocks: config.clocks(&problem, chip),
            config,
        };
        all.map(timed).collect()
    }

    fn clocks(problem: Problem, config: Config, chip: &Chip) -> f64 {
        config.clocks(&problem, chip)
    }

    fn tile(config: Config) -> [i64; 3] {
        [config.rows(), config.keys, config.columns]
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
        let Attention {
            element,
            inputs,
            visible,
            ..
        } = &*operators.attention;
        let mask = match (inputs.len(), visible.is_all()) {
            (0, true) => "",
            (0, false) => ", masked by index",
            (_, true) => ", masked by a tensor",
            (_, false) => ", masked by index and by a tensor",
        };
        format!(
            "attention of {batch} x {rows} queries to {keys} keys of {depth}, values of {columns}, of {element}{mask}"
        )
    }

    fn emit<'c>(
        operators: &Operators<'c>,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let Operators {
            attention,
            tensors,
            problem,
            ..
        } = operators;
        let Launch {
            frame,
            builder,
            chip,
        } = launch;
        let builder = *builder;
        let mut ins = Vec::new();
        for value in attention.reads() {
            let shape = builder.tensor_of(value)?.shape;
            let tensor = frame.resolve(builder, value)?;
            ins.push(operand(builder, tensor, &shape)?);
        }
        let result = attention.result.tensor;
        let shape = builder.tensor_of(result)?.shape;
        let outs = vec![(result, frame.out(builder, result, &shape)?)];
        let name = frame.name("attention");
        let kernel = Kernel::new(
            builder.location,
            frame.module,
            &argument_types(&ins, &[], &outs),
        );
        let lost = || layout_error(builder.location, "a kernel of attention has its arguments");
        let [queries, keys, values, inputs @ .., result] = kernel.arguments.as_slice() else {
            return Err(lost());
        };
        let arguments = Arguments {
            queries: *queries,
            keys: *keys,
            values: *values,
            inputs: inputs.to_vec(),
            result: *result,
        };
        let tiles = problem
            .batch
            .saturating_mul(count(problem.rows, config.rows()));
        let by_problem = config.by_problem(problem, chip);
        kernel::emit(&kernel, attention, config, by_problem, tensors, &arguments)?;
        kernel.finish(frame.module, &name, config.threads())?;
        let ctas = builder.index(tiles.min(chip.multiprocessors))?;
        let one = builder.index(1)?;
        frame.launch(
            builder,
            &name,
            [ctas, one, one],
            &launched(&ins, &[]),
            &outs,
        )?;
        Ok(name)
    }
}
