//! Vector width: how many elements one access of a lane may move.

use super::access::MAX_BYTES;
use crate::axis::Axis;
use crate::coord::Coord;
use crate::error::{Error, Result};
use crate::layout::Layout;

/// Points that are looked at where the iters do not tell.
const MAX_POINTS: i64 = 1 << 20;

/// The widest access along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorWidth {
    /// Elements of one access, a power of two.
    pub elements: i64,
    /// Bytes of one access: 1, 2, 4, 8 or 16.
    pub bytes: i64,
    /// The largest power of two, up to 16, that divides the byte address of every such vector.
    pub alignment: i64,
}

/// The widest access of 1, 2, 4, 8 or 16 bytes along dimension `dim` of `shape`.
///
/// A vector of `v` elements begins at each coordinate whose entry in `dim` is a multiple of `v`. It can
/// be accessed at once when, for every place of its first element, the others follow side by side on
/// `m` (on the same coordinates of all other axes), after the swizzle, and when its byte address is a
/// multiple of its size. The answer is the widest for which *all* vectors of the tensor can.
///
/// `elem_bits` is the size of an element in bits, `base_alignment` says that address 0 of `m` lies at a
/// multiple of so many bytes.
///
/// # Errors
/// `Invalid` when the shape is not admitted, for a dimension outside, and when `base_alignment` is no
/// power of two or smaller than an element; `Unsupported` for elements other than 8, 16, 32, 64 or 128
/// bits (elements below a byte have no byte address: [`Layout::pack`] them first), and where a swizzle
/// that cuts 16 bytes, or a shape that cuts iters, has more than 2^20 points.
///
/// ```
/// use axe_layout::{Layout, analysis::vector_width};
/// let tile: Layout = "Sw<3,3,3> o S[(128, 64) : (64, 1)]".parse()?;
/// let rows = vector_width(&tile, &[128, 64], 1, 16, 16)?;
/// assert_eq!((rows.elements, rows.bytes, rows.alignment), (8, 16, 16));
/// assert_eq!(vector_width(&tile, &[128, 64], 0, 16, 16)?.elements, 1);
/// # Ok::<(), axe_layout::Error>(())
/// ```
pub fn vector_width(
    layout: &Layout,
    shape: &[i64],
    dim: usize,
    elem_bits: u32,
    base_alignment: i64,
) -> Result<VectorWidth> {
    let elem_bytes = element_bytes(elem_bits)?;
    layout.check_shape(shape, "shape of a vector width")?;
    let Some(&extent) = shape.get(dim) else {
        return Err(Error::invalid(format!(
            "dimension of a vector: expected 0 to {}, got {dim}",
            shape.len().saturating_sub(1)
        )));
    };
    if base_alignment < elem_bytes || base_alignment & (base_alignment - 1) != 0 {
        return Err(Error::invalid(format!(
            "alignment of the base: expected a power of two of at least {elem_bytes} bytes, got \
             {base_alignment}"
        )));
    }
    let vectors = Vectors::new(layout, shape, dim)?;
    let mut elements = MAX_BYTES / elem_bytes;
    loop {
        let fits = extent % elements == 0 || elements == 1;
        if fits && let Some(common) = vectors.common(elements)? {
            let alignment = power_of_two_in(common, elem_bytes).min(base_alignment);
            let bytes = elements * elem_bytes;
            // Every address is a whole number of elements, so that one element is aligned.
            if alignment >= bytes || elements == 1 {
                return Ok(VectorWidth {
                    elements,
                    bytes,
                    alignment,
                });
            }
        }
        elements /= 2;
    }
}

fn element_bytes(elem_bits: u32) -> Result<i64> {
    match elem_bits {
        8 | 16 | 32 | 64 | 128 => Ok(i64::from(elem_bits / 8)),
        1..8 => Err(Error::unsupported(format!(
            "vectors of elements of {elem_bits} bits, which have no byte address: pack them into bytes \
             first"
        ))),
        _ => Err(Error::unsupported(format!(
            "vectors of elements of {elem_bits} bits: expected 8, 16, 32, 64 or 128"
        ))),
    }
}

/// The largest power of two up to 16 that divides `elements * elem_bytes`, 16 for 0.
fn power_of_two_in(elements: i64, elem_bytes: i64) -> i64 {
    let log = elements.trailing_zeros().min(4) + elem_bytes.trailing_zeros();
    1 << log.min(4)
}

/// What is known about the vectors of one dimension.
enum Vectors<'a> {
    /// Runs of `run` elements side by side; all else that the address is a sum of, or-ed: its trailing
    /// zeros are those of the common divisor.
    Runs { run: i64, rest: i64 },
    /// To be enumerated.
    Points {
        layout: &'a Layout,
        shape: &'a [i64],
        dim: usize,
    },
}

