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

/// A copy by TMA with a map that one thread makes; `ACQUIRE` stands where it is acquired.
const MAP: &str = "setp.eq.u32 %p1, %r0, 0; cvt.u64.u32 %d2, %r1; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2; st.shared.u32 [%r2], 0; bar.warp.sync -1;
@!%p1 bra made;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%d2], %d0; tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d2], 0;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d2], 0, 32; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d2], 0, 32;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d2], 0, 1; tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%d2], 2;
made: bar.warp.sync -1; add.s64 %d3, %d0, 128;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d3], [%d2], 128;
ACQUIRE
st.shared.u32 [%r2+512], %r0; fence.proxy.async.shared::cta; bar.warp.sync -1; add.u32 %r3, %r1, 512; mov.u32 %r4, 0;
@%p1 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%d3, {%r4}], [%r3]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";

#[test]
fn a_map_that_a_kernel_makes_is_acquired_before_its_use() {
    let text = |acquire: &str| kernel("sm_90a", "", &MAP.replace("ACQUIRE", acquire));
    let acquired = text("fence.proxy.tensormap::generic.acquire.gpu [%d3], 128;");
    let start = Launch::new("k", 1, 32, vec![]);
    let out = clean(&acquired, &start, || vec![Given::Out(256)]);
    assert_eq!(to_words(&out[0])[..32], (0..32).collect::<Vec<_>>());
    let all = findings(&text(""), &start, vec![Given::Out(256)], 0);
    assert_eq!(kinds(&all), [FindingKind::MissingProxyFence], "{all:?}");
}

/// One attempt may end before the phase does.
#[test]
fn a_wait_that_does_not_try_again_is_found() {
    let body = |again: &str| {
        let body = format!(
            "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 1; bar.sync 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra wait;
nanosleep.u32 20; nanosleep.u32 20; nanosleep.u32 20; add.u32 %r2, %r1, 64; @%p1 st.shared.u32 [%r2], 5; @%p1 mbarrier.arrive.shared.b64 %d2, [%r1];
wait: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0; {again} ld.shared.u32 %r3, [%r1+64]; st.global.u32 [%d1], %r3;"
        );
        kernel("sm_90a", "", &body)
    };
    let start = Launch::new("k", 1, 64, vec![]);
    let out = clean(&body("@!%p3 bra wait;"), &start, || vec![Given::Out(256)]);
    assert_eq!(to_words(&out[0]), [5; 64]);
    let found =
        (1..8).any(|seed| !findings(&body(""), &start, vec![Given::Out(256)], seed).is_empty());
    assert!(found);
}

/// A schedule may split a warp in front of the wait: all parts of it give up once.
#[test]
fn the_parts_of_a_split_warp_all_give_up() {
    let body = "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 1; bar.sync 0;
setp.eq.u32 %p2, %r0, 32; @%p2 st.shared.u32 [%r1+64], 5; @%p2 mbarrier.arrive.shared.b64 %d2, [%r1];
mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0; bar.warp.sync 0xffffffff;
ld.shared.u32 %r3, [%r1+64]; st.global.u32 [%d1], %r3;";
    let text = kernel("sm_90a", "", body);
    let start = Launch::new("k", 1, 64, vec![]);
    let found = |seed: &u64| !findings(&text, &start, vec![Given::Out(256)], *seed).is_empty();
    let every_second = |first: u64| (first..60).step_by(2).all(|seed| found(&seed));
    assert!(every_second(1) || every_second(2));
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
    let together = "mov.b32 %r8, {%h0, %h1};";
    let packed = body(&format!("{apart} {together}"), "mov.b32 {%h0, %h1}, %r8;");
    let longer = body(
        &format!("{apart} cvt.u32.u16 %r8, %h1;"),
        "cvt.u16.u32 %h1, %r8;",
    );
    for text in [body(apart, ""), body("", apart), longer, packed] {
        // 16 products of ones.
        let out = clean(&text, &start, || vec![Given::Out(512)]);
        assert_eq!(to_words(&out[0]), [0x4c00_4c00; 128]);
    }
    let used = body(&format!("{apart} add.f16 %h0, %h0, %h1;"), "");
    let all = findings(&used, &start, vec![Given::Out(512)], 0);
    assert_eq!(kinds(&all), [FindingKind::WgmmaRegisters], "{all:?}");
}
