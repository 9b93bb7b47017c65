//! The static library behind the C API, the CMake package and the plugin: the dialect and the passes
//! with their C++, and every target. `axe-c/Register.h` declares what it adds.

/// Declares the axes and memory spaces of every target and the bodies of all passes. Calling it again
/// does nothing.
#[unsafe(export_name = "axeRegisterTargets")]
pub extern "C" fn register_targets() {
    axe_targets::register();
}
