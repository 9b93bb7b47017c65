//! The rectangles of tensor memory that a product touches, for the checks of an executor.

use super::{Instruction, OperandA, Operands};
use std::ops::Range;

/// How a rectangle is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Read only.
    Read,
    /// Written only.
    Write,
    /// Read, then written.
    Update,
}

/// A rectangle of tensor memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Index of the CTA within its group.
    pub cta: usize,
    /// Lanes.
    pub lanes: Range<usize>,
    /// Columns of 32 bits.
    pub columns: Range<usize>,
    /// What happens to it.
    pub touch: Touch,
}

/// Lane and column of an address.
const fn split(address: u32) -> (usize, usize) {
    (address as usize >> 16, address as usize & 0xffff)
}

impl Instruction {
    /// The rectangles that [`Instruction::execute`] touches in a group of `ctas` CTAs.
    #[must_use]
    pub fn regions(&self, ctas: usize, o: &Operands) -> Vec<Region> {
        let rows = self.m / ctas.max(1);
        let touch = if o.accumulate {
            Touch::Update
        } else {
            Touch::Write
        };
        let mut all = Vec::new();
        for cta in 0..ctas {
            let mut push = |lane: usize, lanes: usize, column: usize, columns: usize, touch| {
                all.push(Region {
                    cta,
                    lanes: lane..lane + lanes,
                    columns: column..column + columns,
                    touch,
                });
            };
            let (lane, column) = split(o.d);
            // As in `cell`: 64 rows of one CTA lie in 16 lanes of each 32, those of a pair fill all lanes.
            if self.m == 64 {
                (0..4).for_each(|q| push(lane + 32 * q, 16, column, self.n, touch));
            } else if rows == 128 {
                push(lane, 128, column, self.n, touch);
            } else {
                push(lane, 128, column, self.n / 2, touch);
            }
            if let OperandA::Tensor(address) = o.a {
                // 32 bytes a row: 8 columns.
                let (lane, column) = split(address);
                if self.m == 64 {
                    (0..4).for_each(|q| push(lane + 32 * q, 16, column, 8, Touch::Read));
                } else {
                    push(lane, rows, column, 8, Touch::Read);
                }
            }
            for (address, count) in o.scales.iter().flatten().zip([rows, self.n]) {
                let (lane, column) = split(*address);
                push(lane, 32, column, count.div_ceil(32), Touch::Read);
            }
        }
        all
    }
}
