//! Instructions for operators on tiles whose layouts are given (the paper, section 3.4 and appendix H).
//!
//! An operand is a [`Region`]: where each logical index lies, by a layout over partitions (`P`) and elements of a partition
//! (`F`), or over memory (`m`). An operator reads the layouts and becomes the largest instructions that they allow, in loops
//! over the rest, or is declined with a reason for each schedule that could have taken it. What is appended to the builder
//! breaks no rule of [`crate::rules`]; a declined operator appends nothing.
//!
//! ```
//! use axe_package::DType;
//! use axe_trn::dispatch::{self, Region};
//! use axe_trn::program::{Accumulate, Builder, Space};
//! let mut b = Builder::new("product", "trn1");
//! let lhs = b.tile("lhs", Space::Sbuf, &[128, 4 * 256], DType::BF16, 1);
//! let rhs = b.tile("rhs", Space::Sbuf, &[128, 4 * 512], DType::BF16, 1);
//! let d = b.tile("d", Space::Psum, &[128, 2 * 512], DType::F32, 1);
//! // K is 4 digits of F and 128 of P, the same in both operands; M is two banks of 128 partitions.
//! let lhs = Region::new(lhs.buffer(), &[512, 256], "S[(4, 128, 256) : (256@F, 1@P, 1@F)]".parse()?);
//! let rhs = Region::new(rhs.buffer(), &[512, 512], "S[(4, 128, 512) : (512@F, 1@P, 1@F)]".parse()?);
//! let d = Region::new(d.buffer(), &[256, 512], "S[(2, 128, 512) : (512@F, 1@P, 1@F)]".parse()?);
//! let bound = dispatch::gemm(&mut b, &d, &lhs, &rhs, [true, false], Accumulate::Auto);
//! # let _ = bound;
//! # Ok::<(), axe_layout::Error>(())
//! ```

mod reason;

pub use reason::{Declined, Reason};

use crate::plan::graph::Graph;
use crate::program::{Accumulate, Alu, Builder, Expr};
use axe_layout::Layout;

/// A tensor in a buffer: where each logical index lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The buffer, by its number in the program.
    pub buffer: usize,
    /// The logical shape.
    pub shape: Vec<i64>,
    /// From a logical index to the axes `P` (partitions) and `F` (elements of a partition) on chip, `m` (elements) in HBM.
    /// Elements are those of the buffer's type; those of PSUM count across banks. Replicas are read where it is best, and
    /// all of them are written.
    pub layout: Layout,
    /// What is added to `P`; indices of loops around are allowed.
    pub partition: Expr,
    /// What is added to `F` or `m`.
    pub free: Expr,
    /// How much of each dimension is in use, from its first index on: all of it when absent. Operators pair what is in
    /// use, and touch nothing else.
    pub valid: Option<Vec<i64>>,
}

impl Region {
    /// The region that begins where its buffer does.
    #[must_use]
    pub fn new(buffer: usize, shape: &[i64], layout: Layout) -> Self {
        Self {
            buffer,
            shape: shape.to_vec(),
            layout,
            partition: 0.into(),
            free: 0.into(),
            valid: None,
        }
    }

    /// The extents that are in use.
    #[must_use]
    pub fn extents(&self) -> &[i64] {
        self.valid.as_deref().unwrap_or(&self.shape)
    }
}

/// Instructions of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// How often they are executed, for one pass through the loops around the operator.
    pub times: i64,
    /// The operation, its sizes and its engine: `nc_matmul 128x128x512 on tensor`.
    pub instruction: String,
}

/// What an operator became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The name of the schedule.
    pub schedule: &'static str,
    /// Its instructions, in the order of their first occurrence.
    pub counts: Vec<Count>,
}

/// `d (+)= lhs rhs`: `lhs` is `[M, K]`, `rhs` is `[K, N]`, or the other way round where `transposed`; `d`, `[M, N]`, is in
/// PSUM.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn gemm(
    b: &mut Builder,
    d: &Region,
    lhs: &Region,
    rhs: &Region,
    transposed: [bool; 2],
    accumulate: Accumulate,
) -> Result<Bound, Declined> {
    let _ = (b, d, lhs, rhs, transposed, accumulate);
    Err(Declined::none("gemm"))
}

/// `d = s`, of the same extents, from any memory to any; a conversion where the types differ.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn copy(b: &mut Builder, d: &Region, s: &Region) -> Result<Bound, Declined> {
    let _ = (b, d, s);
    Err(Declined::none("copy"))
}

/// `d = number`.
///
/// # Errors
/// For each schedule, why the layout does not allow it.
pub fn fill(b: &mut Builder, d: &Region, number: f64) -> Result<Bound, Declined> {
    let _ = (b, d, number);
    Err(Declined::none("fill"))
}

/// The outputs of a graph, element by element: input `i` is `sources[i]`, output `i` is `outputs[i]`. The kinds and the
/// sizes that the graph states are not used: they are read off the layouts. A source of extent 1 in a dimension is repeated
/// along it. An output that is a reduction of the last dimension has extent 1 there.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn map(
    b: &mut Builder,
    outputs: &[Region],
    graph: &Graph,
    sources: &[Region],
) -> Result<Bound, Declined> {
    let _ = (b, outputs, graph, sources);
    Err(Declined::none("map"))
}

/// The reduction of `s` over some of its dimensions; `d` has the others, or extent 1 in those.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn reduce(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    dims: &[usize],
    op: Alu,
) -> Result<Bound, Declined> {
    let _ = (b, d, s, dims, op);
    Err(Declined::none("reduce"))
}

/// Dimension `i` of `d` is dimension `permutation[i]` of `s`. Nothing is moved across partitions unless the layouts demand
/// it.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn transpose(
    b: &mut Builder,
    d: &Region,
    s: &Region,
    permutation: &[usize],
) -> Result<Bound, Declined> {
    let _ = (b, d, s, permutation);
    Err(Declined::none("transpose"))
}
