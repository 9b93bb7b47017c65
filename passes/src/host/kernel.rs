//! `axe.kernel` becomes a function of its arguments, its block and the grid; a launch calls it once a block.

use super::ops::{memref, set_type};
use super::walked::{add_argument, arguments};
use super::{Lowering, nest};
use crate::error::{PassError, PassResult};
use crate::ir::value::{identity, name, parts, replace_all_uses};
use crate::ir::{Builder, Op, Val, types, walk};
use axe_dialect::element_type;
use axe_dialect::ops::{self as axe, KernelOp};
use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Region, Type, ValueLike};
use mlir_sys as sys;

/// A kernel that has become a function.
#[derive(Clone, Debug)]
pub(super) struct Kernel<'c> {
    /// The types that a launch passes, without block and grid.
    pub(super) arguments: Vec<Type<'c>>,
    /// Threads of a block.
    pub(super) threads: i64,
}

/// Block and grid, in the order that they are passed.
const PLACES: [(&str, &str); 6] = [
    ("gpu.block_id", "x"),
    ("gpu.block_id", "y"),
    ("gpu.block_id", "z"),
    ("gpu.grid_dim", "x"),
    ("gpu.grid_dim", "y"),
    ("gpu.grid_dim", "z"),
];

impl<'c> Lowering<'c> {
    /// Turns a kernel into a private function in its place.
    ///
    /// # Errors
    /// When the kernel has no entry or an argument is no host memref.
    pub(super) fn kernel(&mut self, op: Op<'c>) -> PassResult<'c, Op<'c>> {
        let builder = Builder::before(op);
        let KernelOp {
            sym_name, threads, ..
        } = parts(op)?;
        let symbol = sym_name.to_owned();
        let Some(entry) = walk::blocks(op).first().copied() else {
            return Err(PassError::new(op.location(), "a kernel without a body"));
        };
        let mut kernel = Kernel {
            arguments: Vec::new(),
            threads,
        };
        for value in arguments(entry) {
            let written = value.r#type();
            if types::is_memref(written) {
                self.written.insert(identity(value), written);
                let shape = types::shape(written).unwrap_or_default();
                set_type(value, memref(&builder, &shape, element_type(written))?);
            }
            kernel.arguments.push(value.r#type());
        }
        let index = builder.index_type();
        let places: Vec<_> = PLACES
            .iter()
            .map(|_| add_argument(entry, index, op.location()))
            .collect();
        let inputs: Vec<_> = kernel
            .arguments
            .iter()
            .copied()
            .chain(places.iter().map(|_| index))
            .collect();
        let body = Region::new();
        // SAFETY: both regions are valid; the kernel's is left empty.
        unsafe {
            sys::mlirRegionTakeBody(
                melior::ir::RegionLike::to_raw(&body),
                sys::mlirOperationGetRegion(op.to_raw(), 0),
            );
        }
        let function = function(&builder, &symbol, &inputs, body)?;
        walk::erase(op);
        self.places(function, &kernel, &places)?;
        nest::refuse(function)?;
        self.kernels.insert(symbol, kernel);
        Ok(function)
    }

    /// Puts block, grid and the constants of the launch in the place of what asks for them.
    fn places(&self, function: Op<'c>, kernel: &Kernel<'c>, places: &[Val<'c>]) -> PassResult<'c> {
        for op in walk::nested(function, &|_| true) {
            let name = name(op);
            if name == axe::RETURN {
                Builder::before(op).operation("func.return", &[], &[], &[], Vec::new())?;
                walk::erase(op);
            }
            if !name.starts_with("gpu.") {
                continue;
            }
            let builder = Builder::before(op);
            let dim = op.attribute("dimension").ok().map(|dim| dim.to_string());
            let dim = dim
                .as_deref()
                .and_then(|dim| dim.strip_suffix('>')?.split(' ').next_back());
            let at = PLACES
                .iter()
                .position(|place| (place.0, Some(place.1)) == (&name, dim));
            let value = match (at.and_then(|at| places.get(at)), name.as_str()) {
                (Some(value), _) => *value,
                (None, "gpu.block_dim") if dim == Some("x") => builder.index(kernel.threads)?,
                (None, "gpu.block_dim") => builder.index(1)?,
                _ => return Err(unplaced(op, &name)),
            };
            replace_all_uses(builder.result_of(op)?, value);
            walk::erase(op);
        }
        Ok(())
    }
}

/// The error for an operation that speaks of one thread.
fn unplaced<'c>(op: Op<'c>, name: &str) -> PassError<'c> {
    PassError::new(
        op.location(),
        format!("'{name}' has no meaning on the CPU target: a kernel is the program of a whole block there"),
    )
    .note("expected axe operators over the block's tensors, gpu.block_id, gpu.grid_dim or gpu.block_dim")
}

/// A private function.
fn function<'c>(
    builder: &Builder<'c>,
    symbol: &str,
    inputs: &[Type<'c>],
    body: Region<'c>,
) -> PassResult<'c, Op<'c>> {
    let text =
        |value: &str| builder.attribute(|context| StringAttribute::new(context, value).into());
    let r#type = builder.function_type(inputs, &[]);
    let attributes = [
        ("sym_name", text(symbol)),
        ("sym_visibility", text("private")),
        ("function_type", TypeAttribute::new(r#type).into()),
    ];
    builder.operation("func.func", &[], &[], &attributes, vec![body])
}

/// The text of a string attribute.
///
/// # Errors
/// When the operation does not have it.
pub(super) fn symbol<'c>(op: Op<'c>, key: &str) -> PassResult<'c, String> {
    op.attribute(key)
        .ok()
        .and_then(|attribute| StringAttribute::try_from(attribute).ok())
        .map(|text| text.value().to_owned())
        .ok_or_else(|| PassError::new(op.location(), format!("'{key}' cannot be read")))
}
