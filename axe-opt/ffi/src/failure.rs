//! Failures as values: a status, and an `axe_error` for whoever wants to know more.

use crate::handle::{self, Object, Opaque};
use crate::text::{c_string, view};
use axe_compile::CompileError;
use axe_dialect::diagnostic::Severity;
use axe_layout::Kind;
use axe_package::PackageError;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `axe_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// An argument is not what the function takes.
    InvalidArgument = 1,
    /// The module does not compile.
    Compile = 2,
    /// The target is not known.
    UnknownTarget = 3,
    /// The assembler failed, or gave up what the code is written for.
    Assembler = 4,
    /// Bytes or a file that are no package.
    InvalidPackage = 5,
    /// A kernel did in the simulator what ends it.
    Simulation = 6,
    /// It is proven that there is no answer.
    NoAnswer = 7,
    /// An answer would need numbers beyond 64 bits.
    Overflow = 8,
    /// The library does not decide the question.
    Unsupported = 9,
    /// The operating system refused.
    System = 10,
    /// A fault of the library.
    Internal = 11,
}

/// `axe_diagnostic`.
#[repr(C)]
#[derive(Debug)]
pub struct RawDiagnostic {
    severity: i32,
    file: *const c_char,
    line: u32,
    column: u32,
    location: *const c_char,
    message: *const c_char,
}

#[derive(Debug)]
struct Diagnostic {
    severity: Severity,
    file: Option<(CString, u32, u32)>,
    location: CString,
    message: CString,
}

impl Diagnostic {
    fn of(of: &axe_dialect::Diagnostic) -> Self {
        let position = of.position.as_ref();
        Self {
            severity: of.severity,
            file: position.map(|at| (c_string(&at.file), at.line, at.column)),
            location: c_string(&of.location),
            message: c_string(&of.message),
        }
    }

    /// As C reads it: the pointers live as long as the error.
    fn raw(&self) -> RawDiagnostic {
        let (file, line, column) = match &self.file {
            Some((file, line, column)) => (file.as_ptr(), *line, *column),
            None => (std::ptr::null(), 0, 0),
        };
        RawDiagnostic {
            severity: match self.severity {
                Severity::Error => 0,
                Severity::Warning => 1,
                Severity::Remark => 2,
                Severity::Note => 3,
            },
            file,
            line,
            column,
            location: self.location.as_ptr(),
            message: self.message.as_ptr(),
        }
    }
}

/// Why a function failed; as an object, `axe_error`.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    message: CString,
    diagnostics: Vec<Diagnostic>,
}

impl Object for Failure {
    const NAME: &'static str = "axe_error";
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl AsRef<str>) -> Self {
        Self {
            status,
            message: c_string(message.as_ref()),
            diagnostics: Vec::new(),
        }
    }

    /// An argument is not what the function takes.
    pub(crate) fn argument(message: impl AsRef<str>) -> Self {
        Self::new(Status::InvalidArgument, message)
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        let status = match &error {
            CompileError::Target(..) => Status::UnknownTarget,
            CompileError::Assembler(_) => Status::Assembler,
            CompileError::Package(_) => Status::Internal,
            _ => Status::Compile,
        };
        Self {
            diagnostics: error.diagnostics().iter().map(Diagnostic::of).collect(),
            ..Self::new(status, error.to_string())
        }
    }
}

impl From<PackageError> for Failure {
    fn from(error: PackageError) -> Self {
        let status = match &error {
            PackageError::Io { .. } | PackageError::Occupied(_) => Status::System,
            _ => Status::InvalidPackage,
        };
        Self::new(status, error.to_string())
    }
}

impl From<axe_layout::Error> for Failure {
    fn from(error: axe_layout::Error) -> Self {
        let status = match error.kind() {
            Kind::None => Status::NoAnswer,
            Kind::Invalid => Status::InvalidArgument,
            Kind::Overflow => Status::Overflow,
            Kind::Unsupported => Status::Unsupported,
        };
        Self::new(status, error.to_string())
    }
}

/// Does the work of a function of the C API. A failure goes to `error` unless that is null, and its status to the
/// caller; a panic is a failure too.
pub(crate) fn call(
    error: *mut *mut Opaque<Failure>,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    // SAFETY: the caller of the C API gives a place for a handle, or null.
    let give = |handle| unsafe {
        if !error.is_null() {
            error.write_unaligned(handle);
        }
    };
    give(std::ptr::null_mut());
    let done = catch_unwind(AssertUnwindSafe(work));
    let done =
        done.unwrap_or_else(|_| Err(Failure::new(Status::Internal, "internal error in libaxe")));
    match done {
        Ok(()) => Status::Ok,
        Err(failure) => {
            let status = failure.status;
            give(handle::new(failure));
            status
        }
    }
}

/// The status of an error; `AXE_ERROR_INVALID_ARGUMENT` for what is none.
#[unsafe(no_mangle)]
pub extern "C" fn axe_error_status(error: *const Opaque<Failure>) -> Status {
    handle::find(error).map_or(Status::InvalidArgument, |error| error.status)
}

/// What happened, and what to do; null for what is no error.
#[unsafe(no_mangle)]
pub extern "C" fn axe_error_message(error: *const Opaque<Failure>) -> *const c_char {
    view(handle::find(error).map(|error| error.message.as_ptr()))
}

/// The number of diagnostics of an error; 0 for what is none.
#[unsafe(no_mangle)]
pub extern "C" fn axe_error_diagnostic_count(error: *const Opaque<Failure>) -> usize {
    handle::find(error).map_or(0, |error| error.diagnostics.len())
}

/// Gives a diagnostic of an error.
///
/// # Safety
/// `diagnostic` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn axe_error_diagnostic(
    error: *const Opaque<Failure>,
    index: usize,
    diagnostic: *mut RawDiagnostic,
) -> Status {
    call(std::ptr::null_mut(), || {
        let error = handle::get(error, "error")?;
        let found = item(&error.diagnostics, index, "diagnostic")?.raw();
        // SAFETY: promised by the caller.
        unsafe { crate::text::give(diagnostic, found, "diagnostic") }
    })
}

/// The item at an index.
///
/// # Errors
/// An index that is out of range.
pub(crate) fn item<'a, T>(items: &'a [T], index: usize, what: &str) -> Result<&'a T, Failure> {
    items.get(index).ok_or_else(|| {
        Failure::argument(format!(
            "{what} {index}: expected an index below {}",
            items.len()
        ))
    })
}

/// Frees an error.
#[unsafe(no_mangle)]
pub extern "C" fn axe_error_free(error: *mut Opaque<Failure>) {
    handle::free(error.cast_const());
}
