//! Triton's encodings as linear layouts, with Triton's dimension names: `register`, `lane`, `warp` and
//! `block` (or `offset` and `block`) in, `dim0`, `dim1`, ... out.
//!
//! The constructions are those of Triton's `LinearLayoutConversions.cpp` (3.x) for one CTA: a tile of
//! registers, lanes and warps, repeated in registers until it fills the shape, its largest bases 0 where it
//! is larger than the shape.

use std::collections::BTreeMap;

use super::named::LinearLayout;
use super::triton_layout::layout_of_linear;
use crate::axis::Axis;
use crate::error::{Error, Result};
use crate::iter::Iter;
use crate::layout::Layout;

/// An encoding of Triton's GPU dialect (`#ttg...`), for one CTA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TritonEncoding {
    /// `#ttg.blocked`: what a thread, a warp and the CTA hold along each dimension; `order` begins with the
    /// fastest one.
    Blocked {
        /// Registers of a thread along each dimension.
        size_per_thread: Vec<i64>,
        /// Lanes of a warp along each dimension.
        threads_per_warp: Vec<i64>,
        /// Warps along each dimension.
        warps_per_cta: Vec<i64>,
        /// Dimensions, the fastest first.
        order: Vec<usize>,
    },
    /// `#ttg.nvidia_mma`: accumulators of `mma` (version 2) and `wgmma` (version 3).
    NvidiaMma {
        /// 2 or 3.
        version: i64,
        /// Warps along each dimension.
        warps_per_cta: Vec<i64>,
        /// M and N of the instruction, then K for version 3.
        instr_shape: Vec<i64>,
    },
    /// `#ttg.dot_op`: operand 0 or 1 of a product whose accumulator is `parent`.
    DotOperand {
        /// 0 for A, 1 for B.
        index: i64,
        /// Consecutive elements along K that a thread holds.
        k_width: i64,
        /// The accumulator's encoding.
        parent: Box<TritonEncoding>,
    },
    /// `#ttg.slice`: `parent` without the dimension `dim`.
    Slice {
        /// The dimension that is left out.
        dim: usize,
        /// The encoding with it.
        parent: Box<TritonEncoding>,
    },
    /// `#ttg.swizzled_shared`: columns in vectors of `vec`, xored by the row.
    SwizzledShared {
        /// Elements that stay together.
        vec: i64,
        /// Rows that are swizzled alike.
        per_phase: i64,
        /// Different phases.
        max_phase: i64,
        /// Dimensions, the fastest first.
        order: Vec<usize>,
    },
    /// `#ttg.padded_shared`: after so many elements, so many elements of padding.
    PaddedShared {
        /// Intervals and paddings, in elements; intervals are powers of two.
        paddings: Vec<(i64, i64)>,
        /// Dimensions, the fastest first.
        order: Vec<usize>,
    },
    /// `#ttg.linear`.
    Linear(LinearLayout),
}

fn name(name: &str) -> Result<Axis> {
    Axis::new(name)
}

/// `dim0`, `dim1`, ...
pub(super) fn out_dim(dim: usize) -> Result<Axis> {
    Axis::new(&format!("dim{dim}"))
}

pub(super) fn bits(extent: i64, what: &str) -> Result<usize> {
    if extent < 1 || !extent.unsigned_abs().is_power_of_two() {
        return Err(Error::invalid(format!(
            "{what}: expected a power of two, got {extent}"
        )));
    }
    Ok(extent.trailing_zeros() as usize)
}

/// The identity from `input` to the dimensions of `shape`, the first of `order` the fastest (Triton's
/// `identityStandardND`); zeros along `broadcast`.
fn standard(
    input: &str,
    shape: &[i64],
    order: &[usize],
    broadcast: Option<usize>,
) -> Result<LinearLayout> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..shape.len()) {
        return Err(Error::invalid(format!(
            "order {order:?}: expected a permutation of {} dimensions",
            shape.len()
        )));
    }
    order
        .iter()
        .try_fold(LinearLayout::default(), |layout, &dim| {
            let bits = bits(shape.get(dim).copied().unwrap_or(0), input)?;
            let part = if broadcast == Some(dim) {
                LinearLayout::zeros(name(input)?, out_dim(dim)?, bits)?
            } else {
                LinearLayout::identity(name(input)?, out_dim(dim)?, bits)?
            };
            layout.product(&part)
        })
}

