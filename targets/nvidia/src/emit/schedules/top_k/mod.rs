//! `axe.top_k`: the rows are shared out, to warps where they are short and to CTAs where they are long. Each row is read once.

mod code;
mod cta;
mod shape;
mod warp;

use super::nest::extent_of;
use super::text::expect;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::plan::Decline;
use crate::state::cursor::{Scratch, Taken};
use crate::state::nest::whole_arguments;
use crate::state::site::Site;
use crate::state::types;
use axe_dialect::ops::TopKOp;
use axe_dialect::{Typed, element_type};
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::inline;
use axe_passes::ir::types::bits;
use axe_passes::ir::{Builder, Int, Ints, Op, Val};
use melior::ir::{Type, ValueLike};
use serde::{Deserialize, Serialize};
use shape::{Element, MOST_CHOSEN, MOST_COLUMNS, Shape};
use std::fmt;

pub(crate) use shape::{CTAS_A_MULTIPROCESSOR, THREADS, rows_of_cta};

/// A warp a row.
#[derive(Clone, Copy)]
pub(super) struct Warp;
/// A CTA a row.
#[derive(Clone, Copy)]
pub(super) struct Cta;

/// How rows are read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    /// Elements of an access.
    vector: i64,
    /// Elements of a thread, of a row or of a chunk of one.
    held: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch: Option<Scratch>,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vector, held, .. } = self;
        let accesses = held / vector;
        if self.scratch.is_none() {
            writeln!(
                f,
                "for rows of the warp: {accesses} loads of {vector} elements a lane, sorted; k times redux.sync"
            )
        } else {
            writeln!(
                f,
                "for rows of the CTA, for chunks: {accesses} loads of {vector} elements a thread, kept in shared memory where not below the bound"
            )
        }
    }
}

/// What an operator of a kernel chooses of.
fn shape(site: Site<'_, '_>) -> Result<Shape, Decline> {
    let (shape, operands) = read(site.op)?;
    whole_arguments(site.kernel, &operands)?;
    match site.threads() == THREADS && site.kernel.threads == THREADS {
        true => Ok(shape),
        false => Err(Decline::new(format!(
            "expected a CTA of {THREADS} threads, without a scope"
        ))),
    }
}

/// What an operator chooses of; its source, values and indices.
fn read<'c>(op: Op<'c>) -> Result<(Shape, [Val<'c>; 3]), Decline> {
    let op = TopKOp::of(op).ok_or_else(|| Decline::new("expected axe.top_k"))?;
    let &[values, indices] = &op.dests[..] else {
        return Err(Decline::new("expected storage, and not tensors"));
    };
    let last = |value: Val<'c>| types::memref_shape(value.r#type())?.last().copied();
    let (Some(columns), Some(k)) = (last(op.source), last(values)) else {
        return Err(Decline::new("expected rows"));
    };
    let element = taken(element_type(op.source.r#type()), columns, k).map_err(Decline::new)?;
    let shape = Shape {
        element,
        index_bits: bits(element_type(indices.r#type())).map_or(32, i64::from),
        columns,
        k,
        smallest: op.smallest,
        vector: Shape::widest(element, columns),
    };
    Ok((shape, [op.source, values, indices]))
}

/// The element type, where `k` of so many elements can be chosen.
///
/// # Errors
/// Why they cannot.
pub(crate) fn taken(element: Type<'_>, columns: i64, k: i64) -> Result<Element, String> {
    if k > MOST_CHOSEN || columns > MOST_COLUMNS {
        return Err(format!(
            "expected at most {MOST_CHOSEN} of at most {MOST_COLUMNS} elements of a row, got {k} of {columns}"
        ));
    }
    let found = Element::of(&element.to_string());
    found.ok_or_else(|| format!("expected elements of f16, bf16, f32 or i32, got {element}"))
}

impl Schedule for Warp {
    type Plan = Rows;

    fn name(&self) -> &'static str {
        "top_k.warp"
    }
}

impl<'c> Match<Site<'_, 'c>> for Warp {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Rows, Decline> {
        let shape = shape(site)?;
        if !shape.by_warp() {
            return Err(Decline::new(format!(
                "a warp sorts no rows of {} elements",
                shape.columns
            )));
        }
        Ok(Rows {
            vector: shape.vector,
            held: shape.held(),
            scratch: None,
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Rows) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Warp {
    fn emit(
        &self,
        _: &Rows,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        emit(emitter, op, None, warp::text)
    }
}

impl Schedule for Cta {
    type Plan = Rows;

    fn name(&self) -> &'static str {
        "top_k.cta"
    }
}

impl<'c> Match<Site<'_, 'c>> for Cta {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Rows, Decline> {
        let shape = shape(site)?;
        if shape.by_warp() {
            return Err(Decline::new(format!(
                "rows of {} elements are a warp's",
                shape.columns
            )));
        }
        let i64 = types::integer(Builder::before(site.op), 64);
        let room = [cta::SHARED_BYTES / 8];
        Ok(Rows {
            vector: shape.vector,
            held: shape.held(),
            scratch: Some(Scratch::at(site.cursor, &room, i64, (1, 0))?),
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Rows) -> Result<(), Decline> {
        expect(plan, &self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Cta {
    fn taken(&self, plan: &Rows) -> Taken {
        plan.scratch
            .map_or(Taken::Nothing, |scratch| Taken::Scratch(scratch.bytes))
    }

    fn emit(
        &self,
        plan: &Rows,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        emit(emitter, op, plan.scratch, cta::text)
    }
}

/// Puts a kernel's text, for this operator, where the emitter is.
fn emit<'c>(
    emitter: &mut Emitter<'c>,
    op: Op<'c>,
    scratch: Option<Scratch>,
    text: fn(Shape) -> String,
) -> PassResult<'c, Vec<Val<'c>>> {
    let (shape, operands) = read(op).map_err(|decline| emitter.error(decline.to_string()))?;
    let [source, values, indices] = operands.map(|operand| emitter.memory(operand));
    let (source, values, indices) = (source?, values?, indices?);
    let wide = Ints::new(emitter.builder, 64);
    let mut rows = Int::Known(1);
    for dim in 0..source.shape.len().saturating_sub(1) {
        rows = wide.times(rows, wide.cast(extent_of(&source, dim))?)?;
    }
    let shared = match scratch {
        Some(scratch) => {
            let i64 = types::integer(emitter.builder, 64);
            emitter.scratch(scratch, &[scratch.bytes / 8], i64)?.base
        }
        None => emitter.shared,
    };
    let arguments = [
        source.base,
        values.base,
        indices.base,
        shared,
        emitter.thread,
        wide.value(rows)?,
    ];
    inline::copy_text(&emitter.builder, &text(shape), &arguments)?;
    Ok(Vec::new())
}
