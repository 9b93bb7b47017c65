//! Global memory: allocations with guard gaps, shared by all CTAs of a launch.

use super::heap::{HEAP, Heap};
use crate::check::clock::Foreign;
use crate::check::shadow::{Actor, Conflict, Shadow};
use crate::fault::Fault;
use axe_package::POISON;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that one lock of a launch's shadow covers.
const CHUNK: u64 = 16 * 1024;
/// Addresses between two allocations that belong to neither.
const GUARD: u64 = 64 * 1024;
const FIRST: u64 = 0x7f00_0000_0000;

/// One allocation, poisoned at first. Words are atomic since CTAs on different threads share them.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    name: String,
    words: Vec<AtomicU32>,
    written: Vec<AtomicU32>,
    freed: AtomicBool,
    /// The blocks of kernels' `malloc`, if this is their heap.
    pub(crate) heap: Option<Heap>,
}

impl Allocation {
    /// `None` when there is no memory for it.
    fn new(base: u64, bytes: u64, name: String) -> Option<Self> {
        let filled = |n: u64, word: u32| {
            let mut words = Vec::new();
            words.try_reserve_exact(usize::try_from(n).ok()?).ok()?;
            words.extend((0..n).map(|_| AtomicU32::new(word)));
            Some(words)
        };
        Some(Self {
            base,
            bytes,
            name,
            words: filled(bytes.div_ceil(4), u32::from_ne_bytes([POISON; 4]))?,
            written: filled(bytes.div_ceil(32), 0)?,
            freed: AtomicBool::new(false),
            heap: None,
        })
    }

    const fn heap(&self) -> Option<&Heap> {
        self.heap.as_ref()
    }

    fn word(&self, index: u64) -> u32 {
        self.words
            .get(index as usize)
            .map_or(0, |w| w.load(Relaxed))
    }

    pub(crate) fn load(&self, offset: u64, out: &mut [u8]) {
        if offset.is_multiple_of(4) {
            for (word, bytes) in (offset / 4..).zip(out.chunks_mut(4)) {
                bytes.copy_from_slice(&self.word(word).to_le_bytes()[..bytes.len()]);
            }
            return;
        }
        for (i, byte) in out.iter_mut().enumerate() {
            let at = offset + i as u64;
            *byte = (self.word(at / 4) >> (8 * (at % 4))) as u8;
        }
    }

    /// An aligned element of 1, 2, 4 or 8 bytes.
    pub(crate) fn load_element(&self, offset: u64, bytes: u64) -> u64 {
        let word = u64::from(self.word(offset / 4));
        match bytes {
            8 => word | u64::from(self.word(offset / 4 + 1)) << 32,
            4 => word,
            n => word >> (8 * (offset % 4)) & ((1 << (8 * n)) - 1),
        }
    }

    pub(crate) fn store_element(&self, offset: u64, bytes: u64, value: u64) {
        let at = (offset / 4) as usize;
        match bytes {
            8 => {
                self.put(at, value as u32);
                self.put(at + 1, (value >> 32) as u32);
            }
            4 => self.put(at, value as u32),
            n => {
                let shift = 8 * (offset % 4);
                let mask = (((1u64 << (8 * n)) - 1) << shift) as u32;
                let bits = (value << shift) as u32 & mask;
                if let Some(word) = self.words.get(at) {
                    let _ = word.fetch_update(Relaxed, Relaxed, |old| Some(old & !mask | bits));
                }
            }
        }
    }

    fn put(&self, at: usize, value: u32) {
        if let Some(word) = self.words.get(at) {
            word.store(value, Relaxed);
        }
    }

    pub(crate) fn store(&self, offset: u64, data: &[u8]) {
        let mut i = 0;
        while i < data.len() {
            let at = offset + i as u64;
            if at.is_multiple_of(4)
                && let Some(Ok(four)) = data.get(i..i + 4).map(<[u8; 4]>::try_from)
            {
                self.put((at / 4) as usize, u32::from_le_bytes(four));
                i += 4;
            } else {
                self.store_element(at, 1, u64::from(data[i]));
                i += 1;
            }
        }
    }

