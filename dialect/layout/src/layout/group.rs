//! Group: cut the shard where the dimensions of a shape meet.

use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;

use super::blocks::Blocks;
use super::canonical::fuse;
use super::measure::shape_size;
use crate::error::{Error, Result};
use crate::iter::{DYNAMIC, Iter};
use crate::layout::{Layout, Replica, Shard};

/// Where blocks of iters begin and end.
pub type Boundaries = SmallVec<[usize; 8]>;

/// A layout whose shard falls into one block of iters a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouped {
    /// The same map, with the fewest iters that respect the shape.
    pub layout: Layout,
    /// Block boundaries: dimension `k` owns the iters `seps[k]..seps[k + 1]`.
    pub seps: Boundaries,
}

/// A layout whose shard falls into blocks for each of several shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedMany {
    /// The same map, with the fewest iters that respect all shapes.
    pub layout: Layout,
    /// Block boundaries, one list a shape.
    pub seps: Vec<Boundaries>,
}

impl Grouped {
    /// The iters of each dimension, outermost first.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &[Iter]> + '_ {
        let ranges = self.seps.windows(2);
        ranges.map(|ends| self.layout.shard.get(ends[0]..ends[1]).unwrap_or(&[]))
    }
}

/// How many indices lie inside one step of each dimension: `prod of the later extents`, for all
/// dimensions and, last, 1.
type Weights = SmallVec<[i64; 8]>;

fn weights(shape: &[i64]) -> Weights {
    let mut weights: Weights = smallvec::smallvec![1; shape.len() + 1];
    for k in (0..shape.len()).rev() {
        // The product over a checked shape fits; a dynamic extent is outermost and has no weight.
        weights[k] = if shape[k] == DYNAMIC {
            DYNAMIC
        } else {
            weights[k + 1] * shape[k]
        };
    }
    weights
}

/// The name of the cut before dimension `k` in messages.
struct Cut<'a>(&'a [i64], i64);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = weights(self.0).iter().position(|w| *w == self.1);
        let k = at.unwrap_or(0);
        write!(f, "the boundary before dimension {k} of {:?}", self.0)
    }
}

/// Cuts fused iters at ascending weights. `Err` holds the iter and the weight that do not fit.
fn cut(fused: &[Iter], cuts: impl Iterator<Item = i64>) -> std::result::Result<Shard, (Iter, i64)> {
    let mut pieces = Shard::new();
    let mut cuts = cuts.peekable();
    let mut weight = 1_i64;
    for iter in fused.iter().rev() {
        let mut left = *iter;
        loop {
            while cuts.next_if(|&c| c <= weight).is_some() {}
            let Some(&next) = cuts.peek() else { break };
            // At most the size of the layout, which fits.
            if left.extent != DYNAMIC && weight * left.extent <= next {
                break;
            }
            let inside = next / weight;
            // A cut that is no multiple of the weight, or a count that does not divide.
            if next % weight != 0 || left.extent == DYNAMIC || left.extent % inside != 0 {
                return Err((*iter, next));
            }
            pieces.push(Iter::new(inside, left.stride, left.axis));
            left.extent /= inside;
            left.stride = left.stride.wrapping_mul(inside);
            weight = next;
        }
        pieces.push(left);
        if left.extent != DYNAMIC {
            weight *= left.extent;
        }
    }
    pieces.reverse();
    Ok(pieces)
}

fn boundaries(iters: &[Iter], weights: &[i64]) -> Boundaries {
    let mut at = iters.len();
    let mut weight = 1_i64;
    let mut seps: Boundaries = weights
        .iter()
        .rev()
        .map(|&wanted| {
            if wanted == DYNAMIC {
                at = 0;
            }
            while at > 0 && weight < wanted {
                at -= 1;
                if iters[at].extent != DYNAMIC {
                    weight *= iters[at].extent;
                }
            }
            at
        })
        .collect();
    seps.reverse();
    // Iters of a dimension of extent 1 at the front have nowhere to be but there are none: fused
    // iters have extents above 1.
    if let Some(first) = seps.first_mut() {
        *first = 0;
    }
    seps
}

impl Layout {
    /// The same map with its shard cut into one block of iters a dimension of `shape`, in the fewest
    /// iters: fused first, then split (paper, section 2.3 and appendix B).
    ///
    /// # Errors
    /// `Invalid` when `shape` is not admitted; `None`, with the iter and the dimension named, when a
    /// dimension boundary falls inside an iter at a place that does not divide it.
    ///
    /// ```
    /// use axe_layout::Layout;
    /// let l: Layout = "S[(2, 8, 6) : (1@warp, 6, 1)]".parse()?;
    /// let grouped = l.group(&[4, 24])?;
    /// assert_eq!(grouped.layout.to_string(), "S[(2, 2, 24) : (1@warp, 24, 1)]");
    /// assert_eq!(grouped.seps[..], [0, 2, 3]);
    /// # Ok::<(), axe_layout::Error>(())
    /// ```
    pub fn group(&self, shape: &[i64]) -> Result<Grouped> {
        let (shard, seps) = match blocks_of(&self.shard, shape) {
            Some(blocks) => blocks,
            None => {
                self.check_shape(shape, "shape of a grouping")?;
                cut_by_shape(&self.shard, shape)?
            }
        };
        let layout = self.with_shard_iters(shard);
        Ok(Grouped { layout, seps })
    }

