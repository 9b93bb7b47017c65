//! Descriptors of global memory, and what the accelerator asks of them.

use super::digits::Digit;
use super::{Decline, GRANULE, TmaSwizzle};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Dimensions of a descriptor (CUDA driver API, cuTensorMapEncodeTiled: `tensorRank`).
const MAX_RANK: usize = 5;
/// Strides are below this many bytes.
const MAX_STRIDE: i64 = 1 << 40;

/// The part of a tensor map that is known when compiling. Dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorMap {
    /// The element type, as MLIR writes it.
    pub element: String,
    /// Extents in elements; `None` for the outermost of the argument, when it is known at run time.
    #[serde(with = "extents")]
    pub extents: Vec<Option<i64>>,
    /// Bytes between elements, of all dimensions but the innermost.
    pub strides: Vec<i64>,
    /// Extents of a box.
    pub r#box: Vec<i64>,
    /// The swizzle.
    pub swizzle: TmaSwizzle,
}

/// Extents of which one may be known at run time: `["?", 64]`.
mod extents {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use serde::de::Error;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Extent {
        Known(i64),
        Mark(String),
    }

    pub(super) fn serialize<S: Serializer>(
        extents: &[Option<i64>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let extent = |extent: &Option<i64>| match extent {
            Some(known) => Extent::Known(*known),
            None => Extent::Mark("?".to_owned()),
        };
        serializer.collect_seq(extents.iter().map(extent))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Option<i64>>, D::Error> {
        let extent = |extent| match extent {
            Extent::Known(known) => Ok(Some(known)),
            Extent::Mark(mark) if mark == "?" => Ok(None),
            Extent::Mark(_) => Err(D::Error::custom("expected integers, or \"?\"")),
        };
        let written = Vec::<Extent>::deserialize(deserializer)
            .map_err(|_| D::Error::custom("expected integers, or \"?\""))?;
        written.into_iter().map(extent).collect()
    }
}

impl TensorMap {
    /// Checks what the accelerator asks of descriptors.
    ///
    /// # Errors
    /// The limit that is not kept.
    pub(super) fn check_limits(&self) -> Result<(), Decline> {
        let rank = self.extents.len();
        if rank > MAX_RANK {
            return Err(Decline::new(format!(
                "the global memory has {rank} dimensions of more than one element: expected at most {MAX_RANK}"
            )));
        }
        let is_wrong =
            |stride: &&i64| **stride <= 0 || **stride % GRANULE != 0 || **stride >= MAX_STRIDE;
        if let Some(stride) = self.strides.iter().find(is_wrong) {
            return Err(Decline::new(format!(
                "a stride of {stride} bytes: expected a positive multiple of {GRANULE} below 2^40"
            )));
        }
        let limit = 1_i64 << 32;
        match self.extents.iter().flatten().any(|extent| *extent > limit) {
            true => Err(Decline::new("an extent of more than 2^32 elements")),
            false => Ok(()),
        }
    }

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
    let strides = digits.iter().skip(1);
    let map = TensorMap {
        element: element.to_owned(),
        extents: digits.iter().map(|digit| digit.global.0).collect(),
        strides: strides.map(|digit| digit.global.1 * bytes).collect(),
        r#box: extents.to_vec(),
        swizzle,
    };
    map.check_limits()?;
    Ok(map)
}
