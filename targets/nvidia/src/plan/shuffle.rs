//! Relayout of register tensors within each warp, by shuffles.

use super::Decline;
use crate::fragment::Fragment;
use crate::vocabulary::WARP;
use axe_layout::linear::{Columns, Distribution, Lanes, RelayoutPlan, Step, execute, warp_shuffle};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The same shuffles in every warp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
#[serde(into = "Written")]
pub struct ShufflePlan {
    /// Selections and shuffles, in order.
    pub plan: RelayoutPlan,
}

/// More registers than a thread has.
const MOST_REGISTERS: usize = 1024;

/// As the plan stands in the IR.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "ShufflePlan")]
struct Written {
    element_bits: u32,
    steps: Vec<WrittenStep>,
}

/// One step; maps of bits are the images of the bits, the lowest first.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum WrittenStep {
    Select {
        registers: usize,
        by_register: Vec<i64>,
        by_lane: Vec<i64>,
        constant: u64,
    },
    Shuffle {
        from: Vec<usize>,
        to: Vec<usize>,
        by_lane: Vec<i64>,
        constant: u64,
    },
}

impl From<ShufflePlan> for Written {
    fn from(plan: ShufflePlan) -> Self {
        let step = |step: Step| match step {
            Step::SelectLinear {
                regs,
                from_reg,
                from_lane,
                constant,
            } => Some(WrittenStep::Select {
                registers: regs,
                by_register: from_reg.into(),
                by_lane: from_lane.into(),
                constant,
            }),
            Step::Shfl {
                src,
                dst,
                lane: Lanes::Linear { columns, constant },
            } => Some(WrittenStep::Shuffle {
                from: src,
                to: dst,
                by_lane: columns.into(),
                constant,
            }),
            // Plans have none of the others: they are declined when they are made.
            _ => None,
        };
        Self {
            element_bits: plan.plan.elem_bits,
            steps: plan.plan.steps.into_iter().filter_map(step).collect(),
        }
    }
}

impl TryFrom<Written> for ShufflePlan {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let columns = |values: Vec<i64>| Columns::try_from(values).map_err(|e| e.to_string());
        let step = |step| match step {
            WrittenStep::Select {
                registers,
                by_register,
                by_lane,
                constant,
            } => {
                if registers > MOST_REGISTERS {
                    return Err(format!("expected at most {MOST_REGISTERS} registers"));
                }
                Ok(Step::SelectLinear {
                    regs: registers,
                    from_reg: columns(by_register)?,
                    from_lane: columns(by_lane)?,
                    constant,
                })
            }
            WrittenStep::Shuffle {
                from,
                to,
                by_lane,
                constant,
            } => {
                if from.iter().chain(&to).any(|at| *at >= MOST_REGISTERS) {
                    return Err(format!("expected registers below {MOST_REGISTERS}"));
                }
                Ok(Step::Shfl {
                    src: from,
                    dst: to,
                    lane: Lanes::Linear {
                        columns: columns(by_lane)?,
                        constant,
                    },
                })
            }
        };
        let steps: Result<Vec<_>, String> = written.steps.into_iter().map(step).collect();
        Ok(Self {
            plan: RelayoutPlan {
                elem_bits: written.element_bits,
                steps: steps?,
            },
        })
    }
}

impl ShufflePlan {
    /// The plan of `result[x] = source[of(x)]` on row-major indices, for elements of `bits` bits.
    ///
    /// # Errors
    /// Fragments that are not linear over bits, elements that another warp holds, steps that are no expression of
    /// the lane's bits.
    pub fn new(
        source: &Fragment,
        result: &Fragment,
        of: impl Fn(i64) -> i64,
        bits: u32,
    ) -> Result<Self, Decline> {
        if !source.is_full() || !result.is_full() || source.threads() != result.threads() {
            return Err(Decline::new(
                "expected an element in every register of every thread",
            ));
        }
        let held = |lane, register| source.linear(lane, register).unwrap_or(-1);
        let wanted = |lane, register| result.linear(lane, register).map_or(-1, &of);
        let from = distribution("the source", source.registers(), held)?;
        let to = distribution("the result", result.registers(), wanted)?;
        let plan =
            warp_shuffle(&from, &to, bits).map_err(|error| Decline::new(error.to_string()))?;
        let made = Self { plan };
        made.check_steps()?;
        made.check(source, result, of)?;
        Ok(made)
    }

    fn check_steps(&self) -> Result<(), Decline> {
        let bitwise = self.plan.steps.iter().all(|step| {
            matches!(
                step,
                Step::SelectLinear { .. }
                    | Step::Shfl {
                        lane: Lanes::Linear { .. },
                        ..
                    }
            )
        });
        match bitwise {
            true => Ok(()),
            false => Err(Decline::new(
                "the lanes to read from are no expression of the lane's bits",
            )),
        }
    }

