//! Blackwell's tensor memory: allocation, `tcgen05.ld`, `tcgen05.st` and `tcgen05.cp`
//! (PTX ISA 9.7.16.1, 9.7.16.2 and 9.7.16.8).
//!
//! 128 lanes of 512 columns of 32 bits. An address has the lane in bits 16 to 31 and the column below.
//! Nothing here was run on a GPU: the layouts are those of PTX ISA's figures and of CUTLASS's
//! `copy_traits_sm100.hpp`.

use super::Bytes;
use super::mma::Warp;
use super::wgmma::Descriptor;
use crate::fault::Fault;
use std::ops::Range;

/// Lanes.
pub const LANES: usize = 128;
/// Columns.
pub const COLUMNS: usize = 512;

/// The tensor memory of one CTA's SM.
#[derive(Debug, Clone)]
pub struct TensorMemory {
    words: Vec<u32>,
    written: Vec<bool>,
    /// Allocation that owns each column, by its first column.
    owner: [Option<usize>; COLUMNS],
    relinquished: bool,
}

impl Default for TensorMemory {
    fn default() -> Self {
        Self {
            words: vec![0; LANES * COLUMNS],
            written: vec![false; LANES * COLUMNS],
            owner: [None; COLUMNS],
            relinquished: false,
        }
    }
}

/// Shapes of `tcgen05.ld` and `tcgen05.st`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// `.32x32b`: thread t has lane t; registers run along columns.
    L32x32b,
    /// `.16x64b`: two columns a repetition.
    L16x64b,
    /// `.16x128b`: four columns a repetition, two registers.
    L16x128b,
    /// `.16x256b`: eight columns a repetition, four registers.
    L16x256b,
    /// `.16x32bx2`: threads 16 to 31 take the same lanes at a column offset.
    L16x32bx2(u32),
}

impl Access {
    /// Registers a thread for one repetition.
    #[must_use]
    pub const fn registers(self) -> usize {
        match self {
            Self::L16x128b => 2,
            Self::L16x256b => 4,
            _ => 1,
        }
    }

    /// Rectangles of lanes and columns that a warp accesses.
    #[must_use]
    pub fn rectangles(
        self,
        repeat: usize,
        packed: bool,
        address: u32,
    ) -> Vec<(Range<usize>, Range<usize>)> {
        let (lane, column) = (address as usize >> 16, address as usize & 0xffff);
        let (lanes, width) = match self {
            Self::L32x32b => (32, 1),
            Self::L16x64b => (16, 2),
            Self::L16x128b => (16, 4),
            Self::L16x256b => (16, 8),
            Self::L16x32bx2(_) => (16, 1),
        };
        let count = width * repeat * if packed { 2 } else { 1 };
        let mut all = vec![(lane..lane + lanes, column..column + count)];
        if let Self::L16x32bx2(offset) = self {
            let second = column + offset as usize;
            all.push((lane..lane + lanes, second..second + count));
        }
        all
    }

    /// Lane (from the address's lane) and column (from the address's column) of register `r` of
    /// thread `t`.
    #[must_use]
    pub const fn position(self, t: usize, r: usize) -> (usize, usize) {
        match self {
            Self::L32x32b => (t, r),
            Self::L16x64b => (t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2),
            Self::L16x128b => (t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4),
            Self::L16x256b => (t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2),
            Self::L16x32bx2(offset) => (t % 16, r + (t / 16) * offset as usize),
        }
    }
}

/// Shapes of `tcgen05.cp`, with the warps that get a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CopyShape {
    L128x256b,
    L4x256b,
    L128x128b,
    /// `.64x128b.warpx2::02_13`: lanes 0-31 also to 64-95, 32-63 also to 96-127.
    L64x128bPairs,
    /// `.64x128b.warpx2::01_23`: lanes 0-31 also to 32-63, the rest to 64-127.
    L64x128bHalves,
    /// `.32x128b.warpx4`: to all four quarters.
    L32x128bAll,
}

impl CopyShape {
    /// Rectangles of lanes and columns that a copy writes.
    #[must_use]
    pub fn rectangles(self, address: u32) -> Vec<(Range<usize>, Range<usize>)> {
        let (lane, column) = (address as usize >> 16, address as usize & 0xffff);
        match self {
            Self::L128x256b => vec![(lane..lane + 128, column..column + 8)],
            Self::L4x256b => (0..4)
                .map(|q| (lane + 32 * q..lane + 32 * q + 1, column..column + 8))
                .collect(),
            _ => vec![(lane..lane + 128, column..column + 4)],
        }
    }
}

