//! Modules that the command line names.

use axe_compile::Source;
use std::io;
use std::path::Path;

/// A module's text, and the name that it was asked for by.
pub struct ModuleFile {
    name: String,
    text: String,
}

impl ModuleFile {
    /// Reads a file, or standard input when the path is `-`.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match path.as_os_str() == "-" {
            true => io::read_to_string(io::stdin())?,
            false => std::fs::read_to_string(path)?,
        };
        Ok(Self {
            name: path.display().to_string(),
            text,
        })
    }

    /// What the compiler takes.
    pub fn source(&self) -> Source<'_> {
        Source {
            name: &self.name,
            text: &self.text,
        }
    }
}
