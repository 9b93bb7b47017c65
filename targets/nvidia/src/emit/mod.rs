//! Kernels bound to hardware schedules (`--axe-dispatch-schedules`), and lowered as these say (`--axe-lower-schedules`).
//!
//! [`decide`] tries, for each operator, the [`schedules`] in order of priority, on what is known of the kernel when compiling,
//! and leaves the choice and its plan in the IR; or it reads what stands there and checks it. Then each `axe.kernel` is walked
//! and emitted anew as a `gpu.func`: a register tensor becomes the scalars that one thread holds, storage a pointer with the
//! layout of what it points to.

mod access;
mod approximate;
mod assembly;
mod bf16;
mod by_need;
mod cluster_end;
mod control;
mod decide;
mod emitter;
mod factors;
mod float8;
mod functions;
mod gathering;
mod hoist;
mod math;
mod memory;
mod module;
mod order;
mod outlined;
mod overlap;
mod pingpong;
mod pipeline;
mod progress;
mod scattering;
mod schedule;
mod schedules;
mod sines;
mod start;
mod store_pipeline;
mod tensor_map;
mod threads;
mod tiles;
mod value;
mod walk;
mod wanted;

pub(crate) use decide::{dispatch, verify};
pub(crate) use module::lower;
pub(crate) use overlap::{SHORT_BYTES, is_large_cluster};
pub(crate) use schedules::{SUBTILE_ROW_BYTES, top_k};
pub(crate) use tiles::MOST_GROUPED;
