//! Accesses: the addresses that the lanes of a warp ask for with one instruction.

use crate::axis::{Axis, WARP};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::linear::{Table, table_of_layout};
use crate::swizzle::Swizzle;

/// Bytes of the widest access of a lane (PTX ISA, "Vectors as Operands": `.v4.b32`).
pub(super) const MAX_BYTES: i64 = 16;

/// One instruction of a warp on memory: so many bytes a lane, at one byte address a lane.
///
/// Addresses count from a base that is aligned to 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WarpAccess {
    bytes: i64,
    addresses: Vec<Option<i64>>,
}

impl WarpAccess {
    /// An access of `bytes` a lane at `addresses`, one for each lane, none for a lane that is switched
    /// off.
    ///
    /// # Errors
    /// `Invalid` unless `bytes` is 1, 2, 4, 8 or 16, there are 1 to 32 lanes, and each address is a
    /// multiple of `bytes`, as the hardware demands (PTX ISA, "Addresses as Operands"); `Overflow` at the
    /// end of 64 bits.
    pub fn new(bytes: i64, addresses: Vec<Option<i64>>) -> Result<Self> {
        check_bytes(bytes, "bytes a lane")?;
        if !(1..=WARP).contains(&addresses.len()) {
            return Err(Error::invalid(format!(
                "a warp access: expected 1 to {WARP} lanes, got {}",
                addresses.len()
            )));
        }
        for (lane, address) in addresses.iter().enumerate() {
            let Some(address) = address else { continue };
            if address % bytes != 0 {
                return Err(Error::invalid(format!(
                    "a warp access: byte address {address} of lane {lane} is no multiple of the {bytes} \
                     bytes accessed"
                )));
            }
            if address.checked_add(bytes).is_none() {
                return Err(Error::overflow("the end of a warp access"));
            }
        }
        Ok(Self { bytes, addresses })
    }

    /// Bytes a lane: 1, 2, 4, 8 or 16.
    #[must_use]
    pub const fn bytes(&self) -> i64 {
        self.bytes
    }

    /// The byte address of each lane.
    #[must_use]
    pub fn addresses(&self) -> &[Option<i64>] {
        &self.addresses
    }
}

fn check_bytes(bytes: i64, what: &str) -> Result<()> {
    if (1..=MAX_BYTES).contains(&bytes) && bytes & (bytes - 1) == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what}: expected 1, 2, 4, 8 or 16, got {bytes}"
    )))
}

/// One instruction of a warp on a tile whose swizzle may still be chosen: element addresses on `m`
/// before any swizzle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileAccess {
    elem_bytes: i64,
    vector: i64,
    addresses: Vec<Option<i64>>,
}

impl TileAccess {
    /// Each lane accesses `vector` elements of `elem_bytes` from an element address on.
    ///
    /// # Errors
    /// `Invalid` unless elements have 1, 2, 4, 8 or 16 bytes, `vector` elements have too, there are 1
    /// to 32 lanes and each address is a multiple of `vector`; `Overflow`.
    pub fn new(elem_bytes: i64, vector: i64, addresses: Vec<Option<i64>>) -> Result<Self> {
        check_bytes(elem_bytes, "bytes of an element")?;
        let bytes = elem_bytes.checked_mul(vector).unwrap_or(0);
        check_bytes(bytes, "bytes of a vector")?;
        let access = Self {
            elem_bytes,
            vector,
            addresses,
        };
        access.warp(None).map(|_| access)
    }

    /// Each lane accesses `vector` elements of `tile` from its coordinate in `shape` on, along dimension
    /// `dim`. The tile's own swizzle is left aside: [`TileAccess::warp`] takes one.
    ///
    /// # Errors
    /// As [`TileAccess::new`]; `Invalid` for coordinates outside; `None` when the elements of a vector do
    /// not lie side by side; `Unsupported` when replicas on `m` leave open which copy is meant.
    pub fn at(
        tile: &Layout,
        shape: &[i64],
        coords: &[Vec<i64>],
        dim: usize,
        vector: i64,
        elem_bytes: i64,
    ) -> Result<Self> {
        check_one_copy(tile)?;
        if dim >= shape.len() {
            return Err(Error::invalid(format!(
                "dimension of a vector: expected 0 to {}, got {dim}",
                shape.len().saturating_sub(1)
            )));
        }
        let address = |coord: &[i64]| -> Result<i64> {
            Ok(tile.origin(tile.index_of(shape, coord)?)?.get(Axis::M))
        };
        let mut addresses = Vec::with_capacity(coords.len());
        for (lane, coord) in coords.iter().enumerate() {
            let first = address(coord)?;
            let mut next = coord.clone();
            for element in 1..vector.min(MAX_BYTES) {
                if let Some(c) = next.get_mut(dim) {
                    *c += 1;
                }
                check_neighbour(lane, first, element, address(&next)?)?;
            }
            addresses.push(Some(first));
        }
        Self::new(elem_bytes, vector, addresses)
    }

