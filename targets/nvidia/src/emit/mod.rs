//! Kernels bound to hardware schedules: `--axe-dispatch-schedules`.
//!
//! Each `axe.kernel` is walked and emitted anew as a `gpu.func`: a register tensor becomes the scalars that
//! one thread holds, storage a pointer with the layout of what it points to. For each operator the
//! [`schedules`] are tried in order of priority.

mod access;
mod assembly;
mod boxes;
mod control;
mod float8;
mod int;
mod kernel;
mod lifetimes;
mod math;
mod memory;
mod module;
mod pingpong;
mod pipeline;
mod protocol;
mod schedule;
mod schedules;
mod staging;
mod team;
mod tensor_map;
mod tiles;
mod types;
mod value;

pub(crate) use module::{dispatch, verify};
pub(crate) use schedules::PANEL_BYTES;
pub(crate) use staging::STAGING_BYTES;
pub(crate) use tiles::MOST_GROUPED;
