//! Numbers of instructions in JSON, which has no infinities and no NaN: those are text.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

/// A number, or `inf`, `-inf`, `NaN`.
pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    match value.is_finite() {
        true => value.serialize(to),
        false => value.to_string().serialize(to),
    }
}

/// What [`serialize`] writes.
pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    match Written::deserialize(from)? {
        Written::Number(value) => Ok(value),
        Written::Text(text) => text.parse().map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Scalar;

    #[test]
    fn infinities_survive() {
        for value in [f64::NEG_INFINITY, f64::INFINITY, 0.1, -0.0] {
            let text = serde_json::to_string(&Scalar::Number(value)).unwrap();
            let read: Scalar = serde_json::from_str(&text).unwrap();
            assert_eq!(read, Scalar::Number(value), "{text}");
        }
        assert!(serde_json::from_str::<Scalar>("{\"number\":\"large\"}").is_err());
    }
}
