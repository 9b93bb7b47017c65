//! Loops of which each point is formed of two columns of a product's result: gated activations (SwiGLU, GEGLU) of a projection that
//! forms gates and values together. The columns of a pair are a half of the row apart, as `torch.chunk` cuts it, or neighbours.
//! They join the product's kernel, which forms both in the registers of one thread.

use super::evaluate::Evaluator;
use super::nest::{Pointwise, is_nest};
use super::operators::captured;
use super::space::{Kind, Pairs, product};
use crate::ir::value::{defining, identity, name, only_result, operands, results, users};
use crate::ir::{Builder, DYNAMIC, Op, TensorType, Val, attribute, inline, walk};
use crate::{PassError, PassResult};
use axe_dialect::ops;
use melior::ir::operation::OperationLike;
use melior::ir::{TypeLike, ValueLike};
use std::collections::{HashMap, HashSet};

/// Operators that are followed from a column of pairs.
const MOST_FOLLOWED: usize = 64;

/// An element that a body reads: of which tensor, as it lies in the product's space, and of which column of the pair, where it has one
/// for each.
pub type PairRead<'c> = (Val<'c>, Kind, usize);

/// Such loops, read.
#[derive(Clone, Debug)]
pub struct Paired<'c> {
    /// Which columns are a pair.
    pub pairs: Pairs,
    /// What the body extracts, each element once.
    pub reads: Vec<PairRead<'c>>,
    /// Tensors of which it has the element at its own index.
    pub inputs: Vec<Val<'c>>,
    op: Op<'c>,
    /// The number in `reads` of what an operation extracts.
    extracted: HashMap<usize, usize>,
}

/// Loops that take one column of each pair of a product's result whose rows are counted at run time: what both are formed of is computed by
/// operators of their own.
#[derive(Clone, Copy, Debug)]
pub struct Side<'c> {
    /// Which columns are a pair.
    pub pairs: Pairs,
    /// The product's result, or what is formed of it element by element.
    pub table: Val<'c>,
    /// Which of the two columns.
    pub column: usize,
}

impl<'c> Side<'c> {
    /// Reads loops over half of so many columns; none where they do more than take elements.
    #[must_use]
    pub fn of(op: Op<'c>, columns: i64) -> Option<Self> {
        let result = only_result(op).filter(|_| is_nest(op))?;
        let shape = TensorType::of_value(result)?.shape;
        let (first, rest) = shape.split_first()?;
        let block = walk::blocks(op).first().copied()?;
        let last = walk::operations(block).pop()?;
        let extract = defining(*operands(last).first()?)?;
        let all = operands(extract);
        let (&table, indices) = all
            .split_first()
            .filter(|_| name(extract) == "tensor.extract")?;
        let extents = TensorType::of_value(table)?.shape;
        let (whole, own) = extents.split_first()?;
        if *first != DYNAMIC || *whole != DYNAMIC || own.contains(&DYNAMIC) {
            return None;
        }
        // The number of rows has no part in where an element is.
        let known = [&[1], rest].concat();
        let space = Space::of(&known, columns)?;
        let flat = place(indices, &[&[1], own].concat(), known.len())?;
        let found = [Pairs::Halves, Pairs::Interleaved].map(|pairs| {
            let elements = product(own)?;
            let (kind, column) = space.kind(&flat, elements, pairs)?;
            (kind == Kind::Full).then_some(Self {
                pairs,
                table,
                column,
            })
        });
        found.into_iter().flatten().next()
    }

    /// Whether loops take a column of the same pairs.
    #[must_use]
    pub fn has(&self, op: Op<'c>, columns: i64) -> bool {
        Self::of(op, columns).is_some_and(|own| own.pairs == self.pairs && own.table == self.table)
    }

    /// Whether what is computed of its elements alone, by operators of which each has one reader, meets what is computed of the other column.
    #[must_use]
    pub fn meets_other(&self, op: Op<'c>, columns: i64) -> bool {
        let extracts = users(self.table).into_iter();
        let loops = extracts.filter_map(|user| user.parent_operation());
        let sides: Vec<_> = loops.filter(|own| self.has(*own, columns)).collect();
        let [first, second] = sides[..] else {
            return false;
        };
        let other = if first == op { second } else { first };
        let is_other = Self::of(other, columns).is_some_and(|own| own.column != self.column);
        let own = only_readers(op);
        is_other
            && only_readers(other)
                .iter()
                .any(|reader| own.contains(reader))
    }
}

