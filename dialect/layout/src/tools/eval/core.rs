//! The operations on Axe layouts: measuring, evaluating and regrouping one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Failure, inputs, layout, named, value};
use crate::json::Extents;
use crate::{Axis, Coord, Error, Layout, Swizzle};

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "canonicalize" => layout(inputs::<One>(given)?.layout.canonicalize()),
        "equal" => inputs::<Two>(given)?.equal(),
        "intersect" => inputs::<Two>(given)?.intersect(),
        "size" => inputs::<OnAxis>(given)?.size(),
        "span" => inputs::<OnAxis>(given)?.span(),
        "admits" => inputs::<Shaped>(given)?.admits(),
        "apply" => inputs::<Apply>(given)?.answer(),
        "invert" => inputs::<Invert>(given)?.answer(),
        "group" => inputs::<Shaped>(given)?.group(),
        "group_many" => inputs::<Shapes>(given)?.group_many(),
        "permute_groups" => inputs::<Permute>(given)?.answer(),
        "bank_ways" | "alias" | "overlap" | "vector_width" | "bank_conflicts" | "coalescing"
        | "choose_swizzle" => super::analysis::run(op, given),
        "swizzle_apply" => inputs::<Swizzled>(given)?.answer(),
        _ => super::compose::run(op, given),
    }
}

#[derive(Deserialize)]
struct One {
    layout: Layout,
}

#[derive(Deserialize)]
struct Two {
    a: Layout,
    b: Layout,
}

impl Two {
    fn equal(&self) -> Answer {
        value(self.a.equivalent(&self.b)?)
    }

    fn intersect(&self) -> Answer {
        layout(self.a.intersect(&self.b)?)
    }
}

#[derive(Deserialize)]
struct OnAxis {
    layout: Layout,
    axis: Option<Axis>,
}

impl OnAxis {
    /// The whole domain, or the product of the extents of the shard iters on one axis.
    fn size(&self) -> Answer {
        if self.layout.is_dynamic() {
            return Err(Error::unsupported("size: the outermost extent is dynamic").into());
        }
        let on = self
            .layout
            .shard()
            .iter()
            .filter(|iter| self.axis.is_none_or(|axis| iter.axis == axis));
        value(on.map(|iter| iter.extent).product::<i64>())
    }

    fn span(&self) -> Answer {
        let axis = self
            .axis
            .ok_or_else(|| Failure::invalid("span: expected an axis"))?;
        value(self.layout.span(axis)?)
    }
}

#[derive(Deserialize)]
struct Shaped {
    layout: Layout,
    shape: Extents,
}

impl Shaped {
    fn admits(&self) -> Answer {
        value(self.layout.admits(&self.shape))
    }

    fn group(&self) -> Answer {
        let found = self.layout.group(&self.shape)?;
        Ok(json!({"layout": found.layout, "seps": found.seps[..]}))
    }
}

#[derive(Deserialize)]
struct Shapes {
    layout: Layout,
    shapes: Vec<Extents>,
}

impl Shapes {
    fn group_many(&self) -> Answer {
        let found = self.layout.group_many(&self.shapes)?;
        let seps: Vec<&[usize]> = found.seps.iter().map(|seps| &seps[..]).collect();
        Ok(json!({"layout": found.layout, "seps": seps}))
    }
}

#[derive(Deserialize)]
struct Apply {
    layout: Layout,
    shape: Extents,
    coords: Vec<Vec<i64>>,
}

impl Apply {
    /// Every point names all axes of the layout, also where it is 0.
    fn answer(&self) -> Answer {
        let (layout, shape) = (&self.layout, &self.shape[..]);
        let axes = layout.axes();
        if !layout.admits(shape) {
            return Err(Failure::invalid(format!(
                "shape {shape:?}: the layout has another size"
            )));
        }
        let object = |point: &Coord| -> Value {
            let entries = axes
                .iter()
                .map(|axis| (axis.name().to_owned(), json!(point.get(*axis))));
            Value::Object(entries.collect::<Map<_, _>>())
        };
        let mut points = Vec::with_capacity(self.coords.len());
        for coord in &self.coords {
            let mut found = layout.apply(shape, coord)?.into_vec();
            found
                .sort_by_cached_key(|point| axes.iter().map(|a| point.get(*a)).collect::<Vec<_>>());
            points.push(Value::Array(found.iter().map(object).collect()));
        }
        Ok(json!({"points": points}))
    }
}

#[derive(Deserialize)]
struct Invert {
    layout: Layout,
    points: Vec<BTreeMap<Axis, i64>>,
}

impl Invert {
    fn answer(self) -> Answer {
        let mut indices = Vec::with_capacity(self.points.len());
        for point in self.points {
            let point = Coord::from_terms(point)?;
            indices.push(self.layout.invert(&point)?);
        }
        named("indices", indices)
    }
}

#[derive(Deserialize)]
struct Permute {
    layout: Layout,
    seps: Vec<usize>,
    perm: Vec<usize>,
}

impl Permute {
    fn answer(&self) -> Answer {
        layout(self.layout.permute_groups(&self.seps, &self.perm)?)
    }
}

#[derive(Deserialize)]
struct Swizzled {
    swizzle: Swizzle,
    values: Vec<i64>,
}

impl Swizzled {
    fn answer(&self) -> Answer {
        let values = self.values.iter().map(|v| self.swizzle.apply(*v));
        named("values", values.collect::<Vec<_>>())
    }
}
