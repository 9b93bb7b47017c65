//! What this library is: `axe_version`, `axe_build`, the targets.

use crate::text::{c_string, view};
use std::ffi::{CString, c_char};
use std::sync::LazyLock;

/// The version of `axe.h`: raised when a program that was compiled with the header before would go wrong.
pub const ABI_VERSION: u32 = 1;

static VERSION: LazyLock<CString> = LazyLock::new(|| c_string(env!("CARGO_PKG_VERSION")));
static BUILD: LazyLock<CString> = LazyLock::new(|| c_string(axe_version::LONG));
static TARGETS: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let chips = axe_targets::chips().into_iter();
    let all = chips.chain([axe_compile::CPU]);
    all.map(c_string).collect()
});

/// The library's version, `MAJOR.MINOR.PATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn axe_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The version of the interface, to compare with the header's `AXE_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn axe_abi_version() -> u32 {
    ABI_VERSION
}

/// The version, the commit and LLVM's version, for people.
#[unsafe(no_mangle)]
pub extern "C" fn axe_build() -> *const c_char {
    BUILD.as_ptr()
}

/// The number of targets.
#[unsafe(no_mangle)]
pub extern "C" fn axe_target_count() -> usize {
    TARGETS.len()
}

/// The name of a target; null for an index that is out of range.
#[unsafe(no_mangle)]
pub extern "C" fn axe_target_name(index: usize) -> *const c_char {
    view(TARGETS.get(index).map(|name| name.as_ptr()))
}

/// The target where none is named.
#[unsafe(no_mangle)]
pub extern "C" fn axe_default_target() -> *const c_char {
    static DEFAULT: LazyLock<CString> = LazyLock::new(|| c_string(axe_compile::default_target()));
    DEFAULT.as_ptr()
}
