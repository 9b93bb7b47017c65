//! The `cute_*` operations.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Failure, inputs, unknown, value};
use crate::cute::{self, CuteLayout, Nest, Tiler};

#[derive(Deserialize)]
struct One {
    a: CuteLayout,
}

#[derive(Deserialize)]
struct Apply {
    a: CuteLayout,
    indices: Vec<i64>,
}

#[derive(Deserialize)]
struct Coalesce {
    a: CuteLayout,
    profile: Option<Nest>,
}

#[derive(Deserialize)]
struct Two {
    a: CuteLayout,
    b: CuteLayout,
}

#[derive(Deserialize)]
struct Tiled {
    a: CuteLayout,
    tiler: Tiler,
}

#[derive(Deserialize)]
struct Complement {
    a: CuteLayout,
    cotarget: i64,
}

#[derive(Deserialize)]
struct Units {
    a: CuteLayout,
    n: i64,
}

#[derive(Deserialize)]
struct Recast {
    a: CuteLayout,
    from_bits: i64,
    to_bits: i64,
}

#[derive(Deserialize)]
struct TileToShape {
    a: CuteLayout,
    shape: Vec<i64>,
    order: Option<Vec<i64>>,
}

#[derive(Deserialize)]
struct Tv {
    threads: CuteLayout,
    values: CuteLayout,
}

#[derive(Deserialize)]
struct Partition {
    a: CuteLayout,
    tile: Vec<i64>,
    tv: CuteLayout,
}

fn layout(found: crate::Result<CuteLayout>) -> Answer {
    let found = found?;
    Ok(json!({"shape": found.shape(), "stride": found.stride()}))
}

fn whole(tiler: Tiler) -> Result<CuteLayout, Failure> {
    match tiler {
        Tiler::Layout(layout) => Ok(layout),
        Tiler::Extent(extent) => Ok(CuteLayout::new(extent, 1)?),
        _ => Err(Failure::invalid(
            "this product takes one layout as its tiler",
        )),
    }
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    if let Some(kind) = op
        .strip_suffix("_divide")
        .or_else(|| op.strip_suffix("_product"))
    {
        return tiled(op, kind, inputs(given)?);
    }
    match op {
        "cute_size" => value(inputs::<One>(given)?.a.size()),
        "cute_cosize" => value(inputs::<One>(given)?.a.cosize()),
        "cute_apply" => {
            let Apply { a, indices } = inputs(given)?;
            let values: crate::Result<Vec<i64>> = indices.iter().map(|i| a.apply(*i)).collect();
            super::named("values", values?)
        }
        "cute_coalesce" => {
            let Coalesce { a, profile } = inputs(given)?;
            layout(match profile {
                Some(profile) => cute::coalesce_by_mode(&a, &profile),
                None => Ok(cute::coalesce(&a)),
            })
        }
        "cute_composition" => {
            let Two { a, b } = inputs(given)?;
            layout(cute::composition(&a, &b))
        }
        "cute_composition_by_mode" => {
            let Tiled { a, tiler } = inputs(given)?;
            layout(cute::composition_by_mode(&a, &tiler))
        }
        "cute_complement" => {
            let Complement { a, cotarget } = inputs(given)?;
            layout(cute::complement(&a, cotarget))
        }
        "cute_filter" => layout(Ok(cute::filter(&inputs::<One>(given)?.a))),
        "cute_upcast" | "cute_downcast" => {
            let Units { a, n } = inputs(given)?;
            layout(if op == "cute_upcast" {
                cute::upcast(&a, n)
            } else {
                cute::downcast(&a, n)
            })
        }
        "cute_recast" => {
            let Recast {
                a,
                from_bits,
                to_bits,
            } = inputs(given)?;
            layout(cute::recast(&a, from_bits, to_bits))
        }
        "cute_tile_to_shape" => {
            let TileToShape { a, shape, order } = inputs(given)?;
            layout(cute::tile_to_shape(&a, &shape, order.as_deref()))
        }
        "cute_layout_tv" => {
            let Tv { threads, values } = inputs(given)?;
            let (tile, tv) = cute::make_layout_tv(&threads, &values)?;
            Ok(json!({"tile": tile, "shape": tv.shape(), "stride": tv.stride()}))
        }
        "cute_partition_tv" => {
            let Partition { a, tile, tv } = inputs(given)?;
            layout(cute::partition_tv(&a, &tile, &tv))
        }
        "cute_right_inverse" => layout(cute::right_inverse(&inputs::<One>(given)?.a)),
        "cute_left_inverse" => layout(cute::left_inverse(&inputs::<One>(given)?.a)),
        _ => unknown(op),
    }
}

fn tiled(op: &str, kind: &str, Tiled { a, tiler }: Tiled) -> Answer {
    let divide = op.ends_with("_divide");
    layout(match (kind, divide) {
        ("cute_logical", true) => cute::logical_divide(&a, &tiler),
        ("cute_zipped", true) => cute::zipped_divide(&a, &tiler),
        ("cute_tiled", true) => cute::tiled_divide(&a, &tiler),
        ("cute_flat", true) => cute::flat_divide(&a, &tiler),
        ("cute_logical", false) => cute::logical_product(&a, &tiler),
        ("cute_zipped", false) => cute::zipped_product(&a, &tiler),
        ("cute_tiled", false) => cute::tiled_product(&a, &tiler),
        ("cute_flat", false) => cute::flat_product(&a, &tiler),
        ("cute_blocked", false) => cute::blocked_product(&a, &whole(tiler)?),
        ("cute_raked", false) => cute::raked_product(&a, &whole(tiler)?),
        _ => return unknown(op),
    })
}
