//! Which variances, and sums of exponentials below a maximum, are formed of those of parts, so that their elements are read once.

use super::parts::{PART, goes_back, parts_of_rows};
use super::runs;
use super::split::last_run;
use crate::facts::chip::Chip;
use crate::planner::strided_rows::holds;
use axe_passes::fuse::parts::{Parts, Reduced};
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Cut, product};
use axe_passes::ir::{TensorType, Val};

/// Rows of a part at the least and at the most: of fewer, what is left to add up is much, of more, CTAs hold few neighbours.
const ROWS: [i64; 2] = [64, 1024];
/// Rows of which CTAs hold enough neighbours and the rest is little.
const GOOD_ROWS: i64 = 256;

/// CTAs of a multiprocessor that sum up exponentials of parts, at least. Measured: softmax of 16,777,216 f16 takes 36.3 us in 1024 parts and 32.1 in 4096,
/// logsumexp of 8 x 8,388,608 39.2 in 4096 and 41.3 in 16,384.
const PARTS: i64 = 16;
/// Elements of a part that is no short one.
const LONG_PART: i64 = 4 * PART;

/// The parts of what is reduced to a sum of exponentials: short ones where long ones are few.
pub(in crate::planner) fn parts_of_exponentials(of: &Reduced<'_>, chip: &Chip) -> Option<Parts> {
    let elements = TensorType::of_value(of.from).and_then(|own| product(&own.shape))?;
    let longest = match elements / LONG_PART < PARTS * chip.multiprocessors {
        true => PART,
        false => i64::MAX,
    };
    parts_of_states(of, longest, chip)
}

/// The parts of what is reduced to moments.
pub(in crate::planner) fn parts_of_moments(of: &Reduced<'_>, chip: &Chip) -> Option<Parts> {
    parts_of_states(of, i64::MAX, chip)
}

/// The parts of what is reduced, of so many elements at most, where it and what is formed of its result and reduced again are not formed in one kernel anyway.
fn parts_of_states(of: &Reduced<'_>, longest: i64, chip: &Chip) -> Option<Parts> {
    let Reduced { from, dims, result } = of;
    let (from, result) = (*from, *result);
    let tensor = TensorType::of_value(from)?;
    let (shape, bytes) = (tensor.shape, element_bytes(tensor.element));
    let runs = runs(&shape, |dim| dims.contains(&dim));
    if runs.iter().filter(|(_, reduced)| *reduced).count() > 1 {
        let (outer, inner) = last_run(&shape, dims);
        let cut = Cut::along(&shape, &inner)?;
        let is_one_kernel = match cut.is_strided() {
            true => holds(from, cut, chip),
            false => parts_of_rows((&shape, &inner), (bytes, longest), chip).is_none(),
        };
        return is_one_kernel.then_some(Parts {
            shape,
            inner,
            outer,
        });
    }
    let cut = Cut::along(&shape, dims)?;
    let Cut { columns, stride } = cut;
    let parts = match cut.is_strided() {
        true => parts_of_columns(from, cut, chip)?,
        // What comes of all of a row and goes back along it is formed where the row is.
        false if goes_back(result, (from, dims), chip) => return None,
        false => parts_of_rows((&shape, dims), (bytes, longest), chip)?,
    };
    Some(Parts {
        shape: vec![
            product(&shape)? / columns / stride,
            parts,
            columns / parts,
            stride,
        ],
        inner: vec![2],
        outer: vec![1],
    })
}

/// Into how many parts columns are cut of which CTAs hold none as a whole.
fn parts_of_columns(from: Val<'_>, cut: Cut, chip: &Chip) -> Option<i64> {
    if holds(from, cut, chip) {
        return None;
    }
    let Cut { columns, stride } = cut;
    let [least, most] = ROWS;
    let mut rows: Vec<_> = (least..=most).filter(|rows| columns % rows == 0).collect();
    rows.sort_by_key(|rows| (rows - GOOD_ROWS).abs());
    let of = |columns: i64| holds(from, Cut { columns, stride }, chip);
    let rows = rows.into_iter().find(|rows| of(*rows))?;
    Some(columns / rows)
}
