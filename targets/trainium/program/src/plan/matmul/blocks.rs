//! How a product is cut, and which cuts are compared.

use super::super::Declined;
use super::Matmul;
use crate::facts::memory::{MOVING_COLUMNS, PARTITIONS};

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Rows of a block of the result: a multiple of 128.
    pub m: i64,
    /// Columns of it: a multiple of 512, 2048 at most.
    pub n: i64,
    /// Depth of a block of K: a multiple of 128.
    pub k: i64,
    /// Where K has several blocks: whether the first and the last stand outside of the loop over them, which saves
    /// setting sums to 0 and a copy of them, and takes operand tiles of their own.
    pub peeled: bool,
    /// Where K is one block: the first rows, which begin with the first chunks of K rather than wait for all of it.
    pub lead: Option<Lead>,
}

/// The first rows of the result: blocks of K of their own, whose sums are kept in SBUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// How many rows: a multiple of 128.
    pub m: i64,
    /// Depth of their blocks of K: a multiple of 128.
    pub k: i64,
}

impl Blocks {
    /// Whether all are multiples of their units.
    pub(super) fn check(&self) -> Result<(), Declined> {
        let Blocks { m, n, k, lead, .. } = *self;
        let multiple = |value: i64, unit: i64| value > 0 && value % unit == 0;
        let rows = |m, k| multiple(m, PARTITIONS) && multiple(k, PARTITIONS);
        let sound = rows(m, k) && lead.is_none_or(|lead| rows(lead.m, lead.k));
        if sound && multiple(n, MOVING_COLUMNS) && n <= 4 * MOVING_COLUMNS {
            return Ok(());
        }
        Err(Declined::Invalid(format!(
            "blocks of {m} x {k} x {n}: expected multiples of 128, 128 and 512, and at most 2048 columns"
        )))
    }
}

/// Blocks of these sizes; of those that reach beyond `size`, the first alone.
fn upto(size: i64, of: &[i64]) -> impl Iterator<Item = i64> + Clone {
    let enough = of.iter().position(|block| *block >= size);
    let count = enough.map_or(of.len(), |at| at + 1);
    of.iter()
        .take(count)
        .copied()
        .collect::<Vec<_>>()
        .into_iter()
}

impl Matmul {
    /// Blocks to compare.
    pub(super) fn candidates(&self) -> Vec<Blocks> {
        let mut all = self.streaming();
        all.extend(self.summed());
        all
    }

    /// Columns that stay over all of K while rows stream by.
    fn streaming(&self) -> Vec<Blocks> {
        let [rows, depth, columns] = self.sizes;
        let k = (depth + PARTITIONS - 1) / PARTITIONS * PARTITIONS;
        let leads = [None, Some((384, 384)), Some((640, 512))];
        let leads = leads.map(|lead| lead.map(|(m, k)| Lead { m, k }));
        let mut all = Vec::new();
        for m in upto(rows, &[128, 256, 512]) {
            for n in upto(columns, &[512, 1024, 1536, 2048]) {
                let with = |lead| Blocks {
                    m,
                    n,
                    k,
                    peeled: true,
                    lead,
                };
                all.extend(leads.map(with));
            }
        }
        all
    }

    /// Blocks of K whose sums are kept in SBUF.
    fn summed(&self) -> Vec<Blocks> {
        let [rows, depth, columns] = self.sizes;
        let mut all = Vec::new();
        for m in upto(rows, &[1024, 2048]) {
            for n in upto(columns, &[1024, 2048]) {
                for k in [384, 512, 1024, 2048].into_iter().filter(|k| *k < depth) {
                    let with = |peeled| Blocks {
                        m,
                        n,
                        k,
                        peeled,
                        lead: None,
                    };
                    all.extend([true, false].map(with));
                }
            }
        }
        all
    }
}
