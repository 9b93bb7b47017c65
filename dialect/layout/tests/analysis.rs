//! The analyses on the layouts that kernels use.

#[path = "../benches/kernels/mod.rs"]
#[allow(dead_code, reason = "shared with the bench")]
mod kernels;

use std::collections::{BTreeMap, BTreeSet};

use axe_layout::analysis::{
    TileAccess, alias, choose_swizzle, coinciding_copies, is_injective, overlap, tile_accesses,
    vector_width,
};
use axe_layout::{Axis, Coord, Layout, oracle};

fn parse(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn lane_and_reg() -> (Axis, Axis) {
    (Axis::new("lane").unwrap(), Axis::new("reg").unwrap())
}

#[test]
fn no_kernel_aliases_but_the_broadcast() {
    for (name, layout, _) in kernels::layouts() {
        let found = alias(&layout).unwrap();
        assert_eq!(
            found.is_some(),
            name == "broadcast_bias",
            "{name}: {found:?}"
        );
        assert!(!coinciding_copies(&layout).unwrap(), "{name}");
        if layout.size() > 1 << 14 {
            continue;
        }
        let mut owner: BTreeMap<oracle::Point, i64> = BTreeMap::new();
        let mut aliased = false;
        for (x, points) in (0..).zip(oracle::map(&layout)) {
            for point in points {
                aliased |= owner.insert(point, x).is_some();
            }
        }
        assert_eq!(found.is_some(), aliased, "{name}");
    }
}

/// Two stages of a pipeline are apart; a tile that begins inside of another is not.
#[test]
fn stages_are_apart() {
    let at = |offset: i64| {
        let tile = parse("Sw<3,3,3> o S[(128, 64) : (64, 1)]");
        let offset = Coord::from_terms([(Axis::M, offset)]).unwrap();
        tile.with_offset(offset).unwrap()
    };
    assert_eq!(overlap(&at(0), &at(8192)).unwrap(), None);
    let met = overlap(&at(0), &at(8191)).unwrap().unwrap();
    assert!(at(0).points(met.first).unwrap().contains(&met.point));
    assert!(at(8191).points(met.second).unwrap().contains(&met.point));
}

/// Elements of one access along the last dimension, for 16-bit elements at 16-byte aligned bases.
#[test]
fn vectors_of_the_memory_tiles() {
    let mut seen = 0;
    for (name, layout, shape) in kernels::layouts() {
        if layout.axes()[..] != [Axis::M] {
            continue;
        }
        let last = shape.len() - 1;
        let width = vector_width(&layout, &shape, last, 16, 16).unwrap();
        let want = match name {
            "column_major" | "swizzle_transposed" => 1,
            _ => 8,
        };
        assert_eq!(width.elements, want, "{name}");
        seen += 1;
    }
    assert!(seen >= 13, "{seen}");
    let columns = parse("S[(4096, 4096) : (1, 4096)]");
    assert_eq!(
        vector_width(&columns, &[4096, 4096], 0, 16, 16)
            .unwrap()
            .elements,
        8
    );
    let transposed = parse("Sw<3,3,3> o S[(64, 2, 64) : (1, 4096, 64)]");
    assert_eq!(
        vector_width(&transposed, &[64, 128], 0, 16, 16)
            .unwrap()
            .elements,
        8
    );
}

/// Passes of all accesses, counted from the addresses alone.
fn passes(accesses: &[TileAccess], tile: &Layout) -> (u64, u64) {
    let (mut total, mut ideal) = (0, 0);
    for access in accesses {
        let warp = access.warp(tile.swizzle()).unwrap();
        let cost = warp.banks();
        let mut brute = 0;
        for lanes in warp.addresses().chunks(128 / warp.bytes().max(4) as usize) {
            let bytes = lanes.iter().flatten().flat_map(|a| *a..*a + warp.bytes());
            let words: BTreeSet<i64> = bytes.map(|b| b / 4).collect();
            let in_bank = |bank| words.iter().filter(|w| **w % 32 == bank).count();
            brute += (0..32).map(in_bank).max().unwrap_or(0);
        }
        assert_eq!(cost.passes, brute as u64);
        (total, ideal) = (total + cost.passes, ideal + cost.ideal);
    }
    (total, ideal)
}

/// The 16x64 accumulator part of one warp of `wgmma`, stored as halves to a tile of 64 a row: pairs of
/// columns meet eight to a bank, and not with the swizzle that TMA stores from.
#[test]
fn epilogue_of_wgmma() {
    let warp = parse("S[(2, 8, 8, 4, 2) : (2@reg, 4@lane, 4@reg, 1@lane, 1@reg)]");
    let plain = parse("S[(16, 64) : (64, 1)]");
    let stores = tile_accesses(&warp, lane_and_reg(), &plain, None, 2).unwrap();
    assert!(stores.len() == 16 && stores.iter().all(|s| s.vector() == 2));
    assert_eq!(passes(&stores, &plain), (128, 16));
    let choice = choose_swizzle(&plain, &stores).unwrap();
    assert_eq!(
        choice.swizzle.map(|s| s.to_string()).as_deref(),
        Some("Sw<3,3,3>")
    );
    let swizzled = plain.with_swizzle(choice.swizzle);
    assert_eq!(passes(&stores, &swizzled), (16, 16));
    assert!(is_injective(&swizzled).unwrap());
}

/// Accumulators of `mma` m16n8 as floats: dense at 8 a row, four to a bank at 64 a row.
#[test]
fn epilogue_of_mma() {
    let c = parse("S[(2, 8, 4, 2) : (2@reg, 4@lane, 1@lane, 1@reg)]");
    let dense = parse("S[(16, 8) : (8, 1)]");
    let stores = tile_accesses(&c, lane_and_reg(), &dense, None, 4).unwrap();
    assert_eq!(passes(&stores, &dense), (4, 4));
    let wide = parse("S[(16, 8) : (64, 1)]");
    let stores = tile_accesses(&c, lane_and_reg(), &wide, None, 4).unwrap();
    assert_eq!(passes(&stores, &wide), (16, 4));
    let choice = choose_swizzle(&wide, &stores).unwrap();
    assert!(choice.is_free(), "{choice:?}");
    assert_eq!(passes(&stores, &wide.with_swizzle(choice.swizzle)), (4, 4));
}

/// `ldmatrix` reads any 8x8 block of the tiles that the bench lists without conflicts.
#[test]
fn swizzled_tiles_feed_ldmatrix() {
    for (name, bytes) in [
        ("swizzle_128b_tile", 2),
        ("swizzle_64b_tile", 2),
        ("swizzle_32b_tile", 2),
        ("swizzle_fp8_tile", 1),
        ("core_matrices", 2),
        ("padded_rows", 2),
    ] {
        let (_, layout, shape) = kernels::layouts()
            .into_iter()
            .find(|k| k.0 == name)
            .unwrap();
        let vector = 16 / bytes;
        for row in (0..shape[0]).step_by(8) {
            for column in (0..shape[1]).step_by(vector as usize) {
                let rows: Vec<_> = (0..8).map(|lane| vec![row + lane, column]).collect();
                let read = TileAccess::at(&layout, &shape, &rows, 1, vector, bytes).unwrap();
                assert_eq!(
                    passes(&[read], &layout),
                    (1, 1),
                    "{name} at {row}, {column}"
                );
            }
        }
    }
}

/// Loads of global memory: 16 bytes a lane along rows touch no sector twice, single halves down a
/// column touch one each.
#[test]
fn copies_from_global_memory() {
    let (lane, reg) = lane_and_reg();
    let by_rows = parse("S[(4, 8, 8) : (8@lane, 1@lane, 1@reg)]");
    let block = parse("S[(4096, 4096) : (4096, 1)]");
    let block = block.slice(&[4096, 4096], &[8..12, 128..192]).unwrap();
    let loads = tile_accesses(&by_rows, (lane, reg), &block, None, 2).unwrap();
    let cost = loads[0].warp(None).unwrap().sectors();
    assert_eq!(
        (loads.len(), cost.sectors, cost.minimum, cost.bytes),
        (1, 16, 16, 512)
    );
    let down = parse("S[32 : 4096]");
    let one_each = parse("S[32 : 1@lane]");
    let loads = tile_accesses(&one_each, (lane, reg), &down, None, 2).unwrap();
    let cost = loads[0].warp(None).unwrap().sectors();
    assert_eq!((cost.sectors, cost.minimum), (32, 2));
    assert!((cost.efficiency() - 0.0625).abs() < 1e-12);
}
