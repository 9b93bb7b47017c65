//! Copies of contiguous runs between global and shared memory: `cp.async.bulk` (PTX ISA 9.7.9.25.5.2).

use super::Decline;
use axe_layout::address::AddressMap;
use axe_layout::{Axis, Layout};
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes that divide both addresses and the size of a copy.
const GRANULE: i64 = 16;
/// More runs than this are no loop to unroll.
const MAX_RUNS: usize = 256;

/// One instruction: elements that follow each other on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first element's place in global memory, in elements from the box's pointer.
    pub global: i64,
    /// Its place in shared memory.
    pub shared: i64,
    /// How many elements there are.
    pub elements: i64,
}

/// A piece of memory as the plan sees it.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its layout, on the axis `m` alone.
    pub layout: &'a Layout,
    /// Elements to which its address is known to be aligned.
    pub alignment: i64,
}

/// A copy between global and shared memory, run by run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct BulkPlan {
    /// The runs, by their place in shared memory.
    pub runs: Vec<Run>,
    /// Bytes of an element.
    pub bytes: i64,
}

/// As the plan stands in the IR: places and lengths of the runs, in elements.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "BulkPlan")]
struct Written {
    element_bytes: i64,
    #[serde(with = "sequence")]
    global: Vec<i64>,
    #[serde(with = "sequence")]
    shared: Vec<i64>,
    #[serde(with = "sequence")]
    elements: Vec<i64>,
}

impl From<BulkPlan> for Written {
    fn from(plan: BulkPlan) -> Self {
        Self {
            element_bytes: plan.bytes,
            global: plan.runs.iter().map(|run| run.global).collect(),
            shared: plan.runs.iter().map(|run| run.shared).collect(),
            elements: plan.runs.iter().map(|run| run.elements).collect(),
        }
    }
}

impl TryFrom<Written> for BulkPlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let count = written.elements.len();
        if written.global.len() != count || written.shared.len() != count || count > MAX_RUNS {
            return Err(format!(
                "expected as many places as runs, and at most {MAX_RUNS} of them"
            ));
        }
        let places = written.global.into_iter().zip(written.shared);
        Ok(Self {
            runs: places
                .zip(written.elements)
                .map(|((global, shared), elements)| Run {
                    global,
                    shared,
                    elements,
                })
                .collect(),
            bytes: written.element_bytes,
        })
    }
}

impl BulkPlan {
    /// The plan for elements of `bytes` bytes.
    ///
    /// # Errors
    /// The rule of the instruction that the layouts do not meet, or too many runs.
    pub fn new(global: Side, shared: Side, bytes: i64) -> Result<Self, Decline> {
        let pairs = pairs(global.layout, shared.layout)?;
        let mut runs: Vec<Run> = Vec::new();
        for (shared, global) in pairs {
            match runs.last_mut() {
                Some(run)
                    if run.shared + run.elements == shared
                        && run.global + run.elements == global =>
                {
                    run.elements += 1;
                }
                _ => runs.push(Run {
                    global,
                    shared,
                    elements: 1,
                }),
            }
        }
        if runs.len() > MAX_RUNS {
            return Err(Decline::new(format!(
                "{} runs of elements that follow each other on both sides: expected at most {MAX_RUNS}",
                runs.len()
            )));
        }
        let plan = Self { runs, bytes };
        plan.check(global, shared)?;
        Ok(plan)
    }

