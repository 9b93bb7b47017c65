//! Linear layouts over F2: maps between bits, for shapes that are powers of two.
//!
//! A map is its **columns**: the image of each input bit as an integer; the image of an index is the
//! xor of the columns of its set bits. `[1, 2, 4]` is the identity on 8 indices, `[4, 2, 1]` reverses
//! their bits, and the swizzle `Sw<2,0,2>` on 16 addresses is `[1, 2, 5, 10]`: what CuTe's
//! `shape:stride` cannot say is an ordinary matrix here.
//!
//! ```
//! use axe_layout::linear::Columns;
//! let swizzle: Columns = vec![1, 2, 5, 10].try_into()?;
//! assert_eq!(swizzle.apply(0b1101), 0b1110);
//! assert_eq!(swizzle.compose(&swizzle)?, Columns::identity(4)); // its own inverse
//! # Ok::<(), axe_layout::Error>(())
//! ```
//!
//! Use [`Columns`] for one input and one output, [`LinearLayout`] where dimensions have names
//! (`reg`, `lane`, `warp` in; `i`, `j` out), as in Triton.
//!
//! # Moving a tile between two register distributions
//!
//! A [`Distribution`] says which tile element register `r` of lane `l` holds:
//! `reg(r) xor lane(l)`. [`warp_shuffle`] plans the way from one to another inside a warp with the
//! fewest shuffles; [`relayout_tables`] does the same for distributions that are no powers of two; and
//! [`shared_plan`] goes through shared memory, for layouts across warps, with a swizzle that makes both
//! sides free of bank conflicts, as does [`shared_tables`] for distributions that are no powers of two.
//! [`check_shuffle`], [`SharedPlan::check`] and [`SharedTablePlan::check`] execute the plans.
//!
//! ```
//! use axe_layout::linear::{Distribution, check_shuffle, warp_shuffle};
//! // Two registers in each of four lanes: element n = r + 2 l, to be n = 4 r + l.
//! let src = Distribution::new(vec![1], vec![2, 4])?;
//! let dst = Distribution::new(vec![4], vec![1, 2])?;
//! let plan = warp_shuffle(&src, &dst, 32)?;
//! assert_eq!(plan.shuffles(), 2);
//! check_shuffle(&src, &dst, &plan)?;
//! # Ok::<(), axe_layout::Error>(())
//! ```

mod axe;
mod basis;
mod columns;
mod named;
mod relayout;
mod shared;
mod shared_tables;
mod triton;
mod triton_layout;
mod triton_text;

#[cfg(test)]
mod tests;

pub use axe::{columns_of_layout, columns_of_swizzle, distribution_of_layout, layout_of_columns};
pub use columns::Columns;
pub use named::LinearLayout;
pub use relayout::{
    Distribution, Lanes, RelayoutPlan, Step, Table, check_shuffle, check_tables, execute,
    relayout_tables, table_of_layout, warp_shuffle,
};
pub use shared::{Access, Distribution3, SharedPlan, shared_plan};
pub use shared_tables::{SharedSide, SharedTablePlan, shared_tables};
pub use triton::TritonEncoding;
pub use triton_layout::{layout_of_linear, linear_of_layout};
