//! `axe.fill`.

use super::scalar;
use super::store::store;
use super::text::Registers as Count;
use crate::emit::emitter::Emitter;
use crate::emit::schedule::Emit;
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use crate::state::form::Storage;
use crate::state::site::Site;
use crate::state::storage::with_memory;
use axe_passes::PassResult;
use axe_passes::dispatch::{Match, Schedule};
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A register tensor of one value.
#[derive(Clone, Copy)]
pub(super) struct Registers;
/// Storage of one value.
#[derive(Clone, Copy)]
pub(super) struct Memory;

/// How storage is filled: in vectors, or element by element.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(super) enum Stores {
    Vectors(Box<TransferPlan>),
    Elements(Vec<i64>),
}

impl fmt::Display for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vectors(plan) => plan.to.fmt(f),
            Self::Elements(shape) => {
                writeln!(f, "for x in t, t + threads, ..: one element of {shape:?}")
            }
        }
    }
}

impl Schedule for Registers {
    type Plan = Count;

    fn name(&self) -> &'static str {
        "registers"
    }
}

impl<'c> Match<Site<'_, 'c>> for Registers {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Count, Decline> {
        Count::of_result(site)
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Count) -> Result<(), Decline> {
        plan.expect(&self.plan(site)?)
    }
}

impl<'c> Emit<'c> for Registers {
    fn emit(
        &self,
        plan: &Count,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let count = usize::try_from(plan.registers).unwrap_or(0);
        Ok(vec![value(emitter, op)?; count])
    }
}

impl Schedule for Memory {
    type Plan = Stores;

    fn name(&self) -> &'static str {
        "st"
    }
}

fn in_vectors(storage: &Storage<'_>, threads: i64) -> Result<TransferPlan, Decline> {
    with_memory(storage, |memory| {
        TransferPlan::new(&storage.shape, threads, memory, memory)
    })
}

impl<'c> Match<Site<'_, 'c>> for Memory {
    fn plan(&self, site: Site<'_, 'c>) -> Result<Stores, Decline> {
        let storage = site.memory(1)?;
        Ok(match in_vectors(storage, site.threads()) {
            Ok(plan) => Stores::Vectors(Box::new(plan)),
            Err(_) => Stores::Elements(storage.shape.clone()),
        })
    }

    fn check(&self, site: Site<'_, 'c>, plan: &Stores) -> Result<(), Decline> {
        let storage = site.memory(1)?;
        match plan {
            Stores::Vectors(plan) => with_memory(storage, |memory| {
                plan.verify(&storage.shape, site.threads(), memory, memory)
            }),
            Stores::Elements(shape) if *shape == storage.shape => Ok(()),
            Stores::Elements(shape) => Err(Decline::new(format!(
                "expected elements of {:?}, got {shape:?}",
                storage.shape
            ))),
        }
    }
}

fn value<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let value = emitter.source(op)?;
    emitter.scalar(value)
}

impl<'c> Emit<'c> for Memory {
    fn emit(
        &self,
        plan: &Stores,
        emitter: &mut Emitter<'c>,
        op: Op<'c>,
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let value = value(emitter, op)?;
        let memory = emitter.memory(operands(op).get(1).copied().unwrap_or(value))?;
        match plan {
            Stores::Elements(shape) => {
                scalar::each_element(emitter, shape, |emitter, index| {
                    scalar::store_at(emitter, &memory, index, value, None)
                })?;
            }
            Stores::Vectors(plan) => {
                let registers = usize::try_from(plan.fragment.registers()).unwrap_or(0);
                let owns = emitter.owns(&plan.owner)?;
                let values = vec![value; registers];
                store(emitter, &plan.fragment, &plan.to, &memory, &values, owns)?;
            }
        }
        Ok(Vec::new())
    }
}
