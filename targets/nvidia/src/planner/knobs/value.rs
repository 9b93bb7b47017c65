//! The types of knobs: how a value is an entry of a plan.

use super::entry::Entry;
use axe_dialect::RasterOrder;

/// What the entries of a knob are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// So many numbers.
    Numbers(usize),
}

impl Kind {
    /// What is expected, for messages.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            Self::Flag => "true or false".to_owned(),
            Self::Number => "a number as in 2 : i64".to_owned(),
            Self::Numbers(2) => "two numbers as in array<i64: 2, 2>".to_owned(),
            Self::Numbers(_) => "three numbers as in array<i64: 128, 128, 64>".to_owned(),
        }
    }
}

/// A value of a knob.
pub trait Value: Sized {
    /// What its entries are.
    const KIND: Kind;

    /// The value of an entry; `None` for an entry of another kind.
    fn of(entry: &Entry) -> Option<Self>;

    /// The entry of a value.
    fn entry(&self) -> Entry;
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn of(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    fn entry(&self) -> Entry {
        Entry::Flag(*self)
    }
}

impl Value for i64 {
    const KIND: Kind = Kind::Number;

    fn of(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn entry(&self) -> Entry {
        Entry::Number(*self)
    }
}

impl<const N: usize> Value for [i64; N] {
    const KIND: Kind = Kind::Numbers(N);

    fn of(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::Numbers(numbers) => numbers.as_slice().try_into().ok(),
            _ => None,
        }
    }

    fn entry(&self) -> Entry {
        Entry::Numbers(self.to_vec())
    }
}

/// A type whose values have words, each once.
macro_rules! choice {
    ($type:ty { $($word:literal => $value:path),+ $(,)? }) => {
        impl Value for $type {
            const KIND: Kind = Kind::Choice(&[$($word),+]);

            fn of(entry: &Entry) -> Option<Self> {
                match entry {
                    $(Entry::Text(text) if text == $word => Some($value),)+
                    _ => None,
                }
            }

            fn entry(&self) -> Entry {
                let word = match self {
                    $($value => $word,)+
                };
                Entry::Text(word.to_owned())
            }
        }
    };
}

/// What a kernel multiplies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mainloop {
    /// One warp copies, warpgroups multiply (sm_90a).
    Wgmma,
    /// Every warp copies and multiplies; every thread, where products are scalar.
    Mma,
}
choice!(Mainloop { "wgmma" => Self::Wgmma, "mma" => Self::Mma });

/// How the consumer warpgroups of a CTA share its tiles (CUTLASS: `KernelTmaWarpSpecializedCooperative`, `...Pingpong`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// All multiply one tile together.
    Cooperative,
    /// Each multiplies a tile of its own: while one stores, another multiplies.
    Pingpong,
}
choice!(Schedule { "cooperative" => Self::Cooperative, "pingpong" => Self::Pingpong });

/// How CTAs share tiles, and the depth of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Not: a tile is one CTA's.
    DataParallel,
    /// The CTAs of a cluster, each of which adds up a part of the tile.
    ClusterSplitK,
    /// Through memory: a second kernel adds the sums of parts.
    SplitK,
    /// The same for the tiles of the last wave alone.
    StreamK,
    /// Not, and tiles are those of groups of rows that are data.
    Grouped,
}
choice!(Sharing {
    "data_parallel" => Self::DataParallel,
    "cluster_split_k" => Self::ClusterSplitK,
    "split_k" => Self::SplitK,
    "stream_k" => Self::StreamK,
    "grouped" => Self::Grouped,
});

/// An operand of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The rows' operand.
    A,
    /// The columns' operand.
    B,
}
choice!(Side { "a" => Self::A, "b" => Self::B });

/// What products may round their operands to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// f32 operands to tf32.
    Tf32,
}
choice!(Precision { "tf32" => Self::Tf32 });

choice!(RasterOrder {
    "rows" => Self::Rows,
    "columns" => Self::Columns,
    "groups" => Self::Groups,
    "snake" => Self::Snake,
    "hilbert" => Self::Hilbert,
});
