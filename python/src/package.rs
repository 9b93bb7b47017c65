//! Kernel packages, the simulator and the host's reference.

use crate::errors;
use crate::tensor::{Given, Made, read, write};
use axe_package::Tensor;
use axe_sim::package::run_package;
use axe_sim::{Options, Simulator};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A kernel package in memory.
#[pyclass(frozen, module = "axe._axe")]
pub(crate) struct Package {
    pub(crate) package: Arc<axe_package::Package>,
}

impl Package {
    pub(crate) fn of(package: axe_package::Package) -> Self {
        Self {
            package: Arc::new(package),
        }
    }

    /// Tensors by the names of the inputs, in order.
    fn named(&self, py: Python<'_>, inputs: Vec<Given>) -> PyResult<BTreeMap<String, Tensor>> {
        let specs = &self.package.manifest().inputs;
        if specs.len() != inputs.len() {
            let (want, got) = (specs.len(), inputs.len());
            return Err(errors::call(format!("expected {want} inputs, got {got}")));
        }
        let pairs = specs.iter().zip(inputs);
        pairs
            .map(|(spec, given)| Ok((spec.name.clone(), read(py, given)?)))
            .collect()
    }
}

/// The outputs of a simulation, and its findings as JSON.
type Simulated<'py> = (Vec<Made<'py>>, String);

#[pymethods]
impl Package {
    /// Reads a file or a folder.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = || axe_package::Package::open(path);
        errors::detached(py, opened, errors::package).map(Self::of)
    }

    /// The package that `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let package = axe_package::Package::from_bytes(bytes);
        package.map(Self::of).map_err(errors::package)
    }

    /// The package as one tar file's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.package.to_bytes().map_err(errors::package)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes one file.
    fn write_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        errors::detached(py, || self.package.write_file(path), errors::package)
    }

    /// Writes a folder.
    fn write_dir(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        errors::detached(py, || self.package.write_dir(path), errors::package)
    }

    /// The manifest as JSON.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(self.package.manifest()).map_err(errors::call)
    }

    /// The content of a file of the package.
    fn file<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
        self.package.file(name).map(|bytes| PyBytes::new(py, bytes))
    }

    /// The names of its files.
    fn files(&self) -> Vec<&str> {
        self.package.files().map(|(name, _)| name).collect()
    }

    /// Runs the kernels in the simulator.
    #[pyo3(signature = (inputs, dims, checks, seed, ctas=None, threads=0))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Given>,
        dims: BTreeMap<String, i64>,
        checks: bool,
        seed: u64,
        ctas: Option<u64>,
        threads: usize,
    ) -> PyResult<Simulated<'py>> {
        let inputs = self.named(py, inputs)?;
        let simulator = Simulator {
            options: Options {
                checks,
                seed,
                threads,
                max_ctas: ctas,
                ..Options::default()
            },
        };
        let work = || run_package(&self.package, &inputs, &dims, &simulator);
        let mut run = errors::detached(py, work, errors::call)?;
        for (name, output) in &run.outputs {
            let unwritten = output.unwritten.count();
            if checks && ctas.is_none() && unwritten > 0 {
                let problem = format!("output `{name}`: {unwritten} elements were never written");
                return Err(errors::call(problem));
            }
        }
        let specs = self.package.manifest().outputs.iter();
        let outputs = specs.filter_map(|spec| run.outputs.remove(&spec.name));
        let outputs = outputs.map(|output| write(py, &output.tensor)).collect();
        let launches = run.launches.iter();
        let findings: Vec<_> = launches
            .map(|(kernel, report)| {
                serde_json::json!({"kernel": kernel, "findings": report.findings, "printed": report.output})
            })
            .collect();
        let findings = serde_json::to_string(&findings).map_err(errors::call)?;
        Ok((outputs, findings))
    }

    /// Runs the module that the package was compiled from on the host.
    fn reference<'py>(&self, py: Python<'py>, inputs: Vec<Given>) -> PyResult<Vec<Made<'py>>> {
        let inputs = inputs
            .into_iter()
            .map(|given| read(py, given))
            .collect::<PyResult<Vec<_>>>()?;
        let work = || axe_compile::reference(&self.package, &inputs);
        let results = errors::detached(py, work, errors::host)?;
        Ok(results.iter().map(|tensor| write(py, tensor)).collect())
    }
}
