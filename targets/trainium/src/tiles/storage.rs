//! Where tensors of a kernel of tiles are: regions of buffers, from the layouts of their types.

use super::index::Indices;
use axe_dialect::{element_type, layout_of, memory_space, strides_of};
use axe_layout::{Axis, Coord, Iter, Layout};
use axe_package::DType;
use axe_passes::ir::DYNAMIC;
use axe_passes::ir::types::shape;
use axe_trn::dispatch::Region;
use axe_trn::facts::memory::BANK_BYTES;
use axe_trn::program::{Expr, Space};
use melior::ir::Type;
use std::collections::BTreeMap;

/// What a layout, a shape or a box may be, else why not.
pub(super) type Found<T> = Result<T, String>;

/// A tensor in a buffer.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub region: Region,
    pub dtype: DType,
    pub space: Space,
}

/// Storage or a box of it.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub tensor: Tensor,
    /// For each dimension how many elements its source, and the source of that, have from the box's origin on; none where
    /// it is no box.
    pub rest: Vec<Vec<Expr>>,
    /// Whether dimensions that the box has not lie outside its source.
    pub lost: bool,
}

/// The axes of a layout on chip.
pub(super) struct Axes {
    pub p: Axis,
    pub f: Axis,
    bank: Axis,
}

impl Axes {
    pub fn new() -> Found<Self> {
        let axis = |name| Axis::new(name).map_err(|error| error.to_string());
        Ok(Self {
            p: axis("P")?,
            f: axis("F")?,
            bank: axis("bank")?,
        })
    }
}

/// The parts of a type of tensors or storage.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub shape: Vec<i64>,
    pub dtype: DType,
    /// On `P` and `F` on chip, on `m` in HBM; banks are counted as elements.
    pub layout: Layout,
    pub space: Space,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The extents of a type, which are static.