    /// Checks by enumeration that the runs move each element of the box, and nothing else, between its two
    /// places, and that every run meets the rules of the instruction.
    ///
    /// # Errors
    /// The first element or run for which that is not so.
    pub fn check(&self, global: Side, shared: Side) -> Result<(), Decline> {
        for run in &self.runs {
            for (name, at, alignment) in [
                ("global", run.global, global.alignment),
                ("shared", run.shared, shared.alignment),
            ] {
                let aligned = super::gcd(at, alignment) * self.bytes;
                if aligned % GRANULE != 0 {
                    return Err(Decline::new(format!(
                        "a run at a multiple of {aligned} bytes of {name} memory: expected one of {GRANULE}"
                    )));
                }
            }
            if run.elements <= 0 || run.elements * self.bytes % GRANULE != 0 {
                return Err(Decline::new(format!(
                    "a run of {} bytes: expected a multiple of {GRANULE}",
                    run.elements * self.bytes
                )));
            }
        }
        let mut expected = pairs(global.layout, shared.layout)?.into_iter();
        let mut runs: Vec<_> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.shared);
        for run in runs {
            for at in 0..run.elements {
                let moved = (run.shared + at, run.global + at);
                let wanted = expected.next();
                if wanted != Some(moved) {
                    return Err(Decline::new(format!(
                        "global element {} would go to {}, and the next element of the box is {wanted:?} (shared, global)",
                        moved.1, moved.0
                    )));
                }
            }
        }
        match expected.next() {
            None => Ok(()),
            Some((shared, global)) => Err(Decline::new(format!(
                "element {global} of global memory, at {shared} of shared, is in no run"
            ))),
        }
    }
}

/// The places of all elements in shared and in global memory, in the order of shared memory.
fn pairs(global: &Layout, shared: &Layout) -> Result<Vec<(i64, i64)>, Decline> {
    let (from, to) = (addresses(global)?, addresses(shared)?);
    if from.len() != to.len() {
        return Err(Decline::new(format!(
            "{} elements on one side and {} on the other",
            from.len(),
            to.len()
        )));
    }
    let mut pairs: Vec<_> = to.into_iter().zip(from).collect();
    pairs.sort_unstable();
    if pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Decline::new(
            "two elements are at one place of shared memory",
        ));
    }
    Ok(pairs)
}

fn addresses(layout: &Layout) -> Result<Vec<i64>, Decline> {
    let size = usize::try_from(layout.size()).unwrap_or(0);
    let mut all = vec![0; size];
    AddressMap::new(layout, Axis::M)
        .and_then(|map| map.fill(0, &mut all))
        .map_err(|error| Decline::new(error.to_string()))?;
    Ok(all)
}

