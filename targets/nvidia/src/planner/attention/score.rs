//! Scores in the kernel: the term of a score as the body of a map, with masks by index.

use super::MOST_INPUTS;
use super::forms;
use super::lengths::{Lengths, OfTile, with_length};
use super::memory::{Strides, View};
use super::sizes::Sizes;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::term::{Id, Label, Scalar, Term};
use axe_passes::fuse::attention::visible::{Affine, not_negative};
use axe_passes::fuse::attention::{Attention, is_e4m3};
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{Val, types};
use axe_passes::precision::is_bf16;
use melior::ir::{Type, ValueLike};
use std::collections::HashMap;

/// A tensor that scores read.
pub(super) enum Input<'c> {
    /// Blocks of it, in registers.
    Blocks {
        view: View<'c>,
        kind: Kind,
        element: Type<'c>,
    },
    /// One value a problem.
    Values(Lengths<'c>),
}

/// The values of a tile's problem, by the number of their tensor.
pub(super) type OfProblem<'c> = [Option<Val<'c>>; MOST_INPUTS];

/// How scores are formed of products.
pub(super) struct Scores<'a, 'c> {
    pub attention: &'a Attention<'c>,
    /// A block of scores.
    pub registers: &'a Registers,
    pub inputs: Vec<Input<'c>>,
    pub sizes: &'a Sizes<'c>,
}

/// Where a block of scores is.
#[derive(Clone, Copy)]
pub(super) struct Block<'c> {
    pub batch: Val<'c>,
    pub row: Val<'c>,
    pub key: Val<'c>,
    pub lengths: OfTile<'c>,
    pub values: OfProblem<'c>,
}

/// Which keys of a block are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// None by their index.
    None,
    /// Those that the score hides.
    Masked,
    /// Those, and those behind the last key.
    Last,
}

impl<'c> Input<'c> {
    /// An input of scores, of a kernel's argument.
    pub(super) fn new(
        code: Code<'c>,
        strides: &Strides,
        argument: Val<'c>,
        sizes: &Sizes<'c>,
    ) -> PassResult<'c, Self> {
        if strides.has() == [false, false] {
            return Ok(Self::Values(strides.values(argument, sizes)));
        }
        let kind = match strides.has() {
            [true, false] => Kind::Row,
            [false, true] => Kind::Column,
            _ => Kind::Full,
        };
        Ok(Self::Blocks {
            view: strides.sized(code, argument, sizes)?,
            kind,
            element: axe_dialect::element_type(argument.r#type()),
        })
    }
}

impl<'c> Scores<'_, 'c> {
    /// Whether a row may see none of a block's keys.
    pub(super) fn hides(&self, hidden: Hidden) -> bool {
        *self.attention.terms.get(self.term_of(hidden)) != Term::Score
    }

    fn term_of(&self, hidden: Hidden) -> Id {
        match hidden {
            Hidden::None => self.attention.bare,
            Hidden::Masked | Hidden::Last => self.attention.weights.score,
        }
    }

    /// The values of a problem.
    pub(super) fn values(&self, code: Code<'c>, batch: Val<'c>) -> PassResult<'c, OfProblem<'c>> {
        let mut found = [None; MOST_INPUTS];
        for (slot, input) in found.iter_mut().zip(&self.inputs) {
            if let Input::Values(own) = input {
                *slot = Some(own.element(code, own.place(code, batch)?)?);
            }
        }
        Ok(found)
    }

    /// The tensors that the scores of a block read, in registers.
    pub(super) fn load(&self, code: Code<'c>, block: Block<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let mut found = Vec::new();
        for input in &self.inputs {
            let Input::Blocks {
                view,
                kind,
                element,
            } = input
            else {
                continue;
            };
            let own = view.boxed(
                code,
                block.batch,
                [block.row, block.key],
                self.registers.shape,
            )?;
            let value = code.load(own, self.registers.r#type(code, *kind, *element)?)?;
            let full = self.registers.r#type(code, Kind::Full, *element)?;
            found.push(match kind {
                Kind::Full | Kind::Blocks(_) => value,
                Kind::Row => code.broadcast(value, 1, full)?,
                Kind::Column => code.broadcast(value, 0, full)?,
            });
        }
        Ok(found)
    }

    /// The scores of a block.
    pub(super) fn of(
        &self,
        code: Code<'c>,
        products: Val<'c>,
        inputs: &[Val<'c>],
        block: Block<'c>,
        hidden: Hidden,
    ) -> PassResult<'c, Val<'c>> {
        let attention = self.attention;
        let id = self.term_of(hidden);
        if hidden != Hidden::Last && *attention.terms.get(id) == Term::Score {
            return Ok(products);
        }
        let mut body = Body {
            scores: self,
            lengths: block.lengths,
            origins: HashMap::new(),
            known: HashMap::new(),
        };
        body.origins(code, id, block)?;
        let keys = self.sizes.index(code, attention.extents.keys)?;
        let rest = i32_of(code, code.sub(keys, block.key)?)?;
        let all: Vec<_> = std::iter::once(products)
            .chain(inputs.iter().copied())
            .collect();
        code.map(&all, products.r#type(), |code, arguments| {
            let arguments = self.arguments(arguments, block.values);
            let value = body.term(code, id, &arguments)?;
            if hidden != Hidden::Last {
                return Ok(value);
            }
            let key = place(code, 1)?;
            let seen = compare(code, 2, key, rest)?;
            let none = code.scalar(value.r#type(), Number::Least)?;
            code.builder
                .value("arith.select", &[seen, value, none], value.r#type(), &[])
        })
    }
}

impl<'c> Scores<'_, 'c> {
    /// The score and what it reads, by the number of the tensor: elements of a block, and values of a problem.
    fn arguments(&self, elements: &[Val<'c>], values: OfProblem<'c>) -> Vec<Val<'c>> {
        let mut elements = elements.iter().copied();
        let mut all: Vec<_> = elements.next().into_iter().collect();
        for (input, value) in self.inputs.iter().zip(values) {
            all.extend(match input {
                Input::Blocks { .. } => elements.next(),
                Input::Values(_) => value,
            });
        }
        all
    }
}

/// The body of a map that forms a score.
struct Body<'a, 'b, 'c> {
    scores: &'a Scores<'b, 'c>,
    lengths: OfTile<'c>,
    /// What of comparisons is the same for a whole block, and of indices.
    origins: HashMap<Id, Vec<Val<'c>>>,
    known: HashMap<Id, Val<'c>>,
}

