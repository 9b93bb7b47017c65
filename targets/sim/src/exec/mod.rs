//! Execution: memory, warps, CTAs, clusters and their schedule.

pub(crate) mod access;
pub(crate) mod async_ops;
pub(crate) mod barrier;
pub(crate) mod cluster;
pub(crate) mod converge;
pub(crate) mod counters;
pub(crate) mod delayed;
pub(crate) mod global;
pub(crate) mod heap;
pub(crate) mod launch;
pub(crate) mod livelock;
pub(crate) mod shared;
pub(crate) mod step;
pub(crate) mod undefined;
pub(crate) mod warp;
pub(crate) mod warpwide;
pub(crate) mod wmma;
