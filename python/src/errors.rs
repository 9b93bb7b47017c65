//! Errors as exceptions. None carries a panic: whatever the libraries refuse is a value there.

use axe_compile::CompileError;
use axe_dialect::diagnostic::Severity;
use axe_layout::Kind;
use axe_runtime::RuntimeError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(
    axe,
    AxeError,
    PyException,
    "What Axe refuses; the base of its other exceptions."
);
create_exception!(
    axe,
    CompileFailed,
    AxeError,
    "A module that was not compiled: what is wrong as text, and its diagnostics as records."
);
create_exception!(
    axe,
    LayoutError,
    AxeError,
    "A question about layouts that has no answer; `kind` is none, invalid, overflow or unsupported."
);
create_exception!(
    axe,
    PackageError,
    AxeError,
    "A package that cannot be read, written or called so."
);
create_exception!(
    axe,
    DeviceError,
    AxeError,
    "The GPU or its driver: missing, unfit, or failing."
);

/// Adds the exceptions.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AxeError", py.get_type::<AxeError>())?;
    module.add("CompileFailed", py.get_type::<CompileFailed>())?;
    module.add("LayoutError", py.get_type::<LayoutError>())?;
    module.add("PackageError", py.get_type::<PackageError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())
}

/// Does `work` without the interpreter's lock. A panic, which is a defect, is an exception like others: none crosses.
pub(crate) fn detached<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
    error: impl FnOnce(E) -> PyErr,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match done {
        Ok(done) => done.map_err(error),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            let said = said.unwrap_or("no message");
            Err(AxeError::new_err(format!("a defect of Axe: {said}")))
        }
    }
}

/// A layout's error, with its kind.
pub(crate) fn layout(error: axe_layout::Error) -> PyErr {
    let kind = match error.kind() {
        Kind::None => "none",
        Kind::Invalid => "invalid",
        Kind::Overflow => "overflow",
        Kind::Unsupported => "unsupported",
    };
    with(LayoutError::new_err(error.to_string()), "kind", kind)
}

/// An exception with an attribute.
fn with<T: for<'py> IntoPyObject<'py>>(raised: PyErr, name: &str, value: T) -> PyErr {
    Python::attach(|py| {
        // The message says it all where the attribute cannot be set.
        let _ = raised.value(py).setattr(name, value);
    });
    raised
}

/// A diagnostic: severity, message, and file, line and column where it is in one.
type Record = (&'static str, String, Option<(String, u32, u32)>);

fn record(diagnostic: &axe_dialect::Diagnostic) -> Record {
    let position = diagnostic.position.as_ref();
    let position = position.map(|at| (at.file.clone(), at.line, at.column));
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Remark => "remark",
        Severity::Note => "note",
    };
    (severity, diagnostic.message.clone(), position)
}

/// A compilation's error: its text, and its diagnostics as records.
pub(crate) fn compile(error: CompileError) -> PyErr {
    match error {
        CompileError::Package(error) => package(error),
        error => {
            let records: Vec<_> = error.diagnostics().iter().map(record).collect();
            with(
                CompileFailed::new_err(error.to_string()),
                "records",
                records,
            )
        }
    }
}

/// An error of a module on the host: a call that does not fit it, or that it was not compiled.
pub(crate) fn host(error: CompileError) -> PyErr {
    match &error {
        CompileError::Host(failed) if failed.is_of_call() => call(error),
        _ => compile(error),
    }
}

/// A package's error.
pub(crate) fn package(error: axe_package::PackageError) -> PyErr {
    PackageError::new_err(error.to_string())
}

/// A call that does not fit its package.
pub(crate) fn call(error: impl std::fmt::Display) -> PyErr {
    PackageError::new_err(error.to_string())
}

/// The runtime's error.
pub(crate) fn runtime(error: RuntimeError) -> PyErr {
    match error.exit_code() {
        axe_runtime::exit_code::NO_DEVICE | axe_runtime::exit_code::CUDA => {
            DeviceError::new_err(error.to_string())
        }
        _ => call(error),
    }
}
