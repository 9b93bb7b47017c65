//! The configuration of a kernel, and where it comes from: the operator's `axe.plan`, else the database of tuned plans, else
//! the cost model. Generic over families.

pub mod search;
pub(super) mod tuned;

use super::family::{Choosing, Family};
use super::knobs::Plan;
use axe_passes::remark::{self, Kind};
use melior::ir::Location;
use std::fmt::Write;

/// The category of the planner's remarks.
pub(super) const CATEGORY: &str = "axe-plan";
/// Other tiles whose predictions an explanation lists.
const LISTED: usize = 5;

/// A configuration and its origin.
#[derive(Debug)]
pub(super) struct Choice<C> {
    pub config: C,
    /// `axe.plan`, `tuned` or `cost model`.
    source: &'static str,
    /// What else there is to say of the origin.
    detail: String,
    /// Why an entry of the database was not taken.
    decline: Option<String>,
}

impl<C> Choice<C> {
    fn of(config: C, source: &'static str) -> Self {
        Self {
            config,
            source,
            detail: String::new(),
            decline: None,
        }
    }

    fn origin(&self) -> &str {
        match self.detail.as_str() {
            "" => self.source,
            detail => detail,
        }
    }
}

/// Chooses how operators are computed. A tuned plan is read before the cost model is asked for anything.
///
/// # Errors
/// An `axe.plan` that asks for what there is not, an entry whose plan is no dictionary, or nothing that fits.
pub(super) fn choose<F: Family>(
    operators: &F::Operators<'_>,
    choosing: &Choosing<'_>,
) -> Result<Choice<F::Config>, String> {
    let chip = choosing.chip;
    let asked = F::asked(operators);
    let own = || F::configure(operators, &asked, chip);
    if asked.chooses() {
        return Ok(Choice::of(own()?, "axe.plan"));
    }
    let own = || own().map(|config| F::fused(operators, config));
    let key = F::key(operators, chip);
    let found = key.and_then(|key| Some((tuned::find(choosing.plans, &key)?, key)));
    let Some((entry, key)) = found else {
        return Ok(Choice::of(own()?, "cost model"));
    };
    let described = tuned::described(entry);
    let plan = Plan::of_text(&entry.plan)
        .map_err(|wrong| format!("the plan {described}: expected a dictionary: {}", wrong.0))?;
    let configured = plan
        .map_err(|wrong| wrong.0)
        .and_then(|plan| F::configure(operators, &plan, chip));
    let taken = match configured {
        Ok(config) if tuned::is_for(entry, &key) => Ok(config),
        Ok(config) => {
            let clocks = |config| F::clocks(F::problem(operators, chip), config, chip);
            tuned::carries_over(clocks(config), clocks(own()?)).map(|()| config)
        }
        Err(reason) => Err(reason),
    };
    Ok(match taken {
        Ok(config) => Choice {
            detail: described,
            ..Choice::of(F::fused(operators, config), "tuned")
        },
        Err(reason) => Choice {
            decline: Some(format!("{described}: {reason}")),
            ..Choice::of(own()?, "cost model")
        },
    })
}

/// Says where a configuration comes from: as remarks, and on standard error when asked to explain.
pub(super) fn report<F: Family>(
    operators: &F::Operators<'_>,
    choice: &Choice<F::Config>,
    kernel: &str,
    location: Location<'_>,
    choosing: &Choosing<'_>,
) {
    let say = |kind, message: &str| {
        remark::emit(location, kind, CATEGORY, choice.source, kernel, message);
    };
    if let Some(reason) = F::declined(operators, choice.config, choosing.chip) {
        say(Kind::Missed, &reason);
    }
    if let Some(decline) = &choice.decline {
        say(Kind::Missed, &format!("not {decline}"));
    }
    let message = format!("{}: {}", choice.origin(), choice.config);
    say(Kind::Passed, &message);
    if choosing.explain {
        eprint!("{}", explained::<F>(operators, choice, kernel, choosing));
    }
}

/// The configuration, its origin, and what the cost model predicts of it and of others.
fn explained<F: Family>(
    operators: &F::Operators<'_>,
    choice: &Choice<F::Config>,
    kernel: &str,
    choosing: &Choosing<'_>,
) -> String {
    let chip = choosing.chip;
    let problem = F::problem(operators, chip);
    let mut text = format!("plan @{kernel}: {}\n", F::described(operators));
    // Writing to a string does not fail.
    let _ = writeln!(text, "  from: {}", choice.origin());
    if let Some(decline) = &choice.decline {
        let _ = writeln!(text, "  not: {decline}");
    }
    let clocks = F::clocks(problem, choice.config, chip);
    let _ = writeln!(text, "  {clocks:>10.0} clocks predicted  {}", choice.config);
    let mut tiles = vec![F::tile(choice.config)];
    for other in F::candidates(problem, chip, usize::MAX) {
        if tiles.len() <= LISTED && !tiles.contains(&F::tile(other.config)) {
            tiles.push(F::tile(other.config));
            let _ = writeln!(
                text,
                "  {:>10.0} clocks instead     {}",
                other.clocks, other.config
            );
        }
    }
    text
}
