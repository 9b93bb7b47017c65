//! Launches on a GPU: on the memory and the streams of whoever owns the tensors.

use crate::errors;
use crate::package::Package;
use axe_runtime::{Code, Device, Stream};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A package whose code is on a GPU.
#[pyclass(frozen, module = "axe._axe")]
pub(crate) struct Executable(axe_runtime::Executable);

/// An executable for one set of shapes.
#[pyclass(frozen, module = "axe._axe")]
pub(crate) struct Specialization(Arc<axe_runtime::Specialization>);

/// Name, element type and shape.
type Output = (String, &'static str, Vec<u64>);

#[pymethods]
impl Executable {
    /// Loads a package's code into the primary context of a GPU.
    #[staticmethod]
    fn load(py: Python<'_>, package: &Package, device: usize) -> PyResult<Self> {
        let package = package.package.as_ref().clone();
        let loaded = || {
            let device = Device::shared(device)?;
            axe_runtime::Executable::new(&device, package, Code::Best)
        };
        errors::detached(py, loaded, errors::runtime).map(Self)
    }

    /// Fits it to the shapes of the inputs.
    fn specialize(
        &self,
        shapes: Vec<Vec<u64>>,
        dims: BTreeMap<String, i64>,
    ) -> PyResult<Specialization> {
        let shapes: Vec<_> = shapes.iter().map(Vec::as_slice).collect();
        let made = self.0.specialize(&shapes, &dims);
        made.map(Specialization).map_err(errors::runtime)
    }
}

#[pymethods]
impl Specialization {
    /// What each output is.
    fn outputs(&self) -> Vec<Output> {
        let outputs = self.0.outputs();
        outputs
            .map(|(name, dtype, shape)| (name.to_owned(), dtype.name(), shape.to_vec()))
            .collect()
    }

    /// Puts the package's steps on a stream. The addresses are those of live dense tensors on the executable's GPU.
    fn launch(&self, inputs: Vec<u64>, outputs: Vec<u64>, stream: usize) -> PyResult<()> {
        // SAFETY: the package's own callers, `axe/_call.py`, take addresses and streams from tensors that they hold.
        let launched = unsafe { self.0.launch(&inputs, &outputs, Stream(stream)) };
        launched.map_err(errors::runtime)
    }
}
