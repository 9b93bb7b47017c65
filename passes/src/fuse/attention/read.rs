//! Elements of tensors, read as terms: what an element at a place is of others, through the operators between.

use super::backward::OfGradients;
use super::gather::Pages;
use super::index::{self, Index, Place, Step, Var};
use super::narrow::is_e4m3;
use super::term::{Id, Label, Scalar, Term, Terms};
use super::triangle;
use crate::fuse::nest::is_nest;
use crate::fuse::operators::{is_product, is_reshape, splat};
use crate::fuse::space::source;
use crate::fuse::symbolic::Symbols;
use crate::ir::value::{defining, identity, name, operands, results};
use crate::ir::{DYNAMIC, Op, TensorType, Val, attribute, types};
use axe_dialect::Combiner;
use axe_dialect::ops;
use melior::ir::operation::OperationLike;
use melior::ir::{Location, Type, TypeLike, ValueLike};
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
    /// Elements before the first that is read: of a slice.
    pub first: i64,
}

impl<'c> Read<'c> {
    /// Elements of a tensor from its first one on.
    #[must_use]
    pub const fn whole(tensor: Val<'c>, steps: Vec<Step>) -> Self {
        Self {
            tensor,
            steps,
            first: 0,
        }
    }

    /// The elements of a tensor at a place.
    pub(super) fn of(tensor: Val<'c>, place: &Place) -> Option<Self> {
        let (steps, first) = index::access_from(place, &static_shape(tensor)?)?;
        Some(Self {
            tensor,
            steps,
            first,
        })
    }
}

/// An operand of a product: floats of 16 or 8 bits in memory, times a number.
#[derive(Clone, Debug)]
pub struct Operand<'c> {
    /// Where its elements lie.
    pub read: Read<'c>,
    /// What each is multiplied by.
    pub scale: f64,
    /// The pages that keys are in, where they are read through a table.
    pub pages: Option<Pages<'c>>,
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

impl Product<'_> {
    /// Whether both are of the same elements, but for what they are multiplied by.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.operands.iter().zip(&other.operands);
        let paged = |own: &Operand<'_>| own.pages.is_some();
        let mut pairs = pairs.map(|(a, b)| a.read == b.read && !paged(a) && !paged(b));
        self.depth == other.depth && pairs.all(|same| same)
    }
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
    /// Tensors of integers with one value a problem that terms are elements of.
    pub lengths: Vec<Read<'c>>,
    /// The first product.
    pub scores: Option<Product<'c>>,
    /// What else there is where gradients are looked for.
    pub(super) gradients: Option<OfGradients<'c>>,
    /// The second product: `[values]` are its operands.
    pub product: Option<Product<'c>>,
    /// Operators that were read through.
    pub inner: HashSet<usize>,
    /// The extents of its variables.
    pub extents: Extents,
    /// Whether gathers of pages are read through.
    pub(super) paged: bool,
    /// What its extents stand for.
    pub(super) symbols: Symbols<'c>,
    /// Where the weights are rounded to 8 bits, where they are.
    pub(super) rounding: Option<usize>,
    /// The second product.
    pub(super) second: Op<'c>,
    known: HashMap<(usize, Place), Id>,
}

/// What tells operations apart.
pub(super) fn number(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}

pub(super) fn stop<'c, T>(op: Op<'c>, why: impl Into<String>) -> Reading<'c, T> {
    Err(Stop {
        location: op.location(),
        why: why.into(),
    })
}

