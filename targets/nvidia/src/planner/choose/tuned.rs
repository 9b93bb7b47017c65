//! The database of plans that were fastest on a device: reading it, and finding operators' entry.
//!
//! An entry is for one product, exactly, and where the other 16-bit float has none for that one as well. It also stands
//! for a product of the same columns and depth whose rows are nearly as many, if the cost model finds it hardly slower there than what it would choose itself: what is
//! lost is then small, and nothing can go wrong, since every tile computes products of every size. Batches and
//! dynamic rows have no entries.

use crate::planner::knobs::Plan;
use axe_package::{DType, Key, Tuned, TunedDb};
use axe_passes::{PassError, PassResult};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The database in the repository.
const H200: &str = include_str!("../../../tuned/h200.json");
/// How many times the rows of a product may be those of an entry, or the other way round.
const NEAR_ROWS: f64 = 1.25;
/// How much slower than its own choice the cost model may find an entry for other rows.
const NEAR_COST: f64 = 1.02;

static BUILT_IN: LazyLock<Arc<TunedDb>> =
    LazyLock::new(|| Arc::new(TunedDb::parse(H200).unwrap_or_default()));

/// The database that the option `tuned` names: empty for the built-in one, `none`, or a file.
///
/// # Errors
/// At the module, for a file that cannot be read.
pub(in crate::planner) fn plans<'c>(
    module: OperationRef<'c, 'c>,
    option: &str,
) -> PassResult<'c, Arc<TunedDb>> {
    match option {
        "" => Ok(Arc::clone(&BUILT_IN)),
        "none" => Ok(Arc::default()),
        path => read(Path::new(path)).map(Arc::new).map_err(|reason| {
            PassError::new(
                module.location(),
                format!("cannot read the plans of tuned={path}: {reason}"),
            )
        }),
    }
}

/// A file that is not there is an error here, unlike for a tuner that is about to write it.
fn read(path: &Path) -> Result<TunedDb, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    TunedDb::parse(&text).map_err(|error| error.to_string())
}

/// The key of the same product of the other float of 16 bits, which takes as long.
fn twin(key: &Key) -> Option<Key> {
    let dtype = match key.dtype {
        DType::F16 => DType::BF16,
        DType::BF16 => DType::F16,
        _ => return None,
    };
    Some(Key {
        dtype,
        ..key.clone()
    })
}

/// Whether an entry was timed on the product itself, or its twin.
pub(in crate::planner) fn is_for(entry: &Tuned, key: &Key) -> bool {
    entry.key == *key || twin(key).as_ref() == Some(&entry.key)
}

/// The plan of that entry, where it can be read.
pub(in crate::planner) fn plan(plans: &TunedDb, key: &Key) -> Option<Plan> {
    Plan::of_text(&find(plans, key)?.plan).ok()?.ok()
}

/// The entry of the product, of its twin, or of one with nearly as many rows.
pub(in crate::planner) fn find<'a>(plans: &'a TunedDb, key: &Key) -> Option<&'a Tuned> {
    let twin = twin(key);
    let exact = plans.get(key);
    if let Some(exact) = exact.or_else(|| plans.get(twin.as_ref()?)) {
        return Some(exact);
    }
    let most = NEAR_ROWS.log2();
    plans
        .entries()
        .filter(|entry| (entry.key.n, entry.key.k) == (key.n, key.k))
        .filter_map(|entry| Some((entry.key.distance(key)?, entry)))
        .filter(|(distance, _)| *distance <= most)
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, entry)| entry)
}

/// Whether the plan of an entry for other rows is good enough, of so many clocks where the model's own choice takes `own`.
pub(in crate::planner) fn carries_over(theirs: f64, own: f64) -> Result<(), String> {
    if theirs <= NEAR_COST * own {
        return Ok(());
    }
    Err(format!(
        "predicted to be {:.0}% slower here",
        (theirs / own - 1.0) * 100.0
    ))
}

/// An entry, for people.
pub(in crate::planner) fn described(entry: &Tuned) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::knobs::Plan;
    use axe_package::{DType, OperandOrder, TunedOp};

    fn entry(m: u64, n: u64, plan: &str) -> Tuned {
        Tuned {
            key: Key {
                chip: "sm_90a".to_owned(),
                op: TunedOp::Gemm,
                dtype: DType::BF16,
                layout: OperandOrder::Nt,
                m,
                n,
                k: 4096,
                groups: 1,
            },
            plan: plan.to_owned(),
            time_us: 10.0,
            ratio: None,
            device: String::new(),
        }
    }

    #[test]
    fn the_built_in_database_is_read() {
        let parsed = TunedDb::parse(H200).unwrap();
        assert_eq!(*BUILT_IN, Arc::new(parsed));
        for entry in BUILT_IN.entries() {
            let plan = Plan::of_text(&entry.plan).unwrap().unwrap();
            assert_eq!(plan.to_string(), entry.plan, "written as plans are");
        }
    }

    #[test]
    fn exact_sizes_come_first_and_near_rows_second() {
        let mut plans = TunedDb::default();
        for (m, plan) in [(4096, "a"), (4400, "b"), (8192, "c")] {
            plans.insert(entry(m, 4096, plan));
        }
        let found = |m, n| find(&plans, &entry(m, n, "").key).map(|entry| entry.plan.clone());
        assert_eq!(found(4096, 4096), Some("a".to_owned()));
        assert_eq!(found(4300, 4096), Some("b".to_owned()));
        assert_eq!(found(5500, 4096), Some("b".to_owned()));
        assert_eq!(found(6000, 4096), None);
        assert_eq!(found(4096, 4104), None);
        let f16 = Key {
            dtype: DType::F16,
            ..entry(4096, 4096, "").key
        };
        // The other type of 16 bits has the same plans, its own first.
        assert_eq!(find(&plans, &f16).map(|e| e.plan.as_str()), Some("a"));
        let own = Tuned {
            key: f16.clone(),
            ..entry(4096, 4096, "own")
        };
        plans.insert(own);
        assert_eq!(find(&plans, &f16).map(|e| e.plan.as_str()), Some("own"));
    }

    #[test]
    fn files_that_cannot_be_read_say_why() {
        let folder = std::env::temp_dir();
        assert!(read(&folder).is_err());
        assert!(
            read(Path::new("/no/such/plans.json"))
                .unwrap_err()
                .contains("No such file")
        );
    }
}
