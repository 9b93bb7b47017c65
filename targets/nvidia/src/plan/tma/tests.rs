//! Plans of tiles, and what is declined.

use super::*;

pub(super) fn global(shape: &[i64], strides: &[i64]) -> Global {
    let dims = shape.iter().zip(strides).map(|(&extent, &stride)| {
        let extent = if extent == DYNAMIC { 1 << 40 } else { extent };
        vec![Iter::new(extent, stride, Axis::M)]
    });
    Global {
        shape: shape.to_vec(),
        dims: dims.collect(),
        kept: (0..shape.len()).collect(),
        divisors: vec![64; shape.len()],
    }
}

pub(super) fn plan(global: &Global, tile: &[i64], shared: &str) -> Result<TmaPlan, Decline> {
    TmaPlan::new(global, tile, &shared.parse().unwrap(), "f16", 2)
}

#[test]
fn a_swizzled_tile_is_one_box() {
    let memory = global(&[DYNAMIC, 4096], &[4096, 1]);
    let plan = plan(&memory, &[128, 64], "Sw<3,3,3> o S[(128, 64) : (64, 1)]").unwrap();
    assert_eq!(plan.boxes.len(), 1);
    assert_eq!(plan.map.r#box, [64, 128]);
    assert_eq!(plan.map.extents, [Some(4096), None]);
    assert_eq!(plan.map.strides, [8192]);
    assert_eq!(plan.map.swizzle, TmaSwizzle::B128);
    super::super::written(&plan);
}

#[test]
fn panels_and_long_tiles_are_loops_of_boxes() {
    let memory = global(&[4096, 4096], &[4096, 1]);
    let panels = "Sw<3,3,3> o S[(64, 2, 64) : (64, 4096, 1)]";
    let two = plan(&memory, &[64, 128], panels).unwrap();
    assert_eq!(two.boxes.len(), 2);
    let text = super::super::written(&two);
    assert!(
        text.contains(r#"{"at":["x1 + 64","x0"],"shared":4096}"#),
        "{text}"
    );
    assert_eq!(
        (two.boxes[1].coordinates[0].offset, two.boxes[1].shared),
        (64, 4096)
    );
    let long = plan(&memory, &[512, 64], "Sw<3,3,3> o S[(512, 64) : (64, 1)]").unwrap();
    assert_eq!(
        (long.map.r#box.clone(), long.boxes.len()),
        (vec![64, 256], 2)
    );
    let narrow = plan(&memory, &[64, 32], "Sw<2,3,3> o S[(64, 32) : (32, 1)]").unwrap();
    assert_eq!(narrow.map.swizzle, TmaSwizzle::B64);
}

#[test]
fn a_narrow_box_lies_in_the_rows_of_its_swizzle() {
    let memory = global(&[4096, 200], &[200, 1]);
    let narrow = plan(&memory, &[64, 16], "Sw<3,3,3> o S[(64, 16) : (64, 1)]").unwrap();
    assert_eq!((narrow.map.r#box, narrow.boxes.len()), (vec![16, 64], 1));
    assert_eq!(narrow.map.swizzle, TmaSwizzle::B128);
    // Rows without what the accelerator leaves out are another layout.
    assert!(plan(&memory, &[64, 16], "Sw<3,3,3> o S[(64, 16) : (16, 1)]").is_err());
}

#[test]
fn dimensions_in_another_order_and_dropped_ones() {
    let turned = global(&[4096, 512], &[1, 4096]);
    let tile = plan(&turned, &[64, 32], "Sw<3,3,3> o S[(64, 32) : (1, 64)]").unwrap();
    assert_eq!(
        (tile.map.r#box.clone(), tile.boxes.len()),
        (vec![64, 32], 1)
    );
    let mut batch = global(&[8, 256, 64], &[16384, 64, 1]);
    batch.kept = vec![1, 2];
    let one = plan(&batch, &[128, 64], "S[(128, 64) : (64, 1)]").unwrap();
    assert_eq!(one.map.r#box, [64, 128, 1]);
    assert_eq!(one.boxes[0].coordinates[2].dim, 0);
    // The shared tile has the batch outermost, or between rows and columns.
    let mut batch = global(&[8, 256, 64], &[64, 512, 1]);
    batch.kept = vec![0, 1, 2];
    let mixed = plan(&batch, &[2, 16, 64], "S[(2, 16, 64) : (64, 128, 1)]").unwrap();
    assert_eq!(
        (mixed.map.r#box.clone(), mixed.boxes.len()),
        (vec![64, 2, 16], 1)
    );
    assert_eq!(mixed.boxes[0].coordinates[1].dim, 0);
}

#[test]
fn a_dimension_of_several_iters_is_several_of_the_map() {
    // Blocks of 64 columns, one after the other.
    let mut memory = global(&[256, 512], &[64, 1]);
    memory.dims[1] = vec![Iter::new(8, 16384, Axis::M), Iter::new(64, 1, Axis::M)];
    let plan = plan(&memory, &[32, 128], "S[(32, 2, 64) : (64, 2048, 1)]").unwrap();
    assert_eq!(plan.map.r#box, [64, 32, 2]);
    assert_eq!(plan.boxes[0].coordinates[0].modulus, Some(64));
    assert_eq!(plan.boxes[0].coordinates[2].divisor, 64);
}

#[test]
fn one_row_is_a_dimension_still() {
    let row = global(&[1, 4096], &[4096, 1]);
    let plan = plan(&row, &[64, 64], "Sw<3,3,3> o S[(64, 64) : (64, 1)]").unwrap();
    assert_eq!(
        (plan.map.r#box, plan.map.extents),
        (vec![64, 64], vec![Some(4096), Some(1)])
    );
}

#[test]
fn a_tile_inside_an_iter_is_refused() {
    let mut blocks = global(&[64, 256], &[256, 1]);
    blocks.dims[1] = vec![Iter::new(4, 4096, Axis::M), Iter::new(64, 1, Axis::M)];
    blocks.divisors = vec![64, 8];
    let refused = plan(&blocks, &[64, 16], "S[(64, 16) : (16, 1)]").unwrap_err();
    assert!(
        refused.to_string().contains("inside an iter of 64"),
        "{refused}"
    );
}

#[test]
fn declines_say_which_rule() {
    let odd = global(&[100, 4100], &[4100, 1]);
    let shared = "S[(128, 64) : (64, 1)]";
    let reason = |result: Result<TmaPlan, Decline>| result.unwrap_err().to_string();
    assert!(reason(plan(&odd, &[128, 64], shared)).contains("8200 bytes"));
    let memory = global(&[4096, 4096], &[4096, 1]);
    let row = plan(&memory, &[16, 12], "S[(16, 12) : (12, 1)]");
    assert!(reason(row).contains("24 bytes"));
    let turned = plan(&memory, &[64, 64], "S[(64, 64) : (1, 64)]");
    assert!(reason(turned).contains("2 bytes"));
    let swizzle = plan(&memory, &[64, 64], "Sw<3,4,3> o S[(64, 64) : (64, 1)]");
    assert!(reason(swizzle).contains("no swizzle"));
    let span = plan(&memory, &[64, 32], "Sw<3,3,3> o S[(64, 32) : (32, 1)]");
    assert!(reason(span).contains("128B"));
    let mut shifted = global(&[4096, 4096], &[4096, 1]);
    shifted.divisors = vec![64, 4];
    assert!(reason(plan(&shifted, &[128, 64], shared)).contains("multiple of 8 bytes"));
    let strided = global(&[64, 64], &[128, 2]);
    let tile = plan(&strided, &[64, 64], "S[(64, 64) : (64, 1)]");
    assert!(reason(tile).contains("contiguous"));
}

proptest::proptest! {
    /// Every plan that is made was compared with its layouts, element by element; here the accelerator's
    /// descriptor is compared with the global memory too.
    #[test]
    fn boxes_read_what_the_tile_says(
        order in 0..6_usize,
        tile in proptest::array::uniform3(0..4_u32),
        padded in proptest::bool::ANY,
    ) {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let order = orders[order];
        let shape = [16_i64, 32, 64];
        let (mut strides, mut next) = ([0; 3], 1);
        for dim in order.iter().rev() {
            strides[*dim] = next;
            next *= shape[*dim] + if padded { 16 } else { 0 };
        }
        let tile: Vec<i64> = tile.iter().map(|bits| 8 << bits).collect();
        let tile: Vec<i64> = tile.iter().zip(shape).map(|(tile, extent)| (*tile).min(extent)).collect();
        let memory = global(&shape, &strides);
        let shared = {
            let (mut iters, mut next) = (vec![Iter::new(1, 0, Axis::M); 3], 1);
            for dim in order.iter().rev() {
                iters[*dim] = Iter::new(tile[*dim], next, Axis::M);
                next *= tile[*dim];
            }
            Layout::from_shard(iters).unwrap()
        };
        let plan = TmaPlan::new(&memory, &tile, &shared, "f16", 2).unwrap();
        // Element by element: the global address by the map is that of the tile's index.
        let mut elements = 0;
        for each in &plan.boxes {
            for at in 0..plan.map.r#box.iter().product::<i64>() {
                let (mut rest, mut address, mut index) = (at, 0, [0; 3]);
                for (level, extent) in plan.map.r#box.iter().enumerate() {
                    let coordinate = rest % extent + each.coordinates[level].offset;
                    let stride = if level == 0 { 1 } else { plan.map.strides[level - 1] / 2 };
                    address += coordinate * stride;
                    index[each.coordinates[level].dim] = coordinate;
                    rest /= extent;
                }
                let expected: i64 = index.iter().zip(strides).map(|(x, stride)| x * stride).sum();
                proptest::prop_assert_eq!(address, expected);
                let flat = index.iter().zip(&tile).fold(0, |flat, (x, extent)| flat * extent + x);
                let place = shared.origin(flat).unwrap().get(Axis::M);
                proptest::prop_assert_eq!(each.shared + at, place);
                elements += 1;
            }
        }
        proptest::prop_assert_eq!(elements, tile.iter().product::<i64>());
    }
}