    pub(crate) fn mark_written(&self, offset: u64, n: u64) {
        for (index, bits) in flags(offset, n) {
            if let Some(word) = self.written.get(index)
                && word.load(Relaxed) & bits != bits
            {
                word.fetch_or(bits, Relaxed);
            }
        }
    }

    pub(crate) fn first_unwritten(&self, offset: u64, n: u64) -> Option<u64> {
        flags(offset, n).find_map(|(index, bits)| {
            let known = self.written.get(index).map_or(0, |w| w.load(Relaxed));
            let missing = bits & !known;
            (missing != 0).then(|| index as u64 * 32 + u64::from(missing.trailing_zeros()))
        })
    }
}

/// The words of `written` that a range of bytes has a part in, each with the range's bits.
fn flags(offset: u64, n: u64) -> impl Iterator<Item = (usize, u32)> {
    let end = offset + n;
    let words = offset / 32..end.div_ceil(32).max(offset / 32);
    words.filter_map(move |word| {
        let (from, to) = (offset.max(word * 32), end.min(word * 32 + 32));
        let bits = ((1u64 << (to.checked_sub(from)?)) - 1) << (from % 32);
        Some((word as usize, bits as u32))
    })
}

/// All allocations of a device.
#[derive(Debug, Default, Clone)]
pub(crate) struct GlobalMemory {
    /// Sorted by base address.
    allocations: Vec<Arc<Allocation>>,
}

impl GlobalMemory {
    pub(crate) fn alloc(&mut self, bytes: u64, name: String) -> Result<u64, Fault> {
        self.add(bytes, name, None)
    }

    /// Makes the heap of kernels' `malloc`, unless there is one.
    pub(crate) fn make_heap(&mut self) -> Result<(), Fault> {
        if self.heap().is_none() {
            self.add(HEAP, "heap".into(), Some(Heap::default()))?;
        }
        Ok(())
    }

    /// The heap and its allocation.
    pub(crate) fn heap(&self) -> Option<(&Allocation, &Heap)> {
        let heap = |a| Option::zip(Some(a), Allocation::heap(a));
        self.allocations.iter().find_map(|a| heap(a.as_ref()))
    }

    fn add(&mut self, bytes: u64, name: String, heap: Option<Heap>) -> Result<u64, Fault> {
        let base = self
            .allocations
            .last()
            .map_or(FIRST, |a| (a.base + a.bytes + GUARD).next_multiple_of(4096));
        let too_large = || Fault::Invalid(format!("no memory for an allocation of {bytes} bytes"));
        if bytes > 1 << 40 {
            return Err(too_large());
        }
        let mut made = Allocation::new(base, bytes, name).ok_or_else(too_large)?;
        made.heap = heap;
        self.allocations.push(Arc::new(made));
        Ok(base)
    }

