//! Layouts of up to eight iters, shards or replicas, are canonicalised, compared, grouped and applied without the heap,
//! replica sets that overlap themselves among them, while they have up to 128 points within 512 times their unit.

#[path = "../benches/kernels/mod.rs"]
#[allow(dead_code, reason = "shared with the benches")]
mod kernels;

use std::hint::black_box;

use axe_layout::Layout;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// How often `run` asks the heap for memory. The one test of this file keeps other threads out.
fn allocations<T>(run: impl FnOnce() -> T) -> usize {
    let region = Region::new(HEAP);
    let result = black_box(run());
    let change = region.change();
    drop(result);
    change.allocations + change.reallocations
}

#[test]
fn small_layouts_stay_off_the_heap() {
    assert!(allocations(|| Box::new(1)) > 0, "the counter counts");
    let extra = [
        "S[(2, 3, 2, 3, 2, 3, 2, 3) : (1, 1@a, 1, 1@a, 1, 1@a, 1, 1@a)]",
        "S[4 : 1] + R[(3, 2, 2) : (2, 3, 6)]",
        "S[4 : 1] + R[(3, 2, 2, 2) : (2, 3, 6, 7)]",
        "S[4 : 1@a] + R[(2, 2, 2, 2, 2, 2, 2) : (1, 3, 9, 27, 81, 243, 729)]",
        "S[] + R[(2, 3, 2, 3, 2, 3, 2, 3) : (1, 1@a, 5, 5@a, 1@b, 1@c, 5@b, 5@c)]",
        "S[] + R[(3, 2, 4, 2) : (-10, 15, 2@lane, 3@lane)] + 3",
        "S[(2, 2, 2, 2) : (1, 1@a, 1@b, 1@c)] + R[(2, 3, 2, 2) : (9, -4@a, 9@b, 7@c)] + 3 + 4@a",
    ];
    let named = kernels::layouts().into_iter().map(|(_, layout, _)| layout);
    let extra = extra.iter().map(|text| text.parse().unwrap());
    for layout in named.chain(extra) {
        let layout: Layout = layout;
        let other = layout.clone().with_offset(layout.offset().clone()).unwrap();
        let grouped = layout.group(&[layout.size()]).unwrap().layout;
        let zero = [0];
        let last = [layout.size() - 1];
        assert_eq!(
            allocations(|| layout.canonicalize()),
            0,
            "canonicalize {layout}"
        );
        assert_eq!(
            allocations(|| layout.equivalent(&other)),
            0,
            "equality {layout}"
        );
        assert_eq!(
            allocations(|| layout.equivalent(&grouped)),
            0,
            "equality {layout}"
        );
        let shape = [layout.size()];
        assert_eq!(allocations(|| layout.group(&shape)), 0, "group {layout}");
        if layout.replica().iter().any(|i| i.extent > 1) {
            continue;
        }
        for at in [&zero[..], &last[..]] {
            assert_eq!(
                allocations(|| layout.apply(&shape, at)),
                0,
                "apply {layout}"
            );
        }
    }
}
