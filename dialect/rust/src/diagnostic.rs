//! Diagnostics of MLIR as values.

use crate::source::{file_position, place};
use melior::Context;
use melior::diagnostic::DiagnosticSeverity;
use melior::ir::Location;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// What was asked for was not done.
    Error,
    /// It was done, and may not be what is wanted.
    Warning,
    /// A fact.
    Remark,
    /// Belongs to the diagnostic before it.
    Note,
}

impl Severity {
    /// Its name in compilers' output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Remark => "remark",
            Self::Note => "note",
        }
    }
}

/// A place in a file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The file, by the name that the module was parsed under or that its locations give.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// What a compiler says of a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// How much it weighs.
    pub severity: Severity,
    /// Where, as text: `file.mlir:3:5`, or MLIR's form of what is in no file; empty where nobody knows.
    pub location: String,
    /// Where, in a file.
    pub position: Option<FilePosition>,
    /// What was expected, what was found, and what to do.
    pub message: String,
}

impl Diagnostic {
    /// An error at a location.
    #[must_use]
    pub fn error(location: Location<'_>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, location, message.into())
    }

    /// A note at a location.
    #[must_use]
    pub fn note(location: Location<'_>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, location, message.into())
    }

    fn new(severity: Severity, location: Location<'_>, message: String) -> Self {
        Self {
            severity,
            location: place(location),
            position: file_position(location),
            message,
        }
    }

    fn of(diagnostic: &melior::diagnostic::Diagnostic<'_>) -> Self {
        let severity = match diagnostic.severity() {
            DiagnosticSeverity::Error => Severity::Error,
            DiagnosticSeverity::Warning => Severity::Warning,
            DiagnosticSeverity::Remark => Severity::Remark,
            DiagnosticSeverity::Note => Severity::Note,
        };
        Self::new(severity, diagnostic.location(), diagnostic.to_string())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location.as_str() {
            "" => f.write_str(&self.message),
            location => write!(f, "{location}: {}: {}", self.severity.name(), self.message),
        }
    }
}

/// Diagnostics in order, each followed by its notes; as text, one a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, diagnostic) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{diagnostic}")?;
        }
        Ok(())
    }
}

impl From<String> for Diagnostics {
    /// One error that has no place.
    fn from(message: String) -> Self {
        Self(vec![Diagnostic {
            severity: Severity::Error,
            location: String::new(),
            position: None,
            message,
        }])
    }
}

/// Does `work`, and gives what it reports where it gives nothing.
///
/// # Errors
/// The diagnostics.
pub fn reported<T>(context: &Context, work: impl FnOnce() -> Option<T>) -> Result<T, Diagnostics> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&all);
    let handler = context.attach_diagnostic_handler(move |diagnostic| {
        let mut all = sink.borrow_mut();
        all.push(Diagnostic::of(&diagnostic));
        let notes = (0..diagnostic.note_count()).filter_map(|at| diagnostic.note(at).ok());
        all.extend(notes.map(|note| Diagnostic::of(&note)));
        true
    });
    let done = work();
    context.detach_diagnostic_handler(handler);
    done.ok_or_else(|| Diagnostics(all.take()))
}
