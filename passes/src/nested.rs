//! Modules inside the module that a pass works on.

use crate::error::{self, PassError, PassResult};
use crate::ir::Op;
use crate::ir::value::name;
use crate::ir::walk::{blocks, nested, operations};
use axe_dialect::ops;
use melior::ir::operation::OperationLike;

/// Fails at each module inside `module` that holds something to compile: operators are planned in functions of the
/// module itself, and what is further inside would be left as it is without a word.
///
/// # Errors
/// At each of them.
pub(crate) fn refuse<'c>(module: Op<'c>) -> PassResult<'c> {
    let inner = blocks(module).into_iter().flat_map(operations);
    let inner = inner.filter(|op| name(*op) == "builtin.module");
    let failures = inner.filter(|module| has_work(*module)).map(|module| {
        PassError::new(
            module.location(),
            "modules inside the module are not compiled: run the pass on this one (builtin.module(builtin.module(...))), \
             or move its functions out",
        )
    });
    error::all(failures.collect())
}

/// Whether operations of linalg or logical operators are below a module.
fn has_work(module: Op<'_>) -> bool {
    let all = nested(module, &|op| name(op) != "gpu.module");
    all.into_iter().any(|op| {
        let name = name(op);
        name.starts_with("linalg.") || (name.starts_with("axe.") && name != ops::LAUNCH)
    })
}