/// What the values of a type are as terms.
pub(super) fn scalar_of(r#type: Type<'_>) -> Option<Scalar> {
    match types::bits(r#type) {
        Some(_) if types::is_float(r#type) => Some(Scalar::Float),
        Some(bits) => Some(Scalar::Int(bits)),
        None => r#type.is_index().then_some(Scalar::Int(64)),
    }
}

/// The steps of a permutation, a reduction, ...
pub(super) fn dims(op: Op<'_>, key: &str) -> Option<Vec<usize>> {
    let dims = op.attribute(key).ok().and_then(attribute::read_i64s)?;
    dims.into_iter()
        .map(|dim| usize::try_from(dim).ok())
        .collect()
}

/// Whether all of a tensor's extents are known.
pub(super) fn static_shape(value: Val<'_>) -> Option<Vec<i64>> {
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
            lengths: Vec::new(),
            scores: None,
            gradients: None,
            product: None,
            inner: HashSet::new(),
            rounding: None,
            second,
            paged: true,
            symbols: Symbols::default(),
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
                Ok(id) if self.is_row_value(id) || !self.is_of_product(value) => id,
                _ => return Err(stopped),
            },
        };
        self.known.insert(key, id);
        Ok(id)
    }

    /// Whether a value is formed of a matrix product.
    fn is_of_product(&self, value: Val<'c>) -> bool {
        !products_of(value).is_empty()
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
        if scalar == Scalar::Float
            && let Some(id) = self.row_value(&read)
        {
            return Ok(id);
        }
        let of_problem = read.steps.iter().all(|step| step.digit.var == Var::Batch);
        let is_length = of_problem && matches!(scalar, Scalar::Int(32 | 64));
        let all = match is_length {
            true => &mut self.lengths,
            false => &mut self.inputs,
        };
        let number = all.iter().position(|own| *own == read);
        let number = number.unwrap_or_else(|| {
            all.push(read);
            all.len() - 1
        });
        let term = match (is_length, of_problem && scalar == Scalar::Float) {
            (true, _) => Term::Length(number),
            (false, true) => Term::Value(number),
            (false, false) => self.input(number, scalar),
        };
        Ok(self.terms.add(term, scalar))
    }

    /// The element of an input: a label, where it is an integer of a row or of a key alone.
    fn input(&self, number: usize, scalar: Scalar) -> Term {
        let steps = |number: usize| self.inputs.get(number).map(|own| own.steps.as_slice());
        let var = steps(number).and_then(of_one);
        let Some(var) = var.filter(|_| matches!(scalar, Scalar::Int(8 | 16 | 32 | 64))) else {
            return Term::Input(number);
        };
        let tensor = |number: usize| self.inputs.get(number).map(|own| own.tensor);
        let same = |other: &usize| {
            let both = [number, *other].map(|at| steps(at).map(index::without_var));
            tensor(*other) == tensor(number) && both[0] == both[1]
        };
        let class = (0..=number).find(same).unwrap_or(number);
        Term::Label(Label { var, number, class })
    }

    /// The elements of a tensor at a place, which is no slice's.
    pub(super) fn read(&self, value: Val<'c>, place: &Place) -> Option<Read<'c>> {
        Read::of(value, place).filter(|read| read.first == 0)
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
        if let Some((from, place)) = through(op, place) {
            return self.element(from, &place).map(Some);
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

    pub(super) fn constant(&mut self, constant: melior::ir::Attribute<'c>) -> Option<Id> {
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
        let rounds = |a, b| match (is_e4m3(a), is_e4m3(b)) {
            (false, true) => narrow(&a) && self.rounds_weights(op),
            (true, false) => narrow(&b) && self.is_rounded(from),
            _ => false,
        };
        match both {
            [Some(a), Some(b)] if narrow(&a) && narrow(&b) || rounds(a, b) => {
                self.element(from, place).map(Some)
            }
            _ => Ok(None),
        }
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
        // Of one element there is nothing to combine.
        if extent == 1 {
            let mut kept = place.iter().cloned();
            let own = (0..shape.len()).map(|dim| match dropped.contains(&dim) {
                true => Index::new(),
                false => kept.next().unwrap_or_default(),
            });
            return self.element(from, &own.collect()).map(Some);
        }
        if let Some(id) = self.row_product(op, place) {
            return Ok(Some(id));
        }
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
}

/// The matrix products that a value is formed of, up to those.
pub(super) fn products_of(value: Val<'_>) -> Vec<Op<'_>> {
    let (mut next, mut seen, mut found) = (vec![value], HashSet::new(), Vec::new());
    while let Some(value) = next.pop() {
        let Some(op) = defining(value).filter(|op| seen.insert(number(*op))) else {
            continue;
        };
        match is_product(op) {
            true => found.push(op),
            false => next.extend(operands(op)),
        }
    }
    found
}

/// Rows or keys, where the steps of a tensor have one of them, and of problems none or some.
fn of_one(steps: &[Step]) -> Option<Var> {
    let vars = [Var::Row, Var::Key];
    let of = |var: &Var| steps.iter().any(|step| step.digit.var == *var);
    let only = |own: Var| move |step: &Step| [own, Var::Batch].contains(&step.digit.var);
    let found = vars.into_iter().find(of)?;
    steps.iter().all(only(found)).then_some(found)
}

/// What an operator is a view of: the operand, and its place where the result has this one.
pub(super) fn through<'c>(op: Op<'c>, place: &Place) -> Option<(Val<'c>, Place)> {
    let from = source(op)?;
    if is_reshape(op) {
        return Some((from, index::regrouped(place, &static_shape(from)?)?));
    }
    match name(op).as_str() {
        ops::TRANSPOSE => {
            let mut own = vec![Index::new(); place.len()];
            for (index, dim) in place.iter().zip(dims(op, "permutation")?) {
                own.get_mut(dim)?.clone_from(index);
            }
            Some((from, own))
        }
        ops::BROADCAST => {
            let added = dims(op, "dims")?;
            let kept = place
                .iter()
                .enumerate()
                .filter(|(dim, _)| !added.contains(dim));
            Some((from, kept.map(|(_, index)| index.clone()).collect()))
        }
        _ => None,
    }
}

/// The place of a view's or a transpose's result where its operand has this one.
pub(super) fn forward(op: Op<'_>, place: &Place) -> Option<Place> {
    let result = static_shape(*results(op).first()?)?;
    if is_reshape(op) {
        return index::regrouped(place, &result);
    }
    let permutation = dims(op, "permutation").filter(|_| name(op) == ops::TRANSPOSE)?;
    let own = permutation.into_iter().map(|dim| place.get(dim).cloned());
    own.collect()
}
