//! Tensors between NumPy and packages: a type's name, a shape, and the bytes of a dense row-major array.

use crate::errors;
use axe_package::{DType, Tensor};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A tensor as Python has it.
pub(crate) type Given = (String, Vec<u64>, Py<PyBytes>);
/// A tensor for Python.
pub(crate) type Made<'py> = (&'static str, Vec<u64>, Bound<'py, PyBytes>);

/// The type of that name.
pub(crate) fn dtype(name: &str) -> PyResult<DType> {
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.ok_or_else(|| errors::call(format!("unknown element type `{name}`")))
}

/// A tensor of Python's.
pub(crate) fn read(py: Python<'_>, (name, shape, bytes): Given) -> PyResult<Tensor> {
    let bytes = bytes.as_bytes(py).to_vec();
    Tensor::new(dtype(&name)?, shape, bytes).map_err(errors::call)
}

/// A tensor for Python.
pub(crate) fn write<'py>(py: Python<'py>, tensor: &Tensor) -> Made<'py> {
    (
        tensor.dtype().name(),
        tensor.shape().to_vec(),
        PyBytes::new(py, tensor.bytes()),
    )
}
