//! Products with factors that are nearly always 1, such as what a new maximum leaves of an online softmax's results: warps that have
//! no other factor skip them (conditional rescaling, as FlashAttention-4 has it).

use super::elementwise::same;
use super::text::Registers;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::plan::Decline;
use crate::state::site::Site;
use crate::state::types;
use crate::vocabulary::RESCALE;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::{identity, name, operands};
use axe_passes::ir::walk::{block_arguments, blocks, operations};
use axe_passes::ir::{Int, Op, Val};
use melior::ir::ValueLike;
use std::collections::HashSet;

/// A map that multiplies its first input by its second one, where that is not 1 for all of a warp.
#[derive(Clone, Copy)]
pub(super) struct Rescale;

/// Whether a map's body is the product of its two arguments.
fn multiplies(map: Op<'_>) -> bool {
    let Some(body) = blocks(map).first().copied() else {
        return false;
    };
    let [product, _] = operations(body)[..] else {
        return false;
    };
    let arguments = block_arguments(body).into_iter().map(identity);
    name(product) == "arith.mulf" && operands(product).into_iter().map(identity).eq(arguments)
}

impl Schedule for Rescale {
    type Plan = Registers;

    fn name(&self) -> &'static str {
        RESCALE
    }
}

impl<'c> Match<Site<'_, 'c>> for Rescale {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Registers, Decline> {
        if site.operand_count() != 2 || !multiplies(site.op) {
            return Err(Decline::new(
                "the body is not the product of two inputs (arith.mulf)",
            ));
        }
        same(site, 2)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Registers) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Rescale {
    fn emit(
        &self,
        _plan: &Registers,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let &[results, factors] = operands(op).as_slice() else {
            return Err(emitter.error("expected results and factors"));
        };
        let results = emitter.registers(results)?.values;
        let factors = emitter.registers(factors)?.values;
        let changes = any_changes(emitter, &factors)?;
        emitter.when(changes, &results, |emitter| {
            let pairs = results.iter().zip(&factors);
            let product = |(a, b): (&Val<'c>, &Val<'c>)| {
                emitter
                    .builder
                    .value("arith.mulf", &[*a, *b], a.r#type(), &[])
            };
            pairs.map(product).collect()
        })
    }
}

/// Whether some lane of the warp has a factor other than 1 (PTX ISA 9.7.13.9, `vote.sync.any`).
fn any_changes<'c>(emitter: &Emitter<'c>, factors: &[Val<'c>]) -> PassResult<'c, Val<'c>> {
    let builder = emitter.builder;
    let i1 = types::integer(builder, 1);
    let unequal = [("predicate", builder.parsed("13 : i64")?)];
    let mut seen = HashSet::new();
    let mut changes = None;
    for factor in factors
        .iter()
        .filter(|factor| seen.insert(identity(**factor)))
    {
        let one = builder.constant(builder.float(factor.r#type(), 1.0))?;
        let own = builder.value("arith.cmpf", &[*factor, one], i1, &unequal)?;
        changes = Some(match changes {
            Some(before) => builder.value("arith.ori", &[before, own], i1, &[])?,
            None => own,
        });
    }
    let changes = changes.ok_or_else(|| emitter.error("expected a factor"))?;
    let all = emitter.ints().value(Int::Known(-1))?;
    let kind = builder.parsed("#nvvm<vote_sync_kind any>")?;
    builder.value("nvvm.vote.sync", &[all, changes], i1, &[("kind", kind)])
}
