//! Copies that add to their destination, element by element: `red` (PTX ISA 9.7.13.7), whatever the layouts.

use super::load::padding;
use super::scalar::{each_element, index, load_at, write_at};
use super::{store, transfer};
use crate::emit::int::Int;
use crate::emit::kernel::Emitter;
use crate::emit::schedule::{Plan, Schedule, Site};
use crate::emit::types;
use crate::emit::value::{Memory, Space};
use crate::fragment::Fragment;
use crate::plan::Decline;
use crate::plan::owner::Owner;
use axe_passes::PassResult;
use axe_passes::ir::types::is_float;
use axe_passes::ir::{Op, Val};
use melior::ir::attribute::IntegerAttribute;
use std::rc::Rc;

/// LLVM's numbers of `add`, `fadd` (`AtomicRMWInst::BinOp`) and `monotonic` (`AtomicOrdering`).
const ADD: i64 = 1;
const FADD: i64 = 11;
const MONOTONIC: i64 = 2;

/// Registers to memory.
pub(super) struct FromRegisters;
/// Memory to memory.
pub(super) struct FromMemory;

struct Registers(Rc<Fragment>, Owner);
struct Elements(Vec<i64>);

impl<'c> Schedule<'c> for FromRegisters {
    fn name(&self) -> &'static str {
        "red.scalar"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        adds(site.memory(1)?)?;
        let fragment = site.registers(0)?.fragment.clone();
        let owner = Owner::new(&fragment)?;
        Ok(Box::new(Registers(fragment, owner)))
    }
}

impl<'c> Schedule<'c> for FromMemory {
    fn name(&self) -> &'static str {
        "ld.red.scalar"
    }

    fn plan(&self, site: Site<'_, 'c>) -> Result<Box<dyn Plan<'c> + 'c>, Decline> {
        site.memory(0)?;
        let memory = site.memory(1)?;
        adds(memory)?;
        Ok(Box::new(Elements(memory.shape.clone())))
    }
}

/// Declines what no single instruction adds to.
fn adds(memory: &Memory<'_>) -> Result<(), Decline> {
    if memory.space == Space::ClusterShared {
        return Err(Decline::new(
            "expected global memory, or shared memory of the CTA itself",
        ));
    }
    match memory.element.to_string().as_str() {
        "f16" | "bf16" | "f32" | "f64" | "i32" | "i64" => Ok(()),
        other => Err(Decline::new(format!(
            "sums of {other}: expected f16, bf16, f32, f64, i32 or i64"
        ))),
    }
}

impl<'c> Plan<'c> for Registers {
    fn describe(&self) -> String {
        format!("{} sums of one element\n", self.0.registers())
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (source, memory) = store::sides(emitter, op)?;
        let owns = emitter.owns(&self.1)?;
        for (register, value) in (0..).zip(&source.values) {
            let at = index(emitter, &self.0, register)?;
            add_at(emitter, &memory, &at, *value, owns)?;
        }
        Ok(Vec::new())
    }
}

impl<'c> Plan<'c> for Elements {
    fn describe(&self) -> String {
        format!("for x in t, t + threads, ..: one sum of {:?}\n", self.0)
    }

    fn emit(&self, emitter: &mut Emitter<'c>, op: Op<'c>) -> PassResult<'c, Vec<Val<'c>>> {
        let (from, to) = transfer::sides(emitter, op)?;
        let pad = padding(emitter, op, from.element)?;
        each_element(emitter, &self.0, |emitter, index| {
            let value = load_at(emitter, &from, index, pad)?;
            add_at(emitter, &to, index, value, None)
        })?;
        Ok(Vec::new())
    }
}

/// Adds to one element where it exists and `condition` holds.
fn add_at<'c>(
    emitter: &mut Emitter<'c>,
    memory: &Memory<'c>,
    index: &[Int<'c>],
    value: Val<'c>,
    condition: Option<Val<'c>>,
) -> PassResult<'c> {
    write_at(emitter, memory, index, condition, |emitter, pointer| {
        let i64 = types::integer(emitter.builder, 64);
        let number = |value| IntegerAttribute::new(i64, value).into();
        let kind = if is_float(memory.element) { FADD } else { ADD };
        // Other CTAs add to the same element of global memory, and only this one's threads to shared memory.
        let scope = match memory.space {
            Space::Global => "\"device\"",
            Space::Shared | Space::ClusterShared => "\"block\"",
        };
        let attributes = [
            ("bin_op", number(kind)),
            ("ordering", number(MONOTONIC)),
            ("syncscope", emitter.builder.parsed(scope)?),
        ];
        let operands = [pointer, value];
        emitter
            .builder
            .value("llvm.atomicrmw", &operands, memory.element, &attributes)?;
        Ok(())
    })
}
