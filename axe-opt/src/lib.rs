//! The drivers: axe-opt and axe.

use std::ffi::{CString, c_char, c_int};

unsafe extern "C" {
    fn axeOptMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn axeLspServerMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
}

/// Calls a C `main` with the arguments of this process.
fn call_main(main: unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int) -> i32 {
    use std::os::unix::ffi::OsStringExt;
    let arguments: Vec<CString> = std::env::args_os()
        .filter_map(|argument| CString::new(argument.into_vec()).ok())
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

/// `axe-opt`: mlir-opt's command line.
#[must_use]
pub fn opt_main() -> i32 {
    axe_targets::register();
    call_main(axeOptMain)
}

/// `axe-lsp-server`: the language server of MLIR, which knows axe.
#[must_use]
pub fn lsp_server_main() -> i32 {
    axe_targets::register();
    call_main(axeLspServerMain)
}
