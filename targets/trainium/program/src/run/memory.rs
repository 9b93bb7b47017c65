//! The memories of a core, with who wrote each byte.

use crate::facts::chip::Chip;
use crate::facts::memory::{PARTITIONS, PSUM_BYTES};
use crate::program::{Buffer, Program, Role, Space};
use crate::rules::buffer::copy_bytes;
use crate::walk::Located;
use axe_package::DType;
use std::collections::BTreeMap;

/// One address space.
#[derive(Debug)]
struct Bank {
    /// Bytes of one partition.
    room: usize,
    bytes: Vec<u8>,
    /// For each byte, the buffer that it was written through, plus 1; 0 when it was not written.
    owner: Vec<u32>,
}

impl Bank {
    fn new(room: usize, partitions: usize) -> Self {
        Self {
            room,
            bytes: vec![0xFF; room * partitions],
            owner: vec![0; room * partitions],
        }
    }
}

/// All memories of a core.
#[derive(Debug)]
pub struct Memory {
    sbuf: Bank,
    psum: Bank,
    hbm: BTreeMap<usize, Bank>,
    /// For each 32-bit word of PSUM, whether a product wrote it last.
    product: Vec<bool>,
}

/// Where an element is: the first partition and element not written, when there is one.
pub type Missing = Option<(i64, i64)>;

impl Memory {
    /// The memories before a program, with its inputs.
    #[must_use]
    pub fn new(program: &Program, chip: &Chip, inputs: BTreeMap<usize, Vec<u8>>) -> Self {
        let partitions = PARTITIONS as usize;
        let mut hbm: BTreeMap<usize, Bank> = program
            .with_role(Role::Output)
            .map(|(index, buffer)| (index, Bank::new(buffer.bytes() as usize, 1)))
            .collect();
        for (index, bytes) in inputs {
            let owner = vec![index as u32 + 1; bytes.len()];
            hbm.insert(
                index,
                Bank {
                    room: bytes.len(),
                    bytes,
                    owner,
                },
            );
        }
        for (index, buffer) in program.with_role(Role::Local) {
            if buffer.space == Space::Hbm {
                hbm.insert(index, Bank::new(buffer.bytes() as usize, 1));
            }
        }
        Self {
            sbuf: Bank::new(chip.sbuf_bytes as usize, partitions),
            psum: Bank::new(PSUM_BYTES as usize, partitions),
            hbm,
            product: vec![false; PSUM_BYTES as usize / 4 * partitions],
        }
    }

    /// The bytes of a buffer in HBM.
    #[must_use]
    pub fn hbm(&self, buffer: usize) -> &[u8] {
        self.hbm.get(&buffer).map_or(&[], |bank| &bank.bytes)
    }

    /// The first element of a buffer in HBM that was not written.
    #[must_use]
    pub fn unwritten(&self, buffer: usize, dtype: DType) -> Option<usize> {
        let owner = &self.hbm.get(&buffer)?.owner;
        owner
            .iter()
            .position(|by| *by == 0)
            .map(|byte| byte / dtype.bytes())
    }

    fn bank(&mut self, space: Space, buffer: usize) -> Option<&mut Bank> {
        match space {
            Space::Hbm => self.hbm.get_mut(&buffer),
            Space::Sbuf => Some(&mut self.sbuf),
            Space::Psum => Some(&mut self.psum),
        }
    }

    /// A buffer on chip is made at `byte`: nothing in it is written any more.
    pub fn forget(&mut self, buffer: &Buffer, byte: i64) {
        let first = buffer.place.map_or(0, |place| place.partition);
        let bank = match buffer.space {
            Space::Hbm => return,
            Space::Sbuf => &mut self.sbuf,
            Space::Psum => &mut self.psum,
        };
        for partition in first..first + buffer.partitions() {
            let begin = partition as usize * bank.room + byte as usize;
            let end = begin + copy_bytes(buffer) as usize;
            if let Some(owner) = bank
                .owner
                .get_mut(begin..end.min((partition as usize + 1) * bank.room))
            {
                owner.fill(0);
            }
            if buffer.space == Space::Psum {
                for product in self.product.iter_mut().take(end / 4).skip(begin / 4) {
                    *product = false;
                }
            }
        }
    }

