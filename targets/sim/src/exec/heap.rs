//! The heap of `malloc` and `free` in a kernel (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation").

use crate::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of the heap: four times CUDA's default, since what is freed is not given out again.
pub(crate) const HEAP: u64 = 32 << 20;
/// Bytes between two blocks that belong to neither.
const GAP: u64 = 64;

#[derive(Debug, Clone, Copy)]
struct Block {
    bytes: u64,
    freed: bool,
}

/// Blocks by their offset in the heap's allocation.
#[derive(Debug, Default)]
pub(crate) struct Heap(Mutex<BTreeMap<u64, Block>>);

impl Heap {
    fn blocks(&self) -> MutexGuard<'_, BTreeMap<u64, Block>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offset of a new block; `None` when the heap is full.
    pub(crate) fn take(&self, bytes: u64) -> Option<u64> {
        let mut blocks = self.blocks();
        let end = (blocks.last_key_value()).map_or(0, |(at, b)| at + b.bytes + GAP);
        let at = end.next_multiple_of(16);
        if bytes == 0 || bytes > HEAP || at + bytes > HEAP {
            return None;
        }
        blocks.insert(
            at,
            Block {
                bytes,
                freed: false,
            },
        );
        Some(at)
    }

    /// Frees the block at `offset`.
    pub(crate) fn give(&self, offset: u64) -> Result<(), Fault> {
        match self.blocks().get_mut(&offset) {
            Some(block) if !block.freed => {
                block.freed = true;
                Ok(())
            }
            Some(_) => Err(Fault::Invalid("free of a block that is free".into())),
            None => Err(Fault::Invalid(
                "free of an address that malloc did not return".into(),
            )),
        }
    }

    /// Why `[offset, offset + bytes)` is not inside a block, if it is not.
    pub(crate) fn outside(&self, offset: u64, bytes: u64) -> Option<String> {
        let blocks = self.blocks();
        let Some((&at, block)) = blocks.range(..=offset).next_back() else {
            return Some("no block of the heap is there".into());
        };
        if block.freed && offset - at < block.bytes {
            return Some(format!(
                "use after free of a block of {} bytes",
                block.bytes
            ));
        }
        (offset - at + bytes > block.bytes).then(|| {
            let past = offset - at;
            format!(
                "{past} bytes past the start of a block of {} bytes from malloc",
                block.bytes
            )
        })
    }

    /// The block that holds `offset`, in words.
    pub(crate) fn describe(&self, offset: u64) -> String {
        match self.blocks().range(..=offset).next_back() {
            Some((at, block)) => {
                format!(
                    "block of {} bytes from malloc + {}",
                    block.bytes,
                    offset - at
                )
            }
            None => format!("heap + {offset}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_bounds_and_one_life() {
        let heap = Heap::default();
        let (a, b) = (heap.take(10).unwrap(), heap.take(4).unwrap());
        assert!(b >= a + 10 + GAP && b % 16 == 0);
        assert_eq!(heap.outside(a, 10), None);
        assert!(heap.outside(a + 8, 4).unwrap().contains("8 bytes past"));
        assert!(heap.outside(b + 4, 1).is_some());
        heap.give(a).unwrap();
        assert!(heap.outside(a, 1).unwrap().contains("use after free"));
        assert!(heap.give(a).is_err() && heap.give(b + 1).is_err());
        assert_eq!(heap.take(0), None);
        assert_eq!(heap.take(HEAP), None);
    }
}
