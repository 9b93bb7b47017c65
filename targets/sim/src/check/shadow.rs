//! Shadow memory: who last wrote and read each word, and whether two accesses are ordered.
//!
//! As in FastTrack, a word keeps the epoch of its last write and of its last read; only reads that
//! are not ordered among themselves need a list. A word of four bytes is split into bytes on the
//! first access that covers a part of it. Readers in a list share an entry with the lanes of their
//! warp that read at the same clock: what a whole warp reads takes one entry.

use super::clock::View;

/// The access was strong (atomic, volatile, relaxed or stronger): two of these do not race.
pub(crate) const STRONG: u32 = 1;
/// The access was made by the async proxy.
pub(crate) const ASYNC: u32 = 2;
/// The access was made by `cp.async`. It belongs to the generic proxy, yet Triton feeds wgmma from it
/// with no proxy fence after the wait, and the hardware orders the two: no fence is asked for.
pub(crate) const COPY: u32 = 4;

/// An access: entity, its clock, PTX line and flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) cluster: u32,
    pub(crate) entity: u32,
    /// 0: no access.
    pub(crate) clock: u32,
    line_flags: u32,
}

impl Epoch {
    pub(crate) fn new(cluster: u32, entity: u32, clock: u32, line: u32, flags: u32) -> Self {
        Self {
            cluster,
            entity,
            clock,
            line_flags: line << 3 | flags,
        }
    }
    pub(crate) fn line(self) -> u32 {
        self.line_flags >> 3
    }
    pub(crate) fn is_async(self) -> bool {
        self.line_flags & ASYNC != 0
    }
    fn needs_fence(self) -> bool {
        self.line_flags & (ASYNC | COPY) == 0
    }
    fn strong(self) -> bool {
        self.line_flags & STRONG != 0
    }
    /// Whether this read must not take the place of an earlier one: a strong write races with a weak read only.
    fn hides(self, before: Self) -> bool {
        self.strong() && before.clock != 0 && !before.strong()
    }
}

/// Who accesses now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub(crate) epoch: Epoch,
    pub(crate) view: &'a View,
}

impl Actor<'_> {
    /// Whether `before` is ordered before this access. A write through the generic proxy reaches
    /// the async proxy only through a proxy fence (PTX ISA 8.6, "Proxy-preserved base causality").
    fn ordered_after(&self, before: Epoch, was_write: bool) -> bool {
        if before.clock == 0 {
            return true;
        }
        if before.strong() && self.epoch.strong() {
            return true;
        }
        let me = self.epoch;
        if before.cluster == me.cluster && before.entity == me.entity {
            return true;
        }
        let known = |clock: &super::clock::Clock| {
            clock.knows(me.cluster, before.cluster, before.entity, before.clock)
        };
        known(&self.view.all)
            && (!(me.is_async() && before.needs_fence() && was_write) || known(&self.view.proxy))
    }

    /// Whether a read is ordered before this access, or there was none.
    fn follows(&self, read: Epoch) -> bool {
        let me = self.epoch;
        read.clock == 0
            || (read.cluster, read.entity) == (me.cluster, me.entity)
            || (self.view.all).knows(me.cluster, read.cluster, read.entity, read.clock)
    }

    /// Whether the accesses are ordered but for a missing proxy fence.
    pub(crate) fn lacks_only_proxy_fence(&self, before: Epoch) -> bool {
        let me = self.epoch;
        me.is_async()
            && !before.is_async()
            && self
                .view
                .all
                .knows(me.cluster, before.cluster, before.entity, before.clock)
    }
}

/// [`Cell::more`]: the rest is the index of the word's four bytes, not of a list of readers.
const SPLIT: u32 = 1 << 31;

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    write: Epoch,
    read: Epoch,
    /// 0: nothing; with [`SPLIT`], the index of the cells of the bytes; else 1 + index of the list of
    /// readers that nothing orders.
    more: u32,
}

/// Lanes of a warp that read at the same clock; the epoch's entity is that of the warp's lane 0.
#[derive(Debug, Clone, Copy)]
struct Readers {
    epoch: Epoch,
    lanes: u32,
}

/// A race: the earlier access, and whether each was a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) before: Epoch,
    pub(crate) before_wrote: bool,
    pub(crate) at: u64,
}

