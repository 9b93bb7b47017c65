//! Where the layout of a memref puts an element: from coordinates to an address and back.

use crate::error::PassResult;
use crate::ir::Int;
use crate::ir::{Builder, DYNAMIC, types};
use axe_dialect::{layout_of, strides_of};
use axe_layout::{Axis, Layout, Swizzle};
use melior::ir::Type;

/// A digit of one dimension: `(extent, stride)`; the extent is [`DYNAMIC`] where it is known at run time only.
type Digit = (i64, i64);

/// The map of a memref's layout, dimension by dimension.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Address {
    /// The digits of each dimension, outermost first.
    dims: Vec<Vec<Digit>>,
    offset: i64,
    /// What moves the address last.
    pub(super) swizzle: Option<Swizzle>,
}

impl Address {
    /// The map of a memref type.
    ///
    /// # Errors
    /// A message, when the layout is not one address on the memory axis for each element.
    pub(super) fn of(memref: Type<'_>) -> Result<Self, String> {
        let shape = types::shape(memref).ok_or("expected a ranked memref")?;
        if let Some(attribute) = layout_of(memref) {
            let layout = attribute.layout().map_err(|error| error.to_string())?;
            return Self::of_layout(&layout, &shape);
        }
        let (strides, offset) =
            strides_of(memref).ok_or("its layout is neither axe's nor strided")?;
        if strides.contains(&DYNAMIC) {
            return Err("its strides are known at run time only".into());
        }
        let dims = shape
            .iter()
            .zip(&strides)
            .map(|(extent, stride)| vec![(*extent, *stride)])
            .collect();
        Ok(Self {
            dims,
            // A slice's origin is counted by the slice.
            offset: if offset == DYNAMIC { 0 } else { offset },
            swizzle: None,
        })
    }

    /// The map of storage that is allocated. Where a target counts the places of a memory by other axes than `m`, an
    /// element is where its logical index says: boxes name elements alone, and no view is there to tell.
    ///
    /// # Errors
    /// As [`Self::of`], and where elements share a place.
    pub(super) fn of_allocation(memref: Type<'_>) -> Result<Self, String> {
        let layout = layout_of(memref).map(|attribute| attribute.layout());
        let layout = layout.transpose().map_err(|error| error.to_string())?;
        let Some(layout) = layout.filter(|l| l.axes().iter().any(|axis| *axis != Axis::M)) else {
            return Self::of(memref);
        };
        let shared = |iter: &axe_layout::Iter| iter.stride == 0 && iter.extent > 1;
        if layout.shard().iter().any(shared) {
            return Err("several elements share a place".into());
        }
        let shape = types::shape(memref).ok_or("expected a ranked memref")?;
        let rows = Layout::row_major(&shape).map_err(|error| error.to_string())?;
        Self::of_layout(&rows, &shape)
    }

    fn of_layout(layout: &Layout, shape: &[i64]) -> Result<Self, String> {
        let memory = Axis::M;
        if let Some(axis) = layout.axes().into_iter().find(|axis| *axis != memory) {
            return Err(format!(
                "its layout names the axis {}, and storage has m alone",
                axis.name()
            ));
        }
        if layout.replica().iter().any(|iter| iter.stride != 0) {
            return Err("its layout stores replicas".into());
        }
        let grouped = layout.group(shape).map_err(|error| error.to_string())?;
        let digits = |block: &[axe_layout::Iter]| {
            block
                .iter()
                .map(|iter| (iter.extent, iter.stride))
                .collect()
        };
        Ok(Self {
            dims: grouped.blocks().map(digits).collect(),
            offset: layout.offset().get(memory),
            swizzle: layout.swizzle(),
        })
    }

    /// The number of elements of storage, from address 0 on.
    ///
    /// # Errors
    /// A message, when an address is negative or the storage has no static size.
    pub(super) fn elements(&self) -> Result<i64, String> {
        let mut last = self.offset;
        for (extent, stride) in self.dims.iter().flatten() {
            if *extent == DYNAMIC || *stride < 0 {
                return Err("its storage is not a static range of addresses from 0".into());
            }
            let reach = (extent - 1).checked_mul(*stride);
            last = reach
                .and_then(|reach| last.checked_add(reach))
                .ok_or("its storage is too large")?;
        }
        if self.offset < 0 {
            return Err("its storage starts at a negative address".into());
        }
        let period = self.swizzle.map_or(1, |swizzle| swizzle.period());
        last.checked_add(period)
            .map(|end| end / period * period)
            .ok_or_else(|| "its storage is too large".into())
    }

    /// The address of an element, before the swizzle.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn linear<'c>(
        &self,
        builder: &Builder<'c>,
        at: &[Int<'c>],
    ) -> PassResult<'c, Int<'c>> {
        let ints = builder.ints();
        let mut address = Int::Known(self.offset);
        for (index, digits) in at.iter().zip(&self.dims) {
            let mut inside = 1_i64;
            for (number, (extent, stride)) in digits.iter().enumerate().rev() {
                let mut digit = ints.div(*index, inside)?;
                // The outermost digit is below its extent because the index is.
                if number > 0 {
                    digit = ints.rem(digit, *extent)?;
                    inside = inside.saturating_mul(*extent);
                }
                address = ints.add(address, ints.mul(digit, *stride)?)?;
            }
        }
        Ok(address)
    }

