//! The C ABI of cpp/PassAbi.h: how a pass object calls its body.

use crate::error::PassError;
use crate::pipeline;
use crate::registry::{self, PassContext};
use crate::target;
use melior::StringRef;
use melior::ir::operation::OperationLike;
use melior::ir::{Location, OperationRef};
use mlir_sys::{MlirDialectRegistry, MlirOperation, MlirStringCallback, MlirStringRef};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One option of a pass; `AxePassOption` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PassOption {
    name: MlirStringRef,
    value: MlirStringRef,
}

/// Adds to a statistic; `AxeStatisticSink` in C.
pub type StatisticSink = unsafe extern "C" fn(name: MlirStringRef, count: i64, pass: *mut c_void);

unsafe extern "C" {
    /// Registers the passes with MLIR's command line.
    fn axeRegisterPasses();
}

/// Registers every pass of axe with MLIR, for textual pipelines; pipelines are registered with their targets.
pub fn register_passes() {
    // SAFETY: registration has no preconditions.
    unsafe { axeRegisterPasses() };
}

/// The text of a string; empty when it is not UTF-8.
///
/// # Safety
/// The string is valid, and outlives `'a`.
unsafe fn text<'a>(raw: MlirStringRef) -> &'a str {
    // melior reads the byte before the end, which an empty string does not have.
    if raw.length == 0 {
        return "";
    }
    // SAFETY: promised by the caller.
    unsafe { StringRef::from_raw(raw) }.as_str().unwrap_or("")
}

/// # Safety
/// `options` is valid for `count` elements whose strings outlive `'a`.
unsafe fn options<'a>(options: *const PassOption, count: isize) -> Vec<(&'a str, &'a str)> {
    let Ok(count) = usize::try_from(count) else {
        return Vec::new();
    };
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: promised by the caller.
    unsafe {
        std::slice::from_raw_parts(options, count)
            .iter()
            .map(|option| (text(option.name), text(option.value)))
            .collect()
    }
}

/// Inserts the dialects that the registered targets build operations of, and the models that their pipelines need.
///
/// # Safety
/// The registry is valid for the duration of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeTargetDialects(registry: MlirDialectRegistry) {
    target::add_dialects(registry);
}

/// Runs the body of a pass; false after an error diagnostic.
///
/// # Safety
/// All arguments are valid for the duration of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axeRunPass(
    name: MlirStringRef,
    operation: MlirOperation,
    option_count: isize,
    raw_options: *const PassOption,
    sink: StatisticSink,
    pass: *mut c_void,
) -> bool {
    // SAFETY: promised by the caller.
    let (name, operation, options) = unsafe {
        (
            StringRef::from_raw(name),
            OperationRef::from_raw(operation),
            options(raw_options, option_count),
        )
    };
    let name = name.as_str().unwrap_or("");
    // SAFETY: the sink takes any name; `pass` is its own.
    let mut add = |name: &str, count| unsafe { sink(StringRef::new(name).to_raw(), count, pass) };
    let location: Location = operation.location();
    let run = AssertUnwindSafe(|| match registry::body(name) {
        Some(body) => body(operation, &mut PassContext::new(options, &mut add)),
        None => Err(PassError::new(
            location,
            format!(
                "pass '{name}' has no body: register the targets first (axe::registerAll, axeRegisterTargets)"
            ),
        )),
    });
    let result = catch_unwind(run).unwrap_or_else(|_| {
        Err(PassError::new(
            location,
            format!("internal error in pass '{name}'"),
        ))
    });
    result.inspect_err(PassError::emit).is_ok()
}
/// Gives the text of a pipeline to `sink`; false, with a message given to `sink`, when options do not fit.
///
/// # Safety
/// All arguments are valid for the duration of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axePipelineText(
    name: MlirStringRef,
    option_count: isize,
    raw_options: *const PassOption,
    sink: MlirStringCallback,
    user: *mut c_void,
) -> bool {
    // SAFETY: promised by the caller.
    let (name, options) = unsafe {
        (
            StringRef::from_raw(name),
            options(raw_options, option_count),
        )
    };
    let name = name.as_str().unwrap_or("");
    let text = catch_unwind(AssertUnwindSafe(|| pipeline::text(name, &options)))
        .unwrap_or_else(|_| Err("internal error".into()));
    let succeeded = text.is_ok();
    let text = text.unwrap_or_else(|message| message);
    if let Some(sink) = sink {
        // SAFETY: the sink takes any text; `user` is its own.
        unsafe { sink(StringRef::new(&text).to_raw(), user) };
    }
    succeeded
}
