//! Loops that the threads of a grid share out: each point of the parallel loops is one thread's.

use super::Decline;
use crate::facts::chip::ACCESS_BYTES;
use crate::vocabulary::WARP;
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Points up to which 32 bits count them, and the turns of a thread beyond the last: a grid has fewer threads than that.
const MOST_OF_32_BITS: i64 = 1 << 30;

/// Operations that a body repeated for neighbours or turns has at most.
pub const MOST_OPERATIONS: i64 = 1024;
/// Neighbours at once where their body has loops, whose elements are on their way several at a time.
const MOST_IN_LOOPS: i64 = 4;

/// Bytes of a row that are a slice at the least: a warp's accesses of 16 bytes.
const LEAST_SLICE: i64 = 512;

/// How a nest of loops is executed. The number of a point counts the parallel loops with the last one fastest, so that
/// neighbouring lanes have neighbouring elements; a thread has every so many points as the grid has threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NestPlan {
    /// The parallel loops, outermost first.
    #[serde(with = "sequence")]
    pub parallel: Vec<i64>,
    /// The loops that each thread runs, outermost first.
    #[serde(with = "sequence")]
    pub reductions: Vec<i64>,
    /// Bits that count points: 32 where their number is known to be small, else 64.
    pub bits: i64,
    /// Neighbours along the last parallel loops that a thread has at once, so that its accesses of neighbours are one ([`shares`]).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub vector: i64,
    /// Slices that the last parallel loop is cut into, each of which all points of the others go through before the next: what they read of
    /// a table again stays in L2.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub slices: i64,
    /// Lanes next to each other that have the points of a row along the last parallel loop, and share out the turns of the body's loops over
    /// it; one where each thread runs these.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub lanes: i64,
}

const fn one() -> i64 {
    1
}

// Serde gives fields by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_one(vector: &i64) -> bool {
    *vector == 1
}

/// How many of so many neighbours there are along each of the parallel loops, of these extents, outermost first: as many along the last
/// ones as divide them, others along those before; none where all loops together do not have room for them.
#[must_use]
pub fn shares(vector: i64, extents: &[Option<i64>]) -> Option<Vec<i64>> {
    let mut shares = vec![1; extents.len()];
    let mut left = vector;
    for (share, extent) in shares.iter_mut().zip(extents).rev() {
        *share = extent.map_or(1, |extent| common(extent, left));
        left /= *share;
    }
    (left == 1).then_some(shares)
}

