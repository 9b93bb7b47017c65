//! Operators that get a kernel of their own: transposes, and broadcasts and reductions in the middle.

use super::code::{Code, Kernel, layout_error};
use super::evaluate::{combine, combiner_of, neutral};
use super::frame::{Frame, Operand, element_bytes, leading_of};
use super::gemm::count;
use super::layouts::{RowTile, without};
use super::space::source;
use super::tiles::elementwise_tile;
use axe_layout::Layout;
use axe_passes::ir::value::{defining, name, only_result, replace_all_uses};
use axe_passes::ir::{Builder, DYNAMIC, Op, Val, attribute, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// Rows and columns of the tiles that are transposed through shared memory.
const SQUARE: i64 = 64;
/// Bytes by which rows of such a tile are further apart than they are long, against bank conflicts.
const PADDING_BYTES: i64 = 16;

/// Neighbouring dimensions with one role, as one: extent and role.
fn runs(shape: &[i64], role: impl Fn(i64) -> bool) -> Vec<(i64, bool)> {
    let mut runs: Vec<(i64, bool)> = Vec::new();
    for (dim, &extent) in (0i64..).zip(shape).filter(|(_, extent)| **extent != 1) {
        match runs.last_mut() {
            Some((have, last)) if *last == role(dim) => {
                *have = if *have == DYNAMIC {
                    DYNAMIC
                } else {
                    have.saturating_mul(extent)
                };
            }
            _ => runs.push((extent, role(dim))),
        }
    }
    runs
}

/// Splits reductions of dimensions that are not neighbours into one a run of neighbours, the innermost first.
///
/// # Errors
/// When an operation cannot be built.
pub(super) fn split_reductions<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    for &op in ops.iter().filter(|op| name(**op) == "axe.reduce") {
        let mut next = Some(op);
        while let Some(op) = next {
            next = split_reduction(op)?;
        }
    }
    Ok(())
}

/// One step of [`split_reductions`]: the reduction that is left to split, if any.
fn split_reduction<'c>(op: Op<'c>) -> PassResult<'c, Option<Op<'c>>> {
    let dims = op.attribute("dims").ok().and_then(attribute::read_i64s);
    let (Some(from), Some(result), Some(dims)) = (source(op), only_result(op), dims) else {
        return Ok(None);
    };
    let builder = Builder::before(op);
    let tensor = builder.tensor_of(from)?;
    let runs = runs(&tensor.shape, |dim| dims.contains(&dim));
    if runs.iter().filter(|(_, reduced)| *reduced).count() < 2 {
        return Ok(None);
    }
    // The first dimension of the last run: everything reduced from there on goes first.
    let extent = |dim: i64| {
        usize::try_from(dim)
            .ok()
            .and_then(|dim| tensor.shape.get(dim))
    };
    let mut start = i64::MAX;
    let rank = i64::try_from(tensor.shape.len()).unwrap_or(i64::MAX);
    for dim in (0..rank).rev() {
        let unit = extent(dim) == Some(&1);
        if !unit && !dims.contains(&dim) && start < i64::MAX {
            break;
        }
        if !unit && dims.contains(&dim) {
            start = dim;
        }
    }
    let (outer, inner): (Vec<i64>, Vec<i64>) = dims.iter().partition(|dim| **dim < start);
    let kept: Vec<i64> = (0i64..)
        .zip(&tensor.shape)
        .filter(|(dim, _)| !inner.contains(dim))
        .map(|(_, extent)| *extent)
        .collect();
    let combiner = op
        .attribute("combiner")
        .map_err(|_| layout_error(op.location(), "a reduction has no combiner"))?;
    let step = |from, dims: &[i64], r#type| {
        let attributes = [("combiner", combiner), ("dims", builder.i64s(dims))];
        builder.value("axe.reduce", &[from], r#type, &attributes)
    };
    let middle = step(from, &inner, builder.tensor(&kept, tensor.element)?)?;
    let last = step(middle, &outer, result.r#type())?;
    replace_all_uses(result, last);
    walk::erase(op);
    Ok(defining(last))
}

/// Plans the kernel of one operator.
///
/// # Errors
/// At the operator, when it has no kernel of its own.
pub(super) fn plan<'c>(frame: &mut Frame<'c>, builder: &Builder<'c>, op: Op<'c>) -> PassResult<'c> {
    let unreadable = || {
        PassError::new(
            op.location(),
            format!("'{}' has no kernel of its own", name(op)),
        )
    };
    let (from, result) = source(op).zip(only_result(op)).ok_or_else(unreadable)?;
    let dims = |key| op.attribute(key).ok().and_then(attribute::read_i64s);
    let single = Single { op, from, result };
    match name(op).as_str() {
        "axe.transpose" => {
            single.transpose(frame, builder, &dims("permutation").ok_or_else(unreadable)?)
        }
        "axe.broadcast" => single.broadcast(frame, builder, &dims("dims").ok_or_else(unreadable)?),
        "axe.reduce" => single.reduce(frame, builder, &dims("dims").ok_or_else(unreadable)?),
        _ => Err(unreadable()),
    }
}

