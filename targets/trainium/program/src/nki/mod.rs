//! Programs as NKI source, in both generations of the API (nki.isa reference of NKI 0.1 and of 0.6; NKI Migration Guides).
//!
//! | | [`Generation::Old`], `neuronxcc.nki` | [`Generation::New`], `nki` |
//! | --- | --- | --- |
//! | results | calls return tiles | `dst=` comes first |
//! | sums of products | `tile += nisa.nc_matmul(..)` onto `nl.zeros` | `accumulate=` |
//! | loops | `affine_range` where iterations are independent, else `sequential_range` | `range` |
//! | transfers | `nl.load`, `nl.store` | `nisa.dma_copy` |
//! | parts that are no slices | index arrays | `.ap(pattern, offset)` |
//!
//! Names of kernels, tensors, tiles and loops are kept. Where a tile is in SBUF is printed when the program says it
//! (new generation); the vendor's compiler chooses otherwise, and decides how many copies take turns.

mod call;
mod index;
mod loops;
mod printer;

use crate::program::Program;
use crate::walk::Refused;

/// A generation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// `neuronxcc.nki`, NKI 0.1.
    Old,
    /// `nki`, NKI 0.2 and later.
    New,
}

/// The source of a program.
///
/// # Errors
/// A program that breaks a rule, or that has an operation that the generation lacks a form for.
pub fn print(program: &Program, generation: Generation) -> Result<String, Refused> {
    crate::walk::Ready::new(program)?;
    printer::Printer::new(program, generation).kernel()
}

/// A name as Python has it: letters, digits, underscores, not a keyword.
fn identifier(name: &str) -> String {
    const TAKEN: [&str; 42] = [
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield", "nki", "nl", "nisa", "range", "ncc", "nt", "print",
    ];
    let mut text: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if TAKEN.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

/// Python names for a program's buffers and indices, no two the same.
fn names(program: &Program) -> (Vec<String>, Vec<String>) {
    let mut taken = std::collections::BTreeSet::new();
    let mut unique = |name: &str| {
        let name = identifier(name);
        let free = (0..)
            .map(|number| {
                if number == 0 {
                    name.clone()
                } else {
                    format!("{name}_{number}")
                }
            })
            .find(|candidate| !taken.contains(candidate))
            .unwrap_or(name);
        taken.insert(free.clone());
        free
    };
    let buffers = program
        .buffers
        .iter()
        .map(|buffer| unique(&buffer.name))
        .collect();
    let indices = program.indices.iter().map(|index| unique(index)).collect();
    (buffers, indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_python() {
        assert_eq!(identifier("lhsT_tile"), "lhsT_tile");
        assert_eq!(identifier("in"), "in_");
        assert_eq!(identifier("2x-y"), "_2x_y");
    }
}
