//! The `linear_*` operations and `warp_shuffle`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Failure, inputs, named, unknown, value};
use crate::json::Extents;
use crate::linear::{self, Columns, Distribution, TritonEncoding};
use crate::{Layout, Swizzle};

#[derive(Deserialize)]
struct OfLayout {
    layout: Layout,
}

#[derive(Deserialize)]
struct OfSwizzle {
    swizzle: Swizzle,
    bits: usize,
}

#[derive(Deserialize)]
struct Two {
    a: Columns,
    b: Columns,
}

#[derive(Deserialize)]
struct One {
    columns: Columns,
}

#[derive(Deserialize)]
struct Convert {
    src: Columns,
    dst: Columns,
}

#[derive(Deserialize)]
struct Apply {
    reg: Columns,
    lane: Columns,
    points: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Shuffle {
    src: Distribution,
    dst: Distribution,
    elem_bits: u32,
}

#[derive(Deserialize)]
struct Triton {
    encoding: String,
    shape: Extents,
}

#[derive(Deserialize)]
struct Shaped {
    layout: Layout,
    shape: Extents,
}

#[derive(Deserialize)]
struct Relayout {
    src: Layout,
    dst: Layout,
    elem_bits: u32,
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "relayout" => {
            let Relayout {
                src,
                dst,
                elem_bits,
            } = inputs(given)?;
            Ok(crate::tools::relayout::relayout(&src, &dst, elem_bits)?.to_json())
        }
        "triton" => {
            let Triton { encoding, shape } = inputs(given)?;
            let encoding = TritonEncoding::parse(&encoding)?;
            let linear = encoding.to_linear(&shape).ok();
            let layout = encoding.to_layout(&shape).ok();
            if linear.is_none() && layout.is_none() {
                encoding.to_linear(&shape)?;
            }
            Ok(json!({
                "text": linear.as_ref().map(|l| l.to_triton()),
                "linear": linear.map(|l| l.to_ttg()),
                "layout": layout,
            }))
        }
        "triton_from_layout" => {
            let Shaped { layout, shape } = inputs(given)?;
            let linear = linear::linear_of_layout(&layout, &shape)?;
            Ok(json!({"text": linear.to_triton(), "linear": linear.to_ttg()}))
        }
        "linear_from_layout" => named(
            "columns",
            linear::columns_of_layout(&inputs::<OfLayout>(given)?.layout)?,
        ),
        "linear_swizzle" => {
            let OfSwizzle { swizzle, bits } = inputs(given)?;
            named("columns", linear::columns_of_swizzle(swizzle, bits)?)
        }
        "linear_compose" => {
            let Two { a, b } = inputs(given)?;
            named("columns", a.compose(&b)?)
        }
        "linear_inverse" => named("columns", inputs::<One>(given)?.columns.inverse()?),
        "linear_rank" => value(inputs::<One>(given)?.columns.rank()),
        "linear_convert" => {
            let Convert { src, dst } = inputs(given)?;
            named("columns", dst.solve(&src)?)
        }
        "linear_apply" => apply(inputs(given)?),
        "warp_shuffle" => {
            let Shuffle {
                src,
                dst,
                elem_bits,
            } = inputs(given)?;
            named("steps", linear::warp_shuffle(&src, &dst, elem_bits)?.steps)
        }
        _ => unknown(op),
    }
}

fn apply(Apply { reg, lane, points }: Apply) -> Answer {
    let map = Distribution { reg, lane };
    let mut values = Vec::with_capacity(points.len());
    for (lane, reg) in points {
        let inside = |index: u64, columns: &Columns| {
            u32::try_from(columns.len()).is_ok_and(|bits| index.checked_shr(bits).unwrap_or(0) == 0)
        };
        if !inside(lane, &map.lane) || !inside(reg, &map.reg) {
            return Err(Failure::invalid(format!(
                "point [{lane}, {reg}] is outside of the columns"
            )));
        }
        values.push(map.apply(lane, reg));
    }
    named("values", values)
}