    /// The element at an address before the swizzle: the inverse of [`Self::linear`]. An address beyond the last
    /// element gives coordinates outside the shape.
    ///
    /// # Errors
    /// When building fails.
    pub(super) fn coordinates<'c>(
        &self,
        builder: &Builder<'c>,
        address: Int<'c>,
    ) -> PassResult<'c, Vec<Int<'c>>> {
        let ints = builder.ints();
        let mut rest = ints.sub(address, Int::Known(self.offset))?;
        let mut coordinates = vec![Int::ZERO; self.dims.len()];
        for (dim, weight, stride) in self.by_stride() {
            let digit = ints.mul(ints.div(rest, stride)?, weight)?;
            rest = ints.rem(rest, stride)?;
            if let Some(coordinate) = coordinates.get_mut(dim) {
                *coordinate = ints.add(*coordinate, digit)?;
            }
        }
        Ok(coordinates)
    }

    /// The digits that move, by falling stride: dimension, weight in its coordinate, stride.
    fn by_stride(&self) -> Vec<(usize, i64, i64)> {
        let mut all = Vec::new();
        for (dim, digits) in self.dims.iter().enumerate() {
            let mut weight = 1_i64;
            for (extent, stride) in digits.iter().rev() {
                if *extent != 1 && *stride > 0 {
                    all.push((dim, weight, *stride));
                }
                weight = weight.saturating_mul(*extent);
            }
        }
        all.sort_by_key(|(_, _, stride)| std::cmp::Reverse(*stride));
        all
    }

    /// Whether [`Self::coordinates`] inverts [`Self::linear`]: each stride reaches past the digits below it.
    pub(super) fn is_invertible(&self) -> bool {
        let mut digits: Vec<Digit> = self.dims.iter().flatten().copied().collect();
        digits.retain(|(extent, _)| *extent != 1);
        digits.sort_by_key(|(_, stride)| *stride);
        let mut reach = 1_i64;
        digits.iter().all(|(extent, stride)| {
            let clear = *stride >= reach;
            reach = match *extent {
                DYNAMIC => i64::MAX,
                extent => extent.saturating_mul(*stride),
            };
            clear
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axe_layout::generate::Choices;
    use melior::ir::{BlockLike, BlockRef, Location, Module};
    use proptest::prelude::*;

    /// Calls `work` with a builder; indices that are numbers need no operation.
    fn with_builder(work: impl FnOnce(&Builder<'_>)) {
        let context = melior::Context::new();
        let location = Location::unknown(&context);
        let module = Module::new(location);
        // SAFETY: the block lives as long as the module.
        let block = unsafe { BlockRef::from_raw(module.body().to_raw()) };
        work(&Builder::at_end(block, location));
        assert!(module.body().first_operation().is_none());
    }

    /// The coordinates of a linear index.
    fn split(mut index: i64, shape: &[i64]) -> Vec<i64> {
        let mut at = vec![0; shape.len()];
        for (place, extent) in at.iter_mut().zip(shape).rev() {
            *place = index % extent;
            index /= extent;
        }
        at
    }

    fn check(layout: &Layout, shape: &[i64]) {
        let Ok(address) = Address::of_layout(layout, shape) else {
            return;
        };
        with_builder(|builder| {
            for index in 0..layout.size() {
                let at = split(index, shape);
                let fixed: Vec<_> = at.iter().copied().map(Int::Known).collect();
                let linear = address.linear(builder, &fixed).unwrap();
                let place = match address.swizzle {
                    Some(swizzle) => builder.ints().swizzle(swizzle, linear).unwrap(),
                    None => linear,
                };
                let wanted = layout.apply(shape, &at).unwrap()[0].get(Axis::M);
                assert_eq!(place, Int::Known(wanted), "{layout} at {at:?} of {shape:?}");
                if let Ok(elements) = address.elements() {
                    assert!(
                        (0..elements).contains(&wanted),
                        "{layout}: {wanted} of {elements}"
                    );
                }
                let positive = address.dims.iter().flatten().all(|(_, stride)| *stride > 0);
                if positive && address.is_invertible() {
                    let back = address.coordinates(builder, linear).unwrap();
                    assert_eq!(back, fixed, "{layout} back from {linear:?}");
                }
            }
        });
    }

    proptest! {
        #[test]
        fn addresses_are_the_layout_and_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            let mut choices = Choices::new(&bytes);
            let layout = choices.layout();
            // The same iters, on the memory axis alone.
            let shard = layout.shard().iter().map(|iter| axe_layout::Iter::new(iter.extent, iter.stride, Axis::M));
            let Ok(memory) = Layout::from_shard(shard) else {
                return Ok(());
            };
            let layout = memory.with_swizzle(layout.swizzle());
            let shape = choices.shape(layout.size());
            check(&layout, &shape);
        }
    }

    #[test]
    fn storage_of_kernels() {
        for (text, shape) in [
            ("Sw<3, 3, 3> o S[(128, 64) : (64, 1)]", vec![128, 64]),
            (
                "Sw<2, 3, 3> o S[(3, 32, 32) : (1024, 32, 1)]",
                vec![3, 32, 32],
            ),
            ("S[(64, 8) : (1, 64)]", vec![64, 8]),
            ("S[(2, 8, 4) : (4, 8, 1)]", vec![16, 4]),
            ("S[(4, 8) : (9, 1)] + 3", vec![4, 8]),
            ("S[(16, 64) : (0, 1)]", vec![16, 64]),
        ] {
            let layout: Layout = text.parse().unwrap();
            assert!(Address::of_layout(&layout, &shape).is_ok(), "{text}");
            check(&layout, &shape);
        }
    }
}
