//! Elements of tensors, read as terms: what an element at a place is of others, through the operators between.

use super::index::{self, Digit, Index, Place, Step, Var};
use super::term::{Id, Scalar, Term, Terms};
use super::triangle;
use crate::fuse::nest::{is_nest, maps, reductions};
use crate::fuse::operators::{is_product, is_reshape, splat};
use crate::fuse::space::source;
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute, types, walk};
use axe_dialect::ops::{self, GemmOp};
use axe_dialect::{Combiner, Typed};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Location, Type, ValueLike};
use std::collections::{HashMap, HashSet};

/// Terms of a kernel at most: bodies of programs are small, and what is not is no mask.
const MOST_TERMS: usize = 2000;

/// The extents of the variables of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Problems.
    pub batch: i64,
    /// Rows of a problem's result.
    pub rows: i64,
    /// What is streamed.
    pub keys: i64,
    /// Columns of the result.
    pub columns: i64,
}

/// A tensor that is read, and where its elements lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<'c> {
    /// The tensor.
    pub tensor: Val<'c>,
    /// Its steps in memory.
    pub steps: Vec<Step>,
}

/// An operand of a product: 16-bit floats in memory, times a number.
#[derive(Clone, Debug)]
pub struct Operand<'c> {
    /// Where its elements lie.
    pub read: Read<'c>,
    /// What each is multiplied by.
    pub scale: f64,
}

/// A matrix product whose operands are read from memory.
#[derive(Clone, Debug)]
pub struct Product<'c> {
    /// The operator.
    pub op: Op<'c>,
    /// The operand with rows (or, of the second product, none), and the one with keys.
    pub operands: Vec<Operand<'c>>,
    /// The extent of what it sums over.
    pub depth: i64,
}

/// Why terms cannot be read, and at which operator.
#[derive(Clone, Debug)]
pub struct Stop<'c> {
    /// The operator.
    pub location: Location<'c>,
    /// Why.
    pub why: String,
}

/// What reading gives, or why it stopped.
pub type Reading<'c, T> = Result<T, Stop<'c>>;

/// Reads elements.
pub struct Reader<'c> {
    /// The terms so far.
    pub terms: Terms,
    /// Tensors that terms are elements of.
    pub inputs: Vec<Read<'c>>,
    /// The first product.
    pub scores: Option<Product<'c>>,
    /// The second product: `[values]` are its operands.
    pub product: Option<Product<'c>>,
    /// Operators that were read through.
    pub inner: HashSet<usize>,
    /// The extents of its variables.
    pub extents: Extents,
    second: Op<'c>,
    known: HashMap<(usize, Place), Id>,
}

/// What tells operations apart.
fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

fn stop<'c, T>(op: Op<'c>, why: impl Into<String>) -> Reading<'c, T> {
    Err(Stop {
        location: op.location(),
        why: why.into(),
    })
}

