//! NVIDIA target: hardware tables, fragments and plans.
//!
//! * `facts`: what the hardware is, each number with its source;
//! * `fragment`: a register tensor as its threads see it;
//! * `plan`: what a schedule decided for one operator, as plain data that is printed and checked
//!   without any IR;
//! * `planner`: kernels from logical operators (`--axe-plan-kernels`);
//! * `state`: what is known of an `axe.kernel` without emitting it;
//! * `emit`: plans for the operators of an `axe.kernel` (`--axe-dispatch-schedules`), and a `gpu.func` out of them
//!   (`--axe-lower-schedules`).

mod emit;
mod facts;
mod fragment;
mod limits;
mod math;
mod pipeline;
mod plan;
mod planner;
mod state;
mod target;
mod toolchain;
mod vocabulary;

/// How packages are made for the target.
pub const TOOLCHAIN: &dyn axe_toolchain::Toolchain = &toolchain::Nvidia;

/// Registers the target: its axes, memory spaces, schedules.
pub fn register() {
    vocabulary::declare();
    axe_passes::target::register(&target::Nvidia);
    axe_passes::pipeline::register(&pipeline::PIPELINE);
}
