//! Modules as text: where they are from, and how places in them are written.

use crate::diagnostic::FilePosition;
use crate::ffi;
use melior::ir::{Location, Module};
use melior::{Context, StringRef};
use std::ffi::CString;

/// A module's text and the name of the file that it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// What diagnostics call the file; `-` for text that is from none.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(text: &'a str) -> Self {
        Self { name: "-", text }
    }
}

impl<'a> From<&'a String> for Source<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl Source<'_> {
    /// The module; `None`, with diagnostics, when the text does not parse or verify, and without when it has a NUL.
    #[must_use]
    pub fn parse<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        let text = CString::new(self.text).ok()?;
        // SAFETY: the context is live, and the text ends in a NUL.
        unsafe {
            Module::from_option_raw(ffi::axeModuleCreateParse(
                context.to_raw(),
                StringRef::from_c_str(&text).to_raw(),
                StringRef::new(self.name).to_raw(),
            ))
        }
    }
}

/// `file.mlir:3:5`, as editors take it; in MLIR's form for what is in no file.
#[must_use]
pub fn place(location: Location<'_>) -> String {
    file_position(location).map_or_else(
        || location.to_string(),
        |FilePosition { file, line, column }| format!("{file}:{line}:{column}"),
    )
}

/// Where a location is in a file. A call is where its callee is, and fused operations are where the first of them is.
#[must_use]
pub fn file_position(location: Location<'_>) -> Option<FilePosition> {
    if location.is_file_line_col_range() {
        let file = location.file_line_col_range_filename();
        let number = |number| u32::try_from(number).unwrap_or(0);
        return Some(FilePosition {
            file: file.as_string_ref().as_str().ok()?.to_owned(),
            line: number(location.file_line_col_range_start_line()),
            column: number(location.file_line_col_range_start_column()),
        });
    }
    if location.is_name() {
        return file_position(location.name_child_location());
    }
    if location.is_call_site() {
        return file_position(location.call_site_callee());
    }
    let count = match location.is_fused() {
        true => location.fused_num_locations(),
        false => 0,
    };
    (0..count).find_map(|at| file_position(location.fused_location(at)))
}
