//! Bare kernels: arguments as text, Triton's folders, limits, livelocks, and what findings say.

mod common;
use axe_package::Tensor;
use axe_sim::bare::{Bare, BareError, Triton};
use axe_sim::{Finding, FindingKind as Kind, Module, Options, SimError, Simulator};
use std::time::{Duration, Instant};

const HEAD: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/// A kernel of a structure, a table of pointers, scalars of several widths, and an array in place.
const MIXED: &str = ".visible .entry mixed(.param .align 8 .b8 s[24], .param .u64 table, .param .u64 out, .param .f64 d, .param .u16 h, .param .s8 b)
{ .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %g<3>; .reg .b16 %h<3>;
mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4;
ld.param.u32 %r1, [s]; ld.param.f32 %f0, [s+4]; ld.param.u64 %d1, [s+8]; ld.param.u8 %r6, [s+16];
ld.param.u64 %d2, [table]; ld.global.u64 %d3, [%d2]; ld.global.u64 %d4, [%d2+8];
add.s64 %d1, %d1, %d0; add.s64 %d3, %d3, %d0; add.s64 %d4, %d4, %d0;
ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d3]; ld.global.f32 %f3, [%d4];
cvt.rn.f32.u32 %f4, %r1; fma.rn.f32 %f1, %f1, %f0, %f4; add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3;
ld.param.f64 %g0, [d]; cvt.rn.f32.f64 %f5, %g0; add.f32 %f1, %f1, %f5;
ld.param.u16 %h0, [h]; cvt.u32.u16 %r3, %h0; cvt.rn.f32.u32 %f6, %r3; add.f32 %f1, %f1, %f6;
ld.param.s8 %r4, [b]; cvt.rn.f32.s32 %f7, %r4; add.f32 %f1, %f1, %f7;
cvt.rn.f32.u32 %f8, %r6; add.f32 %f1, %f1, %f8;
ld.param.u64 %d5, [out]; add.s64 %d5, %d5, %d0; st.global.f32 [%d5], %f1; ret; }";

fn mixed() -> Bare {
    let mut bare = Bare::new(&format!("{HEAD}{MIXED}"), [1; 3], [8, 1, 1]).unwrap();
    bare.array("x", "f32[8]:arange".parse().unwrap());
    bare.arg("s", "{i32:3, f32:2, &x, u8:4}".parse().unwrap());
    bare.arg("table", "&{x, y+4}".parse().unwrap());
    bare.array("y", "f32[9]:10".parse().unwrap());
    // The result replaces x.
    bare.arg("out", "&x".parse().unwrap());
    bare.arg("d", "0.5".parse().unwrap());
    bare.arg("h", "100".parse().unwrap());
    bare.arg("b", "-1".parse().unwrap());
    bare
}

#[test]
fn arguments_of_every_kind() {
    let run = mixed().run(&Simulator::default()).unwrap();
    assert!(run.report.findings.is_empty(), "{}", run.report.findings[0]);
    let got: Vec<f64> = run.arrays["x"].iter_f64().collect();
    let want = |x: f64| 2.0 * x + 3.0 + x + 10.0 + 0.5 + 100.0 - 1.0 + 4.0;
    assert_eq!(got, (0..8).map(|i| want(f64::from(i))).collect::<Vec<_>>());
    assert_eq!(run.arrays["y"].iter_f64().sum::<f64>(), 90.0);
}

/// `__constant__ float coef[4]; __device__ int start;` and a kernel that uses both.
const VARIABLES: &str = ".const .align 4 .b8 _ZN2ns4coefE[16]; .global .align 4 .u32 start;
.visible .entry k(.param .u64 y) { .reg .b64 %d<5>; .reg .b32 %r<5>; .reg .f32 %f<4>;
ld.param.u64 %d0, [y]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1;
mov.u64 %d2, _ZN2ns4coefE; add.s64 %d2, %d2, %d1; ld.const.f32 %f0, [%d2]; ld.global.u32 %r1, [start];
cvt.rn.f32.u32 %f1, %r1; add.f32 %f0, %f0, %f1; st.global.f32 [%d0], %f0; ret; }";

#[test]
fn variables_of_the_module_get_values() {
    let run = |variables: &[(&str, &str)]| {
        let mut bare = Bare::new(&format!("{HEAD}{VARIABLES}"), [1; 3], [4, 1, 1]).unwrap();
        bare.arg("y", "f32[4]".parse().unwrap());
        for (name, value) in variables {
            bare.variable(name, value.parse().unwrap());
        }
        bare.run(&Simulator::default())
    };
    let run_both = run(&[("ns::coef", "f32[4]:arange"), ("start", "40")]).unwrap();
    let got: Vec<f64> = run_both.arrays["y"].iter_f64().collect();
    assert_eq!(got, [40.0, 41.0, 42.0, 43.0]);
    let error = |name, value| run(&[(name, value)]).unwrap_err().to_string();
    assert!(error("none", "1").contains("there are: ns::coef, start"));
    assert!(error("ns::coef", "f32[5]:ones").contains("20 bytes, the variable has 16"));
}