/// Lists of readers; those that no word uses are used again.
#[derive(Debug, Default)]
struct Lists {
    all: Vec<Vec<Readers>>,
    free: Vec<u32>,
}

/// Shadow of a range of memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    cells: Vec<Cell>,
    split: Vec<[Cell; 4]>,
    free_splits: Vec<u32>,
    lists: Lists,
}

impl Shadow {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            cells: vec![Cell::default(); bytes.div_ceil(4)],
            ..Self::default()
        }
    }

    /// Records an access of `n` bytes at `at` and returns the first earlier access it races with.
    pub(crate) fn access(
        &mut self,
        at: u64,
        n: u64,
        write: bool,
        actor: &Actor<'_>,
    ) -> Option<Conflict> {
        let mut found = None;
        let end = at + n;
        let mut byte = at;
        while byte < end {
            let word = byte / 4;
            let stop = end.min((word + 1) * 4);
            let Some(cell) = self.cells.get_mut(word as usize) else {
                break;
            };
            let whole = stop - byte == 4;
            let conflict = if whole && cell.more & SPLIT == 0 {
                touch(cell, &mut self.lists, write, actor)
            } else {
                let bytes = (byte % 4) as usize..=((stop - 1) % 4) as usize;
                self.access_part(word as usize, bytes, write, actor)
            };
            if let (None, Some((before, before_wrote))) = (&found, conflict) {
                found = Some(Conflict {
                    before,
                    before_wrote,
                    at: byte,
                });
            }
            byte = stop;
        }
        found
    }

    fn access_part(
        &mut self,
        word: usize,
        bytes: std::ops::RangeInclusive<usize>,
        write: bool,
        actor: &Actor<'_>,
    ) -> Option<(Epoch, bool)> {
        if self.cells[word].more & SPLIT == 0 {
            self.split_word(word);
        }
        let index = (self.cells[word].more & !SPLIT) as usize;
        let mut conflict = None;
        for part in &mut self.split[index][bytes] {
            conflict = touch(part, &mut self.lists, write, actor).or(conflict);
        }
        conflict
    }

    /// Gives the bytes of a word cells of their own, each with what is known of the word.
    fn split_word(&mut self, word: usize) {
        let copy = self.cells[word];
        let mut parts = [copy; 4];
        for part in &mut parts[1..] {
            part.more = self.lists.copy(copy.more);
        }
        let index = if let Some(index) = self.free_splits.pop() {
            self.split[index as usize] = parts;
            index
        } else {
            self.split.push(parts);
            self.split.len() as u32 - 1
        };
        self.cells[word].more = SPLIT | index;
    }

    /// Forgets all accesses of whole words.
    pub(crate) fn forget(&mut self, at: u64, n: u64) {
        for word in at / 4..(at + n) / 4 {
            let Some(cell) = self.cells.get_mut(word as usize) else {
                return;
            };
            let more = std::mem::take(cell).more;
            if more & SPLIT != 0 {
                let index = more & !SPLIT;
                for part in self.split[index as usize] {
                    self.lists.give_back(part.more);
                }
                self.free_splits.push(index);
            } else {
                self.lists.give_back(more);
            }
        }
    }
}

impl Lists {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Vec::new());
            self.all.len() as u32
        })
    }

    fn give_back(&mut self, list: u32) {
        if let Some(readers) = (list as usize).checked_sub(1) {
            self.all[readers].clear();
            self.free.push(list);
        }
    }

    fn copy(&mut self, list: u32) -> u32 {
        let Some(from) = (list as usize).checked_sub(1) else {
            return 0;
        };
        let copy = self.all[from].clone();
        let to = self.take();
        self.all[to as usize - 1] = copy;
        to
    }

    fn add(&mut self, list: u32, now: Epoch) {
        let readers = &mut self.all[list as usize - 1];
        let (first, bit) = (now.entity & !31, 1 << (now.entity & 31));
        let key = Epoch {
            entity: first,
            ..now
        };
        let mut known = false;
        let mut empty = false;
        for entry in readers.iter_mut() {
            if entry.epoch == key {
                entry.lanes |= bit;
                known = true;
            } else if (entry.epoch.entity, entry.epoch.cluster) == (first, now.cluster)
                && !now.hides(entry.epoch)
            {
                entry.lanes &= !bit;
                empty |= entry.lanes == 0;
            }
        }
        if empty {
            readers.retain(|r| r.lanes != 0);
        }
        if !known {
            readers.push(Readers {
                epoch: key,
                lanes: bit,
            });
        }
    }

    /// The first reader, by entity, that the actor is not ordered after.
    fn unordered(&self, list: u32, actor: &Actor<'_>) -> Option<Epoch> {
        let all = self.all[list as usize - 1].iter();
        let readers = all.flat_map(|r| {
            let lanes = (0..32).filter(move |i| r.lanes >> i & 1 == 1);
            lanes.map(move |i| Epoch {
                entity: r.epoch.entity + i,
                ..r.epoch
            })
        });
        readers
            .filter(|read| !actor.ordered_after(*read, false))
            .min_by_key(|read| (read.cluster, read.entity))
    }
}

