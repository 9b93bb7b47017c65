//! The database of tuned plans: for an operator of given sizes on a chip, the plan that was fastest.
//!
//! The file is JSON Lines, one [`Tuned`] a line, sorted by its [`Key`], so that a new measurement
//! changes one line of a checked-in file:
//!
//! ```text
//! {"chip":"sm_90a","op":"gemm","dtype":"f16","layout":"nt","m":8192,"n":4096,"k":4096,"plan":"{tile = array<i64: 128, 256, 64>}","time_us":401.5,"ratio":1.031,"device":"NVIDIA H200"}
//! ```
//!
//! Empty lines and lines that start with `#` are skipped. `plan` is the plan's dictionary as its
//! compiler prints and reads it; this crate does not look inside.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::dtype::DType;

/// What is computed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum TunedOp {
    /// C = A W.
    #[default]
    Gemm,
    /// The same of 8-bit operands with one scale for A and one for W.
    GemmTensorScaled,
    /// The same with a scale for each row of A and each column of C.
    GemmRowScaled,
    /// The same with a scale for each 1 x 128 of A and each 128 x 128 of W.
    GemmBlockScaled,
    /// Of groups of rows of A, each with a W of its own.
    GroupedGemm,
}

/// Which operands are stored transposed: the first letter is A's, \[m, k\] or (t) \[k, m\], the
/// second W's, \[k, n\] or (t) \[n, k\].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum OperandOrder {
    /// A \[m, k\], W \[k, n\].
    Nn,
    /// A \[m, k\], W \[n, k\].
    #[default]
    Nt,
    /// A \[k, m\], W \[k, n\].
    Tn,
    /// A \[k, m\], W \[n, k\].
    Tt,
}

/// What an entry is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The chip that the code is for, for example `sm_90a`.
    pub chip: String,
    /// What is computed.
    pub op: TunedOp,
    /// The element type of A and W.
    pub dtype: DType,
    /// How A and W are stored.
    pub layout: OperandOrder,
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// The length of the sums.
    pub k: u64,
    /// Groups of rows, with a W each; 1 without groups.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u64,
}

const fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_one(groups: &u64) -> bool {
    *groups == 1
}

impl Key {
    /// How far the sizes of two keys are from each other: the sum over m, n and k of the absolute
    /// log2 of their ratios. `None` when they differ in anything else.
    #[must_use]
    pub fn distance(&self, other: &Key) -> Option<f64> {
        let kind = |key: &Key| (key.op, key.dtype, key.layout, key.groups);
        if self.chip != other.chip || kind(self) != kind(other) {
            return None;
        }
        let log = |a: u64, b: u64| (a.max(1) as f64 / b.max(1) as f64).log2().abs();
        Some(log(self.m, other.m) + log(self.n, other.n) + log(self.k, other.k))
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// What it is for.
    #[serde(flatten)]
    pub key: Key,
    /// The plan's dictionary as text.
    pub plan: String,
    /// The median time of one run in microseconds.
    pub time_us: f64,
    /// The library's time over this one (above 1 is faster), when it was measured beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The name of the device that it was measured on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
}

/// Why a database cannot be read or written.
#[derive(Debug, Error)]
pub enum TunedError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
    /// A line is no entry.
    #[error("line {line}: {source}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// Where and why.
        source: serde_json::Error,
    },
    /// An entry makes no sense.
    #[error("line {line}: {problem}")]
    Entry {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

/// Entries by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TunedDb {
    entries: BTreeMap<Key, Tuned>,
}

impl TunedDb {
    /// Reads the text of a database.
    ///
    /// # Errors
    /// A line that is no entry, sizes of zero, a time that is no positive number, an empty plan,
    /// two entries for one key.
    pub fn parse(text: &str) -> Result<Self, TunedError> {
        let mut db = TunedDb::default();
        for (i, text) in text.lines().enumerate() {
            let (line, text) = (i + 1, text.trim());
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let entry: Tuned =
                serde_json::from_str(text).map_err(|source| TunedError::Json { line, source })?;
            let wrong = |problem: String| TunedError::Entry { line, problem };
            check(&entry).map_err(wrong)?;
            if let Some(before) = db.insert(entry) {
                let key = &before.key;
                let sizes = format!("{} x {} x {}", key.m, key.n, key.k);
                return Err(wrong(format!("a second entry for {} {sizes}", key.dtype)));
            }
        }
        Ok(db)
    }