/// Dimensions with the last one, or the second last one, the fastest.
fn matrix_order(rank: usize, last_fastest: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if !last_fastest && rank > 1 {
        order.swap(0, 1);
    }
    order
}

/// Triton's `nvidiaMmaTile`: four lanes along `order[0]`, eight along `order[1]`.
fn mma_tile(
    tile: &[i64],
    k_width: i64,
    order: &[usize],
    repetitions: &[usize],
) -> Result<LinearLayout> {
    let (&[inner, outer, ..], rank) = (order, tile.len()) else {
        return Err(Error::invalid(
            "mma encoding: expected at least two dimensions",
        ));
    };
    let extent = |dim: usize| tile.get(dim).copied().unwrap_or(0);
    let (m, n) = (extent(outer), extent(inner));
    if m < 8 || m % 8 != 0 || k_width < 1 || n < 4 * k_width || n % (4 * k_width) != 0 {
        return Err(Error::invalid(format!(
            "mma encoding: a tile of {m}x{n} with {k_width} elements a word"
        )));
    }
    let empty = standard("register", &vec![1; rank], repetitions, None)?;
    let parts = [
        ("register", inner, k_width),
        ("lane", inner, 4),
        ("lane", outer, 8),
        ("register", outer, m / 8),
        ("register", inner, n / (4 * k_width)),
    ];
    parts
        .into_iter()
        .try_fold(empty, |layout, (input, dim, extent)| {
            let bits = bits(extent, "a tile of an mma encoding")?;
            layout.product(&LinearLayout::identity(name(input)?, out_dim(dim)?, bits)?)
        })
}

/// The images of the bits of each input, one value an output.
pub(super) fn images(layout: &LinearLayout) -> Result<Vec<(Axis, Vec<Vec<u64>>)>> {
    let of = |&(input, bits): &(Axis, usize)| -> Result<(Axis, Vec<Vec<u64>>)> {
        let image = |bit: usize| -> Result<Vec<u64>> {
            let at = layout.apply(&[(input, 1 << bit)])?;
            Ok(at.into_iter().map(|(_, value)| value).collect())
        };
        Ok((input, (0..bits).map(image).collect::<Result<_>>()?))
    };
    layout.inputs().iter().map(of).collect()
}

/// Repeats in registers what is smaller than the shape, zeroes the largest bases of what is larger, and puts
/// the dimensions in their order (Triton's `combineCtaCgaWithShape` for one CTA).
fn fill(layout: LinearLayout, shape: &[i64], inputs: &[&str]) -> Result<LinearLayout> {
    let register = inputs.first().copied().unwrap_or("register");
    let wanted: Vec<(Axis, usize)> = shape
        .iter()
        .enumerate()
        .map(|(dim, &extent)| Ok((out_dim(dim)?, bits(extent, "shape of a Triton tensor")?)))
        .collect::<Result<_>>()?;
    let bits_of = |axis: Axis| {
        wanted
            .iter()
            .find(|(dim, _)| *dim == axis)
            .map_or(0, |dim| dim.1)
    };
    let mut filled = layout.clone();
    for &(axis, have) in layout.outputs() {
        let more = bits_of(axis).saturating_sub(have);
        filled = filled.product(&LinearLayout::identity(name(register)?, axis, more)?)?;
    }
    let mut all = images(&filled)?;
    for (at, &(axis, _)) in filled.outputs().iter().enumerate() {
        // A base of the size or more is beyond the shape.
        let beyond = 1_u64 << bits_of(axis);
        for image in all.iter_mut().flat_map(|(_, images)| images) {
            if let Some(value) = image.get_mut(at).filter(|value| **value >= beyond) {
                *value = 0;
            }
        }
    }
    let outputs = filled
        .outputs()
        .iter()
        .map(|&(axis, _)| (axis, bits_of(axis)))
        .collect();
    let filled = LinearLayout::new(all, outputs)?;
    let inputs: Vec<(Axis, usize)> = inputs
        .iter()
        .map(|input| {
            let axis = name(input)?;
            let have = filled.inputs().iter().find(|(own, _)| *own == axis);
            Ok((axis, have.map_or(0, |have| have.1)))
        })
        .collect::<Result<_>>()?;
    filled.reordered(&inputs, &wanted)
}

const DISTRIBUTED: [&str; 4] = ["register", "lane", "warp", "block"];
const SHARED: [&str; 2] = ["offset", "block"];

