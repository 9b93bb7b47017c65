//! Errors as values of C.

use axe_runtime::{RuntimeError, exit_code};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use thiserror::Error;

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The caller's arguments make no sense.
    #[error("{0}")]
    Argument(String),
    /// The runtime's.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// An error of the API.
pub struct AxertError {
    code: c_int,
    message: CString,
}

/// `AXERT_INVALID_ARGUMENT`.
const ARGUMENT: c_int = 1;
/// `AXERT_INVALID_PACKAGE`.
const PACKAGE: c_int = 2;
/// `AXERT_NO_DEVICE`.
const NO_DEVICE: c_int = 3;
/// `AXERT_CUDA`.
const CUDA: c_int = 4;
/// `AXERT_INTERNAL`.
const INTERNAL: c_int = 5;

impl Failure {
    fn code(&self) -> c_int {
        let Self::Runtime(error) = self else {
            return ARGUMENT;
        };
        match error {
            RuntimeError::Memory { .. } => ARGUMENT,
            _ => match error.exit_code() {
                exit_code::NO_DEVICE => NO_DEVICE,
                exit_code::CUDA => CUDA,
                exit_code::USAGE => ARGUMENT,
                _ => PACKAGE,
            },
        }
    }
}

fn error(code: c_int, message: &str) -> *mut AxertError {
    let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    Box::into_raw(Box::new(AxertError { code, message }))
}

/// Does `work`; a panic is an error of its own kind.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> *mut AxertError {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(failure)) => error(failure.code(), &failure.to_string()),
        Err(_) => error(INTERNAL, "a defect of the library: it panicked"),
    }
}

/// The text at `at`.
///
/// # Safety
/// NULL, or a string that ends in a zero.
pub(crate) unsafe fn text<'a>(at: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if at.is_null() {
        return Err(Failure::Argument(format!("{what} is NULL")));
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(at) }.to_str();
    text.map_err(|error| Failure::Argument(format!("{what}: {error}")))
}

/// See axert.h.
///
/// # Safety
/// NULL, or an error that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertErrorCode(error: *const AxertError) -> c_int {
    // SAFETY: by this function's contract.
    unsafe { error.as_ref() }.map_or(0, |error| error.code)
}

/// See axert.h.
///
/// # Safety
/// NULL, or an error that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertErrorMessage(error: *const AxertError) -> *const c_char {
    // SAFETY: by this function's contract.
    unsafe { error.as_ref() }.map_or(null(), |error| error.message.as_ptr())
}

/// See axert.h.
///
/// # Safety
/// NULL, or an error that is not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axertErrorDestroy(error: *mut AxertError) {
    if !error.is_null() {
        // SAFETY: made by `error`, destroyed once.
        drop(unsafe { Box::from_raw(error) });
    }
}
