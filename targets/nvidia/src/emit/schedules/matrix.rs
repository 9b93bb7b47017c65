//! `ldmatrix` and `stmatrix` between shared memory and fragments of matrix instructions.

use super::store::sides;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::emit::value::{Memory, Registers};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::ldmatrix::MatrixPlan;
use crate::plan::owner::Owner;
use crate::state::form::{Space, Storage};
use crate::state::site::Site;
use crate::state::storage::with_memory;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Attribute, Type};

/// `ldmatrix` (sm_75 and up).
#[derive(Clone, Copy)]
pub(super) struct LoadMatrix;
/// `stmatrix` (sm_90 and up).
#[derive(Clone, Copy)]
pub(super) struct StoreMatrix;

/// Declines storage that is not shared, or whose offset is not in its base.
fn admits(storage: &Storage<'_>) -> Result<(), Decline> {
    if storage.space != Space::Shared {
        return Err(Decline::new("expected shared memory"));
    }
    if !storage.begins_period() && storage.swizzle.is_none() {
        return Err(Decline::new("expected storage whose offset is in its base"));
    }
    Ok(())
}

impl Schedule for LoadMatrix {
    type Plan = MatrixPlan;

    fn name(&self) -> &'static str {
        "ldmatrix"
    }
}

impl<'c> Match<Site<'_, 'c>> for LoadMatrix {
    fn plan(&self, site: Site<'_, 'c>) -> Result<MatrixPlan, Decline> {
        let (fragment, storage) = (site.result()?, site.memory(0)?);
        admits(storage)?;
        with_memory(storage, |memory| MatrixPlan::new(&fragment, memory))
    }

    fn check(&self, site: Site<'_, 'c>, plan: &MatrixPlan) -> Result<(), Decline> {
        let (fragment, storage) = (site.result()?, site.memory(0)?);
        admits(storage)?;
        with_memory(storage, |memory| plan.verify(&fragment, memory))
    }
}

/// What a store by matrices takes.
fn stored<'a, 'c>(site: Site<'a, 'c>) -> Result<(&'a Fragment, &'a Storage<'c>), Decline> {
    let fragment = &site.registers(0)?.fragment;
    let storage = site.memory(1)?;
    if !site.chip().has_stmatrix {
        return Err(Decline::new(format!(
            "{} has no stmatrix",
            site.chip().name
        )));
    }
    let owner = Owner::new(fragment)?;
    if !owner.zero_digits.is_empty() || owner.first != 0 || owner.end != fragment.threads() {
        return Err(Decline::new("some threads store nothing"));
    }
    admits(storage)?;
    Ok((fragment, storage))
}

impl Schedule for StoreMatrix {
    type Plan = MatrixPlan;

    fn name(&self) -> &'static str {
        "stmatrix"
    }
}

impl<'c> Match<Site<'_, 'c>> for StoreMatrix {
    fn plan(&self, site: Site<'_, 'c>) -> Result<MatrixPlan, Decline> {
        let (fragment, storage) = stored(site)?;
        with_memory(storage, |memory| MatrixPlan::new(fragment, memory))
    }

    fn check(&self, site: Site<'_, 'c>, plan: &MatrixPlan) -> Result<(), Decline> {
        let (fragment, storage) = stored(site)?;
        with_memory(storage, |memory| plan.verify(fragment, memory))
    }
}

/// `#nvvm` attributes of both instructions.
fn attributes<'c>(
    emitter: &Emitter<'c>,
    plan: &MatrixPlan,
) -> PassResult<'c, Vec<(&'static str, Attribute<'c>)>> {
    let builder = emitter.builder;
    let layout = if plan.transposed { "col" } else { "row" };
    Ok(vec![
        (
            "layout",
            builder.parsed(&format!("#nvvm.mma_layout<{layout}>"))?,
        ),
        (
            "shape",
            builder.parsed("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")?,
        ),
        (
            "eltType",
            builder.parsed("#nvvm.ld_st_matrix_elt_type<b16>")?,
        ),
    ])
}

fn pointers<'c>(
    emitter: &Emitter<'c>,
    plan: &MatrixPlan,
    memory: &Memory<'c>,
) -> PassResult<'c, Vec<Val<'c>>> {
    let row = emitter.thread_part(&plan.terms)?;
    emitter.pointers_at(memory, row, &plan.offsets, |thread| plan.row(thread))
}

/// The type of the elements of one 32-bit register.
fn word<'c>(plan: &MatrixPlan, element: Type<'c>) -> Type<'c> {
    match plan.packed {
        1 => element,
        packed => types::vector(packed, element),
    }
}

impl<'c> Emit<'c> for LoadMatrix {
    fn emit(
        &self,
        plan: &MatrixPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let source = emitter.source(op)?;
        let memory = emitter.memory(source)?;
        let builder = emitter.builder;
        let i32 = types::integer(builder, 32);
        let count = usize::try_from(plan.count).unwrap_or(1);
        let mut attributes = attributes(emitter, plan)?;
        attributes.push(("num", IntegerAttribute::new(i32, plan.count).into()));
        let result = if count == 1 {
            i32
        } else {
            types::structure(builder, count, i32)
        };
        let mut values = Vec::new();
        for pointer in pointers(emitter, plan, &memory)? {
            let loaded = builder.value("nvvm.ldmatrix", &[pointer], result, &attributes)?;
            for at in 0..count {
                let bits = if count == 1 {
                    loaded
                } else {
                    emitter.field(loaded, at, i32)?
                };
                let word = emitter.bitcast(bits, word(plan, memory.element))?;
                match plan.packed {
                    1 => values.push(word),
                    packed => values.extend(emitter.unpack(word, packed, memory.element)?),
                }
            }
        }
        Ok(values)
    }
}

impl<'c> Emit<'c> for StoreMatrix {
    fn emit(
        &self,
        plan: &MatrixPlan,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, memory) = sides(emitter, op)?;
        store_matrices(emitter, plan, &source, &memory)?;
        Ok(Vec::new())
    }
}

/// Stores a fragment as a plan says.
pub(super) fn store_matrices<'c>(
    emitter: &Emitter<'c>,
    plan: &MatrixPlan,
    source: &Registers<'c>,
    memory: &Memory<'c>,
) -> PassResult<'c> {
    let i32 = types::integer(emitter.builder, 32);
    let packed = usize::try_from(plan.packed).unwrap_or(1);
    let words = usize::try_from(plan.count).unwrap_or(1);
    let attributes = attributes(emitter, plan)?;
    let pointers = pointers(emitter, plan, memory)?;
    for (pointer, values) in pointers
        .into_iter()
        .zip(source.values.chunks(packed * words))
    {
        let mut operands = vec![pointer];
        for elements in values.chunks(packed) {
            let word = match elements {
                [one] => *one,
                several => emitter.pack(several, memory.element)?,
            };
            operands.push(emitter.bitcast(word, i32)?);
        }
        emitter
            .builder
            .operation("nvvm.stmatrix", &operands, &[], &attributes, Vec::new())?;
    }
    Ok(())
}
