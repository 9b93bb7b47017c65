//! Compiling text.

use crate::errors;
use crate::package::Package;
use axe_compile::{Options, Remark, RemarkKind, Source};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A decision: kind, category, name, function, message, plan and place.
type Decision = (&'static str, String, String, String, String, String, String);

fn decision(remark: Remark) -> Decision {
    let kind = match remark.kind {
        RemarkKind::Passed => "chosen",
        RemarkKind::Missed => "declined",
        RemarkKind::Analysis => "fact",
    };
    let Remark {
        category,
        name,
        function,
        message,
        plan,
        place,
        ..
    } = remark;
    (kind, category, name, function, message, plan, place)
}

/// Compiles a module's text: the package, the assembler's warnings, and the decisions.
#[pyfunction]
#[pyo3(signature = (text, name, target, function=None, ptxas=None, assemble=true))]
fn compile(
    py: Python<'_>,
    text: &str,
    name: &str,
    target: &str,
    function: Option<&str>,
    ptxas: Option<PathBuf>,
    assemble: bool,
) -> PyResult<(Package, Vec<String>, Vec<Decision>)> {
    let options = Options {
        function,
        assemble,
        assembler: ptxas.as_deref(),
        ..Options::for_target(target)
    };
    let work = || axe_compile::compile_with(Source { name, text }, options);
    let compiled = errors::detached(py, work, errors::compile)?;
    let decisions = compiled.decisions.into_iter().map(decision).collect();
    Ok((Package::of(compiled.package), compiled.warnings, decisions))
}

/// The chips that there is a compiler for, and the one that is taken where none is named.
#[pyfunction]
fn targets() -> (Vec<&'static str>, &'static str) {
    (axe_compile::targets(), axe_compile::default_target())
}

/// Adds the functions.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(targets, module)?)
}