    /// The elements of an operand in order, and the first of them that was not written through its buffer.
    #[must_use]
    pub fn read(&mut self, operand: &Located, dtype: DType) -> (Vec<u8>, Missing) {
        let size = dtype.bytes();
        let owner = operand.access.buffer as u32 + 1;
        let (mut out, mut missing) = (Vec::new(), None);
        let Some(bank) = self.bank(operand.space, operand.access.buffer) else {
            return (out, missing);
        };
        operand.access.each(&mut |partition, element| {
            let at = address(operand, bank.room, partition, element, size);
            match bank.bytes.get(at..at + size) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => out.extend(std::iter::repeat_n(0xFF, size)),
            }
            let written = bank
                .owner
                .get(at..at + size)
                .is_some_and(|all| all.iter().all(|by| *by == owner));
            if !written && missing.is_none() {
                missing = Some((partition, element));
            }
        });
        (out, missing)
    }

    /// Writes elements in order; `product` says that the tensor engine does.
    pub fn write(&mut self, operand: &Located, dtype: DType, bytes: &[u8], product: bool) {
        let size = dtype.bytes();
        let owner = operand.access.buffer as u32 + 1;
        let psum = operand.space == Space::Psum;
        let mut words = Vec::new();
        if let Some(bank) = self.bank(operand.space, operand.access.buffer) {
            let mut elements = bytes.chunks_exact(size);
            operand.access.each(&mut |partition, element| {
                let at = address(operand, bank.room, partition, element, size);
                let Some(value) = elements.next() else {
                    return;
                };
                if let Some(to) = bank.bytes.get_mut(at..at + size) {
                    to.copy_from_slice(value);
                }
                if let Some(by) = bank.owner.get_mut(at..at + size) {
                    by.fill(owner);
                }
                if psum {
                    words.push(at / 4);
                }
            });
        }
        for word in words {
            if let Some(flag) = self.product.get_mut(word) {
                *flag = product;
            }
        }
    }

    /// Whether each element of an operand in PSUM was last written by a product, through its buffer.
    #[must_use]
    pub fn products(&self, operand: &Located, size: usize) -> Vec<bool> {
        let owner = operand.access.buffer as u32 + 1;
        let mut flags = Vec::new();
        operand.access.each(&mut |partition, element| {
            let at = address(operand, self.psum.room, partition, element, size);
            let started = self.product.get(at / 4).copied().unwrap_or(false);
            flags.push(started && self.psum.owner.get(at) == Some(&owner));
        });
        flags
    }
}

/// The address of an element in its space.
fn address(operand: &Located, room: usize, partition: i64, element: i64, size: usize) -> usize {
    let partition = match operand.space.has_partitions() {
        true => partition + operand.partition,
        false => 0,
    };
    partition.max(0) as usize * room + (operand.byte + element * size as i64).max(0) as usize
}

/// Elements as f32.
#[must_use]
pub fn decode(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(dtype.bytes())
        .map(|element| dtype.to_f64(element).unwrap_or(f64::NAN) as f32)
        .collect()
}

/// Elements of f32 in another type: floats to nearest even, integers to the nearest even one, saturated.
#[must_use]
pub fn encode(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * dtype.bytes());
    for value in values {
        let value = f64::from(*value);
        let value = if dtype.is_float() {
            value
        } else {
            value.round_ties_even()
        };
        dtype.push_f64(value, &mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_to_even_and_saturate() {
        assert_eq!(
            encode(DType::I8, &[0.5, 1.5, 2.5, -0.5, 1e9, -1e9, 3.4]),
            [0, 2, 2, 0, 127, 128, 3]
        );
        assert_eq!(
            decode(DType::BF16, &encode(DType::BF16, &[1.003_906_2, 3.0])),
            [1.0, 3.0]
        );
    }
}
