//! Moving a tile from one distribution over registers and lanes to another.
//!
//! A warp can do two things: each lane may choose among its own registers ([`Step::Select`],
//! [`Step::SelectLinear`]), and one `shfl` moves one 32-bit word a lane from any lane to any lane
//! ([`Step::Shfl`]; PTX ISA, "shfl.sync"). Shuffles are what costs, so plans minimise them.

mod check;
mod colouring;
mod places;
mod plan;
mod relay;
mod stages;
mod table;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::basis::apply;
use super::columns::Columns;
use crate::error::{Error, Result};

pub(super) use colouring::colour;

pub use check::{check_shuffle, check_tables, execute};
pub use plan::warp_shuffle;
pub use table::{Table, relayout_tables, table_of_layout};

/// Which element of a tile each register of each lane holds: `reg(r) xor lane(l)`.
///
/// Columns of 0, or lanes and registers with a common image, are broadcasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// The element index that each bit of the register number contributes.
    pub reg: Columns,
    /// The element index that each bit of the lane number contributes.
    pub lane: Columns,
}

/// Bits of a register number that a plan may have: a thread has 255 registers.
const MAX_REG_BITS: usize = 12;
/// Bits of a lane number that a plan may have; a warp of the hardware has 5.
const MAX_LANE_BITS: usize = 10;

impl Distribution {
    /// A distribution from its columns.
    ///
    /// # Errors
    /// `Invalid` for negative columns or more than 63 of them.
    pub fn new(reg: Vec<i64>, lane: Vec<i64>) -> Result<Self> {
        Ok(Self {
            reg: reg.try_into()?,
            lane: lane.try_into()?,
        })
    }

    /// The element that register `reg` of lane `lane` holds.
    #[must_use]
    pub fn apply(&self, lane: u64, reg: u64) -> u64 {
        self.reg.apply(reg) ^ self.lane.apply(lane)
    }

    /// The elements at the points `(lane, register)`.
    ///
    /// # Errors
    /// `Invalid` for a lane or register outside.
    pub fn values(&self, points: &[(i64, i64)]) -> Result<Vec<u64>> {
        let index = |value: i64, bits: usize| {
            u64::try_from(value)
                .ok()
                .filter(|v| v.checked_shr(bits as u32).unwrap_or(0) == 0)
        };
        let at = |&(lane, reg): &(i64, i64)| {
            let place = index(lane, self.lane.len()).zip(index(reg, self.reg.len()));
            place.map(|(lane, reg)| self.apply(lane, reg)).ok_or_else(|| {
                Error::invalid(format!(
                    "a distribution of {} registers in each of {} lanes has no register {reg} of lane \
                     {lane}",
                    self.registers(),
                    self.lanes()
                ))
            })
        };
        points.iter().map(at).collect()
    }

    /// Number of registers.
    #[must_use]
    pub fn registers(&self) -> usize {
        1_usize.checked_shl(self.reg.len() as u32).unwrap_or(0)
    }

    /// Number of lanes.
    #[must_use]
    pub fn lanes(&self) -> usize {
        1_usize.checked_shl(self.lane.len() as u32).unwrap_or(0)
    }

    /// The table of the elements, `[lane][register]`.
    fn table(&self) -> Table {
        let element = |l: usize, r: usize| Some(self.apply(l as u64, r as u64));
        let regs = |l| (0..self.registers()).map(move |r| element(l, r)).collect();
        (0..self.lanes()).map(regs).collect()
    }

    fn check_size(&self) -> Result<()> {
        let (reg, lane) = (self.reg.len(), self.lane.len());
        if reg > MAX_REG_BITS || lane > MAX_LANE_BITS {
            return Err(Error::unsupported(format!(
                "a warp relayout: expected at most {MAX_REG_BITS} register bits and {MAX_LANE_BITS} lane \
                 bits, got {reg} and {lane}"
            )));
        }
        Ok(())
    }
}

/// The source lane of each lane in a shuffle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// Lane `l` reads lane `columns(l) xor constant`. With the identity this is a butterfly
    /// (`shfl.sync.bfly`), else an indexed shuffle (`shfl.sync.idx`).
    Linear {
        /// One column a lane bit.
        columns: Columns,
        /// What is xored.
        constant: u64,
    },
    /// Lane `l` reads lane `table[l]`.
    Table(Vec<usize>),
}

impl Lanes {
    /// The lane that lane `lane` reads, if the table has one.
    #[must_use]
    pub fn source(&self, lane: usize) -> Option<usize> {
        match self {
            Self::Linear { columns, constant } => {
                usize::try_from(columns.apply(lane as u64) ^ constant).ok()
            }
            Self::Table(table) => table.get(lane).copied(),
        }
    }

