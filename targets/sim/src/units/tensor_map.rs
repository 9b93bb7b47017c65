//! Tensor maps: what `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` accept, and the 128 bytes
//! that a kernel gets.
//!
//! The driver's bit layout of `CUtensorMap` is undocumented, so the simulator has its own; kernels
//! only pass the object on. Rules: CUDA Driver API, "Tensor Map Object Management"; fields that
//! `tensormap.replace` names: PTX ISA 9.7.9.28.

use super::swizzle::Swizzle;
use thiserror::Error;

/// Element types of `CUtensorMapDataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DataType {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    Bf16,
    /// binary32 whose subnormals become zero.
    F32Ftz,
    Tf32,
    Tf32Ftz,
}

impl DataType {
    const ALL: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::F32Ftz,
        Self::Tf32,
        Self::Tf32Ftz,
    ];

    /// The type of a number of `tensormap.replace` (PTX ISA 9.7.9.28, table of `.elemtype`), which differ
    /// from the host API's from 8 on.
    fn of_replace(code: u64) -> Option<Self> {
        Some(match code {
            8 => Self::F32Ftz,
            9 => Self::F64,
            10 => Self::Bf16,
            _ => Self::from_code(u32::try_from(code).ok()?)?,
        })
    }

    /// The type of the host API's number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// The host API's number.
    #[must_use]
    pub fn code(self) -> u32 {
        let at = Self::ALL.iter().position(|t| *t == self);
        at.unwrap_or_default() as u32
    }

    /// Bytes of an element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U64 | Self::S64 | Self::F64 => 8,
            _ => 4,
        }
    }

    /// Whether out-of-bounds elements may be filled with NaN.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !matches!(
            self,
            Self::U8 | Self::U16 | Self::U32 | Self::S32 | Self::U64 | Self::S64
        )
    }

    /// The NaN of out-of-bounds fill: halves of 0x7ff7 in every type (measured on an H200 for bf16
    /// and f32).
    #[must_use]
    pub fn nan(self) -> Vec<u8> {
        [0xf7, 0x7f].repeat(self.bytes() as usize / 2)
    }
}

/// What the box of an im2col map is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Im2col {
    /// `pixelBoxLowerCorner`, W first.
    pub lower: [i16; 3],
    /// `pixelBoxUpperCorner`, W first.
    pub upper: [i16; 3],
    /// Channels of a pixel that are copied.
    pub channels: u32,
    /// Pixels that are copied.
    pub pixels: u32,
}

/// A tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// Element type.
    pub data_type: DataType,
    /// Dimensions, 1 to 5; only the first `rank` entries of the arrays count.
    pub rank: usize,
    /// `globalAddress`.
    pub address: u64,
    /// `globalDim` in elements, innermost first.
    pub dims: [u64; 5],
    /// `globalStrides` in bytes, of dimensions 1 to `rank - 1`.
    pub strides: [u64; 4],
    /// `boxDim` in elements (unused by im2col).
    pub box_dims: [u32; 5],
    /// `elementStrides`.
    pub element_strides: [u32; 5],
    /// Swizzle of the box in shared memory.
    pub swizzle: Swizzle,
    /// Whether elements outside the tensor are NaN instead of zero.
    pub nan_fill: bool,
    /// Present for im2col maps.
    pub im2col: Option<Im2col>,
}

