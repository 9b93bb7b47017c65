//! Chips: limits of a CTA, what instructions there are, and how fast they are.

use super::rates::{AttentionRates, MmaRates, StridedRates, WgmmaRates};

/// Registers of a multiprocessor of every chip here (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability"). A thread's are counted in eights.
pub const MULTIPROCESSOR_REGISTERS: i64 = 64 * 1024;
/// Shared memory that each CTA takes beside its own (CUDA C++ Programming Guide, "Compute Capabilities", shared memory of 8.x and 9.0).
pub const RESERVED_BYTES: i64 = 1024;
/// Registers of a thread at most (the same table).
pub const THREAD_REGISTERS: i64 = 255;

/// CTAs of a grid along y and z at most (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
pub const MOST_BLOCKS: i64 = 65_535;

/// CTAs of a cluster at most, on every chip that has clusters (CUDA C++ Programming Guide, "Thread Block Clusters").
pub const MOST_CLUSTER: i64 = 8;
/// The same where a kernel asks for it, on those that have room for it (the same section, "non-portable").
pub const NON_PORTABLE_CLUSTER: i64 = 16;
/// Bytes of the widest access of a thread (PTX ISA, "Vectors as Operands": `.v4.b32`).
pub const ACCESS_BYTES: i64 = 16;
/// Bytes of the narrowest `cp.async` (PTX ISA 9.7.9.25.3).
pub const LEAST_ASYNC_BYTES: i64 = 4;
/// Bytes of which those between a tensor map's rows are a multiple (CUDA driver API, `cuTensorMapEncodeTiled`, globalStrides).
pub const ROW_ALIGNMENT: i64 = 16;
/// CTAs that a multiprocessor of every chip here may have at once: sm_86 has that many, others more (the table of
/// [`MULTIPROCESSOR_REGISTERS`]).
pub const MULTIPROCESSOR_CTAS: i64 = 16;
/// Bytes of a bank of shared memory (CUDA C++ Programming Guide, "Shared Memory" of each compute capability).
pub const BANK_BYTES: i64 = 4;
/// Bytes that all 32 banks of shared memory serve at a time (the same section).
pub const BANKS_BYTES: i64 = 32 * BANK_BYTES;
/// Bytes of a sector, a quarter of a line of L2 and the unit of traffic with it (CUDA C++ Best Practices Guide,
/// "Coalesced Access to Global Memory").
pub const SECTOR_BYTES: i64 = 32;
/// Bytes of a line of L2, by which boxes of a tensor map are read.
pub const LINE_BYTES: i64 = 128;

/// One chip that code can be compiled for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// The name that LLVM and ptxas know.
    pub name: &'static str,
    /// The PTX version that LLVM emits for it (LLVM 22 emits up to 9.0, the ISA of CUDA 13.0).
    pub ptx_feature: &'static str,
    /// Shared memory that one CTA may have, in bytes (CUDA C++ Programming Guide, "Technical
    /// Specifications per Compute Capability").
    pub shared_bytes: i64,
    /// Threads of a multiprocessor at most (the same table).
    pub multiprocessor_threads: i64,
    /// Bytes of its L2 (NVIDIA's architecture white papers: A100, GA102, L40S, H100).
    pub cache_bytes: i64,
    /// Whether it has `stmatrix` (PTX ISA 9.7.14.5.16: sm_90 and up).
    pub has_stmatrix: bool,
    /// Whether it has the tensor memory accelerator (PTX ISA 9.7.9.27: sm_90 and up).
    pub has_tma: bool,
    /// Whether it converts 8-bit floats in pairs (PTX ISA 9.7.9.21, `cvt.e4m3x2`: sm_89 and up).
    pub converts_float8: bool,
    /// Whether it has `wgmma` (PTX ISA 9.7.15: sm_90a alone).
    pub has_wgmma: bool,
    /// Streaming multiprocessors of the full data-centre part, for planning without a device.
    pub multiprocessors: i64,
    /// Those of them that clusters of four and more CTAs find, one CTA each: what `cudaOccupancyMaxActiveClusters`
    /// gives for an H200: 30 clusters of four, 15 of eight, 7 of sixteen, and as many times that as CTAs are resident. Clusters stay
    /// within a graphics processing cluster, whose multiprocessors four may not divide. Parts of the family with fewer multiprocessors
    /// (H100 PCIe: 114) have room for fewer: what a plan says is right there, but clusters beyond the room begin when others have ended.
    pub clustered: i64,
    /// How fast kernels whose warps all copy and multiply are.
    pub mma: MmaRates,
    /// How fast those by wgmma are, where it has that.
    pub wgmma: Option<WgmmaRates>,
    /// How fast kernels of rows whose columns have a stride are.
    pub strided: StridedRates,
    /// How fast attention in one kernel is, where it has wgmma.
    pub attention: Option<AttentionRates>,
}

impl Chip {
    /// Clusters of so many CTAs, one CTA a multiprocessor, that run at once.
    #[must_use]
    pub const fn clusters(&self, ctas: i64) -> i64 {
        match ctas {
            ..=2 => self.multiprocessors / if ctas < 1 { 1 } else { ctas },
            _ => self.clustered / ctas,
        }
    }
}

/// The chips of this target.
pub const CHIPS: [Chip; 4] = [
    Chip {
        name: "sm_80",
        ptx_feature: "+ptx90",
        shared_bytes: 163 * 1024,
        multiprocessor_threads: 2048,
        cache_bytes: 40 * 1024 * 1024,
        has_stmatrix: false,
        has_tma: false,
        converts_float8: false,
        has_wgmma: false,
        multiprocessors: 108,
        clustered: 0,
        mma: MmaRates::USUAL,
        wgmma: None,
        strided: StridedRates::H100,
        attention: None,
    },
    Chip {
        name: "sm_86",
        ptx_feature: "+ptx90",
        shared_bytes: 99 * 1024,
        multiprocessor_threads: 1536,
        cache_bytes: 6 * 1024 * 1024,
        has_stmatrix: false,
        has_tma: false,
        converts_float8: false,
        has_wgmma: false,
        multiprocessors: 84,
        clustered: 0,
        mma: MmaRates::USUAL,
        wgmma: None,
        strided: StridedRates::H100,
        attention: None,
    },
    Chip {
        name: "sm_89",
        ptx_feature: "+ptx90",
        shared_bytes: 99 * 1024,
        multiprocessor_threads: 1536,
        cache_bytes: 96 * 1024 * 1024,
        has_stmatrix: false,
        has_tma: false,
        converts_float8: true,
        has_wgmma: false,
        multiprocessors: 142,
        clustered: 0,
        mma: MmaRates::USUAL,
        wgmma: None,
        strided: StridedRates::H100,
        attention: None,
    },
    Chip {
        name: "sm_90a",
        ptx_feature: "+ptx90",
        shared_bytes: 227 * 1024,
        multiprocessor_threads: 2048,
        cache_bytes: 50 * 1024 * 1024,
        has_stmatrix: true,
        has_tma: true,
        converts_float8: true,
        has_wgmma: true,
        multiprocessors: 132,
        clustered: 120,
        mma: MmaRates::H200,
        wgmma: Some(WgmmaRates::H200),
        strided: StridedRates::H100,
        attention: Some(AttentionRates::H200),
    },
];

/// The chip of this name.
#[must_use]
pub fn chip(name: &str) -> Option<&'static Chip> {
    CHIPS.iter().find(|chip| chip.name == name)
}
