//! The operations on forty layouts of real kernels, one measurement a layout; and their growth with the
//! number of iters.
//!
//! `cargo bench -p axe-layout --bench layouts` prints the times of every layout, then their medians.
//! `cargo bench -p axe-layout --bench layouts -- count OPERATION N` runs one operation N times over all
//! layouts and measures nothing: `instructions.sh` counts its instructions.

mod kernels;

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use axe_layout::address::AddressMap;
use axe_layout::linear::{Distribution, warp_shuffle};
use axe_layout::{Axis, Layout};

/// One layout with what the operations need, made beforehand.
struct Case {
    name: String,
    layout: Layout,
    shape: Vec<i64>,
    /// An equal layout of another structure.
    equal: Layout,
    outer: Layout,
    outer_shape: Vec<i64>,
    tiled: Layout,
    tiled_shape: Vec<i64>,
    last: Vec<i64>,
    /// The second half of the first dimension longer than 1, the others whole.
    region: Vec<Range<i64>>,
}

impl Case {
    fn new(name: &str, layout: Layout, shape: Vec<i64>) -> Self {
        let (outer, outer_shape) = kernels::outer(&layout, &shape);
        let tiled = Layout::tile(&outer, &outer_shape, &layout, &shape);
        let tiled = tiled.unwrap_or_else(|e| panic!("{name}: {e}"));
        // A unit iter in front: no shortcut through identical structure.
        let equal = layout.broadcast(1, 0, Axis::M);
        Self {
            name: name.to_owned(),
            equal: equal.unwrap_or_else(|e| panic!("{name}: {e}")),
            tiled_shape: shape.iter().map(|e| 2 * e).collect(),
            last: shape.iter().map(|e| e - 1).collect(),
            region: half(&shape),
            layout,
            shape,
            outer,
            outer_shape,
            tiled,
        }
    }
}

fn half(shape: &[i64]) -> Vec<Range<i64>> {
    let cut = shape.iter().position(|&extent| extent > 1);
    let range = |(k, &extent): (usize, &i64)| match cut {
        Some(at) if at == k => extent / 2..extent,
        _ => 0..extent,
    };
    shape.iter().enumerate().map(range).collect()
}