/// What loops over pairs of so many columns take of the product's space; none where they are others.
pub(super) fn needs(op: Op<'_>, columns: i64) -> Option<Vec<(Val<'_>, Kind)>> {
    let side = || Side::of(op, columns).map(|side| vec![(side.table, Kind::Full)]);
    let paired = Paired::of(op, columns).map(|paired| paired.needs());
    paired.or_else(side)
}

/// The only reader of what an operation gives, the only one of what that gives, and so on, as long as they are elementwise.
fn only_readers<'c>(op: Op<'c>) -> Vec<Op<'c>> {
    let next = |op: &Op<'c>| match users(only_result(*op)?)[..] {
        [user] if [ops::MAP, ops::CAST].contains(&name(user).as_str()) => Some(user),
        _ => None,
    };
    let all = std::iter::successors(Some(op), next);
    all.skip(1).take(MOST_FOLLOWED).collect()
}

/// A sum of multiples of the loops' indices and a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) factors: Vec<i64>,
    pub(super) constant: i64,
}

impl<'c> Paired<'c> {
    /// Reads loops over half as many columns as a product's result has; none where they read elements otherwise than in pairs.
    #[must_use]
    pub fn of(op: Op<'c>, columns: i64) -> Option<Self> {
        let nest = Pointwise::of(op)?;
        let space = Space::of(&nest.shape, columns)?;
        [Pairs::Halves, Pairs::Interleaved]
            .into_iter()
            .find_map(|pairs| Self::in_space(&nest, &space, pairs))
    }

    fn in_space(nest: &Pointwise<'c>, space: &Space, pairs: Pairs) -> Option<Self> {
        let block = walk::blocks(nest.op).first().copied()?;
        let mut paired = Self {
            pairs,
            reads: Vec::new(),
            inputs: nest.inputs.clone(),
            op: nest.op,
            extracted: HashMap::new(),
        };
        for op in walk::operations(block) {
            if name(op) == "tensor.extract" {
                paired.extract(op, space)?;
            } else if !is_place(op) && reads_places(op) {
                return None;
            }
        }
        let reads = paired.reads.iter();
        let of_product = reads.filter(|(_, kind, _)| *kind == Kind::Full);
        let columns: HashSet<_> = of_product.map(|(.., column)| *column).collect();
        (columns.len() == 2).then_some(paired)
    }

    fn extract(&mut self, op: Op<'c>, space: &Space) -> Option<()> {
        let all = operands(op);
        let (&table, indices) = all.split_first()?;
        let extents = TensorType::of_value(table)?.shape;
        let flat = place(indices, &extents, space.rows.len() + 1)?;
        let (kind, column) = space.kind(&flat, product(&extents)?, self.pairs)?;
        let read = (table, kind, column);
        let at = self.reads.iter().position(|own| *own == read);
        let at = at.unwrap_or_else(|| {
            self.reads.push(read);
            self.reads.len() - 1
        });
        self.extracted.insert(identity(only_result(op)?), at);
        Some(())
    }

    /// What forming the element takes of the product's space.
    #[must_use]
    pub fn needs(&self) -> Vec<(Val<'c>, Kind)> {
        let reads = self.reads.iter().map(|(value, kind, _)| (*value, *kind));
        let inputs = self.inputs.iter();
        reads
            .chain(inputs.map(|input| (*input, Kind::Pairs(self.pairs))))
            .collect()
    }

    /// The scalars that the body reads from above.
    #[must_use]
    pub fn captured(&self) -> Vec<Val<'c>> {
        let all = captured(self.op).into_iter();
        all.filter(|value| !value.r#type().is_index()).collect()
    }

    /// The body, as scalars at the builder's place: of what it extracts and of the inputs' elements, in this order, with what stands for
    /// scalars that it reads from above.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn element(
        &self,
        builder: &Builder<'c>,
        elements: &[Val<'c>],
        outside: inline::Values<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let missing = || PassError::new(self.op.location(), "expected a body");
        let block = walk::blocks(self.op).first().copied().ok_or_else(missing)?;
        let (read, inputs) = elements
            .split_at_checked(self.reads.len())
            .ok_or_else(missing)?;
        let mut values = outside;
        let arguments = walk::block_arguments(block).into_iter().map(identity);
        values.extend(arguments.zip(inputs.iter().copied()));
        for (value, at) in &self.extracted {
            values.insert(*value, *read.get(*at).ok_or_else(missing)?);
        }
        let mut own = walk::operations(block);
        let last = own.pop().ok_or_else(missing)?;
        for op in own {
            if name(op) != "tensor.extract" && !is_place(op) {
                inline::copy_operation(builder, op, &mut values);
            }
        }
        let yielded = operands(last).first().copied().ok_or_else(missing)?;
        Ok(values.get(&identity(yielded)).copied().unwrap_or(yielded))
    }
}

