//! Building `linalg.generic`s whose loops are given as text.

use crate::error::PassResult;
use crate::ir::{Builder, Op, Val};
use melior::ir::{Region, Type};

/// The loops: what each operand is indexed with, the result's last, and `parallel` or `reduction` for each of them.
pub(super) struct Loops<'a> {
    pub maps: Vec<String>,
    pub kinds: Vec<&'a str>,
}

/// A `linalg.generic` of inputs and an initial value.
///
/// # Errors
/// When building fails.
pub(super) fn generic<'c>(
    builder: &Builder<'c>,
    loops: &Loops<'_>,
    (inputs, init): (&[Val<'c>], Val<'c>),
    (r#type, region): (Type<'c>, Region<'c>),
) -> PassResult<'c, Op<'c>> {
    let kind = |kind: &&str| format!("#linalg.iterator_type<{kind}>");
    let kinds: Vec<_> = loops.kinds.iter().map(kind).collect();
    let number = i32::try_from(inputs.len()).unwrap_or(i32::MAX);
    let attributes = [
        (
            "indexing_maps",
            builder.parsed(&format!("[{}]", loops.maps.join(", ")))?,
        ),
        (
            "iterator_types",
            builder.parsed(&format!("[{}]", kinds.join(", ")))?,
        ),
        builder.segments(&[number, 1]),
    ];
    let all: Vec<_> = inputs.iter().copied().chain([init]).collect();
    builder.operation("linalg.generic", &all, &[r#type], &attributes, vec![region])
}
