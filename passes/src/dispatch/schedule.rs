//! Schedules, and how one is chosen for an operator.

use super::Decline;
use crate::error::PassError;
use melior::ir::Location;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// A way to execute an operator.
pub trait Schedule {
    /// What it decides: plain data, which stands in the IR, and whose text is its loop nest over instructions.
    type Plan: Serialize + DeserializeOwned + fmt::Display;

    /// The name that `schedule = "..."` takes.
    fn name(&self) -> &'static str;
}

/// A schedule as the target matches it: `S` is what it reads of an operator.
pub trait Match<S>: Schedule {
    /// The plan for an operator.
    ///
    /// # Errors
    /// A decline with its reason.
    fn plan(&self, site: S) -> Result<Self::Plan, Decline>;

    /// Checks a plan that stands in the IR: that it does for this operator what the layouts say, by enumeration where the plan
    /// has one, and within the limits of its instructions.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    fn check(&self, site: S, plan: &Self::Plan) -> Result<(), Decline>;
}

/// Schedules with their reasons.
pub type Declines = Vec<(&'static str, Decline)>;

/// Why no schedule was chosen.
#[derive(Clone, Debug)]
pub enum Refused {
    /// The operator has no schedules at all.
    None,
    /// The operator names one that it does not have.
    Unknown {
        /// What it names.
        forced: String,
        /// What it has.
        known: Vec<&'static str>,
    },
    /// None takes it.
    Declined(Declines),
}

impl Refused {
    /// The failure, for an operator of this name at a place, on a chip.
    #[must_use]
    pub fn error<'c>(&self, location: Location<'c>, operator: &str, chip: &str) -> PassError<'c> {
        match self {
            Self::None => PassError::new(
                location,
                format!("no schedule of {chip} executes '{operator}'"),
            ),
            Self::Unknown { forced, known } => PassError::new(
                location,
                format!(
                    "'{operator}' has no schedule \"{forced}\" on {chip}: expected one of {}",
                    known.join(", ")
                ),
            ),
            Self::Declined(declines) => {
                let error = PassError::new(
                    location,
                    format!("no schedule of {chip} takes this '{operator}'"),
                );
                declines.iter().fold(error, |error, (schedule, decline)| {
                    error.note(format!("{schedule}: {decline}"))
                })
            }
        }
    }
}

/// The candidates, best first, of which an operator may name one.
///
/// # Errors
/// When there are none, or none of that name.
pub fn named<C>(
    mut candidates: Vec<C>,
    name: impl Fn(&C) -> &'static str,
    forced: Option<&str>,
) -> Result<Vec<C>, Refused> {
    if candidates.is_empty() {
        return Err(Refused::None);
    }
    let Some(forced) = forced else {
        return Ok(candidates);
    };
    let known = candidates.iter().map(&name).collect();
    candidates.retain(|candidate| name(candidate) == forced);
    match candidates.is_empty() {
        false => Ok(candidates),
        true => Err(Refused::Unknown {
            forced: forced.to_owned(),
            known,
        }),
    }
}

/// The first candidate that plans, with the declines of those before it.
///
/// # Errors
/// All declines, when none does.
pub fn first<C, P>(
    candidates: Vec<C>,
    name: impl Fn(&C) -> &'static str,
    plan: impl Fn(&C) -> Result<P, Decline>,
) -> Result<(P, Declines), Refused> {
    let mut declines = Vec::new();
    for candidate in candidates {
        match plan(&candidate) {
            Ok(plan) => return Ok((plan, declines)),
            Err(decline) => declines.push((name(&candidate), decline)),
        }
    }
    Err(Refused::Declined(declines))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(forced: Option<&str>) -> Result<(i32, Declines), Refused> {
        let name = |candidate: &(&'static str, Option<i32>)| candidate.0;
        let all = vec![("fast", None), ("slow", Some(7))];
        let candidates = named(all, name, forced)?;
        first(candidates, name, |(_, plan)| {
            plan.ok_or_else(|| Decline::new("not today"))
        })
    }

    #[test]
    fn the_first_that_plans_is_chosen() {
        let (plan, declines) = choose(None).unwrap();
        assert_eq!((plan, declines.len(), declines[0].0), (7, 1, "fast"));
        assert!(choose(Some("slow")).unwrap().1.is_empty());
    }

    #[test]
    fn refusals_say_what_there_is() {
        assert!(matches!(choose(Some("fast")), Err(Refused::Declined(all)) if all.len() == 1));
        assert!(
            matches!(choose(Some("other")), Err(Refused::Unknown { known, .. }) if known == ["fast", "slow"])
        );
    }
}
