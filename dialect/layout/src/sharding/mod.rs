//! Distributed tensors: meshes, the notations that frameworks use for shardings, the Axe layouts that
//! say the same, and the collectives between two of them.
//!
//! A [`Mesh`] has named axes; its devices are numbered on a layout axis (`gpu`), by one stride a mesh
//! axis. A [`Sharding`] gives every mesh axis (or a digit of one) a role: it splits a dimension, holds
//! copies, holds parts of a pending reduction, or has the data at one position. That is a D/R/O layout
//! with one marker beside it:
//!
//! | role | in the layout |
//! | --- | --- |
//! | splits a dimension | a D iter on the device axis, before the dimension's memory iter |
//! | copies | an R iter |
//! | pending reduction | an R iter, and a `Partial` marker: the copies are summands |
//! | one position | an entry of O |
//!
//! ```
//! use axe_layout::sharding::{Mesh, Sharding};
//! let mesh = Mesh::linear("gpu", &[("y", 2), ("x", 2)])?;
//! let rows = Sharding::from_alpa(mesh, vec![64, 128], "S0R")?;
//! assert_eq!(
//!     rows.to_layout()?.to_string(),
//!     "S[(2, 32, 128) : (2@gpu, 128, 1)] + R[2 : 1@gpu]"
//! );
//! assert_eq!(rows.to_dtensor()?, "[Shard(dim=0), Replicate()]");
//! assert_eq!(rows.to_sdy()?, "#sdy.sharding<@mesh, [{\"y\"}, {}]>");
//! # Ok::<(), axe_layout::sharding::ShardingError>(())
//! ```
//!
//! Every device gets an equal tile; dimensions that do not divide are declined with the size to pad to, and
//! [`Sharding::parse_padded`] pads them.

mod alpa;
mod any;
mod collective;
mod dtensor;
mod error;
mod hlo;
mod layout;
mod mesh;
mod moves;
mod partition_spec;
mod permute;
mod plan;
mod scan;
mod sdy;
mod shard_dialect;
mod spec;

#[cfg(test)]
mod simulate;
#[cfg(test)]
mod tests;

pub use collective::{Collective, Step};
pub use dtensor::{Placement, parse_placements};
pub use error::{Result, ShardingError};
pub use layout::Placed;
pub use mesh::{Mesh, MeshAxis};
pub use plan::{Plan, plan};
pub use sdy::SdyHints;
pub use spec::{AxisRef, Reduction, Sharding};
