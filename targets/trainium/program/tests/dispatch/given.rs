//! Tensors by the text of their layouts, and operators on them compared with functions of their elements.

use crate::tiles::{Kernel, POISON, Random, Tensor, compare};
use axe_layout::Layout;
use axe_package::DType;
use axe_trn::dispatch::{Bound, Declined, Region};
use axe_trn::program::{Builder, Space};

pub fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// A tensor in a buffer of these extents.
pub fn tensor(space: Space, dtype: DType, shape: &[i64], text: &str, buffer: &[i64]) -> Tensor {
    Tensor {
        space,
        dtype,
        shape: shape.to_vec(),
        layout: layout(text),
        start: (0, 0),
        buffer: buffer.to_vec(),
        valid: None,
    }
}

/// An operator on regions.
pub type Operator<'a> = dyn Fn(&mut Builder, &[Region]) -> Result<Bound, Declined> + 'a;
/// An element of the result, of the values of tensors by number and index.
pub type Expected<'a> = dyn Fn(&[i64], &dyn Fn(usize, &[i64]) -> f32) -> f32 + 'a;

/// Runs an operator on the first tensor, and compares it with a function of the others' values.
pub fn check(
    chip: &str,
    tensors: &[Tensor],
    operator: &Operator<'_>,
    expected: &Expected<'_>,
) -> String {
    let mut random = Random(7);
    let values: Vec<Vec<f32>> = tensors
        .iter()
        .map(|tensor| tensor.random(&mut random))
        .collect();
    let mut kernel = Kernel::new(chip, tensors);
    let regions = kernel.regions.clone();
    let bound = operator(&mut kernel.b, &regions)
        .unwrap_or_else(|why| panic!("{why}"))
        .to_string();
    let of = |at: usize, index: &[i64]| values[at][tensors[at].flat(index)];
    let images: Vec<Vec<f32>> = (0..tensors.len())
        .map(|at| match at {
            0 => tensors[0].image(&|_| POISON),
            _ => tensors[at].image(&|index| of(at, index)),
        })
        .collect();
    let expected = tensors[0].image(&|index| expected(index, &of));
    compare(
        &kernel.finish(tensors),
        tensors,
        &images,
        &expected,
        0.0,
        &|| bound.clone(),
    );
    bound
}

pub fn sbuf(shape: &[i64], text: &str, buffer: [i64; 2]) -> Tensor {
    tensor(Space::Sbuf, DType::BF16, shape, text, &buffer)
}

pub fn psum(shape: &[i64], text: &str, buffer: [i64; 2]) -> Tensor {
    tensor(Space::Psum, DType::F32, shape, text, &buffer)
}