impl<'a> Vectors<'a> {
    fn new(layout: &'a Layout, shape: &'a [i64], dim: usize) -> Result<Self> {
        // A swizzle that keeps 16 elements together keeps all vectors and their alignment.
        let torn = layout
            .effective_swizzle()
            .is_some_and(|s| 1 << s.base() < MAX_BYTES);
        if !torn && let Ok(grouped) = layout.group(shape) {
            let ends = grouped.seps.get(dim).zip(grouped.seps.get(dim + 1));
            if let Some((&begin, &end)) = ends {
                return Ok(Self::runs(&grouped.layout, begin, end));
            }
        }
        layout.check_static("a vector width by enumeration")?;
        let points = layout.size().saturating_mul(layout.replica_count());
        if points > MAX_POINTS {
            return Err(Error::unsupported(format!(
                "the vector width of a layout with {points} points whose iters do not tell it"
            )));
        }
        Ok(Self::Points { layout, shape, dim })
    }

    /// The innermost iters `begin..end` of a dimension that continue each other from a step of 1 on.
    fn runs(layout: &Layout, begin: usize, end: usize) -> Self {
        let block = layout.shard().get(begin..end).unwrap_or_default();
        let (mut run, mut absorbed) = (1_i64, end);
        for iter in block.iter().rev() {
            let continues = iter.axis == Axis::M && iter.stride == run;
            if iter.extent != 1 && !(continues && iter.extent != crate::DYNAMIC) {
                break;
            }
            run = run.saturating_mul(iter.extent);
            absorbed -= 1;
        }
        let shard = layout.shard().iter().enumerate();
        let others = shard
            .filter(|(at, _)| !(absorbed..end).contains(at))
            .map(|(_, iter)| iter)
            .chain(layout.replica())
            .filter(|i| i.axis == Axis::M && i.extent != 1);
        let rest = others.fold(layout.offset().get(Axis::M), |all, i| all | i.stride);
        Self::Runs { run, rest }
    }

    /// A number with as many trailing zeros as all addresses of vectors of `v` elements have in common;
    /// none when some vector is not side by side.
    fn common(&self, v: i64) -> Result<Option<i64>> {
        match *self {
            Self::Runs { run, rest } if run % v == 0 => {
                let step = if run > v { v } else { 0 };
                Ok(Some(rest | step))
            }
            Self::Runs { .. } => Ok(None),
            Self::Points { layout, shape, dim } => enumerate(layout, shape, dim, v),
        }
    }
}

