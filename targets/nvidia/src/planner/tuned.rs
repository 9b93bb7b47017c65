//! The database of plans that were fastest on a device: reading it, and finding a product's plan.
//!
//! An entry is for one product, exactly, and where the other 16-bit float has none for that one as well. It also stands
//! for a product of the same columns and depth whose rows are nearly as many, if the cost model finds it hardly slower there than what it would choose itself: what is
//! lost is then small, and nothing can go wrong, since every tile computes products of every size. Batches and
//! dynamic rows have no entries.

use super::product::Gemm;
use super::search::BLOCKS;
use super::variant::Variant;
use crate::facts::chip::Chip;
use axe_dialect::element_type;
use axe_package::{DType, Key, OperandOrder, Tuned, TunedDb, TunedOp};
use axe_passes::fuse::operators::is_product;
use axe_passes::ir::{Val, walk};
use axe_passes::{PassError, PassResult};
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, TypeLike, ValueLike};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The database in the repository.
const H200: &str = include_str!("../../tuned/h200.json");
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
pub(super) fn plans<'c>(
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

/// What the database finds a product by; `None` for a kind of product that it has no entries for.
pub(super) fn key(gemm: &Gemm<'_>, chip: &Chip) -> Option<Key> {
    let element = gemm.element;
    let float8 = |value: Val<'_>| element_type(value.r#type()).to_string() == "f8E4M3FN";
    let (op, dtype) = if element.is_f16() {
        (TunedOp::Gemm, DType::F16)
    } else if element.is_bf16() {
        (TunedOp::Gemm, DType::BF16)
    } else if float8(gemm.a) && float8(gemm.b) {
        // What a product is multiplied by afterwards changes little.
        let op = match gemm.scales {
            None => TunedOp::GemmRowScaled,
            Some(scales) if scales.blocks == BLOCKS => TunedOp::GemmBlockScaled,
            Some(_) => return None,
        };
        (op, DType::F8E4M3)
    } else {
        return None;
    };
    let layout = match (gemm.trans_a, gemm.trans_b) {
        (false, false) => OperandOrder::Nn,
        (false, true) => OperandOrder::Nt,
        (true, false) => OperandOrder::Tn,
        (true, true) => OperandOrder::Tt,
    };
    let extent = |extent: i64| u64::try_from(extent).ok();
    let single = gemm.batch.is_none_or(|batch| batch == 1);
    single.then_some(())?;
    Some(Key {
        chip: chip.name.to_owned(),
        op,
        dtype,
        layout,
        m: extent(gemm.m)?,
        n: extent(gemm.n)?,
        k: extent(gemm.k)?,
    })
}

/// The products of a module of logical operators that the database can have entries for, each once, in order;
/// and why it cannot for the others.
pub fn products(module: OperationRef<'_, '_>, chip: &Chip) -> (Vec<Key>, Vec<String>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    let all = walk::nested(module, &|_| true).into_iter();
    for op in all.filter(|op| is_product(*op)) {
        let found = Gemm::read(op, chip).map_err(|error| error.message);
        let found = found.and_then(|gemm| {
            key(&gemm, chip).ok_or_else(|| {
                "a database of plans has single products of f16, bf16 or f8E4M3FN, in blocks of 128 x 128 where those have scales, and static sizes".to_owned()
            })
        });
        match found {
            Ok(key) if keys.contains(&key) => {}
            Ok(key) => keys.push(key),
            Err(reason) => others.push(format!("{}: {reason}", op.location())),
        }
    }
    (keys, others)
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
pub(super) fn is_for(entry: &Tuned, key: &Key) -> bool {
    entry.key == *key || twin(key).as_ref() == Some(&entry.key)
}

/// The entry of the product, of its twin, or of one with nearly as many rows.
pub(super) fn find<'a>(plans: &'a TunedDb, key: &Key) -> Option<&'a Tuned> {
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

/// Whether the plan of another product's entry is good enough for this one.
pub(super) fn carries_over(
    gemm: &Gemm<'_>,
    theirs: Variant,
    own: Variant,
    chip: &Chip,
) -> Result<(), String> {
    let query = gemm.query(chip);
    let (theirs, own) = (query.clocks(theirs, chip), query.clocks(own, chip));
    if theirs <= NEAR_COST * own {
        return Ok(());
    }
    Err(format!(
        "predicted to be {:.0}% slower here",
        (theirs / own - 1.0) * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
