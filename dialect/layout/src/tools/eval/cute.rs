//! The `cute_*` operations.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Failure, inputs, unknown, value};
use crate::cute::{self, CuteLayout, Nest, Tiler};

pub(super) fn run(op: &str, given: Value) -> Answer {
    if let Some(kind) = op
        .strip_suffix("_divide")
        .or_else(|| op.strip_suffix("_product"))
    {
        return inputs::<Tiled>(given)?.repeated(op, kind);
    }
    match op {
        "cute_size" => value(inputs::<One>(given)?.a.size()),
        "cute_cosize" => value(inputs::<One>(given)?.a.cosize()),
        "cute_filter" => layout(Ok(cute::filter(&inputs::<One>(given)?.a))),
        "cute_right_inverse" => layout(cute::right_inverse(&inputs::<One>(given)?.a)),
        "cute_left_inverse" => layout(cute::left_inverse(&inputs::<One>(given)?.a)),
        "cute_apply" => inputs::<Apply>(given)?.answer(),
        "cute_coalesce" => inputs::<Coalesce>(given)?.answer(),
        "cute_composition" => inputs::<Composition>(given)?.answer(),
        "cute_composition_by_mode" => inputs::<Tiled>(given)?.composition(),
        "cute_complement" => inputs::<Complement>(given)?.answer(),
        "cute_upcast" => inputs::<Units>(given)?.upcast(),
        "cute_downcast" => inputs::<Units>(given)?.downcast(),
        "cute_recast" => inputs::<Recast>(given)?.answer(),
        "cute_tile_to_shape" => inputs::<TileToShape>(given)?.answer(),
        "cute_layout_tv" => inputs::<Tv>(given)?.answer(),
        "cute_partition_tv" => inputs::<Partition>(given)?.answer(),
        _ => unknown(op),
    }
}

fn layout(found: crate::Result<CuteLayout>) -> Answer {
    let found = found?;
    Ok(json!({"shape": found.shape(), "stride": found.stride()}))
}

#[derive(Deserialize)]
struct One {
    a: CuteLayout,
}

#[derive(Deserialize)]
struct Apply {
    a: CuteLayout,
    indices: Vec<i64>,
}

impl Apply {
    fn answer(&self) -> Answer {
        let values = self.indices.iter().map(|i| self.a.apply(*i));
        super::named("values", values.collect::<crate::Result<Vec<i64>>>()?)
    }
}

#[derive(Deserialize)]
struct Coalesce {
    a: CuteLayout,
    profile: Option<Nest>,
}

impl Coalesce {
    fn answer(&self) -> Answer {
        layout(match &self.profile {
            Some(profile) => cute::coalesce_by_mode(&self.a, profile),
            None => Ok(cute::coalesce(&self.a)),
        })
    }
}

#[derive(Deserialize)]
struct Composition {
    a: CuteLayout,
    b: CuteLayout,
}

impl Composition {
    fn answer(&self) -> Answer {
        layout(cute::composition(&self.a, &self.b))
    }
}

#[derive(Deserialize)]
struct Tiled {
    a: CuteLayout,
    tiler: Tiler,
}

impl Tiled {
    fn composition(&self) -> Answer {
        layout(cute::composition_by_mode(&self.a, &self.tiler))
    }

    /// A division by the tiler or a product with it.
    fn repeated(self, op: &str, kind: &str) -> Answer {
        let Self { a, tiler } = self;
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

#[derive(Deserialize)]
struct Complement {
    a: CuteLayout,
    cotarget: i64,
}

impl Complement {
    fn answer(&self) -> Answer {
        layout(cute::complement(&self.a, self.cotarget))
    }
}

#[derive(Deserialize)]
struct Units {
    a: CuteLayout,
    n: i64,
}

impl Units {
    fn upcast(&self) -> Answer {
        layout(cute::upcast(&self.a, self.n))
    }

    fn downcast(&self) -> Answer {
        layout(cute::downcast(&self.a, self.n))
    }
}

#[derive(Deserialize)]
struct Recast {
    a: CuteLayout,
    from_bits: i64,
    to_bits: i64,
}

impl Recast {
    fn answer(&self) -> Answer {
        layout(cute::recast(&self.a, self.from_bits, self.to_bits))
    }
}

#[derive(Deserialize)]
struct TileToShape {
    a: CuteLayout,
    shape: Vec<i64>,
    order: Option<Vec<i64>>,
}

impl TileToShape {
    fn answer(&self) -> Answer {
        let order = self.order.as_deref();
        layout(cute::tile_to_shape(&self.a, &self.shape, order))
    }
}

#[derive(Deserialize)]
struct Tv {
    threads: CuteLayout,
    values: CuteLayout,
}

impl Tv {
    fn answer(&self) -> Answer {
        let (tile, tv) = cute::make_layout_tv(&self.threads, &self.values)?;
        Ok(json!({"tile": tile, "shape": tv.shape(), "stride": tv.stride()}))
    }
}

#[derive(Deserialize)]
struct Partition {
    a: CuteLayout,
    tile: Vec<i64>,
    tv: CuteLayout,
}

impl Partition {
    fn answer(&self) -> Answer {
        layout(cute::partition_tv(&self.a, &self.tile, &self.tv))
    }
}
