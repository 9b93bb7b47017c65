//! What is chosen of: elements, columns, how many, and the ways that there are.

/// Threads of a CTA.
pub(crate) const THREADS: i64 = 256;
/// CTAs that a multiprocessor is to hold, so that some load while others compare: 64 registers a thread.
pub(crate) const CTAS_A_MULTIPROCESSOR: i64 = 4;
/// Lanes of a warp.
pub(super) const LANES: i64 = 32;
/// The most elements of a row.
pub(super) const MOST_COLUMNS: i64 = 1 << 30;
/// The most elements that are chosen.
pub(super) const MOST_CHOSEN: i64 = 64;
/// Columns up to which a warp has a row: 16 elements a lane, which it sorts.
const SHORT: i64 = 512;
/// Elements that a thread of a CTA has of a chunk of its row.
const MOST_HELD: i64 = 16;
/// The widest access of a thread.
const ACCESS_BYTES: i64 = 16;

/// The types that there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// Half precision.
    F16,
    /// The upper half of f32.
    BF16,
    /// Single precision.
    F32,
    /// Signed.
    I32,
}

impl Element {
    /// Of its name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "f16" => Some(Self::F16),
            "bf16" => Some(Self::BF16),
            "f32" => Some(Self::F32),
            "i32" => Some(Self::I32),
            _ => None,
        }
    }

    /// Bytes in memory.
    pub(super) const fn bytes(self) -> i64 {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 | Self::I32 => 4,
        }
    }

    /// The integer of its bits.
    pub(super) const fn storage(self) -> &'static str {
        match self {
            Self::F16 | Self::BF16 => "i16",
            Self::F32 | Self::I32 => "i32",
        }
    }

    /// The bits of the element that comes last in the order: minus infinity, or a NaN; in a word of 32 bits as often as it fits.
    pub(super) fn last_bits(self, smallest: bool, word: bool) -> i64 {
        let bits: i64 = match (self, smallest) {
            (Self::F16, false) => 0xfc00,
            (Self::F16, true) => 0x7e00,
            (Self::BF16, false) => 0xff80,
            (Self::BF16, true) => 0x7fc0,
            (Self::F32, false) => 0xff80_0000,
            (Self::F32, true) => 0x7fc0_0000,
            (Self::I32, false) => 0x8000_0000,
            (Self::I32, true) => 0x7fff_ffff,
        };
        match (self.bytes(), word) {
            (2, true) => signed(bits << 16 | bits, 32),
            (2, false) => signed(bits, 16),
            _ => signed(bits, 32),
        }
    }
}

/// Bits as a signed number.
const fn signed(bits: i64, of: u32) -> i64 {
    if bits >> (of - 1) & 1 == 1 {
        bits - (1 << of)
    } else {
        bits
    }
}

/// What is chosen of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The element type.
    pub element: Element,
    /// Bits of indices.
    pub index_bits: i64,
    /// Elements of a row.
    pub columns: i64,
    /// How many are chosen.
    pub k: i64,
    /// Whether the smallest are.
    pub smallest: bool,
    /// Elements of an access.
    pub vector: i64,
}

impl Shape {
    /// The widest accesses that rows of so many columns are made of, and that leave no thread without one while others have two.
    pub(super) fn widest(element: Element, columns: i64) -> i64 {
        let most = (ACCESS_BYTES / element.bytes()).min(even_share(columns));
        let fits = |vector: &i64| *vector <= most && columns % vector == 0;
        [8, 4, 2].into_iter().find(fits).unwrap_or(1)
    }

    /// Whether a warp has a row, and not a CTA.
    pub(super) const fn by_warp(self) -> bool {
        self.columns <= SHORT
    }

    /// Elements of a lane, or of a thread of a chunk: a power of two.
    pub(super) fn held(self) -> i64 {
        even_share(self.columns).max(self.vector)
    }

    /// Whether the next chunk is loaded while one is gone through: elements of 32 bits take too many registers for that.
    pub(super) const fn loads_ahead(self) -> bool {
        self.element.bytes() == 2
    }

    /// Columns of a chunk of a CTA's row.
    pub(super) fn chunk(self) -> i64 {
        THREADS * self.held()
    }
}

/// Rows of a CTA at a time.
pub(crate) const fn rows_of_cta(columns: i64) -> i64 {
    if columns <= SHORT { THREADS / LANES } else { 1 }
}

/// A power of two of elements for each of the threads that have a row, of which a CTA's goes through long rows in several turns.
fn even_share(columns: i64) -> i64 {
    let threads = if columns <= SHORT { LANES } else { THREADS };
    let mut share = 1;
    while share < MOST_HELD && share * threads < columns {
        share *= 2;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELEMENTS: [Element; 4] = [Element::F16, Element::BF16, Element::F32, Element::I32];

    /// Accesses are aligned, end with the row, and are a thread's whole share; short rows have a place for each element.
    #[test]
    fn accesses_make_up_rows() {
        for columns in (1..5000).chain([32_000, 131_072, 262_144, 262_143]) {
            for element in ELEMENTS {
                let vector = Shape::widest(element, columns);
                let shape = Shape {
                    element,
                    index_bits: 32,
                    columns,
                    k: 1,
                    smallest: false,
                    vector,
                };
                let held = shape.held();
                assert_eq!((columns % vector, held % vector), (0, 0), "{columns}");
                assert!(vector * element.bytes() <= 16 && held <= 16, "{columns}");
                if shape.by_warp() {
                    assert!(held * LANES >= columns, "{columns}");
                }
            }
        }
    }

    #[test]
    fn elements_that_are_not_there_come_last() {
        let bits = |element: Element, smallest| element.last_bits(smallest, true) as u32;
        assert_eq!(f32::from_bits(bits(Element::F32, false)), f32::NEG_INFINITY);
        assert!(f32::from_bits(bits(Element::F32, true)).is_nan());
        assert_eq!(bits(Element::I32, false) as i32, i32::MIN);
        assert_eq!(bits(Element::I32, true) as i32, i32::MAX);
        assert_eq!(bits(Element::F16, false), 0xfc00_fc00);
        assert_eq!(bits(Element::BF16, false), 0xff80_ff80);
        assert_eq!(Element::BF16.last_bits(true, false), 0x7fc0);
    }
}
