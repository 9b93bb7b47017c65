//! The extension module `axe._axe` of the Python package `axe-mlir`: the compiler, packages, the simulator, the layout
//! algebra and launches, as plain values. What users see is written in Python over it (`python/axe`).

mod compile;
mod dlpack;
mod drivers;
mod errors;
mod layout;
mod package;
mod run;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
fn _axe(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add(module)?;
    compile::add(module)?;
    drivers::add(module)?;
    module.add_function(wrap_pyfunction!(dlpack::describe, module)?)?;
    module.add_class::<layout::Layout>()?;
    module.add_class::<run::Executable>()?;
    module.add_class::<run::Specialization>()?;
    module.add_class::<package::Package>()
}