/// One operator, its source and its result.
#[derive(Clone, Copy)]
struct Single<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
}

/// The tile's place among blocks: rows along x, columns along y, the other dimensions along z.
fn places<'c>(code: Code<'c>, outer: &[i64], tile: [i64; 2]) -> PassResult<'c, Vec<Val<'c>>> {
    let mut places = vec![
        code.times(code.block("y")?, tile[1])?,
        code.times(code.block("x")?, tile[0])?,
    ];
    let mut rest = code.block("z")?;
    for (at, &extent) in outer.iter().enumerate().rev() {
        if at == 0 {
            places.push(rest);
        } else {
            let extent = code.index(extent)?;
            places.push(code.rem(rest, extent)?);
            rest = code.div(rest, extent)?;
        }
    }
    places.reverse();
    Ok(places)
}

/// The blocks for a tensor whose last two dimensions are tiled. `leading` is the first extent where dynamic.
fn blocks<'c>(
    builder: &Builder<'c>,
    shape: &[i64],
    tile: [i64; 2],
    leading: Option<Val<'c>>,
) -> PassResult<'c, [Val<'c>; 3]> {
    let code = Code { builder: *builder };
    let [outer @ .., rows, columns] = shape else {
        return Err(PassError::new(builder.location, "expected a matrix"));
    };
    let x = match (outer, leading) {
        ([], Some(rows)) => code.ceil_div(rows, tile[0])?,
        _ => code.index(count(*rows, tile[0]))?,
    };
    let known: i64 = outer.iter().filter(|extent| **extent != DYNAMIC).product();
    let z = match (outer, leading) {
        ([_, ..], Some(leading)) => code.times(leading, known)?,
        _ => code.index(known)?,
    };
    let y = count(*columns, tile[1]);
    if y > 65_535 || known > 65_535 {
        return Err(PassError::new(
            builder.location,
            format!("{y} x {known} tiles are more than the 65535 x 65535 of a grid"),
        ));
    }
    Ok([x, code.index(y)?, z])
}

