//! Views of buffers for accesses by partitions and elements.

use super::problem::Operand;
use super::reason::Reason;
use super::residue::{Residue, range};
use crate::facts::memory::{FREE_DIMENSIONS, MOST_SIZE, MOST_STEP, PSUM_BYTES, SBUF_ELEMENTS};
use crate::program::{Axis, Buffer, Builder, Expr, Space, View};

/// Dimensions of an access to HBM: four, beside that of rows (A1).
const HBM_DIMENSIONS: usize = FREE_DIMENSIONS + 1;

/// One dimension of an access: its extent, and elements between neighbours.
pub(super) type Free = (i64, i64);

const STILL: fn(i64) -> Axis = |size| Axis {
    of: None,
    size,
    step: 0,
};

/// Whether one instruction may access so: its dimensions, its steps, its elements.
pub(super) fn fits(operand: &Operand, free: &[Free]) -> bool {
    let merged = merged(free);
    let count = free
        .iter()
        .fold(1i64, |n, (size, _)| n.saturating_mul(*size));
    let (dimensions, most) = match operand.space {
        Space::Hbm => return merged.len() <= HBM_DIMENSIONS,
        Space::Sbuf => (FREE_DIMENSIONS, SBUF_ELEMENTS),
        Space::Psum => (FREE_DIMENSIONS, PSUM_BYTES / operand.dtype.bytes() as i64),
    };
    let bounded = |(size, step): &Free| *size <= MOST_SIZE && step.abs() <= MOST_STEP;
    merged.len() <= dimensions && count <= most && merged.iter().all(bounded)
}

/// The dimensions in the fewest of them.
pub(super) fn merged(free: &[Free]) -> Vec<Free> {
    let mut merged: Vec<Free> = Vec::new();
    for &(size, step) in free.iter().filter(|(size, _)| *size != 1) {
        match merged.last_mut() {
            Some(last) if last.1 == step.saturating_mul(size) => {
                *last = (last.0.saturating_mul(size), step);
            }
            _ => merged.push((size, step)),
        }
    }
    merged
}

/// The view of so many consecutive partitions from `partition` on, and of the elements from `start` on in each; in HBM,
/// the dimensions of `free` alone.
///
/// # Errors
/// A buffer of several dimensions in which the access is no view.
pub(super) fn view(
    b: &Builder,
    operand: &Operand,
    (partition, count): (&Expr, i64),
    start: &Expr,
    free: &[Free],
) -> Result<View, Reason> {
    let buffer = &b.program().buffers[operand.buffer];
    let on_chip = buffer.space.has_partitions();
    let (mut origin, mut axes) = (Vec::new(), Vec::new());
    if on_chip {
        origin.push(partition.clone());
        axes.push(Axis {
            of: Some(0),
            size: count,
            step: 1,
        });
    }
    let placed = Placed::new(b, buffer, start, free).ok_or_else(|| Reason::Access {
        operand: operand.name,
        message: format!(
            "elements by (size, step) {free:?} are no view of '{}' of {:?}",
            buffer.name, buffer.shape
        ),
    })?;
    origin.extend(placed.origin);
    axes.extend(placed.axes);
    let least = 1 + usize::from(on_chip);
    while axes.len() < least {
        axes.push(STILL(1));
    }
    Ok(View {
        buffer: operand.buffer,
        origin,
        axes,
    })
}

/// Elements as indices of a buffer's dimensions, without that of partitions.
struct Placed {
    origin: Vec<Expr>,
    axes: Vec<Axis>,
}

impl Placed {
    fn new(b: &Builder, buffer: &Buffer, start: &Expr, free: &[Free]) -> Option<Self> {
        let first = usize::from(buffer.space.has_partitions());
        let (shape, strides) = (buffer.shape.get(first..)?, buffer.strides());
        let strides = strides.get(first..)?;
        let mut axes = Vec::new();
        for (size, step) in free {
            axes.extend(axes_of(shape, strides, first, *size, *step)?);
        }
        let reach = |dim: usize| {
            let along = axes
                .iter()
                .filter(|axis: &&Axis| axis.of == Some(dim + first));
            along.fold((0, 0), |(low, high): (i64, i64), axis| {
                let far = axis.step * (axis.size - 1);
                (low + far.min(0), high + far.max(0))
            })
        };
        let fits = |dim: usize, start: &Expr| {
            let (low, high) = reach(dim);
            let inside = |(least, most): (i64, i64)| least + low >= 0 && most + high < shape[dim];
            range(start, b.bounds()).is_none_or(inside)
        };
        if let [_] = shape {
            return Some(Self {
                origin: vec![start.clone()],
                axes,
            });
        }
        let affine = affine(shape, strides, start);
        let origin = match affine {
            Some(origin) if origin.iter().enumerate().all(|(dim, at)| fits(dim, at)) => origin,
            _ => divided(b, shape, strides, start, &reach)?,
        };
        Some(Self { origin, axes })
    }
}

