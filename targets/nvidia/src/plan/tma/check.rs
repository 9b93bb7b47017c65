//! The plan against a model of the accelerator, element by element: where each element of each box is in shared
//! memory, which address of global memory it has, and whether it exists.

use super::{DYNAMIC, Decline, Global, TmaPlan};
use axe_layout::address::AddressMap;
use axe_layout::{Axis, Iter, Layout};

/// An origin further out is checked at a nearer one: the digits repeat.
const FURTHEST: i64 = 1 << 32;

impl TmaPlan {
    /// Checks by enumeration, for a tile of `shape` of `global` and its place `shared`: every element of the tile is
    /// in one box, at the byte of shared memory that the layout says with the accelerator's swizzle; the descriptor
    /// finds it at the global address that the memory's iters say, and takes it for outside exactly when it is. The
    /// tile is tried at its least origin, at one further along every dimension, and at the last one inside.
    ///
    /// # Errors
    /// The first element for which that is not so.
    pub fn check(
        &self,
        global: &Global,
        shape: &[i64],
        shared: &Layout,
        bytes: i64,
    ) -> Result<(), Decline> {
        if self.map.r#box.len() != self.map.extents.len()
            || self.map.strides.len() + 1 != self.map.extents.len()
        {
            return Err(Decline::new("the tensor map's dimensions do not agree"));
        }
        let elements = self.placed(shared, bytes)?;
        let strides = row_major(shape);
        for origin in origins(global) {
            for element in &elements {
                self.check_element(global, (shape, &strides), &origin, element, bytes)?;
            }
        }
        Ok(())
    }

    /// The elements of all boxes, each once, with the tile's flat index by the shared layout.
    fn placed(&self, shared: &Layout, bytes: i64) -> Result<Vec<Element<'_>>, Decline> {
        let mut tile = inverse(shared)?;
        let count: i64 = self.map.r#box.iter().product();
        let row = self.map.r#box.first().copied().unwrap_or(1).max(1);
        let pitch = self.map.swizzle.pitch(row, bytes);
        let mut elements = Vec::new();
        for each in &self.boxes {
            if each.coordinates.len() != self.map.r#box.len() {
                return Err(Decline::new("a box with other dimensions than the map's"));
            }
            for at in 0..count {
                let from_start = at / row * pitch + at % row;
                let place = self.map.swizzle.apply((each.shared + from_start) * bytes);
                let slot = usize::try_from(place / bytes).ok();
                let flat = slot
                    .and_then(|slot| tile.get_mut(slot))
                    .and_then(Option::take);
                let flat = flat.filter(|_| place % bytes == 0).ok_or_else(|| {
                    Decline::new(format!(
                        "an element of a box would go to byte {place}, where the layout has none or another one is"
                    ))
                })?;
                elements.push(Element {
                    coordinates: &each.coordinates,
                    at,
                    flat,
                });
            }
        }
        match tile.iter().flatten().next() {
            None => Ok(elements),
            Some(missing) => Err(Decline::new(format!(
                "element {missing} of the tile is in no box"
            ))),
        }
    }

    /// One element, for a tile at an origin.
    fn check_element(
        &self,
        global: &Global,
        (shape, weights): (&[i64], &[i64]),
        origin: &[i64],
        element: &Element<'_>,
        bytes: i64,
    ) -> Result<(), Decline> {
        let (mut rest, mut found, mut inside) = (element.at, 0, true);
        for (level, coordinate) in element.coordinates.iter().enumerate() {
            let extent = self.map.r#box.get(level).copied().unwrap_or(1);
            let digit = origin.get(coordinate.dim).copied().unwrap_or(0) / coordinate.divisor;
            let digit = coordinate.modulus.map_or(digit, |modulus| digit % modulus);
            let at = digit + coordinate.offset + rest % extent;
            rest /= extent;
            let stride = match level.checked_sub(1) {
                None => bytes,
                Some(above) => self.map.strides.get(above).copied().unwrap_or(0),
            };
            found += at * stride;
            let end = self.map.extents.get(level).copied().flatten();
            inside &= end.is_none_or(|end| at < end);
        }
        let (mut lives, mut exists) = (0, true);
        for (dim, &whole) in global.shape.iter().enumerate() {
            let tile = global.kept.iter().position(|kept| *kept == dim);
            let index = tile.map_or(0, |at| match (weights.get(at), shape.get(at)) {
                (Some(weight), Some(extent)) => element.flat / weight % extent,
                _ => 0,
            });
            let at = origin.get(dim).copied().unwrap_or(0) + index;
            lives += bytes * address(global.dims.get(dim).map_or(&[], Vec::as_slice), at);
            exists &= whole == DYNAMIC || at < whole;
        }
        if inside != exists {
            return Err(Decline::new(format!(
                "element {} of a tile at {origin:?}: it {} and the tensor map says that it {}",
                element.flat,
                if exists { "exists" } else { "does not exist" },
                if inside { "does" } else { "does not" },
            )));
        }
        if exists && found != lives {
            return Err(Decline::new(format!(
                "element {} of a tile at {origin:?} is at byte {lives}, and the tensor map finds it at {found}",
                element.flat
            )));
        }
        Ok(())
    }
}