type Operation = (&'static str, fn(&Case));

const OPERATIONS: [Operation; 8] = [
    ("canonicalize", |c| {
        drop(black_box(black_box(&c.layout).canonicalize()))
    }),
    ("equality", |c| {
        drop(black_box(black_box(&c.layout).equivalent(&c.equal)))
    }),
    ("group", |c| {
        drop(black_box(black_box(&c.layout).group(&c.shape)))
    }),
    ("apply", |c| {
        drop(black_box(black_box(&c.layout).apply(&c.shape, &c.last)))
    }),
    ("slice", |c| {
        drop(black_box(black_box(&c.layout).slice(&c.shape, &c.region)))
    }),
    ("tile", |c| {
        drop(black_box(Layout::tile(
            black_box(&c.outer),
            &c.outer_shape,
            &c.layout,
            &c.shape,
        )))
    }),
    ("tile_of", |c| {
        drop(black_box(black_box(&c.tiled).tile_of(
            &c.tiled_shape,
            &c.layout,
            &c.shape,
        )))
    }),
    ("tile_of_outer", |c| {
        drop(black_box(black_box(&c.tiled).tile_of_outer(
            &c.tiled_shape,
            &c.outer,
            &c.outer_shape,
        )))
    }),
];

/// Nanoseconds a call: the median of 15 batches of about 100 microseconds.
fn measure(mut run: impl FnMut()) -> f64 {
    let mut batch = |count: u32| {
        let start = Instant::now();
        for _ in 0..count {
            run();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    let count = (1e5 / batch(3).max(1.0)).ceil() as u32;
    median((0..15).map(|_| batch(count)).collect())
}
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn cases() -> Vec<Case> {
    let layouts = kernels::layouts().into_iter();
    layouts
        .map(|(name, layout, shape)| Case::new(name, layout, shape))
        .collect()
}

fn table(cases: &[Case]) -> Vec<Vec<f64>> {
    print!("{:32}", "nanoseconds a call");
    OPERATIONS.iter().for_each(|(name, _)| print!("{name:>14}"));
    println!();
    let mut columns = vec![Vec::new(); OPERATIONS.len()];
    for case in cases {
        print!("{:32}", case.name);
        for (column, (_, run)) in columns.iter_mut().zip(OPERATIONS) {
            let time = measure(|| run(case));
            column.push(time);
            print!("{time:14.0}");
        }
        println!();
    }
    columns
}

fn count(operation: &str, times: u32) {
    let cases = cases();
    let run = OPERATIONS.iter().find(|(name, _)| *name == operation);
    for _ in 0..times {
        for case in &cases {
            if let Some((_, run)) = run {
                run(case);
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|a| a == "count") {
        let times = arguments.get(at + 2).and_then(|n| n.parse().ok());
        return count(arguments.get(at + 1).map_or("", |a| a), times.unwrap_or(1));
    }
    let columns = table(&cases());
    print!("{:32}", "median");
    columns
        .into_iter()
        .for_each(|column| print!("{:14.0}", median(column)));
    println!("\n");
    let long = [4, 16, 64, 256].map(|iters| {
        let (layout, shape) = kernels::long(iters);
        Case::new(&format!("{iters} iters"), layout, shape)
    });
    table(&long);
    println!();
    compiled_tiles();
    relayout_plans();
}

/// All addresses of 128x128 tiles through the compiled map, which is made in advance.
fn compiled_tiles() {
    let tiles = [
        "S[(128, 128) : (128, 1)]",
        "Sw<3,3,3> o S[(128, 2, 64) : (64, 8192, 1)]",
        "S[(128, 128) : (1, 128)]",
        "S[(16, 8, 16, 8) : (1024, 8, 64, 1)]",
    ];
    println!(
        "{:48}{:>14}{:>14}{:>14}",
        "nanoseconds an element", "fill", "for", "fold"
    );
    for text in tiles {
        let layout: Layout = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let map = AddressMap::new(&layout, Axis::M).unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut out = vec![0; 128 * 128];
        let fill = measure(|| drop(black_box(map.fill(0, black_box(&mut out)))));
        let one_by_one = measure(|| {
            let mut sum = 0;
            for address in black_box(&map) {
                sum ^= address;
            }
            black_box(sum);
        });
        let fold = measure(|| {
            black_box(black_box(&map).iter().fold(0, |a, b| a ^ b));
        });
        let figures = [fill, one_by_one, fold].map(|time| time / out.len() as f64);
        print!("{text:48}");
        figures.iter().for_each(|time| print!("{time:14.2}"));
        println!();
    }
    println!();
}

/// Plans of 128 registers in 32 lanes: 12 bits, of which `k` go from registers to lanes.
fn relayout_plans() {
    println!(
        "{:48}{:>14}",
        "plan of 128 registers x 32 lanes", "microseconds"
    );
    for moved in [1, 3, 5] {
        let bits: Vec<i64> = (0..12).map(|k| 1 << k).collect();
        let mut turned = bits.clone();
        (0..moved).for_each(|k| turned.swap(k, 7 + k));
        let of = |bits: &[i64]| Distribution::new(bits[..7].to_vec(), bits[7..].to_vec());
        let (src, dst) = match (of(&bits), of(&turned)) {
            (Ok(src), Ok(dst)) => (src, dst),
            (src, dst) => panic!("{src:?} {dst:?}"),
        };
        let shuffles = warp_shuffle(&src, &dst, 32).map_or(0, |plan| plan.shuffles());
        let time = measure(|| drop(black_box(warp_shuffle(black_box(&src), &dst, 32))));
        let name = format!("{moved} bits change places, {shuffles} shuffles");
        println!("{name:48}{:14.0}", time / 1e3);
    }
}
