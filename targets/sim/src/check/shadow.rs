//! Shadow memory: who last wrote and read each word, and whether two accesses are ordered.
//!
//! As in FastTrack, a word keeps the epoch of its last write and of its last read; only reads that
//! are not ordered among themselves need a list. A word of four bytes is split into bytes on the
//! first access that covers a part of it.

use super::clock::View;
use std::collections::HashMap;

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

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    write: Epoch,
    read: Epoch,
    /// 0: none, else 1 + index of the list of unordered readers.
    readers: u32,
}

/// A race: the earlier access, and whether each was a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conflict {
    pub(crate) before: Epoch,
    pub(crate) before_wrote: bool,
    pub(crate) at: u64,
}

/// Shadow of a range of memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    cells: Vec<Cell>,
    split: HashMap<u32, [Cell; 4]>,
    readers: Vec<HashMap<(u32, u32), Epoch>>,
    free: Vec<u32>,
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
            let whole = byte == word * 4 && stop == (word + 1) * 4;
            let index = word as u32;
            let Some(cell) = self.cells.get_mut(word as usize) else {
                break;
            };
            let mut conflict = None;
            if whole && !self.split.contains_key(&index) {
                conflict = touch(cell, &mut self.readers, &mut self.free, write, actor);
            } else {
                let copy = *cell;
                let parts = self.split.entry(index).or_insert_with(|| {
                    // The four bytes share the reader list's contents, not the list.
                    let mut parts = [copy; 4];
                    for part in &mut parts[1..] {
                        part.readers = clone_list(copy.readers, &mut self.readers);
                    }
                    parts
                });
                for part in &mut parts[(byte % 4) as usize..=((stop - 1) % 4) as usize] {
                    conflict =
                        touch(part, &mut self.readers, &mut self.free, write, actor).or(conflict);
                }
            }
            if found.is_none() {
                found = conflict.map(|(before, before_wrote)| Conflict {
                    before,
                    before_wrote,
                    at: byte,
                });
            }
            byte = stop;
        }
        found
    }
}

impl Shadow {
    /// Forgets all accesses of whole words.
    pub(crate) fn forget(&mut self, at: u64, n: u64) {
        for word in at / 4..(at + n) / 4 {
            let Some(cell) = self.cells.get_mut(word as usize) else {
                return;
            };
            if cell.readers != 0 {
                self.free.push(cell.readers);
            }
            *cell = Cell::default();
            self.split.remove(&(word as u32));
        }
    }
}

fn clone_list(list: u32, readers: &mut Vec<HashMap<(u32, u32), Epoch>>) -> u32 {
    let Some(copy) = (list as usize)
        .checked_sub(1)
        .and_then(|i| readers.get(i))
        .cloned()
    else {
        return 0;
    };
    readers.push(copy);
    readers.len() as u32
}

fn touch(
    cell: &mut Cell,
    readers: &mut Vec<HashMap<(u32, u32), Epoch>>,
    free: &mut Vec<u32>,
    write: bool,
    actor: &Actor<'_>,
) -> Option<(Epoch, bool)> {
    let now = actor.epoch;
    let mut conflict = (!actor.ordered_after(cell.write, true)).then_some((cell.write, true));
    let list = (cell.readers as usize).checked_sub(1);
    if !write {
        if let Some(list) = list.and_then(|i| readers.get_mut(i)) {
            list.insert((now.cluster, now.entity), now);
        } else if cell.read.clock == 0
            || (cell.read.cluster == now.cluster && cell.read.entity == now.entity)
            || actor.view.all.knows(
                now.cluster,
                cell.read.cluster,
                cell.read.entity,
                cell.read.clock,
            )
        {
            cell.read = now;
        } else {
            let both = HashMap::from([
                ((cell.read.cluster, cell.read.entity), cell.read),
                ((now.cluster, now.entity), now),
            ]);
            cell.readers = match free.pop() {
                Some(i) => {
                    readers[i as usize - 1] = both;
                    i
                }
                None => {
                    readers.push(both);
                    readers.len() as u32
                }
            };
        }
        return conflict;
    }
    if let Some(list) = list {
        if let Some(all) = readers.get_mut(list) {
            if conflict.is_none() {
                // The smallest entity, so that reports do not depend on the map's order.
                conflict = all
                    .values()
                    .filter(|read| !actor.ordered_after(**read, false))
                    .min_by_key(|read| (read.cluster, read.entity))
                    .map(|read| (*read, false));
            }
            all.clear();
        }
        free.push(cell.readers);
        cell.readers = 0;
    } else if conflict.is_none() && !actor.ordered_after(cell.read, false) {
        conflict = Some((cell.read, false));
    }
    cell.read = Epoch::default();
    cell.write = now;
    conflict
}
