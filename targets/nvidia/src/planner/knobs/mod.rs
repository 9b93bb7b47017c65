//! The knobs of a plan: one table of keys, types, ranges and documentation. What reads and writes plans comes from it: the
//! dictionary `axe.plan`, the database of tuned plans, messages, and docs/reference/plans.md.
//!
//! A new knob is a line here, and its use.

mod entry;
mod legacy;
mod value;

pub use entry::{Entries, Entry};
pub use value::{Kind, Mainloop, Precision, Schedule, Sharing, Side, Value};

use axe_dialect::RasterOrder;
use melior::ir::attribute::DictionaryAttribute;
use std::fmt;

/// What is known of a knob beside its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its key in the dictionary.
    pub key: &'static str,
    /// What its entries are.
    pub kind: Kind,
    /// The least and the greatest number; what fits a product and a chip is checked when a plan is made a configuration.
    pub range: [i64; 2],
    /// The mainloop that has it; none where all do.
    pub of: Option<Mainloop>,
    /// The knob without which it means nothing.
    pub with: Option<&'static str>,
    /// What it does.
    pub doc: &'static str,
}

impl Knob {
    /// What the table's columns are where a line does not say: any number, of all mainloops, by itself. What fits a product
    /// is checked when a plan is made a configuration.
    const ANY: Self = Self {
        key: "",
        kind: Kind::Flag,
        range: [i64::MIN, i64::MAX],
        of: None,
        with: None,
        doc: "",
    };
}

/// What `wgmma` alone has.
const WGMMA: Option<Mainloop> = Some(Mainloop::Wgmma);
/// What `mma.sync` alone has.
const MMA: Option<Mainloop> = Some(Mainloop::Mma);
/// CTAs that may share a tile's depth, or the keys of attention.
const SPLITS: [i64; 2] = [1, 128];
/// Rows of tiles in a group of the raster order.
const SWIZZLES: [i64; 2] = [1, crate::emit::MOST_GROUPED];

/// Registers of a thread that `setmaxnreg` takes (PTX ISA 9.7.20.5).
const REGISTERS: [i64; 2] = [24, 256];

/// The table: from each line come a field of [`Plan`], its key, and a row of [`KNOBS`].
macro_rules! knobs {
    ($($key:ident: $type:ty { $($column:ident: $value:expr),* } $doc:literal;)+) => {
        /// What a plan asks for. What it leaves out is the cost model's.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Plan {
            $(#[doc = $doc] pub $key: Option<$type>,)+
        }

        /// All knobs, in the order in which plans are written.
        #[allow(clippy::needless_update, reason = "a line may say all columns")]
        pub const KNOBS: &[Knob] = &[$(Knob {
            key: stringify!($key),
            kind: <$type as Value>::KIND,
            doc: $doc,
            $($column: $value,)*
            ..Knob::ANY
        }),+];

        impl Plan {
            /// The entries, in the order of the table.
            #[must_use]
            pub fn entries(&self) -> Vec<(&'static str, Entry)> {
                let all = [$((stringify!($key), self.$key.as_ref().map(Value::entry))),+];
                let set = all.into_iter().filter_map(|(key, entry)| Some((key, entry?)));
                set.collect()
            }

            /// Sets a knob; `None` where the entry is not one of its values.
            fn put(&mut self, key: &str, entry: &Entry) -> Option<()> {
                match key {
                    $(stringify!($key) => self.$key = Some(<$type>::of(entry)?),)+
                    _ => return None,
                }
                Some(())
            }
        }
    };
}

knobs! {
    mainloop: Mainloop {}
        "`wgmma`: one warp copies, warpgroups multiply; `mma`: every warp copies and multiplies";
    tile: [i64; 3] {}
        "rows and columns of the result, and depth of a stage";
    warps: [i64; 2] { of: MMA }
        "rows and columns of warps over the tile (of threads, where products are scalar)";
    consumers: i64 { of: WGMMA, with: Some("tile") }
        "warpgroups that multiply";
    stages: i64 {}
        "tiles of A and B in flight";
    raster: RasterOrder { of: WGMMA }
        "the order in which tiles are visited, as `axe.for_tiles` has it";
    swizzle: i64 { range: SWIZZLES, of: WGMMA }
        "rows of tiles in a group of the order (`groups`, `snake`)";
    cluster: [i64; 2] { of: WGMMA }
        "rows and columns of CTAs that fetch operands for each other: those of a column share B's columns, those of a row A's rows; 2, 4 or 8 of them; of attention two rows, whose tiles of queries share keys and values";
    swap_ab: bool { of: WGMMA, with: Some("tile") }
        "the instruction's 64 rows are the result's columns, for results of few rows";
    decomposition: Sharing {}
        "CTAs that share a tile's depth: none; those of a cluster, each of which adds up a part of the tile; through memory, where a second kernel (`..._sum`) adds the sums of parts in order and forms the epilogue (the mainloop `mma` has these two, `data_parallel` and `split_k`, alone); the same for the tiles of the last wave alone, which leave multiprocessors idle; none, over the tiles of groups of rows (all of `axe.grouped_gemm`)";
    splits: i64 { range: SPLITS, with: Some("decomposition") }
        "how many of them: 2, 4 or 8 in a cluster, up to 64 through memory, up to 128 parts of the keys of attention";
    schedule: Schedule { of: WGMMA, with: Some("tile") }
        "whether the consumers multiply a tile together, or each a tile of its own";
    registers: [i64; 2] { range: REGISTERS, of: WGMMA }
        "registers of a thread of the warpgroup that copies, and of one that multiplies, in eights: `[40, 232]` or `[24, 240]` beside two consumers";
    evict_first: Side { of: WGMMA, with: Some("tile") }
        "the operand that the L2 cache may drop before the other: one that is read once";
    precision: Precision {}
        "f32 operands may be rounded to tf32";
}

