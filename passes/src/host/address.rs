//! Where the layout of a memref puts an element: from coordinates to an address and back.

use super::index::Ix;
use crate::error::PassResult;
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

    fn of_layout(layout: &Layout, shape: &[i64]) -> Result<Self, String> {
        let memory = Axis::new("m").map_err(|error| error.to_string())?;
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
        at: &[Ix<'c>],
    ) -> PassResult<'c, Ix<'c>> {
        let mut address = Ix::Fixed(self.offset);
        for (index, digits) in at.iter().zip(&self.dims) {
            let mut inside = 1_i64;
            for (number, (extent, stride)) in digits.iter().enumerate().rev() {
                let mut digit = index.over(builder, inside)?;
                // The outermost digit is below its extent because the index is.
                if number > 0 {
                    digit = digit.modulo(builder, *extent)?;
                    inside = inside.saturating_mul(*extent);
                }
                address = address.add(builder, digit.times(builder, *stride)?)?;
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
        address: Ix<'c>,
    ) -> PassResult<'c, Vec<Ix<'c>>> {
        let mut rest = address.add(builder, Ix::Fixed(-self.offset))?;
        let mut coordinates = vec![Ix::Fixed(0); self.dims.len()];
        for (dim, weight, stride) in self.by_stride() {
            let digit = rest.over(builder, stride)?.times(builder, weight)?;
            rest = rest.modulo(builder, stride)?;
            if let Some(coordinate) = coordinates.get_mut(dim) {
                *coordinate = coordinate.add(builder, digit)?;
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
