//! Complement and the two inverses.

use super::coalesce::{coalesce_modes, filter};
use super::layout::{CuteLayout, Mode};
use crate::error::{Error, Result};

/// The ordered layout beside `layout` (CuTe's `complement`): the sums `layout(i) + result(j)` are all
/// different, and reach at least `cotarget`.
///
/// Where each stride is a multiple of what lies below it, the sums cover `[0, n)` exactly once, for the
/// smallest such `n` of at least `cotarget`. Padding between modes that no whole number of repetitions
/// fills stays uncovered: the complement of `(32,8):(1,33)` starts at 264.
///
/// # Errors
/// `Invalid` for `cotarget < 1`; `None` when a mode of `layout` reaches into another one; `Unsupported` for
/// negative strides; `Overflow`.
///
/// ```
/// use axe_layout::cute::{CuteLayout, complement};
/// let tile: CuteLayout = "(4,8):(1,8)".parse()?;
/// assert_eq!(complement(&tile, 128)?.to_string(), "(2,2):(4,64)");
/// let padded: CuteLayout = "(32,8):(1,33)".parse()?;
/// assert_eq!(complement(&padded, 528)?.to_string(), "2:264");
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn complement(layout: &CuteLayout, cotarget: i64) -> Result<CuteLayout> {
    repetitions(layout, cotarget, false)
}

/// [`complement`] where the sums cover `[0, n)` without holes.
///
/// # Errors
/// As [`complement`]; `None` also where padding stays uncovered.
pub(super) fn covering_complement(layout: &CuteLayout, cotarget: i64) -> Result<CuteLayout> {
    repetitions(layout, cotarget, true)
}

fn repetitions(layout: &CuteLayout, cotarget: i64, covering: bool) -> Result<CuteLayout> {
    if cotarget < 1 {
        return Err(Error::invalid(format!(
            "CuTe complement: expected a cotarget >= 1, got {cotarget}"
        )));
    }
    let mut modes = filter(layout).leaves();
    modes.retain(|&(extent, _)| extent > 1);
    modes.sort_unstable_by_key(|&(extent, stride)| (stride, extent));
    let mut covered = 1_i64;
    let mut result = Vec::with_capacity(modes.len() + 1);
    for (extent, stride) in modes {
        if stride < 0 {
            return Err(Error::unsupported(format!(
                "CuTe complement: expected strides >= 0, got {stride}"
            )));
        }
        if stride < covered || covering && stride % covered != 0 {
            return Err(Error::none(format!(
                "CuTe complement of {layout}: the mode {extent}:{stride} does not continue the \
                 {covered} points below it, since {covered} does not divide {stride}"
            )));
        }
        result.push((stride / covered, covered));
        covered = extent
            .checked_mul(stride)
            .ok_or_else(|| Error::overflow("the cosize of a CuTe complement"))?;
    }
    let rest = cotarget / covered + i64::from(cotarget % covered != 0);
    result.push((rest, covered));
    CuteLayout::from_modes(coalesce_modes(&result))
}

/// The modes of extent above 1 with the stride that each has in the compact layout, sorted by stride.
fn by_stride(layout: &CuteLayout) -> Vec<(Mode, i64)> {
    let mut compact = 1_i64;
    let mut modes: Vec<(Mode, i64)> = Vec::new();
    for mode in coalesce_modes(&layout.leaves()) {
        modes.push((mode, compact));
        // Fits: a partial product of the size.
        compact *= mode.0;
    }
    modes.sort_by_key(|&((_, stride), _)| stride);
    modes
}

/// The longest layout `R` with `layout(R(i)) = i` for every `i < size(R)` that follows the modes of
/// `layout`; `1:0` when nothing is contiguous.
///
/// # Errors
/// `Overflow`.
pub fn right_inverse(layout: &CuteLayout) -> Result<CuteLayout> {
    let mut reached = 1_i64;
    let mut result = Vec::new();
    for ((extent, stride), compact) in by_stride(layout) {
        if stride == reached {
            result.push((extent, compact));
            reached = extent
                .checked_mul(stride)
                .ok_or_else(|| Error::overflow("the size of a CuTe right inverse"))?;
        }
    }
    CuteLayout::from_modes(coalesce_modes(&result))
}

/// The layout `R` with `R(layout(i)) = i` for every `i`, up to modes of stride 0, which no function can
/// tell apart: always `layout(R(layout(i))) = layout(i)`.
///
/// # Errors
/// `None` when two modes overlap (`layout` takes a value twice); `Unsupported` when strides are
/// negative or do not divide each other; `Overflow`.
pub fn left_inverse(layout: &CuteLayout) -> Result<CuteLayout> {
    let mut below = 1_i64;
    let mut filled = 1_i64;
    let mut shape = Vec::new();
    let mut stride = vec![0_i64];
    for ((extent, step), compact) in by_stride(layout) {
        if step == 0 {
            continue;
        }
        if step < 0 || step % below != 0 {
            return Err(Error::unsupported(format!(
                "CuTe left inverse of {layout}: expected strides that divide each other, got {step} \
                 after {below}"
            )));
        }
        if step < filled {
            return Err(Error::none(format!(
                "CuTe left inverse of {layout}: the stride {step} overlaps the mode below it, which \
                 reaches {filled}"
            )));
        }
        shape.push(step / below);
        stride.push(compact);
        below = step;
        filled = step
            .checked_mul(extent)
            .ok_or_else(|| Error::overflow("the size of a CuTe left inverse"))?;
    }
    shape.push(filled / below);
    let modes: Vec<Mode> = shape.into_iter().zip(stride).collect();
    CuteLayout::from_modes(coalesce_modes(&modes))
}
