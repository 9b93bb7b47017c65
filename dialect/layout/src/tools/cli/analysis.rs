//! What a layout costs: `analyze`, `banks`, `coalescing`, `choose-swizzle`.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::algebra::{region, text_of};
use super::{CliError, Numbers, parse_layout, parse_numbers};
use crate::tools::eval;
use crate::{Axis, Error, Layout, analysis};

#[derive(Debug, Subcommand)]
pub(super) enum AnalysisCommand {
    /// Aliasing, sizes, and the widest vectors along each dimension.
    Analyze {
        #[command(flatten)]
        of: Memory,
        /// Bits of an element.
        #[arg(long, default_value_t = 32)]
        elem_bits: u32,
        /// Address 0 lies at a multiple of so many bytes.
        #[arg(long, default_value_t = 16)]
        base_alignment: i64,
    },
    /// Passes and conflicts of accesses to shared memory.
    Banks(Accesses),
    /// Sectors of global memory that accesses touch.
    Coalescing(Accesses),
    /// A swizzle that makes accesses free of bank conflicts, or the proof that none does.
    ChooseSwizzle(Accesses),
}

#[derive(Debug, Args)]
pub(super) struct Memory {
    /// The layout in memory.
    #[arg(value_parser = parse_layout)]
    layout: Layout,
    /// Logical shape, such as 128,64.
    #[arg(long, short, value_parser = parse_numbers)]
    shape: Numbers,
}

#[derive(Debug, Args)]
pub(super) struct Accesses {
    #[command(flatten)]
    of: Memory,
    /// Bytes of an element.
    #[arg(long)]
    elem_bytes: i64,
    /// Who accesses what: a layout over `lane` and `reg`, of the whole tile or of a box of it as in
    /// `S[(8, 8) : (1@lane, 1@reg)] on 0:8,0:8` (repeatable).
    #[arg(long = "access", required = true)]
    accesses: Vec<String>,
    /// Elements that a lane accesses at once; the widest possible when left out.
    #[arg(long)]
    vector: Option<i64>,
}

pub(super) fn run(command: &AnalysisCommand) -> Result<String, CliError> {
    match command {
        AnalysisCommand::Analyze {
            of,
            elem_bits,
            base_alignment,
        } => analyze(of, *elem_bits, *base_alignment),
        AnalysisCommand::Banks(given) => each("bank_conflicts", given),
        AnalysisCommand::Coalescing(given) => each("coalescing", given),
        AnalysisCommand::ChooseSwizzle(given) => {
            let mut inputs = given.tile();
            inputs.insert("accesses".into(), given.list()?.into());
            choice(inputs.into())
        }
    }
}

fn answer(op: &str, inputs: Value) -> Result<String, CliError> {
    let result = eval::evaluate(op, inputs).map_err(|failure| failure.to_string())?;
    Ok(text_of(&result))
}

/// The swizzle, and what each access costs with it.
fn choice(inputs: Value) -> Result<String, CliError> {
    let found = eval::evaluate("choose_swizzle", inputs).map_err(|failure| failure.to_string())?;
    let name = found["notation"].as_str().unwrap_or("no swizzle");
    let candidates = &found["candidates"];
    let mut text = match (found["free"].as_bool(), found["swizzle"].is_null()) {
        (Some(true), true) => "no swizzle needed: no conflicts\n".to_owned(),
        (Some(true), false) => format!("{name}: no conflicts\n"),
        _ => format!(
            "none of the {candidates} candidates is free of conflicts; the fewest has {name}\n"
        ),
    };
    let costs = found["costs"].as_array().map_or(&[][..], Vec::as_slice);
    for (k, cost) in costs.iter().enumerate() {
        let (passes, ideal) = (&cost["passes"], &cost["ideal"]);
        writeln!(
            text,
            "access {k}: {passes} passes, {ideal} without conflicts"
        )?;
    }
    writeln!(text, "storage: {} elements", found["cosize"])?;
    Ok(text)
}

/// The answers for one access after the other.
fn each(op: &str, given: &Accesses) -> Result<String, CliError> {
    let mut text = String::new();
    for (access, written) in given.list()?.into_iter().zip(&given.accesses) {
        let mut inputs = given.tile();
        if let Value::Object(access) = access {
            inputs.extend(access);
        }
        if given.accesses.len() > 1 {
            writeln!(text, "{written}")?;
        }
        text.push_str(&answer(op, inputs.into())?);
    }
    Ok(text)
}

impl Accesses {
    fn tile(&self) -> Map<String, Value> {
        Map::from_iter([
            ("layout".into(), json!(self.of.layout)),
            ("shape".into(), json!(self.of.shape)),
            ("elem_bytes".into(), json!(self.elem_bytes)),
        ])
    }

    fn list(&self) -> Result<Vec<Value>, CliError> {
        let one = |text: &String| -> Result<Value, CliError> {
            let (threads, part) = match text.split_once(" on ") {
                Some((threads, part)) => (threads, Some(region(part)?)),
                None => (text.as_str(), None),
            };
            let threads = parse_layout(threads)?;
            Ok(json!({"threads": threads, "region": part, "vector": self.vector}))
        };
        self.accesses.iter().map(one).collect()
    }
}

fn analyze(of: &Memory, elem_bits: u32, base: i64) -> Result<String, CliError> {
    let (layout, shape) = (&of.layout, &of.shape.0);
    if !layout.admits(shape) {
        return Err(format!("shape {shape:?}: the layout has another size").into());
    }
    let or_reason = |found: Result<String, Error>| found.unwrap_or_else(|e| format!("- ({e})"));
    let mut text = String::new();
    let places = analysis::alias(layout).map(|found| match found {
        None => "yes".into(),
        Some(w) => format!(
            "no: indices {} and {} share {:?}",
            w.first, w.second, w.point
        ),
    });
    writeln!(text, "injective        {}", or_reason(places))?;
    let copies = analysis::coinciding_copies(layout).map(|same| {
        if same {
            "some coincide"
        } else {
            "all different"
        }
        .to_owned()
    });
    if !layout.replica().is_empty() {
        writeln!(text, "copies           {}", or_reason(copies))?;
    }
    for axis in layout.axes() {
        let span = or_reason(layout.span(axis).map(|n| n.to_string()));
        let cosize = or_reason(layout.cosize(axis).map(|n| n.to_string()));
        let label = format!("axis {axis}");
        writeln!(text, "{label:<16} span {span}, cosize {cosize}")?;
    }
    if !layout.axes().contains(&Axis::M) {
        return Ok(text);
    }
    for dim in 0..shape.len() {
        let width = analysis::vector_width(layout, shape, dim, elem_bits, base).map(|w| {
            format!(
                "{} elements, {} bytes, aligned to {}",
                w.elements, w.bytes, w.alignment
            )
        });
        let label = format!("vectors, dim {dim}");
        writeln!(text, "{label:<16} {}", or_reason(width))?;
    }
    Ok(text)
}
