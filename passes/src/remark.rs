//! MLIR's optimization remarks.

use melior::StringRef;
use melior::ir::Location;
use mlir_sys::{MlirLocation, MlirStringRef};

unsafe extern "C" {
    fn axeEmitRemark(
        location: MlirLocation,
        kind: i32,
        name: MlirStringRef,
        category: MlirStringRef,
        function: MlirStringRef,
        message: MlirStringRef,
    );
}

/// What a remark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// Something was done.
    Passed = 0,
    /// Something was declined.
    Missed = 1,
    /// A fact.
    Analysis = 2,
}

/// Emits a remark of `category` where the user's remark options ask for it.
pub fn emit(
    location: Location,
    kind: Kind,
    category: &str,
    name: &str,
    function: &str,
    message: &str,
) {
    // SAFETY: all arguments are valid for the call.
    unsafe {
        axeEmitRemark(
            location.to_raw(),
            kind as i32,
            StringRef::new(name).to_raw(),
            StringRef::new(category).to_raw(),
            StringRef::new(function).to_raw(),
            StringRef::new(message).to_raw(),
        );
    }
}
