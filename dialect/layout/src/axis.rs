//! Axes: interned names of hardware or memory dimensions.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};

/// Lanes of a warp, what the axis `lane` counts (PTX ISA, `WARP_SZ`).
pub const WARP: usize = 32;

/// One interned name; `key` holds its first eight bytes so that most comparisons need no string.
struct Entry {
    name: &'static str,
    key: u64,
}

static M_ENTRY: Entry = Entry {
    name: "m",
    key: (b'm' as u64) << 56,
};

/// A named axis of the target space: `lane`, `warp`, `gpu`, `P`, `m`, ...
///
/// Names are free text here; targets that know a closed vocabulary check it themselves. Copies share
/// one interned string, so that equality is one pointer comparison. Axes order by their names.
#[derive(Clone, Copy)]
pub struct Axis(&'static Entry);

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 128;
/// Interned names are never freed, so their number is bounded.
const MAX_NAMES: usize = 1 << 20;

fn table() -> &'static Mutex<HashMap<&'static str, &'static Entry>> {
    static TABLE: OnceLock<Mutex<HashMap<&'static str, &'static Entry>>> = OnceLock::new();
    TABLE.get_or_init(|| Mutex::new(HashMap::from([(M_ENTRY.name, &M_ENTRY)])))
}

impl Axis {
    /// The linear memory axis, the default wherever a text names no axis.
    pub const M: Self = Self(&M_ENTRY);

    /// The axis called `name`.
    ///
    /// # Errors
    /// `Invalid` when the name is empty, longer than 128 bytes or contains a control character, or
    /// when the process has already used a million different names.
    pub fn new(name: &str) -> Result<Self> {
        if name == M_ENTRY.name {
            return Ok(Self::M);
        }
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Error::invalid(format!(
                "axis name: expected 1 to {MAX_NAME_BYTES} bytes, got {}",
                name.len()
            )));
        }
        if name.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "axis name {name:?}: expected printable text, got a control character"
            )));
        }
        let mut table = table().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = table.get(name) {
            return Ok(Self(entry));
        }
        if table.len() >= MAX_NAMES {
            return Err(Error::invalid(format!(
                "axis name {name:?}: more than {MAX_NAMES} different names are in use"
            )));
        }
        let name: &'static str = Box::leak(name.into());
        let mut prefix = [0; 8];
        for (to, from) in prefix.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            name,
            key: u64::from_be_bytes(prefix),
        }));
        table.insert(name, entry);
        Ok(Self(entry))
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Axis {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Axis {}

impl Ord for Axis {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        self.0
            .key
            .cmp(&other.0.key)
            .then_with(|| self.0.name.cmp(other.0.name))
    }
}

impl PartialOrd for Axis {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Axis {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Axis {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interned_once() {
        assert_eq!(Axis::new("m").unwrap(), Axis::M);
        assert_eq!(Axis::new("lane").unwrap(), Axis::new("lane").unwrap());
        assert_ne!(Axis::new("lane").unwrap(), Axis::new("lanes").unwrap());
    }

    #[test]
    fn ordered_by_name() {
        let names = ["a", "aa", "m", "pipeline_", "pipeline_a", "pipeline_b", "Ä"];
        for a in names {
            for b in names {
                let (x, y) = (Axis::new(a).unwrap(), Axis::new(b).unwrap());
                assert_eq!(x.cmp(&y), a.cmp(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn bad_names_are_errors() {
        assert!(Axis::new("").is_err());
        assert!(Axis::new("a\nb").is_err());
        assert!(Axis::new(&"x".repeat(129)).is_err());
    }
}
