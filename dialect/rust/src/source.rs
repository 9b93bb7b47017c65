//! Modules as text: where they are from, and how places in them are written.

use crate::diagnostic::FilePosition;
use crate::{ffi, text};
use melior::ir::{Location, Module};
use melior::{Context, StringRef};
use mlir_sys::{MlirContext, MlirModule, MlirStringRef};
use std::ffi::CString;
use std::ptr::null_mut;

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
        self.parse_by(context, Parsing::run)
    }

    /// As [`Source::parse`], by what runs the parser.
    pub fn parse_by<'c>(
        &self,
        context: &'c Context,
        runner: impl FnOnce(&mut Parsing),
    ) -> Option<Module<'c>> {
        let text = CString::new(self.text).ok()?;
        if let Some(refusal) = text::refusal(self.text.as_bytes()) {
            self.report(context, &refusal);
            return None;
        }
        let mut parsing = Parsing {
            context: context.to_raw(),
            text: StringRef::from_c_str(&text).to_raw(),
            name: StringRef::new(self.name).to_raw(),
            module: MlirModule { ptr: null_mut() },
        };
        runner(&mut parsing);
        // SAFETY: the module is null or one that nobody else owns.
        unsafe { Module::from_option_raw(parsing.module) }
    }

    /// Gives a refusal as an error of the context.
    fn report(&self, context: &Context, refusal: &text::Refusal) {
        let (line, column) = refusal.line_and_column(self.text.as_bytes());
        let location = Location::new(context, self.name, line, column);
        if let Ok(message) = CString::new(refusal.message.as_str()) {
            // SAFETY: the location is live, and the message ends in a NUL.
            unsafe { mlir_sys::mlirEmitError(location.to_raw(), message.as_ptr()) };
        }
    }
}

/// One call of MLIR's parser. It owns nothing, so that a crash of the parser may jump over it.
pub struct Parsing {
    context: MlirContext,
    text: MlirStringRef,
    name: MlirStringRef,
    module: MlirModule,
}

impl Parsing {
    /// Calls the parser.
    pub fn run(&mut self) {
        // SAFETY: the context and both texts outlive this, as [`Source::parse_by`] makes it; the text ends in a NUL.
        self.module = unsafe { ffi::axeModuleCreateParse(self.context, self.text, self.name) };
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
