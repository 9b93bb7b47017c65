//! Reductions of register tensors: inside a thread, across lanes, across warps.

use super::Decline;
use crate::fragment::{Digit, Fragment, Source};
use crate::vocabulary::WARP;
use axe_layout::{Axis, Iter, Layout};
use axe_passes::dispatch::sequence::{self, text};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// How a register tensor is combined along dimensions. After the plan every thread that held a part of a
/// result holds the result: the reduced places of `lane` and `warp` become replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct ReducePlan {
    /// For each result register, the source registers that a thread combines first.
    pub in_thread: Vec<Vec<i64>>,
    /// Then, in order: masks of `shfl.sync.bfly`; each step combines with the lane that differs by the mask.
    pub lane_masks: Vec<i64>,
    /// Then, through shared memory: the digits of the thread's number (`divisor`, `extent`) whose values are
    /// combined; each divisor is a multiple of a warp.
    pub across_warps: Vec<(i64, i64)>,
    /// The layout of the result, on `thread` and `reg`.
    pub result: Layout,
    /// The shape of the result.
    pub shape: Vec<i64>,
}

/// As the plan stands in the IR: the registers that are combined, `each` of them for one result.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "ReducePlan")]
struct Written {
    #[serde(with = "sequence")]
    registers: Vec<i64>,
    each: usize,
    lane_masks: Vec<i64>,
    across_warps: Vec<(i64, i64)>,
    #[serde(with = "text")]
    result: Layout,
    shape: Vec<i64>,
}

impl From<ReducePlan> for Written {
    fn from(plan: ReducePlan) -> Self {
        Self {
            each: plan.in_thread.first().map_or(0, Vec::len),
            registers: plan.in_thread.concat(),
            lane_masks: plan.lane_masks,
            across_warps: plan.across_warps,
            result: plan.result,
            shape: plan.shape,
        }
    }
}

impl TryFrom<Written> for ReducePlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if written.each == 0 || !written.registers.len().is_multiple_of(written.each) {
            return Err(format!(
                "{} registers are no groups of {}",
                written.registers.len(),
                written.each
            ));
        }
        let masks = written.lane_masks.iter();
        let mut masks = masks.map(|mask| (1..WARP).contains(mask) && mask & (mask - 1) == 0);
        if written.lane_masks.len() > 5 || !masks.all(|is_lane| is_lane) {
            return Err("expected masks of one bit of a lane's number each".to_owned());
        }
        let mut digits = written.across_warps.iter();
        let warps = |(divisor, extent): &(i64, i64)| {
            divisor % WARP == 0 && (1..=1024).contains(divisor) && (1..=32).contains(extent)
        };
        let all = written.across_warps.iter().map(|(_, extent)| extent);
        if !digits.all(warps) || all.product::<i64>() > 32 {
            return Err("expected digits of a warp's number, as [divisor, extent]".to_owned());
        }
        Ok(Self {
            in_thread: written
                .registers
                .chunks(written.each)
                .map(<[i64]>::to_vec)
                .collect(),
            lane_masks: written.lane_masks,
            across_warps: written.across_warps,
            result: written.result,
            shape: written.shape,
        })
    }
}

