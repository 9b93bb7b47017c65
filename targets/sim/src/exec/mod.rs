//! Execution: memory, warps, CTAs, clusters and their schedule.

pub(crate) mod access;
pub(crate) mod async_ops;
pub(crate) mod barrier;
pub(crate) mod cluster;
pub(crate) mod counters;
pub(crate) mod global;
pub(crate) mod launch;
pub(crate) mod step;
pub(crate) mod warp;
pub(crate) mod warpwide;
pub(crate) mod wmma;
