//! torch-mlir's `tm_tensor.scan`, as `torch.cumsum` and `torch.cumprod` are written: what all elements up to each along a dimension are combined to. It is formed
//! in blocks: of each element within its block, of the blocks before it, and of both.

use super::contraction::{accumulator, with_element};
use super::operands::{inverse, transpose};
use super::unsupported;
use crate::build::{Code, Number};
use crate::error::PassResult;
use crate::fuse::reshape::reshape;
use crate::generalize::generic::{self, compare, elementwise, extract, filled, index_of};
use crate::ir::value::{is_used, name, operands, replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Op, Predicate, TensorType, Val, attribute, walk};
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};

/// The operation.
pub(super) const SCAN: &str = "tm_tensor.scan";

/// Elements of a block at most: each is combined with all of its block.
const BLOCK: i64 = 64;
/// Elements of a block at least, where one divides the extent.
const LEAST_BLOCK: i64 = 8;

/// What elements are combined by, and what changes none.
const COMBINERS: [(&str, Number); 6] = [
    ("arith.addf", Number::Of(0)),
    ("arith.addi", Number::Of(0)),
    ("arith.mulf", Number::Of(1)),
    ("arith.muli", Number::Of(1)),
    ("arith.maximumf", Number::Least),
    ("arith.minimumf", Number::Greatest),
];

/// Replaces a scan.
///
/// # Errors
/// For another combination than of two elements, for a scan without its own element, and for extents that are known at run time only, but the first one of a matrix whose rows
/// are scanned.
pub(super) fn replace<'c>(op: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    let (scan, source, dim) = Scan::of(op, &builder)?;
    let rank = builder.tensor_of(source)?.shape.len();
    let others = (0..rank).filter(|own| *own != dim);
    let order: Vec<_> = others.chain([dim]).collect();
    let last = transpose(&builder, source, &order)?;
    let shape = builder.tensor_of(last)?.shape;
    let extent = shape.last().copied().unwrap_or(1);
    let matrix = reshape(&builder, last, &[scan.rows, extent], scan.leading)?;
    let scanned = scan.up_to_each(matrix, extent, true)?;
    let scanned = with_element(&builder, scanned, builder.tensor_of(matrix)?.element)?;
    let scanned = reshape(&builder, scanned, &shape, scan.leading)?;
    let scanned = transpose(&builder, scanned, &inverse(&order))?;
    if let Some(&result) = results(op).first() {
        replace_all_uses(result, scanned);
    }
    walk::erase(op);
    Ok(())
}

/// Scans of the rows of matrices.
#[derive(Clone, Copy)]
struct Scan<'c> {
    builder: Builder<'c>,
    /// What elements are combined in: floats of 16 bits in f32, since blocks are combined in another order than elements.
    element: Type<'c>,
    /// The operation of the body.
    combine: &'static str,
    neutral: Number,
    rows: i64,
    /// How many rows there are where that is known at run time only.
    leading: Option<Val<'c>>,
}

/// A loop over what is combined, and what is read of it.
struct Step<'a> {
    /// Extents of the result.
    shape: &'a [i64],
    /// Whether one more loop combines.
    combines: bool,
    /// Of each operand, the loops that index it.
    read: &'a [&'a [usize]],
}

