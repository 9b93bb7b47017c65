//! Copies by the tensor memory accelerator: a descriptor of global memory, and boxes of it.
//!
//! The plan reads two layouts (paper, section 3.4 and appendix F). Each iter of the global memory's
//! dimensions is a dimension of the descriptor. The shared tile is grouped by the same digits, and the box
//! is the largest part of it that the accelerator can write: its innermost digit is contiguous, and every
//! further dimension follows densely. What is left of the shared layout, whichever way its digits are
//! strided, is a direct sum of that box with a loop over boxes.

mod check;

use super::Decline;
use axe_layout::{Axis, Iter, Layout, Swizzle};
use std::fmt;

/// The mark of a global memory's outermost extent that is known at run time.
const DYNAMIC: i64 = i64::MIN;
/// Dimensions of a descriptor (CUDA driver API, cuTensorMapEncodeTiled: `tensorRank`).
const MAX_RANK: usize = 5;
/// Elements of a box along a dimension (`boxDim`).
const MAX_BOX: i64 = 256;
/// Bytes that divide strides, the base address and a box's row (`globalStrides`, `globalAddress`).
pub const GRANULE: i64 = 16;
/// Strides are below this many bytes.
const MAX_STRIDE: i64 = 1 << 40;
/// Bytes to which a box in shared memory is aligned (PTX ISA 9.7.9.27.1.2).
const SHARED_ALIGNMENT: i64 = 128;
/// More boxes than this are no loop to unroll.
const MAX_BOXES: usize = 256;

/// Global memory, as a kernel's argument or a view of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Extents; the outermost is `i64::MIN` when it is known at run time.
    pub shape: Vec<i64>,
    /// The iters of each dimension on `m`, in elements, outermost first.
    pub dims: Vec<Vec<Iter>>,
    /// The dimension that each dimension of the tile is.
    pub kept: Vec<usize>,
    /// What divides the tile's run-time origin along each dimension; 0 for an origin of zero.
    pub divisors: Vec<i64>,
}

/// How 16-byte chunks move in shared memory (`CUtensorMapSwizzle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmaSwizzle {
    /// They do not.
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl TmaSwizzle {
    /// The mode of a shared layout's swizzle on elements of so many bytes.
    fn of(swizzle: Option<Swizzle>, bytes: i64) -> Result<Self, Decline> {
        let Some(swizzle) = swizzle else {
            return Ok(Self::None);
        };
        // In bytes, all modes leave 16 bytes together and take their bits from 128 bytes up.
        let base = i64::from(swizzle.base()) + i64::from(bytes.trailing_zeros());
        match (swizzle.bits(), base, swizzle.shift(), swizzle.inner()) {
            (1, 4, 3, true) => Ok(Self::B32),
            (2, 4, 3, true) => Ok(Self::B64),
            (3, 4, 3, true) => Ok(Self::B128),
            _ => Err(Decline::new(format!(
                "the accelerator has no swizzle {swizzle} on elements of {bytes} bytes: expected 1 to 3 bits that move 16 bytes by rows of 128"
            ))),
        }
    }

    /// The bytes within which chunks move.
    fn span(self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// The address that a byte of a box has, by PTX ISA 9.7.9.27.1.2 ("Swizzling Modes").
    fn apply(self, address: i64) -> i64 {
        match self.span() {
            None => address,
            Some(span) => address ^ ((address >> 7 & (span / 16 - 1)) << 4),
        }
    }
}

impl fmt::Display for TmaSwizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span() {
            None => f.write_str("none"),
            Some(span) => write!(f, "{span}B"),
        }
    }
}

/// The part of a tensor map that is known when compiling. Dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The element type, as MLIR writes it.
    pub element: String,
    /// Extents in elements; `None` for the outermost of the argument, when it is known at run time.
    pub extents: Vec<Option<i64>>,
    /// Bytes between elements, of all dimensions but the innermost.
    pub strides: Vec<i64>,
    /// Extents of a box.
    pub r#box: Vec<i64>,
    /// The swizzle.
    pub swizzle: TmaSwizzle,
}

