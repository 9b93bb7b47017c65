//! The digits of a tile: each is a dimension of the descriptor, and has a place in shared memory.

use super::{DYNAMIC, Decline, GRANULE, Global};
use axe_layout::{Iter, Layout};

/// A digit of the tile along a dimension of the descriptor.
#[derive(Clone, Debug)]
pub(super) struct Digit {
    pub dim: usize,
    pub divisor: i64,
    pub modulus: Option<i64>,
    /// The extent and stride in global memory; `None` for an extent that is known at run time.
    pub global: (Option<i64>, i64),
    /// Elements of the tile along it.
    pub tile: i64,
    /// Where they are in shared memory, outermost first.
    pub shared: Vec<Iter>,
}

impl Digit {
    /// The extent of the innermost shared iter, and its stride.
    pub fn innermost(&self) -> Option<Iter> {
        self.shared.last().copied()
    }
}

/// The digits of a tile of global memory, in the order of the tile's flat index.
pub(super) fn of(global: &Global, shape: &[i64], bytes: i64) -> Result<Vec<Digit>, Decline> {
    let mut digits = Vec::new();
    for dim in 0..global.shape.len() {
        let tile = global.kept.iter().position(|kept| *kept == dim);
        let extent = tile.and_then(|at| shape.get(at)).copied().unwrap_or(1);
        let mut own = digits_of(global, dim, extent, bytes)?;
        own.reverse();
        digits.extend(own);
    }
    Ok(digits)
}

/// The digits of one dimension, innermost first.
fn digits_of(global: &Global, dim: usize, extent: i64, bytes: i64) -> Result<Vec<Digit>, Decline> {
    let whole = global.shape.get(dim).copied().unwrap_or(1);
    let all = global.dims.get(dim).map_or(&[][..], Vec::as_slice);
    let mut iters: Vec<_> = all.iter().filter(|iter| iter.extent > 1).collect();
    let divisor = global.divisors.get(dim).copied().unwrap_or(1);
    if iters.is_empty() && (extent > 1 || divisor != 0) {
        // A dimension of one element has a stride still: the tile's others, and those at other origins, do not exist.
        iters.extend(all.last());
    }
    let (mut below, mut left) = (1, extent);
    let mut digits = Vec::new();
    for (at, iter) in iters.iter().enumerate().rev() {
        let outermost = at == 0;
        let tile = if outermost {
            left
        } else {
            left.min(iter.extent)
        };
        if left % tile != 0 || !outermost && iter.extent % tile != 0 {
            return Err(Decline::new(format!(
                "{extent} elements of dimension {dim} end inside an iter of {} elements",
                iter.extent
            )));
        }
        // At another origin the tile's digits would carry.
        let carries = divisor % below != 0 || !outermost && divisor % (below * tile) != 0;
        begins(iter, (dim, divisor), carries, bytes)?;
        let known = (whole != DYNAMIC).then_some(if outermost {
            whole / below
        } else {
            iter.extent
        });
        digits.push(Digit {
            dim,
            divisor: below,
            modulus: (!outermost).then_some(iter.extent),
            global: (
                if outermost { known } else { Some(iter.extent) },
                iter.stride,
            ),
            tile,
            shared: Vec::new(),
        });
        left /= tile;
        below *= iter.extent;
    }
    if left > 1 {
        return Err(Decline::new(format!(
            "the tile has {extent} elements along dimension {dim}, and the memory one"
        )));
    }
    Ok(digits)
}

/// Whether a tile can begin at multiples of so many elements of a dimension, whose digits carry at some of them or do not.
fn begins(
    iter: &Iter,
    (dim, divisor): (usize, i64),
    carries: bool,
    bytes: i64,
) -> Result<(), Decline> {
    if carries {
        return Err(Decline::new(format!(
            "the tile begins at a multiple of {divisor} along dimension {dim}, inside an iter of {} elements",
            iter.extent
        )));
    }
    // The accelerator stops on an innermost coordinate that is no multiple of its granule (seen on an H200).
    if iter.stride == 1 && divisor * bytes % GRANULE != 0 {
        return Err(Decline::new(format!(
            "the tile begins at a multiple of {} bytes: expected one of {GRANULE}",
            divisor * bytes
        )));
    }
    Ok(())
}

/// Finds where each digit of the tile is in shared memory.
pub(super) fn place(digits: &mut [Digit], shared: &Layout) -> Result<(), Decline> {
    let extents: Vec<_> = digits.iter().map(|digit| digit.tile).collect();
    let grouped = shared.group(&extents).map_err(|error| {
        Decline::new(format!(
            "the shared tile does not split as the global one: {error}"
        ))
    })?;
    for (digit, block) in digits.iter_mut().zip(grouped.blocks()) {
        digit.shared = block
            .iter()
            .filter(|iter| iter.extent > 1)
            .copied()
            .collect();
    }
    Ok(())
}
