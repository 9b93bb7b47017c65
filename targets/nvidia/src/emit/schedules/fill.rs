//! `axe.fill`.

use super::load::with_memory;
use super::scalar;
use super::store::store;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::plan::Decline;
use crate::plan::transfer::TransferPlan;
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// A register tensor of one value.
pub(super) struct Registers;
/// Storage of one value.
pub(super) struct Memory;

struct Repeat(usize);
struct Stores(Option<TransferPlan>, Vec<i64>);

impl<'c> Schedule<'c> for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let registers = site.result()?.registers();
        Ok(Box::new(Repeat(usize::try_from(registers).unwrap_or(0))))
    }
}

impl<'c> Schedule<'c> for Memory {
    fn name(&self) -> &'static str {
        "st"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        let memory = site.memory(1)?;
        let plan = with_memory(memory, |memory_| {
            TransferPlan::new(&memory.shape, site.emitter.threads, memory_, memory_)
        });
        Ok(Box::new(Stores(plan.ok(), memory.shape.clone())))
    }
}

fn value<'c>(emitter: &Emitter<'c>, op: Op<'c>) -> PassResult<'c, Val<'c>> {
    let value = emitter.source(op)?;
    emitter.scalar(value)
}

impl<'c> Plan<'c> for Repeat {
    fn describe(&self) -> String {
        format!("r[0..{}] = value\n", self.0)
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        Ok(vec![value(emitter, op)?; self.0])
    }
}

impl<'c> Plan<'c> for Stores {
    fn describe(&self) -> String {
        match &self.0 {
            Some(plan) => plan.to.to_string(),
            None => format!("for x in t, t + threads, ..: one element of {:?}\n", self.1),
        }
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let value = value(emitter, op)?;
        let memory = emitter.memory(operands(op).get(1).copied().unwrap_or(value))?;
        match &self.0 {
            None => scalar::each_element(emitter, &self.1, |emitter, index| {
                scalar::store_at(emitter, &memory, index, value, None)
            })?,
            Some(plan) => {
                let registers = usize::try_from(plan.fragment.registers()).unwrap_or(0);
                let owns = emitter.owns(&plan.owner)?;
                store(
                    emitter,
                    &plan.fragment,
                    &plan.to,
                    &memory,
                    &vec![value; registers],
                    owns,
                )?;
            }
        }
        Ok(Vec::new())
    }
}