    /// The same map with its shard cut into blocks for each of `shapes`: the coarsest common
    /// refinement.
    ///
    /// # Errors
    /// As [`Layout::group`].
    pub fn group_many<S: AsRef<[i64]>>(&self, shapes: &[S]) -> Result<GroupedMany> {
        let mut all = Vec::with_capacity(shapes.len());
        for shape in shapes {
            self.check_shape(shape.as_ref(), "shape of a grouping")?;
            all.push(weights(shape.as_ref()));
        }
        let mut cuts: Vec<i64> = all.iter().flatten().copied().filter(|&c| c > 1).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let shard = cut(&fuse(&self.shard), cuts.into_iter()).map_err(|(iter, weight)| {
            let found = all.iter().position(|w| w.contains(&weight)).unwrap_or(0);
            let shape = shapes.get(found).map_or(&[][..], AsRef::as_ref);
            straddles(iter, &Cut(shape, weight))
        })?;
        let seps = all.iter().map(|w| boundaries(&shard, w)).collect();
        let layout = self.with_shard_iters(shard);
        Ok(GroupedMany { layout, seps })
    }

    /// The same layout with other shard iters that are known to be valid.
    pub(crate) fn with_shard_iters(&self, shard: Shard) -> Self {
        Self {
            shard,
            replica: Replica::from_slice(&self.replica),
            offset: self.offset.clone(),
            swizzle: self.swizzle,
        }
    }

    /// The layout with its groups of iters in another order: block `k` of the result is block
    /// `perm[k]`.
    ///
    /// # Errors
    /// `Invalid` when `seps` are no boundaries `0 <= .. <= n` of the shard or `perm` is no permutation
    /// of the blocks, or when a dynamic iter would leave the front.
    pub fn permute_groups(&self, seps: &[usize], perm: &[usize]) -> Result<Self> {
        let bounded =
            seps.first() == Some(&0) && seps.last() == Some(&self.shard.len()) && seps.is_sorted();
        if !bounded {
            return Err(Error::invalid(format!(
                "block boundaries: expected ascending numbers from 0 to {}, got {seps:?}",
                self.shard.len()
            )));
        }
        check_permutation(perm, seps.len() - 1)?;
        let block = |k: usize| -> Range<usize> { seps[k]..seps[k + 1] };
        let shard: Shard = perm
            .iter()
            .flat_map(|&k| self.shard[block(k)].iter().copied())
            .collect();
        let (replica, offset) = (self.replica.clone(), self.offset.clone());
        Self::from_parts(shard, replica, offset, self.swizzle)
    }

    /// The layout of the transposed tensor: dimension `k` of the result is dimension `perm[k]` of
    /// `shape`.
    ///
    /// # Errors
    /// As [`Layout::group`] and [`Layout::permute_groups`].
    pub fn permute_dims(&self, shape: &[i64], perm: &[usize]) -> Result<Self> {
        let grouped = self.group(shape)?;
        grouped.layout.permute_groups(&grouped.seps, perm)
    }
}

fn check_permutation(perm: &[usize], count: usize) -> Result<()> {
    let mut sorted: SmallVec<[usize; 8]> = perm.iter().copied().collect();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..count) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "permutation: expected each of 0..{count} once, got {perm:?}"
    )))
}

fn straddles(iter: Iter, place: &Cut<'_>) -> Error {
    Error::none(format!("no grouping: iter {iter} straddles {place}"))
}

/// The iters of a shard cut by a shape, and the block boundaries: `None` when the shard does not fall
/// into such blocks, and for dynamic extents, which [`cut_by_shape`] knows how to cut.
#[inline]
pub(crate) fn blocks_of(shard: &[Iter], shape: &[i64]) -> Option<(Shard, Boundaries)> {
    let (mut pieces, mut seps) = (Shard::new(), Boundaries::new());
    let mut blocks = Blocks::new(shard);
    seps.push(0);
    for &extent in shape {
        if !blocks.take(extent, |iter| pieces.push(iter)) {
            return None;
        }
        seps.push(pieces.len());
    }
    blocks.is_done().then_some((pieces, seps))
}

/// [`blocks_of`] an admitted shape, with the place where there are none.
#[cold]
pub(crate) fn cut_by_shape(shard: &[Iter], shape: &[i64]) -> Result<(Shard, Boundaries)> {
    debug_assert!(shape.contains(&DYNAMIC) || shape_size(shape).is_ok());
    let weights = weights(shape);
    let cuts = weights.iter().rev().copied();
    let pieces =
        cut(&fuse(shard), cuts).map_err(|(iter, weight)| straddles(iter, &Cut(shape, weight)))?;
    let seps = boundaries(&pieces, &weights);
    Ok((pieces, seps))
}
