//! PTX text: lexer, syntax tree and parser.

pub mod ast;
mod lexer;
mod parser;

pub(crate) use parser::type_bytes;

use thiserror::Error;

/// A place in PTX text that the parser or decoder refuses, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("PTX line {line}, column {column}: {message}")]
pub struct PtxError {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What was expected and what was found.
    pub message: String,
    /// Whether this is PTX that the simulator does not execute, rather than no PTX.
    pub unsupported: bool,
}

/// Parses a PTX module into its syntax tree.
///
/// # Errors
/// The first place that is not PTX, with its line and column.
pub fn parse(text: &str) -> Result<ast::Module, PtxError> {
    parser::Parser::new(text)?.module()
}
