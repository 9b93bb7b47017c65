//! Which kernels of a package have results to write.

use crate::host::Host;
use axe_package::{Arg, Expr, Kernel, MemRef, ParamKind, Step};

/// The symbols of the kernels that have elements to write.
pub(crate) fn kernels(host: &Host) -> Vec<&str> {
    let kernels = host.kernels.iter();
    kernels
        .filter(|kernel| has_results(kernel, host))
        .map(|kernel| kernel.symbol.as_str())
        .collect()
}

/// Whether a launch of a kernel has elements to write.
fn has_results(kernel: &Kernel, host: &Host) -> bool {
    let launches = host.steps.iter().filter_map(|step| match step {
        Step::Launch(launch) if launch.kernel == kernel.name => Some(launch),
        _ => None,
    });
    let written = |launch: &axe_package::Launch| {
        let mut pairs = kernel.params.iter().zip(&launch.args);
        pairs.any(|(param, arg)| match (&param.kind, arg) {
            (ParamKind::Pointer { access, .. }, Arg::Memory(at))
            | (ParamKind::TensorMap { access, .. }, Arg::Tensor { at, .. }) => {
                access.writes() && !is_empty(at, host)
            }
            _ => false,
        })
    };
    launches.into_iter().any(written)
}

fn is_empty(at: &MemRef, host: &Host) -> bool {
    let outputs = host
        .outputs
        .iter()
        .map(|output| (&output.name, &output.shape));
    let buffers = host
        .buffers
        .iter()
        .map(|buffer| (&buffer.name, &buffer.shape));
    let mut memory = outputs.chain(buffers);
    memory.any(|(name, shape)| *name == at.name && shape.contains(&Expr::Const(0)))
}
