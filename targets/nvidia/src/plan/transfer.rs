//! Copies between two pieces of memory: how the scope's threads share the elements.

use super::Decline;
use super::copy::{CopyPlan, Memory};
use super::owner::Owner;
use crate::fragment::Fragment;
use axe_layout::{Axis, Iter, Layout};
use axe_passes::dispatch::sequence::text;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Each thread moves the same accesses from one memory to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct TransferPlan {
    /// The layout of the elements on `thread` and `reg`.
    pub layout: Layout,
    /// The elements of each thread.
    pub fragment: Fragment,
    /// Where they come from.
    pub from: CopyPlan,
    /// Where they go.
    pub to: CopyPlan,
    /// The threads that have any.
    pub owner: Owner,
}

/// As the plan stands in the IR.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "TransferPlan")]
struct Written {
    shape: Vec<i64>,
    threads: i64,
    #[serde(with = "text")]
    layout: Layout,
    from: CopyPlan,
    to: CopyPlan,
}

impl From<TransferPlan> for Written {
    fn from(plan: TransferPlan) -> Self {
        Self {
            shape: plan.fragment.shape().to_vec(),
            threads: plan.fragment.threads(),
            layout: plan.layout,
            from: plan.from,
            to: plan.to,
        }
    }
}

impl TryFrom<Written> for TransferPlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written {
            shape,
            threads,
            layout,
            from,
            to,
        } = written;
        let fragment = Fragment::read(&layout, &shape, threads);
        let fragment = fragment.map_err(|decline| decline.to_string())?;
        let owner = Owner::new(&fragment).map_err(|decline| decline.to_string())?;
        Ok(Self {
            layout,
            fragment,
            from,
            to,
            owner,
        })
    }
}

impl TransferPlan {
    /// Checks a plan that someone wrote, for a box of `shape` and `threads` threads.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(
        &self,
        shape: &[i64],
        threads: i64,
        from: Memory,
        to: Memory,
    ) -> Result<(), Decline> {
        let planned = (self.fragment.shape(), self.fragment.threads());
        if planned != (shape, threads) {
            return Err(Decline::new(format!(
                "expected a box of {shape:?} by {threads} threads, got {:?} by {}",
                planned.0, planned.1
            )));
        }
        if self.from.width != self.to.width {
            return Err(Decline::new("the two sides move other vectors"));
        }
        self.from.verify(&self.fragment, from)?;
        self.to.verify(&self.fragment, to)
    }

    /// The plan of `threads` threads for a box of `shape`: the widest accesses that both sides allow,
    /// neighbouring threads along the contiguous dimension.
    ///
    /// # Errors
    /// More elements than a thread has registers for, or a side whose addresses are no sums of digits.
    pub fn new(shape: &[i64], threads: i64, from: Memory, to: Memory) -> Result<Self, Decline> {
        let fastest = contiguous(shape, from)
            .or_else(|| contiguous(shape, to))
            .unwrap_or(shape.len().saturating_sub(1));
        let mut reason = Decline::new("the box has no elements");
        let most = (16 / from.element_bytes).max(1);
        let mut width = shape
            .get(fastest)
            .map_or(1, |&extent| (extent & extent.wrapping_neg()).clamp(1, most));
        while width >= 1 {
            match Self::with_width(shape, threads, fastest, width, from, to) {
                Ok(plan) => return Ok(plan),
                Err(decline) => reason = decline,
            }
            width /= 2;
        }
        Err(reason)
    }

    fn with_width(
        shape: &[i64],
        threads: i64,
        fastest: usize,
        width: i64,
        from: Memory,
        to: Memory,
    ) -> Result<Self, Decline> {
        let layout = share(shape, threads, fastest, width)?;
        let fragment = Fragment::new(&layout, shape, threads)?;
        let plan = |memory: Memory| {
            CopyPlan::new(
                &fragment,
                Memory {
                    widest: width,
                    ..memory
                },
            )
        };
        let (from, to) = (plan(from)?, plan(to)?);
        if from.width != width || to.width != width {
            return Err(Decline::new(format!(
                "{width} elements at a time do not fit both sides"
            )));
        }
        let owner = Owner::new(&fragment)?;
        Ok(Self {
            layout,
            fragment,
            from,
            to,
            owner,
        })
    }
}

