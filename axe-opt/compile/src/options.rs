//! What to compile for, and how.

use std::path::Path;

/// What a caller asks of a compilation. [`Options::for_target`] is what a target's name alone asks for.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// A chip (`sm_90a`), or `cpu`.
    pub target: &'a str,
    /// The function; `None`: the only one, or the only public one.
    pub function: Option<&'a str>,
    /// Whether the target's assembler is asked for machine code; without, the package has the code as text alone.
    pub assemble: bool,
    /// The assembler's program; `None`: the one that the environment names, or that is found.
    pub assembler: Option<&'a Path>,
    /// The plan that the manifest names, of a tuner's candidate.
    pub candidate: Option<&'a str>,
}

impl<'a> Options<'a> {
    /// The only function, with the assembler that is found.
    #[must_use]
    pub const fn for_target(target: &'a str) -> Self {
        Self {
            target,
            function: None,
            assemble: true,
            assembler: None,
            candidate: None,
        }
    }
}
