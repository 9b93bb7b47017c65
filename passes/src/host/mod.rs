//! `--axe-lower-to-host`: axe on tensors and storage becomes loops of the host.
//!
//! What enters: logical operators in functions, and kernels with the launches that call them. What remains: no
//! operation of axe; tensors without layouts, built element by element by `tensor.generate`; storage as flat memrefs
//! addressed through the layouts' maps; a function for each kernel. Bufferization and all after it is upstream's.
//!
//! Arithmetic on halves is done in f32 and rounded after each operation ([`halves`]).
//!
//! An integer division by zero gives some number, as it does on GPUs: a tile's padding is divided too, and a host would
//! stop at it ([`crate::speculation`]).
//!
//! A tensor's layout says who holds an element, not which value it has: a register tensor is its logical content.

mod address;
mod declared;
mod expand;
mod gather;
mod gemm;
mod grouped;
mod halves;
mod kernel;
mod launch;
mod libm;
mod memory;
mod nest;
mod ops;
pub(crate) mod pipeline;
pub(crate) mod scalar;
mod scaled;
mod scope;
mod storage;
mod tensors;
mod top_k;
mod walked;

use crate::error::{PassError, PassResult};
use crate::ir::value::{is_used, name, replace_all_uses, results};
use crate::ir::{Builder, Op, Val, walk};
use crate::registry::PassContext;
use crate::speculation;
use address::Address;
use axe_dialect::ops as axe;
use kernel::Kernel;
use melior::ir::Type;
use melior::ir::operation::OperationLike;
use mlir_sys::MlirOperation;
use std::collections::{BTreeMap, HashMap};

unsafe extern "C" {
    fn axePlainTypes(operation: MlirOperation);
}

/// What the pass knows of values and kernels while it runs.
#[derive(Default)]
pub(crate) struct Lowering<'c> {
    /// The flat buffer and the map of each allocation.
    buffers: HashMap<usize, (Val<'c>, Address)>,
    /// The memref types of kernel arguments as they were written.
    written: HashMap<usize, Type<'c>>,
    kernels: BTreeMap<String, Kernel<'c>>,
}

/// The body of the pass.
pub(crate) fn run<'c>(module: Op<'c>, _: &mut PassContext<'_>) -> PassResult<'c> {
    // SAFETY: the module is live.
    unsafe { axePlainTypes(module.to_raw()) };
    declared::check(module)?;
    let mut lowering = Lowering::default();
    // What is inside a kernel changes while the kernel does.
    for op in walk::nested(module, &|op| name(op) != axe::KERNEL) {
        if name(op) == axe::KERNEL {
            let function = lowering.kernel(op)?;
            scope::inline(&lowering, function)?;
        }
    }
    let mut gone = Vec::new();
    // The body of a map moves into the tensor that the map becomes.
    for op in walk::nested(module, &|op| name(op) != axe::MAP) {
        if name(op).starts_with("axe.") {
            lowering.operation(op)?;
            gone.push(op);
        }
    }
    for op in walk::nested(module, &|op| !name(op).starts_with("axe.")) {
        if name(op).starts_with("memref.") && lowering.upstream(op)? {
            gone.push(op);
        }
    }
    erase(gone)?;
    for op in walk::nested(module, &|_| true) {
        speculation::define(op)?;
    }
    expand::expand(module)?;
    libm::call(module)?;
    halves::widen(module)
}

impl<'c> Lowering<'c> {
    /// Builds what an operator means in front of it, and gives its results to their users.
    fn operation(&mut self, op: Op<'c>) -> PassResult<'c> {
        let builder = Builder::before(op);
        let name = name(op);
        let value = match name.as_str() {
            axe::GEMM => Some(gemm::gemm(self, &builder, op)?),
            axe::SCALED_GEMM => Some(scaled::gemm(self, &builder, op)?),
            axe::GROUPED_GEMM => Some(grouped::gemm(self, &builder, op)?),
            axe::MAP => Some(tensors::map(&builder, op)?),
            axe::REDUCE => Some(tensors::reduce(&builder, op)?),
            axe::BROADCAST => Some(tensors::broadcast(&builder, op)?),
            axe::TRANSPOSE => Some(tensors::transpose(&builder, op)?),
            axe::CAST => Some(tensors::cast(&builder, op)?),
            axe::MASK => Some(tensors::mask(&builder, op)?),
            axe::EXTRACT_SLICE => Some(tensors::extract_slice(&builder, op)?),
            axe::FILL if op.result_count() == 1 => Some(tensors::fill(&builder, op)?),
            axe::FILL => return self.fill(&builder, op),
            axe::COPY => self.copy(&builder, op)?,
            axe::GATHER => Some(gather::gather(self, &builder, op)?),
            axe::TOP_K => return top_k::top_k(&builder, op),
            axe::ALLOC => return self.alloc(&builder, op),
            axe::LAUNCH => return self.launch(op),
            axe::COMMIT => Some(ops::number(&builder, ops::integer(&builder, 1), 0.0)?),
            // One thread runs a block: nothing is pending and nobody else is to be waited for.
            axe::WAIT | axe::BARRIER | axe::MESH | axe::SLICE | axe::VIEW => None,
            _ => return Err(unknown(op, &name)),
        };
        if let (Some(value), Some(result)) = (value, results(op).first().copied()) {
            replace_all_uses(
                result,
                builder.with_type(value, melior::ir::ValueLike::r#type(&result))?,
            );
        }
        Ok(())
    }
}

/// The error for an operator without a meaning on the host.
fn unknown<'c>(op: Op<'c>, name: &str) -> PassError<'c> {
    let error = PassError::new(
        op.location(),
        format!("'{name}' has no meaning on the CPU target"),
    );
    match name.starts_with("axe.pipeline.") {
        true => error.note("roles run side by side, and one thread runs a block there: plan the kernel for a chip without them, or run it in the simulator (axe sim)"),
        false => error,
    }
}

/// Erases what was lowered, users first.
fn erase<'c>(mut gone: Vec<Op<'c>>) -> PassResult<'c> {
    while !gone.is_empty() {
        let before = gone.len();
        gone = gone
            .into_iter()
            .rev()
            .filter(|op| !walk::erase(*op))
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        if gone.len() == before {
            break;
        }
    }
    let Some(op) = gone.first().copied() else {
        return Ok(());
    };
    let user = results(op)
        .into_iter()
        .filter(|result| is_used(*result))
        .flat_map(crate::ir::value::users)
        .next();
    let (at, user) = user.map_or((op, String::new()), |user| (user, name(user)));
    Err(PassError::new(
        at.location(),
        format!(
            "the CPU target cannot follow storage into '{user}': expected an axe operator, memref.load, memref.store or memref.dim"
        ),
    ))
}
