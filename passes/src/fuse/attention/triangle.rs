//! Constant triangles: a mask that was computed when a program was traced, read as the comparison of indices that it is.

use super::index::{self, Place, Var};
use super::term::{Id, Scalar, Term, Terms};
use crate::ir::value::results;
use crate::ir::{Op, TensorType, types};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, AttributeLike};
use mlir_sys as sys;

/// Elements of a constant that is looked at, at most.
const MOST: i64 = 1 << 26;

/// A matrix with one value up to a diagonal and another above it: the values, and the key after the last of row 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Triangle {
    below: f64,
    above: f64,
    end: i64,
}

/// The triangle of a row-major matrix.
fn triangle(rows: i64, keys: i64, at: impl Fn(i64) -> Option<f64>) -> Option<Triangle> {
    let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
    let below = at((rows - 1).checked_mul(keys)?)?;
    let above = at(keys - 1)?;
    if same(below, above) {
        return None;
    }
    // Row 0 may have none of the lower value: then a later one has its first.
    let mut end = None;
    for row in 0..rows {
        let mut own = 0;
        while own < keys && same(at(row * keys + own)?, below) {
            own += 1;
        }
        for key in own..keys {
            if !same(at(row * keys + key)?, above) {
                return None;
            }
        }
        if own > 0 && own < keys {
            end.get_or_insert(own - row);
        }
    }
    let end = end?;
    let right = |row: i64| {
        let own = (row + end).clamp(0, keys);
        let of = |key: i64, value| at(row * keys + key).is_some_and(|found| same(found, value));
        (own == 0 || of(own - 1, below)) && (own == keys || of(own, above))
    };
    (0..rows)
        .all(right)
        .then_some(Triangle { below, above, end })
}

/// The element of a dense constant.
fn element(attribute: Attribute<'_>, float: bool, bits: u32, at: i64) -> Option<f64> {
    let at = isize::try_from(at).ok()?;
    // SAFETY: the attribute is dense, has elements of this type, and the position is below their number.
    unsafe {
        match (float, bits) {
            (false, 1) => Some(f64::from(u8::from(sys::mlirDenseElementsAttrGetBoolValue(
                attribute.to_raw(),
                at,
            )))),
            (true, 32) => Some(f64::from(sys::mlirDenseElementsAttrGetFloatValue(
                attribute.to_raw(),
                at,
            ))),
            _ => None,
        }
    }
}

/// The element of a constant mask of rows and keys at a place: a comparison of the two.
pub(super) fn read(
    terms: &mut Terms,
    op: Op<'_>,
    place: &Place,
    [rows, keys]: [i64; 2],
) -> Option<Id> {
    let tensor = TensorType::of_value(*results(op).first()?)?;
    let mut own = place.iter().filter(|index| !index.is_empty());
    let (row, key) = (own.next()?, own.next()?);
    let is_mask = own.next().is_none()
        && *row == index::whole(Var::Row, rows)
        && *key == index::whole(Var::Key, keys);
    let count = rows.checked_mul(keys)?;
    let total = tensor
        .shape
        .iter()
        .try_fold(1i64, |total, extent| total.checked_mul(*extent))?;
    if !is_mask || total != count || count > MOST {
        return None;
    }
    let attribute = op.attribute("value").ok()?;
    // SAFETY: the attribute is live.
    if !unsafe { sys::mlirAttributeIsADenseElements(attribute.to_raw()) } {
        return None;
    }
    let (float, bits) = (
        types::is_float(tensor.element),
        types::bits(tensor.element)?,
    );
    let found = triangle(rows, keys, |at| element(attribute, float, bits, at))?;
    let row = terms.add(Term::Index(Var::Row), Scalar::Int(64));
    let key = terms.add(Term::Index(Var::Key), Scalar::Int(64));
    let end = terms.int(found.end, 64);
    let end = terms.apply("arith.addi", None, &[row, end], Scalar::Int(64));
    let below = terms.apply("arith.cmpi", Some(2), &[key, end], Scalar::Int(1));
    let sides = match float {
        true => [found.below, found.above].map(|value| terms.float(value)),
        false if found.below != 0.0 => return Some(below),
        false => {
            let one = terms.int(1, 1);
            return Some(terms.apply("arith.xori", None, &[below, one], Scalar::Int(1)));
        }
    };
    Some(terms.apply(
        "arith.select",
        None,
        &[below, sides[0], sides[1]],
        Scalar::Float,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_is_found_of_any_diagonal() {
        for (rows, keys) in [(5, 5), (3, 7), (7, 3)] {
            for end in -6..8 {
                let at = |at: i64| Some(f64::from(u8::from(at % keys < at / keys + end)));
                let found = triangle(rows, keys, at);
                let mixed = (0..rows).any(|row| (1..keys).contains(&(row + end)));
                match found {
                    Some(found) => {
                        assert_eq!((found.below, found.above, found.end), (1.0, 0.0, end))
                    }
                    None => assert!(
                        !mixed || at(keys - 1) == at((rows - 1) * keys),
                        "{rows} {keys} {end}"
                    ),
                }
            }
        }
    }

    #[test]
    fn other_matrices_are_none() {
        assert_eq!(
            triangle(3, 3, |at| Some(f64::from(u8::from(at % 2 == 0)))),
            None
        );
        assert_eq!(triangle(3, 3, |_| Some(1.0)), None);
        // A triangle with one element wrong.
        let wrong = |at: i64| Some(f64::from(u8::from(at % 4 <= at / 4 && at != 9)));
        assert_eq!(triangle(4, 4, wrong), None);
    }
}