impl TensorMap {
    /// The entries of a launch's `tensor_maps`.
    #[must_use]
    pub fn attributes(&self) -> String {
        let list = |values: &mut dyn Iterator<Item = i64>| {
            let values: Vec<_> = values.map(|value| value.to_string()).collect();
            values.join(", ")
        };
        format!(
            "type = \"{}\", extents = [{}], strides = [{}], box = [{}], swizzle = \"{}\"",
            self.element,
            list(&mut self.extents.iter().map(|extent| extent.unwrap_or(-1))),
            list(&mut self.strides.iter().copied()),
            list(&mut self.r#box.iter().copied()),
            self.swizzle
        )
    }
}

/// A coordinate of a box: a digit of the tile's origin along a dimension, and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One instruction's box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmaBox {
    /// Its coordinates, innermost first.
    pub coordinates: Vec<Coordinate>,
    /// Its place in the shared tile, in elements.
    pub shared: i64,
}

/// A copy between a tile of global memory and shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmaPlan {
    /// The descriptor.
    pub map: TensorMap,
    /// The boxes, each one instruction.
    pub boxes: Vec<TmaBox>,
}

/// A digit of the tile along a dimension of the descriptor.
#[derive(Clone, Debug)]
struct Digit {
    dim: usize,
    divisor: i64,
    modulus: Option<i64>,
    /// The extent and stride in global memory; `None` for an extent that is known at run time.
    global: (Option<i64>, i64),
    /// Elements of the tile along it.
    tile: i64,
    /// Where they are in shared memory, outermost first.
    shared: Vec<Iter>,
}

impl Digit {
    /// The extent of the innermost shared iter, and its stride.
    fn innermost(&self) -> Option<Iter> {
        self.shared.last().copied()
    }
}

impl TmaPlan {
    /// The plan of a tile of `shape` at a run-time origin of `global`, whose place in shared memory is
    /// `shared` (on `m`, in elements, from an address that its swizzle's period divides).
    ///
    /// # Errors
    /// The rule of the accelerator that the layouts do not meet.
    pub fn new(
        global: &Global,
        shape: &[i64],
        shared: &Layout,
        element: &str,
        bytes: i64,
    ) -> Result<Self, Decline> {
        let swizzle = TmaSwizzle::of(shared.swizzle(), bytes)?;
        let mut digits = digits(global, shape, bytes)?;
        place(&mut digits, shared)?;
        let (ordered, extents) = largest_box(digits, swizzle, bytes)?;
        let map = describe(&ordered, &extents, element, bytes, swizzle)?;
        let plan = Self {
            boxes: boxes(
                &ordered,
                &extents,
                shared.offset().get(Axis::M),
                swizzle,
                bytes,
            )?,
            map,
        };
        plan.check(global, shape, shared, bytes)?;
        Ok(plan)
    }

    /// Bytes of all boxes.
    #[must_use]
    pub fn bytes(&self, element_bytes: i64) -> i64 {
        let elements: i64 = self.map.r#box.iter().product();
        let boxes = i64::try_from(self.boxes.len()).unwrap_or(0);
        elements * boxes * element_bytes
    }
}