/// Why the host API would refuse a tensor map.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MapError {
    /// A rank outside 1 to 5 (im2col: 3 to 5).
    #[error("rank {0} is not supported")]
    Rank(usize),
    /// A misaligned global address.
    #[error("global address {0:#x} is not a multiple of 16 bytes")]
    Address(u64),
    /// A dimension of zero or more than 2^32 elements.
    #[error("dimension {dim} has {size} elements; 1 to 2^32 are valid")]
    Dim {
        /// Which.
        dim: usize,
        /// Elements.
        size: u64,
    },
    /// A stride that is no multiple of 16 bytes or not below 2^40.
    #[error("stride {dim} of {stride} bytes must be a multiple of 16 below 2^40")]
    Stride {
        /// Which dimension it steps.
        dim: usize,
        /// Bytes.
        stride: u64,
    },
    /// A box dimension of zero or more than 256 elements.
    #[error("box dimension {dim} has {size} elements; 1 to 256 are valid")]
    Box {
        /// Which.
        dim: usize,
        /// Elements.
        size: u32,
    },
    /// An element stride outside 1 to 8.
    #[error("element stride {dim} is {stride}; 1 to 8 are valid")]
    ElementStride {
        /// Which.
        dim: usize,
        /// Elements.
        stride: u32,
    },
    /// Inner box bytes that are no multiple of 16.
    #[error("the box's inner dimension has {0} bytes, which is no multiple of 16")]
    InnerBytes(u64),
    /// An inner box dimension wider than the swizzle span.
    #[error("the box's inner dimension has {bytes} bytes, more than the swizzle span of {span}")]
    SwizzleSpan {
        /// Inner bytes.
        bytes: u64,
        /// Span.
        span: u64,
    },
    /// NaN fill of an integer type.
    #[error("NaN fill needs a floating-point type, got {0:?}")]
    NanFill(DataType),
    /// im2col corners, channels or pixels outside their limits.
    #[error("im2col box out of limits: {0}")]
    Im2col(String),
    /// The 128 bytes hold no tensor map of this simulator.
    #[error("these 128 bytes hold no tensor map")]
    NoMap,
}

const MAGIC: u64 = 0x5041_4d52_534e_5441;

/// A field that `tensormap.replace` sets; dimensions are counted from the innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Field {
    GlobalAddress,
    Rank,
    BoxDim(usize),
    GlobalDim(usize),
    GlobalStride(usize),
    ElementStride(usize),
    ElementType,
    SwizzleMode,
    FillMode,
    Interleave,
    SwizzleAtomicity,
}

impl TensorMap {
    /// What `tensormap.replace` makes a map of from zeros.
    const fn blank() -> Self {
        Self {
            data_type: DataType::U8,
            rank: 1,
            address: 0,
            dims: [1; 5],
            strides: [0; 4],
            box_dims: [1; 5],
            element_strides: [1; 5],
            swizzle: Swizzle::None,
            nan_fill: false,
            im2col: None,
        }
    }

