//! The function around the kernels: operands in the shape of a kernel's space, launches, results.

use super::operators::is_reshape;
use super::reshape::{leading, leading_of, reshape};
use super::space::source;
use crate::build::launch;
use crate::ir::value::{defining, identity};
use crate::ir::{Builder, DYNAMIC, Val, types};
use crate::{PassError, PassResult};
use melior::ir::{BlockRef, Type, ValueLike};
use mlir_sys as sys;
use std::collections::HashMap;

/// A function whose kernels are planned.
pub struct Frame<'c> {
    /// Where kernels go.
    pub module: BlockRef<'c, 'c>,
    /// The start of their names.
    pub prefix: String,
    /// Kernels so far.
    pub kernels: usize,
    /// What launches gave, for the values of the logical function.
    pub stored: HashMap<usize, Val<'c>>,
    /// What launches gave beside values of the logical function, for later ones: logarithms of sums of attention's result.
    pub beside: HashMap<usize, Val<'c>>,
}

/// A tensor outside a kernel and the memref that the kernel has for it.
#[derive(Clone, Debug)]
pub struct Operand<'c> {
    /// In the kernel's shape.
    pub tensor: Val<'c>,
    /// That shape.
    pub shape: Vec<i64>,
    /// The kernel's type.
    pub memref: Type<'c>,
}

/// A tensor outside a kernel that a value of the logical function is stored to.
pub type Out<'c> = (Val<'c>, Operand<'c>);

impl<'c> Frame<'c> {
    /// The next kernel's name.
    pub fn name(&mut self, what: &str) -> String {
        let number = self.kernels;
        self.kernels += 1;
        format!("{}_{number}_{what}", self.prefix)
    }

    /// A value of the logical function, as launches give it.
    ///
    /// # Errors
    /// When a reshape cannot be built again.
    pub fn resolve(&mut self, builder: &Builder<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
        if let Some(stored) = self.stored.get(&identity(value)) {
            return Ok(*stored);
        }
        let Some(op) = defining(value).filter(|op| is_reshape(*op)) else {
            return Ok(value);
        };
        let Some(from) = source(op) else {
            return Ok(value);
        };
        let new = self.resolve(builder, from)?;
        if new == from {
            return Ok(value);
        }
        let copy = builder.clone_of(op);
        // SAFETY: a reshape has the operand, and the new one has its type.
        unsafe { sys::mlirOperationSetOperand(copy.to_raw(), 0, new.to_raw()) };
        builder.result_of(copy)
    }

    /// A tensor as a kernel reads it: `known` static extents, in front of them the dynamic one where the
    /// tensor has one.
    ///
    /// # Errors
    /// At the builder's place, when the tensor's element type is not one of a kernel's.
    pub fn operand(
        &mut self,
        builder: &Builder<'c>,
        value: Val<'c>,
        shape: &[i64],
    ) -> PassResult<'c, Operand<'c>> {
        let leading = match shape.first() {
            Some(&DYNAMIC) => Some(leading_of(builder, value, shape)?),
            _ => None,
        };
        let tensor = self.resolve(builder, value)?;
        let tensor = reshape(builder, tensor, shape, leading)?;
        operand(builder, tensor, shape)
    }

    /// A new tensor that a kernel fills, of the shape that `value` has in the kernel's space.
    ///
    /// # Errors
    /// As for [`Self::operand`].
    pub fn out(
        &mut self,
        builder: &Builder<'c>,
        value: Val<'c>,
        shape: &[i64],
    ) -> PassResult<'c, Operand<'c>> {
        let element = builder.tensor_of(value)?.element;
        let sizes: Vec<_> = match shape.first() {
            Some(&DYNAMIC) => vec![leading_of(builder, value, shape)?],
            _ => Vec::new(),
        };
        let r#type = builder.tensor(shape, element)?;
        let tensor = builder.value("tensor.empty", &sizes, r#type, &[])?;
        operand(builder, tensor, shape)
    }

    /// Launches a kernel; its results take the place of `values`, in their own shapes.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn launch(
        &mut self,
        builder: &Builder<'c>,
        kernel: &str,
        grid: [Val<'c>; 3],
        ins: &[Val<'c>],
        outs: &[Out<'c>],
    ) -> PassResult<'c> {
        let tensors: Vec<_> = outs.iter().map(|(_, out)| out.tensor).collect();
        let results = launch(builder, kernel, grid, ins, &tensors)?;
        self.store(builder, outs, results)
    }

    /// Lets a launch's results take the place of values, in their own shapes.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn store(
        &mut self,
        builder: &Builder<'c>,
        outs: &[Out<'c>],
        results: Vec<Val<'c>>,
    ) -> PassResult<'c> {
        for ((value, _), result) in outs.iter().zip(results) {
            let shape = builder.tensor_of(*value)?.shape;
            let leading = match shape.first() {
                Some(&DYNAMIC) => Some(leading(builder, *value)?),
                _ => None,
            };
            let result = reshape(builder, result, &shape, leading)?;
            self.stored.insert(identity(*value), result);
        }
        Ok(())
    }
}

/// A tensor of this shape as a kernel's operand.
///
/// # Errors
/// At the builder's place, when the tensor's element type is not one of a kernel's.
pub fn operand<'c>(
    builder: &Builder<'c>,
    tensor: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Operand<'c>> {
    let element = builder.tensor_of(tensor)?.element;
    check_element(builder, element)?;
    let memref = axe_dialect::memref_type(builder.location, shape, element, None, None)
        .ok_or_else(|| PassError::new(builder.location, format!("no memref of {element}")))?;
    Ok(Operand {
        tensor,
        shape: shape.to_vec(),
        memref,
    })
}

/// Whether kernels move elements of the type: whole bytes, up to 8, and bits, each of which is a byte in memory.
fn check_element<'c>(builder: &Builder<'c>, element: Type<'c>) -> PassResult<'c> {
    match types::bits(element) {
        Some(1 | 8 | 16 | 32 | 64) => Ok(()),
        _ => Err(PassError::new(
            builder.location,
            format!(
                "expected elements of 1, 8, 16, 32 or 64 bits in a kernel's tensors, got {element}"
            ),
        )),
    }
}