#[test]
fn arguments_that_do_not_fit_say_why() {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 x, .param .f32 by) {{ ret; }} .visible .entry other() {{ ret; }}"
    );
    let error = |kernel: Option<&str>, args: &[&str]| -> String {
        let module = Module::parse(&text).unwrap();
        let run = Bare::of(module, kernel, [1; 3], Some([32, 1, 1])).and_then(|mut bare| {
            for arg in args {
                bare.arg("a", arg.parse().unwrap());
            }
            bare.run(&Simulator::default()).map(drop)
        });
        run.unwrap_err().to_string()
    };
    assert!(error(None, &[]).contains("several kernels fit; name one: k, other"));
    assert!(error(Some("z"), &[]).contains("no kernel `z`; there are: k, other"));
    assert!(error(Some("k"), &["1"]).contains("takes 2 arguments, got 1: x .u64, by .f32"));
    let wrong = error(Some("k"), &["f32[4]", "f64:1"]);
    assert!(
        wrong.contains("it has 8 bytes, parameter `by` .f32 has 4"),
        "{wrong}"
    );
    assert!(error(Some("k"), &["&q", "1"]).contains("no array `q`"));
    let module = Module::parse(&text).unwrap();
    let error = Bare::of(module, Some("k"), [1; 3], None).unwrap_err();
    assert!(error.to_string().contains(".reqntid"), "{error}");
}

#[test]
fn a_tensor_map_of_an_array() {
    let text = format!("{HEAD}.visible .entry k(.param .align 64 .b8 m[128], .param .u64 out)
{{ .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, bar; mov.u32 %r2, s; mov.u32 %r3, 4; mov.u32 %r4, 8;
@!%p0 mbarrier.init.shared.b64 [%r1], 1; fence.proxy.async; bar.sync 0; @%p0 bra wait;
mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128; mov.b64 %d0, m;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d0, {{%r4, %r3}}], [%r1];
wait: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra wait;
shl.b32 %r5, %r0, 2; add.u32 %r5, %r5, %r2; ld.shared.u32 %r6, [%r5]; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r0, 4; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r6; ret; }}");
    let mut bare = Bare::new(&text, [1; 3], [32, 1, 1]).unwrap();
    bare.array("x", "u32[16,16]:arange".parse().unwrap());
    bare.arg("m", "map:x:4,8".parse().unwrap());
    bare.arg("out", "u32[4,8]".parse().unwrap());
    for seed in 0..4 {
        let options = Options {
            seed,
            ..Options::default()
        };
        let run = bare.run(&Simulator::new(options)).unwrap();
        assert!(run.report.findings.is_empty(), "{}", run.report.findings[0]);
        let got: Vec<f64> = run.arrays["out"].iter_f64().collect();
        let want = (4..8).flat_map(|row| (8..16).map(move |column| f64::from(16 * row + column)));
        assert_eq!(got, want.collect::<Vec<_>>());
    }
}

