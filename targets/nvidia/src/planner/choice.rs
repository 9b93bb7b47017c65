//! The plan of a matrix product, and where it comes from: the operator's `axe.plan`, else the database of tuned
//! plans, else the cost model.

use super::Planner;
use super::entries;
use super::product::Gemm;
use super::search;
use super::tuned;
use super::variant::Variant;
use crate::facts::chip::Chip;
use axe_package::{Tuned, TunedDb};
use axe_passes::ir::DYNAMIC;
use axe_passes::remark::{self, Kind};
use axe_passes::{PassError, PassResult};
use melior::ir::Attribute;
use melior::ir::attribute::DictionaryAttribute;
use melior::ir::operation::OperationLike;
use std::fmt::Write;

/// The category of the planner's remarks.
pub(super) const CATEGORY: &str = "axe-plan";
/// Other tiles whose predictions an explanation lists.
const LISTED: usize = 5;

/// A plan and its origin.
#[derive(Debug)]
pub(super) struct Choice {
    pub variant: Variant,
    /// `axe.plan`, `tuned` or `cost model`.
    source: &'static str,
    /// What else there is to say of the origin.
    detail: String,
    /// Why an entry of the database was not taken.
    decline: Option<String>,
}

/// Chooses how a product is computed.
///
/// # Errors
/// An `axe.plan` that asks for what there is not, an entry whose plan is no dictionary, or nothing that fits.
pub(super) fn choose<'c>(
    gemm: &mut Gemm<'c>,
    plans: &TunedDb,
    chip: &'static Chip,
) -> PassResult<'c, Choice> {
    let variant = gemm.variant(chip)?;
    let chosen = |variant, source, detail, decline| Choice {
        variant,
        source,
        detail,
        decline,
    };
    if gemm.is_planned() {
        return Ok(chosen(variant, "axe.plan", String::new(), None));
    }
    let key = tuned::key(gemm, chip);
    let entry = key.as_ref().and_then(|key| tuned::find(plans, key));
    let Some(entry) = entry else {
        return Ok(chosen(variant, "cost model", String::new(), None));
    };
    let exact = key.as_ref().is_some_and(|key| tuned::is_for(entry, key));
    Ok(match of_entry(gemm, entry, exact, variant, chip)? {
        Ok(tuned) => chosen(tuned, "tuned", described(entry), None),
        Err(reason) => {
            let decline = format!("{}: {reason}", described(entry));
            chosen(variant, "cost model", String::new(), Some(decline))
        }
    })
}

/// The variant of an entry, or why the product cannot or should not have it.
fn of_entry<'c>(
    gemm: &mut Gemm<'c>,
    entry: &Tuned,
    exact: bool,
    own: Variant,
    chip: &'static Chip,
) -> PassResult<'c, Result<Variant, String>> {
    let context = gemm.op.context();
    // SAFETY: the operation, and with it the product, lives in its context.
    let parsed = Attribute::parse(unsafe { context.to_ref() }, &entry.plan);
    let plan = parsed.and_then(|plan| DictionaryAttribute::try_from(plan).ok());
    let Some(plan) = plan else {
        return Err(PassError::new(
            gemm.op.location(),
            format!("the plan {}: expected a dictionary", described(entry)),
        ));
    };
    if let Err(reason) = entries::check(plan) {
        return Ok(Err(reason));
    }
    let before = gemm.plan.replace(plan);
    let variant = gemm.variant(chip).map_err(|error| error.message);
    let variant = variant.and_then(|variant| match exact {
        true => Ok(variant),
        false => tuned::carries_over(gemm, variant, own, chip).map(|()| variant),
    });
    if variant.is_err() {
        gemm.plan = before;
    }
    Ok(variant)
}

/// An entry, for people.
fn described(entry: &Tuned) -> String {
    let key = &entry.key;
    let mut text = format!("tuned for {} x {} x {}", key.m, key.n, key.k);
    // Writing to a string does not fail.
    if !entry.device.is_empty() {
        let _ = write!(text, " on {}", entry.device);
    }
    let _ = write!(text, ", {} us", entry.time_us);
    if let Some(ratio) = entry.ratio {
        let _ = write!(text, ", {ratio} times as fast as the library");
    }
    text
}

impl Choice {
    /// Says where the plan comes from: as remarks, and on standard error when asked to explain.
    pub(super) fn report(&self, gemm: &Gemm<'_>, kernel: &str, planner: &Planner) {
        let location = gemm.op.location();
        let say = |kind, message: &str| {
            remark::emit(location, kind, CATEGORY, self.source, kernel, message);
        };
        let roles = gemm.admits_wide(planner.chip);
        if let (Variant::Warps(_), Err(reason)) = (self.variant, roles) {
            say(Kind::Missed, &format!("not by roles: {reason}"));
        }
        if let Some(decline) = &self.decline {
            say(Kind::Missed, &format!("not {decline}"));
        }
        say(
            Kind::Passed,
            &format!("{}: {}", self.origin(), self.variant),
        );
        if planner.explain {
            eprint!("{}", self.explain(gemm, kernel, planner.chip));
        }
    }

    fn origin(&self) -> String {
        match self.detail.as_str() {
            "" => self.source.to_owned(),
            detail => detail.to_owned(),
        }
    }

    /// The plan, its origin, and what the cost model predicts of it and of others.
    fn explain(&self, gemm: &Gemm<'_>, kernel: &str, chip: &Chip) -> String {
        let extent = |extent: i64| match extent {
            DYNAMIC => "?".to_owned(),
            extent => extent.to_string(),
        };
        let mut text = format!(
            "plan @{kernel}: {} x {} x {} of {}\n",
            extent(gemm.m),
            gemm.n,
            gemm.k,
            gemm.element
        );
        let query = gemm.query(chip);
        let clocks = query.clocks(self.variant, chip);
        let _ = writeln!(text, "  from: {}", self.origin());
        if let Some(decline) = &self.decline {
            let _ = writeln!(text, "  not: {decline}");
        }
        let _ = writeln!(
            text,
            "  {:>10.0} clocks predicted  {}",
            clocks, self.variant
        );
        let mut tiles = vec![self.variant.tile()];
        for other in search::candidates(query, chip, usize::MAX) {
            if tiles.len() <= LISTED && !tiles.contains(&other.variant.tile()) {
                tiles.push(other.variant.tile());
                let _ = writeln!(
                    text,
                    "  {:>10.0} clocks instead     {}",
                    other.clocks, other.variant
                );
            }
        }
        text
    }
}