fn enumerate(layout: &Layout, shape: &[i64], dim: usize, v: i64) -> Result<Option<i64>> {
    let inner: i64 = shape.iter().skip(dim + 1).product();
    let extent = shape.get(dim).copied().unwrap_or(1);
    let mut common = 0;
    for x in (0..layout.size()).filter(|x| x / inner % extent % v == 0) {
        let first = layout.points(x)?;
        for point in &first {
            common |= point.get(Axis::M);
        }
        for element in 1..v {
            let next = layout.points(x + element * inner)?;
            let follows = |point: &Coord| {
                let mut moved = point.clone();
                moved.add(Axis::M, element).is_ok() && next.contains(&moved)
            };
            if !first.iter().all(follows) {
                return Ok(None);
            }
        }
    }
    Ok(Some(common))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{check, parse};
    use crate::{Kind, oracle};

    /// The definition, word for word.
    fn brute(
        layout: &Layout,
        shape: &[i64],
        dim: usize,
        elem_bytes: i64,
        base: i64,
    ) -> VectorWidth {
        let map = oracle::map(layout);
        let m = |p: &oracle::Point| p.get(&Axis::M).copied().unwrap_or(0);
        let mut best = None;
        for log in 0..5 {
            let v = (1 << log) / elem_bytes;
            if v == 0 || shape[dim] % v != 0 {
                continue;
            }
            let (mut possible, mut alignment) = (true, 16.min(base));
            for (x, points) in map.iter().enumerate() {
                let mut coord = oracle::unflatten(shape, x as i64);
                if coord[dim] % v != 0 {
                    continue;
                }
                for point in points {
                    while (m(point) * i128::from(elem_bytes)).rem_euclid(i128::from(alignment)) != 0
                    {
                        alignment /= 2;
                    }
                    for element in 1..v {
                        let mut next = point.clone();
                        let at = m(point) + i128::from(element);
                        next.remove(&Axis::M);
                        if at != 0 {
                            next.insert(Axis::M, at);
                        }
                        coord[dim] += element;
                        let y = oracle::flatten(shape, &coord);
                        coord[dim] -= element;
                        possible &= map[usize::try_from(y).unwrap()].contains(&next);
                    }
                }
            }
            if possible && (alignment >= v * elem_bytes || v == 1) {
                best = Some(VectorWidth {
                    elements: v,
                    bytes: v * elem_bytes,
                    alignment,
                });
            }
        }
        best.unwrap()
    }

    #[test]
    fn widths_are_those_of_the_definition() {
        check(400, |choices| {
            let layout = choices.layout();
            let shape = choices.shape(layout.size());
            if layout.size() > 512 {
                return;
            }
            let dim = usize::from(choices.below(4)) % shape.len();
            let bytes = i64::from(choices.pick(1_u8, &[2, 4, 8, 16]));
            let base = bytes << choices.below(5);
            let found = vector_width(&layout, &shape, dim, bytes as u32 * 8, base).unwrap();
            let want = brute(&layout, &shape, dim, bytes, base);
            assert_eq!(found, want, "{layout} {shape:?} {dim} {bytes} {base}");
        });
    }

    fn width(text: &str, shape: &[i64], dim: usize, bits: u32) -> (i64, i64) {
        let found = vector_width(&parse(text), shape, dim, bits, 128).unwrap();
        (found.elements, found.alignment)
    }

    #[test]
    fn known_tiles() {
        let agree = |text, shape: &[i64], dim, bits: u32, want| {
            assert_eq!(width(text, shape, dim, bits), want, "{text}");
            let found = brute(&parse(text), shape, dim, i64::from(bits / 8), 128);
            assert_eq!((found.elements, found.alignment), want, "{text}");
        };
        // Rows, columns, and rows padded by 4 and by 1 half.
        agree("S[(8, 64) : (64, 1)]", &[8, 64], 1, 16, (8, 16));
        agree("S[(8, 64) : (1, 8)]", &[8, 64], 0, 16, (8, 16));
        agree("S[(8, 64) : (68, 1)]", &[8, 64], 1, 16, (4, 8));
        agree("S[(8, 64) : (65, 1)]", &[8, 64], 1, 16, (1, 2));
        // An offset, a replica, a broadcast row, another axis.
        agree("S[(8, 64) : (64, 1)] + 2", &[8, 64], 1, 16, (2, 4));
        agree("S[64 : 1] + R[2 : 1]", &[64], 0, 32, (1, 4));
        agree("S[(8, 64) : (0, 1)]", &[8, 64], 1, 8, (16, 16));
        agree("S[(8, 16) : (1@lane, 1)]", &[8, 16], 1, 32, (4, 16));
        // Swizzles that keep 8, 4 and 1 halves together.
        agree("Sw<3,3,3> o S[(8, 64) : (64, 1)]", &[8, 64], 1, 16, (8, 16));
        agree(
            "Sw<3,2,3> o S[(16, 64) : (64, 1)]",
            &[16, 64],
            1,
            16,
            (4, 8),
        );
        agree(
            "Sw<5,0,5> o S[(32, 32) : (32, 1)]",
            &[32, 32],
            1,
            32,
            (1, 4),
        );
        // A swizzle whose low bits are never read keeps more together than it says.
        agree(
            "Sw<3,2,4> o S[(8, 64) : (128, 1)]",
            &[8, 64],
            1,
            16,
            (8, 16),
        );
        // Two iters that continue each other, and 12 elements a row.
        agree("S[(4, 2, 4) : (8, 4, 1)]", &[4, 8], 1, 16, (8, 16));
        agree("S[(4, 12) : (16, 1)]", &[4, 12], 1, 16, (4, 8));
    }

    #[test]
    fn large_and_dynamic_layouts_are_not_enumerated() {
        assert_eq!(
            width(
                "S[(1048576, 1048576) : (1048576, 1)]",
                &[1 << 20, 1 << 20],
                1,
                16
            ),
            (8, 16)
        );
        let rows = parse("S[(?, 64) : (64, 1)]");
        let found = vector_width(&rows, &[crate::DYNAMIC, 64], 1, 16, 16).unwrap();
        assert_eq!(found.elements, 8);
    }

    #[test]
    fn bad_questions_are_errors() {
        let rows = parse("S[(8, 64) : (64, 1)]");
        let kind = |shape: &[i64], dim, bits, base| {
            vector_width(&rows, shape, dim, bits, base)
                .unwrap_err()
                .kind()
        };
        assert_eq!(kind(&[8, 64], 1, 4, 16), Kind::Unsupported);
        assert_eq!(kind(&[8, 64], 1, 0, 16), Kind::Unsupported);
        assert_eq!(kind(&[8, 64], 1, 24, 16), Kind::Unsupported);
        assert_eq!(kind(&[8, 64], 2, 16, 16), Kind::Invalid);
        assert_eq!(kind(&[8, 32], 1, 16, 16), Kind::Invalid);
        assert_eq!(kind(&[8, 64], 1, 16, 1), Kind::Invalid);
        assert_eq!(kind(&[8, 64], 1, 16, 24), Kind::Invalid);
        assert_eq!(kind(&[8, 64], 1, 16, i64::MIN), Kind::Invalid);
    }
}
