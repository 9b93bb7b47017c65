//! Chips, as tables.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A generation of the core, as the vendor counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// NeuronCore-v2: trn1.
    Gen2,
    /// NeuronCore-v3: trn2.
    Gen3,
}

/// A unit of a core that has an instruction stream of its own (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The systolic array: products and transposes.
    Tensor,
    /// Elementwise work and reductions along the free dimensions.
    Vector,
    /// Functions of one variable.
    Scalar,
    /// General-purpose processors: iota, selects by index, work across partitions.
    Gpsimd,
    /// The queues that start transfers between HBM and SBUF.
    Dma,
}

impl Engine {
    /// Every engine, in the order of the timeline's rows.
    pub const ALL: [Engine; 5] = [
        Engine::Tensor,
        Engine::Vector,
        Engine::Scalar,
        Engine::Gpsimd,
        Engine::Dma,
    ];

    /// The name in the IR and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Tensor => "tensor",
            Engine::Vector => "vector",
            Engine::Scalar => "scalar",
            Engine::Gpsimd => "gpsimd",
            Engine::Dma => "dma",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One core of a chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// The name, as instances are called.
    pub name: &'static str,
    /// Its generation.
    pub generation: Generation,
    /// Bytes of SBUF in a partition that a kernel may use (NKG; ISA: 192 KiB less 16 KiB on trn1).
    pub sbuf_bytes: i64,
    /// Clocks in Hz: tensor, vector, scalar, gpsimd (A1, A2).
    pub clocks: [f64; 4],
    /// Peak rate of all DMA engines together, in bytes a second (DMA).
    pub dma_bytes_per_second: f64,
    /// From an instruction to the first that may use its result, in cycles of its engine (A1).
    pub access_cycles: f64,
    /// The vector engine and gpsimd take turns at SBUF, the vector and the scalar engine at PSUM (A1; lifted by A2).
    pub shares_ports: bool,
    /// The vector engine has modes of two and four elements a cycle for 16-bit types (A2).
    pub fast_vector_modes: bool,
    /// The scalar engine executes `tensor_copy` and `tensor_scalar` (A2).
    pub scalar_copies: bool,
}

/// Trainium 1.
pub const TRN1: Chip = Chip {
    name: "trn1",
    generation: Generation::Gen2,
    sbuf_bytes: 180_224,
    clocks: [2.8e9, 1.12e9, 1.4e9, 1.4e9],
    dma_bytes_per_second: 272e9,
    access_cycles: 60.0,
    shares_ports: true,
    fast_vector_modes: false,
    scalar_copies: false,
};

/// Trainium 2. Its latency of an access is taken from trn1, as no source gives it.
pub const TRN2: Chip = Chip {
    name: "trn2",
    generation: Generation::Gen3,
    sbuf_bytes: 212_984,
    clocks: [2.4e9, 0.96e9, 1.2e9, 1.2e9],
    dma_bytes_per_second: 368e9,
    access_cycles: 60.0,
    shares_ports: false,
    fast_vector_modes: true,
    scalar_copies: true,
};

/// The chips that there are.
pub const CHIPS: [&Chip; 2] = [&TRN1, &TRN2];

/// The chip of this name.
#[must_use]
pub fn chip(name: &str) -> Option<&'static Chip> {
    CHIPS.into_iter().find(|chip| chip.name == name)
}

impl Chip {
    /// The clock of an engine in Hz; `None` for DMA, which has none of its own.
    #[must_use]
    pub const fn clock(&self, engine: Engine) -> Option<f64> {
        match engine {
            Engine::Tensor => Some(self.clocks[0]),
            Engine::Vector => Some(self.clocks[1]),
            Engine::Scalar => Some(self.clocks[2]),
            Engine::Gpsimd => Some(self.clocks[3]),
            Engine::Dma => None,
        }
    }

    /// Whether the chip is trn2 or later.
    #[must_use]
    pub fn is_at_least(&self, generation: Generation) -> bool {
        self.generation >= generation
    }
}
