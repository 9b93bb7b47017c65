//! A Blackwell GEMM in PTX: TMA into a ring, `tcgen05.mma` into tensor memory, an epilogue of four
//! warps. Lines carry `// @tag`, so that tests can break one thing each.

use std::fmt::Write;

pub const N: u32 = 32;
pub const STAGES: u32 = 2;
const A_BYTES: u32 = 128 * 128;
const STAGE: u32 = A_BYTES + N * 128;

/// SWIZZLE_128B, K-major, 8-row groups of 1024 bytes (PTX ISA 9.7.16.4.1).
pub const DESCRIPTOR: u64 = 2 << 61 | 1 << 46 | 64 << 32 | 1 << 16;

pub fn shared_bytes() -> u64 {
    u64::from(STAGES * STAGE)
}

/// bf16 times bf16 into f32, `m` x `n`.
pub fn instruction(m: u32, n: u32) -> u32 {
    1 << 4 | 1 << 7 | 1 << 10 | (n / 8) << 17 | (m / 16) << 24
}

fn wait(out: &mut String, name: &str, bar: &str, parity: &str) {
    writeln!(
        out,
        "{name}: // @{name}
mbarrier.try_wait.parity.shared::cta.b64 %p9, [{bar}], {parity}; // @{name}
@!%p9 bra {name}; // @{name}"
    )
    .unwrap();
}

/// `gemm(map A, map B, C, number of k tiles)`: one CTA, 128 x 32, thread 0 loads, thread 32 multiplies.
pub fn one_cta() -> String {
    let mut s = format!(
        ".version 8.7\n.target sm_100a\n.address_size 64
.extern .shared .align 1024 .b8 ring[];
.visible .entry gemm(.param .align 64 .b8 ta[128], .param .align 64 .b8 tb[128], .param .u64 c, .param .u32 tiles)
{{
.reg .pred %p<20>; .reg .b32 %r<60>; .reg .b64 %d<40>; .reg .b32 %acc<{N}>;
.shared .align 8 .b8 full[16]; .shared .align 8 .b8 empty[16]; .shared .align 8 .b64 done; .shared .b32 slot;
mov.u32 %r0, %tid.x; ld.param.u32 %r1, [tiles]; mov.u32 %r2, ring; mov.u32 %r3, full; mov.u32 %r4, empty; mov.u32 %r5, done;
mov.u32 %r6, slot; shr.u32 %r7, %r0, 5; setp.ne.u32 %p0, %r0, 0; @%p0 bra barriers;
mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
mbarrier.init.shared::cta.b64 [%r4], 1; mbarrier.init.shared::cta.b64 [%r4+8], 1; mbarrier.init.shared::cta.b64 [%r5], 1;
fence.mbarrier_init.release.cluster;
barriers: setp.ne.u32 %p1, %r7, 2; @%p1 bra ready;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r6], 32; // @alloc
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
ready: tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r8, [%r6]; mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0;
@!%p0 bra produce; setp.eq.u32 %p2, %r0, 32; @%p2 bra multiply; bra epilogue;
produce:
mov.u64 %d0, ta; cvta.param.u64 %d0, %d0; mov.u64 %d1, tb; cvta.param.u64 %d1, %d1;
load: shl.b32 %r22, %r11, 3; add.u32 %r23, %r3, %r22; add.u32 %r24, %r4, %r22; xor.b32 %r25, %r12, 1;
"
    );
    wait(&mut s, "empty_wait", "%r24", "%r25");
    write!(
        s,
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r23], {STAGE};
mad.lo.u32 %r26, %r11, {STAGE}, %r2; add.u32 %r27, %r26, {A_BYTES}; shl.b32 %r28, %r10, 6; mov.u32 %r29, 0;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r26], [%d0, {{%r28, %r29}}], [%r23];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r27], [%d1, {{%r28, %r29}}], [%r23];
add.u32 %r10, %r10, 1; xor.b32 %r11, %r11, 1; setp.eq.u32 %p3, %r11, 0; @%p3 xor.b32 %r12, %r12, 1;
setp.lt.u32 %p4, %r10, %r1; @%p4 bra load; bra epilogue;
multiply: shl.b32 %r22, %r11, 3; add.u32 %r23, %r3, %r22; add.u32 %r24, %r4, %r22;
"
    )
    .unwrap();
    wait(&mut s, "full_wait", "%r23", "%r12");
    write!(
        s,
        "tcgen05.fence::after_thread_sync;
mad.lo.u32 %r26, %r11, {STAGE}, %r2; add.u32 %r27, %r26, {A_BYTES}; shr.u32 %r26, %r26, 4; shr.u32 %r27, %r27, 4;
cvt.u64.u32 %d2, %r26; cvt.u64.u32 %d3, %r27; or.b64 %d2, %d2, {DESCRIPTOR}; or.b64 %d3, %d3, {DESCRIPTOR};
setp.ne.u32 %p5, %r10, 0; // @first
mov.u32 %r30, {};
",
        instruction(128, N)
    )
    .unwrap();
    for k in 0..4 {
        writeln!(
            s,
            "add.s64 %d4, %d2, {at}; add.s64 %d5, %d3, {at};
tcgen05.mma.cta_group::1.kind::f16 [%r8], %d4, %d5, %r30, {p}; // @mma",
            at = 2 * k,
            p = if k == 0 { "%p5" } else { "1" }
        )
        .unwrap();
    }
    s.push_str(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r24]; // @release
