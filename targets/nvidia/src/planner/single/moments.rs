//! Which variances are formed of those of parts, so that their elements are read once.

use super::parts::are_cut;
use super::runs;
use super::split::last_run;
use crate::facts::chip::Chip;
use crate::planner::strided_rows::holds;
use axe_passes::fuse::part_moments::Parts;
use axe_passes::fuse::reshape::element_bytes;
use axe_passes::fuse::space::{Cut, product};
use axe_passes::ir::{TensorType, Val};

/// Rows of a part at the least and at the most: of fewer, what is left to add up is much, of more, CTAs hold few neighbours.
const ROWS: [i64; 2] = [64, 1024];
/// Rows of which CTAs hold enough neighbours and the rest is little.
const GOOD_ROWS: i64 = 256;

/// The parts of a sum of a value along dimensions, where it and the squares about its mean are not formed in one kernel anyway.
pub(in crate::planner) fn parts_of_moments(
    value: Val<'_>,
    dims: &[i64],
    chip: &Chip,
) -> Option<Parts> {
    let tensor = TensorType::of_value(value)?;
    let shape = tensor.shape;
    let runs = runs(&shape, |dim| dims.contains(&dim));
    if runs.iter().filter(|(_, reduced)| *reduced).count() > 1 {
        let (outer, inner) = last_run(&shape, dims);
        let cut = Cut::along(&shape, &inner)?;
        let is_one_kernel = match cut.is_strided() {
            true => holds(value, cut, chip),
            false => !are_cut(&shape, &inner, element_bytes(tensor.element), chip),
        };
        return is_one_kernel.then_some(Parts {
            shape,
            inner,
            outer,
        });
    }
    let cut = Cut::along(&shape, dims).filter(|cut| cut.is_strided())?;
    if holds(value, cut, chip) {
        return None;
    }
    let Cut { columns, stride } = cut;
    let outer = product(&shape)? / columns / stride;
    let [least, most] = ROWS;
    let mut rows: Vec<_> = (least..=most).filter(|rows| columns % rows == 0).collect();
    rows.sort_by_key(|rows| (rows - GOOD_ROWS).abs());
    let of = |columns: i64| holds(value, Cut { columns, stride }, chip);
    let rows = rows.into_iter().find(|rows| of(*rows))?;
    Some(Parts {
        shape: vec![outer, columns / rows, rows, stride],
        inner: vec![2],
        outer: vec![1],
    })
}
