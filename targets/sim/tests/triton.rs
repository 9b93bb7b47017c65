//! What Triton 3.9 makes of its kernels, cut down to the lines that were taken for faults.

mod common;

use axe_sim::{FindingKind, Launch, Options};
use common::{Given, clean, findings, kinds, launch, to_words};

fn kernel(target: &str, registers: &str, body: &str) -> String {
    format!(
        ".version 8.6\n.target {target}\n.address_size 64
.visible .entry k(.param .u64 out) {{ .reg .b32 %r<20>; .reg .b64 %d<9>; .reg .pred %p<9>; {registers} .shared .align 128 .b8 s[1024];
mov.u32 %r0, %tid.x; mov.u32 %r1, s; ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;
{body}
ret; }}"
    )
}

/// A tile with fewer rows than lanes is in several of them, which all store it.
#[test]
fn rows_of_stmatrix_that_several_lanes_store_are_a_note() {
    let store = "and.b32 %r2, %r0, 3; shl.b32 %r3, %r2, 4; add.u32 %r3, %r1, %r3;
and.b32 %r4, %r0, 12; VALUE stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r4};
bar.sync 0; and.b32 %r5, %r0, 15; shl.b32 %r5, %r5, 2; add.u32 %r5, %r1, %r5; ld.shared.u32 %r6, [%r5]; st.global.u32 [%d1], %r6;";
    let start = Launch::new("k", 1, 64, vec![]);
    let text = |value: &str| kernel("sm_90a", "", &store.replace("VALUE", value));
    // Lanes 0 to 15 hold rows 0 to 3, lanes 16 to 31 the same again.
    let same = text("and.b32 %r4, %r0, 15;");
    let out = clean(&same, &start, || vec![Given::Out(256)]);
    let want: Vec<u32> = (0..64).map(|i| i % 16).collect();
    assert_eq!(to_words(&out[0]), want);
    let run = launch(
        &same,
        Options::default(),
        start.clone(),
        vec![Given::Out(256)],
    )
    .unwrap();
    assert!(!run.report.notes.is_empty());
    for wrong in ["mov.u32 %r4, %r0;", "shr.u32 %r4, %r0, 5;"] {
        let all = findings(&text(wrong), &start, vec![Given::Out(256)], 0);
        assert_eq!(kinds(&all), [FindingKind::Race], "{wrong}: {all:?}");
    }
}

/// One warp makes a map; a predicate keeps the others out.
#[test]
fn a_copy_of_a_tensor_map_that_no_lane_makes_touches_nothing() {
    let body = "setp.lt.u32 %p1, %r0, 32; cvt.u64.u32 %d2, %r1; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2;
@%p1 st.shared.u32 [%r2], %r0; bar.warp.sync -1;
@%p1 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d0], [%d2], 128;";
    let text = kernel("sm_90a", "", body);
    let start = Launch::new("k", 1, 128, vec![]);
    let out = clean(&text, &start, || vec![Given::Out(128)]);
    assert_eq!(to_words(&out[0]), (0..32).collect::<Vec<_>>());
}

/// LLVM takes an accumulator of halves apart before the wait; the assembler waits for the value.
#[test]
fn an_accumulator_may_be_taken_apart_before_its_wait() {
    let body = |early: &str, late: &str| {
        let body = format!(
            "shl.b32 %r2, %r0, 3; add.u32 %r2, %r1, %r2; mov.u32 %r3, 0x3c003c00; st.shared.v2.u32 [%r2], {{%r3, %r3}};
fence.proxy.async.shared::cta; bar.sync 0; shr.u32 %r4, %r1, 4; cvt.u64.u32 %d2, %r4; or.b64 %d2, %d2, 0x0000000100080000;
mov.u32 %r5, 0; mov.u32 %r6, 0; wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {{%r5, %r6}}, %d2, %d2, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;
{early} wgmma.wait_group.sync.aligned 0; {late} mov.b32 %r7, {{%h0, %h1}}; st.global.u32 [%d1], %r7;"
        );
        kernel("sm_90a", ".reg .b16 %h<4>;", &body)
    };
    let apart = "mov.b32 {%h0, %h1}, %r5;";
    let start = Launch::new("k", 1, 128, vec![]);
    let longer = body(
        &format!("{apart} cvt.u32.u16 %r8, %h1;"),
        "cvt.u16.u32 %h1, %r8;",
    );
    for text in [body(apart, ""), body("", apart), longer] {
        // 16 products of ones.
        let out = clean(&text, &start, || vec![Given::Out(512)]);
        assert_eq!(to_words(&out[0]), [0x4c00_4c00; 128]);
    }
    let used = body(&format!("{apart} add.f16 %h0, %h0, %h1;"), "");
    let all = findings(&used, &start, vec![Given::Out(512)], 0);
    assert_eq!(kinds(&all), [FindingKind::WgmmaRegisters], "{all:?}");
}