impl<'c> Single<'c> {
    fn kernel(
        &self,
        frame: &Frame<'c>,
        from: &Operand<'c>,
        to: &Operand<'c>,
    ) -> PassResult<'c, (Kernel<'c>, Val<'c>, Val<'c>)> {
        let kernel = Kernel::new(self.op.location(), frame.module, &[from.memref, to.memref]);
        match kernel.arguments[..] {
            [source, result] => Ok((kernel, source, result)),
            _ => Err(layout_error(
                self.op.location(),
                "a kernel lacks its arguments",
            )),
        }
    }

    /// Repeats rows or columns: the last two runs of dimensions are a tile, of which one is repeated.
    fn broadcast(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        dims: &[i64],
    ) -> PassResult<'c> {
        let shape = builder.tensor_of(self.result)?.shape;
        let mut runs = runs(&shape, |dim| dims.contains(&dim));
        if runs.iter().all(|(_, repeated)| *repeated) {
            runs.push((1, false));
        }
        let to: Vec<i64> = runs.iter().map(|(extent, _)| *extent).collect();
        let kept: Vec<i64> = runs
            .iter()
            .filter(|(_, repeated)| !repeated)
            .map(|(extent, _)| *extent)
            .collect();
        let (from, out) = (
            frame.operand(builder, self.from, &kept)?,
            frame.out(builder, self.result, &to)?,
        );
        let [outer @ .., (_, rows_repeated), (columns, _)] = &runs[..] else {
            return Err(PassError::new(
                self.op.location(),
                "a broadcast that repeats nothing",
            ));
        };
        let element = builder.tensor_of(self.result)?.element;
        let tile = elementwise_tile(*columns, element_bytes(element));
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        let code = kernel.code;
        let failed = |error| layout_error(self.op.location(), error);
        let layout = tile.layout().map_err(failed)?;
        let outer: Vec<i64> = outer.iter().map(|(extent, _)| *extent).collect();
        let at = places(code, &outer, [tile.rows, tile.columns])?;
        let kept_at: Vec<_> = at
            .iter()
            .zip(&runs)
            .filter(|(_, (_, repeated))| !repeated)
            .map(|(at, _)| *at)
            .collect();
        let (length, dim) = if *rows_repeated {
            (tile.columns, 0)
        } else {
            (tile.rows, 1)
        };
        let vector = without(&layout, &[tile.rows, tile.columns], dim).map_err(failed)?;
        let piece = code.global_box(source, &kept, &kept_at, &[length])?;
        let piece = code.load(piece, code.fragment(&[length], element, &vector)?)?;
        let whole = code.fragment(&[tile.rows, tile.columns], element, &layout)?;
        let dim = i64::try_from(dim).unwrap_or_default();
        let attributes = [("dims", code.builder.i64s(&[dim]))];
        let whole = code
            .builder
            .value("axe.broadcast", &[piece], whole, &attributes)?;
        code.store(
            whole,
            code.global_box(result, &to, &at, &[tile.rows, tile.columns])?,
        )?;
        let name = frame.name("broadcast");
        kernel.finish(frame.module, &name, tile.threads())?;
        let leading = dynamic_leading(builder, self.result, &to)?;
        let grid = blocks(builder, &to, [tile.rows, tile.columns], leading)?;
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])
    }

    /// Combines rows: tiles of the rows are combined one after the other, then the rows of the last.
    fn reduce(&self, frame: &mut Frame<'c>, builder: &Builder<'c>, dims: &[i64]) -> PassResult<'c> {
        let shape = builder.tensor_of(self.from)?.shape;
        let runs = runs(&shape, |dim| dims.contains(&dim));
        let (outer, rows, columns) = match runs[..] {
            [(rows, true)] => (None, rows, 1),
            [(rows, true), (columns, false)] => (None, rows, columns),
            [(outer, false), (rows, true), (columns, false)] => (Some(outer), rows, columns),
            _ => {
                return Err(PassError::new(
                    self.op.location(),
                    format!(
                        "expected a reduction of neighbouring dimensions, got dims {dims:?} of rank {}",
                        shape.len()
                    ),
                ));
            }
        };
        let of: Vec<i64> = outer.into_iter().chain([rows, columns]).collect();
        let kept: Vec<i64> = outer.into_iter().chain([columns]).collect();
        let (from, out) = (
            frame.operand(builder, self.from, &of)?,
            frame.out(builder, self.result, &kept)?,
        );
        let element = builder.tensor_of(self.result)?.element;
        let tile = column_tile(columns, element_bytes(element));
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        self.reduce_body(&kernel, tile, (source, &of), (result, &kept))?;
        let name = frame.name("reduce");
        kernel.finish(frame.module, &name, tile.threads())?;
        let code = Code { builder: *builder };
        let z = match outer {
            Some(DYNAMIC) => leading_of(builder, self.from, &of)?,
            Some(outer) if outer > 65_535 => {
                return Err(PassError::new(
                    builder.location,
                    format!("{outer} reductions are more than the 65535 of a grid"),
                ));
            }
            outer => code.index(outer.unwrap_or(1))?,
        };
        let x = code.index(count(columns, tile.columns))?;
        frame.launch(
            builder,
            &name,
            [x, code.index(1)?, z],
            &[from.tensor],
            &[(self.result, out)],
        )
    }

    fn reduce_body(
        &self,
        kernel: &Kernel<'c>,
        tile: RowTile,
        (source, of): (Val<'c>, &[i64]),
        (result, kept): (Val<'c>, &[i64]),
    ) -> PassResult<'c> {
        let code = kernel.code;
        let failed = |error| layout_error(self.op.location(), error);
        let combiner = combiner_of(self.op)?;
        let element = code.builder.tensor_of(self.result)?.element;
        let (shape, layout) = ([tile.rows, tile.columns], tile.layout().map_err(failed)?);
        let whole = code.fragment(&shape, element, &layout)?;
        let vector = without(&layout, &shape, 0).map_err(failed)?;
        let column = code.times(code.block("x")?, tile.columns)?;
        let outer = match of {
            [_, _, _] => Some(code.block("z")?),
            _ => None,
        };
        let rows = match of {
            [DYNAMIC, _] => code.leading(source, DYNAMIC)?,
            [.., rows, _] => code.index(*rows)?,
            _ => return Err(layout_error(self.op.location(), "expected a matrix")),
        };
        let neutral = code.scalar(element, neutral(combiner))?;
        let start = code.fill(neutral, whole)?;
        let sums = code.for_each(rows, tile.rows, &[start], |code, row, carried| {
            let at: Vec<_> = outer.into_iter().chain([row, column]).collect();
            let piece = code.global_box(source, of, &at, &shape)?;
            let piece = code.load_padded(piece, neutral, whole)?;
            let sum = carried.first().copied().unwrap_or(start);
            Ok(vec![combine(code, combiner, element, sum, piece)?])
        })?;
        let sum = sums.first().copied().unwrap_or(start);
        let attribute = self
            .op
            .attribute("combiner")
            .map_err(|_| layout_error(self.op.location(), "no combiner"))?;
        let attributes = [("combiner", attribute), ("dims", code.builder.i64s(&[0]))];
        let vector = code.fragment(&[tile.columns], element, &vector)?;
        let sum = code
            .builder
            .value("axe.reduce", &[sum], vector, &attributes)?;
        let at: Vec<_> = outer.into_iter().chain([column]).collect();
        code.store(sum, code.global_box(result, kept, &at, &[tile.columns])?)
    }

    /// Permutes dimensions: tiles of the two dimensions that are innermost before and after go through shared
    /// memory, so that both sides are read and written along rows.
    fn transpose(
        &self,
        frame: &mut Frame<'c>,
        builder: &Builder<'c>,
        permutation: &[i64],
    ) -> PassResult<'c> {
        let plan = Permutation::new(self.op, &builder.tensor_of(self.from)?.shape, permutation)?;
        let from = frame.operand(builder, self.from, &plan.from)?;
        let out = frame.out(builder, self.result, &plan.to)?;
        let (kernel, source, result) = self.kernel(frame, &from, &out)?;
        let element = builder.tensor_of(self.result)?.element;
        let threads = plan.emit(&kernel, element, source, result)?;
        let name = frame.name("transpose");
        kernel.finish(frame.module, &name, threads)?;
        let grid = plan.grid(builder, dynamic_leading(builder, self.result, &plan.to)?)?;
        frame.launch(builder, &name, grid, &[from.tensor], &[(self.result, out)])
    }
}

