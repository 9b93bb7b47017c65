//! Scores in the kernel: the term of a score as the body of a map, with masks by index.

mod body;

use super::MOST_INPUTS;
use super::lengths::{Lengths, OfTile};
use super::memory::{Strides, View};
use super::sizes::Sizes;
use axe_dialect::ops;
use axe_passes::PassResult;
use axe_passes::build::{Code, Number, layout_error};
use axe_passes::fuse::attention::term::{Id, Term};
use axe_passes::fuse::attention::{Attention, Extents};
use axe_passes::fuse::registers::Registers;
use axe_passes::fuse::space::Kind;
use axe_passes::ir::{Val, types};
use body::Body;
use melior::ir::{Type, ValueLike};

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

/// The dimension of a block of scores that has rows, and the one that has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dims {
    pub row: i64,
    pub key: i64,
}

/// Rows by keys.
pub(super) const BY_ROW: Dims = Dims { row: 0, key: 1 };
/// Keys by rows, as kernels of gradients form them.
pub(super) const BY_KEY: Dims = Dims { row: 1, key: 0 };

impl Dims {
    /// What rows and keys have, in the order of a block's dimensions.
    pub(super) fn ordered<T: Copy>(self, [row, key]: [T; 2]) -> [T; 2] {
        match self == BY_ROW {
            true => [row, key],
            false => [key, row],
        }
    }
}

/// How scores are formed of products.
pub(super) struct Scores<'a, 'c> {
    pub attention: &'a Attention<'c>,
    pub dims: Dims,
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

/// Which elements of a block are hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hidden {
    /// Those that the score hides by indices, lengths and labels.
    pub masked: bool,
    /// Those behind the last row.
    pub rows: bool,
    /// Those behind the last key.
    pub keys: bool,
}

impl Hidden {
    /// None by their index.
    pub(super) const NONE: Self = Self {
        masked: false,
        rows: false,
        keys: false,
    };
    /// Those that the score hides.
    pub(super) const MASKED: Self = Self {
        masked: true,
        ..Self::NONE
    };
    /// Those, and those behind the last key.
    pub(super) const LAST: Self = Self {
        keys: true,
        ..Self::MASKED
    };
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
        match hidden.masked {
            true => self.attention.weights.score,
            false => self.attention.bare,
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
                self.dims.ordered([block.row, block.key]),
                self.registers.shape,
            )?;
            let value = code.load(own, self.registers.r#type(code, *kind, *element)?)?;
            let full = self.registers.r#type(code, Kind::Full, *element)?;
            found.push(match kind {
                Kind::Full | Kind::Blocks(_) | Kind::Pairs(_) => value,
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
        let id = self.term_of(hidden);
        let ends = self.ends(code, block, hidden)?;
        if ends.is_empty() && *self.attention.terms.get(id) == Term::Score {
            return Ok(products);
        }
        let mut body = Body::new(code, self, id, block)?;
        let all = [&[products], inputs].concat();
        code.map(&all, products.r#type(), |code, arguments| {
            let arguments = self.arguments(arguments, block.values);
            let mut value = body.term(code, id, &arguments)?;
            for (dim, rest) in ends {
                let seen = compare(code, 2, place(code, dim)?, rest)?;
                let none = code.scalar(value.r#type(), Number::Least)?;
                value = code.choose(seen, [value, none])?;
            }
            Ok(value)
        })
    }

    /// Values of a block times a term of its scores, both in f32.
    pub(super) fn times(
        &self,
        code: Code<'c>,
        (values, id): (Val<'c>, Id),
        (products, inputs): (Val<'c>, &[Val<'c>]),
        block: Block<'c>,
    ) -> PassResult<'c, Val<'c>> {
        let mut body = Body::new(code, self, id, block)?;
        let all = [&[values, products], inputs].concat();
        code.map(&all, values.r#type(), |code, arguments| {
            let lost = || layout_error(code.builder.location, "a product has two factors");
            let (own, rest) = arguments.split_first().ok_or_else(lost)?;
            let by = body.term(code, id, &self.arguments(rest, block.values))?;
            code.builder
                .value("arith.mulf", &[*own, by], own.r#type(), &[])
        })
    }

    /// The dimensions of a block that have a last row or key in it, and how many of those it has.
    fn ends(
        &self,
        code: Code<'c>,
        block: Block<'c>,
        hidden: Hidden,
    ) -> PassResult<'c, Vec<(i64, Val<'c>)>> {
        let Extents { rows, keys, .. } = self.attention.extents;
        let all = [
            (hidden.rows, self.dims.row, rows, block.row),
            (hidden.keys, self.dims.key, keys, block.key),
        ];
        let mut found = Vec::new();
        for (is, dim, extent, first) in all {
            if is {
                let extent = self.sizes.index(code, extent)?;
                found.push((dim, i32_of(code, code.sub(extent, first)?)?));
            }
        }
        Ok(found)
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