/// An element of a box.
struct Element<'a> {
    coordinates: &'a [super::Coordinate],
    /// Its number in the box.
    at: i64,
    /// Its index in the tile.
    flat: i64,
}

/// The tile's flat index at each place of shared memory, in elements.
fn inverse(shared: &Layout) -> Result<Vec<Option<i64>>, Decline> {
    let size = usize::try_from(shared.size()).unwrap_or(0);
    let mut addresses = vec![0; size];
    AddressMap::new(shared, Axis::M)
        .and_then(|map| map.fill(0, &mut addresses))
        .map_err(|error| Decline::new(error.to_string()))?;
    let last = addresses.iter().copied().max().unwrap_or(0);
    let mut tile = vec![None; usize::try_from(last + 1).unwrap_or(0)];
    for (flat, address) in (0..).zip(addresses) {
        let place = usize::try_from(address)
            .ok()
            .and_then(|at| tile.get_mut(at));
        match place {
            Some(place @ None) => *place = Some(flat),
            _ => {
                return Err(Decline::new(format!(
                    "element {flat} of the tile shares its place in shared memory with another"
                )));
            }
        }
    }
    Ok(tile)
}

/// The address of an index of a dimension, in elements; its outermost iter has no end.
fn address(iters: &[Iter], mut at: i64) -> i64 {
    let mut sum = 0;
    for (position, iter) in iters.iter().enumerate().rev() {
        let digit = if position == 0 { at } else { at % iter.extent };
        sum += digit * iter.stride;
        at /= iter.extent.max(1);
    }
    sum
}

/// Origins that the tile may have: none of their digits is special to the plan but these.
fn origins(global: &Global) -> Vec<Vec<i64>> {
    let along = |of: &dyn Fn(i64, i64, i64) -> i64| -> Vec<i64> {
        let dims = (1..).zip(global.shape.iter().zip(&global.divisors));
        dims.map(|(number, (&whole, &divisor))| match divisor {
            0 => 0,
            _ => of(number, whole, divisor.min(FURTHEST)),
        })
        .collect()
    };
    let last = |_, whole: i64, divisor: i64| match whole {
        DYNAMIC => 3 * divisor,
        _ => (whole - 1).max(0) / divisor * divisor,
    };
    // Another multiple along each dimension, so that none is taken for another.
    let further = |number, _, divisor| number * divisor;
    let mut all = vec![along(&|_, _, _| 0), along(&further), along(&last)];
    all.dedup();
    all
}

/// The weight of each dimension's index in the flat one.
fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut weight = 1;
    let mut weights: Vec<_> = shape
        .iter()
        .rev()
        .map(|extent| {
            let own = weight;
            weight *= extent.max(&1);
            own
        })
        .collect();
    weights.reverse();
    weights
}

#[cfg(test)]
mod tests {
    use super::super::tests::{global, plan};
    use super::*;
    use crate::plan::tma::TmaSwizzle;