impl<'c> Scan<'c> {
    /// A scan, of what, and along which dimension.
    fn of(op: Op<'c>, builder: &Builder<'c>) -> PassResult<'c, (Self, Val<'c>, usize)> {
        let integer = |own: &str| op.attribute(own).ok().and_then(attribute::integer);
        let source = operands(op).first().copied();
        let tensor = source.and_then(TensorType::of_value);
        let dim = integer("dimension").and_then(|dim| usize::try_from(dim).ok());
        let (Some(source), Some(TensorType { shape, element, .. }), Some(dim)) =
            (source, tensor, dim)
        else {
            return Err(unsupported(op, "expected a dimension of a tensor"));
        };
        if dim >= shape.len() {
            return Err(unsupported(op, "expected a dimension of the tensor"));
        }
        let inclusive = op.attribute("inclusive").ok().and_then(attribute::flag);
        if inclusive != Some(true) {
            return Err(unsupported(op, "expected each element to be combined, too"));
        }
        if results(op).get(1).copied().is_some_and(is_used) {
            return Err(unsupported(op, "what all elements are combined to is read"));
        }
        let (combine, neutral) = combiner(op).ok_or_else(|| {
            unsupported(
                op,
                "expected a sum, a product or an extreme of two elements",
            )
        })?;
        let is_dynamic = shape.contains(&DYNAMIC);
        if is_dynamic && (shape.len() != 2 || dim != 1 || shape.get(1) == Some(&DYNAMIC)) {
            return Err(unsupported(
                op,
                "expected static extents, or rows of a matrix that are counted at run time",
            ));
        }
        let leading = is_dynamic.then(|| builder.extent(source, 0)).transpose()?;
        let others = shape.iter().enumerate().filter(|(own, _)| *own != dim);
        let rows = match is_dynamic {
            true => DYNAMIC,
            false => others.fold(1_i64, |all, (_, extent)| all.saturating_mul(*extent)),
        };
        let scan = Self {
            builder: *builder,
            element: accumulator(builder, element),
            combine,
            neutral,
            rows,
            leading,
        };
        Ok((scan, source, dim))
    }

    /// What the elements of rows of so many are combined to up to each, or to each before it.
    fn up_to_each(self, matrix: Val<'c>, extent: i64, inclusive: bool) -> PassResult<'c, Val<'c>> {
        let (rows, builder) = (self.rows, &self.builder);
        if extent <= BLOCK {
            return self.in_block(matrix, &[rows, extent], inclusive);
        }
        let [blocks, block] = blocks(extent);
        let all = blocks.saturating_mul(block);
        let padded = match all == extent {
            true => matrix,
            false => self.padded(matrix, [extent, all])?,
        };
        let shape = [rows, blocks, block];
        let padded = reshape(builder, padded, &shape, self.leading)?;
        let own = self.in_block(padded, &shape, inclusive)?;
        let step = Step {
            shape: &[rows, blocks],
            combines: true,
            read: &[&[0, 1, 2]],
        };
        let totals = self.step(&step, &[padded], |inner, of| {
            inner.value(self.combine, &[of[1], of[0]], self.element, &[])
        })?;
        let before = self.up_to_each(totals, blocks, false)?;
        let step = Step {
            shape: &shape,
            combines: false,
            read: &[&[0, 1], &[0, 1, 2]],
        };
        let both = self.step(&step, &[before, own], |inner, of| {
            inner.value(self.combine, &[of[0], of[1]], self.element, &[])
        })?;
        let both = reshape(builder, both, &[rows, all], self.leading)?;
        match all == extent {
            true => Ok(both),
            false => self.first(both, extent),
        }
    }

    /// The same of the last dimension of a tensor, each of whose elements is combined with all that count.
    fn in_block(self, tensor: Val<'c>, shape: &[i64], inclusive: bool) -> PassResult<'c, Val<'c>> {
        let rank = shape.len();
        let read: Vec<_> = (0..rank - 1).chain([rank]).collect();
        let step = Step {
            shape,
            combines: true,
            read: &[&read],
        };
        self.step(&step, &[tensor], |inner, of| {
            let (own, other) = (index_of(inner, rank - 1)?, index_of(inner, rank)?);
            let counts = match inclusive {
                true => compare(inner, Predicate::AtLeast, own, other)?,
                false => compare(inner, Predicate::Less, other, own)?,
            };
            let neutral = Code { builder: *inner }.scalar(self.element, self.neutral)?;
            let selected = [counts, of[0], neutral];
            let value = inner.value("arith.select", &selected, self.element, &[])?;
            inner.value(self.combine, &[of[1], value], self.element, &[])
        })
    }

    /// Rows of more elements, of which the last change nothing.
    fn padded(self, matrix: Val<'c>, [extent, all]: [i64; 2]) -> PassResult<'c, Val<'c>> {
        let own = self.builder.tensor_of(matrix)?;
        let element = own.element;
        let tensor = TensorType {
            shape: vec![self.rows, all],
            ..own
        };
        let sizes: Vec<_> = self.leading.into_iter().collect();
        elementwise(&self.builder, &tensor, &sizes, |inner, at| {
            let &[row, column] = at else {
                return Ok(matrix);
            };
            let end = inner.index(extent)?;
            let has = compare(inner, Predicate::Less, column, end)?;
            let zero = inner.index(0)?;
            let own = inner.value(
                "arith.select",
                &[has, column, zero],
                inner.index_type(),
                &[],
            )?;
            let own = extract(inner, matrix, &[row, own])?;
            let neutral = Code { builder: *inner }.scalar(element, self.neutral)?;
            inner.value("arith.select", &[has, own, neutral], element, &[])
        })
    }

    /// The first elements of rows.
    fn first(self, matrix: Val<'c>, extent: i64) -> PassResult<'c, Val<'c>> {
        let r#type = self.builder.tensor(&[self.rows, extent], self.element)?;
        let list = |all: [i64; 2]| {
            self.builder
                .parsed(&format!("array<i64: {}, {}>", all[0], all[1]))
        };
        let sizes: Vec<_> = self.leading.into_iter().collect();
        let segments = [1, 0, i32::from(self.leading.is_some()), 0];
        let attributes = [
            ("static_offsets", list([0, 0])?),
            ("static_sizes", list([self.rows, extent])?),
            ("static_strides", list([1, 1])?),
            self.builder.segments(&segments),
        ];
        let all: Vec<_> = std::iter::once(matrix).chain(sizes).collect();
        self.builder
            .value("tensor.extract_slice", &all, r#type, &attributes)
    }

    /// A `linalg.generic`: `body` has the operands' elements and what is combined so far.
    fn step(
        self,
        step: &Step<'_>,
        read: &[Val<'c>],
        body: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> PassResult<'c, Val<'c>>,
    ) -> PassResult<'c, Val<'c>> {
        let builder = &self.builder;
        let sizes: Vec<_> = self.leading.into_iter().collect();
        let empty = generic::empty(builder, (step.shape, self.element), &sizes)?;
        let init = match step.combines {
            true => {
                let neutral = Code { builder: *builder }.scalar(self.element, self.neutral)?;
                filled(builder, empty, neutral)?
            }
            false => empty,
        };
        let read = read.iter().zip(step.read);
        let read: Vec<_> = read.map(|(own, dims)| (*own, dims.to_vec())).collect();
        let nest = generic::Nest {
            loops: step.shape.len() + usize::from(step.combines),
            read: &read,
            init,
        };
        nest.build(builder, |inner, of| {
            let wide = |own: &Val<'c>| match own.r#type() == self.element {
                true => Ok(*own),
                false => inner.value("arith.extf", &[*own], self.element, &[]),
            };
            let wide = of.iter().map(wide).collect::<PassResult<'c, Vec<_>>>()?;
            body(inner, &wide)
        })
    }
}