    /// Validates by the host API's rules.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn check(&self) -> Result<(), MapError> {
        let lowest = if self.im2col.is_some() { 3 } else { 1 };
        if !(lowest..=5).contains(&self.rank) {
            return Err(MapError::Rank(self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err(MapError::Address(self.address));
        }
        for (dim, &size) in self.dims.iter().enumerate().take(self.rank) {
            if size == 0 || size > 1 << 32 {
                return Err(MapError::Dim { dim, size });
            }
        }
        for (i, &stride) in self.strides.iter().enumerate().take(self.rank - 1) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(MapError::Stride { dim: i + 1, stride });
            }
        }
        for (dim, &stride) in self.element_strides.iter().enumerate().take(self.rank) {
            if !(1..=8).contains(&stride) {
                return Err(MapError::ElementStride { dim, stride });
            }
        }
        if self.nan_fill && !self.data_type.is_float() {
            return Err(MapError::NanFill(self.data_type));
        }
        self.check_box()
    }

    fn check_box(&self) -> Result<(), MapError> {
        let inner = match &self.im2col {
            Some(im2col) => {
                im2col.check(self.rank)?;
                im2col.channels
            }
            None => {
                for (dim, &size) in self.box_dims.iter().enumerate().take(self.rank) {
                    if !(1..=256).contains(&size) {
                        return Err(MapError::Box { dim, size });
                    }
                }
                self.box_dims[0]
            }
        };
        let bytes = u64::from(inner) * self.data_type.bytes();
        if !bytes.is_multiple_of(16) {
            return Err(MapError::InnerBytes(bytes));
        }
        let span = self.swizzle.span();
        if self.swizzle != Swizzle::None && bytes > span {
            return Err(MapError::SwizzleSpan { bytes, span });
        }
        Ok(())
    }

    /// The object in memory; 64-byte alignment is the caller's.
    ///
    /// # Errors
    /// As [`TensorMap::check`].
    pub fn encode(&self) -> Result<[u8; 128], MapError> {
        self.check()?;
        Ok(self.pack())
    }

    fn pack(&self) -> [u8; 128] {
        let mut words = [0u64; 16];
        words[0] = MAGIC;
        words[1] = self.address;
        for i in 0..5 {
            // A dimension of 2^32 is kept as 2^32 - 1; the box in units of 256 as 0.
            words[2 + i] = (self.dims[i].wrapping_sub(1) & 0xffff_ffff)
                | u64::from(self.box_dims[i] & 0x1ff) << 32
                | u64::from(self.element_strides[i] & 0xf) << 48;
        }
        words[7..11].copy_from_slice(&self.strides);
        words[11] = u64::from(self.data_type.code())
            | (self.rank as u64) << 8
            | u64::from(swizzle_code(self.swizzle)) << 16
            | u64::from(self.nan_fill) << 24
            | u64::from(self.im2col.is_some()) << 25;
        if let Some(b) = &self.im2col {
            for i in 0..3 {
                let corners = u64::from(b.lower[i] as u16) | u64::from(b.upper[i] as u16) << 16;
                words[12 + i / 2] |= corners << (32 * (i % 2));
            }
            words[14] = u64::from(b.channels) | u64::from(b.pixels) << 32;
        }
        let mut bytes = [0; 128];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads an object back.
    ///
    /// # Errors
    /// [`MapError::NoMap`] if the bytes are no map, or the rule that a map modified on the device breaks.
    pub fn decode(bytes: &[u8; 128]) -> Result<Self, MapError> {
        let map = Self::unpack(bytes)?;
        map.check()?;
        Ok(map)
    }

    fn unpack(bytes: &[u8; 128]) -> Result<Self, MapError> {
        let mut words = [0u64; 16];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = chunk.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b));
        }
        let head = words[11];
        let (Some(data_type), Some(swizzle), MAGIC) = (
            DataType::from_code(head as u32 & 0xff),
            swizzle_from_code((head >> 16) as u32 & 0xff),
            words[0],
        ) else {
            return Err(MapError::NoMap);
        };
        let per_dim = |f: fn(u64) -> u64| std::array::from_fn(|i| f(words[2 + i]));
        let corner = |i: usize, up: u32| (words[12 + i / 2] >> (32 * (i % 2) as u32 + up)) as i16;
        let im2col = (head >> 25 & 1 == 1).then(|| Im2col {
            lower: std::array::from_fn(|i| corner(i, 0)),
            upper: std::array::from_fn(|i| corner(i, 16)),
            channels: words[14] as u32,
            pixels: (words[14] >> 32) as u32,
        });
        Ok(Self {
            data_type,
            rank: (head >> 8) as usize & 0xff,
            address: words[1],
            dims: per_dim(|w| (w & 0xffff_ffff) + 1),
            strides: [words[7], words[8], words[9], words[10]],
            box_dims: per_dim(|w| w >> 32 & 0x1ff).map(|x| x as u32),
            element_strides: per_dim(|w| w >> 48 & 0xf).map(|x| x as u32),
            swizzle,
            nan_fill: head >> 24 & 1 == 1,
            im2col,
        })
    }

    /// `tensormap.replace`: sets one field of the object in `bytes`. The object is validated when it
    /// is used, since several replacements make one valid map.
    ///
    /// # Errors
    /// [`MapError::NoMap`] if the bytes are no map or the value is no code of the field.
    pub fn replace(bytes: &mut [u8; 128], field: Field, value: u64) -> Result<(), MapError> {
        // A map is begun from zeros (CUTLASS, Triton).
        let mut map = if *bytes == [0; 128] {
            Self::blank()
        } else {
            Self::unpack(bytes)?
        };
        let set = |slot: Option<&mut u32>| slot.map(|s| *s = value as u32).ok_or(MapError::NoMap);
        match field {
            Field::GlobalAddress => map.address = value,
            // PTX ISA: the rank operand holds the rank less one.
            Field::Rank => map.rank = (value as usize).saturating_add(1).min(0xff),
            Field::BoxDim(i) => set(map.box_dims.get_mut(i))?,
            Field::ElementStride(i) => set(map.element_strides.get_mut(i))?,
            Field::GlobalDim(i) => *map.dims.get_mut(i).ok_or(MapError::NoMap)? = value,
            Field::GlobalStride(i) => *map.strides.get_mut(i).ok_or(MapError::NoMap)? = value,
            Field::ElementType => {
                map.data_type = DataType::of_replace(value).ok_or(MapError::NoMap)?;
            }
            Field::SwizzleMode => {
                map.swizzle = swizzle_from_code(value as u32).ok_or(MapError::NoMap)?;
            }
            Field::FillMode => map.nan_fill = value & 1 == 1,
            // Neither interleaved layouts nor swizzles of other units than 16 bytes.
            Field::Interleave | Field::SwizzleAtomicity if value == 0 => {}
            Field::Interleave | Field::SwizzleAtomicity => return Err(MapError::NoMap),
        }
        *bytes = map.pack();
        Ok(())
    }
}