#[test]
fn a_folder_of_tritons_cache() {
    let folder = std::env::temp_dir().join(format!("axe-sim-triton-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("{HEAD}.extern .shared .align 16 .b8 global_smem[];
.visible .entry add_one(.param .u64 .ptr .global .align 1 x, .param .u64 scratch, .param .u64 profile) .reqntid 64
{{ .reg .b64 %d<4>; .reg .b32 %r<9>; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, global_smem; add.u32 %r1, %r1, %r2;
ld.param.u64 %d0, [x]; mul.wide.u32 %d1, %r0, 4; add.s64 %d0, %d0, %d1; ld.global.u32 %r3, [%d0]; st.shared.u32 [%r1], %r3;
ld.shared.u32 %r4, [%r1]; add.u32 %r4, %r4, 1; st.global.u32 [%d0], %r4; ret; }}");
    std::fs::write(folder.join("add_one.ptx"), &text).unwrap();
    let json = r#"{"name": "add_one", "num_warps": 2, "num_ctas": 1, "shared": 256, "global_scratch_size": 0, "target": {"arch": 90}}"#;
    std::fs::write(folder.join("add_one.json"), json).unwrap();
    let (ptx, meta) = Triton::open(&folder, None).unwrap();
    let module = Module::parse(&std::fs::read_to_string(ptx).unwrap()).unwrap();
    let mut bare = meta.kernel(module, [1; 3]).unwrap();
    bare.arg("x", "i32[64]:arange".parse().unwrap());
    meta.scratch(&mut bare);
    let run = bare.run(&Simulator::default()).unwrap();
    assert!(run.report.findings.is_empty());
    let sum = |t: &Tensor| t.iter_f64().sum::<f64>();
    assert_eq!(sum(&run.arrays["x"]), f64::from(64 * 63 / 2 + 64));
    assert!(matches!(
        Triton::open(&folder, Some("none")),
        Err(BareError::Kernel(_))
    ));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What ends a kernel of one pointer to 256 zeros.
fn ended(body: &str, grid: u32, threads: u32, options: Options) -> Finding {
    let text = format!("{HEAD}.visible .entry k(.param .u64 p) {{ .reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<3>; .shared .align 8 .b64 bar;
ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
{body}
ret; }}");
    let mut bare = Bare::new(&text, [grid, 1, 1], [threads, 1, 1]).unwrap();
    bare.arg("flags", "u32[64]:zeros".parse().unwrap());
    match bare.run(&Simulator::new(options)) {
        Err(BareError::Sim(SimError::Fault(fault, _))) => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn polling_for_what_nobody_stores_is_a_livelock() {
    let poll = "l: ld.acquire.gpu.global.u32 %r1, [%d0+12]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l;";
    for (seed, grid) in [(0, 1), (1, 1), (0, 3)] {
        let options = Options {
            seed,
            threads: 1,
            ..Options::default()
        };
        let fault = ended(poll, grid, 64, options);
        assert_eq!(fault.kind, Kind::Livelock, "{fault}");
        assert!(
            fault
                .message
                .contains("last polled `flags` + 12, which holds 0x0"),
            "{fault}"
        );
    }
}

#[test]
fn a_deadlock_names_parked_lanes() {
    let body = "@%p0 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; @!%p0 bra meet;
w: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra w;
meet: add.u32 %r1, %r0, 1; bar.sync 0;";
    let fault = ended(body, 1, 32, Options::default());
    assert_eq!(fault.kind, Kind::Deadlock, "{fault}");
    let text = fault.to_string();
    assert!(
        text.contains("lanes 0x00000001") && text.contains("the mbarrier `bar` + 0"),
        "{text}"
    );
    assert!(
        text.contains("lanes 0xfffffffe") && text.contains("waits there for the other lanes"),
        "{text}"
    );
}

#[test]
fn time_ends_a_run() {
    let options = Options {
        deadline: Some(Instant::now() + Duration::from_millis(50)),
        ..Options::default()
    };
    let fault = ended("l: add.u32 %r1, %r1, 1; bra l;", 1, 32, options);
    assert_eq!(fault.kind, Kind::Limit);
    assert!(fault.message.contains("time limit"), "{fault}");
}

#[test]
fn findings_name_both_lines_and_where_they_are_inlined() {
    let text = format!(
        "{HEAD}.file 1 \"user.cu\"\n.file 2 \"lib.h\"
.visible .entry _Z6kernelPi(.param .u64 p)
{{ .reg .b32 %r<9>; .shared .align 4 .b8 box[256];
.loc 1 10 3
mov.u32 %r0, %tid.x; mov.u32 %r1, box;
.loc 2 5 9, function_name $name, inlined_at 1 10 3
st.shared.u32 [%r1+8], %r0;
.loc 1 12 7
ld.shared.u32 %r2, [%r1+8];
ret; }}
.section .debug_str
{{
$name:
.b8 95, 90, 53, 115, 116, 111, 114, 101, 105, 0
}}"
    );
    let mut bare = Bare::new(&text, [1; 3], [64, 1, 1]).unwrap();
    bare.arg("p", "u32[1]".parse().unwrap());
    let run = bare.run(&Simulator::default()).unwrap();
    let all = &run.report.findings;
    // One for the two stores, one for store and load: not one for each pair of threads.
    assert_eq!(all.len(), 2, "{all:#?}");
    let race = all
        .iter()
        .find(|f| f.place.instruction.starts_with("ld"))
        .unwrap();
    assert_eq!(race.place.user_line(), Some("user.cu:12:7"));
    let other = race.other.as_ref().unwrap();
    assert_eq!(other.source.as_deref(), Some("lib.h:5:9"));
    assert_eq!(other.user_line(), Some("user.cu:10:3 (of store)"));
    assert!(
        race.message.contains("`box` + 8 in shared memory"),
        "{race}"
    );
    let text = race.to_string();
    assert!(
        text.contains("in kernel (user.cu:12:7)") && text.contains("bar.sync"),
        "{text}"
    );
    assert!(race.count > 1);
}
