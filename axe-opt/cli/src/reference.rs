//! What a package should compute: the CPU reference from the module that it was compiled from.

use axe_package::{Package, Tensor};
use axe_runtime::RuntimeError;
use axe_runtime::run::Job;
use std::collections::BTreeMap;

/// Makes a job expect the results of the CPU reference, unless the request says what to expect of every output.
///
/// # Errors
/// A package without its source, or a source that does not run on the host: kernels with roles have no meaning there.
pub fn expect(job: &mut Job, inputs: &BTreeMap<String, Tensor>) -> Result<(), RuntimeError> {
    if job.expects_all() {
        return Ok(());
    }
    let results = compute(job.package(), inputs)?;
    let names: Vec<_> = job
        .package()
        .manifest()
        .outputs
        .iter()
        .map(|output| output.name.clone())
        .collect();
    for (name, tensor) in names.iter().zip(results) {
        job.expect(name, tensor);
    }
    Ok(())
}

/// The results of a package's function on the host.
///
/// # Errors
/// As [`expect`].
#[cfg(feature = "compiler")]
pub fn compute(
    package: &Package,
    inputs: &BTreeMap<String, Tensor>,
) -> Result<Vec<Tensor>, RuntimeError> {
    let ordered: Vec<_> = package
        .manifest()
        .inputs
        .iter()
        .filter_map(|spec| inputs.get(&spec.name).cloned())
        .collect();
    axe_compile::reference(package, &ordered)
        .map_err(|error| RuntimeError::Usage(error.to_string()))
}

/// The results of a package's function on the host.
///
/// # Errors
/// Always: this `axe` was built without the compiler.
#[cfg(not(feature = "compiler"))]
pub fn compute(
    _package: &Package,
    _inputs: &BTreeMap<String, Tensor>,
) -> Result<Vec<Tensor>, RuntimeError> {
    Err(RuntimeError::Usage(
        "this axe was built without the compiler: the CPU reference is not there".into(),
    ))
}