    /// The constant of a butterfly: every lane reads `lane xor constant`.
    #[must_use]
    pub fn butterfly(&self) -> Option<u64> {
        match self {
            Self::Linear { columns, constant } => {
                (*columns == Columns::identity(columns.len())).then_some(*constant)
            }
            Self::Table(_) => None,
        }
    }
}

/// One step of a plan, on registers `regs[lane][i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// New register `i` of lane `l` is its old register `map[l][i]`.
    Select {
        /// One list a lane, all of the new number of registers.
        map: Vec<Vec<usize>>,
    },
    /// New register `r` of lane `l` is its old register `from_reg(r) xor from_lane(l) xor constant`:
    /// a fixed renaming, followed by one conditional exchange for each lane bit whose column is not 0.
    SelectLinear {
        /// New number of registers.
        regs: usize,
        /// Old register, by bits of the new register.
        from_reg: Columns,
        /// Old register, by bits of the lane.
        from_lane: Columns,
        /// What is xored.
        constant: u64,
    },
    /// One shuffle: register `dst[k]` of lane `l` becomes register `src[k]` of its source lane. All
    /// sources are read before any is written. Several registers share one 32-bit word.
    Shfl {
        /// Source registers: 1, or up to `32 / elem_bits`.
        src: Vec<usize>,
        /// Destination registers, as many.
        dst: Vec<usize>,
        /// Source lanes.
        lane: Lanes,
    },
}

/// A sequence of steps, executed in order.
///
/// In JSON each step has the form of the exchange format: `{"op": "select", "map": ..}`,
/// `{"op": "select_linear", "regs": .., "from_reg": .., "from_lane": .., "const": ..}`,
/// `{"op": "shfl", "src": .., "dst": .., "lane": ..}` or with `"lane_linear"` and `"const"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct RelayoutPlan {
    /// Bits of an element; below 32, elements may share words.
    pub elem_bits: u32,
    /// The steps.
    pub steps: Vec<Step>,
}

impl RelayoutPlan {
    /// Number of shuffles of the plan. (An element above 32 bits takes `elem_bits / 32` instructions
    /// for each.)
    #[must_use]
    pub fn shuffles(&self) -> usize {
        self.steps
            .iter()
            .filter(|s| matches!(s, Step::Shfl { .. }))
            .count()
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        match self {
            Self::Select { map } => {
                out.serialize_entry("op", "select")?;
                out.serialize_entry("map", map)?;
            }
            Self::SelectLinear {
                regs,
                from_reg,
                from_lane,
                constant,
            } => {
                out.serialize_entry("op", "select_linear")?;
                out.serialize_entry("regs", regs)?;
                out.serialize_entry("from_reg", from_reg)?;
                out.serialize_entry("from_lane", from_lane)?;
                out.serialize_entry("const", constant)?;
            }
            Self::Shfl { src, dst, lane } => {
                out.serialize_entry("op", "shfl")?;
                match (src.as_slice(), dst.as_slice()) {
                    ([src], [dst]) => {
                        out.serialize_entry("src", src)?;
                        out.serialize_entry("dst", dst)?;
                    }
                    _ => {
                        out.serialize_entry("src", src)?;
                        out.serialize_entry("dst", dst)?;
                    }
                }
                match lane {
                    Lanes::Linear { columns, constant } => {
                        out.serialize_entry("lane_linear", columns)?;
                        out.serialize_entry("const", constant)?;
                    }
                    Lanes::Table(table) => out.serialize_entry("lane", table)?,
                }
            }
        }
        out.end()
    }
}

/// How many elements share a 32-bit word.
fn elements_per_word(elem_bits: u32) -> Result<usize> {
    if elem_bits == 0 || elem_bits > 128 || !elem_bits.is_power_of_two() {
        return Err(Error::invalid(format!(
            "a warp relayout: expected elements of 1, 2, 4, .. or 128 bits, got {elem_bits}"
        )));
    }
    Ok((32 / elem_bits.min(32)) as usize)
}

/// The columns of `outer o inner` for raw columns.
fn composed(outer: impl Fn(u64) -> u64, inner: &[u64]) -> Vec<u64> {
    inner.iter().map(|&column| outer(column)).collect()
}

/// True for the identity on `bits` bits.
fn is_identity(columns: &[u64], bits: usize) -> bool {
    columns.len() == bits && columns.iter().enumerate().all(|(k, &c)| c == 1 << k)
}