impl TensorMemory {
    /// `tcgen05.alloc`: the first column of a free run, or `None` if the instruction must wait.
    ///
    /// # Errors
    /// [`Fault::Invalid`] unless `columns` is a power of two from 32 to 512, and after
    /// `relinquish_alloc_permit`.
    pub fn allocate(&mut self, columns: u32) -> Result<Option<u32>, Fault> {
        let n = columns as usize;
        if !n.is_power_of_two() || !(32..=COLUMNS).contains(&n) {
            return Err(Fault::Invalid(format!(
                "tcgen05.alloc of {columns} columns; powers of two from 32 to 512 are valid"
            )));
        }
        if self.relinquished {
            return Err(Fault::Invalid(
                "tcgen05.alloc after tcgen05.relinquish_alloc_permit".into(),
            ));
        }
        let start = (0..COLUMNS)
            .step_by(n)
            .find(|s| self.owner[*s..*s + n].iter().all(Option::is_none));
        if let Some(start) = start {
            self.owner[start..start + n].fill(Some(start));
            for lane in 0..LANES {
                self.written[lane * COLUMNS + start..lane * COLUMNS + start + n].fill(false);
            }
        }
        Ok(start.map(|s| s as u32))
    }

    /// `tcgen05.dealloc`.
    ///
    /// # Errors
    /// [`Fault::Invalid`] if no allocation of exactly these columns starts at `address`.
    pub fn deallocate(&mut self, address: u32, columns: u32) -> Result<(), Fault> {
        let (start, n) = (address as usize, columns as usize);
        let end = start.saturating_add(n).min(COLUMNS);
        let owned = start < COLUMNS && self.owner[start..end].iter().all(|o| *o == Some(start));
        let exact = self.owner.iter().filter(|o| **o == Some(start)).count() == n;
        if !owned || !exact || n == 0 {
            return Err(Fault::Invalid(format!(
                "tcgen05.dealloc of {columns} columns at {address:#x}, which is no allocation"
            )));
        }
        self.owner[start..end].fill(None);
        Ok(())
    }

    /// `tcgen05.relinquish_alloc_permit`.
    pub const fn relinquish(&mut self) {
        self.relinquished = true;
    }

