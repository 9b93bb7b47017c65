//! The body of a map that forms a score, term by term.

use super::super::forms;
use super::super::lengths::{OfTile, with_length};
use super::{Block, Dims, Scores, compare, i32_of, integer, place, widened};
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::attention::index::Var;
use axe_passes::fuse::attention::is_e4m3;
use axe_passes::fuse::attention::term::{Id, Label, Scalar, Term};
use axe_passes::fuse::attention::visible::{Affine, not_negative};
use axe_passes::ir::Val;
use axe_passes::precision::is_bf16;
use melior::ir::Type;
use std::collections::HashMap;

/// The body of a map that forms a score.
pub(super) struct Body<'a, 'b, 'c> {
    scores: &'a Scores<'b, 'c>,
    lengths: OfTile<'c>,
    /// What of comparisons is the same for a whole block, and of indices.
    origins: HashMap<Id, Vec<Val<'c>>>,
    known: HashMap<Id, Val<'c>>,
}

impl<'a, 'b, 'c> Body<'a, 'b, 'c> {
    /// What forms a term of a block.
    pub(super) fn new(
        code: Code<'c>,
        scores: &'a Scores<'b, 'c>,
        id: Id,
        block: Block<'c>,
    ) -> PassResult<'c, Self> {
        let mut body = Self {
            scores,
            lengths: block.lengths,
            origins: HashMap::new(),
            known: HashMap::new(),
        };
        body.origins(code, id, block)?;
        Ok(body)
    }
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

    pub(super) fn term(
        &mut self,
        code: Code<'c>,
        id: Id,
        arguments: &[Val<'c>],
    ) -> PassResult<'c, Val<'c>> {
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
            return forms::float_of(code, &sum, self.origin(code, id)?, self.scores.dims);
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
                let Dims { row, key } = self.scores.dims;
                let place = place(code, if *var == Var::Key { key } else { row })?;
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
        let Dims { row: of_row, key } = self.scores.dims;
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
                    .value("arith.addi", &[times(of_row, sum.rows)?, *origin], i32, &[])?;
            let own = compare(code, 3, times(key, -sum.keys)?, row)?;
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