impl ReducePlan {
    /// Checks a plan that someone wrote.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(&self, source: &Fragment, dims: &[usize]) -> Result<(), Decline> {
        if !source.is_full() {
            return Err(Decline::new(
                "expected an element in every register of every thread",
            ));
        }
        let kept = (0..).zip(source.shape());
        let kept = kept.filter(|(dim, _)| !dims.contains(dim));
        if !kept.map(|(_, extent)| extent).eq(&self.shape) {
            return Err(Decline::new(format!(
                "a result of {:?} is not what is left of {:?} without dimensions {dims:?}",
                self.shape,
                source.shape()
            )));
        }
        let result = Fragment::read(&self.result, &self.shape, source.threads())?;
        if i64::try_from(self.in_thread.len()) != Ok(result.registers()) {
            return Err(Decline::new(format!(
                "expected {} groups of registers, got {}",
                result.registers(),
                self.in_thread.len()
            )));
        }
        self.check(source, dims)
    }

    /// The plan that combines `source` along `dims` (ascending).
    ///
    /// # Errors
    /// Reduced lanes that no butterfly combines (an extent or stride that is no power of two, or a digit that
    /// straddles the warp); registers that hold nothing.
    pub fn new(source: &Fragment, dims: &[usize]) -> Result<Self, Decline> {
        if !source.is_full() {
            return Err(Decline::new(
                "expected an element in every register of every thread",
            ));
        }
        let (mut kept, mut reduced) = (Vec::new(), Vec::new());
        for (dim, digits) in source.dims().iter().enumerate() {
            if dims.contains(&dim) {
                reduced.extend(digits.iter().copied());
            } else {
                kept.push((dim, digits.clone()));
            }
        }
        let (lane_masks, across_warps) = exchange(&reduced)?;
        let numbering = renumber(kept.iter().flat_map(|(_, digits)| digits));
        let plan = Self {
            in_thread: in_thread(source.registers(), &numbering),
            lane_masks,
            across_warps,
            result: result_layout(&kept, &reduced, &numbering, source)?,
            shape: kept
                .iter()
                .filter_map(|&(dim, _)| source.shape().get(dim).copied())
                .collect(),
        };
        plan.check(source, dims)?;
        Ok(plan)
    }

    /// Checks by enumeration: in every thread, each result register combines every element of its result
    /// exactly once, and is where the result's layout says. Threads that combine the values of the same threads
    /// are enumerated once.
    ///
    /// # Errors
    /// The first result for which that is not so.
    pub fn check(&self, source: &Fragment, dims: &[usize]) -> Result<(), Decline> {
        let shape = without(source.shape(), dims);
        let result = Fragment::new(&self.result, &shape, source.threads())?;
        let reduced = dims.iter().filter_map(|&dim| source.shape().get(dim));
        let each: i64 = reduced.product();
        let mut checked: HashMap<Vec<i64>, i64> = HashMap::new();
        for thread in 0..source.threads() {
            let mut partners = self.partners(thread);
            partners.sort_unstable();
            if let Some(&like) = checked.get(&partners) {
                let same =
                    |register| result.index(thread, register) == result.index(like, register);
                if let Some(register) = (0..result.registers()).find(|&register| !same(register)) {
                    return Err(Decline::new(format!(
                        "register {register} of thread {thread} would hold what thread {like} holds"
                    )));
                }
                continue;
            }
            for (register, group) in (0..).zip(&self.in_thread) {
                let to = result.index(thread, register);
                combines(source, dims, (&partners, group), (to, each)).map_err(|what| {
                    Decline::new(format!(
                        "register {register} of thread {thread} would combine {what}"
                    ))
                })?;
            }
            checked.insert(partners, thread);
        }
        Ok(())
    }

    /// Parts of each result that meet in shared memory.
    #[must_use]
    pub fn slots(&self) -> i64 {
        self.across_warps.iter().map(|(_, extent)| extent).product()
    }

    /// The parts of the results as they are stored, one more dimension for [`Self::slots`] in front, so that neighbouring results
    /// are in other banks; and as they are loaded, all parts of a thread's results in it, those of a slot consecutive.
    ///
    /// # Errors
    /// Never for a plan that was checked.
    pub fn meeting(&self, source: &Fragment) -> Result<(Fragment, Fragment), Decline> {
        let failed = |error: axe_layout::Error| Decline::new(error.to_string());
        let (thread, register) = (
            Axis::new("thread").map_err(failed)?,
            Axis::new("reg").map_err(failed)?,
        );
        let slots = self.slots();
        let across: Vec<_> = self
            .across_warps
            .iter()
            .map(|&(divisor, extent)| Iter::new(extent, divisor, thread))
            .collect();
        let shape = [&[slots], &self.shape[..]].concat();
        // The lanes that a butterfly made equal, and the source's own copies.
        let butterfly = self
            .lane_masks
            .iter()
            .map(|&mask| Iter::new(2, mask, thread));
        let lanes: Vec<_> = butterfly.chain(source.replicas().iter().copied()).collect();
        let stored = Layout::from_shard(across.iter().chain(self.result.shard()).copied())
            .and_then(|layout| layout.with_replica(lanes))
            .map_err(failed)?;
        let results = i64::try_from(self.in_thread.len()).unwrap_or(1);
        let own = self.result.shard().iter().copied();
        let slots = Iter::new(slots, results, register);
        let loaded = Layout::from_shard([slots].into_iter().chain(own))
            .and_then(|layout| layout.with_replica(self.result.replica().iter().copied()))
            .map_err(failed)?;
        Ok((
            Fragment::new(&stored, &shape, source.threads())?,
            Fragment::new(&loaded, &shape, source.threads())?,
        ))
    }

    /// The threads whose values meet in a thread, itself among them.
    fn partners(&self, thread: i64) -> Vec<i64> {
        let mut partners = vec![thread];
        for mask in &self.lane_masks {
            let across: Vec<_> = partners.iter().map(|partner| partner ^ mask).collect();
            partners.extend(across);
        }
        for &(divisor, extent) in &self.across_warps {
            let base = |partner: i64| partner - partner / divisor % extent * divisor;
            let spread = |partner: &i64| {
                let base = base(*partner);
                (0..extent)
                    .map(move |k| base + k * divisor)
                    .collect::<Vec<_>>()
            };
            partners = partners.iter().flat_map(spread).collect();
        }
        partners
    }
}

