//! Products and transposes.

use super::{Task, memory};
use crate::program::Accumulate;

impl Task<'_, '_, '_> {
    pub(super) fn product(&mut self, accumulate: Accumulate) {
        let (stationary, moving) = (self.values("stationary"), self.values("moving"));
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let dtype = self.dtype(dst);
        let (m, n) = (stationary.columns, moving.columns);
        let started = self.machine.memory.products(dst, dtype.bytes());
        let any = started.iter().any(|flag| *flag);
        let all = started.iter().all(|flag| *flag);
        let fault = match accumulate {
            Accumulate::Always if !all => {
                Some("adds to elements that no product wrote since they were made or overwritten")
            }
            Accumulate::Auto if any && !all => {
                Some("meets elements that products wrote and elements that they did not")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            self.report("R2", format!("dst: one instruction {fault}"));
        }
        let mut sums = vec![0f32; m * n];
        for k in 0..stationary.rows().min(moving.rows()) {
            let row = moving.row(k);
            for (a, sums) in stationary.row(k).iter().zip(sums.chunks_exact_mut(n)) {
                for (sum, b) in sums.iter_mut().zip(row) {
                    *sum += a * b;
                }
            }
        }
        if accumulate != Accumulate::Never && any {
            let (held, _) = self.machine.memory.read(dst, dtype);
            for ((sum, held), started) in sums
                .iter_mut()
                .zip(memory::decode(dtype, &held))
                .zip(&started)
            {
                if *started || accumulate == Accumulate::Always {
                    *sum += held;
                }
            }
        }
        let bytes = memory::encode(dtype, &sums);
        self.machine.memory.write(dst, dtype, &bytes, true);
    }

    pub(super) fn transpose(&mut self) {
        let role = match self.operand("data") {
            Some(_) => "data",
            None => "src",
        };
        let (dtype, columns, bytes) = self.raw(role);
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let to = self.dtype(dst);
        let size = dtype.bytes();
        let rows = bytes.len() / (size * columns.max(1)).max(1);
        let mut transposed = Vec::with_capacity(bytes.len());
        for column in 0..columns {
            for row in 0..rows {
                let at = (row * columns + column) * size;
                transposed.extend_from_slice(&bytes[at..at + size]);
            }
        }
        match to == dtype {
            true => self.store("dst", &transposed),
            false => self.put("dst", &memory::decode(dtype, &transposed)),
        }
    }
}