/// Records an access of one cell; returns an earlier access that it races with, and whether that wrote.
#[inline]
fn touch(
    cell: &mut Cell,
    lists: &mut Lists,
    write: bool,
    actor: &Actor<'_>,
) -> Option<(Epoch, bool)> {
    let now = actor.epoch;
    let mut conflict = (!actor.ordered_after(cell.write, true)).then_some((cell.write, true));
    if !write {
        if cell.more != 0 {
            lists.add(cell.more, now);
        } else if actor.follows(cell.read) && !now.hides(cell.read) {
            cell.read = now;
        } else {
            cell.more = lists.take();
            lists.add(cell.more, cell.read);
            lists.add(cell.more, now);
        }
        return conflict;
    }
    if cell.more != 0 {
        if conflict.is_none() {
            conflict = lists.unordered(cell.more, actor).map(|read| (read, false));
        }
        lists.give_back(cell.more);
        cell.more = 0;
    } else if conflict.is_none() && !actor.ordered_after(cell.read, false) {
        conflict = Some((cell.read, false));
    }
    cell.read = Epoch::default();
    cell.write = now;
    conflict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::clock::View;

    fn epoch(entity: u32, clock: u32) -> Epoch {
        Epoch::new(0, entity, clock, 1, 0)
    }

    #[test]
    fn a_strong_write_conflicts_with_a_weak_read_among_strong_ones() {
        let nothing = View::new(96);
        let actor = |entity, clock, flags| Actor {
            epoch: Epoch::new(0, entity, clock, 1, flags),
            view: &nothing,
        };
        for weak in 0..4 {
            let mut shadow = Shadow::new(16);
            for read in 0..3 {
                let flags = if read == weak { 0 } else { STRONG };
                shadow.access(4, 4, false, &actor(7, read + 1, flags));
            }
            let conflict = shadow.access(4, 4, true, &actor(8, 1, STRONG));
            assert_eq!(conflict.is_some(), weak < 3);
        }
    }

    #[test]
    fn a_write_conflicts_with_each_reader_that_it_does_not_follow() {
        for forgotten in 0..70 {
            let mut shadow = Shadow::new(16);
            let nothing = View::new(96);
            for entity in 0..70 {
                let actor = Actor {
                    epoch: epoch(entity, 1),
                    view: &nothing,
                };
                assert!(shadow.access(4, 4, false, &actor).is_none());
            }
            let mut view = View::new(96);
            let known = (0..70).filter(|&e| e != forgotten);
            known.for_each(|e| std::sync::Arc::make_mut(&mut view.all).raise(e, 1));
            let actor = Actor {
                epoch: epoch(80, 1),
                view: &view,
            };
            // A part of the word has the same readers.
            let conflict = shadow.access(6, 1, true, &actor).unwrap();
            assert_eq!(conflict.before.entity, forgotten);
            assert!(!conflict.before_wrote);
            let conflict = shadow.access(4, 2, true, &actor).unwrap();
            assert_eq!((conflict.before.entity, conflict.at), (forgotten, 4));
            // The bytes that were written have no readers any more.
            assert!(shadow.access(4, 3, true, &actor).is_none());
            assert!(shadow.access(7, 1, true, &actor).is_some());
        }
    }
}