/// The dimension along which memory is contiguous.
fn contiguous(shape: &[i64], memory: Memory) -> Option<usize> {
    let mut below = shape.iter().product::<i64>();
    let mut found = None;
    for (dim, &extent) in shape.iter().enumerate() {
        below /= extent.max(1);
        let step =
            memory.layout.origin(below).ok()?.get(Axis::M) - memory.layout.offset().get(Axis::M);
        if extent > 1 && step == 1 {
            found = Some(dim);
        }
    }
    found
}

/// Threads along the fastest dimension first, then along the others from the last; what is left of each
/// dimension is in registers.
fn share(shape: &[i64], threads: i64, fastest: usize, width: i64) -> Result<Layout, Decline> {
    let failed = |error: axe_layout::Error| Decline::new(error.to_string());
    let thread = Axis::new("thread").map_err(failed)?;
    let register = Axis::new("reg").map_err(failed)?;
    let mut order: Vec<_> = (0..shape.len())
        .rev()
        .filter(|&dim| dim != fastest)
        .collect();
    order.insert(0, fastest);
    let (mut free, mut thread_stride, mut register_stride) = (threads, 1, width);
    let mut blocks = vec![Vec::new(); shape.len()];
    for dim in order {
        let (Some(&extent), Some(block)) = (shape.get(dim), blocks.get_mut(dim)) else {
            continue;
        };
        let along = if dim == fastest {
            extent / width
        } else {
            extent
        };
        let shared = super::gcd(along, free);
        block.push(Iter::new(along / shared, register_stride, register));
        block.push(Iter::new(shared, thread_stride, thread));
        if dim == fastest {
            block.push(Iter::new(width, 1, register));
        }
        free /= shared;
        thread_stride *= shared;
        register_stride *= along / shared;
    }
    Layout::from_shard(blocks.into_iter().flatten()).map_err(failed)
}

impl fmt::Display for TransferPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |plan: &CopyPlan| {
            plan.terms
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" + ")
        };
        writeln!(f, "from {}", side(&self.from))?;
        writeln!(f, "to   {}", side(&self.to))?;
        for (from, to) in self.from.accesses.iter().zip(&self.to.accesses) {
            writeln!(
                f,
                "{} elements at from + {} -> to + {}",
                self.from.width, from.offset, to.offset
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[i64], from: &str, to: &str, alignment: i64) -> Result<TransferPlan, Decline> {
        let (from, to): (Layout, Layout) = (from.parse().unwrap(), to.parse().unwrap());
        let memory = |layout| Memory {
            layout,
            alignment,
            element_bytes: 2,
            ends: &[],
            widest: i64::MAX,
        };
        TransferPlan::new(shape, 128, memory(&from), memory(&to))
    }

    #[test]
    fn a_tile_moves_in_16_bytes_into_swizzled_memory() {
        let plan = plan(
            &[128, 64],
            "S[(128, 64) : (4096, 1)]",
            "Sw<3, 3, 3> o S[(128, 64) : (64, 1)]",
            8,
        )
        .unwrap();
        assert_eq!((plan.from.width, plan.from.accesses.len()), (8, 8));
        super::super::written(&plan);
        assert_eq!(plan.owner.end, 128);
    }

    #[test]
    fn alignment_and_odd_shapes_narrow_it() {
        assert_eq!(
            plan(
                &[16, 64],
                "S[(16, 64) : (4096, 1)]",
                "S[(16, 64) : (64, 1)]",
                2
            )
            .unwrap()
            .from
            .width,
            2
        );
        let odd = plan(&[3, 5], "S[(3, 5) : (7, 1)]", "S[(3, 5) : (5, 1)]", 8).unwrap();
        assert_eq!((odd.from.width, odd.fragment.registers()), (1, 15));
        let columns = plan(
            &[64, 16],
            "S[(64, 16) : (1, 64)]",
            "S[(64, 16) : (1, 64)]",
            8,
        )
        .unwrap();
        assert_eq!(columns.from.width, 8);
    }
}
