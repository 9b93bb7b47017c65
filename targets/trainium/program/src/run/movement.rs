//! Copies, fills, shuffles.

use super::{Task, memory};

impl Task<'_, '_, '_> {
    /// Bit by bit between equal types, through f32 otherwise.
    pub(super) fn copy(&mut self) {
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let to = self.dtype(dst);
        let (from, _, bytes) = self.raw("src");
        match from == to {
            true => self.store("dst", &bytes),
            false => self.put("dst", &memory::decode(from, &bytes)),
        }
    }

    pub(super) fn fill(&mut self, value: f64) {
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let mut element = Vec::new();
        self.dtype(dst).push_f64(value, &mut element);
        let count: i64 = dst.access.axes.iter().map(|axis| axis.size).product();
        self.store("dst", &element.repeat(count as usize));
    }

    pub(super) fn predicated(&mut self, reverse: bool) {
        let (dtype, _, src) = self.raw("src");
        let (_, predicate) = self.bits("predicate");
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let size = dtype.bytes();
        let (held, _) = self.machine.memory.read(dst, dtype);
        let chosen = predicate.iter().map(|bits| (*bits != 0) != reverse);
        // What is not chosen stays as it is, unwritten too.
        let mut cells = Vec::new();
        dst.access
            .each(&mut |partition, element| cells.push((partition, element)));
        let mut bytes = held;
        let mut written = Vec::new();
        for (index, chosen) in chosen.enumerate().take(cells.len()) {
            if chosen {
                bytes[index * size..(index + 1) * size]
                    .copy_from_slice(&src[index * size..(index + 1) * size]);
                written.push(cells[index]);
            }
        }
        self.store_cells(&written, &cells, &bytes, size);
    }

    /// Writes some elements of the destination.
    fn store_cells(
        &mut self,
        written: &[(i64, i64)],
        cells: &[(i64, i64)],
        bytes: &[u8],
        size: usize,
    ) {
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let dtype = self.dtype(dst);
        let mut chosen = written.iter().peekable();
        for (index, cell) in cells.iter().enumerate() {
            if chosen.peek() != Some(&cell) {
                continue;
            }
            chosen.next();
            let mut one = dst.clone();
            one.access.partition = cell.0;
            one.access.offset = cell.1;
            one.access.axes.clear();
            let element = &bytes[index * size..(index + 1) * size];
            self.machine.memory.write(&one, dtype, element, false);
        }
    }

    pub(super) fn shuffle(&mut self, mask: &[i64]) {
        let (dtype, columns, src) = self.raw("src");
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let row = columns * dtype.bytes();
        let (mut bytes, _) = self.machine.memory.read(dst, dtype);
        for (partition, to) in bytes.chunks_exact_mut(row.max(1)).enumerate() {
            let group = partition / mask.len().max(1) * mask.len();
            let from = mask.get(partition - group).copied().unwrap_or(255);
            if from != 255 {
                let begin = (group + from as usize) * row;
                to.copy_from_slice(&src[begin..begin + row]);
            }
        }
        self.store("dst", &bytes);
    }
}
