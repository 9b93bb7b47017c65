//! Sums in memory, one element an instruction: `red` (PTX ISA 9.7.13.7).

use crate::emit::emitter::Emitter;
use crate::emit::value::Memory;
use crate::plan::Decline;
use crate::state::form::{Space, Storage};
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use axe_passes::ir::types::is_float;
use melior::ir::attribute::IntegerAttribute;

/// LLVM's numbers of `add`, `fadd` (`AtomicRMWInst::BinOp`) and `monotonic` (`AtomicOrdering`).
const ADD: i64 = 1;
const FADD: i64 = 11;
const MONOTONIC: i64 = 2;

/// Declines what no single instruction adds to.
pub(super) fn admits(memory: &Storage<'_>) -> Result<(), Decline> {
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

/// Adds to the element at a pointer.
pub(super) fn add<'c>(
    emitter: &Emitter<'c>,
    memory: &Memory<'c>,
    pointer: Val<'c>,
    value: Val<'c>,
) -> PassResult<'c> {
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
}