/// How many neighbours fill the widest access of a thread to a result of elements of so many bytes, where a body of so many operations that is
/// repeated for them is not too long, and there are so many.
#[must_use]
pub fn neighbours(
    [bytes, operations]: [i64; 2],
    has_loops: bool,
    are_there: impl Fn(i64) -> bool,
) -> i64 {
    let most = ACCESS_BYTES / bytes.max(1);
    let most = if has_loops {
        most.min(MOST_IN_LOOPS)
    } else {
        most
    };
    let fits = |number: &i64| {
        *number <= most
            && number.saturating_mul(operations) <= MOST_OPERATIONS
            && are_there(*number)
    };
    [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// How many neighbours a thread has at once, and how many lanes the points of a row along the last parallel loop, where a warp has whole rows of
/// points: for elements of so many bytes and a body of so many operations ([`neighbours`]), of parallel loops of these extents.
#[must_use]
pub fn of_rows(sizes: [i64; 2], extents: &[Option<i64>]) -> Option<[i64; 2]> {
    let row = extents.last().copied().flatten()?;
    let points = extents
        .iter()
        .try_fold(1i64, |all, extent| all.checked_mul((*extent)?))?;
    let lanes = |vector: i64| {
        let lanes = row / vector;
        let is_whole = row % vector == 0 && points % (vector * WARP) == 0;
        (is_whole && lanes > 1 && lanes <= WARP && lanes.count_ones() == 1).then_some(lanes)
    };
    let vector = neighbours(sizes, false, |number| lanes(number).is_some());
    let lanes = lanes(vector).filter(|_| vector > 1);
    lanes.map(|lanes| [vector, lanes])
}

/// Whether half a cache holds a table, so that it is read from memory once in whatever order.
#[must_use]
pub const fn is_cached(table: i64, cache: i64) -> bool {
    table <= cache / 2
}

/// Slices of so many bytes of a row, in accesses of `access` bytes, of which a table has at most a sixth of a cache each: of 64 MiB on an
/// H100 8 slices take 134 us, 4 take 147, and 16 save little more (129). One of a table that is cached.
#[must_use]
pub const fn slices([table, cache]: [i64; 2], row: i64, access: i64) -> i64 {
    let mut slices = 1;
    if is_cached(table, cache) {
        return 1;
    }
    while table / slices > cache / 6
        && row % (2 * slices * access) == 0
        && row / (2 * slices) >= LEAST_SLICE
    {
        slices *= 2;
    }
    slices
}

/// The greatest common divisor; 1 of an extent of 0.
const fn common(extent: i64, of: i64) -> i64 {
    let (mut a, mut b) = (of, extent);
    if extent <= 0 {
        return 1;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl NestPlan {
    /// The plan of loops of which `parallel` are shared out in that order; `extents` has each loop's, where known.
    #[must_use]
    pub fn new(parallel: &[usize], extents: &[Option<i64>]) -> Self {
        let number = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let points = parallel.iter().try_fold(1i64, |points, at| {
            points.checked_mul(extents.get(*at).copied().flatten()?)
        });
        let small = points.is_some_and(|points| points <= MOST_OF_32_BITS);
        let reductions = (0..extents.len()).filter(|at| !parallel.contains(at));
        Self {
            parallel: parallel.iter().map(|at| number(*at)).collect(),
            reductions: reductions.map(number).collect(),
            bits: if small { 32 } else { 64 },
            vector: 1,
            slices: 1,
            lanes: 1,
        }
    }

    /// The same with rows of so many lanes.
    #[must_use]
    pub fn in_rows_of(self, lanes: i64) -> Self {
        Self { lanes, ..self }
    }

    /// The same in so many slices.
    #[must_use]
    pub fn in_slices(self, slices: i64) -> Self {
        Self { slices, ..self }
    }

    /// The same with so many neighbours at once.
    #[must_use]
    pub fn by(self, vector: i64) -> Self {
        Self { vector, ..self }
    }

    /// Checks that the plan runs each loop once, as what it is, and counts the points.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self, is_reduction: &[bool], expected: &Self) -> Result<(), Decline> {
        let mut seen = vec![false; is_reduction.len()];
        let parallel = self.parallel.iter().map(|at| (*at, false));
        for (at, reduction) in parallel.chain(self.reductions.iter().map(|at| (*at, true))) {
            let place = usize::try_from(at).ok();
            let own = place.and_then(|at| is_reduction.get(at));
            match (own, place.and_then(|at| seen.get_mut(at))) {
                (Some(own), Some(seen)) if *own == reduction && !*seen => *seen = true,
                (Some(_), Some(true)) => {
                    return Err(Decline::new(format!("loop {at} is there twice")));
                }
                (Some(own), _) => {
                    let kind = if *own { "a reduction" } else { "parallel" };
                    return Err(Decline::new(format!("loop {at} is {kind}")));
                }
                (None, _) => return Err(Decline::new(format!("there is no loop {at}"))),
            }
        }
        if let Some(at) = seen.iter().position(|seen| !seen) {
            return Err(Decline::new(format!("loop {at} is missing")));
        }
        // Neighbours are along the last parallel loops: in another order other numbers divide their extents.
        let most = match self.parallel == expected.parallel {
            true => expected.vector,
            false => 1,
        };
        if ![1, most].contains(&self.vector) {
            return Err(Decline::new(format!(
                "{} neighbours at once, where {most} are one access",
                self.vector
            )));
        }
        let most = match self.parallel == expected.parallel && self.vector == expected.vector {
            true => expected.slices,
            false => 1,
        };
        if ![1, most].contains(&self.slices) {
            return Err(Decline::new(format!(
                "{} slices, where a table is reused in {most}",
                self.slices
            )));
        }
        let is_same = self.parallel == expected.parallel && self.vector == expected.vector;
        if self.lanes != 1 && !(is_same && self.slices == 1 && self.lanes == expected.lanes) {
            return Err(Decline::new(format!(
                "{} lanes, where a row's points are those of {}",
                self.lanes, expected.lanes
            )));
        }
        match self.bits == 64 || self.bits == expected.bits {
            true => Ok(()),
            false => Err(Decline::new(format!(
                "{} bits do not count the points",
                self.bits
            ))),
        }
    }
}

impl fmt::Display for NestPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |loops: &[i64]| {
            let names: Vec<_> = loops.iter().map(|at| format!("d{at}")).collect();
            names.join(", ")
        };
        write!(
            f,
            "for point of [{}] by the threads of the grid",
            names(&self.parallel)
        )?;
        if self.vector > 1 {
            write!(f, ", {} neighbours at once", self.vector)?;
        }
        if self.slices > 1 {
            write!(f, ", in {} slices", self.slices)?;
        }
        if self.lanes > 1 {
            write!(f, ", loops over rows by {} lanes", self.lanes)?;
        }
        writeln!(f)?;
        if !self.reductions.is_empty() {
            writeln!(f, "  for [{}]", names(&self.reductions))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> NestPlan {
        NestPlan::new(&[2, 0], &[Some(8), Some(4), None])
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        assert!(super::super::written(&plan()).contains("\"bits\":64"));
        assert_eq!(NestPlan::new(&[0], &[Some(8)]).bits, 32);
        assert_eq!(
            NestPlan::new(&[0, 1], &[Some(1 << 16), Some(1 << 15)]).bits,
            64
        );
        assert_eq!(NestPlan::new(&[], &[Some(7)]).reductions, [0]);
        assert!(!super::super::written(&plan()).contains("vector"));
        let vector = plan().by(4);
        assert!(super::super::written(&vector).contains("\"vector\":4"));
        assert!(vector.to_string().contains("4 neighbours at once"));
    }

    #[test]
    fn slices_leave_a_cache_to_what_passes_through() {
        let mib = 1 << 20;
        assert_eq!(slices([64 * mib, 50 * mib], 16_384, 16), 8);
        assert_eq!(slices([64 * mib, 50 * mib], 8192, 16), 8);
        assert_eq!(slices([20 * mib, 50 * mib], 16_384, 16), 1);
        assert_eq!(slices([640 * mib, 50 * mib], 4096, 16), 8);
        assert_eq!(slices([64 * mib, 50 * mib], 1000, 4), 1);
        assert!(plan().in_slices(4).to_string().contains("in 4 slices"));
    }

    #[test]
    fn warps_have_whole_rows() {
        let of = |bytes, extents: &[i64]| {
            let extents: Vec<_> = extents.iter().map(|extent| Some(*extent)).collect();
            of_rows([bytes, 40], &extents)
        };
        assert_eq!(of(2, &[2048, 128]), Some([8, 16]));
        assert_eq!(of(4, &[2048, 128]), Some([4, 32]));
        assert_eq!(of(2, &[2048, 512]), None);
        assert_eq!(of(2, &[2048, 96]), None);
        assert_eq!(of(2, &[3, 64]), Some([2, 32]));
        assert_eq!(of(2, &[3, 32]), None);
        assert_eq!(of(2, &[4, 64]), Some([8, 8]));
        assert_eq!(of_rows([2, 40], &[None, Some(64)]), None);
        assert_eq!(of_rows([2, 200], &[Some(64), Some(64)]), Some([4, 16]));
        let plan = plan().by(4).in_rows_of(16);
        assert!(plan.to_string().contains("loops over rows by 16 lanes"));
        assert!(plan.check(&[false, true, false], &plan).is_ok());
        let expected = self::plan().by(4);
        assert!(plan.check(&[false, true, false], &expected).is_err());
    }

    #[test]
    fn neighbours_fill_the_last_loops() {
        assert_eq!(shares(8, &[Some(3), Some(64)]), Some(vec![1, 8]));
        assert_eq!(shares(8, &[Some(12), Some(2)]), Some(vec![4, 2]));
        assert_eq!(shares(8, &[Some(2), Some(2), Some(2)]), Some(vec![2, 2, 2]));
        assert_eq!(shares(8, &[Some(2), Some(2)]), None);
        assert_eq!(shares(8, &[Some(64), Some(3)]), Some(vec![8, 1]));
        assert_eq!(
            shares(8, &[Some(64), Some(130), Some(130)]),
            Some(vec![2, 2, 2])
        );
        assert_eq!(shares(4, &[Some(6), Some(2)]), Some(vec![2, 2]));
        assert_eq!(shares(8, &[Some(6), Some(2)]), None);
        assert_eq!(shares(2, &[None, Some(1)]), None);
        assert_eq!(shares(4, &[None, Some(4)]), Some(vec![1, 4]));
        assert_eq!(shares(2, &[Some(0)]), None);
        assert_eq!(shares(1, &[None]), Some(vec![1]));
    }

    #[test]
    fn every_loop_is_run_once_as_what_it_is() {
        let kinds = [false, true, false];
        let expected = plan();
        let reason = |plan: NestPlan| plan.check(&kinds, &expected).unwrap_err().to_string();
        assert!(plan().check(&kinds, &expected).is_ok());
        assert!(plan().by(8).check(&kinds, &expected).is_err());
        assert!(plan().by(8).check(&kinds, &expected.clone().by(8)).is_ok());
        let mut turned = plan().by(8);
        turned.parallel.reverse();
        assert!(turned.check(&kinds, &expected.clone().by(8)).is_err());
        assert!(plan().check(&kinds, &expected.clone().by(8)).is_ok());
        let sliced = expected.clone().in_slices(4);
        assert!(plan().in_slices(2).check(&kinds, &sliced).is_err());
        assert!(plan().in_slices(4).check(&kinds, &sliced).is_ok());
        let with = |parallel: &[i64], reductions: &[i64]| NestPlan {
            parallel: parallel.to_vec(),
            reductions: reductions.to_vec(),
            bits: 64,
            vector: 1,
            slices: 1,
            lanes: 1,
        };
        assert!(reason(with(&[0, 2], &[])).contains("loop 1 is missing"));
        assert!(reason(with(&[0, 1, 2], &[])).contains("loop 1 is a reduction"));
        assert!(reason(with(&[0, 2, 0], &[1])).contains("loop 0 is there twice"));
        assert!(reason(with(&[0, 2], &[1, 3])).contains("no loop 3"));
        let narrow = NestPlan { bits: 32, ..plan() };
        assert!(reason(narrow).contains("32 bits do not count"));
    }
}