/// The leading extent of `shape`, a shape of `value`'s elements, where it is dynamic.
fn dynamic_leading<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    shape: &[i64],
) -> PassResult<'c, Option<Val<'c>>> {
    match shape.first() {
        Some(&DYNAMIC) => leading_of(builder, value, shape).map(Some),
        _ => Ok(None),
    }
}

/// The tile of a reduction of rows' columns: neighbouring threads read neighbouring columns.
fn column_tile(columns: i64, bytes: i64) -> RowTile {
    let tile = elementwise_tile(columns, bytes);
    let along = tile.along.min(32);
    let across = 128 / along;
    RowTile {
        rows: across,
        columns: along * tile.vector,
        along,
        vector: tile.vector,
        across,
    }
}

/// A permutation of dimensions without extents of 1, as kernels see it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Permutation {
    /// Extents of the source.
    from: Vec<i64>,
    /// Extents of the result.
    to: Vec<i64>,
    /// For each dimension of the result, that of the source.
    order: Vec<usize>,
}

impl Permutation {
    fn new<'c>(op: Op<'c>, shape: &[i64], permutation: &[i64]) -> PassResult<'c, Self> {
        Self::of(shape, permutation)
            .ok_or_else(|| PassError::new(op.location(), "its permutation cannot be read"))
    }

    fn of(shape: &[i64], permutation: &[i64]) -> Option<Self> {
        let order: Vec<usize> = permutation
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect::<Option<_>>()?;
        let kept: Vec<usize> = (0..shape.len()).filter(|dim| shape[*dim] != 1).collect();
        let rank = |dim: usize| kept.iter().position(|kept| *kept == dim);
        let mut from: Vec<i64> = kept.iter().map(|dim| shape[*dim]).collect();
        let mut order: Vec<usize> = order.into_iter().filter_map(rank).collect();
        // A matrix at least, so that there is a tile.
        while from.len() < 2 {
            from.insert(0, 1);
            order = std::iter::once(0)
                .chain(order.iter().map(|dim| dim + 1))
                .collect();
        }
        let to = order
            .iter()
            .map(|dim| from.get(*dim).copied())
            .collect::<Option<_>>()?;
        Some(Self { from, to, order })
    }

    /// The two dimensions of the result that are tiled: the one that is the source's last (its last but one, when
    /// the last stays in its place), and its last.
    fn tiled(&self) -> (usize, usize) {
        let last = self.order.len().saturating_sub(1);
        let other = self.order.iter().position(|dim| *dim == last);
        (
            other
                .filter(|dim| *dim != last)
                .unwrap_or(last.saturating_sub(1)),
            last,
        )
    }

    /// Whether the innermost dimension stays in its place.
    fn keeps_rows(&self) -> bool {
        self.order.last() == Some(&self.order.len().saturating_sub(1))
    }

    /// Tiles along each dimension of the result.
    fn counts(&self) -> Vec<i64> {
        let (other, last) = self.tiled();
        let along = |(at, extent): (usize, &i64)| match *extent {
            DYNAMIC => DYNAMIC,
            extent if at == other || at == last => count(extent, SQUARE),
            extent => extent,
        };
        self.to.iter().enumerate().map(along).collect()
    }

    /// What belongs to a dimension of the result, by dimensions of the source.
    fn at_source<T: Copy>(&self, of: &[T]) -> Vec<T> {
        let dims = 0..self.order.len();
        dims.filter_map(|dim| self.order.iter().position(|from| *from == dim))
            .filter_map(|at| of.get(at).copied())
            .collect()
    }

    /// Tiles of the last dimension along y, all others along x.
    fn grid<'c>(
        &self,
        builder: &Builder<'c>,
        leading: Option<Val<'c>>,
    ) -> PassResult<'c, [Val<'c>; 3]> {
        let code = Code { builder: *builder };
        let counts = self.counts();
        let (y, outer) = counts
            .split_last()
            .map_or((1, &[][..]), |(last, outer)| (*last, outer));
        let outer = outer.iter().filter(|extent| **extent != DYNAMIC);
        let known = outer.fold(1i64, |product, extent| product.saturating_mul(*extent));
        if y > 65_535 || known > i64::from(i32::MAX) {
            let what = format!("{known} x {y} tiles are more than a grid has");
            return Err(PassError::new(builder.location, what));
        }
        let x = match leading {
            Some(leading) if self.tiled().0 == 0 => {
                code.times(code.ceil_div(leading, SQUARE)?, known)?
            }
            Some(leading) => code.times(leading, known)?,
            None => code.index(known)?,
        };
        Ok([x, code.index(y)?, code.index(1)?])
    }

    /// The origin of a block's tile in the result.
    fn origin<'c>(&self, code: Code<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (other, last) = self.tiled();
        let mut origin = vec![code.times(code.block("y")?, SQUARE)?];
        let mut rest = code.block("x")?;
        for (at, &extent) in self.counts().iter().enumerate().take(last).rev() {
            let place = if at == 0 {
                rest
            } else {
                let extent = code.index(extent)?;
                let place = code.rem(rest, extent)?;
                rest = code.div(rest, extent)?;
                place
            };
            origin.push(if at == other {
                code.times(place, SQUARE)?
            } else {
                place
            });
        }
        origin.reverse();
        Ok(origin)
    }

    /// The tile's way from the source to the result.
    fn emit<'c>(
        &self,
        kernel: &Kernel<'c>,
        element: Type<'c>,
        source: Val<'c>,
        result: Val<'c>,
    ) -> PassResult<'c, i64> {
        let code = kernel.code;
        let failed = |error| layout_error(code.builder.location, error);
        let (other, last) = self.tiled();
        let tiled = |dim| {
            if dim == other || dim == last {
                SQUARE
            } else {
                1
            }
        };
        let to_box: Vec<i64> = (0..self.to.len()).map(tiled).collect();
        let from_box = self.at_source(&to_box);
        let at = self.origin(code)?;
        let read = code.global_box(source, &self.from, &self.at_source(&at), &from_box)?;
        let write = code.global_box(result, &self.to, &at, &to_box)?;
        let tile = RowTile {
            rows: SQUARE,
            ..elementwise_tile(SQUARE, element_bytes(element))
        };
        let rows = tile.layout().map_err(failed)?;
        let piece = code.load(read, code.fragment(&from_box, element, &rows)?)?;
        let moved = code.fragment(&to_box, element, &rows)?;
        let moved = if self.keeps_rows() {
            let order: Vec<i64> = self
                .order
                .iter()
                .filter_map(|dim| i64::try_from(*dim).ok())
                .collect();
            let attributes = [("permutation", code.builder.i64s(&order))];
            code.builder
                .value("axe.transpose", &[piece], moved, &attributes)?
        } else {
            let pitch = SQUARE + PADDING_BYTES / element_bytes(element);
            let storage = Layout::strided(&[SQUARE, SQUARE], &[pitch, 1]).map_err(failed)?;
            let storage = code.alloc(&[SQUARE, SQUARE], element, &storage)?;
            // In the source's order the tile's last dimension is contiguous; in the result's it is `other`.
            let strides: Vec<i64> = (0..self.to.len())
                .map(|dim| if dim == last { pitch } else { 1 })
                .collect();
            let view = |shape: &[i64], strides: &[i64]| {
                let layout = Layout::strided(shape, strides).map_err(failed)?;
                code.view(
                    storage,
                    code.memref(shape, element, &layout, Some("shared"))?,
                )
            };
            code.store(piece, view(&from_box, &self.at_source(&strides))?)?;
            code.barrier()?;
            code.load(view(&to_box, &strides)?, moved)?
        };
        code.store(moved, write)?;
        Ok(tile.threads())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_role_are_one_run() {
        let repeated = |dim| [1, 2].contains(&dim);
        assert_eq!(
            runs(&[2, 3, 4, 5], repeated),
            [(2, false), (12, true), (5, false)]
        );
        assert_eq!(
            runs(&[DYNAMIC, 1, 4, 5], repeated),
            [(DYNAMIC, false), (4, true), (5, false)]
        );
    }

    #[test]
    fn tiles_of_a_permutation_have_both_innermost_dimensions() {
        let plain = Permutation::of(&[200, 120], &[1, 0]).unwrap();
        assert_eq!((plain.tiled(), plain.counts()), ((0, 1), vec![2, 4]));
        assert!(!plain.keeps_rows());
        let heads = Permutation::of(&[2, 64, 1, 4, 32], &[0, 3, 2, 1, 4]).unwrap();
        assert_eq!(
            (heads.from.clone(), heads.to.clone()),
            (vec![2, 64, 4, 32], vec![2, 4, 64, 32])
        );
        assert!(heads.keeps_rows());
        assert_eq!(heads.tiled(), (2, 3));
        let cycle = Permutation::of(&[3, 5, 7], &[2, 0, 1]).unwrap();
        assert_eq!((cycle.tiled(), cycle.to.clone()), ((0, 2), vec![7, 3, 5]));
        assert_eq!(cycle.at_source(&[70, 30, 50]), [30, 50, 70]);
    }
}