    /// Executes the plan in every warp and compares.
    ///
    /// # Errors
    /// Fragments of different scopes, and the first warp that would hold something else.
    pub fn check(
        &self,
        source: &Fragment,
        result: &Fragment,
        of: impl Fn(i64) -> i64,
    ) -> Result<(), Decline> {
        if source.threads() != result.threads() {
            return Err(Decline::new("source and result live in different scopes"));
        }
        for warp in 0..source.threads() / WARP {
            let lanes = || (0..WARP).map(|lane| warp * WARP + lane);
            let registers = |fragment: &Fragment, thread| -> Vec<Option<i64>> {
                (0..fragment.registers())
                    .map(|register| fragment.linear(thread, register))
                    .collect()
            };
            let held = lanes().map(|thread| registers(source, thread)).collect();
            let got = execute(&self.plan, held).map_err(|error| Decline::new(error.to_string()))?;
            let wanted: Vec<Vec<_>> = lanes()
                .map(|thread| {
                    registers(result, thread)
                        .into_iter()
                        .map(|x| x.map(&of))
                        .collect()
                })
                .collect();
            if got != wanted {
                return Err(Decline::new(format!(
                    "warp {warp} needs what another warp holds, or holds it elsewhere than warp 0"
                )));
            }
        }
        Ok(())
    }
}

/// Warp 0's elements as a linear function of the bits of lane and register.
fn distribution(
    which: &str,
    registers: i64,
    element: impl Fn(i64, i64) -> i64,
) -> Result<Distribution, Decline> {
    let declined = || {
        Decline::new(format!(
            "{which} is not linear over the bits of lane and register"
        ))
    };
    if registers <= 0 || registers & (registers - 1) != 0 || element(0, 0) != 0 {
        return Err(declined());
    }
    let bits = |count: i64| (0..count.ilog2()).map(|bit| 1_i64 << bit);
    let made = Distribution::new(
        bits(registers)
            .map(|register| element(0, register))
            .collect(),
        bits(WARP).map(|lane| element(lane, 0)).collect(),
    )
    .map_err(|error| Decline::new(error.to_string()))?;
    for lane in 0..WARP {
        for register in 0..registers {
            let linear = made.apply(lane.unsigned_abs(), register.unsigned_abs());
            if i64::try_from(linear) != Ok(element(lane, register)) {
                return Err(declined());
            }
        }
    }
    Ok(made)
}

/// The lane that lane `l` reads, from the bits of `l`.
fn source_lane(lane: &Lanes) -> String {
    let Lanes::Linear { columns, constant } = lane else {
        return "by table".to_owned();
    };
    let bits = columns.as_slice().iter().enumerate();
    let terms = bits.filter(|(_, column)| **column != 0);
    let mut terms: Vec<_> = terms
        .map(|(bit, column)| format!("l[{bit}] * {column}"))
        .collect();
    if *constant != 0 {
        terms.push(constant.to_string());
    }
    terms.join(" ^ ")
}

impl fmt::Display for ShufflePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.plan.steps {
            match step {
                Step::Shfl { src, dst, lane } => match lane.butterfly() {
                    Some(mask) => writeln!(f, "r{dst:?} = shfl.bfly(r{src:?}, {mask})")?,
                    None => writeln!(f, "r{dst:?} = shfl.idx(r{src:?}, {})", source_lane(lane))?,
                },
                Step::SelectLinear { regs, .. } => {
                    writeln!(f, "r[0..{regs}] = selected by lane bits")?
                }
                Step::Select { .. } => writeln!(f, "selected by lane")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::matrix::M16N8K16;

    fn fragment(text: &str, shape: &[i64]) -> Fragment {
        Fragment::new(&text.parse().unwrap(), shape, 128).unwrap()
    }

    #[test]
    fn accumulators_become_rows_a_lane() {
        let tile = "S[(4, 2, 8, 4, 2) : (1@warp, 2@reg, 4@lane, 1@lane, 1@reg)]";
        let rows = "S[(4, 2, 8, 4, 2) : (1@warp, 1@lane, 2@lane, 2@reg, 1@reg)] + R[2 : 16@lane]";
        let plan = ShufflePlan::new(
            &fragment(tile, &[64, 8]),
            &fragment(rows, &[64, 8]),
            |x| x,
            32,
        );
        let plan = plan.unwrap();
        assert!(plan.plan.shuffles() > 0);
        super::super::written(&plan);
        let a = Fragment::new(&M16N8K16.a().unwrap(), &[16, 16], 32).unwrap();
        assert_eq!(
            ShufflePlan::new(&a, &a, |x| x, 16).unwrap().plan.shuffles(),
            0
        );
    }

    #[test]
    fn other_warps_are_out_of_reach() {
        let rows = fragment("S[(4, 32) : (1@warp, 1@lane)]", &[4, 32]);
        let columns = fragment("S[(32, 4) : (1@lane, 1@warp)]", &[32, 4]);
        assert!(ShufflePlan::new(&rows, &columns, |x| x, 32).is_err());
    }
}
