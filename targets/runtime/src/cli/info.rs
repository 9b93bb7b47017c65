//! `axe-run info PACKAGE`.

use std::path::PathBuf;

use axe_package::{Buffer, BufferInit, Expr, Kernel, Manifest, Package, Step, Symbol, TensorSpec};
use clap::Args;

use super::{print_json, say};
use crate::error::{RuntimeError, exit_code};

/// The arguments.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The package
    package: PathBuf,
    /// Print the manifest as JSON
    #[arg(long)]
    json: bool,
}

/// Prints what a package holds.
///
/// # Errors
/// A package that cannot be read.
pub fn main(args: &InfoArgs) -> Result<u8, RuntimeError> {
    let package = Package::open(&args.package)?;
    if args.json {
        print_json(package.manifest());
    } else {
        say(describe(package.manifest()));
    }
    Ok(exit_code::OK)
}

fn list(exprs: &[Expr]) -> String {
    exprs
        .iter()
        .map(Expr::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A manifest as text for people.
#[must_use]
pub fn describe(manifest: &Manifest) -> String {
    let mut lines = vec![format!(
        "{} for {} {}",
        manifest.name, manifest.target.kind, manifest.target.chip
    )];
    lines.extend(
        manifest
            .tools
            .iter()
            .map(|(tool, version)| format!("made by {tool} {version}")),
    );
    lines.push(format!("source {}", manifest.source_sha256));
    lines.extend(manifest.symbols.iter().map(symbol));
    let tensor =
        |what: &str, t: &TensorSpec| format!("{what} {}: {} [{}]", t.name, t.dtype, list(&t.shape));
    lines.extend(manifest.inputs.iter().map(|t| tensor("input", t)));
    lines.extend(manifest.outputs.iter().map(|t| tensor("output", t)));
    lines.extend(manifest.buffers.iter().map(buffer));
    for k in &manifest.kernels {
        lines.push(kernel(k));
        let params = k.params.iter();
        lines.extend(params.map(|p| format!("  parameter {}: {:?}", p.name, p.kind)));
    }
    let steps = manifest.steps.iter().enumerate();
    lines.extend(steps.map(|(i, s)| format!("step {i}: {}", step(s))));
    let files = manifest.files.iter();
    lines.extend(files.map(|(name, f)| format!("file {name}: {} bytes", f.bytes)));
    lines.join("\n")
}

fn symbol(s: &Symbol) -> String {
    let max = s.max.map_or(String::new(), |m| format!(", at most {m}"));
    let from = s.from.as_ref().map_or("given by name".into(), |d| {
        format!("dimension {} of {}", d.dim, d.input)
    });
    format!(
        "symbol {}: {from}, at least {}{max}, multiples of {}",
        s.name, s.min, s.multiple_of
    )
}

fn kernel(k: &Kernel) -> String {
    let cluster = k
        .cluster
        .map_or(String::new(), |c| format!(", cluster {c:?}"));
    let resources = k.resources.as_ref().map_or(String::new(), |r| {
        format!(
            ", {} registers, {} bytes spilled",
            r.registers, r.spill_bytes
        )
    });
    format!(
        "kernel {}: block {:?}{cluster}, {} bytes dynamic shared{resources}",
        k.name, k.block, k.dynamic_shared_bytes
    )
}

fn buffer(b: &Buffer) -> String {
    let init = match &b.init {
        BufferInit::Undefined => "undefined".to_owned(),
        BufferInit::ZeroOnLoad => "zero on load".to_owned(),
        BufferInit::Zero => "zero before each run".to_owned(),
        BufferInit::Data { file } => format!("data in {file}"),
    };
    format!(
        "buffer {}: {} [{}], {}-byte aligned, {init}",
        b.name,
        b.dtype,
        list(&b.shape),
        b.align
    )
}

fn step(step: &Step) -> String {
    match step {
        Step::Launch(l) => format!("launch {} on [{}]", l.kernel, list(&l.grid)),
        Step::Fill { to, bytes, value } => {
            format!("fill {bytes} bytes of {} with {value}", to.name)
        }
        Step::Copy { from, to, bytes } => {
            format!("copy {bytes} bytes from {} to {}", from.name, to.name)
        }
        Step::Assert { equal: [a, b], .. } => format!("assert {a} = {b}"),
    }
}
