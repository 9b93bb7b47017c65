//! Tensor maps of a kernel: parameters that the launch encodes (CUDA driver API, cuTensorMapEncodeTiled).

use super::emitter::Emitter;
use super::value::TensorMapParameter;
use crate::plan::tma::TensorMap;
use crate::state::form::Sizes;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use melior::ir::{BlockLike, TypeLike};

impl<'c> Emitter<'c> {
    /// The parameter of a tensor map, which is added to the kernel where there is none yet.
    pub(crate) fn tensor_map(
        &mut self,
        argument: usize,
        offset: i64,
        map: &TensorMap,
        sizes: Vec<Sizes>,
    ) -> PassResult<'c, Val<'c>> {
        let same = |known: &&TensorMapParameter<'c>| {
            (known.argument, known.offset, &known.map) == (argument, offset, map)
                && known.sizes == sizes
        };
        if let Some(known) = self.tensor_maps.iter().find(same) {
            return Ok(known.pointer);
        }
        let entry = self
            .entry
            .ok_or_else(|| self.error("a kernel without parameters"))?;
        let pointer = types::pointer(self.builder, 0);
        // SAFETY: block, type and location are live and of one context.
        let pointer = unsafe {
            Val::from_raw(mlir_sys::mlirBlockAddArgument(
                entry.to_raw(),
                pointer.to_raw(),
                self.builder.location.to_raw(),
            ))
        };
        self.tensor_maps.push(TensorMapParameter {
            argument,
            offset,
            map: map.clone(),
            sizes,
            pointer,
        });
        Ok(pointer)
    }
}
