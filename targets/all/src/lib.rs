//! The targets of this build, in one list: axe-opt, axe, the plugin and the C API have the same.
//!
//! A new target adds itself here: how it registers with the passes, and its toolchain where packages are made for it.

use axe_toolchain::Toolchain;
use std::sync::Once;

/// A target of this build.
struct Target {
    /// Declares its axes and memory spaces, and registers it with the passes.
    register: fn(),
    /// How packages are made for it, where they are.
    toolchain: Option<&'static dyn Toolchain>,
}

/// All of them; passes without a chip take the first one's.
const TARGETS: [Target; 2] = [
    Target {
        register: axe_nvidia::register,
        toolchain: Some(axe_nvidia::TOOLCHAIN),
    },
    Target {
        register: axe_trainium::register,
        toolchain: Some(axe_trainium::TOOLCHAIN),
    },
];

/// Registers the bodies of all passes and every target, before any IR is parsed. Calling it again does nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        axe_passes::register();
        for target in TARGETS {
            (target.register)();
        }
    });
}

/// The toolchain of the target that has the chip.
#[must_use]
pub fn toolchain(chip: &str) -> Option<&'static dyn Toolchain> {
    let mut toolchains = TARGETS.into_iter().filter_map(|target| target.toolchain);
    toolchains.find(|toolchain| toolchain.chips().contains(&chip))
}

/// The chip that is meant where none is named: the first target's own.
#[must_use]
pub fn default_chip() -> &'static str {
    register();
    axe_passes::target::default_chip()
}

/// The chips that packages are made for.
#[must_use]
pub fn chips() -> Vec<&'static str> {
    let toolchains = TARGETS.into_iter().filter_map(|target| target.toolchain);
    toolchains.flat_map(|toolchain| toolchain.chips()).collect()
}
