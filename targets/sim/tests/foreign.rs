//! What kernels of other compilers do and ours do not: each reproduction of a report from outside.

mod common;
use axe_sim::{FindingKind as Kind, Launch, Options, Severity};
use common::{Given, clean, findings, kinds, launch, to_floats, to_words, words};

/// A file of `tests/data/foreign`.
macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("data/foreign/", $name, ".ptx"))
    };
}

#[test]
fn wgmma_of_three_warps_does_not_hide_the_copy_that_the_fourth_waits_for() {
    let ones = vec![0x3c00_3c00; 1024];
    let out = clean(ptx!("deadlock"), &Launch::new("k", 1, 128, vec![]), || {
        vec![Given::In(words(&ones)), Given::Out(2048)]
    });
    assert_eq!(to_floats(&out[1]), [16.0; 512]);
}

#[test]
fn lanes_that_branch_to_the_exit_do_not_wait_for_those_at_a_barrier() {
    let out = clean(ptx!("early_bra"), &Launch::new("k", 1, 64, vec![]), || {
        vec![Given::In(words(&[99; 64]))]
    });
    let want: Vec<u32> = (0..64).map(|i| if i < 40 { i } else { 99 }).collect();
    assert_eq!(to_words(&out[0]), want);
}

#[test]
fn a_spin_lock_among_the_lanes_of_a_warp_progresses() {
    for warps in [1, 3] {
        let text = ptx!("spin");
        let out = clean(text, &Launch::new("k", 1, 32 * warps, vec![]), || {
            vec![Given::In(words(&[0; 128]))]
        });
        // The lock is free again, and every thread has counted. The address of a thread is never used.
        assert_eq!(to_words(&out[0])[..2], [0, 32 * warps]);
    }
}

#[test]
fn threads_that_write_the_same_value_are_a_note() {
    let start = Launch::new("k", 1, 64, vec![]);
    let text = ptx!("samevalue");
    let out = clean(text, &start, || vec![Given::Out(256)]);
    assert_eq!(to_words(&out[0]), [7; 64]);
    let run = launch(
        text,
        Options::default(),
        start.clone(),
        vec![Given::Out(256)],
    )
    .unwrap();
    assert_eq!(run.report.notes.len(), 1, "{:?}", run.report.notes);
    assert_eq!(run.report.notes[0].severity, Severity::Note);
    assert!(run.report.notes[0].count >= 32);
    let other = text.replace("mov.u32 r0,7;", "mov.u32 r0,%tid.x;");
    let all = findings(&other, &start, vec![Given::Out(256)], 0);
    assert!(kinds(&all).contains(&Kind::Race), "{all:?}");
}

#[test]
fn stores_without_a_fence_are_seen_out_of_order_in_some_schedule() {
    let results = |text: &str| -> Vec<u32> {
        let run = |seed| {
            let options = Options {
                seed,
                threads: 1,
                ..Options::default()
            };
            let zero = || Given::In(words(&[0]));
            let start = Launch::new("k", 2, 1, vec![]);
            let run = launch(text, options, start, vec![zero(), zero(), zero()]).unwrap();
            assert!(run.report.findings.is_empty(), "{:?}", run.report.findings);
            to_words(&run.buffers[2])[0]
        };
        (0..16).map(run).collect()
    };
    let text = ptx!("fence");
    let all = results(text);
    assert_eq!(all[0], 42);
    assert!(
        all.contains(&0) && all.iter().all(|v| [0, 42].contains(v)),
        "{all:?}"
    );
    let fenced = text.replace("[d1],42;", "[d1],42; fence.acq_rel.gpu;");
    assert_eq!(results(&fenced), [42; 16]);
}

/// The reproduction with the fence that it lacks.
fn fenced_wgmma() -> String {
    let text = ptx!("wfence");
    let mended = text.replace(
        " wgmma.mma_async",
        " wgmma.fence.sync.aligned; wgmma.mma_async",
    );
    assert_ne!(text, mended);
    mended
}

#[test]
fn accumulators_that_are_zeroed_need_a_fence() {
    let start = Launch::new("k", 1, 128, vec![]);
    let all = findings(ptx!("wfence"), &start, vec![Given::Out(2048)], 0);
    assert_eq!(kinds(&all), [Kind::WgmmaRegisters], "{all:?}");
    let out = clean(&fenced_wgmma(), &start, || vec![Given::Out(2048)]);
    assert_eq!(to_floats(&out[0]), [16.0; 512]);
    let no_accumulator = fenced_wgmma().replace("d3, d3, 1, 1", "d3, d3, 0, 1");
    let unfenced = no_accumulator.replace("wgmma.fence.sync.aligned;", "");
    let unwritten = unfenced.replace("mov.f32 f", "// mov.f32 f");
    let all = findings(&unwritten, &start, vec![Given::Out(2048)], 0);
    assert_eq!(kinds(&all), [Kind::WgmmaRegisters], "{all:?}");
}

