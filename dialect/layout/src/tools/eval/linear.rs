//! The `linear_*` operations and `warp_shuffle`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Failure, inputs, named, unknown, value};
use crate::json::Extents;
use crate::linear::{self, Columns, Distribution, TritonEncoding};
use crate::{Layout, Swizzle};

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "relayout" => inputs::<Relayout>(given)?.answer(),
        "triton" => inputs::<Triton>(given)?.answer(),
        "triton_from_layout" => inputs::<Shaped>(given)?.triton(),
        "linear_from_layout" => inputs::<OfLayout>(given)?.answer(),
        "linear_swizzle" => inputs::<OfSwizzle>(given)?.answer(),
        "linear_compose" => inputs::<Compose>(given)?.answer(),
        "linear_inverse" => named("columns", inputs::<One>(given)?.columns.inverse()?),
        "linear_rank" => value(inputs::<One>(given)?.columns.rank()),
        "linear_convert" => inputs::<Convert>(given)?.answer(),
        "linear_apply" => inputs::<Apply>(given)?.answer(),
        "warp_shuffle" => inputs::<Shuffle>(given)?.answer(),
        _ => unknown(op),
    }
}

#[derive(Deserialize)]
struct One {
    columns: Columns,
}

#[derive(Deserialize)]
struct OfLayout {
    layout: Layout,
}

impl OfLayout {
    fn answer(&self) -> Answer {
        named("columns", linear::columns_of_layout(&self.layout)?)
    }
}

#[derive(Deserialize)]
struct OfSwizzle {
    swizzle: Swizzle,
    bits: usize,
}

impl OfSwizzle {
    fn answer(&self) -> Answer {
        let columns = linear::columns_of_swizzle(self.swizzle, self.bits)?;
        named("columns", columns)
    }
}

#[derive(Deserialize)]
struct Compose {
    a: Columns,
    b: Columns,
}

impl Compose {
    fn answer(&self) -> Answer {
        named("columns", self.a.compose(&self.b)?)
    }
}

#[derive(Deserialize)]
struct Convert {
    src: Columns,
    dst: Columns,
}

impl Convert {
    fn answer(&self) -> Answer {
        named("columns", self.dst.solve(&self.src)?)
    }
}

#[derive(Deserialize)]
struct Apply {
    reg: Columns,
    lane: Columns,
    points: Vec<(u64, u64)>,
}

impl Apply {
    fn answer(self) -> Answer {
        let Self { reg, lane, points } = self;
        let map = Distribution { reg, lane };
        let mut values = Vec::with_capacity(points.len());
        for (lane, reg) in points {
            let inside = |index: u64, columns: &Columns| {
                u32::try_from(columns.len())
                    .is_ok_and(|bits| index.checked_shr(bits).unwrap_or(0) == 0)
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
}

#[derive(Deserialize)]
struct Shuffle {
    src: Distribution,
    dst: Distribution,
    elem_bits: u32,
}

impl Shuffle {
    fn answer(&self) -> Answer {
        let plan = linear::warp_shuffle(&self.src, &self.dst, self.elem_bits)?;
        named("steps", plan.steps)
    }
}

#[derive(Deserialize)]
struct Triton {
    encoding: String,
    shape: Extents,
}

impl Triton {
    /// As a linear layout, and as one of Axe; an error where it is neither.
    fn answer(&self) -> Answer {
        let encoding = TritonEncoding::parse(&self.encoding)?;
        let linear = encoding.to_linear(&self.shape);
        let layout = encoding.to_layout(&self.shape).ok();
        if layout.is_none()
            && let Err(error) = linear
        {
            return Err(error.into());
        }
        let linear = linear.ok();
        Ok(json!({
            "text": linear.as_ref().map(|l| l.to_triton()),
            "linear": linear.map(|l| l.to_ttg()),
            "layout": layout,
        }))
    }
}

#[derive(Deserialize)]
struct Shaped {
    layout: Layout,
    shape: Extents,
}

impl Shaped {
    fn triton(&self) -> Answer {
        let linear = linear::linear_of_layout(&self.layout, &self.shape)?;
        Ok(json!({"text": linear.to_triton(), "linear": linear.to_ttg()}))
    }
}

#[derive(Deserialize)]
struct Relayout {
    src: Layout,
    dst: Layout,
    elem_bits: u32,
}

impl Relayout {
    fn answer(&self) -> Answer {
        let found = crate::tools::relayout::relayout(&self.src, &self.dst, self.elem_bits)?;
        Ok(found.to_json())
    }
}
