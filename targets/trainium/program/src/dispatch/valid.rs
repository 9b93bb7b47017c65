//! What is in use of regions, as boxes that have layouts.

use super::Region;
use super::reason::Reason;
use std::ops::Range;

/// A region, and the operator's dimension that each of its own is.
pub(super) type Given<'a> = (&'a Region, Vec<usize>);

/// An operator on a box: where the box begins, and the parts of the regions.
pub(super) type One<'a> = dyn FnMut(&[i64], &[Region]) -> Result<(), Reason> + 'a;

/// Calls `one` with the regions of each box of what is in use, and where the box begins in the operator's dimensions; the
/// last dimension goes fastest.
///
/// # Errors
/// Regions that do not have the same in use, and what `one` says.
pub(super) fn each(given: &[Given<'_>], rank: usize, one: &mut One<'_>) -> Result<(), Reason> {
    let whole = |region: &Region| region.extents() == region.shape.as_slice();
    if given.iter().all(|(region, _)| whole(region)) {
        let regions: Vec<Region> = given.iter().map(|(region, _)| (*region).clone()).collect();
        return one(&vec![0; rank], &regions);
    }
    let mut cuts: Vec<Vec<i64>> = vec![vec![0]; rank];
    for (region, dims) in given {
        check(region, dims, rank)?;
        add_cuts(region, dims, &mut cuts)?;
    }
    let boxes = boxes(&mut cuts);
    for ranges in boxes {
        let regions: Vec<Region> = (given.iter())
            .map(|(region, dims)| part(region, dims, &ranges))
            .collect::<Result<_, _>>()?;
        let begin: Vec<i64> = ranges.iter().map(|range| range.start).collect();
        one(&begin, &regions)?;
    }
    Ok(())
}

fn check(region: &Region, dims: &[usize], rank: usize) -> Result<(), Reason> {
    let (used, shape) = (region.extents(), &region.shape);
    let sound = used.len() == shape.len()
        && dims.len() == shape.len()
        && dims.iter().all(|dim| *dim < rank)
        && used
            .iter()
            .zip(shape)
            .all(|(used, all)| (1..=*all).contains(used));
    match sound {
        true => Ok(()),
        false => Err(Reason::Malformed(format!(
            "expected 1 to {shape:?} indices in use, got {used:?}"
        ))),
    }
}

fn refuse(error: axe_layout::Error) -> Reason {
    Reason::Layout {
        operand: "what is in use",
        message: error.to_string(),
    }
}

/// Where the layout of what is in use has to be cut.
fn add_cuts(region: &Region, dims: &[usize], cuts: &mut [Vec<i64>]) -> Result<(), Reason> {
    let used: Vec<Range<i64>> = region.extents().iter().map(|extent| 0..*extent).collect();
    let cover = region
        .layout
        .slice_cover(&region.shape, &used)
        .map_err(refuse)?;
    for (ranges, _) in cover {
        // One index is paired with all of another region's.
        let several = dims
            .iter()
            .zip(ranges)
            .zip(region.extents())
            .filter(|(_, used)| **used > 1);
        for ((dim, range), _) in several {
            cuts[*dim].extend([range.start, range.end]);
        }
    }
    Ok(())
}

/// All boxes between the cuts.
fn boxes(cuts: &mut [Vec<i64>]) -> Vec<Vec<Range<i64>>> {
    let mut boxes = vec![Vec::new()];
    for cuts in cuts {
        cuts.sort_unstable();
        cuts.dedup();
        // A dimension that no region has, or of one index, is one box.
        if cuts.len() < 2 {
            cuts.push(1);
        }
        boxes = boxes
            .iter()
            .flat_map(|outer: &Vec<Range<i64>>| {
                cuts.windows(2).map(|ends| {
                    let mut inner = outer.clone();
                    inner.push(ends[0]..ends[1]);
                    inner
                })
            })
            .collect();
    }
    boxes
}

/// The part of a region in a box: all of a dimension of one index.
fn part(region: &Region, dims: &[usize], ranges: &[Range<i64>]) -> Result<Region, Reason> {
    let used = region.extents();
    let own: Vec<Range<i64>> = (dims.iter().zip(used))
        .map(|(dim, used)| {
            if *used == 1 {
                0..1
            } else {
                ranges[*dim].clone()
            }
        })
        .collect();
    let inside = own.iter().zip(used).all(|(range, used)| range.end <= *used);
    if !inside {
        return Err(Reason::Malformed(format!(
            "expected as much in use, got {used:?}"
        )));
    }
    let layout = region.layout.slice(&region.shape, &own).map_err(refuse)?;
    Ok(Region {
        shape: own.iter().map(|range| range.end - range.start).collect(),
        layout,
        valid: None,
        ..region.clone()
    })
}
