//! Code that cannot do what its kernels are for: functions that nobody defines are called, or nothing is written.
//!
//! Neither is expected. LLVM deletes what comes after undefined behaviour, and a kernel without stores is what remains of one
//! that had it on every path; the check costs one pass over the text.

use thiserror::Error;

/// Why PTX is not complete.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// The code calls a function that nothing defines.
    #[error(
        "the kernels call `{0}`, which nothing defines: an operation has no form on this target"
    )]
    Unresolved(String),
    /// A kernel has results and writes none of them.
    #[error(
        "kernel `{0}` writes nothing: it has results, and its code has no store. It executes what is undefined, such as a division of integers by zero, on every path"
    )]
    Silent(String),
}

/// Checks the PTX of kernels, of which those of these symbols have results.
///
/// # Errors
/// What is missing.
pub(crate) fn complete(ptx: &str, writing: &[&str]) -> Result<(), Incomplete> {
    if let Some(name) = unresolved(ptx) {
        return Err(Incomplete::Unresolved(name.to_owned()));
    }
    let silent = |symbol: &&&str| body(ptx, symbol).is_some_and(is_silent);
    match writing.iter().find(silent) {
        Some(symbol) => Err(Incomplete::Silent((*symbol).to_owned())),
        None => Ok(()),
    }
}

/// A function that is declared and not defined (PTX ISA 11.6.1, `.extern`).
fn unresolved(ptx: &str) -> Option<&str> {
    let (_, declared) = ptx.split_once(".extern .func")?;
    let declared = match declared.trim_start().strip_prefix('(') {
        Some(result) => result.split_once(')').map_or(result, |(_, rest)| rest),
        None => declared,
    };
    declared.trim_start().split(['(', ';', '\n', ' ']).next()
}

/// The text from an entry's brace to the next entry: braces of inline assembly stand in it.
fn body<'a>(ptx: &'a str, entry: &str) -> Option<&'a str> {
    let named = |text: &str| {
        text.strip_prefix(entry)
            .is_some_and(|rest| rest.starts_with(['(', '\n', ' ']))
    };
    let mut entries = ptx.split(".entry ").skip(1);
    let text = entries.find(|text| named(text))?;
    text.split_once('{').map(|(_, body)| body)
}

/// Whether no instruction writes global memory.
fn is_silent(body: &str) -> bool {
    !body.lines().any(|line| {
        let mut words = line
            .split_whitespace()
            .filter(|word| !word.starts_with('@'));
        let name = words.next().unwrap_or_default();
        let own = ["st.shared", "st.local", "st.param"];
        [
            "st.",
            "red.",
            "atom.",
            "cp.async.bulk.",
            "cp.reduce.",
            "multimem.",
        ]
        .iter()
        .any(|kind| name.starts_with(kind))
            && !own.iter().any(|space| name.starts_with(space))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".visible .entry one(\n\t.param .u64 p\n)\n{\n\tst.shared.b32 [%r1], %r2;\n\tret;\n}\n\
                       .visible .entry one_more(\n\t.param .u64 p\n)\n{\n\t@%p1 st.global.b32 [%rd1], %r2;\n\tret;\n}\n";

    #[test]
    fn a_kernel_without_stores_is_found() {
        assert!(is_silent(body(PTX, "one").unwrap()));
        assert!(!is_silent(body(PTX, "one_more").unwrap()));
        assert_eq!(body(PTX, "two"), None);
        assert!(is_silent(""));
        assert_eq!(complete(PTX, &["one_more"]), Ok(()));
        let silent = Incomplete::Silent("one".to_owned());
        assert_eq!(complete(PTX, &["one_more", "one"]), Err(silent));
        for line in [
            "atom.global.add.f32 %f1, [%rd1], %f2;",
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];",
        ] {
            assert!(!is_silent(line), "{line}");
        }
    }

    #[test]
    fn what_nobody_defines_is_found() {
        let declared =
            ".extern .func  (.param .b32 func_retval0) __nv_fmodf\n(\n\t.param .b32 a\n)\n;\n";
        assert_eq!(unresolved(declared), Some("__nv_fmodf"));
        assert_eq!(
            unresolved(".extern .func trace(.param .b32 a);"),
            Some("trace")
        );
        assert_eq!(unresolved(PTX), None);
    }
}
