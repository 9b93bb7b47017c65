//! Times one CTA of a 128 x 256 x 64-tile GEMM with K = 512, and plain arithmetic, with checks on and off.

#[path = "../tests/common/gemm.rs"]
mod gemm;
use axe_sim::{Arg, Device, Launch, Module, Options, Simulator};
use gemm::{Problem, Shape};
use std::error::Error;
use std::time::Instant;

const LOOP: &str = ".version 8.0 .target sm_90a .address_size 64
.visible .entry spin(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .pred %p<2>;
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, 0; mov.u32 %r2, %tid.x; mov.f32 %f0, 0f3F800000;
loop: mad.lo.u32 %r2, %r2, 5, %r1; xor.b32 %r3, %r2, %r1; shl.b32 %r4, %r3, 3; add.u32 %r2, %r2, %r4;
  fma.rn.f32 %f0, %f0, %f0, %f0; mul.f32 %f0, %f0, 0f3F000000; add.u32 %r1, %r1, 1;
  setp.lt.u32 %p0, %r1, %r0; @%p0 bra loop;
  mov.u32 %r5, %tid.x; mul.wide.u32 %d1, %r5, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; ret; }";

/// The most memory that the process has held, in MB; `None` where the kernel does not say.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kb| kb / 1000)
}

/// Runs the GEMM and prints its time and the memory so far.
fn gemm_run(
    name: &str,
    problem: &Problem,
    checks: bool,
    threads: usize,
) -> Result<(), Box<dyn Error>> {
    let module = Module::parse(&gemm::ptx(problem.shape))?;
    let rows = problem.tiles[1] * problem.shape.rows();
    let columns = problem.tiles[0] * problem.shape.n;
    let mut device = Device::new();
    let (a, b) = (
        gemm::matrix(rows, problem.k),
        gemm::matrix(columns, problem.k),
    );
    let at_a = device.alloc("A", a.len() as u64)?;
    device.copy_in(at_a, &a)?;
    let at_b = device.alloc("B", b.len() as u64)?;
    device.copy_in(at_b, &b)?;
    let bytes = rows as usize * columns as usize * 4;
    let at_c = device.alloc("C", bytes as u64)?;
    let start = Instant::now();
    let options = Options {
        checks,
        threads,
        ..Options::default()
    };
    let launch = gemm::launch(problem, at_a, at_b, at_c);
    let report = Simulator::new(options).run(&mut device, &module, &launch)?;
    let elapsed = start.elapsed().as_secs_f64();
    let mut out = vec![0; bytes];
    device.copy_out(at_c, &mut out)?;
    let got: Vec<f32> = out
        .chunks_exact(4)
        .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect();
    let memory = peak_memory().map_or("unknown".into(), |mb| format!("{mb} MB"));
    println!(
        "{name}, checks {checks}, threads {threads}: {elapsed:.3} s, {} findings, right: {}, peak memory {memory}",
        report.findings.len(),
        got == gemm::expected(problem)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let shape = Shape {
        consumers: 2,
        n: 256,
        stages: 4,
    };
    let one = Problem {
        shape,
        tiles: [1, 1],
        k: 512,
    };
    for checks in [false, true] {
        gemm_run("gemm 128x256x64 K=512", &one, checks, 1)?;
    }
    // A CTA for every SM of an H200.
    let wave = Problem {
        shape,
        tiles: [12, 11],
        k: 128,
    };
    for checks in [false, true] {
        gemm_run("132 CTAs K=128", &wave, checks, 2)?;
    }
    let module = Module::parse(LOOP)?;
    for checks in [false, true] {
        let mut device = Device::new();
        let at = device.alloc("out", 4096)?;
        let launch = Launch::new("spin", 1, 256, vec![Arg::Ptr(at), Arg::U32(20_000)]);
        let start = Instant::now();
        let simulator = Simulator::new(Options {
            checks,
            threads: 1,
            ..Options::default()
        });
        let report = simulator.run(&mut device, &module, &launch)?;
        let n = report.counters.thread_instructions() as f64;
        println!(
            "loop, checks {checks}: {:.0} million thread instructions a second",
            n / start.elapsed().as_secs_f64() / 1e6
        );
    }
    Ok(())
}