impl Im2col {
    fn check(&self, rank: usize) -> Result<(), MapError> {
        // CUDA Driver API: corners of 16, 8 and 5 bits for tensors of 3, 4 and 5 dimensions.
        let limit = match rank {
            3 => 1 << 15,
            4 => 1 << 7,
            _ => 1 << 4,
        };
        for c in self.lower.iter().chain(&self.upper).take(6) {
            if !(-limit..limit).contains(&i32::from(*c)) {
                return Err(MapError::Im2col(format!("corner {c} at rank {rank}")));
            }
        }
        if !(1..=256).contains(&self.channels) || !(1..=1024).contains(&self.pixels) {
            return Err(MapError::Im2col(format!(
                "{} channels (1 to 256), {} pixels (1 to 1024)",
                self.channels, self.pixels
            )));
        }
        Ok(())
    }
}

const fn swizzle_code(s: Swizzle) -> u32 {
    match s {
        Swizzle::None => 0,
        Swizzle::B32 => 1,
        Swizzle::B64 => 2,
        Swizzle::B128 => 3,
    }
}

/// The swizzle of the host API's number (`CUtensorMapSwizzle`).
#[must_use]
pub const fn swizzle_from_code(code: u32) -> Option<Swizzle> {
    match code {
        0 => Some(Swizzle::None),
        1 => Some(Swizzle::B32),
        2 => Some(Swizzle::B64),
        3 => Some(Swizzle::B128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map() -> TensorMap {
        TensorMap {
            data_type: DataType::Bf16,
            rank: 2,
            address: 0x1000,
            dims: [512, 128, 1, 1, 1],
            strides: [1024, 16, 16, 16],
            box_dims: [64, 128, 1, 1, 1],
            element_strides: [1; 5],
            swizzle: Swizzle::B128,
            nan_fill: false,
            im2col: None,
        }
    }

    #[test]
    fn every_rule_of_the_host_api() {
        assert_eq!(map().check(), Ok(()));
        let broken = |f: &dyn Fn(&mut TensorMap)| {
            let mut m = map();
            f(&mut m);
            m.encode().unwrap_err()
        };
        assert_eq!(broken(&|m| m.rank = 0), MapError::Rank(0));
        assert_eq!(broken(&|m| m.rank = 6), MapError::Rank(6));
        assert_eq!(broken(&|m| m.address = 8), MapError::Address(8));
        assert_eq!(
            broken(&|m| m.dims[1] = 0),
            MapError::Dim { dim: 1, size: 0 }
        );
        assert!(matches!(
            broken(&|m| m.dims[0] = (1 << 32) + 1),
            MapError::Dim { .. }
        ));
        assert!(matches!(
            broken(&|m| m.strides[0] = 1032),
            MapError::Stride { dim: 1, .. }
        ));
        assert!(matches!(
            broken(&|m| m.strides[0] = 1 << 40),
            MapError::Stride { .. }
        ));
        assert!(matches!(
            broken(&|m| m.box_dims[1] = 257),
            MapError::Box { dim: 1, .. }
        ));
        assert!(matches!(
            broken(&|m| m.box_dims[1] = 0),
            MapError::Box { .. }
        ));
        assert!(matches!(
            broken(&|m| m.element_strides[1] = 9),
            MapError::ElementStride { .. }
        ));
        assert_eq!(broken(&|m| m.box_dims[0] = 12), MapError::InnerBytes(24));
        assert!(matches!(
            broken(&|m| m.box_dims[0] = 128),
            MapError::SwizzleSpan {
                bytes: 256,
                span: 128
            }
        ));
        let nan = |m: &mut TensorMap| (m.data_type, m.nan_fill) = (DataType::U16, true);
        assert!(matches!(broken(&nan), MapError::NanFill(_)));
        let mut wide = map();
        (wide.box_dims[0], wide.swizzle) = (128, Swizzle::None);
        assert_eq!(wide.check(), Ok(()));
    }

    #[test]
    fn replacement_on_the_device() {
        let mut bytes = map().encode().unwrap();
        TensorMap::replace(&mut bytes, Field::GlobalAddress, 0x8000).unwrap();
        TensorMap::replace(&mut bytes, Field::GlobalDim(1), 64).unwrap();
        TensorMap::replace(&mut bytes, Field::SwizzleMode, 2).unwrap();
        TensorMap::replace(&mut bytes, Field::BoxDim(0), 32).unwrap();
        let m = TensorMap::decode(&bytes).unwrap();
        assert_eq!(
            (m.address, m.dims[1], m.swizzle, m.box_dims[0]),
            (0x8000, 64, Swizzle::B64, 32)
        );
        assert!(TensorMap::replace(&mut bytes, Field::BoxDim(7), 1).is_err());
        assert_eq!(TensorMap::decode(&[0; 128]), Err(MapError::NoMap));
    }

    proptest! {
        #[test]
        fn maps_survive_a_round_trip(
            rank in 1usize..=5,
            dims in prop::array::uniform5(1u64..=1 << 32),
            strides in prop::array::uniform4((0u64..1 << 36).prop_map(|s| s * 16)),
            boxes in prop::array::uniform5(1u32..=16),
            steps in prop::array::uniform5(1u32..=8),
            code in 0u32..13,
            lower in prop::array::uniform3(-16i16..16),
        ) {
            let mut m = TensorMap { rank, dims, strides, box_dims: boxes, element_strides: steps, ..map() };
            m.data_type = DataType::from_code(code).unwrap();
            m.box_dims[0] = 16;
            m.nan_fill = m.data_type.is_float();
            if rank >= 3 {
                m.im2col = Some(Im2col { lower, upper: lower, channels: 16, pixels: 1024 });
            }
            prop_assert_eq!(TensorMap::decode(&m.encode().unwrap()).unwrap(), m);
        }

        #[test]
        fn hostile_bytes_never_panic(seed in prop::collection::vec(any::<u8>(), 120), field in 0usize..8, value: u64) {
            let mut bytes = [0u8; 128];
            bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
            bytes[8..].copy_from_slice(&seed);
            let _ = TensorMap::decode(&bytes);
            let _ = TensorMap::replace(&mut bytes, Field::GlobalStride(field), value);
            let _ = TensorMap::replace(&mut bytes, Field::Rank, value);
        }
    }
}
