//! torch-mlir's `tm_tensor.scatter`, as `torch.index_put`, `index_copy`, `index_add`, `scatter` and `scatter_add` are written: updates that
//! take the place of elements, or are combined with them, at indices that are data.
//!
//! Kernels write each element once, so each element of the result finds its updates. Indices that are dimensions of the updates
//! (a cache's heads, `scatter`'s rows) are told from data by how they are formed ([`coordinates`]): along them there is nothing to
//! find.

mod combined;
mod coordinates;
mod given;
mod radix;
mod reading;
mod set;
mod sorted;

use crate::error::PassResult;
use crate::generalize::generic::{all, compare, index_of};
use crate::ir::value::{replace_all_uses, results};
use crate::ir::{Builder, DYNAMIC, Int, Op, Predicate, Val, walk};
use given::{Body, Given};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Type, ValueLike};

/// The operation.
pub(super) const SCATTER: &str = "tm_tensor.scatter";

/// Replaces a scatter. Updates at indices outside of the tensor go nowhere; of several updates of an element the last one stays.
///
/// # Errors
/// For windows that begin at indices, for other combinations than of two numbers, and for extents that are
/// known at run time only but the number of updates and, of updates that take elements' places, dimensions whose indices are data.
pub(super) fn replace<'c>(op: Op<'c>) -> PassResult<'c> {
    let builder = Builder::before(op);
    let given = Given::of(op)?;
    let scatter = Scatter::of(&builder, &given)?;
    let part = match given.body {
        Body::Old => scatter.original,
        Body::New => scatter.set(&builder)?,
        Body::Combined(how) => scatter.combined(&builder, how)?,
    };
    let made = scatter.put_back(&builder, given.original, part)?;
    if let Some(&result) = results(op).first() {
        replace_all_uses(result, made);
    }
    walk::erase(op);
    Ok(())
}

/// What an element's index along a dimension says of its updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dim {
    /// It is this digit of their numbers.
    Digit(usize),
    /// It is what a tensor has for them.
    Data,
    /// It is their own, behind their numbers' digits.
    Window,
    /// Nothing: there is one.
    One,
}

/// Indices along a dimension that are data.
struct Data<'c> {
    /// The indices, a dimension for each of `digits`.
    tensor: Val<'c>,
    /// The digits of updates' numbers that they depend on.
    digits: Vec<usize>,
    /// The dimension of the result.
    dim: usize,
}

/// A scatter, read: updates of an element of the result are found by the digits that no dimension of it has.
struct Scatter<'c> {
    op: Op<'c>,
    /// The updates, digits of their numbers first.
    updates: Val<'c>,
    /// The extents of the digits; one that is dynamic where the number of updates is.
    digits: Vec<i64>,
    /// The tensor's part that has updates.
    original: Val<'c>,
    /// Where it begins, and its extents.
    part: Vec<[i64; 2]>,
    dims: Vec<Dim>,
    data: Vec<Data<'c>>,
}

impl<'c> Scatter<'c> {
    /// The dimensions of the result that say a digit.
    fn dim_of(&self, digit: usize) -> Option<usize> {
        self.dims.iter().position(|dim| *dim == Dim::Digit(digit))
    }

    /// The digits that no dimension says.
    fn free(&self) -> Vec<usize> {
        let all = 0..self.digits.len();
        all.filter(|digit| self.dim_of(*digit).is_none()).collect()
    }

    /// The digits that dimensions say and indices depend on.
    fn shared(&self) -> Vec<usize> {
        let all = 0..self.digits.len();
        let read = |digit: &usize| self.data.iter().any(|own| own.digits.contains(digit));
        all.filter(|digit| self.dim_of(*digit).is_some() && read(digit))
            .collect()
    }

    /// The extents of these digits.
    fn extents(&self, digits: &[usize]) -> Vec<i64> {
        let of = digits.iter().filter_map(|digit| self.digits.get(*digit));
        of.copied().collect()
    }