/// The digits of a tile of global memory, in the order of the tile's flat index.
fn digits(global: &Global, shape: &[i64], bytes: i64) -> Result<Vec<Digit>, Decline> {
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
        if divisor % below != 0 || !outermost && divisor % (below * tile) != 0 {
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

/// Finds where each digit of the tile is in shared memory.
fn place(digits: &mut [Digit], shared: &Layout) -> Result<(), Decline> {
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

/// Orders the digits as the descriptor's dimensions, innermost first, with the extents of the largest box.
fn largest_box(
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
    let mut dense = row;
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

/// Elements of the box's innermost dimension.
fn inner_extent(first: &Digit, swizzle: TmaSwizzle, bytes: i64) -> Result<i64, Decline> {
    let iter = first.innermost().filter(|iter| iter.stride == 1);
    let contiguous = iter.map_or(1, |iter| iter.extent);
    let wanted = swizzle.span().map(|span| span / bytes);
    let most = wanted.unwrap_or(MAX_BOX).min(contiguous);
    let extent = (1..=most)
        .rev()
        .find(|part| contiguous % part == 0)
        .unwrap_or(1);
    if wanted.is_some_and(|wanted| wanted != extent) {
        return Err(Decline::new(format!(
            "the inner box is {} bytes, and the {swizzle} swizzle moves chunks of rows of that many",
            extent * bytes
        )));
    }
    if extent * bytes % GRANULE != 0 {
        return Err(Decline::new(format!(
            "the inner box is {} bytes: expected a multiple of {GRANULE}",
            extent * bytes
        )));
    }
    Ok(extent)
}

/// The descriptor of ordered digits.
fn describe(
    digits: &[Digit],
    extents: &[i64],
    element: &str,
    bytes: i64,
    swizzle: TmaSwizzle,
) -> Result<TensorMap, Decline> {
    if digits.len() > MAX_RANK {
        return Err(Decline::new(format!(
            "the global memory has {} dimensions of more than one element: expected at most {MAX_RANK}",
            digits.len()
        )));
    }
    let strides: Vec<_> = digits
        .iter()
        .skip(1)
        .map(|digit| digit.global.1 * bytes)
        .collect();
    if let Some(stride) = strides
        .iter()
        .find(|stride| **stride <= 0 || **stride % GRANULE != 0 || **stride >= MAX_STRIDE)
    {
        return Err(Decline::new(format!(
            "a stride of {stride} bytes: expected a positive multiple of {GRANULE} below 2^40"
        )));
    }
    let limit = 1_i64 << 32;
    if digits
        .iter()
        .any(|digit| digit.global.0.is_some_and(|extent| extent > limit))
    {
        return Err(Decline::new("an extent of more than 2^32 elements"));
    }
    Ok(TensorMap {
        element: element.to_owned(),
        extents: digits.iter().map(|digit| digit.global.0).collect(),
        strides,
        r#box: extents.to_vec(),
        swizzle,
    })
}

/// All boxes of a tile.
fn boxes(
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
    // A swizzle's pattern begins anew at its period: 8 rows of 16-byte chunks (PTX ISA 9.7.9.27.1.2).
    let alignment = swizzle.span().map_or(SHARED_ALIGNMENT, |span| 8 * span);
    match boxes
        .iter()
        .find(|each| each.shared * bytes % alignment != 0)
    {
        None => Ok(boxes),
        Some(each) => Err(Decline::new(format!(
            "a box at byte {} of the shared tile: expected a multiple of {alignment}",
            each.shared * bytes
        ))),
    }
}

impl fmt::Display for TmaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tensor map {{{}}}", self.map.attributes())?;
        for each in &self.boxes {
            let coordinates = each.coordinates.iter().map(|coordinate| {
                let mut text = format!("x{}", coordinate.dim);
                if coordinate.divisor > 1 {
                    text += &format!(" / {}", coordinate.divisor);
                }
                if let Some(modulus) = coordinate.modulus {
                    text += &format!(" mod {modulus}");
                }
                if coordinate.offset > 0 {
                    text += &format!(" + {}", coordinate.offset);
                }
                text
            });
            let coordinates: Vec<_> = coordinates.collect();
            writeln!(
                f,
                "box [{}] <-> shared + {}",
                coordinates.join(", "),
                each.shared
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn global(shape: &[i64], strides: &[i64]) -> Global {
        let dims = shape.iter().zip(strides).map(|(&extent, &stride)| {
            let extent = if extent == DYNAMIC { 1 << 40 } else { extent };
            vec![Iter::new(extent, stride, Axis::M)]
        });
        Global {
            shape: shape.to_vec(),
            dims: dims.collect(),
            kept: (0..shape.len()).collect(),
            divisors: vec![64; shape.len()],
        }
    }

    pub(super) fn plan(global: &Global, tile: &[i64], shared: &str) -> Result<TmaPlan, Decline> {
        TmaPlan::new(global, tile, &shared.parse().unwrap(), "f16", 2)
    }

    #[test]
    fn a_swizzled_tile_is_one_box() {
        let memory = global(&[DYNAMIC, 4096], &[4096, 1]);
        let plan = plan(&memory, &[128, 64], "Sw<3,3,3> o S[(128, 64) : (64, 1)]").unwrap();
        assert_eq!(plan.boxes.len(), 1);
        assert_eq!(plan.map.r#box, [64, 128]);
        assert_eq!(plan.map.extents, [Some(4096), None]);
        assert_eq!(plan.map.strides, [8192]);
        assert_eq!(plan.map.swizzle, TmaSwizzle::B128);
        assert_eq!(plan.bytes(2), 128 * 64 * 2);
    }

    #[test]
    fn panels_and_long_tiles_are_loops_of_boxes() {
        let memory = global(&[4096, 4096], &[4096, 1]);
        let panels = "Sw<3,3,3> o S[(64, 2, 64) : (64, 4096, 1)]";
        let two = plan(&memory, &[64, 128], panels).unwrap();
        assert_eq!(two.boxes.len(), 2);
        assert_eq!(
            (two.boxes[1].coordinates[0].offset, two.boxes[1].shared),
            (64, 4096)
        );
        let long = plan(&memory, &[512, 64], "Sw<3,3,3> o S[(512, 64) : (64, 1)]").unwrap();
        assert_eq!(
            (long.map.r#box.clone(), long.boxes.len()),
            (vec![64, 256], 2)
        );
        let narrow = plan(&memory, &[64, 32], "Sw<2,3,3> o S[(64, 32) : (32, 1)]").unwrap();
        assert_eq!(narrow.map.swizzle, TmaSwizzle::B64);
    }

    #[test]
    fn dimensions_in_another_order_and_dropped_ones() {
        let turned = global(&[4096, 512], &[1, 4096]);
        let tile = plan(&turned, &[64, 32], "Sw<3,3,3> o S[(64, 32) : (1, 64)]").unwrap();
        assert_eq!(
            (tile.map.r#box.clone(), tile.boxes.len()),
            (vec![64, 32], 1)
        );
        let mut batch = global(&[8, 256, 64], &[16384, 64, 1]);
        batch.kept = vec![1, 2];
        let one = plan(&batch, &[128, 64], "S[(128, 64) : (64, 1)]").unwrap();
        assert_eq!(one.map.r#box, [64, 128, 1]);
        assert_eq!(one.boxes[0].coordinates[2].dim, 0);
        // The shared tile has the batch outermost, or between rows and columns.
        let mut batch = global(&[8, 256, 64], &[64, 512, 1]);
        batch.kept = vec![0, 1, 2];
        let mixed = plan(&batch, &[2, 16, 64], "S[(2, 16, 64) : (64, 128, 1)]").unwrap();
        assert_eq!(
            (mixed.map.r#box.clone(), mixed.boxes.len()),
            (vec![64, 2, 16], 1)
        );
        assert_eq!(mixed.boxes[0].coordinates[1].dim, 0);
    }

    #[test]
    fn a_dimension_of_several_iters_is_several_of_the_map() {
        // Blocks of 64 columns, one after the other.
        let mut memory = global(&[256, 512], &[64, 1]);
        memory.dims[1] = vec![Iter::new(8, 16384, Axis::M), Iter::new(64, 1, Axis::M)];
        let plan = plan(&memory, &[32, 128], "S[(32, 2, 64) : (64, 2048, 1)]").unwrap();
        assert_eq!(plan.map.r#box, [64, 32, 2]);
        assert_eq!(plan.boxes[0].coordinates[0].modulus, Some(64));
        assert_eq!(plan.boxes[0].coordinates[2].divisor, 64);
    }

    #[test]
    fn one_row_is_a_dimension_still() {
        let row = global(&[1, 4096], &[4096, 1]);
        let plan = plan(&row, &[64, 64], "Sw<3,3,3> o S[(64, 64) : (64, 1)]").unwrap();
        assert_eq!(
            (plan.map.r#box, plan.map.extents),
            (vec![64, 64], vec![Some(4096), Some(1)])
        );
    }

    #[test]
    fn a_tile_inside_an_iter_is_refused() {
        let mut blocks = global(&[64, 256], &[256, 1]);
        blocks.dims[1] = vec![Iter::new(4, 4096, Axis::M), Iter::new(64, 1, Axis::M)];
        blocks.divisors = vec![64, 8];
        let refused = plan(&blocks, &[64, 16], "S[(64, 16) : (16, 1)]").unwrap_err();
        assert!(
            refused.to_string().contains("inside an iter of 64"),
            "{refused}"
        );
    }

    #[test]
    fn declines_say_which_rule() {
        let odd = global(&[100, 4100], &[4100, 1]);
        let shared = "S[(128, 64) : (64, 1)]";
        let reason = |result: Result<TmaPlan, Decline>| result.unwrap_err().to_string();
        assert!(reason(plan(&odd, &[128, 64], shared)).contains("8200 bytes"));
        let memory = global(&[4096, 4096], &[4096, 1]);
        let row = plan(&memory, &[16, 12], "S[(16, 12) : (12, 1)]");
        assert!(reason(row).contains("24 bytes"));
        let turned = plan(&memory, &[64, 64], "S[(64, 64) : (1, 64)]");
        assert!(reason(turned).contains("2 bytes"));
        let swizzle = plan(&memory, &[64, 64], "Sw<3,4,3> o S[(64, 64) : (64, 1)]");
        assert!(reason(swizzle).contains("no swizzle"));
        let span = plan(&memory, &[64, 32], "Sw<3,3,3> o S[(64, 32) : (32, 1)]");
        assert!(reason(span).contains("128B"));
        let mut shifted = global(&[4096, 4096], &[4096, 1]);
        shifted.divisors = vec![64, 4];
        assert!(reason(plan(&shifted, &[128, 64], shared)).contains("multiple of 8 bytes"));
        let strided = global(&[64, 64], &[128, 2]);
        let tile = plan(&strided, &[64, 64], "S[(64, 64) : (64, 1)]");
        assert!(reason(tile).contains("contiguous"));
    }

    proptest::proptest! {
        /// Every plan that is made was compared with its layouts, element by element; here the accelerator's
        /// descriptor is compared with the global memory too.
        #[test]
        fn boxes_read_what_the_tile_says(
            order in 0..6_usize,
            tile in proptest::array::uniform3(0..4_u32),
            padded in proptest::bool::ANY,
        ) {
            let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
            let order = orders[order];
            let shape = [16_i64, 32, 64];
            let (mut strides, mut next) = ([0; 3], 1);
            for dim in order.iter().rev() {
                strides[*dim] = next;
                next *= shape[*dim] + if padded { 16 } else { 0 };
            }
            let tile: Vec<i64> = tile.iter().map(|bits| 8 << bits).collect();
            let tile: Vec<i64> = tile.iter().zip(shape).map(|(tile, extent)| (*tile).min(extent)).collect();
            let memory = global(&shape, &strides);
            let shared = {
                let (mut iters, mut next) = (vec![Iter::new(1, 0, Axis::M); 3], 1);
                for dim in order.iter().rev() {
                    iters[*dim] = Iter::new(tile[*dim], next, Axis::M);
                    next *= tile[*dim];
                }
                Layout::from_shard(iters).unwrap()
            };
            let plan = TmaPlan::new(&memory, &tile, &shared, "f16", 2).unwrap();
            // Element by element: the global address by the map is that of the tile's index.
            let mut elements = 0;
            for each in &plan.boxes {
                for at in 0..plan.map.r#box.iter().product::<i64>() {
                    let (mut rest, mut address, mut index) = (at, 0, [0; 3]);
                    for (level, extent) in plan.map.r#box.iter().enumerate() {
                        let coordinate = rest % extent + each.coordinates[level].offset;
                        let stride = if level == 0 { 1 } else { plan.map.strides[level - 1] / 2 };
                        address += coordinate * stride;
                        index[each.coordinates[level].dim] = coordinate;
                        rest /= extent;
                    }
                    let expected: i64 = index.iter().zip(strides).map(|(x, stride)| x * stride).sum();
                    proptest::prop_assert_eq!(address, expected);
                    let flat = index.iter().zip(&tile).fold(0, |flat, (x, extent)| flat * extent + x);
                    let place = shared.origin(flat).unwrap().get(Axis::M);
                    proptest::prop_assert_eq!(each.shared + at, place);
                    elements += 1;
                }
            }
            proptest::prop_assert_eq!(elements, tile.iter().product::<i64>());
        }
    }
}
