//! One set of random operands in device memory, which cuBLASLt and all candidates share.

use std::sync::Arc;

use axe_package::DType;

use super::fill::{Filler, Numbers};
use super::packages::Role;
use super::problem::{BLOCK, Gemm, Operands, Scaling};
use crate::device::{Device, DeviceMemory};
use crate::error::RuntimeError;

/// A set of operands.
#[derive(Debug)]
pub struct OperandSet {
    a: Arc<DeviceMemory>,
    w: Arc<DeviceMemory>,
    c: Arc<DeviceMemory>,
    scales: Option<Scales>,
}

/// The scales of a set. Block scales exist twice: as people write them, and as cuBLASLt takes them
/// ("Scaling factors layouts" in its documentation): A's with m innermost, and W's rows of blocks
/// padded to multiples of four.
#[derive(Debug)]
struct Scales {
    a: Arc<DeviceMemory>,
    w: Arc<DeviceMemory>,
    blocks: Option<(Arc<DeviceMemory>, Arc<DeviceMemory>)>,
}

impl OperandSet {
    /// Allocates and fills; another `seed` gives other numbers.
    ///
    /// # Errors
    /// Out of memory, or the driver's.
    pub fn new(
        device: &Device,
        filler: &Filler,
        gemm: &Gemm,
        seed: u32,
    ) -> Result<Self, RuntimeError> {
        let random = |name: &str, numbers: Numbers, elements: u64, dtype: DType, salt: u32| {
            // Rounded up to the words that the fill writes.
            let bytes = (elements * dtype.bytes() as u64).next_multiple_of(4);
            let memory = DeviceMemory::new(device, name, bytes, 256)?;
            // SAFETY: the memory has that many bytes.
            unsafe { filler.fill(numbers, memory.address(), bytes, seed * 16 + salt) }?;
            Ok::<_, RuntimeError>(Arc::new(memory))
        };
        let operand = Numbers::Operand(gemm.dtype);
        let scale = |name, shape: &[u64], salt| {
            let elements = shape.iter().product();
            random(name, Numbers::Scale, elements, DType::F32, salt)
        };
        let scales = match (gemm.scaling, gemm.scale_shapes()) {
            (_, None) => None,
            (Scaling::Block, Some(shapes)) => Some(block_scales(device, &shapes, seed)?),
            (_, Some((a, w))) => Some(Scales {
                a: scale("A's scales", &a, 3)?,
                w: scale("W's scales", &w, 4)?,
                blocks: None,
            }),
        };
        let c_bytes = gemm.m * gemm.n * gemm.out().bytes() as u64;
        Ok(OperandSet {
            a: random("A", operand, gemm.m * gemm.k, gemm.dtype, 1)?,
            w: random("W", operand, gemm.n * gemm.k, gemm.dtype, 2)?,
            c: Arc::new(DeviceMemory::new(device, "C", c_bytes, 256)?),
            scales,
        })
    }

    /// The result's memory.
    #[must_use]
    pub fn c(&self) -> &Arc<DeviceMemory> {
        &self.c
    }

    /// The memory of an input; `None` for scales that there are not.
    #[must_use]
    pub fn input(&self, role: Role) -> Option<&Arc<DeviceMemory>> {
        let scales = self.scales.as_ref();
        match role {
            Role::A => Some(&self.a),
            Role::W => Some(&self.w),
            Role::ScalesOfA => scales.map(|s| &s.a),
            Role::ScalesOfW => scales.map(|s| &s.w),
            Role::ScalesOfATransposed => scales.and_then(|s| s.blocks.as_ref()).map(|b| &b.0),
        }
    }

    /// The addresses as cuBLASLt takes them.
    #[must_use]
    pub fn operands(&self) -> Operands {
        let scales = self.scales.as_ref().map(|s| match &s.blocks {
            Some((a, w)) => (a.address(), w.address()),
            None => (s.a.address(), s.w.address()),
        });
        Operands {
            a: self.a.address(),
            w: self.w.address(),
            c: self.c.address(),
            scales,
        }
    }

    /// Checks that nothing was written just outside.
    ///
    /// # Errors
    /// The memory whose neighbourhood changed.
    pub fn check_guards(&self) -> Result<(), RuntimeError> {
        [(&self.a, "A"), (&self.w, "W"), (&self.c, "C")]
            .into_iter()
            .try_for_each(|(memory, name)| memory.check_guards(name))
    }
}

fn block_scales(
    device: &Device,
    (a, w): &(Vec<u64>, Vec<u64>),
    seed: u32,
) -> Result<Scales, RuntimeError> {
    let upload = |name, values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let memory = DeviceMemory::new(device, name, bytes.len() as u64, 256)?;
        memory.upload(&bytes)?;
        Ok::<_, RuntimeError>(Arc::new(memory))
    };
    let size = |shape: &[u64], i: usize| shape.get(i).map_or(1, |v| *v as usize);
    let (m, kb, nb) = (size(a, 0), size(a, 1), size(w, 0));
    let (of_a, of_w) = (random(m * kb, seed * 2), random(nb * kb, seed * 2 + 1));
    let blocks = (
        upload("A's scales for cuBLASLt", &transposed(&of_a, kb))?,
        upload("W's scales for cuBLASLt", &padded(&of_w, kb))?,
    );
    Ok(Scales {
        a: upload("A's scales", &of_a)?,
        w: upload("W's scales", &of_w)?,
        blocks: Some(blocks),
    })
}

/// Numbers in [0.5, 1.5), the same for the same seed (the finaliser of MurmurHash3).
fn random(count: usize, seed: u32) -> Vec<f32> {
    let hash = |i: usize| {
        let mut x = (i as u32)
            .wrapping_mul(0x9E37_79B1)
            .wrapping_add(seed.wrapping_mul(0x85EB_CA77));
        x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
        x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
        x ^ (x >> 16)
    };
    (0..count)
        .map(|i| 0.5 + (hash(i) >> 8) as f32 / (1 << 24) as f32)
        .collect()
}

/// The transpose of rows of `columns` numbers.
fn transposed(values: &[f32], columns: usize) -> Vec<f32> {
    (0..columns)
        .flat_map(|c| values.iter().skip(c).step_by(columns.max(1)).copied())
        .collect()
}

/// Rows of `columns` numbers, each filled up with ones to a multiple of four.
fn padded(values: &[f32], columns: usize) -> Vec<f32> {
    let fill = columns.next_multiple_of(4) - columns;
    values
        .chunks(columns.max(1))
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(1.0, fill)))
        .collect()
}

/// The number of the block of W \[n, k\] that scales the sum over block `kb` of column `column`.
#[must_use]
pub fn block_of(column: u64, kb: u64, blocks_along_k: u64) -> u64 {
    column / BLOCK * blocks_along_k + kb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_scales() {
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(transposed(&rows, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(padded(&rows, 3), [1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 6.0, 1.0]);
        assert_eq!(padded(&rows[..4], 4), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(block_of(300, 2, 5), 12);
    }

    #[test]
    fn scales_are_random_and_reproducible() {
        let one = random(4096, 1);
        assert_eq!(one, random(4096, 1));
        assert_ne!(one, random(4096, 2));
        assert!(one.iter().all(|v| (0.5..1.5).contains(v)));
        let mean = one.iter().sum::<f32>() / 4096.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
