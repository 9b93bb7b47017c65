//! Which earlier instructions an instruction meets in memory.
//!
//! Regions are exact: partitions and byte runs of the physical memory, so that buffers that share memory in turn meet.

use crate::program::{Program, Space};
use crate::walk::Located;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// How two accesses of the same bytes conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Conflict {
    /// The later one reads what the earlier one writes.
    ReadAfterWrite,
    /// The later one overwrites what the earlier one reads.
    WriteAfterRead,
    /// Both write.
    WriteAfterWrite,
}

type Runs = SmallVec<[(i64, i64); 2]>;

/// Partitions and bytes of one memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Region {
    /// First and one past the last partition.
    partitions: (i64, i64),
    /// First and one past the last byte of each run, in order, apart from each other.
    runs: Runs,
}

/// Bytes of a partition that one list of records is kept for.
const BUCKET: i64 = 2048;
/// The same for HBM.
const HBM_BUCKET: i64 = 1 << 20;

struct Record {
    region: Region,
    writes: bool,
    who: u32,
    queue: u32,
}

/// The accesses so far that later ones may meet.
pub struct Regions {
    records: HashMap<(Space, usize, i64), Vec<Record>>,
    /// Buffers in HBM that the program writes: the others cannot meet.
    written: HashSet<usize>,
}

impl Regions {
    /// Nothing so far.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut written = HashSet::new();
        program.instructions(&mut |instruction, _| {
            let operands = instruction.op.operands();
            written.extend(operands.iter().filter(|o| o.writes).map(|o| o.view.buffer));
        });
        Self {
            records: HashMap::new(),
            written,
        }
    }

    /// Adds an access of execution `who`, whose instructions stay in order on `queue`, and gives what it meets to `met`.
    pub fn touch(
        &mut self,
        operand: &Located,
        bytes: i64,
        who: u32,
        queue: u32,
        met: &mut impl FnMut(u32, Conflict),
    ) {
        let (buffer, bucket) = match operand.space {
            Space::Hbm if !self.written.contains(&operand.access.buffer) => return,
            Space::Hbm => (operand.access.buffer, HBM_BUCKET),
            Space::Sbuf | Space::Psum => (0, BUCKET),
        };
        let (partitions, runs) = extent(operand, bytes);
        for (number, runs) in pieces(&runs, bucket) {
            let region = Region { partitions, runs };
            let key = (operand.space, buffer, number);
            let record = Record {
                region,
                writes: operand.writes,
                who,
                queue,
            };
            self.touch_bucket(key, record, met);
        }
    }

    fn touch_bucket(
        &mut self,
        key: (Space, usize, i64),
        access: Record,
        met: &mut impl FnMut(u32, Conflict),
    ) {
        let records = self.records.entry(key).or_default();
        records.retain(|record| {
            if record.who == access.who || !access.region.meets(&record.region) {
                return true;
            }
            match (record.writes, access.writes) {
                (true, true) => met(record.who, Conflict::WriteAfterWrite),
                (true, false) => met(record.who, Conflict::ReadAfterWrite),
                (false, true) => met(record.who, Conflict::WriteAfterRead),
                (false, false) => {}
            }
            // What is overwritten whole, or read again in the same queue, is met through the later access.
            let superseded = access.writes || (!record.writes && record.queue == access.queue);
            !(superseded && access.region.covers(&record.region))
        });
        records.push(access);
    }
}

/// Runs in pieces that stay within one bucket each, by the bucket's number.
fn pieces(runs: &Runs, bucket: i64) -> Vec<(i64, Runs)> {
    let mut pieces: Vec<(i64, Runs)> = Vec::new();
    for run in runs {
        let mut begin = run.0;
        while begin < run.1 {
            let number = begin.div_euclid(bucket);
            let end = ((number + 1) * bucket).min(run.1);
            match pieces.last_mut() {
                Some((last, piece)) if *last == number => piece.push((begin, end)),
                _ => pieces.push((number, SmallVec::from_slice(&[(begin, end)]))),
            }
            begin = end;
        }
    }
    pieces
}

/// The partitions and bytes that an operand names.
fn extent(operand: &Located, size: i64) -> ((i64, i64), Runs) {
    let access = &operand.access;
    let first = access.partition + operand.partition;
    let count: i64 = access
        .axes
        .iter()
        .filter(|axis| axis.partitions != 0)
        .map(|axis| axis.size)
        .product();
    let free: Vec<_> = access
        .merged()
        .into_iter()
        .filter(|axis| axis.partitions == 0 && axis.elements != 0)
        .collect();
    let (outer, run) = match free.split_last() {
        Some((last, outer)) if last.elements == 1 => (outer, last.size),
        _ => (&free[..], 1),
    };
    let mut runs = Runs::new();
    spread(
        outer,
        operand.byte + access.offset * size,
        run * size,
        size,
        &mut runs,
    );
    runs.sort_unstable();
    runs.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    ((first, first + count), runs)
}

fn spread(
    axes: &[crate::program::view::Move],
    begin: i64,
    length: i64,
    size: i64,
    runs: &mut Runs,
) {
    match axes.split_first() {
        None => runs.push((begin, begin + length)),
        Some((axis, rest)) => {
            for index in 0..axis.size {
                spread(
                    rest,
                    begin + index * axis.elements * size,
                    length,
                    size,
                    runs,
                );
            }
        }
    }
}

impl Region {
    fn meets(&self, other: &Self) -> bool {
        if self.partitions.0 >= other.partitions.1 || other.partitions.0 >= self.partitions.1 {
            return false;
        }
        let (mut a, mut b) = (0, 0);
        while let (Some(x), Some(y)) = (self.runs.get(a), other.runs.get(b)) {
            if x.0 < y.1 && y.0 < x.1 {
                return true;
            }
            if x.1 <= y.1 {
                a += 1;
            } else {
                b += 1;
            }
        }
        false
    }

    fn covers(&self, other: &Self) -> bool {
        let within =
            self.partitions.0 <= other.partitions.0 && other.partitions.1 <= self.partitions.1;
        within
            && other.runs.iter().all(|run| {
                let at = self.runs.partition_point(|mine| mine.1 < run.1);
                self.runs
                    .get(at)
                    .is_some_and(|mine| mine.0 <= run.0 && run.1 <= mine.1)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(partitions: (i64, i64), runs: &[(i64, i64)]) -> Region {
        Region {
            partitions,
            runs: SmallVec::from_slice(runs),
        }
    }

    /// Runs with gaps, from lengths.
    fn runs(lengths: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut at = 0;
        lengths
            .iter()
            .map(|(gap, length)| {
                let begin = at + gap;
                at = begin + length;
                (begin, at)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn regions_meet_and_cover_as_sets_do(
            a in prop::collection::vec((1i64..4, 1i64..5), 1..5),
            b in prop::collection::vec((1i64..4, 1i64..5), 1..5),
            p in (0i64..4, 1i64..4),
            q in (0i64..4, 1i64..4),
        ) {
            let (x, y) = (region((p.0, p.0 + p.1), &runs(&a)), region((q.0, q.0 + q.1), &runs(&b)));
            let cells = |region: &Region| -> HashSet<(i64, i64)> {
                (region.partitions.0..region.partitions.1)
                    .flat_map(|p| region.runs.iter().flat_map(move |run| (run.0..run.1).map(move |byte| (p, byte))))
                    .collect()
            };
            let (left, right) = (cells(&x), cells(&y));
            prop_assert_eq!(x.meets(&y), !left.is_disjoint(&right));
            prop_assert_eq!(x.covers(&y), left.is_superset(&right));
        }
    }
}