impl<'c> Evaluator<'_, 'c> {
    /// What loops form of two columns of the space, which these have on their tiles.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub fn pair(
        &mut self,
        (value, paired): (Val<'c>, &Paired<'c>),
        mut of: [&mut Evaluator<'_, 'c>; 2],
    ) -> PassResult<'c, Val<'c>> {
        let mut elements = Vec::new();
        for (read, kind, column) in &paired.reads {
            let formed = match (kind, of.get_mut(*column)) {
                (Kind::Pairs(_), _) => self.value(*read, *kind)?,
                (_, own) => own.ok_or_else(|| self.lost(*read))?.value(*read, *kind)?,
            };
            let whole = self.r#type(*read, Kind::Full)?;
            elements.push(match kind {
                Kind::Column => self.code.broadcast(formed, 0, whole)?,
                Kind::Row => self.code.broadcast(formed, 1, whole)?,
                _ => formed,
            });
        }
        for input in &paired.inputs {
            elements.push(self.value(*input, Kind::Pairs(paired.pairs))?);
        }
        let scalars = paired.captured().into_iter();
        let outside = scalars.map(|scalar| Ok((identity(scalar), self.scalar(scalar)?)));
        let outside = outside.collect::<PassResult<'c, HashMap<_, _>>>()?;
        let r#type = self.r#type(value, Kind::Full)?;
        self.code.map(&elements, r#type, |inner, elements| {
            paired.element(&inner.builder, elements, outside)
        })
    }
}

