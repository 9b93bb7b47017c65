//! Which Axe this is.

/// `0.1.0 (commit 0123456789ab, LLVM 22.1.8)`; `development build` in place of the commit where none was said.
pub const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("AXE_BUILT_FROM"), ")");