add.u32 %r10, %r10, 1; xor.b32 %r11, %r11, 1; setp.eq.u32 %p3, %r11, 0; @%p3 xor.b32 %r12, %r12, 1;
setp.lt.u32 %p4, %r10, %r1; @%p4 bra multiply;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5]; // @commit
epilogue: bar.warp.sync -1;
",
    );
    wait(&mut s, "done_wait", "%r5", "0");
    let registers: Vec<String> = (0..N).map(|i| format!("%acc{i}")).collect();
    write!(
        s,
        "tcgen05.fence::after_thread_sync;
shl.b32 %r40, %r7, 21; add.u32 %r40, %r40, %r8; // @lanes
tcgen05.ld.sync.aligned.32x32b.x{N}.b32 {{{}}}, [%r40]; // @ld
tcgen05.wait::ld.sync.aligned; // @wait_ld
ld.param.u64 %d6, [c]; cvta.to.global.u64 %d6, %d6; mul.wide.u32 %d7, %r0, {}; add.s64 %d6, %d6, %d7;
",
        registers.join(", "),
        4 * N
    )
    .unwrap();
    for i in 0..N {
        writeln!(s, "st.global.b32 [%d6+{}], %acc{i};", 4 * i).unwrap();
    }
    s.push_str(
        "tcgen05.fence::before_thread_sync;
bar.sync 0; // @last
setp.ne.u32 %p6, %r7, 2; @%p6 bra over;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32; // @dealloc
over: ret;
}
",
    );
    s
}

