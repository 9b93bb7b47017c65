//! Fragments of the warp-level matrix instructions, as Axe layouts on `lane` and `reg`.
//!
//! Each function gives the layout of one instruction's operand; `reg` counts elements, in the order in
//! which the instruction packs them into its 32-bit registers.

use axe_layout::{Axis, Iter, Layout, Result};
use std::fmt;

/// A multiply-accumulate `D[m, n] += A[m, k] * B[n, k]` of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Mma {
    /// Rows of A and D.
    pub m: i64,
    /// Columns of D, rows of B as `[n, k]`.
    pub n: i64,
    /// The contracted extent.
    pub k: i64,
    /// Bytes of an element of A and B.
    pub element_bytes: i64,
}

/// `mma.sync.m16n8k16` on f16 and bf16 (PTX ISA 9.7.14.5.8).
pub const M16N8K16: Mma = Mma {
    m: 16,
    n: 8,
    k: 16,
    element_bytes: 2,
};
/// `mma.sync.m16n8k8` on tf32 (PTX ISA 9.7.14.5.7).
pub const M16N8K8: Mma = Mma {
    m: 16,
    n: 8,
    k: 8,
    element_bytes: 4,
};

impl fmt::Display for Mma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}", self.m, self.n, self.k)
    }
}

impl From<Mma> for String {
    fn from(atom: Mma) -> Self {
        atom.to_string()
    }
}

impl TryFrom<String> for Mma {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let known = [M16N8K16, M16N8K8];
        let found = known.into_iter().find(|atom| atom.to_string() == text);
        found.ok_or_else(|| format!("expected {M16N8K16} or {M16N8K8}, got {text}"))
    }
}

fn layout(iters: &[(i64, i64, &str)]) -> Result<Layout> {
    let iters = iters
        .iter()
        .map(|&(extent, stride, axis)| Ok(Iter::new(extent, stride, Axis::new(axis)?)));
    Layout::from_shard(iters.collect::<Result<Vec<_>>>()?)
}

impl Mma {
    /// Elements that share one 32-bit register.
    const fn packed(self) -> i64 {
        4 / self.element_bytes
    }

    /// The fragment of A, for the shape `[m, k]`: rows `g` and `g + 8`, columns in two halves.
    ///
    /// # Errors
    /// Never for the instructions of this table.
    pub fn a(self) -> Result<Layout> {
        let p = self.packed();
        layout(&[
            (2, p, "reg"),
            (8, 4, "lane"),
            (2, 2 * p, "reg"),
            (4, 1, "lane"),
            (p, 1, "reg"),
        ])
    }

    /// The fragment of B, for the shape `[n, k]`.
    ///
    /// # Errors
    /// Never for the instructions of this table.
    pub fn b(self) -> Result<Layout> {
        let p = self.packed();
        layout(&[(8, 4, "lane"), (2, p, "reg"), (4, 1, "lane"), (p, 1, "reg")])
    }

    /// The fragment of C and D, for the shape `[m, n]`, in 32-bit elements.
    ///
    /// # Errors
    /// Never for the instructions of this table.
    pub fn d(self) -> Result<Layout> {
        layout(&[(2, 2, "reg"), (8, 4, "lane"), (4, 1, "lane"), (2, 1, "reg")])
    }

    /// 32-bit registers of A, B and D in each thread.
    #[must_use]
    pub const fn registers(self) -> (i64, i64, i64) {
        let words = 4 * 32;
        (
            self.m * self.k * self.element_bytes / words,
            self.n * self.k * self.element_bytes / words,
            self.m * self.n * 4 / words,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::Fragment;

    /// The formulas of PTX ISA 9.7.14.5.8, "Matrix Fragments for mma.m16n8k16", for element `i` of a lane.
    #[test]
    fn fragments_are_those_of_the_ptx_isa() {
        let a = Fragment::new(&M16N8K16.a().unwrap(), &[16, 16], 32).unwrap();
        let b = Fragment::new(&M16N8K16.b().unwrap(), &[8, 16], 32).unwrap();
        let d = Fragment::new(&M16N8K16.d().unwrap(), &[16, 8], 32).unwrap();
        for lane in 0..32 {
            let (group, member) = (lane >> 2, lane % 4);
            for i in 0..8 {
                let row = if (0..2).contains(&i) || (4..6).contains(&i) {
                    group
                } else {
                    group + 8
                };
                let column = member * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
                assert_eq!(
                    a.index(lane, i),
                    Some(vec![row, column]),
                    "A, lane {lane}, element {i}"
                );
            }
            for i in 0..4 {
                let k = member * 2 + (i & 1) + if i >= 2 { 8 } else { 0 };
                assert_eq!(
                    b.index(lane, i),
                    Some(vec![group, k]),
                    "B, lane {lane}, element {i}"
                );
                let row = if i < 2 { group } else { group + 8 };
                assert_eq!(
                    d.index(lane, i),
                    Some(vec![row, member * 2 + (i & 1)]),
                    "D, lane {lane}, element {i}"
                );
            }
        }
    }

    /// PTX ISA 9.7.14.5.7, "Matrix Fragments for mma.m16n8k8" with .tf32.
    #[test]
    fn tf32_fragments_are_those_of_the_ptx_isa() {
        let a = Fragment::new(&M16N8K8.a().unwrap(), &[16, 8], 32).unwrap();
        let b = Fragment::new(&M16N8K8.b().unwrap(), &[8, 8], 32).unwrap();
        for lane in 0..32 {
            let (group, member) = (lane >> 2, lane % 4);
            for i in 0..4 {
                let row = if i % 2 == 0 { group } else { group + 8 };
                let column = if i < 2 { member } else { member + 4 };
                assert_eq!(
                    a.index(lane, i),
                    Some(vec![row, column]),
                    "A, lane {lane}, element {i}"
                );
            }
            for i in 0..2 {
                assert_eq!(
                    b.index(lane, i),
                    Some(vec![group, member + 4 * i]),
                    "B, lane {lane}, element {i}"
                );
            }
        }
        assert_eq!(M16N8K8.registers(), (4, 2, 4));
        assert_eq!(M16N8K16.registers(), (4, 2, 4));
    }
}