/// What the values of a type are as terms.
fn scalar_of(r#type: Type<'_>) -> Option<Scalar> {
    match types::bits(r#type) {
        Some(_) if types::is_float(r#type) => Some(Scalar::Float),
        Some(bits) => Some(Scalar::Int(bits)),
        None => (r#type.to_string() == "index").then_some(Scalar::Int(64)),
    }
}

/// The steps of a permutation, a reduction, ...
fn dims(op: Op<'_>, key: &str) -> Option<Vec<usize>> {
    let dims = op.attribute(key).ok().and_then(attribute::read_i64s)?;
    dims.into_iter()
        .map(|dim| usize::try_from(dim).ok())
        .collect()
}

/// Whether all of a tensor's extents are known.
fn static_shape(value: Val<'_>) -> Option<Vec<i64>> {
    let tensor = TensorType::of_value(value)?;
    (!tensor.encoded && !tensor.shape.contains(&DYNAMIC) && !tensor.shape.contains(&0))
        .then_some(tensor.shape)
}

impl<'c> Reader<'c> {
    /// A reader of results of this second product.
    #[must_use]
    pub fn new(second: Op<'c>, extents: Extents) -> Self {
        Self {
            terms: Terms::default(),
            inputs: Vec::new(),
            scores: None,
            product: None,
            inner: HashSet::new(),
            second,
            extents,
            known: HashMap::new(),
        }
    }

    /// The element of a tensor at a place.
    ///
    /// # Errors
    /// At an operator that cannot be read through, and whose tensor cannot be read instead.
    pub fn element(&mut self, value: Val<'c>, place: &Place) -> Reading<'c, Id> {
        let place: Place = place
            .iter()
            .map(|index| index::canonical(index.iter().copied()))
            .collect();
        let key = (identity(value), place);
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let formed = match defining(value) {
            Some(op) => {
                let formed = self.form(op, value, &key.1);
                if formed.is_ok() {
                    self.inner.insert(number(op));
                }
                formed
            }
            None => Ok(None),
        };
        let id = match formed {
            Ok(Some(id)) => id,
            Ok(None) => self.leaf(value, &key.1)?,
            // What is not read through is formed by other kernels, unless it is formed of the first product.
            Err(stopped) => match self.leaf(value, &key.1) {
                Ok(id) if !self.is_of_product(value) => id,
                _ => return Err(stopped),
            },
        };
        self.known.insert(key, id);
        Ok(id)
    }

    /// Whether a value is formed of a matrix product.
    fn is_of_product(&self, value: Val<'c>) -> bool {
        let (mut next, mut seen) = (vec![value], HashSet::new());
        while let Some(value) = next.pop() {
            let Some(op) = defining(value).filter(|op| seen.insert(number(*op))) else {
                continue;
            };
            if is_product(op) {
                return true;
            }
            next.extend(operands(op));
        }
        false
    }

    /// An element that is read from memory.
    fn leaf(&mut self, value: Val<'c>, place: &Place) -> Reading<'c, Id> {
        let read = self.read(value, place);
        let element = TensorType::of_value(value).and_then(|tensor| scalar_of(tensor.element));
        let (Some(read), Some(scalar)) = (read, element) else {
            let location =
                defining(value).map_or_else(|| self.second.location(), |op| op.location());
            return Err(Stop {
                location,
                why: format!(
                    "a tensor of type {} is not read element by element",
                    value.r#type()
                ),
            });
        };
        let number = self.inputs.iter().position(|own| *own == read);
        let number = number.unwrap_or_else(|| {
            self.inputs.push(read);
            self.inputs.len() - 1
        });
        Ok(self.terms.add(Term::Input(number), scalar))
    }

    fn read(&self, value: Val<'c>, place: &Place) -> Option<Read<'c>> {
        let steps = index::access(place, &static_shape(value)?)?;
        Some(Read {
            tensor: value,
            steps,
        })
    }

    /// The element of an operator's result; `None` for one that is read instead.
    fn form(&mut self, op: Op<'c>, value: Val<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        if self.terms.len() > MOST_TERMS {
            return stop(
                op,
                "a chain of operators is too long to be formed in one kernel",
            );
        }
        if let Some(constant) = splat(op) {
            return Ok(self.constant(constant));
        }
        if name(op) == "arith.constant" {
            return Ok(triangle::read(
                &mut self.terms,
                op,
                place,
                [self.extents.rows, self.extents.keys],
            ));
        }
        if is_reshape(op) {
            let Some(from) = source(op) else {
                return Ok(None);
            };
            let shape = static_shape(from);
            let place = shape.and_then(|shape| index::regrouped(place, &shape));
            return match place {
                Some(place) => self.element(from, &place).map(Some),
                None => Ok(None),
            };
        }
        if is_nest(op) {
            return self.generic(op, value, place).map(Some);
        }
        match name(op).as_str() {
            ops::FILL => match source(op) {
                Some(scalar) => self.captured(op, scalar).map(Some),
                None => Ok(None),
            },
            ops::CAST => self.cast(op, place),
            ops::TRANSPOSE => self.transposed(op, place),
            ops::BROADCAST => self.broadcast(op, place),
            ops::REDUCE => self.reduced(op, place),
            ops::MAP => {
                let operands = operands(op);
                let at: Vec<_> = operands
                    .iter()
                    .map(|operand| (*operand, place.clone()))
                    .collect();
                self.body(op, &at, None, 0).map(Some)
            }
            ops::GEMM => self.product(op, place),
            _ => Ok(None),
        }
    }

    fn constant(&mut self, constant: melior::ir::Attribute<'c>) -> Option<Id> {
        if let Some(value) = attribute::float(constant) {
            return Some(self.terms.float(value));
        }
        let value = attribute::integer(constant)?;
        let Scalar::Int(bits) = scalar_of(melior::ir::AttributeLike::r#type(&constant))? else {
            return None;
        };
        Some(self.terms.int(value, bits))
    }

    fn cast(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let Some(from) = source(op) else {
            return Ok(None);
        };
        let element = |value| TensorType::of_value(value).map(|tensor| tensor.element);
        let both = [Some(from), results(op).first().copied()].map(|value| value.and_then(element));
        let narrow = |r#type: &Type<'_>| {
            types::is_float(*r#type) && (16..=32).contains(&types::bits(*r#type).unwrap_or(0))
        };
        match both {
            [Some(a), Some(b)] if narrow(&a) && narrow(&b) => self.element(from, place).map(Some),
            _ => Ok(None),
        }
    }

    fn transposed(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let (Some(from), Some(permutation)) = (source(op), dims(op, "permutation")) else {
            return Ok(None);
        };
        let mut own = vec![Index::new(); permutation.len()];
        for (index, dim) in place.iter().zip(permutation) {
            if let Some(slot) = own.get_mut(dim) {
                slot.clone_from(index);
            }
        }
        self.element(from, &own).map(Some)
    }

    fn broadcast(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let (Some(from), Some(added)) = (source(op), dims(op, "dims")) else {
            return Ok(None);
        };
        let kept = place
            .iter()
            .enumerate()
            .filter(|(dim, _)| !added.contains(dim));
        let own: Place = kept.map(|(_, index)| index.clone()).collect();
        self.element(from, &own).map(Some)
    }

    /// A reduction over all keys. What it combines must be of the first product or a mask: others are read.
    fn reduced(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let combiner = op
            .attribute("combiner")
            .ok()
            .and_then(|attribute| Combiner::cast(attribute));
        let (Some(from), Some(dropped), Some(combiner)) = (source(op), dims(op, "dims"), combiner)
        else {
            return Ok(None);
        };
        let Some(shape) = static_shape(from) else {
            return Ok(None);
        };
        let extent: i64 = dropped.iter().filter_map(|dim| shape.get(*dim)).product();
        if extent != self.extents.keys || place.iter().flatten().any(|digit| digit.var == Var::Key)
        {
            return Ok(None);
        }
        let mut kept = place.iter();
        let own: Option<Place> = (0..shape.len())
            .map(|dim| match dropped.contains(&dim) {
                true if shape.get(dim) == Some(&extent) => Some(index::whole(Var::Key, extent)),
                true => Some(Index::new()),
                false => kept.next().cloned(),
            })
            .collect();
        let Some(own) = own.filter(|own| {
            own.iter()
                .flatten()
                .filter(|digit| digit.var == Var::Key)
                .count()
                <= 1
        }) else {
            return Ok(None);
        };
        let inner = self.element(from, &own)?;
        let scalar = self.terms.scalar(inner);
        let of_scores = self.terms.any(inner, true, &|term| *term == Term::Score);
        match of_scores || scalar == Scalar::Int(1) {
            true => Ok(Some(self.terms.add(Term::Fold(combiner, inner), scalar))),
            false => Ok(None),
        }
    }

    /// A `linalg.generic` whose loops are all parallel.
    fn generic(&mut self, op: Op<'c>, value: Val<'c>, place: &Place) -> Reading<'c, Id> {
        let no = |why: &str| stop(op, format!("a loop nest {why}"));
        let (Some(maps), all) = (maps(op), operands(op)) else {
            return no("has maps with symbols");
        };
        if reductions(op).contains(&true) {
            return no("reduces");
        }
        let inputs = all.len().saturating_sub(op.result_count());
        let number = results(op)
            .iter()
            .position(|result| *result == value)
            .unwrap_or(0);
        let Some(out) = maps.get(inputs + number) else {
            return no("has no map of its result");
        };
        let Some(loops) = loops_at(out, place, reductions(op).len()) else {
            return no("writes its result out of order");
        };
        let mut at = Vec::new();
        for (operand, map) in all.iter().zip(&maps).take(inputs) {
            let Some(own) = operand_at(map, &loops) else {
                return no("reads more than one element after the other");
            };
            at.push((*operand, own));
        }
        self.body(op, &at, Some(&loops), number)
    }

    /// What the body of an operator yields of elements of its operands.
    fn body(
        &mut self,
        op: Op<'c>,
        at: &[(Val<'c>, Place)],
        loops: Option<&Place>,
        number: usize,
    ) -> Reading<'c, Id> {
        let blocks = walk::blocks(op);
        let Some(block) = blocks.first() else {
            return stop(op, "an operator has no body");
        };
        let mut values = HashMap::new();
        for (argument, (operand, place)) in walk::block_arguments(*block).into_iter().zip(at) {
            // Arguments that the body does not use need not be read: they may be what no kernel can.
            if crate::ir::value::is_used(argument) {
                let id = match TensorType::of_value(*operand) {
                    Some(_) => self.element(*operand, place)?,
                    None => self.captured(op, *operand)?,
                };
                values.insert(identity(argument), id);
            }
        }
        for inner in walk::operations(*block) {
            if name(inner).ends_with(".yield") {
                let yielded = operands(inner).get(number).copied();
                return match yielded {
                    Some(value) => self.scalar(op, value, &values),
                    None => stop(op, "a body yields nothing"),
                };
            }
            let id = match name(inner).as_str() {
                "linalg.index" => self.index(inner, loops)?,
                _ => self.operation(inner, &values)?,
            };
            if let Some(result) = results(inner).first() {
                values.insert(identity(*result), id);
            }
        }
        stop(op, "a body yields nothing")
    }

    fn scalar(
        &mut self,
        op: Op<'c>,
        value: Val<'c>,
        values: &HashMap<usize, Id>,
    ) -> Reading<'c, Id> {
        match values.get(&identity(value)) {
            Some(id) => Ok(*id),
            None => self.captured(op, value),
        }
    }

    /// A scalar from outside of a body: of constants.
    fn captured(&mut self, op: Op<'c>, value: Val<'c>) -> Reading<'c, Id> {
        match defining(value) {
            Some(own) if own.region_count() == 0 => self.operation(own, &HashMap::new()),
            _ => stop(op, "a body reads a scalar of the function"),
        }
    }

    /// `linalg.index`, where it is a row or a key.
    fn index(&mut self, op: Op<'c>, loops: Option<&Place>) -> Reading<'c, Id> {
        let dim = op.attribute("dim").ok().and_then(attribute::integer);
        let dim = dim.and_then(|dim| usize::try_from(dim).ok());
        let place = loops.and_then(|loops| loops.get(dim?));
        let Extents { rows, keys, .. } = self.extents;
        match place.map(Vec::as_slice) {
            Some([]) => Ok(self.terms.int(0, 64)),
            Some(&[digit])
                if [(Var::Row, rows), (Var::Key, keys)]
                    .iter()
                    .any(|(var, extent)| index::whole(*var, *extent) == [digit]) =>
            {
                Ok(self.terms.add(Term::Index(digit.var), Scalar::Int(64)))
            }
            _ => stop(op, "an index is neither that of a row nor that of a key"),
        }
    }

    /// A scalar operation of arith or math.
    fn operation(&mut self, op: Op<'c>, values: &HashMap<usize, Id>) -> Reading<'c, Id> {
        let name = name(op);
        if name == "arith.constant" {
            let constant = op
                .attribute("value")
                .ok()
                .and_then(|value| self.constant(value));
            return constant.map_or_else(|| stop(op, "a constant is no number"), Ok);
        }
        let scalar = results(op)
            .first()
            .and_then(|result| scalar_of(result.r#type()));
        let (Some(scalar), true, 0) = (
            scalar,
            name.starts_with("arith.") || name.starts_with("math."),
            op.region_count(),
        ) else {
            return stop(op, format!("'{name}' is no operation of scalars"));
        };
        if name == "arith.bitcast" || results(op).len() != 1 {
            return stop(op, format!("'{name}' is not read through"));
        }
        let mut of = Vec::new();
        for operand in operands(op) {
            of.push(self.scalar(op, operand, values)?);
        }
        let predicate = op.attribute("predicate").ok().and_then(attribute::integer);
        Ok(self.terms.apply(&name, predicate, &of, scalar))
    }

    /// The first or the second product, where the place is its own.
    fn product(&mut self, op: Op<'c>, place: &Place) -> Reading<'c, Option<Id>> {
        let Some(gemm) = GemmOp::of(op).filter(|gemm| gemm.acc.is_none_or(is_zero)) else {
            return Ok(None);
        };
        let Some(([m, n], batch)) = split_last(place) else {
            return Ok(None);
        };
        let (m, n) = (m.clone(), n.clone());
        let Extents {
            batch: problems,
            rows,
            keys,
            columns,
        } = self.extents;
        if index::canonical(batch.iter().flatten().copied()) != index::whole(Var::Batch, problems) {
            return Ok(None);
        }
        let row = index::whole(Var::Row, rows);
        let other = if op == self.second {
            index::whole(Var::Column, columns)
        } else {
            index::whole(Var::Key, keys)
        };
        let swapped = match (m == row && n == other, m == other && n == row) {
            (true, _) => false,
            (_, true) => true,
            _ => return Ok(None),
        };
        let Some(depth) = depth(&gemm) else {
            return Ok(None);
        };
        let side = |first: bool, index: &Index, inner: Index| {
            let (value, inner_first) = if first {
                (gemm.a, gemm.trans_a)
            } else {
                (gemm.b, !gemm.trans_b)
            };
            let own = if inner_first {
                [inner, index.clone()]
            } else {
                [index.clone(), inner]
            };
            (value, [batch, &own].concat())
        };
        if op == self.second {
            let over = index::whole(Var::Key, keys);
            let (weights, at) = side(!swapped, &row, over.clone());
            let weight = self.element(weights, &at)?;
            let (values, at) = side(swapped, &other, over);
            let values = self.operand(op, values, at)?;
            self.product = Some(Product {
                op,
                operands: vec![values],
                depth,
            });
            return Ok(Some(self.terms.add(Term::Product(weight), Scalar::Float)));
        }
        let over = index::whole(Var::Depth, depth);
        let (queries, at) = side(!swapped, &row, over.clone());
        let queries = self.operand(op, queries, at)?;
        let (own, at) = side(swapped, &other, over);
        let own = self.operand(op, own, at)?;
        let scale = queries.scale * own.scale;
        match &self.scores {
            Some(scores) if scores.op != op => {
                return stop(op, "there is another product before it");
            }
            _ => {
                self.scores = Some(Product {
                    op,
                    operands: vec![queries, own],
                    depth,
                })
            }
        }
        let score = self.terms.add(Term::Score, Scalar::Float);
        let scale = self.terms.float(scale);
        Ok(Some(self.terms.apply(
            "arith.mulf",
            None,
            &[score, scale],
            Scalar::Float,
        )))
    }

    /// An operand of a product: the tensor of 16-bit floats that it is a view of, times a number.
    fn operand(&mut self, op: Op<'c>, value: Val<'c>, place: Place) -> Reading<'c, Operand<'c>> {
        let (mut value, mut place, mut scale) = (value, place, 1.0);
        let mut found: Option<Operand<'c>> = None;
        let mut passed = Vec::new();
        loop {
            let half = TensorType::of_value(value).is_some_and(|tensor| {
                types::is_float(tensor.element) && types::bits(tensor.element) == Some(16)
            });
            if half && let Some(read) = self.read(value, &place) {
                found = Some(Operand { read, scale });
                self.inner.extend(passed.drain(..));
            }
            let Some(own) = defining(value) else { break };
            let Some((from, at, factor)) = self.step(own, &place) else {
                break;
            };
            passed.push(number(own));
            (value, place, scale) = (from, at, scale * factor);
        }
        match found {
            Some(found) => Ok(found),
            None => stop(op, "an operand has no elements of f16 or bf16 in memory"),
        }
    }

    /// One step of [`Self::operand`] towards memory: through a view, a conversion or a constant factor.
    fn step(&mut self, op: Op<'c>, place: &Place) -> Option<(Val<'c>, Place, f64)> {
        let from = source(op)?;
        if is_reshape(op) {
            return Some((from, index::regrouped(place, &static_shape(from)?)?, 1.0));
        }
        match name(op).as_str() {
            ops::TRANSPOSE => {
                let mut own = vec![Index::new(); place.len()];
                for (index, dim) in place.iter().zip(dims(op, "permutation")?) {
                    own.get_mut(dim)?.clone_from(index);
                }
                Some((from, own, 1.0))
            }
            ops::BROADCAST => {
                let added = dims(op, "dims")?;
                let kept = place
                    .iter()
                    .enumerate()
                    .filter(|(dim, _)| !added.contains(dim));
                Some((from, kept.map(|(_, index)| index.clone()).collect(), 1.0))
            }
            ops::CAST => {
                let element = TensorType::of_value(from)?.element;
                types::is_float(element).then(|| (from, place.clone(), 1.0))
            }
            ops::MAP => Some((from, place.clone(), self.factor(op)?)),
            _ => None,
        }
    }

    /// The number that a map multiplies its only operand by.
    fn factor(&mut self, op: Op<'c>) -> Option<f64> {
        let block = walk::blocks(op).first().copied()?;
        let arguments = walk::block_arguments(block);
        let &[argument] = arguments.as_slice() else {
            return None;
        };
        let before = self.terms.clone();
        // The element itself stands for a score, which no map of an operand has.
        let element = self.terms.add(Term::Score, Scalar::Float);
        let mut values = HashMap::from([(identity(argument), element)]);
        let mut factor = None;
        for inner in walk::operations(block) {
            if name(inner).ends_with(".yield") {
                let id = operands(inner)
                    .first()
                    .and_then(|value| self.scalar(op, *value, &values).ok());
                factor = id.and_then(|id| super::weights::factor_of(&mut self.terms, id, element));
                break;
            }
            let Ok(id) = self.operation(inner, &values) else {
                break;
            };
            values.insert(identity(*results(inner).first()?), id);
        }
        self.terms = before;
        factor
    }
}

/// Whether a value is zero everywhere.
fn is_zero(value: Val<'_>) -> bool {
    let zero = |attribute| attribute::float(attribute) == Some(0.0);
    let Some(op) = defining(value) else {
        return false;
    };
    let filled = || {
        let scalar = source(op)
            .filter(|_| name(op) == ops::FILL)
            .and_then(defining)?;
        scalar.attribute("value").ok()
    };
    splat(op).or_else(filled).is_some_and(zero)
}

/// What a product sums over.
fn depth(gemm: &GemmOp<'_>) -> Option<i64> {
    let shape = static_shape(gemm.a)?;
    let from_end = if gemm.trans_a { 2 } else { 1 };
    shape.get(shape.len().checked_sub(from_end)?).copied()
}

/// The last two indices, and those before.
fn split_last(place: &Place) -> Option<(&[Index; 2], &[Index])> {
    place
        .split_last_chunk::<2>()
        .map(|(rest, last)| (last, rest))
}

/// The index of each loop where a result has this place.
fn loops_at(map: &AffineMap<'_>, place: &Place, loops: usize) -> Option<Place> {
    let mut found: Vec<Option<Index>> = vec![None; loops];
    for (at, index) in place.iter().enumerate() {
        let expression = map.result(at).ok()?;
        if !expression.is_dim() {
            return None;
        }
        let slot = found.get_mut(expression.dim_position())?;
        if slot.is_some() {
            return None;
        }
        *slot = Some(index.clone());
    }
    found.into_iter().collect()
}

/// The place of an operand at these loops: loops and zeros.
fn operand_at(map: &AffineMap<'_>, loops: &Place) -> Option<Place> {
    (0..map.result_count())
        .map(|at| {
            let expression = map.result(at).ok()?;
            match expression.is_dim() {
                true => loops.get(expression.dim_position()).cloned(),
                false => (expression.to_string() == "0").then(Index::new),
            }
        })
        .collect()
}

/// The place of a result in memory, as the place of the product that a chain of operators formed it of: `chain` ends with the
/// product's own result.
#[must_use]
pub fn place_in<'c>(chain: &[Val<'c>]) -> Option<Place> {
    let (last, _) = chain.split_first()?;
    let shape = static_shape(*last)?;
    let total = shape
        .iter()
        .try_fold(1i64, |total, extent| total.checked_mul(*extent))?;
    let mut place = index::regrouped(&[index::whole(Var::Element, total)], &shape)?;
    for pair in chain.windows(2) {
        let &[value, from] = pair else { return None };
        let op = defining(value)?;
        if is_reshape(op) {
            place = index::regrouped(&place, &static_shape(from)?)?;
        } else if name(op) == ops::TRANSPOSE {
            let mut own = vec![Index::new(); place.len()];
            for (index, dim) in place.iter().zip(dims(op, "permutation")?) {
                own.get_mut(dim)?.clone_from(index);
            }
            place = own;
        } else if ![ops::CAST, ops::MAP].contains(&name(op).as_str()) {
            return None;
        }
    }
    Some(place)
}

/// A result's place, of the digits that its product's indices are made of in memory: each named by a variable.
#[must_use]
pub fn named(indices: &[(Var, Index)], shape: &[i64]) -> Option<Place> {
    let mut digits = Vec::new();
    for (var, index) in indices {
        let mut stride = 1;
        for digit in index.iter().rev() {
            let own = Digit {
                var: *var,
                extent: digit.extent,
                stride,
            };
            digits.push((digit.stride, own));
            stride *= digit.extent;
        }
    }
    digits.sort_by_key(|(memory, _)| std::cmp::Reverse(*memory));
    let digits: Index = digits.into_iter().map(|(_, digit)| digit).collect();
    index::regrouped(&[digits], shape)
}