/// One dimension of an access as axes along dimensions of the buffer: several where it goes through a whole one.
fn axes_of(
    shape: &[i64],
    strides: &[i64],
    first: usize,
    size: i64,
    step: i64,
) -> Option<Vec<Axis>> {
    if size == 1 || step == 0 {
        return Some(vec![STILL(size)]);
    }
    let divides = |dim: &usize| strides[*dim] > 0 && step % strides[*dim] == 0;
    let dim = (0..shape.len()).find(|dim| shape[*dim] > 1 && divides(dim))?;
    let own = step / strides[dim];
    let axis = |size| Axis {
        of: Some(dim + first),
        size,
        step: own,
    };
    if (size - 1).checked_mul(own.abs())? < shape[dim] {
        return Some(vec![axis(size)]);
    }
    let inside = shape[dim] / own.abs();
    if dim == 0 || inside == 0 || shape[dim] % own != 0 || size % inside != 0 {
        return None;
    }
    let mut axes = axes_of(shape, strides, first, size / inside, step * inside)?;
    axes.push(axis(inside));
    Some(axes)
}

/// A start as a sum for each dimension, each term along the outermost dimension that it is a multiple of.
fn affine(shape: &[i64], strides: &[i64], start: &Expr) -> Option<Vec<Expr>> {
    let mut origin = vec![Expr::Const(0); shape.len()];
    let mut terms = Vec::new();
    let mut constant = 0i64;
    split(start, 1, &mut terms, &mut constant)?;
    for (atom, by) in terms {
        let dim = (0..shape.len()).find(|dim| shape[*dim] > 1 && by % strides[*dim] == 0)?;
        let term = atom.times(by / strides[dim]);
        origin[dim] = origin[dim].clone().plus(term);
    }
    for dim in 0..shape.len() {
        let own = constant.div_euclid(strides[dim]);
        constant -= own * strides[dim];
        origin[dim] = origin[dim].clone().plus(own);
    }
    Some(origin)
}

/// The terms of a sum, each a factor of what is no sum.
fn split(expr: &Expr, by: i64, terms: &mut Vec<(Expr, i64)>, constant: &mut i64) -> Option<()> {
    match expr {
        Expr::Const(value) => *constant = constant.checked_add(value.checked_mul(by)?)?,
        Expr::Add(a, b) => {
            split(a, by, terms, constant)?;
            split(b, by, terms, constant)?;
        }
        Expr::Mul(a, more) => split(a, by.checked_mul(*more)?, terms, constant)?,
        atom => terms.push((atom.clone(), by)),
    }
    Some(())
}

/// A start as quotients and remainders, where no access that begins there leaves a dimension.
fn divided(
    b: &Builder,
    shape: &[i64],
    strides: &[i64],
    start: &Expr,
    reach: &dyn Fn(usize) -> (i64, i64),
) -> Option<Vec<Expr>> {
    let mut origin = Vec::new();
    for dim in 0..shape.len() {
        let unit = strides[dim].checked_mul(shape[dim])?;
        let residue = Residue::of(start, unit, b.bounds());
        // Starts are this remainder, and others by multiples of the residue's unit.
        let apart = residue.unit / strides[dim].max(1);
        let (low, high) = reach(dim);
        let first = residue.rest / strides[dim].max(1);
        let inside = first + low >= 0 && high + first % apart.max(1) < apart.max(1);
        if !inside || residue.unit % strides[dim] != 0 {
            return None;
        }
        let quotient = Expr::Div(Box::new(start.clone()), strides[dim]);
        origin.push(match dim {
            0 => quotient,
            _ => Expr::Mod(Box::new(quotient), shape[dim]),
        });
    }
    Some(origin)
}
