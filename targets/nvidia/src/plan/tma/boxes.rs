//! The largest box of a tile that one instruction can copy, and the loop over boxes.

use super::digits::Digit;
use super::{Decline, GRANULE, TensorMap, TmaSwizzle};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Elements of a box along a dimension (`boxDim`).
const MAX_BOX: i64 = 256;
/// Bytes to which a box in shared memory is aligned (PTX ISA 9.7.9.27.1.2).
const SHARED_ALIGNMENT: i64 = 128;
/// More boxes than this are no loop to unroll.
const MAX_BOXES: usize = 256;

/// A coordinate of a box: a digit of the tile's origin along a dimension, and a constant.
///
/// In text `x1 / 4 mod 8 + 64`, without what changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Coordinate {
    /// The dimension of the global memory whose origin is read.
    pub dim: usize,
    /// The divisor of the origin.
    pub divisor: i64,
    /// Then the modulus; none for the dimension's outermost digit.
    pub modulus: Option<i64>,
    /// What is added.
    pub offset: i64,
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.dim)?;
        if self.divisor > 1 {
            write!(f, " / {}", self.divisor)?;
        }
        if let Some(modulus) = self.modulus {
            write!(f, " mod {modulus}")?;
        }
        if self.offset > 0 {
            write!(f, " + {}", self.offset)?;
        }
        Ok(())
    }
}

impl From<Coordinate> for String {
    fn from(coordinate: Coordinate) -> Self {
        coordinate.to_string()
    }
}

impl TryFrom<String> for Coordinate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Coordinate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<i64>()
                .ok()
                .filter(|at| (0..1 << 32).contains(at))
        };
        let parse = || {
            let (rest, offset) = text.split_once(" + ").unwrap_or((text, "0"));
            let (rest, modulus) = match rest.split_once(" mod ") {
                Some((rest, modulus)) => (rest, Some(number(modulus).filter(|by| *by > 0)?)),
                None => (rest, None),
            };
            let (dim, divisor) = rest.split_once(" / ").unwrap_or((rest, "1"));
            Some(Self {
                dim: dim.strip_prefix('x')?.parse().ok()?,
                divisor: number(divisor).filter(|by| *by > 0)?,
                modulus,
                offset: number(offset)?,
            })
        };
        parse().ok_or_else(|| format!("expected \"x1 / 4 mod 8 + 64\", got \"{text}\""))
    }
}

/// Checks what the accelerator asks of boxes.
///
/// # Errors
/// The limit that is not kept.
pub(super) fn check_limits(boxes: &[TmaBox], map: &TensorMap, bytes: i64) -> Result<(), Decline> {
    if boxes.len() > MAX_BOXES {
        return Err(Decline::new(format!(
            "the copy would take more than {MAX_BOXES} boxes"
        )));
    }
    if let Some(extent) = map
        .r#box
        .iter()
        .find(|extent| !(1..=MAX_BOX).contains(*extent))
    {
        return Err(Decline::new(format!(
            "a box of {extent} elements along a dimension: expected 1 to {MAX_BOX}"
        )));
    }
    let row = map.r#box.first().copied().unwrap_or(1) * bytes;
    let span = map.swizzle.span().unwrap_or(row);
    if row % GRANULE != 0 || row > span {
        return Err(Decline::new(format!(
            "the inner box is {row} bytes: expected a multiple of {GRANULE}, at most the rows of its swizzle"
        )));
    }
    let first = boxes.iter().filter_map(|each| each.coordinates.first());
    if let Some(at) = first
        .map(|at| at.offset * bytes)
        .find(|at| at % GRANULE != 0)
    {
        return Err(Decline::new(format!(
            "a box begins {at} bytes into a row: expected a multiple of {GRANULE}"
        )));
    }
    check_places(boxes, map.swizzle, bytes)
}

/// A swizzle's pattern begins anew at its period: 8 rows of 16-byte chunks (PTX ISA 9.7.9.27.1.2).
fn check_places(boxes: &[TmaBox], swizzle: TmaSwizzle, bytes: i64) -> Result<(), Decline> {
    let alignment = swizzle.span().map_or(SHARED_ALIGNMENT, |span| 8 * span);
    match boxes
        .iter()
        .find(|each| each.shared < 0 || each.shared * bytes % alignment != 0)
    {
        None => Ok(()),
        Some(each) => Err(Decline::new(format!(
            "a box at byte {} of the shared tile: expected a multiple of {alignment}",
            each.shared * bytes
        ))),
    }
}

/// One instruction's box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TmaBox {
    /// Its coordinates, innermost first.
    #[serde(rename = "at")]
    pub coordinates: Vec<Coordinate>,
    /// Its place in the shared tile, in elements.
    pub shared: i64,
}

