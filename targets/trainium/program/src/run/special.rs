//! Selections by index, iota, statistics, the eight largest.

use super::Task;
use crate::program::{Alu, Op};

impl Task<'_, '_, '_> {
    pub(super) fn special(&mut self) {
        match &self.execution.instruction.op {
            Op::AffineSelect {
                on_false,
                pattern,
                offset,
                channel_multiplier,
                compare,
                ..
            } => {
                let indices = self.affine(pattern, *offset, *channel_multiplier);
                let keeps = |index: i64| compare.apply(index as f32, 0.0) != 0.0;
                self.affine_select(&indices, keeps, *on_false as f32);
            }
            Op::Iota {
                pattern,
                offset,
                channel_multiplier,
                ..
            } => {
                let values = self.affine(pattern, *offset, *channel_multiplier);
                self.iota(&values);
            }
            Op::RangeSelect { .. } => self.range_select(),
            Op::BnStats { .. } => {
                let data = self.values("data");
                let stats: Vec<f32> = (0..data.rows())
                    .flat_map(|row| [0, 1].map(|odd| statistics(data.row(row), odd)))
                    .flatten()
                    .collect();
                self.put("dst", &stats);
            }
            Op::BnAggr { .. } => {
                let data = self.values("data");
                let results: Vec<f32> = (0..data.rows())
                    .flat_map(|row| aggregate(data.row(row)))
                    .collect();
                self.put("dst", &results);
            }
            Op::Max8 { .. } => {
                let data = self.values("src");
                let results: Vec<f32> = (0..data.rows())
                    .flat_map(|row| {
                        let mut values = data.row(row).to_vec();
                        values.sort_by(|a, b| b.total_cmp(a));
                        values.into_iter().take(8)
                    })
                    .collect();
                self.put("dst", &results);
            }
            Op::NcFindIndex8 { .. } => self.find_index(),
            Op::NcMatchReplace8 { imm, .. } => self.replace(*imm as f32),
            _ => {}
        }
    }

    fn affine_select(&mut self, indices: &[i64], keeps: impl Fn(i64) -> bool, on_false: f32) {
        let data = self.values("on_true_tile");
        let both = data.data.iter().zip(indices);
        let chosen: Vec<f32> = both
            .map(|(value, index)| if keeps(*index) { *value } else { on_false })
            .collect();
        self.put("dst", &chosen);
    }

    fn iota(&mut self, values: &[i64]) {
        let Some(dst) = self.operand("dst") else {
            return;
        };
        let dtype = self.dtype(dst);
        let mut bytes = Vec::new();
        for value in values {
            dtype.push_f64(f64::from(*value as i32), &mut bytes);
        }
        self.store("dst", &bytes);
    }

    /// `offset + p * channel_multiplier + sum of i_d * pattern_d` for every element of the destination.
    fn affine(&self, pattern: &[i64], offset: i64, channel_multiplier: i64) -> Vec<i64> {
        let Some(dst) = self.operand("dst") else {
            return Vec::new();
        };
        let sizes: Vec<i64> = dst.access.axes.iter().map(|axis| axis.size).collect();
        let steps: Vec<i64> = std::iter::once(channel_multiplier)
            .chain(pattern.iter().copied())
            .collect();
        let count: i64 = sizes.iter().product();
        (0..count)
            .map(|flat| {
                let mut rest = flat;
                let mut value = offset;
                for (size, step) in sizes.iter().zip(&steps).rev() {
                    value = value.wrapping_add((rest % size).wrapping_mul(*step));
                    rest /= size;
                }
                value
            })
            .collect()
    }

    fn range_select(&mut self) {
        let Op::RangeSelect {
            on_false,
            compare0,
            compare1,
            start,
            ..
        } = &self.execution.instruction.op
        else {
            return;
        };
        let data = self.values("on_true_tile");
        let (bound0, bound1) = (self.values("bound0"), self.values("bound1"));
        let (mut chosen, mut largest) = (Vec::new(), Vec::new());
        for row in 0..data.rows() {
            let mut most = f32::NEG_INFINITY;
            for (column, value) in data.row(row).iter().enumerate() {
                let index = start.wrapping_add(column as i64) as f32;
                let holds = |compare: Alu, bound: f32| compare.apply(index, bound) != 0.0;
                let inside =
                    holds(*compare0, bound0.of_row(row)) && holds(*compare1, bound1.of_row(row));
                let value = if inside { *value } else { *on_false as f32 };
                most = most.max(value);
                chosen.push(value);
            }
            largest.push(most);
        }
        self.put("dst", &chosen);
        self.put("reduce_res", &largest);
    }

    fn find_index(&mut self) {
        let (data, vals) = (self.values("data"), self.values("vals"));
        let mut bytes = Vec::new();
        for row in 0..data.rows() {
            for found in matches(data.row(row), vals.row(row)) {
                bytes.extend(found.map_or(u32::MAX, |index| index as u32).to_le_bytes());
            }
        }
        self.store("dst", &bytes);
    }

    fn replace(&mut self, imm: f32) {
        let (mut data, vals) = (self.values("data"), self.values("vals"));
        let columns = data.columns.max(1);
        for row in 0..data.rows() {
            for index in matches(data.row(row), vals.row(row)).into_iter().flatten() {
                data.data[row * columns + index] = imm;
            }
        }
        self.put("dst", &data.data);
    }
}

/// Where each value is first found, beyond the places that earlier equal values took.
fn matches(row: &[f32], values: &[f32]) -> Vec<Option<usize>> {
    let mut taken = vec![false; row.len()];
    values
        .iter()
        .map(|value| {
            let at = (0..row.len()).find(|index| !taken[*index] && row[*index] == *value)?;
            taken[at] = true;
            Some(at)
        })
        .collect()
}

/// Count, mean, and variance times count of the elements at even or odd places.
fn statistics(row: &[f32], odd: usize) -> [f32; 3] {
    let values = || row.iter().skip(odd).step_by(2).copied();
    let count = values().count() as f32;
    if count == 0.0 {
        return [0.0; 3];
    }
    let mean = values().sum::<f32>() / count;
    [
        count,
        mean,
        values().map(|value| (value - mean) * (value - mean)).sum(),
    ]
}

/// Mean and variance of what triples of count, mean, and variance times count describe (Chan's update).
fn aggregate(triples: &[f32]) -> [f32; 2] {
    let (mut count, mut mean, mut spread) = (0f32, 0f32, 0f32);
    for triple in triples.chunks_exact(3) {
        if triple[0] == 0.0 {
            continue;
        }
        let both = count + triple[0];
        let apart = triple[1] - mean;
        mean += apart * triple[0] / both;
        spread += triple[2] + apart * apart * count * triple[0] / both;
        count = both;
    }
    [mean, spread / count]
}