    /// Reads a file; one that does not exist is an empty database.
    ///
    /// # Errors
    /// As [`TunedDb::parse`], or what the operating system refuses.
    pub fn read(path: &Path) -> Result<Self, TunedError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(io(path, source)),
        }
    }

    /// Writes a file, atomically.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn write(&self, path: &Path) -> Result<(), TunedError> {
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        let write = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            file.write_all(self.text().as_bytes())?;
            crate::container::set_mode(file.as_file(), 0o644)?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|source| io(path, source))
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in self.entries.values() {
            // Plain data with string keys: this cannot fail.
            let line = serde_json::to_string(entry).unwrap_or_default();
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Puts an entry in and returns the one that it replaces.
    pub fn insert(&mut self, entry: Tuned) -> Option<Tuned> {
        self.entries.insert(entry.key.clone(), entry)
    }

    /// The entry for exactly this key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Tuned> {
        self.entries.get(key)
    }

    /// The entry whose sizes are nearest, and its [`Key::distance`]; the first of several.
    #[must_use]
    pub fn nearest(&self, key: &Key) -> Option<(&Tuned, f64)> {
        self.entries
            .values()
            .filter_map(|entry| Some((entry, entry.key.distance(key)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// All entries in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = &Tuned> {
        self.entries.values()
    }
}

fn check(entry: &Tuned) -> Result<(), String> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    let Key { m, n, k, .. } = entry.key;
    if m == 0 || n == 0 || k == 0 {
        return Err(format!("sizes of {m} x {n} x {k}"));
    }
    let groups = entry.key.groups;
    if groups == 0 || (groups > 1 && entry.key.op != TunedOp::GroupedGemm) {
        return Err(format!("{groups} groups of rows"));
    }
    if !positive(entry.time_us) || !entry.ratio.is_none_or(positive) {
        return Err("a time and a ratio are positive numbers".into());
    }
    if entry.plan.is_empty() {
        return Err("the plan is empty".into());
    }
    Ok(())
}

fn io(path: &Path, source: std::io::Error) -> TunedError {
    TunedError::Io {
        path: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(m: u64, n: u64, plan: &str) -> Tuned {
        Tuned {
            key: Key {
                chip: "sm_90a".into(),
                op: TunedOp::Gemm,
                dtype: DType::BF16,
                layout: OperandOrder::Nt,
                m,
                n,
                k: 4096,
                groups: 1,
            },
            plan: plan.into(),
            time_us: 12.5,
            ratio: Some(1.03),
            device: "NVIDIA H200".into(),
        }
    }

    #[test]
    fn the_documented_line_is_read_and_written() {
        let line = r#"{"chip":"sm_90a","op":"gemm","dtype":"f16","layout":"nt","m":8192,"n":4096,"k":4096,"plan":"{tile = array<i64: 128, 256, 64>}","time_us":401.5,"ratio":1.031,"device":"NVIDIA H200"}"#;
        let db = TunedDb::parse(&format!("# best plans\n\n{line}\n")).unwrap();
        assert_eq!(db.text(), format!("{line}\n"));
        let entry = db.entries().next().unwrap();
        assert_eq!(
            (entry.key.dtype, entry.key.layout),
            (DType::F16, OperandOrder::Nt)
        );
    }

    #[test]
    fn nearest_is_by_ratio_and_of_the_same_kind() {
        let mut db = TunedDb::default();
        db.insert(entry(64, 4096, "small"));
        db.insert(entry(8192, 4096, "large"));
        let mut key = entry(4096, 4096, "").key;
        assert_eq!(db.get(&key), None);
        let (found, distance) = db.nearest(&key).unwrap();
        assert_eq!((found.plan.as_str(), distance), ("large", 1.0));
        key.m = 65;
        assert_eq!(db.nearest(&key).unwrap().0.plan, "small");
        key.layout = OperandOrder::Nn;
        assert_eq!(db.nearest(&key), None);
    }

    #[test]
    fn wrong_lines_are_named() {
        let good = TunedDb::parse("").unwrap();
        assert_eq!(good.entries().count(), 0);
        let line = |e: &Tuned| serde_json::to_string(e).unwrap();
        let one = line(&entry(1, 1, "p"));
        let said = |text: &str| TunedDb::parse(text).unwrap_err().to_string();
        assert!(said(&format!("{one}\n{one}")).starts_with("line 2: a second entry"));
        assert!(said("#\n{}").starts_with("line 2: missing field"));
        assert!(said(&line(&entry(0, 1, "p"))).contains("sizes of 0"));
        assert!(said(&line(&entry(1, 1, ""))).contains("plan is empty"));
        let negative = Tuned {
            time_us: -1.0,
            ..entry(1, 1, "p")
        };
        assert!(said(&line(&negative)).contains("positive"));
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h200.json");
        assert_eq!(TunedDb::read(&path).unwrap(), TunedDb::default());
        let mut db = TunedDb::default();
        assert_eq!(db.insert(entry(8, 8, "a")), None);
        assert_eq!(db.insert(entry(8, 8, "b")).unwrap().plan, "a");
        db.write(&path).unwrap();
        assert_eq!(TunedDb::read(&path).unwrap(), db);
        assert!(TunedDb::default().write(Path::new("/no/such/x")).is_err());
    }

    proptest! {
        #[test]
        fn text_gives_the_same_database(sizes in proptest::collection::vec((1u64..1 << 40, 1u64..99, ".+"), 0..9)) {
            let mut db = TunedDb::default();
            for (m, n, plan) in sizes {
                db.insert(entry(m, n, &plan));
            }
            prop_assert_eq!(TunedDb::parse(&db.text()).unwrap(), db);
        }

        #[test]
        fn junk_is_an_error_and_no_crash(text in ".*") {
            let _ = TunedDb::parse(&text);
        }
    }
}