/// The number of an element in row-major order, of a tensor with these extents in so many loops.
pub(super) fn place(indices: &[Val<'_>], extents: &[i64], dims: usize) -> Option<Linear> {
    let mut flat = Linear::constant(0, dims);
    for (index, extent) in indices.iter().zip(extents) {
        flat = flat.times(*extent)?.plus(&Linear::of(*index, dims)?)?;
    }
    Some(flat)
}

/// The rows and columns of a product's result, and the shape of what is formed of pairs of columns.
struct Space {
    /// Elements of the dimensions behind each but the last, which is the pairs'.
    rows: Vec<i64>,
    /// Rows, and pairs of columns.
    extents: [i64; 2],
}

impl Space {
    fn of(shape: &[i64], columns: i64) -> Option<Self> {
        let (&pairs, leading) = shape.split_last()?;
        let is_half = pairs > 1 && pairs.checked_mul(2) == Some(columns);
        let behind = |at: usize| product(leading.get(at + 1..)?);
        let rows = (0..leading.len()).map(behind).collect::<Option<Vec<_>>>()?;
        // The factor of an index that is always zero is any.
        let is_known = leading.iter().all(|extent| *extent > 0);
        (is_half && is_known).then_some(Self {
            rows,
            extents: [product(leading)?, pairs],
        })
    }

    /// What the element at a place of so many is in the space, and of which column of the pair.
    fn kind(&self, flat: &Linear, elements: i64, pairs: Pairs) -> Option<(Kind, usize)> {
        let [rows, own] = self.extents;
        let along = |of_row: i64, of_pair: i64, constant: i64| -> Option<Linear> {
            let factors = self.rows.iter().map(|row| row.checked_mul(of_row));
            let factors = factors.chain([Some(of_pair)]).collect::<Option<_>>()?;
            Some(Linear { factors, constant })
        };
        let (of_pair, apart) = match pairs {
            Pairs::Halves => (1, own),
            Pairs::Interleaved => (2, 1),
        };
        let columns = own.checked_mul(2)?;
        for (column, constant) in [(0, 0), (1, apart)] {
            if elements == rows.checked_mul(columns)? && *flat == along(columns, of_pair, constant)?
            {
                return Some((Kind::Full, column));
            }
            if elements == columns && *flat == along(0, of_pair, constant)? {
                return Some((Kind::Column, column));
            }
        }
        if elements == rows.checked_mul(own)? && *flat == along(own, 1, 0)? {
            return Some((Kind::Pairs(pairs), 0));
        }
        (elements == rows && *flat == along(1, 0, 0)?).then_some((Kind::Row, 0))
    }
}

impl Linear {
    fn constant(constant: i64, dims: usize) -> Self {
        Self {
            factors: vec![0; dims],
            constant,
        }
    }

    /// The sum that an index is.
    fn of(value: Val<'_>, dims: usize) -> Option<Self> {
        let op = defining(value)?;
        let number = |name| op.attribute(name).ok().and_then(attribute::integer);
        let operand = |at: usize| Self::of(*operands(op).get(at)?, dims);
        match name(op).as_str() {
            "linalg.index" => {
                let mut own = Self::constant(0, dims);
                *own.factors.get_mut(usize::try_from(number("dim")?).ok()?)? = 1;
                Some(own)
            }
            "arith.constant" => Some(Self::constant(number("value")?, dims)),
            "arith.addi" => operand(0)?.plus(&operand(1)?),
            "arith.muli" => match (operand(0)?, operand(1)?) {
                (own, other) if other.is_constant() => own.times(other.constant),
                (own, other) if own.is_constant() => other.times(own.constant),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_constant(&self) -> bool {
        self.factors.iter().all(|factor| *factor == 0)
    }

    fn plus(self, other: &Self) -> Option<Self> {
        let factors = self.factors.iter().zip(&other.factors);
        Some(Self {
            factors: factors
                .map(|(a, b)| a.checked_add(*b))
                .collect::<Option<_>>()?,
            constant: self.constant.checked_add(other.constant)?,
        })
    }

    fn times(self, by: i64) -> Option<Self> {
        let factors = self.factors.iter().map(|own| own.checked_mul(by));
        Some(Self {
            factors: factors.collect::<Option<_>>()?,
            constant: self.constant.checked_mul(by)?,
        })
    }
}

/// Whether an operation only computes where an element is.
fn is_place(op: Op<'_>) -> bool {
    let all = results(op);
    op.region_count() == 0 && !all.is_empty() && all.iter().all(|own| own.r#type().is_index())
}

/// Whether the value of an operation depends on where its element is otherwise than by what it extracts there.
fn reads_places(op: Op<'_>) -> bool {
    let inner = walk::nested(op, &|_| true).into_iter();
    let mut all = inner.chain([op]);
    all.any(|op| {
        let is_index = |value: &Val<'_>| value.r#type().is_index();
        ["tensor.extract", "linalg.index"].contains(&name(op).as_str())
            || operands(op).iter().any(is_index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(factors: &[i64], constant: i64) -> Linear {
        Linear {
            factors: factors.to_vec(),
            constant,
        }
    }

    #[test]
    fn columns_of_pairs_are_halves_apart_or_neighbours() {
        let space = Space::of(&[3, 5, 8], 16).unwrap();
        let all = 3 * 5 * 16;
        for (factors, constant, elements, pairs, wanted) in [
            ([80, 16, 1], 0, all, Pairs::Halves, Some((Kind::Full, 0))),
            ([80, 16, 1], 8, all, Pairs::Halves, Some((Kind::Full, 1))),
            ([80, 16, 1], 1, all, Pairs::Halves, None),
            (
                [80, 16, 2],
                1,
                all,
                Pairs::Interleaved,
                Some((Kind::Full, 1)),
            ),
            ([80, 16, 2], 0, all, Pairs::Halves, None),
            ([16, 80, 1], 0, all, Pairs::Halves, None),
            ([0, 0, 1], 8, 16, Pairs::Halves, Some((Kind::Column, 1))),
            (
                [0, 0, 2],
                1,
                16,
                Pairs::Interleaved,
                Some((Kind::Column, 1)),
            ),
            ([0, 0, 1], 0, 8, Pairs::Halves, None),
            ([5, 1, 0], 0, 15, Pairs::Halves, Some((Kind::Row, 0))),
            (
                [40, 8, 1],
                0,
                120,
                Pairs::Halves,
                Some((Kind::Pairs(Pairs::Halves), 0)),
            ),
        ] {
            let kind = space.kind(&linear(&factors, constant), elements, pairs);
            assert_eq!(kind, wanted, "{factors:?} {constant} {pairs:?}");
        }
        assert!(Space::of(&[3, 5, 8], 17).is_none());
        assert!(Space::of(&[3, 5, 1], 2).is_none());
    }

    #[test]
    fn sums_do_not_overflow() {
        let most = linear(&[i64::MAX], i64::MAX);
        assert_eq!(most.clone().plus(&most), None);
        assert_eq!(most.times(2), None);
    }
}
