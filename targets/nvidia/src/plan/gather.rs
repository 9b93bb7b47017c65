//! Register tensors made of the registers that a thread already has.

use super::Decline;
use crate::fragment::Fragment;
use axe_passes::dispatch::sequence;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The source register of each result register, the same in every thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherPlan {
    /// By result register.
    #[serde(with = "sequence")]
    pub from: Vec<i64>,
}

impl GatherPlan {
    /// The plan of `result[x] = source[of(x)]`, on row-major indices.
    ///
    /// # Errors
    /// The first result register whose element some thread does not hold, or holds elsewhere than thread 0.
    pub fn new(
        source: &Fragment,
        result: &Fragment,
        of: impl Fn(i64) -> i64,
    ) -> Result<Self, Decline> {
        if source.threads() != result.threads() {
            return Err(Decline::new("source and result live in different scopes"));
        }
        let place = |register: i64| {
            let holds = |from: &i64| holds(source, result, (*from, register), &of);
            (0..source.registers()).find(holds).ok_or_else(|| {
                Decline::new(format!(
                    "no register holds, in every thread, what result register {register} needs"
                ))
            })
        };
        let from = (0..result.registers())
            .map(place)
            .collect::<Result<_, _>>()?;
        Ok(Self { from })
    }

    /// Checks by enumeration that each result register is what it needs to be.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(
        &self,
        source: &Fragment,
        result: &Fragment,
        of: impl Fn(i64) -> i64,
    ) -> Result<(), Decline> {
        if source.threads() != result.threads() {
            return Err(Decline::new("source and result live in different scopes"));
        }
        if i64::try_from(self.from.len()) != Ok(result.registers()) {
            return Err(Decline::new(format!(
                "expected {} registers, got {}",
                result.registers(),
                self.from.len()
            )));
        }
        for (register, from) in (0..).zip(&self.from) {
            if !holds(source, result, (*from, register), &of) {
                return Err(Decline::new(format!(
                    "register {from} of the source is not what result register {register} needs"
                )));
            }
        }
        Ok(())
    }
}

/// Whether a source register holds in every thread what a result register needs.
fn holds(
    source: &Fragment,
    result: &Fragment,
    (from, register): (i64, i64),
    of: &impl Fn(i64) -> i64,
) -> bool {
    let exists = (0..source.registers()).contains(&from);
    let held = |thread| {
        let wanted = result.linear(thread, register);
        wanted.is_none_or(|x| source.linear(thread, from) == Some(of(x)))
    };
    exists && (0..result.threads()).all(held)
}

impl fmt::Display for GatherPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (result, source) in self.from.iter().enumerate() {
            writeln!(f, "r[{result}] = s[{source}]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str, shape: &[i64]) -> Fragment {
        Fragment::new(&text.parse().unwrap(), shape, 32).unwrap()
    }

    #[test]
    fn registers_are_renamed_where_every_thread_holds_them() {
        let source = fragment("S[(32, 2, 4) : (1@lane, 4@reg, 1@reg)]", &[256]);
        let swapped = fragment("S[(32, 2, 4) : (1@lane, 1@reg, 2@reg)]", &[256]);
        let plan = GatherPlan::new(&source, &swapped, |x| x).unwrap();
        assert_eq!(plan.from, [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(
            super::super::written(&plan),
            r#"{"from":"S[(4, 2) : (1, 4)]"}"#
        );
        plan.check(&source, &swapped, |x| x).unwrap();
        let wrong = GatherPlan { from: vec![0; 8] };
        assert!(wrong.check(&source, &swapped, |x| x).is_err());
        let rows = fragment("S[32 : 1@lane]", &[32]);
        let matrix = fragment("S[(32, 4) : (1@lane, 1@reg)]", &[32, 4]);
        assert_eq!(
            GatherPlan::new(&rows, &matrix, |x| x / 4).unwrap().from,
            [0; 4]
        );
    }

    #[test]
    fn what_is_in_another_lane_is_declined() {
        let source = fragment("S[(32, 2) : (1@lane, 1@reg)]", &[64]);
        let other = fragment("S[(2, 32) : (1@reg, 1@lane)]", &[64]);
        assert!(GatherPlan::new(&source, &other, |x| x).is_err());
    }
}
