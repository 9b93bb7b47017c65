//! Descriptors of global memory, and what the accelerator asks of them.

use super::digits::Digit;
use super::{Decline, GRANULE, TmaSwizzle};

/// Dimensions of a descriptor (CUDA driver API, cuTensorMapEncodeTiled: `tensorRank`).
const MAX_RANK: usize = 5;
/// Strides are below this many bytes.
const MAX_STRIDE: i64 = 1 << 40;

/// The part of a tensor map that is known when compiling. Dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The element type, as MLIR writes it.
    pub element: String,
    /// Extents in elements; `None` for the outermost of the argument, when it is known at run time.
    pub extents: Vec<Option<i64>>,
    /// Bytes between elements, of all dimensions but the innermost.
    pub strides: Vec<i64>,
    /// Extents of a box.
    pub r#box: Vec<i64>,
    /// The swizzle.
    pub swizzle: TmaSwizzle,
}

impl TensorMap {
    /// The entries of a launch's `tensor_maps`.
    #[must_use]
    pub fn attributes(&self) -> String {
        let list = |values: &mut dyn Iterator<Item = i64>| {
            let values: Vec<_> = values.map(|value| value.to_string()).collect();
            values.join(", ")
        };
        format!(
            "type = \"{}\", extents = [{}], strides = [{}], box = [{}], swizzle = \"{}\"",
            self.element,
            list(&mut self.extents.iter().map(|extent| extent.unwrap_or(-1))),
            list(&mut self.strides.iter().copied()),
            list(&mut self.r#box.iter().copied()),
            self.swizzle
        )
    }
}

/// The descriptor of ordered digits.
pub(super) fn describe(
    digits: &[Digit],
    extents: &[i64],
    element: &str,
    bytes: i64,
    swizzle: TmaSwizzle,
) -> Result<TensorMap, Decline> {
    if digits.len() > MAX_RANK {
        return Err(Decline::new(format!(
            "the global memory has {} dimensions of more than one element: expected at most {MAX_RANK}",
            digits.len()
        )));
    }
    let strides: Vec<_> = digits
        .iter()
        .skip(1)
        .map(|digit| digit.global.1 * bytes)
        .collect();
    if let Some(stride) = strides
        .iter()
        .find(|stride| **stride <= 0 || **stride % GRANULE != 0 || **stride >= MAX_STRIDE)
    {
        return Err(Decline::new(format!(
            "a stride of {stride} bytes: expected a positive multiple of {GRANULE} below 2^40"
        )));
    }
    let limit = 1_i64 << 32;
    if digits
        .iter()
        .any(|digit| digit.global.0.is_some_and(|extent| extent > limit))
    {
        return Err(Decline::new("an extent of more than 2^32 elements"));
    }
    Ok(TensorMap {
        element: element.to_owned(),
        extents: digits.iter().map(|digit| digit.global.0).collect(),
        strides,
        r#box: extents.to_vec(),
        swizzle,
    })
}