/// An index or a shape without some of its dimensions.
fn without(index: &[i64], dims: &[usize]) -> Vec<i64> {
    let kept = index.iter().enumerate();
    let kept = kept.filter(|(dim, _)| !dims.contains(dim));
    kept.map(|(_, &at)| at).collect()
}

/// Checks that registers of threads hold the `each` elements of a result, each once.
///
/// # Errors
/// What they hold instead.
fn combines(
    source: &Fragment,
    dims: &[usize],
    (threads, registers): (&[i64], &[i64]),
    (to, each): (Option<Vec<i64>>, i64),
) -> Result<(), String> {
    let mut seen = Vec::new();
    for &thread in threads {
        for &register in registers {
            let index = source.index(thread, register).unwrap_or_default();
            if Some(without(&index, dims)) != to {
                return Err(format!("element {index:?}"));
            }
            seen.push(index);
        }
    }
    let combined = seen.len();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() != combined || i64::try_from(combined) != Ok(each) {
        return Err(format!("{combined} values of {each}"));
    }
    Ok(())
}

/// Butterfly masks, and digits across warps.
type Exchange = (Vec<i64>, Vec<(i64, i64)>);

/// The exchange between threads that the reduced digits need.
fn exchange(reduced: &[Digit]) -> Result<Exchange, Decline> {
    let (mut masks, mut warps) = (Vec::new(), Vec::new());
    for digit in reduced
        .iter()
        .filter(|digit| digit.source == Source::Thread)
    {
        let (mut stride, mut extent) = (digit.stride, digit.extent);
        while extent > 1 && stride < WARP {
            if stride & (stride - 1) != 0 || extent % 2 != 0 {
                return Err(Decline::new(format!(
                    "lanes {stride} apart, {extent} of them: a butterfly needs powers of two"
                )));
            }
            masks.push(stride);
            (stride, extent) = (stride * 2, extent / 2);
        }
        if extent > 1 {
            warps.push((stride, extent));
        }
    }
    masks.sort_unstable();
    Ok((masks, warps))
}

/// Dense register numbers for the kept register digits, in their order: the new stride of each old one.
fn renumber<'a>(kept: impl Iterator<Item = &'a Digit>) -> BTreeMap<i64, (i64, i64)> {
    let mut numbering: BTreeMap<i64, (i64, i64)> = kept
        .filter(|digit| digit.source == Source::Register)
        .map(|d| (d.stride, (d.extent, 0)))
        .collect();
    let mut next = 1;
    for (extent, stride) in numbering.values_mut() {
        *stride = next;
        next *= *extent;
    }
    numbering
}

/// The source registers of each result register.
fn in_thread(registers: i64, numbering: &BTreeMap<i64, (i64, i64)>) -> Vec<Vec<i64>> {
    let results: i64 = numbering.values().map(|(extent, _)| extent).product();
    let mut groups = vec![Vec::new(); usize::try_from(results).unwrap_or(0)];
    for register in 0..registers {
        let at: i64 = numbering
            .iter()
            .map(|(old, (extent, new))| register / old % extent * new)
            .sum();
        if let Some(group) = usize::try_from(at).ok().and_then(|at| groups.get_mut(at)) {
            group.push(register);
        }
    }
    groups
}

