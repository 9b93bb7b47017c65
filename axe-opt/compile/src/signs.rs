//! The signs of integers that a function takes and gives: code has none, and a package's tensors do.

use crate::host::Host;
use axe_cpu::dtype;
use axe_package::{DType, TensorSpec};
use axe_passes::ir::Op;
use axe_passes::signless::signature;

/// The element types of a function's arguments and results as the module has them.
pub(crate) struct Signs {
    inputs: Vec<Option<DType>>,
    outputs: Vec<Option<DType>>,
}

impl Signs {
    /// Those of a function.
    pub(crate) fn of(function: Op<'_>) -> Self {
        let types = signature(function).unwrap_or_default();
        let [inputs, outputs] = types.map(|types| {
            let elements = types.into_iter().map(axe_dialect::element_type);
            elements.map(dtype).collect()
        });
        Self { inputs, outputs }
    }

    /// Gives them to the tensors of a package.
    pub(crate) fn restore(&self, host: &mut Host) {
        let inputs = host.inputs.iter_mut().zip(&self.inputs);
        let outputs = host.outputs.iter_mut().zip(&self.outputs);
        for (tensor, declared) in inputs.chain(outputs) {
            set(tensor, *declared);
        }
    }
}

fn set(tensor: &mut TensorSpec, declared: Option<DType>) {
    if let Some(declared) = declared.filter(|declared| declared.bytes() == tensor.dtype.bytes())
        && !tensor.dtype.is_float()
    {
        tensor.dtype = declared;
    }
}