    pub(crate) fn free(&mut self, base: u64) -> Result<(), Fault> {
        match self
            .allocations
            .iter()
            .find(|a| a.base == base && !a.freed.load(Relaxed))
        {
            Some(a) => {
                a.freed.store(true, Relaxed);
                Ok(())
            }
            None => Err(Fault::Invalid(format!(
                "free of {base:#x}, which is no allocation"
            ))),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Arc<Allocation>> {
        self.allocations.get(index)
    }

    /// Index of the allocation that holds all of `[addr, addr + n)`.
    pub(crate) fn find(&self, addr: u64, n: u64) -> Result<usize, Fault> {
        let i = self.allocations.partition_point(|a| a.base <= addr);
        let at = i
            .checked_sub(1)
            .and_then(|i| self.allocations.get(i).map(|a| (i, a)));
        if let Some((i, a)) = at
            && addr - a.base < a.bytes
            && n <= a.bytes - (addr - a.base)
            && !a.freed.load(Relaxed)
        {
            let outside = a.heap.as_ref().and_then(|h| h.outside(addr - a.base, n));
            let fault = |detail| Fault::OutOfBounds {
                addr,
                bytes: n,
                detail,
            };
            return outside.map_or(Ok(i), |detail| Err(fault(detail)));
        }
        Err(self.out_of_bounds(addr, n, at.map(|(_, a)| a.as_ref())))
    }

    fn out_of_bounds(&self, addr: u64, bytes: u64, below: Option<&Allocation>) -> Fault {
        let detail = match below {
            _ if addr < 1 << 16 => "a null pointer plus an offset".to_string(),
            None => "no allocation is near".to_string(),
            Some(a) if a.freed.load(Relaxed) && addr - a.base < a.bytes => {
                format!("use after free of `{}` ({} bytes)", a.name, a.bytes)
            }
            Some(a) if addr - a.base < a.bytes + GUARD => format!(
                "{} bytes past the start of `{}`, which has {} bytes",
                addr - a.base,
                a.name,
                a.bytes
            ),
            Some(_) => "no allocation is near".to_string(),
        };
        Fault::OutOfBounds {
            addr,
            bytes,
            detail,
        }
    }

    /// What lies at an address, for reports.
    pub(crate) fn describe(&self, addr: u64) -> String {
        match self.find(addr, 1).ok().and_then(|i| self.get(i)) {
            Some(a) => match &a.heap {
                Some(heap) => heap.describe(addr - a.base),
                None => format!("`{}` + {}", a.name, addr - a.base),
            },
            None => format!("{addr:#x}"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks over global memory during one launch.
#[derive(Debug, Default)]
pub(crate) struct GlobalChecks {
    /// Allocation index and chunk number to shadow, in shards.
    chunks: Vec<Mutex<HashMap<(u32, u64), Shadow>>>,
    /// What releases to an address published.
    sync: Mutex<HashMap<u64, Foreign>>,
}

impl GlobalChecks {
    pub(crate) fn new() -> Self {
        Self {
            chunks: (0..64).map(|_| Mutex::default()).collect(),
            sync: Mutex::default(),
        }
    }

    pub(crate) fn access(
        &self,
        index: usize,
        offset: u64,
        n: u64,
        write: bool,
        actor: &Actor<'_>,
    ) -> Option<Conflict> {
        let mut at = offset;
        let mut found = None;
        while at < offset + n {
            let chunk = at / CHUNK;
            let end = (offset + n).min((chunk + 1) * CHUNK);
            let shard =
                (chunk as usize).wrapping_mul(7).wrapping_add(index) % self.chunks.len().max(1);
            if let Some(shard) = self.chunks.get(shard) {
                let mut shard = lock(shard);
                let shadow = shard
                    .entry((index as u32, chunk))
                    .or_insert_with(|| Shadow::new(CHUNK as usize));
                let conflict = shadow.access(at - chunk * CHUNK, end - at, write, actor);
                found = found.or(conflict.map(|c| Conflict {
                    at: c.at + chunk * CHUNK,
                    ..c
                }));
            }
            at = end;
        }
        found
    }

    pub(crate) fn publish(&self, addr: u64, clock: &Foreign) {
        lock(&self.sync).entry(addr).or_default().join(clock);
    }

    pub(crate) fn published(&self, addr: u64) -> Option<Foreign> {
        lock(&self.sync).get(&addr).cloned()
    }
}

/// Atomic operations of the whole device happen one at a time per address.
#[derive(Debug)]
pub(crate) struct AtomicLocks(Vec<Mutex<()>>);

impl AtomicLocks {
    pub(crate) fn new() -> Self {
        Self((0..64).map(|_| Mutex::default()).collect())
    }

    pub(crate) fn with<T>(&self, addr: u64, f: impl FnOnce() -> T) -> T {
        let shard = self.0.get((addr / 16) as usize % self.0.len().max(1));
        let _held = shard.map(lock);
        f()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_machine_has_is_refused() {
        assert!(Allocation::new(FIRST, 1 << 60, "x".into()).is_none());
        let mut memory = GlobalMemory::default();
        let refused = memory.alloc(u64::MAX, "x".into()).unwrap_err();
        assert!(refused.to_string().contains("no memory"), "{refused}");
        assert_eq!(memory.alloc(4, "x".into()), Ok(FIRST));
    }
}