#[test]
fn the_warps_of_a_warpgroup_need_a_barrier_before_wgmma_reads_what_they_wrote() {
    let start = Launch::new("k", 1, 128, vec![]);
    let text = fenced_wgmma().replace("bar.sync 0;", "bar.warp.sync -1;");
    let all = findings(&text, &start, vec![Given::Out(2048)], 0);
    assert_eq!(kinds(&all), [Kind::Race], "{all:?}");
    // A warp's own rows of A need none: here B is written before a barrier, then A, warp by warp.
    let a = "bar.sync 0; add.u32 r3,r3,2048; st.shared.v4.u32 [r3],{r6,r6,r6,r6}; fence.proxy.async.shared::cta;";
    let own = fenced_wgmma()
        .replace("bar.sync 0;", a)
        .replace("d3, d3, 1", "d6, d3, 1")
        .replace("wgmma.mma_async", "add.s64 d6,d3,128; wgmma.mma_async");
    // Rows of A in units of 16 bytes: 8 rows of 16 bytes, 512 bytes a warp, both halves of K.
    let own = own.replace("0x0000000800400000", "0x0000001000080000");
    let out = clean(&own, &start, || vec![Given::Out(2048)]);
    assert_eq!(to_floats(&out[0]), [16.0; 512]);
}

fn small(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64
.func (.param .b32 r) sum(.param .b64 p) {{ .reg .b32 a, b; .reg .b64 q;
ld.param.b64 q, [p]; ld.b32 a, [q]; ld.b32 b, [q+4]; add.u32 a, a, b; st.param.b32 [r], a; ret; }}
.visible .entry k(.param .u64 O)
{{
.reg .pred p; .reg .b32 r<8>; .reg .b64 d<8>; .shared .align 16 .b8 a[64]; .shared .align 16 .b8 b[64]; .local .align 8 .b8 l[32];
mov.u32 r0, %tid.x; shl.b32 r1, r0, 2; mov.u32 r2, a; add.u32 r2, r2, r1; mov.u32 r3, b; add.u32 r3, r3, r1; mov.u64 d0, l;
{body}
ret;
}}"
    )
}

fn small_findings(body: &str) -> Vec<axe_sim::Finding> {
    findings(
        &small(body),
        &Launch::new("k", 1, 16, vec![]),
        vec![Given::Out(64)],
        0,
    )
}

#[test]
fn the_end_of_a_shared_array_is_not_the_start_of_the_next() {
    let all = small_findings("st.shared.u32 [r2+4], r0; st.shared.u32 [r3], r0;");
    assert_eq!(kinds(&all), [Kind::OutOfBounds], "{all:?}");
    assert!(
        all[0]
            .message
            .contains("byte 64 of shared variable `a`, which has 64"),
        "{}",
        all[0]
    );
    assert!(small_findings("st.shared.u32 [r2], r0; st.shared.u32 [r3], r0;").is_empty());
}

#[test]
fn the_end_of_a_vector_that_nothing_reads_is_not_loaded() {
    let found = |read: &str| {
        let body = format!(
            "ld.param.u64 d1, [O]; st.global.u32 [d1], r0; st.global.u32 [d1+4], r0; st.global.u32 [d1+8], r0;
ld.global.v4.u32 {{r4, r5, r6, r7}}, [d1]; add.u32 r4, r4, r5; add.u32 r4, r4, {read}; st.global.u32 [d1], r4;"
        );
        let launch = Launch::new("k", 1, 1, vec![]);
        kinds(&findings(&small(&body), &launch, vec![Given::Out(12)], 0))
    };
    assert_eq!(found("r6"), []);
    assert_eq!(found("r7"), [Kind::OutOfBounds]);
}

#[test]
fn local_arrays_have_bounds_and_unwritten_bytes() {
    let all = small_findings("st.local.u32 [d0+32], r0;");
    assert_eq!(kinds(&all), [Kind::OutOfBounds], "{all:?}");
    assert!(all[0].message.contains("local variable `l`"), "{}", all[0]);
    let all = small_findings("st.local.u32 [d0+4], r0; ld.local.u32 r4, [d0];");
    assert_eq!(kinds(&all), [Kind::Unwritten], "{all:?}");
    let call = "cvta.local.u64 d1, d0; st.local.u32 [d0], 1; SECOND
{ .param .b64 x; .param .b32 y; st.param.b64 [x], d1; call (y), sum, (x); ld.param.b32 r4, [y]; }";
    assert!(small_findings(&call.replace("SECOND", "st.local.u32 [d0+4], 2;")).is_empty());
    let all = small_findings(&call.replace("SECOND", ""));
    assert_eq!(kinds(&all), [Kind::Unwritten], "{all:?}");
    assert_eq!(all[0].place.function, "sum");
}