/// How many blocks of how many elements: of equal length, where one divides the extent.
fn blocks(extent: i64) -> [i64; 2] {
    let divides = |block: &i64| extent % block == 0;
    match (LEAST_BLOCK..=BLOCK).rev().find(divides) {
        Some(block) => [extent / block, block],
        None => [extent / BLOCK + i64::from(extent % BLOCK != 0), BLOCK],
    }
}

/// What a scan combines its elements by.
fn combiner(op: Op<'_>) -> Option<(&'static str, Number)> {
    let block = walk::blocks(op).first().copied()?;
    let body = walk::operations(block);
    let &[combined, yielded] = &body[..] else {
        return None;
    };
    let mut arguments = walk::block_arguments(block);
    arguments.truncate(2);
    let all = operands(combined);
    let reads = all.len() == 2 && arguments.iter().all(|own| all.contains(own));
    let gives = operands(yielded).first() == results(combined).first();
    let found = COMBINERS.iter().find(|(own, _)| *own == name(combined));
    found
        .filter(|_| reads && gives)
        .map(|(own, neutral)| (*own, *neutral))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_extents_where_they_can() {
        for (extent, wanted) in [
            (65, [5, 13]),
            (100, [2, 50]),
            (1000, [20, 50]),
            (4096, [64, 64]),
            (67, [2, 64]),
            (1009, [16, 64]),
        ] {
            assert_eq!(blocks(extent), wanted, "{extent}");
        }
    }
}
