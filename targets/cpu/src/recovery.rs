//! What becomes of the process where LLVM's code generator fails.

use std::sync::atomic::{AtomicU8, Ordering};

/// How much of LLVM's failures becomes errors. Numbers are those of `Protect.cpp` and `axe.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Recovery {
    /// Nothing: LLVM ends the process, or calls the handler of fatal errors that the program gave it. For programs that
    /// share their LLVM with the compiler and have such a handler: LLVM holds one, and does not say which.
    None = 0,
    /// What LLVM reports before it would end the process, such as an instruction that it cannot select: while machine code
    /// is made, LLVM's handler of fatal errors is the compiler's. No signal handler is touched.
    #[default]
    Errors = 1,
    /// Crashes too: while machine code is made, the process's handlers of SIGSEGV, SIGABRT and the like are LLVM's.
    Crashes = 2,
}

static CHOSEN: AtomicU8 = AtomicU8::new(Recovery::Errors as u8);

/// Chooses for the whole process, from now on.
pub fn set_recovery(recovery: Recovery) {
    CHOSEN.store(recovery as u8, Ordering::Relaxed);
}

/// What was chosen.
pub(crate) fn recovery() -> Recovery {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => Recovery::None,
        1 => Recovery::Errors,
        _ => Recovery::Crashes,
    }
}
