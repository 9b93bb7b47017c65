//! Layouts, memory spaces and enumerations as melior attributes.

use crate::ffi;
use axe_layout::{Axis, Iter, Layout, Offset, Swizzle};
use melior::ir::{Attribute, AttributeLike, Location, Type};
use melior::{Context, StringRef};

/// `#axe.layout<...>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutAttribute<'c>(Attribute<'c>);

impl<'c> LayoutAttribute<'c> {
    /// The attribute of a layout; `None`, with a diagnostic at `location`, when it names an axis that
    /// no target declares.
    #[must_use]
    pub fn new(location: Location<'c>, layout: &Layout) -> Option<Self> {
        let iters = |iters: &[Iter]| -> Vec<ffi::LayoutIter> {
            let convert = |iter: &Iter| ffi::LayoutIter {
                extent: iter.extent,
                stride: iter.stride,
                axis: StringRef::new(iter.axis.name()).to_raw(),
            };
            iters.iter().map(convert).collect()
        };
        let (shard, replica) = (iters(layout.shard()), iters(layout.replica()));
        let offsets: Vec<_> = layout
            .offset()
            .iter()
            .map(|(axis, value)| ffi::LayoutOffset {
                axis: StringRef::new(axis.name()).to_raw(),
                value,
            })
            .collect();
        let swizzle = layout.swizzle().map(|swizzle| ffi::LayoutSwizzle {
            bits: swizzle.bits().into(),
            base: swizzle.base().into(),
            shift: if swizzle.inner() {
                i64::from(swizzle.shift())
            } else {
                -i64::from(swizzle.shift())
            },
        });
        // SAFETY: the pointers are to live arrays of the lengths given; `Attribute` of `option` is null-checked.
        unsafe {
            let raw = ffi::axeLayoutAttrGet(
                location.to_raw(),
                shard.len() as isize,
                shard.as_ptr(),
                replica.len() as isize,
                replica.as_ptr(),
                offsets.len() as isize,
                offsets.as_ptr(),
                swizzle
                    .as_ref()
                    .map_or(std::ptr::null(), std::ptr::from_ref),
            );
            Attribute::from_option_raw(raw).map(Self)
        }
    }

    /// The attribute as a layout attribute; `None` when it is another kind.
    #[must_use]
    pub fn cast(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is valid.
        unsafe { ffi::axeAttributeIsALayout(attribute.to_raw()) }.then_some(Self(attribute))
    }

    /// The layout.
    ///
    /// # Errors
    /// Never for an attribute that MLIR verified; the algebra's error otherwise.
    pub fn layout(&self) -> axe_layout::Result<Layout> {
        let raw = self.0.to_raw();
        // SAFETY: `raw` is a layout attribute, indices are below the counts, names outlive the context.
        unsafe {
            let iter = |iter: ffi::LayoutIter| -> axe_layout::Result<Iter> {
                Ok(Iter::new(iter.extent, iter.stride, axis(&iter.axis)?))
            };
            let shard = (0..ffi::axeLayoutAttrGetShardCount(raw))
                .map(|k| iter(ffi::axeLayoutAttrGetShard(raw, k)))
                .collect::<axe_layout::Result<Vec<_>>>()?;
            let replica = (0..ffi::axeLayoutAttrGetReplicaCount(raw))
                .map(|k| iter(ffi::axeLayoutAttrGetReplica(raw, k)))
                .collect::<axe_layout::Result<Vec<_>>>()?;
            let mut offset = Offset::new();
            for k in 0..ffi::axeLayoutAttrGetOffsetCount(raw) {
                let term = ffi::axeLayoutAttrGetOffset(raw, k);
                offset.set(axis(&term.axis)?, term.value);
            }
            let mut swizzle = ffi::LayoutSwizzle::default();
            let swizzle = ffi::axeLayoutAttrGetSwizzle(raw, &raw mut swizzle)
                .then(|| swizzle_of(swizzle.bits, swizzle.base, swizzle.shift))
                .transpose()?;
            Layout::new(shard, replica, offset, swizzle)
        }
    }

