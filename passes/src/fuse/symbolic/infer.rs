//! The extents of all tensors of a function as numbers: a prime for each that is known at run time only.

use super::{Symbols, scalars};
use crate::PassResult;
use crate::fuse::nest::maps;
use crate::fuse::reshape::extent_of;
use crate::ir::facts::gcd;
use crate::ir::value::{defined_by, identity, name, operands, results};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, walk};
use axe_dialect::Typed;
use axe_dialect::ops::{self, GemmOp};
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, ValueLike};
use std::collections::HashMap;
use std::rc::Rc;

/// Extents of a function that are known at run time only, at most.
const MOST: usize = 64;
/// The first prime that stands for one: more than most extents, and of products of which there are 64 bits.
const FIRST: i64 = 10_007;
/// How often extents that turn out to be equal are put in each other's place.
const MOST_ROUNDS: usize = 16;

/// What an extent is in the function.
#[derive(Clone, Copy, Debug)]
pub enum Source<'c> {
    /// The extent of a tensor's dimension.
    Dim(Val<'c>, usize),
    /// An integer.
    Scalar(Val<'c>),
}

impl<'c> Source<'c> {
    fn key(self) -> (usize, usize) {
        match self {
            Self::Dim(value, dim) => (identity(value), dim + 1),
            Self::Scalar(value) => (identity(value), 0),
        }
    }

    /// Its value.
    ///
    /// # Errors
    /// When it is not known before a kernel.
    pub(super) fn value(self, builder: &Builder<'c>) -> PassResult<'c, Val<'c>> {
        match self {
            Self::Dim(value, dim) => extent_of(builder, value, dim),
            Self::Scalar(value) => Ok(value),
        }
    }
}

/// What is known of a function's integers and extents.
pub(super) struct Extents<'c> {
    /// The primes, with what they stand for.
    primes: Vec<(i64, Source<'c>)>,
    by_source: HashMap<(usize, usize), i64>,
    /// The prime that stands for one, where both are equal.
    same: HashMap<i64, i64>,
    /// Equalities that the program does not say of all sizes: one of both may be 1.
    assumed: Vec<[i64; 2]>,
    numbers: HashMap<usize, i64>,
    shapes: HashMap<usize, Vec<i64>>,
    /// Numbers that no prime divides.
    taken: Vec<i64>,
    overflow: bool,
}

impl<'c> Extents<'c> {
    /// Reads a function; none where its extents are too many or too large.
    pub(super) fn of(func: Op<'c>, block: BlockRef<'c, 'c>) -> Option<Self> {
        let mut own = Self {
            primes: Vec::new(),
            by_source: HashMap::new(),
            same: HashMap::new(),
            assumed: Vec::new(),
            numbers: HashMap::new(),
            shapes: HashMap::new(),
            taken: taken(func, block),
            overflow: false,
        };
        for _ in 0..MOST_ROUNDS {
            let before = own.same.len();
            own.numbers.clear();
            own.shapes.clear();
            for argument in walk::block_arguments(block) {
                own.tensor(argument, &[]);
            }
            for op in walk::operations(block) {
                own.operation(op);
            }
            if own.same.len() == before {
                return (!own.overflow && own.primes.len() <= MOST).then_some(own);
            }
        }
        None
    }

    /// As values of the function.
    pub(super) fn symbols(&self) -> Symbols<'c> {
        Symbols {
            primes: Rc::new(self.primes.clone()),
            extents: Rc::new(self.shapes.clone()),
            equal: Rc::new(self.asked()),
        }
    }

    /// Extents that are used as one: those of arguments, and those of which a program also takes one element for any number.
    fn asked(&self) -> Vec<[Source<'c>; 2]> {
        let source = |prime: i64| {
            let own = self.primes.iter().find(|(own, _)| *own == prime);
            own.map(|(_, source)| *source)
        };
        let is_argument = |source: &Source<'c>| match source {
            Source::Dim(value, _) => value.is_block_argument(),
            Source::Scalar(_) => false,
        };
        let mut found = Vec::new();
        for (prime, _) in &self.primes {
            let first = self.first(*prime);
            let (Some(own), Some(other)) = (source(*prime), source(first)) else {
                continue;
            };
            let assumed = self.assumed.iter().any(|pair| pair.contains(prime));
            if first != *prime && (assumed || is_argument(&own) && is_argument(&other)) {
                found.push([other, own]);
            }
        }
        found
    }

    /// Whether a number depends on an extent.
    pub(super) fn has(&self, number: i64) -> bool {
        number != 0 && self.primes.iter().any(|(prime, _)| number % prime == 0)
    }

    /// The number that a scalar is.
    pub(super) fn number(&self, value: Val<'c>) -> Option<i64> {
        self.numbers.get(&identity(value)).copied()
    }

    /// The extents of a tensor.
    pub(super) fn shape(&self, value: Val<'c>) -> Option<&Vec<i64>> {
        self.shapes.get(&identity(value))
    }

    /// The prime of a source.
    fn prime(&mut self, source: Source<'c>) -> i64 {
        let own = match self.by_source.get(&source.key()) {
            Some(prime) => *prime,
            None => {
                let next = self.primes.last().map_or(FIRST, |(last, _)| last + 2);
                let free = |own: &i64| {
                    let is_prime = (3..).step_by(2).take_while(|by| by * by <= *own);
                    is_prime.into_iter().all(|by| own % by != 0)
                        && self.taken.iter().all(|number| number % own != 0)
                };
                let prime = (next..).step_by(2).find(free).unwrap_or(next);
                self.primes.push((prime, source));
                self.by_source.insert(source.key(), prime);
                prime
            }
        };
        self.first(own)
    }

    /// The prime that stands for all that are equal to one.
    fn first(&self, mut prime: i64) -> i64 {
        while let Some(other) = self.same.get(&prime) {
            prime = *other;
        }
        prime
    }

    /// Takes note that two numbers are equal: whether one prime is another's now.
    fn equal(&mut self, a: i64, b: i64) -> Option<[i64; 2]> {
        let common = gcd(a, b);
        if common == 0 {
            return None;
        }
        let (a, b) = (a / common, b / common);
        let is_prime = |own: i64| self.primes.iter().any(|(prime, _)| *prime == own);
        if a == b || !is_prime(a) || !is_prime(b) {
            return None;
        }
        let (first, other) = (a.min(b), a.max(b));
        self.same.insert(other, first);
        Some([first, other])
    }

    /// Takes note of a tensor's extents: those of its type, then of these, then primes.
    fn tensor(&mut self, value: Val<'c>, found: &[Option<i64>]) {
        let Some(tensor) = TensorType::of_value(value) else {
            return;
        };
        let mut shape = Vec::new();
        for (dim, extent) in tensor.shape.into_iter().enumerate() {
            shape.push(match (extent, found.get(dim).copied().flatten()) {
                (DYNAMIC, Some(number)) => number,
                (DYNAMIC, None) => self.prime(Source::Dim(value, dim)),
                (known, _) => known,
            });
        }
        let total = shape
            .iter()
            .try_fold(1i64, |total, own| total.checked_mul(*own));
        self.overflow |= total.is_none_or(|total| total > i64::MAX / 16);
        self.shapes.insert(identity(value), shape);
    }

    /// The number that a size is.
    fn size(&mut self, value: Val<'c>) -> i64 {
        match self.number(value) {
            Some(number) => number,
            None => self.prime(Source::Scalar(value)),
        }
    }

    fn operation(&mut self, op: Op<'c>) {
        if name(op) == "tensor.dim" {
            if let (&[tensor, dim], &[result]) = (&operands(op)[..], &results(op)[..]) {
                let at = defined_by(dim, "arith.constant")
                    .and_then(|op| op.attribute("value").ok())
                    .and_then(attribute::integer)
                    .and_then(|dim| usize::try_from(dim).ok());
                let shape = self.shape(tensor);
                let number = at.and_then(|at| shape?.get(at).copied());
                if let Some(number) = number {
                    self.numbers.insert(identity(result), number);
                }
            }
            return;
        }
        let tensors = results(op)
            .into_iter()
            .any(|own| TensorType::of_value(own).is_some());
        if !tensors {
            let number = scalars::evaluate(self, op, &|value| self.number(value));
            if let (Some(number), Some(result)) = (number, results(op).first()) {
                self.numbers.insert(identity(*result), number);
            }
            return;
        }
        for (at, result) in results(op).into_iter().enumerate() {
            let found = self.result(op, at, result).unwrap_or_default();
            self.tensor(result, &found);
        }
        self.agree(op);
    }

    /// The extents of a result, as far as its operation says them.
    fn result(&mut self, op: Op<'c>, at: usize, result: Val<'c>) -> Option<Vec<Option<i64>>> {
        let all = operands(op);
        let shape = TensorType::of_value(result)?.shape;
        let of = |own: &Self, value: Val<'c>| {
            let shape = own.shape(value)?.iter();
            Some(shape.copied().map(Some).collect::<Vec<_>>())
        };
        match name(op).as_str() {
            "tensor.empty" => self.sizes(&shape, &all),
            ops::FILL => self.sizes(&shape, all.get(1..)?),
            "tensor.expand_shape" => self.sizes(&shape, all.get(1..)?),
            "tensor.cast" | ops::CAST | ops::MAP => of(self, *all.first()?),
            "tensor.collapse_shape" => {
                let groups = op.attribute("reassociation").ok();
                let groups = groups.and_then(attribute::read_groups)?;
                let from = self.shape(*all.first()?)?.clone();
                let product = |group: &Vec<i64>| {
                    group.iter().try_fold(1i64, |product, dim| {
                        product.checked_mul(*from.get(usize::try_from(*dim).ok()?)?)
                    })
                };
                Some(groups.iter().map(product).collect())
            }
            "tensor.reshape" => {
                let found = scalars::shape_of(self, *all.get(1)?)?;
                Some(found.into_iter().map(Some).collect())
            }
            ops::TRANSPOSE => {
                let from = self.shape(*all.first()?)?;
                let order = op.attribute("permutation").ok();
                let order = order.and_then(attribute::read_i64s)?;
                let own = order
                    .iter()
                    .map(|dim| from.get(usize::try_from(*dim).ok()?).copied());
                Some(own.collect())
            }
            ops::REDUCE => {
                let from = self.shape(*all.first()?)?.iter().enumerate();
                let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
                let kept = from.filter(|(dim, _)| !dims.contains(&(*dim as i64)));
                Some(kept.map(|(_, extent)| Some(*extent)).collect())
            }
            ops::BROADCAST => {
                let dims = op.attribute("dims").ok().and_then(attribute::read_i64s)?;
                let mut from = self.shape(*all.first()?)?.clone().into_iter();
                let mut sizes = all.iter().skip(1);
                let mut found = Vec::new();
                for (dim, extent) in (0i64..).zip(&shape) {
                    found.push(match (dims.contains(&dim), *extent) {
                        (true, DYNAMIC) => sizes.next().map(|size| self.size(*size)),
                        (true, known) => Some(known),
                        (false, _) => from.next(),
                    });
                }
                Some(found)
            }
            ops::GEMM => self.product(op),
            own if own.starts_with("linalg.") => {
                let inits = all.len().checked_sub(op.result_count())?;
                of(self, *all.get(inits + at)?)
            }
            _ => None,
        }
    }

    fn sizes(&mut self, shape: &[i64], sizes: &[Val<'c>]) -> Option<Vec<Option<i64>>> {
        let mut sizes = sizes.iter();
        let mut found = Vec::new();
        for extent in shape {
            found.push(match *extent {
                DYNAMIC => sizes.next().map(|size| self.size(*size)),
                known => Some(known),
            });
        }
        Some(found)
    }

    /// The extents of a matrix product.
    fn product(&self, op: Op<'c>) -> Option<Vec<Option<i64>>> {
        let gemm = GemmOp::of(op)?;
        let (a, b) = (self.shape(gemm.a)?, self.shape(gemm.b)?);
        let (batch, [.., _, _]) = a.split_at_checked(a.len().checked_sub(2)?)? else {
            return None;
        };
        let from_end = |shape: &[i64], at: usize| shape.get(shape.len().checked_sub(at)?).copied();
        let m = from_end(a, if gemm.trans_a { 1 } else { 2 });
        let n = from_end(b, if gemm.trans_b { 2 } else { 1 });
        let batch = batch.iter().copied().map(Some);
        Some(batch.chain([m, n]).collect())
    }

    /// Takes note of extents that an operation's operands share.
    fn agree(&mut self, op: Op<'c>) {
        let own = name(op);
        let all = operands(op);
        if own == ops::MAP {
            let shapes: Vec<_> = all
                .iter()
                .filter_map(|own| self.shape(*own).cloned())
                .collect();
            for pair in shapes.windows(2) {
                for (a, b) in pair[0].iter().zip(&pair[1]) {
                    self.equal(*a, *b);
                }
            }
            return;
        }
        if own != "linalg.generic" {
            return;
        }
        let Some(maps) = maps(op) else { return };
        let mut loops: HashMap<usize, i64> = HashMap::new();
        let mut equal = Vec::new();
        for (value, map) in all.iter().zip(&maps).rev() {
            let Some(shape) = self.shape(*value) else {
                continue;
            };
            for (at, extent) in shape.iter().enumerate() {
                let Ok(expression) = map.result(at) else {
                    continue;
                };
                if expression.is_dim() {
                    let first = loops.entry(expression.dim_position()).or_insert(*extent);
                    equal.push((*first, *extent));
                }
            }
        }
        for (a, b) in equal {
            self.equal(a, b);
        }
        for (dim, at, from) in super::copy::clamped(self, op) {
            let extent = self.shape(from).and_then(|shape| shape.get(dim).copied());
            let (Some(extent), Some(own)) = (extent, loops.get(&at).copied()) else {
                continue;
            };
            let pair = self.equal(extent, own);
            self.assumed.extend(pair);
        }
    }
}

/// Numbers of a function that no prime may divide.
fn taken<'c>(func: Op<'c>, block: BlockRef<'c, 'c>) -> Vec<i64> {
    let mut found = Vec::new();
    let ops = walk::nested(func, &|_| true).into_iter();
    let values = ops.flat_map(|op| {
        let constant = op.attribute("value").ok().and_then(attribute::integer);
        found.extend(constant);
        results(op)
    });
    let values: Vec<_> = values.chain(walk::block_arguments(block)).collect();
    let shapes = values.into_iter().filter_map(TensorType::of_value);
    found.extend(shapes.flat_map(|tensor| tensor.shape));
    found.retain(|number| *number >= FIRST);
    found.sort_unstable();
    found.dedup();
    found
}
