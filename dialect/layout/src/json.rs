//! The JSON form of layouts, axes, iters, coordinates and swizzles in the exchange format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::axis::Axis;
use crate::coord::Coord;
use crate::iter::{DYNAMIC, Iter};
use crate::layout::Layout;
use crate::swizzle::Swizzle;

impl Serialize for Axis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::new(&name).map_err(de::Error::custom)
    }
}

/// An extent, or the end of a range: a number, or `"?"` for [`DYNAMIC`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent(pub(crate) i64);

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == DYNAMIC {
            return serializer.serialize_str("?");
        }
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentVisitor)
    }
}

struct ExtentVisitor;

impl de::Visitor<'_> for ExtentVisitor {
    type Value = Extent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or \"?\"")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Extent, E> {
        if value == DYNAMIC {
            return Err(E::custom("expected an extent >= 1"));
        }
        Ok(Extent(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Extent, E> {
        let fits = i64::try_from(value).map(Extent);
        fits.map_err(|_| E::custom(format!("{value} does not fit a 64-bit integer")))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
        if text == "?" {
            return Ok(Extent(DYNAMIC));
        }
        Err(E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// The extents of a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Extent>")]
pub(crate) struct Extents(Vec<i64>);

impl From<Vec<Extent>> for Extents {
    fn from(extents: Vec<Extent>) -> Self {
        Self(extents.into_iter().map(|extent| extent.0).collect())
    }
}

impl Deref for Extents {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl AsRef<[i64]> for Extents {
    fn as_ref(&self) -> &[i64] {
        &self.0
    }
}

/// A list of extents in the exchange format.
#[cfg(feature = "cli")]
pub(crate) fn extents(values: &[i64]) -> Vec<Extent> {
    values.iter().copied().map(Extent).collect()
}

impl Serialize for Iter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (Extent(self.extent), self.stride, self.axis).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Iter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (extent, stride, axis) = <(Extent, i64, Axis)>::deserialize(deserializer)?;
        Ok(Self::new(extent.0, stride, axis))
    }
}

impl Serialize for Coord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Coord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let terms = BTreeMap::<Axis, i64>::deserialize(deserializer)?;
        Self::from_terms(terms).map_err(de::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
struct SwizzleParts {
    per_element: u32,
    swizzle_len: u32,
    atom_len: u32,
    #[serde(default = "inner_by_default")]
    inner: bool,
}

const fn inner_by_default() -> bool {
    true
}

impl Serialize for Swizzle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = SwizzleParts {
            per_element: self.base(),
            swizzle_len: self.bits(),
            atom_len: self.shift(),
            inner: self.inner(),
        };
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Swizzle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = SwizzleParts::deserialize(deserializer)?;
        Self::new(
            parts.swizzle_len,
            parts.per_element,
            parts.atom_len,
            parts.inner,
        )
        .map_err(de::Error::custom)
    }
}

#[derive(Serialize)]
struct PartsOut<'a> {
    shard: &'a [Iter],
    replica: &'a [Iter],
    offset: &'a Coord,
    swizzle: Option<Swizzle>,
}

/// The parts of a layout as they are written, before they are checked. Reading in two steps lets a
/// caller tell an `Overflow` from a malformed line.
#[derive(Clone, Debug, Deserialize)]
pub struct LayoutParts {
    /// Shard iters, outermost first.
    pub shard: Vec<Iter>,
    /// Replica iters.
    #[serde(default)]
    pub replica: Vec<Iter>,
    /// Offset, one integer an axis.
    #[serde(default)]
    pub offset: Coord,
    /// Swizzle of the memory axis.
    #[serde(default)]
    pub swizzle: Option<Swizzle>,
}

impl TryFrom<LayoutParts> for Layout {
    type Error = crate::Error;

    fn try_from(parts: LayoutParts) -> crate::Result<Self> {
        Self::new(parts.shard, parts.replica, parts.offset, parts.swizzle)
    }
}

impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = PartsOut {
            shard: &self.shard,
            replica: &self.replica,
            offset: &self.offset,
            swizzle: self.swizzle,
        };
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        LayoutParts::deserialize(deserializer)?
            .try_into()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchange_form() {
        let text = r#"{"shard":[[8,4,"lane"],[2,1,"m"]],"replica":[[2,4,"warp"]],"offset":{"warp":5},"swizzle":{"per_element":3,"swizzle_len":3,"atom_len":3,"inner":true}}"#;
        let layout: Layout = serde_json::from_str(text).unwrap();
        let shown = "Sw<3,3,3> o S[(8, 2) : (4@lane, 1)] + R[2 : 4@warp] + 5@warp";
        assert_eq!(layout.to_string(), shown);
        assert_eq!(serde_json::to_string(&layout).unwrap(), text);
    }

    #[test]
    fn what_is_missing_is_empty() {
        let layout: Layout = serde_json::from_str(r#"{"shard":[["?",1,"m"]]}"#).unwrap();
        assert_eq!(layout.to_string(), "S[? : 1]");
        assert_eq!(serde_json::to_value(&layout).unwrap()["shard"][0][0], "?");
    }

    #[test]
    fn malformed_objects_are_errors() {
        let texts = [
            r#"{"shard":[[0,1,"m"]]}"#,
            r#"{"shard":[[2,1,""]]}"#,
            r#"{"shard":[[2,1]]}"#,
            r#"{"shard":[["x",1,"m"]]}"#,
            r#"{"shard":[[-9223372036854775808,1,"m"]]}"#,
            r#"{"shard":[],"swizzle":{"per_element":0,"swizzle_len":3,"atom_len":1,"inner":true}}"#,
            r#"{}"#,
        ];
        for text in texts {
            assert!(serde_json::from_str::<Layout>(text).is_err(), "{text}");
        }
    }
}
