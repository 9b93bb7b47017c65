//! Operations that analyse: aliasing, vectors, coalescing, banks, and the choice of a swizzle.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Failure, inputs, value};
use crate::analysis::{
    self, BankCost, SectorCost, TileAccess, WORD_BYTES, WarpAccess, choose_swizzle, tile_accesses,
};
use crate::json::{Extent, Extents};
use crate::{Axis, Kind, Layout, Swizzle};

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
struct Vector {
    layout: Layout,
    shape: Extents,
    dim: Option<usize>,
    elem_bits: u32,
    base_alignment: Option<i64>,
}

#[derive(Deserialize)]
struct Ways {
    layout: Layout,
    shape: Extents,
    coords: Vec<Vec<i64>>,
    elem_bytes: i64,
}

/// A tile in memory; its accesses are beside it.
#[derive(Deserialize)]
struct Tile {
    layout: Layout,
    shape: Extents,
    elem_bytes: i64,
}

/// One access by the coordinate of each lane's first element, or those of all threads of a distribution
/// over `lane` and `reg`, of the whole tile or of a box of it.
#[derive(Deserialize)]
struct Access {
    threads: Option<Layout>,
    region: Option<Vec<(i64, Extent)>>,
    coords: Option<Vec<Vec<i64>>>,
    dim: Option<usize>,
    vector: Option<i64>,
}

/// An access given by byte addresses, or accesses to a tile.
#[derive(Deserialize)]
struct Asked {
    bytes: Option<i64>,
    addresses: Option<Vec<Option<i64>>>,
    layout: Option<Layout>,
    shape: Option<Extents>,
    elem_bytes: Option<i64>,
    #[serde(flatten)]
    access: Access,
}

#[derive(Deserialize)]
struct Choose {
    #[serde(flatten)]
    tile: Tile,
    accesses: Vec<Access>,
}

pub(super) fn run(op: &str, given: Value) -> Answer {
    match op {
        "bank_ways" => bank_ways(&inputs(given)?),
        "alias" => {
            let One { layout } = inputs(given)?;
            let found = analysis::alias(&layout)?;
            let witness = found
                .as_ref()
                .map(|w| json!({"first": w.first, "second": w.second, "point": point(&w.point)}));
            Ok(json!({"injective": found.is_none(), "witness": witness}))
        }
        "overlap" => {
            let Two { a, b } = inputs(given)?;
            let found = analysis::overlap(&a, &b)?;
            let witness = found
                .as_ref()
                .map(|w| json!({"first": w.first, "second": w.second, "point": point(&w.point)}));
            Ok(json!({"overlap": found.is_some(), "witness": witness}))
        }
        "vector_width" => vector_width(&inputs(given)?),
        "bank_conflicts" => bank_conflicts(&warps(inputs(given)?)?),
        "coalescing" => coalescing(&warps(inputs(given)?)?),
        "choose_swizzle" => choose(inputs(given)?),
        _ => super::unknown(op),
    }
}

fn point(point: &crate::Coord) -> Value {
    let entries = point.iter().map(|(a, v)| (a.name().to_owned(), json!(v)));
    Value::Object(entries.collect())
}

fn vector_width(given: &Vector) -> Answer {
    let dim = given.dim.unwrap_or(given.shape.len().saturating_sub(1));
    let base = given.base_alignment.unwrap_or(16);
    let found = analysis::vector_width(&given.layout, &given.shape, dim, given.elem_bits, base)?;
    Ok(json!({
        "elements": found.elements, "bytes": found.bytes, "alignment": found.alignment
    }))
}

/// Distinct words of four bytes a bank, for the bank with the most, as if all lanes were served at once.
fn bank_ways(
    Ways {
        layout,
        shape,
        coords,
        elem_bytes,
    }: &Ways,
) -> Answer {
    if !(1..=128).contains(elem_bytes) {
        return Err(Failure::invalid(format!(
            "elem_bytes: expected 1 to 128, got {elem_bytes}"
        )));
    }
    let mut words = Vec::new();
    for coord in coords {
        let mut addresses: Vec<i64> = layout
            .apply(shape, coord)?
            .iter()
            .map(|point| point.get(Axis::M))
            .collect();
        addresses.dedup();
        let &[address] = addresses.as_slice() else {
            let message = "bank_ways: replicas on m leave open which copy a lane reads".into();
            return Err(Failure {
                kind: Kind::Unsupported,
                message,
            });
        };
        let end = address
            .checked_add(1)
            .and_then(|next| next.checked_mul(*elem_bytes));
        let (Some(begin), Some(end)) = (address.checked_mul(*elem_bytes), end) else {
            let message = "a byte address does not fit a 64-bit integer".into();
            return Err(Failure {
                kind: Kind::Overflow,
                message,
            });
        };
        words.extend(begin.div_euclid(WORD_BYTES)..=(end - 1).div_euclid(WORD_BYTES));
    }
    value(analysis::bank_ways(words))
}