/// An index as i32.
pub(super) fn i32_of<'c>(code: Code<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    let i32 = integer(code, 32);
    code.builder.value("arith.index_cast", &[value], i32, &[])
}

/// A float in f32; an integer as it is.
pub(super) fn widened<'c>(code: Code<'c>, value: Val<'c>) -> PassResult<'c, Val<'c>> {
    let f32 = code.builder.r#type(|context| Type::float32(context));
    match types::bits(value.r#type()) {
        Some(16) if types::is_float(value.r#type()) => {
            code.builder.value("arith.extf", &[value], f32, &[])
        }
        _ => Ok(value),
    }
}

pub(super) fn integer<'c>(code: Code<'c>, bits: u32) -> Type<'c> {
    code.builder
        .r#type(|context| melior::ir::r#type::IntegerType::new(context, bits).into())
}

/// The row or the column of an element in its block, as i32.
pub(super) fn place<'c>(code: Code<'c>, dim: i64) -> PassResult<'c, Val<'c>> {
    let dim = [("dim", code.builder.parsed(&format!("{dim} : i64"))?)];
    i32_of(
        code,
        code.builder
            .value(ops::INDEX, &[], code.builder.index_type(), &dim)?,
    )
}

pub(super) fn compare<'c>(
    code: Code<'c>,
    predicate: i64,
    a: Val<'c>,
    b: Val<'c>,
) -> PassResult<'c, Val<'c>> {
    let predicate = [(
        "predicate",
        code.builder.parsed(&format!("{predicate} : i64"))?,
    )];
    code.builder
        .value("arith.cmpi", &[a, b], integer(code, 1), &predicate)
}

