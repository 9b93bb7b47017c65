//! Attention in one kernel: what [`axe_passes::fuse::attention`] finds, by warps that copy and warpgroups that multiply (sm_90a).
//!
//! * [`config`]: the problem as data, and configurations; [`cost`]: how long they take;
//! * [`clusters`]: CTAs that bring keys and values for each other;
//! * [`memory`]: tensors by their strides, and rings in shared memory; [`by_column`]: values of 8 bits, turned for the second product;
//! * [`pages`]: keys and values that are read through a table;
//! * [`lengths`]: lengths of sequences, which are data; [`segments`]: labels of rows and keys, which are too;
//! * [`tiles`]: tiles of rows, and the blocks of keys that their masks leave; [`masked`]: which of those a mask cuts;
//! * [`crossed`]: rows that see no key; [`score`]: scores and masks in registers, [`forms`]: of functions in them; [`row`]: what is computed of a row's maximum and sum;
//! * [`sums`]: logarithms of rows' sums that gradients want; [`backward`]: the gradients;
//! * [`kernel`]: the kernel; [`fragments`]: what its threads hold, [`carried`]: what its loop carries; [`parts`]: its results where keys are split, and the kernel that merges those.

pub(super) mod backward;
mod by_column;
mod carried;
mod clusters;
pub(super) mod config;
mod cost;
mod crossed;
mod forms;
mod fragments;
mod kernel;
mod lengths;
mod masked;
mod memory;
mod pages;
mod parts;
mod problem;
mod row;
mod score;
mod segments;
mod sizes;
mod sums;
mod tiles;

use super::choose::search::Candidate;
use super::family::{Family, Launch};
use super::gemm::product::asked;
use super::knobs::Plan;
use crate::facts::chip::Chip;
use axe_passes::build::{Kernel, launch as launch_kernel, layout_error};
use axe_passes::fuse::arguments::{argument_types, launched};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::pack::Pack;
use axe_passes::fuse::attention::{Attention, Extents, Read};
use axe_passes::fuse::frame::{Operand, Out, operand};
use axe_passes::fuse::group::Group;
use axe_passes::ir::value::identity;
use axe_passes::ir::{Builder, DYNAMIC, Int, Val};
use axe_passes::{PassError, PassResult};
use by_column::Turned;
use config::{Config, Problem};
use kernel::{Arguments, Tensors};
use melior::ir::Type;
use parts::Parts;
pub(super) use problem::takes;
use problem::{Taken, results, sizes, taken};
use segments::Table;
use sizes::Sizes;
use std::collections::HashSet;
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
    /// As the program has it.
    attention: Rc<Attention<'c>>,
    /// With the problems packed that share their keys and values.
    packed: Attention<'c>,
    pack: Pack,
    tensors: Tensors,
    problem: Problem,
    asked: Plan,
}

impl<'c> Operators<'c> {
    /// The kernel's arguments: operands, and what it stores.
    fn arguments(&self, kernel: &Kernel<'c>, sizes: Sizes<'c>) -> PassResult<'c, Arguments<'c>> {
        let lost = || layout_error(kernel.code.builder.location, "a kernel has its arguments");
        let [queries, keys, values, rest @ ..] = kernel.arguments.as_slice() else {
            return Err(lost());
        };
        let (inputs, lengths) = (self.attention.inputs.len(), self.attention.lengths.len());
        let (inputs, rest) = rest.split_at_checked(inputs).ok_or_else(lost)?;
        let (lengths, rest) = rest.split_at_checked(lengths).ok_or_else(lost)?;
        let tables = self.attention.tables().count();
        let (tables, rest) = rest.split_at_checked(tables).ok_or_else(lost)?;
        let segments = usize::from(!self.packed.visible.segments.is_empty());
        let (segments, rest) = rest.split_at_checked(segments).ok_or_else(lost)?;
        let (scalars, results) = rest.split_at_checked(sizes.len()).ok_or_else(lost)?;
        Ok(Arguments {
            queries: *queries,
            keys: *keys,
            values: *values,
            inputs: inputs.to_vec(),
            lengths: lengths.to_vec(),
            tables: tables.to_vec(),
            segments: segments.first().copied(),
            results: results.to_vec(),
            sizes: sizes.with(scalars),
        })
    }

