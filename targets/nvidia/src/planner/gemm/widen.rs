//! Products of 8-bit floats that no instruction of the chip takes: their operands are widened to f16, which has each
//! of their values, and the product is planned as any other of f16.

use super::product::Gemm;
use crate::facts::chip::Chip;
use crate::planner::choose::CATEGORY;
use crate::planner::knobs::Mainloop;
use crate::planner::problem::Unit;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::ir::value::name;
use axe_passes::ir::{Builder, Op, Val};
use axe_passes::remark::{self, Kind};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use mlir_sys as sys;

/// Widens the operands of the products among `ops` that are neither by wgmma nor asked to be.
///
/// # Errors
/// At a product whose extents or types are not supported.
pub(in crate::planner) fn widen<'c>(ops: &[Op<'c>], chip: &'static Chip) -> PassResult<'c> {
    for op in ops.iter().filter(|op| name(**op) == ops::GEMM) {
        let gemm = Gemm::read(*op, chip)?;
        if !gemm.is_float8() {
            continue;
        }
        let reason = match (gemm.asked.mainloop(), gemm.admits_wgmma(chip)) {
            (Some(Mainloop::Wgmma), _) | (None, Ok(())) if gemm.unit == Unit::Byte => continue,
            (Some(Mainloop::Mma), _) => "asked for".to_owned(),
            (_, Err(reason)) => reason,
            (_, Ok(())) => continue,
        };
        let message = format!("not by wgmma: {reason}; operands widened to f16");
        remark::emit(
            op.location(),
            Kind::Missed,
            CATEGORY,
            "float8",
            "",
            &message,
        );
        for (at, operand) in (0..).zip([gemm.a, gemm.b]) {
            let wide = half(&Builder::before(*op), operand)?;
            // SAFETY: the operator has two operands at least.
            unsafe { sys::mlirOperationSetOperand(op.to_raw(), at, wide.to_raw()) };
        }
    }
    Ok(())
}

/// The tensor in f16.
fn half<'c>(builder: &Builder<'c>, tensor: Val<'c>) -> PassResult<'c, Val<'c>> {
    let f16 = builder.r#type(|context| Type::float16(context));
    let shape = builder.tensor_of(tensor)?.shape;
    let r#type = builder.tensor(&shape, f16)?;
    builder.value(ops::CAST, &[tensor], r#type, &[])
}
