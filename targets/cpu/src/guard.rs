//! A parser that crashes ends a driver with an error.
//!
//! What of MLIR's parser is known to crash is refused before it is called ([`axe_dialect::text`]). For what is not known,
//! drivers survive the signal. A library in another program does not: the handlers are the process's.

use crate::engine::protected;
use axe_dialect::Parsing;
use std::ffi::{c_int, c_void};

/// Makes a crash of MLIR's parser, from now on, the end of the process with an error message and the exit code 1: for
/// drivers.
pub fn exit_where_the_parser_crashes() {
    axe_context::set_parser_runner(run);
}

fn run(parsing: &mut Parsing, name: &str) {
    extern "C" fn work(data: *mut c_void) {
        // SAFETY: the data is the call of the parser that `run` gives.
        unsafe { (*data.cast::<Parsing>()).run() };
    }
    unsafe extern "C" {
        fn _exit(code: c_int) -> !;
    }
    // SAFETY: a call of the parser has nothing to drop.
    if let Err(reason) = unsafe { protected(work, parsing) } {
        eprintln!("{name}: error: MLIR's parser does not survive this text: {reason}");
        // What the parser held is lost, locks of the context too: nothing may be cleaned up.
        // SAFETY: it only ends the process.
        unsafe { _exit(1) }
    }
}
