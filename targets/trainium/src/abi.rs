//! The C ABI of ir/TrnAbi.h: tile types as Rust reads them, and the verifier.

use crate::read;
use axe_passes::PassError;
use axe_passes::ir::Op;
use mlir_sys::{MlirDialectHandle, MlirOperation, MlirType};
use std::panic::{AssertUnwindSafe, catch_unwind};

unsafe extern "C" {
    pub(crate) fn mlirGetDialectHandle__trn__() -> MlirDialectHandle;
    pub(crate) fn trnTypeSpace(r#type: MlirType) -> i32;
    pub(crate) fn trnTypeRank(r#type: MlirType) -> isize;
    pub(crate) fn trnTypeExtent(r#type: MlirType, index: isize) -> i64;
    pub(crate) fn trnTypeElement(r#type: MlirType) -> MlirType;
}

/// Checks an operation by the rules; false after it reported what it breaks.
///
/// # Safety
/// The operation is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trnVerify(operation: MlirOperation) -> bool {
    // SAFETY: promised by the caller.
    let op = unsafe { Op::from_raw(operation) };
    let result = catch_unwind(AssertUnwindSafe(|| read::verify(op)))
        .unwrap_or_else(|_| Err(read::at(op, "internal error in the verifier")));
    result.inspect_err(PassError::emit).is_ok()
}