fn result_layout(
    kept: &[(usize, Vec<Digit>)],
    reduced: &[Digit],
    numbering: &BTreeMap<i64, (i64, i64)>,
    source: &Fragment,
) -> Result<Layout, Decline> {
    let failed = |error: axe_layout::Error| Decline::new(error.to_string());
    let (thread, register) = (
        Axis::new("thread").map_err(failed)?,
        Axis::new("reg").map_err(failed)?,
    );
    let mut shard = Vec::new();
    for digit in kept.iter().flat_map(|(_, digits)| digits) {
        shard.push(match digit.source {
            Source::Thread => Iter::new(digit.extent, digit.stride, thread),
            Source::Register => {
                let new = numbering.get(&digit.stride).map_or(0, |(_, new)| *new);
                Iter::new(digit.extent, new, register)
            }
        });
    }
    let threads = reduced
        .iter()
        .filter(|digit| digit.source == Source::Thread);
    let combined = threads.map(|digit| Iter::new(digit.extent, digit.stride, thread));
    let replica: Vec<_> = combined.chain(source.replicas().iter().copied()).collect();
    Layout::from_shard(shard)
        .and_then(|layout| layout.with_replica(replica))
        .map_err(failed)
}

impl fmt::Display for ReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (result, group) in self.in_thread.iter().enumerate() {
            let parts: Vec<_> = group
                .iter()
                .map(|register| format!("r[{register}]"))
                .collect();
            writeln!(f, "s[{result}] = combine({})", parts.join(", "))?;
        }
        for mask in &self.lane_masks {
            writeln!(f, "s = combine(s, shfl.bfly(s, {mask}))")?;
        }
        for (divisor, extent) in &self.across_warps {
            writeln!(
                f,
                "s = combine over k < {extent} of shared[t with digit t / {divisor} mod {extent} = k]"
            )?;
        }
        writeln!(f, "result {}", self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, shape: &[i64], dims: &[usize]) -> Result<ReducePlan, Decline> {
        ReducePlan::new(&Fragment::new(&text.parse().unwrap(), shape, 128)?, dims)
    }

    #[test]
    fn a_row_a_warp_is_reduced_by_its_lanes() {
        let plan = plan(
            "S[(4, 8, 32, 4) : (1@warp, 4@reg, 1@lane, 1@reg)]",
            &[4, 1024],
            &[1],
        )
        .unwrap();
        assert_eq!(plan.in_thread, [(0..32).collect::<Vec<_>>()]);
        assert_eq!(
            (plan.lane_masks, plan.across_warps),
            (vec![1, 2, 4, 8, 16], vec![])
        );
        assert_eq!(
            plan.result.canonicalize().to_string(),
            "S[4 : 32@thread] + R[32 : 1@thread]"
        );
    }

    #[test]
    fn a_row_over_all_warps_meets_in_shared_memory() {
        let plan = plan(
            "S[(2, 4, 32, 4) : (4@reg, 1@warp, 1@lane, 1@reg)]",
            &[2, 512],
            &[1],
        )
        .unwrap();
        super::super::written(&plan);
        assert_eq!(plan.in_thread, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(
            (plan.lane_masks.len(), plan.across_warps),
            (5, vec![(32, 4)])
        );
    }

    #[test]
    fn accumulators_reduce_along_either_dimension() {
        // The accumulators of m16n8: rows over 8 groups of lanes and 2 registers.
        let tile = "S[(4, 2, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 1@lane, 1@reg)]";
        let rows = plan(tile, &[64, 8], &[1]).unwrap();
        assert_eq!(
            (rows.in_thread, rows.lane_masks),
            (vec![vec![0, 1], vec![2, 3]], vec![1, 2])
        );
        let columns = plan(tile, &[64, 8], &[0]).unwrap();
        assert_eq!(
            (columns.in_thread, columns.lane_masks),
            (vec![vec![0, 2], vec![1, 3]], vec![4, 8, 16])
        );
        assert_eq!(columns.across_warps, [(32, 4)]);
    }

    #[test]
    fn replicas_stay() {
        let plan = plan(
            "S[(2, 32, 2) : (1@warp, 1@lane, 1@reg)] + R[2 : 2@warp]",
            &[2, 64],
            &[1],
        )
        .unwrap();
        assert_eq!(plan.result.size(), 2);
        assert_eq!(plan.lane_masks.len(), 5);
    }

    #[test]
    fn what_no_butterfly_combines_is_declined() {
        let odd = plan("S[(3, 8) : (8@lane, 1@lane)]", &[3, 8], &[0]);
        assert!(odd.is_err(), "{odd:?}");
        let partial = plan("S[32 : 1@lane]", &[32], &[0]).unwrap_err().to_string();
        assert!(
            partial.contains("every register of every thread"),
            "{partial}"
        );
    }
}
