//! The launches of the four kernels, and the tensors between them.

use super::super::config::configure;
use super::super::sums;
use super::super::{Attentions, Operators as Forward, Taken, taken};
use super::config::{Config, Problem, THREADS};
use super::rows::{Before, Rows};
use super::scored::Scored;
use super::{Operators, kernel, padded};
use crate::planner::family::{Family, Launch};
use crate::planner::knobs::Plan;
use axe_passes::build::{Kernel, layout_error};
use axe_passes::fuse::arguments::{argument_types, launched};
use axe_passes::fuse::attention::index::{Var, access, whole};
use axe_passes::fuse::attention::{Attention, Empty, Given, Logs, Read};
use axe_passes::fuse::frame::{Operand, Out, operand};
use axe_passes::ir::Val;
use axe_passes::ir::value::identity;
use axe_passes::{PassError, PassResult};
use melior::ir::Type;
use std::f64::consts::LOG2_E;
use std::rc::Rc;

/// What kernels leave to the next.
pub(super) struct Between<'c> {
    /// The forward pass's result, or the program's.
    result: Val<'c>,
    /// The logarithms of its rows' sums.
    sums: Val<'c>,
    /// `rowsum(dO O)`.
    products: Val<'c>,
    /// The sums of dQ.
    of_queries: Val<'c>,
}

impl<'c> Between<'c> {
    /// New tensors.
    ///
    /// # Errors
    /// When MLIR does not build them.
    pub(super) fn new(operators: &Operators<'c>, launch: &Launch<'_, 'c>) -> PassResult<'c, Self> {
        let Problem {
            batch,
            rows,
            depth,
            columns,
            ..
        } = operators.problem;
        let builder = launch.builder;
        let f32 = builder.r#type(|context| Type::float32(context));
        let empty = |shape: &[i64], element| {
            let r#type = builder.tensor(shape, element)?;
            builder.value("tensor.empty", &[], r#type, &[])
        };
        let values = [batch, padded(rows)];
        let Given { logs, result, .. } = &operators.backward.given;
        let kept = match logs {
            Some(Logs::Kept(own)) => {
                let found = launch.frame.beside.get(&identity(own.result.tensor));
                let lost = || layout_error(builder.location, "a forward pass leaves its sums");
                Some(found.ok_or_else(lost)?)
            }
            _ => None,
        };
        Ok(Self {
            result: match result {
                Some(own) => own.tensor,
                None => empty(&[batch, rows, columns], operators.backward.forward.element)?,
            },
            sums: match kept {
                Some(own) => *own,
                None => empty(&values, f32)?,
            },
            products: empty(&values, f32)?,
            of_queries: empty(&[batch, rows, depth], f32)?,
        })
    }
}

impl<'c> Operators<'c> {
    /// The forward pass to these tensors: its result, and the logarithms of its rows' sums for powers of two.
    fn forward(&self, result: Val<'c>, sums: Val<'c>) -> Option<Attention<'c>> {
        let Problem {
            batch,
            rows,
            columns,
            ..
        } = self.problem;
        let place = [
            whole(Var::Batch, batch),
            whole(Var::Row, rows),
            whole(Var::Column, columns),
        ];
        let result = Read::whole(result, access(&place, &[batch, rows, columns])?);
        let own = Attention {
            result,
            ..self.backward.forward.clone()
        };
        sums::beside(&own, sums)
    }

    /// Launches the forward pass, whose tensors are then stored.
    pub(super) fn attend(
        &self,
        launch: &mut Launch<'_, 'c>,
        between: &Between<'c>,
    ) -> PassResult<'c> {
        let location = launch.builder.location;
        let failed = |why: String| PassError::new(location, why);
        let Problem {
            batch,
            rows,
            columns,
            ..
        } = self.problem;
        let result = match self.backward.given.result {
            // That of the program has been computed elsewhere.
            Some(_) => {
                let element = self.backward.forward.element;
                let r#type = launch.builder.tensor(&[batch, rows, columns], element)?;
                launch.builder.value("tensor.empty", &[], r#type, &[])?
            }
            None => between.result,
        };
        let attention = self.forward(result, between.sums);
        let attention = attention.ok_or_else(|| layout_error(location, "no forward pass"))?;
        let Taken {
            packed,
            pack,
            tensors,
            problem,
        } = taken(&attention, &Plan::default(), launch.chip).map_err(failed)?;
        let config = configure(&problem, &Plan::default(), launch.chip).map_err(failed)?;
        let forward = Forward {
            attention: Rc::new(attention),
            packed,
            pack,
            tensors,
            problem,
            asked: Plan::default(),
        };
        Attentions::emit(&forward, config, launch).map(drop)
    }

    /// Launches the kernel that forms or copies `rowsum(dO O)`, copies logarithms that are given, and sets the sums of dQ to zero.
    pub(super) fn of_rows(
        &self,
        launch: &mut Launch<'_, 'c>,
        between: &Between<'c>,
    ) -> PassResult<'c> {
        let Given { logs, products, .. } = &self.backward.given;
        let all = match products {
            Some(own) => vec![own.tensor],
            None => vec![between.result, self.backward.gradient.tensor],
        };
        let mut given = Before {
            gradient: &self.tensors.gradient,
            result: self.tensors.result.as_ref(),
            products: self.tensors.products.as_ref(),
            logs: None,
            empty_is_zero: self.backward.empty == Empty::Zero,
        };
        let mut ins = Vec::new();
        for value in all {
            ins.push(read(launch, value)?);
        }
        let mut outs = vec![
            filled(launch, between.products)?,
            filled(launch, between.of_queries)?,
        ];
        if let (
            Some(Logs::Read {
                read: own,
                factor,
                offset,
            }),
            Some(strides),
        ) = (logs, &self.tensors.logs)
        {
            given.logs = Some((strides, [factor * LOG2_E, offset * LOG2_E]));
            ins.push(read(launch, own.tensor)?);
            outs.push(filled(launch, between.sums)?);
        }
        let rows = Rows::new(&self.problem);
        let body = |kernel: &Kernel<'c>| rows.before(kernel, &given);
        add(launch, "gradient_rows", rows.grid(), (&ins, &outs), body).map(drop)
    }

