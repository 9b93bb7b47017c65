//! Inline PTX: the instructions for which NVVM (MLIR 22.1) has no operation, or one that takes longer. The figures are of one H200
//! (docs/performance.md, "NVVM's operations in place of inline PTX").
//!
//! | instruction | NVVM's operation | why not |
//! | --- | --- | --- |
//! | `wgmma.mma_async` with A in registers | none | `nvvm.wgmma.mma_async` takes A in shared memory alone |
//! | `wgmma.mma_async` that begins sums | `nvvm.wgmma.mma_async` | it takes sums even where they do not count. Products scaled by blocks, which begin anew at each block, take 1.3% longer (0.3% to 4.8% over 7 products); others take the same time |
//! | `wgmma.wait_group` | `nvvm.wgmma.wait.group.sync.aligned` | it takes no values: LLVM may move what reads the accumulators before it, which is wrong |
//! | `mbarrier.try_wait.parity` | `nvvm.mbarrier.try_wait.parity` | it asks for a time to sleep, and each wait becomes two polls and a `NANOSLEEP`. Products take the same time, attention 1.1% longer (0.998 to 1.022 over 8 kernels) |
//! | `mbarrier.arrive` by one lane, also of another CTA | `nvvm.mbarrier.arrive` | it takes no predicate; a branch around it ends what ptxas sees of products that are under way, and it completes each before the next (C7514). Where none are, it takes the same time, 0.999 over 33 products |
//! | `st.async` | none | |
//! | `bar.sync`, `bar.arrive` of the group whose turn it is | `nvvm.barrier`, `nvvm.barrier.arrive` | no predicate, as above; a number known at run time would reserve all barriers |

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