    /// The attribute.
    #[must_use]
    pub fn to_attribute(self) -> Attribute<'c> {
        self.0
    }
}

/// The axis that a C string names.
///
/// # Safety
/// The string's memory is valid.
unsafe fn axis(name: &mlir_sys::MlirStringRef) -> axe_layout::Result<Axis> {
    // SAFETY: promised by the caller.
    let name = unsafe { StringRef::from_raw(*name) };
    Axis::new(
        name.as_str()
            .map_err(|_| axe_layout::Error::invalid("axis name: expected UTF-8"))?,
    )
}

/// CuTe's `Sw<bits, base, shift>`, where a negative shift mirrors.
pub(crate) fn swizzle_of(bits: i64, base: i64, shift: i64) -> axe_layout::Result<Swizzle> {
    let small = |value: i64| {
        u32::try_from(value).map_err(|_| {
            axe_layout::Error::invalid(format!(
                "(L5) swizzle Sw<{bits}, {base}, {shift}>: out of range"
            ))
        })
    };
    let distance = shift.checked_abs().unwrap_or(i64::MAX);
    Swizzle::new(small(bits)?, small(base)?, small(distance)?, shift >= 0)
}

/// `#axe.space<...>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceAttribute<'c>(Attribute<'c>);

impl<'c> SpaceAttribute<'c> {
    /// The attribute of a memory space; `None`, with a diagnostic at `location`, for an unknown one.
    #[must_use]
    pub fn new(location: Location<'c>, name: &str) -> Option<Self> {
        // SAFETY: location and name are valid; the result is null-checked.
        unsafe {
            let raw = ffi::axeSpaceAttrGet(location.to_raw(), StringRef::new(name).to_raw());
            Attribute::from_option_raw(raw).map(Self)
        }
    }

    /// The attribute as a memory space; `None` when it is another kind.
    #[must_use]
    pub fn cast(attribute: Attribute<'c>) -> Option<Self> {
        // SAFETY: the attribute is valid.
        unsafe { ffi::axeAttributeIsASpace(attribute.to_raw()) }.then_some(Self(attribute))
    }

    /// The name of the space.
    #[must_use]
    pub fn name(&self) -> &'c str {
        // SAFETY: this is a space attribute; its name lives as long as the context.
        unsafe { StringRef::from_raw(ffi::axeSpaceAttrGetName(self.0.to_raw())) }
            .as_str()
            .unwrap_or("")
    }

    /// The attribute.
    #[must_use]
    pub fn to_attribute(self) -> Attribute<'c> {
        self.0
    }
}

/// How a reduction combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Combiner {
    /// Sum.
    Add = 0,
    /// Product.
    Mul = 1,
    /// Maximum; NaN propagates.
    Max = 2,
    /// Minimum; NaN propagates.
    Min = 3,
    /// Bitwise and.
    And = 4,
    /// Bitwise or.
    Or = 5,
    /// Bitwise exclusive or.
    Xor = 6,
    /// Maximum of unsigned integers.
    MaxUI = 7,
    /// Minimum of unsigned integers.
    MinUI = 8,
}

impl Combiner {
    /// The attribute `#axe.combiner<...>`.
    #[must_use]
    pub fn attribute(self, context: &Context) -> Attribute<'_> {
        // SAFETY: the enumerator is one of the C API's, so the attribute is not null.
        unsafe { Attribute::from_raw(ffi::axeCombinerAttrGet(context.to_raw(), self as u32)) }
    }

    /// The combiner of an attribute; `None` when it is another kind.
    #[must_use]
    pub fn cast(attribute: Attribute) -> Option<Self> {
        // SAFETY: the attribute is valid, and its kind checked before its value is read.
        let value = unsafe {
            ffi::axeAttributeIsACombiner(attribute.to_raw())
                .then(|| ffi::axeCombinerAttrGetValue(attribute.to_raw()))?
        };
        [
            Self::Add,
            Self::Mul,
            Self::Max,
            Self::Min,
            Self::And,
            Self::Or,
            Self::Xor,
            Self::MaxUI,
            Self::MinUI,
        ]
        .into_iter()
        .find(|&c| c as u32 == value)
    }
}

