//! The C API, in two libraries of this one crate:
//!
//! * `libaxe.so` (`axe.h`): the compiler, the layout algebra and the simulator for any program, with an MLIR of its own
//!   inside that nobody sees. It exports `axe_*` alone;
//! * `libaxe_ffi.a` (`axe-c/`, `axe/`): the same and the dialect and the passes with their C++, for programs that have
//!   MLIR already and share it. The plugin for `mlir-opt` and the CMake package are made of it.
//!
//! Functions are documented for their callers in the headers.

mod compile;
mod failure;
mod handle;
mod layout;
mod package;
mod simulate;
mod text;
mod version;

/// Declares the axes and memory spaces of every target and the bodies of all passes. Calling it again
/// does nothing.
#[unsafe(export_name = "axeRegisterTargets")]
pub extern "C" fn register_targets() {
    axe_targets::register();
}

/// Registers all that a program needs that compiles with Axe.
///
/// # Safety
/// The registry is null, which does nothing, or live.
#[unsafe(export_name = "axeRegisterAll")]
pub unsafe extern "C" fn register_all(registry: mlir_sys::MlirDialectRegistry) {
    if registry.ptr.is_null() {
        return;
    }
    // SAFETY: promised by the caller.
    unsafe { axe_context::register_all_raw(registry) };
}
