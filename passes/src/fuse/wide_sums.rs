//! Variances in f64 of 16-bit floats, in f32.
//!
//! torch-mlir sums the rows of a variance in f64: `mean = sum(x) / n`, `sum((x - mean)^2)`. A chip converts to f64 at an eighth of the
//! rate of f32 arithmetic or less, and has half as many of them in registers. Where `x` has 16 bits and what comes of the sums is rounded to f32 or less, they
//! are formed of f32, with an error that is relative to how far the elements are apart, not to their size:
//!
//! * `sum(x) = n c + sum(x - c)`, where `c` is the mean in f32; both terms are added in f64, once a row;
//! * `sum((x - mean)^2) = sum((x - c)^2) + d (n d - 2 sum(x - c))`, where `d = mean - c`: what is below the mean's last digit in f32, once a row;
//!   without such a sum of the same elements `x - mean = (x - high) - low`, where `high + low` is the mean in twice f32's precision;
//! * squares are positive, so that their sum in f32 loses at most its additions' roundings.
//!
//! A sum in f32 of f32 elements that are summed up in f64, too, is that sum, rounded.
//!
//! The variance's relative error is below `(a + 4) 2^-24`, where `a` is how many additions an element goes through (a thread's and those of
//! a tree over threads: under 600 for rows of 262,144): 2^-14. A result of 16 bits rounds that away; one of f32 has the error of
//! a sum in f32, as torch's own kernels form it. Of bfloat16, sums and squares beyond f32's range are infinite.

use super::space::source;
use super::strided;
use crate::PassResult;
use crate::build::Code;
use crate::ir::value::{
    defining, identity, name, only_result, operands, replace_all_uses, results, users,
};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, types, walk};
use axe_dialect::{Combiner, ops};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;

/// Operations that are followed from a sum to where it is rounded.
const MOST_FOLLOWED: usize = 64;

/// Forms sums in f64 of f32, where that is exact enough. `ops` are a block's operations in order.
///
/// # Errors
/// When an operation cannot be built.
pub fn narrow<'c>(ops: &[Op<'c>]) -> PassResult<'c> {
    let mut centered = Vec::new();
    for &op in ops.iter().filter(|op| name(**op) == ops::REDUCE) {
        let Some(sum) = Sum::of(op) else {
            continue;
        };
        match Terms::of(sum.from, &sum.dims) {
            Some(terms) => sum.replace(terms, ops, &mut centered)?,
            None => sum.share_rounded(ops)?,
        }
    }
    Ok(())
}

/// Elements about their rows' means in f32.
struct Centered<'c> {
    own: Val<'c>,
    dims: Vec<i64>,
    /// The means, `x - c`, and its sums.
    center: Val<'c>,
    apart: Val<'c>,
    rest: Val<'c>,
}

/// What is summed up: of 16-bit floats, or of f32 that those are.
#[derive(Clone, Copy, Debug)]
enum Terms<'c> {
    /// The values themselves.
    Elements(Val<'c>),
    /// The squares of such, less a value of their row in f64.
    Squares(Val<'c>, Val<'c>),
}

impl<'c> Terms<'c> {
    fn of(value: Val<'c>, dims: &[i64]) -> Option<Self> {
        if let Some(own) = element(value) {
            return Some(Self::Elements(own));
        }
        let square = mapped(value, "arith.mulf")?;
        let [a, b] = square[..] else {
            return None;
        };
        let [own, mean] = mapped(a, "arith.subf").filter(|_| a == b)?[..] else {
            return None;
        };
        let repeated = defining(mean).filter(|op| name(*op) == ops::BROADCAST)?;
        let along = repeated.attribute("dims").ok();
        let of_rows = along.and_then(attribute::read_i64s).as_deref() == Some(dims);
        let row = source(repeated).filter(|_| of_rows)?;
        Some(Self::Squares(element(own)?, row))
    }
}

/// A sum of rows in f64 that is rounded.
struct Sum<'c> {
    op: Op<'c>,
    from: Val<'c>,
    result: Val<'c>,
    shape: Vec<i64>,
    columns: i64,
    dims: Vec<i64>,
}