/// Why entries are no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

impl Plan {
    /// The plan of a dictionary in IR.
    ///
    /// # Errors
    /// The first entry that is none, and what was expected.
    pub fn of(dictionary: DictionaryAttribute<'_>) -> Result<Self, Wrong> {
        let mut plan = Self::default();
        for (key, entry) in entry::entries(dictionary) {
            let knob = knob(&key)?;
            let entry = entry.map_err(|text| knob.wrong(&text))?;
            plan.set(knob, &entry)?;
        }
        plan.check()
    }

    /// The plan of an entry of the database, whose keys may be older ones.
    ///
    /// # Errors
    /// Text that is no dictionary, or an entry that is none of a plan.
    pub fn of_text(text: &str) -> Result<Result<Self, Wrong>, NoDictionary> {
        let entries = entry::parse(text).map_err(NoDictionary)?;
        Ok(Self::of_entries(&legacy::renewed(entries)))
    }

    fn of_entries(entries: &Entries) -> Result<Self, Wrong> {
        let mut plan = Self::default();
        for (key, entry) in entries {
            plan.set(knob(key)?, entry)?;
        }
        plan.check()
    }

    fn set(&mut self, knob: &Knob, entry: &Entry) -> Result<(), Wrong> {
        let wrong = || knob.wrong(&entry.to_string());
        self.put(knob.key, entry).ok_or_else(wrong)?;
        let [least, most] = knob.range;
        let numbers = match entry {
            Entry::Number(number) => std::slice::from_ref(number),
            Entry::Numbers(numbers) => numbers,
            Entry::Text(_) | Entry::Flag(_) => &[],
        };
        match numbers.iter().find(|n| !(least..=most).contains(*n)) {
            Some(number) => Err(Wrong(format!(
                "expected {least} to {most} as '{}' of axe.plan, got {number}",
                knob.key
            ))),
            None => Ok(()),
        }
    }

    /// The plan, where its knobs can be together.
    fn check(self) -> Result<Self, Wrong> {
        let entries = self.entries();
        let has = |key: &str| entries.iter().any(|(set, _)| *set == key);
        let set = || KNOBS.iter().filter(|knob| has(knob.key));
        for knob in set() {
            if let Some(other) = knob.with.filter(|other| !has(other)) {
                return Err(Wrong(format!(
                    "expected '{other}' with '{}' in axe.plan",
                    knob.key
                )));
            }
        }
        let mainloop = self.mainloop();
        let other =
            set().find(|knob| mainloop.is_some() && knob.of.is_some() && knob.of != mainloop);
        match (other, mainloop) {
            (Some(knob), Some(mainloop)) => Err(Wrong(format!(
                "expected entries of one mainloop in axe.plan, got '{}' with mainloop = {}",
                knob.key,
                mainloop.entry()
            ))),
            _ => Ok(self),
        }
    }

    /// The mainloop that is asked for, by name or by `warps`.
    #[must_use]
    pub fn mainloop(&self) -> Option<Mainloop> {
        self.mainloop.or(self.warps.map(|_| Mainloop::Mma))
    }

    /// Whether it says more of tiles than which mainloop computes them.
    #[must_use]
    pub fn asks_for_tiles(&self) -> bool {
        let mainloop = Self {
            mainloop: self.mainloop,
            precision: self.precision,
            ..Self::default()
        };
        *self != mainloop
    }

    /// Whether it says how a product is computed, rather than what it may round.
    #[must_use]
    pub fn chooses(&self) -> bool {
        let rounds = Self {
            precision: self.precision,
            ..Self::default()
        };
        *self != rounds
    }
}

/// Text that is no dictionary, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDictionary(pub String);

/// The knob of a key.
fn knob(key: &str) -> Result<&'static Knob, Wrong> {
    let known = KNOBS.iter().find(|knob| knob.key == key);
    known.ok_or_else(|| {
        let all: Vec<_> = KNOBS.iter().map(|knob| knob.key).collect();
        let expected = legacy::advice(key).unwrap_or_else(|| all.join(", "));
        Wrong(format!(
            "unknown entry '{key}' of axe.plan: expected {expected}"
        ))
    })
}

impl Knob {
    fn wrong(&self, got: &str) -> Wrong {
        let expected = self.kind.expected();
        Wrong(format!(
            "expected {expected} as '{}' of axe.plan, got {got}",
            self.key
        ))
    }
}

#[cfg(test)]
impl Knob {
    /// Its row of docs/reference/plans.md.
    fn row(&self) -> String {
        let values = match self.kind {
            Kind::Choice(words) => words
                .iter()
                .map(|word| format!("`\"{word}\"`"))
                .collect::<Vec<_>>()
                .join(", "),
            Kind::Flag => "`true`".to_owned(),
            Kind::Number => "`n : i64`".to_owned(),
            Kind::Numbers(2) => "`array<i64: n, n>`".to_owned(),
            Kind::Numbers(_) => "`array<i64: n, n, n>`".to_owned(),
        };
        let of = self
            .of
            .map_or(String::new(), |of| format!("{of:?}").to_lowercase());
        format!("| `{}` | {values} | {of} | {} |\n", self.key, self.doc)
    }
}

impl fmt::Display for Plan {
    /// The dictionary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<_> = self
            .entries()
            .into_iter()
            .map(|(key, entry)| format!("{key} = {entry}"))
            .collect();
        write!(f, "{{{}}}", entries.join(", "))
    }
}

#[cfg(test)]
mod tests;
