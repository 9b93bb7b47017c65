//! What each operator became, and why not otherwise: the decisions of the neutral dispatch.

use super::Planner;
use super::read::Reader;
use axe_dialect::ops;
use axe_passes::dispatch::{Decline, report};
use axe_passes::fuse::group::Group;
use axe_passes::fuse::operators::is_product;
use axe_passes::ir::Op;
use axe_passes::ir::value::{name, only_result};
use axe_trn::plan::graph::{Form, Graph, Id, Kind};
use axe_trn::program::{Alu, Program};
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;

pub(super) type Declines = Vec<(&'static str, String)>;

impl Planner {
    /// Says what the operators of a group became.
    pub(super) fn report(
        &self,
        program: &Program,
        reader: &Reader<'_>,
        group: &Group<'_>,
        products: Declines,
    ) {
        let owned = group.owned.iter().copied();
        let decisions: Vec<_> = owned
            .map(|op| {
                let (schedule, declines) = match is_product(op) {
                    true => ("nc_matmul", products.clone()),
                    false => only_result(op)
                        .and_then(|result| reader.found(result))
                        .map_or(("unread", Vec::new()), |id| became(&reader.graph, id)),
                };
                decision(op, schedule, declines, program)
            })
            .collect();
        self.say(program, &decisions);
    }

    /// Says what an operator by itself became.
    pub(super) fn report_single(&self, program: &Program, op: Op<'_>) {
        let why = "elements move alone, so that no engine but DMA need see them".to_owned();
        let decisions = [decision(
            op,
            "dma_copy",
            vec![("nc_transpose", why)],
            program,
        )];
        self.say(program, &decisions);
    }

    pub(super) fn say(&self, program: &Program, decisions: &[report::Decision<'_>]) {
        report::remarks(&program.name, decisions);
        if self.explain {
            eprint!("{}", report::explain(&program.name, decisions));
        }
    }
}

pub(super) fn decision<'c>(
    op: Op<'c>,
    schedule: &'static str,
    declines: Declines,
    program: &Program,
) -> report::Decision<'c> {
    let declines = declines.into_iter();
    report::Decision {
        location: op.location(),
        operator: name(op),
        schedule,
        plan: match is_product(op) || name(op) == ops::REDUCE {
            true => instructions(program),
            false => String::new(),
        },
        declines: declines
            .map(|(schedule, why)| (schedule, Decline::new(why)))
            .collect(),
    }
}

/// The instructions of a kernel's text, by engine.
fn instructions(program: &Program) -> String {
    let mut counts: BTreeMap<(&'static str, &'static str), usize> = BTreeMap::new();
    program.instructions(&mut |instruction, _| {
        *counts
            .entry((instruction.engine.name(), instruction.op.name()))
            .or_default() += 1;
    });
    let lines = counts
        .iter()
        .map(|((engine, op), count)| format!("{engine}: {count} {op}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The instruction that forms a value, and why none of another engine does.
fn became(graph: &Graph, id: Id) -> (&'static str, Declines) {
    let node = graph.node(id);
    let beside = |id: Id| {
        graph.kind(id) == Kind::Number || (graph.kind(id) == Kind::Row && node.kind != Kind::Row)
    };
    match node.form {
        Form::Apply(..) => ("activation", Vec::new()),
        // It is the scale or the bias of the function that reads it.
        Form::Binary(..) if graph.is_folded(id) => ("activation", Vec::new()),
        Form::Reciprocal(_) => (
            "reciprocal",
            vec![(
                "activation",
                "the scalar engine's table is not exact".to_owned(),
            )],
        ),
        Form::Binary(Alu::Power, ..) => (
            "tensor_tensor",
            vec![("activation", "gpsimd alone has powers".to_owned())],
        ),
        Form::Binary(op, a, b) if beside(a) || beside(b) => (
            "tensor_scalar",
            vec![(
                "activation",
                format!("the scalar engine has {op} as the scale or bias of a function alone"),
            )],
        ),
        Form::Binary(..) => (
            "tensor_tensor",
            vec![(
                "activation",
                "two tiles: the scalar engine takes one, and one value a partition".to_owned(),
            )],
        ),
        Form::Select(..) => (
            "tensor_copy_predicated",
            vec![(
                "affine_select",
                "the condition is data, not an index".to_owned(),
            )],
        ),
        Form::Reduce(Alu::Add, of) if matches!(graph.node(of).form, Form::Apply(..)) => {
            ("activation", Vec::new())
        }
        Form::Reduce(op, _) => (
            "tensor_reduce",
            vec![(
                "activation",
                match op {
                    Alu::Add => "what is summed up is no function of the scalar engine".to_owned(),
                    _ => format!("its registers add, and this is {op}"),
                },
            )],
        ),
        Form::Cast(of) => became_cast(graph, of),
        Form::Product => ("nc_matmul", Vec::new()),
        Form::Input(_) | Form::Number(_) => ("read", Vec::new()),
    }
}

/// Conversions are free where an engine reads or writes the value anyway.
fn became_cast(graph: &Graph, of: Id) -> (&'static str, Declines) {
    match graph.node(of).form {
        Form::Input(_) | Form::Cast(_) => ("converted by its reader", Vec::new()),
        _ => ("converted by its writer", Vec::new()),
    }
}
