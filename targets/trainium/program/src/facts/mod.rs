//! What the hardware is. Each number has one home here, with its source.
//!
//! Sources, as the tables cite them:
//!
//! * A1: Trainium/Inferentia2 Architecture Guide for NKI; A2: Trainium2 Architecture Guide;
//! * ISA: `nki.isa` reference, NKI 0.1 (Neuron SDK 2.26.1), the last one with a cost formula for each instruction;
//! * AP: NKI Access Patterns; MIG: NKI Migration Guides;
//! * DMA: Introduction to DMA with NKI, Guideline to Avoid Under-Utilizing DMA Bandwidth; DGE: DGE Reference;
//! * NKG: hardware constants of nkipy/nkigen, which mirror the vendor's wheel;
//! * MM: the matrix multiplication tutorial of SDK 2.26, with its published times.

pub mod chip;
pub mod dma;
pub mod memory;