    /// Adds the kernel that goes through keys, with these operands; it stores what the program reads, or parts of it. Its name.
    fn attend(
        &self,
        config: Config,
        launch: &mut Launch<'_, 'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
        parts: Option<Parts>,
    ) -> PassResult<'c, (String, Vec<Val<'c>>)> {
        let name = launch.frame.name("attention");
        let module = launch.frame.module;
        let sizes = self.sizes(parts);
        let scalars = sizes.scalars(launch.builder)?;
        let types = argument_types(ins, &scalars, outs);
        let mut kernel = Kernel::new(launch.builder.location, module, &types);
        kernel.cluster = config.cluster;
        let arguments = self.arguments(&kernel, sizes)?;
        let by_problem = config.by_problem(&self.problem, launch.chip);
        let how = (config, by_problem);
        kernel::emit(&kernel, &self.packed, how, &self.tensors, &arguments, parts)?;
        kernel.finish(module, &name, config.threads())?;
        Ok((name, scalars))
    }

    /// The extents and strides of that kernel that a launch says.
    fn sizes(&self, parts: Option<Parts>) -> Sizes<'c> {
        let own = &self.tensors;
        let packed = parts.map(Parts::packed).into_iter().flatten();
        let packed: Vec<_> = packed.collect();
        let all = [&own.queries, &own.keys, &own.values].into_iter();
        let all = all.chain(&own.inputs).chain(&packed);
        let all = all.chain(own.results.iter().flatten());
        sizes(&self.packed, &all.collect::<Vec<_>>())
    }

    /// Memory for what a kernel stores, of the shape of a value.
    fn out(&self, launch: &mut Launch<'_, 'c>, value: Val<'c>) -> PassResult<'c, Out<'c>> {
        let builder = launch.builder;
        let symbols = &self.attention.symbols;
        let tensor = builder.tensor_of(value)?;
        if symbols.is_empty() {
            return Ok((value, launch.frame.out(builder, value, &tensor.shape)?));
        }
        let sizes = symbols.sizes(builder, value)?;
        let r#type = builder.tensor(&tensor.shape, tensor.element)?;
        let empty = builder.value("tensor.empty", &sizes, r#type, &[])?;
        Ok((value, operand(builder, empty, &tensor.shape)?))
    }

    /// Adds the kernel that says what labels leave of keys, where some are compared, and launches it: its result, for the kernel of
    /// attention, whose other operands these are.
    fn segments(
        &self,
        config: Config,
        launch: &mut Launch<'_, 'c>,
        ins: &[Operand<'c>],
    ) -> PassResult<'c, Option<Operand<'c>>> {
        let Some(table) = Table::of(&self.packed, config.rows()) else {
            return Ok(None);
        };
        let pairs = self.packed.visible.segments.iter();
        let labels = pairs.flat_map(|own| [own.rows, own.keys]);
        let labels = labels.filter_map(|at| ins.get(3 + at).cloned());
        table.launch(&self.packed, &labels.collect::<Vec<_>>(), launch)
    }

    /// Adds the kernel that turns values of 8 bits, where they are, and launches it: its result is the values' operand.
    fn turn_values(&self, launch: &mut Launch<'_, 'c>, ins: &mut [Operand<'c>]) -> PassResult<'c> {
        let (Some(turned), Some(values)) = (&self.tensors.turned, ins.get_mut(2)) else {
            return Ok(());
        };
        let builder = *launch.builder;
        let shape = [turned.elements()];
        let empty = builder.tensor(&shape, self.attention.element)?;
        let empty = builder.value("tensor.empty", &[], empty, &[])?;
        let to = operand(&builder, empty, &shape)?;
        let from = vec![values.clone()];
        let types = argument_types(&from, &[], &[(empty, to.clone())]);
        let kernel = Kernel::new(builder.location, launch.frame.module, &types);
        turned.emit(&kernel)?;
        let name = launch.frame.name("values");
        kernel.finish(launch.frame.module, &name, Turned::threads())?;
        let one = builder.index(1)?;
        let grid = [builder.index(turned.ctas())?, one, one];
        let formed = launch_kernel(&builder, &name, grid, &launched(&from, &[]), &[to.tensor])?;
        if let Some(tensor) = formed.first().copied() {
            *values = Operand { tensor, ..to };
        }
        Ok(())
    }

    /// The CTAs of that kernel: as many as there are tiles, or multiprocessors.
    fn grid(&self, config: Config, launch: &Launch<'_, 'c>) -> PassResult<'c, [Val<'c>; 3]> {
        let builder = launch.builder;
        let (symbols, most) = (&self.packed.symbols, launch.chip.multiprocessors);
        let Extents { batch, rows, .. } = self.packed.extents;
        let ctas = match symbols.has(batch) || symbols.has(rows) {
            false => builder.index(config.ctas(&self.problem, most))?,
            true => {
                let ints = builder.ints();
                let [batch, rows] = [batch, rows].map(|own| symbols.value(builder, own));
                let tiles = [rows?, builder.index(config.rows() * config.cluster)?];
                let index = builder.index_type();
                let of_problem = builder.value("arith.ceildivui", &tiles, index, &[])?;
                let clusters = ints.times(Int::Value(batch?), Int::Value(of_problem))?;
                let clusters = ints.mul(clusters, config.splits)?;
                let clusters = ints.min(clusters, Int::Known(most / config.cluster))?;
                ints.value(ints.mul(clusters, config.cluster)?)?
            }
        };
        let one = builder.index(1)?;
        Ok([ctas, one, one])
    }

    /// Two kernels: one that goes through parts of the keys, and one that merges them. The name of the first.
    fn split(
        &self,
        config: Config,
        launch: &mut Launch<'_, 'c>,
        ins: &[Operand<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c, String> {
        let builder = *launch.builder;
        let parts = Parts {
            splits: config.splits,
            pack: self.pack,
            packs: self.problem.batch,
            columns: self.attention.extents.columns,
        };
        let f32 = builder.r#type(|context| Type::float32(context));
        let workspace = parts.shapes().map(|shape| {
            let r#type = builder.tensor(&shape, f32)?;
            let empty = builder.value("tensor.empty", &[], r#type, &[])?;
            Ok((empty, operand(&builder, empty, &shape)?))
        });
        let mut between = Vec::new();
        for own in workspace {
            between.push(own?);
        }
        let (name, scalars) = self.attend(config, launch, ins, &between, Some(parts))?;
        let grid = self.grid(config, launch)?;
        let inits: Vec<_> = between.iter().map(|(_, own)| own.tensor).collect();
        let formed = launch_kernel(&builder, &name, grid, &launched(ins, &scalars), &inits)?;
        let between = between.into_iter().zip(formed);
        let between: Vec<_> = between
            .map(|((_, own), tensor)| Operand { tensor, ..own })
            .collect();
        let lost = "no one stride leads from row to row of the result";
        let results =
            results(&self.attention).ok_or_else(|| layout_error(builder.location, lost))?;
        let types = argument_types(&between, &[], outs);
        let kernel = Kernel::new(builder.location, launch.frame.module, &types);
        parts::merge(&kernel, &self.attention, parts, &results, &Sizes::default())?;
        let merges = launch.frame.name("merge");
        kernel.finish(launch.frame.module, &merges, parts.threads())?;
        let one = builder.index(1)?;
        let grid = [builder.index(parts.rows_of_program())?, one, one];
        launch
            .frame
            .launch(&builder, &merges, grid, &launched(&between, &[]), outs)?;
        Ok(name)
    }
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
        chip: &Chip,
    ) -> PassResult<'c, Operators<'c>> {
        let attention = group.attention.clone();
        let attention =
            attention.ok_or_else(|| layout_error(builder.location, "a group without attention"))?;
        let attention = sums::kept(attention, builder)?;
        let asked = asked(attention.op)?;
        let taken = taken(&attention, &asked, chip);
        let Taken {
            packed,
            pack,
            tensors,
            problem,
        } = taken.map_err(|why| PassError::new(builder.location, why))?;
        Ok(Operators {
            problem,
            asked,
            packed,
            pack,
            tensors,
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
        let Attention {
            element,
            rounded,
            inputs,
            lengths,
            visible,
            extents,
            depth,
            sums,
            ..
        } = &*operators.attention;
        let number = |number: i64| match operators.attention.symbols.known(number) {
            known if known == number => known.to_string(),
            1 => "?".to_owned(),
            known => format!("{known} x ?"),
        };
        let [batch, rows, keys] = [extents.batch, extents.rows, extents.keys].map(number);
        let columns = extents.columns;
        let data = match (lengths.len(), visible.segments.len()) {
            (0, 0) => "",
            (_, 0) => ", of lengths that it reads",
            (0, _) => ", of segments that it reads",
            (_, _) => ", of lengths and segments that it reads",
        };
        let page = match operators.problem.page {
            0 => String::new(),
            page => format!(", in pages of {page}"),
        };
        let labels = visible.segments.iter();
        let labels: HashSet<_> = labels.flat_map(|own| [own.rows, own.keys]).collect();
        let by_index = visible.edges().next().is_some();
        let by_place = |read: &&Read<'_>| read.steps.iter().any(|own| own.digit.var != Var::Batch);
        let tensors = inputs.iter().filter(by_place).count();
        let mask = match (tensors - labels.len(), !by_index) {
            (0, true) => "",
            (0, false) => ", masked by index",
            (_, true) => ", masked by a tensor",
            (_, false) => ", masked by index and by a tensor",
        };
        let sums = if sums.is_some() {
            ", with logarithms of sums"
        } else {
            ""
        };
        let rounded = match element == rounded {
            true => String::new(),
            false => format!(" with results in {rounded}"),
        };
        let pack = match operators.pack.problems {
            1 => String::new(),
            problems => format!(", {problems} problems packed"),
        };
        format!(
            "attention of {batch} x {rows} queries to {keys} keys of {depth}, values of {columns}, of {element}{rounded}{mask}{data}{page}{sums}{pack}"
        )
    }

    fn emit<'c>(
        operators: &Operators<'c>,
        config: Config,
        launch: &mut Launch<'_, 'c>,
    ) -> PassResult<'c, String> {
        let builder = launch.builder;
        let mut ins = Vec::new();
        let attention = &operators.attention;
        if let Some(sums) = attention.sums.as_ref().filter(|_| attention.keeps_sums) {
            let beside = &mut launch.frame.beside;
            beside.insert(identity(attention.result.tensor), sums.read.tensor);
        }
        let inputs = operators.tensors.inputs.iter();
        let in_blocks = inputs.map(|own| own.has() != [false, false]);
        let rest = attention.lengths.iter().chain(attention.tables());
        let in_blocks = [true; 3].into_iter().chain(in_blocks);
        let in_blocks = in_blocks.chain(rest.map(|_| false));
        for (value, in_blocks) in attention.reads().zip(in_blocks) {
            let shape = builder.tensor_of(value)?.shape;
            if in_blocks {
                let tensor = launch.frame.resolve(builder, value)?;
                ins.push(operand(builder, tensor, &shape)?);
            } else {
                // A row of all: where a problem's lies is the kernel's to say.
                let all = match shape.contains(&DYNAMIC) {
                    true => DYNAMIC,
                    false => shape.iter().product(),
                };
                ins.push(launch.frame.operand(builder, value, &[all])?);
            }
        }
        ins.extend(operators.segments(config, launch, &ins)?);
        operators.turn_values(launch, &mut ins)?;
        let mut outs = Vec::new();
        for value in operators.attention.results() {
            outs.push(operators.out(launch, value)?);
        }
        if config.is_split(&operators.problem) {
            return operators.split(config, launch, &ins, &outs);
        }
        let (name, scalars) = operators.attend(config, launch, &ins, &outs, None)?;
        let grid = operators.grid(config, launch)?;
        let read = launched(&ins, &scalars);
        if attention.symbols.is_empty() {
            launch.frame.launch(builder, &name, grid, &read, &outs)?;
            return Ok(name);
        }
        attention.symbols.assert(builder)?;
        let tensors: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch_kernel(builder, &name, grid, &read, &tensors)?;
        for ((value, _), result) in outs.iter().zip(results) {
            launch.frame.stored.insert(identity(*value), result);
        }
        Ok(name)
    }
}
