//! The commands `axe` and `axe-opt`, for the scripts of the package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `axe` with a command line, the program's name first; the exit code.
#[pyfunction]
fn axe(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| axe_cli::main(&arguments))
}

/// Runs `axe-opt`, once in a process.
#[pyfunction]
fn opt(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| ::axe_opt::opt_main(&arguments))
}

/// Adds the functions.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(axe, module)?)?;
    module.add_function(wrap_pyfunction!(opt, module)?)
}