    /// Columns still allocated; a kernel must free all before it exits.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.owner.iter().flatten().count()
    }

    fn index(&self, lane: usize, column: usize) -> Result<usize, Fault> {
        let owned = self.owner.get(column).is_some_and(Option::is_some);
        if lane >= LANES || !owned {
            return Err(Fault::OutOfBounds {
                addr: (lane as u64) << 16 | column as u64,
                bytes: 4,
                detail: "tensor memory that is not allocated".into(),
            });
        }
        Ok(lane * COLUMNS + column)
    }

    /// One 32-bit cell.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] outside every allocation, [`Fault::Unwritten`] before a write.
    pub fn get(&self, lane: usize, column: usize) -> Result<u32, Fault> {
        let at = self.index(lane, column)?;
        if self.written[at] {
            return Ok(self.words[at]);
        }
        Err(Fault::Unwritten {
            addr: (lane as u64) << 16 | column as u64,
            bytes: 4,
        })
    }

    /// One 32-bit cell, written or not.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] outside every allocation.
    pub fn read(&self, lane: usize, column: usize) -> Result<u32, Fault> {
        Ok(self.words[self.index(lane, column)?])
    }

    /// First cell of a rectangle that nothing has written since its columns were allocated.
    #[must_use]
    pub fn first_unwritten(
        &self,
        lanes: Range<usize>,
        columns: Range<usize>,
    ) -> Option<(usize, usize)> {
        let columns = columns.start.min(COLUMNS)..columns.end.min(COLUMNS);
        (lanes.start..lanes.end.min(LANES)).find_map(|lane| {
            let row = &self.written[lane * COLUMNS..][..COLUMNS];
            let at = row[columns.clone()].iter().position(|written| !written)?;
            Some((lane, columns.start + at))
        })
    }

    /// Sets one 32-bit cell.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`] outside every allocation.
    pub fn set(&mut self, lane: usize, column: usize, word: u32) -> Result<(), Fault> {
        let at = self.index(lane, column)?;
        self.words[at] = word;
        self.written[at] = true;
        Ok(())
    }

    /// `tcgen05.ld`: `repeat` is the `.xN`; `pack` joins the halves of adjacent columns (`.pack::16b`).
    /// `warp` is the warp's index in its warpgroup, which may only touch its own 32 lanes.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for foreign lanes, and as [`TensorMemory::read`].
    pub fn load(
        &self,
        access: Access,
        repeat: usize,
        pack: bool,
        warp: usize,
        address: u32,
    ) -> Result<Vec<Warp<u32>>, Fault> {
        let count = access.registers() * repeat;
        let (lane, column) = own_lanes(access, warp, address)?;
        let mut out = vec![[0; 32]; count];
        for (r, register) in out.iter_mut().enumerate() {
            for (t, word) in register.iter_mut().enumerate() {
                if pack {
                    let (l, c) = access.position(t, 2 * r);
                    let (l2, c2) = access.position(t, 2 * r + 1);
                    let low = self.read(lane + l, column + c)? & 0xffff;
                    *word = low | self.read(lane + l2, column + c2)? << 16;
                } else {
                    let (l, c) = access.position(t, r);
                    *word = self.read(lane + l, column + c)?;
                }
            }
        }
        Ok(out)
    }

    /// `tcgen05.st`; `unpack` is `.unpack::16b`.
    ///
    /// # Errors
    /// As [`TensorMemory::load`].
    pub fn store(
        &mut self,
        access: Access,
        unpack: bool,
        warp: usize,
        address: u32,
        registers: &[Warp<u32>],
    ) -> Result<(), Fault> {
        let (lane, column) = own_lanes(access, warp, address)?;
        for (r, register) in registers.iter().enumerate() {
            for (t, &word) in register.iter().enumerate() {
                if unpack {
                    for half in 0..2 {
                        let (l, c) = access.position(t, 2 * r + half);
                        self.set(lane + l, column + c, word >> (16 * half) & 0xffff)?;
                    }
                } else {
                    let (l, c) = access.position(t, r);
                    self.set(lane + l, column + c, word)?;
                }
            }
        }
        Ok(())
    }

    /// `tcgen05.cp` from the matrix that a shared-memory descriptor names.
    ///
    /// # Errors
    /// As [`TensorMemory::set`], and what `shared` reports.
    pub fn copy(
        &mut self,
        shape: CopyShape,
        shared: &mut dyn Bytes,
        descriptor: Descriptor,
        address: u32,
    ) -> Result<(), Fault> {
        use CopyShape as S;
        let (rows, units) = match shape {
            S::L128x256b => (128, 2),
            S::L4x256b => (4, 2),
            S::L128x128b => (128, 1),
            S::L64x128bPairs | S::L64x128bHalves => (64, 1),
            S::L32x128bAll => (32, 1),
        };
        let (first, column) = (address as usize >> 16, address as usize & 0xffff);
        for row in 0..rows {
            let lanes: Vec<usize> = match shape {
                S::L64x128bPairs => vec![row, row + 64],
                S::L64x128bHalves => vec![row % 32 + row / 32 * 64, row % 32 + row / 32 * 64 + 32],
                S::L32x128bAll => (0..4).map(|q| row + 32 * q).collect(),
                // `.4x256b` fills one lane of each warp's quarter.
                S::L4x256b => vec![row * 32],
                _ => vec![row],
            };
            for unit in 0..units {
                let mut bytes = [0u8; 16];
                shared.read(
                    descriptor.address(false, row as u64, unit as u64),
                    &mut bytes,
                )?;
                for (i, b) in bytes.chunks_exact(4).enumerate() {
                    let word = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                    for lane in &lanes {
                        self.set(first + lane, column + 4 * unit + i, word)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A warp reaches only lanes `32 (warp % 4)` to `+ 31` (PTX ISA 9.7.16.2.3.1).
fn own_lanes(access: Access, warp: usize, address: u32) -> Result<(usize, usize), Fault> {
    let (lane, column) = (address as usize >> 16, address as usize & 0xffff);
    let first = 32 * (warp % 4);
    let lanes = if access == Access::L32x32b { 32 } else { 16 };
    if lane < first || lane + lanes > first + 32 {
        return Err(Fault::Invalid(format!(
            "warp {} of its warpgroup accesses tensor memory lanes {lane} to {}; its own are {first} to {}",
            warp % 4,
            lane + lanes - 1,
            first + 31
        )));
    }
    Ok((lane, column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::swizzle::Swizzle;
    use crate::units::testing::Flat;

    fn filled() -> TensorMemory {
        let mut t = TensorMemory::default();
        assert_eq!(t.allocate(512).unwrap(), Some(0));
        for lane in 0..LANES {
            for column in 0..COLUMNS {
                t.set(lane, column, (lane * 1000 + column) as u32).unwrap();
            }
        }
        t
    }

    #[test]
    fn allocation_and_its_misuse() {
        let mut t = TensorMemory::default();
        assert!(t.allocate(48).is_err() && t.allocate(16).is_err() && t.allocate(1024).is_err());
        let a = t.allocate(256).unwrap().unwrap();
        let b = t.allocate(128).unwrap().unwrap();
        assert_eq!(t.allocate(256).unwrap(), None);
        assert!(t.deallocate(a, 128).is_err() && t.deallocate(a + 32, 128).is_err());
        t.deallocate(a, 256).unwrap();
        assert!(t.deallocate(a, 256).is_err());
        assert_eq!(t.allocated(), 128);
        assert!(matches!(t.get(0, b as usize), Err(Fault::Unwritten { .. })));
        assert!(matches!(
            t.get(0, a as usize),
            Err(Fault::OutOfBounds { .. })
        ));
        t.relinquish();
        assert!(t.allocate(32).is_err());
        assert!(t.deallocate(u32::MAX, u32::MAX).is_err());
    }

    #[test]
    fn every_shape_covers_its_rectangle_once() {
        for (access, lanes, width) in [
            (Access::L32x32b, 32, 1),
            (Access::L16x64b, 16, 2),
            (Access::L16x128b, 16, 4),
            (Access::L16x256b, 16, 8),
            (Access::L16x32bx2(4), 16, 1),
        ] {
            let mut seen = std::collections::BTreeSet::new();
            let count = access.registers() * 4;
            for t in 0..32 {
                for r in 0..count {
                    assert!(seen.insert(access.position(t, r)));
                }
            }
            let columns = if access == Access::L16x32bx2(4) {
                8
            } else {
                width * 4
            };
            let all = (0..lanes).flat_map(|l| (0..columns).map(move |c| (l, c)));
            assert!(seen.into_iter().eq(all), "{access:?}");
        }
    }

    #[test]
    fn loads_undo_stores_within_the_own_lanes() {
        for access in [
            Access::L32x32b,
            Access::L16x64b,
            Access::L16x128b,
            Access::L16x256b,
        ] {
            let t = filled();
            let regs = t.load(access, 4, false, 2, 64 << 16 | 32).unwrap();
            let (lane, column) = access.position(5, 1);
            assert_eq!(regs[1][5] as usize, (64 + lane) * 1000 + 32 + column);
            let mut u = TensorMemory::default();
            u.allocate(512).unwrap();
            u.store(access, false, 2, 64 << 16 | 32, &regs).unwrap();
            assert_eq!(u.load(access, 4, false, 2, 64 << 16 | 32).unwrap(), regs);
            assert!(matches!(
                t.load(access, 1, false, 1, 64 << 16),
                Err(Fault::Invalid(_))
            ));
        }
        let packed = filled().load(Access::L32x32b, 1, true, 0, 0).unwrap();
        assert_eq!(packed[0][3], 3000 | 3001 << 16);
        let mut u = TensorMemory::default();
        u.allocate(32).unwrap();
        u.store(Access::L32x32b, true, 0, 0, &packed).unwrap();
        assert_eq!(u.get(3, 1).unwrap(), 3001);
    }

    #[test]
    fn copies_from_shared_memory() {
        let mut shared = Flat::new(1 << 16);
        for (i, b) in shared.0.chunks_exact_mut(4).enumerate() {
            b.copy_from_slice(&(i as u32).to_le_bytes());
        }
        let d = Descriptor {
            start: 0,
            leading: 128 * 16,
            stride: 128,
            base_offset: 0,
            swizzle: Swizzle::None,
        };
        let mut t = TensorMemory::default();
        t.allocate(64).unwrap();
        t.copy(CopyShape::L32x128bAll, &mut shared, d, 4).unwrap();
        for quarter in 0..4 {
            assert_eq!(t.get(32 * quarter + 9, 6).unwrap(), 9 * 4 + 2);
        }
        t.copy(CopyShape::L128x256b, &mut shared, d, 8).unwrap();
        assert_eq!(t.get(100, 8 + 5).unwrap(), 512 + 100 * 4 + 1);
        t.copy(CopyShape::L64x128bHalves, &mut shared, d, 0)
            .unwrap();
        assert_eq!(t.get(32 + 7, 0).unwrap(), t.get(7, 0).unwrap());
        assert_eq!(t.get(64 + 7, 0).unwrap(), 39 * 4);
        assert!(t.copy(CopyShape::L128x128b, &mut shared, d, 62).is_err());
    }
}