impl<'c> Sum<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let (from, result) = source(op).zip(only_result(op))?;
        let tensor = TensorType::of_value(from)?;
        let combiner = op.attribute("combiner").ok().and_then(Combiner::cast)?;
        let columns = strided::rows_of(op)?.columns;
        let wide = types::is_float(tensor.element) && types::bits(tensor.element) == Some(64);
        let inner_is_dynamic = tensor.shape.iter().skip(1).any(|extent| *extent == DYNAMIC);
        let sums = combiner == Combiner::Add && wide && !inner_is_dynamic;
        (sums && is_rounded(result)).then_some(Self {
            op,
            from,
            result,
            shape: tensor.shape,
            columns,
            dims: op.attribute("dims").ok().and_then(attribute::read_i64s)?,
        })
    }

    fn replace(
        &self,
        terms: Terms<'c>,
        ops: &[Op<'c>],
        centered: &mut Vec<Centered<'c>>,
    ) -> PassResult<'c> {
        let builder = Builder::before(self.op);
        let made = match terms {
            Terms::Elements(own) => {
                let wide = self.widened(&builder, own, ops)?;
                let (sum, [center, apart, rest]) = self.of_elements(&builder, wide, ops)?;
                centered.push(Centered {
                    own,
                    dims: self.dims.clone(),
                    center,
                    apart,
                    rest,
                });
                sum
            }
            Terms::Squares(own, mean) => {
                let same = |about: &&Centered<'c>| about.own == own && about.dims == self.dims;
                match centered.iter().find(same) {
                    Some(about) => self.of_centered(&builder, about, mean)?,
                    None => {
                        let wide = self.widened(&builder, own, ops)?;
                        self.of_squares(&builder, wide, mean)?
                    }
                }
            }
        };
        replace_all_uses(self.result, made);
        Ok(())
    }

    /// Elements in f32: as the program has them in front of this, or converted.
    fn widened(
        &self,
        builder: &Builder<'c>,
        own: Val<'c>,
        ops: &[Op<'c>],
    ) -> PassResult<'c, Val<'c>> {
        let [narrow, _] = floats(builder);
        let element = |value: Val<'c>| TensorType::of_value(value).map(|own| own.element);
        if element(own) == Some(narrow) {
            return Ok(own);
        }
        let before = ops.iter().take_while(|op| **op != self.op);
        let casts: Vec<_> = before.filter(|op| name(**op) == ops::CAST).collect();
        let users = users(own).into_iter().filter(|op| casts.contains(&op));
        let known = users
            .filter_map(only_result)
            .find(|cast| element(*cast) == Some(narrow));
        match known {
            Some(known) => Ok(known),
            None => Code { builder: *builder }.cast(own, builder.tensor(&self.shape, narrow)?),
        }
    }

    /// How many elements a row has.
    fn count(&self, builder: &Builder<'c>, r#type: Type<'c>) -> PassResult<'c, Val<'c>> {
        builder.constant(builder.float(r#type, self.columns as f64))
    }

    /// `n c + sum(x - c)`, and `c`, `x - c` and `sum(x - c)`.
    fn of_elements(
        &self,
        builder: &Builder<'c>,
        own: Val<'c>,
        ops: &[Op<'c>],
    ) -> PassResult<'c, (Val<'c>, [Val<'c>; 3])> {
        let code = Code { builder: *builder };
        let [narrow, wide] = floats(builder);
        let sum = self.sum(builder, own)?;
        self.share(own, sum, ops);
        let mean = code.map(&[sum], self.row(builder, narrow)?, |inner, of| {
            let count = self.count(&inner.builder, narrow)?;
            inner
                .builder
                .value("arith.divf", &[of[0], count], narrow, &[])
        })?;
        let apart = self.less(builder, own, mean)?;
        let rest = self.sum(builder, apart)?;
        let whole = code.map(&[mean, rest], self.row(builder, wide)?, |inner, of| {
            let inner = &inner.builder;
            let count = self.count(inner, wide)?;
            let mean = inner.value("arith.extf", &[of[0]], wide, &[])?;
            let rest = inner.value("arith.extf", &[of[1]], wide, &[])?;
            let whole = inner.value("arith.mulf", &[mean, count], wide, &[])?;
            let sum = inner.value("arith.addf", &[whole, rest], wide, &[])?;
            // Of infinite elements the mean has the sum, and nothing is apart from it by a number.
            let bit = inner.r#type(|context| IntegerType::new(context, 1).into());
            let unordered = [("predicate", inner.parsed("14 : i64")?)];
            let none = inner.value("arith.cmpf", &[rest, rest], bit, &unordered)?;
            inner.value("arith.select", &[none, whole, sum], wide, &[])
        })?;
        Ok((whole, [mean, apart, rest]))
    }

    /// `sum((x - c)^2) + d (n d - 2 sum(x - c))`, in f64.
    fn of_centered(
        &self,
        builder: &Builder<'c>,
        about: &Centered<'c>,
        mean: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let code = Code { builder: *builder };
        let [narrow, wide] = floats(builder);
        let squares = self.squares(builder, about.apart)?;
        let rows = [squares, about.rest, about.center, mean];
        code.map(&rows, self.row(builder, wide)?, |inner, of| {
            let inner = &inner.builder;
            let apply =
                |name, operands: &[Val<'c>], r#type| inner.value(name, operands, r#type, &[]);
            let center = apply("arith.extf", &[of[2]], wide)?;
            let low = apply("arith.subf", &[of[3], center], wide)?;
            let low = apply("arith.truncf", &[low], narrow)?;
            let all = apply("arith.mulf", &[self.count(inner, narrow)?, low], narrow)?;
            let twice = apply("arith.addf", &[of[1], of[1]], narrow)?;
            let moved = apply("arith.subf", &[all, twice], narrow)?;
            let moved = apply("arith.mulf", &[low, moved], narrow)?;
            let sum = apply("arith.addf", &[of[0], moved], narrow)?;
            // Of equal elements the terms cancel each other but for their rounding.
            let zero = inner.constant(inner.float(narrow, 0.0))?;
            let sum = apply("arith.maximumf", &[sum, zero], narrow)?;
            apply("arith.extf", &[sum], wide)
        })
    }

    /// The sum of squares, in f32.
    fn squares(&self, builder: &Builder<'c>, apart: Val<'c>) -> PassResult<'c, Val<'c>> {
        let code = Code { builder: *builder };
        let [narrow, _] = floats(builder);
        let whole = builder.tensor(&self.shape, narrow)?;
        let squares = code.map(&[apart, apart], whole, |inner, of| {
            inner.builder.value("arith.mulf", of, narrow, &[])
        })?;
        self.sum(builder, squares)
    }

    /// `sum(((x - high) - low)^2)`, in f64.
    fn of_squares(
        &self,
        builder: &Builder<'c>,
        own: Val<'c>,
        mean: Val<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let code = Code { builder: *builder };
        let [narrow, wide] = floats(builder);
        let of_row = builder.tensor(&builder.tensor_of(mean)?.shape, narrow)?;
        let high = code.cast(mean, of_row)?;
        let low = code.map(&[mean, high], of_row, |inner, of| {
            let high = inner.builder.value("arith.extf", &[of[1]], wide, &[])?;
            let low = inner
                .builder
                .value("arith.subf", &[of[0], high], wide, &[])?;
            inner.builder.value("arith.truncf", &[low], narrow, &[])
        })?;
        let apart = self.less(builder, own, high)?;
        let apart = self.less(builder, apart, low)?;
        let sum = self.squares(builder, apart)?;
        code.cast(sum, self.row(builder, wide)?)
    }

    /// Elements less a value of their row.
    fn less(&self, builder: &Builder<'c>, own: Val<'c>, row: Val<'c>) -> PassResult<'c, Val<'c>> {
        let code = Code { builder: *builder };
        let [narrow, _] = floats(builder);
        let whole = builder.tensor(&self.shape, narrow)?;
        let dims = [("dims", builder.i64s(&self.dims))];
        let repeated = builder.value(ops::BROADCAST, &[row], whole, &dims)?;
        code.map(&[own, repeated], whole, |inner, of| {
            inner.builder.value("arith.subf", of, narrow, &[])
        })
    }

    fn sum(&self, builder: &Builder<'c>, of: Val<'c>) -> PassResult<'c, Val<'c>> {
        let [narrow, _] = floats(builder);
        let combiner = builder.attribute(|context| Combiner::Add.attribute(context));
        let attributes = [("combiner", combiner), ("dims", builder.i64s(&self.dims))];
        builder.value(ops::REDUCE, &[of], self.row(builder, narrow)?, &attributes)
    }

    /// Lets the same sum in f32 of elements that are converted for this one be this one, rounded.
    fn share_rounded(&self, ops: &[Op<'c>]) -> PassResult<'c> {
        let cast = defining(self.from).filter(|op| name(*op) == ops::CAST);
        let Some(own) = cast.and_then(source) else {
            return Ok(());
        };
        for (other, result) in self.alike(own, ops) {
            let builder = Builder::before(other);
            let rounded = Code { builder }.cast(self.result, result.r#type())?;
            replace_all_uses(result, rounded);
        }
        Ok(())
    }

    /// Lets the same sum in f32, where it stands behind this one, be this one.
    fn share(&self, own: Val<'c>, sum: Val<'c>, ops: &[Op<'c>]) {
        for (_, result) in self.alike(own, ops) {
            replace_all_uses(result, sum);
        }
    }

    /// The sums of a value along the same dimensions that stand behind this one.
    fn alike(&self, own: Val<'c>, ops: &[Op<'c>]) -> Vec<(Op<'c>, Val<'c>)> {
        let position = |op: Op<'c>| ops.iter().position(|other| *other == op);
        let here = position(self.op);
        let is_alike = |other: &Op<'c>| {
            let combiner = other.attribute("combiner").ok().and_then(Combiner::cast);
            let dims = other.attribute("dims").ok().and_then(attribute::read_i64s);
            let same = combiner == Some(Combiner::Add) && dims.as_ref() == Some(&self.dims);
            same && position(*other).is_some_and(|at| Some(at) > here)
        };
        let sums = users(own).into_iter();
        let sums = sums.filter(|op| name(*op) == ops::REDUCE && is_alike(op));
        sums.filter_map(|op| Some((op, only_result(op)?))).collect()
    }

    fn row(&self, builder: &Builder<'c>, element: Type<'c>) -> PassResult<'c, Type<'c>> {
        builder.tensor(&builder.tensor_of(self.result)?.shape, element)
    }
}

/// f32 and f64.
fn floats<'c>(builder: &Builder<'c>) -> [Type<'c>; 2] {
    [
        builder.r#type(|context| Type::float32(context)),
        builder.r#type(|context| Type::float64(context)),
    ]
}

/// What an f64 value is the conversion of: 16-bit floats, or f32 that such are converted to.
fn element(value: Val<'_>) -> Option<Val<'_>> {
    let from = |value| {
        let op = defining(value).filter(|op| name(*op) == ops::CAST)?;
        let from = source(op)?;
        let tensor = TensorType::of_value(from)?;
        types::is_float(tensor.element).then_some((from, types::bits(tensor.element)?))
    };
    let (own, bits) = from(value)?;
    let narrow = match bits {
        32 => from(beneath(own))?.1,
        bits => bits,
    };
    (narrow == 16).then_some(own)
}

/// What a value is a reshape of, or the value.
fn beneath(value: Val<'_>) -> Val<'_> {
    let reshape = defining(value).filter(|op| super::operators::is_reshape(*op));
    reshape.and_then(source).map_or(value, beneath)
}

/// The operands of a map whose body is one operation of this name on its arguments in order.
pub(super) fn mapped<'c>(value: Val<'c>, wanted: &str) -> Option<Vec<Val<'c>>> {
    let op = defining(value).filter(|op| name(*op) == ops::MAP)?;
    let block = walk::blocks(op).first().copied()?;
    let [inner, last] = walk::operations(block)[..] else {
        return None;
    };
    let arguments: HashMap<usize, Val<'c>> = walk::block_arguments(block)
        .into_iter()
        .map(identity)
        .zip(operands(op))
        .collect();
    let yields = operands(last).first().copied() == only_result(inner);
    (yields && name(inner) == wanted).then_some(())?;
    let own = operands(inner).into_iter();
    own.map(|value| arguments.get(&identity(value)).copied())
        .collect()
}

/// Whether all that comes of a value in f64 is converted to f32 or less, or summed up to what is.
fn is_rounded(value: Val<'_>) -> bool {
    let narrow = |value: &Val<'_>| {
        let tensor = TensorType::of_value(*value);
        tensor.is_some_and(|tensor| types::bits(tensor.element) <= Some(32))
    };
    let mut next = vec![value];
    let mut followed = 0;
    while let Some(value) = next.pop() {
        for user in users(value) {
            followed += 1;
            let known = [ops::MAP, ops::CAST, ops::BROADCAST, ops::REDUCE];
            let passes = known.contains(&name(user).as_str()) || super::operators::is_reshape(user);
            if !passes || followed > MOST_FOLLOWED {
                return false;
            }
            next.extend(results(user).into_iter().filter(|result| !narrow(result)));
        }
    }
    true
}
