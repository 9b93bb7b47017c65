//! The drivers: axe-opt and axe.

use mlir_sys::{MlirStringCallback, MlirStringRef};
use std::ffi::{CString, OsString, c_char, c_int, c_void};

unsafe extern "C" {
    fn axeOptMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn axeLspServerMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

/// Calls a C `main` with a command line.
fn call_main(
    main: unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int,
    arguments: &[OsString],
) -> i32 {
    use std::os::unix::ffi::OsStrExt;
    let arguments: Vec<CString> = arguments
        .iter()
        .filter_map(|argument| CString::new(argument.as_bytes()).ok())
        .collect();
    let mut pointers: Vec<*mut c_char> = arguments
        .iter()
        .map(|argument| argument.as_ptr().cast_mut())
        .collect();
    let Ok(count) = c_int::try_from(pointers.len()) else {
        return 1;
    };
    pointers.push(std::ptr::null_mut());
    // SAFETY: `pointers` is an argument vector as C has it; the strings outlive the call.
    unsafe { main(count, pointers.as_mut_ptr()) }
}

/// `axe-opt`: mlir-opt's command line, the program's name first; the exit code. To be called once in a process: MLIR's
/// options are global.
#[must_use]
pub fn opt_main(arguments: &[OsString]) -> i32 {
    axe_targets::register();
    call_main(axeOptMain, arguments)
}

/// `axe-lsp-server`: the language server of MLIR, which knows axe.
#[must_use]
pub fn lsp_server_main(arguments: &[OsString]) -> i32 {
    axe_targets::register();
    call_main(axeLspServerMain, arguments)
}

/// What in a text MLIR's parser would not survive, given to `tell`: the byte where it is, or -1 ([`axe_dialect::text`]).
///
/// # Safety
/// The text is live, and `tell` takes `user`.
#[unsafe(no_mangle)]
unsafe extern "C" fn axeRefusal(
    text: MlirStringRef,
    tell: MlirStringCallback,
    user: *mut c_void,
) -> i64 {
    if text.data.is_null() || text.length == 0 {
        return -1;
    }
    // SAFETY: the text is live, as the caller says, and of bytes.
    let text = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    let Some(refusal) = axe_dialect::text::refusal(text) else {
        return -1;
    };
    let message = melior::StringRef::new(&refusal.message);
    if let Some(tell) = tell {
        // SAFETY: the message is live during the call, and `user` is what `tell` takes.
        unsafe { tell(message.to_raw(), user) };
    }
    i64::try_from(refusal.at).unwrap_or(-1)
}
