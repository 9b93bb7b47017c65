//! Inline PTX: the instructions for which NVVM's operation (MLIR 22.1) is none, or gives other machine code.
//!
//! The figures are those of the ping-pong product of `examples/kernels/gemm_line.mlir` (sm_90a, ptxas 13.3): 560 instructions.
//!
//! | instruction | NVVM's operation | why not |
//! | --- | --- | --- |
//! | `wgmma.mma_async`, with its fence and commit | `nvvm.wgmma.mma_async` | none takes A from registers. With A in shared memory other code, of 552 instructions, in which the products follow each other alike; not yet timed. Each is a block of inline PTX of its own, which takes and gives all accumulators |
//! | `wgmma.wait_group` | `nvvm.wgmma.wait.group.sync.aligned` | it takes no values: LLVM may move what reads the accumulators before it, which is wrong |
//! | `mbarrier.try_wait.parity` | `nvvm.mbarrier.try_wait.parity` | it asks for a time to sleep, and each wait becomes two polls and a `NANOSLEEP`, 568 instructions: a detour for the thread that wakes |
//! | `mbarrier.arrive` by one lane, also of another CTA | `nvvm.mbarrier.arrive` | it takes no predicate. A branch around it gives other code, of 536 instructions here, and where products are under way around it ptxas completes each before the next (C7514) |

use super::emitter::Emitter;
use crate::state::types;
use axe_passes::PassResult;
use axe_passes::ir::Val;
use melior::ir::attribute::StringAttribute;
use melior::ir::{Type, ValueLike};

/// PTX with the constraints of its operands, as LLVM's inline assembly has them.
pub(crate) struct Assembly {
    /// The text; `$0` is the first result, and operands follow the results.
    pub text: String,
    /// The constraints: results, then operands.
    pub constraints: String,
}

impl<'c> Emitter<'c> {
    /// Emits inline PTX that may not be moved or dropped; gives its results.
    pub(crate) fn assembly(
        &self,
        assembly: &Assembly,
        operands: &[Val<'c>],
        results: &[Type<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let string = |text: &str| {
            self.builder
                .attribute(|context| StringAttribute::new(context, text).into())
        };
        let attributes = [
            ("asm_string", string(&assembly.text)),
            ("constraints", string(&assembly.constraints)),
            ("has_side_effects", self.builder.unit()),
        ];
        let name = "llvm.inline_asm";
        match results {
            [] => self
                .builder
                .operation(name, operands, &[], &attributes, Vec::new())
                .map(|_| Vec::new()),
            [one] => self
                .builder
                .value(name, operands, *one, &attributes)
                .map(|value| vec![value]),
            [first, ..] => {
                let structure = types::structure(self.builder, results.len(), *first);
                let made = self.builder.value(name, operands, structure, &attributes)?;
                (0..results.len())
                    .map(|at| self.field(made, at, *first))
                    .collect()
            }
        }
    }

    /// Ties values to a place in the program: what uses the results comes after `text`.
    pub(crate) fn after(&self, text: &str, values: &[Val<'c>]) -> PassResult<'c, Vec<Val<'c>>> {
        let types: Vec<_> = values.iter().map(Val::r#type).collect();
        let letter = |r#type: &Type<'c>| constraint(*r#type);
        let outputs = types.iter().map(|r#type| format!("={}", letter(r#type)));
        let tied = (0..values.len()).map(|at| at.to_string());
        let constraints: Vec<_> = outputs.chain(tied).collect();
        self.assembly(
            &Assembly {
                text: text.to_owned(),
                constraints: constraints.join(","),
            },
            values,
            &types,
        )
    }
}

/// The register class of a type (LLVM, "Supported Constraint Code List", NVPTX).
pub(crate) fn constraint(r#type: Type<'_>) -> &'static str {
    match (
        axe_passes::ir::types::is_float(r#type),
        axe_passes::ir::types::bits(r#type),
    ) {
        (true, Some(32)) => "f",
        (true, Some(64)) => "d",
        (_, Some(8 | 16)) => "h",
        (_, Some(64)) => "l",
        _ => "r",
    }
}