impl TritonEncoding {
    /// The linear layout of a tensor of `shape`.
    ///
    /// # Errors
    /// `Invalid` for sizes that are no powers of two, orders that are no permutations and ranks that differ;
    /// `Unsupported` for dot operands of other parents than `nvidia_mma`, and for padding, which is no linear
    /// layout ([`TritonEncoding::to_layout`] is an Axe layout).
    pub fn to_linear(&self, shape: &[i64]) -> Result<LinearLayout> {
        match self {
            Self::Blocked {
                size_per_thread,
                threads_per_warp,
                warps_per_cta,
                order,
            } => {
                let part = |input, extents: &[i64]| standard(input, extents, order, None);
                let tile = part("register", size_per_thread)?
                    .product(&part("lane", threads_per_warp)?)?
                    .product(&part("warp", warps_per_cta)?)?;
                check_rank(tile.outputs().len(), shape.len())?;
                fill(tile, shape, &DISTRIBUTED)
            }
            Self::NvidiaMma {
                version,
                warps_per_cta,
                instr_shape,
            } => accumulator(*version, warps_per_cta, instr_shape, shape),
            Self::DotOperand {
                index,
                k_width,
                parent,
            } => dot_operand(*index, *k_width, parent, shape),
            Self::Slice { dim, parent } => slice(*dim, parent, shape),
            Self::SwizzledShared {
                vec,
                per_phase,
                max_phase,
                order,
            } => shared([*vec, *per_phase, *max_phase], order, shape),
            Self::PaddedShared { .. } => Err(Error::unsupported(
                "a linear layout of padded shared memory: padding is not linear over F2",
            )),
            Self::Linear(layout) => {
                let sizes: Vec<i64> = layout.outputs().iter().map(|(_, bits)| 1 << bits).collect();
                if sizes != shape {
                    return Err(Error::invalid(format!(
                        "a linear encoding of the shape {sizes:?}, of a tensor {shape:?}"
                    )));
                }
                Ok(layout.clone())
            }
        }
    }

    /// The Axe layout of a tensor of `shape`, row-major, on the axes `reg`, `lane` and `warp`, or on `m`.
    ///
    /// # Errors
    /// As [`TritonEncoding::to_linear`] and [`layout_of_linear`].
    pub fn to_layout(&self, shape: &[i64]) -> Result<Layout> {
        match self {
            Self::PaddedShared { paddings, order } => padded(paddings, order, shape),
            _ => layout_of_linear(&self.to_linear(shape)?),
        }
    }
}

fn check_rank(got: usize, expected: usize) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::Rank {
        what: "dimensions of a Triton encoding",
        expected,
        got,
    })
}

/// What `mma` (version 2) and `wgmma` (version 3) accumulate.
fn accumulator(
    version: i64,
    warps_per_cta: &[i64],
    instr_shape: &[i64],
    shape: &[i64],
) -> Result<LinearLayout> {
    let rank = shape.len();
    check_rank(warps_per_cta.len(), rank)?;
    let dims = if version == 3 {
        2
    } else {
        2.max(rank.min(instr_shape.len()))
    };
    let tile = instr_shape.get(..dims).unwrap_or(&[]);
    check_rank(tile.len(), rank)?;
    let order = matrix_order(rank, true);
    let warps = standard(
        "warp",
        warps_per_cta,
        &matrix_order(rank, version != 3),
        None,
    )?;
    let whole = mma_tile(tile, 2, &order, &order)?.product(&warps)?;
    fill(whole, shape, &DISTRIBUTED)
}

fn dot_operand(
    index: i64,
    k_width: i64,
    parent: &TritonEncoding,
    shape: &[i64],
) -> Result<LinearLayout> {
    let TritonEncoding::NvidiaMma {
        version,
        warps_per_cta,
        ..
    } = parent
    else {
        return Err(Error::unsupported(
            "a dot operand whose parent is no nvidia_mma encoding",
        ));
    };
    let rank = shape.len();
    if rank < 2 || !(0..=1).contains(&index) || *version == 3 && index == 1 {
        return Err(Error::invalid(
            "a dot operand: expected index 0 or 1 (0 alone for wgmma) and two dimensions or more",
        ));
    }
    check_rank(warps_per_cta.len(), rank)?;
    let is_a = index == 0;
    let k_size = k_width
        .checked_mul(8)
        .ok_or_else(|| Error::overflow("a dot operand's tile"))?;
    let mut tile = vec![1; rank];
    let (rows, columns) = if is_a { (16, k_size) } else { (k_size, 8) };
    (tile[rank - 2], tile[rank - 1]) = (rows, columns);
    // K is the fastest.
    let order = matrix_order(rank, is_a);
    let k_dim = if is_a { rank - 1 } else { rank - 2 };
    let warps = standard(
        "warp",
        warps_per_cta,
        &matrix_order(rank, *version != 3),
        Some(k_dim),
    )?;
    fill(
        mma_tile(&tile, k_width, &order, &order)?.product(&warps)?,
        shape,
        &DISTRIBUTED,
    )
}

