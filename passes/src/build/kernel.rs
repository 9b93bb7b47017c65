//! Kernels, and their launch.

use super::{Code, raw_context};
use crate::PassResult;
use crate::ir::{Builder, Val};
use axe_dialect::ops::{self, LaunchOp};
use melior::ir::attribute::{FlatSymbolRefAttribute, IntegerAttribute, StringAttribute};
use melior::ir::{Attribute, BlockRef, Location, Region, Type, TypeLike, ValueLike};
use mlir_sys as sys;

/// A kernel in the making.
#[derive(Debug)]
pub struct Kernel<'c> {
    /// The end of its body.
    pub code: Code<'c>,
    /// Its arguments.
    pub arguments: Vec<Val<'c>>,
    /// CTAs of a cluster, along `x`.
    pub cluster: i64,
    region: Region<'c>,
}

impl<'c> Kernel<'c> {
    /// A kernel with arguments of these types and an empty body.
    pub fn new(location: Location<'c>, module: BlockRef<'c, 'c>, types: &[Type<'c>]) -> Self {
        let (region, arguments, builder) = Builder::at_end(module, location).region(types);
        Self {
            code: Code { builder },
            arguments,
            cluster: 1,
            region,
        }
    }

    /// Adds the kernel to the module.
    ///
    /// # Errors
    /// When MLIR does not build it.
    pub fn finish(self, module: BlockRef<'c, 'c>, name: &str, threads: i64) -> PassResult<'c> {
        let code = self.code;
        let cluster = self.cluster;
        code.builder
            .operation(ops::RETURN, &[], &[], &[], Vec::new())?;
        let builder = Builder::at_end(module, code.builder.location);
        let inputs: Vec<_> = self
            .arguments
            .iter()
            .map(|value| value.r#type().to_raw())
            .collect();
        // SAFETY: the pointer and length are those of a live vector.
        let function: Attribute<'c> = unsafe {
            let context = raw_context(code.builder.location);
            let r#type = sys::mlirFunctionTypeGet(
                context,
                inputs.len() as isize,
                inputs.as_ptr(),
                0,
                std::ptr::null(),
            );
            Attribute::from_raw(sys::mlirTypeAttrGet(r#type))
        };
        let threads = builder.attribute(|context| {
            let i64 = melior::ir::r#type::IntegerType::new(context, 64).into();
            IntegerAttribute::new(i64, threads).into()
        });
        let symbol = builder.attribute(|context| StringAttribute::new(context, name).into());
        let mut attributes = vec![
            ("sym_name", symbol),
            ("function_type", function),
            ("threads", threads),
        ];
        if cluster > 1 {
            attributes.push(("cluster", builder.i64s(&[cluster, 1, 1])));
        }
        builder
            .operation(ops::KERNEL, &[], &[], &attributes, vec![self.region])
            .map(|_| ())
    }
}

/// The launch of a kernel, whose results are those of `outs`.
///
/// # Errors
/// When MLIR does not build it.
pub fn launch<'c>(
    builder: &Builder<'c>,
    name: &str,
    grid: [Val<'c>; 3],
    ins: &[Val<'c>],
    outs: &[Val<'c>],
) -> PassResult<'c, Vec<Val<'c>>> {
    let symbol = builder.attribute(|context| FlatSymbolRefAttribute::new(context, name).into());
    let types: Vec<Type<'c>> = outs.iter().map(|out| out.r#type()).collect();
    let [x, y, z] = grid;
    let operands = LaunchOp::operands(x, y, z, ins, outs);
    let op = builder.operator(&operands, &types, &[("kernel", symbol)])?;
    Ok(crate::ir::value::results(op))
}
