//! Why a pass failed, and where.

use axe_dialect::{Diagnostic, Diagnostics};
use melior::ir::Location;

/// A failure at a place in the IR.
#[derive(Clone, Debug)]
pub struct PassError<'c> {
    /// Where.
    pub location: Location<'c>,
    /// What was expected, what was found, and what to do.
    pub message: String,
    /// Further facts, each printed as a note: the declines of schedules, say.
    pub notes: Vec<String>,
}

impl<'c> PassError<'c> {
    /// A failure with a message.
    #[must_use]
    pub fn new(location: Location<'c>, message: impl Into<String>) -> Self {
        Self {
            location,
            message: message.into(),
            notes: Vec::new(),
        }
    }

    /// The same failure with one more note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Emits the failure as an MLIR error diagnostic.
    pub fn emit(&self) {
        let text = self
            .notes
            .iter()
            .fold(self.message.clone(), |text, note| text + "\n  " + note);
        let Ok(text) = std::ffi::CString::new(text.replace('\0', "")) else {
            return;
        };
        // SAFETY: the location is valid and the message is terminated.
        unsafe { mlir_sys::mlirEmitError(self.location.to_raw(), text.as_ptr()) };
    }
}

impl From<PassError<'_>> for Diagnostics {
    /// The error, and its notes at the same place.
    fn from(error: PassError<'_>) -> Self {
        let notes = error.notes.into_iter();
        let notes = notes.map(|note| Diagnostic::note(error.location, note));
        let first = Diagnostic::error(error.location, error.message);
        Self(std::iter::once(first).chain(notes).collect())
    }
}

/// A failure for several: all but the last are emitted here.
///
/// # Errors
/// The last, where there is one.
pub fn all<'c>(mut failures: Vec<PassError<'c>>) -> PassResult<'c> {
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    failures.iter().for_each(PassError::emit);
    Err(last)
}

/// The result of a pass, or of a step in it.
pub type PassResult<'c, T = ()> = Result<T, PassError<'c>>;
