//! What checks cost: loops over shared memory, and a GEMM that copies by `cp.async`, with checks off and on.
//! Times are the process's own (`/proc/self/stat`), so that others on the machine matter less. An argument
//! names the one run that is wanted.

use axe_sim::{Arg, Device, Launch, Module, Options, Simulator};
use std::error::Error;

/// Each thread of a CTA reads its neighbour's element and writes its own, between barriers.
const NEIGHBOURS: &str = ".version 8.0 .target sm_80 .address_size 64
.visible .entry neighbours(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<2>; .shared .align 16 .b8 s[1024];
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, 0; mov.u32 %r2, %tid.x;
  mov.u32 %r3, s; shl.b32 %r4, %r2, 2; add.u32 %r5, %r3, %r4; xor.b32 %r6, %r4, 68; add.u32 %r6, %r3, %r6;
loop: st.shared.u32 [%r5], %r2; bar.sync 0; ld.shared.u32 %r7, [%r6]; bar.sync 0; add.u32 %r2, %r2, %r7;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, %r0; @%p0 bra loop;
  mov.u32 %r5, %tid.x; mul.wide.u32 %d1, %r5, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; ret; }";

/// Each thread sums a row of a tile in shared memory again and again: loads and little else.
const ROWS: &str = ".version 8.0 .target sm_80 .address_size 64
.visible .entry rows(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .pred %p<2>; .shared .align 16 .b8 s[4096];
  ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, 0; mov.u32 %r2, %tid.x;
  mov.u32 %r3, s; shl.b32 %r4, %r2, 4; add.u32 %r5, %r3, %r4; st.shared.v4.u32 [%r5], {%r2, %r2, %r2, %r2}; bar.sync 0;
loop: shl.b32 %r6, %r1, 4; and.b32 %r6, %r6, 4080; add.u32 %r6, %r3, %r6;
  ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r5]; ld.shared.u32 %r12, [%r6];
  add.u32 %r2, %r2, %r8; add.u32 %r2, %r2, %r12;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, %r0; @%p0 bra loop;
  mov.u32 %r5, %tid.x; mul.wide.u32 %d1, %r5, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r2; ret; }";

const GEMM: &str = include_str!("../tests/differential/ptx/gemm.ptx");

/// Seconds of processor time of this process so far; 0 where the system does not say.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = after_name.split_whitespace().skip(11).take(2);
    // Linux counts in hundredths of a second.
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn run(
    device: &mut Device,
    module: &Module,
    launch: &Launch,
    checks: bool,
) -> Result<(f64, u64), Box<dyn Error>> {
    let options = Options {
        checks,
        threads: 1,
        ..Options::default()
    };
    let start = processor_time();
    let report = Simulator::new(options).run(device, module, launch)?;
    let seconds = processor_time() - start;
    if let Some(finding) = report.findings.first() {
        return Err(finding.to_string().into());
    }
    Ok((seconds, report.counters.thread_instructions()))
}

/// Runs a kernel several times with and without checks, in turns, and prints the best of each.
fn compare(
    name: &str,
    module: &Module,
    mut launch: impl FnMut(&mut Device) -> Result<Launch, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).is_some_and(|wanted| wanted != name) {
        return Ok(());
    }
    let mut best = [f64::MAX; 2];
    let mut instructions = 0;
    for turn in 0..6 {
        let mut device = Device::new();
        let launch = launch(&mut device)?;
        let (seconds, n) = run(&mut device, module, &launch, turn % 2 == 1)?;
        best[turn % 2] = best[turn % 2].min(seconds);
        instructions = n;
    }
    let millions = instructions as f64 / 1e6;
    let [off, on] = best;
    println!(
        "{name}: {millions:.1} M thread instructions, {off:.2} s without checks, {on:.2} s with, {:.1} times",
        on / off
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, ptx, turns) in [("neighbours", NEIGHBOURS, 20_000), ("rows", ROWS, 20_000)] {
        let module = Module::parse(ptx)?;
        compare(name, &module, |device| {
            let at = device.alloc("out", 1024)?;
            let args = vec![Arg::Ptr(at), Arg::U32(turns)];
            Ok(Launch::new(name, 1, 256, args))
        })?;
    }
    let (m, n, k) = (64u32, 256u32, 16_384u32);
    compare("gemm_cp_async", &Module::parse(GEMM)?, |device| {
        let mut args = Vec::new();
        for (name, elements) in [("a", m * k), ("b", k * n)] {
            let at = device.alloc(name, u64::from(elements) * 2)?;
            // Halves: 1.
            device.copy_in(at, &[0x00, 0x3c].repeat(elements as usize))?;
            args.push(Arg::Ptr(at));
        }
        args.push(Arg::Ptr(device.alloc("c", u64::from(m * n) * 4)?));
        args.extend([Arg::U32(n), Arg::U32(k)]);
        Ok(Launch::new("gemm_cp_async", n / 64, 128, args))
    })
}