impl<'c> Body<'_, '_, 'c> {
    /// Computes what is the same for a block: of `rows * row + keys * key + constant`, all but the places in the block.
    fn origins(&mut self, code: Code<'c>, id: Id, block: Block<'c>) -> PassResult<'c> {
        if self.origins.contains_key(&id) {
            return Ok(());
        }
        let terms = &self.scores.attention.terms;
        let of = |Affine {
                      rows,
                      keys,
                      constant,
                      length,
                  }| {
            let row = code.times(block.row, rows)?;
            let key = code.times(block.key, keys)?;
            let sum = code.add(code.add(row, key)?, code.index(constant)?)?;
            i32_of(code, with_length(code, sum, length, &block.lengths)?)
        };
        if let Some(sums) = not_negative(terms, id) {
            let own = sums.into_iter().map(of).collect::<PassResult<_>>()?;
            self.origins.insert(id, own);
            return Ok(());
        }
        if let Some(sum) = forms::converted(terms, id, self.scores.attention.extents) {
            let own = forms::at_block(code, &sum, [block.row, block.key])?;
            self.origins.insert(id, vec![own]);
            return Ok(());
        }
        let own = match terms.get(id) {
            Term::Index(Var::Row) => vec![i32_of(code, block.row)?],
            Term::Index(_) => vec![i32_of(code, block.key)?],
            _ => Vec::new(),
        };
        self.origins.insert(id, own);
        for part in terms.parts(id) {
            self.origins(code, part, block)?;
        }
        Ok(())
    }

    fn term(&mut self, code: Code<'c>, id: Id, arguments: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        if let Some(value) = self.known.get(&id) {
            return Ok(*value);
        }
        let value = self.form(code, id, arguments)?;
        self.known.insert(id, value);
        Ok(value)
    }

    fn form(&mut self, code: Code<'c>, id: Id, arguments: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
        let terms = &self.scores.attention.terms;
        let builder = code.builder;
        let lost = || {
            layout_error(
                builder.location,
                "a score has a term that a kernel cannot form",
            )
        };
        if let Some(sums) = not_negative(terms, id) {
            return self.comparison(code, id, &sums);
        }
        if let Some(sum) = forms::converted(terms, id, self.scores.attention.extents) {
            return forms::float_of(code, &sum, self.origin(code, id)?);
        }
        if let Some(&[of]) = terms.operands(id, "math.tanh") {
            let (of, factor) = forms::scaled(terms, of);
            let x = self.term(code, of, arguments)?;
            let element = self.scores.attention.element;
            let is_coarse = is_bf16(element) || is_e4m3(element);
            return forms::tanh(code, x, factor, is_coarse);
        }
        let f32 = builder.r#type(|context| Type::float32(context));
        let own = match terms.scalar(id) {
            Scalar::Float => f32,
            Scalar::Int(bits) => integer(code, bits),
        };
        match terms.get(id) {
            Term::Score => arguments.first().copied().ok_or_else(lost),
            Term::Input(number) | Term::Value(number) | Term::Label(Label { number, .. }) => {
                let value = arguments.get(number + 1).copied().ok_or_else(lost)?;
                widened(code, value)
            }
            Term::Index(var) => {
                let origin = self.origin(code, id)?;
                let place = place(code, i64::from(*var == Var::Key))?;
                let sum = builder.value("arith.addi", &[origin, place], integer(code, 32), &[])?;
                builder.value("arith.extsi", &[sum], own, &[])
            }
            Term::Length(number) => {
                let own = self.lengths.get(*number).copied().flatten();
                own.map(|own| own.value).ok_or_else(lost)
            }
            Term::Float(bits) => builder.constant(builder.float(f32, f64::from_bits(*bits))),
            Term::Int(value) => builder.constant(builder.parsed(&format!("{value} : {own}"))?),
            Term::Apply(name, predicate, operands) => {
                let mut of = Vec::new();
                for operand in operands {
                    of.push(self.term(code, *operand, arguments)?);
                }
                let predicate = predicate
                    .map(|predicate| builder.parsed(&format!("{predicate} : i64")))
                    .transpose()?;
                let attributes: Vec<_> = predicate
                    .map(|predicate| ("predicate", predicate))
                    .into_iter()
                    .collect();
                builder.value(name, &of, own, &attributes)
            }
            Term::Gradient
            | Term::RowProduct
            | Term::RowValue(_)
            | Term::Product(_)
            | Term::Fold(..) => Err(lost()),
        }
    }

    /// What of a term is the same for a block.
    fn origin(&self, code: Code<'c>, id: Id) -> PassResult<'c, Val<'c>> {
        let own = self.origins.get(&id).and_then(|own| own.first());
        let lost = "a score has an index without an origin";
        own.copied()
            .ok_or_else(|| layout_error(code.builder.location, lost))
    }

    /// A comparison of row and key: each sum is not negative.
    fn comparison(&self, code: Code<'c>, id: Id, sums: &[Affine]) -> PassResult<'c, Val<'c>> {
        let lost = || layout_error(code.builder.location, "a comparison has no origin");
        let i32 = integer(code, 32);
        let mut all = None;
        for (sum, origin) in sums.iter().zip(self.origins.get(&id).ok_or_else(lost)?) {
            let times = |dim, factor: i64| {
                let factor = code
                    .builder
                    .constant(code.builder.parsed(&format!("{factor} : i32"))?)?;
                code.builder
                    .value("arith.muli", &[place(code, dim)?, factor], i32, &[])
            };
            // -keys * key <= rows * row + origin: the right side is one value a row.
            let row =
                code.builder
                    .value("arith.addi", &[times(0, sum.rows)?, *origin], i32, &[])?;
            let own = compare(code, 3, times(1, -sum.keys)?, row)?;
            all = Some(match all {
                None => own,
                Some(all) => {
                    code.builder
                        .value("arith.andi", &[all, own], integer(code, 1), &[])?
                }
            });
        }
        all.ok_or_else(lost)
    }
}
