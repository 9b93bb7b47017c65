//! The entries of `axe.plan`: which there are, and what each is. What their values may be is [`super::product`]'s to say.

use axe_passes::ir::{Op, attribute};
use axe_passes::{PassError, PassResult};
use melior::ir::Attribute;
use melior::ir::attribute::{BoolAttribute, DictionaryAttribute, StringAttribute};
use melior::ir::operation::OperationLike;

/// What the value of an entry is.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Number,
    /// So many numbers.
    Numbers(usize),
}

impl Kind {
    fn holds(self, value: Attribute<'_>) -> bool {
        match self {
            Self::Text => StringAttribute::try_from(value).is_ok(),
            Self::Flag => BoolAttribute::try_from(value).is_ok(),
            // `true` is an integer of one bit.
            Self::Number => attribute::integer(value).is_some() && !Self::Flag.holds(value),
            Self::Numbers(count) => {
                attribute::read_i64s(value).is_some_and(|values| values.len() == count)
            }
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Text => "a text as in \"wgmma\"",
            Self::Flag => "true or false",
            Self::Number => "a number as in 2 : i64",
            Self::Numbers(2) => "two numbers as in array<i64: 2, 2>",
            Self::Numbers(_) => "three numbers as in array<i64: 128, 128, 64>",
        }
    }
}

/// What says how a product is computed.
const CHOICES: [(&str, Kind); 14] = [
    ("kernel", Kind::Text),
    ("tile", Kind::Numbers(3)),
    ("warps", Kind::Numbers(2)),
    ("consumers", Kind::Number),
    ("stages", Kind::Number),
    ("order", Kind::Text),
    ("group", Kind::Number),
    ("cluster", Kind::Number),
    ("beside", Kind::Flag),
    ("swap", Kind::Flag),
    ("split", Kind::Number),
    ("parts", Kind::Number),
    ("tail", Kind::Number),
    ("turns", Kind::Flag),
];
/// What a product may round: no choice among kernels that compute the same.
const PRECISION: (&str, Kind) = ("precision", Kind::Text);
/// What a kernel with roles alone has.
const OF_ROLES: [&str; 10] = [
    "consumers",
    "order",
    "group",
    "cluster",
    "beside",
    "swap",
    "split",
    "parts",
    "tail",
    "turns",
];
/// What a kernel without alone has.
const OF_WARPS: &str = "warps";
/// What is read with another entry alone.
const WITH: [(&str, &str); 4] = [
    ("consumers", "tile"),
    ("swap", "tile"),
    ("turns", "tile"),
    ("beside", "cluster"),
];

/// The plan of an operator; none where it has none.
///
/// # Errors
/// At the operator, for what is no plan.
pub(super) fn of(op: Op<'_>) -> PassResult<'_, Option<DictionaryAttribute<'_>>> {
    let Ok(plan) = op.attribute("axe.plan") else {
        return Ok(None);
    };
    let error = |what: String| PassError::new(op.location(), what);
    let plan = DictionaryAttribute::try_from(plan)
        .map_err(|_| error(format!("expected a dictionary as axe.plan, got {plan}")))?;
    check(plan).map_err(error)?;
    Ok(Some(plan))
}

/// Whether all entries of a plan are known, and what they should be.
///
/// # Errors
/// The first that is not, and what was expected.
pub(super) fn check(plan: DictionaryAttribute<'_>) -> Result<(), String> {
    for at in 0..plan.len() {
        let (key, value) = plan.element(at).map_err(|error| error.to_string())?;
        let key = key.as_string_ref().as_str().unwrap_or_default();
        let mut known = CHOICES.iter().chain([&PRECISION]);
        let Some((_, kind)) = known.find(|(known, _)| *known == key) else {
            let known: Vec<_> = CHOICES
                .iter()
                .chain([&PRECISION])
                .map(|(key, _)| *key)
                .collect();
            return Err(format!(
                "unknown entry '{key}' of axe.plan: expected {}",
                known.join(", ")
            ));
        };
        if !kind.holds(value) {
            return Err(format!(
                "expected {} as '{key}' of axe.plan, got {value}",
                kind.example()
            ));
        }
    }
    let has = |key: &&str| plan.element_by_name(key).is_some();
    let alone = WITH.iter().find(|(key, other)| has(key) && !has(other));
    if let Some((key, other)) = alone {
        return Err(format!("expected '{other}' with '{key}' in axe.plan"));
    }
    let kernel = plan.element_by_name("kernel");
    let kernel = kernel.and_then(|kernel| StringAttribute::try_from(kernel).ok());
    let others = match kernel.map(|kernel| kernel.value()) {
        Some("mma") => OF_ROLES.iter().find(|key| has(key)),
        Some(_) => Some(&OF_WARPS).filter(|key| has(key)),
        None if has(&OF_WARPS) => OF_ROLES.iter().find(|key| has(key)),
        None => None,
    };
    match others {
        Some(key) => Err(format!(
            "expected entries of one kernel in axe.plan, got '{key}' for \"{}\"",
            if *key == OF_WARPS { "wgmma" } else { "mma" }
        )),
        None => Ok(()),
    }
}

/// Whether a plan says how the product is computed, rather than what it may round.
pub(super) fn choose(plan: DictionaryAttribute<'_>) -> bool {
    CHOICES
        .iter()
        .any(|(key, _)| plan.element_by_name(key).is_some())
}
