//! Trainium target: the `trn` dialect (ir/), its verifier, and its translation to programs.
//!
//! What an instruction may be is [`axe_trn::rules`]'; the verifier reads operations as that crate's data ([`read`]) and asks
//! it. A kernel as a program ([`read::kernel`]) is what the simulator, the cost model and the NKI printer take.

mod abi;
mod instruction;
mod pipeline;
mod planner;
pub mod read;
mod scope;
mod target;
mod tiles;
mod toolchain;
mod vocabulary;
mod write;

/// How packages are made for the target.
pub const TOOLCHAIN: &dyn axe_toolchain::Toolchain = &toolchain::Trainium;

use melior::dialect::DialectHandle;

/// Registers the target: its axes and memory spaces, its planner and its pipeline.
pub fn register() {
    vocabulary::declare();
    axe_passes::target::register(&target::Trainium);
    axe_passes::pipeline::register(&pipeline::PIPELINE);
}

/// The handle of the trn dialect.
#[must_use]
pub fn handle() -> DialectHandle {
    // SAFETY: the function returns the handle of a dialect that is linked in.
    unsafe { DialectHandle::from_raw(abi::mlirGetDialectHandle__trn__()) }
}
