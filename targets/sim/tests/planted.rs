//! Planted faults: each is found, with the line of the source that the user wrote.
//!
//! `data/planted` holds kernels that are right. Below a line stand faults, `//~ class: replacement`, that take
//! its place one at a time; an empty replacement leaves it out. Every line of a file is a line of `user.cu`.

mod common;
use axe_sim::{Arg, Device, Finding, Launch, Module, Options, SimError, Simulator};
use common::words;
use std::collections::BTreeMap;
use std::fmt::Write;

const KERNELS: &[(&str, &str)] = &[
    ("bulk", include_str!("data/planted/bulk.ptx")),
    ("cluster", include_str!("data/planted/cluster.ptx")),
    ("copies", include_str!("data/planted/copies.ptx")),
    ("histogram", include_str!("data/planted/histogram.ptx")),
    ("local", include_str!("data/planted/local.ptx")),
    ("lock", include_str!("data/planted/lock.ptx")),
    ("messages", include_str!("data/planted/messages.ptx")),
    ("named", include_str!("data/planted/named.ptx")),
    ("neighbour", include_str!("data/planted/neighbour.ptx")),
    ("reduce", include_str!("data/planted/reduce.ptx")),
    ("roles", include_str!("data/planted/roles.ptx")),
    ("store", include_str!("data/planted/store.ptx")),
    ("warps", include_str!("data/planted/warps.ptx")),
    ("wgmma", include_str!("data/planted/wgmma.ptx")),
];

/// Registers that every kernel has: %r0 thread, %r1 CTA, %r3 number of the thread, %r4 four times %r0, %p0 thread 0;
/// %d0 input, %d1 output, %d3 and %d4 the thread's words of them, %d5 64 zeroed words.
const PRELUDE: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n.file 1 \"user.cu\"
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z)
{
.reg .pred %p<16>; .reg .b32 %r<64>; .reg .b64 %d<16>; .reg .f32 %f<8>;
ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; ld.param.u64 %d5, [z];
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
shl.b32 %r4, %r0, 2; setp.eq.u32 %p0, %r0, 0; setp.ne.u32 %p15, %r0, %r0;
";

/// The kernel's text, with the line `planted.0` (from 1) replaced.
fn text(source: &str, planted: Option<(usize, &str)>) -> String {
    let mut out = PRELUDE.to_string();
    for (at, line) in (1..).zip(source.lines()) {
        let line = match planted {
            Some((here, fault)) if here == at => fault,
            _ => line,
        };
        writeln!(out, ".loc 1 {at} 1\n{line}").unwrap();
    }
    out + "ret;\n}\n"
}

/// The faults of a kernel: class, line and what takes its place.
fn faults(source: &str) -> Vec<(&str, usize, &str)> {
    let mut all = Vec::new();
    let mut last = 0;
    for (at, line) in (1..).zip(source.lines()) {
        match line.strip_prefix("//~ ") {
            Some(fault) => {
                let (class, text) = fault.split_once(':').unwrap();
                all.push((class, last, text.trim()));
            }
            None => last = at,
        }
    }
    all
}

/// Runs a kernel whose first line names CTAs, CTAs of a cluster, and threads of a CTA.
fn run(source: &str, ptx: &str, seed: u64) -> Vec<Finding> {
    let launch = source.lines().next().unwrap();
    let mut sizes = launch.split(' ').skip(2).map(|n| n.parse::<u32>().unwrap());
    let mut size = || sizes.next().unwrap();
    let (grid, cluster, block) = (size(), size(), size());
    let module = Module::parse(ptx).unwrap();
    let mut device = Device::new();
    let x = device.alloc("x", 16384).unwrap();
    let data: Vec<u32> = (0..4096).map(|i| i * 7 % 1000).collect();
    device.copy_in(x, &words(&data)).unwrap();
    let y = device.alloc("y", 16384).unwrap();
    let z = device.alloc("z", 256).unwrap();
    device.copy_in(z, &[0; 256]).unwrap();
    let launch = Launch {
        cluster: [cluster, 1, 1],
        ..Launch::new("k", grid, block, [x, y, z].map(Arg::Ptr).into())
    };
    let options = Options {
        seed,
        threads: 1,
        max_warp_instructions: 300_000,
        ..Options::default()
    };
    match Simulator::new(options).run(&mut device, &module, &launch) {
        Ok(report) => report.findings,
        Err(SimError::Fault(fault, mut earlier)) => {
            earlier.push(*fault);
            earlier
        }
        Err(other) => panic!("{other}"),
    }
}

fn names_the_line(finding: &Finding) -> bool {
    let other = finding.other.as_ref().and_then(|o| o.user_line());
    let own = finding.place.user_line();
    [own, other]
        .into_iter()
        .flatten()
        .any(|l| l.starts_with("user.cu:"))
}

#[test]
fn kernels_without_a_fault_are_right() {
    for (name, source) in KERNELS {
        for seed in 0..4 {
            let found = run(source, &text(source, None), seed);
            assert!(found.is_empty(), "{name}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn planted_faults_are_found_with_the_users_line() {
    let mut classes: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut missed = Vec::new();
    for (name, source) in KERNELS {
        for (class, line, fault) in faults(source) {
            let ptx = text(source, Some((line, fault)));
            let found = (0..4).any(|seed| run(source, &ptx, seed).iter().any(names_the_line));
            let tally = classes.entry(class).or_default();
            tally[usize::from(!found)] += 1;
            if !found {
                missed.push(format!("{name}:{line} {class}: {fault}"));
            }
        }
    }
    let planted: usize = classes.values().flatten().sum();
    println!(
        "{planted} planted, {} missed; found and missed by class: {classes:?}",
        missed.len()
    );
    assert!(planted >= 150);
    assert!(missed.is_empty(), "missed:\n{}", missed.join("\n"));
}
