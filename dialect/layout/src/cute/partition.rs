//! Tiles that fill a shape, and what each thread holds of one.

use super::compose::composition;
use super::divide::zipped_divide;
use super::inverse::right_inverse;
use super::layout::{CuteLayout, Tree};
use super::product::{blocked_product, raked_product};
use super::tiler::Tiler;
use crate::error::{Error, Result};

/// The block repeated until it fills `shape`, one extent a mode, copies in the order `order` (CuTe's
/// `tile_to_shape`): the mode with the smallest number goes first, column-major without one.
///
/// # Errors
/// `Invalid` when the block has more modes than the shape, or `order` another number of them; `None` when an
/// extent is no multiple of the block's; as [`blocked_product`].
///
/// ```
/// use axe_layout::cute::{CuteLayout, tile_to_shape};
/// let atom: CuteLayout = "(8,64):(64,1)".parse()?;
/// assert_eq!(tile_to_shape(&atom, &[16, 128], None)?.to_string(), "((8,2),(64,2)):((64,512),(1,1024))");
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn tile_to_shape(
    block: &CuteLayout,
    shape: &[i64],
    order: Option<&[i64]>,
) -> Result<CuteLayout> {
    let modes = block.modes();
    if modes.len() > shape.len() {
        return Err(Error::Rank {
            what: "shape to tile to, at least the rank of the block",
            expected: modes.len(),
            got: shape.len(),
        });
    }
    let extents = modes
        .iter()
        .map(CuteLayout::size)
        .chain(std::iter::repeat(1));
    let copies = shape
        .iter()
        .zip(extents)
        .enumerate()
        .map(|(mode, (&whole, part))| {
            if whole < 1 || whole % part != 0 {
                return Err(Error::none(format!(
                    "tile to shape: mode {mode} is {whole}, no multiple of the block's {part}"
                )));
            }
            Ok(whole / part)
        });
    let copies = copies.collect::<Result<Vec<i64>>>()?;
    blocked_product(block, &ordered(&copies, order)?)
}

/// The compact layout of `extents` whose modes grow in the order given, column-major without one.
fn ordered(extents: &[i64], order: Option<&[i64]>) -> Result<CuteLayout> {
    let mut by: Vec<usize> = (0..extents.len()).collect();
    if let Some(order) = order {
        if order.len() != extents.len() {
            return Err(Error::Rank {
                what: "order of a CuTe layout",
                expected: extents.len(),
                got: order.len(),
            });
        }
        by.sort_by_key(|&mode| order.get(mode));
    }
    let mut strides = vec![1_i64; extents.len()];
    let mut next = 1_i64;
    for mode in by {
        if let (Some(stride), Some(extent)) = (strides.get_mut(mode), extents.get(mode)) {
            *stride = next;
            next = next
                .checked_mul(*extent)
                .ok_or_else(|| Error::overflow("the size of a CuTe layout"))?;
        }
    }
    let leaves = extents
        .iter()
        .zip(strides)
        .map(|(&extent, stride)| Tree::Leaf((extent, stride)));
    CuteLayout::from_tree(Tree::Modes(leaves.collect()))
}

/// Threads as `threads` orders them, each with the values that `values` says, side by side: the shape of the
/// tile that they hold, and the layout `(thread, value)` to coordinates of the tile, column-major (CuTe's
/// `make_layout_tv`).
///
/// # Errors
/// `None` when the two together do not number the tile's elements; as [`raked_product`].
///
/// ```
/// use axe_layout::cute::{CuteLayout, make_layout_tv};
/// let (threads, values): (CuteLayout, CuteLayout) = ("(4,8):(8,1)".parse()?, "(1,4):(4,1)".parse()?);
/// let (tile, tv) = make_layout_tv(&threads, &values)?;
/// assert_eq!(tile, [4, 32]);
/// assert_eq!(tv.to_string(), "((8,4),4):((16,1),4)");
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn make_layout_tv(threads: &CuteLayout, values: &CuteLayout) -> Result<(Vec<i64>, CuteLayout)> {
    let numbered = raked_product(threads, values)?;
    let inverse = right_inverse(&numbered)?;
    if inverse.size() != numbered.size() {
        return Err(Error::none(format!(
            "thread-value layout: {threads} and {values} number {} of the {} elements of the tile",
            inverse.size(),
            numbered.size()
        )));
    }
    let both = CuteLayout::compact(vec![threads.size(), values.size()])?;
    let tile = numbered.modes().iter().map(CuteLayout::size).collect();
    Ok((tile, composition(&inverse, &both)?))
}

/// What each thread holds of `a`: `((thread, value), rest)`, for tiles of the shape `tile` that the layout
/// `tv` distributes ([`make_layout_tv`]), `rest` one mode a dimension.
///
/// # Errors
/// As [`zipped_divide`] and [`composition`].
pub fn partition_tv(a: &CuteLayout, tile: &[i64], tv: &CuteLayout) -> Result<CuteLayout> {
    let tiler = Tiler::Tuple(tile.iter().map(|&extent| Tiler::Extent(extent)).collect());
    let mut parts = zipped_divide(a, &tiler)?.modes().into_iter();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(one), Some(rest), None) => CuteLayout::concat([composition(&one, tv)?, rest]),
        _ => Err(Error::none("a CuTe partition that has no two parts")),
    }
}
