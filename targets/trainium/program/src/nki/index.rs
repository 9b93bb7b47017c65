//! Parts of tensors and tiles as NKI indexes them.

use super::Generation;
use crate::program::{Axis, Buffer, Expr, Space, View};

/// A view as an expression: `tile`, `tile[0:128, k, 0:512]`, or what the generation has for parts that are no slices.
pub fn view(
    view: &View,
    buffer: &Buffer,
    name: &str,
    indices: &[String],
    generation: Generation,
) -> String {
    match (slices(view, buffer, indices), generation) {
        (Some(parts), _) => format!("{name}[{}]", parts.join(", ")),
        (None, Generation::New) => pattern(view, buffer, name, indices),
        (None, Generation::Old) => arrays(view, buffer, name, indices),
    }
}

/// The index of each dimension, when each axis of the view moves along one dimension of the buffer, in order.
fn slices(view: &View, buffer: &Buffer, indices: &[String]) -> Option<Vec<String>> {
    let mut axes = view.axes.iter().filter(|axis| !is_filler(axis)).peekable();
    let mut parts = Vec::new();
    for (dimension, origin) in view.origin.iter().enumerate() {
        match axes.next_if(|axis| axis.of == Some(dimension)) {
            Some(axis) if axis.step >= 1 => parts.push(slice(origin, axis, indices)),
            Some(_) => return None,
            // The partitions of a tile stay a dimension.
            None if dimension == 0 && buffer.space != Space::Hbm => {
                let one = Axis {
                    of: Some(0),
                    size: 1,
                    step: 1,
                };
                parts.push(slice(origin, &one, indices));
            }
            None => parts.push(origin.text(indices)),
        }
    }
    axes.next().is_none().then_some(parts)
}

/// An axis of one element that moves along nothing: it keeps a tile of one element a partition two-dimensional.
const fn is_filler(axis: &Axis) -> bool {
    axis.of.is_none() && axis.size == 1
}

fn slice(origin: &Expr, axis: &Axis, indices: &[String]) -> String {
    let end = origin.clone().plus((axis.size - 1) * axis.step + 1);
    let (begin, end) = (origin.text(indices), end.text(indices));
    match axis.step {
        1 => format!("{begin}:{end}"),
        step => format!("{begin}:{end}:{step}"),
    }
}

/// `.ap(pattern=[[step, count], ...], offset=...)` in elements: on chip the first step is that of partitions.
fn pattern(view: &View, buffer: &Buffer, name: &str, indices: &[String]) -> String {
    let mut strides = buffer.strides();
    if buffer.space.has_partitions()
        && let Some(first) = strides.first_mut()
    {
        *first = buffer.elements();
    }
    let offset = view
        .origin
        .iter()
        .zip(&strides)
        .fold(Expr::Const(0), |sum, (origin, stride)| {
            sum.plus(origin.clone().times(*stride))
        });
    let steps: Vec<String> = view
        .axes
        .iter()
        .map(|axis| {
            let stride = axis.of.and_then(|of| strides.get(of)).copied().unwrap_or(0);
            format!("[{}, {}]", axis.step * stride, axis.size)
        })
        .collect();
    format!(
        "{name}.ap(pattern=[{}], offset={})",
        steps.join(", "),
        offset.text(indices)
    )
}

/// Index arrays: `tile[nl.arange(32)[:, None, None], 2 * nl.arange(16)[None, None, :] + nl.arange(2)[None, :, None]]`.
fn arrays(view: &View, buffer: &Buffer, name: &str, indices: &[String]) -> String {
    let axes: Vec<&Axis> = view.axes.iter().filter(|axis| !is_filler(axis)).collect();
    let array = |number: usize, axis: &Axis, step: i64| {
        let picks: Vec<&str> = (0..axes.len())
            .map(|at| if at == number { ":" } else { "None" })
            .collect();
        let array = format!("nl.arange({})[{}]", axis.size, picks.join(", "));
        if step == 1 {
            array
        } else {
            format!("{step} * {array}")
        }
    };
    let parts: Vec<String> = view
        .origin
        .iter()
        .enumerate()
        .map(|(dimension, origin)| {
            let mut terms: Vec<String> = axes
                .iter()
                .enumerate()
                .filter(|(_, axis)| axis.of == Some(dimension))
                .map(|(number, axis)| array(number, axis, axis.step))
                .collect();
            // What repeats has no dimension of its own: the last takes it along.
            if dimension + 1 == buffer.shape.len() {
                let repeated = axes
                    .iter()
                    .enumerate()
                    .filter(|(_, axis)| axis.of.is_none());
                terms.extend(repeated.map(|(number, axis)| array(number, axis, 0)));
            }
            if terms.is_empty() || origin.constant() != Some(0) {
                terms.insert(0, origin.text(indices));
            }
            terms.join(" + ")
        })
        .collect();
    format!("{name}[{}]", parts.join(", "))
}
