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
//! let bound = dispatch::gemm(&mut b, &d, &lhs, &rhs, [true, false], Accumulate::Auto).unwrap();
//! assert_eq!(bound.to_string(), "lhs stationary: 8 nc_matmul 128x128x512 on tensor");
//! # Ok::<(), axe_layout::Error>(())
//! ```

mod access;
mod across;
mod choose;
mod dma;
mod elementwise;
mod engine;
mod gemm;
mod movement;
mod nest;
mod partition;
mod problem;
mod reason;
mod reduce;
mod residue;
mod staging;
mod tiles;
mod valid;

pub use reason::{Declined, Reason};

use crate::plan::graph::Graph;
use crate::program::{Accumulate, Alu, Builder, Expr};
use across::Transposer;
use axe_layout::Layout;
use choose::choose;
use reduce::{Along, Reduced};
use std::fmt;

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
    /// use, and touch nothing else; it is cut in boxes of digits, each of which is dispatched by itself.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The name of the schedule.
    pub schedule: &'static str,
    /// Its instructions, in the order of their first occurrence.
    pub counts: Vec<Count>,
    /// Schedules that come before it and do not take the operator, and those that take longer, with the reasons.
    pub declined: Vec<(&'static str, Reason)>,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.times, self.instruction)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.counts.iter().map(Count::to_string).collect();
        write!(f, "{}: {}", self.schedule, counts.join(", "))
    }
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
    let turn = |dims: [usize; 2], turned: bool| if turned { [dims[1], dims[0]] } else { dims };
    let given = [
        (d, vec![0, 1]),
        (lhs, turn([0, 2], transposed[0]).to_vec()),
        (rhs, turn([2, 1], transposed[1]).to_vec()),
    ];
    let schedule = |b: &mut Builder, lhs_is_stationary: bool| {
        valid::each(&given, 3, &mut |part, regions| {
            let [d, lhs, rhs] = regions else {
                return Ok(());
            };
            let accumulate = match part[2] {
                0 => accumulate,
                _ => gemm::later(accumulate),
            };
            gemm::products(b, [d, lhs, rhs], transposed, lhs_is_stationary, accumulate)
        })
    };
    choose(
        b,
        "gemm",
        &[
            ("lhs stationary", &|b| schedule(b, true)),
            ("rhs stationary", &|b| schedule(b, false)),
        ],
    )
}

/// `d = s`, of the same extents, from any memory to any; a conversion where the types differ.
///
/// # Errors
/// For each schedule, why the layouts do not allow it.
pub fn copy(b: &mut Builder, d: &Region, s: &Region) -> Result<Bound, Declined> {
    let rank = d.shape.len();
    let given = [(d, (0..rank).collect()), (s, (0..s.shape.len()).collect())];
    let every = |b: &mut Builder, one: Move<'_>| {
        valid::each(&given, rank, &mut |_, regions| match regions {
            [d, s] => one(b, d, s),
            _ => Ok(()),
        })
    };
    let by = |by: Transposer| {
        move |b: &mut Builder, d: &Region, s: &Region| across::by_transposes(b, d, s, by)
    };
    let (tensor, vector) = (by(Transposer::Tensor), by(Transposer::Vector));
    let staged = |then: &'static dyn Fn(&mut Builder, &Region, &Region) -> Result<(), Reason>| {
        move |b: &mut Builder, d: &Region, s: &Region| movement::from_psum(b, d, s, then)
    };
    let turned = staged(&|b, d, s| across::by_transposes(b, d, s, Transposer::Tensor));
    let repeated = staged(&|b, d, s| across::by_ones(b, d, s));
    choose(
        b,
        "copy",
        &[
            ("engine copy", &|b| every(b, &movement::by_engine)),
            ("dma", &|b| every(b, &dma::by_dma)),
            ("tensor engine transpose", &|b| every(b, &tensor)),
            ("vector engine transpose", &|b| every(b, &vector)),
            ("product with ones", &|b| every(b, &across::by_ones)),
            ("dma from sbuf", &|b| {
                every(b, &|b, d, s| movement::through_sbuf(b, d, s, 1))
            }),
            ("dma to sbuf", &|b| {
                every(b, &|b, d, s| movement::through_sbuf(b, d, s, 0))
            }),
            ("tensor engine transpose from sbuf", &|b| every(b, &turned)),
            ("product with ones from sbuf", &|b| every(b, &repeated)),
        ],
    )
}