    /// The reason for which a changed plan of a tile is refused.
    fn broken(
        memory: &Global,
        tile: &[i64],
        shared: &str,
        change: impl Fn(&mut TmaPlan),
    ) -> String {
        let mut plan = plan(memory, tile, shared).unwrap();
        let shared = shared.parse().unwrap();
        assert_eq!(plan.check(memory, tile, &shared, 2), Ok(()));
        change(&mut plan);
        let refused = plan.check(memory, tile, &shared, 2);
        refused.unwrap_err().to_string()
    }

    const PANELS: &str = "Sw<3,3,3> o S[(64, 2, 64) : (64, 4096, 1)]";

    #[test]
    fn broken_places_in_shared_memory_are_caught() {
        let memory = global(&[4096, 4096], &[4096, 1]);
        let broken = |change: &dyn Fn(&mut TmaPlan)| broken(&memory, &[64, 128], PANELS, change);
        assert!(broken(&|plan| plan.boxes[1].shared += 64).contains("where the layout has none"));
        assert!(broken(&|plan| plan.map.swizzle = TmaSwizzle::B64).contains("finds it at"));
        assert!(broken(&|plan| plan.map.swizzle = TmaSwizzle::None).contains("finds it at"));
        assert!(broken(&|plan| plan.map.r#box = vec![64, 32]).contains("in no box"));
        assert!(
            broken(&|plan| {
                plan.boxes.pop();
            })
            .contains("in no box")
        );
        assert!(
            broken(&|plan| plan.boxes[1].shared = 0).contains("another one is"),
            "two boxes at one place"
        );
    }

    #[test]
    fn broken_global_addresses_are_caught() {
        let memory = global(&[4096, 4096], &[4096, 1]);
        let broken = |change: &dyn Fn(&mut TmaPlan)| broken(&memory, &[64, 128], PANELS, change);
        assert!(broken(&|plan| plan.map.strides[0] += 16).contains("finds it at"));
        assert!(broken(&|plan| plan.boxes[1].coordinates[0].offset = 32).contains("finds it at"));
        assert!(broken(&|plan| plan.boxes[0].coordinates.swap(0, 1)).contains("finds it at"));
        assert!(broken(&|plan| plan.boxes[0].coordinates[1].divisor = 2).contains("finds it at"));
        assert!(
            broken(&|plan| plan.boxes[0].coordinates[1].modulus = Some(64)).contains("finds it at")
        );
        assert!(broken(&|plan| plan.map.strides.clear()).contains("do not agree"));
    }

    #[test]
    fn broken_bounds_are_caught() {
        let memory = global(&[100, 4096], &[4096, 1]);
        let broken = |change: &dyn Fn(&mut TmaPlan)| broken(&memory, &[64, 128], PANELS, change);
        let short = broken(&|plan| plan.map.extents[1] = Some(99));
        assert!(short.contains("it exists and the tensor map says that it does not"));
        let long = broken(&|plan| plan.map.extents[1] = Some(128));
        assert!(long.contains("it does not exist and the tensor map says that it does"));
        let none = broken(&|plan| plan.map.extents[1] = None);
        assert!(none.contains("it does not exist"));
    }

    #[test]
    fn a_dimension_of_one_element_that_may_be_missed_stays_in_the_map() {
        // Batches counted at run time: batch 1 of one does not exist.
        let mut batch = global(&[1, 256, 64], &[16384, 64, 1]);
        batch.kept = vec![1, 2];
        batch.divisors = vec![1, 64, 64];
        let tile = plan(&batch, &[128, 64], "S[(128, 64) : (64, 1)]").unwrap();
        assert_eq!(tile.map.extents, [Some(64), Some(256), Some(1)]);
        // Where its origin is known, it is left out.
        batch.divisors[0] = 0;
        let tile = plan(&batch, &[128, 64], "S[(128, 64) : (64, 1)]").unwrap();
        assert_eq!(tile.map.extents, [Some(64), Some(256)]);
    }
}
