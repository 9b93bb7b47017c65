//! The drivers: axe-opt and axe.

use std::ffi::{CString, OsString, c_char, c_int};

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