impl fmt::Display for BulkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            writeln!(
                f,
                "{} bytes at global + {} <-> shared + {}",
                run.elements * self.bytes,
                run.global,
                run.shared
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(global: &str, shared: &str, alignment: i64) -> Result<BulkPlan, Decline> {
        let (global, shared): (Layout, Layout) = (global.parse().unwrap(), shared.parse().unwrap());
        let side = |layout, alignment| Side { layout, alignment };
        BulkPlan::new(side(&global, alignment), side(&shared, 512), 2)
    }

    #[test]
    fn a_vector_is_one_run() {
        let plan = plan("S[256 : 1]", "S[256 : 1]", 8).unwrap();
        let run = Run {
            global: 0,
            shared: 0,
            elements: 256,
        };
        assert_eq!(plan.runs, [run]);
        super::super::written(&plan);
        assert_eq!(plan.to_string(), "512 bytes at global + 0 <-> shared + 0\n");
    }

    #[test]
    fn rows_are_runs_and_dense_ones_join() {
        let rows = plan("S[(4, 64) : (100, 1)] + 8", "S[(4, 64) : (64, 1)]", 8);
        assert!(
            rows.unwrap_err()
                .to_string()
                .contains("multiple of 8 bytes")
        );
        let rows = plan("S[(4, 64) : (104, 1)]", "S[(4, 64) : (64, 1)]", 8).unwrap();
        assert_eq!(rows.runs.len(), 4);
        assert_eq!((rows.runs[3].global, rows.runs[3].shared), (312, 192));
        let dense = plan("S[(4, 64) : (64, 1)]", "S[(4, 64) : (64, 1)]", 8).unwrap();
        assert_eq!(dense.runs.len(), 1);
        // Columns first on both sides is one run too.
        let turned = plan("S[(4, 64) : (1, 4)]", "S[(4, 64) : (1, 4)]", 8).unwrap();
        assert_eq!(turned.runs.len(), 1);
        // A swizzle of 16-byte chunks leaves runs of 16 bytes where it moves them, and longer ones where not.
        let swizzled = plan(
            "S[(8, 64) : (64, 1)]",
            "Sw<3,3,3> o S[(8, 64) : (64, 1)]",
            8,
        );
        assert_eq!(swizzled.unwrap().runs[0].elements, 64);
    }

    #[test]
    fn declines_say_which_rule() {
        let reason = |result: Result<BulkPlan, Decline>| result.unwrap_err().to_string();
        let strided = plan("S[512 : 2]", "S[512 : 1]", 8);
        assert!(reason(strided).contains("512 runs"));
        let short = plan("S[12 : 1]", "S[12 : 1]", 8);
        assert!(reason(short).contains("a run of 24 bytes"));
        let loose = plan("S[16 : 1]", "S[16 : 1]", 1);
        assert!(reason(loose).contains("multiple of 2 bytes of global"));
        let folded = plan("S[(2, 16) : (16, 1)]", "S[(2, 16) : (0, 1)]", 8);
        assert!(reason(folded).contains("two elements"));
    }

    #[test]
    fn broken_plans_are_caught() {
        let (global, shared): (Layout, Layout) = (
            "S[(4, 64) : (104, 1)]".parse().unwrap(),
            "S[(4, 64) : (64, 1)]".parse().unwrap(),
        );
        let (from, to) = (
            Side {
                layout: &global,
                alignment: 8,
            },
            Side {
                layout: &shared,
                alignment: 512,
            },
        );
        let right = BulkPlan::new(from, to, 2).unwrap();
        assert_eq!(right.check(from, to), Ok(()));
        let broken = |change: &dyn Fn(&mut Vec<Run>)| {
            let mut plan = right.clone();
            change(&mut plan.runs);
            plan.check(from, to).unwrap_err().to_string()
        };
        assert!(broken(&|runs| runs[1].global += 8).contains("would go to"));
        assert!(broken(&|runs| runs[1].shared += 8).contains("would go to"));
        assert!(broken(&|runs| runs[1].global += 1).contains("multiple of 2 bytes"));
        assert!(broken(&|runs| runs[3].elements -= 8).contains("in no run"));
        assert!(broken(&|runs| runs[3].elements += 8).contains("None"));
        assert!(broken(&|runs| runs[2].elements = 0).contains("a run of 0 bytes"));
        assert!(
            broken(&|runs| {
                runs.pop();
            })
            .contains("in no run")
        );
    }

    proptest! {
        /// What the runs move is the box: compared here with the layouts' own addresses, not the plan's pairs.
        #[test]
        fn runs_move_every_element(
            order in proptest::bool::ANY,
            rows in 1..6_i64,
            columns in 1..10_i64,
            pad in 0..3_i64,
            swizzled in proptest::bool::ANY,
        ) {
            let (rows, columns) = (rows, 8 * columns);
            let stride = columns + 8 * pad;
            let text = if order { format!("S[({rows}, {columns}) : ({stride}, 1)]") }
                else { format!("S[({rows}, {columns}) : ({stride}, 1)] + 16") };
            let global: Layout = text.parse().unwrap();
            let swizzle = if swizzled { "Sw<2,3,3> o " } else { "" };
            let shared: Layout = format!("{swizzle}S[({rows}, {columns}) : ({columns}, 1)]").parse().unwrap();
            let side = |layout| Side { layout, alignment: 512 };
            let plan = BulkPlan::new(side(&global), side(&shared), 2).unwrap();
            let mut moved = std::collections::HashMap::new();
            for run in &plan.runs {
                for at in 0..run.elements {
                    prop_assert!(moved.insert(run.shared + at, run.global + at).is_none());
                }
            }
            prop_assert_eq!(moved.len(), usize::try_from(rows * columns).unwrap());
            for x in 0..rows * columns {
                let place = shared.origin(x).unwrap().get(Axis::M);
                let place = shared.swizzle().map_or(place, |swizzle| swizzle.apply(place));
                prop_assert_eq!(moved.get(&place), Some(&global.origin(x).unwrap().get(Axis::M)));
            }
        }
    }
}
