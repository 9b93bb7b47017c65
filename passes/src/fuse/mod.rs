//! Fusion: which operators of a function become one kernel, and what they are on one tile of it.
//!
//! * [`operators`]: what a kernel can do with an operator;
//! * [`space`]: how tensors lie in the matrix that a kernel works on;
//! * [`group`], `groups`: which operators share a kernel; `beside`: maps of the same tensors that do; `reduced`: what is left to reductions;
//!   [`apart`]: why others do not;
//! * [`fusion`]: a group, read: what its kernel takes, forms and gives;
//! * [`attention`]: products of weights that are formed of products;
//! * [`symbolic`]: attention of extents that are known at run time only;
//! * [`fold`]: what is summed up over a streamed dimension, and how parts of it are merged;
//! * [`rounds`]: folds of rows that thread groups have parts of, and exchange states of;
//! * [`online`]: folds of rows that are read once, all of a round in one walk;
//! * [`kept`]: exponentials of rows in shared memory, each formed once;
//! * [`nest`]: what no operator says, as loops;
//! * [`registers`], [`arguments`], [`evaluate`], `places`: the operators of a group on one tile;
//! * [`pairs`]: what is formed of two columns of a product's result;
//! * [`parts`], [`part_moments`], [`part_exponentials`]: variances, and sums of exponentials below a maximum, of those of parts;
//! * [`peaks`]: exponentials that reach one in each row;
//! * [`rematerialize`]: maps of few elements between reductions of rows and broadcasts;
//! * [`row_parts`]: reductions of columns in parts of their rows that are not as long;
//! * [`siblings`]: reductions of the rows of one tensor;
//! * [`softplus`]: hyperbolic tangents of a softplus, as quotients;
//! * [`strided`]: reductions whose rows have other dimensions behind them;
//! * [`transposed`]: operators between a transpose and its inverse; [`sunk`]: transposes below what is computed of rows;
//! * [`wide_sums`]: variances in f64 of 16-bit floats, in f32;
//! * [`frame`], [`reshape`], [`function`]: the function around the kernels.
//!
//! Nothing here knows a target: a target's planner gives each group its kernel, in a closure of [`function::plan`].

pub mod apart;
pub mod arguments;
pub mod attention;
mod below;
mod beside;
mod element;
pub mod evaluate;
pub mod fold;
pub mod frame;
pub mod function;
pub mod fusion;
pub mod group;
mod groups;
pub mod kept;
mod moments;
pub mod nest;
pub mod online;
pub mod operators;
pub mod pairs;
pub mod part_exponentials;
pub mod part_moments;
pub mod parts;
pub mod peaks;
pub mod peel;
mod places;
mod reduced;
pub mod registers;
pub mod rematerialize;
pub mod reshape;
mod rewritten;
pub mod rounds;
pub mod row_parts;
pub mod siblings;
pub mod softplus;
pub mod space;
pub mod strided;
pub mod sunk;
pub mod symbolic;
pub mod transposed;
pub mod wide_sums;
