//! What a package should compute: the CPU reference from the module that it was compiled from.

use axe_package::{Package, Tensor};
use axe_runtime::RuntimeError;
use axe_runtime::run::Job;
use std::collections::BTreeMap;

use crate::boxes::Part;

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
    axe_compile::reference(package, &ordered(package, inputs))
        .map_err(|error| RuntimeError::Usage(error.to_string()))
}

/// Parts of the results of a package's function on the host; none where none is wanted.
///
/// # Errors
/// As [`expect`].
#[cfg(feature = "compiler")]
pub fn parts(
    package: &Package,
    inputs: &BTreeMap<String, Tensor>,
    parts: &[Option<Part>],
) -> Result<Vec<Option<Tensor>>, RuntimeError> {
    let part = |part: &Part| axe_compile::Part {
        origin: part.origin.clone(),
        shape: part.shape.clone(),
    };
    let parts: Vec<_> = parts
        .iter()
        .map(|wanted| wanted.as_ref().map(part))
        .collect();
    axe_compile::reference_parts(package, &ordered(package, inputs), &parts)
        .map_err(|error| RuntimeError::Usage(error.to_string()))
}

/// Inputs in the order of the function's arguments.
#[cfg(feature = "compiler")]
fn ordered(package: &Package, inputs: &BTreeMap<String, Tensor>) -> Vec<Tensor> {
    let specs = package.manifest().inputs.iter();
    specs
        .filter_map(|spec| inputs.get(&spec.name).cloned())
        .collect()
}

/// Parts of the results of a package's function on the host.
///
/// # Errors
/// Always: this `axe` was built without the compiler.
#[cfg(not(feature = "compiler"))]
pub fn parts(
    package: &Package,
    inputs: &BTreeMap<String, Tensor>,
    _parts: &[Option<Part>],
) -> Result<Vec<Option<Tensor>>, RuntimeError> {
    compute(package, inputs).map(|_| Vec::new())
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