/// The accesses in element addresses of the tile without its swizzle, which is `swizzle` unless that is
/// still to be chosen.
fn accesses(
    tile: &Tile,
    swizzle: Option<Swizzle>,
    access: &Access,
) -> Result<Vec<TileAccess>, Failure> {
    let plain = tile.layout.clone().with_swizzle(None);
    match (&access.threads, &access.coords) {
        (Some(threads), None) => {
            let memory = match &access.region {
                Some(region) => {
                    let region: Vec<_> = region.iter().map(|&(begin, end)| begin..end.0).collect();
                    plain.slice(&tile.shape, &region)?
                }
                None => plain,
            };
            let axes = (Axis::new("lane")?, Axis::new("reg")?);
            let of = |vector| tile_accesses(threads, axes, &memory, vector, tile.elem_bytes);
            Ok(match (access.vector, swizzle) {
                (None, Some(swizzle)) => {
                    // The widest vectors that the swizzle keeps together.
                    let most = (16 / tile.elem_bytes.max(1)).min(1 << swizzle.base());
                    let widths = (0..5).map(|k| most >> k).take_while(|&width| width > 1);
                    let widest = { widths }.find_map(|width| of(Some(width)).ok());
                    widest.map_or_else(|| of(Some(1)), Ok)?
                }
                (vector, _) => of(vector)?,
            })
        }
        (None, Some(coords)) => {
            let dim = access.dim.unwrap_or(tile.shape.len().saturating_sub(1));
            let vector = access.vector.unwrap_or(1);
            let one = TileAccess::at(&plain, &tile.shape, coords, dim, vector, tile.elem_bytes)?;
            Ok(vec![one])
        }
        _ => Err(Failure::invalid(
            "an access: expected either `threads` or `coords`",
        )),
    }
}

fn warps(asked: Asked) -> Result<Vec<WarpAccess>, Failure> {
    match asked {
        Asked {
            bytes: Some(bytes),
            addresses: Some(addresses),
            layout: None,
            ..
        } => Ok(vec![WarpAccess::new(bytes, addresses)?]),
        Asked {
            layout: Some(layout),
            shape: Some(shape),
            elem_bytes: Some(elem_bytes),
            access,
            addresses: None,
            ..
        } => {
            let swizzle = layout.effective_swizzle();
            let tile = Tile {
                layout,
                shape,
                elem_bytes,
            };
            let of = accesses(&tile, swizzle, &access)?;
            of.iter().map(|a| Ok(a.warp(swizzle)?)).collect()
        }
        _ => Err(Failure::invalid(
            "an access: expected `bytes` and `addresses`, or `layout`, `shape` and `elem_bytes`",
        )),
    }
}

fn bank_cost(cost: &BankCost) -> Value {
    json!({
        "passes": cost.passes, "ideal": cost.ideal, "conflicts": cost.conflicts(), "ways": cost.ways
    })
}

fn total(costs: &[BankCost]) -> BankCost {
    costs.iter().fold(BankCost::default(), |sum, c| BankCost {
        passes: sum.passes + c.passes,
        ideal: sum.ideal + c.ideal,
        ways: sum.ways.max(c.ways),
    })
}

fn bank_conflicts(warps: &[WarpAccess]) -> Answer {
    let costs: Vec<BankCost> = warps.iter().map(WarpAccess::banks).collect();
    let mut answer = bank_cost(&total(&costs));
    if let Some(fields) = answer.as_object_mut() {
        let bytes = warps.iter().map(WarpAccess::bytes).max();
        fields.insert("accesses".into(), json!(warps.len()));
        fields.insert("bytes_per_lane".into(), json!(bytes));
    }
    Ok(answer)
}

fn coalescing(warps: &[WarpAccess]) -> Answer {
    let add = |sum: SectorCost, warp: &WarpAccess| {
        let c = warp.sectors();
        SectorCost {
            sectors: sum.sectors + c.sectors,
            minimum: sum.minimum + c.minimum,
            bytes: sum.bytes + c.bytes,
        }
    };
    let sum = warps.iter().fold(SectorCost::default(), add);
    Ok(json!({
        "sectors": sum.sectors, "minimum": sum.minimum, "bytes": sum.bytes,
        "efficiency": sum.efficiency(), "accesses": warps.len(),
        "bytes_per_lane": warps.iter().map(WarpAccess::bytes).max(),
    }))
}

fn choose(
    Choose {
        tile,
        accesses: given,
    }: Choose,
) -> Answer {
    let mut all = Vec::new();
    for access in &given {
        all.extend(accesses(&tile, None, access)?);
    }
    let choice = choose_swizzle(&tile.layout, &all)?;
    Ok(json!({
        "swizzle": choice.swizzle,
        "notation": choice.swizzle.map(|s| s.to_string()),
        "free": choice.is_free(),
        "conflicts": choice.conflicts(),
        "candidates": choice.candidates,
        "cosize": choice.cosize,
        "costs": choice.costs.iter().map(bank_cost).collect::<Vec<_>>(),
    }))
}
