//! The operations on Axe layouts: measuring, evaluating and regrouping one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Failure, inputs, named, value};
use crate::json::Extents;
use crate::{Axis, Coord, Error, Layout, Swizzle};

#[derive(Deserialize)]
struct One {
    layout: Layout,
}

#[derive(Deserialize)]
struct Two {
    a: Layout,
    b: Layout,
}

#[derive(Deserialize)]
struct OnAxis {
    layout: Layout,
    axis: Option<Axis>,
}

#[derive(Deserialize)]
struct Shaped {
    layout: Layout,
    shape: Extents,
}

#[derive(Deserialize)]
struct Shapes {
    layout: Layout,
    shapes: Vec<Extents>,
}

#[derive(Deserialize)]
struct Apply {
    layout: Layout,
    shape: Extents,
    coords: Vec<Vec<i64>>,
}

#[derive(Deserialize)]
struct Invert {
    layout: Layout,
    points: Vec<BTreeMap<Axis, i64>>,
}

#[derive(Deserialize)]
struct Swizzled {
    swizzle: Swizzle,
    values: Vec<i64>,
}

#[derive(Deserialize)]
struct Permute {
    layout: Layout,
    seps: Vec<usize>,
    perm: Vec<usize>,
}

/// `{"layout": ..}`.
pub(super) fn layout(found: Layout) -> Answer {
    named("layout", found)
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "canonicalize" => layout(inputs::<One>(given)?.layout.canonicalize()),
        "equal" => {
            let Two { a, b } = inputs(given)?;
            value(a.equivalent(&b)?)
        }
        "intersect" => {
            let Two { a, b } = inputs(given)?;
            layout(a.intersect(&b)?)
        }
        "size" => {
            let OnAxis { layout, axis } = inputs(given)?;
            size(&layout, axis)
        }
        "span" => {
            let OnAxis { layout, axis } = inputs(given)?;
            let axis = axis.ok_or_else(|| Failure::invalid("span: expected an axis"))?;
            value(layout.span(axis)?)
        }
        "admits" => {
            let Shaped { layout, shape } = inputs(given)?;
            value(layout.admits(&shape))
        }
        "apply" => apply(&inputs(given)?),
        "invert" => invert(inputs(given)?),
        "group" => {
            let Shaped { layout, shape } = inputs(given)?;
            let found = layout.group(&shape)?;
            Ok(json!({"layout": found.layout, "seps": found.seps[..]}))
        }
        "group_many" => {
            let Shapes { layout, shapes } = inputs(given)?;
            let found = layout.group_many(&shapes)?;
            let seps: Vec<&[usize]> = found.seps.iter().map(|seps| &seps[..]).collect();
            Ok(json!({"layout": found.layout, "seps": seps}))
        }
        "permute_groups" => {
            let Permute {
                layout: of,
                seps,
                perm,
            } = inputs(given)?;
            layout(of.permute_groups(&seps, &perm)?)
        }
        "bank_ways" | "alias" | "overlap" | "vector_width" | "bank_conflicts" | "coalescing"
        | "choose_swizzle" => super::analysis::run(op, given),
        "swizzle_apply" => {
            let Swizzled { swizzle, values } = inputs(given)?;
            named(
                "values",
                values
                    .into_iter()
                    .map(|v| swizzle.apply(v))
                    .collect::<Vec<_>>(),
            )
        }
        _ => super::compose::run(op, given),
    }
}

/// The whole domain, or the product of the extents of the shard iters on one axis.
fn size(layout: &Layout, axis: Option<Axis>) -> Answer {
    if layout.is_dynamic() {
        return Err(Error::unsupported("size: the outermost extent is dynamic").into());
    }
    let on = layout
        .shard()
        .iter()
        .filter(|iter| axis.is_none_or(|axis| iter.axis == axis));
    value(on.map(|iter| iter.extent).product::<i64>())
}

/// Every point names all axes of the layout, also where it is 0.
fn apply(
    Apply {
        layout,
        shape,
        coords,
    }: &Apply,
) -> Answer {
    let axes = layout.axes();
    if !layout.admits(shape) {
        return Err(Failure::invalid(format!(
            "shape {:?}: the layout has another size",
            &shape[..]
        )));
    }
    let mut points = Vec::with_capacity(coords.len());
    for coord in coords {
        let mut found = layout.apply(shape, coord)?.into_vec();
        found.sort_by_cached_key(|point| axes.iter().map(|a| point.get(*a)).collect::<Vec<_>>());
        let object = |point: &Coord| -> Value {
            let entries = axes
                .iter()
                .map(|axis| (axis.name().to_owned(), json!(point.get(*axis))));
            Value::Object(entries.collect::<Map<_, _>>())
        };
        points.push(Value::Array(found.iter().map(object).collect()));
    }
    Ok(json!({"points": points}))
}

fn invert(Invert { layout, points }: Invert) -> Answer {
    let mut indices = Vec::with_capacity(points.len());
    for point in points {
        let point = Coord::from_terms(point)?;
        indices.push(layout.invert(&point)?);
    }
    named("indices", indices)
}
