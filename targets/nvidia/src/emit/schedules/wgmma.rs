//! The groups of asynchronous products (PTX ISA 9.7.15, "wgmma").

use super::groups::pending;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::plan::Decline;
use axe_passes::PassResult;
use axe_passes::ir::value::operands;
use axe_passes::ir::{Op, Val};

/// Waits until at most so many products are pending.
pub(super) struct Wait;

struct WaitGroup;

impl<'c> Schedule<'c> for Wait {
    fn name(&self) -> &'static str {
        "wgmma.wait_group"
    }

    fn plan(&self, _site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        Ok(Box::new(WaitGroup))
    }
}

impl<'c> Plan<'c> for WaitGroup {
    fn describe(&self) -> String {
        "one instruction\n".to_owned()
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let mut values = Vec::new();
        for operand in operands(op) {
            values.extend(emitter.registers(operand)?.values);
        }
        let text = format!("wgmma.wait_group.sync.aligned {};", pending(op));
        emitter.after(&text, &values)
    }
}