/// `gemm` of a pair of CTAs, 256 x 32: each loads its half of A and of B; the even one multiplies.
pub fn pair() -> String {
    let half = N / 2;
    let bytes = A_BYTES + half * 128;
    let mut s = format!(
        ".version 8.7\n.target sm_100a\n.address_size 64
.extern .shared .align 1024 .b8 ring[];
.visible .entry gemm(.param .align 64 .b8 ta[128], .param .align 64 .b8 tb[128], .param .u64 c, .param .u32 tiles)
.reqnctapercluster 2, 1, 1
{{
.reg .pred %p<20>; .reg .b16 %h<2>; .reg .b32 %r<60>; .reg .b64 %d<40>; .reg .b32 %acc<{N}>;
.shared .align 8 .b64 full; .shared .align 8 .b64 both; .shared .align 8 .b64 empty; .shared .b32 slot;
mov.u32 %r0, %tid.x; ld.param.u32 %r1, [tiles]; mov.u32 %r2, ring; mov.u32 %r3, full; mov.u32 %r4, empty; mov.u32 %r5, both;
mov.u32 %r6, slot; shr.u32 %r7, %r0, 5; mov.u32 %r9, %cluster_ctarank;
setp.ne.u32 %p0, %r0, 0; @%p0 bra barriers;
mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r4], 1; mbarrier.init.shared::cta.b64 [%r5], 2;
fence.mbarrier_init.release.cluster;
barriers: setp.ne.u32 %p1, %r7, 1; @%p1 bra ready;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r6], 32;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
ready: tcgen05.fence::before_thread_sync;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r8, [%r6]; mov.u32 %r10, 0; mov.u32 %r12, 0;
@%p0 bra epilogue;
mov.u64 %d0, ta; cvta.param.u64 %d0, %d0; mov.u64 %d1, tb; cvta.param.u64 %d1, %d1;
shl.b32 %r20, %r9, 7; mul.lo.u32 %r21, %r9, {half};
mov.u32 %r18, 0; mapa.shared::cluster.u32 %r19, %r5, %r18;
shr.u32 %r26, %r2, 4; and.b32 %r26, %r26, 0x3fff; add.u32 %r27, %r26, {};
cvt.u64.u32 %d2, %r26; cvt.u64.u32 %d3, %r27; or.b64 %d2, %d2, {DESCRIPTOR}; or.b64 %d3, %d3, {DESCRIPTOR};
mov.u32 %r30, {}; mov.u16 %h0, 3;
load: xor.b32 %r25, %r12, 1;
",
        A_BYTES / 16,
        instruction(256, N)
    );
    wait(&mut s, "empty_wait", "%r4", "%r25");
    write!(
        s,
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {bytes};
add.u32 %r29, %r2, {A_BYTES}; shl.b32 %r28, %r10, 6;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d0, {{%r28, %r20}}], [%r3];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r29], [%d1, {{%r28, %r21}}], [%r3];
"
    )
    .unwrap();
    wait(&mut s, "full_wait", "%r3", "%r12");
    s.push_str(
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r19]; // @both
setp.ne.u32 %p2, %r9, 0; @%p2 bra next;
",
    );
    wait(&mut s, "both_wait", "%r5", "%r12");
    s.push_str("tcgen05.fence::after_thread_sync; setp.ne.u32 %p5, %r10, 0;\n");
    for k in 0..4 {
        writeln!(
            s,
            "add.s64 %d4, %d2, {at}; add.s64 %d5, %d3, {at};
tcgen05.mma.cta_group::2.kind::f16 [%r8], %d4, %d5, %r30, {p};",
            at = 2 * k,
            p = if k == 0 { "%p5" } else { "1" }
        )
        .unwrap();
    }
    s.push_str(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r4], %h0; // @commit
next: add.u32 %r10, %r10, 1; xor.b32 %r12, %r12, 1; setp.lt.u32 %p4, %r10, %r1; @%p4 bra load;
epilogue: bar.warp.sync -1;
sub.u32 %r41, %r1, 1; and.b32 %r41, %r41, 1;
setp.eq.u32 %p7, %r0, 0; @!%p7 bra together;
",
    );
    wait(&mut s, "done_wait", "%r4", "%r41");
    let registers: Vec<String> = (0..N).map(|i| format!("%acc{i}")).collect();
    write!(
        s,
        "together: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
shl.b32 %r40, %r7, 21; add.u32 %r40, %r40, %r8;
tcgen05.ld.sync.aligned.32x32b.x{N}.b32 {{{}}}, [%r40];
tcgen05.wait::ld.sync.aligned;
ld.param.u64 %d6, [c]; cvta.to.global.u64 %d6, %d6; shl.b32 %r42, %r9, 7; add.u32 %r42, %r42, %r0;
mul.wide.u32 %d7, %r42, {}; add.s64 %d6, %d6, %d7;
",
        registers.join(", "),
        4 * N
    )
    .unwrap();
    for i in 0..N {
        writeln!(s, "st.global.b32 [%d6+{}], %acc{i};", 4 * i).unwrap();
    }
    s.push_str(
        "tcgen05.fence::before_thread_sync;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; // @last
setp.ne.u32 %p6, %r7, 1; @%p6 bra over;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r8, 32;
over: ret;
}
",
    );
    s
}