fn slice(dim: usize, parent: &TritonEncoding, shape: &[i64]) -> Result<LinearLayout> {
    if dim > shape.len() {
        return Err(Error::invalid(format!(
            "slice: the parent has no dimension {dim}"
        )));
    }
    let mut whole = shape.to_vec();
    whole.insert(dim, 1);
    let parent = parent.to_linear(&whole)?;
    let mut all = images(&parent)?;
    for (input, images) in &mut all {
        images.iter_mut().for_each(|image| {
            image.remove(dim);
        });
        // Registers that are copies are left out.
        if input.name() == "register" {
            images.retain(|image| image.iter().any(|value| *value != 0));
        }
    }
    let outputs = shape
        .iter()
        .enumerate()
        .map(|(dim, &extent)| Ok((out_dim(dim)?, bits(extent, "shape of a Triton tensor")?)));
    LinearLayout::new(all, outputs.collect::<Result<_>>()?)
}

fn shared(
    [vec, per_phase, max_phase]: [i64; 3],
    order: &[usize],
    shape: &[i64],
) -> Result<LinearLayout> {
    let &[col, row, ..] = order else {
        return fill(standard("offset", shape, order, None)?, shape, &SHARED);
    };
    check_rank(order.len(), shape.len())?;
    for (value, what) in [
        (vec, "vec"),
        (per_phase, "perPhase"),
        (max_phase, "maxPhase"),
    ] {
        bits(value, what)?;
    }
    let extent = |dim: usize| shape.get(dim).copied().unwrap_or(1);
    let (columns, rows) = (extent(col), extent(row));
    let (col_bits, row_bits) = (bits(columns, "columns")?, bits(rows, "rows")?);
    let mut bases: Vec<Vec<u64>> = (0..col_bits).map(|k| vec![1 << k, 0]).collect();
    for k in 0..row_bits {
        let phase = ((1_i64 << k) / per_phase) % max_phase;
        let moved = vec
            .checked_mul(phase)
            .ok_or_else(|| Error::overflow("a swizzle's column"))?;
        bases.push(vec![(moved % columns).unsigned_abs(), 1 << k]);
    }
    let outputs = vec![(out_dim(col)?, col_bits), (out_dim(row)?, row_bits)];
    let mut layout = LinearLayout::new(vec![(name("offset")?, bases)], outputs)?;
    for &dim in order.iter().skip(2) {
        let bits = bits(extent(dim), "shape of a Triton tensor")?;
        layout = layout.product(&LinearLayout::identity(
            name("offset")?,
            out_dim(dim)?,
            bits,
        )?)?;
    }
    fill(layout, shape, &SHARED)
}

/// Element `x` in the order of memory is at `x + sum (x / interval) * padding`.
fn padded(paddings: &[(i64, i64)], order: &[usize], shape: &[i64]) -> Result<Layout> {
    let plain = standard("offset", shape, order, None)?;
    let overflow = || Error::overflow("an offset of padded shared memory");
    let mut strides: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    let mut reached = 1_i64;
    for &dim in order {
        for _ in 0..bits(
            shape.get(dim).copied().unwrap_or(1),
            "shape of a Triton tensor",
        )? {
            let mut stride = reached;
            for &(interval, padding) in paddings {
                bits(interval, "interval of a padding")?;
                let more = (reached / interval).checked_mul(padding);
                stride = more
                    .and_then(|more| stride.checked_add(more))
                    .ok_or_else(overflow)?;
            }
            strides.entry(dim).or_default().push(stride);
            reached = reached.checked_mul(2).ok_or_else(overflow)?;
        }
    }
    check_rank(plain.outputs().len(), shape.len())?;
    let iters = strides
        .values()
        .flat_map(|bits| bits.iter().rev())
        .map(|&stride| Iter::new(2, stride, Axis::M));
    Ok(Layout::from_shard(iters)?.canonicalize())
}
