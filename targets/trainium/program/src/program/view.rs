//! Views: the part of a buffer that an instruction reads or writes.

use super::{Buffer, Expr, Program, Space};
use serde::{Deserialize, Serialize};

/// One dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Axis {
    /// The dimension of the buffer along which it moves; `None` repeats the same elements.
    pub of: Option<usize>,
    /// Its extent.
    pub size: i64,
    /// Elements of that dimension between neighbours.
    pub step: i64,
}

/// Element `(i0, i1, ..)` is the buffer's element at `origin[d] + sum of i_v * axes[v].step` over the axes along `d`.
///
/// On chip, axis 0 is the partition axis; several axes may move along one dimension (`512` as `4 x 128`), in any order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// The buffer, by number.
    pub buffer: usize,
    /// Where it begins, in each dimension of the buffer.
    pub origin: Vec<Expr>,
    /// Its dimensions.
    pub axes: Vec<Axis>,
}

/// The elements that a view names in one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The buffer, by number.
    pub buffer: usize,
    /// The first partition of the buffer; 0 in HBM.
    pub partition: i64,
    /// The first element, in a partition or in HBM.
    pub offset: i64,
    /// For each axis: the partitions and the elements that it moves by, and its extent.
    pub axes: Vec<Move>,
}

/// One axis of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Partitions between neighbours.
    pub partitions: i64,
    /// Elements between neighbours.
    pub elements: i64,
    /// The extent.
    pub size: i64,
}

impl View {
    /// The extents.
    #[must_use]
    pub fn shape(&self) -> Vec<i64> {
        self.axes.iter().map(|axis| axis.size).collect()
    }

    /// The extent of axis 0.
    #[must_use]
    pub fn partitions(&self) -> i64 {
        self.axes.first().map_or(1, |axis| axis.size)
    }

    /// Elements in each partition: the product of the other extents.
    #[must_use]
    pub fn free(&self) -> i64 {
        let extents = self.axes.iter().skip(1).map(|axis| axis.size);
        extents.fold(1i64, i64::saturating_mul)
    }

    /// The elements at these loop indices; `None` when an index has no value or the numbers do not fit.
    #[must_use]
    pub fn access(&self, buffer: &Buffer, indices: &[i64]) -> Option<Access> {
        let strides = buffer.strides();
        let on_chip = buffer.space.has_partitions();
        let (mut partition, mut offset) = (0i64, 0i64);
        for (dimension, (origin, stride)) in self.origin.iter().zip(&strides).enumerate() {
            let origin = origin.eval(indices)?;
            if on_chip && dimension == 0 {
                partition = origin;
            } else {
                offset = offset.checked_add(origin.checked_mul(*stride)?)?;
            }
        }
        let axes = self
            .axes
            .iter()
            .map(|axis| {
                let along_partitions = on_chip && axis.of == Some(0);
                let stride = axis.of.map_or(Some(0), |of| strides.get(of).copied())?;
                Some(Move {
                    partitions: if along_partitions { axis.step } else { 0 },
                    elements: axis.step.checked_mul(stride)?,
                    size: axis.size,
                })
            })
            .collect::<Option<_>>()?;
        Some(Access {
            buffer: self.buffer,
            partition,
            offset,
            axes,
        })
    }

    /// The dimension, first and last index by which the view leaves its buffer at these loop indices; `None` inside.
    #[must_use]
    pub fn outside(&self, buffer: &Buffer, indices: &[i64]) -> Option<(usize, i64, i64)> {
        for (dimension, extent) in buffer.shape.iter().enumerate() {
            let Some(origin) = self.origin.get(dimension).and_then(|o| o.eval(indices)) else {
                return Some((dimension, i64::MIN, i64::MAX));
            };
            let (mut first, mut last) = (origin, origin);
            for axis in self.axes.iter().filter(|axis| axis.of == Some(dimension)) {
                let reach = (axis.size.saturating_sub(1)).saturating_mul(axis.step);
                first = first.saturating_add(reach.min(0));
                last = last.saturating_add(reach.max(0));
            }
            if first < 0 || last >= *extent {
                return Some((dimension, first, last));
            }
        }
        None
    }

    /// The space of its buffer; HBM when there is no such buffer.
    #[must_use]
    pub fn space(&self, program: &Program) -> Space {
        program
            .buffers
            .get(self.buffer)
            .map_or(Space::Hbm, |buffer| buffer.space)
    }
}

impl Access {
    /// Calls `visit` with the partition and the element of everything named, in row-major order of the axes.
    pub fn each(&self, visit: &mut impl FnMut(i64, i64)) {
        fn walk(axes: &[Move], partition: i64, element: i64, visit: &mut impl FnMut(i64, i64)) {
            let Some((axis, rest)) = axes.split_first() else {
                return visit(partition, element);
            };
            for index in 0..axis.size {
                let partition = partition + index * axis.partitions;
                walk(rest, partition, element + index * axis.elements, visit);
            }
        }
        walk(&self.axes, self.partition, self.offset, visit);
    }

    /// The axes in the fewest of them: without extents of 1, neighbours that continue each other as one.
    #[must_use]
    pub fn merged(&self) -> Vec<Move> {
        let mut merged: Vec<Move> = Vec::new();
        for axis in self.axes.iter().filter(|axis| axis.size != 1) {
            match merged.last_mut() {
                Some(last)
                    if last.elements == axis.elements.saturating_mul(axis.size)
                        && last.partitions == axis.partitions.saturating_mul(axis.size) =>
                {
                    *last = Move {
                        size: last.size.saturating_mul(axis.size),
                        ..*axis
                    };
                }
                _ => merged.push(*axis),
            }
        }
        merged
    }

    /// Elements that follow each other in memory without a gap.
    #[must_use]
    pub fn contiguous(&self) -> i64 {
        match self.merged().last() {
            Some(last) if last.partitions == 0 && last.elements == 1 => last.size,
            _ => 1,
        }
    }
}