    /// How many updates there are, where that is known at run time only.
    fn sizes(&self, builder: &Builder<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        match self.digits.contains(&DYNAMIC) {
            true => Ok(vec![builder.extent(self.updates, 0)?]),
            false => Ok(Vec::new()),
        }
    }

    /// The index of the update of this number among those that differ in free digits, for an element of the result.
    fn index_of_update(
        &self,
        builder: &Builder<'c>,
        at: &[Val<'c>],
        number: Val<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let ints = builder.ints();
        let number = ints.cast(Int::of(number))?;
        let free = self.free();
        let mut index = Vec::new();
        for digit in 0..self.digits.len() {
            let own = self.dim_of(digit).and_then(|dim| at.get(dim));
            if let Some(own) = own {
                index.push(*own);
                continue;
            }
            let behind: Vec<_> = free.iter().copied().filter(|own| *own > digit).collect();
            let mut own = ints.div(number, self.extents(&behind).iter().product())?;
            let is_first = free.first() == Some(&digit);
            if let Some(extent) = self.digits.get(digit).filter(|_| !is_first) {
                own = ints.rem(own, *extent)?;
            }
            index.push(ints.value(own)?);
        }
        index.extend(self.windows().iter().filter_map(|dim| at.get(*dim)));
        Ok(index)
    }

    /// The tensors of indices, and the loops that index them where a digit is a loop.
    fn indices(&self, loop_of: impl Fn(usize) -> usize) -> Vec<(Val<'c>, Vec<usize>)> {
        let of = |own: &Data<'c>| own.digits.iter().map(|digit| loop_of(*digit)).collect();
        self.data.iter().map(|own| (own.tensor, of(own))).collect()
    }

    /// The dimensions of the result that are the updates' own, in the updates' order.
    fn windows(&self) -> Vec<usize> {
        let all = 0..self.dims.len();
        all.filter(|dim| self.dims.get(*dim) == Some(&Dim::Window))
            .collect()
    }

    /// Whether the update at the point of the loops is one of an element: `of` has its indices, `loop_of` the loop of a dimension.
    fn is_hit(
        &self,
        builder: &Builder<'c>,
        of: &[Val<'c>],
        loop_of: impl Fn(usize) -> usize,
    ) -> PassResult<'c, Val<'c>> {
        let mut equal = Vec::new();
        for (data, value) in self.data.iter().zip(of) {
            let own = index_of(builder, loop_of(data.dim))?;
            let own = builder.value("arith.index_cast", &[own], value.r#type(), &[])?;
            equal.push(compare(builder, Predicate::Equal, *value, own)?);
        }
        match all(builder, &equal)? {
            Some(hit) => Ok(hit),
            None => builder.constant(builder.parsed("true")?),
        }
    }

    /// The result of the part that has updates in the place of that part.
    fn put_back(
        &self,
        builder: &Builder<'c>,
        original: Val<'c>,
        part: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        if part == self.original {
            return Ok(original);
        }
        if self.original == original {
            return Ok(part);
        }
        let attributes = boxed(builder, &self.part, 2)?;
        let all = [part, original];
        builder.value("tensor.insert_slice", &all, original.r#type(), &attributes)
    }
}

/// The attributes of a slice of static extents, of an operation with so many tensors.
fn boxed<'c>(
    builder: &Builder<'c>,
    part: &[[i64; 2]],
    tensors: usize,
) -> PassResult<'c, Vec<(&'static str, Attribute<'c>)>> {
    let of = |at: usize| {
        let all: Vec<_> = part.iter().filter_map(|own| own.get(at)).copied().collect();
        builder.i64s(&all)
    };
    let ones = builder.i64s(&vec![1; part.len()]);
    let segments = [vec![1; tensors], vec![0; 3]].concat();
    Ok(vec![
        ("static_offsets", of(0)),
        ("static_sizes", of(1)),
        ("static_strides", ones),
        builder.segments(&segments),
    ])
}

fn i32_type<'c>(builder: &Builder<'c>) -> Type<'c> {
    builder.r#type(|context| IntegerType::new(context, 32).into())
}