    /// Elements that each lane accesses.
    #[must_use]
    pub const fn vector(&self) -> i64 {
        self.vector
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn elem_bytes(&self) -> i64 {
        self.elem_bytes
    }

    /// The element address of each lane.
    #[must_use]
    pub fn addresses(&self) -> &[Option<i64>] {
        &self.addresses
    }

    /// The access in bytes, when the tile is swizzled so.
    ///
    /// # Errors
    /// `Invalid` when the swizzle keeps fewer elements together than a vector has; `Overflow`.
    pub fn warp(&self, swizzle: Option<Swizzle>) -> Result<WarpAccess> {
        if let Some(swizzle) = swizzle.filter(|s| !s.is_identity())
            && 1 << swizzle.base() < self.vector
        {
            return Err(Error::invalid(format!(
                "a swizzle that keeps {} elements together tears vectors of {} apart",
                1_i64 << swizzle.base(),
                self.vector
            )));
        }
        let byte = |address: &Option<i64>| match address {
            None => Ok(None),
            Some(address) => swizzle
                .map_or(*address, |s| s.apply(*address))
                .checked_mul(self.elem_bytes)
                .map(Some)
                .ok_or_else(|| Error::overflow("a byte address")),
        };
        let addresses = self.addresses.iter().map(byte).collect::<Result<_>>()?;
        WarpAccess::new(self.elem_bytes * self.vector, addresses)
    }
}

fn check_one_copy(tile: &Layout) -> Result<()> {
    let moves = |i: &crate::Iter| i.axis == Axis::M && i.extent > 1 && i.stride != 0;
    if tile.replica().iter().any(moves) {
        return Err(Error::unsupported(
            "an access to a tile with replicas on m: which copy a lane means is open",
        ));
    }
    Ok(())
}

fn check_neighbour(lane: usize, first: i64, element: i64, at: i64) -> Result<()> {
    if first.checked_add(element) == Some(at) {
        return Ok(());
    }
    Err(Error::none(format!(
        "no vector: element {element} of lane {lane} is at {at}, not at {first} + {element}"
    )))
}

/// The accesses by which the threads of `threads` load or store a tile in memory: for each warp, one
/// access for every `vector` registers; without `vector`, with the widest that all lanes can use.
///
/// `threads` maps the tile to the axes `lane` and `reg` (and no others), `memory` maps the same tile to
/// `m`; 32 lanes from a multiple of 32 on are a warp. Registers without an element switch a lane off.
///
/// # Errors
/// `Invalid` when the sizes differ, for other axes, as [`table_of_layout`] and as [`TileAccess::new`];
/// `None` when the elements of `vector` registers do not lie side by side in memory; `Unsupported` for
/// replicas on `m`.
pub fn tile_accesses(
    threads: &Layout,
    (lane, reg): (Axis, Axis),
    memory: &Layout,
    vector: Option<i64>,
    elem_bytes: i64,
) -> Result<Vec<TileAccess>> {
    check_one_copy(memory)?;
    memory.check_shape(&[threads.size()], "tile of the threads")?;
    let count = |axis: Axis| -> Result<usize> {
        usize::try_from(threads.cosize(axis)?).map_err(|_| Error::overflow("a number of lanes"))
    };
    let table = table_of_layout(threads, (reg, count(reg)?), (lane, count(lane)?))?;
    if let Some(vector) = vector {
        return vector_accesses(&table, memory, vector, elem_bytes);
    }
    check_bytes(elem_bytes, "bytes of an element")?;
    let mut vector = MAX_BYTES / elem_bytes;
    loop {
        match vector_accesses(&table, memory, vector, elem_bytes) {
            Err(_) if vector > 1 => vector /= 2,
            found => return found,
        }
    }
}

fn vector_accesses(
    table: &Table,
    memory: &Layout,
    vector: i64,
    elem_bytes: i64,
) -> Result<Vec<TileAccess>> {
    check_bytes(elem_bytes, "bytes of an element")?;
    check_bytes(
        elem_bytes.checked_mul(vector).unwrap_or(0),
        "bytes of a vector",
    )?;
    let step = usize::try_from(vector).map_err(|_| Error::overflow("a vector"))?;
    let registers = table.first().map_or(0, Vec::len);
    let mut accesses = Vec::new();
    for warp in table.chunks(WARP) {
        for first in (0..registers).step_by(step) {
            let addresses = gather(memory, warp, first..first.saturating_add(step))?;
            accesses.push(TileAccess::new(elem_bytes, vector, addresses)?);
        }
    }
    Ok(accesses)
}

/// The address of the first of these registers in each lane, when the others follow it.
fn gather(
    memory: &Layout,
    warp: &[Vec<Option<u64>>],
    registers: std::ops::Range<usize>,
) -> Result<Vec<Option<i64>>> {
    let mut addresses = Vec::with_capacity(warp.len());
    for (lane, held) in warp.iter().enumerate() {
        let held = registers.clone().map(|r| held.get(r).copied().flatten());
        let mut first: Option<i64> = None;
        for (element, index) in (0_i64..).zip(held) {
            let at = match index {
                Some(index) => {
                    let index = i64::try_from(index).map_err(|_| Error::overflow("an index"))?;
                    Some(memory.origin(index)?.get(Axis::M))
                }
                None => None,
            };
            match (element, first, at) {
                (0, _, at) => first = at,
                (_, None, None) => {}
                (_, Some(first), Some(at)) => check_neighbour(lane, first, element, at)?,
                _ => {
                    return Err(Error::none(format!(
                        "no vector: some of the registers {} to {} of lane {lane} hold no element",
                        registers.start,
                        registers.end - 1
                    )));
                }
            }
        }
        addresses.push(first);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::tests::{axis, parse};

    #[test]
    fn malformed_accesses_are_errors() {
        for (bytes, lanes) in [
            (3, vec![Some(0)]),
            (32, vec![Some(0)]),
            (4, vec![Some(2)]),
            (4, vec![]),
            (4, vec![None; 33]),
        ] {
            assert_eq!(
                WarpAccess::new(bytes, lanes).unwrap_err().kind(),
                Kind::Invalid
            );
        }
        let end = vec![Some(i64::MAX - 15)];
        assert_eq!(WarpAccess::new(16, end).unwrap_err().kind(), Kind::Overflow);
        let far = vec![Some(i64::MAX / 2 + 1)];
        assert_eq!(
            TileAccess::new(4, 1, far).unwrap_err().kind(),
            Kind::Overflow
        );
        assert!(TileAccess::new(4, 8, vec![Some(0)]).is_err());
        assert!(TileAccess::new(i64::MAX, i64::MAX, vec![Some(0)]).is_err());
    }

    #[test]
    fn vectors_must_lie_side_by_side() {
        let tile = parse("S[(8, 16) : (16, 1)]");
        let at = |tile: &Layout, coord: [i64; 2], dim| {
            TileAccess::at(tile, &[8, 16], &[coord.to_vec()], dim, 4, 4)
        };
        assert_eq!(at(&tile, [1, 4], 1).unwrap().addresses(), [Some(20)]);
        assert_eq!(at(&tile, [1, 4], 0).unwrap_err().kind(), Kind::None);
        assert_eq!(at(&tile, [1, 5], 1).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(at(&tile, [1, 14], 1).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(at(&tile, [0, 0], 2).unwrap_err().kind(), Kind::Invalid);
        let copies = tile.replicate(2, 128, Axis::M).unwrap();
        assert_eq!(
            at(&copies, [1, 4], 1).unwrap_err().kind(),
            Kind::Unsupported
        );
    }

    #[test]
    fn swizzles_may_not_tear_vectors() {
        let access = TileAccess::new(2, 8, vec![Some(8)]).unwrap();
        assert!(access.warp(Swizzle::new(3, 2, 3, true).ok()).is_err());
        assert!(access.warp(Swizzle::new(3, 3, 3, true).ok()).is_ok());
        assert!(access.warp(Swizzle::new(0, 0, 3, true).ok()).is_ok());
    }

    /// The accumulator of `mma` m16n8 stored to a row-major tile of floats: pairs of columns.
    #[test]
    fn threads_and_memory_make_accesses() {
        let c = parse("S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]");
        let tile = parse("S[(16, 8) : (8, 1)]");
        let axes = (axis("lane"), axis("reg"));
        let pairs = tile_accesses(&c, axes, &tile, Some(2), 4).unwrap();
        assert_eq!(pairs.len(), 2);
        for (half, access) in (0..).zip(&pairs) {
            for (lane, address) in (0..).zip(access.addresses()) {
                assert_eq!(*address, Some((half * 8 + lane / 4) * 8 + lane % 4 * 2));
            }
        }
        assert_eq!(tile_accesses(&c, axes, &tile, Some(1), 4).unwrap().len(), 4);
        assert_eq!(
            tile_accesses(&c, axes, &tile, Some(4), 4)
                .unwrap_err()
                .kind(),
            Kind::None
        );
        let small = parse("S[(16, 4) : (4, 1)]");
        assert_eq!(
            tile_accesses(&c, axes, &small, Some(1), 4)
                .unwrap_err()
                .kind(),
            Kind::Invalid
        );
        let widest = tile_accesses(&c, axes, &tile, None, 4).unwrap();
        assert_eq!(widest, pairs);
        // Two warps of 32 threads; six lanes of the second alone.
        let long = parse("S[38 : 1@lane]");
        let found = tile_accesses(&long, axes, &parse("S[38 : 1]"), Some(1), 4).unwrap();
        let lanes: Vec<usize> = found.iter().map(|a| a.addresses().len()).collect();
        assert_eq!(lanes, [32, 6]);
    }
}