/// `d = number`.
///
/// # Errors
/// For each schedule, why the layout does not allow it.
pub fn fill(b: &mut Builder, d: &Region, number: f64) -> Result<Bound, Declined> {
    let rank = d.shape.len();
    let given = [(d, (0..rank).collect())];
    let append = |b: &mut Builder| {
        valid::each(&given, rank, &mut |_, regions| match regions {
            [d] => elementwise::fill(b, d, number),
            _ => Ok(()),
        })
    };
    choose(b, "fill", &[("memset", &append)])
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
    let all: Vec<&Region> = outputs.iter().chain(sources).collect();
    let rank = all
        .iter()
        .map(|region| region.shape.len())
        .max()
        .unwrap_or(0);
    let given: Vec<_> = all
        .iter()
        .map(|region| (*region, (0..region.shape.len()).collect()))
        .collect();
    let every = |b: &mut Builder, staged: Staged| {
        valid::each(&given, rank, &mut |_, regions| {
            let (outputs, sources) = regions.split_at(outputs.len());
            let tiles = match staged {
                Staged::Outputs => staging::outputs(b, outputs, sources)?,
                _ => outputs.to_vec(),
            };
            let sources = match staged {
                Staged::Nothing => sources.to_vec(),
                _ => staging::sources(b, &tiles, sources)?,
            };
            elementwise::map(b, &tiles, graph, &sources)?;
            match staged {
                Staged::Outputs => outputs
                    .iter()
                    .zip(&tiles)
                    .try_for_each(|(d, tile)| copied(b, d, tile)),
                _ => Ok(()),
            }
        })
    };
    choose(
        b,
        "map",
        &[
            ("engines", &|b| every(b, Staged::Nothing)),
            ("engines, sources copied to the partitions of d", &|b| {
                every(b, Staged::Sources)
            }),
            ("engines, in tiles that are copied to d", &|b| {
                every(b, Staged::Outputs)
            }),
        ],
    )
}

/// What of a map is in tiles of its own.
#[derive(Clone, Copy)]
enum Staged {
    Nothing,
    Sources,
    Outputs,
}

/// [`copy`] as a part of a schedule.
fn copied(b: &mut Builder, d: &Region, s: &Region) -> Result<(), Reason> {
    match copy(b, d, s) {
        Ok(_) => Ok(()),
        Err(declined) => Err(Reason::Part(Box::new(declined))),
    }
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
    let rank = s.shape.len();
    let kept: Vec<usize> = (0..rank).filter(|dim| !dims.contains(dim)).collect();
    let own = if d.shape.len() == rank {
        (0..rank).collect()
    } else {
        kept
    };
    let given = [(d, own), (s, (0..rank).collect())];
    let every = |b: &mut Builder, one: &dyn Fn(&mut Builder, Reduced<'_>) -> Result<(), Reason>| {
        valid::each(&given, rank, &mut |part, regions| match regions {
            [_, _]
                if dims
                    .iter()
                    .any(|dim| part.get(*dim).is_some_and(|at| *at > 0)) =>
            {
                Err(Reason::Malformed(
                    "what is in use of a dimension that is reduced has no layout of one piece"
                        .into(),
                ))
            }
            [d, s] => one(b, Reduced { d, s, dims, op }),
            _ => Ok(()),
        })
    };
    choose(
        b,
        "reduce",
        &[
            ("vector engine", &|b| {
                every(b, &|b, r| r.along_elements(b, Along::Vector))
            }),
            ("scalar engine's registers", &|b| {
                every(b, &|b, r| r.along_elements(b, Along::Scalar))
            }),
            ("product with ones", &|b| {
                every(b, &|b, r| r.by_ones(b, &copied))
            }),
            ("gpsimd, then a copy", &|b| {
                every(b, &|b, r| r.through_row(b, &copied))
            }),
            ("gpsimd", &|b| every(b, &|b, r| r.on_gpsimd(b, &copied))),
            ("vector engine, then a copy", &|b| {
                every(b, &|b, r| r.through_tile(b, &copied))
            }),
        ],
    )
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
    let declined = |reason| Declined {
        operator: "transpose",
        reasons: vec![("permutation", reason)],
    };
    let layout = s
        .layout
        .permute_dims(&s.shape, permutation)
        .map_err(|error| {
            declined(Reason::Layout {
                operand: "s",
                message: error.to_string(),
            })
        })?;
    if s.extents().len() != s.shape.len() {
        let (all, used) = (&s.shape, s.extents());
        let message = format!("expected 1 to {all:?} indices in use, got {used:?}");
        return Err(declined(Reason::Malformed(message)));
    }
    let permuted = |extents: &[i64]| permutation.iter().map(|dim| extents[*dim]).collect();
    let turned = Region {
        shape: permuted(&s.shape),
        layout,
        valid: s.valid.as_deref().map(permuted),
        ..s.clone()
    };
    copy(b, d, &turned).map_err(|declined| Declined {
        operator: "transpose",
        ..declined
    })
}

/// A copy.
type Move<'a> = &'a dyn Fn(&mut Builder, &Region, &Region) -> Result<(), Reason>;