/// A level of the execution hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Level {
    /// One device.
    Device = 0,
    /// A cluster of CTAs.
    Cluster = 1,
    /// A cooperative thread array (block).
    Cta = 2,
    /// Four warps.
    Warpgroup = 3,
    /// 32 threads.
    Warp = 4,
    /// One thread.
    Thread = 5,
}

impl Level {
    /// The attribute of a level.
    #[must_use]
    pub fn attribute(self, context: &Context) -> Attribute<'_> {
        // SAFETY: the enumerator is one of the C API's, so the attribute is not null.
        unsafe { Attribute::from_raw(ffi::axeLevelAttrGet(context.to_raw(), self as u32)) }
    }

    /// Threads of one member of the level; `None` where a launch says how many there are.
    #[must_use]
    pub const fn threads(self) -> Option<i64> {
        match self {
            Self::Device | Self::Cluster | Self::Cta => None,
            Self::Warpgroup => Some(128),
            Self::Warp => Some(32),
            Self::Thread => Some(1),
        }
    }

    /// The level of an attribute; `None` when it is another kind.
    #[must_use]
    pub fn cast(attribute: Attribute) -> Option<Self> {
        // SAFETY: the attribute is valid, and its kind checked before its value is read.
        let value = unsafe {
            ffi::axeAttributeIsALevel(attribute.to_raw())
                .then(|| ffi::axeLevelAttrGetValue(attribute.to_raw()))?
        };
        [
            Self::Device,
            Self::Cluster,
            Self::Cta,
            Self::Warpgroup,
            Self::Warp,
            Self::Thread,
        ]
        .into_iter()
        .find(|&level| level as u32 == value)
    }
}

/// The raster order: that in which a grid of tiles is visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum RasterOrder {
    /// Along rows.
    Rows = 0,
    /// Along columns.
    Columns = 1,
    /// Some rows at a time, column by column.
    Groups = 2,
    /// As `Groups`, every other group backwards.
    Snake = 3,
    /// Hilbert's curve.
    Hilbert = 4,
}

impl RasterOrder {
    /// The attribute of an order.
    #[must_use]
    pub fn attribute(self, context: &Context) -> Attribute<'_> {
        // SAFETY: the enumerator is one of the C API's, so the attribute is not null.
        unsafe { Attribute::from_raw(ffi::axeRasterOrderAttrGet(context.to_raw(), self as u32)) }
    }

    /// The order of an attribute; `None` when it is another kind.
    #[must_use]
    pub fn cast(attribute: Attribute) -> Option<Self> {
        // SAFETY: the attribute is valid, and its kind checked before its value is read.
        let value = unsafe {
            ffi::axeAttributeIsARasterOrder(attribute.to_raw())
                .then(|| ffi::axeRasterOrderAttrGetValue(attribute.to_raw()))?
        };
        [
            Self::Rows,
            Self::Columns,
            Self::Groups,
            Self::Snake,
            Self::Hilbert,
        ]
        .into_iter()
        .find(|&order| order as u32 == value)
    }
}

/// `!axe.pipeline`.
#[must_use]
pub fn pipeline_type(context: &Context) -> Type<'_> {
    // SAFETY: the context is valid and the result is not null.
    unsafe { Type::from_raw(ffi::axePipelineTypeGet(context.to_raw())) }
}

/// `!axe.slot`.
#[must_use]
pub fn slot_type(context: &Context) -> Type<'_> {
    // SAFETY: the context is valid and the result is not null.
    unsafe { Type::from_raw(ffi::axeSlotTypeGet(context.to_raw())) }
}

/// `!axe.token`.
#[must_use]
pub fn token_type(context: &Context) -> Type<'_> {
    // SAFETY: the context is valid and the result is not null.
    unsafe { Type::from_raw(ffi::axeTokenTypeGet(context.to_raw())) }
}
