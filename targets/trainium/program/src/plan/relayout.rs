//! Kernels that move elements alone: permutations and repetitions of dimensions, as transfers from HBM to HBM. No engine but
//! DMA takes part, and access patterns there have no rule but four dimensions.

use super::{Declined, chip};
use crate::program::{Axis, Builder, Expr, Program, View};
use crate::rules;
use axe_package::DType;

/// A tensor whose dimensions are those of another, in another order, or repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayout {
    /// The shape that is read.
    pub from: Vec<i64>,
    /// For each dimension of the result the one that it is, or its extent where it repeats.
    pub dims: Vec<Result<usize, i64>>,
    /// The type of the elements.
    pub dtype: DType,
}

/// Dimensions of a transfer's access pattern (A1: up to four, beside that of rows).
const MOST_DIMENSIONS: usize = 5;

impl Relayout {
    fn shape(&self) -> Vec<i64> {
        let extent = |dim: &Result<usize, i64>| match dim {
            Ok(of) => self.from.get(*of).copied().unwrap_or(0),
            Err(extent) => *extent,
        };
        self.dims.iter().map(extent).collect()
    }

    /// The program.
    ///
    /// # Errors
    /// Empty tensors, more dimensions than a transfer has, a chip that is not known.
    pub fn plan(&self, name: &str, chip_name: &str) -> Result<Program, Declined> {
        chip(chip_name)?;
        let shape = self.shape();
        if self.from.is_empty() || shape.is_empty() || shape.iter().any(|extent| *extent < 1) {
            return Err(Declined::Invalid(format!(
                "a tensor of {:?} as one of {shape:?}: expected extents of at least 1",
                self.from
            )));
        }
        let mut b = Builder::new(name, chip_name);
        let dtype = super::values::stored(self.dtype);
        let from = b.input("in0", &self.from, dtype);
        let to = b.output("out0", &shape, dtype);
        let axes: Vec<Axis> = (self.dims.iter().zip(&shape))
            .map(|(dim, size)| Axis {
                of: dim.ok(),
                size: *size,
                step: i64::from(dim.is_ok()),
            })
            .collect();
        if axes.len() > MOST_DIMENSIONS {
            return Err(Declined::Invalid(format!(
                "{} dimensions in another order: a transfer's pattern has {MOST_DIMENSIONS}",
                axes.len()
            )));
        }
        let src = View {
            buffer: from.buffer(),
            origin: self.from.iter().map(|_| Expr::Const(0)).collect(),
            axes,
        };
        let dst = View {
            buffer: to.buffer(),
            origin: shape.iter().map(|_| Expr::Const(0)).collect(),
            axes: (shape.iter().enumerate())
                .map(|(at, size)| Axis {
                    of: Some(at),
                    size: *size,
                    step: 1,
                })
                .collect(),
        };
        b.dma_copy(dst, src);
        let program = b.finish();
        match rules::check(&program).into_iter().next() {
            Some(violation) => Err(Declined::Invalid(violation.to_string())),
            None => Ok(program),
        }
    }
}
