//! What was decided, for people: as remarks, and as text.

use super::schedule::Declines;
use crate::PassError;
use crate::remark::{self, Kind};
use melior::ir::Location;
use std::fmt::Write;

/// The category of the remarks.
const CATEGORY: &str = "axe-dispatch";

/// What was decided for an operator.
#[derive(Clone, Debug)]
pub struct Decision<'c> {
    /// Where the operator is.
    pub location: Location<'c>,
    /// Its name.
    pub operator: String,
    /// The schedule that was chosen.
    pub schedule: &'static str,
    /// Its plan, as the IR has it.
    pub plan: String,
    /// The schedules before it and their reasons.
    pub declines: Declines,
}

/// Emits remarks: what was chosen, and what was not.
pub fn remarks(kernel: &str, decisions: &[Decision]) {
    for decision in decisions {
        for (schedule, decline) in &decision.declines {
            remark::emit(
                decision.location,
                Kind::Missed,
                CATEGORY,
                schedule,
                kernel,
                &format!("{schedule}: {decline}"),
            );
        }
        remark::emit_plan(
            decision.location,
            Kind::Passed,
            CATEGORY,
            decision.schedule,
            kernel,
            &format!("{}: {}", decision.operator, decision.schedule),
            &decision.plan,
        );
    }
}

/// Says why a kernel is left for the host.
pub fn left(why: &PassError<'_>) {
    let message = format!("left for the host: {}", why.message);
    remark::emit(
        why.location,
        Kind::Missed,
        CATEGORY,
        "unsupported",
        "",
        &message,
    );
}

/// The decisions of a kernel as people read them.
#[must_use]
pub fn explain(kernel: &str, decisions: &[Decision]) -> String {
    let mut text = format!("kernel @{kernel}\n");
    for decision in decisions {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {} -> {}    {}",
            decision.operator, decision.schedule, decision.location
        );
        for (schedule, decline) in &decision.declines {
            let _ = writeln!(text, "    not {schedule}: {decline}");
        }
        for line in decision.plan.lines() {
            let _ = writeln!(text, "    | {line}");
        }
    }
    text
}
