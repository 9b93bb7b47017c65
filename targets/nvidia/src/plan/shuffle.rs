//! Relayout of register tensors within each warp, by shuffles.

use super::Decline;
use crate::fragment::Fragment;
use crate::vocabulary::WARP;
use axe_layout::linear::{Distribution, Lanes, RelayoutPlan, Step, execute, warp_shuffle};
use std::fmt;

/// The same shuffles in every warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// Selections and shuffles, in order.
    pub plan: RelayoutPlan,
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
    /// The first warp that would hold something else.
    pub fn check(
        &self,
        source: &Fragment,
        result: &Fragment,
        of: impl Fn(i64) -> i64,
    ) -> Result<(), Decline> {
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
        assert!(plan.unwrap().plan.shuffles() > 0);
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