pub(super) fn extents(r#type: Type<'_>) -> Found<Vec<i64>> {
    let shape = shape(r#type).ok_or("expected a tensor or storage")?;
    match shape.contains(&DYNAMIC) {
        false => Ok(shape),
        true => Err(format!(
            "expected static extents: a kernel of Trainium is compiled for its sizes, got {type}",
            r#type = r#type
        )),
    }
}

/// The type of the elements, as they are in memory.
pub(super) fn stored(r#type: Type<'_>) -> Found<DType> {
    let element = element_type(r#type);
    match crate::planner::dtype(element) {
        Some(DType::Bool) => Ok(DType::U8),
        Some(known @ (DType::F64 | DType::I64 | DType::U64)) => Err(format!(
            "expected elements of 8, 16 or 32 bits, got {known}"
        )),
        Some(known) => Ok(known),
        None => Err(format!("elements of {element} have no type on Trainium")),
    }
}

/// The memory that the type of storage names.
fn space(memref: Type<'_>) -> Found<Space> {
    match memory_space(memref) {
        Some("global" | "hbm") => Ok(Space::Hbm),
        Some("sbuf") => Ok(Space::Sbuf),
        Some("psum") => Ok(Space::Psum),
        Some(other) => Err(format!(
            "a NeuronCore has no memory '{other}': expected sbuf or psum, or none for HBM"
        )),
        None => Err("its memory space is another dialect's".into()),
    }
}

/// A tensor's type, in a memory of the chip.
pub(super) fn tensor_form(r#type: Type<'_>, space: Space) -> Found<Form> {
    let (shape, dtype) = (extents(r#type)?, stored(r#type)?);
    let Some(layout) = layout_of(r#type) else {
        return Err(format!(
            "expected a layout on partitions (P) and elements of them (F), got {type}",
            r#type = r#type
        ));
    };
    let layout = on_chip(&layout.layout().map_err(text)?, dtype)?;
    Ok(Form {
        shape,
        dtype,
        layout,
        space,
    })
}

/// The type of storage.
pub(super) fn storage_form(memref: Type<'_>) -> Found<Form> {
    let space = space(memref)?;
    if space != Space::Hbm {
        return tensor_form(memref, space);
    }
    let (shape, dtype) = (extents(memref)?, stored(memref)?);
    let layout = match layout_of(memref) {
        Some(layout) => layout.layout().map_err(text)?,
        None => {
            let (strides, _) =
                strides_of(memref).ok_or("its layout is neither axe's nor strided")?;
            if strides.contains(&DYNAMIC) {
                return Err(format!(
                    "expected strides known when compiling, got {memref}"
                ));
            }
            Layout::strided(&shape, &strides).map_err(text)?
        }
    };
    if let Some(axis) = layout.axes().into_iter().find(|axis| *axis != Axis::M) {
        return Err(format!(
            "a layout in HBM names addresses (m) alone, got the axis {axis}"
        ));
    }
    Ok(Form {
        shape,
        dtype,
        layout: plain(&layout)?,
        space,
    })
}

/// A layout without a swizzle.
fn plain(layout: &Layout) -> Found<Layout> {
    match layout.swizzle().is_some_and(|swizzle| swizzle.bits() > 0) {
        false => Ok(layout.clone().with_swizzle(None)),
        true => Err(format!(
            "no engine or transfer swizzles addresses, as {layout} does"
        )),
    }
}

/// A layout on `P`, `F` and banks as one on `P` and `F`.
fn on_chip(layout: &Layout, dtype: DType) -> Found<Layout> {
    let axes = Axes::new()?;
    let known = [axes.p, axes.f, axes.bank];
    if let Some(axis) = layout.axes().into_iter().find(|axis| !known.contains(axis)) {
        return Err(format!(
            "a layout on chip names partitions (P), elements of them (F) and banks of PSUM, got the axis {axis}"
        ));
    }
    let bank = BANK_BYTES / dtype.bytes() as i64;
    let banks = BTreeMap::from([(axes.bank, (axes.f, bank))]);
    plain(layout)?.fuse_axes(&banks).map_err(text)
}

/// The shape of a buffer for a layout on chip: partitions, and elements in each.
pub(super) fn buffer_shape(layout: &Layout) -> Found<[i64; 2]> {
    let axes = Axes::new()?;
    let size = |axis| layout.cosize(axis).map_err(text);
    Ok([size(axes.p)?, size(axes.f)?])
}

/// The region of a layout in a buffer: its offsets are counted by the region.
pub(super) fn region(buffer: usize, form: &Form) -> Found<Region> {
    let mut made = Region::new(buffer, &form.shape, form.layout.clone());
    move_offset(&mut made)?;
    Ok(made)
}

fn move_offset(region: &mut Region) -> Found<()> {
    let axes = Axes::new()?;
    let offset = region.layout.offset().clone();
    region.partition = region.partition.clone().plus(offset.get(axes.p));
    for axis in [axes.f, Axis::M] {
        region.free = region.free.clone().plus(offset.get(axis));
    }
    let layout = region.layout.clone().with_offset(Coord::new());
    region.layout = layout.map_err(text)?;
    Ok(())
}

/// The box of a region from `origin` on, of so many elements in each dimension.
///
/// # Errors
/// Why no layout says where its elements are, for every value of the origin.
pub(super) fn slice(
    indices: &Indices,
    of: &Region,
    origin: &[Expr],
    sizes: &[i64],
) -> Found<Region> {
    let grouped = of.layout.group(&of.shape).map_err(text)?;
    let mut cut = Cut {
        indices,
        axes: Axes::new()?,
        region: of.clone(),
    };
    let mut shard = Vec::new();
    let dims = origin.iter().zip(sizes).zip(&of.shape);
    for (dim, (block, ((begin, size), extent))) in grouped.blocks().zip(dims).enumerate() {
        let iters = cut
            .dimension(block, *extent, begin, *size)
            .map_err(|why| format!("dimension {dim}: {why}"))?;
        shard.extend(iters);
    }
    let layout = Layout::new(
        shard,
        of.layout.replica().iter().copied(),
        Coord::new(),
        None,
    );
    Ok(Region {
        shape: sizes.to_vec(),
        layout: layout.map_err(text)?,
        valid: None,
        ..cut.region
    })
}

struct Cut<'a> {
    indices: &'a Indices,
    axes: Axes,
    region: Region,
}

impl Cut<'_> {
    fn add(&mut self, axis: Axis, by: Expr) {
        let at = match axis == self.axes.p {
            true => &mut self.region.partition,
            false => &mut self.region.free,
        };
        *at = std::mem::replace(at, 0.into()).plus(by);
    }

    /// The digits of a dimension of the box; what its origin moves by is added to the region's.
    fn dimension(&mut self, block: &[Iter], extent: i64, x: &Expr, n: i64) -> Found<Vec<Iter>> {
        if let Some(x) = x.constant() {
            if x == 0 && n == extent {
                return Ok(block.to_vec());
            }
            if x + n <= extent {
                return self.known(block, extent, x, n);
            }
        }
        let (pivot, weight) = pivot(block, n);
        let (digit, inner) = match block.split_at(pivot).1 {
            [digit, inner @ ..] => (*digit, inner),
            [] => return Ok(Vec::new()),
        };
        let count = n / weight;
        let first = pivot == 0;
        let fits = n % weight == 0
            && self.indices.is_multiple(x, weight)
            && (first || digit.extent % count == 0 && self.indices.is_multiple(x, n));
        if !fits {
            return Err(format!(
                "a box of {n} that begins at multiples of less crosses digits of {} by {weight}: no layout says where its elements are for every origin",
                digit.extent
            ));
        }
        let negative = || "an origin may be negative".to_owned();
        let mut rest = self.indices.quotient(x, weight).ok_or_else(negative)?;
        for (at, iter) in block[..=pivot].iter().enumerate().rev() {
            let own = match at {
                0 => rest.clone(),
                _ => self
                    .indices
                    .remainder(&rest, iter.extent)
                    .ok_or_else(negative)?,
            };
            self.add(iter.axis, own.times(iter.stride));
            if at > 0 {
                rest = self
                    .indices
                    .quotient(&rest, iter.extent)
                    .ok_or_else(negative)?;
            }
        }
        let kept = Iter::new(count, digit.stride, digit.axis);
        Ok(std::iter::once(kept).chain(inner.iter().copied()).collect())
    }

    /// A dimension whose origin is a number: the algebra's slice.
    fn known(&mut self, block: &[Iter], extent: i64, x: i64, n: i64) -> Found<Vec<Iter>> {
        let own = Layout::from_shard(block.iter().copied()).map_err(text)?;
        let range = x..x + n;
        let slice = own
            .slice(&[extent], std::slice::from_ref(&range))
            .map_err(text)?;
        for (axis, value) in slice.offset().iter() {
            self.add(axis, value.into());
        }
        Ok(slice.shard().to_vec())
    }
}

/// The digit that a box of `n` elements cuts, and the elements below it.
fn pivot(block: &[Iter], n: i64) -> (usize, i64) {
    let mut weight = 1i64;
    for (at, iter) in block.iter().enumerate().rev() {
        let all = weight.saturating_mul(iter.extent);
        if at == 0 || n <= all {
            return (at, weight);
        }
        weight = all;
    }
    (0, weight)
}

/// Whether two layouts say the same places, their offsets left out.
pub(super) fn same_places(a: &Layout, b: &Layout) -> bool {
    let bare = |layout: &Layout| layout.clone().with_offset(Coord::new()).ok();
    match (bare(a), bare(b)) {
        (Some(a), Some(b)) => a.equivalent(&b).unwrap_or(false),
        _ => false,
    }
}

/// A region with one more dimension wherever `added` has its extent: its elements are repeated along it.
pub(super) fn repeated(of: &Region, added: &[Option<i64>]) -> Found<Region> {
    let axes = Axes::new()?;
    let grouped = of.layout.group(&of.shape).map_err(text)?;
    let (mut blocks, mut shard) = (grouped.blocks(), Vec::new());
    let (mut shape, mut own) = (Vec::new(), of.shape.iter());
    for dim in added {
        match dim {
            Some(extent) => {
                shard.push(Iter::new(*extent, 0, axes.f));
                shape.push(*extent);
            }
            None => {
                shard.extend_from_slice(blocks.next().unwrap_or_default());
                shape.extend(own.next());
            }
        }
    }
    with_shard(of, shape, shard)
}

/// A region whose dimensions that repeat the same elements have extent 1.
pub(super) fn without_repeats(of: &Region) -> Found<Region> {
    let grouped = of.layout.group(&of.shape).map_err(text)?;
    let (mut shape, mut shard) = (Vec::new(), Vec::new());
    for (block, extent) in grouped.blocks().zip(&of.shape) {
        if block
            .iter()
            .all(|iter| iter.stride == 0 || iter.extent == 1)
        {
            shape.push(1);
        } else {
            shape.push(*extent);
            shard.extend_from_slice(block);
        }
    }
    with_shard(of, shape, shard)
}

/// A region whose dimension `i` is dimension `permutation[i]` of another.
pub(super) fn permuted(of: &Region, permutation: &[usize]) -> Found<Region> {
    let grouped = of.layout.group(&of.shape).map_err(text)?;
    let blocks: Vec<&[Iter]> = grouped.blocks().collect();
    let (mut shape, mut shard) = (Vec::new(), Vec::new());
    for &dim in permutation {
        let unknown = || format!("no dimension {dim}");
        shape.push(*of.shape.get(dim).ok_or_else(unknown)?);
        shard.extend_from_slice(blocks.get(dim).ok_or_else(unknown)?);
    }
    with_shard(of, shape, shard)
}

fn with_shard(of: &Region, shape: Vec<i64>, shard: Vec<Iter>) -> Found<Region> {
    let replica = of.layout.replica().iter().copied();
    let layout = Layout::new(shard, replica, Coord::new(), None).map_err(text)?;
    Ok(Region {
        shape,
        layout,
        ..of.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::super::index::Values;
    use super::*;

    /// Every box of a layout lies where the layout says, for every origin of a loop.
    #[test]
    fn boxes_lie_where_their_layout_says() {
        let axes = Axes::new().unwrap();
        let layouts = [
            ("S[(512, 64) : (64@F, 1@F)]", [512, 64]),
            ("S[(4, 128, 64) : (64@F, 1@P, 1@F)]", [512, 64]),
            ("S[(128, 4, 64) : (1@P, 64@F, 1@F)]", [512, 64]),
            ("S[(2, 32, 8, 64) : (64@P, 1@P, 128@F, 2@F)]", [512, 64]),
        ];
        let (mut taken, mut declined) = (0, 0);
        for (text, shape) in layouts {
            let layout: Layout = text.parse().unwrap();
            let of = Region::new(0, &shape, layout.clone());
            for (step, sizes) in [
                (128, [128, 64]),
                (64, [64, 16]),
                (16, [16, 64]),
                (24, [24, 8]),
            ] {
                let mut indices = Indices::default();
                let last = (shape[0] - sizes[0]) / step * step;
                let values = Values {
                    lower: 0,
                    last,
                    step,
                };
                indices.open(0, values);
                let origin = [Expr::Index(0), Expr::Const(8)];
                let sizes = [sizes[0], sizes[1].min(shape[1] - 8)];
                let Ok(found) = slice(&indices, &of, &origin, &sizes) else {
                    declined += 1;
                    continue;
                };
                taken += 1;
                for begin in (0..=last).step_by(step as usize) {
                    for at in 0..sizes[0] * sizes[1] {
                        let (i, j) = (at / sizes[1] + begin, at % sizes[1] + 8);
                        let wanted = layout.origin(i * shape[1] + j).unwrap();
                        let own = found.layout.origin(at).unwrap();
                        let of = |e: &Expr| e.eval(&[begin]).unwrap();
                        let got = [
                            own.get(axes.p) + of(&found.partition),
                            own.get(axes.f) + of(&found.free),
                        ];
                        assert_eq!(got, [wanted.get(axes.p), wanted.get(axes.f)], "{text}");
                    }
                }
            }
        }
        assert!(taken >= 12 && declined >= 1, "{taken} {declined}");
    }

    #[test]
    fn repeats_come_and_go() {
        let row = Region::new(0, &[128], "S[128 : 1@P]".parse().unwrap());
        let wide = repeated(&row, &[None, Some(512)]).unwrap();
        assert_eq!(wide.shape, [128, 512]);
        let back = without_repeats(&wide).unwrap();
        assert_eq!(back.shape, [128, 1]);
        assert!(same_places(&back.layout, &row.layout));
        let turned = permuted(&wide, &[1, 0]).unwrap();
        assert_eq!(turned.shape, [512, 128]);
    }
}