/// Orders the digits as the descriptor's dimensions, innermost first, with the extents of the largest box.
pub(super) fn largest(
    mut digits: Vec<Digit>,
    swizzle: TmaSwizzle,
    bytes: i64,
) -> Result<(Vec<Digit>, Vec<i64>), Decline> {
    let contiguous = digits.iter().position(|digit| digit.global.1 == 1);
    let contiguous = contiguous.ok_or_else(|| {
        Decline::new("no dimension of the global memory is contiguous: expected a stride of 1")
    })?;
    let first = digits.remove(contiguous);
    let row = inner_extent(&first, swizzle, bytes)?;
    let mut dense = swizzle.pitch(row, bytes);
    let rows = || digits.iter().filter_map(Digit::innermost);
    let is_apart = rows().all(|iter| iter.extent == 1) || rows().any(|iter| iter.stride == dense);
    if dense > row && !is_apart {
        return Err(narrow(row, swizzle, bytes));
    }
    let mut whole = first.innermost().is_none_or(|iter| iter.extent == row);
    let (mut ordered, mut extents) = (vec![first], vec![row]);
    while whole {
        let follows = |digit: &Digit| digit.innermost().is_some_and(|iter| iter.stride == dense);
        let Some(next) = digits.iter().position(follows) else {
            break;
        };
        let next = digits.remove(next);
        let all = next.innermost().map_or(1, |iter| iter.extent);
        let extent = (1..=MAX_BOX.min(all)).rev().find(|part| all % part == 0);
        let extent = extent.unwrap_or(1);
        whole = extent == all;
        dense *= extent;
        ordered.push(next);
        extents.push(extent);
    }
    extents.extend(std::iter::repeat_n(1, digits.len()));
    ordered.extend(digits);
    Ok((ordered, extents))
}

/// Elements of the box's innermost dimension: those of the swizzle's rows, or all that the tile has of one.
fn inner_extent(first: &Digit, swizzle: TmaSwizzle, bytes: i64) -> Result<i64, Decline> {
    let iter = first.innermost().filter(|iter| iter.stride == 1);
    let contiguous = iter.map_or(1, |iter| iter.extent);
    let wanted = swizzle.span().map(|span| span / bytes);
    let most = wanted.unwrap_or(MAX_BOX).min(contiguous);
    let extent = (1..=most)
        .rev()
        .find(|part| contiguous % part == 0)
        .unwrap_or(1);
    if wanted.is_some_and(|wanted| wanted != extent && contiguous != extent) {
        return Err(narrow(extent, swizzle, bytes));
    }
    if extent * bytes % GRANULE != 0 {
        return Err(Decline::new(format!(
            "the inner box is {} bytes: expected a multiple of {GRANULE}",
            extent * bytes
        )));
    }
    Ok(extent)
}

fn narrow(row: i64, swizzle: TmaSwizzle, bytes: i64) -> Decline {
    Decline::new(format!(
        "the inner box is {} bytes, and the {swizzle} swizzle moves chunks of rows of that many: expected such rows, or narrower ones as far apart",
        row * bytes
    ))
}

/// All boxes of a tile.
pub(super) fn all(
    digits: &[Digit],
    extents: &[i64],
    first: i64,
    swizzle: TmaSwizzle,
    bytes: i64,
) -> Result<Vec<TmaBox>, Decline> {
    let start = digits
        .iter()
        .map(|digit| Coordinate {
            dim: digit.dim,
            divisor: digit.divisor,
            modulus: digit.modulus,
            offset: 0,
        })
        .collect();
    let mut boxes = vec![TmaBox {
        coordinates: start,
        shared: first,
    }];
    for (at, (digit, &extent)) in digits.iter().zip(extents).enumerate() {
        let mut step = 1;
        for (level, iter) in digit.shared.iter().rev().enumerate() {
            let inside = if level == 0 { extent } else { 1 };
            let turns = iter.extent / inside;
            let mut next = Vec::new();
            for turn in 0..turns {
                for each in &boxes {
                    let mut moved = each.clone();
                    if let Some(coordinate) = moved.coordinates.get_mut(at) {
                        coordinate.offset += turn * inside * step;
                    }
                    moved.shared += turn * inside * iter.stride;
                    next.push(moved);
                }
            }
            boxes = next;
            step *= iter.extent;
            if boxes.len() > MAX_BOXES {
                return Err(Decline::new(format!(
                    "the copy would take more than {MAX_BOXES} boxes"
                )));
            }
        }
    }
    check_places(&boxes, swizzle, bytes)?;
    Ok(boxes)
}