    /// Launches the kernel of dK, dV and the sums of dQ; its name.
    pub(super) fn gradients(
        &self,
        launch: &mut Launch<'_, 'c>,
        between: &Between<'c>,
        config: Config,
    ) -> PassResult<'c, String> {
        let own = &self.backward.forward;
        let all = [
            own.queries.tensor,
            own.keys.tensor,
            own.values.tensor,
            self.backward.gradient.tensor,
            between.sums,
            between.products,
        ];
        let mut ins = Vec::new();
        for value in all {
            ins.push(read(launch, value)?);
        }
        ins.extend(self.of_scores(launch)?);
        let [_, to_keys, to_values] = &self.backward.results;
        // dQ's sums are added to the zeros.
        let zeros = read(launch, between.of_queries)?;
        let outs = [
            (between.of_queries, zeros),
            filled(launch, to_keys.read.tensor)?,
            filled(launch, to_values.read.tensor)?,
        ];
        let grid = (THREADS, config.ctas);
        add(launch, "gradients", grid, (&ins, &outs), |own| {
            kernel::emit(own, self, config)
        })
    }

    /// What scores read: tensors, lengths, and the numbers of blocks of keys that a kernel forms of their labels.
    fn of_scores(&self, launch: &mut Launch<'_, 'c>) -> PassResult<'c, Vec<Operand<'c>>> {
        let Scored {
            attention,
            inputs,
            table,
            ..
        } = &self.scored;
        let in_blocks = inputs.iter().map(|own| own.has() != [false, false]);
        let in_blocks = in_blocks.chain(attention.lengths.iter().map(|_| false));
        let all = attention.inputs.iter().chain(&attention.lengths);
        let mut found = Vec::new();
        for (own, in_blocks) in all.zip(in_blocks) {
            found.push(match in_blocks {
                true => read(launch, own.tensor)?,
                // A row of all: where a problem's lies is the kernel's to say.
                false => {
                    let shape = launch.builder.tensor_of(own.tensor)?.shape;
                    let all = shape.iter().product();
                    launch.frame.operand(launch.builder, own.tensor, &[all])?
                }
            });
        }
        if let Some((table, exchanged)) = table {
            let labels = self.scored.labels();
            let labels = labels.iter().filter_map(|at| found.get(*at).cloned());
            let labels: Vec<_> = labels.collect();
            found.extend(table.launch(exchanged, &labels, launch)?);
        }
        Ok(found)
    }

    /// Launches the kernel that rounds the sums of dQ.
    pub(super) fn of_queries(
        &self,
        launch: &mut Launch<'_, 'c>,
        between: &Between<'c>,
    ) -> PassResult<'c> {
        let [to_queries, ..] = &self.backward.results;
        let ins = [read(launch, between.of_queries)?];
        let outs = [filled(launch, to_queries.read.tensor)?];
        let rows = Rows::new(&self.problem);
        let rounded = (to_queries.scale, self.backward.forward.element);
        let [queries, ..] = &self.tensors.results;
        let body = |kernel: &Kernel<'c>| rows.queries(kernel, queries, rounded);
        add(launch, "gradient_queries", rows.grid(), (&ins, &outs), body).map(drop)
    }
}

/// A tensor as kernels read it.
fn read<'c>(launch: &mut Launch<'_, 'c>, value: Val<'c>) -> PassResult<'c, Operand<'c>> {
    let shape = launch.builder.tensor_of(value)?.shape;
    let tensor = launch.frame.resolve(launch.builder, value)?;
    operand(launch.builder, tensor, &shape)
}

/// A tensor that a kernel fills.
fn filled<'c>(launch: &mut Launch<'_, 'c>, value: Val<'c>) -> PassResult<'c, Out<'c>> {
    let shape = launch.builder.tensor_of(value)?.shape;
    Ok((value, launch.frame.out(launch.builder, value, &shape)?))
}

/// Adds a kernel, and launches it with so many CTAs. Its name.
fn add<'c>(
    launch: &mut Launch<'_, 'c>,
    what: &str,
    (threads, ctas): (i64, i64),
    (ins, outs): (&[Operand<'c>], &[Out<'c>]),
    body: impl FnOnce(&Kernel<'c>) -> PassResult<'c>,
) -> PassResult<'c, String> {
    let builder = *launch.builder;
    let name = launch.frame.name(what);
    let types = argument_types(ins, &[], outs);
    let kernel = Kernel::new(builder.location, launch.frame.module, &types);
    body(&kernel)?;
    kernel.finish(launch.frame.module, &name, threads)?;
    let one = builder.index(1)?;
    let grid = [builder.index(ctas)?, one, one];
    launch
        .frame
        .launch(&builder, &name, grid, &launched(ins, &[]), outs)?;
    Ok(name)
}
