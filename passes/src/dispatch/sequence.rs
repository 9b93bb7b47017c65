//! Lists of numbers, as they repeat: `"S[(4, 2) : (64, 8)] + 3"` for 3, 11, 67, 75, ...
//!
//! What plans list, offsets and registers, are sums of digits nearly always: the layout with these digits, on the memory axis,
//! says them in a line. Other lists are arrays. For `#[serde(with = "sequence")]`.

use axe_layout::{Axis, Iter, Layout, Offset};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Shorter lists are arrays.
const SHORT: usize = 4;
/// Numbers of a list at the most.
const MOST: i64 = 1 << 20;

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Numbers(Vec<i64>),
    Text(String),
}

/// Writes a list.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(numbers: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    let text = (numbers.len() > SHORT)
        .then(|| digits(numbers))
        .flatten()
        .filter(|layout| numbers_of(layout).as_deref() == Ok(numbers));
    match text {
        Some(layout) => layout.to_string().serialize(serializer),
        None => numbers.serialize(serializer),
    }
}

/// Reads a list.
///
/// # Errors
/// Text that is no layout on the memory axis alone, or one of very many numbers.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<i64>, D::Error> {
    let written = Written::deserialize(deserializer)
        .map_err(|_| D::Error::custom("expected integers, or a layout as a string"))?;
    match written {
        Written::Numbers(numbers) => Ok(numbers),
        Written::Text(text) => {
            let layout: Layout = text.parse().map_err(D::Error::custom)?;
            numbers_of(&layout).map_err(D::Error::custom)
        }
    }
}

/// A list of lists.
pub mod each {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "super")] Vec<i64>);

    /// Writes the lists.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(lists: &[Vec<i64>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lists.iter().cloned().map(One))
    }

    /// Reads the lists.
    ///
    /// # Errors
    /// As for one of them.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Vec<i64>>, D::Error> {
        let lists = Vec::<One>::deserialize(deserializer)?;
        Ok(lists.into_iter().map(|One(list)| list).collect())
    }
}

/// Values as their text, for types that print what they parse.
pub mod text {
    use super::{Deserialize, Deserializer, Serializer};
    use serde::de::Error as _;
    use std::fmt::Display;
    use std::str::FromStr;

    /// Writes a value.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Text that the type does not parse.
    pub fn deserialize<'de, T, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn numbers_of(layout: &Layout) -> Result<Vec<i64>, String> {
    let plain = layout.axes().iter().all(|axis| *axis == Axis::M)
        && layout.replica().is_empty()
        && layout.swizzle().is_none();
    if !plain || layout.size() > MOST {
        return Err(format!(
            "expected digits on the axis m alone, of at most {MOST} numbers, got {layout}"
        ));
    }
    let number = |at| layout.origin(at).map(|point| point.get(Axis::M));
    (0..layout.size())
        .map(|at| number(at).map_err(|error| error.to_string()))
        .collect()
}

/// The digits of which a list is the sum; `None` where it is not.
fn digits(numbers: &[i64]) -> Option<Layout> {
    let first = *numbers.first()?;
    let mut iters = Vec::new();
    let mut block = 1;
    while block < numbers.len() {
        let stride = numbers.get(block)?.checked_sub(first)?;
        let holds = |turn: &usize| {
            let by = i64::try_from(*turn).ok()?.checked_mul(stride)?;
            let moved = numbers.get(turn * block..(turn + 1) * block)?;
            let same = numbers.iter().zip(moved);
            same.into_iter()
                .all(|(base, at)| base.checked_add(by) == Some(*at))
                .then_some(())
        };
        let left = numbers.len() / block;
        let turns = (1..left).take_while(|turn| holds(turn).is_some()).count() + 1;
        let turns = (2..=turns)
            .rev()
            .find(|turns| left.is_multiple_of(*turns))?;
        iters.push(Iter::new(i64::try_from(turns).ok()?, stride, Axis::M));
        block *= turns;
    }
    iters.reverse();
    let mut offset = Offset::new();
    offset.set(Axis::M, first);
    Layout::new(iters, [], offset, None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct List(#[serde(with = "super")] Vec<i64>);

    fn written(numbers: &[i64]) -> String {
        serde_json::to_string(&List(numbers.to_vec())).unwrap()
    }

    #[test]
    fn digits_are_one_line() {
        let numbers: Vec<_> = (0..4)
            .flat_map(|i| (0..8).map(move |j| 100 * i + j + 3))
            .collect();
        assert_eq!(written(&numbers), "\"S[(4, 8) : (100, 1)] + 3\"");
        assert_eq!(written(&[0, 1, 2]), "[0,1,2]");
        assert_eq!(written(&[0, 1, 2, 7, 8]), "[0,1,2,7,8]");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let refused = |text: &str| serde_json::from_str::<List>(text).unwrap_err().to_string();
        assert!(refused("\"S[4 : 1@lane]\"").contains("on the axis m alone"));
        assert!(refused("\"S[(4096, 4096) : (1, 1)]\"").contains("of at most"));
        assert!(refused("true").contains("expected integers"));
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_are_written(
            numbers in prop::collection::vec(-9_i64..9, 0..12),
            strides in prop::collection::vec((2_usize..5, -100_i64..100), 0..4),
        ) {
            let digits = strides.iter().fold(numbers, |list, (turns, stride)| {
                (0..*turns).flat_map(|turn| {
                    let by = stride * i64::try_from(turn).unwrap();
                    list.iter().map(move |number| number + by).collect::<Vec<_>>()
                }).collect()
            });
            let read: List = serde_json::from_str(&written(&digits)).unwrap();
            prop_assert_eq!(read.0, digits);
        }
    }
}
