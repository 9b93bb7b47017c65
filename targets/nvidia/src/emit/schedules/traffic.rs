//! What copies by one thread ask of global memory besides its elements: to be added to, and to be kept in L2.

use crate::emit::emitter::Emitter;
use crate::plan::Decline;
use crate::state::site::segment;
use crate::state::types::entry;
use axe_passes::PassResult;
use axe_passes::ir::{Int, Ints};
use axe_passes::ir::{Op, Val};
use melior::ir::Type;
use melior::ir::attribute::StringAttribute;
use melior::ir::operation::OperationLike;

/// How a copy treats global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Adds to the destination's elements.
    pub accumulate: bool,
    /// The encoded cache policy of L2, where the copy asks for one.
    pub policy: Option<i64>,
}

impl Traffic {
    /// What an `axe.copy` asks for.
    pub(super) fn of(op: Op<'_>) -> Self {
        let options = op.attribute("options").ok();
        let hint = options.and_then(|options| entry(options, "l2"));
        let hint = hint.and_then(|hint| StringAttribute::try_from(hint).ok());
        Self {
            accumulate: accumulates(op),
            policy: hint.and_then(|hint| policy(hint.value())),
        }
    }

    /// The policy as the instructions' operand.
    pub(super) fn operand<'c>(self, emitter: &Emitter<'c>) -> PassResult<'c, Option<Val<'c>>> {
        let wide = Ints::new(emitter.builder, 64);
        self.policy
            .map(|policy| wide.value(Int::Known(policy)))
            .transpose()
    }
}

/// Whether a copy adds to its destination.
pub(super) fn accumulates(op: Op<'_>) -> bool {
    op.attribute("accumulate").is_ok() && segment(op, 1) > 0
}

/// What `createpolicy.fractional` encodes for all of an access (PTX ISA 9.7.9.17): the constants of CUTLASS,
/// `TMA::CacheHintSm90`. There is no policy 0: it hangs the copy.
fn policy(hint: &str) -> Option<i64> {
    match hint {
        "evict_normal" => Some(0x1000_0000_0000_0000),
        "evict_first" => Some(0x12F0_0000_0000_0000),
        "evict_last" => Some(0x14F0_0000_0000_0000),
        _ => None,
    }
}

/// Declines element types that `cp.reduce.async.bulk.tensor` does not add (PTX ISA 9.7.9.27.3).
pub(super) fn adds_in_bulk(element: Type<'_>) -> Result<(), Decline> {
    match element.to_string().as_str() {
        "f16" | "bf16" | "f32" | "i32" => Ok(()),
        other => Err(Decline::new(format!(
            "sums of {other}: expected f16, bf16, f32 or i32"
        ))),
    }
}