#[test]
fn a_reduction_in_a_warp_without_its_barrier_differs_between_schedules() {
    // Halves of a sum through volatile memory, as code for GPUs before Volta has it.
    let step = |n: u32| {
        format!(
            "setp.lt.u32 p, r0, {n}; @p ld.volatile.shared.u32 r4, [r2+{}]; @p ld.volatile.shared.u32 r5, [r2]; @p add.u32 r5, r5, r4; SYNC @p st.volatile.shared.u32 [r2], r5; SYNC",
            4 * n
        )
    };
    let steps: String = [8, 4, 2, 1].map(step).concat();
    let body = format!(
        "st.volatile.shared.u32 [r2], r0; SYNC {steps} ld.volatile.shared.u32 r6, [a]; ld.param.u64 d2, [O]; cvt.u64.u32 d3, r1; add.s64 d2, d2, d3; st.global.u32 [d2], r6;"
    );
    let results = |sync: &str| -> Vec<u32> {
        let run = |seed| {
            let options = Options {
                seed,
                ..Options::default()
            };
            let text = small(&body.replace("SYNC", sync));
            let run = launch(
                &text,
                options,
                Launch::new("k", 1, 16, vec![]),
                vec![Given::Out(64)],
            )
            .unwrap();
            to_words(&run.buffers[0])[15]
        };
        (0..32).map(run).collect()
    };
    assert_eq!(results("bar.warp.sync 0xffff;"), [120; 32]);
    let all = results("");
    assert_eq!(all[0], 120);
    assert!(all.iter().any(|&v| v != 120), "{all:?}");
}

/// `printf`, `assert` and the barrier of a cooperative grid, in the form that nvcc gives them.
#[test]
fn what_the_cuda_runtime_provides() {
    let text = ptx!("sys");
    let one = Options {
        threads: 1,
        ..Options::default()
    };
    let x = || {
        Given::In(
            [1.5f32, -2.0, 0.25]
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect(),
        )
    };
    let given = vec![x(), Given::Value(axe_sim::Arg::U32(3))];
    let run = launch(
        text,
        one.clone(),
        Launch::new("hello", 1, 32, vec![]),
        given,
    )
    .unwrap();
    let lines = "x[0] = 1.500 fine\nx[1] = -2.000 negative\nx[2] = 0.250 fine\n";
    assert_eq!(run.report.output, lines);

    let right: Vec<u32> = (0..32).collect();
    let start = Launch::new("checked", 1, 32, vec![]);
    clean(text, &start, || vec![Given::In(words(&right))]);
    let mut wrong = right.clone();
    wrong[5] = 0;
    let all = findings(text, &start, vec![Given::In(words(&wrong))], 0);
    assert_eq!(kinds(&all), [Kind::Trap]);
    assert!(
        all[0]
            .message
            .contains("assertion `x[threadIdx.x] == int(threadIdx.x)` failed"),
        "{}",
        all[0]
    );
    assert_eq!(all[0].place.thread, 5);
    assert!(
        all[0]
            .place
            .user_line()
            .is_some_and(|l| l.contains("sys.cu:5")),
        "{:?}",
        all[0].place
    );

    let start = Launch::new("grid_sum", 6, 64, vec![]);
    let out = clean(text, &start, || {
        vec![Given::Out(6 * 64 * 4), Given::Out(6 * 64 * 4)]
    });
    let sum = (0..6 * 64).step_by(7).sum::<u32>();
    assert_eq!(to_words(&out[1]), vec![sum; 6 * 64]);
}

/// CUB's sums of half a warp: lanes of both halves may be apart from the rest of theirs.
#[test]
fn groups_that_are_in_pieces_reduce_on_their_own() {
    for op in [
        "redux.sync.add.u32 r4, r0, r5;",
        "vote.sync.ballot.b32 r4, p, r5; popc.b32 r4, r4; mul.lo.u32 r4, r4, r6;",
        "shfl.sync.bfly.b32 r4, r0, 8, 0x101f, r5; add.u32 r4, r4, r0; shfl.sync.bfly.b32 r7, r4, 4, 0x101f, r5; add.u32 r4, r4, r7; mul.lo.u32 r4, r4, r6;",
    ] {
        // Lanes 4 to 19 take the other way round.
        let body = format!(
            "and.b32 r5, r0, 16; shl.b32 r5, 0xffff, r5; mov.u32 r6, 1; setp.lt.u32 p, r0, 4; @p bra here; setp.gt.u32 p, r0, 19; @p bra here; mov.u32 r7, 2; bra here;
here: setp.ne.u32 p, r0, 3; {op} ld.param.u64 d1, [O]; cvt.u64.u32 d2, r1; add.s64 d1, d1, d2; st.global.u32 [d1], r4;"
        );
        let launch = Launch::new("k", 1, 32, vec![]);
        for seed in 0..16 {
            let all = findings(&small(&body), &launch, vec![Given::Out(128)], seed);
            assert!(all.is_empty(), "{op} seed {seed}: {}", all[0]);
        }
        let out = clean(&small(&body), &launch, || vec![Given::Out(128)]);
        let words = to_words(&out[0]);
        assert!(words[..16].iter().any(|&w| w != words[16]), "{op}");
    }
}
